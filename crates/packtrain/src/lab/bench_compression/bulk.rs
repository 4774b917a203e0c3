//! One TCP flow, by a line as it is and by one that does not code: what cannot be compressed may not be slower for the
//! trying.

use super::UNCODED;
use crate::lab::Result;
use crate::lab::figure::{Target, Unit};
use crate::lab::one_link::Bench;
use crate::lab::one_link::stage::Line;
use crate::lab::one_link::way::Way;
use crate::lab::one_link::work::{self, Worked};

/// More rounds than of other things: it is about the hundredth part.
const ROUNDS_TIMES: usize = 3;
const AS_FAST: Target = Target::RatioAtLeast(0.99);

/// What iperf3 sends, unless it is told, is 128 KiB of random bytes again and again; a train holds two in a hundred of these.
const RANDOM: (&str, &[&str]) = ("random bytes", &[]);
const DIGITS: (&str, &[&str]) = ("digits", &["--repeating-payload"]);

pub fn measure(bench: &mut Bench, line: &Line, link: &str) -> Result<()> {
    let rounds = bench.rounds;
    bench.rounds = rounds * ROUNDS_TIMES;
    let measured = [RANDOM, DIGITS]
        .into_iter()
        .try_for_each(|payload| of(bench, line, link, payload));
    bench.rounds = rounds;
    measured
}

fn of(bench: &mut Bench, line: &Line, link: &str, (what, more): (&str, &[&str])) -> Result<()> {
    let part = format!("one TCP flow of {what}, {link}");
    let runs = bench.in_turns_of(&UNCODED, &part, line, |way| work::pinned(line, way, more))?;
    let goodput = runs.map(|worked| worked.goodput_bps);
    bench.compare_carried(
        &part,
        format!("{part}: against the bare link"),
        (Unit::BitPerSecond, Target::RatioShown),
        goodput.clone(),
    );
    bench.compare_carried(
        &part,
        "  … against a line that does not code",
        (Unit::BitPerSecond, AS_FAST),
        goodput.against_best_of(&[Way::Uncoded]),
    );
    let work = |worked: &Worked| worked.seconds_per_gigabyte;
    bench.compare_carried(
        &part,
        "  … CPU seconds per GB, whole machine",
        (Unit::Ratio, Target::RatioShown),
        runs.map(work).against_best_of(&[Way::Uncoded]),
    );
    Ok(())
}
