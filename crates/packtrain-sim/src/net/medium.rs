//! A shared medium: CSMA/CD at half duplex, IEEE 802.3 clause 4, in virtual time.
//!
//! ```text
//! offer → queue → defer ──────────────────→ send ─────→ heard whole
//!                   ↑                         │ another carrier
//!                   └── back off ←── jam ←────┘           → given up after 16 attempts
//! ```
//!
//! A plain struct without a clock. All that happens has an exact time of its own; [`Medium::handle`] may
//! come late, and then finds what it would have found in time.
//!
//! What follows from the rules, and is meant:
//! - **1-persistent.** Who waits begins as soon as the gap after the last carrier is over, and meets
//!   everybody else who waited.
//! - **Capture.** Who has just sent draws from 0 … 1 in the next collision, and the loser of the last
//!   one from 0 … 3, then 0 … 7: one station sends many frames in a row, and after 16 lost races
//!   in a row the frame of another one is given up. In the long run the shares are equal.
//! - **The gap's last third is deaf** (4.2.3.2.1): a carrier that comes in it stops nobody who waits. The
//!   next frame of the last sender, who hears its own end first, reaches the others at the very end of their
//!   gap. Would it count there, they never had a turn.
//!
//! Left out: a repeater of its own (its jam, fragments that it extends, ports that it partitions),
//! distances that differ from pair to pair, carrier extension and bursts of 1000 Mbit/s (4.2.3.4).

mod config;
mod station;

use std::collections::VecDeque;

use packtrain_proto::time::{Duration, Instant};

pub use self::config::{ATTEMPTS_MAX, MediumConfig, STATIONS_MAX};
use self::config::{
    BACKOFF_EXPONENT_MAX, FCS_BYTES, GAP_BITS, GAP_PART1_BITS, JAM_BITS, PREAMBLE_BITS, SLOT_BITS,
};
pub use self::station::StationCounters;
use self::station::{Defer, Sending, Station};
use crate::frame::{FRAME_BYTES_MIN, Frame};
use crate::random::Random;

/// A set of stations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stations(u64);

impl Stations {
    pub fn contains(self, station: usize) -> bool {
        self.0 & (1 << station) != 0
    }

    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..STATIONS_MAX).filter(move |&station| self.contains(station))
    }

    fn insert(&mut self, station: usize) {
        self.0 |= 1 << station;
    }
}

/// What became of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    Frame {
        from: usize,
        /// All others, but those that were cut off in the meantime.
        by: Stations,
        frame: Frame,
        /// When its preamble began to be heard, and when its last bit was.
        begun_at: Instant,
        at: Instant,
    },
    /// Collided at each of its 16 attempts.
    GivenUp {
        from: usize,
        frame: Frame,
        at: Instant,
    },
}

impl Heard {
    pub fn at(&self) -> Instant {
        match *self {
            Heard::Frame { at, .. } | Heard::GivenUp { at, .. } => at,
        }
    }
}

/// Of the medium, at its senders: gaps and propagation are not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediumCounters {
    /// At least one station was sending.
    pub busy: Duration,
    /// Of that: what collided, jam included.
    pub collision: Duration,
    /// Times that several were sending at once.
    pub collisions: u64,
}

/// A carrier's beginning or end, on its way. All ways are equally long: first in, first out.
#[derive(Debug)]
struct Edge {
    at: Instant,
    from: usize,
    what: EdgeKind,
}

#[derive(Debug)]
enum EdgeKind {
    Begins,
    EndsInPieces,
    EndsWhole { frame: Frame, begun_at: Instant },
}

/// The medium, with the stations around it. Whoever drives it calls [`Medium::handle`] at
/// [`Medium::next_at`] or later, and gives every call a `now` that is not before the last one's: what
/// is due by then is done first, as if it had been done in time. What became of frames waits for the next
/// `handle`.
#[derive(Debug)]
pub struct Medium {
    config: MediumConfig,
    stations: Vec<Station>,
    edges: VecDeque<Edge>,
    /// Not handed out yet.
    heard: VecDeque<Heard>,
    now: Instant,
    senders: usize,
    busy_since: Instant,
    collided: bool,
    counters: MediumCounters,
}

impl Medium {
    pub fn new(config: MediumConfig, mut random: Random) -> Medium {
        config.check();
        Medium {
            stations: (0..config.stations)
                .map(|_| Station::new(random.fork()))
                .collect(),
            config,
            edges: VecDeque::new(),
            heard: VecDeque::new(),
            now: Instant::ZERO,
            senders: 0,
            busy_since: Instant::ZERO,
            collided: false,
            counters: MediumCounters::default(),
        }
    }

    /// Puts a frame into a station's queue. `Err`: the queue is full, or the station is cut off.
    ///
    /// A GSO frame is cut before it comes here: no wire knows it.
    pub fn offer(&mut self, station: usize, frame: Frame, now: Instant) -> Result<(), Frame> {
        assert!(frame.offload.is_none(), "a wire carries no offload");
        self.advance(now);
        self.stations[station].push(frame, self.config.queue_bytes_max, now)
    }

