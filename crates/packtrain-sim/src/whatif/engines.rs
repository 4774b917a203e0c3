//! The counters of all engines, since counting began.

use std::collections::BTreeMap;

use packtrain_proto::stats::{CodingSnapshot, DropReason, Drops, Snapshot, Trains};

#[derive(Debug, Default)]
pub(super) struct Engines {
    pub trains: Trains,
    pub coding: CodingSnapshot,
    pub frames: BTreeMap<u16, u64>,
    pub fills: BTreeMap<u8, u64>,
    drops: Drops,
}

impl Engines {
    pub fn add(&mut self, after: &Snapshot, before: &Snapshot) {
        let (now, then, sum) = (&after.trains_tx, &before.trains_tx, &mut self.trains);
        sum.trains += now.trains - then.trains;
        sum.frames += now.frames - then.frames;
        sum.pieces += now.pieces - then.pieces;
        sum.markers += now.markers - then.markers;
        sum.marked += now.marked - then.marked;
        sum.plain += now.plain - then.plain;
        sum.aggregates += now.aggregates - then.aggregates;
        sum.aggregated += now.aggregated - then.aggregated;
        let (now, then, sum) = (&after.coding, &before.coding, &mut self.coding);
        sum.coded_tx += now.coded_tx - then.coded_tx;
        sum.coded_rx += now.coded_rx - then.coded_rx;
        sum.dictionary_tx += now.dictionary_tx - then.dictionary_tx;
        sum.dictionary_rx += now.dictionary_rx - then.dictionary_rx;
        sum.deltas_tx += now.deltas_tx - then.deltas_tx;
        sum.frame_bytes += now.frame_bytes - then.frame_bytes;
        sum.train_bytes += now.train_bytes - then.train_bytes;
        sum.saved_padding += now.saved_padding - then.saved_padding;
        sum.saved_headers += now.saved_headers - then.saved_headers;
        sum.saved_payload += now.saved_payload - then.saved_payload;
        sum.tried_bytes += now.tried_bytes - then.tried_bytes;
        for bucket in &after.train_sizes.frames {
            *self.frames.entry(bucket.frames).or_default() += bucket.trains;
        }
        for bucket in &before.train_sizes.frames {
            *self.frames.entry(bucket.frames).or_default() -= bucket.trains;
        }
        for bucket in &after.train_sizes.fill {
            *self.fills.entry(bucket.percent_max).or_default() += bucket.trains;
        }
        for bucket in &before.train_sizes.fill {
            *self.fills.entry(bucket.percent_max).or_default() -= bucket.trains;
        }
        for &reason in DropReason::ALL {
            let of = |snapshot: &Snapshot| {
                let links = snapshot.links.iter().map(|link| link.drops.get(reason));
                snapshot.drops.get(reason) + links.sum::<u64>()
            };
            self.drops.count_many(reason, of(after) - of(before));
        }
    }

    /// Each bucket at its middle.
    pub fn fill(&self) -> Option<f64> {
        let trains: u64 = self.fills.values().sum();
        let middle = |(percent_max, trains): (&u8, &u64)| {
            (f64::from(*percent_max) - 2.5) / 100.0 * *trains as f64
        };
        let sum: f64 = self.fills.iter().map(middle).sum();
        (trains > 0).then(|| sum / trains as f64)
    }

    pub fn drops(&self) -> Vec<(&'static str, u64)> {
        let mut drops: Vec<_> = self
            .drops
            .iter()
            .map(|(reason, count)| (reason.as_str(), count))
            .collect();
        drops.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        drops
    }
}
