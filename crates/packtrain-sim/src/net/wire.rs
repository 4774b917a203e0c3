//! One direction of a cable: a queue, a rate, and everything that happens on the way.
//!
//! ```text
//! offer → queue → rate → cut → loss → corruption → duplication → delay → jitter → reordering → arrival
//! ```

use packtrain_proto::time::{Duration, Instant};

use super::corruption::{Corrupted, Corruption, CorruptionConfig};
use super::delay::Delay;
use super::duplication::Duplication;
use super::jitter::Jitter;
use super::loss::{Loss, LossConfig};
use super::rate::{Offered, Rate};
use super::reordering::{Reordering, ReorderingConfig};
use crate::frame::Frame;
use crate::random::Random;

#[derive(Clone, Debug, PartialEq)]
pub struct WireConfig {
    pub rate_bps: u64,
    pub queue_bytes_max: usize,
    pub delay: Duration,
    /// Zero: none.
    pub jitter_max: Duration,
    pub loss: Option<LossConfig>,
    pub corruption: Option<CorruptionConfig>,
    /// Probability of a frame to come again.
    pub duplication: Option<f64>,
    pub reordering: Option<ReorderingConfig>,
}

impl WireConfig {
    /// A wire that does nothing to its frames but carry them.
    pub fn perfect(rate_bps: u64, delay: Duration) -> WireConfig {
        WireConfig {
            rate_bps,
            queue_bytes_max: 512 * 1024,
            delay,
            jitter_max: Duration::ZERO,
            loss: None,
            corruption: None,
            duplication: None,
            reordering: None,
        }
    }
}

/// Why a frame went no further on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireDrop {
    QueueFull,
    Cut,
    Loss,
    /// The receiving card found a wrong FCS.
    Corrupted,
    /// Metadata that contradicts the frame: no card could cut it.
    BadOffload,
}

/// Frames, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireCounters {
    pub offered: u64,
    pub queue_full: u64,
    pub cut: u64,
    pub lost: u64,
    pub corrupted: u64,
    pub bad_offload: u64,
    /// Arrived altered, with nobody to notice.
    pub altered: u64,
    /// Arrivals of more copies than were sent.
    pub more_copies: u64,
    pub arriving: u64,
}

impl WireCounters {
    fn count(&mut self, reason: WireDrop) {
        match reason {
            WireDrop::QueueFull => self.queue_full += 1,
            WireDrop::Cut => self.cut += 1,
            WireDrop::Loss => self.lost += 1,
            WireDrop::Corrupted => self.corrupted += 1,
            WireDrop::BadOffload => self.bad_offload += 1,
        }
    }

    pub fn dropped(&self) -> u64 {
        self.queue_full + self.cut + self.lost + self.corrupted + self.bad_offload
    }
}

/// What a frame met on its way.
#[derive(Debug)]
pub enum Passed {
    Arrives(Instant, Frame),
    Dropped(WireDrop, Frame),
}

#[derive(Debug)]
pub struct Wire {
    rate: Rate,
    loss: Option<Loss>,
    corruption: Option<Corruption>,
    duplication: Option<Duplication>,
    delay: Delay,
    jitter: Option<Jitter>,
    reordering: Option<Reordering>,
    /// What was under way when the carrier went is known by its older epoch.
    pub epoch: u32,
    /// A cable that is cut; `true`: its ends know.
    cut: Option<bool>,
    healed: bool,
    pub counters: WireCounters,
}

impl Wire {
    pub fn new(config: &WireConfig, random: &mut Random) -> Wire {
        Wire {
            rate: Rate::new(config.rate_bps, config.queue_bytes_max),
            loss: config.loss.map(|loss| Loss::new(loss, random.fork())),
            corruption: config.corruption.map(|c| Corruption::new(c, random.fork())),
            duplication: config
                .duplication
                .map(|p| Duplication::new(p, random.fork())),
            delay: Delay::new(config.delay),
            jitter: (!config.jitter_max.is_zero())
                .then(|| Jitter::new(config.jitter_max, random.fork())),
            reordering: config.reordering.map(|r| Reordering::new(r, random.fork())),
            epoch: 0,
            cut: None,
            healed: false,
            counters: WireCounters::default(),
        }
    }

    pub fn queued_bytes(&self) -> usize {
        self.rate.queued_bytes()
    }

    pub fn queued_bytes_max_seen(&self) -> usize {
        self.rate.queued_bytes_max_seen
    }

