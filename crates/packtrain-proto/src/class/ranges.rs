//! Sets of numbers as people write them: `53`, `5060-5070`, `1500-`, `53,5060-5070`.

use core::fmt;

/// Numbers, each within one of some ranges; both ends belong to a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranges(Vec<(u32, u32)>);

/// Ranges of one set.
pub const RANGES_MAX: usize = 16;

impl Ranges {
    /// # Panics
    /// Without a range, with more than [`RANGES_MAX`], or with one that ends before it begins.
    pub fn new(ranges: Vec<(u32, u32)>) -> Ranges {
        assert!((1..=RANGES_MAX).contains(&ranges.len()));
        assert!(ranges.iter().all(|(first, last)| first <= last));
        Ranges(ranges)
    }

    pub fn one(number: u32) -> Ranges {
        Ranges(vec![(number, number)])
    }

    #[inline]
    pub fn contains(&self, number: u32) -> bool {
        let mut ranges = self.0.iter();
        ranges.any(|&(first, last)| first <= number && number <= last)
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.0.iter().copied()
    }

    /// The only number in it, if there is but one.
    pub fn single(&self) -> Option<u32> {
        match self.0[..] {
            [(first, last)] if first == last => Some(first),
            _ => None,
        }
    }

    /// As it is written, with `name` for single numbers that have one, and `max` for the largest
    /// that there is.
    pub(crate) fn write(
        &self,
        f: &mut fmt::Formatter<'_>,
        max: u32,
        name: impl Fn(u32) -> Option<&'static str>,
    ) -> fmt::Result {
        for (i, &(first, last)) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            match (first == last, name(first)) {
                (true, Some(name)) => f.write_str(name)?,
                (true, None) => write!(f, "{first}")?,
                (false, _) if last == max => write!(f, "{first}-")?,
                (false, _) => write!(f, "{first}-{last}")?,
            }
        }
        Ok(())
    }
}
