//! Where packets are what is short: a link that carries 5000 a second, however long each is, and more of the smallest
//! frames than it carries even packed. Its queue is seen by the line in one part, and in the other it is a wire
//! somewhere behind the link.

use std::path::Path;
use std::time::Duration;

use super::{BESIDE, UNCODED};
use crate::lab::capped::{Capped, PACKETS_PER_SECOND};
use crate::lab::figure::{Target, Unit};
use crate::lab::messages::{self, Load, Report};
use crate::lab::one_link::figure::Runs;
use crate::lab::one_link::stage::{Plan, Shape};
use crate::lab::one_link::way::Way;
use crate::lab::one_link::work::ran_during;
use crate::lab::one_link::{Bench, Row};
use crate::lab::{Result, pause};

/// Payload of UDP: number and time of the message, and bytes that stay. As they are, a train holds 16.3 of the former and
/// 30.2 of the latter, which are the least that Ethernet does not pad.
const SIZES: [usize; 2] = [60, 18];
/// More than a line carries of them, coded.
const fn load(size: usize) -> Load {
    Load {
        size,
        duration: Duration::from_secs(3),
        rate_per_second: Some(if size > 18 { 200_000 } else { 300_000 }),
        real_time: false,
    }
}

const FLOWS: [usize; 2] = [64, 1];
/// Of 60 bytes more than fit as they are.
const CODED: Target = Target::RatioAtLeast(18.0);
/// The next one's queue is empty.
const SETTLE: Duration = Duration::from_millis(500);

/// What arrived, and what the machine worked for it.
struct Run {
    report: Report,
    ran_s: f64,
}

impl Run {
    fn of(send: impl FnOnce() -> Result<Report>) -> Result<Run> {
        pause(SETTLE);
        let (report, ran_s) = ran_during(send)?;
        Ok(Run { report, ran_s })
    }
}

fn cases() -> impl Iterator<Item = (usize, usize)> {
    SIZES
        .into_iter()
        .flat_map(|size| FLOWS.map(|flows| (size, flows)))
}

fn part_of((size, flows): (usize, usize), over: &str) -> String {
    let flows = match flows {
        1 => "1 flow".to_owned(),
        flows => format!("{flows} flows"),
    };
    format!("{size} B of UDP, {flows}, {over} of 5000 packets/s")
}

fn compare(bench: &mut Bench, part: &str, runs: &Runs<Run>) {
    let rows: [Row<Run>; 5] = [
        ("delivered a second", (Unit::PerSecond, CODED), |run| {
            run.report.delivered_per_second
        }),
        ("sent a second", (Unit::PerSecond, Target::Shown), |run| {
            run.report.sent as f64 / load(18).duration.as_secs_f64()
        }),
        (
            "out of order in their flow, in all",
            (Unit::Count, Target::NeverAbove(0.0)),
            |run| run.report.reordered as f64,
        ),
        (
            "delay, p50",
            (Unit::Microseconds, Target::RatioShown),
            |run| run.report.delay_p50_us,
        ),
        (
            "CPU seconds a million delivered",
            (Unit::Ratio, Target::RatioShown),
            |run| run.ran_s * 1e6 / run.report.delivered as f64,
        ),
    ];
    bench.compare_rows(part, &rows, runs);
}

/// The link has a queue that is seen to stand.
pub fn told(bench: &mut Bench, packtrain: &Path) -> Result<()> {
    let plan = Plan {
        shape: Shape::PacketsPerSecond(PACKETS_PER_SECOND),
        ways: &BESIDE,
    };
    for (size, flows) in cases() {
        let part = part_of((size, flows), "a link");
        let runs = bench.in_turns_anew((packtrain, plan), &part, |line, way| {
            let hosts = (&line.a.namespace, &line.b.namespace);
            Run::of(|| messages::measure_flows(hosts, way.at(), load(size), flows))
        })?;
        compare(bench, &part, &runs);
    }
    Ok(())
}

/// Each round has labs of its own, one for each line: what was found out once is remembered for a while.
pub fn hidden(bench: &mut Bench, packtrain: &Path) -> Result<()> {
    for (size, flows) in cases() {
        let part = part_of((size, flows), "an unknown wire");
        let mut runs = Runs::of_ways(&UNCODED);
        for round in 0..bench.rounds {
            eprintln!("{part}: round {} of {}", round + 1, bench.rounds);
            let lines: [(Way, &[&str]); 2] =
                [(Way::Pt0, &[]), (Way::Uncoded, &["--no-coded-trains"])];
            for (way, more) in lines {
                let capped = Capped::set("capcod", packtrain, more)?;
                let send = || Run::of(|| capped.send(capped.pt0, load(size), flows));
                let (run, _) =
                    capped.counted(bench, (&part, way.interface()), || capped.under(send))?;
                runs.push(way, run);
                if way == Way::Pt0 {
                    // After it: the wire is full of it, and the line's own greetings are lost.
                    let bare = Run::of(|| capped.send(capped.bare, load(size), flows))?;
                    runs.push(Way::Bare, bare);
                }
            }
        }
        compare(bench, &part, &runs);
    }
    Ok(())
}
