//! Most frames a second, however short they are: what a router with a slow processor forwards. A token
//! bucket, a token a frame.

use packtrain_proto::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketCapConfig {
    pub frames_per_second: u64,
    /// What the bucket holds: so many may begin at once.
    pub burst_frames: u64,
}

/// What a token takes to come, in units of 1/frames_per_second ns.
const TOKEN: u128 = 1_000_000_000;

/// The bucket, known by when it will be full (the virtual scheduling of ITU-T I.371): no fraction of a
/// token is ever lost.
#[derive(Debug)]
pub struct PacketCap {
    config: PacketCapConfig,
    /// In units of 1/frames_per_second ns.
    full: u128,
}

impl PacketCap {
    /// With a full bucket.
    pub fn new(config: PacketCapConfig) -> PacketCap {
        assert!(config.frames_per_second > 0 && config.burst_frames > 0);
        PacketCap { config, full: 0 }
    }

    /// When so many frames may begin together. More than the bucket holds wait until it is full, and
    /// leave it in debt: nobody cut them.
    pub fn ready(&self, frames: u64) -> Instant {
        let spare = self.config.burst_frames.saturating_sub(frames);
        let ready = self.full.saturating_sub(u128::from(spare) * TOKEN);
        Instant::from_nanos(ready.div_ceil(u128::from(self.config.frames_per_second)) as u64)
    }

    /// They begin; not before they may.
    pub fn take(&mut self, frames: u64, now: Instant) {
        debug_assert!(now >= self.ready(frames));
        let per_second = u128::from(self.config.frames_per_second);
        let now = u128::from(now.as_nanos()) * per_second;
        // Less than a nanosecond after the bucket was full is when it was full: time was rounded up.
        let from = if now < self.full + per_second {
            self.full
        } else {
            now
        };
        self.full = from + u128::from(frames) * TOKEN;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When frames begin that have all stood there from the start.
    fn begins(frames_per_second: u64, burst_frames: u64, count: usize) -> Vec<u64> {
        let mut cap = PacketCap::new(PacketCapConfig {
            frames_per_second,
            burst_frames,
        });
        let begin = |_| {
            let at = cap.ready(1);
            cap.take(1, at);
            at.as_nanos()
        };
        (0..count).map(begin).collect()
    }

    #[test]
    fn a_burst_begins_at_once_and_the_rest_at_the_rate() {
        assert_eq!(begins(1_000_000, 3, 6), [0, 0, 0, 1000, 2000, 3000]);
    }

    #[test]
    fn a_third_of_a_nanosecond_is_not_lost() {
        // 3 frames a second with a burst of 1: the last of 3001 begins after 1000 s.
        assert_eq!(begins(3, 1, 3001).last(), Some(&1_000_000_000_000));
    }

    #[test]
    fn what_is_longer_than_the_burst_waits_for_a_full_bucket_and_is_paid_for_later() {
        let mut cap = PacketCap::new(PacketCapConfig {
            frames_per_second: 1000,
            burst_frames: 4,
        });
        cap.take(1, Instant::ZERO);
        let full = Instant::from_nanos(1_000_000);
        assert_eq!(cap.ready(10), full);
        cap.take(10, full);
        // Six more than it held are owed, and one is asked for.
        assert_eq!(cap.ready(1), Instant::from_nanos(8_000_000));
    }
}
