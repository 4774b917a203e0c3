//! Two hosts, and between them cables of one make: one or two for every way.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use super::hold::Held;
use crate::lab::cable::{Cable, Side};
use crate::lab::cut;
use crate::lab::host::Host;
use crate::lab::join::Addition;
use crate::lab::stream::{self, Amount, Protocol, Transfer};
use crate::lab::{Result, now, pause, wait_for, wire};
use crate::status::{LinkCondition, StatusDocument};

pub const RATE_MBIT: u32 = 100;
pub const SLOW_MBIT: u32 = 20;
/// Of a link's rate, the payload of full-size frames, and of that nine tenths.
const FULL_SPEED: f64 = 0.95 * 0.9;

/// A way from A to B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    Plain,
    Mptcp,
    One,
    /// One link as well, and all by the engine as over several: what the others add.
    OneByEngine,
    Several,
    /// Two as well, a train on each in turns: idle links are not, where the one that finishes first
    /// takes all.
    InTurns,
    /// One fast link and a slow one.
    Unequal,
}

/// A line, and its cables with the rate of each.
struct LineOf {
    way: Way,
    name: &'static str,
    network: u8,
    cables: &'static [(&'static str, u32)],
    more: &'static [&'static str],
}

const LINES: [LineOf; 5] = [
    LineOf {
        way: Way::One,
        name: "pt-one",
        network: 1,
        cables: &[("one0", RATE_MBIT)],
        more: &[],
    },
    LineOf {
        way: Way::OneByEngine,
        name: "pt-engine",
        network: 2,
        cables: &[("engine0", RATE_MBIT)],
        more: &["--path", "engine"],
    },
    LineOf {
        way: Way::Several,
        name: "pt-two",
        network: 3,
        cables: &[("two0", RATE_MBIT), ("two1", RATE_MBIT)],
        more: &[],
    },
    LineOf {
        way: Way::InTurns,
        name: "pt-turns",
        network: 5,
        cables: &[("turn0", RATE_MBIT), ("turn1", RATE_MBIT)],
        more: &["--balance", "round-robin"],
    },
    LineOf {
        way: Way::Unequal,
        name: "pt-unequal",
        network: 4,
        cables: &[("fast0", RATE_MBIT), ("slow0", SLOW_MBIT)],
        more: &[],
    },
];
/// The plain link, and the one that MPTCP has beside it.
const BARE: [&str; 2] = ["bare0", "bare1"];

impl Way {
    pub fn line(self) -> Option<&'static str> {
        LINES.iter().find(|line| line.way == self).map(|l| l.name)
    }

    /// B's address.
    pub fn to(self) -> IpAddr {
        match LINES.iter().find(|line| line.way == self) {
            Some(line) => [10, 9, line.network, 2].into(),
            None => [10, 8, 0, 2].into(),
        }
    }

    pub fn protocol(self) -> Protocol {
        match self {
            Way::Mptcp => Protocol::Mptcp,
            _ => Protocol::Tcp,
        }
    }
}

/// What the two hosts of a line say of it.
#[derive(Debug)]
pub struct Documents {
    pub line: &'static str,
    pub of_hosts: [StatusDocument; 2],
}

/// Fields are dropped in this order.
#[derive(Debug)]
pub struct Stage {
    pub mptcp_unavailable: Option<String>,
    bare: Vec<Cable>,
    two: Vec<Cable>,
    pub a: Host,
    pub b: Host,
}

impl Stage {
    pub fn set(packtrain: &Path) -> Result<Stage> {
        let a = Host::create("links", packtrain)?;
        let b = Host::create("links", packtrain)?;
        let lay = |name: &str, rate_mbit: u32| {
            Cable::lay_shaped(&a.namespace, &b.namespace, name, rate_mbit)
        };
        let mut bare = Vec::new();
        for (network, name) in (0..).zip(BARE) {
            bare.push(lay(name, RATE_MBIT)?);
            for (number, host) in (1..).zip([&a, &b]) {
                let address = format!("10.8.{network}.{number}/24");
                wire::add_address(&host.namespace, name, &address)?;
            }
        }
        let mut two = Vec::new();
        for line in &LINES {
            let names: Vec<&str> = line.cables.iter().map(|&(name, _)| name).collect();
            for &(name, rate_mbit) in line.cables {
                let cable = lay(name, rate_mbit)?;
                if line.way == Way::Several {
                    two.push(cable);
                }
            }
            for (number, host) in (1..).zip([&a, &b]) {
                let address = format!("10.9.{}.{number}/24", line.network);
                let more = [&["--address", &address], line.more].concat();
                host.up_over(line.name, &names, &more)?;
            }
        }
        for host in [&a, &b] {
            for line in &LINES {
                host.wait_for_peers_of(line.name, 1)?;
            }
        }
        let mptcp = use_both_bare(&a, &b);
        Ok(Stage {
            mptcp_unavailable: mptcp.err().map(|error| error.to_string()),
            bare,
            two,
            a,
            b,
        })
    }

