//! Where nothing is short but the processors: what passing costs.

use std::time::Duration;

use super::{ALL, LINES};
use crate::lab::exchange::{self, Blocks, Exchanged};
use crate::lab::figure::{Target, Unit};
use crate::lab::one_link::figure::Runs;
use crate::lab::one_link::stage::{Line, ONE_CPU, cpu_of_host};
use crate::lab::one_link::way::Way;
use crate::lab::one_link::work::{self, AS_GOOD, Carried, Rows, Worked, compare, pinned};
use crate::lab::one_link::{Bench, parts};
use crate::lab::{Result, datagrams};

const DATAGRAMS: Duration = Duration::from_secs(2);
/// Short, and many: what else the machine does falls on all ways alike.
const BLOCKS: Blocks = Blocks {
    exchanges: 200,
    blocks: 25,
};

pub fn bulk(bench: &mut Bench, line: &Line) -> Result<()> {
    work::bulk(bench, line, &ALL)
}

pub fn flows(bench: &mut Bench, line: &Line) -> Result<()> {
    let part = "bulk TCP, 8 flows";
    let runs = bench.in_turns_of(&LINES, part, line, |way| pinned(line, way, &["-P", "8"]))?;
    let rows = Rows {
        speed: "bulk TCP, 8 flows",
        work: "  … CPU seconds per GB",
        work_target: Target::RatioShown,
    };
    compare(bench, part, &rows, &runs);
    Ok(())
}

pub fn both_directions(bench: &mut Bench, line: &Line) -> Result<()> {
    let part = "bulk TCP, both directions";
    let runs = bench.in_turns_of(&LINES, part, line, |way| pinned(line, way, &["--bidir"]))?;
    let rows = Rows {
        speed: "bulk TCP, both directions at once, sum",
        work: "  … CPU seconds per GB",
        work_target: Target::RatioShown,
    };
    compare(bench, part, &rows, &runs);
    Ok(())
}

pub fn datagrams(bench: &mut Bench, line: &Line) -> Result<()> {
    let part = "UDP with GSO and GRO";
    let from = (&line.a.namespace, cpu_of_host(0));
    let to = (&line.b.namespace, cpu_of_host(1));
    let runs = bench.in_turns_of(&LINES, part, line, |way| {
        let mut arrived = datagrams::Arrived::default();
        let worked = Worked::during(|| {
            arrived = datagrams::measure(from, to, way.at(), DATAGRAMS)?;
            Ok(Carried {
                goodput_bps: arrived.goodput_bps(),
                seconds: arrived.seconds(),
                sent_again: 0,
            })
        })?;
        Ok((worked, arrived))
    })?;
    let goodput = runs.map(|(worked, _)| worked.goodput_bps);
    bench.compare(
        "UDP with GSO and GRO, delivered",
        Unit::BitPerSecond,
        AS_GOOD,
        goodput,
    );
    let worked = runs.map(|(worked, _)| worked.seconds_per_gigabyte);
    bench.compare(
        "  … CPU seconds per GB",
        Unit::Ratio,
        Target::RatioShown,
        worked,
    );
    bench.compare(
        "  … share delivered of what was sent",
        Unit::Ratio,
        Target::Shown,
        runs.map(|(_, arrived)| arrived.bytes as f64 / arrived.sent_bytes as f64),
    );
    Ok(())
}

/// By a class the direct path is forced: `auto` would measure packing where that carries more.
const MESSAGES: [Way; 4] = [Way::Bare, Way::Engine, Way::Direct, Way::Pt0];

/// Small frames, each of which costs what a frame costs: what the direct path carries, and whether `pt0` takes what carries
/// more. First what is sent into a veth is taken in by the sender's processor,
/// as where nobody has set anything. Then by a processor that is set for it, which is the receiving program's as well: what
/// it spends on frames that come in, that program has not.
pub fn messages(bench: &mut Bench, line: &Line) -> Result<()> {
    line.receive_where_it_comes()?;
    let runs = parts::small_messages(bench, "64 B UDP, unshaped", line, &MESSAGES)?;
    let directly = runs.of_instead(Way::Direct);
    let against_best = runs.against_best_of(&[Way::Engine, Way::Direct]);
    let mut compare = |name, target, runs| bench.compare(name, Unit::PerSecond, target, runs);
    let least = Target::RatioAtLeast(0.8);
    compare("64 B UDP delivered, unshaped", least, runs);
    compare("  … a line that sends all directly", least, directly);
    compare(
        "  … against the better of engine only and direct only",
        AS_GOOD,
        against_best,
    );
    line.receive_as_set()?;
    let part = "64 B UDP, unshaped, a processor set for what comes in";
    let runs = parts::small_messages(bench, part, line, &MESSAGES)?;
    bench.compare(
        "  … a processor set for what comes in",
        Unit::PerSecond,
        Target::RatioShown,
        runs,
    );
    Ok(())
}

/// All ways in one conversation each, and a short block of each in turns.
pub fn idle(bench: &mut Bench, line: &Line) -> Result<()> {
    line.move_to_one_cpu()?;
    let part = "UDP exchanges, one CPU";
    let mut runs = Runs::of_ways(&ALL);
    let ways = line.available(&ALL);
    let addresses: Vec<_> = ways.iter().map(|way| way.at()).collect();
    bench.each_round(part, line, |_| {
        let ends = (&line.a.namespace, &line.b.namespace);
        let blocks = exchange::in_blocks(ends, &addresses, ONE_CPU, BLOCKS)?;
        for (&way, blocks) in ways.iter().zip(&blocks) {
            runs.push(way, Exchanged::of(blocks));
        }
        Ok(())
    })?;
    bench.compare(
        "RTT of a UDP exchange on an idle line, both ends on one CPU, p50: added",
        Unit::Microseconds,
        Target::DifferenceAtMost(3.0),
        runs.map(|exchanged| exchanged.p50_us),
    );
    bench.compare(
        "  … p99: added",
        Unit::Microseconds,
        Target::DifferenceAtMost(10.0),
        runs.map(|exchanged| exchanged.p99_us),
    );
    Ok(())
}
