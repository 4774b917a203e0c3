//! What a link has lost that lives, found soon enough that it may go again in its turn.
//!
//! The rules are those of RACK-TLP (RFC 8985), for links that keep their order, or nearly: one acknowledged that left four places later, or
//! one that left more than a quarter of a round trip later, and a train is missing. Where what was missing is acknowledged
//! after all, the link reorders, and twice as many places are allowed for from then on. Behind the last train of a burst
//! nothing newer comes: when nothing was acknowledged for longer than that takes, a copy of it goes by another link, and if
//! nothing is then, of some more after twice the time. Meanwhile new ones go by others.
//!
//! By an only link that takes long, for a copy would stand behind what is late. Where something behind it was acknowledged that is not so: what
//! is missing a quarter of a round trip later is lost (the reordering timer of RACK). Its receiver holds what is there, and waits for a word.

use std::collections::VecDeque;

use super::{Flight, Kind, Record};
use crate::buffer::Buffer;
use crate::time::{Duration, Instant};
use crate::trunk::lane::{LaneId, Lanes, TrainId};
use crate::trunk::receipts::ACK_DELAY_MAX;
use crate::wire::sequence::Sequence;
use crate::wire::train::Ack;

/// Links swap trains that are so many places apart, at least and at most.
const REORDER_TRAINS_MIN: usize = 3;
pub(super) const REORDER_TRAINS_MAX: usize = 16;
/// Of those that count as lost, so many are remembered: acknowledged after all, they show that the link reorders.
const REMEMBERED_MAX: usize = 16;
/// Links keep what they are given later than a quarter of a round trip after another one, and that, behind it.
const OVERTAKEN_MIN: Duration = Duration::from_millis(1);
/// So much later than it ever takes, hosts are prompt.
const TAIL_LATE_MIN: Duration = Duration::from_millis(2);
/// … and where a copy has no other way to go, and stands behind what it is a copy of.
const ALONE_LATE_MIN: Duration = Duration::from_millis(10);
/// Of the trains behind which nothing was acknowledged, so many go again at once.
const TAIL_TRAINS_MIN: usize = 4;
/// … and four times as many after twice the time, up to so often.
const TAILS_MAX: u32 = 6;
/// As long it is known, by whoever asks whether links live, whether this one does.
const DOUBT_MAX: Duration = Duration::from_millis(60);

/// A train that was lost.
#[derive(Debug)]
pub struct Missing {
    pub train: TrainId,
    /// By whichever link.
    pub first_sent: Instant,
    pub copy: Buffer,
}

#[derive(Debug)]
pub(super) struct Repair {
    /// Of these, what is lost is wanted.
    lanes: Lanes,
    /// One that left by more places later was acknowledged, and a train is lost.
    reorder_trains_max: usize,
    /// Link sequences of those that counted as lost lately.
    given_up: VecDeque<Sequence>,
    missing: Vec<Missing>,
    /// When the last tail went again, and how many have since something was acknowledged.
    tail_at: Instant,
    tails: u32,
    /// There and back by whichever is the slowest: an acknowledgement may come by it.
    longest_round_trip: Duration,
    /// There is no other link: what is late stands behind what else this one has to carry.
    is_alone: bool,
    /// The newest that was acknowledged.
    acknowledged: Option<Sequence>,
}

impl Default for Repair {
    fn default() -> Repair {
        Repair {
            lanes: Lanes::default(),
            reorder_trains_max: REORDER_TRAINS_MIN,
            given_up: VecDeque::new(),
            missing: Vec::new(),
            tail_at: Instant::ZERO,
            tails: 0,
            longest_round_trip: Duration::ZERO,
            is_alone: false,
            acknowledged: None,
        }
    }
}

impl Repair {
    pub(super) fn on_acknowledged(&mut self, newest: Sequence) {
        let newer = |before: &Sequence| before.is_newer_than(newest);
        self.acknowledged = self.acknowledged.filter(newer).or(Some(newest));
    }

    pub(super) fn reorder_trains_max(&self) -> usize {
        match self.lanes.is_empty() {
            true => REORDER_TRAINS_MAX,
            false => self.reorder_trains_max,
        }
    }
}

impl Flight {
    /// What is lost of these lanes is wanted: [`Flight::take_missing`]. `longest_round_trip`: of all links to the peer, which may be
    /// one.
    pub fn set_repairs(&mut self, lanes: Lanes, longest_round_trip: Duration, is_alone: bool) {
        self.repair.lanes = lanes;
        self.repair.longest_round_trip = longest_round_trip;
        self.repair.is_alone = is_alone;
    }

