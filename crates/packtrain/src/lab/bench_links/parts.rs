//! What is measured, and what each number has to be.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use super::Row;
use super::link_use::{self, Counters, LinkUse};
use super::stage::{RATE_MBIT, SLOW_MBIT, Stage, Way, full_speed_bps};
use crate::lab::cut::{self, Plan, Under};
use crate::lab::figure::{Target, Unit};
use crate::lab::messages::{self, Load};
use crate::lab::sample::Sample;
use crate::lab::{Result, exchange};

const FLOW: Duration = Duration::from_secs(5);
const CUT_UNDER_PINGS: Plan = Plan {
    before: Duration::from_millis(1000),
    cut: Duration::from_millis(1000),
    after: Duration::from_millis(500),
};
const CUT_UNDER_TRANSFER: Plan = Plan {
    before: Duration::from_millis(2000),
    cut: Duration::from_millis(1500),
    after: Duration::from_millis(2500),
};
/// Few enough to leave the links idle.
const MESSAGES: Load = Load {
    size: 200,
    duration: Duration::from_secs(2),
    rate_per_second: Some(1000),
};
const EXCHANGES: u32 = 5000;
const ONE_CPU: usize = 0;

/// A value a round, of each way.
type Runs<T> = BTreeMap<Way, Vec<T>>;

#[derive(Debug)]
pub struct Bench {
    stage: Stage,
    rounds: usize,
    pub figures: Vec<Row>,
    pub links: Vec<LinkUse>,
}

impl Bench {
    pub fn new(stage: Stage, rounds: usize) -> Bench {
        Bench {
            stage,
            rounds,
            figures: Vec::new(),
            links: Vec::new(),
        }
    }

    pub fn mptcp_unavailable(&self) -> Option<&str> {
        self.stage.mptcp_unavailable.as_deref()
    }

    /// Each way `rounds` times in turns; who begins alternates as well.
    fn in_turns<T>(
        &mut self,
        part: &'static str,
        ways: &[Way],
        mut measure: impl FnMut(&mut Stage, Way, usize) -> Result<T>,
    ) -> Result<Runs<T>> {
        let mut ways = self.stage.available(ways);
        let lines: Vec<&'static str> = ways.iter().filter_map(|way| way.line()).collect();
        let counters = |stage: &Stage| -> Result<Vec<Vec<Counters>>> {
            let lines = lines.iter();
            lines
                .map(|line| link_use::counters(&stage.a, line))
                .collect()
        };
        let before = counters(&self.stage)?;
        let mut runs = Runs::new();
        for round in 0..self.rounds {
            eprintln!("{part}: round {} of {}", round + 1, self.rounds);
            for &way in &ways {
                let result = measure(&mut self.stage, way, round)?;
                runs.entry(way).or_default().push(result);
            }
            ways.rotate_left(1);
        }
        let after = counters(&self.stage)?;
        for ((line, before), after) in lines.iter().zip(&before).zip(&after) {
            self.links.extend(link_use::uses(part, line, before, after));
        }
        Ok(runs)
    }

    /// A row of the table: `several` against `one`, where the target compares.
    fn promise<T>(
        &mut self,
        name: &'static str,
        (unit, target): (Unit, Target),
        (one, several): (Way, Way),
        runs: &Runs<T>,
        number: impl Fn(&T) -> f64,
    ) {
        let of = |way: Way| -> Vec<f64> {
            let runs = runs.get(&way).into_iter().flatten();
            runs.map(&number).collect()
        };
        let sample = |way: Way| -> Sample { of(way).into_iter().collect() };
        let compared = target.compare(&of(one), &of(several));
        self.figures.push(Row {
            name,
            plain: sample(Way::Plain),
            mptcp: sample(Way::Mptcp),
            one: sample(one),
            several: sample(several),
            met: target.is_met(&compared),
            compared,
            unit,
            target,
        });
    }

    pub fn equal(&mut self) -> Result<()> {
        let ways = [Way::Plain, Way::One, Way::Several, Way::Mptcp];
        let runs = self.in_turns("one flow, 2 × 100 Mbit/s", &ways, |stage, way, _| {
            stage.flow(way, FLOW)
        })?;
        let ways = (Way::One, Way::Several);
        self.promise(
            "one CUBIC flow over 2 × 100 Mbit/s",
            (Unit::BitPerSecond, Target::RatioAtLeast(1.9)),
            ways,
            &runs,
            |(transfer, _)| transfer.arrivals.rate_bps(),
        );
        self.promise(
            "  … segments sent again",
            (Unit::Count, Target::DifferenceAtMost(0.0)),
            ways,
            &runs,
            |&(_, sent_again)| sent_again as f64,
        );
        Ok(())
    }

