//! Frames that are overtaken: some are held back for a while, and what comes after goes by.

use packtrain_proto::time::{Duration, Instant};

use crate::random::Random;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReorderingConfig {
    pub probability: f64,
    /// Longest time that a frame is held back.
    pub hold_max: Duration,
}

#[derive(Debug)]
pub struct Reordering {
    config: ReorderingConfig,
    random: Random,
    newest_held_arrival: Instant,
    /// Frames that arrive before one that left before them. Holding alone reorders nothing.
    pub frames_overtaking: u64,
}

impl Reordering {
    pub fn new(config: ReorderingConfig, random: Random) -> Reordering {
        Reordering {
            config,
            random,
            newest_held_arrival: Instant::ZERO,
            frames_overtaking: 0,
        }
    }

    pub fn arrival(&mut self, arrives: Instant) -> Instant {
        let held = if self.random.chance(self.config.probability) {
            let nanos = self.config.hold_max.as_nanos() as u64;
            arrives + Duration::from_nanos(self.random.below(nanos.max(1)) + 1)
        } else {
            arrives
        };
        self.frames_overtaking += u64::from(held < self.newest_held_arrival);
        self.newest_held_arrival = self.newest_held_arrival.max(held);
        held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_what_overtakes_is_counted() {
        let config = ReorderingConfig {
            probability: 0.1,
            hold_max: Duration::from_millis(1),
        };
        let mut reordering = Reordering::new(config, Random::new(5));
        let arrivals: Vec<Instant> = (0..1000u64)
            .map(|i| reordering.arrival(Instant::from_nanos(i * 100_000)))
            .collect();
        let overtaking = (1..arrivals.len())
            .filter(|&i| arrivals[..i].iter().any(|&before| before > arrivals[i]))
            .count() as u64;
        assert!(overtaking > 50);
        assert_eq!(reordering.frames_overtaking, overtaking);
    }

    #[test]
    fn frames_far_apart_are_held_and_not_reordered() {
        let config = ReorderingConfig {
            probability: 1.0,
            hold_max: Duration::from_micros(1),
        };
        let mut reordering = Reordering::new(config, Random::new(5));
        for i in 0..1000u64 {
            reordering.arrival(Instant::from_nanos(i * 100_000));
        }
        assert_eq!(reordering.frames_overtaking, 0);
    }
}
