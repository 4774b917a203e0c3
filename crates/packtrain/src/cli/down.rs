//! `packtrain down`: ends lines, and returns when everything is undone.

use std::time::Duration;

use super::error::CliError;
use super::output;
use crate::control::{Connection, Request};
use crate::instance;
use crate::linux::host_state::{HostState, Recovery};
use crate::settings::values::InterfaceName;

/// Undoing takes milliseconds; this is for a host that is starved.
const UNDO_WAIT_MAX: Duration = Duration::from_secs(15);

pub fn down(name: &InterfaceName) -> Result<(), CliError> {
    match end(name) {
        Err(CliError::NotRunning { .. }) if recover(name)? => Ok(()),
        result => result,
    }
}

/// Ends what can be ended, and tells of the first that could not.
pub fn down_all() -> Result<(), CliError> {
    let running = instance::running().map_err(|e| CliError::failed("/proc/net/unix", e))?;
    let left_behind = instance::left_behind().map_err(|e| CliError::failed("/run/packtrain", e))?;
    let mut first = None;
    for name in running.iter().chain(&left_behind) {
        match down(name) {
            // It ended by itself meanwhile.
            Ok(()) | Err(CliError::NotRunning { .. }) => {}
            Err(error) if first.is_none() => first = Some(error),
            Err(error) => output::error(&error.to_string(), None),
        }
    }
    first.map_or(Ok(()), Err)
}

fn end(name: &InterfaceName) -> Result<(), CliError> {
    let told = |error| CliError::from_control(name.as_str(), error);
    let mut connection = Connection::open(name.as_str()).map_err(told)?;
    connection.ask(Request::Down {}).map_err(told)?;
    connection.wait_for_end(UNDO_WAIT_MAX).map_err(told)
}

/// Undoes what a line left that was killed; says whether there was anything of the kind.
fn recover(name: &InterfaceName) -> Result<bool, CliError> {
    let dir = instance::state_dir().map_err(|e| CliError::failed("/proc/thread-self/ns/net", e))?;
    match HostState::recover(&dir, name.as_str()) {
        Ok(Recovery::Undone { changes }) => {
            for change in instance::undone(&changes) {
                output::note(&change);
            }
            Ok(true)
        }
        Ok(Recovery::Running { owner }) => Err(CliError::NoAnswer {
            name: name.to_string(),
            reason: format!("process {} runs it, and has no control socket", owner.pid),
        }),
        Ok(Recovery::Nothing | Recovery::Stale { .. }) => Ok(false),
        Err(error) => Err(CliError::Failed(error.to_string())),
    }
}
