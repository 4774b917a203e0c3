//! The next sample of a telephone call in G.711, by the two before it: linear prediction by least squares over the
//! packet so far, and how far that was off.

use super::arithmetic::Bits;
use super::chance::{Chance, NEW};
use super::logistic::{Stretch, below};
use super::mixer::Mixer;

/// How a sample is said in a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    Mu = 0,
    A = 1,
}

/// Distributions that are as wide as what is expected, narrower, and wider: sixteenths of the mean error.
const WIDTHS: [i32; 3] = [10, 5, 24];
const WIDTHS_MORE: [i32; 3] = [0, 2, 0];
/// … and what came where errors were as large.
const INPUTS: usize = WIDTHS.len() + 1;
const FIRST_WEIGHTS: [i32; INPUTS] = [26_000, 16_000, 14_000, 6_000];
const RATE: i32 = 8;
/// How large errors are, by their logarithm.
const SIZES: usize = 16;

/// Sums begin as if sound of this power had been heard, that goes slowly up and down.
const FIRST_POWER: i64 = 1024;
const FIRST_SUMS: [i64; 5] = [
    FIRST_POWER,
    FIRST_POWER,
    FIRST_POWER * 6 / 10,
    FIRST_POWER * 6 / 10,
    FIRST_POWER * 3 / 10,
];
/// Of a sample, before any has been heard; sixteenths.
const FIRST_ERROR: i32 = 256;
const ERROR_MIN: i32 = 8;
/// They are counted as long as they are few, and then the last ones weigh most.
const ERRORS_MAX: i32 = 13;

/// What samples are worth, and what lies between each and the next.
#[derive(Debug)]
struct Scale {
    /// By how large they are.
    values: [i32; 256],
    /// Below the first of them, and so on: half as much as stands between.
    edges: [i32; 257],
    ranks: [u8; 256],
    codes: [u8; 256],
}

impl Scale {
    fn of(law: Law) -> Scale {
        let value = match law {
            Law::Mu => mu_law,
            Law::A => a_law,
        };
        let mut codes: [u8; 256] = std::array::from_fn(|code| code as u8);
        // µ-law has two zeros, of which the negative one comes first.
        codes.sort_by_key(|&code| (value(code), code & 0x80));
        let values = codes.map(value);
        let mut ranks = [0; 256];
        for (rank, &code) in codes.iter().enumerate() {
            ranks[usize::from(code)] = rank as u8;
        }
        const FAR: i32 = 1 << 20;
        let edges = std::array::from_fn(|at| match at {
            0 => -FAR,
            256 => FAR,
            _ => (values[at - 1] + values[at]) >> 1,
        });
        Scale {
            values,
            edges,
            ranks,
            codes,
        }
    }
}

/// G.711, table 2b: fourteen bits, doubled.
fn mu_law(code: u8) -> i32 {
    let code = !code;
    let (segment, step) = (code >> 4 & 7, i32::from(code & 15));
    let value = (((2 * step + 33) << segment) - 33) * 2;
    if code & 0x80 == 0 { value } else { -value }
}

/// G.711, table 1b: thirteen bits, times four, to be as loud.
fn a_law(code: u8) -> i32 {
    let code = code ^ 0x55;
    let (segment, step) = (code >> 4 & 7, i32::from(code & 15));
    let value = match segment {
        0 => 2 * step + 1,
        _ => (2 * step + 33) << (segment - 1),
    };
    let value = value * 4;
    if code & 0x80 != 0 { value } else { -value }
}

#[derive(Debug)]
pub struct Samples {
    scales: [Scale; 2],
    /// Of which law the packet is.
    law: Law,
    /// The last sample, and the one before.
    last: [i32; 2],
    /// Of products: of each with itself, of both, and of the next with each.
    sums: [i64; 5],
    /// The mean error, sixteenths, of so many; and of all packets so far.
    error: i32,
    errors: i32,
    error_of_all: i32,
    /// By the size of errors, and whether the last two samples were the same.
    seen: [[[Chance; 256]; 2]; SIZES],
    mixer: Mixer<INPUTS, SIZES>,
}

impl Default for Samples {
    fn default() -> Samples {
        Samples {
            scales: [Law::Mu, Law::A].map(Scale::of),
            law: Law::Mu,
            last: [0; 2],
            sums: FIRST_SUMS,
            error: FIRST_ERROR,
            errors: 0,
            error_of_all: FIRST_ERROR,
            seen: [[[NEW; 256]; 2]; SIZES],
            mixer: Mixer::new(FIRST_WEIGHTS, RATE),
        }
    }
}

