//! `packtrain lab check filter`: whether a receive filter takes anything from those whom it is for.
//!
//! Each application runs on a segment of its own, without a filter and again with one on both its hosts, while
//! strangers send what is for nobody there. What it says of itself has to be the same. A filter that had nothing to judge or
//! to drop proves nothing: such a row fails.

mod attached;
mod autoconfiguration;
mod counted;
mod groups;
mod neighbours;
mod outcome;
mod packets;
mod paths;
mod services;
mod stage;
mod strangers;
mod transfers;

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc;

use packtrain_proto::filter::Policy;
use serde::Serialize;

use self::counted::Counted;
pub use self::outcome::Outcome;
use self::stage::Stage;
use super::table::{Table, grouped};
use super::{Result, now};
use crate::filter::ModePolicy;

/// So many at a time: they mostly wait.
const AT_A_TIME: usize = 4;

/// What somebody does on a network, and what it is to him.
#[derive(Debug)]
pub struct Application {
    pub name: &'static str,
    pub about: &'static str,
    needs: &'static [Need],
    ports: bool,
    widens: &'static [&'static str],
    run: fn(&Stage) -> Result<Outcome>,
}

impl Application {
    const fn new(
        name: &'static str,
        about: &'static str,
        run: fn(&Stage) -> Result<Outcome>,
    ) -> Application {
        Application {
            name,
            about,
            needs: &[],
            ports: false,
            widens: &[],
            run,
        }
    }

    /// Without one of these it is skipped.
    const fn needs(self, needs: &'static [Need]) -> Application {
        Application { needs, ..self }
    }

    /// A filter that drops what is for closed ports is to make no difference to it either.
    const fn with_ports(self) -> Application {
        Application {
            ports: true,
            ..self
        }
    }

    /// It wants frames that are for others: the filter has to pass some, for one of these reasons, and may
    /// find none to drop meanwhile.
    const fn widens(self, reasons: &'static [&'static str]) -> Application {
        Application {
            widens: reasons,
            ..self
        }
    }

    /// Why it cannot run here.
    fn missing(&self) -> Option<String> {
        self.needs.iter().find_map(Need::missing)
    }
}

/// What an application is made of, with the Debian package that has it.
#[derive(Clone, Copy, Debug)]
enum Need {
    Program(&'static str, &'static str),
    /// Of Debian's Python.
    Module(&'static str, &'static str),
    /// A type of interface, that the kernel has or has not.
    Device(&'static str),
}

impl Need {
    fn missing(&self) -> Option<String> {
        use super::namespaces::program_exists;
        match *self {
            Need::Program(program, package) => {
                let missing = || format!("no `{program}` (Debian: {package})");
                (!program_exists(program)).then(missing)
            }
            Need::Module(module, package) => {
                let import = format!("import {module}");
                let found = super::namespaces::run(stage::PYTHON, ["-c", &import]);
                found
                    .is_err()
                    .then(|| format!("{} cannot `{import}` (Debian: {package})", stage::PYTHON))
            }
            Need::Device(kind) => {
                let probe = || -> Result<()> {
                    let host = super::namespaces::Namespace::create("probe")?;
                    host.sh(&format!(
                        "ip link add e0 type veth peer name e1 && ip link add link e0 name v0 type {kind} id 5"
                    ))?;
                    Ok(())
                };
                probe()
                    .is_err()
                    .then(|| format!("this kernel has no interfaces of type {kind}"))
            }
        }
    }
}

/// All of them, in the order of the table.
pub fn all() -> impl Iterator<Item = &'static Application> {
    [
        autoconfiguration::ALL,
        neighbours::ALL,
        attached::ALL,
        groups::ALL,
        services::ALL,
        transfers::ALL,
        paths::ALL,
    ]
    .into_iter()
    .flatten()
}

/// What may be chosen.
#[derive(Clone, Debug)]
pub struct Options {
    /// Of these names; all, when there are none.
    pub only: Vec<String>,
    /// What the filters drop.
    pub policy: Policy,
    /// Where the filters stand.
    pub mode: ModePolicy,
    /// Nothing to standard output while it runs.
    pub quiet: bool,
}

/// Which filter both hosts have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Filter {
    None,
    Host,
    /// … and `--ports auto`.
    Ports,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Same,
    /// The filter has made a difference.
    Differs,
    /// It did not work without a filter either, so that nothing is shown.
    Broken,
    /// The filter judged or dropped nothing, or did not pass what it should have for others.
    Idle,
    Skipped,
}

/// What an application said at its end.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    Outcome(Outcome),
    /// It did not come to one.
    Failed(String),
}

