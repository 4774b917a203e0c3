//! `packtrain bench trunk`: several links as trunks are compared. One CUBIC flow over wires that are equal, unequal, far,
//! lossy or dead, and over such as die under it: by a line over all of them, by one over the better of them, by that wire
//! bare, and by MPTCP over the same wires, in turns. Each row is a promise; under them stands how much went over each
//! link, and over each subflow.
//!
//! There is no row of bonding or team: this kernel has neither (`CONFIG_BONDING`, `CONFIG_NET_TEAM`).

mod bench;
mod cuts;
mod flaps;
mod flows;
mod row;
mod stage;
mod striped;
mod subflows;
mod unshaped;
mod wires;

use std::path::Path;

use serde::Serialize;

use self::bench::Bench;
use self::row::{Row, figures_table};
use self::subflows::{SubflowUse, subflows_table};
use super::bench_options::{Options, Rounds};
use super::emulator::lateness::LatenessSummary;
use super::link_use::{LinkUse, uses_table};
use super::namespaces::clean_up_on_signals;
use super::one_link::path_use::{PathCounts, paths_table};
use super::sample::Sample;
use super::{Result, wire};

/// What can be measured alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// 2 × 100 Mbit/s
    Two,
    /// 3 × 100 Mbit/s
    Three,
    /// 4 × 100 Mbit/s
    Four,
    /// 2 × 100 Mbit/s, one with 5 ms more
    Near,
    /// 2 × 100 Mbit/s, one with 20 ms more
    Far,
    /// 100 + 20 Mbit/s
    Unequal,
    /// 100 + 40 + 10 Mbit/s
    Mixed,
    /// 2 × 100 Mbit/s, one of which loses 1 %
    Lossy,
    /// 2 × 100 Mbit/s, one of which is dead
    Dead,
    /// A wire that is cut, and both ends are told
    Cut,
    /// A wire that dies silently, in both directions or one
    Silent,
    /// 100 cuts within a minute
    Flaps,
    /// Two links of some Gbit/s, a flow that may be lost with one
    Striped,
    /// Two unshaped veths: throughput, and processor time
    Unshaped,
}

impl Rounds for Part {}

/// How late the lab's wires ran in a part.
#[derive(Clone, Debug, Serialize)]
struct WireLateness {
    part: String,
    #[serde(flatten)]
    lateness: LatenessSummary,
    /// The share of their time that the processors of the machine itself stood still, each time that something was measured
    /// that counts.
    stood_still: Sample,
    /// So often was something measured again for it, and does not count.
    again: usize,
}

#[derive(Clone, Debug, Serialize)]
struct Report {
    kernel: String,
    cpus: usize,
    rounds: usize,
    /// Why there are no figures of MPTCP.
    mptcp_unavailable: Option<String>,
    figures: Vec<Row>,
    /// How much A sent over each link of its lines.
    links: Vec<LinkUse>,
    /// Which path carried A's frames, and how many a train held.
    paths: Vec<PathCounts>,
    /// What MPTCP had of each wire.
    subflows: Vec<SubflowUse>,
    lateness: Vec<WireLateness>,
}

/// Measures everything, prints the tables, and writes the report. Whether every promise holds.
pub fn run(packtrain: &Path, options: &Options<Part>) -> Result<bool> {
    super::check_available()?;
    clean_up_on_signals()?;
    let mut bench = Bench::new(packtrain, options.rounds());
    for (part, measure) in [
        (Part::Two, flows::two as fn(&mut Bench<'_>) -> Result<()>),
        (Part::Three, flows::three),
        (Part::Four, flows::four),
        (Part::Near, flows::near),
        (Part::Far, flows::far),
        (Part::Unequal, flows::unequal),
        (Part::Mixed, flows::mixed),
        (Part::Lossy, flows::lossy),
        (Part::Dead, flows::dead),
        (Part::Cut, cuts::cut),
        (Part::Silent, cuts::silent_deaths),
        (Part::Flaps, flaps::flaps),
        (Part::Striped, striped::striped),
        (Part::Unshaped, unshaped::unshaped),
    ] {
        if options.wants(&part) {
            measure(&mut bench)?;
        }
    }
    let report = Report {
        kernel: wire::version_of("uname", "-r"),
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        rounds: bench.rounds,
        mptcp_unavailable: bench.mptcp_unavailable,
        figures: bench.figures,
        links: bench.links,
        paths: bench.paths,
        subflows: bench.subflows,
        lateness: bench.lateness,
    };
    print(&report);
    options.write(&report)?;
    Ok(report.figures.iter().all(Row::is_kept))
}

fn print(report: &Report) {
    print!("\n{}", figures_table(&report.figures));
    print!("\n{}", uses_table(&report.links));
    print!("\n{}", paths_table(&report.paths));
    if !report.subflows.is_empty() {
        print!("\n{}", subflows_table(&report.subflows));
    }
    for of in &report.lateness {
        let [p50, p99] = [of.lateness.p50_us, of.lateness.p99_us].map(super::table::time);
        let [stood, most] = [of.stood_still.median(), of.stood_still.max()].map(|x| x * 100.0);
        let again = match of.again {
            0 => String::new(),
            n => format!(", {n} measured again for it"),
        };
        println!(
            "wires late: {p50}, {p99} at the 99th percentile; processors stood still: {stood:.1} % of the time, {most:.1} % at most{again}: {}",
            of.part
        );
    }
    println!(
        "\nmedian [least … most] of {} rounds in turns; CUBIC; Linux {}, {} CPUs",
        report.rounds, report.kernel, report.cpus
    );
    if let Some(reason) = &report.mptcp_unavailable {
        println!("no figures of MPTCP: {reason}");
    }
}
