//! A histogram as bars of text.

use hdrhistogram::Histogram;

const ROWS: u64 = 16;
const BAR_LETTERS: u64 = 40;

/// So many of what was counted lie in these values, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) count: u64,
}

/// Rows of the same width from the 1st to the 99th percentile, and one each for what is below and above. Empty ends are left out.
pub(super) fn rows(histogram: &Histogram<u64>) -> Vec<Row> {
    if histogram.is_empty() {
        return Vec::new();
    }
    let (from, to) = (
        histogram.value_at_quantile(0.01),
        histogram.value_at_quantile(0.99),
    );
    let width = round_up((to - from).div_ceil(ROWS).max(1));
    let begin = from / width * width;
    let mut rows = Vec::new();
    if begin > 0 {
        rows.push((0, begin - 1));
    }
    let mut next = begin;
    while next <= to {
        rows.push((next, next + width - 1));
        next += width;
    }
    if histogram.max() >= next {
        rows.push((next, histogram.max()));
    }
    let mut rows: Vec<Row> = rows
        .iter()
        .map(|&(from, to)| Row { from, to, count: 0 })
        .collect();
    // Each value once, though values that the histogram does not tell apart may lie in two rows.
    for value in histogram.iter_recorded() {
        let at = rows.partition_point(|row| row.to < value.value_iterated_to());
        let at = at.min(rows.len() - 1);
        rows[at].count += value.count_at_value();
    }
    let counted = |row: &Row| row.count > 0;
    let last = rows.iter().rposition(counted).map_or(0, |last| last + 1);
    rows.truncate(last);
    let first = rows.iter().position(counted).unwrap_or(0);
    rows.split_off(first)
}

/// To one digit, so that rows begin at numbers that can be read.
fn round_up(width: u64) -> u64 {
    let mut unit = 1;
    while width > 9 * unit {
        unit *= 10;
    }
    width.div_ceil(unit) * unit
}

/// As long as its share of the longest.
pub(super) fn bar(count: u64, most: u64) -> String {
    let letters = match most {
        0 => 0,
        most => (count * BAR_LETTERS).div_ceil(most),
    };
    "█".repeat(letters as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: impl IntoIterator<Item = u64>) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(1, 1 << 40, 3).unwrap();
        values
            .into_iter()
            .for_each(|v| histogram.record(v).unwrap());
        histogram
    }

    #[test]
    fn every_value_is_in_one_row() {
        for values in [
            (0..1000).collect::<Vec<u64>>(),
            vec![512; 10],
            vec![0, 0, 0, 1_000_000],
            (0..500).map(|n| n * n * n).collect(),
        ] {
            let rows = rows(&histogram(values.clone()));
            let counted: u64 = rows.iter().map(|row| row.count).sum();
            assert_eq!(counted, values.len() as u64, "{rows:?}");
            assert!(rows.len() as u64 <= ROWS + 4, "{rows:?}");
            assert!(rows.windows(2).all(|r| r[0].to < r[1].from), "{rows:?}");
        }
        assert_eq!(rows(&histogram([])), []);
    }

    #[test]
    fn bars_are_as_long_as_what_they_show_and_what_is_there_is_seen() {
        assert_eq!(bar(10, 10).chars().count(), 40);
        assert_eq!(bar(5, 10).chars().count(), 20);
        assert_eq!(bar(1, 1_000_000).chars().count(), 1);
        assert_eq!(bar(0, 10), "");
        assert_eq!(bar(0, 0), "");
    }
}
