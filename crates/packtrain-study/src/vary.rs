//! What a sweep varies: `F=1..13`, `F=1..13/3` in steps of 3, `F=1,4,13`, `how=drop-tail,drr`.

use std::collections::BTreeSet;

use crate::expression::Value;
use crate::parameters::{Kind, Parameter, Parameters, Range, SettingError, Settings};
use crate::quantity::{Dimension, Quantity};
use crate::sweep::store::exact;

/// More are a mistake: each is a run of its own.
pub const POINTS_MAX: usize = 100_000;
/// Each is kept until all have ended.
pub const RUNS_MAX: usize = 1_000_000;

/// The values that one parameter goes through.
#[derive(Clone, Debug, PartialEq)]
pub struct Vary {
    pub name: String,
    pub values: Vec<Value>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VaryError {
    #[error(
        "{text:?} varies nothing: write it as in F=1..13, F=1..13/3 (in steps of 3) or F=1,4,13"
    )]
    Syntax { text: String },
    #[error("{text}: {what}")]
    Range { text: String, what: String },
    #[error("{name} is varied twice")]
    Twice { name: String },
    #[error("{name} is set and varied")]
    SetAndVaried { name: String },
    #[error("{points} points, and {POINTS_MAX} are the most")]
    TooMany { points: usize },
    #[error("{points} points with {seeds} seeds each, and {RUNS_MAX} runs are the most")]
    TooManyRuns { points: usize, seeds: usize },
    #[error(transparent)]
    Setting(#[from] SettingError),
}

impl Vary {
    pub fn parse(text: &str, parameters: &Parameters) -> Result<Vary, VaryError> {
        let syntax = || VaryError::Syntax { text: text.into() };
        let (name, values) = text.split_once('=').ok_or_else(syntax)?;
        let parameter = parameters.get(name.trim())?;
        let is_number = matches!(parameter.kind, Kind::Number(_));
        let values = match values.split_once("..") {
            Some((from, rest)) if is_number => range(text, from.trim(), rest.trim(), parameter)?,
            _ if values.trim().is_empty() => return Err(syntax()),
            _ => {
                let values = values.split(',').map(|value| parameter.parse(value.trim()));
                values.collect::<Result<Vec<Value>, _>>()?
            }
        };
        let mut seen = BTreeSet::new();
        for value in &values {
            if !seen.insert(exact(value)) {
                let what = format!("{} comes twice", parameter.print(value));
                return Err(VaryError::Range {
                    text: text.into(),
                    what,
                });
            }
        }
        Ok(Vary {
            name: parameter.name.clone(),
            values,
        })
    }
}

fn range(
    text: &str,
    from: &str,
    rest: &str,
    parameter: &Parameter,
) -> Result<Vec<Value>, VaryError> {
    let wrong = |what: String| VaryError::Range {
        text: text.into(),
        what,
    };
    let (to, step) = match rest.split_once('/') {
        Some((to, step)) => (to.trim(), Some(step.trim())),
        None => (rest, None),
    };
    let Kind::Number(Range { dimension, .. }) = parameter.kind else {
        unreachable!("the parameter is one of numbers");
    };
    let number = |value: &Value| value.number().expect("the parameter is one");
    let first = number(&parameter.parse(from)?);
    let last = number(&parameter.parse(to)?);
    let step = match step {
        Some(step) => {
            let like = || format!("{step:?} is no step: write it as in {}", dimension.like());
            Quantity::of(dimension, step).ok_or_else(|| wrong(like()))?
        }
        None if dimension == Dimension::Number => 1.0,
        // A second or a bit a second is what nobody means.
        None => {
            let tenth = dimension.print((last - first).abs() / 10.0);
            let like = format!("say in which steps, as in {from}..{to}/{tenth}");
            return Err(wrong(like));
        }
    };
    if step <= 0.0 || last < first {
        return Err(wrong("from the least to the most, in steps above 0".into()));
    }
    if last > first && step > (last - first) * (1.0 + 1e-9) {
        let step = dimension.print(step);
        return Err(wrong(format!("a step of {step} is longer than all of it")));
    }
    let steps = (last - first) / step;
    if steps >= POINTS_MAX as f64 {
        return Err(VaryError::TooMany {
            points: steps as usize,
        });
    }
    // What is a hair short of the last step is on it.
    let steps = (steps + 1e-9).floor() as usize;
    let values = (0..=steps).map(|i| parameter.check(first + i as f64 * step));
    Ok(values.collect::<Result<Vec<Value>, _>>()?)
}

