//! How long flows of 50 kB take beside elephants: each opens at a moment of its own, and is over when the other end has said that
//! the last byte is there. Both ends of the bare link have its queue; through `pt0` each flow has a turn of its own.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use packtrain_sim::random::Random;

use super::cables::{Cable, Cables, Plan};
use super::in_turns_of;
use super::wait::Waits;
use crate::lab::figure::{Target, Unit};
use crate::lab::namespaces::Namespace;
use crate::lab::one_link::way::Way;
use crate::lab::one_link::{Bench, Row};
use crate::lab::{Result, measure, pause, short_flows};

const RATE_MBIT: u32 = 100;
/// What ends with less is a mouse in the paper.
const MOUSE_BYTES: usize = 50_000;
/// Together they bring a tenth of what the line carries, as in the scenario `xlf-mice`.
const GAP_MEAN: Duration = Duration::from_millis(40);
/// As iperf3 has it.
const ELEPHANTS: &str = "2";
/// 400 flows beside elephants: four of them are the slowest hundredth.
const LASTS: Duration = Duration::from_secs(16);
const ALONE_LASTS: Duration = Duration::from_secs(3);
/// The elephants' windows have grown by then; and they are there until the last mouse has ended.
const SETTLES: Duration = Duration::from_secs(2);
const PORT: u16 = 7341;

const WAYS: [Way; 3] = [Way::Bare, Way::Pt0, Way::ShortFirst];
const PART: &str = "flows of 50 kB beside 2 elephants, 100 Mbit/s";

/// One run of one way.
#[derive(Clone, Debug)]
struct Run {
    beside: Waits,
    alone: Waits,
    elephants_bps: f64,
}

const ROWS: [Row<Run>; 5] = [
    (
        "p50 of their time",
        (Unit::Microseconds, Target::RatioAtMost(1.0)),
        |run| run.beside.at(0.5),
    ),
    (
        "p99",
        (Unit::Microseconds, Target::RatioAtMost(0.7)),
        |run| run.beside.at(0.99),
    ),
    (
        "p50 without elephants",
        (Unit::Microseconds, Target::RatioShown),
        |run| run.alone.at(0.5),
    ),
    (
        "the elephants' goodput",
        (Unit::BitPerSecond, Target::RatioShown),
        |run| run.elephants_bps,
    ),
    (
        "flows that broke",
        (Unit::Count, Target::NeverAbove(0.0)),
        |run| (run.beside.lost + run.alone.lost) as f64,
    ),
];

pub fn measure(bench: &mut Bench, packtrain: &Path) -> Result<()> {
    let cable = Cable {
        mtu: 1500,
        whole: true,
        rate_mbit: Some(RATE_MBIT),
    };
    let plan = Plan {
        bare: cable,
        under_pt0: cable,
        up: &[],
    };
    let cables = Cables::set(packtrain, plan)?;
    cables.add(Way::ShortFirst, cable, &["--short-flows-first"])?;
    for host in [&cables.a, &cables.b] {
        // Each mouse is the first that its host sends there, and not the heir of an elephant's window.
        host.namespace.sysctl("net/ipv4/tcp_no_metrics_save", "1")?;
    }
    let mut turn = 0;
    let runs = in_turns_of(WAYS, bench, PART, |bench, way| {
        // The same moments for all ways of a round.
        let seed = turn / WAYS.len() as u64;
        turn += 1;
        match way.line() {
            Some(line) => cables.counted_by(line, bench, PART, || run(&cables, way, seed)),
            None => run(&cables, way, seed),
        }
    })?;
    bench.compare_rows(PART, &ROWS, &runs);
    Ok(())
}

fn run(cables: &Cables, way: Way, seed: u64) -> Result<Run> {
    let hosts = [&cables.a.namespace, &cables.b.namespace];
    let at = SocketAddr::new(way.at().ip(), PORT);
    let alone = mice(hosts, at, &moments(seed, ALONE_LASTS))?;
    let elephants = || {
        let lasts = LASTS + 2 * SETTLES;
        measure::bulk(hosts[0], &way.to(), lasts, &["-P", ELEPHANTS])
    };
    let (beside, elephants) = std::thread::scope(|scope| {
        let elephants = scope.spawn(elephants);
        pause(SETTLES);
        let beside = mice(hosts, at, &moments(seed, LASTS));
        let elephants = elephants.join();
        (beside, elephants.expect("they have no reason to panic"))
    });
    Ok(Run {
        beside: beside?,
        alone,
        elephants_bps: elephants?.goodput_bps,
    })
}

/// When flows open: a Poisson process.
fn moments(seed: u64, lasts: Duration) -> Vec<Duration> {
    let mut random = Random::new(seed);
    let next = |&at: &Duration| Some(at + random.exponential(GAP_MEAN));
    let moments = std::iter::successors(Some(Duration::ZERO), next);
    moments.take_while(|&at| at < lasts).collect()
}

/// How long each took that opened at these moments, µs.
fn mice(hosts: [&Namespace; 2], at: SocketAddr, moments: &[Duration]) -> Result<Waits> {
    let took = short_flows::carry(hosts, at, MOUSE_BYTES, moments)?;
    let micros = took.iter().map(|took| took.as_secs_f64() * 1e6);
    Ok(Waits::of(micros.collect(), moments.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_as_many_as_a_tenth_of_the_line_and_the_same_for_a_seed() {
        let all = moments(7, LASTS);
        assert_eq!(all, moments(7, LASTS));
        assert_ne!(all, moments(8, LASTS));
        assert!(all.is_sorted() && all[all.len() - 1] < LASTS);
        let bps = (all.len() * MOUSE_BYTES * 8) as f64 / LASTS.as_secs_f64();
        let share = bps / (f64::from(RATE_MBIT) * 1e6);
        assert!((0.08..0.12).contains(&share), "{share}");
    }
}
