//! `packtrain pace tcp`: slow start in spaced clusters.

mod arguments;
mod view;

use super::{ask, end, off};
use crate::cli::error::CliError;
use crate::cli::up::{checks, log};
use crate::cli::{detach, output, show};
use crate::linux::pace::Cgroup;
use crate::pace::Pacer;
use crate::pace::tcp::document::{RuleDocument, TcpDocument};
use crate::pace::tcp::rules::RuleWish;
use crate::pace::tcp::{RunError, RunningTcp, TcpSettings};
use crate::settings::values::LogLevel;

pub use self::arguments::TcpArguments;
pub(super) use self::arguments::settings_of_rules;
use self::arguments::{OnArguments, TcpCommand};

pub fn run(arguments: &TcpArguments) -> Result<(), CliError> {
    match &arguments.command {
        TcpCommand::On(arguments) => on(arguments),
        TcpCommand::Off {} => off(&Pacer::Tcp),
        TcpCommand::Status { json: true } => show::print_json(&ask(&Pacer::Tcp)?),
        TcpCommand::Status { json: false } => output::text(&status_text(ask(&Pacer::Tcp)?)?),
    }
}

fn on(arguments: &OnArguments) -> Result<(), CliError> {
    let settings = arguments.settings()?;
    if arguments.detached {
        run_detached(settings, arguments.log_level)
    } else if arguments.foreground {
        log::start(arguments.log_level);
        let running = start(settings, &mut |note| tracing::warn!("{note}"))?;
        Ok(running.run(|| {})?)
    } else {
        detach::launch("pacer of TCP", &Pacer::Tcp.file_name())
    }
}

fn start(mut settings: TcpSettings, note: &mut dyn FnMut(&str)) -> Result<RunningTcp, CliError> {
    checks::rights()?;
    if !settings.rules_only {
        settings.rules = rules_taken_over(&settings)?;
    }
    let signals = crate::running::Signals::catch()?;
    let control =
        checks::take_control_name(&Pacer::Tcp.control_name(), |pid| CliError::AlreadyRunning {
            name: Pacer::Tcp.to_string(),
            pid,
        })?;
    Ok(RunningTcp::start(settings, control, signals, note)?)
}

/// Those of a pacer that has paced by rules alone, which ends: this one goes on with them.
fn rules_taken_over(settings: &TcpSettings) -> Result<Vec<RuleWish>, CliError> {
    let document = match ask(&Pacer::Tcp) {
        Ok(document) => read(document)?,
        Err(CliError::NoPacer { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    if !document.rules_only {
        return Ok(Vec::new());
    }
    // What would end this one when the other has gone already.
    if let Some(path) = &settings.cgroup {
        Cgroup::find(path).map_err(RunError::from)?;
    }
    end(&Pacer::Tcp)?;
    Ok(document.rules.iter().map(RuleDocument::wish).collect())
}

/// The process that `pace tcp on` or `pace rule add` has started, and waits for.
pub(super) fn run_detached(settings: TcpSettings, log_level: LogLevel) -> Result<(), CliError> {
    detach::begin();
    log::start(log_level);
    let started = start(settings, &mut |note| {
        tracing::warn!("{note}");
        detach::note(note);
    });
    let running = match started {
        Ok(running) => running,
        Err(error) => {
            detach::failed(&error);
            return Err(error);
        }
    };
    let log = detach::claim_log(&Pacer::Tcp.file_name());
    let log = log
        .map_err(|e| CliError::failed("the log", e))
        .inspect_err(detach::failed)?;
    if !detach::stands()? {
        detach::remove_log(&log);
        return Err(CliError::Interrupted);
    }
    Ok(running.run(|| detach::remove_log(&log))?)
}

pub fn status_text(document: serde_json::Value) -> Result<String, CliError> {
    Ok(view::status(&read(document)?))
}

pub fn read(document: serde_json::Value) -> Result<TcpDocument, CliError> {
    serde_json::from_value(document).map_err(|error| CliError::NoAnswer {
        name: Pacer::Tcp.to_string(),
        reason: format!("its status is not understood: {error}"),
    })
}
