//! For spreadsheets and pandas: a row a run, with what was varied, the seed and each value. In base units, and as exact
//! as they are; a value that is none is empty.

use super::Study;
use crate::expression::Value;

pub fn csv(study: &Study<'_>) -> String {
    let plan = &study.results.plan;
    let mut heading: Vec<String> = plan.varied.iter().map(|vary| vary.name.clone()).collect();
    heading.push("seed".into());
    heading.extend(study.scenario.values.iter().map(|value| value.name.clone()));
    let mut out = heading.join(",") + "\n";
    for point in &study.results.points {
        for run in &point.runs {
            let at = plan
                .varied
                .iter()
                .map(|vary| match point.settings.get(&vary.name) {
                    Some(Value::Number(number)) => exact(*number),
                    Some(Value::Text(text)) => quoted(text),
                    None => String::new(),
                });
            let mut row: Vec<String> = at.collect();
            row.push(run.seed.to_string());
            row.extend(run.values.iter().map(|value| exact(*value)));
            out += &(row.join(",") + "\n");
        }
    }
    out
}

fn exact(value: f64) -> String {
    match value.is_nan() {
        true => String::new(),
        false => value.to_string(),
    }
}

/// RFC 4180, section 2.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
