//! Two hosts, and between them a cable for every way.

use std::path::Path;
use std::time::Duration;

use super::way::Way;
use super::{overlays, second};
use crate::lab::host::Host;
use crate::lab::measure::{self, Bulk, RoundTrips};
use crate::lab::messages::{self, Load, Report};
use crate::lab::namespaces::{Namespace, Process, run as run_program};
use crate::lab::{Result, exchange, now, pause, relay, wire};
use crate::linux::floor::Floor;

const BULK: Duration = Duration::from_secs(2);
const MESSAGES: Duration = Duration::from_secs(2);
const MESSAGE_BLOCKS: u32 = 8;
const MESSAGE_BYTES: usize = 64;
/// What a way has left to do after its turn is not to fall on the next one's: whoever came after the engine with small
/// messages was a tenth slower.
pub const SETTLE: Duration = Duration::from_millis(150);
const IDLE_EXCHANGES: u32 = 10_000;
const IDLE_PINGS: u32 = 300;
const IDLE_PING_INTERVAL: Duration = Duration::from_millis(5);
/// Where both ends are while the line is idle.
pub const ONE_CPU: usize = 0;

/// What a cable carries, by a queue of the kernel at its ends, which whoever sends can see.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// As much as the machine does.
    Unshaped,
    Mbit(u32),
    /// However long they are.
    PacketsPerSecond(u32),
}

/// What stands between the hosts.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// Of every cable, at both ends.
    pub shape: Shape,
    pub ways: &'a [Way],
}

/// Two hosts with equal cables between them, one for each way that is no tunnel.
#[derive(Debug)]
pub struct Line {
    /// Relays, tunnels and iperf3's other end.
    programs: Vec<Process>,
    floors: Vec<Floor>,
    /// Those that stand, in the order of the plan.
    ways: Vec<Way>,
    pub a: Host,
    pub b: Host,
}

impl Line {
    pub fn set(packtrain: &Path, plan: Plan<'_>) -> Result<Line> {
        let a = Host::create("bench", packtrain)?;
        let b = Host::create("bench", packtrain)?;
        let mut line = Line {
            programs: Vec::new(),
            floors: Vec::new(),
            ways: Vec::new(),
            a,
            b,
        };
        for &way in plan.ways {
            line.lay_cable(way, plan.shape)?;
        }
        for &way in plan.ways {
            if line.add(way, packtrain)? {
                line.ways.push(way);
            }
        }
        for way in &line.ways {
            for host in [&line.a, &line.b] {
                wire::cubic(&host.namespace, &way.subnet(), way.interface())?;
            }
        }
        for name in line.names() {
            line.a.wait_for_peers_of(name, 1)?;
            line.b.wait_for_peers_of(name, 1)?;
        }
        line.programs
            .push(measure::iperf3_server(&line.b.namespace)?);
        Ok(line)
    }

    fn lay_cable(&self, way: Way, shape: Shape) -> Result<()> {
        let Some(interface) = way.cable() else {
            return Ok(());
        };
        let (a, b) = (&self.a.namespace, &self.b.namespace);
        wire::veth((a, interface), (b, interface))?;
        for (cpu, host) in [a, b].into_iter().enumerate() {
            match shape {
                Shape::Unshaped => {}
                Shape::Mbit(rate) => wire::shape(host, interface, rate)?,
                Shape::PacketsPerSecond(rate) => wire::cap_packets(host, interface, rate)?,
            }
            if way.receives_on_one_cpu() {
                wire::receive_on_cpu(host, interface, cpu_of_host(cpu))?;
            }
        }
        Ok(())
    }

