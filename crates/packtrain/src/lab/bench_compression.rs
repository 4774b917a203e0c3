//! `packtrain bench compression`: what coded trains bring, and that they cost nothing where they bring nothing. `pt0`
//! against the bare wire in the same round, and against a line that does not code; each row says by the line's own
//! counters which path carried its frames, and how many a train held.

mod capped;
mod coded;
mod speed;
mod traffic;

use std::path::Path;

use super::Result;
use super::bench_options::{Options, Rounds};
use super::namespaces::clean_up_on_signals;
use super::one_link::Bench;
use super::one_link::way::Way;

/// What can be measured alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Coding and restoring by themselves, on one core
    Speed,
    /// The smallest UDP frames of 64 flows and of one, over a link that carries 5000 packets a second
    Capped,
    /// The same behind a wire of which nobody has told the line
    Hidden,
}

impl Rounds for Part {
    const DEFAULT: &'static str = "3";
}

/// The link as it is, `pt0`, and a line that does not code.
const UNCODED: [Way; 3] = [Way::Bare, Way::Pt0, Way::Uncoded];
/// And a program that packs small packets.
const BESIDE: [Way; 4] = [Way::Bare, Way::Pt0, Way::Uncoded, Way::Simplemux];

/// Measures everything, prints the tables, and writes the report. Whether every promise holds.
pub fn run(packtrain: &Path, options: &Options<Part>) -> Result<bool> {
    super::check_available()?;
    clean_up_on_signals()?;
    let mut bench = Bench::new(options.rounds());
    if options.wants(&Part::Speed) {
        speed::measure(&mut bench);
    }
    if options.wants(&Part::Capped) {
        capped::told(&mut bench, packtrain)?;
    }
    // They make labs, which are taken away on signals in a way of their own.
    if options.wants(&Part::Hidden) {
        capped::hidden(&mut bench, packtrain)?;
    }
    bench.finish(options)
}
