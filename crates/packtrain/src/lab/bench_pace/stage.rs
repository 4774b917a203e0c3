//! The long line of the CPS paper, made anew for each run: what one has learned of it is not the next one's.
//!
//! ```text
//!  a ── 1 Gbit/s or 100 Mbit/s ──► r1 ══ 599 Mbit/s of IP, 99 ms, the buffer ══► r2 ── 1 Gbit/s ──► b
//!  c ──         the same       ──►
//! ```
//! On the machine's first processor are the wires, on the second all that is the hosts': programs, and what the kernel
//! does for a frame that comes in. Otherwise the wires' own process would do that, where a sender whose list of
//! lost segments is long needs tenths of a second now and then.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path as FilePath;
use std::time::Duration;

use serde::Serialize;

use super::flow::{self, Flow, Sender};
use super::queue::Line;
use super::slow_start::Path;
use super::trace::{Trace, Tracing};
use super::way::{Pace, Way};
use crate::lab::emulator::lateness::LatenessSummary;
use crate::lab::emulator::protocol::EmulatorStatus;
use crate::lab::host::Host;
use crate::lab::one_link::stage::cpu_of_host;
use crate::lab::standing::HeldLab;
use crate::lab::stream::Amount;
use crate::lab::topology::direction::{Counts, QueueLimit, Rate};
use crate::lab::topology::{Direction, Name, Topology, ready};
use crate::lab::{Error, Result, pause, wait_for, wire};

/// Of IP packets.
pub const LINE_BPS: u64 = 599_000_000;
pub const ROUND_TRIP: Duration = Duration::from_millis(198);

const INTERFACE: &str = "eth0";
const PORT: u16 = 5001;
const WIRES_CPU: usize = 0;
const HOSTS_CPU: usize = 1;
/// What stands in full buffers leaves within this.
const EMPTY_WITHIN: Duration = Duration::from_secs(10);

/// Payload and IP packet of a full segment with time stamps.
pub const SEGMENT_BYTES: u64 = 1448;
const PACKET_BYTES: u64 = 1500;

/// The sender's card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Card {
    pub name: &'static str,
    /// The ready topology that has it.
    topology: &'static str,
    pub bps: u64,
    pub queue_packets: u32,
}

const fn card(name: &'static str, topology: &'static str, mbps: u64, queue_packets: u32) -> Card {
    Card {
        name,
        topology,
        bps: mbps * 1_000_000,
        queue_packets,
    }
}

pub const GBE_100: Card = card("GbE", "lfn-gbe", 1000, 100);
pub const GBE_25000: Card = card("GbE", "lfn-gbe-25000", 1000, 25_000);
pub const FE_100: Card = card("FE", "lfn-fe", 100, 100);
pub const FE_25000: Card = card("FE", "lfn-fe-25000", 100, 25_000);

/// What is on the way in a round trip fits into its half.
pub const RECEIVE_BUFFER: u64 = 32 << 20;
/// As far as a receive buffer may grow.
const RECEIVE_BUFFER_MAX: u64 = 128 << 20;

/// How the way is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    pub card: Card,
    pub round_trip: Duration,
    /// Of the bottleneck, IP packets.
    pub line_bps: u64,
    /// Of what is on the way in a round trip; `None`: as the ready topology has it, 512 kB.
    pub buffer: Option<f64>,
    /// Whether hosts segment late (TSO and GSO), or before their card as the paper's did.
    pub offload: bool,
    /// TCP itself hands down one segment at a time, whatever its rate (`gso_max_segs 1`).
    pub one_by_one: bool,
    /// Beside host a there is c, which sends too.
    pub two_senders: bool,
    /// The sender's port has no rate: who paces the interface keeps it.
    pub free_port: bool,
    /// The receiver's room for a new connection (the middle of `tcp_rmem`): its first window is half of it, and the window
    /// grows to three times as much in a round trip at most.
    pub receive_buffer: u64,
}

impl Setting {
    pub const PAPER: Setting = Setting {
        card: GBE_25000,
        round_trip: ROUND_TRIP,
        line_bps: LINE_BPS,
        buffer: None,
        offload: false,
        one_by_one: false,
        two_senders: false,
        free_port: false,
        receive_buffer: RECEIVE_BUFFER,
    };

