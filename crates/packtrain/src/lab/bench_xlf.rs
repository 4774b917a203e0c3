//! `packtrain bench xlf`: very large frames for elephants beside packets for mice, as the XLF paper has it, live. Each
//! part stands on hosts and wires of its own, measures with and without what is promised in turns, and says by the
//! line's own counters which path carried its frames.

mod ber;
mod cables;
mod ecn;
mod flows;
mod jain;
mod mice;
mod units;
mod wait;
mod wires;

use std::path::Path;

use super::bench_options::{Options, Rounds};
use super::namespaces::clean_up_on_signals;
use super::one_link::Bench;
use super::one_link::figure::Runs;
use super::one_link::stage::SETTLE;
use super::one_link::way::Way;
use super::{Result, pause};

/// What can be measured alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Small packets beside an elephant: how long they wait, and what the elephant has beside them
    Wait,
    /// Flows of 50 kB beside elephants: how long each takes, from its first packet to its last byte
    Mice,
    /// Who gets what of a line, 10 flows of packets and 10 of XL frames: drop tail, and by bytes
    Jain,
    /// XL frames that are dropped, and marked instead
    Ecn,
    /// Trains as long as a wire's bit errors want them, against fixed sizes
    Ber,
    /// Data units and processor time for a GB of one elephant, against packets of 1500 bytes
    Units,
}

impl Rounds for Part {}

type Measure = fn(&mut Bench, &Path) -> Result<()>;

/// In this order.
const PARTS: [(Part, Measure); 6] = [
    (Part::Wait, wait::measure),
    (Part::Mice, mice::measure),
    (Part::Jain, jain::measure),
    (Part::Ecn, ecn::measure),
    (Part::Ber, ber::measure),
    (Part::Units, units::measure),
];

/// Measures everything, prints the tables, and writes the report. Whether every promise holds.
pub fn run(packtrain: &Path, options: &Options<Part>) -> Result<bool> {
    super::check_available()?;
    clean_up_on_signals()?;
    let mut bench = Bench::new(options.rounds());
    for (part, measure) in PARTS {
        if options.wants(&part) {
            measure(&mut bench, packtrain)?;
        }
    }
    bench.finish(options)
}

/// Measures the bare way and `pt0` in turns; who begins alternates as well.
fn in_turns<T>(
    bench: &mut Bench,
    part: &str,
    measure: impl FnMut(&mut Bench, Way) -> Result<T>,
) -> Result<Runs<T>> {
    in_turns_of(cables::WAYS, bench, part, measure)
}

/// … each of these ways.
fn in_turns_of<T, const N: usize>(
    mut ways: [Way; N],
    bench: &mut Bench,
    part: &str,
    mut measure: impl FnMut(&mut Bench, Way) -> Result<T>,
) -> Result<Runs<T>> {
    let mut runs = Runs::of_ways(&ways);
    for round in 0..bench.rounds {
        eprintln!("{part}: round {} of {}", round + 1, bench.rounds);
        for way in ways {
            pause(SETTLE);
            runs.push(way, measure(bench, way)?);
        }
        ways.rotate_left(1);
    }
    Ok(runs)
}
