//! `packtrain bench path`: what a frame costs that has nothing to gain from packtrain, and what one gains
//! that has. `pt0`, as it is and by the engine alone, against the bare cable in the same round; beside it
//! tunnels that everybody has; and by the line's own counters which path carried it.

mod hidden;
mod loaded;
mod unshaped;

use std::path::Path;

use super::Result;
use super::bench_options::{Options, Rounds};
use super::namespaces::clean_up_on_signals;
use super::one_link::stage::{Line, Plan, Shape};
use super::one_link::way::Way;
use super::one_link::{Bench, parts};

/// The cable bare, under `pt0`, and under a line without the direct path.
const LINES: [Way; 3] = [Way::Bare, Way::Engine, Way::Pt0];
/// And tunnels over the bare cable.
const ALL: [Way; 5] = [Way::Bare, Way::Engine, Way::Pt0, Way::Vxlan, Way::WireGuard];

/// What can be measured alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// One TCP flow over an unshaped link, what it costs the processors, and the same by tunnels
    Bulk,
    /// Eight TCP flows over an unshaped link
    Flows,
    /// Full-size UDP datagrams, many in one system call
    Datagrams,
    /// One TCP flow in each direction at once
    Both,
    /// Small UDP messages over an unshaped link
    Messages,
    /// Datagrams over a line whose path is changed all the time
    Changes,
    /// Round trips on an idle line, and the same by tunnels
    Idle,
    /// One TCP flow over 100 Mbit/s: the queue, and pings beside it
    Shaped,
    /// Small UDP messages beside a TCP flow over 100 Mbit/s
    Beside,
    /// A wire that carries 5000 packets a second, which nobody has told the line
    Hidden,
}

impl Rounds for Part {
    /// From the least to the most of seven rounds is an interval in which the median of many more would lie
    /// in 98 of 100 cases (1 − 2 · 0.5⁷).
    const DEFAULT: &'static str = "7";
}

type Measure = fn(&mut Bench, &Line) -> Result<()>;

/// What stands on one stage, in this order.
const UNSHAPED: [(Part, Measure); 7] = [
    (Part::Bulk, unshaped::bulk),
    (Part::Flows, unshaped::flows),
    (Part::Datagrams, unshaped::datagrams),
    (Part::Both, unshaped::both_directions),
    (Part::Messages, unshaped::messages),
    (Part::Changes, loaded::changes),
    // The last: it moves everything to one processor.
    (Part::Idle, unshaped::idle),
];
const SHAPED: [(Part, Measure); 2] = [
    (Part::Shaped, loaded::bulk_shaped),
    (Part::Beside, |bench, line| {
        parts::messages_beside_bulk(bench, line, &LINES)
    }),
];
const SHAPED_MBIT: u32 = 100;

/// Measures everything, prints the tables, and writes the report. Whether every promise holds.
pub fn run(packtrain: &Path, options: &Options<Part>) -> Result<bool> {
    super::check_available()?;
    clean_up_on_signals()?;
    let mut bench = Bench::new(options.rounds());
    let wants = |parts: &[Part]| parts.iter().any(|part| options.wants(part));
    let mut ways = match wants(&[Part::Bulk, Part::Idle]) {
        true => ALL.to_vec(),
        false => LINES.to_vec(),
    };
    if wants(&[Part::Messages]) {
        ways.push(Way::Direct);
    }
    let unshaped = Plan {
        shape: Shape::Unshaped,
        ways: &ways,
    };
    let shaped = Plan {
        shape: Shape::Mbit(SHAPED_MBIT),
        ways: &LINES,
    };
    for (plan, parts) in [(unshaped, &UNSHAPED[..]), (shaped, &SHAPED)] {
        let wanted: Vec<Measure> = parts
            .iter()
            .filter(|(part, _)| options.wants(part))
            .map(|&(_, measure)| measure)
            .collect();
        if wanted.is_empty() {
            continue;
        }
        let line = Line::set(packtrain, plan)?;
        for measure in wanted {
            measure(&mut bench, &line)?;
        }
    }
    // It makes labs, which are taken away on signals in a way of their own.
    if options.wants(&Part::Hidden) {
        hidden::measure(&mut bench, packtrain)?;
    }
    bench.finish(options)
}
