//! What acknowledgements tell about a link: its round trip, the rate at which it delivers, and how much may be
//! out on it.
//!
//! Bytes in flight beyond the local queue are bounded by rate × (least round trip + acknowledgement
//! delay) and a little: enough to keep the link busy, too little for a queue further down to stand. The rate is
//! a windowed maximum of delivered bytes a time, as in BBR (Cardwell et al. 2016); samples taken
//! while the sender had nothing to send never lower it.
//!
//! What is measured under a bound is no more than the bound lets through: a flow that sends in bursts,
//! as TCP does over a long way, would be held to the first rate that was seen. So the bound reaches
//! further by each train that did not wait on its way:
//!
//! - One that left when the bound was all that held the sender back: twice what was out with it may be.
//! - One that left when the source had no more: the bound is kept ahead of a sender that doubles what it has
//!   out with each round trip, as TCP does at its start. If that had to wait for the bound, it would take
//!   the wait for a full link (HyStart), and go on slowly. What waited for no more than a quarter of a round
//!   trip would have passed four times over in one: three times may be.
//!
//! That holds for a round trip, and the bound shrinks to what is out: a link that dies takes as much as the bound
//! allows, and the others have to send that again.

use super::round_trip_min::RoundTripMin;
use crate::rates::{bytes_a_second, bytes_in};
use crate::time::{Duration, Instant};
use crate::trunk::extreme::Extreme;
use crate::trunk::receipts::ACK_DELAY_MAX;
use crate::wire::sequence::Sequence;

const WINDOW_START: usize = 32 * 1024;
pub(super) const WINDOW_MAX: usize = 8 << 20;
/// With less in flight a link has not shown what it can do.
const PRESSED_MIN: usize = super::UNPROVEN_MAX / 2;
const ROUND_TRIP_MAX_PERIOD: Duration = Duration::from_secs(5);
/// What stands in the link's own queue at most, and no queue further on.
const OWN_QUEUE_MAX: Duration = Duration::from_millis(5);
const RATE_PERIOD: Duration = Duration::from_secs(1);
/// What trains may wait on their way and it is no queue that stands: local queues have as much.
const STANDING_MIN: Duration = Duration::from_millis(1);
/// So many round trips at about the same rate, and the link is full.
const ROUNDS_WITHOUT_GROWTH_MAX: u8 = 3;

/// Of a train that leaves: what tells of the link when it is acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub sent_at: Instant,
    delivered_before: u64,
    delivered_at: Instant,
    /// When the newest train had left that was delivered by then.
    delivered_sent_at: Instant,
    source_limited: bool,
    /// With it, bytes.
    in_flight: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The window doubles each round trip while the rate still grows.
    Startup {
        rounds_without_growth: u8,
    },
    Steady,
}

#[derive(Debug)]
pub(super) struct Delivery {
    delivered: u64,
    delivered_at: Instant,
    /// When the newest train left that was delivered.
    delivered_sent_at: Instant,
    /// Samples of trains sent before this many bytes are delivered say nothing about the link.
    source_limited_until: u64,
    /// The most since the last rest, bytes.
    in_flight_max: usize,
    round_trip: Option<Duration>,
    /// How much it differs from that, on average.
    round_trip_deviation: Duration,
    round_trip_min: RoundTripMin,
    /// The longest lately: acknowledgements do not always come by the same way.
    round_trip_max: Extreme<Duration>,
    /// Bytes a second.
    rate: Extreme<u64>,
    rate_at: Instant,
    /// At least one sample was limited by the link, not by its source.
    rate_is_the_links: bool,
    phase: Phase,
    round_end: Sequence,
    round_rate: u64,
    /// Of the trains of this round.
    round_trip_of_round: Option<Duration>,
    /// The bound as far as it has grown without a queue, by trains of this round and of the one before.
    reach: [usize; 2],
    window: usize,
    mtu: usize,
}

