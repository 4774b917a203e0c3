//! Whether what was expected came: at each point by itself, and over a parameter that was varied.

use std::cell::Cell;

use packtrain_sim::statistics::Line;

use crate::expression::{Argument, Expression, ExpressionError, Value};
use crate::scenario::{Expect, Scenario, Scope};
use crate::sweep::{Point, Results, words_at};
use crate::vary::Vary;

/// What became of one expectation.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub says: String,
    pub that: String,
    /// Empty where it was not judged.
    pub checks: Vec<Check>,
    /// Why it was not judged.
    pub why_not: Option<String>,
}

/// At one point, or over some.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// As in `F = 13` or `over F, n = 5`.
    pub at: String,
    pub met: bool,
    /// What the expression is made of, and how large it was.
    pub terms: Vec<(String, f64)>,
    /// What kept it from being judged by numbers.
    pub trouble: Option<String>,
}

impl Verdict {
    /// `None`: it was not judged.
    pub fn met(&self) -> Option<bool> {
        match self.checks.is_empty() {
            true => None,
            false => Some(self.checks.iter().all(|check| check.met)),
        }
    }
}

/// Whether nothing that was judged has failed.
pub fn all_met(verdicts: &[Verdict]) -> bool {
    verdicts.iter().all(|verdict| verdict.met() != Some(false))
}

pub fn judge(scenario: &Scenario, results: &Results) -> Vec<Verdict> {
    let expects = scenario.expects.iter();
    expects
        .map(|expect| verdict(scenario, results, expect))
        .collect()
}

fn verdict(scenario: &Scenario, results: &Results, expect: &Expect) -> Verdict {
    let that = expect.that(results.plan.quick);
    let varied = &results.plan.varied;
    let mut verdict = Verdict {
        says: expect.says.clone(),
        that: that.text().to_owned(),
        checks: Vec::new(),
        why_not: None,
    };
    match &expect.over {
        None => {
            let points = results.points.iter();
            let checks = points.map(|point| {
                let at = words_at(scenario, varied, &point.settings);
                check(at, that, &at_point(scenario, point)).0
            });
            verdict.checks = checks.collect();
        }
        Some(over) => match varied.iter().find(|vary| vary.name == *over) {
            Some(vary) if vary.values.len() > 1 => {
                let others: Vec<Vary> = varied
                    .iter()
                    .filter(|vary| vary.name != *over)
                    .cloned()
                    .collect();
                for group in groups(results, &others) {
                    match over_group(scenario, that, over, &others, &group) {
                        Ok((check, _)) => verdict.checks.push(check),
                        Err(absent) => verdict.why_not = Some(absent),
                    }
                }
            }
            _ => verdict.why_not = Some(format!("only a sweep over {over} shows it")),
        },
    }
    verdict
}

/// What keeps an expectation from being judged whatever the runs come to, where points are as they will be and each value
/// is 1: before hours are spent on it. What it says, and what is wrong.
pub fn contradiction(scenario: &Scenario, results: &Results) -> Option<(String, String)> {
    let varied = &results.plan.varied;
    scenario.expects.iter().find_map(|expect| {
        let that = expect.that(results.plan.quick);
        let error = match &expect.over {
            None => results.points.iter().find_map(|point| {
                let at = words_at(scenario, varied, &point.settings);
                check(at, that, &at_point(scenario, point)).1
            }),
            Some(over) => {
                let others = varied.iter().filter(|vary| vary.name != *over);
                let others: Vec<Vary> = others.cloned().collect();
                let swept = varied.iter().any(|vary| vary.name == *over);
                let mut groups = groups(results, &others).into_iter();
                groups.find_map(|group| {
                    let judged = over_group(scenario, that, over, &others, &group);
                    judged.ok().and_then(|(_, error)| error).filter(|_| swept)
                })
            }
        };
        error.map(|error| (expect.says.clone(), error.to_string()))
    })
}

