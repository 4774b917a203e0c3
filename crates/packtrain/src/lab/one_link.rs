//! One line over one link against the bare cable, in turns, so that whatever else the machine does falls
//! on both; and beside it other ways between the same two hosts. What `bench line` and `bench path` stand on.

pub mod figure;
mod overlays;
pub mod parts;
pub mod path_use;
mod second;
pub mod stage;
pub mod way;
pub mod work;

use std::path::Path;

use clap::ValueEnum;
use serde::Serialize;

use self::figure::{Figure, Runs, figures_table};
use self::path_use::{PathCounts, paths_table};
use self::stage::{Line, Plan, SETTLE};
use self::way::Way;
use super::bench_options::{Options, Rounds};
use super::figure::{Target, Unit};
use super::processors::Ticks;
use super::{Result, pause, wire};
use crate::status::StatusDocument;

/// What a row is called, in what and against what, and its number of each run.
pub type Row<T> = (&'static str, (Unit, Target), fn(&T) -> f64);

/// What was measured so far.
#[derive(Debug)]
pub struct Bench {
    pub rounds: usize,
    figures: Vec<Figure>,
    paths: Vec<PathCounts>,
    since: Option<Ticks>,
}

#[derive(Clone, Debug, Serialize)]
struct Report {
    kernel: String,
    iperf3: String,
    cpus: usize,
    rounds: usize,
    /// The share of the processors' time in which something else had them: what is above a few percent
    /// makes figures of this run worthless.
    stolen: Option<f64>,
    figures: Vec<Figure>,
    /// How the frames of each part went: direct, packed, marked, and how many in a train.
    paths: Vec<PathCounts>,
}

impl Bench {
    pub fn new(rounds: usize) -> Bench {
        Bench {
            rounds,
            figures: Vec::new(),
            paths: Vec::new(),
            since: Ticks::now().ok(),
        }
    }

    /// Runs each way that stands `rounds` times in turns; who begins alternates as well.
    pub fn in_turns<T>(
        &mut self,
        part: &str,
        line: &Line,
        measure: impl FnMut(Way) -> Result<T>,
    ) -> Result<Runs<T>> {
        self.in_turns_of(line.ways(), part, line, measure)
    }

    /// As [`Bench::in_turns`], of these ways alone; of one that does not stand there is nothing.
    pub fn in_turns_of<T>(
        &mut self,
        ways: &[Way],
        part: &str,
        line: &Line,
        mut measure: impl FnMut(Way) -> Result<T>,
    ) -> Result<Runs<T>> {
        let mut runs = Runs::of_ways(ways);
        let mut ways = line.available(ways);
        self.each_round(part, line, |_| {
            for &way in &ways {
                let _programs = line.programs_of_turn(way)?;
                pause(SETTLE);
                runs.push(way, measure(way)?);
            }
            ways.rotate_left(1);
            Ok(())
        })?;
        Ok(runs)
    }

    /// Runs `round` as often as there are rounds, and notes which way the frames took meanwhile.
    pub fn each_round(
        &mut self,
        part: &str,
        line: &Line,
        mut round: impl FnMut(usize) -> Result<()>,
    ) -> Result<()> {
        let rounds = self.rounds;
        self.noting(part, line, || {
            for number in 0..rounds {
                eprintln!("{part}: round {} of {rounds}", number + 1);
                round(number)?;
            }
            Ok(())
        })
    }

    /// As [`Bench::in_turns_of`] all ways of the plan, in each round between hosts of its own: a line remembers for a while
    /// what it has found out, be that right or not.
    pub fn in_turns_anew<T>(
        &mut self,
        (packtrain, plan): (&Path, Plan<'_>),
        part: &str,
        mut measure: impl FnMut(&Line, Way) -> Result<T>,
    ) -> Result<Runs<T>> {
        let mut runs = Runs::of_ways(plan.ways);
        for number in 0..self.rounds {
            eprintln!("{part}: round {} of {}", number + 1, self.rounds);
            let line = Line::set(packtrain, plan)?;
            let mut ways = line.available(plan.ways);
            let first = number % ways.len().max(1);
            ways.rotate_left(first);
            self.noting(part, &line, || {
                for &way in &ways {
                    let _programs = line.programs_of_turn(way)?;
                    pause(SETTLE);
                    runs.push(way, measure(&line, way)?);
                }
                Ok(())
            })?;
        }
        Ok(runs)
    }

    /// Notes which way the frames take meanwhile.
    fn noting(
        &mut self,
        part: &str,
        line: &Line,
        measure: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let ((), paths) = paths_during(part, line, measure)?;
        for path in paths {
            self.note_path(path);
        }
        Ok(())
    }

    /// One row for each part and line, however often it is noted.
    pub fn note_path(&mut self, path: PathCounts) {
        let is_same = |noted: &&mut PathCounts| noted.part == path.part && noted.line == path.line;
        match self.paths.iter_mut().find(is_same) {
            Some(noted) => noted.add(path),
            None => self.paths.push(path),
        }
    }

    pub fn compare(
        &mut self,
        name: impl Into<String>,
        unit: Unit,
        target: Target,
        runs: Runs<f64>,
    ) {
        self.figures.push(Figure::of(name, unit, target, runs));
    }

    /// As [`Bench::compare`], of a part of which is noted how `pt0`'s frames went: the row says so.
    pub fn compare_carried(
        &mut self,
        part: &str,
        name: impl Into<String>,
        (unit, target): (Unit, Target),
        runs: Runs<f64>,
    ) {
        let of_pt0 = Way::Pt0.interface();
        let mut paths = self.paths.iter();
        let path = paths.find(|path| path.part == part && path.line == of_pt0);
        let carried = path.map(PathCounts::carried_text);
        self.figures.push(Figure {
            carried,
            ..Figure::of(name, unit, target, runs)
        });
    }

    /// A row for each of these, of which the first names the part.
    pub fn compare_rows<T>(&mut self, part: &str, rows: &[Row<T>], runs: &Runs<T>) {
        for (number, &(what, shown, value)) in rows.iter().enumerate() {
            let name = match number {
                0 => format!("{part}: {what}"),
                _ => format!("  … {what}"),
            };
            self.compare_carried(part, name, shown, runs.map(value));
        }
    }

    /// Prints the tables, and writes the report. Whether every promise holds.
    pub fn finish<P>(self, options: &Options<P>) -> Result<bool>
    where
        P: ValueEnum + Rounds + PartialEq + Send + Sync + 'static,
    {
        let stolen = self.since.zip(Ticks::now().ok());
        let report = Report {
            kernel: wire::version_of("uname", "-r"),
            iperf3: wire::version_of("iperf3", "--version"),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            rounds: self.rounds,
            stolen: stolen.map(|(then, now)| now.stolen_since(then)),
            figures: self.figures,
            paths: self.paths,
        };
        print!("\n{}", figures_table(&report.figures));
        print!("\n{}", paths_table(&report.paths));
        println!(
            "\nmedian [least … most] of {} rounds in turns; Linux {}, {}, {} CPUs, {:.1} % of them stolen",
            report.rounds,
            report.kernel,
            report.iperf3,
            report.cpus,
            100.0 * report.stolen.unwrap_or(f64::NAN)
        );
        options.write(&report)?;
        Ok(report.figures.iter().all(|figure| figure.met))
    }
}

/// Which way the frames of each line took meanwhile.
pub fn paths_during<T>(
    part: &str,
    line: &Line,
    measure: impl FnOnce() -> Result<T>,
) -> Result<(T, Vec<PathCounts>)> {
    let statuses = || -> Result<Vec<StatusDocument>> {
        let names = line.names().into_iter();
        names.map(|name| line.a.status_of(name)).collect()
    };
    let before = statuses()?;
    let result = measure()?;
    let after = statuses()?;
    let names = line.names().into_iter();
    let each = names.zip(before.iter().zip(&after));
    let between = |(name, (before, after))| PathCounts::between(part, name, before, after);
    Ok((result, each.map(between).collect()))
}
