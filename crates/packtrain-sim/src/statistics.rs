//! What a few runs tell of many: means and their intervals, quantiles, fairness, slopes.
//!
//! Nothing here decides what happens in a simulation, and results are read by people: the platform's
//! logarithms and exponentials are good enough, though they may differ in their last bit from one
//! machine to the next.

use std::fmt;

mod line;
mod student;

pub use line::Line;
pub use student::t_two_sided;

/// Of many values, in bounded memory: a quantile is at most a thirty-second too great.
pub use crate::whatif::histogram::Histogram;

/// Mean and variance as the values come, without the differences of great sums (Welford 1962).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    count: u64,
    mean: f64,
    /// Of the squares of what they are away from the mean.
    sum_of_squares: f64,
}

impl Moments {
    pub fn record(&mut self, value: f64) {
        self.count += 1;
        let away = value - self.mean;
        self.mean += away / self.count as f64;
        self.sum_of_squares += away * (value - self.mean);
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// None of none.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then_some(self.mean)
    }

    /// Of what the values were drawn from (by n − 1): two are needed.
    pub fn variance(&self) -> Option<f64> {
        (self.count > 1).then(|| self.sum_of_squares / (self.count - 1) as f64)
    }

    pub fn deviation(&self) -> Option<f64> {
        self.variance().map(f64::sqrt)
    }

    /// Where the mean is of what the values were drawn from, with 95 % confidence, if they are
    /// independent and about normal (Student 1908): runs with seeds of their own are. Two are needed.
    pub fn interval(&self) -> Option<Interval> {
        let error = (self.variance()? / self.count as f64).sqrt();
        Some(Interval {
            middle: self.mean,
            half_width: t_two_sided(self.count - 1, CONFIDENCE) * error,
        })
    }
}

impl FromIterator<f64> for Moments {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Moments {
        let mut moments = Moments::default();
        values.into_iter().for_each(|value| moments.record(value));
        moments
    }
}

/// Of every interval here.
pub const CONFIDENCE: f64 = 0.95;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub middle: f64,
    pub half_width: f64,
}

impl Interval {
    pub fn low(&self) -> f64 {
        self.middle - self.half_width
    }

    pub fn high(&self) -> f64 {
        self.middle + self.half_width
    }

    pub fn contains(&self, value: f64) -> bool {
        (self.low()..=self.high()).contains(&value)
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.middle, f)?;
        f.write_str(" ± ")?;
        fmt::Display::fmt(&self.half_width, f)
    }
}

/// Values in their order, of which every quantile is exact.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sorted(Vec<f64>);

impl Sorted {
    pub fn new(mut values: Vec<f64>) -> Sorted {
        assert!(values.iter().all(|value| !value.is_nan()), "not a number");
        values.sort_unstable_by(f64::total_cmp);
        Sorted(values)
    }

    /// The value that the given share of all is below: between two of them in proportion, which is type
    /// 7 of Hyndman and Fan (1996) and what R and NumPy give unasked. None of none.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        assert!((0.0..=1.0).contains(&share), "a share of {share}");
        let at = share * self.0.len().checked_sub(1)? as f64;
        let below = self.0[at.floor() as usize];
        let above = self.0[at.ceil() as usize];
        Some(below + at.fract() * (above - below))
    }

    pub fn values(&self) -> &[f64] {
        &self.0
    }
}

/// 1 if all have the same, 1/n if one has everything (Jain, Chiu and Hawe 1984). None if none has
/// anything: there is nothing to be fair about.
pub fn jain_index(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let sum_of_squares: f64 = shares.iter().map(|share| share * share).sum();
    (sum_of_squares > 0.0).then(|| sum * sum / (shares.len() as f64 * sum_of_squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Student had of two drugs: the hours of sleep that ten patients had more by one of them.
    const SLEEP: [f64; 10] = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];

    #[test]
    fn students_own_sample_has_the_interval_of_the_textbooks() {
        let moments: Moments = SLEEP.into_iter().collect();
        let interval = moments.interval().expect("of ten");
        assert!((interval.middle - 1.58).abs() < 1e-12, "{interval:?}");
        assert!((interval.low() - 0.7001142).abs() < 1e-6, "{interval:?}");
        assert!((interval.high() - 2.4598858).abs() < 1e-6, "{interval:?}");
        assert!(interval.contains(0.75) && !interval.contains(0.0));
        assert_eq!(format!("{interval:.2}"), "1.58 ± 0.88");
    }

    /// NIST's NumAcc4: the naive formula has no digit right.
    #[test]
    fn small_differences_of_great_values_are_not_lost() {
        let about = [10_000_000.1, 10_000_000.3].into_iter().cycle().take(1000);
        let moments: Moments = std::iter::once(10_000_000.2).chain(about).collect();
        assert!((moments.mean().expect("many") - 10_000_000.2).abs() < 1e-8);
        assert!((moments.deviation().expect("many") - 0.1).abs() < 1e-8);
    }

    #[test]
    fn of_too_few_nothing_is_told() {
        let one: Moments = [3.0].into_iter().collect();
        assert_eq!(Moments::default().mean(), None);
        assert_eq!((one.mean(), one.variance()), (Some(3.0), None));
        assert_eq!(one.interval(), None);
        assert_eq!(Sorted::default().quantile(0.5), None);
        assert_eq!(jain_index(&[0.0, 0.0]), None);
    }

    #[test]
    fn quantiles_lie_between_values_in_proportion() {
        let sorted = Sorted::new(vec![40.0, 15.0, 50.0, 35.0, 20.0]);
        for (share, exact) in [
            (0.0, 15.0),
            (0.25, 20.0),
            (0.4, 29.0),
            (0.5, 35.0),
            (1.0, 50.0),
        ] {
            let told = sorted.quantile(share).expect("of five");
            assert!((told - exact).abs() < 1e-9, "{share}: {told}");
        }
        assert_eq!(Sorted::new(vec![7.0]).quantile(0.99), Some(7.0));
    }

    #[test]
    fn the_index_of_fairness_goes_from_an_nth_to_one() {
        assert_eq!(jain_index(&[5.0; 4]), Some(1.0));
        assert_eq!(jain_index(&[0.0, 0.0, 8.0, 0.0]), Some(0.25));
        assert_eq!(jain_index(&[1.0, 2.0]), Some(0.9));
    }
}
