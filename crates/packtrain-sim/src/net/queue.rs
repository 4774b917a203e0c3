//! The queue before a rate: what a NIC, a port of a switch or a modem has, bounded in bytes or frames.
//!
//! Whoever sends from it asks for [`Queue::first`], whether that is to be sent ([`Queue::verdict`]), and takes it out when it
//! has left ([`Queue::pop`]). What was chosen stays chosen, whatever comes meanwhile, and counts until it has left.

mod config;
mod drr;
mod flows;
mod fq_codel;
mod order;
mod red;
mod room;
mod short_first;
#[cfg(test)]
mod testing;

use std::collections::VecDeque;

use packtrain_proto::queue::codel::Codel;
use packtrain_proto::time::Instant;

pub use self::config::{Discipline, QueueConfig, QueueLimit};
use self::order::{Order, Waiting};
use self::red::Red;
use super::carried::Carried;
use super::ecn::Marking;
use super::wire::WireDrop;
use crate::frame::Frame;
use crate::random::Random;

#[derive(Debug)]
pub struct Queue<F = Frame> {
    config: QueueConfig,
    order: Order<F>,
    /// What is to be sent next, or is being sent; not if it is the first of a plain queue.
    chosen: Option<Waiting<F>>,
    /// What is first is being sent.
    begun: bool,
    /// Of what waits and of what is chosen.
    bytes: usize,
    segments: usize,
    frames: usize,
    codel: Codel,
    red: Option<Red>,
    /// What [`Red`] begins with.
    random: Random,
    rate_bps: Option<u64>,
    /// The longest frame so far: with no more than that behind it, CoDel drops nothing.
    frame_bytes_max: usize,
    /// What the last frame that came took the place of.
    evicted: VecDeque<F>,
    pub bytes_max_seen: usize,
}

/// What CoDel wants of the frame that would begin to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Send,
    SendMarked,
    Drop,
}

impl<F: Carried> Queue<F> {
    /// `random` is for what chance decides, whenever that is configured.
    pub fn new(config: QueueConfig, random: Random) -> Queue<F> {
        let mut queue = Queue {
            order: Order::new(&config.discipline),
            config,
            chosen: None,
            begun: false,
            bytes: 0,
            segments: 0,
            frames: 0,
            codel: Codel::new(),
            red: None,
            random,
            rate_bps: None,
            frame_bytes_max: 0,
            evicted: VecDeque::new(),
            bytes_max_seen: 0,
        };
        queue.begin_discipline();
        queue
    }

    /// What stands there stays, even when it is more than the new limit, and what is being sent is sent. `rate_bps` is how
    /// fast it leaves, if that is known.
    pub fn set(&mut self, config: QueueConfig, rate_bps: Option<u64>) {
        self.rate_bps = rate_bps;
        let before = std::mem::replace(&mut self.config, config);
        if before.discipline != config.discipline {
            self.begin_discipline();
        }
    }

