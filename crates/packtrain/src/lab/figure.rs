//! A promise in numbers: what was measured over the bare cable and through `pt0`, how the two compare,
//! and whether that is what was asked. Beside it, where it was measured, the same of a line whose
//! frames all go by the engine, and of a bare relay: the most that passing through user space allows.

use serde::Serialize;

use super::sample::Sample;
use super::table::{Table, grouped, rate, time};

/// What was measured on each way, a value a round; nothing where a way was not tried.
#[derive(Clone, Debug)]
pub struct Runs<T> {
    pub bare: Vec<T>,
    pub relay: Vec<T>,
    pub engine: Vec<T>,
    pub pt0: Vec<T>,
}

impl<T> Default for Runs<T> {
    fn default() -> Runs<T> {
        Runs {
            bare: Vec::new(),
            relay: Vec::new(),
            engine: Vec::new(),
            pt0: Vec::new(),
        }
    }
}

impl<T> Runs<T> {
    /// One number of each run.
    pub fn map(&self, number: impl Fn(&T) -> f64) -> Runs<f64> {
        let ways = [&self.bare, &self.relay, &self.engine, &self.pt0];
        let [bare, relay, engine, pt0] = ways.map(|runs| runs.iter().map(&number).collect());
        Runs {
            bare,
            relay,
            engine,
            pt0,
        }
    }
}

impl Runs<f64> {
    /// Of what has no counterpart without `pt0`.
    pub fn of_pt0(runs: impl IntoIterator<Item = f64>) -> Runs<f64> {
        Runs {
            pt0: runs.into_iter().collect(),
            ..Runs::default()
        }
    }
}

/// One promise: what was asked, what was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    pub name: &'static str,
    pub bare: Sample,
    pub relay: Sample,
    pub engine: Sample,
    pub pt0: Sample,
    /// The number that the promise is about, a round each.
    pub compared: Sample,
    /// The same of a line without the direct path, and of the bare relay.
    pub engine_compared: Sample,
    pub relay_compared: Sample,
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

impl Figure {
    /// Compares round by round. A number that could not be measured keeps no promise.
    pub fn of(name: &'static str, unit: Unit, target: Target, runs: Runs<f64>) -> Figure {
        let compare = |way: &[f64]| target.compare(&runs.bare, way);
        let compared = compare(&runs.pt0);
        let (engine_compared, relay_compared) = (compare(&runs.engine), compare(&runs.relay));
        let met = target.is_met(&compared);
        Figure {
            name,
            bare: runs.bare.into_iter().collect(),
            relay: runs.relay.into_iter().collect(),
            engine: runs.engine.into_iter().collect(),
            pt0: runs.pt0.into_iter().collect(),
            compared,
            engine_compared,
            relay_compared,
            unit,
            target,
            met,
        }
    }
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
    pub fn show(self, value: f64) -> String {
        match self {
            Unit::BitPerSecond => rate(value),
            Unit::PerSecond | Unit::Count => grouped(value),
            Unit::Microseconds => time(value),
            Unit::Ratio => format!("{value:.3}"),
            Unit::Kibibytes => format!("{:.1} MiB", value / 1024.0),
        }
    }
}

/// A row for each.
pub fn figures_table(figures: &[Figure]) -> Table {
    let mut table = Table::new(&[
        "what",
        "bare",
        "pt0",
        "compared",
        "target",
        "",
        "engine only",
        "bare relay",
    ]);
    for figure in figures {
        let (target, unit) = (figure.target, figure.unit);
        let show = |sample: &Sample| match sample.median() {
            median if median.is_nan() => "-".to_owned(),
            median => unit.show(median),
        };
        table.row([
            figure.name.to_owned(),
            show(&figure.bare),
            show(&figure.pt0),
            target.compared_text(unit, &figure.compared),
            target.text(unit),
            target.verdict(figure.met).to_owned(),
            target.compared_text(unit, &figure.engine_compared),
            target.compared_text(unit, &figure.relay_compared),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_ways_are_compared_as_pt0_is_and_keep_no_promise() {
        let runs = Runs {
            bare: vec![10.0, 20.0],
            relay: vec![5.0, 10.0],
            engine: vec![6.0, 12.0],
            pt0: vec![4.0, 8.0],
        };
        let figure = Figure::of("x", Unit::Count, Target::RatioAtLeast(0.5), runs);
        assert_eq!(figure.compared.median(), 0.4);
        assert_eq!(figure.relay_compared.median(), 0.5);
        assert_eq!(figure.engine_compared.median(), 0.6);
        assert!(!figure.met, "by pt0, not by the relay");
    }

    #[test]
    fn a_promise_is_kept_by_the_median_of_what_it_compares() {
        let figure = |target, bare: &[f64], pt0: &[f64]| {
            let runs = Runs {
                bare: bare.to_vec(),
                pt0: pt0.to_vec(),
                relay: vec![f64::NAN; bare.len()],
                engine: Vec::new(),
            };
            Figure::of("x", Unit::Count, target, runs).met
        };
        let ratio = Target::RatioAtLeast(0.5);
        assert!(figure(ratio, &[10.0, 10.0, 10.0], &[1.0, 5.0, 9.0]));
        assert!(!figure(ratio, &[10.0, 10.0, 10.0], &[1.0, 4.9, 9.0]));
        assert!(figure(Target::RatioAtMost(1.0), &[2.0], &[2.0]));
        assert!(figure(Target::DifferenceAtMost(0.0), &[3.0], &[2.0]));
        assert!(!figure(Target::DifferenceAtMost(0.0), &[3.0], &[4.0]));
        assert!(!figure(Target::AtMost(5.0), &[], &[f64::NAN]));
        assert!(!figure(ratio, &[], &[]), "nothing measured, nothing kept");
        let never = Target::NeverAbove(0.0);
        assert!(figure(never, &[], &[0.0, 0.0, 0.0]));
        assert!(!figure(never, &[], &[0.0, 1.0, 0.0]), "once is too often");
        assert!(!figure(never, &[], &[0.0, f64::NAN]) && !figure(never, &[], &[]));
    }
}
