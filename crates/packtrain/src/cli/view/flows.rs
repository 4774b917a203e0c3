//! What flows are there, what each kind of them has sent, and in how many data units.

use std::fmt::Write as _;

use super::words::{count, duration};
use super::{field, traffic};
use crate::status::{DataUnits, StatusDocument};

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

/// How long small frames wait behind others, and what each link makes of it. Nothing, before one has.
pub(super) fn write_sand(out: &mut String, document: &StatusDocument) {
    let waited = &document.sand.waited;
    if waited.trains > 0 {
        let (half, most) = (duration(waited.p50_s), duration(waited.p99_s));
        let frames = number(waited.trains, "small frame", "small frames");
        let text = format!("{frames}: half within {half}, 99 % within {most}");
        field(out, "waited", &text);
    }
    for link in &document.links {
        let Some(waits) = link.sand_waits_max_s else {
            continue;
        };
        let mut text = format!("at {} {} at most", link.name, duration(waits));
        if let Some(bytes) = link.sand_frame_bytes_max {
            let _ = write!(text, ", {} bytes at once", count(bytes));
        }
        if link.sand_late {
            text.push_str("; late for less");
        }
        field(out, "small ones", &text);
    }
}

/// Nothing, before the engine has sent a frame.
pub(super) fn write_data_units(out: &mut String, units: &DataUnits) {
    let Some(ratio) = units.ratio else {
        return;
    };
    let (given, packets) = (count(units.given), count(units.packets_of_1500));
    let percent = 100.0 * ratio;
    let text = format!("{given} for {packets} packets of 1500 ({percent:.1} %)");
    field(out, "data units", &text);
    if units.on_wire != units.given {
        let on_wire = format!("{} where GSO frames are cut", count(units.on_wire));
        field(out, "on a wire", &on_wire);
    }
}

fn number(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}
