//! A promise in numbers: what was measured over the bare cable and through `pt0`, how the two compare,
//! and whether that is what was asked. Beside it, where it was measured, the same of other ways: a line
//! whose frames all go by the engine, a bare relay (the most that passing through user space allows), the least of
//! interfaces (the most that a second one allows at all), and tunnels that everybody has.

use std::collections::BTreeMap;

use serde::Serialize;

use super::way::Way;
use crate::lab::figure::{Target, Unit};
use crate::lab::sample::Sample;
use crate::lab::table::Table;

/// What was measured on each way, a value a round. A way that could not be tried has none.
#[derive(Clone, Debug)]
pub struct Runs<T>(BTreeMap<Way, Vec<T>>);

impl<T> Runs<T> {
    /// Of these ways, so far nothing.
    pub fn of_ways(ways: &[Way]) -> Runs<T> {
        Runs(ways.iter().map(|&way| (way, Vec::new())).collect())
    }

    pub fn push(&mut self, way: Way, value: T) {
        self.0.entry(way).or_default().push(value);
    }

    /// One number of each run.
    pub fn map(&self, number: impl Fn(&T) -> f64) -> Runs<f64> {
        let numbers = |runs: &Vec<T>| runs.iter().map(&number).collect();
        Runs(
            self.0
                .iter()
                .map(|(&way, runs)| (way, numbers(runs)))
                .collect(),
        )
    }

    /// Of one way, which stands for `pt0`, against the bare one.
    pub fn of_instead(&self, way: Way) -> Runs<T>
    where
        T: Clone,
    {
        let runs = [(Way::Bare, Way::Bare), (way, Way::Pt0)];
        let taken = |(from, to)| Some((to, self.0.get(&from)?.clone()));
        Runs(runs.into_iter().filter_map(taken).collect())
    }

    /// Of one way alone.
    pub fn only(self, way: Way) -> Runs<T> {
        let of_it = self.0.into_iter().filter(|&(of, _)| of == way);
        Runs(of_it.collect())
    }
}

impl Runs<f64> {
    /// `pt0` against that one of these ways of which the most was measured, which stands for the bare one.
    pub fn against_best_of(&self, ways: &[Way]) -> Runs<f64> {
        let runs = |way: &Way| self.0.get(way).cloned().unwrap_or_default();
        let median = |way: &Way| runs(way).into_iter().collect::<Sample>().median();
        let best = ways
            .iter()
            .max_by(|a, b| median(a).total_cmp(&median(b)))
            .map(runs);
        Runs(
            [
                (Way::Bare, best.unwrap_or_default()),
                (Way::Pt0, runs(&Way::Pt0)),
            ]
            .into(),
        )
    }

    /// Of what has no counterpart without `pt0`.
    pub fn of_pt0(runs: impl IntoIterator<Item = f64>) -> Runs<f64> {
        Runs([(Way::Pt0, runs.into_iter().collect())].into())
    }
}

/// One promise: what was asked, what was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    pub name: String,
    pub measured: BTreeMap<Way, Sample>,
    /// Each way against the bare one, round by round. The promise is about `pt0`.
    pub compared: BTreeMap<Way, Sample>,
    pub unit: Unit,
    pub target: Target,
    pub met: bool,
    /// Which path carried the frames of `pt0`, and how many a train held, by its own counters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carried: Option<String>,
}

impl Figure {
    /// Compares round by round. A number that could not be measured keeps no promise.
    pub fn of(name: impl Into<String>, unit: Unit, target: Target, runs: Runs<f64>) -> Figure {
        let base = runs.0.get(&Way::Bare).cloned().unwrap_or_default();
        let others = runs.0.iter().filter(|&(&way, _)| way != Way::Bare);
        let compared: BTreeMap<Way, Sample> = others
            .map(|(&way, runs)| (way, target.compare(&base, runs)))
            .collect();
        let of_pt0 = compared.get(&Way::Pt0).cloned().unwrap_or_default();
        let runs = runs.0.into_iter();
        Figure {
            name: name.into(),
            measured: runs
                .map(|(way, runs)| (way, runs.into_iter().collect()))
                .collect(),
            compared,
            unit,
            target,
            met: target.is_met(&of_pt0),
            carried: None,
        }
    }

    fn measured_text(&self, way: Way) -> String {
        let median = self.measured.get(&way).map(Sample::median);
        match median.filter(|median| !median.is_nan()) {
            Some(median) => self.unit.show(median),
            None => "-".to_owned(),
        }
    }

