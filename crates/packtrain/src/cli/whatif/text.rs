//! For a person.

use std::fmt::Write as _;

use super::chart::terminal;
use super::document::{Capture, Document, Filter, Load, Others, Part, Plain, PolicyResults, Wire};
use super::plots;
use crate::cli::output::HEADING;
use crate::cli::view::tables::table;
use crate::cli::view::words::{bytes, count, rate};

const INDENT: &str = "  ";

/// Drawings are as wide as `width`.
pub fn text(document: &Document, width: usize) -> String {
    let mut out = String::new();
    capture(&mut out, &document.capture);
    wire(&mut out, &document.wire);
    let _ = writeln!(
        out,
        "assumed    {}",
        document.assumed.join(";\n           ")
    );
    if let (Some(plain), Some(asked)) = (&document.plain, document.policies.first()) {
        policy(&mut out, plain, asked);
        for (plot, lines) in plots::of(asked) {
            out += &terminal::columns(&plot, lines, width);
        }
        if document.policies.len() > 1 || document.two_links.is_some() {
            heading(&mut out, "Side by side");
            side_by_side(&mut out, plain, document);
        }
    }
    if let Some(filter) = &document.filter {
        receive_filter(&mut out, filter);
    }
    let _ = writeln!(
        out,
        "\n{HEADING}{}{HEADING:#}",
        document.recommendation.text
    );
    out
}

fn heading(out: &mut String, text: &str) {
    let _ = writeln!(out, "\n{HEADING}{text}{HEADING:#}");
}

fn capture(out: &mut String, capture: &Capture) {
    let _ = writeln!(
        out,
        "capture    {}: {} of {} frames replayed, {}, {:.3} s",
        name(&capture.file),
        count(capture.replayed),
        count(capture.frames),
        hosts(capture.hosts),
        capture.duration_s
    );
    if let Some(peak) = &capture.peak {
        let _ = writeln!(
            out,
            "peak       {}, {} frames/s, sent by {} in its busiest tenth of a second",
            rate(peak.bits_per_second),
            count(peak.packets_per_second),
            peak.host
        );
    }
    let left_out = &capture.left_out;
    let facts = [
        (capture.cut, "captured in part"),
        (
            capture.offloaded,
            "longer than the MTU, as a card cuts or joins them",
        ),
        (capture.sorted, "out of order, put in order"),
        (capture.late, "far too late, taken when they came"),
        (
            capture.timeless,
            "without a time, taken with the one before",
        ),
        (
            capture.made_up_headers,
            "not of Ethernet, with headers made up",
        ),
        (capture.of_others, "of hosts that are not replayed"),
        (
            left_out.of_packtrain,
            "of packtrain's own (EtherType 0x88b5), left out",
        ),
        (left_out.no_frame, "without addresses or content, left out"),
        (left_out.too_long, "too long for the MTU, left out"),
    ];
    for (frames, what) in facts {
        if frames > 0 {
            let _ = writeln!(out, "           {} frames {what}", count(frames));
        }
    }
    if capture.pauses_left_out_s > 0.0 {
        let left_out = capture.pauses_left_out_s;
        let _ = writeln!(out, "           {left_out:.0} s of long pauses left out");
    }
    if let Some(broken) = &capture.broken {
        let _ = writeln!(out, "           only what comes before: {broken}");
    }
}

/// Of a capture, as errors name it.
pub(super) fn name(file: &str) -> &str {
    match file {
        "-" => "standard input",
        file => file,
    }
}

fn wire(out: &mut String, wire: &Wire) {
    let mut words: Vec<String> = wire.rate_bps.map(rate).into_iter().collect();
    words.extend(
        wire.packets_per_second
            .map(|most| format!("{} frames/s", count(most))),
    );
    words.push(format!("{} there", time(wire.delay_ms)));
    words.push(format!("a queue of {}", bytes(wire.queue_bytes as u64)));
    words.push(format!("MTU {}", wire.mtu));
    if wire.links > 1 {
        words.push(format!(
            "{} of them a host, one without packtrain",
            wire.links
        ));
    }
    let _ = writeln!(out, "wire       {}", words.join(", "));
}