    pub fn has_missing(&self) -> bool {
        !self.repair.missing.is_empty()
    }

    /// What was lost since this was asked last, and was kept.
    pub fn take_missing(&mut self) -> impl Iterator<Item = Missing> {
        self.repair.missing.drain(..)
    }

    pub(super) fn repairs(&self) -> bool {
        !self.repair.lanes.is_empty()
    }

    /// One has been acknowledged that left so much later that this one should have been as well.
    pub(super) fn is_overtaken(&self, at: usize, by: usize) -> bool {
        let sent_at = |at: usize| self.records[at].sample.sent_at;
        sent_at(by).since(sent_at(at)) > self.overtaken_by_max()
    }

    /// So much later one may leave that arrives sooner.
    fn overtaken_by_max(&self) -> Duration {
        self.round_trip().unwrap_or_default() / 4 + OVERTAKEN_MIN
    }

    /// Where the newest train stands that was acknowledged, if any is out before it.
    fn acknowledged_at(&self) -> Option<usize> {
        let first = self.next.minus(self.records.len() as u32);
        let newest = self.repair.acknowledged?.distance_from(first);
        usize::try_from(newest).ok()
    }

    /// When what is missing before the newest train that was acknowledged is lost, by an only link that does not reorder.
    fn hole_due(&self) -> Option<Instant> {
        let is_in_order = self.repair.reorder_trains_max == REORDER_TRAINS_MIN;
        if !self.repair.is_alone || !is_in_order {
            return None;
        }
        let before = self.acknowledged_at()?;
        let mut holes = self.records.iter().take(before);
        let is_hole = |record: &Record| Flight::may_be_tail(record, self.repair.lanes);
        let has_hole = holes.any(is_hole);
        has_hole.then(|| self.last_progress + self.overtaken_by_max())
    }

    /// What is missing is lost, if it is time.
    pub fn give_up_holes(&mut self, now: Instant, release: &mut dyn FnMut(Buffer)) {
        let is_due = self.hole_due().is_some_and(|due| due <= now);
        let Some(newest) = self.acknowledged_at().filter(|_| is_due) else {
            return;
        };
        let (is_clear, lost_before) = (!self.delivery.has_queue(), self.lost);
        for at in 0..newest {
            if Flight::may_be_tail(&self.records[at], self.repair.lanes) {
                self.lose(at, (newest, is_clear), release);
            }
        }
        self.count_lately(lost_before, 0, now);
        self.forget_settled();
    }

    /// So soon after it left first what is lost may arrive, if the other links are as far.
    pub fn repaired_after(&self) -> Duration {
        let round_trip = self.round_trip().unwrap_or_default();
        (round_trip + ACK_DELAY_MAX) * 5 / 4 + round_trip / 2
    }

    /// It counts as lost: its bytes, if it was out.
    pub(super) fn give_up_record(
        &mut self,
        at: usize,
        release: &mut dyn FnMut(Buffer),
    ) -> Option<u64> {
        let record = &self.records[at];
        let is_wanted = self.repair.lanes.has(record.train.lane);
        if !is_wanted || record.kind == Kind::Try || record.bytes == 0 {
            return self.settle(at, release);
        }
        let (train, first_sent) = (record.train, record.first_sent);
        let has_gone_again = record.repaired;
        let sequence = self.next.minus((self.records.len() - at) as u32);
        if self.repair.given_up.len() == REMEMBERED_MAX {
            self.repair.given_up.pop_front();
        }
        self.repair.given_up.push_back(sequence);
        let mut kept = None;
        let bytes = self.settle(at, &mut |copy| kept = Some(copy));
        match kept {
            Some(copy) if has_gone_again => release(copy),
            Some(copy) => self.repair.missing.push(Missing {
                train,
                first_sent,
                copy,
            }),
            None => {}
        }
        bytes
    }

    /// What counted as lost is acknowledged: this link reorders.
    pub(super) fn note_reordered(&mut self, ack: &Ack, now: Instant) {
        if self.repair.given_up.is_empty() {
            return;
        }
        let before = self.repair.given_up.len();
        self.repair
            .given_up
            .retain(|sequence| !ack.names(*sequence));
        let came = before - self.repair.given_up.len();
        if came > 0 {
            let max = &mut self.repair.reorder_trains_max;
            *max = (*max * 2).min(REORDER_TRAINS_MAX);
            self.loss.add(-(came as i64), 0, now);
        }
    }

