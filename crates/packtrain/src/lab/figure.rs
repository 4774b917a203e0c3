//! A promise in numbers: what was measured directly and through `pt0`, how the two compare, and
//! whether that is what was asked.

use serde::Serialize;

use super::sample::Sample;
use super::table::{Table, grouped, rate, time};

/// One promise: what was asked, what was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    pub name: &'static str,
    pub direct: Sample,
    pub pt0: Sample,
    /// The number that the promise is about, a round each.
    pub compared: Sample,
    pub unit: Unit,
    pub target: Target,
    pub met: bool,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    BitPerSecond,
    PerSecond,
    Microseconds,
    Kibibytes,
    Count,
}

/// What `compared` is, and what its median must be.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    RatioAtLeast(f64),
    RatioAtMost(f64),
    DifferenceAtMost(f64),
    AtMost(f64),
    /// No promise: the difference is shown because it belongs to one.
    DifferenceShown,
}

impl Figure {
    /// Compares round by round. A number that could not be measured keeps no promise.
    pub fn of(
        name: &'static str,
        unit: Unit,
        target: Target,
        direct: Vec<f64>,
        pt0: Vec<f64>,
    ) -> Figure {
        let compared: Sample = match target {
            Target::RatioAtLeast(_) | Target::RatioAtMost(_) => {
                direct.iter().zip(&pt0).map(|(d, p)| p / d).collect()
            }
            Target::DifferenceAtMost(_) | Target::DifferenceShown => {
                direct.iter().zip(&pt0).map(|(d, p)| p - d).collect()
            }
            Target::AtMost(_) => pt0.iter().copied().collect(),
        };
        let median = compared.median();
        let met = match target {
            Target::RatioAtLeast(least) => median >= least,
            Target::RatioAtMost(most) | Target::DifferenceAtMost(most) | Target::AtMost(most) => {
                median <= most
            }
            Target::DifferenceShown => true,
        };
        Figure {
            name,
            direct: direct.into_iter().collect(),
            pt0: pt0.into_iter().collect(),
            compared,
            unit,
            target,
            met,
        }
    }

    fn compared_text(&self) -> String {
        match self.target {
            Target::RatioAtLeast(_) | Target::RatioAtMost(_) => {
                self.compared.show(|ratio| format!("{ratio:.2}"))
            }
            Target::DifferenceAtMost(_) | Target::DifferenceShown => self.compared.show(|d| {
                let sign = if d < 0.0 { "-" } else { "+" };
                format!("{sign}{}", self.unit.show(d.abs()))
            }),
            Target::AtMost(_) => String::new(),
        }
    }

    fn target_text(&self) -> String {
        match self.target {
            Target::RatioAtLeast(least) => format!("≥ {least}"),
            Target::RatioAtMost(most) => format!("≤ {most}"),
            Target::DifferenceAtMost(most) => format!("≤ +{}", self.unit.show(most)),
            Target::AtMost(most) => format!("≤ {}", self.unit.show(most)),
            Target::DifferenceShown => String::new(),
        }
    }
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Unit::BitPerSecond => rate(value),
            Unit::PerSecond | Unit::Count => grouped(value),
            Unit::Microseconds => time(value),
            Unit::Kibibytes => format!("{:.1} MiB", value / 1024.0),
        }
    }
}

/// A row for each.
pub fn figures_table(figures: &[Figure]) -> Table {
    let mut table = Table::new(&["what", "direct", "pt0", "compared", "target", ""]);
    for figure in figures {
        let show = |sample: &Sample| match sample.median() {
            median if median.is_nan() => "-".to_owned(),
            median => figure.unit.show(median),
        };
        table.row([
            figure.name.to_owned(),
            show(&figure.direct),
            show(&figure.pt0),
            figure.compared_text(),
            figure.target_text(),
            match (figure.target, figure.met) {
                (Target::DifferenceShown, _) => "",
                (_, true) => "met",
                (_, false) => "NOT MET",
            }
            .to_owned(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_is_kept_by_the_median_of_what_it_compares() {
        let figure = |target, direct: &[f64], pt0: &[f64]| {
            Figure::of("x", Unit::Count, target, direct.to_vec(), pt0.to_vec()).met
        };
        let ratio = Target::RatioAtLeast(0.5);
        assert!(figure(ratio, &[10.0, 10.0, 10.0], &[1.0, 5.0, 9.0]));
        assert!(!figure(ratio, &[10.0, 10.0, 10.0], &[1.0, 4.9, 9.0]));
        assert!(figure(Target::RatioAtMost(1.0), &[2.0], &[2.0]));
        assert!(figure(Target::DifferenceAtMost(0.0), &[3.0], &[2.0]));
        assert!(!figure(Target::DifferenceAtMost(0.0), &[3.0], &[4.0]));
        assert!(!figure(Target::AtMost(5.0), &[], &[f64::NAN]));
        assert!(!figure(ratio, &[], &[]), "nothing measured, nothing kept");
    }
}
