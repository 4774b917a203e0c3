//! What a small frame costs: how long all threads of the machine run for frames that all arrive.

use std::time::Duration;

use super::ALL;
use crate::lab::Result;
use crate::lab::figure::{Target, Unit};
use crate::lab::messages::Load;
use crate::lab::one_link::Bench;
use crate::lab::one_link::stage::Line;
use crate::lab::one_link::work::ran_during;

/// Few enough for all ways to carry all, and for `auto` to leave them alone.
const MESSAGES: Load = Load {
    size: 64,
    duration: Duration::from_secs(4),
    rate_per_second: Some(40_000),
    real_time: false,
};

pub fn measure(bench: &mut Bench, line: &Line) -> Result<()> {
    let part = "64 B UDP, unshaped, 40,000 a second";
    // What comes in is then worked on by a thread that sends, and not by a processor that has nothing else to do.
    line.receive_where_it_comes()?;
    let runs = bench.in_turns_of(&ALL, part, line, |way| {
        let (report, ran_s) = ran_during(|| line.messages(way, MESSAGES))?;
        Ok((ran_s * 1e6 / report.delivered as f64, report))
    })?;
    line.receive_as_set()?;
    bench.compare_carried(
        part,
        format!("{part}: CPU seconds a million, all threads"),
        (Unit::Ratio, Target::RatioShown),
        runs.map(|(cost, _)| *cost),
    );
    bench.compare_carried(
        part,
        "  … share delivered of what was sent",
        (Unit::Ratio, Target::Shown),
        runs.map(|(_, report)| report.delivered as f64 / report.sent as f64),
    );
    bench.compare_carried(
        part,
        "  … delay, p50",
        (Unit::Microseconds, Target::DifferenceShown),
        runs.map(|(_, report)| report.delay_p50_us),
    );
    Ok(())
}
