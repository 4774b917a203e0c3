//! `packtrain bench line`: `pt0` against the bare cable, in turns, so that whatever else the
//! machine does falls on both. Each row is a promise, with what was measured and whether it holds.
//! Where the cable is not shaped, a line without the direct path and a bare relay ([`super::relay`])
//! take their turns as well.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::figure::{Figure, Runs, Target, Unit, figures_table};
use crate::status::{Counts, StatusDocument};

use super::host::Host;
use super::measure::{self, Bulk, RoundTrips};
use super::messages::{self, Load, Report};
use super::namespaces::{Process, clean_up_on_signals, run as run_program};
use super::table::{Table, grouped};
use super::{Error, Result, exchange, now, relay, wire};

const RATE_MBIT: u32 = 100;
const BULK: Duration = Duration::from_secs(2);
const BULK_SHAPED: Duration = Duration::from_secs(5);
const MESSAGES: Duration = Duration::from_secs(2);
const MESSAGE_BYTES: usize = 64;
/// What two runs of the same differ by.
const NOT_WORSE: Target = Target::RatioAtMost(1.05);
const IDLE_EXCHANGES: u32 = 10_000;
const IDLE_PINGS: u32 = 300;
const IDLE_PING_INTERVAL: Duration = Duration::from_millis(5);
/// Where both ends are while the line is idle.
const ONE_CPU: usize = 0;

/// TCP flows from A to B.
struct TcpLoad {
    part: &'static str,
    name: &'static str,
    flows: u32,
    /// More than bare, all flows together.
    sent_again_max: f64,
}

const ONE_FLOW: TcpLoad = TcpLoad {
    part: "CUBIC, 100 Mbit/s",
    name: "one CUBIC flow over 100 Mbit/s",
    flows: 1,
    sent_again_max: 0.0,
};

/// A probe for a lost tail now and then: one a flow at most.
const MANY_FLOWS: TcpLoad = TcpLoad {
    part: "20 × CUBIC, 100 Mbit/s",
    name: "20 CUBIC flows over 100 Mbit/s",
    flows: 20,
    sent_again_max: 20.0,
};

/// What can be measured alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// One TCP flow over an unshaped link
    Bulk,
    /// Small UDP messages over an unshaped link
    Messages,
    /// Round trips on an idle line
    Idle,
    /// From `up` to the first ping
    Start,
    /// One TCP flow over 100 Mbit/s, and pings beside it
    Shaped,
    /// Many TCP flows over 100 Mbit/s, and pings beside them
    Many,
    /// Small UDP messages beside a TCP flow over 100 Mbit/s
    Beside,
}

/// What may be chosen.
#[derive(Clone, Debug)]
pub struct Options {
    pub rounds: usize,
    /// Empty: all.
    pub parts: Vec<Part>,
    /// Where the whole report goes, as JSON.
    pub json: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            rounds: 5,
            parts: Vec::new(),
            json: None,
        }
    }
}

#[derive(Clone, Debug, Serialize)]
struct BenchReport {
    kernel: String,
    iperf3: String,
    cpus: usize,
    rounds: usize,
    figures: Vec<Figure>,
    /// How the frames of each part went: direct, packed, marked, and how many in a train.
    paths: Vec<PathCounts>,
}

/// What A sent through a line in one part, all rounds together.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PathCounts {
    pub part: &'static str,
    pub line: &'static str,
    /// Frames that went past the engine.
    pub direct: u64,
    pub trains: u64,
    pub frames: u64,
    pub pieces: u64,
    pub marked: u64,
    pub frames_per_train_mean: f64,
    pub drops: Counts,
}

