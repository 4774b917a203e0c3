//! What a number has to be, and how it and its unit are written.

use serde::Serialize;

use super::sample::Sample;
use super::table::{grouped, rate, time};

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    BitPerSecond,
    PerSecond,
    Microseconds,
    Nanoseconds,
    Kibibytes,
    Count,
    Ratio,
}

/// What `compared` is, and what its median must be.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    RatioAtLeast(f64),
    RatioAtMost(f64),
    DifferenceAtMost(f64),
    AtMost(f64),
    AtLeast(f64),
    /// In no round.
    NeverAbove(f64),
    /// No promise: it is shown because it belongs to one.
    RatioShown,
    DifferenceShown,
    Shown,
}

impl Target {
    /// What the promise is about, round by round.
    pub fn compare(self, base: &[f64], way: &[f64]) -> Sample {
        let pairs = base.iter().zip(way);
        match self {
            Target::RatioAtLeast(_) | Target::RatioAtMost(_) | Target::RatioShown => {
                pairs.map(|(base, way)| way / base).collect()
            }
            Target::DifferenceAtMost(_) | Target::DifferenceShown => {
                pairs.map(|(base, way)| way - base).collect()
            }
            Target::AtMost(_) | Target::AtLeast(_) | Target::NeverAbove(_) | Target::Shown => {
                way.iter().copied().collect()
            }
        }
    }

    /// A number that could not be measured keeps no promise.
    pub fn is_met(self, compared: &Sample) -> bool {
        match self {
            Target::RatioAtLeast(least) | Target::AtLeast(least) => compared.median() >= least,
            Target::RatioAtMost(most) | Target::DifferenceAtMost(most) | Target::AtMost(most) => {
                compared.median() <= most
            }
            Target::NeverAbove(most) => compared.is_all(|round| round <= most),
            Target::RatioShown | Target::DifferenceShown | Target::Shown => true,
        }
    }

    pub fn compared_text(self, unit: Unit, compared: &Sample) -> String {
        match self {
            _ if compared.median().is_nan() => String::new(),
            Target::RatioAtLeast(_) | Target::RatioAtMost(_) | Target::RatioShown => {
                compared.show(|ratio| format!("{ratio:.2}"))
            }
            Target::DifferenceAtMost(_) | Target::DifferenceShown => compared.show(|d| {
                let sign = if d < 0.0 { "-" } else { "+" };
                format!("{sign}{}", unit.show(d.abs()))
            }),
            Target::AtMost(_) | Target::AtLeast(_) | Target::NeverAbove(_) | Target::Shown => {
                String::new()
            }
        }
    }

    /// Without anything to compare it with, the spread of the number itself is of interest.
    pub fn compared_or_spread(self, unit: Unit, compared: &Sample, measured: &Sample) -> String {
        match self.compared_text(unit, compared) {
            text if text.is_empty() && !measured.median().is_nan() => {
                measured.show(|value| unit.show(value))
            }
            text => text,
        }
    }

    pub fn text(self, unit: Unit) -> String {
        match self {
            Target::RatioAtLeast(least) => format!("≥ {least}"),
            Target::RatioAtMost(most) => format!("≤ {most}"),
            Target::DifferenceAtMost(most) => format!("≤ +{}", unit.show(most)),
            Target::AtMost(most) => format!("≤ {}", unit.show(most)),
            Target::AtLeast(least) => format!("≥ {}", unit.show(least)),
            Target::NeverAbove(most) => format!("never > {}", unit.show(most)),
            Target::RatioShown | Target::DifferenceShown | Target::Shown => String::new(),
        }
    }

    /// What the table says of it.
    pub fn verdict(self, met: bool) -> &'static str {
        match (self, met) {
            (Target::RatioShown | Target::DifferenceShown | Target::Shown, _) => "",
            (_, true) => "met",
            (_, false) => "NOT MET",
        }
    }
}

impl Unit {
    /// What was not measured is a dash.
    pub fn show_median(self, sample: &Sample) -> String {
        match sample.median() {
            median if median.is_nan() => "-".to_owned(),
            median => self.show(median),
        }
    }

    pub fn show(self, value: f64) -> String {
        match self {
            Unit::BitPerSecond => rate(value),
            Unit::PerSecond | Unit::Count => grouped(value),
            Unit::Microseconds => time(value),
            Unit::Nanoseconds => format!("{value:.0} ns"),
            Unit::Ratio => format!("{value:.3}"),
            Unit::Kibibytes => format!("{:.1} MiB", value / 1024.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_is_kept_by_the_median_of_what_it_compares() {
        let met = |target: Target, base: &[f64], way: &[f64]| {
            let compared = target.compare(base, way);
            target.is_met(&compared)
        };
        let ratio = Target::RatioAtLeast(0.5);
        assert!(met(ratio, &[10.0, 10.0, 10.0], &[1.0, 5.0, 9.0]));
        assert!(!met(ratio, &[10.0, 10.0, 10.0], &[1.0, 4.9, 9.0]));
        assert!(met(Target::RatioAtMost(1.0), &[2.0], &[2.0]));
        assert!(met(Target::DifferenceAtMost(0.0), &[3.0], &[2.0]));
        assert!(!met(Target::DifferenceAtMost(0.0), &[3.0], &[4.0]));
        assert!(!met(Target::AtMost(5.0), &[], &[f64::NAN]));
        assert!(!met(ratio, &[], &[]), "nothing measured, nothing kept");
        let never = Target::NeverAbove(0.0);
        assert!(met(never, &[], &[0.0, 0.0, 0.0]));
        assert!(!met(never, &[], &[0.0, 1.0, 0.0]), "once is too often");
        assert!(!met(never, &[], &[0.0, f64::NAN]) && !met(never, &[], &[]));
    }
}
