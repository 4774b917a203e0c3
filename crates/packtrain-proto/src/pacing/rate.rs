//! How fast a stream leaves whose rate somebody has said, or that has the rate of its path.
//!
//! Streams that share a rate have equal parts of it while they send. Who is paced to what his path has carried would never see that it
//! carries more by now: so a little more is tried for a round trip now and then, and twice as much less after that. In that drains what has
//! queued, and of a queue that stood there before as much again: where all streams together send what the path carries, nothing
//! else would ever drain it (the first flights of streams that begin, or the time before a slower path was noticed).

/// A little more is tried once in so many round trips.
pub const PROBE_EVERY: u64 = 16;
/// How much is a little: the rate divided by this. Less than what a buffer of 5 % of what is under way holds.
pub const PROBE_DIVISOR: u64 = 40;
/// But so many segments at least: one in each window of what is measured,
pub const PROBE_SEGMENTS: u64 = 4;
/// and no more than the rate divided by this.
pub const PROBE_DIVISOR_MIN: u64 = 4;
/// It is doubled so often at most.
pub const RAISED_MAX: u32 = 3;
const SECOND_NS: u64 = 1_000_000_000;
/// Deliveries are measured in windows: in this time there are some, however short the round trip is.
pub const UNIT_MIN_NS: u64 = 40_000_000;

/// The part of one of so many streams of a rate of IP packets, in bytes of segments without their headers, both a second.
/// Segments are as full as they get.
pub fn share(bytes_per_s: u64, streams: u32, mss: u32, headers: u32) -> u64 {
    let share = bytes_per_s / u64::from(streams.max(1));
    let (mss, whole) = (u64::from(mss), u64::from(mss) + u64::from(headers));
    if whole == 0 {
        return share;
    }
    (share / whole * mss + share % whole * mss / whole).max(1)
}

/// For how long more, or less, is tried.
pub fn unit_ns(rtt_min_us: u32) -> u64 {
    (u64::from(rtt_min_us) * 1000).max(UNIT_MIN_NS)
}

/// A path's rate, so long after its cycle began: a little more, then twice as much less, and as it is for the rest of the cycle.
/// `raised`: how often in a row more was carried when the cycle began, which lets twice as much more be tried each time.
pub fn probing(bytes_per_s: u64, since_ns: u64, rtt_min_us: u32, mss: u32, raised: u32) -> u64 {
    let unit_ns = unit_ns(rtt_min_us);
    let units = since_ns / unit_ns;
    let raised = if units < 2 { raised.min(RAISED_MAX) } else { 0 };
    let most = bytes_per_s / PROBE_DIVISOR_MIN;
    let little = (little(bytes_per_s, unit_ns, mss) << raised).min(most);
    match units % PROBE_EVERY {
        0 => bytes_per_s + little,
        1 => bytes_per_s - 2 * little,
        _ => bytes_per_s,
    }
}

/// Of a slow path a fortieth is less than a segment in a window of what is measured, which nobody would see.
fn little(bytes_per_s: u64, unit_ns: u64, mss: u32) -> u64 {
    let segments = u64::from(mss) * PROBE_SEGMENTS * SECOND_NS / unit_ns;
    segments.clamp(bytes_per_s / PROBE_DIVISOR, bytes_per_s / PROBE_DIVISOR_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MEGABIT: u64 = 1_000_000 / 8;

    #[test]
    fn packets_are_as_fast_as_was_said_and_segments_slower_by_their_headers() {
        // 1448 of 1500 bytes.
        assert_eq!(share(40 * MEGABIT, 1, 1448, 52), 4_826_666);
        assert_eq!(share(40 * MEGABIT, 4, 1448, 52), 1_206_666);
        assert_eq!(share(1500, 0, 1448, 52), 1448);
    }

    #[test]
    fn a_little_more_is_tried_and_twice_as_much_is_given_back() {
        let ms = |ms: u64| probing(40_000_000, ms * 1_000_000, 100_000, 1448, 0);
        assert_eq!([ms(0), ms(99)], [41_000_000; 2]);
        assert_eq!([ms(100), ms(199)], [38_000_000; 2]);
        assert_eq!([ms(200), ms(1599)], [40_000_000; 2]);
        assert_eq!(ms(1600), 41_000_000);
        let cycle: u64 = (0..PROBE_EVERY).map(|trip| ms(trip * 100)).sum();
        assert_eq!(
            cycle,
            PROBE_EVERY * 40_000_000 - 1_000_000,
            "less in all, by 1/640"
        );
    }

    #[test]
    fn a_short_round_trip_is_not_the_measure_of_it() {
        assert_eq!(probing(40_000_000, 39_999_999, 200, 1448, 0), 41_000_000);
        assert_eq!(probing(40_000_000, 40_000_000, 200, 1448, 0), 38_000_000);
    }

    #[test]
    fn twice_as_much_is_tried_each_time_that_it_was_carried_and_a_quarter_at_most() {
        let tried = |raised| {
            let at = |ms: u64| probing(40_000_000, ms * 1_000_000, 100_000, 1448, raised);
            [at(0), at(100), at(200), at(1600)]
        };
        let little =
            |more: u64, less: u64| [40_000_000 + more, 40_000_000 - less, 40_000_000, 41_000_000];
        assert_eq!(tried(1), little(2_000_000, 4_000_000));
        assert_eq!(tried(3), little(8_000_000, 16_000_000));
        assert_eq!(tried(9), tried(3));
        let slow = |raised| probing(1_000_000, 0, 100_000, 10_000, raised);
        assert_eq!([slow(0), slow(3)], [1_250_000; 2]);
    }

    #[test]
    fn of_a_slow_path_some_segments_more_are_tried() {
        let tried = |rate| {
            let at = |ms: u64| probing(rate, ms * 1_000_000, 100_000, 1000, 0);
            [at(0), at(100), at(200)]
        };
        // 4 segments in 100 ms, of 200, 100, 20 and 10.
        assert_eq!(tried(2_000_000), [2_050_000, 1_900_000, 2_000_000]);
        assert_eq!(tried(1_000_000), [1_040_000, 920_000, 1_000_000]);
        assert_eq!(tried(200_000), [240_000, 120_000, 200_000]);
        assert_eq!(tried(100_000), [125_000, 50_000, 100_000]);
        assert_eq!(tried(3), [3, 3, 3]);
    }

    proptest! {
        /// In real numbers, and never more than was said by all of them together.
        #[test]
        fn a_share_is_what_it_should_be_to_the_byte(
            rate in 1u64..1 << 40, streams in 1u32..1000, mss in 1u32..65_000, headers in 0u32..120
        ) {
            let exact = u128::from(rate / u64::from(streams)) * u128::from(mss) / u128::from(mss + headers);
            let got = share(rate, streams, mss, headers);
            prop_assert_eq!(u128::from(got), exact.max(1));
        }
    }
}
