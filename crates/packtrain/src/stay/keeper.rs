//! The keeper: a process that does nothing as long as its daemon lives.

mod keeping;
mod speech;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use self::keeping::Keeping;
use super::StayError;
use super::message::{Kept, Told};
use crate::linux::direct::KEPT_DESCRIPTORS;
use crate::linux::fd_passing::{self, Message};
use crate::running::Signals;

/// Beside those of the guards: of `pt0`, and of the path.
const DESCRIPTORS_BEFORE_GUARDS: usize = 1 + KEPT_DESCRIPTORS;

/// What is kept: descriptors alone, which are closed when they are replaced. To take the programs away is for
/// who has no daemon any more.
#[derive(Debug)]
struct Holding {
    kept: Kept,
    tap: OwnedFd,
    path: [OwnedFd; KEPT_DESCRIPTORS],
    guards: Vec<OwnedFd>,
}

impl Holding {
    fn new(kept: Kept, descriptors: Vec<OwnedFd>) -> Result<Holding, &'static str> {
        if descriptors.len() != DESCRIPTORS_BEFORE_GUARDS + kept.guards.len() {
            return Err("another number of descriptors than was told of");
        }
        let mut descriptors = descriptors.into_iter();
        let tap = descriptors.next().expect("counted");
        let path = std::array::from_fn(|_| descriptors.next().expect("counted"));
        Ok(Holding {
            kept,
            tap,
            path,
            guards: descriptors.collect(),
        })
    }
}

/// What the daemon has left.
enum Left {
    /// Nothing: it has taken everything apart, or there never was anything.
    Nothing,
    /// Its line. `asked`: it ended as somebody had asked it to.
    Line { holding: Box<Holding>, asked: bool },
}

/// Waits for the end of the daemon at the other end of this socket, and does then what there is to do.
pub fn keep(line: &str, daemon: &OwnedFd, signals: Signals) -> Result<(), StayError> {
    let failed = |source: io::Error| StayError::Io {
        line: line.into(),
        source,
    };
    let left = wait_for_its_end(daemon, &signals).map_err(failed)?;
    let Left::Line { holding, asked } = left else {
        return Ok(());
    };
    match Keeping::begin(*holding, signals, asked) {
        // One before us still has it, and with it the duty to undo everything.
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(()),
        begun => begun.and_then(Keeping::run).map_err(failed),
    }
}

fn wait_for_its_end(daemon: &OwnedFd, signals: &Signals) -> io::Result<Left> {
    let mut holding = None;
    let mut asked = false;
    loop {
        let signal_fd = signals.fd();
        let mut fds = [
            PollFd::new(daemon, PollFlags::IN),
            PollFd::new(&signal_fd, PollFlags::IN),
        ];
        wait(&mut fds, None)?;
        let is_told = !fds[0].revents().is_empty();
        if !is_told {
            // The line goes on without a keeper; its daemon starts another one.
            return Ok(Left::Nothing);
        }
        let Some(message) = fd_passing::receive(daemon)? else {
            return Ok(match holding {
                Some(holding) => Left::Line { holding, asked },
                None => Left::Nothing,
            });
        };
        match told(message)? {
            (Told::Keep(kept), descriptors) => {
                let new = Holding::new(kept, descriptors);
                let new = new.map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
                holding = Some(Box::new(new));
            }
            (Told::Leaving, _) => asked = true,
            (Told::End, _) => return Ok(Left::Nothing),
        }
    }
}

fn told(message: Message) -> io::Result<(Told, Vec<OwnedFd>)> {
    let told = serde_json::from_slice(&message.bytes)?;
    Ok((told, message.descriptors))
}

/// Until one of them can be read, or so long. Interrupted: none can.
fn wait(fds: &mut [PollFd<'_>], at_most: Option<Duration>) -> io::Result<()> {
    let at_most = at_most.map(|time| Timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: time.subsec_nanos().into(),
    });
    match poll(fds, at_most.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Takes out what waits in `pt0`, which nobody will carry. `false`: there is no such interface any more.
fn discard_frames(tap: impl AsFd) -> bool {
    /// Of one look: others want to be heard too.
    const FRAMES_MAX: usize = 1000;
    let mut frame = [0; 256];
    for _ in 0..FRAMES_MAX {
        // What does not fit the buffer is dropped with it.
        match rustix::io::read(&tap, &mut frame) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => return true,
            Err(_) => return false,
        }
    }
    true
}
