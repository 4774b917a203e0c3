//! What is measured, and what each number has to be.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Row;
use super::hold::{Held, HoldOfPart};
use super::stage::{Documents, RATE_MBIT, SLOW_MBIT, Stage, Way, full_speed_bps};
use crate::lab::Result;
use crate::lab::cut::{self, Plan, Under};
use crate::lab::figure::{Target, Unit};
use crate::lab::link_use::{self, LinkUse};
use crate::lab::sample::Sample;

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

/// A value a round, of each way.
pub(super) type Runs<T> = BTreeMap<Way, Vec<T>>;

#[derive(Debug)]
pub struct Bench {
    pub(super) stage: Stage,
    pub(super) rounds: usize,
    pub figures: Vec<Row>,
    pub links: Vec<LinkUse>,
    pub holds: Vec<HoldOfPart>,
}

impl Bench {
    pub fn new(stage: Stage, rounds: usize) -> Bench {
        Bench {
            stage,
            rounds,
            figures: Vec::new(),
            links: Vec::new(),
            holds: Vec::new(),
        }
    }

    pub fn mptcp_unavailable(&self) -> Option<&str> {
        self.stage.mptcp_unavailable.as_deref()
    }

    /// Each way `rounds` times in turns; who begins alternates as well.
    pub(super) fn in_turns<T>(
        &mut self,
        part: &'static str,
        ways: &[Way],
        mut measure: impl FnMut(&mut Stage, Way, usize) -> Result<T>,
    ) -> Result<Runs<T>> {
        let mut ways = self.stage.available(ways);
        let before = self.documents(&ways)?;
        let mut runs = Runs::new();
        for round in 0..self.rounds {
            eprintln!("{part}: round {} of {}", round + 1, self.rounds);
            for &way in &ways {
                let result = measure(&mut self.stage, way, round)?;
                runs.entry(way).or_default().push(result);
            }
            ways.rotate_left(1);
        }
        self.note_use(part, &before)?;
        Ok(runs)
    }

    /// What both ends of the lines of these ways say of themselves now.
    pub(super) fn documents(&self, ways: &[Way]) -> Result<Vec<Documents>> {
        let lines = ways.iter().filter_map(|way| way.line());
        lines.map(|line| self.stage.documents(line)).collect()
    }

    /// What went over each link of these lines since, and how much of it was held.
    pub(super) fn note_use(&mut self, part: &'static str, before: &[Documents]) -> Result<()> {
        for before in before {
            let line = before.line;
            let after = self.stage.documents(line)?;
            let [sent, sent_before] = [&after, before].map(|d| link_use::counters(&d.of_hosts[0]));
            self.links
                .extend(link_use::uses(part, line, &sent_before, &sent));
            if sent.len() > 1 {
                let held = Held::of(&after.of_hosts).since(&Held::of(&before.of_hosts));
                self.holds.push(HoldOfPart::new(part, line, &held));
            }
        }
        Ok(())
    }

    /// A row of the table: `several` against `one`, where the target compares.
    pub(super) fn promise<T>(
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
}

/// Never is longer than anything.
fn micros(duration: Option<Duration>) -> f64 {
    duration.map_or(f64::INFINITY, |d| d.as_secs_f64() * 1e6)
}
