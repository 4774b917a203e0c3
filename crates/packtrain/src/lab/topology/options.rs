//! A topology by a few words: so many hosts, so many links each, all alike.

use super::change::{Change, OrNone};
use super::check::Contradiction;
use super::direction::{Counts, Direction, Rate};
use super::{HOSTS_MAX, Host, Name, Node, NodeKind, SEED_DEFAULT, Topology};
use crate::settings::{LINKS_MAX, MTU_DEFAULT, values};

/// Of every wire, when nothing else is said.
pub const RATE_BPS_DEFAULT: u64 = 100_000_000;

fn mtu(text: &str) -> Result<u16, String> {
    let mtu = text.parse::<u32>().map_err(|error| error.to_string())?;
    values::check_mtu(mtu).map_err(|error| error.to_string())
}

fn within(text: &str, least: usize, most: usize) -> Result<usize, String> {
    let number = text.parse().ok().filter(|n| (least..=most).contains(n));
    number.ok_or_else(|| format!("not a number from {least} to {most}"))
}

fn hosts(text: &str) -> Result<usize, String> {
    within(text, 2, HOSTS_MAX)
}

fn links(text: &str) -> Result<usize, String> {
    within(text, 1, LINKS_MAX)
}

#[derive(Clone, Debug, PartialEq, clap::Args)]
pub struct TopologyOptions {
    /// Hosts, called a, b, and so on.
    #[arg(long, value_name = "N", default_value = "2", value_parser = hosts)]
    pub hosts: usize,

    /// Links of each host: cables between two hosts, or a switch for each between more.
    #[arg(long, value_name = "N", default_value = "2", value_parser = links)]
    pub links: usize,

    /// MTU of the wires, 68 to 65521.
    #[arg(long, value_name = "BYTES", default_value_t = MTU_DEFAULT, value_parser = mtu)]
    pub mtu: u16,

    /// Only hosts and wires, without lines.
    #[arg(long = "no-packtrain", action = clap::ArgAction::SetFalse)]
    pub packtrain: bool,

    /// What chance is made of: the same seed, the same fate.
    #[arg(long, value_name = "N", default_value_t = SEED_DEFAULT)]
    pub seed: u64,

    /// Of every wire, in both directions.
    #[command(flatten)]
    pub wires: Change,
}

impl Default for TopologyOptions {
    fn default() -> TopologyOptions {
        TopologyOptions {
            hosts: 2,
            links: 2,
            mtu: MTU_DEFAULT,
            packtrain: true,
            seed: SEED_DEFAULT,
            wires: Change::default(),
        }
    }
}

impl TopologyOptions {
    pub fn topology(&self) -> Result<Topology, Contradiction> {
        let mut topology = Topology::new("lab");
        topology.seed = self.seed;
        topology.hosts = self.host_names().map(|name| self.host(name)).collect();
        let names: Vec<Name> = topology
            .hosts
            .iter()
            .map(|host| host.name.clone())
            .collect();
        if let [a, b] = names.as_slice() {
            for _ in 0..self.links {
                topology.connect(a, b, self.mtu, self.directions());
            }
        } else {
            for number in 1..=self.links {
                let switch = name(format!("s{number}"));
                topology.nodes.push(Node {
                    name: switch.clone(),
                    kind: NodeKind::Switch,
                });
                for host in &names {
                    topology.connect(host, &switch, self.mtu, self.directions());
                }
            }
        }
        match topology.check().into_iter().next() {
            Some((_, contradiction)) => Err(contradiction),
            None => Ok(topology),
        }
    }

    /// Letters while they last: they are what one types at every command.
    fn host_names(&self) -> impl Iterator<Item = Name> {
        let hosts = self.hosts;
        (0..hosts).map(move |i| match u8::try_from(i) {
            Ok(i) if hosts <= 26 => name(char::from(b'a' + i).to_string()),
            _ => name(format!("h{}", i + 1)),
        })
    }

    fn host(&self, name: Name) -> Host {
        Host {
            name,
            packtrain: self.packtrain,
            up: Vec::new(),
        }
    }

    fn directions(&self) -> [Direction; 2] {
        let mut direction = Direction::default();
        let rate = Rate {
            bps: RATE_BPS_DEFAULT,
            counts: Counts::Ethernet,
        };
        let default = Change {
            rate: Some(OrNone(Some(rate))),
            ..Change::default()
        };
        default.apply(&mut direction);
        self.wires.apply(&mut direction);
        [direction.clone(), direction]
    }
}

fn name(text: String) -> Name {
    text.parse().expect("a letter and a small number")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: TopologyOptions,
    }

    fn options(words: &str) -> TopologyOptions {
        let words = std::iter::once("up").chain(words.split_whitespace());
        Line::try_parse_from(words).unwrap().options
    }

    fn wires(topology: &Topology) -> Vec<&str> {
        topology
            .wires
            .iter()
            .map(|wire| wire.name.as_str())
            .collect()
    }

    #[test]
    fn nothing_said_is_two_hosts_and_two_links_of_100_megabits() {
        assert_eq!(options(""), TopologyOptions::default());
        let topology = TopologyOptions::default().topology().unwrap();
        assert_eq!(wires(&topology), ["a-b.0", "a-b.1"]);
        assert!(topology.hosts.iter().all(|host| host.packtrain));
        for direction in topology.wires.iter().flat_map(|wire| &wire.directions) {
            assert_eq!(direction.port.rate_bps, Some(RATE_BPS_DEFAULT));
            assert_eq!(direction.wire.rate.unwrap().bps, RATE_BPS_DEFAULT);
        }
    }

    #[test]
    fn three_hosts_and_more_stand_around_a_switch_for_each_link() {
        let words = "--hosts 3 --links 2 --rate 50mbit --delay 20ms --loss 1% --mtu 9000 \
                     --no-packtrain --seed 7";
        let topology = options(words).topology().unwrap();
        assert_eq!(
            wires(&topology),
            ["a-s1.0", "b-s1.0", "c-s1.0", "a-s2.0", "b-s2.0", "c-s2.0"]
        );
        assert_eq!(topology.seed, 7);
        assert!(topology.hosts.iter().all(|host| !host.packtrain));
        for wire in &topology.wires {
            assert_eq!(wire.mtu, 9000);
            for direction in &wire.directions {
                assert_eq!(direction.wire.delay_ns, 20_000_000);
                assert_eq!(direction.wire.rate.unwrap().bps, 50_000_000);
            }
        }
    }

    #[test]
    fn the_largest_that_can_be_said_is_right() {
        let topology = options("--hosts 64 --links 16").topology().unwrap();
        assert_eq!(topology.hosts[63].name.as_str(), "h64");
        assert_eq!(topology.wires.len(), 1024);
    }

    #[test]
    fn what_is_out_of_range_is_refused_with_the_range() {
        let error = |words: &str| {
            let words = std::iter::once("up").chain(words.split_whitespace());
            Line::try_parse_from(words).unwrap_err().to_string()
        };
        assert!(error("--hosts 1").contains("not a number from 2 to 64"));
        assert!(error("--links 17").contains("not a number from 1 to 16"));
        assert!(error("--mtu 50").contains("an MTU of 50 bytes is too small: at least 68"));
        assert!(error("--loss often").contains("\"often\" is no loss"));
        let many = TopologyOptions {
            hosts: 65,
            ..TopologyOptions::default()
        };
        assert_eq!(many.topology(), Err(Contradiction::TooManyHosts(65)));
    }
}
