//! Tables of counters, found by what was before a bit.

use super::chance::Counter;

const PLACES: usize = 4096;

pub fn hash(a: u32, b: u32) -> u32 {
    let mut m = (a ^ 0x9e37_79b9).wrapping_mul(0x2c1b_3c6d).wrapping_add(b);
    m = m.wrapping_mul(0x297a_2d39);
    m ^= m >> 15;
    m = m.wrapping_mul(0x85eb_ca6b);
    m ^ m >> 13
}

#[derive(Clone, Debug)]
struct Place {
    /// 0: nobody's.
    tag: u16,
    /// Number 0 is not used.
    counters: [Counter; 16],
}

impl Place {
    fn new(tag: u16) -> Place {
        Place {
            tag,
            counters: [Counter::NEW; 16],
        }
    }

    /// Nobody's has seen less than all others.
    fn seen(&self) -> i32 {
        match self.tag {
            0 => -1,
            _ => i32::from(self.counters[1].seen()),
        }
    }
}

#[derive(Debug)]
pub struct Table {
    places: Vec<Place>,
    /// Where the counters for the next four bits are.
    current: usize,
}

impl Table {
    pub fn new() -> Table {
        Table {
            places: vec![Place::new(0); PLACES],
            current: 0,
        }
    }

    pub fn find(&mut self, h: u32) {
        let tag = (h & 65535) as u16 | 1;
        let first = (h >> 20) as usize;
        let second = first ^ 1;
        let places = &mut self.places;
        self.current = if places[first].tag == tag {
            first
        } else if places[second].tag == tag {
            second
        } else {
            let is_second = places[second].seen() < places[first].seen();
            let taken = if is_second { second } else { first };
            places[taken] = Place::new(tag);
            taken
        };
    }

    pub fn counter(&mut self, number: usize) -> &mut Counter {
        &mut self.places[self.current].counters[number]
    }
}
