//! Where packets are what is short: a link that carries 5000 a second, however long each is. Its queue is seen by
//! the line in one part, and in the other it is a wire somewhere behind the link.

use std::path::Path;
use std::time::Duration;

use super::{BESIDE, TWO};
use crate::lab::capped::{Capped, Look, PACKETS_PER_SECOND, load_begins};
use crate::lab::figure::{Target, Unit};
use crate::lab::messages::{self, Load, Report};
use crate::lab::one_link::Bench;
use crate::lab::one_link::figure::Runs;
use crate::lab::one_link::stage::{Plan, Shape};
use crate::lab::one_link::way::Way;
use crate::lab::one_link::work::ran_during;
use crate::lab::{Result, pause};

/// More than 16 of the larger ones in each packet.
const PER_SECOND: u64 = 90_000;
const FLOWS: usize = 64;
const DURATION: Duration = Duration::from_secs(3);
const PACKED: Target = Target::RatioAtLeast(13.0);
const FOUND_WITHIN: Target = Target::AtMost(0.5e6);
/// The next one's queue is empty.
const SETTLE: Duration = Duration::from_millis(500);

/// Small datagrams over such a link.
struct Small {
    /// UDP payload, bytes.
    size: usize,
    /// With their headers.
    name: &'static str,
}

/// 102 and 60 bytes of Ethernet without FCS. Of an IP packet a train holds three bytes more: 16.3 of the former fit
/// into one of 1500 bytes, and 30 of the latter.
const SIZES: [Small; 2] = [
    Small {
        size: 60,
        name: "60 B UDP (frames of 102 B)",
    },
    Small {
        size: 18,
        name: "18 B UDP (frames of 60 B)",
    },
];

impl Small {
    fn load(&self) -> Load {
        Load {
            size: self.size,
            duration: DURATION,
            rate_per_second: Some(PER_SECOND),
            real_time: false,
        }
    }
}

/// What arrived, and what the machine worked for it.
struct Run {
    report: Report,
    ran_s: f64,
}

impl Run {
    fn of(send: impl FnOnce() -> Result<Report>) -> Result<Run> {
        let (report, ran_s) = ran_during(send)?;
        Ok(Run { report, ran_s })
    }
}

fn compare(bench: &mut Bench, part: &str, what: &str, runs: &Runs<Run>) {
    bench.compare_carried(
        part,
        format!("{what}, {FLOWS} flows, {PER_SECOND} a second: delivered a second"),
        (Unit::PerSecond, PACKED),
        runs.map(|run| run.report.delivered_per_second),
    );
    bench.compare_carried(
        part,
        "  … out of order in their flow, in all",
        (Unit::Count, Target::NeverAbove(0.0)),
        runs.map(|run| run.report.reordered as f64),
    );
    bench.compare_carried(
        part,
        "  … delay, p50",
        (Unit::Microseconds, Target::RatioShown),
        runs.map(|run| run.report.delay_p50_us),
    );
    bench.compare_carried(
        part,
        "  … CPU seconds a million delivered",
        (Unit::Ratio, Target::RatioShown),
        runs.map(|run| run.ran_s * 1e6 / run.report.delivered as f64),
    );
}

/// The link has a queue that is seen to stand.
pub fn told(bench: &mut Bench, packtrain: &Path) -> Result<()> {
    let plan = Plan {
        shape: Shape::PacketsPerSecond(PACKETS_PER_SECOND),
        ways: &BESIDE,
    };
    for small in &SIZES {
        let part = format!("{}, a link of 5000 packets/s", small.name);
        let runs = bench.in_turns_anew((packtrain, plan), &part, |line, way| {
            let hosts = (&line.a.namespace, &line.b.namespace);
            pause(SETTLE);
            Run::of(|| messages::measure_flows(hosts, way.at(), small.load(), FLOWS))
        })?;
        compare(bench, &part, &part, &runs);
    }
    Ok(())
}

/// From the last look before there was a load until trains held half of what they can.
fn packed_after(looks: &[Look], fit: f64) -> Option<Duration> {
    let begin = load_begins(looks)?;
    let packed = looks.windows(2).find(|pair| {
        let trains = pair[1].trains - pair[0].trains;
        let frames = pair[1].packed_frames - pair[0].packed_frames;
        trains > 0 && frames as f64 >= trains as f64 * fit / 2.0
    })?;
    Some(packed[1].at.saturating_duration_since(begin.at))
}

/// How many frames of that length a train of 1500 bytes holds at most, by docs/wire-format.md: 16 bytes of its own, and 3
/// in place of each Ethernet header.
fn fit(size: usize) -> f64 {
    const IP_AND_UDP_BYTES: usize = 28;
    (1500.0 - 16.0) / (size + IP_AND_UDP_BYTES + 3) as f64
}

/// Each round has a lab of its own: what was found out once is remembered for a while.
pub fn hidden(bench: &mut Bench, packtrain: &Path) -> Result<()> {
    for small in &SIZES {
        let part = format!(
            "{}, a wire of 5000 packets/s that nobody configured",
            small.name
        );
        let mut runs = Runs::of_ways(&TWO);
        let mut packed_us = Vec::new();
        for round in 0..bench.rounds {
            eprintln!("{part}: round {} of {}", round + 1, bench.rounds);
            let capped = Capped::set("capagg", packtrain, &[])?;
            let load = || Run::of(|| capped.send(capped.pt0, small.load(), FLOWS));
            let (run, looks) =
                capped.counted(bench, (&part, Way::Pt0.interface()), || capped.under(load))?;
            runs.push(Way::Pt0, run);
            let after = packed_after(&looks, fit(small.size));
            packed_us.push(after.map_or(f64::NAN, |after| after.as_secs_f64() * 1e6));
            // After it: the wire is full of it, and the line's own greetings are lost.
            pause(SETTLE);
            let bare = Run::of(|| capped.send(capped.bare, small.load(), FLOWS))?;
            runs.push(Way::Bare, bare);
        }
        compare(bench, &part, &part, &runs);
        bench.compare_carried(
            &part,
            "  … after what time trains were half full",
            (Unit::Microseconds, FOUND_WITHIN),
            Runs::of_pt0(packed_us),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::now;

    #[test]
    fn it_is_packed_when_trains_are_half_full_and_not_with_the_first_train() {
        let start = now();
        let look = |ms, direct_frames, trains, packed_frames| Look {
            at: start + Duration::from_millis(ms),
            direct_frames,
            closures: 0,
            trains,
            packed_frames,
        };
        let looks = [
            look(0, 100, 5, 5),
            look(10, 102, 6, 6),
            look(20, 400, 6, 6),
            look(30, 500, 16, 40),
            look(40, 500, 26, 120),
        ];
        // The load begins after the second look.
        assert_eq!(packed_after(&looks, 16.0), Some(Duration::from_millis(30)));
        assert_eq!(packed_after(&looks, 6.0), Some(Duration::from_millis(20)));
        assert_eq!(packed_after(&looks, 30.0), None);
        assert_eq!(packed_after(&[], 16.0), None);
    }

    #[test]
    fn as_many_fit_as_is_said_beside_the_sizes() {
        assert!((fit(60) - 16.3).abs() < 0.05 && (fit(18) - 30.3).abs() < 0.05);
    }
}
