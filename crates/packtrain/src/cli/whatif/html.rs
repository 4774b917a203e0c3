//! A page for a browser: one file, that needs no other, light or dark as the reader has it.

use std::fmt::Write as _;

use super::chart::Bar;
use super::chart::svg::{bars, columns};
use super::document::{Document, Part, PolicyResults};
use super::plots;
use super::text::{hosts, name};
use crate::cli::view::words::{bytes, count, rate};

const STYLE: &str = "\
:root { color-scheme: light dark; --text: #1b1f24; --page: #ffffff; --faint: #6a737d; --line: #d8dee4;
        --plain: #8c959f; --with: #0969da; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6edf3; --page: #0d1117; --faint: #8d96a0; --line: #30363d; --plain: #6e7681; --with: #4493f8; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page); max-width: 60rem;
       margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.advice { border-left: 4px solid var(--with); padding: .5rem 1rem; font-size: 1.1rem; }
.faint { color: var(--faint); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .2rem .6rem; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; overflow-wrap: anywhere; }
svg { width: 100%; height: auto; } svg text { fill: var(--text); font: 13px system-ui, sans-serif; }
.plain { fill: var(--plain); } .with { fill: var(--with); }
";

pub fn html(document: &Document) -> String {
    let capture = &document.capture;
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>packtrain whatif: {file}</title>\n<style>\n{STYLE}</style>\n\
         <h1>What packtrain would bring: {file}</h1>\n<p class=\"advice\">{advice}</p>\n",
        file = escaped(name(&capture.file)),
        advice = escaped(&document.recommendation.text),
    );
    let _ = writeln!(
        out,
        "<p>{} of {} frames replayed, {}, {:.1} s; over {}.</p>",
        count(capture.replayed),
        count(capture.frames),
        hosts(capture.hosts),
        capture.duration_s,
        wire(document),
    );
    if let Some(broken) = &capture.broken {
        let _ = writeln!(out, "<p>Only what comes before: {}</p>", escaped(broken));
    }
    out += "<ul class=\"faint\">\n";
    for assumed in &document.assumed {
        let _ = writeln!(out, "<li>{}</li>", escaped(assumed));
    }
    out += "</ul>\n";
    if let Some(plain) = &document.plain {
        charts(&mut out, document, plain.delay.p99_ms, plain.dropped);
    }
    if let Some(asked) = document.policies.first() {
        for (plot, _) in plots::of(asked) {
            let _ = writeln!(out, "<h2>{}</h2>\n{}", escaped(&plot.title), columns(&plot));
        }
    }
    for policy in document.policies.iter().chain(&document.two_links) {
        tables(&mut out, policy);
    }
    out += "</html>\n";
    out
}

fn wire(document: &Document) -> String {
    let wire = &document.wire;
    let mut words: Vec<String> = wire.rate_bps.map(rate).into_iter().collect();
    let cap = wire.packets_per_second;
    words.extend(cap.map(|most| format!("{} frames/s", count(most))));
    words.push(format!("{:.3} ms there", wire.delay_ms));
    words.push(format!("a queue of {}", bytes(wire.queue_bytes as u64)));
    words.join(", ")
}

/// What went over the wire, what came late and what did not come: each policy beside the plain wire.
fn charts(out: &mut String, document: &Document, plain_p99_ms: f64, plain_dropped: u64) {
    let policies = || document.policies.iter().chain(&document.two_links);
    let mut chart = |title: &str, of: &dyn Fn(&PolicyResults) -> [Bar; 2]| {
        let all: Vec<[Bar; 2]> = policies().map(of).collect();
        let _ = writeln!(out, "<h2>{title}</h2>\n{}", bars(&all));
    };
    let pair = |policy: &PolicyResults, values: [f64; 2], texts: [String; 2]| {
        let [plain, with] = texts;
        [
            Bar::plain(values[0], plain),
            Bar::with(&policy.name, values[1], with),
        ]
    };
    chart("Bytes on the wire", &|policy| {
        let values = [policy.before.bytes, policy.after.bytes];
        pair(
            policy,
            values,
            values.map(|value| bytes(value.max(0.0) as u64)),
        )
    });
    chart("Frames on the wire", &|policy| {
        let values = [policy.before.frames, policy.after.frames];
        pair(
            policy,
            values,
            values.map(|value| count(value.max(0.0) as u64)),
        )
    });
    chart("Under way: 99 % of the frames no longer than", &|policy| {
        let values = [plain_p99_ms, policy.delay.p99_ms];
        pair(policy, values, values.map(|value| format!("{value:.2} ms")))
    });
    chart("Dropped", &|policy| {
        let values = [plain_dropped, policy.dropped];
        pair(policy, values.map(|value| value as f64), values.map(count))
    });
}

fn tables(out: &mut String, policy: &PolicyResults) {
    let _ = writeln!(out, "<h2>{}</h2>", escaped(&policy.name));
    let trains = policy.frames_per_train.zip(policy.fill_percent);
    let trains =
        trains.map(|(frames, fill)| format!("; {frames:.1} frames a train, {fill:.0} % full"));
    let refused = (policy.refused > 0).then(|| {
        let refused = count(policy.refused);
        format!("; {refused} trains and frames refused by a full queue before a wire")
    });
    let _ = writeln!(
        out,
        "<p>{:.1} % of the frames and {:.1} % of the bytes saved; later by {:.3} ms (p50), {:.3} ms (p99), \
         {:.3} ms (most){}{}.</p>",
        policy.saved_frames_percent,
        policy.saved_bytes_percent,
        policy.added_delay.p50_ms,
        policy.added_delay.p99_ms,
        policy.added_delay.max_ms,
        trains.unwrap_or_default(),
        refused.unwrap_or_default(),
    );
    parts(out, "Class", &mut policy.classes.iter());
    let others = &policy.others;
    let others = (others.conversations > 0).then_some(&others.part);
    parts(
        out,
        "Conversation",
        &mut policy.conversations.iter().chain(others),
    );
}

fn parts(out: &mut String, heading: &str, parts: &mut dyn Iterator<Item = &Part>) {
    let _ = writeln!(
        out,
        "<table>\n<tr><th>{heading}<th>Frames<th>Before<th>After<th>Saved<th>Later by<th>Dropped<th>Plainly"
    );
    for part in parts {
        let _ = writeln!(
            out,
            "<tr><td>{}<td>{}<td>{}<td>{}<td>{:.1} %<td>{:.3} ms<td>{}<td>{}",
            escaped(&part.name),
            count(part.frames),
            bytes(part.before.bytes.max(0.0) as u64),
            bytes(part.after.bytes.max(0.0) as u64),
            part.saved_bytes_percent,
            part.added_mean_ms,
            count(part.dropped),
            count(part.plain_dropped),
        );
    }
    *out += "</table>\n";
}

/// What is in a capture, and its name, is somebody else's.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            '"' => out += "&quot;",
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_else_has_named_is_text_and_no_markup() {
        assert_eq!(escaped("<b>\"a&b\""), "&lt;b&gt;&quot;a&amp;b&quot;");
    }
}
