//! A member link: its state, what stands in its local queue, and how fast that drains.
//!
//! The local queue is kept shallow, so that the queue stands in the engine where frames can meet
//! and take turns, and no small frame waits there for longer than it may ([`SandBound`]). On a busy host
//! that is too little to keep the link from running dry until we are called again; then it becomes more, and less again when
//! it was enough for a while (as the kernel's byte queue limits do, `lib/dynamic_queue_limits.c`).
//! A queue that is never seen standing (a virtual wire, a link faster than the host) has no
//! measured rate and a generous limit.

use crate::config::{LinkId, LinkOrder, LinkSettings, LinkState, Unused, direct_mark_of};
use crate::direct::gate::DirectGate;
use crate::direct::striping::DirectRate;
use crate::rates::{bytes_in, time_of};
use crate::sand::{FRAMES_MIN, SandBound};
use crate::stats::{DropReason, Drops, LinkSand, LinkSnapshot, Traffic};
use crate::time::{Duration, Instant};
use crate::wire::ethernet::MacAddr;

use queue_time::QueueTime;

/// What may stand below while no rate is known, bytes.
pub const LIMIT_UNKNOWN: usize = 256 * 1024;
const LIMIT_MAX: usize = 1 << 20;
/// On slower links, frames of several segments go in pieces: each train is full then and has the
/// headers once, and a wire that lets frames overtake each other harms nothing. On faster ones the
/// processor time that cutting costs counts for more; on a starved host, whose links look slow, it
/// would make them slow.
const CUT_BELOW_BPS: u64 = 200_000_000;
/// A link counts as slow when it was not seen faster in this window and the one before. A host that is
/// starved sees its links stand still for milliseconds, and then drain all at once.
const PEAK_WINDOW: Duration = Duration::from_millis(50);
/// A queue that empties says something about a link's speed when it was so long: shapers let shorter
/// ones pass at once.
const PEAK_BYTES_MIN: u64 = 32 * 1024;
/// A rate is measured over at least this much busy time.
const MEASURE: Duration = Duration::from_millis(2);
/// Trains whose length is averaged, about.
const TRAIN_MEAN_OF: usize = 16;
const REFUSED_AGE_MAX: Duration = Duration::from_secs(10);
const RATE_AGE_MAX: Duration = Duration::from_secs(10);
/// The least MTU over which trains go: header, acknowledgements, and of the largest headers of
/// an inner frame as much as must not be torn.
pub const TRAIN_MTU_MIN: u16 = 256;

/// How fast the local queue drains, seen while it stands.
#[derive(Debug)]
struct Drain {
    /// The fill, at the last telling, and when.
    told: Option<(usize, Instant)>,
    given: usize,
    busy_bytes: u64,
    busy_time: Duration,
    rate_bps: Option<(u64, Instant)>,
    /// The most that was measured in this window and in the one before, and when this one began.
    peaks_bps: [u64; 2],
    peaks_at: Instant,
}

impl Default for Drain {
    fn default() -> Drain {
        Drain {
            told: None,
            given: 0,
            busy_bytes: 0,
            busy_time: Duration::ZERO,
            rate_bps: None,
            // What was not looked at yet may be fast.
            peaks_bps: [u64::MAX; 2],
            peaks_at: Instant::ZERO,
        }
    }
}

impl Drain {
    fn fill(&self) -> usize {
        self.told.map_or(0, |(told, _)| told) + self.given
    }

    /// `standing`: a fill that takes the link longer than anything else that delays it. Whether its rate was measured anew.
    fn on_told(&mut self, queued: usize, standing: usize, now: Instant) -> bool {
        let fill = self.fill();
        let mut is_new = false;
        match self.told {
            // It stood all the time: what is gone was drained at the link's rate. A frame or two
            // that are just on their way say nothing. After an empty queue it is not known
            // when the frames came: the owner may have told of none of them.
            Some((before, at)) if before > 0 && queued > 0 && fill >= standing => {
                self.busy_bytes += fill.saturating_sub(queued) as u64;
                self.busy_time += now.since(at);
                is_new = self.busy_time >= MEASURE;
                if is_new {
                    self.conclude(now);
                }
            }
            Some((before, at)) if before > 0 && queued == 0 => {
                self.busy_bytes += fill as u64;
                self.busy_time += now.since(at);
                self.conclude_at_least(now);
            }
            _ => {}
        }
        if queued == 0 {
            self.busy_bytes = 0;
            self.busy_time = Duration::ZERO;
        }
        self.told = Some((queued, now));
        self.given = 0;
        is_new
    }

