//! A drawing of a topology, and of how its wires fare: as text for a terminal, as SVG for a page.

mod layers;
mod layout;
mod rows;
pub mod svg;
pub mod text;
mod tracks;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::direction::{Direction, Loss, Rate};
use super::{Topology, Wire};
use crate::units::{Share, Time};

/// What a terminal surely has.
const COLUMNS: usize = 80;

/// How the wires are now, by name; one that is not named is as the topology describes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub wires: BTreeMap<String, [DirectionState; 2]>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectionState {
    pub carrier: Carrier,
    pub rate: Option<Rate>,
    pub delay_ns: u64,
    pub loss: Option<Loss>,
    /// What passes now; `None`: not measured.
    pub bits_per_second: Option<u64>,
    /// How much of the time the wire is busy, 0 to 1.
    pub utilisation: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Carrier {
    #[default]
    Up,
    /// Both ends see it.
    Cut,
    /// Frames vanish, and nobody sees why.
    Silent,
}

impl From<&Direction> for DirectionState {
    fn from(direction: &Direction) -> DirectionState {
        DirectionState {
            carrier: Carrier::Up,
            rate: direction.wire.rate,
            delay_ns: direction.wire.delay_ns,
            loss: direction.wire.loss.clone(),
            bits_per_second: None,
            utilisation: None,
        }
    }
}

impl DirectionState {
    /// What is said of it, in the order in which it is said; `None` where there is nothing to say.
    fn words(&self) -> [Option<String>; 5] {
        let now = self.bits_per_second.map(|bps| {
            let share = self
                .utilisation
                .map(|share| format!(" {:.0}%", share * 100.0));
            format!("now {}{}", short_rate(bps), share.unwrap_or_default())
        });
        [
            match self.carrier {
                Carrier::Up => None,
                Carrier::Cut => Some("CUT".into()),
                Carrier::Silent => Some("SILENT".into()),
            },
            self.rate.map(|rate| rate.to_string()),
            (self.delay_ns > 0).then(|| Time(self.delay_ns).to_string()),
            self.loss.as_ref().map(|loss| match loss.share() {
                // In one word, so that it is not torn apart; a measure of what will be seen.
                Some(share) => format!("loss {}", Share((share * 1e6).round() / 1e6)),
                None => format!("loss {loss}"),
            }),
            now,
        ]
    }
}

/// One digit after the point: it changes while one looks.
fn short_rate(bps: u64) -> String {
    let (value, unit) = match bps as f64 {
        bps if bps >= 1e9 => (bps / 1e9, "gbit"),
        bps if bps >= 1e6 => (bps / 1e6, "mbit"),
        bps if bps >= 1e3 => (bps / 1e3, "kbit"),
        bps => (bps, "bit"),
    };
    let text = format!("{value:.1}");
    format!("{}{unit}", text.strip_suffix(".0").unwrap_or(&text))
}

/// What stands on a wire: lines of words that are not torn apart.
struct Label {
    /// The name, and what holds both ways.
    common: Vec<String>,
    /// What holds from the first end to the second alone, and back.
    directions: [Vec<String>; 2],
    is_cut: bool,
    /// Cut, or silent in a direction at least.
    is_down: bool,
}

impl Label {
    fn new(wire: &Wire, state: Option<&State>) -> Label {
        let now = state.and_then(|state| state.wires.get(&wire.name));
        let now = now.cloned();
        let [there, back] = now.unwrap_or_else(|| wire.directions.each_ref().map(Into::into));
        let mut label = Label {
            common: vec![wire.name.clone()],
            directions: Default::default(),
            is_cut: [&there, &back].iter().any(|d| d.carrier == Carrier::Cut),
            is_down: [&there, &back].iter().any(|d| d.carrier != Carrier::Up),
        };
        for (there, back) in there.words().into_iter().zip(back.words()) {
            if there == back {
                label.common.extend(there);
            } else {
                label.directions[0].extend(there);
                label.directions[1].extend(back);
            }
        }
        label
    }

    /// Its lines, none wider than `width` unless a word is; `reversed`: the first end stands
    /// right.
    fn lines(&self, width: usize, reversed: bool) -> Vec<String> {
        let mut lines = wrap(&self.common, width, "");
        let [there, back] = &self.directions;
        let (right, left) = if reversed {
            (back, there)
        } else {
            (there, back)
        };
        for (words, arrow) in [(right, "→ "), (left, "← ")] {
            if !words.is_empty() {
                lines.extend(wrap(words, width, arrow));
            }
        }
        lines
    }
}

/// `first` stands before the first line, and as many blanks before the others.
fn wrap(words: &[String], width: usize, first: &str) -> Vec<String> {
    let indent = " ".repeat(first.chars().count());
    let mut lines: Vec<String> = Vec::new();
    let mut line = first.to_owned();
    let mut is_empty = true;
    for word in words {
        let long = line.chars().count() + 1 + word.chars().count();
        if !is_empty && long > width {
            lines.push(std::mem::replace(&mut line, indent.clone()));
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    lines.push(line);
    lines
}

/// What stands in a box, besides its name.
fn note(topology: &Topology, vertex: layers::Vertex) -> Option<String> {
    use super::NodeKind;
    use crate::units::BitRate;
    match vertex {
        // Worth a word only where others do run it.
        layers::Vertex::Host(i) => {
            let some = topology.hosts.iter().any(|host| host.packtrain);
            (some && !topology.hosts[i].packtrain).then(|| "plain".into())
        }
        layers::Vertex::Node(i) => match topology.nodes[i].kind {
            NodeKind::Switch => None,
            NodeKind::Hub { rate_bps } => Some(BitRate(rate_bps).to_string()),
        },
        layers::Vertex::Passing => None,
    }
}

#[cfg(test)]
mod tests;
