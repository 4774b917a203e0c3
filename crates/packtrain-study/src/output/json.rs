//! The document that programs read: `docs/sim.schema.json`. Parameters and values are in their base units and their own
//! unit; what is no number is null.

mod explain;

pub use explain::{explain, list};

use serde::Serialize;
use serde_json::{Map, Value as Json};

use super::Study;
use crate::expression::Value;
use crate::interval::Interval;
use crate::scenario::Scenario;

/// Of the document; it rises when a reader of the old one would be misled.
pub const VERSION: u32 = 1;

#[derive(Debug, Serialize)]
pub struct Document {
    packtrain_sim: u32,
    version: String,
    command: String,
    scenario: About,
    quick: bool,
    settings: Vec<Setting>,
    varied: Vec<String>,
    seeds: Vec<u64>,
    values: Vec<ValueAbout>,
    points: Vec<Point>,
    series: Vec<Series>,
    reported: Vec<Reported>,
    expectations: Vec<Expectation>,
    /// Whether nothing that was judged has failed.
    met: bool,
}

#[derive(Debug, Serialize)]
struct About {
    name: String,
    title: String,
    kind: String,
    paper: Option<String>,
}

#[derive(Debug, Serialize)]
struct Setting {
    name: String,
    value: Json,
    /// With its unit.
    text: String,
    says: String,
}

#[derive(Debug, Serialize)]
struct ValueAbout {
    name: String,
    unit: String,
    says: String,
}

impl ValueAbout {
    fn all(scenario: &Scenario) -> Vec<ValueAbout> {
        let values = scenario.values.iter().map(|value| ValueAbout {
            name: value.name.clone(),
            unit: value.unit.clone(),
            says: value.says.clone(),
        });
        values.collect()
    }
}

#[derive(Debug, Serialize)]
struct Point {
    at: Map<String, Json>,
    values: Map<String, Json>,
    /// Of the simulator, all seeds together.
    events: u64,
    hops: u64,
}

#[derive(Debug, Serialize)]
struct Mean {
    mean: Json,
    /// Half the width of the interval of 95 %.
    half_width: Json,
    /// In the order of the seeds.
    runs: Vec<Json>,
}

#[derive(Debug, Serialize)]
struct Series {
    name: String,
    unit: String,
    /// Seconds, and what it was then; or bytes of a flow's data units, where its name says `by size`.
    points: Vec<[Json; 2]>,
}

#[derive(Debug, Serialize)]
struct Reported {
    value: String,
    points: Vec<[Json; 2]>,
}

#[derive(Debug, Serialize)]
struct Expectation {
    says: String,
    that: String,
    /// Null: not judged.
    met: Option<bool>,
    why_not: Option<String>,
    checks: Vec<Check>,
}

#[derive(Debug, Serialize)]
struct Check {
    at: String,
    met: bool,
    terms: Map<String, Json>,
    trouble: Option<String>,
}

pub fn document(study: &Study<'_>) -> Document {
    let Study {
        scenario, results, ..
    } = *study;
    Document {
        packtrain_sim: VERSION,
        version: study.version.to_owned(),
        command: study.command.to_owned(),
        scenario: About {
            name: scenario.name.clone(),
            title: scenario.title.clone(),
            kind: scenario.kind.clone(),
            paper: scenario.paper.clone(),
        },
        quick: results.plan.quick,
        settings: study
            .constants()
            .map(|(parameter, value)| Setting {
                name: parameter.name.clone(),
                value: json(value),
                text: parameter.print(value),
                says: parameter.says.clone(),
            })
            .collect(),
        varied: results
            .plan
            .varied
            .iter()
            .map(|vary| vary.name.clone())
            .collect(),
        seeds: results.plan.seeds.clone(),
        values: ValueAbout::all(scenario),
        points: results.points.iter().map(|at| point(study, at)).collect(),
        series: results
            .series
            .iter()
            .map(|series| Series {
                name: series.name.clone(),
                unit: series.unit.clone(),
                points: pairs(&series.points),
            })
            .collect(),
        reported: scenario
            .reported
            .iter()
            .map(|reported| Reported {
                value: reported.value.clone(),
                points: pairs(&reported.points),
            })
            .collect(),
        expectations: study.verdicts.iter().map(expectation).collect(),
        met: crate::judge::all_met(study.verdicts),
    }
}

pub fn text(study: &Study<'_>) -> String {
    serde_json::to_string_pretty(&document(study)).expect("texts and numbers") + "\n"
}

fn point(study: &Study<'_>, point: &crate::sweep::Point) -> Point {
    let varied = study.results.plan.varied.iter();
    let at = varied.filter_map(|vary| {
        let value = point.settings.get(&vary.name)?;
        Some((vary.name.clone(), json(value)))
    });
    let values = study.scenario.values.iter().enumerate().map(|(i, value)| {
        let Interval { mean, half_width } = point.means[i];
        let mean = Mean {
            mean: number(mean),
            half_width: half_width.map_or(Json::Null, number),
            runs: point.runs.iter().map(|run| number(run.values[i])).collect(),
        };
        let mean = serde_json::to_value(mean).expect("numbers");
        (value.name.clone(), mean)
    });
    Point {
        at: at.collect(),
        values: values.collect(),
        events: point.runs.iter().map(|run| run.events).sum(),
        hops: point.runs.iter().map(|run| run.hops).sum(),
    }
}

fn expectation(verdict: &crate::judge::Verdict) -> Expectation {
    Expectation {
        says: verdict.says.clone(),
        that: verdict.that.clone(),
        met: verdict.met(),
        why_not: verdict.why_not.clone(),
        checks: verdict
            .checks
            .iter()
            .map(|check| Check {
                at: check.at.clone(),
                met: check.met,
                terms: check
                    .terms
                    .iter()
                    .map(|(name, value)| (name.clone(), number(*value)))
                    .collect(),
                trouble: check.trouble.clone(),
            })
            .collect(),
    }
}

fn pairs(points: &[(f64, f64)]) -> Vec<[Json; 2]> {
    points
        .iter()
        .map(|(x, y)| [number(*x), number(*y)])
        .collect()
}

fn json(value: &Value) -> Json {
    match value {
        Value::Number(value) => number(*value),
        Value::Text(text) => Json::String(text.clone()),
    }
}

/// Whole numbers without a fraction.
fn number(value: f64) -> Json {
    match value {
        v if v == v.trunc() && v.abs() < 9e15 => Json::from(v as i64),
        v => serde_json::Number::from_f64(v).map_or(Json::Null, Json::Number),
    }
}
