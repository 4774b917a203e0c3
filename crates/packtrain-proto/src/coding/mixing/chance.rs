//! The chance of a bit in one place, learned from those that came there: fast at first, and then slower.

use super::logistic::{CHANCE_MAX, Stretch};

/// What is new weighs 65536 / (n + 1.5) where n have been seen.
const RATES: [i32; 16] = [
    43690, 26214, 18724, 14563, 11915, 10082, 8738, 7710, 6898, 6241, 5698, 5242, 4854, 4519, 4228,
    3971,
];
/// Beyond as many it is not counted: what was long ago weighs less.
const SEEN_MAX: u16 = 12;

/// Twelve bits of chance that it is a 1, and how many were seen in four.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chance(u16);

/// Nothing has been seen.
pub const NEW: Chance = Chance(2048 << 4);

impl Chance {
    pub fn of_4096(self) -> i32 {
        i32::from(self.0 >> 4)
    }

    pub fn seen(self) -> u16 {
        self.0 & 15
    }

    /// On the scale on which chances are added up. Who has seen nothing has no say.
    #[inline]
    pub fn stretched(self, stretch: &Stretch) -> i32 {
        match self.seen() {
            0 => 0,
            _ => stretch.of(self.of_4096()),
        }
    }

    #[inline]
    pub fn learn(&mut self, bit: bool) {
        let (chance, seen) = (self.of_4096(), self.seen());
        let wanted = if bit { 4095 } else { 0 };
        let moved = chance + (((wanted - chance) * RATES[usize::from(seen)]) >> 16);
        let seen = (seen + 1).min(SEEN_MAX);
        self.0 = (moved.clamp(1, CHANCE_MAX) as u16) << 4 | seen;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_learns_what_comes_and_is_never_sure() {
        let mut chance = NEW;
        chance.learn(true);
        assert!(chance.of_4096() > 3000);
        for _ in 0..1000 {
            chance.learn(true);
        }
        assert!((4000..=CHANCE_MAX).contains(&chance.of_4096()));
        for _ in 0..1000 {
            chance.learn(false);
        }
        assert!((1..100).contains(&chance.of_4096()));
    }

    #[test]
    fn rates_are_as_said() {
        for (seen, rate) in RATES.into_iter().enumerate() {
            assert_eq!(rate, (65_536.0 / (seen as f64 + 1.5)) as i32);
        }
    }
}
