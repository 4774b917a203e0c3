//! What is in flight on one link to one peer, and what of it the acknowledgements say to have arrived. What they
//! tell about the link stands in `flight/delivery.rs`.
//!
//! Where there are several links, a copy of each train is kept until it is acknowledged or counts as
//! lost: when the link dies, the others send it again.

use std::collections::VecDeque;

use crate::buffer::Buffer;
use crate::time::{Duration, Instant};
use crate::trunk::bit_errors::{BitErrors, Estimate};
use crate::trunk::lane::{LaneId, TrainId};
use crate::trunk::receipts::ACK_DELAY_MAX;
use crate::trunk::recent::Recent;
use crate::wire::sequence::Sequence;
use crate::wire::train::Ack;
use black_hole::BlackHole;
use delivery::{Delivery, Sample};
use long_lost::LongLost;
pub use repair::Missing;
use repair::Repair;
use unanswered::Unanswered;

const RECORDS_MAX: usize = 16 * 1024;
/// A train is lost when a newer one was acknowledged, and it is so much longer on its way than the round trip takes.
const LATE_MIN: Duration = Duration::from_millis(5);
/// While the rate is not known, so much may be out in all, the local queue included: how long that
/// stands there is not known either, and all others would wait for it.
const UNPROVEN_MAX: usize = 16 * 1024;
/// An acknowledgement names no train that is so far before its newest.
pub const NAMED_MAX: usize = 64;
const SILENCE_MIN: Duration = Duration::from_millis(200);
/// A link that acknowledges something so soon after all that was out was given up had not died.
const LIVED_WITHIN: Duration = Duration::from_secs(5);

/// An acknowledgement of what was never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("acknowledges a train that was never sent")]
pub struct NeverSent;

/// Why a train leaves by this link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    New,
    /// The link by which it left before has died.
    Replay,
    /// It leaves by another one too, which has it kept.
    Duplicate,
    /// A copy of one that has arrived or is on its way: only its acknowledgement counts.
    Try,
}

impl Kind {
    /// It is to be sent again where it does not arrive.
    fn is_needed(self) -> bool {
        matches!(self, Kind::New | Kind::Replay)
    }

    /// Another link had it before: it may be older than what stands before it here.
    fn is_again(self) -> bool {
        matches!(self, Kind::Replay | Kind::Duplicate)
    }
}

/// A train that leaves.
#[derive(Debug)]
pub struct Sent {
    pub train: TrainId,
    /// 0 of a probe, whose acknowledgement may have to wait: its silence means nothing.
    pub bytes: usize,
    pub copy: Option<Buffer>,
    pub kind: Kind,
    /// When it left for the first time, by whichever link.
    pub first_sent: Instant,
}

/// A train of a link that died, and was not acknowledged.
#[derive(Debug)]
pub struct Unacknowledged {
    pub train: TrainId,
    pub copy: Option<Buffer>,
    pub first_sent: Instant,
}

#[derive(Debug)]
struct Record {
    train: TrainId,
    bytes: u32,
    outstanding: bool,
    kind: Kind,
    copy: Option<Buffer>,
    /// Another copy has gone already.
    repaired: bool,
    first_sent: Instant,
    sample: Sample,
}

/// What is to be told of one lane.
#[derive(Clone, Copy, Debug, Default)]
struct InLane {
    outstanding: usize,
    /// When a marker is to say that nothing more is coming behind what is out.
    marker_at: Option<Instant>,
    /// When a train or marker that tells what is under way left last.
    told_at: Instant,
    /// When something left last that goes again, and says itself nothing of that.
    again_at: Option<Instant>,
}

