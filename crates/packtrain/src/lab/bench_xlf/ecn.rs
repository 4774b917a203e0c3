//! Marks against XL loss, which the paper leaves open: the same XL flows over a wire that drops, and over one that
//! marks instead. Each XL frame that is lost is 13 packets that go again.

use std::path::Path;
use std::time::Duration;

use super::flows::{self, Times};
use super::in_turns;
use super::wires::{Plan, Wires};
use crate::lab::Result;
use crate::lab::emulator::counters::DirectionStatus;
use crate::lab::figure::{Target, Unit};
use crate::lab::one_link::way::Way;
use crate::lab::one_link::{Bench, Row};

const FLOWS: usize = 10;
const TIMES: Times = Times {
    ignored: Duration::ZERO,
    counted: Duration::from_secs(20),
};
/// Far above what CoDel lets stand: what is dropped, it has dropped.
const QUEUE_BYTES: u64 = 8 << 20;
const PORT: u16 = 7302;

/// What became of the XL frames of a run, and what their flows had.
#[derive(Clone, Copy, Debug)]
struct Carried {
    offered: u64,
    dropped: u64,
    marked: u64,
    goodput_bps: f64,
}

impl Carried {
    fn between(before: &DirectionStatus, after: &DirectionStatus, goodput_bps: f64) -> Carried {
        Carried {
            offered: after.offered_frames - before.offered_frames,
            dropped: after.dropped.total() - before.dropped.total(),
            marked: after.marked_frames - before.marked_frames,
            goodput_bps,
        }
    }
}

const ROWS: [Row<Carried>; 3] = [
    (
        "share of XL frames dropped",
        (Unit::Ratio, Target::RatioAtMost(0.05)),
        |carried| carried.dropped as f64 / carried.offered as f64,
    ),
    ("share marked", (Unit::Ratio, Target::Shown), |carried| {
        carried.marked as f64 / carried.offered as f64
    }),
    (
        "goodput",
        (Unit::BitPerSecond, Target::RatioShown),
        |carried| carried.goodput_bps,
    ),
];

pub fn measure(bench: &mut Bench, packtrain: &Path) -> Result<()> {
    let plan = Plan {
        tag: "ecn",
        queue_bytes: QUEUE_BYTES,
        ecn: true,
    };
    let disciplines = [
        "codel",
        "codel:ecn",
        "fq-codel:19500b",
        "fq-codel:19500b,ecn",
    ];
    let wires = Wires::set(packtrain, plan, &disciplines)?;
    for (part, first) in [
        (
            "10 XL flows, a wire of 100 Mbit/s without pt0 (bare: codel, in pt0's place: codel:ecn)",
            0,
        ),
        (
            "the same (bare: fq-codel:19500b, in pt0's place: with ,ecn)",
            2,
        ),
    ] {
        let runs = in_turns(bench, part, |_, way| {
            let number = first + usize::from(way == Way::Pt0);
            let before = wires.counters(number)?;
            let hosts = [&wires.a, &wires.b];
            let goodput = flows::carry(hosts, wires.at(number, PORT), &[None; FLOWS], TIMES)?;
            let after = wires.counters(number)?;
            Ok(Carried::between(&before, &after, goodput.iter().sum()))
        })?;
        bench.compare_rows(part, &ROWS, &runs);
    }
    Ok(())
}
