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
    if flows.of_elephants.frames > 0 {
        field(out, "elephants", &traffic(flows.of_elephants));
    }
}

fn number(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}
