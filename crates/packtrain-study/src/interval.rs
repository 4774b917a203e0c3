//! How sure a mean is: over runs that differ by their seeds alone.

use packtrain_sim::statistics::Moments;

/// A mean, and how far from it the true one may lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub mean: f64,
    /// Half the width of Student's interval of 95 %; `None` of a single run.
    pub half_width: Option<f64>,
}

impl Interval {
    /// `NaN` of none.
    pub fn of(values: &[f64]) -> Interval {
        let moments: Moments = values.iter().copied().collect();
        Interval {
            mean: moments.mean().unwrap_or(f64::NAN),
            half_width: moments.interval().map(|interval| interval.half_width),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_a_textbook() {
        // 2.776 * 1.5811 / sqrt(5)
        let interval = Interval::of(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert!((interval.mean - 3.0).abs() < 1e-12);
        assert!((interval.half_width.unwrap() - 1.963_243).abs() < 1e-5);
        let alone = Interval::of(&[7.0]);
        assert_eq!((alone.mean, alone.half_width), (7.0, None));
        assert!(Interval::of(&[1.0, f64::NAN]).mean.is_nan());
    }
}
