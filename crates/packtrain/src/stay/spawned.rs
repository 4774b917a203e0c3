//! The keeper, from the side of its daemon.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::StayError;
use super::message::{Kept, Told, to_bytes};
use crate::cli::patience::Patience;
use crate::linux::fd_passing;

/// It only waits: that it does not end at once is a fault.
const END_WAIT_MAX: Duration = Duration::from_secs(2);

/// A keeper that waits for the end of this process, and that is told what to do then.
#[derive(Debug)]
pub struct Spawned {
    line: String,
    child: Child,
    socket: OwnedFd,
    told: Option<Kept>,
}

impl Spawned {
    pub fn spawn(line: &str) -> Result<Spawned, StayError> {
        let failed = |source| StayError::Spawn {
            line: line.into(),
            source,
        };
        let (socket, theirs) = fd_passing::pair().map_err(failed)?;
        let program = std::env::current_exe().map_err(failed)?;
        let child = Command::new(program)
            .args(["keep", line])
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .spawn()
            .map_err(failed)?;
        Ok(Spawned {
            line: line.into(),
            child,
            socket,
            told: None,
        })
    }

    /// What it keeps from now on. Says nothing where it knows already.
    pub fn keep(&mut self, kept: Kept, descriptors: &[BorrowedFd<'_>]) -> Result<(), StayError> {
        if self.told.as_ref() == Some(&kept) {
            return Ok(());
        }
        let told = Told::Keep(kept);
        match fd_passing::send(&self.socket, &to_bytes(&told), descriptors) {
            // It has not come to read the one before: the next look tells it.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            result => result.map_err(|source| self.failed(source))?,
        }
        if let Told::Keep(kept) = told {
            self.told = Some(kept);
        }
        Ok(())
    }

    /// Whether it has ended, by no wish of ours.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// This process ends as somebody has asked it to.
    pub fn leave(&self) -> Result<(), StayError> {
        let sent = fd_passing::send(&self.socket, &to_bytes(&Told::Leaving), &[]);
        sent.map_err(|source| self.failed(source))
    }

    /// There is nothing to keep any more. Returns when it holds nothing.
    pub fn end(mut self) {
        if let Err(error) = fd_passing::send(&self.socket, &to_bytes(&Told::End), &[]) {
            tracing::debug!("the keeper of {}: {error}", self.line);
        }
        let mut patience = Patience::of(END_WAIT_MAX);
        while !self.has_ended() {
            if !patience.wait() {
                tracing::warn!("the keeper of {} does not end, and is killed", self.line);
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
        }
    }

    fn failed(&self, source: io::Error) -> StayError {
        StayError::Io {
            line: self.line.clone(),
            source,
        }
    }
}
