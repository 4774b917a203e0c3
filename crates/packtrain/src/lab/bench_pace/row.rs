//! A figure: what was measured by one way, how it compares with another in the same rounds, and whether that is what was asked.

use serde::Serialize;

use crate::lab::figure::{Target, Unit};
use crate::lab::sample::Sample;
use crate::lab::table::Table;

#[derive(Clone, Debug, Serialize)]
pub struct Row {
    name: String,
    way: &'static str,
    measured: Sample,
    /// Where the target compares.
    against: Option<&'static str>,
    other: Sample,
    compared: Sample,
    unit: Unit,
    target: Target,
    pub met: bool,
    /// By counters: what carried it.
    carried: String,
}

/// Values of a way, a round each.
#[derive(Clone, Debug)]
pub struct Of(pub &'static str, pub Vec<f64>);

impl Row {
    pub fn new(
        name: impl Into<String>,
        way: Of,
        against: Option<Of>,
        (unit, target): (Unit, Target),
        carried: impl Into<String>,
    ) -> Row {
        let other = against.as_ref().map_or(&[][..], |of| &of.1);
        let compared = target.compare(other, &way.1);
        Row {
            name: name.into(),
            met: target.is_met(&compared),
            other: other.iter().copied().collect(),
            against: against.map(|of| of.0),
            way: way.0,
            measured: way.1.into_iter().collect(),
            compared,
            unit,
            target,
            carried: carried.into(),
        }
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
        "carried by",
    ]);
    for row in rows {
        let shown = |sample: &Sample| row.unit.show_median(sample);
        let against = row
            .against
            .map_or_else(String::new, |name| format!("{name}: {}", shown(&row.other)));
        table.row([
            row.name.clone(),
            format!("{}: {}", row.way, shown(&row.measured)),
            against,
            row.target
                .compared_or_spread(row.unit, &row.compared, &row.measured),
            row.target.text(row.unit),
            row.target.verdict(row.met).to_owned(),
            row.carried.clone(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_is_compared_round_by_round_where_the_target_asks_for_it() {
        let row = |target, against: Option<Of>| {
            let way = Of("cps, second", vec![10.0, 12.0, 11.0]);
            Row::new("1 GB", way, against, (Unit::Count, target), "frames")
        };
        let cubic = Of("cubic", vec![40.0, 20.0, 22.0]);
        let kept = row(Target::RatioAtMost(0.6), Some(cubic));
        assert!(kept.met);
        assert_eq!(kept.compared.median(), 0.5);
        let text = rows_table(&[kept]).to_string();
        assert!(
            text.contains("cubic: 22") && text.contains("0.50 [0.25 … 0.60]"),
            "{text}"
        );
        assert!(!row(Target::NeverAbove(11.0), None).met);
    }
}
