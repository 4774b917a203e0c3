//! What flows are there, and what each kind of them has sent.

use super::words::count;
use super::{field, traffic};
use crate::status::StatusDocument;

/// Nothing, before the engine was given a frame.
pub(super) fn write_flows(out: &mut String, document: &StatusDocument) {
    let flows = &document.flows;
    if flows.of_elephants.frames + flows.of_mice.frames == 0 {
        return;
    }
    let kinds = format!(
        "{} and {} now, by the engine",
        number(flows.elephants, "elephant", "elephants"),
        number(flows.mice, "mouse", "mice")
    );
    field(out, "flows", &kinds);
    let dropped = document.drops.get("codel").copied().unwrap_or(0);
    if document.queue.marked + dropped > 0 {
        let (marked, dropped) = (count(document.queue.marked), count(dropped));
        let told = format!("{marked} frames marked (ECN), {dropped} dropped");
        field(out, "queue stood", &told);
    }
    if flows.of_elephants.frames > 0 {
        field(out, "elephants", &traffic(flows.of_elephants));
    }
}

fn number(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}
