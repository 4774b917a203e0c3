//! The next byte, by what came before it: after the same bytes, at the same place, in the segment before.

use super::arithmetic::Bits;
use super::chance::{Chance, NEW};
use super::contexts::{Contexts, hash};
use super::history::{HISTORY_MAX, History, MATCH_MAX};
use super::logistic::Stretch;
use super::mixer::Mixer;

/// Of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// What is said of it: its kind and lengths.
    Told = 0,
    Headers = 1,
    Body = 2,
}

const PARTS: usize = 3;
const CONTEXTS: usize = 6;
/// … and each part's own, a match, and the byte above.
const INPUTS: usize = CONTEXTS + 3;
const SETS: usize = PARTS * 4;
const FIRST_WEIGHT: i32 = 18_000;
const RATE: i32 = 48;

#[derive(Debug)]
pub struct Bytes {
    history: History,
    contexts: [Contexts; CONTEXTS],
    /// Whatever came before.
    alone: [[Chance; 256]; PARTS],
    /// Whether what is expected comes: by how long a match is, and by how many bits of the byte above were right.
    matched: [Chance; MATCH_MAX + 1],
    above: [Chance; 8],
    mixer: Mixer<INPUTS, SETS>,
    /// Where each part of the segment before begins, and how long it is.
    before: [(usize, usize); PARTS],
    /// The one that is coded now.
    part: Part,
    part_at: usize,
}

impl Default for Bytes {
    fn default() -> Bytes {
        Bytes {
            history: History::default(),
            contexts: Default::default(),
            alone: [[NEW; 256]; PARTS],
            matched: [NEW; MATCH_MAX + 1],
            above: [NEW; 8],
            mixer: Mixer::new([FIRST_WEIGHT; INPUTS], RATE),
            before: [(0, 0); PARTS],
            part: Part::Told,
            part_at: 0,
        }
    }
}

impl Bytes {
    pub fn forget(&mut self) {
        self.history.forget();
        self.contexts.iter_mut().for_each(Contexts::forget);
        self.alone = [[NEW; 256]; PARTS];
        self.matched = [NEW; MATCH_MAX + 1];
        self.above = [NEW; 8];
        self.mixer.forget();
        self.before = [(0, 0); PARTS];
    }

    pub fn begin(&mut self, part: Part) {
        (self.part, self.part_at) = (part, self.history.len());
    }

    /// The next segment's is compared with what has been coded since it began.
    pub fn end(&mut self) {
        let len = self.history.len() - self.part_at;
        self.before[self.part as usize] = (self.part_at, len);
    }

    /// Whether a train may have so many more.
    pub fn takes(&self, len: usize) -> bool {
        self.history.len() + len <= HISTORY_MAX
    }

    /// A byte that is coded by something else.
    pub fn push(&mut self, byte: u8) {
        self.history.push(byte);
    }

    /// Codes a byte, or says which was coded.
    pub fn code<B: Bits>(&mut self, bits: &mut B, byte: u8, stretch: &Stretch) -> u8 {
        let column = self.history.len() - self.part_at;
        let (before_at, before_len) = self.before[self.part as usize];
        let above = (column < before_len).then(|| self.history.at(before_at + column));
        let hashes = self.hashes(column, above);
        let expected = self.history.expected();
        let match_len = expected.map_or(0, |(_, len)| len);
        let set = self.part as usize * 4
            + match match_len {
                0 => 0,
                1..8 => 1,
                8..20 => 2,
                _ => 3,
            };
        // The bits so far, behind a 1.
        let mut known = 1_usize;
        let mut places = [0; CONTEXTS];
        for bit_at in 0..8 {
            if bit_at % 4 == 0 {
                for (at, place) in places.iter_mut().enumerate() {
                    *place = self.contexts[at].find(hash(hashes[at], known as u32));
                }
            }
            let node = match bit_at {
                0..4 => known,
                _ => known & ((1 << (bit_at - 4)) - 1) | 1 << (bit_at - 4),
            };
            // What a byte says comes next, if it has been right so far.
            let next_of = |byte: u8| {
                let byte = usize::from(byte) | 256;
                (byte >> (8 - bit_at) == known).then_some(byte >> (7 - bit_at) & 1 == 1)
            };
            let by_match = expected.and_then(|(byte, _)| next_of(byte));
            let by_above = above.and_then(next_of);

            let mut inputs = [0; INPUTS];
            for (at, &place) in places.iter().enumerate() {
                inputs[at] = self.contexts[at].chance(place, node).stretched(stretch);
            }
            inputs[CONTEXTS] = self.alone[self.part as usize][known].stretched(stretch);
            let signed = |right: Chance, says: Option<bool>| match says {
                Some(true) => right.stretched(stretch),
                Some(false) => -right.stretched(stretch),
                None => 0,
            };
            inputs[CONTEXTS + 1] = signed(self.matched[match_len], by_match);
            inputs[CONTEXTS + 2] = signed(self.above[bit_at], by_above);

            let chance = self.mixer.chance(set, &inputs);
            let bit = bits.code(byte >> (7 - bit_at) & 1 == 1, chance);
            self.mixer.learn(set, &inputs, chance, bit);
            for (at, &place) in places.iter().enumerate() {
                self.contexts[at].learn(place, node, bit);
            }
            self.alone[self.part as usize][known].learn(bit);
            if let Some(says) = by_match {
                self.matched[match_len].learn(says == bit);
            }
            if let Some(says) = by_above {
                self.above[bit_at].learn(says == bit);
            }
            known = known << 1 | usize::from(bit);
        }
        self.history.push(known as u8);
        known as u8
    }

    /// In which ways what came before is the same.
    fn hashes(&self, column: usize, above: Option<u8>) -> [u32; CONTEXTS] {
        let back = |by: usize| self.history.back(by);
        let two = back(1) | back(2) << 8;
        let four = two | back(3) << 16 | back(4) << 24;
        let above_word = match above {
            Some(byte) => {
                let (at, _) = self.before[self.part as usize];
                let left = match at + column {
                    0 => 0,
                    at => u32::from(self.history.at(at - 1)),
                };
                // How far the one to the left was from what stood above it.
                u32::from(byte) << 8 | (back(1).wrapping_sub(left) & 0xff)
            }
            None => 0x1_0000,
        };
        [
            hash(1, back(1)),
            hash(2, two),
            hash(3, four & 0x00ff_ffff),
            hash(hash(4, four), back(5) | back(6) << 8),
            hash(5, above_word),
            hash(hash(6, self.part as u32), column as u32),
        ]
    }
}
