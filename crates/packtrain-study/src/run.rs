//! One run: what the model found out, and the values that the scenario makes of it.

use crate::expression::Value;
use crate::model::{Facts, Progress, Series, unit_of};
use crate::scenario::{Prepared, Scenario, Scope, fact_of_flows};

/// What a run of a seed came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    pub seed: u64,
    /// In the order of the scenario's values; `NaN` where there is none.
    pub values: Vec<f64>,
    pub events: u64,
    pub hops: u64,
}

/// The run, and what went on during it.
pub fn run(
    scenario: &Scenario,
    prepared: &Prepared,
    seed: u64,
    progress: &dyn Progress,
) -> Result<(Run, Vec<Series>), String> {
    let mut outcome = prepared.model.run(seed, progress);
    over_size(scenario, &outcome.facts, &mut outcome.series)?;
    let fact = |fact: &str, of: &[&str]| outcome.facts.get(fact, of);
    let mut scope = Scope::of(&prepared.settings, &prepared.lets);
    scope.facts = Some((&fact, outcome.facts.names()));
    let mut values = Vec::with_capacity(scenario.values.len());
    for of in &scenario.values {
        let value = of.is.number(&scope);
        let value = value.map_err(|error| format!("the value {}: {error}", of.name))?;
        // A ratio to nothing is no number: neither is its mean over the seeds.
        let value = if value.is_finite() { value } else { f64::NAN };
        scope.names.push((of.name.clone(), Value::Number(value)));
        values.push(value);
    }
    let run = Run {
        seed,
        values,
        events: outcome.events,
        hops: outcome.hops,
    };
    Ok((run, outcome.series))
}

/// What a series of something of each flow by the size of its data units is called.
pub fn by_size(of: &str) -> String {
    format!("{of} by size")
}

fn over_size(scenario: &Scenario, facts: &Facts, series: &mut Vec<Series>) -> Result<(), String> {
    for of in scenario.over_size() {
        let (fact, flows) = fact_of_flows(of)?;
        let mut points = facts.by_size(fact, &[flows])?;
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        series.push(Series {
            name: by_size(of),
            unit: unit_of(fact).into(),
            points,
        });
    }
    Ok(())
}