    /// Without those that cannot be had here.
    pub fn available(&self, ways: &[Way]) -> Vec<Way> {
        let no_mptcp = self.mptcp_unavailable.is_some();
        let ways = ways.iter().copied();
        ways.filter(|&way| way != Way::Mptcp || !no_mptcp).collect()
    }

    pub fn path(&self, way: Way) -> cut::Path<'_> {
        cut::Path {
            from: &self.a.namespace,
            to: &self.b.namespace,
            address: way.to(),
        }
    }

    pub fn documents(&self, line: &'static str) -> Result<Documents> {
        let of = |host: &Host| host.status_of(line);
        Ok(Documents {
            line,
            of_hosts: [of(&self.a)?, of(&self.b)?],
        })
    }

    /// What something gives, and how long trains of both ends were held meanwhile.
    pub fn held_during<T>(
        &self,
        way: Way,
        measure: impl FnOnce(cut::Path<'_>) -> Result<T>,
    ) -> Result<(T, Held)> {
        let held = || match way.line() {
            None => Ok(Held::default()),
            Some(line) => self.documents(line).map(|d| Held::of(&d.of_hosts)),
        };
        let before = held()?;
        let result = measure(self.path(way))?;
        Ok((result, held()?.since(&before)))
    }

    /// One flow for some time, and how many segments were sent again.
    pub fn flow(&self, way: Way, duration: Duration) -> Result<(Transfer, u64)> {
        let before = wire::tcp_sent_again(&self.a.namespace)?;
        let cut::Path { from, to, address } = self.path(way);
        let at = SocketAddr::new(address, 7000);
        let amount = Amount::Time(duration);
        let transfer = stream::transfer(from, to, at, amount, way.protocol(), now())?;
        let sent_again = wire::tcp_sent_again(&self.a.namespace)? - before;
        Ok((transfer, sent_again))
    }

    /// MPTCP's second link becomes slow, or as fast as the first.
    pub fn shape_second_bare(&self, rate_mbit: u32) -> Result<()> {
        for host in [&self.a, &self.b] {
            wire::set_rate(&host.namespace, BARE[1], rate_mbit)?;
        }
        Ok(())
    }

    /// Cuts one of the way's two cables, another or at another end each round, during `cut`.
    pub fn with_cable<T>(
        &mut self,
        way: Way,
        round: usize,
        cut: impl FnOnce(cut::Path<'_>, &mut Cable, Side) -> Result<T>,
    ) -> Result<T> {
        let side = [Side::A, Side::B][round / 2 % 2];
        let path = cut::Path {
            from: &self.a.namespace,
            to: &self.b.namespace,
            address: way.to(),
        };
        let cables = match way {
            Way::Mptcp => &mut self.bare,
            Way::Several => &mut self.two,
            _ => unreachable!("{way:?} has no second cable"),
        };
        let result = cut(path, &mut cables[round % 2], side)?;
        self.settle(way)?;
        Ok(result)
    }

    /// One of the way's two links, another each round.
    pub fn addition(&self, way: Way, round: usize) -> Addition<'_> {
        let line = LINES.iter().find(|line| line.way == way);
        let line = line.expect("a way that is a line");
        Addition {
            a: &self.a,
            b: &self.b,
            line: line.name,
            link: line.cables[round % line.cables.len()].0,
            to: way.to(),
        }
    }

    /// Until both links of the way are there again, and the next round finds what this one found.
    fn settle(&self, way: Way) -> Result<()> {
        match way.line() {
            Some(line) => {
                for host in [&self.a, &self.b] {
                    wait_for("the cable that was cut", Duration::from_secs(5), || {
                        let all_up = |status: crate::status::StatusDocument| {
                            let mut links = status.links.iter();
                            links.all(|link| link.state == LinkCondition::Up)
                        };
                        host.status_of(line).is_ok_and(all_up)
                    })?;
                }
            }
            // The endpoint goes with its link's address.
            None => use_both_bare(&self.a, &self.b)?,
        }
        // A peer is told of a link that is back with the next hello.
        pause(Duration::from_millis(1500));
        Ok(())
    }
}

/// What is full speed of links of so many Mbit/s together, payload.
pub fn full_speed_bps(rates_mbit: u32) -> f64 {
    f64::from(rates_mbit) * 1e6 * FULL_SPEED
}

/// B offers its second address, and A connects to it as well.
fn use_both_bare(a: &Host, b: &Host) -> Result<()> {
    for host in [a, b] {
        let limits = "ip mptcp limits set subflow 4 add_addr_accepted 4; ip mptcp endpoint flush";
        host.namespace.sh(limits)?;
    }
    let offer = [
        "ip", "mptcp", "endpoint", "add", "10.8.1.2", "dev", BARE[1], "signal",
    ];
    b.namespace.exec(offer).map(drop)
}