    fn may_be_tail(record: &Record, lanes: Lanes) -> bool {
        let counts = record.outstanding && record.kind != Kind::Try && record.bytes > 0;
        let is_wanted = lanes.has(record.train.lane) && record.copy.is_some();
        counts && is_wanted && !record.repaired
    }

    /// No acknowledgement has taken longer lately, nor would by the slowest link, or hardly.
    fn acknowledged_within(&self) -> Duration {
        let longest = self.delivery.round_trip_max().unwrap_or_default();
        let longest = longest.max(self.repair.longest_round_trip);
        let usual = self.round_trip().unwrap_or_default();
        let within = longest.max((usual + ACK_DELAY_MAX) * 5 / 4) + ACK_DELAY_MAX + TAIL_LATE_MIN;
        match self.repair.is_alone {
            true => within * 2 + ALONE_LATE_MIN,
            false => within,
        }
    }

    /// Its last trains went again, and nothing was acknowledged since, for so long: it may have died just now.
    pub fn in_doubt_for(&self, now: Instant) -> Option<Duration> {
        let tail_at = self.repair.tail_at;
        let is_in_doubt = self.repair.tails > 0
            && tail_at >= self.last_progress
            && now.since(tail_at) < DOUBT_MAX;
        is_in_doubt.then(|| self.unanswered_for(now))
    }

    /// It was not named in all that time.
    pub(super) fn is_given_up(&self, at: usize, now: Instant) -> bool {
        now.since(self.records[at].sample.sent_at) > self.acknowledged_within()
    }

    /// When a copy of the oldest trains under way goes by another link, if nothing is acknowledged, or what is missing by this one.
    pub fn tail_due(&self) -> Option<Instant> {
        if !self.repairs() || self.in_flight == 0 {
            return None;
        }
        self.round_trip()?;
        if let Some(due) = self.hole_due() {
            return Some(due);
        }
        let oldest = self
            .records
            .iter()
            .find(|record| Flight::may_be_tail(record, self.repair.lanes))?;
        let since = oldest.sample.sent_at.max(self.last_progress);
        let after = self.acknowledged_within();
        let is_first = self.last_progress > self.repair.tail_at;
        let backoff = if is_first { 0 } else { self.repair.tails };
        Some(since.max(self.repair.tail_at + after * ((1 << backoff) - 1)) + after)
    }

    /// Trains of which a copy is to go again, made by `copy_of`; they stay under way here as well.
    pub fn take_tail(&mut self, copy_of: &mut dyn FnMut(&Buffer) -> Option<Buffer>, now: Instant) {
        let is_first = self.last_progress > self.repair.tail_at;
        self.repair.tails = if is_first {
            1
        } else {
            (self.repair.tails + 1).min(TAILS_MAX)
        };
        self.repair.tail_at = now;
        let (records, lanes) = (self.records.iter_mut(), self.repair.lanes);
        let tail = records.filter(|record| Flight::may_be_tail(record, lanes));
        let trains_max = TAIL_TRAINS_MIN << (2 * (self.repair.tails - 1));
        for record in tail.take(trains_max) {
            let copy = record.copy.as_ref().and_then(&mut *copy_of);
            if let Some(copy) = copy {
                record.repaired = true;
                self.repair.missing.push(Missing {
                    train: record.train,
                    first_sent: record.first_sent,
                    copy,
                });
            }
        }
    }

    /// The oldest train of the lane that is under way here and kept.
    pub fn oldest_kept(&self, lane: LaneId) -> Option<Sequence> {
        if self.outstanding_in(lane) == 0 {
            return None;
        }
        let is_kept = |record: &&Record| {
            let counts = record.outstanding && record.bytes > 0 && record.copy.is_some();
            counts && record.train.lane == lane
        };
        let mut kept = self.records.iter().filter(is_kept);
        let first = kept.next()?.train.sequence;
        // What goes again may be older than what stands before it.
        match self.replays {
            0 => Some(first),
            _ => Some(kept.fold(first, |oldest, record| {
                oldest.older_of(record.train.sequence)
            })),
        }
    }

    /// No train of the lane before this one is under way here because another link has lost it, has died, or has it as well. `None`:
    /// none is.
    pub fn oldest_replay(&self, lane: LaneId) -> Option<Sequence> {
        if self.replays == 0 || self.outstanding_in(lane) == 0 {
            return None;
        }
        let counts = |record: &&Record| {
            record.outstanding && record.kind.is_again() && record.train.lane == lane
        };
        let replays = self.records.iter().filter(counts);
        replays
            .map(|record| record.train.sequence)
            .reduce(Sequence::older_of)
    }
}
