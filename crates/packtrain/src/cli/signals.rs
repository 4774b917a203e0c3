//! Ctrl-C for commands that run until somebody ends them, and have something to say then.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::error::CliError;

/// The first signal is told to `first`, which lets the command end by itself. If that takes too long for
/// somebody, the next one ends the program.
pub(super) fn end_on_signals(first: impl FnOnce() + Send + 'static) -> Result<(), CliError> {
    let failed = |error| CliError::failed("signal handler", error);
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(failed)?;
    std::thread::spawn(move || {
        let mut signals = signals.forever();
        if signals.next().is_some() {
            first();
        }
        if let Some(signal) = signals.next() {
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}
