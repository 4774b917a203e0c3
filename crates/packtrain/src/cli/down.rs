//! `packtrain down`: ends lines, and returns when everything is undone.

use std::time::Duration;

use super::error::CliError;
use super::output;
use crate::control::{Connection, Request};
use crate::instance;
use crate::settings::values::InterfaceName;

/// Undoing takes milliseconds; this is for a host that is starved.
const UNDO_WAIT_MAX: Duration = Duration::from_secs(15);

pub fn down(name: &InterfaceName) -> Result<(), CliError> {
    let told = |error| CliError::from_control(name.as_str(), error);
    let mut connection = Connection::open(name.as_str()).map_err(told)?;
    connection.ask(Request::Down {}).map_err(told)?;
    connection.wait_for_end(UNDO_WAIT_MAX).map_err(told)
}

/// Ends what can be ended, and tells of the first that could not.
pub fn down_all() -> Result<(), CliError> {
    let running = instance::running().map_err(|e| CliError::failed("/proc/net/unix", e))?;
    let mut result = Ok(());
    for name in &running {
        match down(name) {
            // It ended by itself meanwhile.
            Ok(()) | Err(CliError::NotRunning { .. }) => {}
            Err(error) if result.is_ok() => result = Err(error),
            Err(error) => output::error(&error.to_string(), None),
        }
    }
    result
}
