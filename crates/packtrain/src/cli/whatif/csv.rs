//! For spreadsheets: a row a policy, and one for each of its classes and conversations.

use std::fmt::Write as _;

use super::document::{Document, Part};

const HEADINGS: &str = "policy,of,name,frames,bytes,before_frames,before_bytes,after_frames,after_bytes,\
saved_bytes_percent,dropped,plain_dropped,refused,added_mean_ms,added_p50_ms,added_p99_ms,added_max_ms\n";

pub fn csv(document: &Document) -> String {
    let mut out = HEADINGS.to_owned();
    let plain_dropped = document.plain.as_ref().map_or(0, |plain| plain.dropped);
    for policy in document.policies.iter().chain(&document.two_links) {
        let name = quoted(&policy.name);
        let parts = || policy.classes.iter();
        let (frames, bytes) = parts().fold((0, 0), |(frames, bytes), part| {
            (frames + part.frames, bytes + part.bytes)
        });
        let (before, after, added) = (policy.before, policy.after, policy.added_delay);
        let _ = writeln!(
            out,
            "{name},all,,{frames},{bytes},{:.0},{:.0},{:.0},{:.0},{:.3},{},{plain_dropped},{},,{:.6},{:.6},{:.6}",
            before.frames,
            before.bytes,
            after.frames,
            after.bytes,
            policy.saved_bytes_percent,
            policy.dropped,
            policy.refused,
            added.p50_ms,
            added.p99_ms,
            added.max_ms,
        );
        for class in parts() {
            row(&mut out, &name, "class", class);
        }
        for conversation in &policy.conversations {
            row(&mut out, &name, "conversation", conversation);
        }
        if policy.others.conversations > 0 {
            row(&mut out, &name, "conversations", &policy.others.part);
        }
    }
    out
}

fn row(out: &mut String, policy: &str, of: &str, part: &Part) {
    let max = part.added_max_ms.map(|max| format!("{max:.6}"));
    let _ = writeln!(
        out,
        "{policy},{of},{},{},{},{:.0},{:.0},{:.0},{:.0},{:.3},{},{},,{:.6},,,{}",
        quoted(&part.name),
        part.frames,
        part.bytes,
        part.before.frames,
        part.before.bytes,
        part.after.frames,
        part.after.bytes,
        part.saved_bytes_percent,
        part.dropped,
        part.plain_dropped,
        part.added_mean_ms,
        max.unwrap_or_default(),
    );
}

/// RFC 4180, section 2.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
