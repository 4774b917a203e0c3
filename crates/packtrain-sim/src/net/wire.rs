//! One direction of a cable: a queue, a rate, and everything that happens on the way.
//!
//! ```text
//! offer → queue → processing → packet cap, rate → cut → loss → bit errors → corruption
//!       → duplication → delay, jitter → reordering → arrival
//! ```
//!
//! Who drives it, in virtual time or on a clock: [`Wire::offer`] puts a frame in. While something is
//! being sent the wire says until when, and is told by [`Wire::sent`] when that has come, before
//! anything is offered that comes later. It may be told late: what leaves and arrives has the time that
//! it was due at, so that lateness does not add up. Times never go back.

mod config;
mod counters;
mod faults;
mod passing;

use packtrain_proto::time::Instant;

pub use self::config::WireConfig;
pub use self::counters::{WireCounters, WireDrop};
use self::passing::Impairment;
use super::arq::Arq;
use super::bit_errors::BitErrors;
use super::carried::Carried;
use super::corruption::Corruption;
use super::delay::Delay;
use super::duplication::Duplication;
use super::jitter::Jitter;
use super::loss::Loss;
use super::packet_cap::PacketCap;
use super::processing::Processing;
use super::queue::{Queue, Verdict};
use super::rate::Rate;
use super::reordering::Reordering;
use crate::frame::Frame;
use crate::random::Random;

/// What a frame met on its way.
#[derive(Debug)]
pub enum Passed<F = Frame> {
    Arrives(Instant, F),
    Dropped(WireDrop, F),
}

/// The first frame of the queue, on the wire.
#[derive(Clone, Copy, Debug)]
struct Sending {
    begins: Instant,
    ends: Instant,
}

/// Something is being sent whenever something stands in the queue.
#[derive(Debug)]
pub struct Wire<F: Carried = Frame> {
    config: WireConfig,
    seed: u64,
    queue: Queue<F>,
    rate: Option<Rate>,
    packet_cap: Option<PacketCap>,
    processing: Option<Processing>,
    sending: Option<Sending>,
    /// When what was sent last has left: nothing begins before.
    free: Instant,
    loss: Option<Loss>,
    bit_errors: Option<BitErrors>,
    arq: Option<Arq>,
    /// What chance did to the frame that leaves now, where that had to be known before.
    known: Option<Option<WireDrop>>,
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
    /// Anything may happen on the way but a delay: most wires only queue and delay, and have a short way through here.
    harms: bool,
    pub counters: WireCounters,
}

impl<F: Carried> Wire<F> {
    /// Draws one number, whatever the configuration: what is drawn after it does not depend on that.
    pub fn new(config: &WireConfig, random: &mut Random) -> Wire<F> {
        let bare = WireConfig::unrated(config.delay);
        let seed = random.next();
        let mut wire = Wire {
            seed,
            queue: Queue::new(bare.queue, Impairment::Early.random(seed)),
            rate: None,
            packet_cap: None,
            processing: None,
            sending: None,
            free: Instant::ZERO,
            loss: None,
            bit_errors: None,
            arq: None,
            known: None,
            corruption: None,
            duplication: None,
            delay: Delay::new(bare.delay),
            jitter: None,
            reordering: None,
            epoch: 0,
            cut: None,
            healed: false,
            harms: false,
            counters: WireCounters::default(),
            config: bare,
        };
        wire.set(config);
        wire
    }

    /// Changes a running wire. What stands in the queue and what is on its way stays, the frame that is
    /// being sent leaves when it was said to, and counters go on. What did not change keeps its state;
    /// what did begins anew, with the generator that it would have had from the start.
    pub fn set(&mut self, config: &WireConfig) {
        let before = std::mem::replace(&mut self.config, config.clone());
        if config.rate != before.rate {
            self.rate = config.rate.map(|rate| Rate::new(rate, self.free));
        }
        if config.packet_cap != before.packet_cap {
            self.packet_cap = config.packet_cap.map(PacketCap::new);
        }
        if config.processing != before.processing {
            self.processing = config.processing.map(Processing::new);
        }
        let rate_bps = config.rate.map(|rate| rate.bps);
        self.queue.set(config.queue, rate_bps);
        self.delay.set(config.delay);
        let seed = self.seed;
        let random = |of: Impairment| of.random(seed);
        if config.loss != before.loss {
            let loss = config.loss.clone();
            self.loss = loss.map(|loss| Loss::new(loss, random(Impairment::Loss)));
        }
        if (config.bit_errors, config.fec) != (before.bit_errors, before.fec) {
            let random = || random(Impairment::BitErrors);
            let new = |errors| BitErrors::coded(errors, config.fec, random());
            self.bit_errors = config.bit_errors.map(new);
        }
        if config.arq != before.arq {
            self.arq = config.arq.map(Arq::new);
        }
        if config.corruption != before.corruption {
            let new = |corruption| Corruption::new(corruption, random(Impairment::Corruption));
            self.corruption = config.corruption.map(new);
        }
        if config.duplication != before.duplication {
            let new = |probability| Duplication::new(probability, random(Impairment::Duplication));
            self.duplication = config.duplication.map(new);
        }
        if config.jitter != before.jitter {
            let new = |jitter| Jitter::new(jitter, random(Impairment::Jitter));
            self.jitter = config.jitter.map(new);
        }
        if config.reordering != before.reordering {
            let new = |reordering| Reordering::new(reordering, random(Impairment::Reordering));
            self.reordering = config.reordering.map(new);
        }
        self.harms = self.may_harm();
    }

