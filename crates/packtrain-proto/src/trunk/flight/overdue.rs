//! The oldest train under way on a link: nothing may be further ahead of it than the receiver can hold, so
//! all links may come to wait for this one.

use super::{Flight, Kind, Record, SILENCE_MIN, Unacknowledged};
use crate::buffer::Buffer;
use crate::time::Instant;
use crate::trunk::lane::LaneId;
use crate::wire::sequence::Sequence;

impl Flight {
    /// No train of the lane before this one is under way here. `None`: none is.
    pub fn oldest_outstanding(&self, lane: LaneId) -> Option<Sequence> {
        let oldest = self.oldest(lane)?;
        Some(self.records[oldest].train.sequence)
    }

    /// Where the oldest train of the lane that is under way stands.
    fn oldest(&self, lane: LaneId) -> Option<usize> {
        if self.outstanding_in(lane) == 0 {
            return None;
        }
        let counts = |record: &Record| {
            record.outstanding && record.kind.is_needed() && record.train.lane == lane
        };
        let mut out = (0..self.records.len()).filter(|&at| counts(&self.records[at]));
        let first = out.next()?;
        // Replays are older than what they stand behind; all others rise.
        if self.replays == 0 {
            return Some(first);
        }
        let train = |at: usize| self.records[at].train.sequence;
        let older = |a: usize, b: usize| match train(a).is_newer_than(train(b)) {
            true => b,
            false => a,
        };
        Some(out.fold(first, older))
    }

    /// When the oldest train under way is out for longer than acknowledgements take here, and nothing
    /// behind it was acknowledged either. `None`: none is, or there is no copy of it to send again.
    pub fn overdue_at(&self, lane: LaneId) -> Option<Instant> {
        let record = &self.records[self.oldest(lane)?];
        let sent_at = record.sample.sent_at;
        if record.bytes == 0 {
            return Some(sent_at + self.late_after());
        }
        let is_kept = record.copy.is_some();
        is_kept.then(|| sent_at.max(self.last_progress) + self.late_after())
    }

    /// The same of whichever lane is first, on a link that has not shown its rate yet, and not before any link may seem silent.
    pub fn late_at_first_at(&self) -> Option<(LaneId, Instant)> {
        if self.is_proven() {
            return None;
        }
        let lanes = LaneId::first(self.lanes.len());
        let overdue = lanes.filter_map(|lane| Some((lane, self.overdue_at(lane)?)));
        let (lane, overdue_at) = overdue.min_by_key(|(_, at)| *at)?;
        Some((lane, overdue_at.max(self.last_progress + SILENCE_MIN)))
    }

    /// What may go again by other links, in the order in which it was sent, as lost here. What has no copy
    /// stays: this link may only be slow, and nothing else would bring it.
    pub fn take_kept(&mut self) -> Vec<Unacknowledged> {
        self.take_kept_where(|_| true)
    }

    /// The same of some lanes, without probes.
    pub fn take_kept_of(&mut self, lanes: &[LaneId]) -> Vec<Unacknowledged> {
        match lanes {
            [] => Vec::new(),
            _ => self.take_kept_where(|train| train.bytes > 0 && lanes.contains(&train.train.lane)),
        }
    }

    fn take_kept_where(&mut self, takes: impl Fn(&Record) -> bool) -> Vec<Unacknowledged> {
        let mut kept = Vec::new();
        for at in 0..self.records.len() {
            let record = &self.records[at];
            let stays = record.copy.is_none() || record.kind == Kind::Try;
            if stays || !takes(record) {
                continue;
            }
            let (train, first_sent) = (record.train, record.first_sent);
            self.remember_unanswered(at);
            self.settle(at, &mut |copy| {
                kept.push(Unacknowledged {
                    train,
                    copy: Some(copy),
                    first_sent,
                });
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
            let (train, first_sent) = (record.train, record.first_sent);
            let is_needed = record.kind.is_needed();
            let mut copy = None;
            self.settle(at, &mut |kept| copy = Some(kept));
            self.lost += 1;
            if is_needed {
                longer.push(Unacknowledged {
                    train,
                    copy,
                    first_sent,
                });
            }
        }
        self.forget_settled();
        longer
    }

    /// It has nothing for the host in it.
    pub fn oldest_is_probe(&self, lane: LaneId) -> bool {
        self.oldest(lane)
            .is_some_and(|at| self.records[at].bytes == 0)
    }

    /// The oldest train of the lane counts as lost, if it is a probe: those are sent anew where they are needed.
    pub fn give_up_oldest_probe(&mut self, lane: LaneId, release: &mut dyn FnMut(Buffer)) -> bool {
        let oldest = self.oldest(lane).filter(|&at| self.records[at].bytes == 0);
        let given_up = oldest.and_then(|at| self.settle(at, release)).is_some();
        self.forget_settled();
        given_up
    }
}