/// Measures everything, prints the table, and writes the report. Whether every promise holds.
pub fn run(packtrain: &Path, options: &Options) -> Result<bool> {
    super::check_available()?;
    clean_up_on_signals()?;
    assert!(options.rounds > 0, "no rounds, no medians");
    let mut bench = Bench {
        rounds: options.rounds,
        figures: Vec::new(),
        paths: Vec::new(),
    };
    let wanted = |part| options.parts.is_empty() || options.parts.contains(&part);
    if [Part::Bulk, Part::Messages, Part::Idle, Part::Start]
        .into_iter()
        .any(wanted)
    {
        let unshaped = Line::set(packtrain, None)?;
        if wanted(Part::Bulk) {
            bench.bulk(&unshaped)?;
        }
        if wanted(Part::Messages) {
            bench.messages(&unshaped)?;
        }
        // After the load.
        bench.memory(&unshaped)?;
        if wanted(Part::Idle) {
            bench.idle(&unshaped)?;
        }
        if wanted(Part::Start) {
            bench.start(&unshaped)?;
        }
    }
    if [Part::Shaped, Part::Many, Part::Beside]
        .into_iter()
        .any(wanted)
    {
        let shaped = Line::set(packtrain, Some(RATE_MBIT))?;
        if wanted(Part::Shaped) {
            bench.bulk_shaped(&shaped, &ONE_FLOW)?;
        }
        if wanted(Part::Many) {
            bench.bulk_shaped(&shaped, &MANY_FLOWS)?;
        }
        if wanted(Part::Beside) {
            bench.messages_beside_bulk(&shaped)?;
        }
    }

    let report = BenchReport {
        kernel: wire::version_of("uname", "-r"),
        iperf3: wire::version_of("iperf3", "--version"),
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        rounds: options.rounds,
        figures: bench.figures,
        paths: bench.paths,
    };
    print!("\n{}", figures_table(&report.figures));
    print!("\n{}", report.paths_table());
    println!(
        "\nmedian [least … most] of {} rounds in turns; Linux {}, {}, {} CPUs",
        report.rounds, report.kernel, report.iperf3, report.cpus
    );
    if let Some(path) = &options.json {
        let text = serde_json::to_string_pretty(&report).expect("numbers and names");
        std::fs::write(path, text + "\n").map_err(|source| Error::File {
            path: path.display().to_string(),
            source,
        })?;
    }
    Ok(report.figures.iter().all(|figure| figure.met))
}

/// The line whose frames all go by the engine.
const ENGINE_LINE: &str = "pt1";

/// Two hosts with equal cables between them: eth0 bare, eth1 under `pt0`, eth2 under a bare relay,
/// eth3 under a line without the direct path.
#[derive(Debug)]
struct Line {
    _servers: Vec<Process>,
    /// Neither relays nor that line where the cables are shaped: a shaper is slower than any program.
    relays: Vec<Process>,
    a: Host,
    b: Host,
}

/// A way from A to B, by B's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Bare,
    Relay,
    Engine,
    Pt0,
}

impl Way {
    fn to(self) -> &'static str {
        match self {
            Way::Bare => "10.8.0.2",
            Way::Pt0 => "10.9.0.2",
            Way::Relay => "10.10.0.2",
            Way::Engine => "10.11.0.2",
        }
    }

    fn at(self) -> SocketAddr {
        const PORT: u16 = 7777;
        let address = self.to().parse().expect("an address of ours");
        SocketAddr::new(address, PORT)
    }
}

impl Line {
    fn set(packtrain: &Path, rate_mbit: Option<u32>) -> Result<Line> {
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

    fn ways(&self) -> Vec<Way> {
        match self.relays.is_empty() {
            true => vec![Way::Bare, Way::Pt0],
            false => vec![Way::Bare, Way::Relay, Way::Engine, Way::Pt0],
        }
    }

    /// The lines that stand, by name.
    fn names(&self) -> &'static [&'static str] {
        match self.relays.is_empty() {
            true => &["pt0"],
            false => &["pt0", ENGINE_LINE],
        }
    }

    fn bulk(&self, way: Way) -> Result<Bulk> {
        measure::bulk(&self.a.namespace, way.to(), BULK, &[])
    }

    fn messages(&self, way: Way, load: Load) -> Result<Report> {
        messages::measure(&self.a.namespace, &self.b.namespace, way.at(), load)
    }

    fn messages_beside_bulk(&self, way: Way) -> Result<Report> {
        std::thread::scope(|scope| {
            let duration = MESSAGES + Duration::from_secs(2);
            let bulk =
                scope.spawn(move || measure::bulk(&self.a.namespace, way.to(), duration, &[]));
            // The flow has to have filled the link before the messages begin.
            super::pause(Duration::from_secs(1));
            let report = self.messages(way, blast());
            bulk.join().expect("the flow has no reason to panic")?;
            report
        })
    }

