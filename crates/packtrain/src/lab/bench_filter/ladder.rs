//! The paper's mix at rising load, with and without a filter: a table in the form of its Fig. 5 and 7, and what is useful at
//! saturation.
//!
//! Fig. 5 counts what the backlog queue took, Fig. 7 what was handled, rejections included. Here both are told of both: what
//! was *handled* (came to the driver), what the stack was *given*, and what was *useful*: read by a program.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::flooding::{Flooded, Load, flood};
use super::mix::{SIZES, paper};
use super::row::{Compared, Row, Runs};
use super::stage::{Layout, Stage};
use super::way::Way;
use super::{Bench, carried};
use crate::lab::Result;
use crate::lab::figure::{Target, Unit};
use crate::lab::sample::Sample;
use crate::lab::table::{Table, grouped};

const WAYS: [Way; 5] = [
    Way::Without,
    Way::Filter,
    Way::Marked,
    Way::WithoutAgain,
    Way::FilterNima,
];
/// Several turns of the driver and of the program.
const FLOOD: Duration = Duration::from_millis(800);
/// Of the wire, preamble and gap included: the paper's lower and higher rates; `None`: as many as there can be.
const LOADS: [Option<u64>; 7] = [
    Some(10),
    Some(50),
    Some(100),
    Some(200),
    Some(500),
    Some(1000),
    None,
];
const GAP_AND_PREAMBLE: usize = 20;
const WIRE_BPS: f64 = 1e9;
const OF_CEILING: Target = Target::RatioAtLeast(0.65);

/// A line of the table.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    pub size: usize,
    pub way: Way,
    /// Of the wire; null: as many frames as there could be.
    pub mbit: Option<u64>,
    /// All a second.
    pub sent: Sample,
    pub handled: Sample,
    pub given: Sample,
    pub useful: Sample,
    pub ring_lost: Sample,
    pub socket_lost: Sample,
    pub runs: Vec<Flooded>,
}

pub fn measure(bench: &mut Bench<'_>) -> Result<()> {
    let stage = Stage::set(Layout::OneProcessor)?;
    let mixes = SIZES.map(|size| (size, paper(size)));
    let mut runs: BTreeMap<(usize, usize), Runs<Flooded>> = BTreeMap::new();
    bench.in_turns("the paper's mix", &stage, &WAYS, |standing| {
        for (size, mix) in &mixes {
            for (step, mbit) in LOADS.iter().enumerate() {
                let load = Load {
                    mix,
                    size: *size,
                    per_second: mbit.map(|mbit| frames_per_second(mbit, *size)),
                    duration: FLOOD,
                };
                let flooded = flood(&stage, standing, load)?;
                let runs = runs.entry((*size, step)).or_default();
                runs.push(standing.way(), flooded);
            }
        }
        Ok(())
    })?;
    for size in SIZES {
        for way in WAYS {
            for (step, &mbit) in LOADS.iter().enumerate() {
                let runs = runs[&(size, step)].of(way);
                bench.steps.push(Step::of(size, way, mbit, runs));
            }
        }
        saturation(bench, size, &runs);
    }
    Ok(())
}

fn frames_per_second(mbit: u64, size: usize) -> u64 {
    mbit * 1_000_000 / ((size + GAP_AND_PREAMBLE) as u64 * 8)
}