/// Trains under way on one path, and its estimates.
#[derive(Debug)]
pub struct Flight {
    next: Sequence,
    /// Trains `next − records.len()` … `next − 1`.
    records: VecDeque<Record>,
    in_flight: usize,
    outstanding: usize,
    replays: usize,
    /// Of those, probes, and when the last one left.
    replayed_probes: usize,
    probe_replayed_at: Instant,
    copies_bytes: usize,
    /// By [`LaneId::place`], those in which something was sent, and what lies between.
    lanes: Vec<InLane>,
    delivery: Delivery,
    last_progress: Instant,
    acknowledged_at: Instant,
    /// How often all that was out has counted as lost since anything was acknowledged.
    given_up_in_a_row: u32,
    lost: u64,
    /// Of the trains that arrived or were lost lately, those that were lost.
    loss: Recent,
    long_lost: LongLost,
    longest_arrived: usize,
    repair: Repair,
    unanswered: Unanswered,
    bit_errors: BitErrors,
    black_hole: BlackHole,
}

impl Flight {
    /// `mtu`: bytes of the largest train.
    pub fn new(mtu: usize) -> Flight {
        Flight {
            next: Sequence::FIRST,
            records: VecDeque::new(),
            in_flight: 0,
            outstanding: 0,
            replays: 0,
            replayed_probes: 0,
            probe_replayed_at: Instant::ZERO,
            copies_bytes: 0,
            lanes: vec![InLane::default()],
            delivery: Delivery::new(mtu),
            last_progress: Instant::ZERO,
            acknowledged_at: Instant::ZERO,
            given_up_in_a_row: 0,
            lost: 0,
            loss: Recent::default(),
            long_lost: LongLost::default(),
            longest_arrived: 0,
            repair: Repair::default(),
            unanswered: Unanswered::default(),
            bit_errors: BitErrors::default(),
            black_hole: BlackHole::default(),
        }
    }

    /// The link sequence that the next train takes.
    pub fn next_sequence(&self) -> Sequence {
        self.next
    }

    pub fn in_flight_bytes(&self) -> usize {
        self.in_flight
    }

    pub fn window_bytes(&self) -> usize {
        self.delivery.window_bytes()
    }

    pub fn round_trip(&self) -> Option<Duration> {
        self.delivery.round_trip()
    }

    pub fn round_trip_min(&self) -> Option<Duration> {
        self.delivery.round_trip_min()
    }

    /// Measured while there was more to send than the link took, bit/s, and when last.
    pub fn rate_bps(&self) -> Option<(u64, Instant)> {
        self.delivery.rate_bps()
    }

    /// While that is not known: what its bound lets through. One that has never answered is tried at once.
    pub fn expected_bps(&self) -> u64 {
        let per_round_trip = |round_trip: Duration| {
            let bits = self.window_bytes() as u64 * 8;
            bits * 1_000_000_000 / (round_trip.as_nanos() as u64).max(1)
        };
        self.round_trip_min().map_or(u64::MAX, per_round_trip)
    }

    pub fn lost_trains(&self) -> u64 {
        self.lost
    }

    /// Millionths of the trains of the last seconds that were lost, as acknowledgements tell; `None`: of none it is known.
    pub fn loss_ppm(&self, now: Instant) -> Option<u32> {
        self.loss.ppm(now)
    }

    /// Bytes of the longest train that the last acknowledgement named for the first time.
    pub fn longest_arrived(&self) -> usize {
        self.longest_arrived
    }

    /// Bytes of the largest train from now on.
    pub fn set_train_max(&mut self, bytes: usize) {
        self.delivery.set_mtu(bytes);
    }

    /// Trains were lost since bit errors were reckoned last, and it is time to.
    pub fn has_error_news(&self, now: Instant) -> bool {
        self.bit_errors.is_due(now)
    }

    /// How many bits are wrong, by what was acknowledged and what was lost while no queue stood. `None`: too little was lost to say.
    pub fn reckon_errors(&mut self, now: Instant) -> Option<Estimate> {
        self.bit_errors.reckon(now)
    }

    /// … as it was reckoned last.
    pub fn errors(&self) -> Option<Estimate> {
        self.bit_errors.estimate()
    }

    /// Trains wait somewhere on their way.
    pub fn has_queue(&self) -> bool {
        self.delivery.has_queue()
    }

    /// Nothing longer seems to arrive: bytes.
    pub fn black_hole_above(&self, now: Instant) -> Option<usize> {
        self.black_hole.above(now)
    }

