//! What is measured, and what each number has to be.

use std::time::Duration;

use super::path_use::PathCounts;
use super::stage::{Line, Way, blast};
use crate::lab::figure::{Figure, Runs, Target, Unit};
use crate::lab::{Result, measure};
use crate::status::StatusDocument;

const BULK_SHAPED: Duration = Duration::from_secs(5);
/// What two runs of the same differ by.
const NOT_WORSE: Target = Target::RatioAtMost(1.05);

/// TCP flows from A to B.
pub struct TcpLoad {
    part: &'static str,
    name: &'static str,
    flows: u32,
    /// More than bare, all flows together.
    sent_again_max: f64,
}

pub const ONE_FLOW: TcpLoad = TcpLoad {
    part: "CUBIC, 100 Mbit/s",
    name: "one CUBIC flow over 100 Mbit/s",
    flows: 1,
    sent_again_max: 0.0,
};

/// A probe for a lost tail now and then: one a flow at most.
pub const MANY_FLOWS: TcpLoad = TcpLoad {
    part: "20 × CUBIC, 100 Mbit/s",
    name: "20 CUBIC flows over 100 Mbit/s",
    flows: 20,
    sent_again_max: 20.0,
};

#[derive(Debug)]
pub struct Bench {
    pub rounds: usize,
    pub figures: Vec<Figure>,
    pub paths: Vec<PathCounts>,
}

impl Bench {
    /// Runs each way `rounds` times in turns; who begins alternates as well.
    pub fn in_turns<T>(
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

    pub fn compare(&mut self, name: &'static str, unit: Unit, target: Target, runs: Runs<f64>) {
        self.figures.push(Figure::of(name, unit, target, runs));
    }

    pub fn bulk(&mut self, line: &Line) -> Result<()> {
        let runs = self.in_turns("bulk TCP, unshaped", line, |way| line.bulk(way))?;
        self.compare(
            "bulk TCP, one unshaped veth",
            Unit::BitPerSecond,
            Target::RatioAtLeast(0.45),
            runs.map(|bulk| bulk.goodput_bps),
        );
        Ok(())
    }

    pub fn bulk_shaped(&mut self, line: &Line, load: &'static TcpLoad) -> Result<()> {
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

    pub fn messages_beside_bulk(&mut self, line: &Line) -> Result<()> {
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

    pub fn messages(&mut self, line: &Line) -> Result<()> {
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

    pub fn idle(&mut self, line: &Line) -> Result<()> {
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
    pub fn memory(&mut self, line: &Line) -> Result<()> {
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

    pub fn start(&mut self, line: &Line) -> Result<()> {
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
