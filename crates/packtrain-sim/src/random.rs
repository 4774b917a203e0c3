//! Chance with a seed: the same numbers on every machine.
//!
//! xoshiro256++ by Blackman and Vigna, seeded by SplitMix64. Integers, the four basic operations of
//! IEEE 754 and its square root only, which have one result everywhere: a seed replays a run bit for
//! bit wherever it is run.

use packtrain_proto::time::Duration;

#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

/// SplitMix64's finaliser: a good hash of one number.
pub fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Random {
    pub fn new(seed: u64) -> Random {
        let mut at = seed;
        let state = [0; 4].map(|_: u64| {
            at = mix(at);
            at
        });
        Random { state }
    }

    /// A generator of its own, so that who draws here does not change what is drawn there.
    pub fn fork(&mut self) -> Random {
        Random::new(self.next())
    }

    #[allow(clippy::should_implement_trait)] // it never ends, and is no iterator
    pub fn next(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// 0 … n − 1. The bias of the multiplication is below 2⁻³² for every n used here.
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "nothing is below 0");
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        assert!(low <= high);
        low + self.below(high - low + 1)
    }

    /// 0.0 ≤ x < 1.0.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    pub fn duration(&mut self, low: Duration, high: Duration) -> Duration {
        Duration::from_nanos(self.between(low.as_nanos() as u64, high.as_nanos() as u64))
    }

    /// Any order of magnitude as likely as any other: rates, delays, sizes.
    pub fn magnitude(&mut self, low: u64, high: u64) -> u64 {
        assert!(0 < low && low <= high);
        let (low_bits, high_bits) = (low.ilog2(), high.ilog2());
        let bits = self.between(u64::from(low_bits), u64::from(high_bits)) as u32;
        let value = (1u64 << bits) + self.below(1u64 << bits);
        value.clamp(low, high)
    }

    /// The gap to the next arrival of a Poisson process. Cut off, and not rounded, as noted seeds have it.
    pub fn exponential(&mut self, mean: Duration) -> Duration {
        Duration::from_nanos(self.exponential_nanos(mean) as u64)
    }

    /// The same to whoever rounds it: of gaps of a few nanoseconds half of one is much.
    pub fn exponential_nanos(&mut self, mean: Duration) -> f64 {
        -ln(1.0 - self.unit()) * mean.as_nanos() as f64
    }

    /// Pareto's distribution: the share above x is (least / x)^alpha.
    pub fn pareto(&mut self, alpha: f64, least: f64) -> f64 {
        least * pow(1.0 - self.unit(), -1.0 / alpha)
    }

    /// Lomax's, which is Pareto's from zero on: the share above x is (1 + x / scale)^−alpha.
    pub fn lomax(&mut self, alpha: f64, scale: f64) -> f64 {
        scale * (pow(1.0 - self.unit(), -1.0 / alpha) - 1.0)
    }

    /// A normal deviate of mean 0 and deviation 1: Marsaglia's polar method, of which one of the two
    /// is thrown away, so that nothing is kept between calls.
    pub fn normal(&mut self) -> f64 {
        loop {
            let (u, v) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let square = u * u + v * v;
            if 0.0 < square && square < 1.0 {
                return u * (-2.0 * ln(square) / square).sqrt();
            }
        }
    }
}

/// Natural logarithm for 0 < x, from basic operations alone: the platform's `ln` may differ in its
/// last bit from one machine to the next, and one bit is another run.
pub fn ln(x: f64) -> f64 {
    debug_assert!(x > 0.0);
    let bits = x.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i64 - 1023;
    let mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    // ln m = 2 artanh((m − 1) / (m + 1)), and |argument| ≤ 1/3: 12 terms leave less than 1e−12.
    let y = (mantissa - 1.0) / (mantissa + 1.0);
    let (square, mut power, mut sum) = (y * y, y, 0.0);
    for k in 0..12 {
        sum += power / f64::from(2 * k + 1);
        power *= square;
    }
    2.0 * sum + exponent as f64 * core::f64::consts::LN_2
}

/// e to the x from basic operations alone, for the same reason. Beyond what a double holds, infinity or 0;
/// so small that it would have fewer digits, 0 as well.
pub fn exp(x: f64) -> f64 {
    if x > 709.0 {
        return f64::INFINITY;
    }
    if x < -708.0 {
        return 0.0;
    }
    // ln 2 in two parts, of which the first times a small whole number is exact.
    const LN_2_HIGH: f64 = 355.0 / 512.0;
    const LN_2_LOW: f64 = -2.121_944_400_546_905_8e-4;
    let power = (x / core::f64::consts::LN_2 + 0.5).floor();
    let rest = x - power * LN_2_HIGH - power * LN_2_LOW;
    // |rest| ≤ ln 2 / 2: 14 terms leave less than 1e−17.
    let sum = (1..=14)
        .rev()
        .fold(1.0, |sum, k| 1.0 + sum * rest / f64::from(k));
    sum * f64::from_bits(((power as i64 + 1023) as u64) << 52)
}