    /// Something was there, and would be gone by now. A shaper lets the last frame go that it has tokens for, however few, and owes the
    /// rest: the queue is empty then, and the wire busy.
    fn has_time_run_out(&self, now: Instant) -> bool {
        let (fill, at) = (self.fill(), self.told.map(|(_, at)| at));
        let known = self
            .rate_bps
            .filter(|(_, at)| now.since(*at) < RATE_AGE_MAX);
        let takes = known.map(|(bps, _)| time_of(fill, bps));
        let is_over = |takes| at.is_none_or(|at| now.since(at) >= takes);
        fill > 0 && takes.is_none_or(is_over)
    }

    /// It emptied, and nobody knows since when: so fast at least. On a starved host nothing moves
    /// for milliseconds, and then all at once; without this only the standstill would count.
    fn conclude_at_least(&mut self, now: Instant) {
        let at_least = self.busy_rate_bps();
        if self.busy_bytes >= PEAK_BYTES_MIN {
            self.note_peak(at_least, now);
        }
        if let Some((rate, _)) = &mut self.rate_bps {
            *rate = (*rate).max(at_least);
        }
    }

    fn note_peak(&mut self, bps: u64, now: Instant) {
        if now.since(self.peaks_at) >= PEAK_WINDOW {
            self.peaks_bps = [0, self.peaks_bps[0]];
            self.peaks_at = now;
        }
        self.peaks_bps[0] = self.peaks_bps[0].max(bps);
    }

    /// Whether it is known that no more than `bps` come through.
    fn is_below(&self, bps: u64, now: Instant) -> bool {
        let below = |&(rate, at): &(u64, Instant)| rate < bps && now.since(at) < RATE_AGE_MAX;
        let measured = self.rate_bps.as_ref().is_some_and(below);
        measured && self.peaks_bps.iter().all(|peak| *peak < bps)
    }

    fn busy_rate_bps(&self) -> u64 {
        let nanos = self.busy_time.as_nanos() as u64;
        self.busy_bytes.saturating_mul(8_000_000_000) / nanos.max(1)
    }

    fn conclude(&mut self, now: Instant) {
        let sample = self.busy_rate_bps();
        // One sample in four counts: bursts of the shaper's tokens average out.
        let rate = match self.rate_bps {
            Some((rate, at)) if now.since(at) < RATE_AGE_MAX => (rate * 3 + sample) / 4,
            _ => sample,
        };
        self.rate_bps = Some((rate, now));
        self.note_peak(sample, now);
        self.busy_bytes = 0;
        self.busy_time = Duration::ZERO;
    }
}

/// A link that is to leave, and is not used for anything new, unless the others still wait for what stands there.
#[derive(Clone, Copy, Debug)]
pub struct Retiring {
    pub since: Instant,
    /// Whether it may leave is looked at then.
    pub next_look: Instant,
    /// The owner was told that it may.
    pub told: bool,
}

#[derive(Debug)]
pub struct Link {
    pub id: LinkId,
    pub state: LinkState,
    pub settings: LinkSettings,
    drain: Drain,
    /// A fill at which the local queue refused a frame, and when.
    refused_at: Option<(usize, Instant)>,
    /// How long a small frame may wait for what stands there.
    sand: SandBound,
    /// What the local queue may hold, in time at the measured rate.
    queue_time: QueueTime,
    /// … where there are other links as well: which of them is chosen depends on what has room, and one that has none
    /// while it is hardly busy sends its trains by worse ones.
    shared_queue_time: QueueTime,
    /// Frames were kept back because the local queue was full.
    kept_back: bool,
    /// Bytes of a train that is given to it, on average; a frame that no other one can share is as a full train. `None`:
    /// nothing was given yet.
    train_mean: Option<usize>,
    /// … when the rate was measured, weighed as the rate.
    rated_mean: Option<usize>,
    /// The owner has frames for it that found no room.
    pub blocked: bool,
    /// What leaves the local queue in the order in which it was given. Everything, unless we are told.
    pub order: LinkOrder,
    /// What its host does not need it for. Nothing, unless we are told.
    pub unused: Unused,
    /// To direct frames, by what stands on the link.
    pub direct_gate: DirectGate,
    /// At which those leave it that stand in its queue.
    pub direct_rate: DirectRate,
    /// It is to leave.
    pub retiring: Option<Retiring>,
    /// The last plain frame that it was given ends with so many bytes, of all that it ever was.
    plain_until: u64,
    pub trains_tx: u64,
    pub trains_rx: u64,
    pub tx: Traffic,
    pub rx: Traffic,
    pub drops: Drops,
}

