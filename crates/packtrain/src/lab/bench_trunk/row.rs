//! A promise, what was measured on each way, and whether it holds.

use std::collections::BTreeMap;

use serde::Serialize;

use super::stage::Way;
use crate::lab::figure::{Target, Unit};
use crate::lab::sample::Sample;
use crate::lab::table::Table;

/// A value a round, of each way.
pub type Runs<T> = BTreeMap<Way, Vec<T>>;

/// Who is within so much of MPTCP is not behind it: rounds of one way alone differ by as much.
const AS_GOOD: f64 = 0.01;

/// Which of two numbers is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    More,
    Less,
    /// Nobody can say, or nobody promised to be better than MPTCP.
    Neither,
}

#[derive(Clone, Debug, Serialize)]
pub struct Row {
    name: String,
    /// A round each; nothing where a way was not tried.
    plain: Sample,
    one: Sample,
    several: Sample,
    mptcp: Sample,
    /// `several` against `one`, where the target compares.
    compared: Sample,
    against_mptcp: Sample,
    unit: Unit,
    target: Target,
    met: bool,
    /// Null where MPTCP was not tried, or it is not to be said.
    not_behind_mptcp: Option<bool>,
}

impl Row {
    pub fn of<T>(
        name: impl Into<String>,
        (unit, target, better): (Unit, Target, Better),
        runs: &Runs<T>,
        number: impl Fn(&T) -> f64,
    ) -> Row {
        let values = |way: Way| -> Vec<f64> {
            let runs = runs.get(&way).into_iter().flatten();
            runs.map(&number).collect()
        };
        let [plain, one, several, mptcp] =
            [Way::Plain, Way::One, Way::Several, Way::Mptcp].map(values);
        let compared = target.compare(&one, &several);
        let against_mptcp = Target::RatioShown.compare(&mptcp, &several);
        let median = against_mptcp.median();
        let not_behind_mptcp = match better {
            _ if median.is_nan() => None,
            Better::More => Some(median >= 1.0 - AS_GOOD),
            Better::Less => Some(median <= 1.0 + AS_GOOD),
            Better::Neither => None,
        };
        let sample = |values: Vec<f64>| -> Sample { values.into_iter().collect() };
        Row {
            name: name.into(),
            met: target.is_met(&compared),
            plain: sample(plain),
            one: sample(one),
            several: sample(several),
            mptcp: sample(mptcp),
            compared,
            against_mptcp,
            unit,
            target,
            not_behind_mptcp,
        }
    }

    /// Its target is met, and MPTCP is not better.
    pub fn is_kept(&self) -> bool {
        self.met && self.not_behind_mptcp != Some(false)
    }

    fn mptcp_text(&self) -> String {
        match self.not_behind_mptcp {
            None => String::new(),
            Some(not_behind) => {
                let ratio = self.against_mptcp.median();
                let behind = if not_behind { "" } else { " BEHIND" };
                format!("{ratio:.2}{behind}")
            }
        }
    }
}

pub fn figures_table(figures: &[Row]) -> Table {
    let mut table = Table::new(&[
        "what",
        "plain",
        "one link",
        "MPTCP",
        "several",
        "against one",
        "target",
        "",
        "÷ MPTCP",
    ]);
    for row in figures {
        let show = |sample: &Sample| row.unit.show_median(sample);
        let compared = row
            .target
            .compared_or_spread(row.unit, &row.compared, &row.several);
        table.row([
            row.name.clone(),
            show(&row.plain),
            show(&row.one),
            show(&row.mptcp),
            show(&row.several),
            compared,
            row.target.text(row.unit),
            row.target.verdict(row.met).to_owned(),
            row.mptcp_text(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_kept_that_meets_its_target_and_is_not_behind_mptcp() {
        let row = |of: [f64; 3], target, better| {
            let ways = [Way::One, Way::Several, Way::Mptcp];
            let runs: Runs<f64> = ways.into_iter().zip(of.map(|value| vec![value])).collect();
            Row::of("x", (Unit::Ratio, target, better), &runs, |value| *value)
        };
        let twice = Target::RatioAtLeast(1.9);
        assert!(row([1.0, 2.0, 1.9], twice, Better::More).is_kept());
        assert!(!row([1.0, 1.8, 1.7], twice, Better::More).is_kept());
        let behind = row([1.0, 1.95, 2.0], twice, Better::More);
        assert!(behind.met && !behind.is_kept());
        assert!(row([1.0, 1.995, 2.0], twice, Better::More).is_kept());
        assert!(!row([1.0, 5.0, 4.0], Target::AtMost(9.0), Better::Less).is_kept());
        assert!(row([1.0, 5.0, 4.0], Target::AtMost(9.0), Better::Neither).is_kept());
        let without = row([1.0, 2.0, f64::NAN], twice, Better::More);
        assert!(without.is_kept() && without.not_behind_mptcp.is_none());
    }
}