    /// How a way compares; its own number, where nothing is compared.
    fn compared_text(&self, way: Way) -> String {
        let (Some(measured), Some(compared)) = (self.measured.get(&way), self.compared.get(&way))
        else {
            return String::new();
        };
        match self.target.compared_text(self.unit, compared) {
            _ if measured.is_empty() => "not installed".to_owned(),
            text if text.is_empty() && !measured.median().is_nan() => {
                measured.show(|value| self.unit.show(value))
            }
            text => text,
        }
    }
}

/// A row for each, and a column for each way of which there is anything.
pub fn figures_table(figures: &[Figure]) -> Table {
    const BESIDE: [Way; 11] = [
        Way::Engine,
        Way::Direct,
        Way::Packed,
        Way::Uncoded,
        Way::ShortFirst,
        Way::Relay,
        Way::Macvlan,
        Way::Floor,
        Way::Vxlan,
        Way::WireGuard,
        Way::Simplemux,
    ];
    let is_shown = |way: &Way| {
        figures
            .iter()
            .any(|figure| figure.measured.contains_key(way))
    };
    let beside: Vec<Way> = BESIDE.into_iter().filter(is_shown).collect();
    let mut headings = vec!["what", "bare", "pt0", "compared", "target", ""];
    let is_counted = figures.iter().any(|figure| figure.carried.is_some());
    headings.extend(is_counted.then_some("pt0's frames went"));
    headings.extend(beside.iter().map(|way| way.heading()));
    let mut table = Table::new(&headings);
    for figure in figures {
        let mut cells = vec![
            figure.name.clone(),
            figure.measured_text(Way::Bare),
            figure.measured_text(Way::Pt0),
            figure.compared_text(Way::Pt0),
            figure.target.text(figure.unit),
            figure.target.verdict(figure.met).to_owned(),
        ];
        cells.extend(is_counted.then(|| figure.carried.clone().unwrap_or_default()));
        cells.extend(beside.iter().map(|&way| figure.compared_text(way)));
        table.row(cells);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(of: &[(Way, &[f64])]) -> Runs<f64> {
        let mut runs = Runs::of_ways(&[]);
        for &(way, values) in of {
            runs.0.insert(way, values.to_vec());
        }
        runs
    }

    #[test]
    fn other_ways_are_compared_as_pt0_is_and_keep_no_promise() {
        let runs = runs(&[
            (Way::Bare, &[10.0, 20.0]),
            (Way::Relay, &[5.0, 10.0]),
            (Way::Engine, &[6.0, 12.0]),
            (Way::Pt0, &[4.0, 8.0]),
        ]);
        let figure = Figure::of("x", Unit::Count, Target::RatioAtLeast(0.5), runs);
        let median = |way| figure.compared[&way].median();
        assert_eq!(median(Way::Pt0), 0.4);
        assert_eq!(median(Way::Relay), 0.5);
        assert_eq!(median(Way::Engine), 0.6);
        assert!(!figure.met, "by pt0, not by the relay");
    }

    #[test]
    fn pt0_is_compared_with_the_better_of_two_ways_and_another_line_in_its_place() {
        let runs = runs(&[
            (Way::Bare, &[10.0, 20.0]),
            (Way::Engine, &[6.0, 12.0]),
            (Way::Direct, &[8.0, 10.0]),
            (Way::Pt0, &[6.0, 9.0]),
        ]);
        let compared = |runs| {
            let figure = Figure::of("x", Unit::Count, Target::RatioAtLeast(1.0), runs);
            figure.compared[&Way::Pt0].median()
        };
        // Medians of 9 and 9, and then of 9 and 11.
        let best = runs.against_best_of(&[Way::Engine]);
        assert_eq!(compared(best), 0.875);
        assert_eq!(compared(runs.of_instead(Way::Direct)), 0.65);
        let mut more = runs.clone();
        more.0.insert(Way::Engine, vec![8.0, 14.0]);
        let best = more.against_best_of(&[Way::Engine, Way::Direct]);
        assert_eq!(best.0[&Way::Bare], [8.0, 14.0]);
    }

    #[test]
    fn a_way_that_could_not_be_tried_has_a_column_that_says_so() {
        let runs = runs(&[
            (Way::Bare, &[10.0]),
            (Way::Pt0, &[10.0]),
            (Way::WireGuard, &[]),
        ]);
        let figure = Figure::of("x", Unit::Count, Target::RatioAtLeast(0.5), runs);
        assert!(figure.met);
        let text = figures_table(&[figure]).to_string();
        assert!(text.contains("WireGuard"), "{text}");
        assert!(text.contains("not installed"), "{text}");
        assert!(!text.contains("VXLAN"), "{text}");
    }
}