impl Delivery {
    /// `mtu`: bytes of the largest train.
    pub fn new(mtu: usize) -> Delivery {
        Delivery {
            delivered: 0,
            delivered_at: Instant::ZERO,
            delivered_sent_at: Instant::ZERO,
            source_limited_until: 0,
            in_flight_max: 0,
            round_trip: None,
            round_trip_deviation: Duration::ZERO,
            round_trip_min: RoundTripMin::default(),
            round_trip_max: Extreme::default(),
            rate: Extreme::default(),
            rate_at: Instant::ZERO,
            rate_is_the_links: false,
            phase: Phase::Startup {
                rounds_without_growth: 0,
            },
            round_end: Sequence::ZERO,
            round_rate: 0,
            round_trip_of_round: None,
            reach: [0; 2],
            window: WINDOW_START.max(4 * mtu),
            mtu,
        }
    }

    /// Smoothed, without the time that the receiver took.
    pub fn round_trip(&self) -> Option<Duration> {
        self.round_trip
    }

    /// RTTVAR of RFC 6298; `None`: no round trip was measured.
    pub fn round_trip_deviation(&self) -> Option<Duration> {
        self.round_trip.map(|_| self.round_trip_deviation)
    }

    pub fn round_trip_max(&self) -> Option<Duration> {
        self.round_trip_max.get(Duration::max)
    }

    pub fn round_trip_min(&self) -> Option<Duration> {
        self.round_trip_min.get()
    }

    pub fn window_bytes(&self) -> usize {
        self.window
    }

    /// The same of the only link, whose local queue is seen to drain at `local_bps`: where that one stands, nothing
    /// behind it has shown to be slower, and a flow that went past us till now has much more out.
    pub fn window_bytes_at(&self, local_bps: Option<u64>) -> usize {
        match (self.phase, local_bps) {
            (Phase::Startup { .. }, Some(bps)) => self.window.max(self.window_for(bps / 8)),
            _ => self.window,
        }
    }

    /// As far as was seen, bytes a second.
    pub fn rate(&self) -> u64 {
        self.rate.get(u64::max).unwrap_or(0)
    }

    /// Measured while there was more to send than the link took, bit/s, and when last.
    pub fn rate_bps(&self) -> Option<(u64, Instant)> {
        let rate = self.rate.get(u64::max)?;
        self.rate_is_the_links.then_some((rate * 8, self.rate_at))
    }

    /// What a link that keeps up has out.
    pub fn keeps_up_bytes(&self) -> usize {
        bytes_in(self.round_trip_min().unwrap_or_default(), self.rate())
    }

    /// A rest says nothing about the link: rate intervals start anew. Nor do a few trains between
    /// two rests, however much waited for other links meanwhile.
    pub fn on_rest(&mut self, now: Instant) {
        self.delivered_at = now;
        self.delivered_sent_at = now;
        if self.in_flight_max < PRESSED_MIN {
            self.on_source_empty(0);
        }
        self.in_flight_max = 0;
    }

    /// Nothing more to send though there is room for more than what is in flight.
    pub fn on_source_empty(&mut self, in_flight: usize) {
        self.source_limited_until = self.delivered + in_flight as u64 + 1;
    }

    /// So much may be out by what has passed without waiting, whatever the rate is.
    pub fn reach_bytes(&self) -> usize {
        self.reach[0].max(self.reach[1])
    }

    /// The bound is not the link's yet: it grows with each round trip in which it is used up.
    pub fn grows(&self) -> bool {
        self.phase != Phase::Steady || self.reach_bytes() > 0
    }

    /// Of a train that leaves now, after which so much is in flight.
    pub fn begin_sample(&mut self, in_flight: usize, now: Instant) -> Sample {
        self.in_flight_max = self.in_flight_max.max(in_flight);
        Sample {
            sent_at: now,
            delivered_before: self.delivered,
            delivered_at: self.delivered_at,
            delivered_sent_at: self.delivered_sent_at,
            source_limited: self.delivered < self.source_limited_until
                || self.round_trip_min.is_probed(),
            in_flight,
        }
    }

