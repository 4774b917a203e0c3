//! A minute in which links come and go all the time.

use std::time::Duration;

use super::bench::Bench;
use super::cuts::missing;
use super::row::Better;
use super::stage::{Flow, Stage, Way};
use super::wires::WireOf;
use crate::lab::figure::{Target, Unit};
use crate::lab::{Result, now, pause};

const FLAPS: u32 = 100;
const PERIOD: Duration = Duration::from_millis(600);
/// The first part of each.
const CUT: Duration = Duration::from_millis(200);
/// How often is looked which links are used.
const LOOK: Duration = Duration::from_millis(50);
const RATE_MBIT: u32 = 100;
/// Payload of TCP in full-size frames, as a share of what Ethernet sends for them.
const PAYLOAD: f64 = 1448.0 / 1538.0;

/// A transfer, and what the links that were used could have carried of it.
struct Flapped {
    flow: Flow,
    offered_bytes: f64,
}

pub fn flaps(bench: &mut Bench<'_>) -> Result<()> {
    let part = "100 flaps of either link in 60 s";
    let stage = bench.stage(&[WireOf::mbit(RATE_MBIT); 2])?;
    let runs = bench.in_turns((part, &stage), &[Way::Several, Way::Mptcp], |way, _| {
        let mut offered_bytes = 0.0;
        let flow = stage.flow_during(way, PERIOD * FLAPS, || {
            offered_bytes = flap(&stage)?;
            Ok(())
        })?;
        stage.wait_until_whole()?;
        Ok(Flapped {
            flow,
            offered_bytes,
        })
    })?;
    let flows = runs.get(&Way::Mptcp).into_iter().flatten();
    let flows: Vec<Flow> = flows.map(|flapped| flapped.flow.clone()).collect();
    bench.note_subflows(part, flows.iter());
    bench.promise(
        format!("{part}: bytes missing or wrong"),
        (Unit::Count, Target::NeverAbove(0.0), Better::Neither),
        &runs,
        |flapped| missing(&flapped.flow),
    );
    bench.promise(
        "  … goodput",
        (Unit::BitPerSecond, Target::Shown, Better::More),
        &runs,
        |flapped| flapped.flow.transfer.arrivals.rate_bps(),
    );
    bench.promise(
        "  … share of what the links offered that were used",
        (Unit::Ratio, Target::AtLeast(0.9), Better::Neither),
        &runs,
        |flapped| flapped.flow.transfer.arrivals.bytes() as f64 / flapped.offered_bytes,
    );
    bench.promise(
        "  … longest time without a byte",
        (Unit::Microseconds, Target::Shown, Better::Less),
        &runs,
        |flapped| flapped.flow.transfer.arrivals.gap_max().as_secs_f64() * 1e6,
    );
    bench.promise(
        "  … segments sent again",
        (Unit::Count, Target::Shown, Better::Neither),
        &runs,
        |flapped| flapped.flow.sent_again as f64,
    );
    Ok(())
}

/// Cuts and mends the wires in turns. What those carried meanwhile that were whole, and that the line used, bytes.
fn flap(stage: &Stage) -> Result<f64> {
    let bytes_a_second = f64::from(RATE_MBIT) * 1e6 / 8.0 * PAYLOAD;
    let start = now();
    let mut offered_bytes = 0.0;
    let mut looked_at = start;
    for number in 0..FLAPS {
        let wire = number as usize % stage.wires();
        let begin = PERIOD * number;
        stage.cut(wire, None, false)?;
        let mut is_cut = true;
        while start.elapsed() < begin + PERIOD {
            if is_cut && start.elapsed() >= begin + CUT {
                stage.mend(wire)?;
                is_cut = false;
            }
            let used = stage.used(|at| !(is_cut && at == wire))?;
            let seconds = looked_at.elapsed().as_secs_f64();
            looked_at = now();
            offered_bytes += used as f64 * seconds * bytes_a_second;
            pause(LOOK);
        }
    }
    Ok(offered_bytes)
}