    /// What is on the way in a round trip.
    pub fn product_bytes(&self) -> f64 {
        self.line_bps as f64 * self.round_trip.as_secs_f64() / 8.0
    }

    /// No less time passes before so many bytes have come, the first of them sent at once: full segments, and the way of the last one.
    pub fn least_time(&self, bytes: u64) -> Duration {
        let payload_bps = (self.line_bps * SEGMENT_BYTES) as f64 / PACKET_BYTES as f64;
        Duration::from_secs_f64(8.0 * bytes as f64 / payload_bps) + self.round_trip / 2
    }

    fn one_way_ns(&self) -> u64 {
        self.round_trip.as_nanos() as u64 / 2
    }

    pub fn path(&self) -> Path {
        Path {
            line: Line {
                delay: self.one_way_ns(),
            },
            back: self.one_way_ns(),
            sender_bps: self.card.bps as f64,
        }
    }

    fn topology(&self) -> Topology {
        let mut topology = ready::find(self.card.topology).expect("it is a ready one");
        for host in &mut topology.hosts {
            host.packtrain = false;
        }
        for wire in topology.wires.iter_mut().filter(|wire| wire.name != LINE) {
            for direction in &mut wire.directions {
                // It stands there only because somebody was away: nothing is to be lost but at the bottleneck.
                direction.wire.queue.limit = QueueLimit::Bytes(NEVER_FULL_BYTES);
                if self.free_port {
                    direction.port.rate_bps = None;
                }
            }
        }
        let one_way_ns = self.one_way_ns();
        let buffer = self
            .buffer
            .map(|share| (share * self.product_bytes()) as u64);
        let line = topology.wires.iter_mut().find(|wire| wire.name == LINE);
        for direction in &mut line.expect("the line of the paper").directions {
            direction.wire.delay_ns = one_way_ns;
            direction.wire.rate = Some(Rate {
                bps: self.line_bps,
                counts: Counts::Ip,
            });
            if let Some(bytes) = buffer {
                direction.wire.queue.limit = QueueLimit::Bytes(bytes);
            }
        }
        if self.two_senders {
            let name = |text: &str| text.parse::<Name>().expect("a name");
            let (first, second, router) = (name("a"), name("c"), name("r1"));
            let mut host = topology.host(&first).expect("the sender").clone();
            host.name = second.clone();
            topology.hosts.push(host);
            let wire = topology.wire(FIRST_WIRE).expect("its wire").clone();
            let directions: [Direction; 2] = wire.directions;
            topology.connect(&second, &router, wire.mtu, directions);
        }
        topology
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.buffer {
            Some(share) => write!(f, "buffer {:.0} %", 100.0 * share)?,
            None => write!(f, "buffer 512 kB")?,
        }
        f.write_str(if self.offload { ", TSO" } else { ", no TSO" })
    }
}

const NEVER_FULL_BYTES: u64 = 64 << 20;
const FIRST_WIRE: &str = "a-r1.0";
const SECOND_WIRE: &str = "c-r1.0";
const LINE: &str = "r1-r2.0";
const LAST_WIRE: &str = "r2-b.0";

/// What the emulator counted of the line, and how late it was.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Carried {
    /// As they crossed: huge ones (GSO) are one.
    pub frames: u64,
    pub bytes: u64,
    pub dropped: u64,
    /// What hosts sent and the emulator came too late for.
    pub emulator_late: u64,
    /// On wires on which nothing is to be dropped.
    pub dropped_elsewhere: u64,
    pub lateness: LatenessSummary,
}

impl Carried {
    pub fn frame_bytes(&self) -> f64 {
        self.bytes as f64 / self.frames.max(1) as f64
    }
}

/// A run: what the wires saw, and what the emulator counted.
#[derive(Debug)]
pub struct Run {
    pub trace: Trace,
    pub carried: Carried,
}

#[derive(Debug)]
pub struct Stage {
    lab: HeldLab,
    setting: Setting,
    pub a: Host,
    pub c: Option<Host>,
    pub b: Host,
    at: SocketAddr,
}