    /// Most frames that went past the engine were lost, and long ones may have been among them.
    pub fn doubt_long(&mut self, now: Instant) {
        if self.black_hole.above(now).is_none() {
            self.black_hole.doubt(now);
        }
    }

    /// It is looked for what loses them.
    pub fn keep_doubt_of_long(&mut self, now: Instant) {
        self.black_hole.keep(now);
    }

    /// Several trains in a row were lost that were longer than all that arrived. Says so once.
    pub fn take_long_lost(&mut self) -> bool {
        self.long_lost.take_many()
    }

    /// How much a round trip differs from the smoothed one, on average: the mean deviation of RFC 6298 (RTTVAR).
    pub fn round_trip_deviation(&self) -> Option<Duration> {
        self.delivery.round_trip_deviation()
    }

    /// How long something is out and nothing was acknowledged.
    pub fn unanswered_for(&self, now: Instant) -> Duration {
        match self.in_flight {
            0 => Duration::ZERO,
            _ => now.since(self.acknowledged_at),
        }
    }

    /// `local_bytes` stand in the link's local queue still, which has a limit of its own: the
    /// window bounds what has left.
    pub fn has_room(&self, local_bytes: usize) -> bool {
        self.has_left(local_bytes) < self.window_bytes() && self.has_free_record()
    }

    /// The same of the only link. `local_bps`: the rate at which its local queue is seen to drain. What
    /// that one allows is never less than the window, and takes a division: it is asked last. Where a queue stands further on, something
    /// there is slower than that.
    pub fn has_room_alone(&self, local_bytes: usize, local_bps: Option<u64>) -> bool {
        let left = self.has_left(local_bytes);
        let fits_as_it_drains =
            || left < self.delivery.window_bytes_at(local_bps) && !self.delivery.has_queue();
        self.has_free_record() && (left < self.window_bytes() || fits_as_it_drains())
    }

    fn has_free_record(&self) -> bool {
        self.records.len() < RECORDS_MAX
    }

    /// Its bound still grows each round trip: what waits while there is no room waits for that, and not for the link.
    pub fn grows(&self) -> bool {
        !self.is_proven() || self.delivery.grows()
    }

    /// More than half the window is out: a prompt acknowledgement keeps the link busy.
    pub fn wants_ack(&self, local_bytes: usize) -> bool {
        self.has_left(local_bytes) * 2 > self.window_bytes()
    }

    fn has_left(&self, local_bytes: usize) -> usize {
        self.in_flight.saturating_sub(local_bytes)
    }

    /// Whether more may be put on this link though its rate is not known yet.
    pub fn is_proven(&self) -> bool {
        let unproven_max = UNPROVEN_MAX.max(self.delivery.reach_bytes());
        self.rate_bps().is_some() || self.in_flight < unproven_max
    }

    /// Bytes that stand somewhere behind the local queue, beyond what a link that keeps up has out.
    pub fn excess_bytes(&self, local_bytes: usize) -> usize {
        self.has_left(local_bytes)
            .saturating_sub(self.delivery.keeps_up_bytes())
    }

    /// Trains of which nobody knows whether they arrived.
    pub fn outstanding_trains(&self) -> usize {
        self.outstanding
    }

    /// Whether some of them that another link had sent before may still arrive. A probe is acknowledged in its turn,
    /// behind gaps that the receiver keeps open as long as it is told that something goes again: so it is told of a
    /// probe for as long as one takes to arrive, and not until it is acknowledged.
    pub fn may_bring_replays(&self, now: Instant) -> bool {
        let has_trains = self.replays > self.replayed_probes;
        let is_late = || now.since(self.probe_replayed_at) > self.late_after();
        has_trains || (self.replayed_probes > 0 && !is_late())
    }

    pub fn copies_bytes(&self) -> usize {
        self.copies_bytes
    }

    pub fn copies(&self) -> usize {
        let copied = |record: &&Record| record.copy.is_some();
        self.records.iter().filter(copied).count()
    }

