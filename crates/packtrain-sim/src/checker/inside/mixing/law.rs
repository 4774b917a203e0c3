//! What the codes of G.711 mean.

/// A far end: no sample is beyond.
const FAR: i64 = 1 << 20;

#[derive(Debug)]
pub struct Law {
    /// By rank: the codes, and their values in order.
    codes: [u8; 256],
    values: [i64; 256],
}

impl Law {
    pub fn mu() -> Law {
        Law::new(|code| {
            let inverted = !code;
            let (segment, step) = (inverted >> 4 & 7, i64::from(inverted & 15));
            let magnitude = ((2 * step + 33) << segment) - 33;
            let is_negative = inverted & 0x80 != 0;
            2 * if is_negative { -magnitude } else { magnitude }
        })
    }

    pub fn a() -> Law {
        Law::new(|code| {
            let restored = code ^ 0x55;
            let (segment, step) = (restored >> 4 & 7, i64::from(restored & 15));
            let magnitude = match segment {
                0 => 2 * step + 1,
                _ => (2 * step + 33) << (segment - 1),
            };
            let is_positive = restored & 0x80 != 0;
            4 * if is_positive { magnitude } else { -magnitude }
        })
    }

    fn new(value: impl Fn(u8) -> i64) -> Law {
        let mut codes: [u8; 256] = core::array::from_fn(|code| code as u8);
        // The lower one of two codes with the same value comes first: 0x7f, and 0xff, which is +0.
        codes.sort_by_key(|&code| (value(code), code));
        Law {
            codes,
            values: codes.map(value),
        }
    }

    pub fn code(&self, rank: usize) -> u8 {
        self.codes[rank]
    }

    pub fn value(&self, rank: usize) -> i64 {
        self.values[rank]
    }

    /// Between a rank and the one below.
    pub fn edge(&self, rank: usize) -> i64 {
        match rank {
            0 => -FAR,
            256 => FAR,
            _ => (self.values[rank - 1] + self.values[rank]) >> 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value_of(law: &Law, code: u8) -> i64 {
        let rank = (0..256).find(|&rank| law.code(rank) == code);
        law.value(rank.expect("each code has a rank"))
    }

    #[test]
    fn the_values_are_those_of_g_711() {
        let mu = Law::mu();
        let values = [
            (0x80, 8031), // the greatest, and the ends of segments
            (0x8f, 4191),
            (0x90, 3999),
            (0xef, 33),
            (0xf0, 30),
            (0xfe, 2),
            (0xff, 0),
            (0x7f, 0),
            (0x7e, -2),
            (0x00, -8031),
        ];
        for (code, value) in values {
            assert_eq!(value_of(&mu, code), 2 * value, "{code:02x}");
        }
        assert_eq!((mu.code(127), mu.code(128)), (0x7f, 0xff));
        let a = Law::a();
        let values = [
            (0xaa, 4032),
            (0xa5, 2112),
            (0xd5, 1),
            (0xd4, 3),
            (0xda, 31),
            (0xc5, 33),
            (0x55, -1),
            (0x2a, -4032),
        ];
        for (code, value) in values {
            assert_eq!(value_of(&a, code), 4 * value, "{code:02x}");
        }
        assert_eq!((a.code(127), a.code(128)), (0x55, 0xd5));
    }
}