/// x to the y, for 0 < x. The logarithm's error of 1e−13 counts y times.
pub fn pow(x: f64, y: f64) -> f64 {
    exp(y * ln(x))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_for_ever() {
        let mut random = Random::new(1);
        let drawn: Vec<u64> = (0..4).map(|_| random.next()).collect();
        // Written down once: a change here makes every noted seed worthless.
        assert_eq!(
            drawn,
            [
                8519585912109933218,
                10835778687385656862,
                14656285455836079577,
                2080314971877677953
            ]
        );
    }

    #[test]
    fn the_generator_gives_the_numbers_of_its_authors() {
        let mut random = Random {
            state: [1, 2, 3, 4],
        };
        let drawn: Vec<u64> = (0..4).map(|_| random.next()).collect();
        assert_eq!(
            drawn,
            [41943041, 58720359, 3588806011781223, 3591011842654386]
        );
    }

    #[test]
    fn forks_do_not_follow_each_other() {
        let mut random = Random::new(7);
        let (mut a, mut b) = (random.fork(), random.fork());
        assert!((0..8).all(|_| a.next() != b.next()));
    }

    #[test]
    fn numbers_stay_within_what_was_asked_and_reach_both_ends() {
        let mut random = Random::new(3);
        let drawn: Vec<u64> = (0..1000).map(|_| random.between(5, 9)).collect();
        assert!(drawn.iter().all(|n| (5..=9).contains(n)));
        assert!((5..=9).all(|n| drawn.contains(&n)));
        assert!((0..1000).all(|_| (1000..=1_000_000).contains(&random.magnitude(1000, 1_000_000))));
    }

    #[test]
    fn the_logarithm_is_one() {
        for x in [1e-9, 0.1, 0.5, 0.999_999, 1.0, 1.5, 2.0, 12345.678] {
            assert!((ln(x) - f64::ln(x)).abs() < 1e-10, "ln {x}");
        }
    }

    #[test]
    fn the_exponential_is_one() {
        for n in -7080..=7090 {
            let x = f64::from(n) / 10.0 + 0.001 * f64::from(n % 7);
            if (-708.0..=709.0).contains(&x) {
                assert!((exp(x) / f64::exp(x) - 1.0).abs() < 1e-14, "e to the {x}");
            }
        }
        assert_eq!(
            (exp(0.0), exp(1000.0), exp(-1000.0)),
            (1.0, f64::INFINITY, 0.0)
        );
    }

    #[test]
    fn powers_are_powers() {
        for x in [
            1e-16, 1e-9, 0.1, 0.5, 0.999_999, 1.0, 1.5, 1.999_999, 12345.678,
        ] {
            for y in [-5.0, -1.2, -1.0 / 1.2, -0.2, 0.0, 0.5, 1.0, 3.0, 5.0] {
                let error = pow(x, y) / f64::powf(x, y) - 1.0;
                assert!(error.abs() < 1e-12, "{x} to the {y}: {error}");
            }
        }
    }

    /// Written down once: neither a compiler nor a machine may change a bit of it.
    #[test]
    fn powers_have_the_same_bits_for_ever() {
        let bits = [(0.3, -1.0 / 1.2), (2.5, 0.7), (1e-9, -0.9)].map(|(x, y)| pow(x, y).to_bits());
        assert_eq!(
            bits,
            [
                4613323743597320118,
                4611231805555595243,
                4728220914908903691
            ]
        );
    }

    #[test]
    fn normal_deviates_have_mean_0_deviation_1_and_the_tails_of_their_curve() {
        let mut random = Random::new(11);
        let drawn: Vec<f64> = (0..100_000).map(|_| random.normal()).collect();
        let n = drawn.len() as f64;
        let mean = drawn.iter().sum::<f64>() / n;
        let variance = drawn.iter().map(|x| x * x).sum::<f64>() / n;
        assert!(mean.abs() < 0.015, "{mean}");
        assert!((variance - 1.0).abs() < 0.02, "{variance}");
        let beyond = |z: f64| drawn.iter().filter(|x| x.abs() > z).count() as f64 / n;
        assert!((beyond(1.0) - 0.3173).abs() < 0.006, "{}", beyond(1.0));
        assert!((beyond(2.0) - 0.0455).abs() < 0.003, "{}", beyond(2.0));
        assert!((beyond(3.0) - 0.0027).abs() < 0.0007, "{}", beyond(3.0));
    }

    #[test]
    fn exponential_gaps_have_their_mean() {
        let mut random = Random::new(9);
        let mean = Duration::from_micros(100);
        let total: u128 = (0..20_000)
            .map(|_| random.exponential(mean).as_nanos())
            .sum();
        let ratio = total as f64 / 20_000.0 / mean.as_nanos() as f64;
        assert!((0.97..1.03).contains(&ratio), "{ratio}");
    }
}
