//! What something was lately, a value for each look at it.

use std::collections::VecDeque;

/// As many as the widest terminal has columns for.
const VALUES_MAX: usize = 512;

#[derive(Clone, Debug, Default)]
pub struct History {
    values: VecDeque<f64>,
}

impl History {
    /// The oldest is forgotten when there are enough.
    pub fn push(&mut self, value: f64) {
        if self.values.len() == VALUES_MAX {
            self.values.pop_front();
        }
        self.values.push_back(value);
    }

    /// The last so many, the oldest first.
    pub fn last(&self, count: usize) -> impl Iterator<Item = f64> + '_ {
        let skipped = self.values.len().saturating_sub(count);
        self.values.iter().skip(skipped).copied()
    }

    /// The largest of the last so many; 0: there are none.
    pub fn peak(&self, count: usize) -> f64 {
        self.last(count).fold(0.0, f64::max)
    }
}

/// Columns of letters, each as high as its value is of `whole`; little is not nothing.
pub fn sparkline(
    values: impl Iterator<Item = f64>,
    whole: f64,
    levels: &'static [&'static str],
) -> String {
    let most = levels.len() - 1;
    let level = |value: f64| match value > 0.0 && whole > 0.0 {
        true => ((value / whole * most as f64).round() as usize).clamp(1, most),
        false => 0,
    };
    values.map(|value| levels[level(value)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::theme::Glyphs;

    #[test]
    fn it_is_bounded_and_the_oldest_goes_first() {
        let mut history = History::default();
        for n in 0..2 * VALUES_MAX {
            history.push(n as f64);
        }
        assert_eq!(history.values.len(), VALUES_MAX);
        assert!(history.last(3).eq([1021.0, 1022.0, 1023.0]));
        assert_eq!(history.last(usize::MAX).count(), VALUES_MAX);
        assert_eq!(history.peak(3), 1023.0);
        assert_eq!(History::default().peak(3), 0.0);
    }

    #[test]
    fn a_column_is_as_high_as_its_value_and_little_is_not_nothing() {
        let values = [0.0, 0.1, 100.0, 400.0, 800.0, 900.0];
        let drawn = |glyphs: Glyphs| sparkline(values.into_iter(), 800.0, glyphs.levels);
        assert_eq!(drawn(Glyphs::UNICODE), " ▁▁▄██");
        assert_eq!(drawn(Glyphs::ASCII), " ..:||");
        assert_eq!(
            sparkline([0.0, 0.0].into_iter(), 0.0, Glyphs::UNICODE.levels),
            "  "
        );
    }
}
