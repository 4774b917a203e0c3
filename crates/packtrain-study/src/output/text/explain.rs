//! What a scenario is about, before anything is run.

use std::fmt::Write as _;

use super::table;
use crate::output::wrap::wrapped;
use crate::parameters::Parameters;
use crate::scenario::{Scenario, X};
use crate::vary::Vary;

const WIDTH: usize = 96;

/// A row each.
pub fn list(scenarios: &[Scenario]) -> String {
    let heading = ["NAME", "PAPER", "TITLE"].map(str::to_owned);
    let mut rows = vec![heading.to_vec()];
    rows.extend(scenarios.iter().map(|scenario| {
        let paper = scenario.paper.clone().unwrap_or_default();
        vec![scenario.name.clone(), paper, scenario.title.clone()]
    }));
    table(&rows, &[false; 3])
}

/// Title, paper, what it shows, parameters with what is allowed, assumptions, what is reported and expected.
pub fn explain(scenario: &Scenario) -> String {
    let mut out = format!("{}: {}\n", scenario.name, scenario.title);
    if let Some(paper) = &scenario.paper {
        let _ = writeln!(out, "Paper: {paper}");
    }
    for paragraph in scenario.shows.split("\n\n").filter(|p| !p.is_empty()) {
        let _ = write!(out, "\n{}", indented("", paragraph));
    }
    if !scenario.parameters.0.is_empty() {
        out += "\nParameters (--set NAME=VALUE):\n";
    }
    for parameter in &scenario.parameters.0 {
        let default = parameter.print(&parameter.default);
        let quick = scenario
            .quick
            .iter()
            .find(|(name, _)| *name == parameter.name);
        let quick = quick.map(|(_, value)| format!(", quick {}", parameter.print(value)));
        let line = format!(
            "{} = {default}{}: {}{}{}",
            parameter.name,
            quick.unwrap_or_default(),
            parameter.says,
            if parameter.says.is_empty() { "" } else { "; " },
            parameter.allowed(),
        );
        out += &indented("  ", &line);
    }
    if let Some(swept) = swept(scenario) {
        let _ = write!(out, "\nSwept (sim sweep):\n{}", indented("  ", &swept));
    }
    items(&mut out, "Assumed", scenario.assumes.iter().cloned());
    let values = scenario.values.iter().map(|value| {
        let unit = if value.unit.is_empty() {
            String::new()
        } else {
            format!(" [{}]", value.unit)
        };
        format!(
            "{}{unit}: {}",
            value.name,
            if value.says.is_empty() {
                value.is.text()
            } else {
                &value.says
            }
        )
    });
    items(&mut out, "Reported", values);
    let plots = scenario.plots.iter().map(|plot| {
        let over = match &plot.x {
            X::Time => "time, of a run",
            X::Size => "the size of data units, of a run",
            X::Parameter(name) => name,
        };
        let paper = plot.paper.as_ref().map(|paper| format!(" ({paper})"));
        format!("{}, over {over}{}", plot.title, paper.unwrap_or_default())
    });
    items(&mut out, "Drawn (--svg, --report)", plots);
    let expects = scenario.expects.iter().map(|expect| {
        let over = expect.over.as_ref().map(|over| format!(", over {over}"));
        let quick = expect.quick.as_ref();
        let quick = quick.map(|quick| format!("; quick {}", quick.text()));
        format!(
            "{}: {}{}{}",
            expect.says,
            expect.that.text(),
            quick.unwrap_or_default(),
            over.unwrap_or_default()
        )
    });
    items(&mut out, "Expected", expects);
    out
}

/// As in `F = 1, 4, 13 with 5 seeds; quick F = 1, 13 with 2`.
fn swept(scenario: &Scenario) -> Option<String> {
    let sweep = &scenario.sweep;
    let words = |vary: &[Vary], seeds: u32| {
        let vary = vary.iter().map(|vary| values(vary, &scenario.parameters));
        let vary = vary.collect::<Vec<_>>().join("; ");
        let seeds = match seeds {
            1 => "1 seed".to_owned(),
            seeds => format!("{seeds} seeds"),
        };
        match vary.is_empty() {
            true => seeds,
            false => format!("{vary}, with {seeds}"),
        }
    };
    let whole = words(&sweep.vary, sweep.seeds);
    let quick_vary = sweep.quick_vary.as_ref().unwrap_or(&sweep.vary);
    let quick = words(quick_vary, scenario.seeds(true));
    match (whole == quick, sweep.vary.is_empty() && sweep.seeds == 1) {
        (true, true) => None,
        (true, false) => Some(whole),
        (false, _) => Some(format!("{whole}; quick {quick}")),
    }
}

fn values(vary: &Vary, parameters: &Parameters) -> String {
    let parameter = parameters.get(&vary.name).expect("it was read so");
    let values = vary.values.iter().map(|value| parameter.print(value));
    format!("{} = {}", vary.name, values.collect::<Vec<_>>().join(", "))
}

fn items(out: &mut String, title: &str, items: impl Iterator<Item = String>) {
    let mut items = items.peekable();
    if items.peek().is_some() {
        let _ = writeln!(out, "\n{title}:");
    }
    for item in items {
        *out += &indented("  ", &item);
    }
}

/// Lines no longer than a terminal is wide; those after the first one stand in by two more.
fn indented(indent: &str, text: &str) -> String {
    let further = if indent.is_empty() { "" } else { "  " };
    let first = WIDTH - indent.len();
    let lines = wrapped(text, first, first - further.len());
    let indents = std::iter::once("").chain(std::iter::repeat(further));
    let lines = indents
        .zip(lines)
        .map(|(further, line)| format!("{indent}{further}{line}\n"));
    lines.collect()
}
