//! What was measured, for a person and for a program.

use std::fmt::Write as _;

use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};

use super::chart::{bar, rows};
use crate::cli::output::{HEADING, WARNING};
use crate::cli::words::count;
use crate::pace::measure::GapTally;
use crate::units::BitRate;

const QUANTILES: [(&str, f64); 5] = [
    ("p1", 0.01),
    ("p50", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
    ("max", 1.0),
];

pub(super) struct Measured<'a> {
    pub(super) interface: &'a str,
    pub(super) incoming: bool,
    /// `told`, `pacer` or `interface`.
    pub(super) line_rate_source: String,
    pub(super) tally: &'a GapTally,
    /// That were not read in time.
    pub(super) missed_frames: u64,
}

impl Measured<'_> {
    fn direction(&self) -> &'static str {
        match self.incoming {
            true => "incoming",
            false => "outgoing",
        }
    }

    pub(super) fn document(&self) -> Value {
        let tally = self.tally;
        json!({
            "interface": self.interface,
            "direction": self.direction(),
            "line_rate_bps": tally.line().rate_bps,
            "line_rate_source": self.line_rate_source,
            "mtu": tally.line().mtu,
            "seconds": tally.nanos() as f64 / 1e9,
            "frames": tally.frames(),
            "bytes": tally.bytes(),
            "rate_bps": tally.rate_bps().round() as u64,
            "gso_frames": tally.gso_frames(),
            "missed_frames": self.missed_frames,
            "too_close_frames": tally.too_close(),
            "gap_bytes": quantiles(tally.gaps_ns(), |ns| tally.byte_times(ns)),
            "gap_ns": quantiles(tally.gaps_ns(), |ns| ns),
            "segment_gap_bytes": quantiles(tally.segment_gaps_ns(), |ns| tally.byte_times(ns)),
            "histogram": rows(tally.gaps_ns()).iter().map(|row| json!({
                "from_ns": row.from,
                "to_ns": row.to,
                "frames": row.count,
            })).collect::<Vec<_>>(),
        })
    }

    pub(super) fn text(&self) -> String {
        let tally = self.tally;
        let (interface, direction) = (self.interface, self.direction());
        let mut text = format!(
            "{HEADING}gaps of {interface}, {direction}{HEADING:#}: {} frames in {:.2} s, {:.1} Mbit/s of frames, on a line of {} ({})\n",
            count(tally.frames()),
            tally.nanos() as f64 / 1e9,
            tally.rate_bps() / 1e6,
            BitRate(tally.line().rate_bps),
            match self.line_rate_source.as_str() {
                "told" => "as --line-rate says",
                "pacer" => "as its pacer has it",
                _ => "as the interface says",
            }
        );
        if self.missed_frames > 0 {
            let _ = writeln!(
                text,
                "  {WARNING}{} frames were not read in time: their gaps are missing, and seem larger beside them{WARNING:#}",
                count(self.missed_frames)
            );
        }
        let gaps = tally.gaps_ns();
        if !gaps.is_empty() {
            text += &self.table("gap", gaps);
            text += &self.chart();
        }
        if tally.too_close() > 0 {
            let _ = writeln!(
                text,
                "  {} frames began before the one before them can have left a line of this rate: no gap",
                count(tally.too_close())
            );
        }
        if tally.gso_frames() > 0 {
            let _ = writeln!(
                text,
                "  {} of the frames are many segments each, whose own gaps nobody here sees; the time behind them, a segment:",
                count(tally.gso_frames())
            );
            text += &self.table("a segment", tally.segment_gaps_ns());
        }
        if gaps.is_empty() && tally.gso_frames() == 0 {
            text += "  fewer than two frames: no gap\n";
        }
        text
    }

    fn table(&self, what: &str, gaps: &Histogram<u64>) -> String {
        let mut lines = [String::new(), String::new(), String::new()];
        for (name, quantile) in QUANTILES {
            let ns = gaps.value_at_quantile(quantile);
            let _ = write!(lines[0], "{name:>12}");
            let _ = write!(lines[1], "{:>12}", count(self.tally.byte_times(ns)));
            let _ = write!(lines[2], "{:>12.2}", ns as f64 / 1000.0);
        }
        format!(
            "  {what:<12}{}\n  {:<12}{}\n  {:<12}{}\n",
            lines[0], "byte times", lines[1], "µs", lines[2]
        )
    }

    fn chart(&self) -> String {
        let rows = rows(self.tally.gaps_ns());
        let most = rows.iter().map(|row| row.count).max().unwrap_or(0);
        let all = self.tally.gaps_ns().len().max(1);
        let mut text = format!("\n  {:>21}\n", "µs");
        for row in rows {
            let _ = writeln!(
                text,
                "  {:>10.2} {:>10.2}  {:>5.1} % {}",
                row.from as f64 / 1000.0,
                (row.to + 1) as f64 / 1000.0,
                row.count as f64 * 100.0 / all as f64,
                bar(row.count, most)
            );
        }
        text + "\n"
    }
}

/// Null of what is empty.
fn quantiles(gaps: &Histogram<u64>, unit: impl Fn(u64) -> u64) -> Value {
    if gaps.is_empty() {
        return Value::Null;
    }
    let of = |(name, quantile): &(&str, f64)| {
        let value = unit(gaps.value_at_quantile(*quantile));
        ((*name).to_owned(), Value::from(value))
    };
    Value::Object(QUANTILES.iter().map(of).collect::<Map<_, _>>())
}
