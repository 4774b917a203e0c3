//! Rows, each kept once.

use std::collections::HashMap;

use super::{ImageError, ROWS_MAX};

/// A bit for each entry.
pub(super) type RowBits = Vec<u64>;

#[derive(Debug)]
pub(super) struct Rows {
    rows: Vec<RowBits>,
    known: HashMap<RowBits, u16>,
}

impl Rows {
    /// With the row of all entries, which is the first.
    pub fn new(entries: usize) -> Rows {
        let mut all: RowBits = vec![u64::MAX; entries.div_ceil(64)];
        if let (Some(last), used @ 1..) = (all.last_mut(), entries % 64) {
            *last = (1 << used) - 1;
        }
        Rows {
            known: HashMap::from([(all.clone(), 0)]),
            rows: vec![all],
        }
    }

    pub fn all(&self) -> &RowBits {
        &self.rows[0]
    }

    pub fn number(&mut self, row: RowBits) -> Result<u16, ImageError> {
        if let Some(&number) = self.known.get(&row) {
            return Ok(number);
        }
        if self.rows.len() == ROWS_MAX {
            return Err(ImageError::Rows);
        }
        let number = self.rows.len() as u16;
        self.known.insert(row.clone(), number);
        self.rows.push(row);
        Ok(number)
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &RowBits> {
        self.rows.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_kept_once_and_all_have_the_first() {
        for (entries, all) in [
            (0, vec![]),
            (1, vec![1]),
            (64, vec![u64::MAX]),
            (65, vec![u64::MAX, 1]),
        ] {
            let mut rows = Rows::new(entries);
            assert_eq!(rows.all(), &all);
            assert_eq!(rows.number(all), Ok(0));
            assert_eq!(rows.iter().len(), 1);
        }
    }

    #[test]
    fn more_rows_than_have_a_number_are_refused() {
        let mut rows = Rows::new(64);
        for row in 0..ROWS_MAX as u64 - 1 {
            assert_eq!(rows.number(vec![row]), Ok(row as u16 + 1));
        }
        let error = rows.number(vec![1 << 40]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the rules tell more than 65536 groups of values apart, which is all that are possible: \
             put addresses that are treated alike into one set, or write fewer ranges"
        );
        assert_eq!(rows.number(vec![7]), Ok(8));
    }
}
