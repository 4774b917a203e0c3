//! IPv6 addresses: a window of some bits behind those that most networks share, and lists behind it.
//!
//! Networks that people name lie close together: within one provider's, one site's. By their first 16 bits they are all
//! the same; so the root is by bits that tell them apart, where the bits before are what most have in common.
//!
//! ```text
//!   0              L        L + bits                            127
//! +----------------+------------+---------------------------------+
//! | base, by mask  |   window   |  by a leaf's list, if need be   |
//! +----------------+------------+---------------------------------+
//! ```
//!
//! An address whose first L bits are not the base's is *outside*, and found in one list of all that is outside. L is what
//! leaves the least to be searched. The window lies in one half of the address, because that is a number to a
//! program in the kernel, and all of the address is not.

use super::layout::{REFERENCE_OFFSET, ROOT6_BITS_MAX, window};
use super::sweep::Interval;

/// Smallest root. Above it, it has four to eight references for a boundary, up to its largest.
const ROOT_BITS_MIN: u32 = 4;

/// Where the window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    /// Bits before it.
    before: u32,
    bits: u32,
    base: u128,
}

/// Writes what finds an address, and returns the reference to it.
pub(super) fn write(words: &mut Vec<u32>, intervals: &[Interval]) -> u32 {
    if let &[(_, row)] = intervals {
        return row.into();
    }
    let window = Window::best(intervals);
    let offset = words.len();
    words.extend(words_of(window.mask()));
    words.extend(words_of(window.base));
    words.push(u32::from(window.before >= 64));
    words.push(window.behind() % 64);
    words.push((1 << window.bits) - 1);
    let (before, rest) = split_at(intervals, |start| start < window.base);
    // What is outside comes before what is inside, and behind it.
    let (inside, behind) = split_at(rest, |start| start & window.mask() == window.base);
    let row_at = |intervals: &[Interval], before: u16| intervals.last().map_or(before, |i| i.1);
    let mut row = row_at(before, 0);
    words.push(0);
    let root = words.len();
    words.resize(root + (1 << window.bits), 0);
    let mut rest = inside;
    for slot in 0..1usize << window.bits {
        let start = window.start_of(slot as u128);
        let (of_slot, next) = split_at(rest, |at| window.slot_of(at) == slot as u128);
        rest = next;
        words[root + slot] = match *of_slot {
            [] => u32::from(row),
            [(first, only)] if first == start => only.into(),
            _ => write_leaf(words, start, row, of_slot),
        };
        row = row_at(of_slot, row);
    }
    let mut outside = before.to_vec();
    if let Some(end) = window.end() {
        if behind.first().is_none_or(|&(start, _)| start != end) {
            outside.push((end, row));
        }
        outside.extend(behind);
    }
    words[offset + window::OUTSIDE] = match outside[..] {
        // All is inside.
        [] => 0,
        [(_, only)] => only.into(),
        _ => write_leaf(words, 0, 0, &outside),
    };
    REFERENCE_OFFSET | offset as u32
}

fn split_at(intervals: &[Interval], holds: impl Fn(u128) -> bool) -> (&[Interval], &[Interval]) {
    intervals.split_at(intervals.partition_point(|&(start, _)| holds(start)))
}

/// `row`: of the addresses from `start` to the first of them.
fn write_leaf(words: &mut Vec<u32>, start: u128, row: u16, inside: &[Interval]) -> u32 {
    let offset = words.len();
    let first = (inside[0].0 != start).then_some((start, row));
    let all = first.iter().chain(inside);
    words.push(all.clone().count() as u32);
    for &(start, row) in all {
        words.extend(words_of(start));
        words.push(row.into());
    }
    REFERENCE_OFFSET | offset as u32
}

/// The first word first.
fn words_of(address: u128) -> [u32; 4] {
    [96, 64, 32, 0].map(|shift| (address >> shift) as u32)
}

impl Window {
    /// That in which the lists are shortest: by the squares of their lengths, as frames go where the networks are.
    fn best(intervals: &[Interval]) -> Window {
        // The first begins where all addresses do, and tells nothing apart.
        let starts: Vec<u128> = intervals[1..].iter().map(|&(start, _)| start).collect();
        let count = starts.len() as u32;
        let bits = (count.ilog2() + 3).clamp(ROOT_BITS_MIN, ROOT6_BITS_MAX);
        let in_a_half = (0..=64 - bits).chain(64..=128 - bits);
        let windows = in_a_half.map(|before| Window::behind_most(&starts, before, bits));
        let best = windows.min_by_key(|window| window.cost(&starts));
        best.expect("there are windows")
    }

    /// That whose base most of `starts` have.
    fn behind_most(starts: &[u128], before: u32, bits: u32) -> Window {
        let mut window = Window {
            before,
            bits,
            base: 0,
        };
        let mask = window.mask();
        let alike = starts.chunk_by(|a, b| a & mask == b & mask);
        let most = alike
            .max_by_key(|alike| alike.len())
            .expect("there are some");
        window.base = most[0] & mask;
        window
    }

    fn cost(&self, starts: &[u128]) -> u64 {
        let square = |count: usize| (count as u64).pow(2);
        let first = starts.partition_point(|&start| start < self.base);
        let inside = &starts[first..];
        let inside = &inside[..inside.partition_point(|at| at & self.mask() == self.base)];
        let slots = inside.chunk_by(|a, b| self.slot_of(*a) == self.slot_of(*b));
        let is_within = |at: &&u128| self.start_of(self.slot_of(**at)) != **at;
        let within = slots.map(|slot| square(slot.iter().filter(is_within).count()));
        within.sum::<u64>() + square(starts.len() - inside.len())
    }

    /// Bits behind it.
    fn behind(&self) -> u32 {
        128 - self.before - self.bits
    }

    fn mask(&self) -> u128 {
        u128::MAX.checked_shl(128 - self.before).unwrap_or(0)
    }

    fn slot_of(&self, address: u128) -> u128 {
        address >> self.behind() & ((1 << self.bits) - 1)
    }

    fn start_of(&self, slot: u128) -> u128 {
        self.base | slot << self.behind()
    }

    /// The first address behind all that have the base.
    fn end(&self) -> Option<u128> {
        (self.base | !self.mask()).checked_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One /64 of each network, and the rest.
    fn networks(addresses: impl Iterator<Item = u128>) -> Vec<Interval> {
        let pairs = addresses.flat_map(|at| [(at, 1), (at + (1 << 64), 0)]);
        [(0, 0)].into_iter().chain(pairs).collect()
    }

    #[test]
    fn the_window_lies_where_the_networks_differ() {
        const SITE: u128 = 0x2001_0db8 << 96;
        // Two thousand /64, four bits apart: the last bits that are shared are before their numbers.
        let window = Window::best(&networks((0..2000).map(|n| SITE | n << 68)));
        assert_eq!(window.cost(&[]), 0);
        assert!(window.before >= 32, "{window:?}");
        assert_eq!(window.base, SITE & window.mask());
        let far = networks([0x2000 << 112, 0xfd00 << 112].into_iter());
        assert!(Window::best(&far).before < 8);
    }

    #[test]
    fn ten_thousand_networks_of_a_site_are_searched_in_a_step_or_two() {
        let intervals = networks((0..10_000).map(|n| 0x2001_0db8 << 96 | n << 66));
        let starts: Vec<u128> = intervals[1..].iter().map(|i| i.0).collect();
        let window = Window::best(&intervals);
        assert!(
            window.cost(&starts) <= 2 * starts.len() as u64,
            "{window:?}"
        );
    }
}
