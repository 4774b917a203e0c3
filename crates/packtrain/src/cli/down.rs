//! `packtrain down`: ends lines, and returns when everything is undone.

use std::time::Duration;

use super::error::CliError;
use super::output;
use super::patience::{GOING_WAIT_MAX, Patience};
use crate::control::{Connection, Request};
use crate::instance;
use crate::linux::host_state::{HostState, Recovery};
use crate::settings::values::InterfaceName;
use crate::stay;

/// Undoing takes milliseconds; this is for a host that is starved.
const UNDO_WAIT_MAX: Duration = Duration::from_secs(15);

pub fn down(name: &InterfaceName) -> Result<(), CliError> {
    let mut patience = Patience::of(GOING_WAIT_MAX);
    loop {
        match end(name) {
            // Its daemon has ended, and it stays.
            Err(CliError::NotRunning { .. }) if end_keeper(name)? => return Ok(()),
            Err(not_running @ CliError::NotRunning { .. }) => match recover(name)? {
                Recovered::Undone => return Ok(()),
                Recovered::Nothing => return Err(not_running),
                Recovered::Owned { pid } if !patience.wait() => {
                    return Err(CliError::NoAnswer {
                        name: name.to_string(),
                        reason: format!("process {pid} runs it, and has no control socket"),
                    });
                }
                // It was killed, and is not quite gone.
                Recovered::Owned { .. } => {}
            },
            result => return result,
        }
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

fn end_keeper(name: &InterfaceName) -> Result<bool, CliError> {
    stay::end(name.as_str()).map_err(|e| CliError::Failed(e.to_string()))
}

fn end(name: &InterfaceName) -> Result<(), CliError> {
    let told = |error| CliError::from_control(name.as_str(), error);
    let mut connection = Connection::open(name.as_str()).map_err(told)?;
    connection.ask(Request::Down {}).map_err(told)?;
    connection.wait_for_end(UNDO_WAIT_MAX).map_err(told)
}

/// What was found of a line that does not answer.
enum Recovered {
    Nothing,
    Undone,
    Owned { pid: u32 },
}

/// Undoes what a line left that was killed.
fn recover(name: &InterfaceName) -> Result<Recovered, CliError> {
    let dir = instance::state_dir().map_err(|e| CliError::failed("/proc/thread-self/ns/net", e))?;
    match HostState::recover(&dir, name.as_str()) {
        Ok(Recovery::Undone { changes }) => {
            for change in instance::undone(&changes) {
                output::note(&change);
            }
            Ok(Recovered::Undone)
        }
        Ok(Recovery::Running { owner }) => Ok(Recovered::Owned { pid: owner.pid }),
        Ok(Recovery::Nothing | Recovery::Stale { .. }) => Ok(Recovered::Nothing),
        Err(error) => Err(CliError::Failed(error.to_string())),
    }
}
