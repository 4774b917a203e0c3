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
//! An address whose first L bits are not the base's is *outside*, and found among all that are. Behind each value of a
//! window, and outside, there is one row, a short list, or the next window for a longer one: networks of some providers lie
//! together in some places. L is what leaves the least to be searched. A window lies in one half of the address, because
//! that is a number to a program in the kernel, and all of the address is not.

use super::layout::{REFERENCE_OFFSET, REFERENCE_WINDOW, ROOT6_BITS_MAX, window};
use super::sweep::Interval;

/// Longest list that no window is worth: it is searched in three steps.
const LIST_MAX: usize = 8;
/// Smallest root. Above it, it has two to four references for a boundary, up to its largest.
const ROOT_BITS_MIN: u32 = 4;

/// Where the window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    /// Bits before it.
    before: u32,
    bits: u32,
    base: u128,
}

/// Writes what finds an address, and returns the reference to it. `list`: its first is not above what is looked for.
/// `windows`: how many there may be, one behind the other.
pub(super) fn write(words: &mut Vec<u32>, list: &[Interval], windows: u32) -> u32 {
    if let &[(_, row)] = list {
        return row.into();
    }
    if windows > 0 && list.len() > LIST_MAX {
        return write_window(words, list, &Window::best(list), windows - 1);
    }
    let offset = words.len();
    // Where the first begins, nobody asks.
    words.extend([list.len() as u32, list[0].1.into()]);
    for &(start, row) in &list[1..] {
        words.extend(words_of(start));
        words.push(row.into());
    }
    REFERENCE_OFFSET | offset as u32
}

fn write_window(words: &mut Vec<u32>, list: &[Interval], window: &Window, windows: u32) -> u32 {
    let offset = words.len();
    words.extend(words_of(window.mask()));
    words.extend(words_of(window.base));
    words.push(u32::from(window.before >= 64));
    words.push(window.behind() % 64);
    words.push((1 << window.bits) - 1);
    words.push(0);
    words.resize(words.len() + (1 << window.bits), 0);
    let (before, rest) = split_at(list, |start| start < window.base);
    let (inside, behind) = split_at(rest, |start| start & window.mask() == window.base);
    // Where the list begins inside, nobody looks at what is before.
    let mut row = before.last().map_or(0, |&(_, row)| row);
    let mut rest = inside;
    for slot in 0..1usize << window.bits {
        let start = window.start_of(slot as u128);
        let (of_slot, next) = split_at(rest, |at| window.slot_of(at) == slot as u128);
        rest = next;
        let begins_before = of_slot.first().is_none_or(|&(first, _)| first != start);
        let mut list: Vec<Interval> = Vec::new();
        list.extend(begins_before.then_some((start, row)));
        list.extend(of_slot);
        row = list[list.len() - 1].1;
        words[offset + window::ROOT + slot] = write(words, &list, windows);
    }
    let mut outside = before.to_vec();
    if let Some(end) = window.end() {
        if behind.first().is_none_or(|&(start, _)| start != end) {
            outside.push((end, row));
        }
        outside.extend(behind);
    }
    // Empty: all is inside.
    if !outside.is_empty() {
        words[offset + window::OUTSIDE] = write(words, &outside, windows);
    }
    REFERENCE_OFFSET | REFERENCE_WINDOW | offset as u32
}

fn split_at(list: &[Interval], holds: impl Fn(u128) -> bool) -> (&[Interval], &[Interval]) {
    list.split_at(list.partition_point(|&(start, _)| holds(start)))
}

fn square(count: usize) -> u64 {
    (count as u64).pow(2)
}

/// The first word first.
fn words_of(address: u128) -> [u32; 4] {
    [96, 64, 32, 0].map(|shift| (address >> shift) as u32)
}

impl Window {
    /// That in which the lists are shortest.
    fn best(list: &[Interval]) -> Window {
        // The first begins where all that is looked for does, and tells nothing apart.
        let starts: Vec<u128> = list[1..].iter().map(|&(start, _)| start).collect();
        let bits = (starts.len().ilog2() + 2).clamp(ROOT_BITS_MIN, ROOT6_BITS_MAX);
        let in_a_half = (0..=64 - bits).chain(64..=128 - bits);
        let windows = in_a_half.map(|before| Window::behind_most(&starts, before, bits));
        let best = windows.min_by_key(|window| window.cost(&starts));
        best.expect("some windows")
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

    /// The squares of the lists' lengths, as frames go where the networks are.
    fn cost(&self, starts: &[u128]) -> u64 {
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
    use crate::filter::rules::image::WINDOWS_MAX;

    const SITE: u128 = 0x2001_0db8 << 96;

    /// One /64 of each network, and the rest.
    fn networks(addresses: impl Iterator<Item = u128>) -> Vec<Interval> {
        let pairs = addresses.flat_map(|at| [(at, 1), (at + (1 << 64), 0)]);
        [(0, 0)].into_iter().chain(pairs).collect()
    }

    #[test]
    fn the_window_lies_where_the_networks_differ() {
        let best = |list: Vec<Interval>| {
            let window = Window::best(&list);
            let starts: Vec<u128> = list[1..].iter().map(|&(start, _)| start).collect();
            (window.before, window.base, window.cost(&starts))
        };
        // Two thousand of one site, eight apart: each has a slot, with its end in it.
        let of_site = networks((0..2000).map(|n| SITE | n << 67));
        assert_eq!(best(of_site), (48, SITE, 2000));
        // Sixty-four all over the addresses.
        let of_all = networks((0..64).map(|n| n << 122));
        assert_eq!(best(of_all), (0, 0, 64));
    }

    /// Longest list that is searched for any address, and how many windows are before it.
    fn deepest(words: &[u32], reference: u32) -> (u32, u32) {
        let at = (reference & !(REFERENCE_OFFSET | REFERENCE_WINDOW)) as usize;
        if reference & REFERENCE_OFFSET == 0 {
            return (1, 0);
        }
        if reference & REFERENCE_WINDOW == 0 {
            return (words[at], 0);
        }
        let root = words[at + window::INDEX_MASK] as usize + 1;
        let references = &words[at + window::OUTSIDE..at + window::ROOT + root];
        let below = references.iter().map(|&next| deepest(words, next));
        let (list, windows) = below.fold((0, 0), |a, b| (a.0.max(b.0), a.1.max(b.1)));
        (list, windows + 1)
    }

    #[test]
    fn ten_thousand_networks_are_searched_as_fast_as_ten() {
        for count in [10, 100, 1000, 10_000] {
            // One after the other within a site; and at random within the space of twelve providers.
            let site: Vec<u128> = (0..count).map(|n| SITE | n << 66).collect();
            let mut random = crate::random::Random::new(count as u64);
            let mut providers: Vec<u128> = (0..count)
                .map(|_| {
                    let number = u128::from(random.up_to(u64::MAX));
                    (0x2a00 + number % 12) << 112 | (number >> 4 & 0xffff_ffff) << 80
                })
                .collect();
            providers.sort();
            providers.dedup();
            for networks_of in [site, providers] {
                let mut words = vec![0; 80];
                let reference = write(&mut words, &networks(networks_of.into_iter()), WINDOWS_MAX);
                let (list, windows) = deepest(&words, reference);
                assert!(list <= 16, "{count}: {list}");
                assert!(windows <= WINDOWS_MAX);
            }
        }
    }
}
