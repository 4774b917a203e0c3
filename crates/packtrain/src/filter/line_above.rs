//! The line that an interface is a member link of.
//!
//! The lines that run in this namespace are asked, by their control sockets and without waiting: one that is stopped must not
//! hold up a filter that many others live by. One that does not answer is what it was known as; one that nobody knew is as
//! good as none, and what its sockets and programs on the interface take passes as any capture's does.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::task::Poll;
use std::time::Duration;

use packtrain_proto::time::Instant;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;

use crate::clock::Clock;
use crate::control::{ANSWER_WAIT_MAX, Question, Request, Response};
use crate::settings::values::InterfaceName;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineAbove {
    /// By which it is asked, whatever its interface is called by now.
    pub name: String,
    pub ifindex: u32,
}

/// What is known of it, and who was asked and has not answered yet: no line twice.
#[derive(Debug)]
pub struct LineSearch {
    /// Names change.
    ifindex: u32,
    line: Option<LineAbove>,
    asked: Vec<Asked>,
}

#[derive(Debug)]
struct Asked {
    line: InterfaceName,
    question: Question,
    until: Instant,
}

impl LineSearch {
    pub fn new(ifindex: u32) -> LineSearch {
        LineSearch {
            ifindex,
            line: None,
            asked: Vec::new(),
        }
    }

    pub fn line(&self) -> Option<&LineAbove> {
        self.line.as_ref()
    }

    /// Whether somebody is yet to answer.
    pub fn is_open(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Readable when [`LineSearch::step`] has something to do.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.asked.iter().map(|asked| asked.question.as_fd())
    }

    /// Asks all lines that run. Says whether the one above is known to be another one now: that it has ended shows at once.
    pub fn ask(&mut self, running: &[InterfaceName], now: Instant) -> bool {
        self.asked.retain(|asked| running.contains(&asked.line));
        for line in running {
            if self.asked.iter().any(|asked| asked.line == *line) {
                continue;
            }
            match Question::ask(line.as_str(), &Request::Status {}) {
                Ok(question) => self.asked.push(Asked {
                    line: line.clone(),
                    question,
                    until: now + ANSWER_WAIT_MAX,
                }),
                Err(error) => tracing::debug!("{line}, asked for its links: {error}"),
            }
        }
        let runs = |line: &LineAbove| running.iter().any(|name| name.as_str() == line.name);
        let has_ended = self.line.as_ref().is_some_and(|line| !runs(line));
        if has_ended {
            self.line = None;
        }
        has_ended
    }

    /// Takes the answers that have come. Says whether the line above is known to be another one now.
    pub fn step(&mut self, now: Instant) -> bool {
        let before = self.line.clone();
        let ifindex = self.ifindex;
        let line = &mut self.line;
        self.asked.retain_mut(|asked| match asked.question.read() {
            Poll::Pending if now < asked.until => true,
            Poll::Pending => {
                tracing::debug!("{} has not said which links it has", asked.line);
                false
            }
            Poll::Ready(Ok(Response::Status(document))) => {
                learn(line, asked.line.as_str(), &document, ifindex);
                false
            }
            Poll::Ready(other) => {
                tracing::debug!("{}, asked for its links: {other:?}", asked.line);
                false
            }
        });
        self.line != before
    }

    /// Waits until the line above has said so, or all that may be it have answered, for who has nothing else to do. Says
    /// whether it is known to be another one now.
    pub fn wait(&mut self, clock: &Clock, wait_max: Duration) -> io::Result<bool> {
        let until = clock.now() + wait_max;
        let mut has_changed = false;
        while self.is_open() && self.line.is_none() {
            let left = until.since(clock.now());
            if left.is_zero() {
                break;
            }
            let fds = self.fds();
            let mut fds: Vec<_> = fds
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
                .collect();
            let left = Timespec::try_from(left).expect("some seconds");
            match poll(&mut fds, Some(&left)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            drop(fds);
            has_changed |= self.step(clock.now());
        }
        Ok(has_changed)
    }
}

/// An interface belongs to one line.
fn learn(above: &mut Option<LineAbove>, name: &str, document: &Value, ifindex: u32) {
    let links = document["links"].as_array();
    let has_it = links.is_some_and(|links| links.iter().any(|link| link["ifindex"] == ifindex));
    match document["ifindex"].as_u64() {
        Some(line) if has_it => {
            *above = Some(LineAbove {
                name: name.into(),
                ifindex: line as u32,
            });
        }
        _ => {
            above.take_if(|above| above.name == name);
        }
    }
}

#[cfg(test)]
mod tests;
