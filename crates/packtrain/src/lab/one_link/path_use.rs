//! How the frames of each part went, by the counters of the line.

use serde::Serialize;

use crate::lab::table::{Table, grouped};
use crate::status::{ClosuresBecause, Coding, Counts, StatusDocument};

/// What A sent through a line in one part, all rounds together.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PathCounts {
    pub part: String,
    pub line: &'static str,
    /// Frames that went past the engine.
    pub direct: u64,
    /// Frames that the host gave to the engine.
    pub engine: u64,
    /// How often the direct path was closed, and because of what.
    pub closures: u64,
    pub closures_because: ClosuresBecause,
    /// And aggregates of the DFAP paper.
    pub trains: u64,
    pub frames: u64,
    pub pieces: u64,
    pub marked: u64,
    pub frames_per_train_mean: f64,
    pub coding: CodingCounts,
    pub drops: Counts,
}

/// What coding saved in these trains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CodingCounts {
    pub trains: u64,
    /// Frames whose headers were told apart from another's.
    pub told_apart: u64,
    /// All frames in trains, each as it would have left alone, and all trains.
    pub frame_bytes: u64,
    pub train_bytes: u64,
    pub saved_headers: i64,
    pub saved_payload: i64,
    /// What was given to the compressor.
    pub compressed_bytes: u64,
}

impl CodingCounts {
    fn between(before: &Coding, after: &Coding) -> CodingCounts {
        CodingCounts {
            trains: after.coded_tx - before.coded_tx,
            told_apart: after.told_apart - before.told_apart,
            frame_bytes: after.frame_bytes - before.frame_bytes,
            train_bytes: after.train_bytes - before.train_bytes,
            saved_headers: after.saved.headers.bytes - before.saved.headers.bytes,
            saved_payload: after.saved.payload.bytes - before.saved.payload.bytes,
            compressed_bytes: after.compressed_bytes - before.compressed_bytes,
        }
    }

    fn add(&mut self, more: CodingCounts) {
        self.trains += more.trains;
        self.told_apart += more.told_apart;
        self.frame_bytes += more.frame_bytes;
        self.train_bytes += more.train_bytes;
        self.saved_headers += more.saved_headers;
        self.saved_payload += more.saved_payload;
        self.compressed_bytes += more.compressed_bytes;
    }

    fn percent(&self, of: i64) -> f64 {
        100.0 * of as f64 / self.frame_bytes.max(1) as f64
    }

    /// Nothing where no train was coded.
    fn text(&self) -> String {
        match self.trains {
            0 => String::new(),
            _ => format!(
                "headers {:.0} %, payload {:.0} %",
                self.percent(self.saved_headers),
                self.percent(self.saved_payload)
            ),
        }
    }
}

impl PathCounts {
    pub fn between(
        part: impl Into<String>,
        line: &'static str,
        before: &StatusDocument,
        after: &StatusDocument,
    ) -> PathCounts {
        let (old, new) = (&before.trains.tx, &after.trains.tx);
        let (old_closures, new_closures) = (
            before.direct.closures_because,
            after.direct.closures_because,
        );
        let trains = new.trains - old.trains + new.aggregates - old.aggregates;
        let frames = new.frames - old.frames + new.aggregated - old.aggregated;
        let drops = after.drops.iter().map(|(reason, count)| {
            (
                reason.clone(),
                count - before.drops.get(reason).unwrap_or(&0),
            )
        });
        PathCounts {
            part: part.into(),
            line,
            direct: after.direct.tx.frames - before.direct.tx.frames,
            engine: after.host.taken.frames - before.host.taken.frames,
            closures: after.direct.closures - before.direct.closures,
            closures_because: ClosuresBecause {
                congestion: new_closures.congestion - old_closures.congestion,
                delay: new_closures.delay - old_closures.delay,
                loss: new_closures.loss - old_closures.loss,
                disorder: new_closures.disorder - old_closures.disorder,
            },
            trains,
            frames,
            pieces: new.pieces - old.pieces,
            marked: new.marked - old.marked,
            frames_per_train_mean: frames_per_train(frames, trains),
            coding: CodingCounts::between(&before.coding, &after.coding),
            drops: drops.filter(|(_, count)| *count > 0).collect(),
        }
    }

