//! What the host's processor does at equal load, and what the paper's mix leaves of it.

use std::time::Duration;

use super::flooding::{Flooded, Load, flood};
use super::mix::paper;
use super::row::{Compared, Row};
use super::stage::{Layout, Stage};
use super::way::Way;
use super::{Bench, carried};
use crate::lab::Result;
use crate::lab::figure::{Target, Unit};

const WAYS: [Way; 3] = [Way::Without, Way::Filter, Way::WithoutAgain];
const FLOOD: Duration = Duration::from_secs(1);
const SIZE: usize = 64;
/// Which a host without a filter takes, too: 67 Mbit/s.
const PER_SECOND: u64 = 100_000;

pub fn measure(bench: &mut Bench<'_>) -> Result<()> {
    let stage = Stage::set(Layout::OneProcessor)?;
    let mix = paper(SIZE);
    let runs = bench.in_turns("processor time", &stage, &WAYS, |standing| {
        let load = Load {
            mix: &mix,
            size: SIZE,
            per_second: Some(PER_SECOND),
            duration: FLOOD,
        };
        flood(&stage, standing, load)
    })?;
    let each = |flooded: &Flooded| (flooded.driver_s + flooded.program_s) / flooded.seconds;
    let carried = carried(runs.of(Way::Filter));
    let kind = (Unit::Ratio, Target::RatioShown);
    let both = Compared(Way::Filter, Way::Without);
    let name = "the paper's mix, 64 B, 100,000/s: share of a processor (driver, stack, program)";
    bench.push(Row::new(name, both, kind, &runs.map(each), &carried));
    let useful = runs.map(|flooded| flooded.per_second(flooded.useful));
    let kind = (Unit::PerSecond, Target::RatioShown);
    let name = "  … useful, read by the program";
    bench.push(Row::new(name, both, kind, &useful, &carried));
    let same = Compared(Way::WithoutAgain, Way::Without);
    let kind = (Unit::Ratio, Target::RatioShown);
    let name = "  … A/A: share of a processor, the same against itself";
    bench.push(Row::new(name, same, kind, &runs.map(each), ""));
    Ok(())
}