    #[cfg(test)]
    pub fn delivered_bytes(&self) -> u64 {
        self.delivered
    }

    pub fn on_delivered(&mut self, bytes: u64) {
        self.delivered += bytes;
    }

    /// The newest train that an acknowledgement names for the first time. `delay`: nanoseconds for which the
    /// receiver kept it to itself, if known of this train. `newest`: link sequence that it names, `next`: of
    /// the next train.
    pub fn on_sample(
        &mut self,
        sample: &Sample,
        delay_nanos: Option<u32>,
        (newest, next): (Sequence, Sequence),
        now: Instant,
    ) {
        self.delivered_at = now;
        if let Some(nanos) = delay_nanos {
            let delay = Duration::from_nanos(u64::from(nanos));
            let round_trip = now.since(sample.sent_at).saturating_sub(delay);
            self.smooth_round_trip(round_trip, now);
            let is_alone = sample.in_flight <= self.probing_bytes() + self.mtu;
            let smooth = self.round_trip.unwrap_or(round_trip);
            let sent = (sample.sent_at, is_alone);
            self.round_trip_min.on_sample(round_trip, sent, smooth, now);
            let of_round = self.round_trip_of_round;
            self.round_trip_of_round = Some(of_round.map_or(round_trip, |t| t.min(round_trip)));
            if let Some(further) = self.further(sample, round_trip) {
                self.reach[0] = self.reach[0].max(further).min(WINDOW_MAX);
            }
        }
        // Acknowledgements that have stood while one of the two hosts was away come all at once, and what they name was
        // delivered in a longer time than that: in no shorter one than it was sent in.
        let interval = now
            .since(sample.delivered_at)
            .max(now.since(sample.sent_at))
            .max(sample.sent_at.since(sample.delivered_sent_at));
        self.delivered_sent_at = self.delivered_sent_at.max(sample.sent_at);
        let bytes = self.delivered - sample.delivered_before;
        let rate = bytes_a_second(bytes, interval);
        if !sample.source_limited || self.rate.get(u64::max).is_none_or(|max| rate > max) {
            self.rate.update(rate, u64::max, RATE_PERIOD, now);
            self.rate_at = now;
            self.rate_is_the_links |= !sample.source_limited;
        }
        self.grow(sample.source_limited, (newest, next), now);
    }

    /// An acknowledgement has come that was not waited for any more: it says how long one takes, and nothing of the rate.
    pub fn on_late(&mut self, round_trip: Duration, now: Instant) {
        self.smooth_round_trip(round_trip, now);
    }

    fn smooth_round_trip(&mut self, round_trip: Duration, now: Instant) {
        let smooth = |before: Duration| (before * 7 + round_trip) / 8;
        // RFC 6298, 2.2 and 2.3: by the smoothed one before this.
        self.round_trip_deviation = match self.round_trip {
            None => round_trip / 2,
            Some(before) => (self.round_trip_deviation * 3 + before.abs_diff(round_trip)) / 4,
        };
        self.round_trip = Some(self.round_trip.map_or(round_trip, smooth));
        self.round_trip_max
            .update(round_trip, Duration::max, ROUND_TRIP_MAX_PERIOD, now);
    }

    fn grow(&mut self, source_limited: bool, (newest, next): (Sequence, Sequence), now: Instant) {
        let is_round = !self.round_end.is_newer_than(newest);
        if is_round {
            self.round_end = next;
        }
        if let Phase::Startup {
            rounds_without_growth,
        } = self.phase
            && is_round
            && !source_limited
        {
            self.grow_at_start(rounds_without_growth);
        }
        if is_round {
            self.end_round(now);
        }
        self.window = match self.phase {
            Phase::Startup { .. } => self.window.max(self.reach_bytes()),
            Phase::Steady if self.round_trip_min.is_probed() => self.probing_bytes(),
            Phase::Steady => self.target().max(self.reach_bytes()),
        };
    }

