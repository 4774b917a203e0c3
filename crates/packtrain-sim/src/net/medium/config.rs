//! What a medium is made of: the standard's numbers, and those that a medium may choose.

use packtrain_proto::time::Duration;

// IEEE 802.3, 4.4.2, in bit times.
pub(super) const SLOT_BITS: u64 = 512;
pub(super) const GAP_BITS: u64 = 96;
/// Of the gap: where a carrier still counts.
pub(super) const GAP_PART1_BITS: u64 = 64;
pub(super) const PREAMBLE_BITS: u64 = 64;
pub(super) const JAM_BITS: u64 = 32;
pub(super) const FCS_BYTES: usize = 4;
pub const ATTEMPTS_MAX: usize = 16;
pub(super) const BACKOFF_EXPONENT_MAX: usize = 10;

/// As many as [`super::Stations`] has bits for.
pub const STATIONS_MAX: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediumConfig {
    pub rate_bps: u64,
    pub stations: usize,
    /// Of each station, drop tail. In bytes and not in frames, as before every other wire here: it is
    /// what its host asks for ([`super::Medium::queued_bytes`]), and one bound is enough.
    pub queue_bytes_max: usize,
    /// One way between any two stations: as long does one not hear that another has begun. More than
    /// nothing and less than half a slot, so that a sender has heard of every collision within a slot.
    pub propagation: Duration,
}

impl MediumConfig {
    /// Stations around one hub, with cables of 100 m.
    pub fn one_hub(rate_bps: u64, stations: usize) -> MediumConfig {
        MediumConfig {
            rate_bps,
            stations,
            queue_bytes_max: 512 * 1024,
            propagation: Self::propagation_of_one_hub(rate_bps),
        }
    }

    pub(super) fn check(&self) {
        assert!((1..=STATIONS_MAX).contains(&self.stations));
        assert!(self.rate_bps > 0, "a rate of nothing");
        assert!(
            !self.propagation.is_zero() && 2 * self.propagation < self.bits(SLOT_BITS),
            "{:?} at {} bit/s: not within half a slot",
            self.propagation,
            self.rate_bps
        );
    }

    pub(super) fn bits(&self, count: u64) -> Duration {
        bits(count, self.rate_bps)
    }

    /// The worst that the standard's budgets of a round trip allow, halved. 10BASE-T (13.4):
    /// 26.55 + 176.3 bit times for the first and the last segment of 100 m, the hub included: 101 one
    /// way, 10.1 µs. 100BASE-TX (29.3): two stations 100, a class II hub 92, 200 m of cable
    /// 222.4: 207 one way. Faster ones, which have no such hubs, are taken to be as much shorter.
    pub fn propagation_of_one_hub(rate_bps: u64) -> Duration {
        Duration::from_nanos(10_100).min(bits(207, rate_bps))
    }
}

/// Rounded up, so that no gap is too short. Exact at 10 and 100 Mbit/s.
pub(super) fn bits(count: u64, rate_bps: u64) -> Duration {
    let nanos = (u128::from(count) * 1_000_000_000).div_ceil(u128::from(rate_bps));
    Duration::from_nanos(nanos as u64)
}
