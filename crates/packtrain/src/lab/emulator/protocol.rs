//! How commands speak with the emulator of a lab: a line of JSON each way, over a socket in the lab's
//! directory, which only root can enter. After a capture has been granted, pcapng follows.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::counters::WireStatus;
use super::lateness::LatenessSummary;
use crate::lab::topology::graph::{Carrier, DirectionState, State};
use crate::lab::topology::{Direction, Topology, Wire};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    Status {},
    /// Another description of a wire that is there.
    Set {
        wire: String,
        directions: Box<[Direction; 2]>,
    },
    Cut {
        of: WireChoice,
        /// Frames vanish, and both ends keep their carrier.
        silent: bool,
    },
    Mend {
        of: WireChoice,
    },
    /// What becomes of each frame on these wires from now on: after [`Response::Done`] comes pcapng,
    /// until the limit is reached or who asked says nothing more, which is to close its half of the
    /// connection.
    Capture {
        wires: Vec<WireChoice>,
        /// It ends after so many.
        frames_max: Option<u64>,
        /// Most bytes of each; 0: all.
        snap_len: u32,
        /// It comes when who asked has said that he wants no more.
        #[serde(default)]
        held: bool,
    },
    /// How late the wires ran since it was last reset.
    Lateness {
        reset: bool,
    },
    /// The answer comes at once, and the interfaces are gone when the connection ends.
    Down {},
}

/// A wire, or one direction of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireChoice {
    pub wire: String,
    /// The direction in which this node sends; `None`: both.
    pub from: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Response {
    Done,
    Status(Box<EmulatorStatus>),
    Lateness(LatenessSummary),
    /// It cannot be done, and why.
    Refused(String),
}

/// Everything that can be told of a lab's wires.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EmulatorStatus {
    /// With every change that was made.
    pub topology: Topology,
    /// As in the topology.
    pub wires: Vec<WireStatus>,
    pub lateness: LatenessSummary,
    /// Whether the kernel lets the emulator run before everything else.
    pub real_time: bool,
}

impl EmulatorStatus {
    /// What a drawing shows of it.
    pub fn drawn(&self) -> State {
        let of = |(wire, described): (&WireStatus, &Wire)| {
            let directions = [0, 1].map(|i| {
                let now = &wire.directions[i];
                DirectionState {
                    carrier: match (wire.carrier, now.silent) {
                        (false, _) => Carrier::Cut,
                        (true, true) => Carrier::Silent,
                        (true, false) => Carrier::Up,
                    },
                    bits_per_second: Some(now.bits_per_second),
                    utilisation: Some(now.utilisation),
                    ..DirectionState::from(&described.directions[i])
                }
            });
            (wire.name.clone(), directions)
        };
        let wires = self.wires.iter().zip(&self.topology.wires).map(of);
        State {
            wires: wires.collect(),
        }
    }
}

/// Why an emulator did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error("the emulator of the lab does not answer: {0}")]
    NoAnswer(#[from] io::Error),
    #[error("{0}")]
    Refused(String),
    #[error("the emulator of the lab said something that was not understood: {0}")]
    NotUnderstood(String),
}

/// Longest wait for an answer: an emulator answers between two frames.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// A time that has run out is no "resource temporarily unavailable".
fn in_words(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::Error::new(
            io::ErrorKind::TimedOut,
            format!("no answer within {} s", ANSWER_MAX.as_secs()),
        ),
        _ => error,
    }
}

/// Asks, and gives the answer, and the connection for what may follow.
pub fn ask(
    socket: &Path,
    request: &Request,
) -> Result<(Response, BufReader<UnixStream>), AskError> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    let mut line = serde_json::to_vec(request).expect("a request has no key but strings");
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut reader = BufReader::new(stream);
    let mut answer = String::new();
    reader.read_line(&mut answer).map_err(in_words)?;
    if answer.is_empty() {
        let ended = io::Error::new(io::ErrorKind::UnexpectedEof, "it has ended just now");
        return Err(AskError::NoAnswer(ended));
    }
    match serde_json::from_str(&answer) {
        Ok(Response::Refused(why)) => Err(AskError::Refused(why)),
        Ok(response) => Ok((response, reader)),
        Err(error) => Err(AskError::NotUnderstood(format!("{error}: {answer}"))),
    }
}
