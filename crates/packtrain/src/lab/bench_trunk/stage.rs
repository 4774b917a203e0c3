//! Two hosts, wires between them, and the ways that lead over these.
//!
//! ```text
//!  a ─── first wire ────── b    the line over several, and MPTCP
//!    ─── second wire, … ──
//!    ─── one like the first    the line over one, and the bare wire
//! ```
//! The first wire is the better one, where they differ.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::subflows::{self, Subflow};
use super::wires::{WireOf, topology};
use crate::control::{self, Request as Ask, Response as Answer};
use crate::lab::emulator::lateness::LatenessSummary;
use crate::lab::emulator::protocol::{Request, WireChoice};
use crate::lab::host::Host;
use crate::lab::messages::{self, Load, Report};
use crate::lab::processors;
use crate::lab::standing::HeldLab;
use crate::lab::stream::{self, Amount, Protocol, Transfer};
use crate::lab::{Error, Result, now, pause, wait_for, wire};
use crate::status::StatusDocument;

const STREAM_PORT: u16 = 7000;
const MESSAGE_PORT: u16 = 7002;
/// MPTCP's subflows are looked at so long before the end, when they have carried nearly all.
const LOOK_BEFORE_END: Duration = Duration::from_millis(300);
/// A line that has seen links die may wait before it uses them again.
const WHOLE_AGAIN_MAX: Duration = Duration::from_secs(40);

/// A way from A to B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// The better wire, bare.
    Plain,
    /// A line over the better wire, all by its engine.
    One,
    /// A line over all of them.
    Several,
    Mptcp,
}

pub const ALL: [Way; 4] = [Way::Plain, Way::One, Way::Several, Way::Mptcp];

impl Way {
    pub fn line(self) -> Option<&'static str> {
        match self {
            Way::One => Some("pt-one"),
            Way::Several => Some("pt-trunk"),
            Way::Plain | Way::Mptcp => None,
        }
    }

    fn protocol(self) -> Protocol {
        match self {
            Way::Mptcp => Protocol::Mptcp,
            _ => Protocol::Tcp,
        }
    }
}

/// What became of one flow.
#[derive(Clone, Debug)]
pub struct Flow {
    pub transfer: Transfer,
    /// Segments, of all TCP of A.
    pub sent_again: u64,
    /// Of MPTCP alone, and how many of them had joined the first.
    pub subflows: Option<(Vec<Subflow>, u64)>,
}

#[derive(Debug)]
pub struct Stage {
    lab: HeldLab,
    pub a: Host,
    pub b: Host,
    members: usize,
    pub mptcp_unavailable: Option<String>,
}

impl Stage {
    /// The first of the wires is the better one.
    pub fn set(packtrain: &Path, wires: &[WireOf]) -> Result<Stage> {
        let with_twin = [wires, &wires[..1]].concat();
        let lab = HeldLab::up("trunk", &topology(&with_twin), packtrain)?;
        let host = |name| Ok::<Host, Error>(Host::new(lab.host(name)?, packtrain));
        let mut stage = Stage {
            a: host("a")?,
            b: host("b")?,
            members: wires.len(),
            mptcp_unavailable: None,
            lab,
        };
        stage.start_lines()?;
        for host in [&stage.a, &stage.b] {
            for number in 0..with_twin.len() {
                let network = format!("10.100.{number}.0/24");
                wire::cubic(&host.namespace, &network, &interface(number))?;
            }
        }
        let offered =
            (1..wires.len()).map(|at| (interface(at), stage.wire_address(at).to_string()));
        let mptcp = subflows::use_all(&stage.a, &stage.b, &offered.collect::<Vec<_>>());
        stage.mptcp_unavailable = mptcp.err().map(|error| error.to_string());
        Ok(stage)
    }

    fn start_lines(&self) -> Result<()> {
        let members: Vec<String> = (0..self.members).map(interface).collect();
        let members: Vec<&str> = members.iter().map(String::as_str).collect();
        let twin = interface(self.members);
        // It is about links, and not about what can be left out of what they carry.
        let as_it_is = ["--compress", "off"];
        let by_engine = [&as_it_is[..], &["--path", "engine"]].concat();
        let lines = [
            (Way::Several, &members[..], 3, &as_it_is[..]),
            (Way::One, &[twin.as_str()], 1, &by_engine[..]),
        ];
        for (way, links, network, more) in lines {
            let line = way.line().expect("a line");
            for (number, host) in (1..).zip([&self.a, &self.b]) {
                let address = format!("10.19.{network}.{number}/24");
                host.up_over(line, links, &[&["--address", &address], more].concat())?;
                let network = format!("10.19.{network}.0/24");
                wire::cubic(&host.namespace, &network, line)?;
            }
        }
        for way in [Way::Several, Way::One] {
            for host in [&self.a, &self.b] {
                host.wait_for_peers_of(way.line().expect("a line"), 1)?;
            }
        }
        self.wait_until_whole()
    }

    pub fn wires(&self) -> usize {
        self.members
    }

    /// B's on a wire.
    fn wire_address(&self, number: usize) -> IpAddr {
        let (_, address) = self.lab.addresses()[1].links[number];
        address.into()
    }

    /// B's address; MPTCP's first is the first wire's.
    pub fn to(&self, way: Way) -> IpAddr {
        match way {
            Way::Plain => self.wire_address(self.members),
            Way::One => [10, 19, 1, 2].into(),
            Way::Several => [10, 19, 3, 2].into(),
            Way::Mptcp => self.wire_address(0),
        }
    }

