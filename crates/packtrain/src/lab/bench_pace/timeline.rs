//! A run millisecond by millisecond: what came to the bottleneck, what it dropped, what stood there, and what came to the receiver.

use std::fmt::Write as _;
use std::path::Path as FilePath;

use super::plot;
use super::queue::Occupancy;
use super::stage::Setting;
use super::trace::{Segment, Trace};
use crate::lab::Result;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Millisecond {
    entered: u32,
    dropped: u32,
    /// The most that stood there, bytes; 0 also where nothing came.
    queue: u64,
    arrived: u32,
}

/// Into this directory, as a file whose name is made of this one.
pub fn write(directory: &FilePath, name: &str, trace: &Trace, setting: Setting) -> Result<()> {
    let occupancy = Occupancy::of(trace, setting.path().line);
    let text = csv(&trace.entered, &trace.arrived, &occupancy);
    let name = name
        .replace(", ", "-")
        .replace(' ', "-")
        .replace('%', "percent");
    plot::write(directory, &format!("{name}.csv"), &text)
}

/// As CSV, from the first segment on; frames that carry nothing count too.
fn csv(entered: &[Segment], arrived: &[Segment], occupancy: &Occupancy) -> String {
    let mut rows: Vec<Millisecond> = Vec::new();
    let begins = entered.first().map_or(0, |segment| segment.at);
    let mut at = |time: u64, note: &mut dyn FnMut(&mut Millisecond)| {
        let ms = (time.saturating_sub(begins) / 1_000_000) as usize;
        if ms >= rows.len() {
            rows.resize(ms + 1, Millisecond::default());
        }
        note(&mut rows[ms]);
    };
    for segment in entered {
        at(segment.at, &mut |row| row.entered += 1);
    }
    for segment in &occupancy.dropped {
        at(segment.at, &mut |row| row.dropped += 1);
    }
    for level in &occupancy.levels {
        at(level.at, &mut |row| row.queue = row.queue.max(level.bytes));
    }
    for segment in arrived {
        at(segment.at, &mut |row| row.arrived += 1);
    }
    let mut out = String::from("ms,entered,dropped,queue_bytes,arrived\n");
    for (ms, row) in rows.iter().enumerate() {
        let Millisecond {
            entered,
            dropped,
            queue,
            arrived,
        } = row;
        let _ = writeln!(out, "{ms},{entered},{dropped},{queue},{arrived}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::queue::Line;
    use super::super::trace::Trace;
    use super::super::trace::tests::full;
    use super::*;

    #[test]
    fn each_frame_counts_in_the_millisecond_of_its_time_at_each_place() {
        let trace = Trace {
            entered: vec![full(0, 10.0), full(1, 20.0), full(2, 1500.0)],
            passed: vec![full(0, 1030.0), full(2, 2520.0)],
            arrived: vec![full(0, 1043.0), full(2, 2533.0)],
            ..Trace::default()
        };
        let occupancy = Occupancy::of(&trace, Line { delay: 1_000_000 });
        assert_eq!(
            csv(&trace.entered, &trace.arrived, &occupancy),
            "ms,entered,dropped,queue_bytes,arrived\n\
             0,2,1,1514,0\n1,1,0,1514,1\n2,0,0,0,1\n"
        );
    }
}
