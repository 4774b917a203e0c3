//! Probabilities of twelve bits, and the same on the scale on which they are added up: ln(p / (1 − p)), in 256ths.
//! Whole numbers only: both ends must find the same on every machine.

/// Beyond this there is no difference in twelve bits.
pub const STRETCHED_MAX: i32 = 2047;
/// A chance is from 1 to this: what is certain could not be coded if it did not come.
pub const CHANCE_MAX: i32 = 4094;

/// 4096 / (1 + e^-x) at every half, from −8 to 8.
const KNOTS: [i32; 33] = [
    1, 2, 4, 6, 10, 17, 27, 45, 74, 120, 194, 311, 488, 747, 1102, 1546, 2048, 2550, 2994, 3349,
    3608, 3785, 3902, 3976, 4022, 4051, 4069, 4079, 4086, 4090, 4092, 4094, 4095,
];

/// 65,536 / (1 + e^-x) at every quarter, from 0 to 11; there, all is below.
const STEPS: [i32; 45] = [
    32768, 36843, 40793, 44511, 47911, 50941, 53581, 55834, 57724, 59287, 60565, 61598, 62428,
    63090, 63615, 64030, 64357, 64614, 64816, 64974, 65097, 65194, 65269, 65328, 65374, 65410,
    65438, 65459, 65476, 65489, 65500, 65508, 65514, 65519, 65523, 65526, 65528, 65530, 65531,
    65532, 65533, 65534, 65534, 65535, 65536,
];

/// From there to a chance.
pub fn squash(stretched: i32) -> i32 {
    let x = stretched.clamp(-STRETCHED_MAX, STRETCHED_MAX) + 2048;
    let (knot, between) = ((x >> 7) as usize, x & 127);
    (KNOTS[knot] * (128 - between) + KNOTS[knot + 1] * between + 64) >> 7
}

/// The inverse of [`squash`]: for each chance, the least that becomes it or more.
#[derive(Clone, Debug)]
pub struct Stretch(Box<[i16; 4096]>);

impl Stretch {
    pub fn new() -> Stretch {
        let mut table = Box::new([STRETCHED_MAX as i16; 4096]);
        let mut next = 0;
        for stretched in -STRETCHED_MAX..=STRETCHED_MAX {
            let chance = squash(stretched) as usize;
            while next <= chance {
                table[next] = stretched as i16;
                next += 1;
            }
        }
        Stretch(table)
    }

    #[inline]
    pub fn of(&self, chance: i32) -> i32 {
        i32::from(self.0[(chance & 4095) as usize])
    }
}

/// How much of a logistic distribution is below `x`, which is in 256ths of its scale: 0 … 65,536.
pub fn below(x: i32) -> i32 {
    const LAST: i32 = STEPS.len() as i32 - 1;
    let far = x.abs().min(LAST << 6);
    let (step, between) = ((far >> 6) as usize, far & 63);
    let next = STEPS[(step + 1).min(LAST as usize)];
    let most = (STEPS[step] * (64 - between) + next * between + 32) >> 6;
    match x < 0 {
        true => 65_536 - most,
        false => most,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_tables_are_the_logistic_function() {
        let logistic = |x: f64| 1.0 / (1.0 + (-x).exp());
        for stretched in -STRETCHED_MAX..=STRETCHED_MAX {
            let right = 4096.0 * logistic(f64::from(stretched) / 256.0);
            let off = (f64::from(squash(stretched)) - right).abs();
            assert!(off < 3.0 + right * 0.03, "{stretched}: {off}");
        }
        for x in -4000..=4000 {
            let right = 65_536.0 * logistic(f64::from(x) / 256.0);
            assert!((f64::from(below(x)) - right).abs() < 260.0, "{x}");
        }
        assert_eq!([below(-4000), below(0), below(4000)], [0, 32_768, 65_536]);
    }

    #[test]
    fn stretching_is_undone_by_squashing() {
        let stretch = Stretch::new();
        for chance in 1..=CHANCE_MAX {
            let stretched = stretch.of(chance);
            assert!(squash(stretched) >= chance);
            assert!(stretched == -STRETCHED_MAX || squash(stretched - 1) < chance);
        }
    }

    #[test]
    fn more_is_never_less() {
        let all = -STRETCHED_MAX..=STRETCHED_MAX;
        assert!(all.clone().map(squash).is_sorted());
        assert!((-3000..=3000).map(below).is_sorted());
    }
}
