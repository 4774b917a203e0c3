//! `packtrain sim`: scenarios of the simulator, which come along or are files. What they are is told by
//! `packtrain-study`; here is what is asked for, and where it goes.

mod arguments;
mod captured;
mod progress;

#[cfg(test)]
mod tests;

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

use packtrain_study::builtin;
use packtrain_study::judge::{all_met, judge};
use packtrain_study::output::text::Part;
use packtrain_study::output::{Study, csv, html, json, svg, text};
use packtrain_study::scenario::Scenario;
use packtrain_study::sweep::store::Store;
use packtrain_study::sweep::{self, Plan, Results, SweepError};

pub use arguments::SimArguments;

use self::arguments::{OutputArguments, RunArguments, SimCommand, SweepArguments};
use self::progress::Progress;
use super::error::CliError;
use super::{output, signals};

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(super) fn run(arguments: &SimArguments) -> Result<(), CliError> {
    match &arguments.command {
        SimCommand::List { json } => output::text(&list(*json)?),
        SimCommand::Explain { scenario, json } => {
            let scenario = open(&scenario.name)?;
            output::text(&match json {
                true => json::explain(&scenario),
                false => text::explain(&scenario),
            })
        }
        SimCommand::Run(arguments) => run_once(arguments)?.told(),
        SimCommand::Sweep(arguments) => sweep_all(arguments)?.told(),
    }
}

fn list(as_json: bool) -> Result<String, CliError> {
    let read = builtin::names().filter_map(builtin::read);
    let scenarios = read.collect::<Result<Vec<Scenario>, _>>()?;
    Ok(match as_json {
        true => json::list(&scenarios),
        false => text::list(&scenarios),
    })
}

/// One that comes along, or a file.
fn open(name: &Path) -> Result<Scenario, CliError> {
    if let Some(scenario) = name.to_str().and_then(builtin::read) {
        return Ok(scenario?);
    }
    let unread = |source| CliError::FileUnread {
        path: name.into(),
        source,
    };
    match fs::read_to_string(name) {
        Ok(text) => Ok(Scenario::read_with_captures(
            name,
            &text,
            captured::packets,
        )?),
        Err(_) if looks_like_a_name(name) => {
            let name = name.display().to_string();
            let near = builtin::near(&name);
            Err(CliError::NoSuchScenario { name, near })
        }
        Err(error) => Err(unread(error)),
    }
}

fn looks_like_a_name(path: &Path) -> bool {
    path.extension().is_none() && path.components().count() == 1 && !path.exists()
}

fn run_once(arguments: &RunArguments) -> Result<Done, CliError> {
    let scenario = open(&arguments.scenario.name)?;
    let settings = &arguments.settings;
    let plan = Plan::of_run(&scenario, settings.quick, &settings.sets, arguments.seed)
        .map_err(|error| CliError::Usage(error.to_string()))?;
    check_places(&arguments.outputs)?;
    let progress = Progress::new();
    let results = sweep::single(&scenario, plan, &progress);
    progress.ends();
    let outputs = &arguments.outputs;
    Ok(Done::of(
        &scenario,
        &results?,
        &arguments.command(),
        outputs,
    ))
}

fn sweep_all(arguments: &SweepArguments) -> Result<Done, CliError> {
    let scenario = open(&arguments.scenario.name)?;
    let settings = &arguments.settings;
    let (vary, seeds) = (&arguments.vary, arguments.seeds);
    let plan = Plan::of_sweep(&scenario, settings.quick, &settings.sets, vary, seeds)
        .map_err(SweepError::from)?;
    check_places(&arguments.outputs)?;
    let mut store = match &arguments.resume {
        Some(file) => {
            let store = Store::open(file, &scenario, &plan, VERSION).map_err(SweepError::from)?;
            end_with_what_is_kept(file.clone())?;
            Some(store)
        }
        None => None,
    };
    let jobs = match arguments.jobs {
        Some(jobs) => jobs.into(),
        None => available_parallelism().map_or(1, usize::from),
    };
    let progress = Progress::new();
    let results = sweep::sweep(&scenario, plan, jobs, store.as_mut(), &progress);
    progress.ends();
    let outputs = &arguments.outputs;
    Ok(Done::of(
        &scenario,
        &results?,
        &arguments.command(),
        outputs,
    ))
}

