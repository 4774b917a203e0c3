//! A figure: what was measured each way, how one of them compares with another in the same round, and whether that is what
//! was asked.

use std::collections::BTreeMap;

use serde::Serialize;

use super::way::Way;
use crate::lab::figure::{Target, Unit};
use crate::lab::sample::Sample;
use crate::lab::table::Table;

/// What was measured each way, a value a round.
#[derive(Clone, Debug)]
pub struct Runs<T>(BTreeMap<Way, Vec<T>>);

impl<T> Default for Runs<T> {
    fn default() -> Runs<T> {
        Runs(BTreeMap::new())
    }
}

impl<T> Runs<T> {
    pub fn push(&mut self, way: Way, value: T) {
        self.0.entry(way).or_default().push(value);
    }

    pub fn of(&self, way: Way) -> &[T] {
        self.0.get(&way).map_or(&[], Vec::as_slice)
    }

    /// One number of each run.
    pub fn map(&self, number: impl Fn(&T) -> f64) -> Runs<f64> {
        let numbers = self.0.iter();
        let numbers = numbers.map(|(&way, runs)| (way, runs.iter().map(&number).collect()));
        Runs(numbers.collect())
    }
}

/// Which way is looked at, and what it is held against.
#[derive(Clone, Copy, Debug)]
pub struct Compared(pub Way, pub Way);

#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub name: String,
    pub measured: BTreeMap<Way, Sample>,
    pub way: Way,
    pub against: Way,
    pub compared: Sample,
    pub unit: Unit,
    pub target: Target,
    pub met: bool,
    /// By counters: what came to the driver, and what became of it there, by the way that is looked at.
    pub carried: String,
}

impl Row {
    pub fn new(
        name: impl Into<String>,
        Compared(way, against): Compared,
        (unit, target): (Unit, Target),
        runs: &Runs<f64>,
        carried: impl Into<String>,
    ) -> Row {
        let compared = target.compare(runs.of(against), runs.of(way));
        Row {
            name: name.into(),
            measured: runs
                .0
                .iter()
                .map(|(&way, runs)| (way, runs.iter().copied().collect()))
                .collect(),
            way,
            against,
            met: target.is_met(&compared),
            compared,
            unit,
            target,
            carried: carried.into(),
        }
    }

    fn shown(&self, way: Way) -> String {
        self.measured
            .get(&way)
            .map_or_else(|| "-".into(), |sample| self.unit.show_median(sample))
    }

    fn compared_text(&self) -> String {
        match self.measured.get(&self.way) {
            Some(measured) => self
                .target
                .compared_or_spread(self.unit, &self.compared, measured),
            None => String::new(),
        }
    }

    fn beside(&self) -> String {
        let others = self.measured.keys().copied();
        let others = others.filter(|way| ![self.way, self.against].contains(way));
        let texts: Vec<String> = others
            .map(|way| format!("{}: {}", way.name(), self.shown(way)))
            .collect();
        texts.join("; ")
    }
}

pub fn rows_table(rows: &[Row]) -> Table {
    let mut table = Table::new(&[
        "what",
        "",
        "against",
        "compared",
        "target",
        "",
        "by its counters",
        "beside it",
    ]);
    for row in rows {
        let against = match row.against == row.way {
            true => String::new(),
            false => format!("{}: {}", row.against.name(), row.shown(row.against)),
        };
        table.row([
            row.name.clone(),
            format!("{}: {}", row.way.name(), row.shown(row.way)),
            against,
            row.compared_text(),
            row.target.text(row.unit),
            row.target.verdict(row.met).to_owned(),
            row.carried.clone(),
            row.beside(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_compared_round_by_round_and_others_stand_beside() {
        let mut runs = Runs::default();
        for (without, with, again) in [(10.0, 60.0, 11.0), (20.0, 80.0, 20.0), (10.0, 50.0, 9.0)] {
            runs.push(Way::Without, without);
            runs.push(Way::Filter, with);
            runs.push(Way::WithoutAgain, again);
        }
        let both = Compared(Way::Filter, Way::Without);
        let kind = (Unit::PerSecond, Target::RatioAtLeast(5.0));
        let row = Row::new("useful", both, kind, &runs, "all judged");
        assert_eq!(row.compared.median(), 5.0);
        assert!(row.met);
        let text = rows_table(&[row]).to_string();
        assert!(text.contains("5.00 [4.00 … 6.00]"), "{text}");
        assert!(text.contains("without, again: 11"), "{text}");
        let same = Compared(Way::WithoutAgain, Way::Without);
        let row = Row::new(
            "same",
            same,
            (Unit::PerSecond, Target::RatioShown),
            &runs,
            "",
        );
        assert_eq!(row.compared.median(), 1.0);
    }
}
