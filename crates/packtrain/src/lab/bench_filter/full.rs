//! The load at which the backlog queue first reports that it is full, as the paper finds the rate of an end point.

use std::time::Duration;

use super::flooding::{Load, flood};
use super::mix::{SIZES, paper};
use super::row::{Compared, Row, Runs};
use super::stage::{Layout, Stage};
use super::way::{Standing, Way};
use super::{Bench, carried};
use crate::lab::Result;
use crate::lab::figure::{Target, Unit};
use crate::linux::flood::Mix;

const WAYS: [Way; 3] = [Way::Without, Way::Filter, Way::WithoutAgain];
const FLOOD: Duration = Duration::from_millis(200);
const FIRST_PER_SECOND: u64 = 50_000;
/// Each load is a quarter more than the one before.
const STEP: (u64, u64) = (5, 4);
/// Where less than this share of what is asked for is sent, there is no higher load.
const SENT_MIN: f64 = 0.8;
/// A host that was away for some milliseconds has a full queue, too: not at the same load twice.
const TIMES: usize = 2;

/// The load that was sent, and whether the queue was full at it.
struct Found {
    per_second: f64,
    is_full: bool,
    flooded: super::flooding::Flooded,
}

pub fn measure(bench: &mut Bench<'_>) -> Result<()> {
    let stage = Stage::set(Layout::Backlog)?;
    let mixes = SIZES.map(|size| (size, paper(size)));
    let mut runs = SIZES.map(|_| Runs::default());
    bench.in_turns("the backlog queue", &stage, &WAYS, |standing| {
        for ((size, mix), runs) in mixes.iter().zip(&mut runs) {
            runs.push(standing.way(), first_full(&stage, standing, mix, *size)?);
        }
        Ok(())
    })?;
    for (size, runs) in SIZES.iter().zip(&runs) {
        let found = runs.of(Way::Filter);
        let never = found.iter().filter(|found| !found.is_full).count();
        let mut carried = carried(found.iter().map(|found| &found.flooded));
        if never > 0 {
            carried += &format!(
                "; never full in {never} of {} rounds: more could not be sent",
                found.len()
            );
        }
        let loads = runs.map(|found| found.per_second);
        let kind = (Unit::PerSecond, Target::RatioShown);
        let name = format!("{size} B: the load at which the backlog queue is first full");
        let both = Compared(Way::Filter, Way::Without);
        bench.push(Row::new(name, both, kind, &loads, carried));
        let same = Compared(Way::WithoutAgain, Way::Without);
        let name = "  … A/A: the same against itself";
        bench.push(Row::new(name, same, kind, &loads, ""));
    }
    Ok(())
}

fn first_full(stage: &Stage, standing: &Standing<'_>, mix: &Mix, size: usize) -> Result<Found> {
    let mut per_second = FIRST_PER_SECOND;
    loop {
        let load = Load {
            mix,
            size,
            per_second: Some(per_second),
            duration: FLOOD,
        };
        let mut full = 0;
        let flooded = loop {
            let flooded = flood(stage, standing, load)?;
            match flooded.counts.backlog_full {
                0 => break flooded,
                _ => full += 1,
            }
            if full == TIMES {
                break flooded;
            }
        };
        let sent = flooded.per_second(flooded.sent);
        let is_full = full == TIMES;
        if is_full || sent < per_second as f64 * SENT_MIN {
            return Ok(Found {
                per_second: sent,
                is_full,
                flooded,
            });
        }
        per_second = per_second * STEP.0 / STEP.1;
    }
}
