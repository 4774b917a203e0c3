//! "Bytes": which bits are likely, by the bytes before and by what stands above.

use super::arithmetic::Bits;
use super::chance::{Counter, Mixer};
use super::contexts::{Table, hash};
use super::history::History;

const CONTEXTS: usize = 6;
/// The contexts', the part's own, the match's, and that of what is above.
const INPUTS: usize = CONTEXTS + 3;
const PARTS: usize = 3;

#[derive(Debug)]
pub struct Bytes {
    tables: [Table; CONTEXTS],
    of_parts: [[Counter; 256]; PARTS],
    of_match: [Counter; 32],
    of_above: [Counter; 8],
    mixer: Mixer<INPUTS>,
}

/// The bit that a byte says comes next, if the bits so far are its own.
fn next_of(expected: u8, number: usize, known: usize) -> Option<bool> {
    let with_one = 0x100 | usize::from(expected);
    (with_one >> (8 - number) == known).then_some(expected >> (7 - number) & 1 == 1)
}

/// What a counter says of a bit that comes as expected, or not.
fn says(counter: Counter, expected: Option<bool>) -> i64 {
    match expected {
        Some(true) => counter.says(),
        Some(false) => -counter.says(),
        None => 0,
    }
}

fn contexts(history: &History) -> [u32; CONTEXTS] {
    let p = |number| history.last(number);
    let two = p(1) + (p(2) << 8);
    let three = two + (p(3) << 16);
    let four = three + (p(4) << 24);
    let above = match history.above() {
        Some(above) => {
            let less_left = p(1).wrapping_sub(u32::from(above.left)) & 255;
            (u32::from(above.byte) << 8) + less_left
        }
        None => 65536,
    };
    [
        hash(1, p(1)),
        hash(2, two),
        hash(3, three),
        hash(hash(4, four), p(5) + (p(6) << 8)),
        hash(5, above),
        hash(hash(6, history.part as u32), history.column() as u32),
    ]
}

impl Bytes {
    pub fn new() -> Bytes {
        Bytes {
            tables: core::array::from_fn(|_| Table::new()),
            of_parts: [[Counter::NEW; 256]; PARTS],
            of_match: [Counter::NEW; 32],
            of_above: [Counter::NEW; 8],
            mixer: Mixer::new(4 * PARTS, [18000; INPUTS], 48),
        }
    }

    /// The byte behind the history.
    pub fn read(&mut self, history: &History, code: &mut impl Bits) -> u8 {
        let contexts = contexts(history);
        let part = history.part as usize;
        let above = history.above().map(|above| above.byte);
        let matched = history.repeats.current;
        let match_len = matched.map_or(0, |matched| matched.len);
        let by_match = matched.map(|matched| matched.expected(history.bytes()));
        let set = 4 * part
            + match matched.map(|matched| matched.len) {
                None => 0,
                Some(..8) => 1,
                Some(8..20) => 2,
                Some(20..) => 3,
            };
        let mut known = 1;
        for number in 0..8 {
            if number % 4 == 0 {
                for (table, context) in self.tables.iter_mut().zip(contexts) {
                    table.find(hash(context, known as u32));
                }
            }
            // Behind a 1: the bits so far, or those since the fifth.
            let in_place = match number {
                0..4 => known,
                _ => 1 << (number - 4) | known & ((1 << (number - 4)) - 1),
            };
            let next_by_match = by_match.and_then(|byte| next_of(byte, number, known));
            let next_by_above = above.and_then(|byte| next_of(byte, number, known));

            let mut inputs = [0; INPUTS];
            for (input, table) in inputs.iter_mut().zip(&mut self.tables) {
                *input = table.counter(in_place).says();
            }
            inputs[CONTEXTS] = self.of_parts[part][known].says();
            inputs[CONTEXTS + 1] = says(self.of_match[match_len], next_by_match);
            inputs[CONTEXTS + 2] = says(self.of_above[number], next_by_above);

            let chance = self.mixer.chance(set, &inputs);
            let bit = code.bit(chance);

            self.mixer.learn(set, &inputs, chance, bit);
            for table in &mut self.tables {
                table.counter(in_place).learn(bit);
            }
            self.of_parts[part][known].learn(bit);
            if let Some(expected) = next_by_match {
                self.of_match[match_len].learn(bit == expected);
            }
            if let Some(expected) = next_by_above {
                self.of_above[number].learn(bit == expected);
            }
            known = known << 1 | usize::from(bit);
        }
        known as u8
    }
}
