//! Forward error correction at a link: a Reed-Solomon code over bytes, which mends flipped bits and takes a part of the rate.
//!
//! A frame is cut into blocks of so many bytes of data, each sent with its parity; a block is mended if no more bytes of
//! it are wrong than half of its parity, and a frame dies with its first block that is not. Nothing is interleaved: bits flip
//! each by itself here, and not in bursts.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FecConfig {
    /// Bytes of a block, with its parity; 255 at most.
    pub block_bytes: u32,
    pub data_bytes: u32,
}

impl FecConfig {
    /// Wrong bytes of a block that are mended.
    pub fn mends_bytes(&self) -> u32 {
        (self.block_bytes - self.data_bytes) / 2
    }

    pub fn blocks(&self, bits: u64) -> u64 {
        bits.div_ceil(8).div_ceil(self.data_bytes.into())
    }

    /// What becomes of so many bits: each block is sent with all its parity, the last one as short as it is.
    pub fn coded_bits(&self, bits: u64) -> u64 {
        let parity = u64::from(self.block_bytes - self.data_bytes);
        bits + 8 * parity * self.blocks(bits)
    }

    /// Of a whole block not to be mended, if a bit flips with this probability: more of its bytes are wrong than that.
    pub fn block_failure(&self, of_byte: f64) -> f64 {
        let (n, most) = (self.block_bytes, self.mends_bytes());
        // Binomial terms, each from the one before: P(k + 1) = P(k) (n − k) / (k + 1) · q / (1 − q).
        if of_byte >= 1.0 {
            return 1.0;
        }
        let mut term = (0..n).fold(1.0, |product, _| product * (1.0 - of_byte));
        let mut failure = 0.0;
        for k in 0..n {
            term *= f64::from(n - k) / f64::from(k + 1) * of_byte / (1.0 - of_byte);
            if k + 1 > most {
                failure += term;
            }
        }
        failure
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::bit_errors::{BitErrorConfig, BitErrors};
    use crate::random::Random;

    const COMMON: FecConfig = FecConfig {
        block_bytes: 255,
        data_bytes: 239,
    };

    #[test]
    fn a_code_takes_its_part_of_the_rate() {
        assert_eq!(COMMON.mends_bytes(), 8);
        assert_eq!(COMMON.blocks(8 * 239), 1);
        assert_eq!(COMMON.blocks(8 * 240), 2);
        assert_eq!(COMMON.coded_bits(8 * 2390), 8 * 2550);
        assert_eq!(COMMON.coded_bits(8 * 10), 8 * 26);
    }

    #[test]
    fn blocks_fail_as_often_as_flipped_bits_make_them() {
        // Slowly: each byte of each block by itself.
        let mut random = Random::new(7);
        for of_byte in [0.01, 0.03, 0.05] {
            let blocks = 4000;
            let failed = (0..blocks)
                .filter(|_| (0..255).filter(|_| random.chance(of_byte)).count() > 8)
                .count();
            let share = failed as f64 / f64::from(blocks);
            let told = COMMON.block_failure(of_byte);
            let spread = 4.0 * (told * (1.0 - told) / f64::from(blocks)).sqrt() + 1e-3;
            assert!((share - told).abs() < spread, "{of_byte}: {share} {told}");
        }
        assert!(COMMON.block_failure(1e-5) < 1e-20);
        assert_eq!(COMMON.block_failure(1.0), 1.0);
    }

    #[test]
    fn coded_frames_survive_what_kills_others() {
        let hit = |code: Option<FecConfig>| {
            let config = BitErrorConfig { rate: 1e-4 };
            let mut errors = BitErrors::coded(config, code, Random::new(1));
            (0..10_000).filter(|_| errors.hit(8 * 1518)).count()
        };
        // 1 − (1 − 1e-4)^12144 = 70 %.
        assert!((6800..7300).contains(&hit(None)));
        assert_eq!(hit(Some(COMMON)), 0);
    }
}
