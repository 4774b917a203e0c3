//! `packtrain pace`: rate control kind to intermediate routers.

mod arguments;

use super::error::CliError;
use super::output;
use crate::control::{self, Connection, ControlError, Request, Response};
use crate::instance;
use crate::pace::Pacer;
use crate::settings::values::InterfaceName;

pub use self::arguments::PaceArguments;
use self::arguments::PaceCommand;

/// A pacer ends within milliseconds; this is for a host that is starved.
const END_WAIT_MAX: std::time::Duration = std::time::Duration::from_secs(15);

pub fn run(arguments: &PaceArguments) -> Result<(), CliError> {
    match &arguments.command {
        PaceCommand::Link(_) => Err(CliError::Failed("not built yet".into())),
        PaceCommand::Measure(_) => Err(CliError::Failed("not built yet".into())),
        PaceCommand::Off { interface: None } => off_all(),
        PaceCommand::Off {
            interface: Some(interface),
        } => off(&Pacer::Link(interface.clone())),
        PaceCommand::Status { interface, json } => status(interface.as_ref(), *json),
    }
}

/// Ends one, whichever it is, and returns when all that it has changed is undone.
pub(super) fn off(pacer: &Pacer) -> Result<(), CliError> {
    let told = |error| not_told(pacer, error);
    let mut connection = Connection::open(&pacer.control_name()).map_err(told)?;
    connection.ask(Request::Down {}).map_err(told)?;
    connection.wait_for_end(END_WAIT_MAX).map_err(told)
}

/// Ends what can be ended, and tells of the first that could not.
fn off_all() -> Result<(), CliError> {
    let mut first = None;
    for pacer in running()? {
        match off(&pacer) {
            // It ended by itself meanwhile.
            Ok(()) | Err(CliError::NoPacer { .. }) => {}
            Err(error) if first.is_none() => first = Some(error),
            Err(error) => output::error(&error.to_string(), None),
        }
    }
    first.map_or(Ok(()), Err)
}

fn status(interface: Option<&InterfaceName>, json: bool) -> Result<(), CliError> {
    let _ = (interface, json);
    Err(CliError::Failed("not built yet".into()))
}

fn running() -> Result<Vec<Pacer>, CliError> {
    instance::running_pacers().map_err(|e| CliError::failed("/proc/net/unix", e))
}

/// The document as the pacer wrote it: a newer one may have fields that this binary does not know.
fn ask(pacer: &Pacer) -> Result<serde_json::Value, CliError> {
    match control::request(&pacer.control_name(), Request::Status {}) {
        Ok(Response::Status(document)) => Ok(document),
        Ok(other) => Err(CliError::NoAnswer {
            name: pacer.to_string(),
            reason: format!("an answer to something else: {other:?}"),
        }),
        Err(error) => Err(not_told(pacer, error)),
    }
}

fn not_told(pacer: &Pacer, error: ControlError) -> CliError {
    match error {
        ControlError::NotRunning => CliError::NoPacer {
            pacer: pacer.to_string(),
            log: log_left(pacer),
        },
        other => CliError::from_control(&pacer.to_string(), other),
    }
}

/// Of one that has ended without being asked to.
fn log_left(pacer: &Pacer) -> Option<std::path::PathBuf> {
    let path = instance::log_path(&pacer.file_name()).ok()?;
    path.exists().then_some(path)
}