/// Parameters, what is computed of them, and the means of the values.
fn at_point<'a>(scenario: &Scenario, point: &Point) -> Scope<'a> {
    let mut scope = Scope::of(&point.settings, &point.lets);
    for (value, mean) in scenario.values.iter().zip(&point.means) {
        scope
            .names
            .push((value.name.clone(), Value::Number(mean.mean)));
    }
    scope
}

/// Points that differ in one parameter alone.
fn groups<'a>(results: &'a Results, others: &[Vary]) -> Vec<Vec<&'a Point>> {
    let mut groups: Vec<Vec<&Point>> = Vec::new();
    let same = |a: &Point, b: &Point| {
        let mut names = others.iter().map(|vary| &vary.name);
        names.all(|name| a.settings.get(name) == b.settings.get(name))
    };
    for point in &results.points {
        match groups.iter_mut().find(|group| same(group[0], point)) {
            Some(group) => group.push(point),
            None => groups.push(vec![point]),
        }
    }
    groups
}

/// An error: a point is asked for that the sweep has not, so nothing is known.
fn over_group(
    scenario: &Scenario,
    that: &Expression,
    over: &str,
    others: &[Vary],
    group: &[&Point],
) -> Result<(Check, Option<ExpressionError>), String> {
    let x_of = |point: &Point| {
        point
            .settings
            .get(over)
            .and_then(Value::number)
            .unwrap_or(f64::NAN)
    };
    let mut group = group.to_vec();
    // Words have no order but that of the sweep.
    group.sort_by(|a, b| x_of(a).total_cmp(&x_of(b)));
    let xs: Vec<f64> = group.iter().map(|point| x_of(point)).collect();
    let mut scope = Scope::of(&group[0].settings, &group[0].lets);
    scope.exclude(over);
    for (name, value) in &group[0].lets {
        let same = |point: &&Point| point.lets.iter().any(|(n, v)| n == name && v == value);
        if !group.iter().all(same) {
            scope.exclude(name);
        }
    }
    scenario
        .values
        .iter()
        .for_each(|value| scope.exclude(&value.name));
    let constants: Vec<(String, Value)> = scope.names.clone();
    let parameter = scenario.parameters.get(over).ok();
    let absent: Cell<bool> = Cell::new(false);
    let call = |function: &str, arguments: &[Argument<'_>]| {
        let Some((Argument::Name(name), rest)) = arguments.split_first() else {
            return None;
        };
        let index = scenario
            .values
            .iter()
            .position(|value| value.name == *name)?;
        let ys: Vec<f64> = group.iter().map(|point| point.means[index].mean).collect();
        if function == "at" {
            let x = match *rest.first()? {
                Argument::Number(x) => Value::Number(x),
                Argument::Text(word) => Value::Text(word.to_owned()),
                Argument::Name(name) => {
                    let known = constants.iter().find(|(known, _)| known == name);
                    known.map(|(_, value)| value.clone())?
                }
            };
            let index = group.iter().position(|point| {
                point
                    .settings
                    .get(over)
                    .is_some_and(|value| is_at(value, &x))
            });
            absent.set(index.is_none());
            let x = parameter.map_or_else(|| x.to_string(), |parameter| parameter.print(&x));
            return Some(
                index
                    .map(|index| ys[index])
                    .ok_or_else(|| format!("no point is at {over} = {x}")),
            );
        }
        over_all(function, &xs, &ys)
    };
    scope.over = Some(&call);
    let at = match others.is_empty() {
        true => format!("over {over}"),
        false => format!(
            "over {over}, {}",
            words_at(scenario, others, &group[0].settings)
        ),
    };
    let (check, error) = check(at, that, &scope);
    // It was the last one that was asked for, if it is what ended it.
    match error {
        Some(error) if absent.get() => Err(error.message),
        error => Ok((check, error)),
    }
}

/// Whether a point is the one that is asked for.
fn is_at(value: &Value, asked: &Value) -> bool {
    match (value, asked) {
        (Value::Number(value), Value::Number(asked)) => {
            (value - asked).abs() <= 1e-9 * asked.abs().max(1e-9)
        }
        _ => value == asked,
    }
}