/// Every combination, the last one varied fastest; one point where nothing is varied.
pub fn points(settings: &Settings, varied: &[Vary]) -> Result<Vec<Settings>, VaryError> {
    let mut points = vec![settings.clone()];
    for (i, vary) in varied.iter().enumerate() {
        if varied[..i].iter().any(|before| before.name == vary.name) {
            return Err(VaryError::Twice {
                name: vary.name.clone(),
            });
        }
        let count = points.len() * vary.values.len();
        if count > POINTS_MAX {
            return Err(VaryError::TooMany { points: count });
        }
        let with = |point: &Settings, value: &Value| {
            let mut point = point.clone();
            point.set(&vary.name, value.clone());
            point
        };
        points = points
            .iter()
            .flat_map(|point| vary.values.iter().map(move |value| with(point, value)))
            .collect();
    }
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::tests::three;

    fn values(text: &str) -> Vec<String> {
        let vary = Vary::parse(text, &three()).unwrap();
        let parameters = three();
        let parameter = parameters.get(&vary.name).unwrap();
        vary.values
            .iter()
            .map(|value| parameter.print(value))
            .collect()
    }

    fn error(text: &str) -> String {
        Vary::parse(text, &three()).unwrap_err().to_string()
    }

    #[test]
    fn a_range_has_both_its_ends_and_a_list_what_it_names() {
        assert_eq!(values("F=1..4"), ["1", "2", "3", "4"]);
        assert_eq!(values("F=1..13/3"), ["1", "4", "7", "10", "13"]);
        assert_eq!(values("F=1..12/3"), ["1", "4", "7", "10"]);
        assert_eq!(values("F = 13, 1"), ["13", "1"]);
        assert_eq!(
            values("rtt=100ms..300ms/100ms"),
            ["100ms", "200ms", "300ms"]
        );
        assert_eq!(values("how=drr,drop-tail"), ["drr", "drop-tail"]);
    }

    #[test]
    fn what_cannot_be_varied_so_is_told() {
        let usual = "write it as in F=1..13, F=1..13/3 (in steps of 3) or F=1,4,13";
        assert_eq!(error("F"), format!("\"F\" varies nothing: {usual}"));
        assert_eq!(error("F="), format!("\"F=\" varies nothing: {usual}"));
        assert_eq!(error("F=1..44"), "F=44: F is a whole number from 1 to 43");
        assert_eq!(
            error("F=1..3/0.5"),
            "F=1.5: F is a whole number from 1 to 43"
        );
        assert_eq!(
            error("F=5..1"),
            "F=5..1: from the least to the most, in steps above 0"
        );
        assert_eq!(
            error("F=1..3/x"),
            "F=1..3/x: \"x\" is no step: write it as in 13 or 0.5"
        );
        assert_eq!(
            error("F=1..3/1ms"),
            "F=1..3/1ms: \"1ms\" is no step: write it as in 13 or 0.5"
        );
        // Otherwise one point would be all that comes of it, and nobody would know.
        assert_eq!(
            error("F=1..3/4"),
            "F=1..3/4: a step of 4 is longer than all of it"
        );
        assert_eq!(
            error("rtt=10ms..100ms"),
            "rtt=10ms..100ms: say in which steps, as in 10ms..100ms/9ms"
        );
        assert_eq!(
            error("rtt=10ms..100ms/10"),
            "rtt=10ms..100ms/10: \"10\" is no step: write it as in 100ms, 5us or 2s"
        );
        assert_eq!(error("F=1,2,1"), "F=1,2,1: 1 comes twice");
        assert_eq!(error("G=1"), "there is no parameter G (near it: F)");
        assert_eq!(
            error("rtt=1s..100s/1us"),
            "99000000 points, and 100000 are the most"
        );
    }

    #[test]
    fn several_that_are_varied_give_every_combination() {
        let parameters = three();
        let varied =
            ["F=1,2", "how=drr,drop-tail"].map(|text| Vary::parse(text, &parameters).unwrap());
        let points = points(&parameters.defaults(), &varied).unwrap();
        let of = |point: &Settings| {
            let [f, how] = ["F", "how"].map(|name| point.get(name).unwrap().to_string());
            format!("{f} {how}")
        };
        let all: Vec<String> = points.iter().map(of).collect();
        assert_eq!(all, ["1 drr", "1 drop-tail", "2 drr", "2 drop-tail"]);
        let twice = [varied[0].clone(), varied[0].clone()];
        assert_eq!(
            super::points(&parameters.defaults(), &twice)
                .unwrap_err()
                .to_string(),
            "F is varied twice"
        );
        assert_eq!(super::points(&parameters.defaults(), &[]).unwrap().len(), 1);
    }
}