    /// What makes a way of a cable, at both ends. Whether it is there now.
    fn add(&mut self, way: Way, packtrain: &Path) -> Result<bool> {
        let addresses = way.addresses();
        let to_messages = format!("udp dport {}", Way::PORT);
        for (host, address) in [&self.a, &self.b].into_iter().zip(&addresses) {
            let address = address.as_str();
            match way {
                Way::Bare => wire::add_address(&host.namespace, way.interface(), address)?,
                Way::Pt0 => host.up("eth1", &["--address", address])?,
                Way::Engine => {
                    let more = ["--path", "engine", "--address", address];
                    host.up_over(way.interface(), &["eth3"], &more)?;
                }
                Way::Direct | Way::Packed => {
                    let (line, link) = (way.interface(), way.cable().unwrap_or_default());
                    host.up_over(line, &[link], &["--address", address])?;
                    let treated = match way {
                        Way::Direct => ["--path", "direct"],
                        _ => ["--pack", Way::PACKED_WITHIN],
                    };
                    let class = ["class", "add", line, "--match", &to_messages];
                    host.packtrain(&[&class[..], &treated].concat())?;
                }
                Way::Uncoded => {
                    let more = ["--no-coded-trains", "--address", address];
                    host.up_over(way.interface(), &["eth8"], &more)?;
                }
                Way::ShortFirst => {
                    let (line, link) = (way.interface(), way.cable().unwrap_or_default());
                    let more = ["--short-flows-first", "--address", address];
                    host.up_over(line, &[link], &more)?;
                }
                Way::Relay => {
                    let relay = relay::start(&host.namespace, packtrain, "eth2", address)?;
                    self.programs.push(relay);
                }
                Way::Macvlan | Way::Floor | Way::Vxlan | Way::WireGuard | Way::Simplemux => {}
            }
        }
        let hosts = [&self.a.namespace, &self.b.namespace];
        match way {
            Way::Macvlan => second::macvlan(hosts),
            Way::Floor => {
                let floors = second::floor(hosts)?;
                let is_there = floors.is_some();
                self.floors.extend(floors.into_iter().flatten());
                Ok(is_there)
            }
            Way::Vxlan => overlays::vxlan(hosts),
            Way::Simplemux => overlays::simplemux(hosts),
            Way::WireGuard => {
                let programs = overlays::wireguard(hosts)?;
                let is_there = programs.is_some();
                self.programs.extend(programs.into_iter().flatten());
                Ok(is_there)
            }
            _ => Ok(true),
        }
    }

    /// What runs in the turn of this way alone.
    pub fn programs_of_turn(&self, way: Way) -> Result<Option<[Process; 2]>> {
        let hosts = [&self.a.namespace, &self.b.namespace];
        let at_work = || overlays::simplemux_at_work(hosts);
        (way == Way::Simplemux).then(at_work).transpose()
    }

    /// Those of these that stand.
    pub fn available(&self, of: &[Way]) -> Vec<Way> {
        let stands = |way: &Way| self.ways.contains(way);
        of.iter().copied().filter(stands).collect()
    }

    pub fn ways(&self) -> &[Way] {
        &self.ways
    }

