//! Two hosts, and between them a cable for every way.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use crate::lab::host::Host;
use crate::lab::measure::{self, Bulk, RoundTrips};
use crate::lab::messages::{self, Load, Report};
use crate::lab::namespaces::{Process, run as run_program};
use crate::lab::{Result, exchange, now, pause, relay, wire};

const BULK: Duration = Duration::from_secs(2);
const MESSAGES: Duration = Duration::from_secs(2);
const MESSAGE_BYTES: usize = 64;
const IDLE_EXCHANGES: u32 = 10_000;
const IDLE_PINGS: u32 = 300;
const IDLE_PING_INTERVAL: Duration = Duration::from_millis(5);
/// Where both ends are while the line is idle.
const ONE_CPU: usize = 0;

/// The line whose frames all go by the engine.
const ENGINE_LINE: &str = "pt1";

/// Two hosts with equal cables between them: eth0 bare, eth1 under `pt0`, eth2 under a bare relay,
/// eth3 under a line without the direct path.
#[derive(Debug)]
pub struct Line {
    _servers: Vec<Process>,
    /// Neither relays nor that line where the cables are shaped: a shaper is slower than any program.
    relays: Vec<Process>,
    pub a: Host,
    pub b: Host,
}

/// A way from A to B, by B's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Bare,
    Relay,
    Engine,
    Pt0,
}

impl Way {
    pub fn to(self) -> &'static str {
        match self {
            Way::Bare => "10.8.0.2",
            Way::Pt0 => "10.9.0.2",
            Way::Relay => "10.10.0.2",
            Way::Engine => "10.11.0.2",
        }
    }

    pub fn at(self) -> SocketAddr {
        const PORT: u16 = 7777;
        let address = self.to().parse().expect("an address of ours");
        SocketAddr::new(address, PORT)
    }
}

impl Line {
    pub fn set(packtrain: &Path, rate_mbit: Option<u32>) -> Result<Line> {
        let a = Host::create("bench", packtrain)?;
        let b = Host::create("bench", packtrain)?;
        let cables: &[&str] = match rate_mbit {
            Some(_) => &["eth0", "eth1"],
            None => &["eth0", "eth1", "eth2", "eth3"],
        };
        for &interface in cables {
            wire::veth((&a.namespace, interface), (&b.namespace, interface))?;
            for host in [&a, &b] {
                if let Some(rate_mbit) = rate_mbit {
                    wire::shape(&host.namespace, interface, rate_mbit)?;
                }
            }
        }
        // Only the bare wire needs it for its frames to keep their order. The engine puts them right,
        // and is slower where every frame of its link goes by way of the other CPU.
        for (cpu, host) in [&a, &b].into_iter().enumerate() {
            wire::receive_on_cpu(&host.namespace, "eth0", cpu % cpus())?;
        }
        wire::add_address(&a.namespace, "eth0", "10.8.0.1/24")?;
        wire::add_address(&b.namespace, "eth0", "10.8.0.2/24")?;
        a.up("eth1", &["--address", "10.9.0.1/24"])?;
        b.up("eth1", &["--address", "10.9.0.2/24"])?;
        let mut relays = Vec::new();
        if rate_mbit.is_none() {
            for (host, address) in [(&a, "10.10.0.1/24"), (&b, "10.10.0.2/24")] {
                relays.push(relay::start(&host.namespace, packtrain, "eth2", address)?);
            }
            wire::cubic(&a.namespace, "10.10.0.0/24", "eth2-relay")?;
            let up = ["up", ENGINE_LINE, "--link", "eth3", "--path", "engine"];
            for (host, address) in [(&a, "10.11.0.1/24"), (&b, "10.11.0.2/24")] {
                host.packtrain(&[&up[..], &["--address", address]].concat())?;
            }
            wire::cubic(&a.namespace, "10.11.0.0/24", ENGINE_LINE)?;
            a.wait_for_peers_of(ENGINE_LINE, 1)?;
            b.wait_for_peers_of(ENGINE_LINE, 1)?;
        }
        wire::cubic(&a.namespace, "10.8.0.0/24", "eth0")?;
        wire::cubic(&a.namespace, "10.9.0.0/24", "pt0")?;
        a.wait_for_peers(1)?;
        b.wait_for_peers(1)?;
        let servers = vec![measure::iperf3_server(&b.namespace)?];
        Ok(Line {
            _servers: servers,
            relays,
            a,
            b,
        })
    }

    pub fn ways(&self) -> Vec<Way> {
        match self.relays.is_empty() {
            true => vec![Way::Bare, Way::Pt0],
            false => vec![Way::Bare, Way::Relay, Way::Engine, Way::Pt0],
        }
    }

    /// The lines that stand, by name.
    pub fn names(&self) -> &'static [&'static str] {
        match self.relays.is_empty() {
            true => &["pt0"],
            false => &["pt0", ENGINE_LINE],
        }
    }

    pub fn bulk(&self, way: Way) -> Result<Bulk> {
        measure::bulk(&self.a.namespace, way.to(), BULK, &[])
    }

    pub fn messages(&self, way: Way, load: Load) -> Result<Report> {
        messages::measure(&self.a.namespace, &self.b.namespace, way.at(), load)
    }

    pub fn messages_beside_bulk(&self, way: Way) -> Result<Report> {
        std::thread::scope(|scope| {
            let duration = MESSAGES + Duration::from_secs(2);
            let bulk =
                scope.spawn(move || measure::bulk(&self.a.namespace, way.to(), duration, &[]));
            // The flow has to have filled the link before the messages begin.
            pause(Duration::from_secs(1));
            let report = self.messages(way, blast());
            bulk.join().expect("the flow has no reason to panic")?;
            report
        })
    }

    /// Puts everything that belongs to the two hosts onto one CPU.
    pub fn move_to_one_cpu(&self) -> Result<()> {
        let mut programs: Vec<u32> = self.relays.iter().map(Process::id).collect();
        for host in [&self.a, &self.b] {
            for line in self.names() {
                programs.push(host.status_of(line)?.pid);
            }
        }
        for program in programs {
            let (cpu, pid) = (ONE_CPU.to_string(), program.to_string());
            run_program("taskset", ["-acp", &cpu, &pid])?;
        }
        for host in [&self.a, &self.b] {
            wire::receive_on_cpu(&host.namespace, "eth0", ONE_CPU)?;
        }
        Ok(())
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
        let ping = ["ping", "-n", "-i", &interval, "-c", &count, way.to()];
        let words = ["taskset", "-c", &cpu].into_iter().chain(ping);
        measure::round_trips(&self.a.namespace.exec(words)?)
    }

    /// From the call of `up` to the first answer, milliseconds.
    pub fn start(&self) -> Result<f64> {
        self.a.down()?;
        let start = now();
        self.a.up("eth1", &["--address", "10.9.0.1/24"])?;
        self.a.wait_for_ping(
            "10.9.0.2".parse().expect("an address"),
            Duration::from_secs(10),
        )?;
        Ok(start.elapsed().as_secs_f64() * 1e3)
    }
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

pub fn blast() -> Load {
    Load {
        size: MESSAGE_BYTES,
        duration: MESSAGES,
        rate_per_second: None,
        real_time: false,
    }
}
