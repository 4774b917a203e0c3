//! `packtrain keep`: what a daemon starts, and nobody else.

use std::os::fd::AsFd;

use super::error::CliError;
use super::up::log;
use crate::running::Signals;
use crate::settings::values::{InterfaceName, LogLevel};
use crate::stay;

pub fn run(name: &InterfaceName) -> Result<(), CliError> {
    // Ctrl-C at the daemon's terminal is for the daemon.
    let _ = rustix::process::setsid();
    let _ = std::env::set_current_dir("/");
    log::start(LogLevel::Info);
    let signals = Signals::catch()?;
    let stdin = std::io::stdin();
    let daemon = stdin.as_fd().try_clone_to_owned();
    let daemon = daemon.map_err(|e| CliError::failed("standard input", e))?;
    // Two would be one too many: the end of the connection is what is waited for.
    let null = std::fs::File::open("/dev/null").map_err(|e| CliError::failed("/dev/null", e))?;
    rustix::stdio::dup2_stdin(&null).map_err(|e| CliError::failed("standard input", e))?;
    stay::keep(name.as_str(), &daemon, signals).map_err(|e| CliError::Failed(e.to_string()))
}
