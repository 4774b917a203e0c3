//! Random numbers of the shapes that traffic has.

use packtrain_proto::random::Random;

#[derive(Clone, Debug)]
pub struct Draws(Random);

impl Draws {
    /// Seeds that are neighbours give rows that are not.
    pub fn new(seed: u64) -> Draws {
        let mut random = Random::new(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        for _ in 0..8 {
            random.up_to(u64::MAX);
        }
        Draws(random)
    }

    pub fn word(&mut self) -> u64 {
        self.0.up_to(u64::MAX)
    }

    /// Of 0 to `count` − 1.
    pub fn below(&mut self, count: u64) -> u64 {
        self.0.up_to(count - 1)
    }

    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// From 0 up to 1, without 1.
    pub fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub fn is(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Of mean 0 and deviation 1: a sum of twelve uniform ones is near enough.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    pub fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.index(of.len())]
    }

    /// An index of which the first are drawn most: as often as 1 / (1 + index).
    pub fn favoured(&mut self, len: usize) -> usize {
        ((len as f64 + 1.0).powf(self.unit()) - 1.0) as usize % len
    }

    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.word() as u8)
    }

    /// So many characters of an alphabet.
    pub fn letters(&mut self, alphabet: &[u8], len: usize) -> String {
        let mut letter = || char::from(alphabet[self.index(alphabet.len())]);
        (0..len).map(|_| letter()).collect()
    }

    pub fn hex(&mut self, len: usize) -> String {
        self.letters(b"0123456789abcdef", len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(of: impl Fn(&mut Draws) -> f64) -> f64 {
        let mut draws = Draws::new(7);
        (0..20_000).map(|_| of(&mut draws)).sum::<f64>() / 20_000.0
    }

    #[test]
    fn the_shapes_are_those_that_they_are_called_by() {
        assert!((mean(Draws::unit) - 0.5).abs() < 0.01);
        assert!(mean(Draws::normal).abs() < 0.03);
        assert!((mean(|draws| draws.normal().powi(2)) - 1.0).abs() < 0.03);
        assert!((mean(|draws| draws.exponential(3.0)) - 3.0).abs() < 0.1);
        // ln(2) / ln(11) of ten.
        let first = mean(|draws| f64::from(draws.favoured(10) == 0));
        assert!((first - 0.289).abs() < 0.02, "{first}");
    }

    #[test]
    fn a_seed_gives_the_same_row_again_and_its_neighbour_another() {
        let row = |seed| Draws::new(seed).hex(32);
        assert_eq!(row(1), row(1));
        assert_ne!(row(1), row(2));
        assert_ne!(row(0), row(1));
    }
}
