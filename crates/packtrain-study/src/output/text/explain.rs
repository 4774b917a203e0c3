//! What a scenario is about, before anything is run.

use std::fmt::Write as _;

use crate::scenario::Scenario;

const WIDTH: usize = 96;

/// Title, paper, what it shows, parameters with what is allowed, assumptions, what is reported and expected.
pub fn explain(scenario: &Scenario) -> String {
    let mut out = format!("{}: {}\n", scenario.name, scenario.title);
    if let Some(paper) = &scenario.paper {
        let _ = writeln!(out, "Paper: {paper}");
    }
    for paragraph in scenario.shows.split("\n\n").filter(|p| !p.is_empty()) {
        let _ = write!(out, "\n{}", wrapped("", paragraph));
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
        out += &wrapped("  ", &line);
    }
    list(&mut out, "Assumed", scenario.assumes.iter().cloned());
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
    list(&mut out, "Reported", values);
    let expects = scenario.expects.iter().map(|expect| {
        let over = expect.over.as_ref().map(|over| format!(", over {over}"));
        format!(
            "{}: {}{}",
            expect.says,
            expect.that.text(),
            over.unwrap_or_default()
        )
    });
    list(&mut out, "Expected", expects);
    out
}

fn list(out: &mut String, title: &str, items: impl Iterator<Item = String>) {
    let mut items = items.peekable();
    if items.peek().is_some() {
        let _ = writeln!(out, "\n{title}:");
    }
    for item in items {
        *out += &wrapped("  ", &item);
    }
}

/// Lines no longer than a terminal is wide; those after the first one stand in by two more.
fn wrapped(indent: &str, text: &str) -> String {
    let mut out = String::new();
    let mut line = indent.to_owned();
    let mut empty = true;
    for word in text.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(out, "{line}");
            line = format!("{indent}{}", if indent.is_empty() { "" } else { "  " });
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line += word;
        empty = false;
    }
    let _ = writeln!(out, "{line}");
    out
}
