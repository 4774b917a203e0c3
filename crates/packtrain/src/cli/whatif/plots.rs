//! What is drawn of a policy: frames over time, how full trains are, and how much later frames come.

use super::chart::{Columns, Kind, Row};
use super::document::{PolicyResults, Timeline};
use super::text::time;
use crate::cli::view::words::{count, duration};

/// As fine as the shares are known.
const DELAYS: usize = 100;

/// Those of which there is something to see, each with how many lines high it is in a terminal.
pub fn of(policy: &PolicyResults) -> Vec<(Columns, usize)> {
    let plots = [
        (over_time(&policy.timeline), 2),
        (fills(policy), 4),
        (delays(&policy.added_delay_percentiles_ms), 4),
    ];
    let drawn = plots.into_iter();
    drawn
        .filter_map(|(plot, lines)| Some((plot?, lines)))
        .collect()
}

fn over_time(timeline: &Timeline) -> Option<Columns> {
    let per_second = |steps: &[u64]| -> Vec<f64> {
        let rate = |&frames: &u64| frames as f64 * 1e3 / timeline.step_ms;
        steps.iter().map(rate).collect()
    };
    let steps = timeline.before.len();
    let (before, after) = (per_second(&timeline.before), per_second(&timeline.after));
    let whole = before.iter().chain(&after).copied().fold(0.0, f64::max);
    (steps > 1).then(|| Columns {
        title: format!(
            "Frames on the wire over time, up to {} a second",
            count(whole.round() as u64)
        ),
        rows: vec![
            Row {
                name: "before",
                kind: Kind::Plain,
                values: before,
            },
            Row {
                name: "after",
                kind: Kind::With,
                values: after,
            },
        ],
        ends: [
            "0 s".to_owned(),
            duration(steps as f64 * timeline.step_ms / 1e3),
        ],
        whole,
    })
}

fn fills(policy: &PolicyResults) -> Option<Columns> {
    let values: Vec<f64> = policy.fills.iter().map(|fill| fill.trains as f64).collect();
    let whole = values.iter().copied().fold(0.0, f64::max);
    (whole > 0.0).then(|| Columns {
        title: format!(
            "Trains by how full they are, up to {} in a twentieth",
            count(whole as u64)
        ),
        rows: vec![with(values)],
        ends: ["empty".to_owned(), "full".to_owned()],
        whole,
    })
}

/// The share of the frames that come so much later at most.
fn delays(percentiles_ms: &[f64]) -> Option<Columns> {
    // What a hundredth of them has, at either end, would leave no room for the others.
    let (&first, &last) = (percentiles_ms.get(1)?, percentiles_ms.get(99)?);
    let at = |number: usize| first + (last - first) * number as f64 / (DELAYS - 1) as f64;
    let share = |number: usize| {
        let at = at(number);
        percentiles_ms.partition_point(|&ms| ms <= at) as f64 / percentiles_ms.len() as f64
    };
    (last > first).then(|| Columns {
        title: "Frames that come so much later at most, up to all of them".to_owned(),
        rows: vec![with((0..DELAYS).map(share).collect())],
        ends: [later(first), later(last)],
        whole: 1.0,
    })
}

fn later(ms: f64) -> String {
    match ms < 0.0 {
        true => format!("{} earlier", time(-ms)),
        false => format!("{} later", time(ms)),
    }
}

fn with(values: Vec<f64>) -> Row {
    Row {
        name: "",
        kind: Kind::With,
        values,
    }
}