/// A function of a value at all points; the points are in the order of `xs`.
fn over_all(function: &str, xs: &[f64], ys: &[f64]) -> Option<Result<f64, String>> {
    // What is unknown somewhere is unknown of all.
    let fold = |choose: fn(f64, f64) -> f64| {
        let either = |a: f64, b: f64| {
            if a.is_nan() || b.is_nan() {
                f64::NAN
            } else {
                choose(a, b)
            }
        };
        ys.iter().copied().reduce(either).unwrap_or(f64::NAN)
    };
    Some(Ok(match function {
        "slope" => slope(xs, ys),
        "first" => *ys.first()?,
        "last" => *ys.last()?,
        "least" => fold(f64::min),
        "most" => fold(f64::max),
        "mean" => ys.iter().sum::<f64>() / ys.len() as f64,
        "middle" => middle(ys),
        "argmax" => argmax(xs, ys),
        "rises" => {
            let known = ys.iter().all(|y| !y.is_nan());
            f64::from(u8::from(
                known && ys.windows(2).all(|pair| pair[0] <= pair[1]),
            ))
        }
        _ => return None,
    }))
}

/// The median.
fn middle(ys: &[f64]) -> f64 {
    let mut sorted = ys.to_vec();
    sorted.sort_by(f64::total_cmp);
    let unknown = ys.is_empty() || ys.iter().any(|y| y.is_nan());
    match (unknown, ys.len() / 2) {
        (true, _) => f64::NAN,
        (false, half) if ys.len() % 2 == 1 => sorted[half],
        (false, half) => (sorted[half - 1] + sorted[half]) / 2.0,
    }
}

/// Where y is greatest: the top of the parabola through the greatest and its neighbours, which lies between the points. Where the
/// greatest is the first or the last of all, that one: nobody has seen what is beyond.
fn argmax(xs: &[f64], ys: &[f64]) -> f64 {
    if xs.iter().chain(ys).any(|number| number.is_nan()) {
        return f64::NAN;
    }
    let Some(greatest) = (0..ys.len()).reduce(|a, b| if ys[b] > ys[a] { b } else { a }) else {
        return f64::NAN;
    };
    if greatest == 0 || greatest + 1 == ys.len() {
        return xs[greatest];
    }
    let before = greatest - 1;
    let rise = |at: usize| (ys[at + 1] - ys[at]) / (xs[at + 1] - xs[at]);
    // The first of the greatest has less before it, so it bends.
    let bend = (rise(greatest) - rise(before)) / (xs[greatest + 1] - xs[before]);
    (xs[before] + xs[greatest]) / 2.0 - rise(before) / (2.0 * bend)
}

/// Of ln y over ln x, by least squares: the power of x with which y grows.
fn slope(xs: &[f64], ys: &[f64]) -> f64 {
    let points: Vec<(f64, f64)> = xs.iter().copied().zip(ys.iter().copied()).collect();
    // Nothing and less has no logarithm.
    Line::through_logarithms(&points).map_or(f64::NAN, |line| line.slope)
}

/// And why it could not be evaluated.
fn check(at: String, that: &Expression, scope: &Scope<'_>) -> (Check, Option<ExpressionError>) {
    let mut check = Check {
        at,
        met: false,
        terms: Vec::new(),
        trouble: None,
    };
    for term in that.terms() {
        if let Ok(value) = term.number(scope) {
            check.terms.push((term.text().to_owned(), value));
        }
    }
    let truth = that.number(scope);
    match &truth {
        Ok(truth) if truth.is_nan() => check.trouble = Some("it is no number".into()),
        Ok(truth) => check.met = *truth != 0.0,
        Err(error) => check.trouble = Some(error.to_string()),
    }
    // Of what is not known nothing is true, not even that it is not larger.
    if let Some((name, _)) = check.terms.iter().find(|(_, value)| value.is_nan()) {
        check.met = false;
        if truth.is_ok() {
            check.trouble = Some(format!("{name} is no number"));
        }
    }
    (check, truth.err())
}

#[cfg(test)]
mod tests;