/// Who was seen draining since then does so still.
const DRAINS_NOW: Duration = Duration::from_millis(500);

impl Link {
    pub fn new(id: LinkId, state: LinkState, sand: SandBound) -> Link {
        Link {
            id,
            state,
            settings: LinkSettings::default(),
            drain: Drain::default(),
            refused_at: None,
            sand,
            queue_time: QueueTime::within(sand),
            shared_queue_time: QueueTime::within(SandBound(None)),
            kept_back: false,
            train_mean: None,
            rated_mean: None,
            blocked: false,
            order: LinkOrder::Whole,
            unused: Unused::default(),
            direct_gate: DirectGate::default(),
            direct_rate: DirectRate::default(),
            retiring: None,
            plain_until: 0,
            trains_tx: 0,
            trains_rx: 0,
            tx: Traffic::default(),
            rx: Traffic::default(),
            drops: Drops::default(),
        }
    }

    /// Bytes of the largest frame that it carries, Ethernet header included.
    pub fn frame_max(&self) -> usize {
        usize::from(self.state.mtu) + crate::wire::ethernet::HEADER_LEN
    }

    /// Bytes of the longest frame that it is given at once, as far as its local queue shows how fast it is.
    fn frame_at_once_max(&self) -> usize {
        self.frame_within(self.queue_time.bound())
    }

    fn frame_within(&self, bound: SandBound) -> usize {
        let rate = self.drain.rate_bps;
        let by_sand = rate.map_or(usize::MAX, |(bps, _)| bound.frame_max(bps));
        self.frame_max().min(by_sand)
    }

    /// Bytes that it is given at least, of frames so long: as many frames as keep it busy until we are told; or packets, where small ones
    /// must not wait.
    fn few_of(&self, frame: usize) -> usize {
        FRAMES_MIN * frame.min(self.sand.counted_max())
    }

    /// Whether hellos and trains go over it: it has carrier, room for them, and an address by
    /// which it can be answered.
    pub fn carries_trains(&self) -> bool {
        let LinkState {
            address,
            mtu,
            carrier,
            ..
        } = self.state;
        carrier && mtu >= TRAIN_MTU_MIN && !address.is_zero() && !address.is_group()
    }

    /// As fast as that, or as its owner lets it be.
    pub fn at_most(&self, bps: u64) -> u64 {
        bps.min(self.settings.rate_max_bps.unwrap_or(u64::MAX))
    }

    /// Whether this is one of the outer source addresses of our frames: the link's own, its mark, or
    /// its direct mark.
    pub fn is_named(&self, address: MacAddr) -> bool {
        let LinkState {
            address: own, mark, ..
        } = self.state;
        address == own || Some(address) == mark || Some(address) == mark.map(direct_mark_of)
    }

    /// What stands in the local queue, as far as we know, bytes.
    pub fn local_queue_bytes(&self) -> usize {
        self.drain.fill()
    }

    pub fn has_room(&self) -> bool {
        self.state.carrier && self.drain.fill() < self.queue_limit()
    }

    /// … for a train beside those of other links: which of them takes it is chosen by bytes.
    pub fn has_room_among_others(&self) -> bool {
        self.state.carrier && self.drain.fill() < self.limit()
    }

    /// Where there are other links as well.
    pub fn has_shared_room(&self) -> bool {
        self.state.carrier && self.drain.fill() < self.shared_queue_limit()
    }

    /// In bytes alone, however long frames are.
    fn limit(&self) -> usize {
        let three = FRAMES_MIN * self.frame_max();
        self.limit_of(&self.shared_queue_time, three, |bytes| bytes)
    }