    /// When [`Medium::handle`] wants to be called next. An offer, a cut and a new rate change it.
    pub fn next_at(&self) -> Option<Instant> {
        match self.heard.front() {
            Some(heard) => Some(heard.at()),
            None => self.next_event_at(),
        }
    }

    /// Does all that is due by `now`, and hands out what became of frames, in the order of time.
    pub fn handle(&mut self, now: Instant, mut out: impl FnMut(Heard)) {
        self.advance(now);
        while let Some(heard) = self.heard.pop_front() {
            out(heard);
        }
    }

    /// Pulls a station's cable: what it is sending ends in pieces, and what it has queued is handed
    /// back. What it has sent whole still arrives.
    pub fn cut(&mut self, station: usize, now: Instant) -> Vec<Frame> {
        self.advance(now);
        if self.stations[station].sending.is_some() {
            self.stop_sending(station, now, EdgeKind::EndsInPieces);
        }
        let cut = &mut self.stations[station];
        cut.cut = true;
        let lost = cut.clear();
        cut.counters.cut += lost.len() as u64;
        self.settle(station, now, false);
        lost
    }

    /// Puts the cable back. The station goes on as if it had listened all the time; of frames it hears
    /// those that begin from now on.
    pub fn mend(&mut self, station: usize, now: Instant) {
        self.advance(now);
        let station = &mut self.stations[station];
        if station.cut {
            station.cut = false;
            station.mended_at = now;
        }
    }

    /// All links come up anew at another rate: what has been sent whole is heard at once, what is being
    /// sent goes again from its beginning, attempts and back-offs are forgotten.
    pub fn set_rate(&mut self, rate_bps: u64, propagation: Duration, now: Instant) {
        self.advance(now);
        if self.senders > 0 {
            self.end_busy(now);
            self.senders = 0;
        }
        for edge in std::mem::take(&mut self.edges) {
            if let EdgeKind::EndsWhole { frame, begun_at } = edge.what {
                self.hear(edge.from, frame, begun_at, now);
            }
        }
        (self.config.rate_bps, self.config.propagation) = (rate_bps, propagation);
        self.config.check();
        let gap = self.gap(false, now);
        for station in &mut self.stations {
            station.sending = None;
            station.attempts = 0;
            station.ready_at = now;
            station.carriers = 0;
            station.defer = gap;
        }
    }

    pub fn config(&self) -> &MediumConfig {
        &self.config
    }

    /// The frame that is being sent included.
    pub fn queued_bytes(&self, station: usize) -> usize {
        self.stations[station].queued_bytes
    }

    pub fn queued_frames(&self, station: usize) -> usize {
        self.stations[station].queue.len()
    }

    pub fn is_cut(&self, station: usize) -> bool {
        self.stations[station].cut
    }

    pub fn station_counters(&self, station: usize) -> &StationCounters {
        &self.stations[station].counters
    }

    pub fn counters(&self) -> MediumCounters {
        self.counters
    }

    /// On the wire, preamble and FCS included, the gap not.
    pub fn duration_of(&self, frame: &Frame) -> Duration {
        let bytes = frame.bytes.len().max(FRAME_BYTES_MIN) + FCS_BYTES;
        self.bits(PREAMBLE_BITS + 8 * bytes as u64)
    }

    fn bits(&self, count: u64) -> Duration {
        self.config.bits(count)
    }

    fn next_event_at(&self) -> Option<Instant> {
        let edge = self.edges.front().map(|edge| edge.at);
        let stations = self.stations.iter().filter_map(Station::next_at);
        stations.chain(edge).min()
    }

    fn advance(&mut self, now: Instant) {
        assert!(now >= self.now, "{now:?}, and it is {:?}", self.now);
        while let Some(at) = self.next_event_at().filter(|&at| at <= now) {
            debug_assert!(at >= self.now);
            self.now = at;
            self.step(at);
        }
        self.now = now;
    }

    /// Everything of one instant. Nothing that a station does in it reaches another one in the same
    /// instant, since the propagation is not zero: the order of stations is of no account.
    fn step(&mut self, now: Instant) {
        let mut carrier_comes = Stations::default();
        while self.edges.front().is_some_and(|edge| edge.at == now) {
            let edge = self.edges.pop_front().expect("it is there");
            self.arrive(edge, now, &mut carrier_comes);
        }
        for station in 0..self.stations.len() {
            if self.stations[station]
                .sending
                .is_some_and(|s| s.until == now)
            {
                self.finish(station, now);
            }
            self.settle(station, now, carrier_comes.contains(station));
        }
    }

    fn arrive(&mut self, edge: Edge, now: Instant, carrier_comes: &mut Stations) {
        let begins = matches!(edge.what, EdgeKind::Begins);
        for (index, station) in self.stations.iter_mut().enumerate() {
            if index == edge.from {
                continue;
            }
            if begins {
                station.carriers += 1;
                carrier_comes.insert(index);
            } else {
                station.carriers -= 1;
                station.carrier_gone_at = now;
            }
        }
        if let EdgeKind::EndsWhole { frame, begun_at } = edge.what {
            self.hear(edge.from, frame, begun_at, now);
        }
    }

