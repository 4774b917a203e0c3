//! "Samples": which are likely, by where the line of those before goes on to.

use super::arithmetic::Bits;
use super::chance::{Counter, Mixer, stretch};
use super::law::Law;

const INPUTS: usize = 4;

const STEP: [i64; 45] = [
    32768, 36843, 40793, 44511, 47911, 50941, 53581, 55834, 57724, 59287, 60565, 61598, 62428,
    63090, 63615, 64030, 64357, 64614, 64816, 64974, 65097, 65194, 65269, 65328, 65374, 65410,
    65438, 65459, 65476, 65489, 65500, 65508, 65514, 65519, 65523, 65526, 65528, 65530, 65531,
    65532, 65533, 65534, 65534, 65535, 65536,
];

/// How much of all is below, 65536ths.
fn below(x: i64) -> i64 {
    if x < 0 {
        return 65536 - below(-x);
    }
    let x = x.min(2816);
    let (k, b) = ((x >> 6) as usize, x & 63);
    let next = STEP[(k + 1).min(STEP.len() - 1)];
    (STEP[k] * (64 - b) + next * b + 32) >> 6
}

/// 1 for 1, 2 for 2 and 3.
fn bits(number: i64) -> usize {
    (i64::BITS - number.leading_zeros()) as usize
}

#[derive(Debug)]
pub struct Samples {
    /// The last one, and the one before.
    s1: i64,
    s2: i64,
    /// Of products: s₁², s₂², s₁s₂, v s₁, v s₂.
    sums: [i64; 5],
    /// Samples of the body.
    n: i64,
    /// How far off what was expected was of late, in the body and in the train.
    body_error: i64,
    train_error: i64,
    /// By the bits of the error, by whether the last two are the same, by the bits so far.
    counters: Vec<[[Counter; 256]; 2]>,
    mixer: Mixer<INPUTS>,
}

impl Samples {
    pub fn new() -> Samples {
        let train_error = 256;
        Samples {
            s1: 0,
            s2: 0,
            sums: [0; 5],
            n: 0,
            body_error: train_error,
            train_error,
            counters: vec![[[Counter::NEW; 256]; 2]; 16],
            mixer: Mixer::new(16, [26000, 16000, 14000, 6000], 8),
        }
    }

    pub fn begin_body(&mut self) {
        (self.s1, self.s2, self.n) = (0, 0, 0);
        self.sums = [1024, 1024, 614, 614, 307];
        self.body_error = self.train_error;
    }

    /// The next sample, sixteenths.
    fn expected(&self) -> i64 {
        let k = bits(self.sums[0].max(self.sums[1])).saturating_sub(22);
        let [a, b, c, p, q] = self.sums.map(|sum| sum >> k);
        let (a, b) = (a + 4, b + 4);
        let d = ((a * b - c * c) >> 12).max(1);
        let w1 = ((p * b - q * c) / d).clamp(-8192, 8192);
        let w2 = ((q * a - p * c) / d).clamp(-8192, 8192);
        (w1 * self.s1 + w2 * self.s2 + 128) >> 8
    }

    /// The code of the next one.
    pub fn read(&mut self, law: &Law, code: &mut impl Bits) -> u8 {
        let x = self.expected();
        let g = self.body_error.max(8);
        let widths = [(g * 10) >> 4, ((g * 5) >> 4) + 2, (g * 24) >> 4];
        let error_bits = bits(self.body_error).min(15);
        let is_same = usize::from(self.s1 == self.s2);
        let (mut from, mut to) = (0, 256);
        let mut known = 1;
        while to - from > 1 {
            let middle = (from + to) / 2;
            let counter = &mut self.counters[error_bits][is_same][known];
            let mut inputs = [0; INPUTS];
            for (input, width) in inputs.iter_mut().zip(widths) {
                let f = |rank| match rank {
                    0 => 0,
                    256 => 65536,
                    _ => {
                        let off = (16 * law.edge(rank) - x) * 256 / width;
                        below(off.clamp(-4096, 4096))
                    }
                };
                let above = f(to) - f(middle) + 1;
                let all = f(to) - f(from) + 2;
                *input = stretch((4096 * above / all).clamp(1, 4095));
            }
            inputs[3] = counter.says();

            let chance = self.mixer.chance(error_bits, &inputs);
            let bit = code.bit(chance);

            self.mixer.learn(error_bits, &inputs, chance, bit);
            counter.learn(bit);
            known = known << 1 | usize::from(bit);
            if bit {
                from = middle;
            } else {
                to = middle;
            }
        }
        self.learn(law.value(from), x);
        law.code(from)
    }

    /// What the sample was, and what it was expected to be.
    fn learn(&mut self, v: i64, x: i64) {
        let e = (16 * v - x).abs();
        self.n = (self.n + 1).min(13);
        self.body_error += (e - self.body_error) / self.n.max(2);
        self.train_error += (e - self.train_error) / 64;
        let (s1, s2) = (self.s1, self.s2);
        let products = [s1 * s1, s2 * s2, s1 * s2, v * s1, v * s2];
        for (sum, product) in self.sums.iter_mut().zip(products) {
            *sum += product - (*sum >> 7);
        }
        (self.s1, self.s2) = (v, s1);
    }
}