fn policy(out: &mut String, plain: &Plain, of: &PolicyResults) {
    heading(out, &of.name);
    let row = |what: &str, load: Load| [what.to_owned(), whole(load.frames), size(load.bytes)];
    let rows = vec![
        row("before", of.before),
        row("after", of.after),
        [
            "saved".to_owned(),
            percent(of.saved_frames_percent),
            percent(of.saved_bytes_percent),
        ],
    ];
    *out += &table(["ON THE WIRE", "FRAMES", "BYTES"], rows, &[], INDENT);
    let added = of.added_delay;
    let _ = writeln!(
        out,
        "  delay      added: p50 {}, p99 {}, most {}",
        time(added.p50_ms),
        time(added.p99_ms),
        time(added.max_ms)
    );
    let _ = writeln!(
        out,
        "  dropped    {} of {} frames, {} without packtrain",
        count(of.dropped),
        count(plain.frames),
        count(plain.dropped)
    );
    if of.refused > 0 {
        let _ = writeln!(
            out,
            "  refused    {} trains and frames, by a full queue before a wire",
            count(of.refused)
        );
    }
    if let (Some(frames), Some(fill)) = (of.frames_per_train, of.fill_percent) {
        let _ = writeln!(
            out,
            "  trains     {frames:.1} frames each, {fill:.0} % full on average"
        );
    }
    let sent = &of.sent;
    let _ = writeln!(
        out,
        "  sent       {} trains, {} frames directly, {} marked, {} plain, {} control messages",
        whole(sent.trains.frames),
        whole(sent.direct.frames),
        whole(sent.marked.frames),
        whole(sent.plain.frames),
        whole(sent.control.frames)
    );
    if let Some(compression) = of.compression {
        let _ = writeln!(
            out,
            "  compressed headers told apart save {}, payload {} more",
            bytes(compression.headers_bytes),
            bytes(compression.payload_bytes)
        );
    }
    if !of.engine_drops.is_empty() {
        let drops = of.engine_drops.iter();
        let drops: Vec<String> = drops
            .map(|drop| format!("{} {}", count(drop.count), drop.reason))
            .collect();
        let _ = writeln!(out, "  engines    dropped {}", drops.join(", "));
    }
    *out += "\n";
    *out += &parts("CLASS", of.classes.iter(), None);
    *out += "\n";
    *out += &parts("CONVERSATION", of.conversations.iter(), Some(&of.others));
}

fn parts<'a>(
    heading: &str,
    parts: impl Iterator<Item = &'a Part>,
    others: Option<&Others>,
) -> String {
    let row = |name: String, part: &Part| {
        [
            name,
            count(part.frames),
            size(part.before.bytes),
            size(part.after.bytes),
            percent(part.saved_bytes_percent),
            time(part.added_mean_ms),
            count(part.dropped),
        ]
    };
    let mut rows: Vec<_> = parts.map(|part| row(part.name.clone(), part)).collect();
    if let Some(others) = others.filter(|others| others.conversations > 0) {
        let at_most = if others.is_at_most { "at most " } else { "" };
        let name = format!("{at_most}{} others", count(others.conversations));
        rows.push(row(name, &others.part));
    }
    let headings = [
        heading, "FRAMES", "BEFORE", "AFTER", "SAVED", "ADDED", "DROPPED",
    ];
    table(headings, rows, &["DROPPED"], INDENT)
}

fn side_by_side(out: &mut String, plain: &Plain, document: &Document) {
    let mut rows = vec![[
        "without packtrain".to_owned(),
        whole(plain.wire.frames),
        size(plain.wire.bytes),
        String::new(),
        String::new(),
        String::new(),
        String::new(),
        count(plain.dropped),
    ]];
    let policies = document.policies.iter().map(|of| (of.name.clone(), of));
    let two_links = document.two_links.iter();
    let two_links = two_links.map(|of| ("the first over two links".to_owned(), of));
    rows.extend(policies.chain(two_links).map(|(name, of)| {
        let each = of.frames_per_train.map(|frames| format!("{frames:.1}"));
        [
            name,
            whole(of.after.frames),
            size(of.after.bytes),
            percent(of.saved_bytes_percent),
            each.unwrap_or_default(),
            time(of.added_delay.p50_ms),
            time(of.added_delay.p99_ms),
            count(of.dropped),
        ]
    }));
    let headings = [
        "",
        "FRAMES",
        "BYTES",
        "SAVED",
        "A TRAIN",
        "ADDED P50",
        "P99",
        "DROPPED",
    ];
    *out += &table(headings, rows, &["A TRAIN", "ADDED P50"], INDENT);
}

fn receive_filter(out: &mut String, filter: &Filter) {
    heading(out, &format!("A receive filter for {}", filter.host));
    let _ = writeln!(
        out,
        "  would drop {} frames ({}) of {}: {} unicast for others, {} ARP and {} neighbour solicitations for others",
        count(filter.dropped.frames),
        bytes(filter.dropped.bytes),
        count(filter.dropped.frames + filter.kept.frames),
        count(filter.foreign_unicast.frames),
        count(filter.foreign_arp.frames),
        count(filter.foreign_solicitations.frames)
    );
}

pub(super) fn hosts(hosts: usize) -> String {
    format!("{hosts} host{}", if hosts == 1 { "" } else { "s" })
}

fn whole(number: f64) -> String {
    count(number.round().max(0.0) as u64)
}

fn size(number: f64) -> String {
    let sign = if number < -0.5 { "-" } else { "" };
    format!("{sign}{}", bytes(number.abs().round() as u64))
}

fn percent(number: f64) -> String {
    // No sign before what is printed as zero.
    format!("{:.1} %", if number.abs() < 0.05 { 0.0 } else { number })
}

pub(super) fn time(ms: f64) -> String {
    match ms.abs() {
        small if small < 0.0005 => "0".to_owned(),
        small if small < 1.0 => format!("{:.0} µs", ms * 1e3),
        _ => format!("{ms:.1} ms"),
    }
}
