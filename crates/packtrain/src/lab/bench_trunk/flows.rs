//! One CUBIC flow over wires that stay as they are.

use std::time::Duration;

use super::bench::Bench;
use super::row::{Better, Runs};
use super::stage::{ALL, Flow, Stage, Way};
use super::wires::WireOf;
use crate::lab::figure::{Target, Unit};
use crate::lab::messages::Load;
use crate::lab::processors::seconds_per_gigabyte;
use crate::lab::{Result, pause};

const FLOW: Duration = Duration::from_secs(5);
const HUNDRED: WireOf = WireOf::mbit(100);
/// More than one wire carries, of 1250 bytes each: 150 Mbit/s of payload.
const MESSAGES: Load = Load {
    size: 1250,
    duration: Duration::from_secs(4),
    rate_per_second: Some(15_000),
    real_time: false,
};
/// A link that is dead is known to be after that.
const DEAD_AFTER: Duration = Duration::from_secs(2);

pub fn two(bench: &mut Bench<'_>) -> Result<()> {
    let part = "one CUBIC flow, 2 × 100 Mbit/s";
    let stage = bench.stage(&[HUNDRED; 2])?;
    let runs = flows(bench, (part, &stage), 1.95)?;
    bench.promise(
        "  … segments sent again: more than over one",
        (Unit::Count, Target::DifferenceAtMost(0.0), Better::Neither),
        &runs,
        |flow| flow.sent_again as f64,
    );
    daemons_time(bench, &stage)
}

pub fn three(bench: &mut Bench<'_>) -> Result<()> {
    by_stage(bench, "3 × 100 Mbit/s", &[HUNDRED; 3], 2.9)
}

pub fn four(bench: &mut Bench<'_>) -> Result<()> {
    by_stage(bench, "4 × 100 Mbit/s", &[HUNDRED; 4], 3.8)
}

pub fn near(bench: &mut Bench<'_>) -> Result<()> {
    let farther = HUNDRED.farther_by(Duration::from_millis(5));
    by_stage(
        bench,
        "2 × 100 Mbit/s, one with + 5 ms",
        &[HUNDRED, farther],
        1.9,
    )
}

pub fn far(bench: &mut Bench<'_>) -> Result<()> {
    let farther = HUNDRED.farther_by(Duration::from_millis(20));
    by_stage(
        bench,
        "2 × 100 Mbit/s, one with + 20 ms",
        &[HUNDRED, farther],
        1.8,
    )
}

pub fn unequal(bench: &mut Bench<'_>) -> Result<()> {
    by_stage(bench, "100 + 20 Mbit/s", &[HUNDRED, WireOf::mbit(20)], 1.17)
}

pub fn mixed(bench: &mut Bench<'_>) -> Result<()> {
    let wires = [HUNDRED, WireOf::mbit(40), WireOf::mbit(10)];
    by_stage(bench, "100 + 40 + 10 Mbit/s", &wires, 1.45)
}

pub fn lossy(bench: &mut Bench<'_>) -> Result<()> {
    let part = "100 Mbit/s, and 100 that lose 1 %";
    let stage = bench.stage(&[HUNDRED, HUNDRED.losing(0.01)])?;
    let runs = flows(bench, (part, &stage), 0.98)?;
    again_shown(bench, &runs);
    let part = "150 Mbit/s of UDP over 100, and 100 that lose 1 %";
    let runs = bench.in_turns((part, &stage), &[Way::Several], |way, _| {
        stage.messages(way, MESSAGES)
    })?;
    // What is lost goes again.
    bench.promise(
        format!("{part}: percent lost"),
        (Unit::Ratio, Target::AtMost(0.1), Better::Neither),
        &runs,
        |report| 100.0 * report.lost() as f64 / report.sent as f64,
    );
    Ok(())
}

/// Adapter fault tolerance, as the ELT paper has it. The second is dead: MPTCP's first subflow takes the first.
pub fn dead(bench: &mut Bench<'_>) -> Result<()> {
    for (part, silent) in [
        ("2 × 100 Mbit/s, one of which is cut", false),
        ("2 × 100 Mbit/s, one of which is silent", true),
    ] {
        let stage = bench.stage(&[HUNDRED; 2])?;
        stage.cut(1, None, silent)?;
        pause(DEAD_AFTER);
        let runs = flows(bench, (part, &stage), 0.99)?;
        again_shown(bench, &runs);
    }
    Ok(())
}

fn by_stage(bench: &mut Bench<'_>, part: &str, wires: &[WireOf], least: f64) -> Result<()> {
    let stage = bench.stage(wires)?;
    let runs = flows(bench, (part, &stage), least)?;
    again_shown(bench, &runs);
    Ok(())
}

/// One flow by each way, and what of the better wire's it has to be at least.
fn flows(bench: &mut Bench<'_>, (part, stage): (&str, &Stage), least: f64) -> Result<Runs<Flow>> {
    let runs = bench.in_turns_where_it_ran((part, stage), &ALL, |way, _| stage.flow(way, FLOW))?;
    bench.note_subflows(part, runs.get(&Way::Mptcp).into_iter().flatten());
    bench.promise(
        part,
        (
            Unit::BitPerSecond,
            Target::RatioAtLeast(least),
            Better::More,
        ),
        &runs,
        |flow| flow.transfer.arrivals.rate_bps(),
    );
    Ok(runs)
}

fn again_shown(bench: &mut Bench<'_>, runs: &Runs<Flow>) {
    bench.promise(
        "  … segments sent again: more than over one",
        (Unit::Count, Target::DifferenceShown, Better::Neither),
        runs,
        |flow| flow.sent_again as f64,
    );
}

/// What the two daemons of a line ran for what came, where the wires are short and not the processors.
fn daemons_time(bench: &mut Bench<'_>, stage: &Stage) -> Result<()> {
    let part = "CPU seconds per GB, both daemons, 2 × 100 Mbit/s";
    let runs = bench.in_turns((part, stage), &[Way::One, Way::Several], |way, _| {
        let line = way.line().expect("a line");
        let before = stage.daemons_ran(line)?;
        let flow = stage.flow(way, FLOW)?;
        let ran = stage.daemons_ran(line)? - before;
        let bytes = flow.transfer.arrivals.bytes() as f64;
        Ok(seconds_per_gigabyte(ran.as_secs_f64(), bytes))
    })?;
    bench.promise(
        part,
        (Unit::Ratio, Target::RatioAtMost(1.1), Better::Neither),
        &runs,
        |seconds| *seconds,
    );
    Ok(())
}
