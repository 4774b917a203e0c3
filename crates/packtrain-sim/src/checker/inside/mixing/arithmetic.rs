//! "The code": bits out of a block, each by the chance that it is a 1.

/// Zeros that are given behind a block's end, when all of it is restored.
const ZEROS: usize = 3;

/// Where bits come from.
pub trait Bits {
    /// `chance`: that it is a 1, of 4096.
    fn bit(&mut self, chance: i64) -> bool;
}

#[derive(Debug)]
pub struct Code<'a> {
    block: &'a [u8],
    /// Bytes that the word was given, zeros behind the end too.
    given: usize,
    low: u32,
    high: u32,
    word: u32,
}

impl<'a> Code<'a> {
    pub fn new(block: &'a [u8]) -> Code<'a> {
        let mut code = Code {
            block,
            given: 0,
            low: 0,
            high: u32::MAX,
            word: 0,
        };
        for _ in 0..4 {
            code.take_byte();
        }
        code
    }

    fn take_byte(&mut self) {
        let byte = self.block.get(self.given).copied().unwrap_or(0);
        self.word = self.word << 8 | u32::from(byte);
        self.given += 1;
    }

    /// Not a byte more, nor less, than had to be there.
    pub fn has_ended(&self) -> bool {
        self.given == self.block.len() + ZEROS
    }
}

impl Bits for Code<'_> {
    fn bit(&mut self, chance: i64) -> bool {
        let chance = u32::try_from(chance).expect("no chance is below 1");
        let r = self.high - self.low;
        let middle = self.low + (r >> 12) * chance + (((r & 4095) * chance) >> 12);
        let bit = self.word <= middle;
        if bit {
            self.high = middle;
        } else {
            self.low = middle + 1;
        }
        while self.low >> 24 == self.high >> 24 {
            self.low <<= 8;
            self.high = self.high << 8 | 255;
            self.take_byte();
        }
        bit
    }
}
