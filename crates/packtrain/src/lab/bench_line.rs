//! `packtrain bench line`: `pt0` against the bare cable, in turns, so that whatever else the
//! machine does falls on both. Each row is a promise, with what was measured and whether it holds.
//! Where the cable is not shaped, a line without the direct path and a bare relay ([`super::relay`])
//! take their turns as well.

mod parts;

use std::path::Path;

use self::parts::{MANY_FLOWS, ONE_FLOW};
use super::Result;
use super::bench_options::{Options, Rounds};
use super::namespaces::clean_up_on_signals;
use super::one_link::stage::{Line, Plan, Shape};
use super::one_link::way::Way;
use super::one_link::{self, Bench};

const UNSHAPED: Plan<'_> = Plan {
    shape: Shape::Unshaped,
    ways: &[Way::Bare, Way::Relay, Way::Engine, Way::Pt0],
};
/// Neither a relay nor a line without the direct path: a shaper is slower than any program.
const SHAPED: Plan<'_> = Plan {
    shape: Shape::Mbit(100),
    ways: &[Way::Bare, Way::Pt0],
};

/// What can be measured alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// One TCP flow over an unshaped link
    Bulk,
    /// Small UDP messages over an unshaped link
    Messages,
    /// Round trips on an idle line
    Idle,
    /// From `up` to the first ping
    Start,
    /// One TCP flow over 100 Mbit/s, and pings beside it
    Shaped,
    /// Many TCP flows over 100 Mbit/s, and pings beside them
    Many,
    /// Small UDP messages beside a TCP flow over 100 Mbit/s
    Beside,
}

impl Rounds for Part {}

/// Measures everything, prints the table, and writes the report. Whether every promise holds.
pub fn run(packtrain: &Path, options: &Options<Part>) -> Result<bool> {
    super::check_available()?;
    clean_up_on_signals()?;
    let mut bench = Bench::new(options.rounds());
    let wanted = |part| options.wants(&part);
    if [Part::Bulk, Part::Messages, Part::Idle, Part::Start]
        .into_iter()
        .any(wanted)
    {
        let unshaped = Line::set(packtrain, UNSHAPED)?;
        if wanted(Part::Bulk) {
            parts::bulk(&mut bench, &unshaped)?;
        }
        if wanted(Part::Messages) {
            one_link::parts::messages(&mut bench, &unshaped, unshaped.ways())?;
        }
        // After the load.
        parts::memory(&mut bench, &unshaped)?;
        if wanted(Part::Idle) {
            parts::idle(&mut bench, &unshaped)?;
        }
        if wanted(Part::Start) {
            parts::start(&mut bench, &unshaped)?;
        }
    }
    if [Part::Shaped, Part::Many, Part::Beside]
        .into_iter()
        .any(wanted)
    {
        let shaped = Line::set(packtrain, SHAPED)?;
        if wanted(Part::Shaped) {
            parts::bulk_shaped(&mut bench, &shaped, &ONE_FLOW)?;
        }
        if wanted(Part::Many) {
            parts::bulk_shaped(&mut bench, &shaped, &MANY_FLOWS)?;
        }
        if wanted(Part::Beside) {
            one_link::parts::messages_beside_bulk(&mut bench, &shaped, shaped.ways())?;
        }
    }
    bench.finish(options)
}
