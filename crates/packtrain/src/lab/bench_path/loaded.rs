//! Where a queue stands, or the path changes under what is on it: what the line does for its frames, and
//! that none comes to harm.

use std::time::Duration;

use super::LINES;
use crate::lab::Result;
use crate::lab::figure::{Target, Unit};
use crate::lab::messages::Report;
use crate::lab::one_link::stage::Line;
use crate::lab::one_link::way::Way;
use crate::lab::one_link::{Bench, parts};
use crate::lab::path_changes::{self, Flows, Pace};
use crate::settings::MTU_DEFAULT;

const NOT_WORSE: Target = Target::RatioAtMost(1.1);
const NEVER: Target = Target::NeverAbove(0.0);
const BULK: Duration = Duration::from_secs(5);
/// Small ones, and such as fill a frame.
const FLOWS: Flows<'_> = Flows {
    sizes: &[64, 64, 300, 1400],
    rate_per_second: 1000,
    duration: Duration::from_secs(3),
};
/// Of the thousand and more that there are in so long; with few, nothing is shown.
const CHANGES_MIN: f64 = 400.0;

pub fn bulk_shaped(bench: &mut Bench, line: &Line) -> Result<()> {
    let part = "CUBIC, 100 Mbit/s";
    // iperf3 looks at its flow's round trip once an interval.
    let more = ["-i", "0.2"];
    let runs = bench.in_turns_of(&LINES, part, line, |way| {
        line.bulk_and_ping(way, BULK, &more)
    })?;
    bench.compare(
        "one CUBIC flow over 100 Mbit/s",
        Unit::BitPerSecond,
        Target::RatioShown,
        runs.map(|(bulk, _)| bulk.goodput_bps),
    );
    bench.compare(
        "  … its queue: its own segments' round trip, mean",
        Unit::Microseconds,
        NOT_WORSE,
        runs.map(|(bulk, _)| bulk.round_trip_mean_us),
    );
    parts::ping_under_load(bench, NOT_WORSE, &runs);
    Ok(())
}

/// What became of all flows of a run together.
struct Flown {
    lost: f64,
    reordered: f64,
    duplicated: f64,
    changes: f64,
}

impl Flown {
    fn of(reports: &[Report], changes: f64) -> Flown {
        let sum = |number: fn(&Report) -> u64| reports.iter().map(number).sum::<u64>() as f64;
        Flown {
            lost: sum(Report::lost),
            reordered: sum(|report| report.reordered),
            duplicated: sum(|report| report.duplicated),
            changes,
        }
    }
}

/// The same datagrams over each way; only the path of `pt0` is changed under them.
pub fn changes(bench: &mut Bench, line: &Line) -> Result<()> {
    let part = "datagrams while the path changes";
    let runs = bench.in_turns_of(&LINES, part, line, |way| {
        let send = || FLOWS.send(&line.a.namespace, &line.b.namespace, way.at());
        if way != Way::Pt0 {
            return Ok(Flown::of(&send()?, 0.0));
        }
        let before = line.a.status()?.direct.changes;
        let reports = path_changes::during(&line.a, Pace::often(MTU_DEFAULT.into()), send)??;
        let changes = line.a.status()?.direct.changes - before;
        Ok(Flown::of(&reports, changes as f64))
    })?;
    bench.compare(
        "datagrams of 4 flows while the path of pt0 changes: lost",
        Unit::Count,
        NEVER,
        runs.map(|flown| flown.lost),
    );
    bench.compare(
        "  … reordered within their flow",
        Unit::Count,
        NEVER,
        runs.map(|flown| flown.reordered),
    );
    bench.compare(
        "  … twice",
        Unit::Count,
        NEVER,
        runs.map(|flown| flown.duplicated),
    );
    bench.compare(
        "  … changes in 3 s",
        Unit::Count,
        Target::AtLeast(CHANGES_MIN),
        runs.map(|flown| flown.changes).only(Way::Pt0),
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_all_flows_is_added_up() {
        let report = |sent, delivered, reordered, duplicated| Report {
            sent,
            delivered,
            reordered,
            duplicated,
            ..Report::default()
        };
        let flown = Flown::of(&[report(10, 9, 2, 0), report(5, 5, 1, 3)], 7.0);
        assert_eq!((flown.lost, flown.reordered), (1.0, 3.0));
        assert_eq!((flown.duplicated, flown.changes), (3.0, 7.0));
    }
}
