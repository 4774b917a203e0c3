//! Trains of links that died: copies that wait to be sent again on others, in the order of their
//! sequences.

use std::collections::VecDeque;

use crate::buffer::Buffer;
use crate::time::Instant;
use crate::wire::sequence::Sequence;

/// A train to be sent again.
#[derive(Debug)]
pub struct Waiting {
    pub train: Sequence,
    /// As it left the first time, outer Ethernet header included.
    pub message: Buffer,
    /// By whichever link.
    pub first_sent: Instant,
}

/// What one peer has to be sent again.
#[derive(Debug, Default)]
pub struct Replay {
    waiting: VecDeque<Waiting>,
    bytes: usize,
    /// The newest of all that wait, or were sent again and may be under way.
    newest: Option<Sequence>,
}

impl Replay {
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Something waits, or was sent again and may be under way.
    pub fn may_have_gone(&self) -> bool {
        self.newest.is_some()
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Of the copies, as buffers.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// More than one link may have died: all of them keep one order. Gives back what waits already.
    pub fn push(
        &mut self,
        train: Sequence,
        message: Buffer,
        first_sent: Instant,
    ) -> Option<Buffer> {
        let after = |waiting: &Waiting| !train.is_newer_than(waiting.train);
        let at = match self.waiting.back() {
            Some(last) if after(last) => self.waiting.iter().position(after),
            _ => None,
        };
        let at = at.unwrap_or(self.waiting.len());
        let behind = self.waiting.get(at);
        if behind.is_some_and(|waiting| waiting.train == train) {
            return Some(message);
        }
        self.bytes += message.capacity();
        self.note_sent(train);
        let waiting = Waiting {
            train,
            message,
            first_sent,
        };
        self.waiting.insert(at, waiting);
        None
    }

    /// It has arrived: its copy, if it waits.
    pub fn remove(&mut self, train: Sequence) -> Option<Buffer> {
        let at = self.waiting.iter().position(|w| w.train == train)?;
        let message = self.waiting.remove(at)?.message;
        self.bytes -= message.capacity();
        Some(message)
    }

    /// It may still arrive by another link than the one that had it first.
    pub fn note_sent(&mut self, train: Sequence) {
        let newer = |newest: Sequence| match train.is_newer_than(newest) {
            true => train,
            false => newest,
        };
        self.newest = Some(self.newest.map_or(train, newer));
    }

    pub fn first(&self) -> Option<&Waiting> {
        self.waiting.front()
    }

    pub fn pop(&mut self) -> Option<Waiting> {
        let waiting = self.waiting.pop_front()?;
        self.bytes -= waiting.message.capacity();
        Some(waiting)
    }

    /// The oldest that waits.
    pub fn oldest(&self) -> Option<Sequence> {
        Some(self.waiting.front()?.train)
    }

    /// No train after this one will still arrive by being sent again. `may_come`: some that were may be under way.
    pub fn newest(&mut self, may_come: bool) -> Option<Sequence> {
        if self.waiting.is_empty() && !may_come {
            self.newest = None;
        }
        self.newest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(replay: &mut Replay, train: u32) {
        let copy = Buffer::with_capacity(10);
        assert!(replay.push(Sequence(train), copy, Instant::ZERO).is_none());
    }

    #[test]
    fn trains_of_two_dead_links_go_in_one_order() {
        let mut replay = Replay::default();
        // Across the wrap of sequences.
        for train in [u32::MAX - 1, 1, 4, u32::MAX, 0, 3, 2] {
            push(&mut replay, train);
        }
        let order: Vec<u32> = std::iter::from_fn(|| replay.pop())
            .map(|waiting| waiting.train.0)
            .collect();
        assert_eq!(order, [u32::MAX - 1, u32::MAX, 0, 1, 2, 3, 4]);
        assert_eq!((replay.bytes(), replay.len()), (0, 0));
    }

    #[test]
    fn the_newest_is_told_until_all_is_acknowledged() {
        let mut replay = Replay::default();
        assert_eq!(replay.newest(false), None);
        push(&mut replay, 7);
        push(&mut replay, 5);
        assert_eq!(replay.newest(false), Some(Sequence(7)));
        replay.pop();
        replay.pop();
        assert_eq!(replay.newest(true), Some(Sequence(7)));
        assert_eq!(replay.newest(false), None);
        push(&mut replay, 3);
        assert_eq!(replay.newest(false), Some(Sequence(3)));
    }
}
