//! Who comes after a daemon that left its line to a keeper: the next daemon, or `packtrain down`.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use packtrain_proto::wire::ethernet::MacAddr;
use rustix::net::sockopt::{Timeout, set_socket_timeout};

use super::message::{Answer, Asked, FORMAT, Kept, to_bytes};
use super::{StayError, socket_name};
use crate::cli::patience::{GOING_WAIT_MAX, Patience};
use crate::instance;
use crate::linux::fd_passing;
use crate::linux::host_state::HostState;
use crate::linux::netlink::Netlink;

/// A keeper answers within milliseconds.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(5);
/// Undoing takes milliseconds as well; this is for a host that is starved.
const END_WAIT_MAX: Duration = Duration::from_secs(15);

/// What a keeper has handed over, and the connection to it: it goes on keeping if this ends without a word.
#[derive(Debug)]
pub struct Heir {
    line: String,
    keeper: OwnedFd,
    pub tap: OwnedFd,
    pub ifindex: u32,
    /// The `pt0`s of peers to which its programs send directly until it lets go.
    pub destinations: Vec<MacAddr>,
    /// By which outer addresses its guards know direct frames.
    pub sources: Vec<MacAddr>,
}

/// Takes over what the keeper of this line has, if there is one.
pub fn take_over(line: &str) -> Result<Option<Heir>, StayError> {
    let Some(keeper) = find(line)? else {
        return Ok(None);
    };
    let failed = |source: io::Error| failed(line, source);
    say(&keeper, &Asked::TakeOver { format: FORMAT }).map_err(failed)?;
    let Some(message) = fd_passing::receive(&keeper).map_err(failed)? else {
        return Ok(None); // its time was over just now
    };
    let not_understood = |e: serde_json::Error| failed(io::Error::other(e));
    match serde_json::from_slice(&message.bytes).map_err(not_understood)? {
        Answer::Given {
            ifindex,
            destinations,
            sources,
        } => {
            let mut descriptors = message.descriptors.into_iter();
            let (Some(tap), None) = (descriptors.next(), descriptors.next()) else {
                return Err(failed(io::Error::other(
                    "no descriptor came with its answer",
                )));
            };
            Ok(Some(Heir {
                line: line.into(),
                keeper,
                tap,
                ifindex,
                destinations: Kept::addresses(&destinations),
                sources: Kept::addresses(&sources),
            }))
        }
        Answer::Refused { reason } => {
            // Of another version. What it has is taken away, as if it had not stayed.
            tracing::debug!("the keeper of {line}: {reason}");
            wait_for_end(line, keeper)?;
            Ok(None)
        }
    }
}

/// Has the keeper of this line undo everything, if there is one. Returns when that is done.
pub fn end(line: &str) -> Result<bool, StayError> {
    match connect(line)? {
        Some(keeper) => wait_for_end(line, keeper).map(|()| true),
        None => Ok(false),
    }
}

impl Heir {
    /// Ours carry the frames now: the keeper takes its programs away, and ends.
    pub fn let_go(self) {
        if let Err(error) = say(&self.keeper, &Asked::LetGo) {
            tracing::warn!("the keeper of {}: {error}", self.line);
        }
    }

    /// It does not fit what is to be made: it is undone, as if it had not stayed.
    pub fn refuse(self) -> Result<(), StayError> {
        drop(self.tap);
        wait_for_end(&self.line, self.keeper)
    }
}

/// One that is about to take its name is waited for: that of a daemon that ended in this moment.
fn find(line: &str) -> Result<Option<OwnedFd>, StayError> {
    let mut patience = Patience::of(GOING_WAIT_MAX);
    loop {
        if let Some(keeper) = connect(line)? {
            return Ok(Some(keeper));
        }
        if !is_held(line) || !patience.wait() {
            return Ok(None);
        }
    }
}

/// Whether `pt0` is there although its daemon, which is written down, is not.
fn is_held(line: &str) -> bool {
    let owner = instance::state_dir().map(|dir| HostState::owner(&dir, line));
    let is_orphan = matches!(owner, Ok(Ok(Some(owner))) if !owner.is_alive());
    let pt0 = || Netlink::open().and_then(|mut netlink| netlink.link_by_name(line));
    is_orphan && matches!(pt0(), Ok(Some(_)))
}

fn connect(line: &str) -> Result<Option<OwnedFd>, StayError> {
    let keeper = match fd_passing::call(&socket_name(line)) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(None),
        called => called.map_err(|source| failed(line, source))?,
    };
    wait_at_most(line, &keeper, ANSWER_WAIT_MAX)?;
    Ok(Some(keeper))
}

fn wait_at_most(line: &str, keeper: &OwnedFd, time: Duration) -> Result<(), StayError> {
    let set = set_socket_timeout(keeper, Timeout::Recv, Some(time));
    set.map_err(|error| failed(line, error.into()))
}

fn wait_for_end(line: &str, keeper: OwnedFd) -> Result<(), StayError> {
    let failed = |source: io::Error| failed(line, source);
    wait_at_most(line, &keeper, END_WAIT_MAX)?;
    say(&keeper, &Asked::End).map_err(failed)?;
    match fd_passing::receive(&keeper).map_err(failed)? {
        None => Ok(()),
        Some(_) => Err(failed(io::Error::other("it answers instead of ending"))),
    }
}

fn say(keeper: &OwnedFd, asked: &Asked) -> io::Result<()> {
    fd_passing::send(keeper, &to_bytes(asked), &[])
}

fn failed(line: &str, source: io::Error) -> StayError {
    let line = line.to_owned();
    match source.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => StayError::Silent { line },
        _ => StayError::Io { line, source },
    }
}
