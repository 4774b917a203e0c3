//! A summary as tables for a person, and as a document for programs.

use std::fmt::Write as _;

use packtrain_proto::filter::rules::Rule;
use packtrain_proto::filter::{Policy, Reason};
use packtrain_proto::stats::Traffic;
use serde_json::{Map, Value, json};

use super::kind::{Protocol, Transport};
use super::summary::{MIX, SIZES, Summary};
use crate::cli::filter::view::words;
use crate::cli::output::{BAD, GOOD, HEADING};
use crate::cli::words::count;
use crate::filter::document::{Amount, RuleDocument, policy_name, verdict_of};
use crate::filter::rule_texts::limit_text;
use crate::filter::rules::document_of;

/// For whom it was judged, and by what.
#[derive(Clone, Debug)]
pub struct Terms {
    /// An interface, or a file.
    pub host: String,
    pub policy: Policy,
}

pub fn text(summary: &Summary, rules: &[Rule], terms: &Terms) -> String {
    let mut text = String::new();
    let whole = summary.frames;
    let _ = writeln!(
        text,
        "{} frames, judged for {}, policy {}",
        count(whole),
        terms.host,
        policy_name(terms.policy)
    );

    heading(&mut text, "protocol");
    row(&mut text, "MAC (all)", whole, whole);
    for &protocol in Protocol::ALL {
        row(&mut text, protocol.words(), of(summary, protocol), whole);
        for &transport in protocol.transports() {
            let frames = over(summary, protocol, transport);
            row(
                &mut text,
                &format!("  {}", transport.words()),
                frames,
                whole,
            );
        }
    }

    heading(&mut text, "to");
    row(&mut text, "broadcast", summary.broadcast, whole);
    row(&mut text, "multicast", summary.multicast, whole);
    row(&mut text, "unicast", summary.unicast, whole);

    heading(&mut text, "size, bytes");
    for ((name, _), frames) in SIZES.iter().zip(summary.sizes) {
        let name = if *name == "1519-" { "larger" } else { name };
        row(&mut text, name, frames, whole);
    }
    let _ = writeln!(text, "  {:<22}{:>12.0}", "mean", summary.size_mean());

    heading(&mut text, "mix (Fig. 3)");
    for ((_, name), frames) in MIX.iter().zip(summary.mix) {
        row(&mut text, name, frames, whole);
    }

    verdicts(&mut text, summary);
    by_rules(&mut text, summary, rules);
    text
}

/// All of them: one that decides nothing is worth knowing.
fn by_rules(text: &mut String, summary: &Summary, rules: &[Rule]) {
    if rules.is_empty() {
        return;
    }
    let name_len = rules.iter().map(|rule| rule.name.as_str().len()).max();
    let name_len = name_len.unwrap_or(0).max(10);
    let _ = writeln!(
        text,
        "\n  {HEADING}{:<name_len$}{:>12}{:>16}{:>10}  decides{HEADING:#}",
        "rule", "frames", "bytes", "share"
    );
    for (place, rule) in rules.iter().enumerate() {
        let amount = summary.rules.get(&place).copied().unwrap_or_default();
        let colon = if limit_text(rule).is_some() { ":" } else { "" };
        let _ = writeln!(
            text,
            "  {:<name_len$}{:>12}{:>16}{:>10}  {}{colon} {}",
            rule.name,
            count(amount.frames),
            count(amount.bytes),
            share(amount.frames, summary.frames),
            rule.verdict,
            rule.matches
        );
    }
}

fn heading(text: &mut String, name: &str) {
    let _ = writeln!(
        text,
        "\n  {HEADING}{name:<22}{:>12}{:>10}{HEADING:#}",
        "frames", "share"
    );
}

fn row(text: &mut String, name: &str, frames: u64, whole: u64) {
    let (frames, share) = (count(frames), share(frames, whole));
    let _ = writeln!(text, "  {name:<22}{frames:>12}{share:>10}");
}

