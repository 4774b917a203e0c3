//! The asking end: a person's command. It blocks, with a time limit.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::sockopt::socket_peercred;

use super::{Request, Response, socket_address};

/// A line answers within its event loop's turn; this is for one that is stopped or starved.
pub const ANSWER_WAIT_MAX: Duration = Duration::from_secs(5);
/// Largest answer: a status document with full tables has some 2 MiB.
pub(super) const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// Why a line did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Nobody has the control socket.
    #[error("not running")]
    NotRunning,
    #[error("the control socket belongs to uid {uid} (pid {pid}), not to root")]
    Impostor { uid: u32, pid: i32 },
    #[error("no answer within {} s", .0.as_secs())]
    Silent(Duration),
    #[error("only root may ask this")]
    Denied,
    /// In the words of a command, with its exit code.
    #[error("{message}")]
    Told {
        exit_code: u8,
        message: String,
        hint: Option<String>,
    },
    #[error("{0}")]
    Refused(String),
    #[error("an answer that was not understood: {0}")]
    NotUnderstood(String),
    #[error("control socket: {0}")]
    Io(io::Error),
}

impl From<io::Error> for ControlError {
    fn from(error: io::Error) -> ControlError {
        match error.kind() {
            // Reset: it ended with our question still unread.
            io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe => ControlError::NotRunning,
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                ControlError::Silent(ANSWER_WAIT_MAX)
            }
            _ => ControlError::Io(error),
        }
    }
}

/// A connection to the line of a name.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<UnixStream>,
    server_pid: i32,
}

/// Asks the line of `name` one thing.
pub fn request(name: &str, request: Request) -> Result<Response, ControlError> {
    Connection::open(name)?.ask(request)
}

impl Connection {
    pub fn open(name: &str) -> Result<Connection, ControlError> {
        let stream = UnixStream::connect_addr(&socket_address(name)?)?;
        let server_pid = trusted_pid(&stream)?;
        stream.set_read_timeout(Some(ANSWER_WAIT_MAX))?;
        stream.set_write_timeout(Some(ANSWER_WAIT_MAX))?;
        let stream = BufReader::new(stream);
        Ok(Connection { stream, server_pid })
    }

    /// The process that took the name.
    pub fn server_pid(&self) -> i32 {
        self.server_pid
    }

    pub fn ask(&mut self, request: Request) -> Result<Response, ControlError> {
        self.send(&request)?;
        let mut answer = Vec::new();
        self.read_answer(&mut answer)?;
        understand(&answer)
    }

    /// Asks something that may take its time: `waiting` is told once, after `quiet`.
    pub fn ask_patiently(
        &mut self,
        request: Request,
        quiet: Duration,
        waiting: &mut dyn FnMut(),
    ) -> Result<Response, ControlError> {
        self.send(&request)?;
        let mut answer = Vec::new();
        self.stream.get_ref().set_read_timeout(Some(quiet))?;
        let early = self.read_answer(&mut answer);
        self.stream
            .get_ref()
            .set_read_timeout(Some(ANSWER_WAIT_MAX))?;
        match early {
            Err(ControlError::Silent(_)) => {
                waiting();
                // What has come of it is in `answer`.
                self.read_answer(&mut answer)?;
            }
            done => done?,
        }
        understand(&answer)
    }

    fn send(&mut self, request: &Request) -> Result<(), ControlError> {
        Ok(self.stream.get_mut().write_all(&line_of(request))?)
    }

    fn read_answer(&mut self, answer: &mut Vec<u8>) -> Result<(), ControlError> {
        let left = ANSWER_BYTES_MAX.saturating_sub(answer.len() as u64);
        (&mut self.stream).take(left).read_until(b'\n', answer)?;
        Ok(())
    }

    /// Asks for events, and gives how many before those that are kept are forgotten: [`Connection::next_line`] gives the events.
    pub fn ask_for_events(&mut self, request: Request) -> Result<u64, ControlError> {
        match self.ask(request)? {
            Response::Events { forgotten, .. } => Ok(forgotten),
            other => Err(ControlError::NotUnderstood(format!("{other:?}"))),
        }
    }

    /// From now on waits for the next line for as long as it takes.
    pub fn wait_for_ever(&mut self) -> Result<(), ControlError> {
        Ok(self.stream.get_ref().set_read_timeout(None)?)
    }

    /// What ends waiting, from elsewhere.
    pub fn socket(&self) -> io::Result<UnixStream> {
        self.stream.get_ref().try_clone()
    }

    /// The next of several lines of an answer, without its end; `None`: the connection has ended.
    pub fn next_line(&mut self) -> Result<Option<Vec<u8>>, ControlError> {
        let mut line = Vec::new();
        match self.read_answer(&mut line) {
            // It was killed.
            Err(ControlError::NotRunning) => return Ok(None),
            done => done?,
        }
        // What was cut off in the middle tells nothing.
        Ok(line.pop().filter(|last| *last == b'\n').map(|_| line))
    }

    /// Whether the next line need not be waited for.
    pub fn has_read_ahead(&self) -> bool {
        self.stream.buffer().contains(&b'\n')
    }

    /// Waits until the line has ended and undone everything, which closes the connection.
    pub fn wait_for_end(&mut self, wait_max: Duration) -> Result<(), ControlError> {
        self.stream.get_ref().set_read_timeout(Some(wait_max))?;
        match self.stream.read(&mut [0]) {
            Ok(_) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Err(ControlError::Silent(wait_max)),
            // It was killed on the way; the name is free all the same.
            Err(e) if e.kind() == io::ErrorKind::ConnectionReset => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The process that took the name, if it may be believed.
pub(super) fn trusted_pid(stream: &UnixStream) -> Result<i32, ControlError> {
    // Of an abstract name, these are the credentials of who called listen(2).
    let server = socket_peercred(stream).map_err(io::Error::from)?;
    let (uid, pid) = (server.uid.as_raw(), server.pid.as_raw_pid());
    match uid == 0 || uid == rustix::process::geteuid().as_raw() {
        true => Ok(pid),
        false => Err(ControlError::Impostor { uid, pid }),
    }
}

pub(super) fn line_of(request: &Request) -> Vec<u8> {
    let mut line = serde_json::to_vec(request).expect("a request is plain JSON");
    line.push(b'\n');
    line
}

pub(super) fn understand(answer: &[u8]) -> Result<Response, ControlError> {
    if answer.is_empty() {
        // It ended before it answered.
        return Err(ControlError::NotRunning);
    }
    match serde_json::from_slice(answer) {
        Ok(Response::Denied) => Err(ControlError::Denied),
        Ok(Response::Error(message)) => Err(ControlError::Refused(message)),
        Ok(Response::Refused {
            exit_code,
            message,
            hint,
        }) => Err(ControlError::Told {
            exit_code,
            message,
            hint,
        }),
        Ok(response) => Ok(response),
        Err(error) => Err(ControlError::NotUnderstood(error.to_string())),
    }
}