    /// No train of the lane after this one is under way here, replays left out. `None`: none is.
    pub fn newest_outstanding(&self, lane: LaneId) -> Option<Sequence> {
        if self.outstanding_in(lane) == 0 {
            return None;
        }
        let own = |record: &&Record| {
            record.outstanding && record.kind == Kind::New && record.train.lane == lane
        };
        let newest = self.records.iter().rev().find(own)?;
        Some(newest.train.sequence)
    }

    /// Trains of the lane of which nobody knows whether they arrived.
    pub fn outstanding_in(&self, lane: LaneId) -> usize {
        self.lanes
            .get(lane.place())
            .map_or(0, |lane| lane.outstanding)
    }

    fn in_lane(&mut self, lane: LaneId) -> &mut InLane {
        if self.lanes.len() <= lane.place() {
            self.lanes.resize(lane.place() + 1, InLane::default());
        }
        &mut self.lanes[lane.place()]
    }

    /// The copy of the train that left last.
    pub fn newest_copy(&self) -> Option<&Buffer> {
        self.records.back()?.copy.as_ref()
    }

    /// A copy of the shortest train that is under way, and no probe.
    pub fn outstanding_copy(&self) -> Option<&Buffer> {
        let trains = self.records.iter().filter(|record| record.bytes > 0);
        let copies = trains.filter_map(|record| record.copy.as_ref());
        copies.min_by_key(|copy| copy.len())
    }

    /// Trains are under way, and all of them by another link too, which has them kept: nothing hangs on these.
    pub fn has_second_copies_alone(&self) -> bool {
        let mut out = self.records.iter().filter(|record| record.outstanding);
        self.in_flight > 0 && out.all(|record| record.kind == Kind::Duplicate)
    }

    /// A train with nothing to keep of it.
    pub fn on_sent(&mut self, bytes: usize, now: Instant) -> Sequence {
        let sent = Sent {
            train: TrainId {
                lane: LaneId::FIRST,
                sequence: self.next,
            },
            bytes,
            copy: None,
            kind: Kind::New,
            first_sent: now,
        };
        self.on_train_sent(sent, now)
    }

    /// Returns its link sequence.
    pub fn on_train_sent(&mut self, sent: Sent, now: Instant) -> Sequence {
        if self.in_flight == 0 {
            self.delivery.on_rest(now);
            self.last_progress = now;
            self.acknowledged_at = now;
        }
        self.copies_bytes += sent.copy.as_ref().map_or(0, Buffer::capacity);
        self.replays += usize::from(sent.kind.is_again());
        if sent.kind == Kind::Replay && sent.bytes == 0 {
            self.replayed_probes += 1;
            self.probe_replayed_at = now;
        }
        self.outstanding += 1;
        let in_lane = self.in_lane(sent.train.lane);
        in_lane.outstanding += 1;
        in_lane.marker_at = Some(now + ACK_DELAY_MAX);
        match sent.kind {
            Kind::New => in_lane.told_at = now,
            Kind::Replay => in_lane.again_at = Some(now),
            Kind::Duplicate | Kind::Try => {}
        }
        self.in_flight += sent.bytes;
        self.records.push_back(Record {
            train: sent.train,
            bytes: sent.bytes as u32,
            outstanding: true,
            kind: sent.kind,
            copy: sent.copy,
            repaired: false,
            first_sent: sent.first_sent,
            sample: self.delivery.begin_sample(self.in_flight, now),
        });
        let sequence = self.next;
        self.next = sequence.next();
        sequence
    }

    /// When a marker of the lane is to go, unless more trains do: something is out, and perhaps lost, behind which
    /// nothing comes by this link.
    pub fn marker_due(&self, lane: LaneId) -> Option<Instant> {
        let lane = self.lanes.get(lane.place())?;
        lane.marker_at.filter(|_| lane.outstanding > 0)
    }

    pub fn on_marker_sent(&mut self, lane: LaneId, now: Instant) {
        let lane = self.in_lane(lane);
        lane.marker_at = None;
        lane.told_at = now;
        lane.again_at = None;
    }

    /// When the receiver was last told by this link what of the lane is under way on the others.
    pub fn told_at(&self, lane: LaneId) -> Instant {
        let lane = self.lanes.get(lane.place());
        lane.map_or(Instant::ZERO, |lane| lane.told_at)
    }

