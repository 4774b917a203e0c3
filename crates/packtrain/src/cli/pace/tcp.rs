//! `packtrain pace tcp`: slow start in spaced clusters.

mod arguments;
mod view;

use super::{ask, off};
use crate::cli::error::CliError;
use crate::cli::up::{checks, log};
use crate::cli::{detach, output, show};
use crate::pace::Pacer;
use crate::pace::tcp::document::TcpDocument;
use crate::pace::tcp::{RunningTcp, TcpSettings};

pub use self::arguments::TcpArguments;
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
        run_detached(settings, arguments)
    } else if arguments.foreground {
        log::start(arguments.log_level);
        let running = start(settings, &mut |note| tracing::warn!("{note}"))?;
        Ok(running.run(|| {})?)
    } else {
        detach::launch("pacer of TCP", &Pacer::Tcp.file_name())
    }
}

fn start(settings: TcpSettings, note: &mut dyn FnMut(&str)) -> Result<RunningTcp, CliError> {
    checks::rights()?;
    let signals = crate::running::Signals::catch()?;
    let control =
        checks::take_control_name(&Pacer::Tcp.control_name(), |pid| CliError::AlreadyRunning {
            name: Pacer::Tcp.to_string(),
            pid,
        })?;
    Ok(RunningTcp::start(settings, control, signals, note)?)
}

/// The process that `pace tcp on` has started, and waits for.
fn run_detached(settings: TcpSettings, arguments: &OnArguments) -> Result<(), CliError> {
    detach::begin();
    log::start(arguments.log_level);
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
