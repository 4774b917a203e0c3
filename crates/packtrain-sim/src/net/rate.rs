//! Serialisation: so many bits a second, to the bit for ever.

use packtrain_proto::time::Instant;

use crate::frame::Frame;

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

    pub fn bits(&self, frame: &Frame) -> u64 {
        match self.level {
            RateLevel::Ethernet => frame.wire_bits(),
            RateLevel::Ip => frame.ip_bits(),
        }
    }
}

/// A nanosecond, in units of 1/bps of it: a bit takes so many of them.
const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// The line behind a queue.
///
/// In units of 1/bps ns every bit has a whole length: what is sent back to back keeps its fraction of a
/// nanosecond, and a million frames take as long as their bits.
#[derive(Debug)]
pub struct Rate {
    config: RateConfig,
    /// When the last bit so far has left, in those units.
    free: u128,
}

impl Rate {
    pub fn new(config: RateConfig, free: Instant) -> Rate {
        assert!(config.bps > 0);
        Rate {
            config,
            free: u128::from(free.as_nanos()) * u128::from(config.bps),
        }
    }

    /// Sends a frame from `from` on, or as soon as the one before has left. When its last bit has: never
    /// earlier, but for a part of a nanosecond later.
    pub fn send(&mut self, frame: &Frame, from: Instant) -> Instant {
        let bps = u128::from(self.config.bps);
        let from = u128::from(from.as_nanos()) * bps;
        let bits = u128::from(self.config.bits(frame));
        self.free = self.free.max(from) + bits * NANOS_PER_SECOND;
        Instant::from_nanos(self.free.div_ceil(bps) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packtrain_proto::offload::Offload;

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
}