    /// The lines that stand, by name.
    pub fn names(&self) -> Vec<&'static str> {
        self.ways.iter().filter_map(|way| way.line()).collect()
    }

    /// `more`: further options of iperf3.
    pub fn bulk(&self, way: Way, more: &[&str]) -> Result<Bulk> {
        measure::bulk(&self.a.namespace, &way.to(), BULK, more)
    }

    pub fn bulk_and_ping(
        &self,
        way: Way,
        duration: Duration,
        more: &[&str],
    ) -> Result<(Bulk, RoundTrips)> {
        measure::bulk_and_ping(&self.a.namespace, &way.to(), duration, more)
    }

    pub fn messages(&self, way: Way, load: Load) -> Result<Report> {
        messages::measure(&self.a.namespace, &self.b.namespace, way.at(), load)
    }

    /// Messages by each of these ways in short blocks in turns, so that what the machine does beside is about the same
    /// for all; each host's program on its own processor. What arrived by each a second.
    pub fn messages_in_blocks(&self, ways: &[Way]) -> Result<Vec<f64>> {
        let hosts = (&self.a.namespace, &self.b.namespace);
        let load = Load {
            duration: MESSAGES / MESSAGE_BLOCKS,
            ..blast()
        };
        let mut rates = vec![0.0; ways.len()];
        for block in 0..MESSAGE_BLOCKS as usize {
            for turn in 0..ways.len() {
                let which = (block + turn) % ways.len();
                let cpus = [0, 1].map(cpu_of_host);
                pause(SETTLE);
                let report = messages::measure_on(hosts, ways[which].at(), load, cpus)?;
                rates[which] += report.delivered_per_second / f64::from(MESSAGE_BLOCKS);
            }
        }
        Ok(rates)
    }

    pub fn messages_beside_bulk(&self, way: Way) -> Result<Report> {
        std::thread::scope(|scope| {
            let duration = MESSAGES + Duration::from_secs(2);
            let bulk =
                scope.spawn(move || measure::bulk(&self.a.namespace, &way.to(), duration, &[]));
            // The flow has to have filled the link before the messages begin.
            pause(Duration::from_secs(1));
            let report = self.messages(way, blast());
            bulk.join().expect("the flow has no reason to panic")?;
            report
        })
    }

    /// What comes by any cable is taken in by the processor that it comes to, as where nobody has set anything.
    pub fn receive_where_it_comes(&self) -> Result<()> {
        self.on_each_cable(|host, _, interface| wire::receive_where_they_come(host, interface))
    }

    /// … by one of each host, as it is from the start.
    pub fn receive_as_set(&self) -> Result<()> {
        self.on_each_cable(|host, number, interface| {
            wire::receive_on_cpu(host, interface, cpu_of_host(number))
        })
    }

    fn on_each_cable(&self, set: impl Fn(&Namespace, usize, &str) -> Result<()>) -> Result<()> {
        let ways = self.ways.iter().filter(|way| way.receives_on_one_cpu());
        for interface in ways.filter_map(|way| way.cable()) {
            for (number, host) in [&self.a, &self.b].into_iter().enumerate() {
                set(&host.namespace, number, interface)?;
            }
        }
        Ok(())
    }

    /// Puts everything that belongs to the two hosts onto one CPU.
    pub fn move_to_one_cpu(&self) -> Result<()> {
        let mut programs: Vec<u32> = self.programs.iter().map(Process::id).collect();
        for host in [&self.a, &self.b] {
            for line in self.names() {
                programs.push(host.status_of(line)?.pid);
            }
        }
        for program in programs {
            let (cpu, pid) = (ONE_CPU.to_string(), program.to_string());
            run_program("taskset", ["-acp", &cpu, &pid])?;
        }
        self.on_each_cable(|host, _, interface| wire::receive_on_cpu(host, interface, ONE_CPU))
    }

    /// A question at a time, the next one as soon as it is answered.
    pub fn exchange(&self, way: Way) -> Result<RoundTrips> {
        let (a, b) = (&self.a.namespace, &self.b.namespace);
        exchange::measure(a, b, way.at(), ONE_CPU, IDLE_EXCHANGES)
    }

    /// A question now and then: everything sleeps in between, and caches forget.
    pub fn idle_ping(&self, way: Way) -> Result<RoundTrips> {
        let (cpu, count) = (ONE_CPU.to_string(), IDLE_PINGS.to_string());
        let interval = IDLE_PING_INTERVAL.as_secs_f64().to_string();
        let to = way.to();
        let ping = ["ping", "-n", "-i", &interval, "-c", &count, &to];
        let words = ["taskset", "-c", &cpu].into_iter().chain(ping);
        measure::round_trips(&self.a.namespace.exec(words)?)
    }

    /// From the call of `up` to the first answer, milliseconds.
    pub fn start(&self) -> Result<f64> {
        self.a.down()?;
        let [address, _] = Way::Pt0.addresses();
        let start = now();
        self.a.up("eth1", &["--address", &address])?;
        self.a
            .wait_for_ping(Way::Pt0.at().ip(), Duration::from_secs(10))?;
        Ok(start.elapsed().as_secs_f64() * 1e3)
    }
}

/// The first host's programs on one CPU, the second's on another, where there are two.
pub fn cpu_of_host(number: usize) -> usize {
    number % std::thread::available_parallelism().map_or(1, usize::from)
}

pub fn blast() -> Load {
    Load {
        size: MESSAGE_BYTES,
        duration: MESSAGES,
        rate_per_second: None,
        real_time: false,
    }
}