    /// When something of the lane left last by this link that goes again. `None`: nothing did, or it has a marker behind it.
    pub fn went_again_at(&self, lane: LaneId) -> Option<Instant> {
        self.lanes.get(lane.place())?.again_at
    }

    /// Nothing more to send though there is room.
    pub fn on_source_empty(&mut self) {
        self.delivery.on_source_empty(self.in_flight);
    }

    /// Says whether it tells anything new. `release` takes the copies that are not needed any more.
    pub fn on_ack(
        &mut self,
        ack: &Ack,
        now: Instant,
        release: &mut dyn FnMut(Buffer),
    ) -> Result<bool, NeverSent> {
        if !self.next.is_newer_than(ack.newest) {
            return Err(NeverSent);
        }
        self.note_reordered(ack, now);
        self.note_late_answer(ack, now);
        let first = self.next.minus(self.records.len() as u32);
        let Ok(newest) = usize::try_from(ack.newest.distance_from(first)) else {
            return Ok(false); // older than all that is out
        };
        self.bit_errors.on_time(now);
        let is_clear = !self.delivery.has_queue();
        let mut sampled = None;
        let outstanding = self.outstanding;
        let (mut arrived, mut longest, lost_before) = (0, 0, self.lost);
        for at in named_by(ack, newest) {
            if let Some(bytes) = self.settle(at, release) {
                let record = &self.records[at];
                if record.repaired {
                    self.unanswered.arrived(record.train);
                }
                arrived += u64::from(bytes > 0);
                longest = longest.max(bytes);
                if is_clear && bytes > 0 {
                    self.bit_errors.on_arrived(bytes as usize);
                }
                self.delivery.on_delivered(bytes);
                sampled.get_or_insert((self.records[at].sample, at == newest));
            }
        }
        if let Some((sample, is_newest)) = sampled {
            self.note_progress(now);
            self.bit_errors.on_life(LIVED_WITHIN, now);
            self.black_hole.on_arrived(longest as usize);
            self.repair.on_acknowledged(ack.newest);
            let delay_nanos = is_newest.then_some(ack.delay_nanos);
            let sequences = (ack.newest, self.next);
            self.delivery
                .on_sample(&sample, delay_nanos, sequences, now);
        }
        for at in 0..newest {
            if self.counts_as_lost(at, newest, now) {
                self.lose(at, (newest, is_clear), release);
            }
        }
        self.long_lost.on_arrived(longest);
        self.longest_arrived = longest as usize;
        self.count_lately(lost_before, arrived, now);
        self.forget_settled();
        Ok(outstanding > self.outstanding)
    }

    /// `newest`: where the newest that was acknowledged stands; `is_clear`: no train waits on its way.
    fn lose(
        &mut self,
        at: usize,
        (newest, is_clear): (usize, bool),
        release: &mut dyn FnMut(Buffer),
    ) {
        let bytes = self.give_up_record(at, release).unwrap_or(0);
        self.lost += u64::from(bytes > 0);
        self.long_lost.on_lost(bytes);
        // Of what stands further before it nobody knows.
        if is_clear && bytes > 0 && newest - at <= NAMED_MAX {
            self.bit_errors.on_lost(bytes as usize);
        }
    }

    fn note_progress(&mut self, now: Instant) {
        self.last_progress = now;
        self.acknowledged_at = now;
        self.given_up_in_a_row = 0;
    }

    /// It stands behind enough that arrived, or is much later than one that left after it.
    fn counts_as_lost(&self, at: usize, newest: usize, now: Instant) -> bool {
        let record = &self.records[at];
        if !record.outstanding || record.bytes == 0 {
            // A probe is acknowledged in its turn, however many overtake it.
            return record.outstanding && newest - at > NAMED_MAX;
        }
        let late = match self.repairs() {
            // Nobody knows: what names it may be under way by a slower link.
            true if newest - at > NAMED_MAX => return self.is_given_up(at, now),
            true => self.is_overtaken(at, newest),
            false => now.since(record.sample.sent_at) > self.late_after(),
        };
        newest - at > self.repair.reorder_trains_max() || (self.round_trip().is_some() && late)
    }

