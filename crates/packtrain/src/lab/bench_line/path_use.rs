//! How the frames of each part went, by the counters of the line.

use serde::Serialize;

use crate::lab::table::{Table, grouped};
use crate::status::{Counts, StatusDocument};

/// What A sent through a line in one part, all rounds together.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PathCounts {
    pub part: &'static str,
    pub line: &'static str,
    /// Frames that went past the engine.
    pub direct: u64,
    pub trains: u64,
    pub frames: u64,
    pub pieces: u64,
    pub marked: u64,
    pub frames_per_train_mean: f64,
    pub drops: Counts,
}

impl PathCounts {
    pub fn between(
        part: &'static str,
        line: &'static str,
        before: &StatusDocument,
        after: &StatusDocument,
    ) -> PathCounts {
        let (old, new) = (&before.trains.tx, &after.trains.tx);
        let (trains, frames) = (new.trains - old.trains, new.frames - old.frames);
        let drops = after.drops.iter().map(|(reason, count)| {
            (
                reason.clone(),
                count - before.drops.get(reason).unwrap_or(&0),
            )
        });
        PathCounts {
            part,
            line,
            direct: after.direct.tx.frames - before.direct.tx.frames,
            trains,
            frames,
            pieces: new.pieces - old.pieces,
            marked: new.marked - old.marked,
            frames_per_train_mean: frames as f64 / trains.max(1) as f64,
            drops: drops.filter(|(_, count)| *count > 0).collect(),
        }
    }

    fn drops_text(&self) -> String {
        let drops = self
            .drops
            .iter()
            .map(|(reason, count)| format!("{reason} {count}"));
        drops.collect::<Vec<_>>().join(", ")
    }
}

pub fn paths_table(paths: &[PathCounts]) -> Table {
    let mut table = Table::new(&[
        "what A sent",
        "by",
        "direct",
        "trains",
        "frames in them",
        "a train",
        "pieces",
        "marked",
        "dropped",
    ]);
    for path in paths {
        table.row([
            path.part.to_owned(),
            path.line.to_owned(),
            grouped(path.direct as f64),
            grouped(path.trains as f64),
            grouped(path.frames as f64),
            format!("{:.1}", path.frames_per_train_mean),
            grouped(path.pieces as f64),
            grouped(path.marked as f64),
            path.drops_text(),
        ]);
    }
    table
}
