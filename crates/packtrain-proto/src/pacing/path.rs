//! A path as it is remembered: what it carried when it was full, and its least round trip.
//!
//! Spacing ends long before the window has reached the path's rate, and the window is doubled once too often before the first loss
//! tells so. Who remembers the path does not ask it again: he is spaced up to its rate, and ends slow start there.

/// Nanoseconds of a second.
const SECOND_NS: u64 = 1_000_000_000;

/// The least window that slow start is ended at, in segments: a memory that says less is of no use.
pub const WINDOW_MIN: u32 = 10;

/// What is known of a path from earlier connections. `rate` counts the bytes of segments without their headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    pub rate_bytes_per_s: u64,
    pub rtt_min_us: u32,
}

impl Path {
    /// Whether a connection with this round trip goes by the path that is remembered: an address may have moved, or its route
    /// have changed. A round trip may be longer than the least by what stands in queues.
    pub fn holds(&self, rtt_us: u32) -> bool {
        let least = u64::from(self.rtt_min_us);
        let now = u64::from(rtt_us);
        least > 0 && now >= least / 2 && now <= least * 4
    }

    /// The part of one of so many streams that send.
    pub fn shared(&self, streams: u32) -> Path {
        Path {
            rate_bytes_per_s: self.rate_bytes_per_s / u64::from(streams.max(1)),
            ..*self
        }
    }

    /// Segments that fill the path and leave its queue empty: rate · least round trip.
    pub fn window(&self, mss: u32) -> u32 {
        let bytes = u128::from(self.rate_bytes_per_s) * u128::from(self.rtt_min_us) / 1_000_000;
        let segments = bytes / u128::from(mss.max(1));
        u32::try_from(segments).unwrap_or(u32::MAX).max(WINDOW_MIN)
    }

    /// The window that a stream may go on with at once: half of its part of what nobody else has of the path, neither by what arrives
    /// there now nor by a jump of which nothing has arrived yet.
    pub fn jump(&self, streams: u32, taken_bytes_per_s: u64, mss: u32) -> u32 {
        let free = self.rate_bytes_per_s.saturating_sub(taken_bytes_per_s);
        let half = free / (2 * u64::from(streams.max(1)));
        let bytes = u128::from(half) * u128::from(self.rtt_min_us) / 1_000_000;
        u32::try_from(bytes / u128::from(mss.max(1))).unwrap_or(u32::MAX)
    }

    /// Between two segments at the path's rate.
    pub fn interval_ns(&self, mss: u32) -> u64 {
        u64::from(mss) * SECOND_NS / self.rate_bytes_per_s.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's: 599 Mbit/s of IP, 198 ms, of which 1448 of 1500 bytes are a segment's.
    const OC12: Path = Path {
        rate_bytes_per_s: 599_000_000 / 8 * 1448 / 1500,
        rtt_min_us: 198_000,
    };

    #[test]
    fn a_window_fills_the_path() {
        assert_eq!(OC12.window(1448), 9883);
        assert_eq!(OC12.interval_ns(1448), 20_033);
        // A segment each interval, for one round trip.
        assert_eq!(198_000_000 / OC12.interval_ns(1448), 9883);
    }

    #[test]
    fn streams_that_share_a_path_have_its_rate_together() {
        let shared = OC12.shared(4);
        assert_eq!(shared.window(1448), 9883 / 4);
        assert_eq!(OC12.shared(0), OC12);
    }

    #[test]
    fn a_jump_is_half_of_what_is_free() {
        let rate = OC12.rate_bytes_per_s;
        assert_eq!(OC12.jump(1, 0, 1448), 9883 / 2);
        assert_eq!(OC12.jump(4, 0, 1448), 9883 / 8);
        assert_eq!(OC12.jump(1, rate / 2, 1448), 9883 / 4);
        assert_eq!(OC12.jump(1, rate, 1448), 0);
        assert_eq!(OC12.jump(1, 2 * rate, 1448), 0);
        assert_eq!(OC12.jump(0, 0, 1448), 9883 / 2);
    }

    /// Whatever others have taken before it, each by the same rule: not even half of the path by jumps alone.
    #[test]
    fn jumps_that_follow_each_other_do_not_fill_the_path() {
        let mut taken = 0;
        for _ in 0..20 {
            let window = u64::from(OC12.jump(1, taken, 1448));
            taken += window * 1448 * 1_000_000 / u64::from(OC12.rtt_min_us);
        }
        assert!(taken <= OC12.rate_bytes_per_s);
        let mut taken = 0;
        for _ in 0..20 {
            let window = u64::from(OC12.jump(20, taken, 1448));
            taken += window * 1448 * 1_000_000 / u64::from(OC12.rtt_min_us);
        }
        assert!(taken <= OC12.rate_bytes_per_s / 2);
    }

    #[test]
    fn a_memory_of_next_to_nothing_does_not_stop_a_connection() {
        let slow = Path {
            rate_bytes_per_s: 1,
            rtt_min_us: 1000,
        };
        assert_eq!(slow.window(1448), WINDOW_MIN);
        let nothing = Path {
            rate_bytes_per_s: 0,
            rtt_min_us: 0,
        };
        assert_eq!(nothing.interval_ns(1448), 1_448_000_000_000);
        assert!(!nothing.holds(1000));
    }

    #[test]
    fn another_round_trip_is_another_path() {
        assert!(OC12.holds(198_000));
        assert!(OC12.holds(400_000));
        assert!(!OC12.holds(98_000));
        assert!(!OC12.holds(900_000));
    }
}