    /// No acknowledgement takes so long when all is well.
    fn late_after(&self) -> Duration {
        match self.round_trip() {
            Some(round_trip) => (round_trip + ACK_DELAY_MAX) * 5 / 4 + LATE_MIN,
            None => SILENCE_MIN,
        }
    }

    /// It has arrived, or is given up: its bytes, if it was out.
    fn settle(&mut self, at: usize, release: &mut dyn FnMut(Buffer)) -> Option<u64> {
        let record = &mut self.records[at];
        if !std::mem::replace(&mut record.outstanding, false) {
            return None;
        }
        self.outstanding -= 1;
        self.lanes[record.train.lane.place()].outstanding -= 1;
        self.replays -= usize::from(record.kind.is_again());
        self.replayed_probes -= usize::from(record.kind == Kind::Replay && record.bytes == 0);
        self.in_flight -= record.bytes as usize;
        if let Some(copy) = record.copy.take() {
            self.copies_bytes -= copy.capacity();
            release(copy);
        }
        Some(u64::from(record.bytes))
    }

    /// The link has died: what it has not acknowledged, in the order in which it was sent. Nothing is
    /// under way on it any more.
    pub fn take_unacknowledged(&mut self) -> Vec<Unacknowledged> {
        let records = std::mem::take(&mut self.records);
        let counts = |record: &Record| record.outstanding && record.kind.is_needed();
        let out = records.into_iter().filter(counts);
        let unacknowledged = out.map(|record| Unacknowledged {
            train: record.train,
            copy: record.copy,
            first_sent: record.first_sent,
        });
        self.outstanding = 0;
        self.replays = 0;
        self.replayed_probes = 0;
        self.in_flight = 0;
        self.copies_bytes = 0;
        for lane in &mut self.lanes {
            lane.outstanding = 0;
            lane.marker_at = None;
        }
        unacknowledged.collect()
    }

    /// All that is out counts as lost.
    pub fn give_up(&mut self, now: Instant, release: &mut dyn FnMut(Buffer)) {
        let lost_before = self.lost;
        self.given_up_in_a_row += u32::from(self.in_flight > 0);
        let mut shortest = usize::MAX;
        for at in 0..self.records.len() {
            self.remember_unanswered(at);
            let bytes = self.settle(at, release);
            self.lost += u64::from(bytes.is_some());
            if let Some(bytes) = bytes.filter(|&bytes| bytes > 0) {
                shortest = shortest.min(bytes as usize);
                self.bit_errors.on_given_up(bytes as usize, now);
            }
        }
        if shortest < usize::MAX {
            let in_a_row = self.given_up_in_a_row;
            self.black_hole.on_given_up(shortest, in_a_row, now);
        }
        self.count_lately(lost_before, 0, now);
        self.records.clear();
        self.last_progress = now;
    }

    fn count_lately(&mut self, lost_before: u64, arrived: u64, now: Instant) {
        let lost = self.lost - lost_before;
        self.loss.add(lost as i64, lost + arrived, now);
    }

    fn forget_settled(&mut self) {
        while self.records.front().is_some_and(|r| !r.outstanding) {
            self.records.pop_front();
        }
    }
}

/// Records that are acknowledged, the newest first, which stands at `newest`.
fn named_by(ack: &Ack, newest: usize) -> impl Iterator<Item = usize> + use<> {
    // A bit each, that of `newest` last; without those of trains that have no record any more.
    let all = u128::from(ack.bitmap) << 1 | 1;
    let known = u128::MAX >> 127_usize.saturating_sub(newest);
    let mut rest = all & known;
    core::iter::from_fn(move || {
        let back = rest.trailing_zeros();
        rest &= rest.checked_sub(1)?;
        Some(newest - back as usize)
    })
}

mod black_hole;
mod delivery;
mod long_lost;
mod overdue;
mod repair;
mod round_trip_min;
mod silence;
#[cfg(test)]
mod tests;
mod unanswered;
