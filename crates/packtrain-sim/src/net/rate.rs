//! Serialisation: so many bits a second, to the bit for ever.

use packtrain_proto::time::Instant;

use super::carried::Carried;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateConfig {
    pub bps: u64,
    pub level: RateLevel,
}

/// Which bits the rate counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateLevel {
    /// All that a wire spends on a frame: preamble, FCS, the gap, and 64 bytes for shorter ones.
    Ethernet,
    /// IP packets, as the rates of most access lines and shapers are meant.
    Ip,
}

impl RateConfig {
    pub fn ethernet(bps: u64) -> RateConfig {
        RateConfig {
            bps,
            level: RateLevel::Ethernet,
        }
    }

    pub fn bits(&self, frame: &impl Carried) -> u64 {
        match self.level {
            RateLevel::Ethernet => frame.wire_bits(),
            RateLevel::Ip => frame.ip_bits(),
        }
    }
}

/// A nanosecond, in units of 1/bps of it: a bit takes so many of them.
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// The line behind a queue.
///
/// In units of 1/bps ns every bit has a whole length: what is sent back to back keeps its fraction of a
/// nanosecond, and a million frames take as long as their bits.
#[derive(Debug)]
pub struct Rate {
    config: RateConfig,
    /// When the last bit so far has left: whole nanoseconds, and what is over in those units; less than bps.
    free_nanos: u64,
    free_parts: u64,
    /// The length that was sent last, and what it took: most are as long as the one before, and need no division.
    last: Length,
}

/// So many bits take so many nanoseconds and parts of one.
#[derive(Clone, Copy, Debug, Default)]
struct Length {
    bits: u64,
    nanos: u64,
    parts: u64,
}

impl Rate {
    pub fn new(config: RateConfig, free: Instant) -> Rate {
        assert!(config.bps > 0);
        Rate {
            config,
            free_nanos: free.as_nanos(),
            free_parts: 0,
            last: Length::default(),
        }
    }

    /// Sends a frame from `from` on, or as soon as the one before has left. When its last bit has: never
    /// earlier, but for a part of a nanosecond later.
    pub fn send(&mut self, frame: &impl Carried, from: Instant) -> Instant {
        self.send_bits(self.config.bits(frame), from)
    }

    /// The same for so many bits, whatever the rate's level.
    pub fn send_bits(&mut self, bits: u64, from: Instant) -> Instant {
        if from.as_nanos() > self.free_nanos {
            (self.free_nanos, self.free_parts) = (from.as_nanos(), 0);
        }
        if bits != self.last.bits {
            self.last = self.length(bits);
        }
        self.free_nanos += self.last.nanos;
        // Both are less than a nanosecond.
        let rest = self.config.bps - self.last.parts;
        if self.free_parts >= rest {
            self.free_nanos += 1;
            self.free_parts -= rest;
        } else {
            self.free_parts += self.last.parts;
        }
        Instant::from_nanos(self.free_nanos + u64::from(self.free_parts > 0))
    }

    fn length(&self, bits: u64) -> Length {
        let bps = self.config.bps;
        // Up to 2.3 GB at once: everything that is a frame.
        let (nanos, parts) = match bits.checked_mul(NANOS_PER_SECOND) {
            Some(parts) => (parts / bps, parts % bps),
            None => {
                let parts = u128::from(bits) * u128::from(NANOS_PER_SECOND);
                let bps = u128::from(bps);
                ((parts / bps) as u64, (parts % bps) as u64)
            }
        };
        Length { bits, nanos, parts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frame;
    use packtrain_proto::offload::Offload;
    use proptest::prelude::*;

    fn frame(len: usize) -> Frame {
        Frame::new(vec![0; len], Offload::NONE)
    }

    #[test]
    fn frames_leave_one_after_the_other_at_the_rate_with_all_that_a_wire_costs() {
        let mut rate = Rate::new(RateConfig::ethernet(1_000_000_000), Instant::ZERO);
        // 1514 + 24 bytes at 1 Gbit/s.
        let first = rate.send(&frame(1514), Instant::ZERO);
        assert_eq!(first, Instant::from_nanos(12_304));
        // A frame of 15 bytes is padded to 60: 672 bits.
        let second = rate.send(&frame(15), Instant::ZERO);
        assert_eq!(second, Instant::from_nanos(12_304 + 672));
        let late = Instant::from_nanos(20_000);
        assert_eq!(rate.send(&frame(15), late), Instant::from_nanos(20_672));
    }

    #[test]
    fn what_a_nanosecond_is_divided_into_is_not_lost() {
        // 672 bits at 7 Gbit/s are 96 ns; at 9.99 Gbit/s 67.267…
        let mut rate = Rate::new(RateConfig::ethernet(9_990_000_000), Instant::ZERO);
        let last = (0..999_000).map(|_| rate.send(&frame(60), Instant::ZERO));
        assert_eq!(last.last(), Some(Instant::from_nanos(67_200_000)));
    }

    /// The line in one number of 128 bits.
    struct Model {
        bps: u128,
        free: u128,
    }

    impl Model {
        fn send(&mut self, bits: u64, from: u64) -> u128 {
            let from = u128::from(from) * self.bps;
            self.free = self.free.max(from) + u128::from(bits) * 1_000_000_000;
            self.free.div_ceil(self.bps)
        }
    }

    proptest! {
        #[test]
        fn two_small_numbers_are_as_exact_as_a_large_one(
            bps in prop_oneof![1_000u64..2_000_000_000_000, 1u64..100, any::<u64>().prop_map(|bps| bps | 1)],
            begun in 0u64..1_000_000,
            frames in prop::collection::vec(
                // Some are longer than 64 bits of parts can say.
                (prop_oneof![8 => 1u64..1_000_000, 1 => 1u64..40_000_000_000], 0u64..2_000_000),
                1..60,
            ),
        ) {
            let mut rate = Rate::new(RateConfig::ethernet(bps), Instant::from_nanos(begun));
            let mut model = Model { bps: bps.into(), free: u128::from(begun) * u128::from(bps) };
            let mut from = 0;
            for (bits, gap) in frames {
                from += gap;
                let expected = model.send(bits, from);
                prop_assume!(expected < u128::from(u64::MAX));
                prop_assert_eq!(u128::from(rate.send_bits(bits, Instant::from_nanos(from)).as_nanos()), expected);
            }
        }
    }
}
