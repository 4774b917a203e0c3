//! Random numbers of the engine: for jitter and waits, where nobody gains by guessing them.

/// xorshift64* (S. Vigna, *An experimental exploration of Marsaglia's xorshift generators, scrambled*, 2016).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn draw(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0 = self.0.max(1);
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// One of 0 to `most`, all of them as likely, but for a share of `most` in 2⁶⁴.
    pub fn up_to(&mut self, most: u64) -> u64 {
        match most.checked_add(1) {
            Some(count) => self.draw() % count,
            None => self.draw(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_comes_as_often_as_the_others() {
        for seed in [0, 1, u64::MAX] {
            let mut random = Random::new(seed);
            let mut seen = [0u32; 11];
            for _ in 0..11_000 {
                seen[random.up_to(10) as usize] += 1;
            }
            assert!(
                seen.iter().all(|n| (850..1150).contains(n)),
                "{seed}: {seen:?}"
            );
            assert_eq!(random.up_to(0), 0);
            random.up_to(u64::MAX);
        }
    }
}