    fn may_harm(&self) -> bool {
        let loses = self.loss.is_some() || self.bit_errors.is_some() || self.corruption.is_some();
        let moves = self.duplication.is_some() || self.reordering.is_some();
        // Jitter goes on when it is healed.
        self.cut.is_some() || self.jitter.is_some() || !self.healed && (loses || moves)
    }

    pub fn config(&self) -> &WireConfig {
        &self.config
    }

    /// What stands in the queue, the frame that is being sent included.
    pub fn queued_bytes(&self) -> usize {
        self.queue.bytes()
    }

    pub fn queued_frames(&self) -> usize {
        self.queue.len()
    }

    pub fn queued_bytes_max_seen(&self) -> usize {
        self.queue.bytes_max_seen
    }

    /// [`Queue::has_room`].
    pub fn has_room(&self, bytes: usize, frames: usize) -> bool {
        self.queue.has_room(bytes, frames)
    }

    /// When [`Wire::sent`] is to be called next, if something is being sent.
    pub fn sending_until(&self) -> Option<Instant> {
        self.sending.map(|sending| sending.ends)
    }

    /// [`WireConfig::counts_frames`] of what it is set to.
    pub fn counts_frames(&self) -> bool {
        self.config.counts_frames()
    }

    /// Puts a frame into the queue. `Ok(Some(t))`: it is alone, and has left at t; on a wire without a
    /// rate that may be now. Whatever the result, others may have made room for it: [`Wire::evicted`].
    pub fn offer(&mut self, frame: F, now: Instant) -> Result<Option<Instant>, (F, WireDrop)> {
        self.counters.offered += 1;
        self.counters.offered_bytes += frame.len_bytes() as u64;
        if self.cut == Some(true) {
            self.counters.count(WireDrop::Cut);
            return Err((frame, WireDrop::Cut));
        }
        let taken = self.queue.push(frame, now);
        self.counters.queue_full += self.queue.evicted_count() as u64;
        match taken {
            Ok(marked) => self.counters.marked += u64::from(marked),
            Err((frame, reason)) => {
                self.counters.count(reason);
                return Err((frame, reason));
            }
        }
        if self.sending.is_some() {
            return Ok(None);
        }
        Ok(self.begin(&mut |_| unreachable!("CoDel never drops the last one")))
    }

    /// A frame that was dropped from the queue to make room for the last one that was offered; counted already as
    /// [`WireDrop::QueueFull`]. To be asked after each offer until there are no more: the next one forgets them.
    pub fn evicted(&mut self) -> Option<F> {
        self.queue.evicted()
    }

    /// The first frame of the queue has left; `passed` hears of each copy of it, and of what CoDel
    /// drops then. Returns when the next one will have left.
    pub fn sent(&mut self, now: Instant, mut passed: impl FnMut(Passed<F>)) -> Option<Instant> {
        let sending = self.sending.take().expect("something was being sent");
        assert!(sending.ends <= now, "it leaves at {:?}", sending.ends);
        if let Some(again) = self.tries_again(sending) {
            return Some(again);
        }
        let frame = self.queue.pop(sending.ends);
        self.counters.left += 1;
        self.counters.left_bytes += frame.len_bytes() as u64;
        self.counters.busy += sending.ends.since(sending.begins);
        self.pass(frame, sending.ends, &mut passed);
        self.begin(&mut passed)
    }

    /// What was being sent is lost on a line that repeats, and its next attempt will be over then.
    fn tries_again(&mut self, sending: Sending) -> Option<Instant> {
        if self.arq.is_none() || self.cut.is_some() || self.healed {
            return None;
        }
        let (first, _) = self.queue.first()?;
        let bits = first.checked_bits();
        let lost = self.lost(bits);
        let turn_round = self.arq.as_mut()?.ends(lost.is_some());
        let Some(turn_round) = turn_round else {
            self.known = Some(lost);
            return None;
        };
        self.counters.repeated += 1;
        self.counters.busy += sending.ends.since(sending.begins);
        let begins = sending.ends + turn_round;
        let (first, _) = self.queue.first()?;
        let ends = match &mut self.rate {
            Some(rate) => send(rate, &self.config, first, begins),
            None => begins,
        };
        self.free = ends;
        self.sending = Some(Sending { begins, ends });
        Some(ends)
    }

