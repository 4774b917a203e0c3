//! Signals that end a line, as a descriptor to poll.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::cli::error::CliError;

/// From now on the signals that people and supervisors end a program with only make a descriptor
/// readable: whoever holds this ends by itself, and undoes what it did.
#[derive(Debug)]
pub struct Signals {
    pipe: UnixStream,
}

impl Signals {
    pub fn catch() -> Result<Signals, CliError> {
        Signals::register().map_err(|e| CliError::failed("catching signals", e))
    }

    fn register() -> io::Result<Signals> {
        let (pipe, writer) = UnixStream::pair()?;
        pipe.set_nonblocking(true)?;
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
            signal_hook::low_level::pipe::register(signal, writer.try_clone()?)?;
        }
        Ok(Signals { pipe })
    }

    /// Readable once a signal was caught.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Whether one was caught since the last question.
    pub fn caught(&mut self) -> bool {
        let mut caught = false;
        while matches!(self.pipe.read(&mut [0; 16]), Ok(len) if len > 0) {
            caught = true;
        }
        caught
    }
}
