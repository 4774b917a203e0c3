//! How long trains waited for those before them: what the order of several links costs.
//!
//! Buckets of an eighth of an octave from a microsecond to four seconds, so a share of all trains is
//! known to within 12.5 % of its time, in a fixed size. What waited for less than a microsecond was not
//! held: a train that came in its turn is one increment of the first bucket.

use crate::stats::{HoldBucket, HoldSnapshot};
use crate::time::Duration;

/// 2^3 buckets an octave.
const SUB_BITS: u32 = 3;
/// 2^10 ns: about a microsecond.
const SHORTEST_BITS: u32 = 10;
/// 2^32 ns: 4.3 s, and nothing is held as long.
const LONGEST_BITS: u32 = 32;
/// One before them for what was not held, and one behind them for what no clock should say.
const BUCKETS: usize = 2 + (((LONGEST_BITS - SHORTEST_BITS) as usize) << SUB_BITS);

#[derive(Clone, Debug)]
pub struct HoldTimes {
    trains: [u64; BUCKETS],
    max_ns: u64,
}

impl Default for HoldTimes {
    fn default() -> HoldTimes {
        HoldTimes {
            trains: [0; BUCKETS],
            max_ns: 0,
        }
    }
}

fn bucket_of(ns: u64) -> usize {
    let octave = ns.checked_ilog2().unwrap_or(0);
    if octave < SHORTEST_BITS {
        return 0;
    }
    if octave >= LONGEST_BITS {
        return BUCKETS - 1;
    }
    let part = (ns >> (octave - SUB_BITS)) as usize & ((1 << SUB_BITS) - 1);
    1 + (((octave - SHORTEST_BITS) as usize) << SUB_BITS) + part
}

/// What is in the bucket is shorter than this.
fn end_ns(bucket: usize) -> u64 {
    match bucket {
        0 => 1 << SHORTEST_BITS,
        _ if bucket >= BUCKETS - 1 => u64::MAX,
        _ => {
            let (octave, part) = (
                (bucket - 1) >> SUB_BITS,
                (bucket - 1) & ((1 << SUB_BITS) - 1),
            );
            let parts = (1 << SUB_BITS) + part as u64 + 1;
            parts << (octave as u32 + SHORTEST_BITS - SUB_BITS)
        }
    }
}

impl HoldTimes {
    /// A train, or a frame without a sequence behind trains, has its turn this long after it came.
    pub fn record(&mut self, held: Duration) {
        let ns = u64::try_from(held.as_nanos()).unwrap_or(u64::MAX);
        self.trains[bucket_of(ns)] += 1;
        self.max_ns = self.max_ns.max(ns);
    }

    /// So many thousandths of all trains were held no longer: the end of their bucket, or the longest
    /// time where that is shorter. Zero: they were not held.
    fn per_mille(&self, per_mille: u64) -> Duration {
        let all: u64 = self.trains.iter().sum();
        let rank = (u128::from(all) * u128::from(per_mille)).div_ceil(1000) as u64;
        let mut up_to = 0;
        let bucket = self.trains.iter().position(|trains| {
            up_to += trains;
            up_to >= rank
        });
        match bucket {
            None | Some(0) => Duration::ZERO,
            Some(bucket) => Duration::from_nanos(end_ns(bucket).min(self.max_ns)),
        }
    }

    pub fn snapshot(&self) -> HoldSnapshot {
        let trains = self.trains.iter().sum();
        let met = self.trains.iter().enumerate().filter(|(_, n)| **n > 0);
        HoldSnapshot {
            trains,
            held_trains: trains - self.trains[0],
            p50: self.per_mille(500),
            p99: self.per_mille(990),
            p999: self.per_mille(999),
            max: Duration::from_nanos(self.max_ns),
            buckets: met
                .map(|(bucket, &trains)| HoldBucket {
                    below: Duration::from_nanos(end_ns(bucket)),
                    trains,
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(times_ns: &[u64]) -> HoldTimes {
        let mut times = HoldTimes::default();
        for &ns in times_ns {
            times.record(Duration::from_nanos(ns));
        }
        times
    }

    #[test]
    fn buckets_touch_and_none_is_wider_than_an_eighth_of_where_it_begins() {
        assert_eq!((bucket_of(0), bucket_of(1023)), (0, 0));
        for bucket in 0..BUCKETS - 1 {
            let end = end_ns(bucket);
            assert_eq!(bucket_of(end - 1), bucket, "{end}");
            assert_eq!(bucket_of(end), bucket + 1, "{end}");
            let next_end = end_ns(bucket + 1);
            assert!(
                bucket + 1 == BUCKETS - 1 || (next_end - end) * 8 <= end,
                "{end}"
            );
        }
        assert_eq!(end_ns(BUCKETS - 2), 1 << LONGEST_BITS);
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn of_nothing_there_is_nothing_to_say() {
        assert_eq!(of(&[]).snapshot(), HoldSnapshot::default());
    }

    #[test]
    fn what_is_not_held_counts_among_all_and_as_no_time() {
        let mut ns = vec![0; 98];
        ns.extend([2_000_000, 3_000_000]);
        let seen = of(&ns).snapshot();
        assert_eq!((seen.trains, seen.held_trains), (100, 2));
        assert_eq!(seen.p50, Duration::ZERO);
        assert_eq!(
            seen.p99,
            Duration::from_nanos(1 << 21),
            "the end of its bucket"
        );
        assert_eq!((seen.p999, seen.max), (seen.max, Duration::from_millis(3)));
    }

    #[test]
    fn what_lasts_for_ever_is_told_by_the_longest_time() {
        let hour = Duration::from_secs(3600);
        let mut times = HoldTimes::default();
        times.record(hour);
        times.record(Duration::MAX);
        assert_eq!(times.snapshot().p50, times.snapshot().max);
        assert_eq!(times.snapshot().held_trains, 2);
    }

    proptest! {
        /// Against the time that has that rank when all are sorted.
        #[test]
        fn a_share_of_the_trains_is_told_to_an_eighth(
            mut ns in prop::collection::vec((0u64..1 << 22, 0u32..24), 1..400)
                .prop_map(|list| list.into_iter().map(|(n, shift)| n << 10 >> shift).collect::<Vec<u64>>()),
        ) {
            let seen = of(&ns).snapshot();
            ns.sort_unstable();
            for (per_mille, told) in [(500, seen.p50), (990, seen.p99), (999, seen.p999)] {
                let exact = ns[(ns.len() * per_mille).div_ceil(1000) - 1];
                let told = told.as_nanos() as u64;
                if exact < 1 << SHORTEST_BITS {
                    prop_assert_eq!(told, 0);
                } else {
                    prop_assert!(told >= exact && told <= exact + exact / 8 + 1, "{} for {}", told, exact);
                }
            }
            prop_assert_eq!(seen.max.as_nanos() as u64, ns[ns.len() - 1]);
            prop_assert_eq!(seen.trains, ns.len() as u64);
            let held = ns.iter().filter(|&&ns| ns >= 1 << SHORTEST_BITS).count();
            prop_assert_eq!(seen.held_trains, held as u64);
            let in_buckets: u64 = seen.buckets.iter().map(|bucket| bucket.trains).sum();
            prop_assert_eq!(in_buckets, seen.trains);
        }
    }
}
