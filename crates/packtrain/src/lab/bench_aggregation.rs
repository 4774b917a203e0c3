//! `packtrain bench aggregation`: what packing small frames brings where packets are what is short, and what it
//! costs where they are not. `pt0` against the bare wire in the same round; each row says by the line's own counters
//! which path carried its frames, and how many a train held.

mod calls;
mod capped;
pub(super) mod conversations;
mod cost;
pub(super) mod emodel;
mod hub;
mod requests;
mod rtp;
mod small;

use std::path::Path;

use super::Result;
use super::bench_options::{Options, Rounds};
use super::namespaces::clean_up_on_signals;
use super::one_link::stage::{Line, Plan, Shape};
use super::one_link::way::Way;
use super::one_link::{Bench, work};

/// What can be measured alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Small UDP of many flows over a link that carries 5000 packets a second, whose queue is seen
    Told,
    /// The same behind a wire of which nobody has told the line
    Hidden,
    /// Small UDP messages over an unshaped link, as many as the processors send
    Messages,
    /// What a small frame costs the processors, packed or not
    Cost,
    /// One TCP flow over an unshaped link
    Bulk,
    /// Requests and answers of a byte, 1, 8 and 64 connections, over an idle link
    Requests,
    /// The same beside a TCP flow over 10 and over 100 Mbit/s
    Beside,
    /// 50 telephone calls beside a TCP flow over 10 Mbit/s
    Calls,
    /// Requests of seven clients to a server over a hub of 10 Mbit/s, for each way of packing
    Hub,
}

impl Rounds for Part {}

type Measure = fn(&mut Bench, &Line) -> Result<()>;

/// The link as it is, and `pt0`.
const TWO: [Way; 2] = [Way::Bare, Way::Pt0];
/// And the least that a second interface can be: what is more is `pt0`'s own.
const LEAST: [Way; 4] = [Way::Bare, Way::Pt0, Way::Macvlan, Way::Floor];
/// And a program that packs small packets too.
const BESIDE: [Way; 3] = [Way::Bare, Way::Pt0, Way::Simplemux];
/// And lines of which a class says that they pack always, or never.
const CLASSES: [Way; 4] = [Way::Bare, Way::Direct, Way::Packed, Way::Pt0];
const ALL: [Way; 5] = [
    Way::Bare,
    Way::Direct,
    Way::Packed,
    Way::Pt0,
    Way::Simplemux,
];

/// What stands between two hosts, and what is measured there, in this order.
const STAGES: [(Plan<'_>, &[(Part, Measure)]); 4] = [
    (
        Plan {
            shape: Shape::Unshaped,
            ways: &ALL,
        },
        &[
            (Part::Messages, small::messages),
            (Part::Cost, cost::measure),
        ],
    ),
    (
        Plan {
            shape: Shape::Unshaped,
            ways: &LEAST,
        },
        &[
            (Part::Bulk, |bench, line| work::bulk(bench, line, &TWO)),
            // The last: it moves everything to one processor.
            (Part::Requests, requests::idle),
        ],
    ),
    (
        Plan {
            shape: Shape::Mbit(10),
            ways: &BESIDE,
        },
        &[
            (Part::Beside, |bench, line| {
                requests::beside(bench, line, 10)
            }),
            (Part::Calls, calls::measure),
        ],
    ),
    (
        Plan {
            shape: Shape::Mbit(100),
            ways: &BESIDE,
        },
        &[(Part::Beside, |bench, line| {
            requests::beside(bench, line, 100)
        })],
    ),
];

/// Measures everything, prints the tables, and writes the report. Whether every promise holds.
pub fn run(packtrain: &Path, options: &Options<Part>) -> Result<bool> {
    super::check_available()?;
    clean_up_on_signals()?;
    let mut bench = Bench::new(options.rounds());
    if options.wants(&Part::Told) {
        capped::told(&mut bench, packtrain)?;
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
    if options.wants(&Part::Hub) {
        hub::measure(&mut bench, packtrain)?;
    }
    bench.finish(options)
}
