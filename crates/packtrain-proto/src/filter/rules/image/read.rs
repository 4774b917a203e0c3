//! Reads an image as a program in the kernel does: loads from one array, and loops with an end that is known before.

use super::dimension::{Dimension, Shape, Value};
use super::layout::*;
use super::{IMAGE_WORDS_MAX, Image};
use crate::filter::rules::facts::RuleFacts;
use crate::filter::rules::model::Decision;

/// The entries that match a frame, a bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row([u64; ROW_WORDS_MAX]);

/// What an entry stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The rule's place.
    pub rule: usize,
    pub verdict: EntryVerdict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryVerdict {
    Allow,
    Deny,
    /// Which of the image's limits.
    Limit(usize),
}

/// A limit as an image has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitWords {
    pub per_second: u64,
    pub burst: u64,
    pub in_bytes: bool,
    pub per_source: bool,
}

impl Row {
    /// The entries, the first first.
    pub fn entries(&self) -> impl Iterator<Item = usize> {
        let mut row = *self;
        core::iter::from_fn(move || {
            let word = row.0.iter().position(|&bits| bits != 0)?;
            let bit = row.0[word].trailing_zeros() as usize;
            row.0[word] &= row.0[word] - 1;
            Some(word * 64 + bit)
        })
    }

    pub fn first(&self) -> Option<usize> {
        self.entries().next()
    }
}

impl Image {
    /// The AND of the rows that a frame has in the dimensions that are in use.
    pub fn matching_row(&self, facts: &RuleFacts) -> Row {
        let mut row = Row([0; ROW_WORDS_MAX]);
        let row_words = self.word(header::ROW_WORDS) as usize;
        self.load(&mut row, 0, row_words);
        for dimension in Dimension::ALL {
            if self.word(header::DIMENSIONS) >> dimension as u32 & 1 == 0 {
                continue;
            }
            let number = self.row_number(dimension, dimension.value(facts));
            let mut of_dimension = Row([0; ROW_WORDS_MAX]);
            self.load(&mut of_dimension, number, row_words);
            for (bits, other) in row.0.iter_mut().zip(of_dimension.0) {
                *bits &= other;
            }
        }
        row
    }

    /// The places of the rules that match, in order.
    pub fn matching(&self, facts: &RuleFacts) -> impl Iterator<Item = usize> {
        let row = self.matching_row(facts);
        let entries: Vec<usize> = row.entries().collect();
        entries.into_iter().map(|entry| self.entry(entry).rule)
    }

    pub fn first_match(&self, facts: &RuleFacts) -> Option<usize> {
        let entry = self.matching_row(facts).first()?;
        Some(self.entry(entry).rule)
    }

    /// As [`RuleSet::decide`](crate::filter::rules::RuleSet::decide), and as the program does: it goes from bit to bit.
    /// `is_within`: of the rule at this place, which has this limit of the image's.
    pub fn decide(
        &self,
        facts: &RuleFacts,
        mut is_within: impl FnMut(usize, usize) -> bool,
    ) -> Decision {
        for entry in self.matching_row(facts).entries() {
            let Entry { rule, verdict } = self.entry(entry);
            match verdict {
                EntryVerdict::Allow => return Decision::Allow(rule),
                EntryVerdict::Deny => return Decision::Deny(rule),
                EntryVerdict::Limit(limit) if !is_within(rule, limit) => {
                    return Decision::Exceeds(rule);
                }
                EntryVerdict::Limit(_) => {}
            }
        }
        Decision::Rest
    }

    pub fn entries(&self) -> usize {
        self.word(header::ENTRIES) as usize
    }

    pub fn entry(&self, entry: usize) -> Entry {
        assert!(entry < self.entries());
        let word = self.word(self.word(header::VERDICTS) as usize + entry);
        Entry {
            rule: (word & ((1 << VERDICT_SHIFT) - 1)) as usize,
            verdict: match word >> VERDICT_SHIFT & 3 {
                VERDICT_ALLOW => EntryVerdict::Allow,
                VERDICT_DENY => EntryVerdict::Deny,
                _ => EntryVerdict::Limit((word >> VERDICT_LIMIT_SHIFT) as usize),
            },
        }
    }

    pub fn limits(&self) -> usize {
        self.word(header::LIMIT_COUNT) as usize
    }

    pub fn limit(&self, limit: usize) -> LimitWords {
        assert!(limit < self.limits());
        let at = self.word(header::LIMITS) as usize + limit * LIMIT_WORDS;
        LimitWords {
            per_second: self.wide(at),
            burst: self.wide(at + 2),
            in_bytes: self.word(at + 4) == 1,
            per_source: self.word(at + 5) == 1,
        }
    }

    fn word(&self, at: usize) -> u32 {
        self.words[at & (IMAGE_WORDS_MAX - 1)]
    }