fn verdicts(text: &mut String, summary: &Summary) {
    let _ = writeln!(
        text,
        "\n  {HEADING}{:<10}{:>12}{:>16}{:>10}  why{HEADING:#}",
        "verdict", "frames", "bytes", "share"
    );
    let (useful, dropped) = (summary.amount(false), summary.amount(true));
    for (style, name, amount) in [
        (HEADING, "handled", handled(summary)),
        (GOOD, "useful", useful),
        (BAD, "dropped", dropped),
    ] {
        let line = verdict_row(name, amount, summary.frames);
        let _ = writeln!(text, "  {style}{line}{style:#}");
    }
    let mut reasons: Vec<(Reason, Amount)> =
        summary.reasons.iter().map(|(r, a)| (*r, *a)).collect();
    reasons.sort_by_key(|(reason, amount)| (reason.is_drop(), u64::MAX - amount.frames));
    for (reason, amount) in reasons {
        let line = verdict_row(verdict_of(reason), amount, summary.frames);
        let _ = writeln!(text, "  {line}  {}", words(reason));
    }
}

fn verdict_row(name: &str, amount: Amount, whole: u64) -> String {
    format!(
        "{name:<10}{:>12}{:>16}{:>10}",
        count(amount.frames),
        count(amount.bytes),
        share(amount.frames, whole)
    )
}

fn share(part: u64, whole: u64) -> String {
    match whole {
        0 => "-".into(),
        _ => format!("{:.1} %", part as f64 * 100.0 / whole as f64),
    }
}

fn handled(summary: &Summary) -> Amount {
    let (useful, dropped) = (summary.amount(false), summary.amount(true));
    Amount {
        frames: useful.frames + dropped.frames,
        bytes: useful.bytes + dropped.bytes,
    }
}

fn of(summary: &Summary, protocol: Protocol) -> u64 {
    summary.protocols.get(&protocol).copied().unwrap_or(0)
}

fn over(summary: &Summary, protocol: Protocol, transport: Transport) -> u64 {
    let both = (protocol, transport);
    summary.transports.get(&both).copied().unwrap_or(0)
}

/// `handled`, `useful`, `dropped`, `rules` and `reasons` as in `filter status --json`.
pub fn document(summary: &Summary, rules: &[Rule], terms: &Terms) -> Value {
    let mut protocols = Map::new();
    for &protocol in Protocol::ALL {
        protocols.insert(protocol.key().into(), of(summary, protocol).into());
        for &transport in protocol.transports() {
            let key = format!("{}_{}", protocol.key(), transport.key());
            protocols.insert(key, over(summary, protocol, transport).into());
        }
    }
    let sizes = SIZES.iter().zip(summary.sizes);
    let sizes: Map<String, Value> = sizes
        .map(|((name, _), frames)| ((*name).into(), frames.into()))
        .collect();
    let mix = MIX.iter().zip(summary.mix);
    let mix: Map<String, Value> = mix
        .map(|((key, _), frames)| ((*key).into(), frames.into()))
        .collect();
    let reasons: Map<String, Value> = summary
        .reasons
        .iter()
        .map(|(reason, amount)| {
            let verdict = verdict_of(*reason);
            let count = json!({
                "verdict": verdict, "frames": amount.frames, "bytes": amount.bytes,
            });
            (reason.as_str().into(), count)
        })
        .collect();
    let rules = rules.iter().enumerate().map(|(place, rule)| {
        let Amount { frames, bytes } = summary.rules.get(&place).copied().unwrap_or_default();
        document_of(rule, Traffic { frames, bytes })
    });
    let rules: Vec<RuleDocument> = rules.collect();
    json!({
        "host": terms.host,
        "policy": policy_name(terms.policy),
        "protocols": protocols,
        "casts": {
            "broadcast": summary.broadcast,
            "multicast": summary.multicast,
            "unicast": summary.unicast,
        },
        "sizes": sizes,
        "size_mean_bytes": summary.size_mean(),
        "mix": mix,
        "handled": handled(summary),
        "useful": summary.amount(false),
        "dropped": summary.amount(true),
        "rules": rules,
        "reasons": reasons,
    })
}