    /// What it takes in the queue's time, as `scaled`; three frames at least, so that it has the next one while we are told.
    fn limit_of(
        &self,
        time: &QueueTime,
        three: usize,
        scaled: impl FnOnce(usize) -> usize,
    ) -> usize {
        let wanted = match self.drain.rate_bps {
            Some((bps, _)) => scaled(bytes_in(time.get(), bps / 8)).clamp(three, LIMIT_MAX),
            None => LIMIT_UNKNOWN.max(three),
        };
        let refused = self.refused_at.map_or(usize::MAX, |(fill, _)| fill / 2);
        wanted.min(refused.max(three))
    }

    /// Where it is the only one. Of trains that are smaller than those by which its rate was measured, as many as it took of these: a link
    /// that is short of frames a second takes as long for a small one, and in as many bytes of small ones would
    /// stand dozens, while others that could share them come.
    pub fn queue_limit(&self) -> usize {
        let full = self.frame_at_once_max();
        let mean = self.train_mean.map_or(full, |mean| mean.min(full));
        self.limit_of(&self.queue_time, self.few_of(mean), |bytes| {
            match self.rated_mean {
                Some(rated) if mean < rated => (bytes as u64 * mean as u64 / rated as u64) as usize,
                _ => bytes,
            }
        })
    }

    /// … where there are other links as well. One that was never seen draining is believed what it says of
    /// itself: on a slow one the rest would stand for seconds before trains that others wait for, and before
    /// acknowledgements.
    pub fn shared_queue_limit(&self) -> usize {
        match (self.drain.rate_bps, self.state.rate_bps) {
            (None, Some(bps)) => self.limit().min(self.short_queue_bytes(bps)),
            _ => self.limit(),
        }
    }

    /// A local queue that is gone soon at this rate.
    pub fn short_queue_bytes(&self, bps: u64) -> usize {
        bytes_in(self.shared_queue_time.max(), bps / 8).max(FRAMES_MIN * self.frame_max())
    }

    /// The local queue is smaller than was thought: from now on, and until it may have changed,
    /// less is put there.
    pub fn on_refused(&mut self, now: Instant) {
        self.drops.count(DropReason::LinkRefused);
        let fill = self.drain.fill();
        let known = self
            .refused_at
            .filter(|(_, at)| now.since(*at) < REFUSED_AGE_MAX);
        self.refused_at = Some((known.map_or(fill, |(known, _)| known.min(fill)), now));
    }

    /// Seen draining lately, bit/s.
    pub fn drain_rate_bps(&self, now: Instant) -> Option<u64> {
        let (bps, at) = self.drain.rate_bps?;
        (now.since(at) < RATE_AGE_MAX).then_some(bps)
    }

    /// … in so short a time that it still stands, or did a moment ago, bit/s.
    pub fn drains_at(&self, now: Instant) -> Option<u64> {
        let (bps, at) = self.drain.rate_bps?;
        (now.since(at) < DRAINS_NOW).then_some(bps)
    }

    /// What a rate that was measured is for full trains, if it is frames that the link is short of: then bytes fill what would be
    /// empty, and are worth no more than this.
    pub fn rate_of_full_trains(&self, bps: u64) -> u64 {
        let full = self.frame_max() as u64;
        let mean = self.rated_mean.or(self.train_mean);
        let mean = mean.map_or(full, |mean| (mean as u64).clamp(1, full));
        let scaled = bps.saturating_mul(full) / mean;
        scaled.min(self.state.rate_bps.unwrap_or(u64::MAX).max(bps))
    }

    /// Whether a frame of `bytes` goes in pieces though the link would take it whole.
    pub fn cuts(&self, bytes: usize, now: Instant) -> bool {
        bytes > self.frame_max() && self.drain.is_below(CUT_BELOW_BPS, now)
    }

    pub fn on_given(&mut self, bytes: usize) {
        self.drain.given += bytes;
        self.tx.count(bytes);
    }

    /// A plain frame so long is given to it next.
    pub fn on_plain(&mut self, bytes: usize) {
        self.plain_until = self.tx.bytes + bytes as u64;
    }

    /// Bytes of ours that have left it, ever, as far as we know.
    pub fn left_bytes(&self) -> u64 {
        self.tx.bytes.saturating_sub(self.drain.fill() as u64)
    }