    /// What the bound may be, by a train and what was out with it.
    fn further(&self, sample: &Sample, round_trip: Duration) -> Option<usize> {
        if sample.source_limited {
            return (!self.has_waited(round_trip)).then_some(sample.in_flight * 3);
        }
        // The bound was all that held the sender back; at the start it grows by itself.
        let doubles = self.phase == Phase::Steady && !self.stands(round_trip);
        doubles.then_some(sample.in_flight * 2)
    }

    /// After a round trip: the bound shrinks to what the next shows, and goes if trains wait somewhere.
    fn end_round(&mut self, now: Instant) {
        let Some(of_round) = self.round_trip_of_round.take() else {
            return;
        };
        if self.phase == Phase::Steady {
            self.round_trip_min.on_round(of_round, self.little(), now);
        }
        let reached = if self.stands(of_round) {
            0
        } else {
            self.reach[0]
        };
        self.reach = [0, reached];
    }

    /// Whether a train has waited for others on its way.
    fn has_waited(&self, round_trip: Duration) -> bool {
        self.waited(round_trip) > self.round_trip_min().unwrap_or_default() / 4 + STANDING_MIN
    }

    /// Trains wait somewhere on the way, for longer than in the link's own queue.
    pub fn has_queue(&self) -> bool {
        let least = self.round_trip_min().unwrap_or_default();
        let waited = self
            .round_trip
            .map_or(Duration::ZERO, |time| self.waited(time));
        waited > least / 4 + OWN_QUEUE_MAX + self.little()
    }

    /// Bytes of the largest train from now on.
    pub fn set_mtu(&mut self, mtu: usize) {
        self.mtu = mtu;
    }

    /// Whether that is a queue that stands: more than what leaves at once.
    fn stands(&self, round_trip: Duration) -> bool {
        let least = self.round_trip_min().unwrap_or_default();
        self.waited(round_trip) > least / 4 + STANDING_MIN + self.little()
    }

    /// What the link takes for what the bound allows besides.
    fn little(&self) -> Duration {
        Duration::from_nanos(4 * self.mtu as u64 * 1_000_000_000 / self.rate().max(1))
    }

    /// The bound while the least round trip is looked for: not even half of what a link has out that keeps up.
    fn probing_bytes(&self) -> usize {
        (self.keeps_up_bytes() / 2).max(1)
    }

    fn waited(&self, round_trip: Duration) -> Duration {
        round_trip.saturating_sub(self.round_trip_min().unwrap_or_default())
    }

    /// After a round trip in which the source was not the limit.
    fn grow_at_start(&mut self, rounds_without_growth: u8) {
        let rate = self.rate();
        let grows = rate > self.round_rate + self.round_rate / 4;
        if grows {
            self.round_rate = rate;
        }
        let rounds_without_growth = if grows { 0 } else { rounds_without_growth + 1 };
        self.phase = Phase::Startup {
            rounds_without_growth,
        };
        if rounds_without_growth >= ROUNDS_WITHOUT_GROWTH_MAX {
            self.phase = Phase::Steady;
            return;
        }
        // More than what is seen to fill the link only stands before it.
        let most = (self.target() * 3).max(WINDOW_START);
        self.window = (self.window * 2).min(most).min(WINDOW_MAX);
    }

    fn target(&self) -> usize {
        self.window_for(self.rate())
    }

    /// `rate`: bytes a second.
    fn window_for(&self, rate: u64) -> usize {
        let round_trip = self.round_trip_min().unwrap_or_default() + ACK_DELAY_MAX;
        let little = 4 * self.mtu;
        (bytes_in(round_trip, rate) * 5 / 4 + little).clamp(WINDOW_START / 4, WINDOW_MAX)
    }
}