    pub fn unequal(&mut self) -> Result<()> {
        self.stage.shape_second_bare(SLOW_MBIT)?;
        let ways = [Way::Plain, Way::One, Way::Unequal, Way::Mptcp];
        let runs = self.in_turns("one flow, 100 + 20 Mbit/s", &ways, |stage, way, _| {
            stage.flow(way, FLOW)
        })?;
        self.stage.shape_second_bare(RATE_MBIT)?;
        let ways = (Way::One, Way::Unequal);
        self.promise(
            "one CUBIC flow over 100 + 20 Mbit/s",
            (Unit::BitPerSecond, Target::RatioAtLeast(1.1)),
            ways,
            &runs,
            |(transfer, _)| transfer.arrivals.rate_bps(),
        );
        self.promise(
            "  … segments sent again",
            (Unit::Count, Target::DifferenceShown),
            ways,
            &runs,
            |&(_, sent_again)| sent_again as f64,
        );
        Ok(())
    }

    pub fn pings(&mut self) -> Result<()> {
        let part = "a cable cut under 1000 pings a second";
        let runs = self.in_turns(part, &[Way::Several], |stage, way, round| {
            stage.with_cable(way, round, |path, cable, side| {
                cut::under_pings(path, cable, side, CUT_UNDER_PINGS)
            })
        })?;
        let ways = (Way::One, Way::Several);
        self.promise(
            "one of two cables cut under a ping every ms: lost",
            (Unit::Count, Target::NeverAbove(0.0)),
            ways,
            &runs,
            |pinged| pinged.echoes.lost() as f64,
        );
        self.promise(
            "  … out of order, or twice",
            (Unit::Count, Target::NeverAbove(0.0)),
            ways,
            &runs,
            |pinged| (pinged.echoes.reordered + pinged.echoes.duplicated) as f64,
        );
        self.promise(
            "  … longest time without an answer",
            (Unit::Microseconds, Target::AtMost(20_000.0)),
            ways,
            &runs,
            |pinged| pinged.echoes.gap_max_us,
        );
        self.promise(
            "  … of which until both kernels have told of the cut",
            (Unit::Microseconds, Target::Shown),
            ways,
            &runs,
            |pinged| micros(Some(pinged.told_after)),
        );
        Ok(())
    }

    pub fn transfer(&mut self) -> Result<()> {
        let part = "a cable cut under TCP and 20 Mbit/s of UDP";
        let ways = [Way::Several, Way::Mptcp];
        let runs = self.in_turns(part, &ways, |stage, way, round| {
            let under = Under {
                protocol: way.protocol(),
                // They would all go over the first of its links, which may be the one that is cut.
                messages: way != Way::Mptcp,
                rest_bps: full_speed_bps(RATE_MBIT),
                all_bps: full_speed_bps(2 * RATE_MBIT),
            };
            stage.with_cable(way, round, |path, cable, side| {
                cut::under_transfer(path, cable, side, CUT_UNDER_TRANSFER, under)
            })
        })?;
        let ways = (Way::One, Way::Several);
        let never = (Unit::Count, Target::NeverAbove(0.0));
        self.promise(
            "one of two cables cut under TCP and 20 Mbit/s of UDP: datagrams lost",
            never,
            ways,
            &runs,
            |crossed| crossed.messages.map_or(f64::NAN, |m| m.lost() as f64),
        );
        self.promise(
            "  … datagrams out of order, or twice",
            never,
            ways,
            &runs,
            |crossed| {
                let report = crossed.messages;
                report.map_or(f64::NAN, |m| (m.reordered + m.duplicated) as f64)
            },
        );
        self.promise(
            "  … bytes of TCP missing or wrong",
            never,
            ways,
            &runs,
            |crossed| (crossed.transfer.sent_bytes - crossed.transfer.right_bytes) as f64,
        );
        self.promise(
            "  … until the full speed of the rest",
            (Unit::Microseconds, Target::AtMost(200_000.0)),
            ways,
            &runs,
            |crossed| micros(crossed.rest_after),
        );
        self.promise(
            "  … longest time without a byte of TCP",
            (Unit::Microseconds, Target::Shown),
            ways,
            &runs,
            |crossed| micros(Some(crossed.transfer.arrivals.gap_max())),
        );
        self.promise(
            "  … until the full speed of both, once mended",
            (Unit::Microseconds, Target::Shown),
            ways,
            &runs,
            |crossed| micros(crossed.all_after),
        );
        Ok(())
    }

