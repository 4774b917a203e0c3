//! Random early detection (Floyd and Jacobson, "Random early detection gateways for congestion avoidance", ToN 1/4, 1993):
//! hits a share of what comes that grows with the average queue, and before that is full.
//!
//! ```text
//! probability
//!   1 ┤            ┌───────      ─ not gentle: everything above max
//!     │            │   ╱         ╱ gentle: up to 1 at twice max
//!     │            │╱
//! p_b ┤       ╱────┘
//!   0 ┼──────╱─────┬───┬──→ average
//!           min   max 2 max
//! ```
//!
//! In its byte mode: thresholds and average in bytes, and a frame is hit in proportion to its length, the longest so far by
//! p_b. Frames are counted since the last hit, so that hits are spread evenly: with p = p_b / (1 − count · p_b) the gaps
//! between them are uniform from 1 to 1/p_b − 1. (By the paper's figure 2, in which the first one counts as 1; its section 7
//! begins with 0, and gaps are one longer.)
//!
//! Basic operations only, as in [`crate::random`]: a seed gives the same hits on every machine.

use packtrain_proto::time::{Duration, Instant};

use crate::random::Random;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RedConfig {
    pub min_bytes: usize,
    pub max_bytes: usize,
    pub max_probability: f64,
    /// Of the queue now, in the average.
    pub weight: f64,
    pub gentle: bool,
}

/// While a line is idle the average falls as if frames of so many bytes had come to an empty queue (the paper's s: what a
/// small packet takes to send).
const IDLE_FRAME_BYTES: u64 = 500;

#[derive(Debug)]
pub(super) struct Red {
    config: RedConfig,
    random: Random,
    average: f64,
    /// Frames since the last hit; −1 as long as the average is below the minimum.
    count: i64,
    idle_since: Instant,
}

impl Red {
    pub fn new(config: RedConfig, random: Random) -> Red {
        let RedConfig {
            min_bytes,
            max_bytes,
            max_probability,
            weight,
            ..
        } = config;
        assert!(min_bytes < max_bytes, "{min_bytes} to {max_bytes}");
        assert!((0.0..=1.0).contains(&max_probability) && (0.0..=1.0).contains(&weight));
        Red {
            config,
            random,
            average: 0.0,
            count: -1,
            idle_since: Instant::ZERO,
        }
    }

    /// The queue is gone, and so is its average.
    pub fn forget(&mut self) {
        (self.average, self.count) = (0.0, -1);
    }

    /// Nothing stands in the queue from now on.
    pub fn idle(&mut self, now: Instant) {
        self.idle_since = now;
    }

    /// Whether a frame is hit that comes to so many bytes; the longest so far has `len_max`.
    pub fn hits(
        &mut self,
        queued_bytes: usize,
        (len, len_max): (usize, usize),
        now: Instant,
        rate_bps: Option<u64>,
    ) -> bool {
        self.look(queued_bytes, now, rate_bps);
        let probability = self.probability();
        if probability <= 0.0 {
            self.count = -1;
            return false;
        }
        if probability >= 1.0 {
            self.count = 0;
            return true;
        }
        self.count += 1;
        let own = probability * (len as f64 / len_max.max(len) as f64);
        let left = 1.0 - self.count as f64 * own;
        let hit = left <= own || self.random.chance(own / left);
        if hit {
            self.count = 0;
        }
        hit
    }

    fn look(&mut self, queued_bytes: usize, now: Instant, rate_bps: Option<u64>) {
        let weight = self.config.weight;
        if queued_bytes > 0 {
            self.average += weight * (queued_bytes as f64 - self.average);
            return;
        }
        // Without a rate a frame takes no time: as many as one likes could have come.
        let Some(rate_bps) = rate_bps else {
            self.average = 0.0;
            return;
        };
        let idle = now.since(self.idle_since).as_nanos();
        let bits_nanos = u128::from(8 * IDLE_FRAME_BYTES) * 1_000_000_000;
        let frames = idle * u128::from(rate_bps) / bits_nanos;
        self.average *= power(1.0 - weight, frames.try_into().unwrap_or(u64::MAX));
        // What is left of the time counts when somebody looks again: else who looks often enough sees nothing fall.
        let counted_ns = (frames * bits_nanos).div_ceil(rate_bps.into());
        self.idle_since += Duration::from_nanos(counted_ns as u64);
    }

    /// The paper's p_b, of the longest frame.
    fn probability(&self) -> f64 {
        let RedConfig {
            max_probability, ..
        } = self.config;
        let (min, max) = (self.config.min_bytes as f64, self.config.max_bytes as f64);
        match self.average {
            average if average < min => 0.0,
            average if average < max => max_probability * (average - min) / (max - min),
            average if self.config.gentle && average < 2.0 * max => {
                max_probability + (1.0 - max_probability) * (average - max) / max
            }
            _ => 1.0,
        }
    }
}

