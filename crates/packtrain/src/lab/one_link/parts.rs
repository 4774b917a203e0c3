//! What both benches measure, over the ways that each has.

use super::Bench;
use super::figure::Runs;
use super::stage::Line;
use super::way::Way;
use crate::lab::Result;
use crate::lab::figure::{Target, Unit};
use crate::lab::measure::{Bulk, RoundTrips};

pub fn messages(bench: &mut Bench, line: &Line, ways: &[Way]) -> Result<()> {
    let part = "64 B UDP, unshaped";
    let runs = small_messages(bench, part, line, ways)?;
    bench.compare(
        "64 B UDP delivered, unshaped",
        Unit::PerSecond,
        Target::RatioAtLeast(0.8),
        runs,
    );
    Ok(())
}

/// Messages a second that arrived by each way.
pub fn small_messages(
    bench: &mut Bench,
    part: &str,
    line: &Line,
    ways: &[Way],
) -> Result<Runs<f64>> {
    let mut runs = Runs::of_ways(ways);
    let ways = line.available(ways);
    bench.each_round(part, line, |_| {
        let rates = line.messages_in_blocks(&ways)?;
        for (&way, rate) in ways.iter().zip(rates) {
            runs.push(way, rate);
        }
        Ok(())
    })?;
    Ok(runs)
}

pub fn messages_beside_bulk(bench: &mut Bench, line: &Line, ways: &[Way]) -> Result<()> {
    let part = "64 B UDP beside bulk, 100 Mbit/s";
    let runs = bench.in_turns_of(ways, part, line, |way| line.messages_beside_bulk(way))?;
    bench.compare(
        "64 B UDP beside a bulk flow over 100 Mbit/s, delivered",
        Unit::PerSecond,
        Target::RatioAtLeast(1.0),
        runs.map(|report| report.delivered_per_second),
    );
    bench.compare(
        "  … p99 delay",
        Unit::Microseconds,
        Target::RatioAtMost(1.0),
        runs.map(|report| report.delay_p99_us),
    );
    Ok(())
}

pub fn ping_under_load(bench: &mut Bench, target: Target, runs: &Runs<(Bulk, RoundTrips)>) {
    bench.compare(
        "  … ping under load, p50",
        Unit::Microseconds,
        target,
        runs.map(|(_, ping)| ping.p50_us),
    );
    bench.compare(
        "  … ping under load, p99",
        Unit::Microseconds,
        target,
        runs.map(|(_, ping)| ping.p99_us),
    );
}
