//! `packtrain bench line`: `pt0` against the bare cable, in turns, so that whatever else the
//! machine does falls on both. Each row is a promise, with what was measured and whether it holds.
//! Where the cable is not shaped, a line without the direct path and a bare relay ([`super::relay`])
//! take their turns as well.

mod parts;
mod path_use;
mod stage;

use std::path::Path;

use serde::Serialize;

use self::parts::{Bench, MANY_FLOWS, ONE_FLOW};
use self::path_use::{PathCounts, paths_table};
use self::stage::Line;
use super::bench_options::Options;
use super::figure::{Figure, figures_table};
use super::namespaces::clean_up_on_signals;
use super::{Result, wire};

const RATE_MBIT: u32 = 100;

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

#[derive(Clone, Debug, Serialize)]
struct BenchReport {
    kernel: String,
    iperf3: String,
    cpus: usize,
    rounds: usize,
    figures: Vec<Figure>,
    /// How the frames of each part went: direct, packed, marked, and how many in a train.
    paths: Vec<PathCounts>,
}

/// Measures everything, prints the table, and writes the report. Whether every promise holds.
pub fn run(packtrain: &Path, options: &Options<Part>) -> Result<bool> {
    super::check_available()?;
    clean_up_on_signals()?;
    let mut bench = Bench {
        rounds: options.rounds(),
        figures: Vec::new(),
        paths: Vec::new(),
    };
    let wanted = |part| options.wants(&part);
    if [Part::Bulk, Part::Messages, Part::Idle, Part::Start]
        .into_iter()
        .any(wanted)
    {
        let unshaped = Line::set(packtrain, None)?;
        if wanted(Part::Bulk) {
            bench.bulk(&unshaped)?;
        }
        if wanted(Part::Messages) {
            bench.messages(&unshaped)?;
        }
        // After the load.
        bench.memory(&unshaped)?;
        if wanted(Part::Idle) {
            bench.idle(&unshaped)?;
        }
        if wanted(Part::Start) {
            bench.start(&unshaped)?;
        }
    }
    if [Part::Shaped, Part::Many, Part::Beside]
        .into_iter()
        .any(wanted)
    {
        let shaped = Line::set(packtrain, Some(RATE_MBIT))?;
        if wanted(Part::Shaped) {
            bench.bulk_shaped(&shaped, &ONE_FLOW)?;
        }
        if wanted(Part::Many) {
            bench.bulk_shaped(&shaped, &MANY_FLOWS)?;
        }
        if wanted(Part::Beside) {
            bench.messages_beside_bulk(&shaped)?;
        }
    }

    let report = BenchReport {
        kernel: wire::version_of("uname", "-r"),
        iperf3: wire::version_of("iperf3", "--version"),
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        rounds: options.rounds(),
        figures: bench.figures,
        paths: bench.paths,
    };
    print!("\n{}", figures_table(&report.figures));
    print!("\n{}", paths_table(&report.paths));
    println!(
        "\nmedian [least … most] of {} rounds in turns; Linux {}, {}, {} CPUs",
        report.rounds, report.kernel, report.iperf3, report.cpus
    );
    options.write(&report)?;
    Ok(report.figures.iter().all(|figure| figure.met))
}
