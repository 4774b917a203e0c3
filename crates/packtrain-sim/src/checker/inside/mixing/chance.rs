//! "Chances": counters of how often a bit was a 1, and mixers that make one chance of what several say.

const RATE: [i64; 13] = [
    43690, 26214, 18724, 14563, 11915, 10082, 8738, 7710, 6898, 6241, 5698, 5242, 4854,
];
const SEEN_MAX: u8 = 12;

const KNOT: [i64; 33] = [
    1, 2, 4, 6, 10, 17, 27, 45, 74, 120, 194, 311, 488, 747, 1102, 1546, 2048, 2550, 2994, 3349,
    3608, 3785, 3902, 3976, 4022, 4051, 4069, 4079, 4086, 4090, 4092, 4094, 4095,
];

pub const fn squash(x: i64) -> i64 {
    let x = match x {
        ..-2047 => -2047,
        2048.. => 2047,
        _ => x,
    };
    let y = x + 2048;
    let (k, b) = ((y >> 7) as usize, y & 127);
    (KNOT[k] * (128 - b) + KNOT[k + 1] * b + 64) >> 7
}

/// Of a chance from 0 to 4095.
pub fn stretch(chance: i64) -> i64 {
    i64::from(STRETCHED[chance as usize])
}

const STRETCHED: [i16; 4096] = {
    let mut table = [2047; 4096];
    let mut chance = 0;
    let mut x = -2047;
    while chance < table.len() {
        while x < 2047 && squash(x) < chance as i64 {
            x += 1;
        }
        table[chance] = x as i16;
        chance += 1;
    }
    table
};

#[derive(Clone, Copy, Debug)]
pub struct Counter {
    chance: i16,
    seen: u8,
}

impl Counter {
    pub const NEW: Counter = Counter {
        chance: 2048,
        seen: 0,
    };

    pub fn says(self) -> i64 {
        match self.seen {
            0 => 0,
            _ => stretch(i64::from(self.chance)),
        }
    }

    pub fn seen(self) -> u8 {
        self.seen
    }

    pub fn learn(&mut self, bit: bool) {
        let chance = i64::from(self.chance);
        let wanted = if bit { 4095 } else { 0 };
        let chance = chance + (((wanted - chance) * RATE[usize::from(self.seen)]) >> 16);
        self.chance = chance.clamp(1, 4094) as i16;
        self.seen = (self.seen + 1).min(SEEN_MAX);
    }
}

#[derive(Debug)]
pub struct Mixer<const INPUTS: usize> {
    sets: Vec<[i64; INPUTS]>,
    rate: i64,
}

impl<const INPUTS: usize> Mixer<INPUTS> {
    pub fn new(sets: usize, weights: [i64; INPUTS], rate: i64) -> Mixer<INPUTS> {
        let sets = vec![weights; sets];
        Mixer { sets, rate }
    }

    /// The chance that comes of the inputs, by this set.
    pub fn chance(&self, set: usize, inputs: &[i64; INPUTS]) -> i64 {
        let products = self.sets[set].iter().zip(inputs).map(|(w, i)| w * i);
        squash(products.sum::<i64>() >> 16).clamp(1, 4094)
    }

    /// What the bit was of which this was the chance.
    pub fn learn(&mut self, set: usize, inputs: &[i64; INPUTS], chance: i64, bit: bool) {
        let e = (4096 * i64::from(bit) - chance) * self.rate;
        for (w, i) in self.sets[set].iter_mut().zip(inputs) {
            *w = (*w + ((i * e + 32768) >> 16)).clamp(-1 << 20, 1 << 20);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rates_are_what_they_are_said_to_be() {
        for (n, rate) in RATE.into_iter().enumerate() {
            assert_eq!(rate, 2 * 65536 / (2 * n as i64 + 3));
        }
    }

    #[test]
    fn stretch_is_the_least_that_is_squashed_to_as_much() {
        for chance in 0..4096 {
            let least = (-2047..=2047).find(|&x| squash(x) >= chance);
            assert_eq!(stretch(chance), least.unwrap_or(2047));
        }
    }
}
