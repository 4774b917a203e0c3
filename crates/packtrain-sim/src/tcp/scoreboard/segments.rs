//! Segments that are under way, each with its number: the first that a connection sends has 0.
//!
//! A number names a segment for as long as it is here, whatever is acknowledged before it; so whoever remembers one has
//! nothing to search.

use std::collections::VecDeque;

use packtrain_proto::time::Instant;

use super::Part;

/// A segment that was sent and is not acknowledged with all before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub offset: u64,
    /// The last time.
    pub at: Instant,
    pub len: u32,
    pub sacked: bool,
    pub lost: bool,
    /// Since it was lost. RFC 6675: it ends at or before HighRxt.
    pub resent: bool,
    /// Ever: its round trip says nothing (Karn).
    pub ambiguous: bool,
}

// Windows may hold a hundred thousand.
const _: () = assert!(size_of::<Sent>() == 24);

impl Sent {
    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.len)
    }

    pub fn part(&self) -> Part {
        Part {
            offset: self.offset,
            len: self.len,
        }
    }

    /// What it adds to the pipe (RFC 6675, 4, SetPipe).
    pub fn share(&self) -> u64 {
        let copies = u64::from(!self.lost) + u64::from(self.resent);
        if self.sacked {
            0
        } else {
            copies * u64::from(self.len)
        }
    }
}

/// In order, without gaps.
#[derive(Debug, Default)]
pub(super) struct Segments {
    sent: VecDeque<Sent>,
    first: u64,
}

impl Segments {
    /// The number of the first that is not acknowledged, if there is one.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The number that the next one will have.
    pub fn end(&self) -> u64 {
        self.first + self.sent.len() as u64
    }

    pub fn front(&self) -> Option<&Sent> {
        self.sent.front()
    }

    pub fn front_mut(&mut self) -> Option<&mut Sent> {
        self.sent.front_mut()
    }

    pub fn get(&self, number: u64) -> Option<&Sent> {
        self.sent.get(number.checked_sub(self.first)? as usize)
    }

    /// # Panics
    /// If it is acknowledged, or was not sent.
    pub fn get_mut(&mut self, number: u64) -> &mut Sent {
        &mut self.sent[(number - self.first) as usize]
    }

    pub fn push(&mut self, sent: Sent) {
        self.sent.push_back(sent);
    }

    pub fn pop(&mut self) {
        self.first += u64::from(self.sent.pop_front().is_some());
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Sent> {
        self.sent.iter_mut()
    }

    /// From the last one to the first.
    pub fn descending(&self) -> impl Iterator<Item = &Sent> {
        self.sent.iter().rev()
    }

    /// The number of the first segment that begins there or later. `mss`: what most of them have.
    pub fn number(&self, offset: u64, mss: u64) -> u64 {
        let Some(front) = self.sent.front() else {
            return self.first;
        };
        let guess = (offset.saturating_sub(front.offset) / mss) as usize;
        let is_it = |sent: &Sent| sent.offset == offset;
        let index = match self.sent.get(guess).is_some_and(is_it) {
            true => guess,
            false => self.sent.partition_point(|sent| sent.offset < offset),
        };
        self.first + index as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(offset: u64, len: u32) -> Sent {
        Sent {
            offset,
            at: Instant::ZERO,
            len,
            sacked: false,
            lost: false,
            resent: false,
            ambiguous: false,
        }
    }

    #[test]
    fn a_segment_is_found_by_where_it_begins_though_not_all_are_whole() {
        let mut segments = Segments::default();
        for (offset, len) in [(0, 10), (10, 10), (20, 3), (23, 10), (33, 10)] {
            segments.push(sent(offset, len));
        }
        let numbers =
            |segments: &Segments| [10, 20, 21, 23, 33, 43].map(|at| segments.number(at, 10));
        assert_eq!(numbers(&segments), [1, 2, 3, 3, 4, 5]);
        segments.pop();
        assert_eq!(numbers(&segments), [1, 2, 3, 3, 4, 5]);
        assert_eq!(segments.get(1).map(|sent| sent.offset), Some(10));
        assert!(segments.get(0).is_none() && segments.get(5).is_none());
    }

    #[test]
    fn what_is_lost_is_not_under_way_and_what_goes_again_is() {
        let mut one = sent(0, 10);
        assert_eq!(one.share(), 10);
        one.lost = true;
        assert_eq!(one.share(), 0);
        one.resent = true;
        assert_eq!(one.share(), 10);
        // A probe: both may still be on their way.
        one.lost = false;
        assert_eq!(one.share(), 20);
        one.sacked = true;
        assert_eq!(one.share(), 0);
    }
}