impl Stage {
    pub fn set(packtrain: &FilePath, setting: Setting) -> Result<Stage> {
        let lab = HeldLab::up("pace", &setting.topology(), packtrain)?;
        let host = |name| Ok::<Host, Error>(Host::new(lab.host(name)?, packtrain));
        let receiver = lab.addresses().iter().find(|of| of.host.as_str() == "b");
        let stage = Stage {
            at: SocketAddr::new(receiver.expect("the receiver").main.into(), PORT),
            a: host("a")?,
            c: setting.two_senders.then(|| host("c")).transpose()?,
            b: host("b")?,
            setting,
            lab,
        };
        let rmem = format!("4096 {} {RECEIVE_BUFFER_MAX}", setting.receive_buffer);
        stage.b.namespace.sysctl("net/ipv4/tcp_rmem", &rmem)?;
        let several = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1);
        if several {
            stage.lab.keep_wires_on(WIRES_CPU)?;
        }
        for host in [&stage.a, &stage.b].into_iter().chain(&stage.c) {
            if several {
                wire::receive_on_cpu(&host.namespace, INTERFACE, HOSTS_CPU)?;
            }
            // Without them, what comes to a wire is what a card would have sent, and a capture may keep the headers alone.
            let without: &[&str] = match setting.offload {
                true => &[],
                false => &["tso", "gso", "gro", "tx"],
            };
            for feature in without {
                wire::offload(&host.namespace, INTERFACE, feature, false)?;
            }
            if setting.one_by_one {
                let one = ["ip", "link", "set", INTERFACE, "gso_max_segs", "1"];
                host.namespace.exec(one)?;
            }
        }
        Ok(stage)
    }

    /// The first host's connections are as this way says, from now on.
    pub fn prepare(&self, way: &Way) -> Result<()> {
        match way.pace {
            Pace::Plain => Ok(()),
            // As in the paper, whatever this machine could do.
            Pace::Tcp => self
                .a
                .packtrain(&["pace", "tcp", "on", "--precision", "1ms"])
                .map(drop),
            Pace::Auto => self
                .a
                .packtrain(&["pace", "rule", "add", "--match", "any", "--auto"])
                .map(drop),
            Pace::Gap(register) => {
                let register = register.to_string();
                let line_rate = format!("{}bit", self.setting.card.bps);
                let gap = ["--register", &register, "--line-rate", &line_rate];
                let words = [&["pace", "link", INTERFACE][..], &gap].concat();
                self.a.packtrain(&words).map(drop)
            }
        }
    }

    /// Takes back what was prepared, and the lab with it.
    pub fn end(self, way: &Way) -> Result<()> {
        match way.pace {
            Pace::Plain => {}
            Pace::Tcp | Pace::Auto | Pace::Gap(_) => drop(self.a.packtrain(&["pace", "off"])?),
        }
        self.lab.down()
    }

    /// One connection from the first host.
    pub fn carry(&self, way: &Way, amount: Amount) -> Result<Flow> {
        self.carry_from(&self.a, way, amount, 0)
    }

    /// One from this host, to a port of its own.
    pub fn carry_from(&self, host: &Host, way: &Way, amount: Amount, number: u16) -> Result<Flow> {
        let sender = Sender {
            host: &host.namespace,
            congestion: way.congestion,
            bytes_per_second: None,
        };
        self.send(sender, amount, number)
    }

    /// One from the first host, paced by the kernel to so many, where somebody says so.
    pub fn carry_paced(
        &self,
        congestion: Option<&str>,
        amount: Amount,
        bytes_per_second: Option<u64>,
    ) -> Result<Flow> {
        let sender = Sender {
            host: &self.a.namespace,
            congestion,
            bytes_per_second,
        };
        self.send(sender, amount, 0)
    }

    fn send(&self, sender: Sender<'_>, amount: Amount, number: u16) -> Result<Flow> {
        let at = SocketAddr::new(self.at.ip(), self.at.port() + number);
        let cpus = [cpu_of_host(HOSTS_CPU); 2];
        flow::carry(sender, &self.b.namespace, at, amount, cpus)
    }

    /// Runs it, and tells what the wires saw of it, until nothing of it is on its way any more.
    pub fn traced<T>(&self, run: impl FnOnce() -> Result<T>) -> Result<Run> {
        let mut wires = vec![(FIRST_WIRE, "a")];
        wires.extend(self.setting.two_senders.then_some((SECOND_WIRE, "c")));
        wires.extend([(LINE, "r1"), (LAST_WIRE, "r2")]);
        let tracing = Tracing::begin(&self.lab, &wires)?;
        let (_, mut carried) = self.counted(run)?;
        let trace = tracing.end()?;
        carried.dropped_elsewhere = trace.dropped_elsewhere;
        Ok(Run { trace, carried })
    }

    /// Runs it, and tells what the emulator counted meanwhile.
    pub fn counted<T>(&self, run: impl FnOnce() -> Result<T>) -> Result<(T, Carried)> {
        self.lab.lateness()?;
        let before = self.lab.status()?;
        let result = run()?;
        wait_for("the line to be empty", EMPTY_WITHIN, || {
            self.lab.status().is_ok_and(|status| is_empty(&status))
        })?;
        pause(self.setting.round_trip);
        let lateness = self.lab.lateness()?;
        Ok((result, carried(&before, &self.lab.status()?, lateness)))
    }
}

