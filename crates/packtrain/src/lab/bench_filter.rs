//! `packtrain bench filter`: what a receive filter brings where a segment is full of frames for others, and what it costs. A
//! flood of live XDP frames, in the mix that the NIMA paper found on a network, comes to the driver of a veth as from a card; in
//! turns without a filter, with it, and for the cost of a drop with xdp-filter. Each row is told by whose
//! counters: what came to the driver, and what the filter has made of it.

mod counts;
mod drop_cost;
mod flooding;
mod full;
mod ladder;
mod mix;
mod prefixes;
mod processor;
mod row;
mod stage;
mod way;
mod web;

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use self::flooding::Flooded;
use self::ladder::{Step, steps_table};
use self::row::{Row, Runs, rows_table};
use self::stage::Stage;
use self::way::{Standing, Way};
use super::bench_options::{Options, Rounds};
use super::namespaces::{clean_up_on_signals, program_exists, run as run_program};
use super::processors::Ticks;
use super::table::grouped;
use super::{Error, Result, wire};

/// What can be measured alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// The paper's mix at rising load: its Fig. 5 and 7, and what is useful at saturation
    Mix,
    /// The load at which the backlog queue is first full
    Full,
    /// Processor time at equal load
    Processor,
    /// An HTTP server of the host during the flood
    Web,
    /// What a drop costs, beside xdp-filter
    Drop,
    /// What a rule costs that asks for 10 to 10,000 prefixes
    Prefixes,
}

impl Rounds for Part {}

/// What was measured so far.
#[derive(Debug)]
struct Bench<'a> {
    packtrain: &'a Path,
    rounds: usize,
    rows: Vec<Row>,
    steps: Vec<Step>,
}

#[derive(Clone, Debug, Serialize)]
struct Report {
    kernel: String,
    cpus: usize,
    rounds: usize,
    xdp_filter: Option<String>,
    /// The share of the processors' time in which something else had them: what is above a few percent
    /// makes figures of this run worthless.
    stolen: Option<f64>,
    figures: Vec<Row>,
    /// As the paper's Fig. 5 and 7.
    table: Vec<Step>,
}

/// Measures everything, prints the tables, and writes the report. Whether every promise holds.
pub fn run(packtrain: &Path, options: &Options<Part>) -> Result<bool> {
    super::check_available()?;
    if options.wants(&Part::Drop) && !program_exists("xdp-filter") {
        return Err(Error::Unavailable(
            "no `xdp-filter` (Debian: xdp-tools), which a drop is held against; other parts can be measured without it: --part"
                .into(),
        ));
    }
    clean_up_on_signals()?;
    let since = Ticks::now().ok();
    let mut bench = Bench {
        packtrain,
        rounds: options.rounds(),
        rows: Vec::new(),
        steps: Vec::new(),
    };
    for (part, measure) in [
        (
            Part::Mix,
            ladder::measure as fn(&mut Bench<'_>) -> Result<()>,
        ),
        (Part::Full, full::measure),
        (Part::Processor, processor::measure),
        (Part::Web, web::measure),
        (Part::Drop, drop_cost::measure),
        (Part::Prefixes, prefixes::measure),
    ] {
        if options.wants(&part) {
            measure(&mut bench)?;
        }
    }
    let stolen = since.zip(Ticks::now().ok());
    let report = Report {
        kernel: wire::version_of("uname", "-r"),
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        rounds: bench.rounds,
        // Only its commands know theirs.
        xdp_filter: run_program("xdp-filter", ["load", "--version"])
            .ok()
            .map(|text| text.trim_end().to_owned()),
        stolen: stolen.map(|(then, now)| now.stolen_since(then)),
        figures: bench.rows,
        table: bench.steps,
    };
    print(&report);
    options.write(&report)?;
    Ok(report.figures.iter().all(|row| row.met))
}

fn print(report: &Report) {
    if !report.table.is_empty() {
        print!("\n{}", steps_table(&report.table));
    }
    print!("\n{}", rows_table(&report.figures));
    println!(
        "\nmedian [least … most] of {} rounds in turns; Linux {}, {} CPUs, {:.1} % of them stolen",
        report.rounds,
        report.kernel,
        report.cpus,
        100.0 * report.stolen.unwrap_or(f64::NAN)
    );
    if let Some(version) = &report.xdp_filter {
        println!("{version}");
    }
}

impl Bench<'_> {
    /// Each way `rounds` times in turns; who begins alternates as well.
    fn in_turns<T>(
        &self,
        part: &str,
        stage: &Stage,
        ways: &[Way],
        mut measure: impl FnMut(&Standing<'_>) -> Result<T>,
    ) -> Result<Runs<T>> {
        let mut ways = ways.to_vec();
        let mut runs = Runs::default();
        for round in 0..self.rounds {
            for &way in &ways {
                eprintln!(
                    "{part}: round {} of {}, {}",
                    round + 1,
                    self.rounds,
                    way.name()
                );
                let standing = Standing::set(way, stage, self.packtrain)?;
                runs.push(way, measure(&standing)?);
            }
            ways.rotate_left(1);
        }
        Ok(runs)
    }

    fn push(&mut self, row: Row) {
        self.rows.push(row);
    }
}

/// What the driver took and dropped in all these, and why.
fn carried<'a>(floods: impl IntoIterator<Item = &'a Flooded>) -> String {
    let (mut driver, mut dropped) = (0, 0);
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for flooded in floods {
        driver += flooded.counts.driver;
        dropped += flooded.counts.dropped;
        for (reason, frames) in &flooded.reasons {
            *reasons.entry(reason).or_default() += frames;
        }
    }
    let mut text = format!(
        "{} came, {} dropped",
        grouped(driver as f64),
        grouped(dropped as f64)
    );
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|&(_, frames)| std::cmp::Reverse(frames));
    let share = |frames| 100.0 * frames as f64 / (driver as f64).max(1.0);
    let shares: Vec<String> = reasons
        .iter()
        .filter(|(_, frames)| share(*frames) >= 0.1)
        .map(|(reason, frames)| format!("{reason} {:.1} %", share(*frames)))
        .collect();
    if !shares.is_empty() {
        text += &format!(" ({})", shares.join(", "));
    }
    text
}
