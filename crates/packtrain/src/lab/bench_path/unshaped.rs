//! Where nothing is short but the processors: what passing costs.

use std::time::Duration;

use super::{ALL, LINES};
use crate::lab::exchange::{self, Blocks, Exchanged};
use crate::lab::figure::{Target, Unit};
use crate::lab::one_link::figure::Runs;
use crate::lab::one_link::stage::{Line, ONE_CPU, cpu_of_host};
use crate::lab::one_link::way::Way;
use crate::lab::one_link::{Bench, parts};
use crate::lab::processors::{Ticks, seconds_per_gigabyte};
use crate::lab::{Error, Result, datagrams};

const AS_GOOD: Target = Target::RatioAtLeast(0.93);
const DATAGRAMS: Duration = Duration::from_secs(2);
/// Short, and many: what else the machine does falls on all ways alike.
const BLOCKS: Blocks = Blocks {
    exchanges: 200,
    blocks: 25,
};

/// What a transfer carried.
struct Carried {
    goodput_bps: f64,
    /// How long it did.
    seconds: f64,
    sent_again: u64,
}

/// And what the whole machine worked for it: programs, the kernel, interrupts of both kinds.
struct Worked {
    goodput_bps: f64,
    sent_again: u64,
    seconds_per_gigabyte: f64,
}

impl Worked {
    fn during(transfer: impl FnOnce() -> Result<Carried>) -> Result<Worked> {
        let before = ticks()?;
        let carried = transfer()?;
        let busy_s = ticks()?.busy_since_s(before);
        let bytes = carried.goodput_bps * carried.seconds / 8.0;
        Ok(Worked {
            goodput_bps: carried.goodput_bps,
            sent_again: carried.sent_again,
            seconds_per_gigabyte: seconds_per_gigabyte(busy_s, bytes),
        })
    }
}

fn ticks() -> Result<Ticks> {
    Ticks::now().map_err(|source| Error::File {
        path: "/proc/stat".to_owned(),
        source,
    })
}

/// A transfer of iperf3, each end of it on a CPU of its own.
fn pinned(line: &Line, way: Way, more: &[&str]) -> Result<Worked> {
    let pinned = format!("{},{}", cpu_of_host(0), cpu_of_host(1));
    let words = [&["-A", &pinned][..], more].concat();
    Worked::during(|| {
        let bulk = line.bulk(way, &words)?;
        Ok(Carried {
            goodput_bps: bulk.goodput_bps,
            seconds: bulk.seconds,
            sent_again: bulk.retransmits,
        })
    })
}

/// Names of the rows of a transfer: how fast it went, and what it cost.
struct Rows {
    speed: &'static str,
    work: &'static str,
    work_target: Target,
}

fn compare(bench: &mut Bench, rows: &Rows, runs: &Runs<Worked>) {
    let goodput = runs.map(|worked| worked.goodput_bps);
    bench.compare(rows.speed, Unit::BitPerSecond, AS_GOOD, goodput);
    let work = runs.map(|worked| worked.seconds_per_gigabyte);
    bench.compare(rows.work, Unit::Ratio, rows.work_target, work);
    // Of frames that were lost, or that came out of order: why it may have been slow.
    bench.compare(
        "  … segments sent again: more than bare",
        Unit::Count,
        Target::DifferenceShown,
        runs.map(|worked| worked.sent_again as f64),
    );
}

pub fn bulk(bench: &mut Bench, line: &Line) -> Result<()> {
    let part = "bulk TCP, one flow";
    let runs = bench.in_turns_of(&ALL, part, line, |way| pinned(line, way, &[]))?;
    let rows = Rows {
        speed: "bulk TCP, one flow, unshaped veth",
        work: "  … CPU seconds per GB, whole machine",
        work_target: Target::RatioAtMost(1.1),
    };
    compare(bench, &rows, &runs);
    Ok(())
}

pub fn flows(bench: &mut Bench, line: &Line) -> Result<()> {
    let part = "bulk TCP, 8 flows";
    let runs = bench.in_turns_of(&LINES, part, line, |way| pinned(line, way, &["-P", "8"]))?;
    let rows = Rows {
        speed: "bulk TCP, 8 flows",
        work: "  … CPU seconds per GB",
        work_target: Target::RatioShown,
    };
    compare(bench, &rows, &runs);
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
    compare(bench, &rows, &runs);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_told_by_the_gigabyte_that_came_and_of_nothing_is_no_number() {
        let worked = |goodput_bps| {
            let carried = Carried {
                goodput_bps,
                seconds: 2.0,
                sent_again: 3,
            };
            Worked::during(|| Ok(carried)).unwrap()
        };
        let some = worked(8e9);
        assert_eq!((some.goodput_bps, some.sent_again), (8e9, 3));
        // In no time: a tick or two of this machine, of 2 · 10⁹ bytes.
        assert!(some.seconds_per_gigabyte < 1.0);
        assert!(worked(0.0).seconds_per_gigabyte.is_nan());
    }
}
