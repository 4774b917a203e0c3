//! Who reads the events of a line as they come: connections that stay.
//!
//! Each has a place in the backlog, and what of it is being written. It is written to when there is something new and
//! when its socket has room again, so much at a time; nobody waits for it.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;

use super::backlog::Backlog;

pub const FOLLOWERS_MAX: usize = 16;
/// What is put together for one of them at a time.
const CHUNK_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct Follower {
    pub(super) stream: UnixStream,
    pub(super) uid: u32,
    /// Lower: earlier.
    pub(super) serial: u64,
    place: u64,
    output: Vec<u8>,
    written: usize,
}

/// What is left to do for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// It has all that there is.
    Done,
    /// Its socket has no room now, or it has had enough for now.
    More,
    /// It reads no more.
    Gone,
}

impl Follower {
    /// `head`: what is written before the events from `place` on.
    pub(super) fn new(
        (stream, uid, serial): (UnixStream, u32, u64),
        head: Vec<u8>,
        place: u64,
    ) -> Follower {
        Follower {
            stream,
            uid,
            serial,
            place,
            output: head,
            written: 0,
        }
    }

    /// Once what is put together is written, a chunk more at most.
    pub(super) fn write(&mut self, backlog: &Backlog) -> Progress {
        if self.written == self.output.len() {
            self.output.clear();
            self.written = 0;
        }
        if self.output.len() < CHUNK_BYTES {
            backlog.read(&mut self.place, u64::MAX, CHUNK_BYTES, &mut self.output);
        }
        while self.written < self.output.len() {
            match self.stream.write(&self.output[self.written..]) {
                Ok(0) => return Progress::Gone,
                Ok(len) => self.written += len,
                Err(error) => {
                    return match error.kind() {
                        io::ErrorKind::WouldBlock => Progress::More,
                        io::ErrorKind::Interrupted => continue,
                        _ => Progress::Gone,
                    };
                }
            }
        }
        match self.place < backlog.next() {
            true => Progress::More,
            false => Progress::Done,
        }
    }
}
