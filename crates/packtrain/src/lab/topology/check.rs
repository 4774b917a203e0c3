//! What is wrong with a topology taken together; each value alone was checked when it was read.

use super::{HOSTS_MAX, Name, NodeKind, Topology};
use crate::settings::LINKS_MAX;
use crate::units::BitRate;

/// The rates of shared Ethernet (IEEE 802.3, clauses 8 and 21); at a gigabit nobody built it.
const HUB_RATES_BPS: [u64; 2] = [10_000_000, 100_000_000];

/// Which part of the topology a contradiction is about, by its place in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Whole,
    Host(usize),
    Node(usize),
    Wire(usize),
}

/// Values that are right one by one, and not together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Contradiction {
    #[error("a topology needs at least one host")]
    NoHosts,
    #[error("{0} hosts are named, a lab has at most {HOSTS_MAX}")]
    TooManyHosts(usize),
    #[error("{0} is the name of two")]
    NameTwice(Name),
    #[error("there is no {end}; there are {}", known.join(", "))]
    UnknownEnd { end: Name, known: Vec<String> },
    #[error("a wire from {0} to itself")]
    WireToItself(Name),
    #[error("{0} has no wire")]
    NoWire(Name),
    #[error("{host} has {count} wires, a line has at most {LINKS_MAX} links")]
    TooManyLinks { host: Name, count: usize },
    #[error("{0} does not run packtrain, so it takes no arguments for `packtrain up`")]
    UpWithoutPacktrain(Name),
    #[error("a hub has 10mbit or 100mbit, not {}", BitRate(*.0))]
    HubRate(u64),
    #[error("{0} has one rate for all, so a wire at it has none of its own")]
    RateAtHub(Name),
    #[error("{0} and {1} would be one shared medium: use one hub")]
    HubAtHub(Name, Name),
    #[error(
        "{0} and {1} are joined already by other wires: frames would circle for ever, for there is \
         no spanning tree here"
    )]
    Loop(Name, Name),
}

impl Contradiction {
    /// The key of the table in a file that says it.
    pub fn key(&self) -> Option<&'static str> {
        match self {
            Contradiction::NameTwice(_) => Some("name"),
            Contradiction::UpWithoutPacktrain(_) => Some("up"),
            Contradiction::HubRate(_) | Contradiction::RateAtHub(_) => Some("rate"),
            Contradiction::UnknownEnd { .. }
            | Contradiction::WireToItself(_)
            | Contradiction::HubAtHub(..)
            | Contradiction::Loop(..) => Some("ends"),
            Contradiction::NoHosts
            | Contradiction::TooManyHosts(_)
            | Contradiction::NoWire(_)
            | Contradiction::TooManyLinks { .. } => None,
        }
    }
}

impl Topology {
    /// Everything that is wrong, in the order of the parts.
    pub fn check(&self) -> Vec<(Part, Contradiction)> {
        let mut found = Vec::new();
        self.check_hosts(&mut found);
        self.check_nodes(&mut found);
        self.check_wires(&mut found);
        found
    }

    fn check_hosts(&self, found: &mut Vec<(Part, Contradiction)>) {
        if self.hosts.is_empty() {
            found.push((Part::Whole, Contradiction::NoHosts));
        }
        if self.hosts.len() > HOSTS_MAX {
            let error = Contradiction::TooManyHosts(self.hosts.len());
            found.push((Part::Whole, error));
        }
        for (i, host) in self.hosts.iter().enumerate() {
            let mut add = |error| found.push((Part::Host(i), error));
            let name = host.name.clone();
            if self.hosts[..i].iter().any(|other| other.name == name) {
                add(Contradiction::NameTwice(name));
                continue;
            }
            let count = self.wires_of(&name).count();
            if count == 0 {
                add(Contradiction::NoWire(name.clone()));
            }
            if count > LINKS_MAX && host.packtrain {
                add(Contradiction::TooManyLinks {
                    host: name.clone(),
                    count,
                });
            }
            if !host.packtrain && !host.up.is_empty() {
                add(Contradiction::UpWithoutPacktrain(name));
            }
        }
    }

    fn check_nodes(&self, found: &mut Vec<(Part, Contradiction)>) {
        for (i, node) in self.nodes.iter().enumerate() {
            let before = self.nodes[..i].iter().map(|other| &other.name);
            let mut others = self.hosts.iter().map(|host| &host.name).chain(before);
            if others.any(|other| *other == node.name) {
                let error = Contradiction::NameTwice(node.name.clone());
                found.push((Part::Node(i), error));
            }
            if let NodeKind::Hub { rate_bps } = node.kind
                && !HUB_RATES_BPS.contains(&rate_bps)
            {
                found.push((Part::Node(i), Contradiction::HubRate(rate_bps)));
            }
        }
    }

    fn check_wires(&self, found: &mut Vec<(Part, Contradiction)>) {
        let known = || {
            let hosts = self.hosts.iter().map(|host| host.name.to_string());
            let nodes = self.nodes.iter().map(|node| node.name.to_string());
            hosts.chain(nodes).collect()
        };
        let mut joined = Joined::new(self);
        for (i, wire) in self.wires.iter().enumerate() {
            let mut add = |error| found.push((Part::Wire(i), error));
            let ends = wire.ends.each_ref().map(|end| &end.node);
            let mut unknown = false;
            for end in ends {
                if self.host(end).is_none() && self.node(end).is_none() {
                    unknown = true;
                    add(Contradiction::UnknownEnd {
                        end: end.clone(),
                        known: known(),
                    });
                }
            }
            let [a, b] = ends;
            if unknown {
                continue;
            }
            if a == b {
                add(Contradiction::WireToItself(a.clone()));
                continue;
            }
            let hubs = ends.map(|end| self.hub_rate_bps([end, end]).is_some());
            let hub_rate_bps = self.hub_rate_bps(ends);
            let rated = wire.directions.iter().any(|direction| {
                let port_bps = direction.port.rate_bps;
                direction.wire.rate.is_some() || port_bps.is_some() && port_bps != hub_rate_bps
            });
            if hubs == [true, true] {
                add(Contradiction::HubAtHub(a.clone(), b.clone()));
            } else if rated && let Some(hub) = hubs.iter().position(|hub| *hub) {
                add(Contradiction::RateAtHub(ends[hub].clone()));
            }
            if !joined.join(a, b) {
                add(Contradiction::Loop(a.clone(), b.clone()));
            }
        }
    }
}

/// Which switches and hubs reach each other: each points to another of its set, or to itself.
/// Hosts pass nothing on.
struct Joined<'a> {
    names: Vec<&'a Name>,
    towards: Vec<usize>,
}

impl<'a> Joined<'a> {
    fn new(topology: &'a Topology) -> Joined<'a> {
        Joined {
            names: topology.nodes.iter().map(|node| &node.name).collect(),
            towards: (0..topology.nodes.len()).collect(),
        }
    }

    fn root(&self, name: &Name) -> Option<usize> {
        let mut at = self.names.iter().position(|other| *other == name)?;
        while self.towards[at] != at {
            at = self.towards[at];
        }
        Some(at)
    }

    /// False: they were joined before.
    fn join(&mut self, a: &Name, b: &Name) -> bool {
        let (Some(a), Some(b)) = (self.root(a), self.root(b)) else {
            return true;
        };
        self.towards[a] = b;
        a != b
    }
}