/// By squaring: `powi` may differ from machine to machine.
fn power(base: f64, mut exponent: u64) -> f64 {
    let (mut square, mut result) = (base, 1.0);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= square;
        }
        square *= square;
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CONFIG: RedConfig = RedConfig {
        min_bytes: 10_000,
        max_bytes: 30_000,
        max_probability: 0.1,
        weight: 0.0,
        gentle: true,
    };

    /// With an average that stays.
    fn at(average: f64, config: RedConfig) -> Red {
        let mut red = Red::new(config, Random::new(3));
        red.average = average;
        red
    }

    /// Of so many frames of this length, how many it takes from one hit to the next.
    fn gaps(red: &mut Red, len: usize, frames: usize) -> Vec<usize> {
        let hits = |_: &usize| red.hits(1, (len, 1500), Instant::ZERO, None);
        let hit: Vec<usize> = (0..frames).filter(hits).collect();
        hit.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    #[test]
    fn the_probability_is_the_papers() {
        let of =
            |average: f64, gentle: bool| at(average, RedConfig { gentle, ..CONFIG }).probability();
        for gentle in [false, true] {
            assert_eq!(of(9999.0, gentle), 0.0);
            assert_eq!(of(10_000.0, gentle), 0.0);
            assert!((of(20_000.0, gentle) - 0.05).abs() < 1e-12);
            assert!((of(29_999.999, gentle) - 0.1).abs() < 1e-6);
        }
        assert_eq!(of(30_000.0, false), 1.0);
        assert!((of(30_000.0, true) - 0.1).abs() < 1e-12);
        assert!((of(45_000.0, true) - 0.55).abs() < 1e-12);
        assert_eq!(of(60_000.0, true), 1.0);
    }

    /// Uniform from 1 to n − 1: mean n/2, and none is missing or longer.
    #[test]
    fn the_gaps_between_hits_are_uniform_and_as_long_as_the_probability_says() {
        for (average, len, most) in [
            (14_000.0, 1500, 49),
            (14_000.0, 750, 99),
            (20_000.0, 750, 39),
        ] {
            let gaps = gaps(&mut at(average, CONFIG), len, 200_000);
            let n = gaps.len() as f64;
            let most_f = f64::from(most);
            let mean = gaps.iter().sum::<usize>() as f64 / n;
            let expected = (most_f + 1.0) / 2.0;
            let error = ((most_f * most_f - 1.0) / 12.0).sqrt() / n.sqrt();
            assert!(
                (mean - expected).abs() < 4.0 * error,
                "{mean} and not {expected} ± {error}"
            );
            assert_eq!(gaps.iter().max(), Some(&(most as usize)));
            // Each as often as any other: chi-square, of so many less one degrees of freedom.
            let each = n / most_f;
            let chi: f64 = (1..=most as usize)
                .map(|gap| gaps.iter().filter(|&&found| found == gap).count() as f64)
                .map(|found| (found - each) * (found - each) / each)
                .sum();
            let freedom = most_f - 1.0;
            assert!(
                (chi - freedom).abs() < 4.0 * (2.0 * freedom).sqrt(),
                "{chi}"
            );
        }
    }

    #[test]
    fn below_the_minimum_nothing_is_hit_and_above_the_maximum_everything() {
        assert_eq!(gaps(&mut at(9999.0, CONFIG), 1500, 1000), [0; 0]);
        assert_eq!(gaps(&mut at(60_000.0, CONFIG), 40, 1000), [1; 999]);
    }

    #[test]
    fn the_average_follows_the_queue_by_its_weight() {
        let config = RedConfig {
            weight: 0.25,
            ..CONFIG
        };
        let mut red = at(0.0, config);
        for expected in [250.0, 437.5, 578.125] {
            red.look(1000, Instant::ZERO, Some(1_000_000));
            assert_eq!(red.average, expected);
        }
    }

    #[test]
    fn while_the_line_is_idle_the_average_falls_as_if_small_frames_had_come() {
        let config = RedConfig {
            weight: 0.5,
            ..CONFIG
        };
        let mut red = at(8000.0, config);
        red.idle(Instant::from_nanos(1_000_000));
        // 4 Mbit/s: 500 bytes in a millisecond. After three and a half of them three might have come.
        let now = Instant::from_nanos(1_000_000) + Duration::from_micros(3500);
        red.look(0, now, Some(4_000_000));
        assert_eq!(red.average, 1000.0);
        // The same instant is not counted twice.
        red.look(0, now, Some(4_000_000));
        assert_eq!(red.average, 1000.0);
        red.look(0, now + Duration::from_millis(1), Some(4_000_000));
        assert_eq!(red.average, 500.0);
        red.look(0, now, None);
        assert_eq!(red.average, 0.0);
    }

    /// Else a line on which all is hit, as long as the average is above the maximum, would stay so for ever.
    #[test]
    fn the_average_of_an_idle_line_falls_however_often_something_comes() {
        let config = RedConfig {
            weight: 0.5,
            gentle: false,
            ..CONFIG
        };
        let mut red = at(80_000.0, config);
        red.idle(Instant::ZERO);
        // A frame of 500 bytes takes a millisecond, and something comes after three quarters of it.
        let comes = |n: u32| Instant::ZERO + Duration::from_micros(750) * n;
        let hit = (1..=4).map(|n| red.hits(0, (1500, 1500), comes(n), Some(4_000_000)));
        // After 2.25 ms it has been halved twice.
        assert_eq!(hit.collect::<Vec<_>>(), [true, true, false, false]);
        assert_eq!(red.average, 10_000.0);
    }

    /// The paper's figure 2, in its byte mode, with all idle time looked at anew and each small frame of it for itself.
    struct Slow {
        config: RedConfig,
        random: Random,
        rate_bps: u64,
        average: f64,
        count: i64,
        /// q_time, and how many small frames have been reckoned with since.
        idle_since: u64,
        small_frames: u64,
    }

    impl Slow {
        fn hits(&mut self, queued: usize, len: usize, longest: usize, now: u64) -> bool {
            let weight = self.config.weight;
            if queued > 0 {
                self.average = (1.0 - weight) * self.average + weight * queued as f64;
            } else {
                let small = 500 * 8 * 1_000_000_000 / self.rate_bps;
                while self.idle_since + (self.small_frames + 1) * small <= now {
                    self.average *= 1.0 - weight;
                    self.small_frames += 1;
                }
            }
            let (min, max) = (self.config.min_bytes as f64, self.config.max_bytes as f64);
            if self.average < min {
                self.count = -1;
                return false;
            }
            let most = self.config.max_probability;
            let all = if self.config.gentle { 2.0 * max } else { max };
            if self.average >= all {
                self.count = 0;
                return true;
            }
            self.count += 1;
            let of_longest = match self.average < max {
                true => most * (self.average - min) / (max - min),
                false => most + (1.0 - most) * (self.average - max) / max,
            };
            let own = of_longest * len as f64 / longest as f64;
            let spread = own / (1.0 - self.count as f64 * own);
            let hit = !(0.0..1.0).contains(&spread) || self.random.chance(spread);
            if hit {
                self.count = 0;
            }
            hit
        }

        fn idle(&mut self, now: u64) {
            (self.idle_since, self.small_frames) = (now, 0);
        }
    }

    proptest! {
        #[test]
        fn it_hits_what_the_slow_one_does(
            gentle in any::<bool>(),
            weight in 0.01f64..0.9,
            max_probability in 0.02f64..0.5,
            steps in prop::collection::vec((0usize..80_000, 40usize..1500, 0u64..4_000_000), 1..300),
        ) {
            let config = RedConfig { gentle, weight, max_probability, ..CONFIG };
            let mut red = Red::new(config, Random::new(7));
            let mut slow = Slow {
                config,
                random: Random::new(7),
                // A small frame takes a millisecond.
                rate_bps: 4_000_000,
                average: 0.0,
                count: -1,
                idle_since: 0,
                small_frames: 0,
            };
            let mut now = 0;
            for (queued, len, gap) in steps {
                now += gap;
                // A third of all find it empty; of those some are the first.
                let queued = queued.saturating_sub(26_000);
                if queued == 0 && gap % 2 == 0 {
                    red.idle(Instant::from_nanos(now - gap / 2));
                    slow.idle(now - gap / 2);
                }
                let hit = red.hits(queued, (len, 1500), Instant::from_nanos(now), Some(4_000_000));
                prop_assert_eq!(hit, slow.hits(queued, len, 1500, now));
                prop_assert!((red.average - slow.average).abs() < 1e-6);
                prop_assert_eq!(red.count, slow.count);
            }
        }
    }

    #[test]
    fn a_power_is_a_product() {
        assert_eq!(power(0.5, 0), 1.0);
        assert_eq!(power(0.5, 10), 1.0 / 1024.0);
        assert!((power(0.998, 1000) - 0.998f64.powi(1000)).abs() < 1e-12);
        assert_eq!(power(0.998, u64::MAX), 0.0);
    }
}
