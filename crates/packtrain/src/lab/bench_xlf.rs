//! `packtrain bench xlf`: very large frames for elephants beside packets for mice, as the XLF paper has it, live. Each
//! part stands on hosts and wires of its own, measures with and without what is promised in turns, and says by the
//! line's own counters which path carried its frames.

mod cables;
mod units;

use std::path::Path;

use super::Result;
use super::bench_options::{Options, Rounds};
use super::namespaces::clean_up_on_signals;
use super::one_link::Bench;

/// What can be measured alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Data units and processor time for a GB of one elephant, against packets of 1500 bytes
    Units,
}

impl Rounds for Part {}

type Measure = fn(&mut Bench, &Path) -> Result<()>;

/// In this order.
const PARTS: [(Part, Measure); 1] = [(Part::Units, units::measure)];

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