    /// Plain frames stand in its local queue, until so many bytes have left it. `None`: none do.
    pub fn plain_stands_until(&self) -> Option<u64> {
        let stands = self.state.carrier && self.left_bytes() < self.plain_until;
        stands.then_some(self.plain_until)
    }

    /// … and it was a train so long; or a frame that has none to share, as if it were a full one.
    pub fn on_train(&mut self, bytes: usize) {
        let bytes = bytes.min(self.frame_max());
        let mean = self.train_mean.unwrap_or(bytes);
        self.train_mean = Some(mean - mean / TRAIN_MEAN_OF + bytes / TRAIN_MEAN_OF);
    }

    /// A frame waits in the engine because there is no room.
    pub fn on_kept_back(&mut self) {
        self.kept_back = true;
    }

    /// So much stands in its local queue. Whether by that its rate was measured anew, or the bound of what may stand has changed.
    pub fn on_told(&mut self, queued: usize, now: Instant) -> bool {
        let bound = self.sand_in_use();
        let kept_back = core::mem::take(&mut self.kept_back);
        let ran_dry = queued == 0 && kept_back && self.drain.has_time_run_out(now);
        self.queue_time.on_told(ran_dry, now);
        self.shared_queue_time.on_told(ran_dry, now);
        self.refused_at = self
            .refused_at
            .filter(|(_, at)| now.since(*at) < REFUSED_AGE_MAX);
        // Frames may be longer still than goes with what may stand by now.
        let standing = 2 * self.frame_within(self.queue_time.bound_now());
        let is_new = self.drain.on_told(queued, standing, now);
        if is_new && let Some(mean) = self.train_mean {
            let rated = self.rated_mean.unwrap_or(mean);
            self.rated_mean = Some((rated * 3 + mean) / 4);
        }
        is_new || self.sand_in_use() != bound
    }

    /// How long a small frame may wait there as things are.
    pub fn sand_in_use(&self) -> SandBound {
        self.queue_time.bound()
    }

    /// … for a frame that is there already, and would have to be cut.
    pub fn sand_at_once(&self) -> SandBound {
        self.queue_time.bound_at_once()
    }

    /// How long what stands in its local queue takes it, as far as that was seen.
    pub fn standing_time(&self, now: Instant) -> Duration {
        let bps = self.drain_rate_bps(now);
        bps.map_or(Duration::ZERO, |bps| time_of(self.drain.fill(), bps))
    }

    /// What small frames wait for at it.
    pub fn sand(&self, now: Instant) -> LinkSand {
        let rate_bps = self.drain_rate_bps(now);
        let Some(bps) = rate_bps.filter(|_| self.sand.0.is_some()) else {
            return LinkSand {
                rate_bps,
                ..LinkSand::default()
            };
        };
        let frame = self.sand_at_once().frame_max(bps);
        let is_cut = frame < self.frame_max();
        let longest = frame.min(self.frame_max());
        LinkSand {
            rate_bps,
            frame_bytes_max: is_cut.then_some(frame as u64),
            waits_max: Some(time_of(self.queue_limit() + longest, bps)),
            is_late: self.queue_time.is_late(),
        }
    }

    pub fn snapshot(
        &self,
        in_flight_bytes: usize,
        acked_bps: Option<(u64, Instant)>,
        now: Instant,
    ) -> LinkSnapshot {
        let measured = self.drain.rate_bps.or(acked_bps);
        LinkSnapshot {
            id: self.id,
            address: self.state.address,
            mtu: self.state.mtu,
            carrier: self.state.carrier,
            rate_bps: measured.map(|(bps, _)| bps).or(self.state.rate_bps),
            rate_age: measured.map(|(_, at)| now.since(at)),
            sand: LinkSand::default(),
            local_queue_bytes: self.drain.fill() as u64,
            local_queue_age: self.drain.told.map(|(_, at)| now.since(at)),
            in_flight_bytes: in_flight_bytes as u64,
            home: false,
            lag: None,
            retiring: self.retiring.is_some(),
            trains_tx: self.trains_tx,
            trains_rx: self.trains_rx,
            tx: self.tx,
            rx: self.rx,
            drops: self.drops.clone(),
        }
    }
}

mod queue_time;
#[cfg(test)]
mod tests;
