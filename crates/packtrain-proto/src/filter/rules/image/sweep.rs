//! From what is asked of a dimension to its intervals: once over all values, from the least to the largest.

use std::collections::HashMap;

use super::ImageError;
use super::entries::{Asked, Space};
use super::rows::{RowBits, Rows};

/// Values from here to the next have this row.
pub(super) type Interval = (u128, u16);

/// Where one or more atoms begin or end.
struct Event {
    at: u128,
    atom: usize,
    begins: bool,
}

/// Intervals of all values of `space`. The first begins at 0, and no two neighbours have the same row.
pub(super) fn intervals(
    asked: &Asked<'_>,
    space: Space,
    rows: &mut Rows,
) -> Result<Vec<Interval>, ImageError> {
    let mut events = events(asked, space);
    events.sort_by_key(|event| event.at);
    // Ranges of an atom may overlap: a value is in it while one of them is open.
    let mut open = vec![0u32; asked.atoms.len()];
    let mut inside: RowBits = vec![0; asked.atoms.len().div_ceil(64)];
    let mut known: HashMap<RowBits, u16> = HashMap::new();
    let mut intervals: Vec<Interval> = Vec::new();
    let mut next = 0;
    let mut at = 0;
    loop {
        while let Some(event) = events.get(next).filter(|event| event.at == at) {
            let count = &mut open[event.atom];
            match event.begins {
                true => *count += 1,
                false => *count -= 1,
            }
            let (word, bit) = (event.atom / 64, 1 << (event.atom % 64));
            match *count {
                0 => inside[word] &= !bit,
                _ => inside[word] |= bit,
            }
            next += 1;
        }
        let row = match known.get(&inside) {
            Some(&row) => row,
            None => {
                let row = rows.number(asked.row(&inside, rows.all()))?;
                known.insert(inside.clone(), row);
                row
            }
        };
        if intervals.last().is_none_or(|&(_, before)| before != row) {
            intervals.push((at, row));
        }
        match events.get(next) {
            Some(event) => at = event.at,
            None => return Ok(intervals),
        }
    }
}

/// The row of frames that have no value: they are in no atom.
pub(super) fn absent(asked: &Asked<'_>, rows: &mut Rows) -> Result<u16, ImageError> {
    let inside = vec![0; asked.atoms.len().div_ceil(64)];
    rows.number(asked.row(&inside, rows.all()))
}

fn events(asked: &Asked<'_>, space: Space) -> Vec<Event> {
    let mut events = Vec::new();
    for (atom, values) in asked.atoms.iter().enumerate() {
        for (first, last) in values.ranges(space) {
            events.push(Event {
                at: first,
                atom,
                begins: true,
            });
            if last < space.max() {
                events.push(Event {
                    at: last + 1,
                    atom,
                    begins: false,
                });
            }
        }
    }
    events
}

impl Asked<'_> {
    /// The entries that values in these atoms, and in no other, let pass.
    fn row(&self, inside: &RowBits, all: &RowBits) -> RowBits {
        let mut row = all.clone();
        for ask in &self.asks {
            let is_inside = inside[ask.atom / 64] >> (ask.atom % 64) & 1 == 1;
            if is_inside == ask.negated {
                row[ask.entry / 64] &= !(1 << (ask.entry % 64));
            }
        }
        row
    }
}