fn is_empty(status: &EmulatorStatus) -> bool {
    let mut directions = status.wires.iter().flat_map(|wire| &wire.directions);
    directions.all(|direction| direction.queued_bytes == 0)
}

fn carried(before: &EmulatorStatus, after: &EmulatorStatus, lateness: LatenessSummary) -> Carried {
    let line = |status: &EmulatorStatus| {
        let wire = status.wires.iter().find(|wire| wire.name == LINE);
        wire.expect("the line").directions[0].clone()
    };
    let late = |status: &EmulatorStatus| -> u64 {
        let directions = status.wires.iter().flat_map(|wire| &wire.directions);
        directions
            .map(|direction| direction.dropped.emulator_late)
            .sum()
    };
    let [first, last] = [before, after].map(line);
    Carried {
        frames: last.sent_frames - first.sent_frames,
        bytes: last.sent_bytes - first.sent_bytes,
        dropped: last.dropped.total() - first.dropped.total(),
        emulator_late: late(after) - late(before),
        dropped_elsewhere: 0,
        lateness,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffer_is_a_share_of_what_is_on_the_way_and_a_second_sender_is_like_the_first() {
        let setting = Setting {
            buffer: Some(0.05),
            two_senders: true,
            ..Setting::PAPER
        };
        assert_eq!(setting.product_bytes(), 14_825_250.0);
        // 1 GB is 8 Gbit, of which 578.2 Mbit cross in a second; and 99 ms.
        assert_eq!(setting.least_time(1_000_000_000).as_millis(), 13_934);
        let topology = setting.topology();
        assert_eq!(topology.check(), []);
        let names: Vec<&str> = topology.wires.iter().map(|w| w.name.as_str()).collect();
        assert_eq!(names, [FIRST_WIRE, LINE, LAST_WIRE, SECOND_WIRE]);
        let line = &topology.wire(LINE).unwrap().directions[0].wire;
        assert_eq!(line.queue.limit, QueueLimit::Bytes(741_262));
        assert_eq!(line.delay_ns, 99_000_000);
        let port = |wire: &str| topology.wire(wire).unwrap().directions[0].port;
        assert_eq!(port(FIRST_WIRE), port(SECOND_WIRE));
        assert_eq!(port(FIRST_WIRE).queue_packets, Some(25_000));
        assert!(topology.hosts.iter().all(|host| !host.packtrain));
    }

    #[test]
    fn a_card_is_the_one_of_its_topology() {
        for card in [GBE_100, GBE_25000, FE_100, FE_25000] {
            let setting = Setting {
                card,
                ..Setting::PAPER
            };
            let topology = setting.topology();
            let port = topology.wire(FIRST_WIRE).unwrap().directions[0].port;
            assert_eq!(port.rate_bps, Some(card.bps));
            assert_eq!(port.queue_packets, Some(card.queue_packets));
        }
    }
}
