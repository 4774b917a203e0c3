//! Frames that arrive twice: a loop that opened late, a radio that missed an acknowledgement.

use crate::random::Random;

#[derive(Debug)]
pub struct Duplication {
    probability: f64,
    random: Random,
    pub frames_duplicated: u64,
}

impl Duplication {
    pub fn new(probability: f64, random: Random) -> Duplication {
        Duplication {
            probability,
            random,
            frames_duplicated: 0,
        }
    }

    /// How many more copies of the frame go on: mostly 0, at times 1, seldom 2.
    pub fn more_copies(&mut self) -> usize {
        let mut copies = 0;
        while copies < 2 && self.random.chance(self.probability) {
            copies += 1;
        }
        self.frames_duplicated += u64::from(copies > 0);
        copies
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_frames_comes_again_and_is_counted() {
        let mut duplication = Duplication::new(0.1, Random::new(2));
        let copies: Vec<usize> = (0..10_000).map(|_| duplication.more_copies()).collect();
        let twice = copies.iter().filter(|&&n| n > 0).count() as u64;
        assert!((800..1200).contains(&twice), "{twice}");
        assert_eq!(duplication.frames_duplicated, twice);
        assert_eq!(copies.iter().max(), Some(&2));
    }
}
