//! Which bytes of a stream one has: ranges that neither touch nor overlap.
//!
//! Most connections have none most of the time; of those that have some, most grow the last one, begin one behind it,
//! or fill the gap before the first. All of these cost the same however many there are. What is within is found by
//! halves, and moves the shorter side.

use core::ops::Range;
use std::collections::VecDeque;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    /// In order.
    ranges: VecDeque<Range<u64>>,
    bytes: u64,
}

impl Ranges {
    /// How many bytes they have together.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// From the last one to the first.
    pub fn descending(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ranges.iter().rev().cloned()
    }

    /// Behind the last byte.
    pub fn end(&self) -> Option<u64> {
        self.ranges.back().map(|last| last.end)
    }

    /// The one that this byte is in.
    pub fn containing(&self, byte: u64) -> Option<Range<u64>> {
        let range = self.ranges.get(self.first_ending_behind(byte))?;
        (range.start <= byte).then(|| range.clone())
    }

    /// Adds a range, and says how many bytes of it are new.
    pub fn insert(&mut self, range: Range<u64>) -> u64 {
        self.insert_each(range, |_| {})
    }

    /// The same, and names the parts of it of which nothing was known, in order.
    pub fn insert_each(&mut self, range: Range<u64>, mut new: impl FnMut(Range<u64>)) -> u64 {
        if range.is_empty() {
            return 0;
        }
        if self.end().is_none_or(|end| end < range.start) {
            let bytes = range.end - range.start;
            self.bytes += bytes;
            new(range.clone());
            self.ranges.push_back(range);
            return bytes;
        }
        // All that touch it are joined with the first of them.
        let first = self.first_touching(range.start);
        if self.ranges[first].start > range.end {
            let bytes = range.end - range.start;
            self.bytes += bytes;
            new(range.clone());
            self.ranges.insert(first, range);
            return bytes;
        }
        let (mut known_to, mut bytes, mut behind) = (range.start, 0, first);
        let mut add = |part: Range<u64>| {
            if !part.is_empty() {
                bytes += part.end - part.start;
                new(part);
            }
        };
        let start = self.ranges[first].start.min(range.start);
        let mut end = range.end;
        while let Some(known) = self
            .ranges
            .get(behind)
            .filter(|known| known.start <= range.end)
        {
            add(known_to..known.start);
            known_to = known_to.max(known.end);
            end = end.max(known.end);
            behind += 1;
        }
        add(known_to..range.end);
        self.ranges[first] = start..end;
        if behind - first > 1 {
            self.ranges.drain(first + 1..behind);
        }
        self.bytes += bytes;
        bytes
    }

    /// Forgets everything before this byte.
    pub fn remove_below(&mut self, byte: u64) {
        while let Some(first) = self.ranges.front_mut() {
            if first.start >= byte {
                return;
            }
            if first.end > byte {
                self.bytes -= byte - first.start;
                first.start = byte;
                return;
            }
            self.bytes -= first.end - first.start;
            self.ranges.pop_front();
        }
    }

    /// The first one that this byte is in, or that begins behind it.
    fn first_ending_behind(&self, byte: u64) -> usize {
        self.first_touching(byte + 1)
    }

    /// The first one that ends there or later.
    fn first_touching(&self, byte: u64) -> usize {
        let last = self.ranges.len().saturating_sub(1);
        // The usual ones first.
        match (self.ranges.front(), self.ranges.get(last)) {
            (Some(first), _) if first.end >= byte => 0,
            (_, Some(last_one)) if last_one.end < byte => last + 1,
            (_, Some(last_one)) if last_one.start <= byte => last,
            _ => self.ranges.partition_point(|range| range.end < byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_are_what_a_set_of_bytes_would_be(
            steps in prop::collection::vec((0u64..60, 0u64..12, prop::bool::weighted(0.1)), 1..60),
        ) {
            let mut ranges = Ranges::default();
            let mut bytes = std::collections::BTreeSet::new();
            for (start, len, forget) in steps {
                if forget {
                    ranges.remove_below(start);
                    bytes.retain(|&byte| byte >= start);
                } else {
                    let mut new = Vec::new();
                    let count = ranges.insert_each(start..start + len, |part| new.push(part));
                    prop_assert!(new.iter().all(|part| !part.is_empty()));
                    let is_new: Vec<u64> =
                        (start..start + len).filter(|&byte| bytes.insert(byte)).collect();
                    prop_assert_eq!(count, is_new.len() as u64);
                    prop_assert_eq!(new.into_iter().flatten().collect::<Vec<_>>(), is_new);
                }
                prop_assert_eq!(ranges.bytes(), bytes.len() as u64);
                prop_assert_eq!(ranges.end(), bytes.last().map(|last| last + 1));
                let mut held: Vec<_> = ranges.descending().collect();
                held.reverse();
                prop_assert!(held.windows(2).all(|pair| pair[0].end < pair[1].start));
                prop_assert_eq!(ranges.len(), held.len());
                let flat: Vec<u64> = held.into_iter().flatten().collect();
                prop_assert_eq!(flat, bytes.iter().copied().collect::<Vec<_>>());
                for byte in 0..75 {
                    let within = ranges.containing(byte);
                    prop_assert_eq!(within.is_some(), bytes.contains(&byte));
                    prop_assert!(within.is_none_or(|range| range.contains(&byte)));
                }
            }
        }
    }

    #[test]
    fn a_hundred_thousand_ranges_are_begun_filled_and_forgotten_in_no_time() {
        let mut ranges = Ranges::default();
        for n in 0..100_000 {
            ranges.insert(10 * n + 5..10 * n + 10);
        }
        assert_eq!((ranges.len(), ranges.bytes()), (100_000, 500_000));
        for n in 0..100_000 {
            // The gap before the first, and what is in order now is delivered.
            assert_eq!(ranges.insert(10 * n..10 * n + 5), 5);
            ranges.remove_below(10 * n + 10);
        }
        assert!(ranges.is_empty() && ranges.bytes() == 0);
    }
}
