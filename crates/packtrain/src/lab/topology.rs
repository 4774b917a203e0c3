//! What a lab is made of: hosts, switches, hubs and the wires between them, as plain data.
//!
//! A topology comes from a file ([`mod@file`]), from options ([`options`]) or is a ready one
//! ([`ready`]); a running lab keeps it as JSON, and [`graph`] draws it. Nothing here touches the
//! system.

pub mod change;
pub mod check;
pub mod direction;
#[cfg(test)]
mod documentation;
pub mod file;
pub mod graph;
pub mod options;
pub mod ready;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use change::Change;
pub use direction::{Direction, Port, WireSettings};
pub use options::TopologyOptions;

/// More namespaces and processes than one machine carries well.
pub const HOSTS_MAX: usize = 64;
/// So that the same topology meets the same fate when nobody asks for another.
pub const SEED_DEFAULT: u64 = 1;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Topology {
    pub name: String,
    pub about: Option<String>,
    /// Of everything that is left to chance.
    pub seed: u64,
    pub hosts: Vec<Host>,
    pub nodes: Vec<Node>,
    pub wires: Vec<Wire>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    pub name: Name,
    /// Whether a line runs on it, with all its wires as links.
    pub packtrain: bool,
    /// Further arguments of `packtrain up`.
    pub up: Vec<String>,
}

/// What passes frames on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    pub name: Name,
    pub kind: NodeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    /// A learning bridge.
    Switch,
    /// Shared Ethernet: one frame at a time, whoever sends it (CSMA/CD).
    Hub { rate_bps: u64 },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wire {
    /// As `a-b.0`: its ends, and a number among the wires between the two.
    pub name: String,
    pub ends: [End; 2],
    pub mtu: u16,
    /// From the first end to the second, and back.
    pub directions: [Direction; 2],
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    pub node: Name,
    /// Of a host alone: `eth0` for its first wire, `eth1` for its second.
    pub interface: Option<String>,
}

impl Topology {
    pub fn new(name: impl Into<String>) -> Topology {
        Topology {
            name: name.into(),
            about: None,
            seed: SEED_DEFAULT,
            hosts: Vec::new(),
            nodes: Vec::new(),
            wires: Vec::new(),
        }
    }

    pub fn host(&self, name: &Name) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name == *name)
    }

    pub fn node(&self, name: &Name) -> Option<&Node> {
        self.nodes.iter().find(|node| node.name == *name)
    }

    pub fn wire(&self, name: &str) -> Option<&Wire> {
        self.wires.iter().find(|wire| wire.name == name)
    }

    /// The wires of a host or a node; those of a host in the order of its interfaces.
    pub fn wires_of<'a>(&'a self, name: &'a Name) -> impl Iterator<Item = &'a Wire> {
        let wires = self.wires.iter();
        wires.filter(move |wire| wire.ends.iter().any(|end| end.node == *name))
    }

    /// The rate of the shared medium, where one end is a hub.
    pub fn hub_rate_bps(&self, ends: [&Name; 2]) -> Option<u64> {
        let nodes = ends.into_iter().filter_map(|end| self.node(end));
        nodes
            .filter_map(|node| match node.kind {
                NodeKind::Hub { rate_bps } => Some(rate_bps),
                NodeKind::Switch => None,
            })
            .next()
    }

    /// Adds a wire, names it and the interfaces at its ends. Whether it is a right one, `check`
    /// says.
    pub fn connect(&mut self, from: &Name, to: &Name, mtu: u16, mut directions: [Direction; 2]) {
        let mut ends = [from, to];
        let same = |wire: &&Wire| wire.ends.iter().all(|end| ends.contains(&&end.node));
        let number = self.wires.iter().filter(same).count();
        // All wires between two nodes are named alike, however each was written.
        if let Some(first) = self.wires.iter().find(same)
            && first.ends[0].node != *from
        {
            ends.reverse();
            directions.reverse();
        }
        let hub_rate_bps = self.hub_rate_bps(ends);
        for (direction, sender) in directions.iter_mut().zip(ends) {
            direction.port = match self.host(sender) {
                // A station's port sends at the rate of the medium, and waits for its turn there.
                Some(_) => direction.port.completed(hub_rate_bps),
                None => Port::default(),
            };
        }
        let end = |node: &Name| End {
            node: node.clone(),
            interface: self
                .host(node)
                .map(|_| format!("eth{}", self.wires_of(node).count())),
        };
        self.wires.push(Wire {
            name: format!("{}-{}.{number}", ends[0], ends[1]),
            ends: ends.map(end),
            mtu,
            directions,
        });
    }
}

