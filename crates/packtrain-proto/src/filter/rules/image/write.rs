//! Writes an image.

use super::dimension::{Dimension, Shape};
use super::entries::{Asked, Entries, Space};
use super::layout::*;
use super::rows::Rows;
use super::sweep::{self, Interval};
use super::{IMAGE_WORDS_MAX, ImageError, address4, address6};
use crate::filter::rules::limit::{Limit, Per, Unit};
use crate::filter::rules::rule::Verdict;
use crate::filter::rules::set::RuleSet;

/// What has no room with windows may have without them: it is searched longer then.
const WINDOWS: [u32; 3] = [WINDOWS_MAX, 1, 0];

pub(super) fn write(rules: &RuleSet) -> Result<Vec<u32>, ImageError> {
    let entries = Entries::of(rules)?;
    let mut len = 0;
    for windows in WINDOWS {
        let words = write_with(rules, &entries, windows)?;
        if words.len() <= IMAGE_WORDS_MAX {
            return Ok(words);
        }
        len = words.len();
    }
    Err(ImageError::Words(len))
}

/// `windows`: of IPv6 addresses, one behind the other.
fn write_with(
    rules: &RuleSet,
    entries: &Entries<'_>,
    windows: u32,
) -> Result<Vec<u32>, ImageError> {
    let mut rows = Rows::new(entries.rules.len());
    let mut words = vec![0; HEADER_WORDS];
    write_verdicts(&mut words, rules, entries);
    for dimension in Dimension::ALL {
        let asked = &entries.asked[dimension as usize];
        if !asked.asks.is_empty() {
            words[header::DIMENSIONS] |= 1 << dimension as u32;
            write_dimension(&mut words, dimension, asked, windows, &mut rows)?;
        }
    }
    words[header::VERSION] = VERSION;
    words[header::ENTRIES] = entries.rules.len() as u32;
    words[header::ROW_WORDS] = rows.all().len() as u32;
    words[header::ROWS] = words.len() as u32;
    words[header::ROW_COUNT] = rows.iter().len() as u32;
    for row in rows.iter() {
        words.extend(row.iter().flat_map(|&bits| halves(bits)));
    }
    words[header::WORDS] = words.len() as u32;
    Ok(words)
}

fn write_verdicts(words: &mut Vec<u32>, rules: &RuleSet, entries: &Entries<'_>) {
    let limits = || {
        let limits = rules.rules().iter().enumerate();
        limits.filter_map(|(place, rule)| match &rule.verdict {
            Verdict::Limit(limit) => Some((place, limit)),
            _ => None,
        })
    };
    words[header::VERDICTS] = words.len() as u32;
    for &rule in &entries.rules {
        let (kind, limit) = match rules.rules()[rule].verdict {
            Verdict::Allow => (VERDICT_ALLOW, 0),
            Verdict::Deny => (VERDICT_DENY, 0),
            Verdict::Limit(_) => {
                let before = limits().take_while(|&(place, _)| place < rule);
                (VERDICT_LIMIT, before.count())
            }
        };
        words.push((limit as u32) << VERDICT_LIMIT_SHIFT | kind << VERDICT_SHIFT | rule as u32);
    }
    words[header::LIMITS] = words.len() as u32;
    words[header::LIMIT_COUNT] = limits().count() as u32;
    for (bucket, (_, limit)) in limits().enumerate() {
        words.extend(limit_words(limit, bucket as u32));
    }
}

fn limit_words(limit: &Limit, bucket: u32) -> [u32; LIMIT_WORDS] {
    let [rate_low, rate_high] = halves(limit.per_second());
    let [burst_low, burst_high] = halves(limit.burst());
    let unit = match limit.unit() {
        Unit::Packets => 0,
        Unit::Bytes => 1,
    };
    let per = match limit.per() {
        Per::Rule => 0,
        Per::Source => 1,
    };
    [
        rate_low, rate_high, burst_low, burst_high, unit, per, bucket, 0,
    ]
}

fn write_dimension(
    words: &mut Vec<u32>,
    dimension: Dimension,
    asked: &Asked<'_>,
    windows: u32,
    rows: &mut Rows,
) -> Result<(), ImageError> {
    let at = header::DIMENSION + dimension as usize * DIMENSION_WORDS;
    words[at + place::ABSENT] = sweep::absent(asked, rows)?.into();
    let shape = dimension.shape();
    for space in Space::of(shape) {
        let intervals = sweep::intervals(asked, space, rows)?;
        match (space, shape) {
            (Space::V4, _) => words[at + place::V4] = address4::write(words, &intervals),
            (Space::V6, _) => words[at + place::V6] = address6::write(words, &intervals, windows),
            (Space::Numbers { bits }, Shape::Table { .. }) => {
                words[at + place::OFFSET] = words.len() as u32;
                words[at + place::MASK] = (1 << bits) - 1;
                write_table(words, bits, &intervals);
            }
            (Space::Numbers { .. }, _) => {
                words[at + place::OFFSET] = words.len() as u32;
                write_sorted(words, &intervals);
            }
        }
    }
    Ok(())
}

/// A row for each value, two a word.
fn write_table(words: &mut Vec<u32>, bits: u32, intervals: &[Interval]) {
    let mut rest = intervals;
    let mut row = 0;
    let mut row_of = |value: u128| {
        if let [(start, next), behind @ ..] = rest
            && *start == value
        {
            row = u32::from(*next);
            rest = behind;
        }
        row
    };
    for even in (0..1 << bits).step_by(2) {
        let low = row_of(even);
        words.push(row_of(even + 1) << 16 | low);
    }
}

fn write_sorted(words: &mut Vec<u32>, intervals: &[Interval]) {
    words.push(intervals.len() as u32);
    for &(start, row) in intervals {
        let [low, high] = halves(start as u64);
        words.extend([low, high << 16 | u32::from(row)]);
    }
}

/// The low one first.
fn halves(number: u64) -> [u32; 2] {
    [number as u32, (number >> 32) as u32]
}
