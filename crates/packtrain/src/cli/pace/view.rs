//! The status of a pacer for a person.

use std::fmt::Write as _;

use packtrain_proto::pacing::gap::AROUND_LEN;

use super::rule::table_of_links;
use crate::cli::output::{HEADING, WARNING};
use crate::cli::words::count;
use crate::pace::link::document::{LinkPacerDocument, SpacingDocument};
use crate::pace::link::wish::gap_text;
use crate::units::{BitRate, Time};

pub fn status(document: &LinkPacerDocument) -> String {
    let mut text = format!("{HEADING}pacer of {}{HEADING:#}\n", document.interface);
    let known = &document.known_as;
    if *known != document.interface {
        let _ = writeln!(
            text,
            "  {WARNING}it was {known} when the pacer came, and commands go on to call it so: packtrain pace off {known}{WARNING:#}"
        );
    }
    match &document.spacing {
        Some(spacing) => text += &spacing_text(spacing),
        None if document.pid.is_some() => row(
            &mut text,
            "gap",
            "Ethernet's own: what no rule is about goes past the queue",
        ),
        None => {
            let _ = writeln!(
                text,
                "  {WARNING}its process was killed, and what it has changed stands: packtrain pace off {known}{WARNING:#}"
            );
        }
    }
    if !document.rules.is_empty() {
        let table = table_of_links(&document.rules);
        table
            .lines()
            .for_each(|line| text += &format!("  {line}\n"));
    }
    for change in &document.undo {
        row(&mut text, "undone", &format!("in the end: {change}"));
    }
    text
}

fn spacing_text(spacing: &SpacingDocument) -> String {
    let mut text = String::new();
    let SpacingDocument {
        gap_bytes,
        mtu,
        gso,
        ..
    } = spacing;
    let line_rate = BitRate(spacing.line_rate_bps);
    row(
        &mut text,
        "gap",
        &format!(
            "{} byte times, {} behind each frame ({})",
            count((*gap_bytes).into()),
            micros(spacing.gap_ns),
            gap_text(spacing.asked)
        ),
    );
    let source = match spacing.line_rate_source.as_str() {
        "interface" => "as the interface says",
        "veth" => "as every veth says, whatever carries it",
        _ => "as --line-rate says",
    };
    row(&mut text, "line rate", &format!("{line_rate}, {source}"));
    let full = u64::from(*mtu) + 14 + u64::from(AROUND_LEN) + u64::from(*gap_bytes);
    row(
        &mut text,
        "rate",
        &format!(
            "{:.1} Mbit/s of IP packets in frames of {mtu} bytes, one every {}; busy {:.2} times as long",
            spacing.payload_rate_bps as f64 / 1e6,
            micros((full as f64 * 8e9 / spacing.line_rate_bps.max(1) as f64) as u64),
            spacing.busy_factor
        ),
    );
    row(
        &mut text,
        "carrier",
        &format!("{}: {}", spacing.carrier, spacing.carrier_because),
    );
    let what = match gso.as_str() {
        "split" => "frames that are many segments are cut, and each segment is followed by a gap",
        _ => {
            "frames that are many segments leave whole, and are followed by the gaps of all of them"
        }
    };
    row(
        &mut text,
        "GSO",
        &format!("{gso} ({}): {what}", spacing.gso_because),
    );
    let burst = Time(spacing.burst_ns);
    row(&mut text, "burst", &format!("{burst} may be made up for"));
    row(
        &mut text,
        "queue",
        &format!(
            "{} frames, {} bytes; {} frames at most",
            count(spacing.queue_frames.into()),
            count(spacing.queue_bytes.into()),
            count(spacing.queue_frames_max.into())
        ),
    );
    row(
        &mut text,
        "sent",
        &format!(
            "{} frames, {} bytes; {} frames found no room",
            count(spacing.sent_frames),
            count(spacing.sent_bytes),
            count(spacing.dropped_frames)
        ),
    );
    text
}

fn row(text: &mut String, what: &str, words: &str) {
    let _ = writeln!(text, "  {what:<11}{words}");
}

fn micros(nanos: u64) -> String {
    format!("{:.2} µs", nanos as f64 / 1000.0)
}
