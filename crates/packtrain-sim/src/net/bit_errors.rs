//! Bits that flip each by itself, as noise has it: the longer a frame, the sooner it dies. The FCS
//! finds them, and the receiver's NIC drops the frame.

use super::fec::FecConfig;
use crate::random::Random;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BitErrorConfig {
    /// Of a bit to flip.
    pub rate: f64,
}

/// Lengths that are remembered; a power of two. Frames have few, and a wrong guess costs 30
/// multiplications.
const REMEMBERED: usize = 64;

#[derive(Debug)]
pub struct BitErrors {
    config: BitErrorConfig,
    /// And of a block of it to be beyond mending.
    code: Option<(FecConfig, f64)>,
    random: Random,
    /// Bits of a frame and the probability of its death, by the length in bytes modulo their number.
    deaths: [(u64, f64); REMEMBERED],
    pub frames_hit: u64,
}

impl BitErrors {
    pub fn new(config: BitErrorConfig, random: Random) -> BitErrors {
        BitErrors::coded(config, None, random)
    }

    /// Of a link whose code mends some.
    pub fn coded(config: BitErrorConfig, code: Option<FecConfig>, random: Random) -> BitErrors {
        assert!((0.0..=1.0).contains(&config.rate));
        BitErrors {
            config,
            code: code.map(|code| (code, code.block_failure(death(config.rate, 8)))),
            random,
            deaths: [(0, 0.0); REMEMBERED],
            frames_hit: 0,
        }
    }

    /// Whether at least one of the bits of the frame that passes now has flipped, and was not mended.
    pub fn hit(&mut self, bits: u64) -> bool {
        let place = (bits / 8) as usize % REMEMBERED;
        if self.deaths[place].0 != bits {
            let dies = match &self.code {
                None => death(self.config.rate, bits),
                Some((code, of_block)) => death(*of_block, code.blocks(bits)),
            };
            self.deaths[place] = (bits, dies);
        }
        let hit = self.random.chance(self.deaths[place].1);
        self.frames_hit += u64::from(hit);
        hit
    }
}

/// 1 − (1 − p)^n by doubling: with d(n) for it, d(m + n) = d(m) + d(n) − d(m) d(n). No `pow`, which
/// differs from machine to machine, and no 1 − p, in which a p of 10⁻¹² would lose its digits.
fn death(rate: f64, bits: u64) -> f64 {
    let both = |a: f64, b: f64| a + b - a * b;
    let (mut of_power, mut of_all, mut left) = (rate, 0.0, bits);
    while left > 0 {
        if left & 1 == 1 {
            of_all = both(of_all, of_power);
        }
        of_power = both(of_power, of_power);
        left >>= 1;
    }
    of_all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probability_of_death_is_the_formulas() {
        for rate in [0.0f64, 1e-15, 1e-12, 1e-9, 1e-6, 1e-4, 0.01, 0.5, 1.0] {
            for bits in [1u64, 2, 3, 512, 12_144, 72_144, 600_001] {
                let exact = -f64::exp_m1(bits as f64 * f64::ln_1p(-rate));
                let got = death(rate, bits);
                assert!(
                    (got - exact).abs() <= 1e-12 * exact,
                    "{rate} {bits}: {got} and not {exact}"
                );
            }
        }
    }

    #[test]
    fn lengths_that_share_a_place_do_not_share_their_fate() {
        let bits = [8 * 64, 8 * (64 + REMEMBERED as u64 * 10)];
        let mut errors = BitErrors::new(BitErrorConfig { rate: 1e-4 }, Random::new(3));
        let mut hit = [0.0; 2];
        for i in 0..20_000 {
            hit[i % 2] += f64::from(errors.hit(bits[i % 2]));
        }
        for (hit, bits) in hit.into_iter().zip(bits) {
            let share = hit / 10_000.0;
            assert!((share - death(1e-4, bits)).abs() < 0.02, "{bits}: {share}");
        }
    }
}