/// Each run is in the store as soon as it has ended, a line at a time: there is nothing to wait for.
fn end_with_what_is_kept(file: PathBuf) -> Result<(), CliError> {
    signals::end_on_signals(move || {
        let error = CliError::SweepInterrupted(file);
        output::progress_ends();
        output::error(&error.to_string(), error.hint().as_deref());
        std::process::exit(error.exit_code().into());
    })
}

/// Before hours are spent on what cannot be written then.
fn check_places(outputs: &OutputArguments) -> Result<(), CliError> {
    let failed = |path: &Path, error| CliError::failed(&path.display().to_string(), error);
    if let Some(folder) = &outputs.svg {
        fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
        let file = folder.join(format!(".packtrain-sim-{}", std::process::id()));
        may_write(&file).map_err(|error| failed(folder, error))?;
    }
    if let Some(report) = &outputs.report {
        may_write(report).map_err(|error| failed(report, error))?;
    }
    Ok(())
}

/// What is there stays as it is, and what is not is not there afterwards either.
fn may_write(file: &Path) -> io::Result<()> {
    match File::create_new(file) {
        Ok(_) => fs::remove_file(file),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            OpenOptions::new().append(true).open(file).map(|_| ())
        }
        Err(error) => Err(error),
    }
}

/// What has come out, and where it goes.
#[derive(Debug)]
struct Done {
    printed: String,
    files: Vec<(PathBuf, String)>,
    /// What was expected and has not come; of how many.
    unmet: Vec<String>,
    expectations: usize,
}

impl Done {
    fn of(
        scenario: &Scenario,
        results: &Results,
        command: &str,
        outputs: &OutputArguments,
    ) -> Done {
        let verdicts = judge(scenario, results);
        let study = Study {
            scenario,
            results,
            verdicts: &verdicts,
            command,
            version: VERSION,
        };
        let mut files = Vec::new();
        if let Some(folder) = &outputs.svg {
            let drawn = svg::plots(&study).into_iter();
            files.extend(drawn.map(|plot| (folder.join(&plot.file), plot.chart.svg())));
        }
        if let Some(report) = &outputs.report {
            files.push((report.clone(), html::html(&study)));
        }
        let unmet = verdicts
            .iter()
            .filter(|verdict| verdict.met() == Some(false));
        let unmet: Vec<String> = unmet.map(|verdict| verdict.says.clone()).collect();
        debug_assert_eq!(unmet.is_empty(), all_met(&verdicts));
        Done {
            printed: match (outputs.json, outputs.csv) {
                (true, _) => json::text(&study),
                (false, true) => csv::csv(&study),
                (false, false) => text::text_with(&study, styled),
            },
            files,
            unmet,
            expectations: verdicts.len(),
        }
    }

    /// What was computed is printed, whatever becomes of the files.
    fn told(self) -> Result<(), CliError> {
        output::text(&self.printed)?;
        for (path, text) in self.files {
            let written = fs::write(&path, text);
            written.map_err(|error| CliError::failed(&path.display().to_string(), error))?;
        }
        match self.unmet.is_empty() {
            true => Ok(()),
            false => Err(CliError::NotMet {
                unmet: self.unmet,
                expectations: self.expectations,
            }),
        }
    }
}

fn styled(part: Part, text: &str) -> String {
    let style = match part {
        Part::Title => output::HEADING,
        Part::Met => output::GOOD,
        Part::NotMet => output::BAD,
        Part::NotJudged => return text.to_owned(),
    };
    format!("{style}{text}{style:#}")
}
