//! Which frames came in by a member link and may have gone straight to `pt0`.
//!
//! They are known again by what no address says: their length, and their first bytes behind the addresses,
//! which are all that is changed on the way. Times alone would not do: between two hosts of one machine a
//! TCP segment is stamped anew by each tap. Each witness is for one frame, so of equal frames as many are
//! found direct as came so, whatever they are.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

/// So much of a frame is compared: the headers of all that has some.
pub const WITNESS_BYTES: usize = 128;
const ADDRESSES_BYTES: usize = 12;

/// Longest way from the link's tap to `pt0`'s. Later, it is of a frame that `pt0` never showed.
const AGE_NANOS_MAX: u64 = 1_000_000_000;
/// Most kinds of frames that are remembered, twice.
const YOUNG_MAX: usize = 1 << 15;
/// Most of one kind.
const EQUAL_MAX: usize = 1 << 12;

/// Length, and a hash of the bytes.
type Kind = (usize, u64);
/// When each of a kind came.
type Times = VecDeque<u64>;

/// A witness that is not asked for within so many others is forgotten.
#[derive(Debug, Default)]
pub struct Witnesses {
    young: HashMap<Kind, Times>,
    old: HashMap<Kind, Times>,
}

impl Witnesses {
    /// A frame of `len` bytes came, and begins with these.
    pub fn add(&mut self, unix_nanos: u64, bytes: &[u8], len: usize) {
        if self.young.len() >= YOUNG_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        let times = self.young.entry(kind(bytes, len)).or_default();
        if times.len() >= EQUAL_MAX {
            times.pop_front();
        }
        times.push_back(unix_nanos);
    }

    /// Whether there is one of this frame, which is used up by it.
    pub fn take(&mut self, unix_nanos: u64, bytes: &[u8], len: usize) -> bool {
        let kind = kind(bytes, len);
        [&mut self.old, &mut self.young]
            .into_iter()
            .any(|of| take(of, kind, unix_nanos))
    }
}

fn kind(bytes: &[u8], len: usize) -> Kind {
    let end = bytes.len().min(WITNESS_BYTES);
    let mut hasher = DefaultHasher::new();
    bytes.get(ADDRESSES_BYTES..end).hash(&mut hasher);
    (len, hasher.finish())
}

fn take(of: &mut HashMap<Kind, Times>, kind: Kind, unix_nanos: u64) -> bool {
    let Some(times) = of.get_mut(&kind) else {
        return false;
    };
    while times
        .front()
        .is_some_and(|time| time + AGE_NANOS_MAX < unix_nanos)
    {
        times.pop_front();
    }
    // One that came later is another frame's.
    let found = times.front().is_some_and(|time| *time <= unix_nanos);
    if found {
        times.pop_front();
    }
    if times.is_empty() {
        of.remove(&kind);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Addresses of this byte, and something behind them.
    fn frame(address: u8, payload: u8) -> Vec<u8> {
        [vec![address; 12], vec![payload; 200]].concat()
    }

    #[test]
    fn a_witness_is_of_one_frame_whatever_its_addresses_are() {
        let mut witnesses = Witnesses::default();
        witnesses.add(1000, &frame(2, 7)[..WITNESS_BYTES], 212);
        assert!(!witnesses.take(1000, &frame(4, 8), 212), "other bytes");
        assert!(!witnesses.take(1000, &frame(4, 7), 213), "another length");
        assert!(!witnesses.take(999, &frame(4, 7), 212), "before it");
        assert!(witnesses.take(1400, &frame(4, 7), 212));
        assert!(!witnesses.take(1400, &frame(4, 7), 212), "used up");
    }

    #[test]
    fn of_equal_frames_as_many_are_found_as_came() {
        let mut witnesses = Witnesses::default();
        for time in [10, 20, 30] {
            witnesses.add(time, &frame(2, 7), 212);
        }
        let found = (0..5).filter(|_| witnesses.take(40, &frame(4, 7), 212));
        assert_eq!(found.count(), 3);
        assert!(witnesses.young.is_empty());
    }

    #[test]
    fn those_that_nobody_asks_for_are_forgotten() {
        let mut witnesses = Witnesses::default();
        witnesses.add(0, &frame(2, 7), 212);
        assert!(!witnesses.take(AGE_NANOS_MAX + 1, &frame(4, 7), 212), "old");
        let count = 5 * YOUNG_MAX;
        for len in 0..count {
            witnesses.add(5, &[0; 60], len);
        }
        assert!(witnesses.young.len() + witnesses.old.len() <= 2 * YOUNG_MAX);
        assert!(!witnesses.take(5, &[0; 60], 0));
        assert!((count - YOUNG_MAX..count).all(|len| witnesses.take(5, &[0; 60], len)));
        for _ in 0..2 * EQUAL_MAX {
            witnesses.add(5, &[0; 60], 60);
        }
        assert_eq!(witnesses.young[&kind(&[0; 60], 60)].len(), EQUAL_MAX);
    }
}
