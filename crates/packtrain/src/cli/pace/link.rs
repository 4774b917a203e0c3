//! `packtrain pace link`: starts a pacer of an interface, or changes the one that runs.

use super::arguments::LinkArguments;
use super::{not_told, off};
use crate::cli::detach;
use crate::cli::error::CliError;
use crate::cli::up::{checks, log};
use crate::control::{Connection, ControlError, Request};
use crate::pace::Pacer;
use crate::pace::link::rules::LinkRuleWish;
use crate::pace::link::wish::PaceSettings;
use crate::pace::link::{PaceError, RunningPacer};
use crate::settings::values::LogLevel;

pub fn run(arguments: &LinkArguments) -> Result<(), CliError> {
    let pacer = Pacer::Link(arguments.interface.clone());
    if arguments.off.is_some() {
        return off(&pacer);
    }
    let settings = || PaceSettings::of(arguments.interface.clone(), &arguments.wish());
    if arguments.detached {
        return run_detached(&pacer, settings, &[], arguments.log_level);
    }
    if arguments.foreground {
        log::start(arguments.log_level);
        let running = start(&pacer, settings, &[], &mut |note| tracing::warn!("{note}"))?;
        return Ok(running.run(|| {})?);
    }
    match change(&pacer, arguments) {
        Err(CliError::NoPacer { .. }) => {
            // Before a process is started for nothing.
            settings()?;
            detach::launch("pacer", &pacer.file_name())
        }
        changed => changed,
    }
}

fn change(pacer: &Pacer, arguments: &LinkArguments) -> Result<(), CliError> {
    let told = |error| match error {
        ControlError::Denied => CliError::NotRoot {
            action: "change",
            name: pacer.to_string(),
        },
        error => not_told(pacer, error),
    };
    let mut connection = Connection::open(&pacer.control_name()).map_err(told)?;
    let wish = arguments.wish();
    connection.ask(Request::PaceLink { wish }).map_err(told)?;
    Ok(())
}

fn start(
    pacer: &Pacer,
    settings: impl Fn() -> Result<PaceSettings, PaceError>,
    rules: &[LinkRuleWish],
    note: &mut dyn FnMut(&str),
) -> Result<RunningPacer, CliError> {
    let settings = settings()?;
    checks::rights()?;
    let signals = crate::running::Signals::catch()?;
    let control =
        checks::take_control_name(&pacer.control_name(), |pid| CliError::AlreadyRunning {
            name: pacer.to_string(),
            pid,
        })?;
    Ok(RunningPacer::start(
        settings, rules, control, signals, note,
    )?)
}

/// The process that `pace link` or `pace rule add` has started, and waits for.
pub(super) fn run_detached(
    pacer: &Pacer,
    settings: impl Fn() -> Result<PaceSettings, PaceError>,
    rules: &[LinkRuleWish],
    log_level: LogLevel,
) -> Result<(), CliError> {
    detach::begin();
    log::start(log_level);
    let started = start(pacer, settings, rules, &mut |note| {
        tracing::warn!("{note}");
        detach::note(note);
    });
    let running = started.inspect_err(detach::failed)?;
    let log = match detach::claim_log(&pacer.file_name()) {
        Ok(log) => log,
        Err(error) => {
            running.stop()?;
            let error = CliError::failed("the log", error);
            detach::failed(&error);
            return Err(error);
        }
    };
    if !detach::stands()? {
        running.stop()?;
        detach::remove_log(&log);
        return Err(CliError::Interrupted);
    }
    Ok(running.run(|| detach::remove_log(&log))?)
}