/// One application and one filter.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub application: &'static str,
    pub about: &'static str,
    pub filter: Filter,
    pub verdict: Verdict,
    /// Why it was.
    pub skipped: Option<String>,
    pub without: Option<Said>,
    pub with: Option<Said>,
    /// By both filters, while the application ran.
    pub frames: Counted,
    /// Both runs.
    pub seconds: f64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub rows: Vec<Row>,
}

impl Report {
    /// Everything that ran was the same.
    pub fn is_same(&self) -> bool {
        let mut rows = self.rows.iter();
        rows.all(|row| matches!(row.verdict, Verdict::Same | Verdict::Skipped))
    }

    /// What is not, in words.
    pub fn problems(&self) -> String {
        let of = |verdict: Verdict| -> Vec<String> {
            let rows = self.rows.iter().filter(|row| row.verdict == verdict);
            rows.map(name).collect()
        };
        let told = [
            (Verdict::Differs, "other outcome with a filter"),
            (Verdict::Broken, "no outcome without a filter either"),
            (Verdict::Idle, "the filter had nothing to do"),
        ];
        told.into_iter()
            .map(|(verdict, words)| (of(verdict), words))
            .filter(|(names, _)| !names.is_empty())
            .map(|(names, words)| format!("{words}: {}", names.join("; ")))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// Runs them, a few at a time.
pub fn run(packtrain: &Path, options: &Options) -> Result<Report> {
    super::check_available()?;
    let chosen: Vec<&Application> = all()
        .filter(|application| {
            options.only.is_empty() || options.only.iter().any(|name| name == application.name)
        })
        .collect();
    let places = chosen.len();
    let waiting = Mutex::new(chosen.into_iter().enumerate());
    let (done, results) = mpsc::channel();
    let mut rows: Vec<(usize, Vec<Row>)> = std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME.min(places) {
            let (waiting, done) = (&waiting, done.clone());
            scope.spawn(move || {
                loop {
                    let next = waiting.lock().expect("no code panics with the lock").next();
                    let Some((place, application)) = next else {
                        return;
                    };
                    let rows = rows_of(application, packtrain, options);
                    let failed = rows.is_err();
                    // Whoever receives has given up after an error.
                    if done.send((place, rows)).is_err() || failed {
                        return;
                    }
                }
            });
        }
        drop(done);
        let mut all = Vec::new();
        for (place, rows) in results {
            let rows = rows?;
            if !options.quiet {
                for row in &rows {
                    say(&line(row));
                }
            }
            all.push((place, rows));
        }
        Ok::<_, super::Error>(all)
    })?;
    rows.sort_by_key(|&(place, _)| place);
    let rows = rows.into_iter().flat_map(|(_, rows)| rows).collect();
    Ok(Report { rows })
}

/// Without a filter, and with each that it is tried with.
fn rows_of(
    application: &'static Application,
    packtrain: &Path,
    options: &Options,
) -> Result<Vec<Row>> {
    let blank = Row {
        application: application.name,
        about: application.about,
        filter: Filter::Host,
        verdict: Verdict::Skipped,
        skipped: application.missing(),
        without: None,
        with: None,
        frames: Counted::default(),
        seconds: 0.0,
    };
    if blank.skipped.is_some() {
        return Ok(vec![blank]);
    }
    let begun = now();
    let without = said_on(&Stage::set(packtrain)?, application);
    let without_s = begun.elapsed().as_secs_f64();
    let mut rows = Vec::new();
    for filter in [Filter::Host, Filter::Ports] {
        if filter == Filter::Ports && !application.ports {
            continue;
        }
        let begun = now();
        let mut stage = Stage::set(packtrain)?;
        stage.put_filters(options, filter == Filter::Ports)?;
        let before = stage.counted()?;
        let with = said_on(&stage, application);
        let frames = stage.counted()?.since(&before);
        rows.push(Row {
            filter,
            verdict: verdict(&without, &with, &frames, application.widens),
            without: Some(without.clone()),
            with: Some(with),
            frames,
            seconds: without_s + begun.elapsed().as_secs_f64(),
            ..blank.clone()
        });
    }
    Ok(rows)
}

fn said_on(stage: &Stage, application: &Application) -> Said {
    match (application.run)(stage) {
        Ok(outcome) => Said::Outcome(outcome),
        Err(error) => Said::Failed(error.to_string()),
    }
}

fn verdict(without: &Said, with: &Said, frames: &Counted, widens: &[&str]) -> Verdict {
    match without {
        Said::Outcome(outcome) if outcome.is_right() => {}
        _ => return Verdict::Broken,
    }
    if with != without {
        return Verdict::Differs;
    }
    let has_shown = match widens {
        [] => frames.dropped > 0,
        reasons => reasons.iter().any(|reason| frames.of(reason) > 0),
    };
    match frames.judged > 0 && has_shown {
        true => Verdict::Same,
        false => Verdict::Idle,
    }
}