    /// Without those that cannot be had here.
    pub fn available(&self, ways: &[Way]) -> Vec<Way> {
        let no_mptcp = self.mptcp_unavailable.is_some();
        let ways = ways.iter().copied();
        ways.filter(|&way| way != Way::Mptcp || !no_mptcp).collect()
    }

    /// One flow for some time.
    pub fn flow(&self, way: Way, duration: Duration) -> Result<Flow> {
        self.flow_during(way, duration, || Ok(()))
    }

    /// … and what happens meanwhile.
    pub fn flow_during(
        &self,
        way: Way,
        duration: Duration,
        meanwhile: impl FnOnce() -> Result<()>,
    ) -> Result<Flow> {
        let a = &self.a.namespace;
        let is_mptcp = way == Way::Mptcp;
        let joins = || match is_mptcp {
            true => subflows::joins(a),
            false => Ok(0),
        };
        let (sent_again, joined) = (wire::tcp_sent_again(a)?, joins()?);
        let at = SocketAddr::new(self.to(way), STREAM_PORT);
        let start = now();
        let (transfer, subflows) = std::thread::scope(|scope| {
            let transfer = scope.spawn(|| {
                let amount = Amount::Time(duration);
                stream::transfer(a, &self.b.namespace, at, amount, way.protocol(), start)
            });
            let happened = meanwhile();
            let look_at = duration.saturating_sub(LOOK_BEFORE_END);
            pause(look_at.saturating_sub(start.elapsed()));
            let subflows = is_mptcp.then(|| subflows::seen(a, STREAM_PORT)).transpose();
            let transfer = transfer.join().expect("a transfer has no reason to panic");
            happened.and_then(|()| Ok((transfer?, subflows?)))
        })?;
        let joined = joins()? - joined;
        Ok(Flow {
            transfer,
            sent_again: wire::tcp_sent_again(a)? - sent_again,
            subflows: subflows.map(|subflows| (subflows, joined)),
        })
    }

    pub fn messages(&self, way: Way, load: Load) -> Result<Report> {
        let at = SocketAddr::new(self.to(way), MESSAGE_PORT);
        messages::measure(&self.a.namespace, &self.b.namespace, at, load)
    }

    pub fn cut(&self, wire: usize, from: Option<&str>, silent: bool) -> Result<()> {
        let of = wire_choice(wire, from);
        Ok(self.lab.ask(&Request::Cut { of, silent }).map(drop)?)
    }

    pub fn mend(&self, wire: usize) -> Result<()> {
        let of = wire_choice(wire, None);
        Ok(self.lab.ask(&Request::Mend { of }).map(drop)?)
    }

    /// How long the daemons at both ends of a line have run so far.
    pub fn daemons_ran(&self, line: &str) -> Result<Duration> {
        let mut ran = Duration::ZERO;
        for host in [&self.a, &self.b] {
            ran += processors::ran(host.status_of(line)?.pid)?;
        }
        Ok(ran)
    }

    pub fn lateness(&self) -> Result<LatenessSummary> {
        Ok(self.lab.lateness()?)
    }

    /// What A's end of the line over several says now, without a program that is started for it.
    pub fn asked(&self) -> Result<StatusDocument> {
        let line = Way::Several.line().expect("a line");
        let unexpected = |text: String| Error::Unexpected {
            program: line.to_owned(),
            text,
        };
        let ask = || control::request(line, Ask::Status {});
        let answer = self.a.namespace.in_namespace(ask)?;
        let value: Value = match answer {
            Ok(Answer::Status(value)) => value,
            other => return Err(unexpected(format!("{other:?}"))),
        };
        serde_json::from_value(value).map_err(|error| unexpected(error.to_string()))
    }

    /// Which of the wires A's line over several puts trains on, of those that carry them: those that are held back where there
    /// is no other.
    pub fn used(&self, is_whole: impl Fn(usize) -> bool) -> Result<usize> {
        let status = self.asked()?;
        let count = |state: &str| {
            let is_so = |number: &usize| {
                let paths = status.peers.iter().flat_map(|peer| &peer.links);
                let mut paths = paths.filter(|path| path.link == interface(*number));
                is_whole(*number) && paths.any(|path| path.state == state)
            };
            (0..self.members).filter(is_so).count()
        };
        Ok(match count("open") {
            0 => count("held"),
            open => open,
        })
    }

    /// Until both ends use all links of the line over several.
    pub fn wait_until_whole(&self) -> Result<()> {
        let line = Way::Several.line().expect("a line");
        let is_used = |status: &StatusDocument| {
            let paths = status.peers.iter().flat_map(|peer| &peer.links);
            let used = paths.filter(|path| ["open", "too_slow"].contains(&path.state.as_str()));
            used.count() == self.members
        };
        for host in [&self.a, &self.b] {
            wait_for("links that were mended", WHOLE_AGAIN_MAX, || {
                host.status_of(line).is_ok_and(|status| is_used(&status))
            })?;
        }
        Ok(())
    }
}

fn interface(number: usize) -> String {
    format!("eth{number}")
}

fn wire_choice(number: usize, from: Option<&str>) -> WireChoice {
    WireChoice {
        wire: format!("a-b.{number}"),
        from: from.map(str::to_owned),
    }
}