fn saturation(bench: &mut Bench<'_>, size: usize, runs: &BTreeMap<(usize, usize), Runs<Flooded>>) {
    let all = &runs[&(size, LOADS.len() - 1)];
    let by_filter = carried(all.of(Way::Filter));
    let number = |of: fn(&Flooded) -> u64| all.map(|flooded| flooded.per_second(of(flooded)));
    let useful = number(|flooded| flooded.useful);
    let both = Compared(Way::Filter, Way::Without);
    let shown = (Unit::PerSecond, Target::RatioShown);
    bench.push(Row::new(
        format!("{size} B, saturation: useful, read by a program"),
        both,
        shown,
        &useful,
        &by_filter,
    ));
    bench.push(Row::new(
        "  … against the most that was useful without, at whatever load",
        both,
        shown,
        &against_best(&useful, size, runs),
        &by_filter,
    ));
    bench.push(Row::new(
        "  … the ceiling: what no filter can be better than",
        Compared(Way::Marked, Way::Without),
        shown,
        &useful,
        carried(all.of(Way::Marked)),
    ));
    bench.push(Row::new(
        "  … the filter against that",
        Compared(Way::Filter, Way::Marked),
        (Unit::PerSecond, OF_CEILING),
        &useful,
        &by_filter,
    ));
    bench.push(Row::new(
        "  … policy nima",
        Compared(Way::FilterNima, Way::Without),
        shown,
        &useful,
        carried(all.of(Way::FilterNima)),
    ));
    bench.push(Row::new(
        "  … handled, rejections included",
        both,
        shown,
        &number(|flooded| flooded.counts.driver),
        &by_filter,
    ));
    bench.push(Row::new(
        "  … A/A: useful, the same against itself",
        Compared(Way::WithoutAgain, Way::Without),
        shown,
        &useful,
        carried(all.of(Way::WithoutAgain)),
    ));
}

/// Of each round, the load at which most was useful without a filter stands for saturation.
fn against_best(
    useful: &Runs<f64>,
    size: usize,
    runs: &BTreeMap<(usize, usize), Runs<Flooded>>,
) -> Runs<f64> {
    let mut best = Runs::default();
    for (round, &with) in useful.of(Way::Filter).iter().enumerate() {
        let at = |step| {
            let flooded = &runs[&(size, step)].of(Way::Without)[round];
            flooded.per_second(flooded.useful)
        };
        best.push(Way::Filter, with);
        best.push(Way::Without, (0..LOADS.len()).map(at).fold(0.0, f64::max));
    }
    best
}

impl Step {
    fn of(size: usize, way: Way, mbit: Option<u64>, runs: &[Flooded]) -> Step {
        let each = |of: fn(&Flooded) -> u64| {
            let numbers = runs.iter().map(|flooded| flooded.per_second(of(flooded)));
            numbers.collect()
        };
        Step {
            size,
            way,
            mbit,
            sent: each(|flooded| flooded.sent),
            handled: each(|flooded| flooded.counts.driver),
            given: each(Flooded::given),
            useful: each(|flooded| flooded.useful),
            ring_lost: each(|flooded| flooded.counts.ring_lost),
            socket_lost: each(|flooded| flooded.counts.socket_lost),
            runs: runs.to_vec(),
        }
    }

    /// What was handled, as a share of a wire of 1000 Mbit/s.
    fn utilisation(&self) -> f64 {
        self.handled.median() * (self.size + GAP_AND_PREAMBLE) as f64 * 8.0 / WIRE_BPS
    }
}

/// As the paper's Fig. 5 and 7: packets a second.
pub fn steps_table(steps: &[Step]) -> Table {
    let mut table = Table::new(&[
        "bytes",
        "host",
        "Mbit/s",
        "sent/s",
        "handled/s",
        "of 1 Gbit/s",
        "given to the stack/s",
        "useful/s",
        "lost at the ring/s",
        "at the socket/s",
    ]);
    let shown = |sample: &Sample| match sample.median() {
        median if median.is_nan() => "-".to_owned(),
        median => grouped(median),
    };
    // What is there to see the noise has rows of its own.
    for step in steps.iter().filter(|step| step.way != Way::WithoutAgain) {
        table.row([
            step.size.to_string(),
            step.way.name().to_owned(),
            step.mbit
                .map_or_else(|| "all".into(), |mbit| mbit.to_string()),
            shown(&step.sent),
            shown(&step.handled),
            format!("{:.1} %", step.utilisation() * 100.0),
            shown(&step.given),
            shown(&step.useful),
            shown(&step.ring_lost),
            shown(&step.socket_lost),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_the_wire_are_those_of_the_papers_figure_4() {
        assert_eq!(frames_per_second(1000, 64), 1_488_095);
        assert_eq!(frames_per_second(1000, 300), 390_625);
        assert_eq!(frames_per_second(1000, 1518), 81_274);
        assert_eq!(frames_per_second(100, 64), 148_809);
    }
}
