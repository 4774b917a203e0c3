//! Which bytes of a stream one has: ranges that neither touch nor overlap.

use core::ops::Range;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    /// Where a range begins, and where it ends.
    ranges: BTreeMap<u64, u64>,
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
        self.ranges.iter().rev().map(|(&start, &end)| start..end)
    }

    /// The one that this byte is in.
    pub fn containing(&self, byte: u64) -> Option<Range<u64>> {
        let (&start, &end) = self.ranges.range(..=byte).next_back()?;
        (byte < end).then_some(start..end)
    }

    /// Adds a range, and says of which parts of it nothing was known.
    pub fn insert(&mut self, range: Range<u64>) -> Vec<Range<u64>> {
        let mut new = Vec::new();
        if range.is_empty() {
            return new;
        }
        let (mut start, mut end) = (range.start, range.end);
        let mut known_to = range.start;
        // All that touch it: of those that begin before it only the last can.
        let before = self.ranges.range(..range.start).next_back();
        let first = match before {
            Some((&start, &end)) if end >= range.start => start,
            _ => range.start,
        };
        let touching = self.ranges.range(first..=range.end);
        let touching: Vec<(u64, u64)> = touching.map(|(&start, &end)| (start, end)).collect();
        for (known_start, known_end) in touching {
            if known_start > known_to {
                new.push(known_to..known_start.min(range.end));
            }
            known_to = known_to.max(known_end);
            start = start.min(known_start);
            end = end.max(known_end);
            self.ranges.remove(&known_start);
        }
        if known_to < range.end {
            new.push(known_to..range.end);
        }
        self.ranges.insert(start, end);
        self.bytes += new.iter().map(|part| part.end - part.start).sum::<u64>();
        new
    }

    /// Forgets everything before this byte.
    pub fn remove_below(&mut self, byte: u64) {
        while let Some(entry) = self.ranges.first_entry() {
            let (start, end) = (*entry.key(), *entry.get());
            if start >= byte {
                return;
            }
            entry.remove();
            self.bytes -= end.min(byte) - start;
            if end > byte {
                self.ranges.insert(byte, end);
                return;
            }
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
                    let new = ranges.insert(start..start + len);
                    let is_new: Vec<u64> =
                        (start..start + len).filter(|&byte| bytes.insert(byte)).collect();
                    prop_assert_eq!(new.into_iter().flatten().collect::<Vec<_>>(), is_new);
                }
                prop_assert_eq!(ranges.bytes(), bytes.len() as u64);
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
}
