//! The same in lines: for files and pipes, and for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::columns::{CellColumn, PATHS, STREAMS};
use super::draw::begun_words;
use super::order::{PathSort, StreamSort};
use super::reading::{Reading, StreamReading};
use super::watched::Watched;
use crate::view::numbers::short_or_unknown;

/// What was measured last; `None`: no rate is known.
pub fn text(tcp: &Watched, time_of_day: &str) -> Option<String> {
    let reading = tcp.measured()?;
    let (phases, totals) = (&reading.phases, &reading.totals);
    let mut text = format!(
        "{time_of_day} pace of TCP: {} (spacing {}, clusters {}, free {}), {} bit/s, {} segments sent again\n",
        match reading.streams.len() {
            1 => "1 stream".into(),
            n => format!("{n} streams"),
        },
        phases.spacing,
        phases.clusters,
        phases.free,
        short_or_unknown(reading.bits_per_s),
        reading.retransmitted_lately.unwrap_or(0),
    );
    let lost = &totals.lost;
    let _ = writeln!(
        text,
        "  slow starts: {}; lost: spacing {}, clusters {}, free {}",
        begun_words(totals),
        lost.spacing,
        lost.clusters,
        lost.free
    );
    let mut streams = reading.streams.clone();
    StreamSort::Rate.sort(&mut streams, false);
    table(&mut text, &STREAMS, &streams);
    let mut paths = reading.document.paths.clone();
    PathSort::Full.sort(&mut paths, false);
    table(&mut text, &PATHS, &paths);
    Some(text)
}

/// Each column as wide as it has to be; nothing where there are no rows.
fn table<T>(text: &mut String, columns: &[CellColumn<T>], rows: &[T]) {
    if rows.is_empty() {
        return;
    }
    let titles = columns.iter().map(|column| column.column.title.to_owned());
    let mut lines: Vec<Vec<String>> = vec![titles.collect()];
    lines.extend(
        rows.iter()
            .map(|row| columns.iter().map(|column| (column.cell)(row)).collect()),
    );
    let width = |at: usize| {
        let letters = lines.iter().map(|line| line[at].chars().count());
        letters.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    for line in &lines {
        let cells = line.iter().zip(columns).zip(&widths);
        let cells = cells.map(|((cell, column), width)| match column.column.is_number {
            true => format!("{cell:>width$}"),
            false => format!("{cell:<width$}"),
        });
        let cells: Vec<String> = cells.collect();
        let _ = writeln!(text, "  {}", cells.join("  ").trim_end());
    }
}

/// As `text`, on one line.
pub fn json(tcp: &Watched) -> Option<Value> {
    let reading = tcp.measured()?;
    let document = &reading.document;
    Some(json!({
        "pid": document.pid,
        "time_ns": document.time_ns,
        "seconds": reading.time?.as_secs_f64(),
        "bits_per_s": reading.bits_per_s,
        "retransmitted_lately": reading.retransmitted_lately,
        "phases": reading.phases,
        "counters": document.counters,
        "streams": streams(reading),
        "paths": document.paths,
    }))
}

/// As `pace tcp status --json` has them, with what is known of the time between two looks.
fn streams(reading: &Reading) -> Vec<Value> {
    let value = |of: &StreamReading| {
        let mut value = serde_json::to_value(&of.stream).expect("plain JSON");
        value["bits_per_s"] = json!(of.bits_per_s);
        value["retransmitted_lately"] = json!(of.retransmitted_lately);
        value
    };
    reading.streams.iter().map(value).collect()
}
