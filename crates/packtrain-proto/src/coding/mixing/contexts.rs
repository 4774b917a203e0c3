//! What came after the same bytes before, for one kind of "the same": chances found by a hash.

use super::chance::{Chance, NEW};

/// Half a byte is told by up to 15 bits' chances, numbered from 1 as the nodes of a tree.
const NODES: usize = 16;
const PLACES: usize = 4096;

#[derive(Debug)]
pub struct Contexts {
    /// Whose a place is; 0: nobody's.
    tags: Box<[u16; PLACES]>,
    places: Box<[[Chance; NODES]; PLACES]>,
}

impl Default for Contexts {
    fn default() -> Contexts {
        Contexts {
            tags: Box::new([0; PLACES]),
            places: vec![[NEW; NODES]; PLACES]
                .try_into()
                .expect("it has as many"),
        }
    }
}

impl Contexts {
    pub fn forget(&mut self) {
        self.tags.fill(0);
    }

    /// The place of this hash. Of the two that it may have, the one that has seen less is given up for it.
    #[inline]
    pub fn find(&mut self, hash: u32) -> usize {
        let (tag, one) = (hash as u16 | 1, (hash >> 20) as usize);
        let other = one ^ 1;
        if self.tags[one] == tag {
            return one;
        }
        if self.tags[other] == tag {
            return other;
        }
        let seen = |place: usize| match self.tags[place] {
            0 => 0,
            _ => 1 + self.places[place][1].seen(),
        };
        let place = if seen(one) <= seen(other) { one } else { other };
        self.tags[place] = tag;
        self.places[place] = [NEW; NODES];
        place
    }

    #[inline]
    pub fn chance(&self, place: usize, node: usize) -> Chance {
        self.places[place % PLACES][node % NODES]
    }

    #[inline]
    pub fn learn(&mut self, place: usize, node: usize, bit: bool) {
        self.places[place % PLACES][node % NODES].learn(bit);
    }
}

/// Mixes two words into one.
#[inline]
pub fn hash(a: u32, b: u32) -> u32 {
    let mut mixed = (a ^ 0x9e37_79b9)
        .wrapping_mul(0x2c1b_3c6d)
        .wrapping_add(b)
        .wrapping_mul(0x297a_2d39);
    mixed ^= mixed >> 15;
    mixed = mixed.wrapping_mul(0x85eb_ca6b);
    mixed ^ mixed >> 13
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_found_again_and_the_one_that_saw_less_goes() {
        let mut contexts = Contexts::default();
        // The same two places.
        let [a, b, c] = [0x0010_0001, 0x0010_0003, 0x0010_0005];
        let place = contexts.find(a);
        contexts.learn(place, 1, true);
        let other = contexts.find(b);
        assert_ne!(place, other);
        assert_eq!(contexts.find(a), place);
        assert_eq!(contexts.find(c), other, "b has seen nothing");
        assert!(contexts.chance(place, 1).of_4096() > 2048);
        contexts.forget();
        let place = contexts.find(a);
        assert_eq!(contexts.chance(place, 1), NEW);
    }
}
