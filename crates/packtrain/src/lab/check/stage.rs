//! Two hosts and a wire, on which one setting after the other is tried.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use clap::Parser;

use crate::lab::emulator::protocol::{Request, WireChoice};
use crate::lab::messages::{self, Load, Report};
use crate::lab::namespaces::Namespace;
use crate::lab::standing::HeldLab;
use crate::lab::topology::{Change, Direction, TopologyOptions};
use crate::lab::{Error, Result, now, pause, port, wait_for, wire};
use crate::linux::netlink::Netlink;

pub(crate) const WIRE: &str = "a-b.0";
const PORT: u16 = 7100;
/// A cable beside the wire, on which nothing is done to frames.
const BARE: &str = "bare";
const BARE_OF_A: Ipv4Addr = Ipv4Addr::new(10, 28, 0, 1);
const BARE_OF_B: Ipv4Addr = Ipv4Addr::new(10, 28, 0, 2);

/// The words of `lab set`.
#[derive(Debug, Parser)]
struct Words {
    #[command(flatten)]
    change: Change,
}

/// What the direction from B to A is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Back {
    AtOnce,
    /// As long as there.
    AfterTheDelay,
}

#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) lab: HeldLab,
    pub(crate) a: Namespace,
    pub(crate) b: Namespace,
    /// B's, on the wire.
    pub(crate) address: IpAddr,
}

impl Stage {
    pub(crate) fn set(tag: &str, packtrain: &Path) -> Result<Stage> {
        let options = TopologyOptions {
            links: 1,
            packtrain: false,
            ..TopologyOptions::default()
        };
        let topology = options.topology().expect("two hosts and a wire");
        let lab = HeldLab::up(tag, &topology, packtrain)?;
        let address: IpAddr = lab.addresses()[1].main.into();
        let (a, b) = (lab.host("a")?, lab.host("b")?);
        // Who has to ask for an address after a cut asks once a second: that is not the wire's time.
        let link = b.in_namespace(|| Netlink::open()?.link_by_name("eth0"))??;
        let link = link.ok_or_else(|| Error::Unexpected {
            program: "netlink".to_owned(),
            text: "no interface eth0 in b".to_owned(),
        })?;
        let (to, known) = (address.to_string(), link.address.to_string());
        let neighbour = ["lladdr", &known, "dev", "eth0", "nud", "permanent"];
        a.exec([&["ip", "neigh", "replace", &to][..], &neighbour].concat())?;
        wire::veth((&a, BARE), (&b, BARE))?;
        for (host, own) in [(&a, BARE_OF_A), (&b, BARE_OF_B)] {
            wire::add_address(host, BARE, &format!("{own}/24"))?;
        }
        Ok(Stage { a, b, address, lab })
    }

    /// Waits until nothing of what was sent before stands anywhere.
    pub(crate) fn wait_until_empty(&self) -> Result<()> {
        const AT_MOST: Duration = Duration::from_secs(10);
        wait_for("the wire to be empty", AT_MOST, || {
            let status = self.lab.status();
            status.is_ok_and(|status| {
                let mut directions = status.wires[0].directions.iter();
                directions.all(|direction| direction.queued_bytes == 0)
            })
        })
    }

    /// Makes the wire one with these settings, and no others, from A to B; back it only carries, after
    /// the same delay where that is said.
    pub(crate) fn set_wire(&mut self, words: &str, back: Back) -> Result<()> {
        let split = std::iter::once("set").chain(words.split_whitespace());
        let change = Words::try_parse_from(split).map_err(|error| Error::Unexpected {
            program: "lab set".to_owned(),
            text: error.to_string(),
        })?;
        let (mut there, mut back_again) = (Direction::default(), Direction::default());
        change.change.apply(&mut there);
        if back == Back::AfterTheDelay {
            back_again.wire.delay_ns = there.wire.delay_ns;
        }
        let request = Request::Set {
            wire: WIRE.to_owned(),
            directions: Box::new([there, back_again]),
        };
        self.lab.ask(&request)?;
        Ok(())
    }

    /// How long A's direction of the wire has been sending, in all.
    pub(crate) fn busy_s(&self) -> Result<f64> {
        Ok(self.lab.status()?.wires[0].directions[0].busy_s)
    }

