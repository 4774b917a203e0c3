//! How much went over each link, by the counters of the line.

use serde::Serialize;

use crate::lab::table::{Table, grouped};
use crate::status::{Link, StatusDocument};

/// What A sent over a link of a line in one part, all rounds together.
#[derive(Clone, Debug, Serialize)]
pub struct LinkUse {
    pub part: String,
    pub line: &'static str,
    #[serde(flatten)]
    pub sent: Counters,
}

/// Of one link since it joined the line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Counters {
    pub link: String,
    /// Never given to a second link of the line.
    pub id: u8,
    pub trains: u64,
    /// Packets of the wire: trains, frames as they are, direct ones, hellos.
    pub frames: u64,
    pub bytes: u64,
}

impl Counters {
    fn of(link: &Link) -> Counters {
        Counters {
            link: link.name.clone(),
            id: link.id,
            trains: link.trains_tx,
            frames: link.tx.frames,
            bytes: link.tx.bytes,
        }
    }

    /// And what was sent at another time over the same link.
    pub fn add(&mut self, more: &Counters) {
        self.trains += more.trains;
        self.frames += more.frames;
        self.bytes += more.bytes;
    }

    fn since(&self, before: &Counters) -> Counters {
        Counters {
            link: self.link.clone(),
            id: self.id,
            trains: self.trains - before.trains,
            frames: self.frames - before.frames,
            bytes: self.bytes - before.bytes,
        }
    }
}

/// The counters of a line's links, in its order of them.
pub fn counters(document: &StatusDocument) -> Vec<Counters> {
    document.links.iter().map(Counters::of).collect()
}

/// What was sent between two readings, by the links that are there in the end: one that joined in between
/// began with nothing.
pub fn uses(
    part: &str,
    line: &'static str,
    before: &[Counters],
    after: &[Counters],
) -> Vec<LinkUse> {
    let since = |link: &Counters| match before.iter().find(|before| before.id == link.id) {
        Some(before) => link.since(before),
        None => link.clone(),
    };
    let links = after.iter();
    links
        .map(|link| LinkUse {
            part: part.to_owned(),
            line,
            sent: since(link),
        })
        .collect()
}

pub fn uses_table(uses: &[LinkUse]) -> Table {
    let mut table = Table::new(&[
        "what A sent",
        "line",
        "over",
        "trains",
        "frames",
        "bytes",
        "share",
    ]);
    for one in uses {
        let of_line = uses
            .iter()
            .filter(|other| (&other.part, other.line) == (&one.part, one.line));
        let all: u64 = of_line.map(|other| other.sent.bytes).sum();
        table.row([
            one.part.clone(),
            one.line.to_owned(),
            one.sent.link.clone(),
            grouped(one.sent.trains as f64),
            grouped(one.sent.frames as f64),
            grouped(one.sent.bytes as f64),
            format!("{:.0} %", 100.0 * one.sent.bytes as f64 / all.max(1) as f64),
        ]);
    }
    table
}