    fn begin_discipline(&mut self) {
        self.codel = Codel::new();
        self.red = self
            .config
            .discipline
            .red()
            .map(|red| Red::new(red, self.random.clone()));
        let mut order = Order::new(&self.config.discipline);
        // The first of a plain queue is chosen where it stands, and elsewhere taken out.
        if self.begun && self.chosen.is_none() {
            self.chosen = self.order.choose();
        }
        let mut all = self.order.drain();
        if matches!(order, Order::Fifo(_)) || !self.begun {
            all.splice(0..0, self.chosen.take());
        }
        all.into_iter().for_each(|waiting| order.push(waiting));
        self.order = order;
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Frames, those that are still to be cut as one.
    pub fn len(&self) -> usize {
        self.frames
    }

    pub fn is_empty(&self) -> bool {
        self.frames == 0
    }

    /// Takes a frame in. Whether it was marked; `Err`: it was not taken, and why. Others may have gone for it:
    /// [`Queue::evicted`].
    pub fn push(&mut self, mut frame: F, now: Instant) -> Result<bool, (F, WireDrop)> {
        self.evicted.clear();
        let (bytes, segments) = (frame.len_bytes(), frame.segment_count());
        let marks = match self.config.discipline {
            Discipline::DropTail | Discipline::Codel { .. } => false,
            Discipline::MarkAbove { bytes } => self.bytes > bytes,
            Discipline::Red { ecn, .. } => {
                let red = self.red.as_mut().expect("it is its discipline");
                let lens = (bytes, self.frame_bytes_max);
                let hit = red.hits(self.bytes, lens, now, self.rate_bps);
                if hit && !ecn {
                    return Err((frame, WireDrop::Early));
                }
                hit
            }
            Discipline::Drr { .. } | Discipline::FqCodel { .. } | Discipline::ShortFirst { .. } => {
                if !self.make_room(frame.flow_hash(), bytes, segments) {
                    return Err((frame, WireDrop::QueueFull));
                }
                false
            }
        };
        if !self.fits(bytes, segments) {
            return Err((frame, WireDrop::QueueFull));
        }
        let marking = marks.then(|| frame.mark());
        if self.red.is_some() && marking == Some(Marking::NotCapable) {
            return Err((frame, WireDrop::Early));
        }
        self.segments += segments;
        self.bytes += bytes;
        self.frames += 1;
        self.bytes_max_seen = self.bytes_max_seen.max(self.bytes);
        self.frame_bytes_max = self.frame_bytes_max.max(bytes);
        self.order.push(Waiting {
            frame,
            entered: now,
        });
        Ok(marking == Some(Marking::Marked))
    }

    /// A frame that the last one that came took the place of, if there is one more.
    pub fn evicted(&mut self) -> Option<F> {
        self.evicted.pop_front()
    }

    pub fn evicted_count(&self) -> usize {
        self.evicted.len()
    }

    /// The first frame, and when it came. It is chosen by that: until it is popped it stays the first.
    pub fn first(&mut self) -> Option<(&F, Instant)> {
        let first = match &mut self.order {
            Order::Fifo(fifo) => fifo.front(),
            order => {
                if self.chosen.is_none() {
                    self.chosen = order.choose();
                }
                self.chosen.as_ref()
            }
        }?;
        Some((&first.frame, first.entered))
    }

    /// Whether the first frame is to be sent, if its turn is at `now`; to be asked once. Times never go
    /// back.
    pub fn verdict(&mut self, now: Instant) -> Verdict {
        let verdict = match (&self.config.discipline, &mut self.order) {
            (Discipline::Codel { params, ecn }, Order::Fifo(fifo)) => match fifo.front_mut() {
                None => Verdict::Send,
                Some(first) => {
                    let behind = self.bytes - first.frame.len_bytes();
                    let sojourn = now.since(first.entered);
                    let codel = &mut self.codel;
                    let longest = self.frame_bytes_max;
                    let drops = codel.should_drop(sojourn, behind, longest, now, params);
                    judge(drops, *ecn, &mut first.frame)
                }
            },
            (Discipline::FqCodel { params, ecn, .. }, Order::FqCodel(fq)) => {
                let first = self.chosen.as_mut().expect("it is the first");
                let drops = fq.drops(first, now, params);
                let verdict = judge(drops, *ecn, &mut first.frame);
                if verdict != Verdict::Drop {
                    fq.pay(first.frame.len_bytes());
                }
                verdict
            }
            _ => Verdict::Send,
        };
        self.begun = verdict != Verdict::Drop;
        verdict
    }

    /// The first frame has left at `now`, or is dropped.
    pub fn pop(&mut self, now: Instant) -> F {
        let first = match &mut self.order {
            Order::Fifo(fifo) => fifo.pop_front(),
            _ => self.chosen.take(),
        };
        let frame = first.expect("there is one").frame;
        self.begun = false;
        self.bytes -= frame.len_bytes();
        self.segments -= frame.segment_count();
        self.frames -= 1;
        if self.frames == 0
            && let Some(red) = &mut self.red
        {
            red.idle(now);
        }
        frame
    }

    /// Everything, what was being sent included.
    pub fn clear(&mut self) -> Vec<F> {
        (self.bytes, self.segments, self.frames) = (0, 0, 0);
        let mut all: Vec<Waiting<F>> = self.chosen.take().into_iter().collect();
        all.extend(self.order.drain());
        self.begun = false;
        self.codel = Codel::new();
        self.order = Order::new(&self.config.discipline);
        self.red.iter_mut().for_each(Red::forget);
        all.into_iter().map(|waiting| waiting.frame).collect()
    }
}

/// As Linux does it: what carries the mark already is as good as marked now.
fn judge(drops: bool, ecn: bool, frame: &mut impl Carried) -> Verdict {
    match (drops, ecn) {
        (false, _) => Verdict::Send,
        (true, false) => Verdict::Drop,
        (true, true) => match frame.mark() {
            Marking::NotCapable => Verdict::Drop,
            Marking::Marked => Verdict::SendMarked,
            Marking::MarkedBefore => Verdict::Send,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::testing::Fed;
    use super::*;
    use packtrain_proto::offload::Offload;
    use packtrain_proto::queue::codel::CodelParams;
    use packtrain_proto::time::Duration;

    fn frame(len: usize) -> Frame {
        Frame::new(vec![0; len], Offload::NONE)
    }

    fn plain(config: QueueConfig) -> Queue {
        Queue::new(config, Random::new(1))
    }

    #[test]
    fn a_full_queue_refuses_and_an_empty_one_takes_anything() {
        let mut queue = plain(QueueConfig::drop_tail(1000));
        assert_eq!(queue.push(frame(5000), Instant::ZERO), Ok(false));
        assert!(queue.push(frame(15), Instant::ZERO).is_err());
        assert_eq!((queue.bytes(), queue.len()), (5000, 1));
        assert_eq!(queue.pop(Instant::ZERO), frame(5000));
        assert_eq!(queue.push(frame(500), Instant::ZERO), Ok(false));
        assert_eq!(queue.push(frame(500), Instant::ZERO), Ok(false));
        assert!(queue.push(frame(15), Instant::ZERO).is_err());
    }

    #[test]
    fn frames_are_counted_whatever_their_length() {
        let mut queue = plain(QueueConfig {
            limit: QueueLimit::Frames(2),
            discipline: Discipline::DropTail,
        });
        assert!(queue.push(frame(9000), Instant::ZERO).is_ok());
        assert!(queue.push(frame(9000), Instant::ZERO).is_ok());
        assert!(queue.push(frame(15), Instant::ZERO).is_err());
    }

    #[test]
    fn a_limit_that_shrinks_drops_nothing_and_takes_nothing() {
        let mut queue = plain(QueueConfig::drop_tail(1000));
        (0..10).for_each(|_| assert!(queue.push(frame(100), Instant::ZERO).is_ok()));
        queue.set(QueueConfig::drop_tail(300), None);
        for left in (3..10).rev() {
            assert!(queue.push(frame(15), Instant::ZERO).is_err());
            queue.pop(Instant::ZERO);
            assert_eq!(queue.len(), left);
        }
        queue.pop(Instant::ZERO);
        assert!(queue.push(frame(100), Instant::ZERO).is_ok());
    }

    #[test]
    fn another_discipline_keeps_what_stands_there_in_order_and_what_is_being_sent() {
        let all = [
            Discipline::DropTail,
            Discipline::Drr {
                quantum_bytes: 1500,
                flow_limit_bytes: None,
            },
            Discipline::FqCodel {
                quantum_bytes: 1500,
                params: CodelParams {
                    target: Duration::from_secs(1),
                    interval: Duration::from_secs(1),
                },
                ecn: false,
            },
            Discipline::ShortFirst { threshold_bytes: 0 },
            Discipline::Red {
                min_bytes: 1 << 20,
                max_bytes: 2 << 20,
                max_probability: 0.1,
                weight: 0.1,
                ecn: false,
                gentle: true,
            },
        ];
        let limit = QueueLimit::Bytes(1 << 20);
        for (from, to) in all
            .iter()
            .flat_map(|from| all.iter().map(move |to| (*from, *to)))
        {
            let mut fed = Fed::new(limit, from);
            for number in 0..8u8 {
                fed.now = Instant::from_nanos(number.into());
                fed.arrive(number % 2, 1500);
            }
            fed.leave();
            let sending = fed.queue.first().map(|(unit, _)| unit.number);
            let config = |discipline| QueueConfig { limit, discipline };
            fed.queue.set(config(to), None);
            fed.queue.set(config(Discipline::DropTail), None);
            assert_eq!((fed.queue.len(), fed.queue.bytes()), (7, 7 * 1500));
            let mut left = vec![sending.expect("it is not empty")];
            left.extend(std::iter::from_fn(|| fed.leave().begun).map(|unit| unit.number));
            assert!(left[1..].is_sorted(), "{from:?} {to:?}: {left:?}");
            left.sort_unstable();
            assert_eq!(left, [1, 2, 3, 4, 5, 6, 7], "{from:?} {to:?}");
            assert_eq!((fed.queue.len(), fed.queue.bytes()), (0, 0));
        }
    }

    /// A standing queue between the thresholds: some are hit, and as many with ECN as without.
    #[test]
    fn what_red_hits_is_dropped_early_or_marked() {
        let red = |ecn| Discipline::Red {
            min_bytes: 5000,
            max_bytes: 20_000,
            max_probability: 0.1,
            weight: 0.01,
            ecn,
            gentle: true,
        };
        let run = |ecn: bool, capable: Option<bool>| {
            let mut fed = Fed::new(QueueLimit::Bytes(1 << 20), red(ecn));
            fed.ecn = capable;
            let (mut dropped, mut marked) = (0, 0);
            for i in 0..5000 {
                dropped += fed.arrive(0, 1000).1.dropped.len();
                while fed.queue.bytes() > 12_500 {
                    let begun = fed.leave().begun.expect("more stands there");
                    marked += usize::from(begun.ecn == Some(true));
                }
                assert!(i < 200 || fed.queue.bytes() > 10_000);
            }
            (dropped, marked)
        };
        let (dropped, marked) = run(false, Some(false));
        // p_b is 0.05 at 12,500 bytes: every tenth frame.
        assert!((400..600).contains(&dropped) && marked == 0, "{dropped}");
        let (dropped, marked) = run(true, Some(false));
        assert!((400..600).contains(&marked) && dropped == 0, "{marked}");
        let (dropped, marked) = run(true, None);
        assert!((400..600).contains(&dropped) && marked == 0, "{dropped}");
    }

    #[test]
    fn an_early_drop_is_not_one_of_a_full_queue() {
        let red = Discipline::Red {
            min_bytes: 0,
            max_bytes: 1,
            max_probability: 1.0,
            weight: 1.0,
            ecn: false,
            gentle: false,
        };
        let mut queue = Queue::new(
            QueueConfig {
                limit: QueueLimit::Bytes(1000),
                discipline: red,
            },
            Random::new(1),
        );
        assert_eq!(queue.push(frame(900), Instant::ZERO), Ok(false));
        let reason = queue
            .push(frame(20), Instant::ZERO)
            .map_err(|(_, reason)| reason);
        assert_eq!(reason, Err(WireDrop::Early));
        assert!(queue.evicted().is_none());
    }
}
