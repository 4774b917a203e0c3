//! Delay that varies: a queue somewhere on the way, a radio that waits for its slot.
//!
//! Basic operations and square roots only, as in [`crate::random`]: a seed gives the same arrivals on
//! every machine.

use packtrain_proto::time::{Duration, Instant};

use super::delay::Delay;
use crate::random::Random;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JitterConfig {
    pub distribution: JitterDistribution,
    /// What would overtake waits for what stands before it. Otherwise it overtakes.
    pub keeps_order: bool,
}

/// What is added to the delay of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JitterDistribution {
    /// The square of a number from 0 to 1, of `max`: most frames are hardly delayed and few are much,
    /// as in a queue.
    Queue { max: Duration },
    /// Everything from 0 to `max` as likely.
    Uniform { max: Duration },
    /// Mean 0. What is beyond four deviations, or would make the whole delay negative, is put at that
    /// bound: a delay of fewer than about three deviations has a greater mean than it says.
    Normal { deviation: Duration },
    /// Lomax' distribution (Pareto's, moved to begin at 0) of shape 2: without a bound its deviation
    /// is infinite. What is beyond 20 means is put there, and the scale is chosen so that after it the
    /// mean is what it says; the deviation is then 1.88 means.
    Pareto { mean: Duration },
}

const NORMAL_DEVIATIONS_MAX: f64 = 4.0;
const PARETO_MEANS_MAX: f64 = 20.0;
/// Of the distribution that has mean 1 when cut off at 20. With scale s and S(x) = (s / (s + x))²
/// beyond x, the mean of what is cut off at c is ∫₀ᶜ S = s c / (s + c): 1 for s = c / (c − 1).
const PARETO_SCALE: f64 = PARETO_MEANS_MAX / (PARETO_MEANS_MAX - 1.0);

impl JitterDistribution {
    /// The most that it adds.
    pub fn max(&self) -> Duration {
        match *self {
            JitterDistribution::Queue { max } | JitterDistribution::Uniform { max } => max,
            JitterDistribution::Normal { deviation } => deviation * NORMAL_DEVIATIONS_MAX as u32,
            JitterDistribution::Pareto { mean } => mean * PARETO_MEANS_MAX as u32,
        }
    }

    /// Nanoseconds, not below 0 but for the normal distribution.
    fn draw(&self, random: &mut Random) -> f64 {
        let nanos = |duration: Duration| duration.as_nanos() as f64;
        match *self {
            JitterDistribution::Queue { max } => {
                let share = random.unit();
                nanos(max) * share * share
            }
            JitterDistribution::Uniform { max } => random.between(0, max.as_nanos() as u64) as f64,
            JitterDistribution::Normal { deviation } => {
                let deviations = random.normal();
                nanos(deviation) * deviations.clamp(-NORMAL_DEVIATIONS_MAX, NORMAL_DEVIATIONS_MAX)
            }
            JitterDistribution::Pareto { mean } => {
                // S(x) = u turned round; 0 < u ≤ 1.
                let means = PARETO_SCALE * (1.0 / (1.0 - random.unit()).sqrt() - 1.0);
                nanos(mean) * means.min(PARETO_MEANS_MAX)
            }
        }
    }
}

#[derive(Debug)]
pub struct Jitter {
    config: JitterConfig,
    random: Random,
    /// Frames that do not arrive when the delay alone would have them.
    pub frames_moved: u64,
}

impl Jitter {
    pub fn new(config: JitterConfig, random: Random) -> Jitter {
        Jitter {
            config,
            random,
            frames_moved: 0,
        }
    }

    /// `in_order`: whatever the configuration says.
    pub fn arrival(&mut self, leaves: Instant, in_order: bool, delay: &mut Delay) -> Instant {
        let on_time = delay.on_time(leaves);
        let extra = self.config.distribution.draw(&mut self.random);
        let moved = match extra < 0.0 {
            true => (on_time - Duration::from_nanos(-extra as u64)).max(leaves),
            false => on_time + Duration::from_nanos(extra as u64),
        };
        let arrives = match self.config.keeps_order || in_order {
            true => delay.in_order(moved),
            false => delay.in_any_order(moved),
        };
        self.frames_moved += u64::from(arrives != on_time);
        arrives
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn all() -> [JitterDistribution; 4] {
        [
            JitterDistribution::Queue { max: 5 * MS },
            JitterDistribution::Uniform { max: 5 * MS },
            JitterDistribution::Normal { deviation: 5 * MS },
            JitterDistribution::Pareto { mean: MS },
        ]
    }

    /// Of frames 100 µs apart: when each left and arrived.
    fn passages(distribution: JitterDistribution, keeps_order: bool) -> Vec<(Instant, Instant)> {
        let config = JitterConfig {
            distribution,
            keeps_order,
        };
        let mut jitter = Jitter::new(config, Random::new(4));
        let mut delay = Delay::new(MS);
        let passages = (0..1000u64)
            .map(|i| {
                let leaves = Instant::from_nanos(i * 100_000);
                (leaves, jitter.arrival(leaves, false, &mut delay))
            })
            .collect();
        assert!(jitter.frames_moved > 900);
        passages
    }

    #[test]
    fn jitter_varies_stays_within_its_bounds_and_reorders_when_it_may() {
        for distribution in all() {
            for keeps_order in [true, false] {
                let passages = passages(distribution, keeps_order);
                let sorted = passages.is_sorted_by_key(|passage| passage.1);
                assert_eq!(sorted, keeps_order, "{distribution:?}");
                for (leaves, arrives) in passages {
                    assert!(arrives >= leaves, "{distribution:?}");
                    assert!(arrives.since(leaves) <= MS + distribution.max());
                }
            }
        }
    }
}