impl Wire {
    /// The direction in which a node sends, if it is an end.
    pub fn from(&self, node: &Name) -> Option<&Direction> {
        self.index_from(node).map(|index| &self.directions[index])
    }

    /// Its place in `directions`.
    pub fn index_from(&self, node: &Name) -> Option<usize> {
        self.ends.iter().position(|end| end.node == *node)
    }
}

/// Of a host or a node: short, so that the names of interfaces and namespaces that are made of it
/// fit.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

impl Name {
    pub const LEN_MAX: usize = 8;

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> String {
        name.0
    }
}

impl TryFrom<String> for Name {
    type Error = NameError;

    fn try_from(text: String) -> Result<Name, NameError> {
        text.parse()
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

/// Why a text names no host or node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("a name has 1 to {max} characters, {0:?} has {len}", max = Name::LEN_MAX, len = .0.chars().count())]
    Length(String),
    #[error("a name begins with a lower-case letter, {0:?} does not")]
    First(String),
    #[error("a name has lower-case letters and digits alone, {text:?} has {character:?}")]
    Character { text: String, character: char },
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Name, NameError> {
        if text.is_empty() || text.chars().count() > Name::LEN_MAX {
            return Err(NameError::Length(text.into()));
        }
        if !text.starts_with(|c: char| c.is_ascii_lowercase()) {
            return Err(NameError::First(text.into()));
        }
        let wrong = |c: &char| !c.is_ascii_lowercase() && !c.is_ascii_digit();
        if let Some(character) = text.chars().find(wrong) {
            return Err(NameError::Character {
                text: text.into(),
                character,
            });
        }
        Ok(Name(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    fn host(text: &str) -> Host {
        Host {
            name: name(text),
            packtrain: true,
            up: Vec::new(),
        }
    }

    #[test]
    fn a_name_is_short_and_of_lower_case_letters_and_digits() {
        for right in ["a", "server", "c1", "abcdefg8"] {
            assert_eq!(name(right).as_str(), right);
        }
        let text = |text: &str| text.parse::<Name>().unwrap_err().to_string();
        assert_eq!(text(""), "a name has 1 to 8 characters, \"\" has 0");
        assert_eq!(
            text("ninechars"),
            "a name has 1 to 8 characters, \"ninechars\" has 9"
        );
        assert_eq!(
            text("1a"),
            "a name begins with a lower-case letter, \"1a\" does not"
        );
        assert_eq!(
            text("a-b"),
            "a name has lower-case letters and digits alone, \"a-b\" has '-'"
        );
    }

    #[test]
    fn wires_and_interfaces_are_numbered_in_the_order_in_which_they_come() {
        let mut topology = Topology::new("t");
        topology.hosts = vec![host("a"), host("b")];
        topology.nodes = vec![Node {
            name: name("s"),
            kind: NodeKind::Switch,
        }];
        for (from, to) in [("a", "s"), ("a", "b"), ("b", "a"), ("s", "b")] {
            topology.connect(&name(from), &name(to), 1500, Default::default());
        }
        let wires: Vec<String> = topology
            .wires
            .iter()
            .map(|wire| {
                let ends = wire.ends.each_ref();
                let ends = ends.map(|end| end.interface.as_deref().unwrap_or("no interface"));
                format!("{}: {} to {}", wire.name, ends[0], ends[1])
            })
            .collect();
        assert_eq!(
            wires,
            [
                "a-s.0: eth0 to no interface",
                "a-b.0: eth1 to eth0",
                "a-b.1: eth2 to eth1",
                "s-b.0: no interface to eth2",
            ]
        );
    }

    #[test]
    fn only_a_host_has_a_port_and_at_a_hub_it_has_the_hubs_rate() {
        let mut topology = Topology::new("t");
        topology.hosts = vec![host("a")];
        topology.nodes = vec![Node {
            name: name("h"),
            kind: NodeKind::Hub {
                rate_bps: 10_000_000,
            },
        }];
        topology.connect(&name("a"), &name("h"), 1500, Default::default());
        let wire = &topology.wires[0];
        assert_eq!(
            wire.from(&name("a")).unwrap().port,
            Port {
                rate_bps: Some(10_000_000),
                queue_packets: Some(1000)
            }
        );
        assert_eq!(wire.from(&name("h")).unwrap().port, Port::default());
        assert_eq!(wire.from(&name("b")), None);
    }
}
