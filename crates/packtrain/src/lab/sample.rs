//! Rounds of a measurement, and what stands in a table of them: the median, and from where to
//! where the rounds went.

use serde::Serialize;

/// One number a round.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(into = "Summary")]
pub struct Sample {
    rounds: Vec<f64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    pub median: f64,
    pub min: f64,
    pub max: f64,
    pub rounds: Vec<f64>,
}

impl From<Sample> for Summary {
    fn from(sample: Sample) -> Summary {
        Summary {
            median: sample.median(),
            min: sample.min(),
            max: sample.max(),
            rounds: sample.rounds,
        }
    }
}

impl FromIterator<f64> for Sample {
    fn from_iter<I: IntoIterator<Item = f64>>(rounds: I) -> Sample {
        Sample {
            rounds: rounds.into_iter().collect(),
        }
    }
}

impl Sample {
    pub fn push(&mut self, round: f64) {
        self.rounds.push(round);
    }

    pub fn is_empty(&self) -> bool {
        self.rounds.is_empty()
    }

    /// Middle of the rounds in order; the mean of the two middle ones of an even number.
    pub fn median(&self) -> f64 {
        let mut sorted = self.rounds.clone();
        sorted.sort_by(f64::total_cmp);
        match sorted.len() {
            0 => f64::NAN,
            n if n % 2 == 1 => sorted[n / 2],
            n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
        }
    }

    pub fn min(&self) -> f64 {
        self.rounds.iter().copied().fold(f64::NAN, f64::min)
    }

    pub fn max(&self) -> f64 {
        self.rounds.iter().copied().fold(f64::NAN, f64::max)
    }

    /// Whether every round is so, and there is one.
    pub fn is_all(&self, so: impl Fn(f64) -> bool) -> bool {
        !self.rounds.is_empty() && self.rounds.iter().all(|&round| so(round))
    }

    /// `median [min … max]`, each shown by `show`.
    pub fn show(&self, show: impl Fn(f64) -> String) -> String {
        format!(
            "{} [{} … {}]",
            show(self.median()),
            show(self.min()),
            show(self.max())
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_round_or_between_the_two() {
        let sample = |rounds: &[f64]| rounds.iter().copied().collect::<Sample>();
        assert_eq!(sample(&[3.0, 1.0, 2.0]).median(), 2.0);
        assert_eq!(sample(&[4.0, 1.0, 2.0, 3.0]).median(), 2.5);
        assert!(sample(&[]).median().is_nan());
        let three = sample(&[3.0, 1.0, 2.0]);
        assert_eq!(three.show(|x| format!("{x:.0}")), "2 [1 … 3]");
    }
}