    fn hear(&mut self, from: usize, frame: Frame, begun_at: Instant, at: Instant) {
        let mut by = Stations::default();
        for (index, station) in self.stations.iter().enumerate() {
            if index != from && !station.cut && station.mended_at <= begun_at {
                by.insert(index);
            }
        }
        self.heard.push_back(Heard::Frame {
            from,
            by,
            frame,
            begun_at,
            at,
        });
    }

    /// Brings a station's deference up to date, and lets it begin if it may.
    fn settle(&mut self, index: usize, now: Instant, carrier_comes: bool) {
        let station = &mut self.stations[index];
        if carrier_comes && station.defer.gives_way(now) {
            station.defer = Defer::Busy { own: false };
        }
        match station.defer {
            Defer::Busy { own } if station.carriers == 0 && station.sending.is_none() => {
                self.stations[index].defer = self.gap(own, now);
            }
            Defer::Busy { .. } => self.detect_collision(index, now),
            Defer::Gap { until, .. } if now < until => {}
            Defer::Gap { .. } | Defer::Clear if station.wants(now) => self.begin(index, now),
            Defer::Gap { .. } if station.carriers > 0 => station.defer = Defer::Busy { own: false },
            Defer::Gap { .. } | Defer::Clear => station.defer = Defer::Clear,
        }
    }

    fn gap(&self, own: bool, now: Instant) -> Defer {
        let heeds_bits = if own { 0 } else { GAP_PART1_BITS };
        Defer::Gap {
            deaf_at: now + self.bits(heeds_bits),
            until: now + self.bits(GAP_BITS),
        }
    }

    fn begin(&mut self, index: usize, now: Instant) {
        let gap = self.bits(GAP_BITS);
        let duration = self.duration_of(&self.stations[index].queue[0]);
        let station = &mut self.stations[index];
        station.attempts += 1;
        let waited = station.ready_at < now && station.carrier_gone_at + gap > station.ready_at;
        station.counters.deferred += u64::from(station.attempts == 1 && waited);
        station.defer = Defer::Busy { own: true };
        station.sending = Some(Sending {
            begun: now,
            until: now + duration,
            collided: false,
        });
        if self.senders == 0 {
            self.busy_since = now;
        }
        self.senders += 1;
        self.send_edge(index, now, EdgeKind::Begins);
        // At the end of a gap there may be a carrier already.
        self.detect_collision(index, now);
    }

    /// The preamble is sent whole in any case, then the jam (4.2.8, process BitTransmitter): no fragment is
    /// shorter than 96 bits.
    fn detect_collision(&mut self, index: usize, now: Instant) {
        let (slot, preamble, jam) = (
            self.bits(SLOT_BITS),
            self.bits(PREAMBLE_BITS),
            self.bits(JAM_BITS),
        );
        let station = &mut self.stations[index];
        let Some(sending) = station.sending.as_mut() else {
            return;
        };
        if sending.collided || station.carriers == 0 {
            return;
        }
        sending.collided = true;
        sending.until = now.max(sending.begun + preamble) + jam;
        station.counters.collisions += 1;
        station.counters.late_collisions += u64::from(now > sending.begun + slot);
        self.collided = true;
    }

    /// The last bit of a frame or of a jam has left.
    fn finish(&mut self, index: usize, now: Instant) {
        let slot = self.bits(SLOT_BITS);
        let station = &mut self.stations[index];
        let sending = station.sending.expect("it was sending");
        if !sending.collided {
            station.counters.sent_frames += 1;
            station.counters.sent_at_attempt[station.attempts - 1] += 1;
            let frame = station.pop(now);
            station.counters.sent_bytes += frame.bytes.len() as u64;
            let begun_at = sending.begun + self.config.propagation;
            return self.stop_sending(index, now, EdgeKind::EndsWhole { frame, begun_at });
        }
        if station.attempts == ATTEMPTS_MAX {
            station.counters.excessive_collisions += 1;
            let frame = station.pop(now);
            self.heard.push_back(Heard::GivenUp {
                from: index,
                frame,
                at: now,
            });
        } else {
            let exponent = station.attempts.min(BACKOFF_EXPONENT_MAX);
            let slots = station.random.below(1 << exponent);
            station.ready_at = now + slot * slots as u32;
        }
        self.stop_sending(index, now, EdgeKind::EndsInPieces);
    }

    fn stop_sending(&mut self, index: usize, now: Instant, end: EdgeKind) {
        self.stations[index].sending = None;
        self.send_edge(index, now, end);
        self.senders -= 1;
        if self.senders == 0 {
            self.end_busy(now);
        }
    }

    fn end_busy(&mut self, now: Instant) {
        let lasted = now.since(self.busy_since);
        self.counters.busy += lasted;
        if std::mem::take(&mut self.collided) {
            self.counters.collision += lasted;
            self.counters.collisions += 1;
        }
    }

    fn send_edge(&mut self, from: usize, now: Instant, what: EdgeKind) {
        let at = now + self.config.propagation;
        self.edges.push_back(Edge { at, from, what });
    }
}

#[cfg(test)]
mod tests;