impl Samples {
    pub fn forget(&mut self) {
        self.error_of_all = FIRST_ERROR;
        self.seen = [[[NEW; 256]; 2]; SIZES];
        self.mixer.forget();
    }

    /// A packet of another call.
    pub fn begin(&mut self, law: Law) {
        self.law = law;
        self.last = [0; 2];
        self.sums = FIRST_SUMS;
        (self.error, self.errors) = (self.error_of_all, 0);
    }

    /// Codes a sample, or says which was coded.
    pub fn code<B: Bits>(&mut self, bits: &mut B, code: u8, stretch: &Stretch) -> u8 {
        let scale = &self.scales[self.law as usize];
        let rank = usize::from(scale.ranks[usize::from(code)]);
        let expected = self.expected();
        let error = self.error.max(ERROR_MIN);
        let widths: [i32; WIDTHS.len()] =
            std::array::from_fn(|at| ((error * WIDTHS[at]) >> 4) + WIDTHS_MORE[at]);
        let size = ((32 - self.error.leading_zeros()) as usize).min(SIZES - 1);
        let is_same = usize::from(self.last[0] == self.last[1]);
        let below_edge = |edge: usize, width: i32| {
            let off = i64::from(scale.edges[edge] * 16 - expected);
            below((off * 256 / i64::from(width)).clamp(-4096, 4096) as i32)
        };

        let (mut from, mut to, mut known) = (0, 256, 1_usize);
        let (mut below_from, mut below_to) = ([0; WIDTHS.len()], [65_536; WIDTHS.len()]);
        while to - from > 1 {
            let middle = (from + to) / 2;
            let below_middle = widths.map(|width| below_edge(middle, width));
            let mut inputs = [0; INPUTS];
            for at in 0..WIDTHS.len() {
                let upper = below_to[at] - below_middle[at] + 1;
                let both = below_to[at] - below_from[at] + 2;
                inputs[at] = stretch.of((upper * 4096 / both).clamp(1, 4095));
            }
            let seen = &mut self.seen[size][is_same][known];
            inputs[WIDTHS.len()] = seen.stretched(stretch);
            let chance = self.mixer.chance(size, &inputs);
            let bit = bits.code(rank >= middle, chance);
            self.mixer.learn(size, &inputs, chance, bit);
            seen.learn(bit);
            match bit {
                true => (from, below_from) = (middle, below_middle),
                false => (to, below_to) = (middle, below_middle),
            }
            known = known << 1 | usize::from(bit);
        }
        let (value, code) = (scale.values[from], scale.codes[from]);
        self.learn(value, expected);
        code
    }

    /// The next sample, sixteenths.
    fn expected(&self) -> i32 {
        const BITS: u32 = 22;
        const WEIGHT_MAX: i64 = 8192;
        let [one, two, both, with_one, with_two] = self.sums;
        let shift = (64 - one.max(two).leading_zeros()).saturating_sub(BITS);
        let [both, with_one, with_two] = [both, with_one, with_two].map(|sum| sum >> shift);
        // A little more: a sound that is all the same has no solution else.
        let [one, two] = [one, two].map(|sum| (sum >> shift) + 4);
        let determinant = ((one * two - both * both) >> 12).max(1);
        // 4096ths.
        let weights = [
            with_one * two - with_two * both,
            with_two * one - with_one * both,
        ]
        .map(|weight| (weight / determinant).clamp(-WEIGHT_MAX, WEIGHT_MAX));
        let sum = weights[0] * i64::from(self.last[0]) + weights[1] * i64::from(self.last[1]);
        ((sum + 128) >> 8) as i32
    }

    fn learn(&mut self, value: i32, expected: i32) {
        let error = (value * 16 - expected).abs();
        self.errors = (self.errors + 1).min(ERRORS_MAX);
        self.error += (error - self.error) / self.errors.max(2);
        self.error_of_all += (error - self.error_of_all) / 64;
        let [one, two] = self.last.map(i64::from);
        let next = i64::from(value);
        let products = [one * one, two * two, one * two, next * one, next * two];
        for (sum, product) in self.sums.iter_mut().zip(products) {
            *sum += product - (*sum >> 7);
        }
        self.last = [value, self.last[0]];
    }
}
