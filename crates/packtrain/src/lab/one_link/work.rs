//! What passing costs: how much of bulk is left of it, and what the whole machine worked for that.

use std::time::Duration;

use super::Bench;
use super::figure::Runs;
use super::stage::{Line, cpu_of_host};
use super::way::Way;
use crate::lab::figure::{Target, Unit};
use crate::lab::measure::{self, Bulk};
use crate::lab::namespaces::Namespace;
use crate::lab::processors::{RunTimes, Ticks, seconds_per_gigabyte};
use crate::lab::{Error, Result};

pub const AS_GOOD: Target = Target::RatioAtLeast(0.93);

/// What a transfer carried.
#[derive(Clone, Copy, Debug)]
pub struct Carried {
    pub goodput_bps: f64,
    /// How long it did.
    pub seconds: f64,
    pub sent_again: u64,
}

/// And what the whole machine worked for it: programs, the kernel, interrupts of both kinds.
#[derive(Clone, Copy, Debug)]
pub struct Worked {
    pub goodput_bps: f64,
    pub sent_again: u64,
    pub seconds_per_gigabyte: f64,
}

impl Worked {
    pub fn during(transfer: impl FnOnce() -> Result<Carried>) -> Result<Worked> {
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

/// Runs `measure`, and how many seconds of a processor all threads of the machine ran meanwhile.
pub fn ran_during<T>(measure: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    let times = || {
        RunTimes::now().map_err(|source| Error::File {
            path: "/proc".to_owned(),
            source,
        })
    };
    let before = times()?;
    let result = measure()?;
    Ok((result, times()?.since_s(&before)))
}

fn ticks() -> Result<Ticks> {
    Ticks::now().map_err(|source| Error::File {
        path: "/proc/stat".to_owned(),
        source,
    })
}

/// A transfer of iperf3, each end of it on a CPU of its own.
pub fn pinned(line: &Line, way: Way, more: &[&str]) -> Result<Worked> {
    let pinned = own_cpus();
    let words = [&["-A", &pinned][..], more].concat();
    Worked::during(|| line.bulk(way, &words).map(Carried::from))
}

/// … between two hosts.
pub fn pinned_between(from: &Namespace, to: &str, duration: Duration) -> Result<Worked> {
    let bulk = || measure::bulk(from, to, duration, &["-A", &own_cpus()]);
    Worked::during(|| bulk().map(Carried::from))
}

fn own_cpus() -> String {
    format!("{},{}", cpu_of_host(0), cpu_of_host(1))
}

impl From<Bulk> for Carried {
    fn from(bulk: Bulk) -> Carried {
        Carried {
            goodput_bps: bulk.goodput_bps,
            seconds: bulk.seconds,
            sent_again: bulk.retransmits,
        }
    }
}

/// Names of the rows of a transfer: how fast it went, and what it cost.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    pub speed: &'static str,
    pub work: &'static str,
    pub work_target: Target,
}

pub fn compare(bench: &mut Bench, part: &str, rows: &Rows, runs: &Runs<Worked>) {
    let goodput = runs.map(|worked| worked.goodput_bps);
    bench.compare_carried(part, rows.speed, (Unit::BitPerSecond, AS_GOOD), goodput);
    let work = runs.map(|worked| worked.seconds_per_gigabyte);
    bench.compare_carried(part, rows.work, (Unit::Ratio, rows.work_target), work);
    // Of frames that were lost, or that came out of order: why it may have been slow.
    bench.compare(
        "  … segments sent again: more than bare",
        Unit::Count,
        Target::DifferenceShown,
        runs.map(|worked| worked.sent_again as f64),
    );
}

/// One TCP flow by each of these ways.
pub fn bulk(bench: &mut Bench, line: &Line, ways: &[Way]) -> Result<()> {
    let part = "bulk TCP, one flow";
    let runs = bench.in_turns_of(ways, part, line, |way| pinned(line, way, &[]))?;
    let rows = Rows {
        speed: "bulk TCP, one flow, unshaped veth",
        work: "  … CPU seconds per GB, whole machine",
        work_target: Target::RatioAtMost(1.1),
    };
    compare(bench, part, &rows, &runs);
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