    /// Whether chance, or a bound, is about single frames here.
    pub fn counts_frames(&self) -> bool {
        self.loss.is_some()
            || self.corruption.is_some()
            || self.duplication.is_some()
            || self.jitter.is_some()
            || self.reordering.is_some()
    }

    pub fn has_room(&self, bytes: usize) -> bool {
        self.rate.has_room(bytes)
    }

    /// Puts a frame into the queue. `Ok(Some(t))`: it is alone, and has left at t.
    pub fn offer(
        &mut self,
        frame: Frame,
        now: Instant,
    ) -> Result<Option<Instant>, (Frame, WireDrop)> {
        self.counters.offered += 1;
        if self.cut == Some(true) {
            self.counters.count(WireDrop::Cut);
            return Err((frame, WireDrop::Cut));
        }
        match self.rate.offer(frame, now) {
            Offered::Queued => Ok(None),
            Offered::Sending(end) => Ok(Some(end)),
            Offered::Refused(frame) => {
                self.counters.count(WireDrop::QueueFull);
                Err((frame, WireDrop::QueueFull))
            }
        }
    }

    /// The first frame of the queue has left; `passed` hears of each copy of it. Returns when the
    /// next one will have left.
    pub fn sent(&mut self, now: Instant, mut passed: impl FnMut(Passed)) -> Option<Instant> {
        let (mut frame, next) = self.rate.sent(now);
        match self.fate(&mut frame) {
            Some(reason) => {
                self.counters.count(reason);
                passed(Passed::Dropped(reason, frame));
            }
            None => {
                let duplication = self.duplication.as_mut().filter(|_| !self.healed);
                let more = duplication.map_or(0, Duplication::more_copies);
                self.counters.more_copies += more as u64;
                for _ in 0..more {
                    passed(Passed::Arrives(self.arrival(now), frame.clone()));
                }
                passed(Passed::Arrives(self.arrival(now), frame));
                self.counters.arriving += 1 + more as u64;
            }
        }
        next
    }

    fn fate(&mut self, frame: &mut Frame) -> Option<WireDrop> {
        if self.cut.is_some() {
            return Some(WireDrop::Cut);
        }
        if self.healed {
            return None;
        }
        if self.loss.as_mut().is_some_and(Loss::takes) {
            return Some(WireDrop::Loss);
        }
        let strike = |c: &mut Corruption| c.strike(&mut frame.bytes);
        match self.corruption.as_mut().map_or(Corrupted::No, strike) {
            Corrupted::No => None,
            Corrupted::Seen => Some(WireDrop::Corrupted),
            Corrupted::Unseen => {
                self.counters.altered += 1;
                None
            }
        }
    }

    fn arrival(&mut self, now: Instant) -> Instant {
        let mut at = self.delay.arrival(now);
        if let Some(jitter) = &mut self.jitter {
            at = jitter.arrival(at);
        }
        match self.reordering.as_mut().filter(|_| !self.healed) {
            Some(reordering) => reordering.arrival(at),
            None => at,
        }
    }

    /// The cable is pulled. Returns what stood in the queue, all of it gone.
    pub fn cut(&mut self, seen: bool) -> Vec<Frame> {
        self.cut = Some(seen);
        if !seen {
            return Vec::new(); // frames go on leaving, into nothing
        }
        self.epoch += 1;
        let gone = self.rate.clear();
        self.counters.cut += gone.len() as u64;
        gone
    }

    pub fn mend(&mut self) {
        self.cut = None;
    }

    /// A frame that was on its way when the carrier went.
    pub fn count_cut_on_the_way(&mut self) {
        self.counters.count(WireDrop::Cut);
    }

    /// From now on nothing is lost, altered, doubled or overtaken; rate, delay and jitter stay.
    pub fn heal(&mut self) {
        self.healed = true;
    }

    /// The configured faults, and whether each has happened yet.
    pub fn faults(&self) -> Vec<(&'static str, bool)> {
        let mut faults = Vec::new();
        let mut add = |configured: bool, happened: bool, name| {
            if configured {
                faults.push((name, happened));
            }
        };
        add(self.loss.is_some(), self.counters.lost > 0, "loss");
        let struck = self.counters.corrupted + self.counters.altered > 0;
        add(self.corruption.is_some(), struck, "corruption");
        add(
            self.duplication.is_some(),
            self.counters.more_copies > 0,
            "duplication",
        );
        let jittered = self.jitter.as_ref().is_some_and(|j| j.frames_delayed > 0);
        add(self.jitter.is_some(), jittered, "jitter");
        let overtaken = self
            .reordering
            .as_ref()
            .is_some_and(|r| r.frames_overtaking > 0);
        add(self.reordering.is_some(), overtaken, "reordering");
        faults
    }

