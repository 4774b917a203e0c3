//! A cable in one direction: a queue, a rate, a packet cap, a delay, and nothing that goes wrong but a full queue.
//!
//! It is [`crate::net::wire::Wire`] without events: what is first in, first out has its time as soon as it comes, so
//! that a frame costs one computation and no entry in a queue of events. A test holds it to the other.

use std::collections::VecDeque;

use packtrain_proto::gso;
use packtrain_proto::offload::Offload;
use packtrain_proto::time::{Duration, Instant};

use super::results::WireLoad;
use crate::frame::{FRAME_BYTES_MIN, WIRE_OVERHEAD_BYTES};
use crate::net::packet_cap::{PacketCap, PacketCapConfig};

/// What a cable is like, in each of its directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireSettings {
    /// Bits a second, all that a wire spends on a frame counted. `None`: as fast as it is fed.
    pub rate_bps: Option<u64>,
    pub packets_per_second: Option<u64>,
    pub delay: Duration,
    /// Most bytes that wait before it; what comes then is dropped.
    pub queue_bytes: usize,
    /// Bytes behind the EtherType of its longest frame.
    pub mtu: u16,
}

impl WireSettings {
    /// Neither rate nor cap: whatever comes leaves at once.
    pub fn is_unlimited(&self) -> bool {
        self.rate_bps.is_none() && self.packets_per_second.is_none()
    }
}

/// What a frame is to a wire, as what a card makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Bytes that stand in a queue.
    pub len: usize,
    pub frames: u64,
    /// Preamble, FCS, gap and the padding of short frames with them.
    pub wire_bytes: u64,
}

impl Cost {
    pub fn of(len: usize, offload: &Offload) -> Cost {
        let on_the_wire = |len: usize| (len.max(FRAME_BYTES_MIN) + WIRE_OVERHEAD_BYTES) as u64;
        let Some(gso) = offload.gso else {
            return Cost {
                len,
                frames: 1,
                wire_bytes: on_the_wire(len),
            };
        };
        let frames = gso::segment_count(len, &gso).max(1);
        let (header, segment) = (usize::from(gso.header_len), usize::from(gso.segment_len));
        let last = len - (frames - 1) * segment;
        Cost {
            len,
            frames: frames as u64,
            wire_bytes: (frames as u64 - 1) * on_the_wire(header + segment) + on_the_wire(last),
        }
    }

    pub fn load(&self) -> WireLoad {
        WireLoad {
            frames: self.frames as f64,
            bytes: self.wire_bytes as f64,
        }
    }
}

/// When the last bit has left, in nanoseconds and parts of one: what is sent back to back keeps its fraction.
#[derive(Debug)]
struct Rate {
    bps: u64,
    nanos: u64,
    /// Of 1/bps nanoseconds.
    parts: u64,
}

impl Rate {
    fn send(&mut self, wire_bytes: u64, from: Instant) -> Instant {
        if from.as_nanos() > self.nanos {
            (self.nanos, self.parts) = (from.as_nanos(), 0);
        }
        let parts = self.parts + 8 * wire_bytes * 1_000_000_000;
        self.nanos += parts / self.bps;
        self.parts = parts % self.bps;
        Instant::from_nanos(self.nanos + u64::from(self.parts > 0))
    }
}

#[derive(Clone, Copy, Debug)]
struct Standing {
    leaves: Instant,
    /// Of all bytes that ever came, those up to the end of this frame.
    bytes_until: u64,
}

#[derive(Debug)]
pub struct Line {
    settings: WireSettings,
    rate: Option<Rate>,
    cap: Option<PacketCap>,
    /// When the last frame so far has left.
    free: Instant,
    /// The first one may be on the wire already; it counts until its last bit has left.
    standing: VecDeque<Standing>,
    /// Bytes that have come, and have left, ever.
    came: u64,
    left: u64,
    pub sent: WireLoad,
    pub refused: u64,
}

impl Line {
    pub fn new(settings: WireSettings) -> Line {
        let cap = settings.packets_per_second.map(|frames_per_second| {
            PacketCap::new(PacketCapConfig {
                frames_per_second,
                burst_frames: 1,
            })
        });
        Line {
            rate: settings.rate_bps.map(|bps| Rate {
                bps,
                nanos: 0,
                parts: 0,
            }),
            cap,
            settings,
            free: Instant::ZERO,
            standing: VecDeque::new(),
            came: 0,
            left: 0,
            sent: WireLoad::default(),
            refused: 0,
        }
    }

    /// A frame for it. When it arrives; `None`: the queue is full, as long as anything stands in it.
    pub fn offer(&mut self, cost: &Cost, now: Instant) -> Option<Instant> {
        let queued = self.queued_bytes(now);
        if queued + cost.len > self.settings.queue_bytes && !self.standing.is_empty() {
            self.refused += 1;
            return None;
        }
        let token = self.cap.as_ref().map(|cap| cap.ready(cost.frames));
        let from = now.max(token.unwrap_or(Instant::ZERO));
        let begins = from.max(self.free);
        if let Some(cap) = &mut self.cap {
            cap.take(cost.frames, begins);
        }
        let leaves = match &mut self.rate {
            Some(rate) => rate.send(cost.wire_bytes, from),
            None => begins,
        };
        self.free = leaves;
        self.came += cost.len as u64;
        self.standing.push_back(Standing {
            leaves,
            bytes_until: self.came,
        });
        self.sent += cost.load();
        Some(leaves + self.settings.delay)
    }