    pub fn join(&mut self) -> Result<()> {
        let part = "a link added under TCP";
        let runs = self.in_turns(part, &[Way::Several], |stage, way, round| {
            let all_bps = full_speed_bps(2 * RATE_MBIT);
            stage.addition(way, round).under_transfer(all_bps)
        })?;
        let ways = (Way::One, Way::Several);
        self.promise(
            "the second of two links added under TCP: until the full speed of both",
            (Unit::Microseconds, Target::AtMost(1_000_000.0)),
            ways,
            &runs,
            |joined| micros(joined.all_after),
        );
        self.promise(
            "  … of which the two commands took",
            (Unit::Microseconds, Target::Shown),
            ways,
            &runs,
            |joined| micros(Some(joined.commands)),
        );
        self.promise(
            "  … longest time without a byte of TCP",
            (Unit::Microseconds, Target::Shown),
            ways,
            &runs,
            |joined| micros(Some(joined.transfer.arrivals.gap_max())),
        );
        self.promise(
            "  … bytes of TCP missing or wrong",
            (Unit::Count, Target::NeverAbove(0.0)),
            ways,
            &runs,
            |joined| (joined.transfer.sent_bytes - joined.transfer.right_bytes) as f64,
        );
        Ok(())
    }

    pub fn delay(&mut self) -> Result<()> {
        let part = "1000 messages a second, idle links";
        let ways = [
            Way::Plain,
            Way::One,
            Way::OneByEngine,
            Way::Several,
            Way::InTurns,
        ];
        let runs = self.in_turns(part, &ways, |stage, way, _| {
            let path = stage.path(way);
            let at = SocketAddr::new(path.address, 7003);
            messages::measure(path.from, path.to, at, MESSAGES)
        })?;
        self.promise(
            "one-way delay over two idle links, p99: added to one link by the engine",
            (Unit::Microseconds, Target::DifferenceAtMost(100.0)),
            (Way::OneByEngine, Way::Several),
            &runs,
            |report| report.delay_p99_us,
        );
        self.promise(
            "  … p50: added to one link by the engine",
            (Unit::Microseconds, Target::DifferenceShown),
            (Way::OneByEngine, Way::Several),
            &runs,
            |report| report.delay_p50_us,
        );
        self.promise(
            "  … p99, both links in turns: added to one link by the engine",
            (Unit::Microseconds, Target::DifferenceAtMost(100.0)),
            (Way::OneByEngine, Way::InTurns),
            &runs,
            |report| report.delay_p99_us,
        );
        self.promise(
            "  … p50, both links in turns: added to one link by the engine",
            (Unit::Microseconds, Target::DifferenceShown),
            (Way::OneByEngine, Way::InTurns),
            &runs,
            |report| report.delay_p50_us,
        );
        self.promise(
            "  … p99: added to one link",
            (Unit::Microseconds, Target::DifferenceShown),
            (Way::One, Way::Several),
            &runs,
            |report| report.delay_p99_us,
        );
        let part = "UDP exchange, idle links";
        let runs = self.in_turns(part, &ways, |stage, way, _| {
            let path = stage.path(way);
            let at = SocketAddr::new(path.address, 7004);
            exchange::measure(path.from, path.to, at, ONE_CPU, EXCHANGES)
        })?;
        self.promise(
            "round trip over two idle links, p99: added to one link by the engine",
            (Unit::Microseconds, Target::DifferenceShown),
            (Way::OneByEngine, Way::Several),
            &runs,
            |trips| trips.p99_us,
        );
        Ok(())
    }
}

/// Never is longer than anything.
fn micros(duration: Option<Duration>) -> f64 {
    duration.map_or(f64::INFINITY, |d| d.as_secs_f64() * 1e6)
}
