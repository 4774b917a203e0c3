//! What scenarios are about, for programs.

use serde::Serialize;
use serde_json::{Map, Value as Json};

use super::{ValueAbout, json, number};
use crate::parameters::{Kind, Parameter};
use crate::scenario::{Scenario, X};
use crate::vary::Vary;

#[derive(Debug, Serialize)]
struct Entry<'a> {
    name: &'a str,
    title: &'a str,
    kind: &'a str,
    paper: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct Explained<'a> {
    #[serde(flatten)]
    entry: Entry<'a>,
    shows: &'a str,
    assumes: &'a [String],
    parameters: Vec<ParameterAbout<'a>>,
    sweep: Sweep,
    quick_sweep: Sweep,
    values: Vec<ValueAbout>,
    plots: Vec<PlotAbout<'a>>,
    expectations: Vec<Expected<'a>>,
}

#[derive(Debug, Serialize)]
struct ParameterAbout<'a> {
    name: &'a str,
    says: &'a str,
    default: Json,
    /// Null: the default.
    quick: Option<Json>,
    /// In words.
    allowed: String,
    /// Null: without such a bound, or a word.
    least: Option<Json>,
    most: Option<Json>,
    whole: bool,
    /// Null: a number.
    one_of: Option<&'a [String]>,
}

#[derive(Debug, Serialize)]
struct Sweep {
    vary: Map<String, Json>,
    seeds: u32,
}

#[derive(Debug, Serialize)]
struct PlotAbout<'a> {
    title: &'a str,
    /// `time`, `size`, or a parameter.
    x: &'a str,
    y: &'a [String],
    paper: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct Expected<'a> {
    says: &'a str,
    that: &'a str,
    /// Null: the same.
    quick: Option<&'a str>,
    /// Null: at each point.
    over: Option<&'a str>,
}

/// The `list` of the schema.
pub fn list(scenarios: &[Scenario]) -> String {
    printed(&scenarios.iter().map(entry).collect::<Vec<_>>())
}

/// The `explain` of the schema.
pub fn explain(scenario: &Scenario) -> String {
    let sweep = |vary: &[Vary], quick: bool| Sweep {
        vary: vary
            .iter()
            .map(|vary| {
                let values = vary.values.iter().map(json).collect();
                (vary.name.clone(), Json::Array(values))
            })
            .collect(),
        seeds: scenario.seeds(quick),
    };
    let of_quick = scenario.sweep.quick_vary.as_ref();
    printed(&Explained {
        entry: entry(scenario),
        shows: &scenario.shows,
        assumes: &scenario.assumes,
        parameters: scenario
            .parameters
            .0
            .iter()
            .map(|of| parameter(scenario, of))
            .collect(),
        sweep: sweep(&scenario.sweep.vary, false),
        quick_sweep: sweep(of_quick.unwrap_or(&scenario.sweep.vary), true),
        values: ValueAbout::all(scenario),
        plots: scenario
            .plots
            .iter()
            .map(|plot| PlotAbout {
                title: &plot.title,
                x: match &plot.x {
                    X::Time => "time",
                    X::Size => "size",
                    X::Parameter(name) => name,
                },
                y: &plot.y,
                paper: plot.paper.as_deref(),
            })
            .collect(),
        expectations: scenario
            .expects
            .iter()
            .map(|expect| Expected {
                says: &expect.says,
                that: expect.that.text(),
                quick: expect.quick.as_ref().map(|quick| quick.text()),
                over: expect.over.as_deref(),
            })
            .collect(),
    })
}

fn entry(scenario: &Scenario) -> Entry<'_> {
    Entry {
        name: &scenario.name,
        title: &scenario.title,
        kind: &scenario.kind,
        paper: scenario.paper.as_deref(),
    }
}

fn parameter<'a>(scenario: &'a Scenario, of: &'a Parameter) -> ParameterAbout<'a> {
    let quick = scenario.quick.iter().find(|(name, _)| *name == of.name);
    let (range, one_of) = match &of.kind {
        Kind::Number(range) => (Some(range), None),
        Kind::Choice(words) => (None, Some(words.as_slice())),
    };
    ParameterAbout {
        name: &of.name,
        says: &of.says,
        default: json(&of.default),
        quick: quick.map(|(_, value)| json(value)),
        allowed: of.allowed(),
        least: range.and_then(|range| range.least).map(number),
        most: range.and_then(|range| range.most).map(number),
        whole: range.is_some_and(|range| range.whole),
        one_of,
    }
}

fn printed(document: &impl Serialize) -> String {
    serde_json::to_string_pretty(document).expect("texts and numbers") + "\n"
}
