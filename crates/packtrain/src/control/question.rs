//! The asking end for who must not wait: a process with a loop of its own that others live by.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::task::Poll;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::client::{ANSWER_BYTES_MAX, line_of, trusted_pid, understand};
use super::{ControlError, Request, Response, SOCKET_PREFIX};

/// Of an answer, at once: the rest is there in the loop's next turn.
const CHUNK_LEN: usize = 64 << 10;

/// One thing that the line or the filter of a name was asked, and has not answered yet. How long to wait for it, who asks decides.
#[derive(Debug)]
pub struct Question {
    stream: UnixStream,
    answer: Vec<u8>,
}

impl Question {
    /// Asks, and waits for nothing: where so many have asked before that one would have to wait, that is
    /// [`ControlError::Silent`].
    pub fn ask(name: &str, request: &Request) -> Result<Question, ControlError> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
            .map_err(io::Error::from)?;
        let address =
            SocketAddrUnix::new_abstract_name(format!("{SOCKET_PREFIX}{name}").as_bytes())
                .map_err(io::Error::from)?;
        rustix::net::connect(&socket, &address).map_err(io::Error::from)?;
        let mut stream = UnixStream::from(socket);
        trusted_pid(&stream)?;
        // A new socket has room for a question.
        stream.write_all(&line_of(request))?;
        Ok(Question {
            stream,
            answer: Vec::new(),
        })
    }

    /// Takes what has come of the answer.
    pub fn read(&mut self) -> Poll<Result<Response, ControlError>> {
        let mut chunk = vec![0; CHUNK_LEN];
        match self.stream.read(&mut chunk) {
            Ok(0) => return Poll::Ready(understand(&self.answer)),
            Ok(len) => self.answer.extend_from_slice(&chunk[..len]),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => {}
                _ => return Poll::Ready(Err(error.into())),
            },
        }
        if self.answer.last() == Some(&b'\n') {
            return Poll::Ready(understand(&self.answer));
        }
        if self.answer.len() as u64 > ANSWER_BYTES_MAX {
            let long = format!("it has more than {ANSWER_BYTES_MAX} bytes");
            return Poll::Ready(Err(ControlError::NotUnderstood(long)));
        }
        Poll::Pending
    }
}

impl AsFd for Question {
    /// Readable when [`Question::read`] has something.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