    /// Sends datagrams from A to B: as many a second for so long, each a frame of `frame_bytes`.
    pub(crate) fn send(
        &self,
        frame_bytes: usize,
        rate_per_second: Option<u64>,
        duration: Duration,
    ) -> Result<Report> {
        let load = Load {
            size: frame_bytes - FRAME_HEADERS,
            duration,
            rate_per_second,
            // One that never waits would keep the hosts from their work.
            real_time: rate_per_second.is_some(),
        };
        messages::measure(&self.a, &self.b, SocketAddr::new(self.address, PORT), load)
    }

    /// What the hosts have of a wire's delay, by that figure of a report: the sender's call, an interface, and a process
    /// that has to be woken, the wire's; and the same again on the way to the receiver. As it is over a bare cable, the
    /// better of two times, for a machine that others share is away now and then.
    pub(crate) fn hosts_us(&self, figure: impl Fn(&Report) -> f64) -> Result<f64> {
        const WAYS: f64 = 2.0;
        const TIMES: usize = 2;
        let load = Load {
            size: SMALL - FRAME_HEADERS,
            duration: Duration::from_millis(250),
            rate_per_second: Some(2000),
            real_time: true,
        };
        let to = SocketAddr::new(BARE_OF_B.into(), PORT);
        let mut least_us = f64::INFINITY;
        for _ in 0..TIMES {
            let report = messages::measure(&self.a, &self.b, to, load)?;
            least_us = least_us.min(figure(&report));
        }
        Ok(WAYS * least_us)
    }

    /// Sends datagrams that may be marked from A to B, one after the other, each a frame of
    /// `frame_bytes`. Gives how long that took, and how many came with a mark.
    pub(crate) fn send_ecn(&self, frame_bytes: usize, frames: usize) -> Result<(Duration, u64)> {
        let failed = |source| Error::Start {
            command: "datagrams that may be marked".to_owned(),
            source,
        };
        let marked = || wire::congestion_experienced(&self.b);
        let at = SocketAddr::new(self.address, PORT);
        let before = marked()?;
        let open = |host: &Namespace, at: SocketAddr| host.in_namespace(|| port::bind(at));
        let receiver = open(&self.b, at)?.map_err(failed)?;
        let sender = open(&self.a, ([0, 0, 0, 0], 0).into())?.map_err(failed)?;
        sender.connect(at).map_err(failed)?;
        rustix::net::sockopt::set_ip_tos(&sender, ECT_0).map_err(|error| failed(error.into()))?;
        let message = vec![0; frame_bytes - FRAME_HEADERS];
        let start = now();
        for _ in 0..frames {
            sender.send(&message).map_err(failed)?;
        }
        let took = start.elapsed();
        let mut arrived = 0;
        receiver
            .set_read_timeout(Some(SILENCE_MAX))
            .map_err(failed)?;
        while arrived < frames && receiver.recv(&mut [0; 64]).is_ok() {
            arrived += 1;
        }
        Ok((took, marked()? - before))
    }

    /// A cut of the wire so long, while datagrams go each 0.2 ms. Gives how long it really was, and
    /// what arrived.
    pub(crate) fn send_under_cut(&self, silent: bool, cut: Duration) -> Result<(Duration, Report)> {
        const BESIDE: Duration = Duration::from_millis(300);
        let of = WireChoice {
            wire: WIRE.to_owned(),
            from: None,
        };
        std::thread::scope(|scope| {
            let sending = scope.spawn(|| self.send(SMALL, Some(5000), cut + 2 * BESIDE));
            pause(BESIDE);
            let lasted = self.lab.cut_for(of, silent, cut)?;
            let report = sending.join().expect("it has no reason to panic")?;
            Ok((lasted, report))
        })
    }
}

/// Bytes of the shortest frame, without FCS.
pub(crate) const SMALL: usize = 60;
/// ECN-capable transport (RFC 3168), in the two low bits of IP's traffic class.
const ECT_0: u8 = 2;
/// Without another datagram for so long, the last has arrived.
const SILENCE_MAX: Duration = Duration::from_millis(500);

/// Ethernet, IPv4, UDP.
const FRAME_HEADERS: usize = 14 + 20 + 8;
