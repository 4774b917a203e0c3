//! The queue before a rate: what a NIC, a port of a switch or a modem has, bounded in bytes or frames.

use std::collections::VecDeque;

use packtrain_proto::queue::codel::{Codel, CodelParams};
use packtrain_proto::time::Instant;

use super::carried::Carried;
use super::ecn::Marking;
use crate::frame::Frame;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    pub limit: QueueLimit,
    pub discipline: Discipline,
}

/// The most that stands there, the frame that is being sent included. An empty queue takes any frame,
/// as a NIC's ring does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    Bytes(usize),
    /// A frame that is still to be cut counts as what it becomes.
    Frames(usize),
}

/// What becomes of frames within the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    DropTail,
    /// RFC 8289, at the head. `ecn`: what is capable of it is marked, and not dropped.
    Codel {
        params: CodelParams,
        ecn: bool,
    },
    /// What is ECN-capable and comes to a queue of more than so many bytes is marked: the step of a
    /// data centre's switch (RFC 8257, section 3.1).
    MarkAbove {
        bytes: usize,
    },
}

impl QueueConfig {
    pub fn drop_tail(bytes: usize) -> QueueConfig {
        QueueConfig {
            limit: QueueLimit::Bytes(bytes),
            discipline: Discipline::DropTail,
        }
    }
}

#[derive(Debug)]
struct Waiting<F> {
    frame: F,
    entered: Instant,
}

#[derive(Debug)]
pub struct Queue<F = Frame> {
    config: QueueConfig,
    /// The first one may be on the wire already; it counts until its last bit has left.
    waiting: VecDeque<Waiting<F>>,
    bytes: usize,
    segments: usize,
    codel: Codel,
    /// The longest frame so far: with no more than that behind it, CoDel drops nothing.
    frame_bytes_max: usize,
    pub bytes_max_seen: usize,
}

/// What CoDel wants of the frame that would begin to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Send,
    SendMarked,
    Drop,
}

impl<F: Carried> Queue<F> {
    pub fn new(config: QueueConfig) -> Queue<F> {
        Queue {
            config,
            waiting: VecDeque::new(),
            bytes: 0,
            segments: 0,
            codel: Codel::new(),
            frame_bytes_max: 0,
            bytes_max_seen: 0,
        }
    }

    /// What stands there stays, even when it is more than the new limit.
    pub fn set(&mut self, config: QueueConfig) {
        if config.discipline != self.config.discipline {
            self.codel = Codel::new();
        }
        self.config = config;
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Frames, those that are still to be cut as one.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether so much more, in so many frames, is within the limit.
    pub fn has_room(&self, bytes: usize, frames: usize) -> bool {
        let within = match self.config.limit {
            QueueLimit::Bytes(limit) => self.bytes + bytes <= limit,
            QueueLimit::Frames(limit) => self.segments + frames <= limit,
        };
        within || self.is_empty()
    }

    /// Puts a frame at the end. Whether it was marked; `Err`: there is no room.
    pub fn push(&mut self, mut frame: F, now: Instant) -> Result<bool, F> {
        let (bytes, segments) = (frame.len_bytes(), frame.segment_count());
        if !self.has_room(bytes, segments) {
            return Err(frame);
        }
        let marked = match self.config.discipline {
            Discipline::MarkAbove { bytes } if self.bytes > bytes => {
                frame.mark() == Marking::Marked
            }
            _ => false,
        };
        self.segments += segments;
        self.bytes += bytes;
        self.bytes_max_seen = self.bytes_max_seen.max(self.bytes);
        self.frame_bytes_max = self.frame_bytes_max.max(bytes);
        self.waiting.push_back(Waiting {
            frame,
            entered: now,
        });
        Ok(marked)
    }

    /// The first frame, and when it came.
    pub fn first(&self) -> Option<(&F, Instant)> {
        let first = self.waiting.front()?;
        Some((&first.frame, first.entered))
    }

    /// Whether the first frame is to be sent, if it begins at `now`; to be asked once. Times never go
    /// back.
    pub fn verdict(&mut self, now: Instant) -> Verdict {
        let Discipline::Codel { params, ecn } = self.config.discipline else {
            return Verdict::Send;
        };
        let Some(first) = self.waiting.front_mut() else {
            return Verdict::Send;
        };
        let behind = self.bytes - first.frame.len_bytes();
        let sojourn = now.since(first.entered);
        let codel = &mut self.codel;
        if !codel.should_drop(sojourn, behind, self.frame_bytes_max, now, &params) {
            return Verdict::Send;
        }
        // As Linux does it: what carries the mark already is as good as marked now.
        match ecn {
            false => Verdict::Drop,
            true => match first.frame.mark() {
                Marking::NotCapable => Verdict::Drop,
                Marking::Marked => Verdict::SendMarked,
                Marking::MarkedBefore => Verdict::Send,
            },
        }
    }

    /// The first frame has left, or is dropped.
    pub fn pop(&mut self) -> F {
        let frame = self.waiting.pop_front().expect("there is one").frame;
        self.bytes -= frame.len_bytes();
        self.segments -= frame.segment_count();
        frame
    }

    /// Everything, what was being sent included.
    pub fn clear(&mut self) -> Vec<F> {
        (self.bytes, self.segments) = (0, 0);
        self.codel = Codel::new();
        self.waiting
            .drain(..)
            .map(|waiting| waiting.frame)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packtrain_proto::offload::Offload;

    fn frame(len: usize) -> Frame {
        Frame::new(vec![0; len], Offload::NONE)
    }

    #[test]
    fn a_full_queue_refuses_and_an_empty_one_takes_anything() {
        let mut queue = Queue::new(QueueConfig::drop_tail(1000));
        assert_eq!(queue.push(frame(5000), Instant::ZERO), Ok(false));
        assert!(queue.push(frame(15), Instant::ZERO).is_err());
        assert_eq!((queue.bytes(), queue.len()), (5000, 1));
        assert_eq!(queue.pop(), frame(5000));
        assert_eq!(queue.push(frame(500), Instant::ZERO), Ok(false));
        assert_eq!(queue.push(frame(500), Instant::ZERO), Ok(false));
        assert!(queue.push(frame(15), Instant::ZERO).is_err());
    }

    #[test]
    fn frames_are_counted_whatever_their_length() {
        let mut queue = Queue::new(QueueConfig {
            limit: QueueLimit::Frames(2),
            discipline: Discipline::DropTail,
        });
        assert!(queue.push(frame(9000), Instant::ZERO).is_ok());
        assert!(queue.push(frame(9000), Instant::ZERO).is_ok());
        assert!(queue.push(frame(15), Instant::ZERO).is_err());
    }

    #[test]
    fn a_limit_that_shrinks_drops_nothing_and_takes_nothing() {
        let mut queue = Queue::new(QueueConfig::drop_tail(1000));
        (0..10).for_each(|_| assert!(queue.push(frame(100), Instant::ZERO).is_ok()));
        queue.set(QueueConfig::drop_tail(300));
        for left in (3..10).rev() {
            assert!(queue.push(frame(15), Instant::ZERO).is_err());
            queue.pop();
            assert_eq!(queue.len(), left);
        }
        queue.pop();
        assert!(queue.push(frame(100), Instant::ZERO).is_ok());
    }
}
