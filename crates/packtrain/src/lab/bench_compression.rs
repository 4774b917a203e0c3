//! `packtrain bench compression`: what coded trains bring, and that they cost nothing where they bring nothing. `pt0`
//! against the bare wire in the same round, and against a line that does not code; each row says by the line's own
//! counters which path carried its frames, and how many a train held.

mod bulk;
mod capped;
mod carried;
mod coded;
mod requests;
mod search;
mod speed;
mod streams;
mod traffic;

use std::path::Path;

use super::Result;
use super::bench_options::{Options, Rounds};
use super::namespaces::clean_up_on_signals;
use super::one_link::Bench;
use super::one_link::stage::{Line, Plan, Shape};
use super::one_link::way::Way;

/// What can be measured alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Coding and restoring by themselves, on one core
    Speed,
    /// Small UDP datagrams, of 60 and of 18 bytes, of 64 flows and of one, over a link that carries 5000
    /// packets a second
    Capped,
    /// The same behind a wire of which nobody has told the line
    Hidden,
    /// Telephone calls over 1 Mbit/s: how many are carried well
    Calls,
    /// Players of a game over 1 Mbit/s: how many are carried well
    Games,
    /// Requests of an API and of a file system, 8 and 32 at once, over 10 Mbit/s
    Requests,
    /// One TCP flow, of what shrinks and of what does not, over an unshaped link, 100 and 10 Mbit/s
    Bulk,
}

impl Rounds for Part {
    const DEFAULT: &'static str = "3";
}

/// The link as it is, `pt0`, and a line that does not code.
const UNCODED: [Way; 3] = [Way::Bare, Way::Pt0, Way::Uncoded];
/// And a program that packs small packets.
const BESIDE: [Way; 4] = [Way::Bare, Way::Pt0, Way::Uncoded, Way::Simplemux];

type Measure = fn(&mut Bench, &Line) -> Result<()>;

/// What stands between two hosts, and what is measured there, in this order.
const STAGES: [(Plan<'_>, &[(Part, Measure)]); 3] = [
    (
        over(Shape::Mbit(requests::RATE_MBIT)),
        &[
            (Part::Requests, requests::measure),
            (Part::Bulk, |bench, line| {
                bulk::measure(bench, line, "10 Mbit/s")
            }),
        ],
    ),
    (
        over(Shape::Mbit(100)),
        &[(Part::Bulk, |bench, line| {
            bulk::measure(bench, line, "100 Mbit/s")
        })],
    ),
    (
        over(Shape::Unshaped),
        &[(Part::Bulk, |bench, line| {
            bulk::measure(bench, line, "unshaped")
        })],
    ),
];

const fn over(shape: Shape) -> Plan<'static> {
    Plan {
        shape,
        ways: &UNCODED,
    }
}

/// Measures everything, prints the tables, and writes the report. Whether every promise holds.
pub fn run(packtrain: &Path, options: &Options<Part>) -> Result<bool> {
    super::check_available()?;
    clean_up_on_signals()?;
    let mut bench = Bench::new(options.rounds());
    if options.wants(&Part::Speed) {
        speed::measure(&mut bench)?;
    }
    if options.wants(&Part::Capped) {
        capped::told(&mut bench, packtrain)?;
    }
    if options.wants(&Part::Calls) {
        carried::calls(&mut bench, packtrain)?;
    }
    if options.wants(&Part::Games) {
        carried::games(&mut bench, packtrain)?;
    }
    for (plan, parts) in STAGES {
        let wanted = parts.iter().filter(|(part, _)| options.wants(part));
        let wanted: Vec<Measure> = wanted.map(|&(_, measure)| measure).collect();
        if wanted.is_empty() {
            continue;
        }
        let line = Line::set(packtrain, plan)?;
        for measure in wanted {
            measure(&mut bench, &line)?;
        }
    }
    // They make labs, which are taken away on signals in a way of their own.
    if options.wants(&Part::Hidden) {
        capped::hidden(&mut bench, packtrain)?;
    }
    bench.finish(options)
}
