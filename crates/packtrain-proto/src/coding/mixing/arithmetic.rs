//! Bits by their chances, in as few bytes as those allow: binary arithmetic coding without carries. What has been
//! coded is a number between two of 32 bits; each bit takes its share of what is between them.

use super::logistic::CHANCE_MAX;

/// Codes a bit, or says which was coded.
pub trait Bits {
    /// `chance` of 4096 that it is a 1. Who decodes does not look at `bit`.
    fn code(&mut self, bit: bool, chance: i32) -> bool;
}

/// The last number that a 1 gets.
fn split(low: u32, high: u32, chance: i32) -> u32 {
    debug_assert!((1..=CHANCE_MAX).contains(&chance));
    let (range, chance) = (high - low, chance as u32);
    low + (range >> 12) * chance + (((range & 0xfff) * chance) >> 12)
}

/// A decoder has read four bytes more than are decided; of those, an encoder writes the first.
const BEHIND_END: usize = 3;

/// Where an encoder was, to go back there.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    low: u32,
    high: u32,
    len: usize,
}

#[derive(Debug)]
pub struct Encoder {
    low: u32,
    high: u32,
    bytes: Vec<u8>,
}

impl Default for Encoder {
    fn default() -> Encoder {
        Encoder {
            low: 0,
            high: u32::MAX,
            bytes: Vec::new(),
        }
    }
}

impl Encoder {
    pub fn begin(&mut self) {
        (self.low, self.high) = (0, u32::MAX);
        self.bytes.clear();
    }

    /// How long it is, if it ends here.
    pub fn len(&self) -> usize {
        self.bytes.len() + 1
    }

    pub fn mark(&self) -> Mark {
        Mark {
            low: self.low,
            high: self.high,
            len: self.bytes.len(),
        }
    }

    /// What was coded since is not.
    pub fn back_to(&mut self, mark: Mark) {
        (self.low, self.high) = (mark.low, mark.high);
        self.bytes.truncate(mark.len);
    }

    /// All that was coded. Behind it, a decoder reads zeros.
    pub fn finish(&mut self) -> &[u8] {
        // The two differ in their first byte.
        let last = match self.low & 0x00ff_ffff {
            0 => self.low >> 24,
            _ => (self.low >> 24) + 1,
        };
        self.bytes.push(last as u8);
        &self.bytes
    }
}

impl Bits for Encoder {
    fn code(&mut self, bit: bool, chance: i32) -> bool {
        let middle = split(self.low, self.high, chance);
        match bit {
            true => self.high = middle,
            false => self.low = middle + 1,
        }
        while (self.low ^ self.high) >> 24 == 0 {
            self.bytes.push((self.high >> 24) as u8);
            self.low <<= 8;
            self.high = self.high << 8 | 0xff;
        }
        bit
    }
}

#[derive(Debug)]
pub struct Decoder<'a> {
    low: u32,
    high: u32,
    read: u32,
    bytes: &'a [u8],
    /// How many there were not.
    missing: usize,
}

impl<'a> Decoder<'a> {
    pub fn new(bytes: &'a [u8]) -> Decoder<'a> {
        let mut decoder = Decoder {
            low: 0,
            high: u32::MAX,
            read: 0,
            bytes,
            missing: 0,
        };
        for _ in 0..4 {
            decoder.read_byte();
        }
        decoder
    }

    fn read_byte(&mut self) {
        let byte = match self.bytes.split_first() {
            Some((&first, rest)) => {
                self.bytes = rest;
                first
            }
            None => {
                self.missing += 1;
                0
            }
        };
        self.read = self.read << 8 | u32::from(byte);
    }

    /// More was decoded than was coded.
    pub fn is_beyond_end(&self) -> bool {
        self.missing > BEHIND_END
    }

    /// As much was decoded as was coded.
    pub fn is_at_end(&self) -> bool {
        self.bytes.is_empty() && self.missing == BEHIND_END
    }
}

impl Bits for Decoder<'_> {
    fn code(&mut self, _bit: bool, chance: i32) -> bool {
        let middle = split(self.low, self.high, chance);
        let bit = self.read <= middle;
        match bit {
            true => self.high = middle,
            false => self.low = middle + 1,
        }
        while (self.low ^ self.high) >> 24 == 0 {
            self.low <<= 8;
            self.high = self.high << 8 | 0xff;
            self.read_byte();
        }
        bit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_coded_is_decoded(bits in prop::collection::vec((any::<bool>(), 1..=CHANCE_MAX), 0..600)) {
            let mut encoder = Encoder::default();
            for &(bit, chance) in &bits {
                encoder.code(bit, chance);
            }
            let said = encoder.len();
            let bytes = encoder.finish().to_vec();
            prop_assert_eq!(bytes.len(), said);
            let mut decoder = Decoder::new(&bytes);
            for &(bit, chance) in &bits {
                prop_assert_eq!(decoder.code(false, chance), bit);
            }
            prop_assert!(decoder.is_at_end());
        }

        #[test]
        fn going_back_is_as_if_it_had_not_been(
            before in prop::collection::vec((any::<bool>(), 1..=CHANCE_MAX), 0..100),
            taken_back in prop::collection::vec((any::<bool>(), 1..=CHANCE_MAX), 0..100),
            after in prop::collection::vec((any::<bool>(), 1..=CHANCE_MAX), 0..100),
        ) {
            let mut encoders = [Encoder::default(), Encoder::default()];
            for (encoder, goes_back) in encoders.iter_mut().zip([true, false]) {
                let code = |encoder: &mut Encoder, bits: &[(bool, i32)]| {
                    for &(bit, chance) in bits {
                        encoder.code(bit, chance);
                    }
                };
                code(encoder, &before);
                let mark = encoder.mark();
                if goes_back {
                    code(encoder, &taken_back);
                    encoder.back_to(mark);
                }
                code(encoder, &after);
            }
            let [mut a, mut b] = encoders;
            prop_assert_eq!(a.finish(), b.finish());
        }
    }

    #[test]
    fn what_was_likely_is_short() {
        let mut encoder = Encoder::default();
        for _ in 0..8000 {
            encoder.code(true, CHANCE_MAX);
        }
        // 8000 × log2(4096 / 4094) bits.
        assert!(encoder.finish().len() <= 3);
    }
}