    /// What stands there, the frame that is being sent with it.
    pub fn queued_bytes(&mut self, now: Instant) -> usize {
        while let Some(first) = self.standing.front().filter(|first| first.leaves <= now) {
            self.left = first.bytes_until;
            self.standing.pop_front();
        }
        (self.came - self.left) as usize
    }

    /// When less than `limit` stands there, if nothing more comes; `None`: it does so now.
    pub fn below_at(&mut self, limit: usize, now: Instant) -> Option<Instant> {
        if self.queued_bytes(now) < limit {
            return None;
        }
        let gone = self.came.saturating_sub(limit as u64);
        let first = self
            .standing
            .partition_point(|standing| standing.bytes_until <= gone);
        let last = self.standing.len() - 1;
        Some(self.standing[first.min(last)].leaves)
    }

    /// When everything so far has left.
    pub fn free_at(&self) -> Instant {
        self.free
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frame;
    use crate::net::queue::QueueConfig;
    use crate::net::rate::RateConfig;
    use crate::net::wire::{Passed, Wire, WireConfig};
    use crate::random::Random;
    use packtrain_proto::offload::{Gso, GsoKind};
    use proptest::prelude::*;

    /// The same frames through the wire of the simulator: when each arrives.
    fn by_events(settings: WireSettings, frames: &[(u64, usize)]) -> Vec<Option<Instant>> {
        let mut config = WireConfig::unrated(settings.delay);
        config.rate = settings.rate_bps.map(RateConfig::ethernet);
        config.queue = QueueConfig::drop_tail(settings.queue_bytes);
        config.packet_cap = settings
            .packets_per_second
            .map(|frames_per_second| PacketCapConfig {
                frames_per_second,
                burst_frames: 1,
            });
        let mut wire = Wire::new(&config, &mut Random::new(1));
        let mut arrivals = vec![None; frames.len()];
        let mut ends = None;
        let mut catch_up = |wire: &mut Wire, ends: &mut Option<Instant>, now: Instant| {
            while let Some(at) = ends.filter(|at| *at <= now) {
                *ends = wire.sent(at, |passed| match passed {
                    Passed::Arrives(at, frame) => {
                        let number = u32::from_be_bytes(frame.bytes[..4].try_into().unwrap());
                        arrivals[number as usize] = Some(at);
                    }
                    Passed::Dropped(..) => unreachable!("it loses nothing"),
                });
            }
        };
        for (number, &(at, len)) in (0u32..).zip(frames) {
            let now = Instant::from_nanos(at);
            catch_up(&mut wire, &mut ends, now);
            let mut bytes = vec![0; len];
            bytes[..4].copy_from_slice(&number.to_be_bytes());
            if let Ok(Some(end)) = wire.offer(Frame::new(bytes, Offload::NONE), now) {
                ends = Some(end);
            }
        }
        catch_up(&mut wire, &mut ends, Instant::from_nanos(u64::MAX));
        arrivals
    }

    proptest! {
        #[test]
        fn it_is_the_wire_of_the_simulator_without_its_events(
            rate in prop::option::of(1_000u64..20_000_000_000),
            cap in prop::option::of(1u64..1_000_000),
            delay in 0u64..1_000_000,
            queue in 100usize..20_000,
            gaps in prop::collection::vec((0u64..200_000, 15usize..1600), 1..100),
        ) {
            let settings = WireSettings {
                rate_bps: rate,
                packets_per_second: cap,
                delay: Duration::from_nanos(delay),
                queue_bytes: queue,
                mtu: 1500,
            };
            let mut at = 0;
            let frames: Vec<(u64, usize)> = gaps.iter().map(|&(gap, len)| { at += gap; (at, len) }).collect();
            let mut line = Line::new(settings);
            let ours: Vec<_> = frames
                .iter()
                .map(|&(at, len)| line.offer(&Cost::of(len, &Offload::NONE), Instant::from_nanos(at)))
                .collect();
            prop_assert_eq!(ours, by_events(settings, &frames));
        }

        #[test]
        fn a_frame_costs_what_the_simulator_says(len in 60usize..60_000, header in 54u16..100, segment in 100u16..9000) {
            let gso = Gso { kind: GsoKind::TcpV4, ecn: false, header_len: header, segment_len: segment };
            for offload in [Offload::NONE, Offload { gso: Some(gso), checksum: None }] {
                if offload.gso.is_some() && len <= usize::from(header) {
                    continue;
                }
                let frame = Frame::new(vec![0; len], offload);
                let cost = Cost::of(len, &offload);
                prop_assert_eq!(cost.frames, frame.segment_count() as u64);
                prop_assert_eq!(8 * cost.wire_bytes, frame.wire_bits());
            }
        }
    }

    #[test]
    fn it_says_when_less_stands_there() {
        let mut line = Line::new(WireSettings {
            rate_bps: Some(8_000_000), // a byte in a microsecond
            packets_per_second: None,
            delay: Duration::ZERO,
            queue_bytes: 10_000,
            mtu: 1500,
        });
        let cost = Cost::of(976, &Offload::NONE); // a millisecond
        (0..4).for_each(|_| assert!(line.offer(&cost, Instant::ZERO).is_some()));
        let ms = |ms| Some(Instant::ZERO + Duration::from_millis(ms));
        assert_eq!(line.below_at(5000, Instant::ZERO), None);
        assert_eq!(line.below_at(4 * 976, Instant::ZERO), ms(1));
        assert_eq!(line.below_at(977, Instant::ZERO), ms(3));
        assert_eq!(line.below_at(976, Instant::ZERO), ms(4));
        assert_eq!(line.below_at(1, Instant::ZERO), ms(4));
        assert_eq!(line.queued_bytes(ms(3).unwrap()), 976);
    }
}
