//! For a terminal.

use std::fmt::Write as _;

use super::{Study, interval};
use crate::judge::{Check, Verdict};
use crate::quantity::short;
use crate::sweep::Point;

/// What is printed before anything is run.
pub use explain::{explain, list};

mod explain;

/// What is told apart where there are colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Title,
    Met,
    NotMet,
    NotJudged,
}

/// The values with their units, and what became of what was expected.
pub fn text(study: &Study<'_>) -> String {
    text_with(study, |_, text| text.to_owned())
}

/// As [`text`], with some of its parts as `style` makes them.
pub fn text_with(study: &Study<'_>, style: impl Fn(Part, &str) -> String) -> String {
    let scenario = study.scenario;
    let paper = scenario.paper.as_ref().map(|paper| format!("; {paper}"));
    let mut out = format!(
        "{} ({}{})\n",
        style(Part::Title, &scenario.title),
        scenario.name,
        paper.unwrap_or_default()
    );
    let _ = writeln!(out, "{}\n", settings(study));
    let varied = &study.results.plan.varied;
    match (study.results.points.as_slice(), varied.is_empty()) {
        ([point], true) => out += &values(study, point),
        _ => out += &points(study),
    }
    if !study.verdicts.is_empty() {
        out.push('\n');
    }
    for of in study.verdicts {
        out += &verdict(of, &style);
    }
    out
}

fn settings(study: &Study<'_>) -> String {
    let constants = study.constants();
    let mut words: Vec<String> = constants
        .map(|(parameter, value)| format!("{} = {}", parameter.name, parameter.print(value)))
        .collect();
    words.push(study.seeds_words());
    if study.results.plan.quick {
        words.push("the quick form".into());
    }
    words.join(", ")
}

/// One row a value.
fn values(study: &Study<'_>, point: &Point) -> String {
    let rows = study.scenario.values.iter().zip(&point.means);
    let rows = rows.map(|(value, mean)| {
        vec![
            value.name.clone(),
            interval(*mean),
            value.unit.clone(),
            value.says.clone(),
        ]
    });
    table(&rows.collect::<Vec<_>>(), &[false, true, false, false])
}

/// One row a point.
fn points(study: &Study<'_>) -> String {
    let varied = &study.results.plan.varied;
    let mut heading: Vec<String> = varied.iter().map(|vary| vary.name.clone()).collect();
    heading.extend(study.scenario.values.iter().map(|value| value.name.clone()));
    let mut units: Vec<String> = varied.iter().map(|_| String::new()).collect();
    units.extend(study.scenario.values.iter().map(|value| value.unit.clone()));
    let mut rows = vec![heading, units];
    for point in &study.results.points {
        let at = varied.iter().map(|vary| {
            let value = point.settings.get(&vary.name).expect("it is varied");
            let parameter = study
                .scenario
                .parameters
                .get(&vary.name)
                .expect("it is one");
            parameter.print(value)
        });
        let mut row: Vec<String> = at.collect();
        row.extend(point.means.iter().map(|mean| interval(*mean)));
        rows.push(row);
    }
    let right = vec![true; rows[0].len()];
    table(&rows, &right)
}

/// Columns as wide as their widest; those that are `right` end at the same place.
fn table(rows: &[Vec<String>], right: &[bool]) -> String {
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..right.len()).map(width).collect();
    let mut out = String::new();
    for row in rows
        .iter()
        .filter(|row| row.iter().any(|cell| !cell.is_empty()))
    {
        let cells = row
            .iter()
            .zip(&widths)
            .zip(right)
            .map(|((cell, &width), right)| match right {
                true => format!("{cell:>width$}"),
                false => format!("{cell:<width$}"),
            });
        let line = cells.collect::<Vec<_>>().join("  ");
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

fn verdict(verdict: &Verdict, style: impl Fn(Part, &str) -> String) -> String {
    let failed: Vec<&Check> = verdict.checks.iter().filter(|check| !check.met).collect();
    let (part, word, detail) = match verdict.met() {
        None => {
            let why_not = verdict.why_not.clone();
            (Part::NotJudged, "-", why_not.unwrap_or_default())
        }
        Some(true) => (Part::Met, "met", summary(&verdict.checks)),
        Some(false) => (Part::NotMet, "NOT MET", String::new()),
    };
    let detail = match detail.is_empty() {
        true => String::new(),
        false => format!(" ({detail})"),
    };
    let word = style(part, &format!("{word:<8}"));
    let mut out = format!("{word} {}: {}{detail}\n", verdict.says, verdict.that);
    for check in failed {
        let _ = writeln!(out, "{:<8}   {}: {}", "", check.at, numbers(check));
    }
    out
}

/// One check in full; of several how many they are.
fn summary(checks: &[Check]) -> String {
    match checks {
        [check] => format!("{}: {}", check.at, numbers(check)),
        checks => format!("at each of {} points", checks.len()),
    }
}

pub(super) fn numbers(check: &Check) -> String {
    let terms = check
        .terms
        .iter()
        .map(|(name, value)| format!("{name} = {}", short(*value, 4)));
    let mut words: Vec<String> = terms.collect();
    words.extend(check.trouble.clone());
    words.join(", ")
}
