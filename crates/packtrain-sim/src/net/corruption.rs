//! Bits that flip on the way. The FCS finds them, and the receiver's NIC drops the frame; without
//! one (`fcs: false`: bad memory in a switch, a hostile neighbour) the frame goes on as it is.

use crate::random::Random;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CorruptionConfig {
    /// Of a frame to be hit.
    pub probability: f64,
    /// Most bits that flip in one frame.
    pub bits_max: u64,
    /// Whether a frame check sequence covers it.
    pub fcs: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corrupted {
    No,
    /// The FCS does not match: the NIC drops it.
    Seen,
    /// Altered, and nobody knows.
    Unseen,
}

#[derive(Debug)]
pub struct Corruption {
    config: CorruptionConfig,
    random: Random,
    pub frames_corrupted: u64,
}

impl Corruption {
    pub fn new(config: CorruptionConfig, random: Random) -> Corruption {
        assert!(config.bits_max >= 1);
        Corruption {
            config,
            random,
            frames_corrupted: 0,
        }
    }

    /// Whether the frame that passes now is hit, and who notices. No bit is flipped yet.
    pub fn hits(&mut self) -> Corrupted {
        if !self.random.chance(self.config.probability) {
            return Corrupted::No;
        }
        self.frames_corrupted += 1;
        // CRC-32 finds every error of a few bits in a frame of this length.
        match self.config.fcs {
            true => Corrupted::Seen,
            false => Corrupted::Unseen,
        }
    }

    pub fn strike(&mut self, bytes: &mut [u8]) -> Corrupted {
        let corrupted = self.hits();
        if corrupted != Corrupted::Unseen {
            return corrupted;
        }
        let before = bytes.to_vec();
        while bytes == before {
            for _ in 0..self.random.between(1, self.config.bits_max) {
                let bit = self.random.below(8 * bytes.len() as u64);
                bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
            }
        }
        Corrupted::Unseen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_an_fcs_the_frame_is_dropped_and_without_it_differs() {
        let config = CorruptionConfig {
            probability: 1.0,
            bits_max: 4,
            fcs: true,
        };
        let mut bytes = [7; 100];
        assert_eq!(
            Corruption::new(config, Random::new(1)).strike(&mut bytes),
            Corrupted::Seen
        );

        let mut corruption = Corruption::new(
            CorruptionConfig {
                fcs: false,
                ..config
            },
            Random::new(1),
        );
        for _ in 0..100 {
            let mut bytes = [7; 100];
            assert_eq!(corruption.strike(&mut bytes), Corrupted::Unseen);
            let flipped: u32 = bytes.iter().map(|b| (b ^ 7).count_ones()).sum();
            assert!((1..=4).contains(&flipped));
        }
        assert_eq!(corruption.frames_corrupted, 100);
    }
}
