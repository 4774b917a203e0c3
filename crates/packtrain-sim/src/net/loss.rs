//! Frames that vanish: one by one, in bursts, or by number.
//!
//! Bursts follow Gilbert and Elliott: a link is good or bad, changes from one to the other with a
//! probability a frame, and loses frames of each with that state's probability.

use crate::random::Random;

#[derive(Clone, Debug, PartialEq)]
pub enum LossConfig {
    /// Each frame with the same probability, whatever became of the one before.
    Bernoulli { probability: f64 },
    GilbertElliott {
        good_to_bad: f64,
        bad_to_good: f64,
        loss_in_good: f64,
        loss_in_bad: f64,
    },
    /// Each `every`-th frame that passes; the first to be lost is number `every`.
    Periodic { every: u64 },
    /// These, by their number among those that pass: from 1, ascending. A test that wants one certain
    /// frame lost says so.
    Given { frames: Vec<u64> },
}

#[derive(Debug)]
pub struct Loss {
    config: LossConfig,
    random: Random,
    /// Frames that have passed, lost ones included.
    passed: u64,
    /// Of those given: how many are behind us.
    given: usize,
    bad: bool,
    run: u64,
    pub frames_lost: u64,
    /// The longest row of frames lost one after the other.
    pub burst_frames_max: u64,
}

impl Loss {
    pub fn new(config: LossConfig, random: Random) -> Loss {
        match &config {
            LossConfig::Periodic { every } => assert!(*every > 0, "every 0th frame is none"),
            LossConfig::Given { frames } => assert!(
                frames.is_sorted_by(|a, b| a < b) && frames.first() != Some(&0),
                "from 1, ascending"
            ),
            LossConfig::Bernoulli { .. } | LossConfig::GilbertElliott { .. } => {}
        }
        Loss {
            config,
            random,
            passed: 0,
            given: 0,
            bad: false,
            run: 0,
            frames_lost: 0,
            burst_frames_max: 0,
        }
    }

    /// Whether the frame that passes now is lost.
    pub fn takes(&mut self) -> bool {
        self.passed += 1;
        let lost = match &self.config {
            LossConfig::Bernoulli { probability } => self.random.chance(*probability),
            LossConfig::GilbertElliott {
                good_to_bad,
                bad_to_good,
                loss_in_good,
                loss_in_bad,
            } => {
                let change = if self.bad { bad_to_good } else { good_to_bad };
                self.bad ^= self.random.chance(*change);
                let probability = if self.bad { loss_in_bad } else { loss_in_good };
                self.random.chance(*probability)
            }
            LossConfig::Periodic { every } => self.passed.is_multiple_of(*every),
            LossConfig::Given { frames } => {
                let lost = frames.get(self.given) == Some(&self.passed);
                self.given += usize::from(lost);
                lost
            }
        };
        self.run = if lost { self.run + 1 } else { 0 };
        self.burst_frames_max = self.burst_frames_max.max(self.run);
        self.frames_lost += u64::from(lost);
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost_of_10_000(config: LossConfig) -> Loss {
        let mut loss = Loss::new(config, Random::new(1));
        (0..10_000).for_each(|_| {
            loss.takes();
        });
        loss
    }

    #[test]
    fn bernoulli_loses_its_share() {
        let loss = lost_of_10_000(LossConfig::Bernoulli { probability: 0.05 });
        assert!(
            (400..600).contains(&loss.frames_lost),
            "{}",
            loss.frames_lost
        );
        assert!(loss.burst_frames_max < 8);
    }

    #[test]
    fn gilbert_and_elliott_lose_in_rows() {
        let loss = lost_of_10_000(LossConfig::GilbertElliott {
            good_to_bad: 0.005,
            bad_to_good: 0.1,
            loss_in_good: 0.0,
            loss_in_bad: 1.0,
        });
        // A twentieth of the time is bad, and a bad time has ten frames in the mean.
        assert!(
            (250..800).contains(&loss.frames_lost),
            "{}",
            loss.frames_lost
        );
        assert!(loss.burst_frames_max >= 10, "{}", loss.burst_frames_max);
    }

    fn numbers_lost(config: LossConfig) -> Vec<u64> {
        let mut loss = Loss::new(config, Random::new(1));
        (1..=20).filter(|_| loss.takes()).collect()
    }

    #[test]
    fn every_seventh_frame_and_those_given_are_lost_and_no_others() {
        assert_eq!(numbers_lost(LossConfig::Periodic { every: 7 }), [7, 14]);
        let frames = vec![1, 2, 5, 19, 100];
        assert_eq!(numbers_lost(LossConfig::Given { frames }), [1, 2, 5, 19]);
    }

    #[test]
    fn all_and_nothing_are_exact() {
        assert_eq!(
            lost_of_10_000(LossConfig::Bernoulli { probability: 0.0 }).frames_lost,
            0
        );
        assert_eq!(
            lost_of_10_000(LossConfig::Bernoulli { probability: 1.0 }).frames_lost,
            10_000
        );
    }
}
