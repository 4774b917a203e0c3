//! `packtrain bench links`: a line over several links against one over one link, the plain link and
//! MPTCP, in turns. Each row is a promise, with what was measured and whether it holds; under them
//! stands how much went over each link, and how long it was held for its turn, by the line's own counters.

mod delay;
mod distance;
mod hold;
mod parts;
mod stage;

use std::path::Path;

use serde::Serialize;

use self::distance::WireLateness;
use self::hold::{HoldOfPart, holds_table};
use self::parts::Bench;
use self::stage::Stage;
use super::bench_options::{Options, Rounds};
use super::figure::{Target, Unit};
use super::link_use::{LinkUse, uses_table};
use super::namespaces::clean_up_on_signals;
use super::sample::Sample;
use super::table::Table;
use super::{Result, wire};

/// What can be measured alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// One TCP flow over 2 × 100 Mbit/s
    Equal,
    /// One TCP flow over 100 + 20 Mbit/s
    Unequal,
    /// A cable cut under pings, a thousand a second
    Pings,
    /// A cable cut under a checked TCP transfer and numbered datagrams
    Transfer,
    /// A link added under a TCP flow
    Join,
    /// One-way delay and round trips over two idle links
    Delay,
    /// One TCP flow, and a cut under pings, over wires of 0, 5 and 50 ms
    Distance,
}

impl Rounds for Part {}

/// One promise: what was asked, what was measured on each way, a value a round; nothing where a way
/// was not tried.
#[derive(Clone, Debug, Serialize)]
struct Row {
    name: &'static str,
    plain: Sample,
    mptcp: Sample,
    one: Sample,
    several: Sample,
    /// Of the line over several links, against the one over one where the promise compares.
    compared: Sample,
    unit: Unit,
    target: Target,
    met: bool,
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
    /// How long trains waited for their turn at both ends of lines over several.
    holds: Vec<HoldOfPart>,
    /// How late the lab's wires ran, where it is about them.
    lateness: Vec<WireLateness>,
}

/// Measures everything, prints the tables, and writes the report. Whether every promise holds.
pub fn run(packtrain: &Path, options: &Options<Part>) -> Result<bool> {
    super::check_available()?;
    clean_up_on_signals()?;
    let wants = |part| options.wants(&part);
    let mut bench = Bench::new(Stage::set(packtrain)?, options.rounds());
    for (part, measure) in [
        (Part::Equal, Bench::equal as fn(&mut Bench) -> Result<()>),
        (Part::Unequal, Bench::unequal),
        (Part::Pings, Bench::pings),
        (Part::Transfer, Bench::transfer),
        (Part::Join, Bench::join),
        (Part::Delay, Bench::delay),
    ] {
        if wants(part) {
            measure(&mut bench)?;
        }
    }
    let mptcp_unavailable = bench.mptcp_unavailable().map(str::to_owned);
    let Bench {
        mut figures,
        mut links,
        holds,
        stage,
        ..
    } = bench;
    drop(stage);
    let mut lateness = Vec::new();
    if wants(Part::Distance) {
        let measured = distance::measure(packtrain, options.rounds())?;
        figures.extend(measured.figures);
        links.extend(measured.links);
        lateness = measured.lateness;
    }
    let report = Report {
        kernel: wire::version_of("uname", "-r"),
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        rounds: options.rounds(),
        mptcp_unavailable,
        figures,
        links,
        holds,
        lateness,
    };
    print!("\n{}", figures_table(&report.figures));
    print!("\n{}", uses_table(&report.links));
    print!("\n{}", holds_table(&report.holds));
    println!(
        "\nmedian [least … most] of {} rounds in turns; CUBIC; Linux {}, {} CPUs",
        report.rounds, report.kernel, report.cpus
    );
    if let Some(reason) = &report.mptcp_unavailable {
        println!("no figures of MPTCP: {reason}");
    }
    options.write(&report)?;
    Ok(report.figures.iter().all(|figure| figure.met))
}

fn figures_table(figures: &[Row]) -> Table {
    let mut table = Table::new(&[
        "what", "plain", "MPTCP", "one link", "several", "compared", "target", "",
    ]);
    for row in figures {
        let show = |sample: &Sample| row.unit.show_median(sample);
        let compared = row
            .target
            .compared_or_spread(row.unit, &row.compared, &row.several);
        table.row([
            row.name.to_owned(),
            show(&row.plain),
            show(&row.mptcp),
            show(&row.one),
            show(&row.several),
            compared,
            row.target.text(row.unit),
            row.target.verdict(row.met).to_owned(),
        ]);
    }
    table
}
