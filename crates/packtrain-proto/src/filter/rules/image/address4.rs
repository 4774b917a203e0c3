//! IPv4 addresses: a root by the first 16 bits, and short lists where that does not tell enough.
//!
//! Most of what is looked up ends in the root. Where it does not, a boundary and its row are one word, and 65,536 of them
//! are searched in 16 steps.

use super::layout::{REFERENCE_OFFSET, ROOT4_WORDS};
use super::sweep::Interval;

/// Writes what finds an address, and returns the reference to it.
pub(super) fn write(words: &mut Vec<u32>, intervals: &[Interval]) -> u32 {
    if let &[(_, row)] = intervals {
        return row.into();
    }
    let root = words.len();
    words.resize(root + ROOT4_WORDS, 0);
    let mut rest = intervals;
    let mut row = 0;
    for block in 0..ROOT4_WORDS {
        let end = (block as u128 + 1) << 16;
        let count = rest.partition_point(|&(start, _)| start < end);
        let (inside, behind) = rest.split_at(count);
        rest = behind;
        words[root + block] = match *inside {
            [] => u32::from(row),
            [(start, only)] if start & 0xffff == 0 => only.into(),
            _ => write_leaf(words, row, inside),
        };
        row = inside.last().map_or(row, |&(_, last)| last);
    }
    REFERENCE_OFFSET | root as u32
}

/// `row`: of the addresses before the first of them.
fn write_leaf(words: &mut Vec<u32>, row: u16, inside: &[Interval]) -> u32 {
    let offset = words.len();
    words.push(0);
    if inside[0].0 & 0xffff != 0 {
        words.push(row.into());
    }
    let word = |&(start, row): &Interval| (start as u32) << 16 | u32::from(row);
    words.extend(inside.iter().map(word));
    words[offset] = (words.len() - offset - 1) as u32;
    REFERENCE_OFFSET | offset as u32
}