    /// Begins to send the first frame that CoDel lets live. Its turn comes when the frame before has left,
    /// the bucket has a token, and it is there: behind a packet cap that may be later than now, and is
    /// decided now, by what stands behind it now. It begins then, or when it has been looked up.
    fn begin(&mut self, passed: &mut impl FnMut(Passed<F>)) -> Option<Instant> {
        loop {
            let Some((frame, entered)) = self.queue.first() else {
                self.processing.iter_mut().for_each(Processing::idle);
                return None;
            };
            let segments = frame.segment_count() as u64;
            let token = self.packet_cap.as_ref().map(|cap| cap.ready(segments));
            let mut from = entered.max(token.unwrap_or(Instant::ZERO));
            let turn = from.max(self.free);
            match self.queue.verdict(turn) {
                Verdict::Send => {}
                Verdict::SendMarked => self.counters.marked += 1,
                Verdict::Drop => {
                    self.counters.count(WireDrop::Codel);
                    let frame = self.queue.pop(turn);
                    passed(Passed::Dropped(WireDrop::Codel, frame));
                    continue;
                }
            }
            if let Some(processing) = &mut self.processing {
                let (ready, pause) = processing.process(segments, entered, turn);
                self.counters.lookups += segments;
                let longest = &mut self.counters.longest_pause;
                *longest = pause.unwrap_or_default().max(*longest);
                from = from.max(ready);
                processing.begun(from.max(self.free));
            }
            let begins = from.max(self.free);
            if let Some(cap) = &mut self.packet_cap {
                cap.take(segments, begins);
            }
            let (frame, _) = self.queue.first().expect("it is to be sent");
            // The rate knows by itself when it is free, and to the fraction of a nanosecond.
            let ends = match &mut self.rate {
                Some(rate) => send(rate, &self.config, frame, from),
                None => begins,
            };
            self.free = ends;
            self.sending = Some(Sending { begins, ends });
            return Some(ends);
        }
    }

    /// The cable is pulled. Returns what stood in the queue, all of it gone.
    pub fn cut(&mut self, seen: bool) -> Vec<F> {
        self.cut = Some(seen);
        self.harms = true;
        if !seen {
            return Vec::new(); // frames go on leaving, into nothing
        }
        self.epoch += 1;
        let gone = self.queue.clear();
        // Nobody waits for the end of a frame that is gone.
        self.sending = None;
        self.free = Instant::ZERO;
        self.rate = self.config.rate.map(|rate| Rate::new(rate, self.free));
        self.processing = self.config.processing.map(Processing::new);
        self.counters.cut += gone.len() as u64;
        gone
    }

    pub fn mend(&mut self) {
        self.cut = None;
        self.harms = self.may_harm();
    }

    /// A frame that was on its way already.
    pub fn count_on_the_way(&mut self, reason: WireDrop) {
        self.counters.count(reason);
    }

    /// From now on nothing is lost, altered, doubled or overtaken; rate, delay and jitter stay.
    pub fn heal(&mut self) {
        self.healed = true;
        self.harms = self.may_harm();
    }
}

/// When the last bit of a frame has left that is sent from then on, with what its code adds.
fn send<F: Carried>(rate: &mut Rate, config: &WireConfig, frame: &F, from: Instant) -> Instant {
    match &config.fec {
        None => rate.send(frame, from),
        Some(code) => {
            let level = config.rate.expect("there is a rate");
            rate.send_bits(code.coded_bits(level.bits(frame)), from)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::bit_errors::BitErrorConfig;
    use crate::net::corruption::CorruptionConfig;
    use crate::net::jitter::{JitterConfig, JitterDistribution};
    use crate::net::loss::LossConfig;
    use crate::net::reordering::ReorderingConfig;
    use packtrain_proto::offload::Offload;
    use packtrain_proto::time::Duration;

    fn faulty() -> WireConfig {
        WireConfig {
            jitter: Some(JitterConfig {
                distribution: JitterDistribution::Queue {
                    max: Duration::from_micros(300),
                },
                keeps_order: true,
            }),
            loss: Some(LossConfig::Bernoulli { probability: 0.05 }),
            bit_errors: Some(BitErrorConfig { rate: 1e-4 }),
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
            [
                "loss",
                "bit errors",
                "corruption",
                "duplication",
                "reordering"
            ]
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
