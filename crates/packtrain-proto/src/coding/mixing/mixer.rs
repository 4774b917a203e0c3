//! Several opinions on a bit become one chance: a weighted sum on the logistic scale, of which the weights follow who
//! was right.

use super::logistic::{CHANCE_MAX, STRETCHED_MAX, squash};

/// Weights are in 65536ths. There are several sets of them, for different situations.
#[derive(Debug)]
pub struct Mixer<const INPUTS: usize, const SETS: usize> {
    first: [i32; INPUTS],
    /// How fast weights follow.
    rate: i32,
    weights: [[i32; INPUTS]; SETS],
}

impl<const INPUTS: usize, const SETS: usize> Mixer<INPUTS, SETS> {
    pub fn new(first: [i32; INPUTS], rate: i32) -> Self {
        Mixer {
            first,
            rate,
            weights: [first; SETS],
        }
    }

    pub fn forget(&mut self) {
        self.weights = [self.first; SETS];
    }

    /// The chance of a 1.
    #[inline]
    pub fn chance(&self, set: usize, inputs: &[i32; INPUTS]) -> i32 {
        let products = self.weights[set].iter().zip(inputs);
        let sum: i64 = products
            .map(|(&weight, &input)| i64::from(weight) * i64::from(input))
            .sum();
        let sum = (sum >> 16).clamp(-i64::from(STRETCHED_MAX), i64::from(STRETCHED_MAX));
        squash(sum as i32).clamp(1, CHANCE_MAX)
    }

    #[inline]
    pub fn learn(&mut self, set: usize, inputs: &[i32; INPUTS], chance: i32, bit: bool) {
        const WEIGHT_MAX: i32 = 1 << 20;
        let error = ((i32::from(bit) << 12) - chance) * self.rate;
        for (weight, &input) in self.weights[set].iter_mut().zip(inputs) {
            *weight = (*weight + ((input * error + 0x8000) >> 16)).clamp(-WEIGHT_MAX, WEIGHT_MAX);
        }
    }
}
