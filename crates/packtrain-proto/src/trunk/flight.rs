//! What is in flight on one link to one peer, and what the acknowledgements tell about the link:
//! its round trip, the rate at which it delivers, what it lost.
//!
//! Bytes in flight beyond the local queue are bounded by rate × (least round trip + acknowledgement
//! delay) and a little: enough to keep the link busy, too little for a queue further down to stand. The rate is
//! a windowed maximum of delivered bytes a time, as in BBR (Cardwell et al. 2016); samples taken
//! while the sender had nothing to send never lower it.

use std::collections::VecDeque;

use crate::time::{Duration, Instant};
use crate::trunk::receipts::ACK_DELAY_MAX;
use crate::wire::sequence::Sequence;
use crate::wire::train::Ack;

const WINDOW_START: usize = 32 * 1024;
const WINDOW_MAX: usize = 8 << 20;
const RECORDS_MAX: usize = 16 * 1024;
/// So many newer trains acknowledged, and a train is lost: links keep their order, or nearly.
const REORDER_TRAINS_MAX: i32 = 16;
const RATE_PERIOD: Duration = Duration::from_secs(1);
const ROUND_TRIP_PERIOD: Duration = Duration::from_secs(5);
const SILENCE_MIN: Duration = Duration::from_millis(200);

/// An acknowledgement of what was never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("acknowledges a train that was never sent")]
pub struct NeverSent;

#[derive(Clone, Copy, Debug)]
struct Record {
    bytes: u32,
    outstanding: bool,
    sent_at: Instant,
    delivered_before: u64,
    delivered_at: Instant,
    source_limited: bool,
}

/// The maximum over the current and the previous period.
#[derive(Clone, Copy, Debug, Default)]
struct Extreme<T> {
    current: Option<T>,
    previous: Option<T>,
    since: Instant,
}

impl<T: Copy> Extreme<T> {
    fn update(&mut self, value: T, better: impl Fn(T, T) -> T, period: Duration, now: Instant) {
        if now.since(self.since) >= period {
            self.previous = self.current.take();
            self.since = now;
        }
        self.current = Some(self.current.map_or(value, |c| better(c, value)));
    }