    /// 64 bits, the low half first.
    fn wide(&self, at: usize) -> u64 {
        u64::from(self.word(at)) | u64::from(self.word(at + 1)) << 32
    }

    fn load(&self, row: &mut Row, number: u32, row_words: usize) {
        let at = self.word(header::ROWS) as usize + number as usize * row_words * 2;
        for (i, bits) in row.0.iter_mut().enumerate().take(row_words) {
            *bits = self.wide(at + i * 2);
        }
    }

    fn row_number(&self, dimension: Dimension, value: Value) -> u32 {
        let at = header::DIMENSION + dimension as usize * DIMENSION_WORDS;
        let offset = self.word(at + place::OFFSET) as usize;
        match (value, dimension.shape()) {
            (Value::Absent, _) => self.word(at + place::ABSENT),
            (Value::V4(address), _) => self.row_of_v4(self.word(at + place::V4), address),
            (Value::V6(address), _) => {
                let halves = [(address >> 64) as u64, address as u64];
                self.row_of_v6(self.word(at + place::V6), halves)
            }
            (Value::Number(number), Shape::Table { .. }) => {
                let index = number as usize & self.word(at + place::MASK) as usize;
                self.word(offset + index / 2) >> (16 * (index % 2)) & 0xffff
            }
            (Value::Number(number), _) => self.row_of_sorted(offset, number),
        }
    }

    fn row_of_sorted(&self, list: usize, number: u64) -> u32 {
        let at = |place: usize| list + 1 + place * SORTED_WORDS;
        let key = |place: usize| {
            let high = self.word(at(place) + 1) >> 16;
            u64::from(high) << 32 | u64::from(self.word(at(place)))
        };
        let count = self.word(list) as usize;
        let place = last_not_above(count, STEPS, |place| key(place) > number);
        self.word(at(place) + 1) & 0xffff
    }

    fn row_of_v4(&self, reference: u32, address: u32) -> u32 {
        let Some(root) = offset_of(reference) else {
            return reference;
        };
        let reference = self.word(root + (address >> 16) as usize);
        let Some(leaf) = offset_of(reference) else {
            return reference;
        };
        let count = self.word(leaf) as usize;
        let low = address & 0xffff;
        let place = last_not_above(count, STEPS_16, |i| self.word(leaf + 1 + i) >> 16 > low);
        self.word(leaf + 1 + place) & 0xffff
    }

    /// The halves of an address, the first first: no number of the kernel's has 128 bits.
    fn row_of_v6(&self, reference: u32, address: [u64; 2]) -> u32 {
        let mut reference = reference;
        for _ in 0..WINDOWS_MAX {
            if reference & REFERENCE_WINDOW == 0 {
                break;
            }
            reference = self.behind_window(reference, address);
        }
        let Some(leaf) = offset_of(reference) else {
            return reference;
        };
        // The first has no address before it.
        let row = |place: usize| leaf + 1 + place * LEAF6_WORDS;
        let count = self.word(leaf) as usize;
        let is_above = |place| self.halves_at(row(place) - 4) > address;
        self.word(row(last_not_above(count, STEPS, is_above)))
    }

    fn behind_window(&self, reference: u32, address: [u64; 2]) -> u32 {
        let at = (reference & !(REFERENCE_OFFSET | REFERENCE_WINDOW)) as usize;
        let mask = self.halves_at(at + window::MASK);
        let base = self.halves_at(at + window::BASE);
        let differs = (address[0] & mask[0] ^ base[0]) | (address[1] & mask[1] ^ base[1]);
        match differs {
            0 => {
                let half = address[self.word(at + window::HALF) as usize & 1];
                let index = half >> self.word(at + window::SHIFT);
                let index = index as usize & self.word(at + window::INDEX_MASK) as usize;
                self.word(at + window::ROOT + index)
            }
            _ => self.word(at + window::OUTSIDE),
        }
    }

    /// Of four words, the first first.
    fn halves_at(&self, at: usize) -> [u64; 2] {
        [at, at + 2].map(|at| u64::from(self.word(at)) << 32 | u64::from(self.word(at + 1)))
    }
}

/// Where a reference leads that is no row.
fn offset_of(reference: u32) -> Option<usize> {
    let is_offset = reference & REFERENCE_OFFSET != 0;
    is_offset.then_some((reference & !REFERENCE_OFFSET) as usize)
}

/// The last place in a sorted list of `count` that is not above; the first never is.
fn last_not_above(count: usize, steps: u32, is_above: impl Fn(usize) -> bool) -> usize {
    let mut low = 0;
    let mut len = count;
    for _ in 0..steps {
        let half = len / 2;
        if half > 0 && !is_above(low + half) {
            low += half;
        }
        len -= half;
    }
    low
}