    /// And what was sent in another round of the same part.
    pub fn add(&mut self, more: PathCounts) {
        self.direct += more.direct;
        self.engine += more.engine;
        self.closures += more.closures;
        let (because, more_because) = (&mut self.closures_because, more.closures_because);
        because.congestion += more_because.congestion;
        because.delay += more_because.delay;
        because.loss += more_because.loss;
        self.trains += more.trains;
        self.frames += more.frames;
        self.pieces += more.pieces;
        self.marked += more.marked;
        self.frames_per_train_mean = frames_per_train(self.frames, self.trains);
        self.coding.add(more.coding);
        for (reason, count) in more.drops {
            *self.drops.entry(reason).or_default() += count;
        }
    }

    /// Which path carried the frames, how many a train held, and what coding saved of them.
    pub fn carried_text(&self) -> String {
        let all = (self.direct + self.engine).max(1);
        let directly = self.direct as f64 / all as f64;
        match (directly, self.trains) {
            (_, 0) => "directly".to_owned(),
            (0.995.., trains) => format!("directly, and {} trains", grouped(trains as f64)),
            _ => {
                let saved = match self.coding.text() {
                    text if text.is_empty() => text,
                    text => format!(", saved: {text}"),
                };
                format!(
                    "{:.0} % by the engine, {:.1} a train{saved}",
                    100.0 * (1.0 - directly),
                    self.frames_per_train_mean
                )
            }
        }
    }

    fn closures_text(&self) -> String {
        let because = self.closures_because.to_string();
        match because.is_empty() {
            true => grouped(self.closures as f64),
            false => because,
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

fn frames_per_train(frames: u64, trains: u64) -> f64 {
    frames as f64 / trains.max(1) as f64
}

pub fn paths_table(paths: &[PathCounts]) -> Table {
    let mut table = Table::new(&[
        "what A sent",
        "by",
        "direct",
        "closed",
        "by the engine",
        "trains",
        "frames in them",
        "a train",
        "coded",
        "saved",
        "compressed",
        "pieces",
        "marked",
        "dropped",
    ]);
    for path in paths {
        table.row([
            path.part.clone(),
            path.line.to_owned(),
            grouped(path.direct as f64),
            path.closures_text(),
            grouped(path.engine as f64),
            grouped(path.trains as f64),
            grouped(path.frames as f64),
            format!("{:.1}", path.frames_per_train_mean),
            grouped(path.coding.trains as f64),
            path.coding.text(),
            grouped(path.coding.compressed_bytes as f64),
            grouped(path.pieces as f64),
            grouped(path.marked as f64),
            path.drops_text(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_of_a_part_are_added_up() {
        let round = |frames, trains, lost| PathCounts {
            part: "x".to_owned(),
            line: "pt0",
            direct: 10,
            engine: frames,
            trains,
            frames,
            drops: [("link_qdisc".to_owned(), lost)].into(),
            ..PathCounts::default()
        };
        let mut sum = round(30, 10, 1);
        sum.add(round(10, 10, 2));
        assert_eq!((sum.direct, sum.engine, sum.trains), (20, 40, 20));
        assert_eq!(sum.frames_per_train_mean, 2.0);
        assert_eq!(sum.drops["link_qdisc"], 3);
        assert_eq!(sum.carried_text(), "67 % by the engine, 2.0 a train");
        sum.coding = CodingCounts {
            trains: 15,
            frame_bytes: 1000,
            saved_headers: 400,
            saved_payload: 55,
            ..CodingCounts::default()
        };
        sum.coding.add(sum.coding);
        let saved = "67 % by the engine, 2.0 a train, saved: headers 40 %, payload 6 %";
        assert_eq!(sum.carried_text(), saved);
        sum.direct = 100_000;
        assert_eq!(sum.carried_text(), "directly, and 20 trains");
        let directly = PathCounts {
            direct: 5,
            ..PathCounts::default()
        };
        assert_eq!(directly.carried_text(), "directly");
    }
}