    fn get(&self, better: impl Fn(T, T) -> T) -> Option<T> {
        match (self.current, self.previous) {
            (Some(a), Some(b)) => Some(better(a, b)),
            (a, b) => a.or(b),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The window doubles each round trip while the rate still grows.
    Startup {
        rounds_without_growth: u8,
    },
    Steady,
}

/// Trains under way on one path, and its estimates.
#[derive(Debug)]
pub struct Flight {
    next: Sequence,
    /// Trains `next − records.len()` … `next − 1`.
    records: VecDeque<Record>,
    in_flight: usize,
    delivered: u64,
    delivered_at: Instant,
    /// Samples of trains sent before this many bytes are delivered say nothing about the link.
    source_limited_until: u64,
    round_trip: Option<Duration>,
    round_trip_min: Extreme<Duration>,
    /// Bytes a second.
    rate: Extreme<u64>,
    rate_at: Instant,
    /// At least one sample was limited by the link, not by its source.
    rate_is_the_links: bool,
    phase: Phase,
    round_end: Sequence,
    round_rate: u64,
    window: usize,
    mtu: usize,
    last_progress: Instant,
    lost: u64,
}

impl Flight {
    /// `mtu`: bytes of the largest train.
    pub fn new(mtu: usize) -> Flight {
        Flight {
            next: Sequence::FIRST,
            records: VecDeque::new(),
            in_flight: 0,
            delivered: 0,
            delivered_at: Instant::ZERO,
            source_limited_until: 0,
            round_trip: None,
            round_trip_min: Extreme::default(),
            rate: Extreme::default(),
            rate_at: Instant::ZERO,
            rate_is_the_links: false,
            phase: Phase::Startup {
                rounds_without_growth: 0,
            },
            round_end: Sequence::ZERO,
            round_rate: 0,
            window: WINDOW_START.max(4 * mtu),
            mtu,
            last_progress: Instant::ZERO,
            lost: 0,
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
        self.window
    }

    pub fn round_trip(&self) -> Option<Duration> {
        self.round_trip
    }

    pub fn round_trip_min(&self) -> Option<Duration> {
        self.round_trip_min.get(Duration::min)
    }

    /// Measured while there was more to send than the link took, bit/s, and when last.
    pub fn rate_bps(&self) -> Option<(u64, Instant)> {
        if !self.rate_is_the_links {
            return None;
        }
        self.rate
            .get(u64::max)
            .map(|bytes| (bytes * 8, self.rate_at))
    }

    pub fn lost_trains(&self) -> u64 {
        self.lost
    }

    /// `local_bytes` stand in the link's local queue still, which has a limit of its own: the
    /// window bounds what has left.
    pub fn has_room(&self, local_bytes: usize) -> bool {
        self.has_left(local_bytes) < self.window && self.records.len() < RECORDS_MAX
    }

    /// More than half the window is out: a prompt acknowledgement keeps the link busy.
    pub fn wants_ack(&self, local_bytes: usize) -> bool {
        self.has_left(local_bytes) * 2 > self.window
    }

    fn has_left(&self, local_bytes: usize) -> usize {
        self.in_flight.saturating_sub(local_bytes)
    }

    pub fn on_sent(&mut self, bytes: usize, now: Instant) -> Sequence {
        if self.in_flight == 0 {
            // A rest says nothing about the link: rate intervals start anew.
            self.delivered_at = now;
            self.last_progress = now;
        }
        self.records.push_back(Record {
            bytes: bytes as u32,
            outstanding: true,
            sent_at: now,
            delivered_before: self.delivered,
            delivered_at: self.delivered_at,
            source_limited: self.delivered < self.source_limited_until,
        });
        self.in_flight += bytes;
        let sequence = self.next;
        self.next = sequence.next();
        sequence
    }

    /// Nothing more to send though there is room.
    pub fn on_source_empty(&mut self) {
        self.source_limited_until = self.delivered + self.in_flight as u64 + 1;
    }

    pub fn on_ack(&mut self, ack: &Ack, now: Instant) -> Result<(), NeverSent> {
        if !self.next.is_newer_than(ack.newest) {
            return Err(NeverSent);
        }
        let first = self.next.minus(self.records.len() as u32);
        let Ok(newest) = usize::try_from(ack.newest.distance_from(first)) else {
            return Ok(()); // older than all that is out
        };
        let mut sampled = None;
        for i in 0..=64usize {
            let named = i == 0 || ack.bitmap >> (i - 1) & 1 == 1;
            let Some(at) = newest.checked_sub(i).filter(|_| named) else {
                continue;
            };
            let record = &mut self.records[at];
            if record.outstanding {
                record.outstanding = false;
                self.in_flight -= record.bytes as usize;
                self.delivered += u64::from(record.bytes);
                sampled.get_or_insert((*record, i == 0));
            }
        }
        if let Some((record, is_newest)) = sampled {
            self.last_progress = now;
            self.delivered_at = now;
            self.sample(
                &record,
                is_newest.then_some(ack.delay_nanos),
                ack.newest,
                now,
            );
        }
        let lost_below = newest.saturating_sub(REORDER_TRAINS_MAX as usize);
        for record in self
            .records
            .iter_mut()
            .take(lost_below)
            .filter(|r| r.outstanding)
        {
            record.outstanding = false;
            self.in_flight -= record.bytes as usize;
            self.lost += 1;
        }
        self.forget_settled();
        Ok(())
    }

    fn forget_settled(&mut self) {
        while self.records.front().is_some_and(|r| !r.outstanding) {
            self.records.pop_front();
        }
    }

    fn sample(&mut self, record: &Record, delay: Option<u32>, newest: Sequence, now: Instant) {
        if let Some(delay) = delay {
            let delay = Duration::from_nanos(u64::from(delay));
            let sample = now.since(record.sent_at).saturating_sub(delay);
            self.round_trip = Some(self.round_trip.map_or(sample, |r| (r * 7 + sample) / 8));
            self.round_trip_min
                .update(sample, Duration::min, ROUND_TRIP_PERIOD, now);
        }
        let interval = now
            .since(record.delivered_at)
            .max(now.since(record.sent_at));
        let bytes = self.delivered - record.delivered_before;
        let nanos = interval.as_nanos().max(1) as u64;
        let rate = (u128::from(bytes) * 1_000_000_000 / u128::from(nanos)) as u64;
        if !record.source_limited || self.rate.get(u64::max).is_none_or(|max| rate > max) {
            self.rate.update(rate, u64::max, RATE_PERIOD, now);
            self.rate_at = now;
            self.rate_is_the_links |= !record.source_limited;
        }
        self.grow(bytes, record.source_limited, newest);
    }

    fn grow(&mut self, acked: u64, source_limited: bool, newest: Sequence) {
        let rate = self.rate.get(u64::max).unwrap_or(0);
        let round = !self.round_end.is_newer_than(newest);
        if round {
            self.round_end = self.next;
        }
        match &mut self.phase {
            Phase::Startup {
                rounds_without_growth,
            } => {
                if source_limited {
                    return;
                }
                let _ = acked;
                if round {
                    if rate > self.round_rate + self.round_rate / 4 {
                        self.round_rate = rate;
                        *rounds_without_growth = 0;
                    } else {
                        *rounds_without_growth += 1;
                    }
                    if *rounds_without_growth >= 3 {
                        self.phase = Phase::Steady;
                    } else {
                        self.window = (self.window * 2).min(WINDOW_MAX);
                    }
                }
            }
            Phase::Steady => {}
        }
        if self.phase == Phase::Steady {
            self.window = self.target(rate);
        }
    }

    fn target(&self, rate: u64) -> usize {
        let round_trip = self.round_trip_min().unwrap_or_default() + ACK_DELAY_MAX;
        let bytes = u128::from(rate) * round_trip.as_nanos() / 1_000_000_000;
        let little = 4 * self.mtu;
        (bytes as usize * 5 / 4 + little).clamp(WINDOW_START / 4, WINDOW_MAX)
    }

    fn silence_max(&self) -> Duration {
        SILENCE_MIN.max(self.round_trip.unwrap_or_default() * 4)
    }

    /// When what is out counts as lost, if no acknowledgement comes.
    pub fn poll_timeout(&self) -> Option<Instant> {
        (self.in_flight > 0).then(|| self.last_progress + self.silence_max())
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        if self.poll_timeout().is_some_and(|at| at <= now) {
            self.lost += self.records.iter().filter(|r| r.outstanding).count() as u64;
            self.records.clear();
            self.in_flight = 0;
            self.last_progress = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn ack(newest: u32, bitmap: u64) -> Ack {
        Ack {
            link: 0,
            incarnation: 0,
            delay_nanos: 0,
            newest: Sequence(newest),
            bitmap,
        }
    }

    /// Runs a link of `rate_bps` and one-way `delay` that is never short of trains for `for_`.
    fn run(flight: &mut Flight, rate_bps: u64, delay: Duration, start: Instant, for_: Duration) {
        let bytes = 1500;
        let serialise = Duration::from_nanos(bytes as u64 * 8 * 1_000_000_000 / rate_bps);
        let mut free_at = start;
        let mut arrivals: VecDeque<(Instant, Sequence)> = VecDeque::new();
        let mut now = start;
        while now < start + for_ {
            while flight.has_room(0) {
                free_at = free_at.max(now) + serialise;
                let sequence = flight.on_sent(bytes, now);
                arrivals.push_back((free_at + delay + delay, sequence));
            }
            let (at, sequence) = arrivals.pop_front().unwrap();
            now = at;
            flight.on_ack(&ack(sequence.0, 0), now).unwrap();
        }
    }

    #[test]
    fn what_stands_in_the_local_queue_does_not_use_up_the_window() {
        let mut flight = Flight::new(1500);
        while flight.has_room(0) {
            flight.on_sent(1500, Instant::ZERO);
        }
        assert!(flight.has_room(3000) && flight.wants_ack(3000));
        let all = flight.in_flight_bytes();
        assert!(flight.has_room(all) && !flight.wants_ack(all));
    }

    #[test]
    fn it_finds_the_rate_and_keeps_the_queue_below_short() {
        for (rate_bps, delay) in [
            (1_000_000, Duration::from_micros(100)),
            (100_000_000, Duration::from_micros(50)),
            (100_000_000, Duration::from_millis(50)),
            (5_000_000_000, Duration::from_micros(20)),
        ] {
            let mut flight = Flight::new(1514);
            run(
                &mut flight,
                rate_bps,
                delay,
                Instant::ZERO,
                Duration::from_secs(4),
            );
            let (measured, _) = flight.rate_bps().unwrap();
            let ratio = measured as f64 / rate_bps as f64;
            assert!((0.97..1.03).contains(&ratio), "{rate_bps}: {ratio}");
            let round_trip = delay * 2 + ACK_DELAY_MAX;
            let needed = rate_bps as u128 / 8 * round_trip.as_nanos() / 1_000_000_000;
            let window = flight.window_bytes() as u128;
            assert!(
                window > needed.min(WINDOW_MAX as u128 - 1),
                "{rate_bps} {delay:?}: {window}"
            );
            assert!(
                window < needed * 14 / 10 + 16_384,
                "{rate_bps} {delay:?}: {window} {needed}"
            );
        }
    }

    #[test]
    fn it_follows_a_link_that_becomes_slower_and_faster_again() {
        let mut flight = Flight::new(1514);
        let delay = Duration::from_millis(1);
        let second = Duration::from_secs(1);
        run(&mut flight, 100_000_000, delay, Instant::ZERO, second * 2);
        run(
            &mut flight,
            10_000_000,
            delay,
            Instant::ZERO + second * 2,
            second * 4,
        );
        let (slow, _) = flight.rate_bps().unwrap();
        assert!((9_500_000..10_500_000).contains(&slow), "{slow}");
        run(
            &mut flight,
            100_000_000,
            delay,
            Instant::ZERO + second * 6,
            second * 3,
        );
        let (fast, _) = flight.rate_bps().unwrap();
        assert!(fast > 95_000_000, "{fast}");
    }

    #[test]
    fn an_acknowledgement_of_what_was_never_sent_is_refused() {
        let mut flight = Flight::new(1514);
        assert_eq!(flight.on_ack(&ack(1, 0), Instant::ZERO), Err(NeverSent));
        flight.on_sent(100, Instant::ZERO);
        assert_eq!(flight.on_ack(&ack(2, 0), Instant::ZERO), Err(NeverSent));
        assert_eq!(flight.on_ack(&ack(1, u64::MAX), Instant::ZERO), Ok(()));
        assert_eq!(flight.in_flight_bytes(), 0);
        assert_eq!(flight.on_ack(&ack(1, 0), Instant::ZERO), Ok(()));
    }

    #[test]
    fn silence_gives_the_window_back() {
        let mut flight = Flight::new(1514);
        flight.on_sent(1000, Instant::ZERO);
        let at = flight.poll_timeout().unwrap();
        flight.handle_timeout(at);
        assert_eq!((flight.in_flight_bytes(), flight.lost_trains()), (0, 1));
        assert_eq!(flight.poll_timeout(), None);
        // The acknowledgement comes after all.
        assert_eq!(flight.on_ack(&ack(1, 0), at), Ok(()));
    }

    proptest! {
        /// Against a set of what is out.
        #[test]
        fn bytes_in_flight_are_what_is_neither_named_nor_given_up(
            steps in proptest::collection::vec((0u8..3, 0u32..80, any::<u64>()), 1..300)
        ) {
            let mut flight = Flight::new(1514);
            let mut out: HashSet<u32> = HashSet::new();
            let mut next = 1u32;
            for (kind, back, bitmap) in steps {
                if kind < 2 {
                    flight.on_sent(100, Instant::ZERO);
                    out.insert(next);
                    next += 1;
                } else if next > 1 {
                    let newest = next.saturating_sub(1 + back).max(1);
                    let oldest = out.iter().min().copied().unwrap_or(next);
                    flight.on_ack(&ack(newest, bitmap), Instant::ZERO).unwrap();
                    if newest >= oldest {
                        out.retain(|&s| {
                            let named = s == newest
                                || (s < newest && newest - s <= 64
                                    && bitmap >> (newest - s - 1) & 1 == 1);
                            !named && s as i64 >= newest as i64 - i64::from(REORDER_TRAINS_MAX)
                        });
                    }
                }
                prop_assert_eq!(flight.in_flight_bytes(), out.len() * 100);
            }
        }
    }
}
