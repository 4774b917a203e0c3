//! The oldest train under way on a link: nothing may be further ahead of it than the receiver can hold, so
//! all links may come to wait for this one.

use super::{Flight, Kind, Record, SILENCE_MIN, Unacknowledged};
use crate::buffer::Buffer;
use crate::time::Instant;
use crate::wire::sequence::Sequence;

impl Flight {
    /// No train before this one is under way here. `None`: none is.
    pub fn oldest_outstanding(&self) -> Option<Sequence> {
        let oldest = self.oldest()?;
        Some(self.records[oldest].train)
    }

    /// Where the oldest train that is under way stands.
    fn oldest(&self) -> Option<usize> {
        let counts = |record: &Record| record.outstanding && record.kind.is_needed();
        let mut out = (0..self.records.len()).filter(|&at| counts(&self.records[at]));
        let first = out.next()?;
        // Replays are older than what they stand behind; all others rise.
        if self.replays == 0 {
            return Some(first);
        }
        let train = |at: usize| self.records[at].train;
        let older = |a: usize, b: usize| match train(a).is_newer_than(train(b)) {
            true => b,
            false => a,
        };
        Some(out.fold(first, older))
    }

    /// When the oldest train under way is out for longer than acknowledgements take here, and nothing
    /// behind it was acknowledged either. `None`: none is, or there is no copy of it to send again.
    pub fn overdue_at(&self) -> Option<Instant> {
        let record = &self.records[self.oldest()?];
        let sent_at = record.sample.sent_at;
        if record.bytes == 0 {
            return Some(sent_at + self.late_after());
        }
        let is_kept = record.copy.is_some();
        is_kept.then(|| sent_at.max(self.last_progress) + self.late_after())
    }

    /// The same, on a link that has not shown its rate yet, and not before any link may seem silent.
    pub fn late_at_first_at(&self) -> Option<Instant> {
        let overdue_at = self.overdue_at().filter(|_| !self.is_proven())?;
        Some(overdue_at.max(self.last_progress + SILENCE_MIN))
    }

    /// What may go again by other links, in the order in which it was sent, as lost here. What has no copy
    /// stays: this link may only be slow, and nothing else would bring it.
    pub fn take_kept(&mut self) -> Vec<Unacknowledged> {
        let mut kept = Vec::new();
        for at in 0..self.records.len() {
            let record = &self.records[at];
            if record.copy.is_none() || record.kind == Kind::Try {
                continue;
            }
            let train = record.train;
            self.settle(at, &mut |copy| {
                let copy = Some(copy);
                kept.push(Unacknowledged { train, copy });
            });
        }
        self.forget_settled();
        kept
    }

    /// No train longer than this passes any more: what may go again by other links, in the order in which it was sent.
    pub fn take_longer_than(&mut self, bytes: usize) -> Vec<Unacknowledged> {
        let mut longer = Vec::new();
        for at in 0..self.records.len() {
            let record = &self.records[at];
            if !record.outstanding || record.bytes as usize <= bytes {
                continue;
            }
            let (train, is_needed) = (record.train, record.kind.is_needed());
            let mut copy = None;
            self.settle(at, &mut |kept| copy = Some(kept));
            self.lost += 1;
            if is_needed {
                longer.push(Unacknowledged { train, copy });
            }
        }
        self.forget_settled();
        longer
    }

    /// It has nothing for the host in it.
    pub fn oldest_is_probe(&self) -> bool {
        self.oldest().is_some_and(|at| self.records[at].bytes == 0)
    }

    /// The oldest train counts as lost, if it is a probe: those are sent anew where they are needed.
    pub fn give_up_oldest_probe(&mut self, release: &mut dyn FnMut(Buffer)) -> bool {
        let oldest = self.oldest().filter(|&at| self.records[at].bytes == 0);
        let given_up = oldest.and_then(|at| self.settle(at, release)).is_some();
        self.forget_settled();
        given_up
    }
}
