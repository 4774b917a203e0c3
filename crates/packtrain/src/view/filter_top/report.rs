//! The same in lines: for files and pipes, and for programs.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::reading::{Flow, Measured, Reading};
use super::watched::Watched;
use crate::view::numbers::{share, short};

/// What was measured last; `None`: no rate is known.
pub fn text(filter: &Watched, time_of_day: &str) -> Option<String> {
    let reading = measured(filter)?;
    let document = &reading.document;
    let line = match &document.line {
        Some(line) => format!(", below line {line}"),
        None => String::new(),
    };
    let dry = match document.dry_run {
        true => ", DRY RUN: nothing is dropped",
        false => "",
    };
    let left = match document.pid {
        Some(_) => "",
        None => ", its process has ended: only its rules decide",
    };
    let mut text = format!(
        "{time_of_day} filter of {}: policy {}, mode {}, ports {}{line}{dry}{left}\n",
        document.interface, document.policy, document.mode, document.ports
    );
    let _ = writeln!(
        text,
        "  {:<10} {:>9} {:>8} {:>14} {:>16} {:>7}",
        "", "frames/s", "bit/s", "frames", "bytes", "share"
    );
    let handled = reading.handled.total.frames;
    let not_passed = match document.dry_run {
        true => "not useful",
        false => "dropped",
    };
    let mut row = |first: &str, measured: &Measured, last: &str| {
        let (frames, bits) = rates(measured.flow);
        let total = measured.total;
        let line = format!(
            "  {first:<10} {frames:>9} {bits:>8} {:>14} {:>16} {:>7}  {last}",
            total.frames,
            total.bytes,
            share(total.frames, handled),
        );
        let _ = writeln!(text, "{}", line.trim_end());
    };
    row("handled", &reading.handled, "");
    row("useful", &reading.useful, "");
    row(not_passed, &reading.dropped, "");
    let mut reasons: Vec<_> = reading.reasons.iter().collect();
    let rate = |flow: Option<Flow>| flow.map_or(0.0, |flow| flow.frames_per_s);
    reasons.sort_by(|a, b| rate(b.measured.flow).total_cmp(&rate(a.measured.flow)));
    for reason in reasons {
        let verdict = if reason.is_drop { "drop" } else { "pass" };
        row(verdict, &reason.measured, &reason.words);
    }
    for rule in &reading.rules {
        let last = format!("rule {}: {}", rule.name, rule.decides);
        row(&rule.verdict, &rule.measured, &last);
    }
    Some(text)
}

fn rates(flow: Option<Flow>) -> (String, String) {
    match flow {
        Some(flow) => (short(flow.frames_per_s), short(flow.bits_per_s())),
        None => ("-".into(), "-".into()),
    }
}

fn measured(filter: &Watched) -> Option<&Reading> {
    filter
        .reading
        .as_ref()
        .filter(|reading| reading.time.is_some())
}

/// As `text`, on one line.
pub fn json(filter: &Watched) -> Option<Value> {
    let reading = measured(filter)?;
    let document = &reading.document;
    let mut value = json!({
        "interface": document.interface,
        "pid": document.pid,
        "time_ns": document.time_ns,
        "seconds": reading.time?.as_secs_f64(),
        "policy": document.policy,
        "mode": document.mode,
        "ports": document.ports,
        "dry_run": document.dry_run,
        "watchdog_seconds": document.watchdog_seconds,
        "line": document.line,
        "handled": of(&reading.handled),
        "useful": of(&reading.useful),
        "dropped": of(&reading.dropped),
    });
    let reasons: Map<String, Value> = reading
        .reasons
        .iter()
        .map(|reason| {
            let verdict = if reason.is_drop { "drop" } else { "pass" };
            let row = with([("verdict", verdict)], &reason.measured);
            (reason.name.clone(), row)
        })
        .collect();
    let rules = reading.rules.iter().zip(&document.rules);
    let rules: Vec<Value> = rules
        .map(|(rule, documented)| {
            let words = [
                ("name", rule.name.as_str()),
                ("verdict", rule.verdict.as_str()),
                ("match", documented.matches.as_str()),
            ];
            let mut row = with(words, &rule.measured);
            row["limit"] = json!(documented.limit);
            row
        })
        .collect();
    value["reasons"] = Value::Object(reasons);
    value["rules"] = Value::Array(rules);
    Some(value)
}

fn of(measured: &Measured) -> Value {
    with([], measured)
}

/// Null: of a rule that has just come no rate is known.
fn with<const N: usize>(words: [(&str, &str); N], measured: &Measured) -> Value {
    let mut row = Map::new();
    for (key, word) in words {
        row.insert(key.into(), word.into());
    }
    let flow = measured.flow;
    row.insert("frames".into(), measured.total.frames.into());
    row.insert("bytes".into(), measured.total.bytes.into());
    row.insert("frames_per_s".into(), json!(flow.map(|f| f.frames_per_s)));
    row.insert("bits_per_s".into(), json!(flow.map(|f| f.bits_per_s())));
    Value::Object(row)
}