/// Who reads it may stop reading.
fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

fn line(row: &Row) -> String {
    let name = name(row);
    match &row.skipped {
        Some(why) => format!("{:8} {name}: {why}", word(row.verdict)),
        None => format!(
            "{:8} {name}: {} ({:.1} s)",
            word(row.verdict),
            row.about,
            row.seconds
        ),
    }
}

fn name(row: &Row) -> String {
    match row.filter {
        Filter::Ports => format!("{}, --ports auto", row.application),
        _ => row.application.to_owned(),
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Same => "same",
        Verdict::Differs => "DIFFERS",
        Verdict::Broken => "BROKEN",
        Verdict::Idle => "IDLE",
        Verdict::Skipped => "skipped",
    }
}

fn text(said: Option<&Said>) -> String {
    match said {
        None => String::new(),
        Some(Said::Outcome(outcome)) => outcome.to_string(),
        // The table has lines of its own.
        Some(Said::Failed(why)) => format!("failed: {}", why.replace('\n', " ")),
    }
}

/// As much of an outcome as a table has room for.
const SHOWN: usize = 64;

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// A row for each, as it is printed at the end.
pub fn table(report: &Report) -> Table {
    let mut table = Table::new(&["application", "without", "with", "judged", "dropped", ""]);
    for row in &report.rows {
        let with = match (&row.skipped, row.with == row.without) {
            (Some(why), _) => why.clone(),
            (None, true) => "as without".to_owned(),
            (None, false) => text(row.with.as_ref()),
        };
        let frames = |frames: u64| match &row.skipped {
            Some(_) => "-".to_owned(),
            None => grouped(frames as f64),
        };
        table.row([
            name(row),
            shortened(&text(row.without.as_ref())),
            shortened(&with),
            frames(row.frames.judged),
            frames(row.frames.dropped),
            word(row.verdict).to_owned(),
        ]);
    }
    table
}

/// What is not the same, in full.
pub fn details(report: &Report) -> String {
    let others = report
        .rows
        .iter()
        .filter(|row| !matches!(row.verdict, Verdict::Same | Verdict::Skipped));
    others
        .map(|row| {
            format!(
                "{} {}\n  without: {}\n  with:    {}\n  frames:  {:?}\n",
                word(row.verdict),
                name(row),
                text(row.without.as_ref()),
                text(row.with.as_ref()),
                row.frames.reasons
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn frames(judged: u64, dropped: u64, handler: u64) -> Counted {
        let reasons = [("handler".to_owned(), handler)].into();
        Counted {
            judged,
            dropped,
            reasons,
        }
    }

    fn outcome(answers: u32) -> Said {
        Said::Outcome(Outcome::new().with("answers", answers))
    }

    fn wrong(answers: u32) -> Said {
        Said::Outcome(Outcome::new().wanted("answers", answers, 3))
    }

    #[test]
    fn only_the_same_of_what_worked_beside_frames_that_were_dropped_is_the_same() {
        let failed = Said::Failed("no lease".to_owned());
        let busy = frames(100, 10, 0);
        let table = [
            (outcome(3), outcome(3), &busy, Verdict::Same),
            (outcome(3), outcome(2), &busy, Verdict::Differs),
            (outcome(3), failed.clone(), &busy, Verdict::Differs),
            (failed.clone(), outcome(3), &busy, Verdict::Broken),
            // The same, and nothing is shown by it.
            (failed.clone(), failed, &busy, Verdict::Broken),
            (wrong(2), wrong(2), &busy, Verdict::Broken),
            (wrong(3), wrong(2), &busy, Verdict::Differs),
            (outcome(3), outcome(3), &frames(0, 0, 0), Verdict::Idle),
            (outcome(3), outcome(3), &frames(100, 0, 9), Verdict::Idle),
        ];
        for (without, with, frames, expected) in table {
            let found = verdict(&without, &with, frames, &[]);
            assert_eq!(found, expected, "{without:?} {with:?} {frames:?}");
        }
    }

    #[test]
    fn who_wants_what_is_for_others_is_to_be_recognised() {
        let judge =
            |frames: Counted| verdict(&outcome(3), &outcome(3), &frames, &["handler", "capture"]);
        assert_eq!(judge(frames(100, 0, 9)), Verdict::Same);
        assert_eq!(judge(frames(100, 50, 0)), Verdict::Idle);
    }

    #[test]
    fn there_are_many_and_each_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = all().map(|application| application.name).collect();
        assert_eq!(names.len(), all().count());
        assert!(names.len() >= 24, "{names:?}");
    }
}
