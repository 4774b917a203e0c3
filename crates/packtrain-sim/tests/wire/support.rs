//! A wire, driven in virtual time by its contract, and the frames that it is given.

use packtrain_proto::offload::{Gso, GsoKind, Offload};
use packtrain_proto::time::{Duration, Instant};
use packtrain_sim::checksum;
use packtrain_sim::frame::Frame;
use packtrain_sim::net::wire::{Passed, Wire, WireConfig, WireDrop};
use packtrain_sim::random::Random;
use proptest::prelude::*;

/// What became of a frame, known by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Arrived(u32, Instant),
    Dropped(u32, WireDrop),
    /// The wire did not take it.
    Refused(u32),
}

pub struct Driven {
    pub wire: Wire,
    due: Option<Instant>,
    pub now: Instant,
    pub offered: u32,
    pub fates: Vec<Fate>,
    /// The frames that arrived, as they were then.
    pub arrived: Vec<Frame>,
}

impl Driven {
    pub fn new(config: &WireConfig, seed: u64) -> Driven {
        Driven {
            wire: Wire::new(config, &mut Random::new(seed)),
            due: None,
            now: Instant::ZERO,
            offered: 0,
            fates: Vec::new(),
            arrived: Vec::new(),
        }
    }

    pub fn run_until(&mut self, until: Instant) {
        while let Some(at) = self.due.filter(|&at| at <= until) {
            let (fates, arrived) = (&mut self.fates, &mut self.arrived);
            self.due = self.wire.sent(at, |passed| match passed {
                Passed::Arrives(at, frame) => {
                    fates.push(Fate::Arrived(number(&frame), at));
                    arrived.push(frame);
                }
                Passed::Dropped(reason, frame) => {
                    fates.push(Fate::Dropped(number(&frame), reason));
                }
            });
            assert_eq!(self.due, self.wire.sending_until());
        }
        self.now = until;
    }

    pub fn run_for(&mut self, time: Duration) {
        self.run_until(self.now + time);
    }

    /// Until nothing stands in the queue.
    pub fn drain(&mut self) {
        while let Some(at) = self.due {
            self.run_until(at);
        }
    }

    /// Offers a frame now, with the next number. Whether it was taken.
    pub fn offer(&mut self, mut frame: Frame) -> bool {
        self.run_until(self.now);
        frame.bytes[..4].copy_from_slice(&self.offered.to_be_bytes());
        self.offered += 1;
        let offered = self.wire.offer(frame, self.now);
        while let Some(other) = self.wire.evicted() {
            self.fates
                .push(Fate::Dropped(number(&other), WireDrop::QueueFull));
        }
        match offered {
            Ok(due) => {
                assert!(due.is_none() || self.due.is_none());
                self.due = self.due.or(due);
                true
            }
            Err((frame, _)) => {
                self.fates.push(Fate::Refused(number(&frame)));
                false
            }
        }
    }

    pub fn set(&mut self, config: &WireConfig) {
        let held = (self.wire.queued_frames(), self.wire.queued_bytes());
        self.wire.set(config);
        assert_eq!(
            held,
            (self.wire.queued_frames(), self.wire.queued_bytes()),
            "what stands there stays"
        );
        assert_eq!(
            self.due,
            self.wire.sending_until(),
            "what is being sent keeps its end"
        );
    }

    pub fn cut(&mut self, seen: bool) {
        for frame in self.wire.cut(seen) {
            self.fates
                .push(Fate::Dropped(number(&frame), WireDrop::Cut));
        }
        self.due = self.wire.sending_until();
    }

    /// Numbers of what was lost on the way, in order.
    pub fn dropped(&self, reason: WireDrop) -> Vec<u32> {
        let dropped = |fate: &Fate| match fate {
            Fate::Dropped(number, why) => (*why == reason).then_some(*number),
            _ => None,
        };
        self.fates.iter().filter_map(dropped).collect()
    }

    /// Numbers and times, in the order in which they left.
    pub fn arrivals(&self) -> Vec<(u32, Instant)> {
        let arrived = |fate: &Fate| match fate {
            Fate::Arrived(number, at) => Some((*number, *at)),
            _ => None,
        };
        self.fates.iter().filter_map(arrived).collect()
    }
}

pub fn number(frame: &Frame) -> u32 {
    u32::from_be_bytes(frame.bytes[..4].try_into().expect("four bytes"))
}

pub fn bare(len: usize) -> Frame {
    Frame::new(vec![0; len], Offload::NONE)
}

/// An IP packet with these two bits, below so many VLAN tags; the outer of two is a provider's.
pub fn ip(ipv6: bool, tags: usize, ecn: u8, payload_len: usize) -> Frame {
    let mut bytes = vec![0; 12];
    for tag in 0..tags {
        let outer = tags == 2 && tag == 0;
        bytes.extend(if outer { [0x88, 0xa8] } else { [0x81, 0x00] });
        bytes.extend([0, 7]);
    }
    if ipv6 {
        bytes.extend([0x86, 0xdd, 0x6a, 0xb1 & 0xcf | ecn << 4, 0x23, 0x45]);
        bytes.extend((payload_len as u16).to_be_bytes());
        bytes.extend([17, 64]);
        bytes.extend([0xfd; 32]);
    } else {
        bytes.extend([0x08, 0x00]);
        let start = bytes.len();
        bytes.extend([0x45, 0xb8 | ecn]);
        bytes.extend((20 + payload_len as u16).to_be_bytes());
        bytes.extend([0x12, 0x34, 0x40, 0, 64, 17, 0, 0, 10, 1, 2, 3, 10, 4, 5, 6]);
        let check = !checksum::sum(0, &bytes[start..]);
        bytes[start + 10..start + 12].copy_from_slice(&check.to_be_bytes());
    }
    bytes.resize(bytes.len() + payload_len, 0x55);
    Frame::new(bytes, Offload::NONE)
}

/// TCP over IPv4, so many segments in one frame.
pub fn huge(ecn: u8, segments: usize, segment_len: u16) -> Frame {
    let mut frame = ip(false, 0, ecn, 20 + segments * usize::from(segment_len));
    let packet = &mut frame.bytes[14..];
    packet[9] = checksum::TCP;
    packet[20 + 12] = 5 << 4; // without options
    packet[10..12].fill(0);
    let check = !checksum::sum(0, &packet[..20]);
    packet[10..12].copy_from_slice(&check.to_be_bytes());
    frame.offload.gso = Some(Gso {
        kind: GsoKind::TcpV4,
        ecn: false,
        header_len: 14 + 20 + 20,
        segment_len,
    });
    frame
}

/// None of them is so short that it is sent within a nanosecond, of which the models know no parts.
pub fn any_frame() -> impl Strategy<Value = Frame> {
    prop_oneof![
        3 => (34usize..1515).prop_map(bare),
        1 => Just(bare(60)),
        3 => (any::<bool>(), 0usize..3, 0u8..4, 0usize..1460)
            .prop_map(|(ipv6, tags, ecn, len)| ip(ipv6, tags, ecn, len)),
        1 => (0u8..4, 2usize..20, 100u16..1400)
            .prop_map(|(ecn, segments, len)| huge(ecn, segments, len)),
    ]
}

/// Any order of magnitude up to `10^most` as likely as any other.
pub fn magnitude(least: u32, most: u32) -> impl Strategy<Value = u64> {
    (least..most, 10u64..100).prop_map(|(power, digits)| digits * 10u64.pow(power) / 10)
}

pub fn duration(most: u32) -> impl Strategy<Value = Duration> {
    magnitude(1, most).prop_map(Duration::from_nanos)
}