    /// Names of the configured faults that have not happened yet.
    pub fn faults_missing(&self) -> Vec<&'static str> {
        let missing = |(name, happened): (_, bool)| (!happened).then_some(name);
        self.faults().into_iter().filter_map(missing).collect()
    }

    pub fn duplicates(&self) -> bool {
        self.duplication.is_some()
    }

    pub fn reorders(&self) -> bool {
        self.reordering.is_some()
    }

    pub fn alters(&self) -> bool {
        self.counters.altered > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packtrain_proto::offload::Offload;

    fn faulty() -> WireConfig {
        WireConfig {
            jitter_max: Duration::from_micros(300),
            loss: Some(LossConfig::Bernoulli { probability: 0.05 }),
            corruption: Some(CorruptionConfig {
                probability: 0.05,
                bits_max: 3,
                fcs: true,
            }),
            duplication: Some(0.05),
            reordering: Some(ReorderingConfig {
                probability: 0.05,
                hold_max: Duration::from_millis(1),
            }),
            ..WireConfig::perfect(100_000_000, Duration::from_millis(1))
        }
    }

    /// Sends 1000 frames one after the other; the arrivals, as (time, first byte pair).
    fn run(wire: &mut Wire) -> (Vec<(Instant, u16)>, u64) {
        let (mut arrivals, mut dropped) = (Vec::new(), 0);
        let mut now = Instant::ZERO;
        for i in 0..1000u16 {
            let mut bytes = vec![0; 100];
            bytes[..2].copy_from_slice(&i.to_be_bytes());
            now = wire
                .offer(Frame::new(bytes, Offload::NONE), now)
                .unwrap()
                .unwrap();
            wire.sent(now, |passed| match passed {
                Passed::Arrives(at, frame) => {
                    arrivals.push((at, u16::from_be_bytes([frame.bytes[0], frame.bytes[1]])));
                }
                Passed::Dropped(..) => dropped += 1,
            });
        }
        (arrivals, dropped)
    }

    #[test]
    fn every_frame_arrives_or_is_counted() {
        let mut wire = Wire::new(&faulty(), &mut Random::new(8));
        let (arrivals, dropped) = run(&mut wire);
        let counters = wire.counters;
        assert_eq!(wire.faults_missing(), [""; 0]);
        assert_eq!(dropped, counters.dropped());
        assert_eq!(arrivals.len() as u64, counters.arriving);
        assert_eq!(
            counters.offered,
            counters.dropped() + counters.arriving - counters.more_copies
        );
    }

    #[test]
    fn the_same_seed_gives_the_same_arrivals() {
        let arrivals = |seed| run(&mut Wire::new(&faulty(), &mut Random::new(seed))).0;
        assert_eq!(arrivals(5), arrivals(5));
        assert_ne!(arrivals(5), arrivals(6));
    }

    #[test]
    fn a_healed_wire_harms_nothing() {
        let mut wire = Wire::new(&faulty(), &mut Random::new(8));
        wire.heal();
        let (arrivals, dropped) = run(&mut wire);
        assert_eq!(dropped, 0);
        assert!(arrivals.is_sorted() && arrivals.len() == 1000);
        assert_eq!(
            wire.faults_missing(),
            ["loss", "corruption", "duplication", "reordering"]
        );
    }

    #[test]
    fn a_seen_cut_takes_what_is_queued_and_an_unseen_one_what_leaves() {
        let mut wire = Wire::new(&faulty(), &mut Random::new(8));
        wire.heal();
        let frame = || Frame::new(vec![0; 100], Offload::NONE);
        assert!(wire.offer(frame(), Instant::ZERO).is_ok());
        assert_eq!(wire.cut(true).len(), 1);
        assert!(wire.offer(frame(), Instant::ZERO).is_err());
        wire.mend();
        let end = wire.offer(frame(), Instant::ZERO).unwrap().unwrap();
        assert!(wire.cut(false).is_empty());
        let mut dropped = 0;
        wire.sent(end, |passed| {
            dropped += u64::from(matches!(passed, Passed::Dropped(..)))
        });
        assert_eq!((dropped, wire.counters.cut), (1, 3));
    }
}