    /// Puts everything that belongs to the two hosts onto one CPU.
    fn move_to_one_cpu(&self) -> Result<()> {
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
    fn exchange(&self, way: Way) -> Result<RoundTrips> {
        let (a, b) = (&self.a.namespace, &self.b.namespace);
        exchange::measure(a, b, way.at(), ONE_CPU, IDLE_EXCHANGES)
    }

    /// A question now and then: everything sleeps in between, and caches forget.
    fn idle_ping(&self, way: Way) -> Result<RoundTrips> {
        let (cpu, count) = (ONE_CPU.to_string(), IDLE_PINGS.to_string());
        let interval = IDLE_PING_INTERVAL.as_secs_f64().to_string();
        let ping = ["ping", "-n", "-i", &interval, "-c", &count, way.to()];
        let words = ["taskset", "-c", &cpu].into_iter().chain(ping);
        measure::round_trips(&self.a.namespace.exec(words)?)
    }

    /// From the call of `up` to the first answer, milliseconds.
    fn start(&self) -> Result<f64> {
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

fn blast() -> Load {
    Load {
        size: MESSAGE_BYTES,
        duration: MESSAGES,
        rate_per_second: None,
    }
}

#[derive(Debug)]
struct Bench {
    rounds: usize,
    figures: Vec<Figure>,
    paths: Vec<PathCounts>,
}

impl Bench {
    /// Runs each way `rounds` times in turns; who begins alternates as well.
    fn in_turns<T>(
        &mut self,
        part: &'static str,
        line: &Line,
        mut measure: impl FnMut(Way) -> Result<T>,
    ) -> Result<Runs<T>> {
        let statuses = || -> Result<Vec<StatusDocument>> {
            line.names()
                .iter()
                .map(|name| line.a.status_of(name))
                .collect()
        };
        let before = statuses()?;
        let mut runs = Runs::default();
        let mut ways = line.ways();
        for round in 0..self.rounds {
            eprintln!("{part}: round {} of {}", round + 1, self.rounds);
            for &way in &ways {
                let result = measure(way)?;
                match way {
                    Way::Bare => runs.bare.push(result),
                    Way::Relay => runs.relay.push(result),
                    Way::Engine => runs.engine.push(result),
                    Way::Pt0 => runs.pt0.push(result),
                }
            }
            ways.rotate_left(1);
        }
        for ((&name, before), after) in line.names().iter().zip(&before).zip(&statuses()?) {
            self.paths
                .push(PathCounts::between(part, name, before, after));
        }
        Ok(runs)
    }

    fn compare(&mut self, name: &'static str, unit: Unit, target: Target, runs: Runs<f64>) {
        self.figures.push(Figure::of(name, unit, target, runs));
    }

    fn bulk(&mut self, line: &Line) -> Result<()> {
        let runs = self.in_turns("bulk TCP, unshaped", line, |way| line.bulk(way))?;
        self.compare(
            "bulk TCP, one unshaped veth",
            Unit::BitPerSecond,
            Target::RatioAtLeast(0.45),
            runs.map(|bulk| bulk.goodput_bps),
        );
        Ok(())
    }

    fn bulk_shaped(&mut self, line: &Line, load: &'static TcpLoad) -> Result<()> {
        let flows = load.flows.to_string();
        let runs = self.in_turns(load.part, line, |way| {
            let from = &line.a.namespace;
            measure::bulk_and_ping(from, way.to(), BULK_SHAPED, &["-P", &flows])
        })?;
        self.compare(
            load.name,
            Unit::BitPerSecond,
            Target::RatioAtLeast(0.97),
            runs.map(|(bulk, _)| bulk.goodput_bps),
        );
        self.compare(
            "  … segments sent again",
            Unit::Count,
            Target::DifferenceAtMost(load.sent_again_max),
            runs.map(|(bulk, _)| bulk.retransmits as f64),
        );
        self.compare(
            "  … ping under load, p50",
            Unit::Microseconds,
            NOT_WORSE,
            runs.map(|(_, ping)| ping.p50_us),
        );
        self.compare(
            "  … ping under load, p99",
            Unit::Microseconds,
            NOT_WORSE,
            runs.map(|(_, ping)| ping.p99_us),
        );
        Ok(())
    }

    fn messages_beside_bulk(&mut self, line: &Line) -> Result<()> {
        let part = "64 B UDP beside bulk, 100 Mbit/s";
        let runs = self.in_turns(part, line, |way| line.messages_beside_bulk(way))?;
        self.compare(
            "64 B UDP beside a bulk flow, delivered",
            Unit::PerSecond,
            Target::RatioAtLeast(1.0),
            runs.map(|report| report.delivered_per_second),
        );
        self.compare(
            "  … p99 delay",
            Unit::Microseconds,
            Target::RatioAtMost(1.0),
            runs.map(|report| report.delay_p99_us),
        );
        Ok(())
    }

    fn messages(&mut self, line: &Line) -> Result<()> {
        let part = "64 B UDP, unshaped";
        let runs = self.in_turns(part, line, |way| line.messages(way, blast()))?;
        self.compare(
            "64 B UDP delivered, unshaped",
            Unit::PerSecond,
            Target::RatioAtLeast(0.8),
            runs.map(|report| report.delivered_per_second),
        );
        Ok(())
    }

    fn idle(&mut self, line: &Line) -> Result<()> {
        line.move_to_one_cpu()?;
        let part = "UDP exchange, one CPU";
        let runs = self.in_turns(part, line, |way| line.exchange(way))?;
        self.compare(
            "RTT of a UDP exchange on an idle line, both ends on one CPU, p50: added",
            Unit::Microseconds,
            Target::DifferenceAtMost(40.0),
            runs.map(|trips| trips.p50_us),
        );
        let part = "idle ping, one CPU";
        let runs = self.in_turns(part, line, |way| line.idle_ping(way))?;
        self.compare(
            "  … of a ping every 5 ms, between which the CPU sleeps, p50: added",
            Unit::Microseconds,
            Target::DifferenceShown,
            runs.map(|trips| trips.p50_us),
        );
        Ok(())
    }

    /// After the load of the parts before.
    fn memory(&mut self, line: &Line) -> Result<()> {
        let mut most = 0.0_f64;
        for name in line.names() {
            for host in [&line.a, &line.b] {
                most = most.max(host.daemon_memory_max_kib(name)? as f64);
            }
        }
        // A daemon that cannot be found has no memory, and keeps no promise.
        let most = if most > 0.0 { most } else { f64::NAN };
        self.compare(
            "memory of the daemon after load (VmHWM)",
            Unit::Kibibytes,
            Target::AtMost(64.0 * 1024.0),
            Runs::of_pt0([most]),
        );
        Ok(())
    }

    fn start(&mut self, line: &Line) -> Result<()> {
        let mut times = Vec::new();
        for round in 0..self.rounds {
            eprintln!("up to first ping: round {} of {}", round + 1, self.rounds);
            times.push(line.start()? * 1e3);
        }
        self.compare(
            "`up` to the first ping answered",
            Unit::Microseconds,
            Target::AtMost(1e6),
            Runs::of_pt0(times),
        );
        Ok(())
    }
}

impl PathCounts {
    fn between(
        part: &'static str,
        line: &'static str,
        before: &StatusDocument,
        after: &StatusDocument,
    ) -> PathCounts {
        let (old, new) = (&before.trains.tx, &after.trains.tx);
        let (trains, frames) = (new.trains - old.trains, new.frames - old.frames);
        let drops = after.drops.iter().map(|(reason, count)| {
            (
                reason.clone(),
                count - before.drops.get(reason).unwrap_or(&0),
            )
        });
        PathCounts {
            part,
            line,
            direct: after.direct.tx.frames - before.direct.tx.frames,
            trains,
            frames,
            pieces: new.pieces - old.pieces,
            marked: new.marked - old.marked,
            frames_per_train_mean: frames as f64 / trains.max(1) as f64,
            drops: drops.filter(|(_, count)| *count > 0).collect(),
        }
    }

    fn drops_text(&self) -> String {
        let drops = self
            .drops
            .iter()
            .map(|(reason, count)| format!("{reason} {count}"));
        drops.collect::<Vec<_>>().join(", ")
    }
}

impl BenchReport {
    fn paths_table(&self) -> Table {
        let mut table = Table::new(&[
            "what A sent",
            "by",
            "direct",
            "trains",
            "frames in them",
            "a train",
            "pieces",
            "marked",
            "dropped",
        ]);
        for path in &self.paths {
            table.row([
                path.part.to_owned(),
                path.line.to_owned(),
                grouped(path.direct as f64),
                grouped(path.trains as f64),
                grouped(path.frames as f64),
                format!("{:.1}", path.frames_per_train_mean),
                grouped(path.pieces as f64),
                grouped(path.marked as f64),
                path.drops_text(),
            ]);
        }
        table
    }
}
