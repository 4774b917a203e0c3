//! The end of a replay, and what came out.

use std::collections::BTreeMap;

use packtrain_proto::class::REST;
use packtrain_proto::stats::{CodingSnapshot, DropReason, Drops, Snapshot, Trains};
use packtrain_proto::time::Duration;

use super::super::conversations::Conversations;
use super::super::node::Node;
use super::{ClassResults, END_MAX, Entry, Replay, Results};

impl Replay {
    /// Lets everything arrive that is under way. `top`: conversations that are told one by one.
    pub fn finish(mut self, top: usize) -> Results {
        let end = self.now + END_MAX;
        while self.now < end && !self.nodes.iter().all(Node::is_idle) {
            self.advance(self.now + Duration::from_millis(10));
        }
        for flight in &mut self.flights {
            let (counts, conversations) = (&mut self.counts, &mut self.conversations);
            flight.end(|entry: &Entry| counts.on_lost(entry, conversations));
        }
        self.results(top)
    }

    fn results(self, top: usize) -> Results {
        let now = self.now;
        let counts = self.counts;
        let names = self
            .setup
            .classes
            .iter()
            .map(|class| class.name.to_string());
        let classes = names.chain([REST.to_owned()]).zip(counts.classes);
        let mut engines = Engines::default();
        for node in &self.nodes {
            let before = node
                .before
                .as_ref()
                .expect("taken when it came, or when all had met");
            engines.add(&node.engine.snapshot(now), before);
        }
        let (fill, drops) = (engines.fill(), engines.drops());
        let (conversations, others) = Conversations::top(self.conversations, top);
        Results {
            hosts: self.nodes.len(),
            links: self.setup.links,
            duration: self.last_at.since(self.first_at.unwrap_or(self.last_at)),
            all: counts.all,
            not_replayed: counts.not_replayed,
            plain_delay: counts.plain_delay,
            delay: counts.delay,
            added: counts.added,
            sent: counts.sent,
            trains: engines.trains,
            fill,
            train_frames: engines.frames.into_iter().collect(),
            fills: engines.fills.into_iter().collect(),
            refused: counts.refused,
            drops,
            classes: classes
                .map(|(name, (share, added))| ClassResults { name, share, added })
                .collect(),
            conversations,
            others,
            tagged: self.flights.iter().map(|flight| flight.tagged).sum(),
            pause_left_out: counts.pause_left_out,
            coding: engines.coding,
            timeline: counts.timeline,
        }
    }
}

/// The counters of all engines, since counting began.
#[derive(Default)]
struct Engines {
    trains: Trains,
    coding: CodingSnapshot,
    frames: BTreeMap<u16, u64>,
    fills: BTreeMap<u8, u64>,
    drops: Drops,
}

impl Engines {
    fn add(&mut self, after: &Snapshot, before: &Snapshot) {
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
    fn fill(&self) -> Option<f64> {
        let trains: u64 = self.fills.values().sum();
        let middle = |(percent_max, trains): (&u8, &u64)| {
            (f64::from(*percent_max) - 2.5) / 100.0 * *trains as f64
        };
        let sum: f64 = self.fills.iter().map(middle).sum();
        (trains > 0).then(|| sum / trains as f64)
    }

    fn drops(&self) -> Vec<(&'static str, u64)> {
        let mut drops: Vec<_> = self
            .drops
            .iter()
            .map(|(reason, count)| (reason.as_str(), count))
            .collect();
        drops.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        drops
    }
}
