//! A page for a browser: one file that needs no other, light or dark as the reader has it.

use std::fmt::Write as _;

use super::svg::{STYLE, plots};
use super::text::numbers;
use super::{Study, interval};
use crate::judge::Verdict;

const PAGE_STYLE: &str = "\
:root { color-scheme: light dark; --text: #1b1f24; --page: #ffffff; --faint: #6a737d; --line: #d8dee4; --with: #0969da;
        --bad: #cf222e; --good: #1a7f37; }
@media screen and (prefers-color-scheme: dark) {
  :root { --text: #e6edf3; --page: #0d1117; --faint: #8d96a0; --line: #30363d; --with: #4493f8; --bad: #f85149; --good: #3fb950; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page); max-width: 60rem;
       margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.faint { color: var(--faint); } .bad { color: var(--bad); font-weight: 600; } .good { color: var(--good); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .2rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
.words th, .words td { text-align: left; }
pre { border: 1px solid var(--line); padding: .5rem 1rem; overflow-x: auto; white-space: pre-wrap; }
svg { width: 100%; min-width: 34rem; height: auto; break-inside: avoid; }
.wide td, .wide th { white-space: nowrap; }
@media print { svg { min-width: 0; } .wide td { white-space: normal; } tr { break-inside: avoid; } h2 { break-after: avoid; } }
";

pub fn html(study: &Study<'_>) -> String {
    let scenario = study.scenario;
    let title = escaped(&scenario.title);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>packtrain sim: {title}</title>\n\
         <style>\n{PAGE_STYLE}{STYLE}\n</style>\n<h1>{title}</h1>\n"
    );
    let paper = scenario
        .paper
        .as_ref()
        .map(|paper| format!("; {}", escaped(paper)));
    let _ = writeln!(
        out,
        "<p class=\"faint\">{}{}; {}{}; packtrain {}</p>",
        escaped(&scenario.name),
        paper.unwrap_or_default(),
        study.seeds_words(),
        if study.results.plan.quick {
            "; the quick form"
        } else {
            ""
        },
        escaped(study.version)
    );
    for paragraph in scenario.shows.split("\n\n").filter(|p| !p.is_empty()) {
        let _ = writeln!(out, "<p>{}</p>", escaped(paragraph));
    }
    for drawn in plots(study) {
        let _ = writeln!(out, "<div class=\"wide\">{}</div>", drawn.chart.inline());
    }
    verdicts(&mut out, study.verdicts);
    results(&mut out, study);
    parameters(&mut out, study);
    if !scenario.assumes.is_empty() {
        out += "<h2>Assumed</h2>\n<ul>\n";
        for assumed in &scenario.assumes {
            let _ = writeln!(out, "<li>{}</li>", escaped(assumed));
        }
        out += "</ul>\n";
    }
    let _ = writeln!(
        out,
        "<h2>How to repeat it</h2>\n<pre>{}</pre>\n</html>",
        escaped(study.command)
    );
    out
}

fn verdicts(out: &mut String, verdicts: &[Verdict]) {
    if verdicts.is_empty() {
        return;
    }
    *out += "<h2>What was expected</h2>\n<table class=\"words\">\n";
    for verdict in verdicts {
        let (class, word) = match verdict.met() {
            Some(true) => ("good", "met"),
            Some(false) => ("bad", "not met"),
            None => ("faint", "not judged"),
        };
        let why = verdict
            .why_not
            .as_ref()
            .map(|why| format!("<br>{}", escaped(why)));
        let mut details = why.unwrap_or_default();
        // Of many that are met nobody reads all.
        let few = verdict.checks.len() <= 3;
        for check in verdict.checks.iter().filter(|check| few || !check.met) {
            let _ = write!(
                details,
                "<br>{}: {}",
                escaped(&check.at),
                escaped(&numbers(check))
            );
        }
        let _ = writeln!(
            out,
            "<tr><td class=\"{class}\">{word}<td>{}<br><code>{}</code><span class=\"faint\">{details}</span>",
            escaped(&verdict.says),
            escaped(&verdict.that)
        );
    }
    *out += "</table>\n";
}

fn results(out: &mut String, study: &Study<'_>) {
    let (scenario, results) = (study.scenario, study.results);
    *out += "<h2>Results</h2>\n";
    if results.plan.varied.is_empty() {
        *out += "<table class=\"words\">\n";
        for (value, mean) in scenario.values.iter().zip(&results.points[0].means) {
            let _ = writeln!(
                out,
                "<tr><td>{}<td>{} {}<td>{}",
                escaped(&value.name),
                escaped(&interval(*mean)),
                escaped(&value.unit),
                escaped(&value.says)
            );
        }
        *out += "</table>\n";
        return;
    }
    *out += "<div class=\"wide\"><table>\n<tr>";
    for vary in &results.plan.varied {
        let _ = write!(out, "<th>{}", escaped(&vary.name));
    }
    for value in &scenario.values {
        let _ = write!(
            out,
            "<th title=\"{}\">{}<br><span class=\"faint\">{}</span>",
            escaped(&value.says),
            escaped(&value.name),
            escaped(&value.unit)
        );
    }
    *out += "\n";
    for point in &results.points {
        *out += "<tr>";
        for vary in &results.plan.varied {
            let value = point.settings.get(&vary.name).expect("it is varied");
            let parameter = scenario.parameters.get(&vary.name).expect("it is one");
            let _ = write!(out, "<td>{}", escaped(&parameter.print(value)));
        }
        for mean in &point.means {
            let _ = write!(out, "<td>{}", escaped(&interval(*mean)));
        }
        *out += "\n";
    }
    *out += "</table></div>\n";
    if results.plan.seeds.len() > 1 {
        *out += "<p class=\"faint\">Means over the seeds, ± half the width of the interval of 95 % (Student).</p>\n";
    }
}

fn parameters(out: &mut String, study: &Study<'_>) {
    if study.scenario.parameters.0.is_empty() {
        return;
    }
    *out += "<h2>Parameters</h2>\n<table class=\"words\">\n";
    for parameter in &study.scenario.parameters.0 {
        let value = match study.is_varied(&parameter.name) {
            true => study.varied_words(&parameter.name),
            false => {
                let value = study.results.plan.settings.get(&parameter.name);
                value
                    .map(|value| parameter.print(value))
                    .unwrap_or_default()
            }
        };
        let _ = writeln!(
            out,
            "<tr><td>{}<td>{}<td>{}",
            escaped(&parameter.name),
            escaped(&value),
            escaped(&parameter.says)
        );
    }
    *out += "</table>\n";
}

/// A scenario is somebody else's text.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            '"' => out += "&quot;",
            // No XML has them, not even written otherwise.
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
