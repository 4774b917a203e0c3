//! What came out of a replay.

use std::ops::{Add, AddAssign, Sub};

use packtrain_proto::stats::{CodingSnapshot, Trains};
use packtrain_proto::time::Duration;

use super::conversations::{Conversation, Others};
use super::flight::Entry;
use super::frame::Captured;
use super::histogram::{Differences, Histogram};
use super::timeline::Timeline;

/// What a wire had to carry. Bytes are all that it spends: preamble, FCS, gap and padding with them. Frames that
/// share a train have their part of it, so these are not whole numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WireLoad {
    pub frames: f64,
    pub bytes: f64,
}

impl Add for WireLoad {
    type Output = WireLoad;
    fn add(self, other: WireLoad) -> WireLoad {
        WireLoad {
            frames: self.frames + other.frames,
            bytes: self.bytes + other.bytes,
        }
    }
}

impl Sub for WireLoad {
    type Output = WireLoad;
    fn sub(self, other: WireLoad) -> WireLoad {
        WireLoad {
            frames: self.frames - other.frames,
            bytes: self.bytes - other.bytes,
        }
    }
}

impl AddAssign for WireLoad {
    fn add_assign(&mut self, other: WireLoad) {
        *self = *self + other;
    }
}

/// The frames of a class, or of a conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Share {
    /// Frames that were captured, and their bytes.
    pub frames: u64,
    pub bytes: u64,
    /// What they cost plainly.
    pub plain: WireLoad,
    pub plain_dropped: u64,
    pub delivered: u64,
    /// What those that were delivered would have cost plainly, and what they did cost.
    pub delivered_plain: WireLoad,
    pub delivered_cost: WireLoad,
    pub dropped: u64,
    /// Of those that arrived both ways, nanoseconds.
    pub added_sum: i128,
    pub added_max: Option<i64>,
    pub compared: u64,
}

impl Share {
    pub(super) fn on_sent(&mut self, frame: &Captured) {
        self.frames += 1;
        self.bytes += frame.len as u64;
        self.plain += frame.cost.load();
    }

    pub(super) fn on_delivered(&mut self, entry: &Entry, cost: WireLoad, added: Option<i64>) {
        self.delivered += 1;
        self.delivered_plain += entry.cost.load();
        self.delivered_cost += cost;
        if let Some(added) = added {
            self.added_sum += i128::from(added);
            self.added_max = self.added_max.max(Some(added));
            self.compared += 1;
        }
    }

    pub(super) fn add(&mut self, other: &Share) {
        self.frames += other.frames;
        self.bytes += other.bytes;
        self.plain += other.plain;
        self.plain_dropped += other.plain_dropped;
        self.delivered += other.delivered;
        self.delivered_plain += other.delivered_plain;
        self.delivered_cost += other.delivered_cost;
        self.dropped += other.dropped;
        self.added_sum += other.added_sum;
        self.added_max = self.added_max.max(other.added_max);
        self.compared += other.compared;
    }

    pub fn added_mean_nanos(&self) -> i64 {
        (self.added_sum / i128::from(self.compared.max(1))) as i64
    }
}

#[derive(Clone, Debug)]
pub struct ClassResults {
    pub name: String,
    pub share: Share,
    pub added: Differences,
}

/// What engines have sent, by what it was.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sent {
    /// Trains that carry frames or pieces of such.
    pub trains: WireLoad,
    /// Frames as they are, with a mark.
    pub marked: WireLoad,
    /// … past the engine.
    pub direct: WireLoad,
    /// … to groups and to hosts without packtrain.
    pub plain: WireLoad,
    /// Acknowledgements and what else goes without frames.
    pub acknowledgements: WireLoad,
    pub hellos: WireLoad,
}

impl Sent {
    pub fn total(&self) -> WireLoad {
        self.trains + self.marked + self.direct + self.plain + self.control()
    }

    pub fn control(&self) -> WireLoad {
        self.acknowledgements + self.hellos
    }
}

#[derive(Clone, Debug)]
pub struct Results {
    /// Hosts that ran packtrain.
    pub hosts: usize,
    pub links: usize,
    /// From the first frame to the last.
    pub duration: Duration,
    /// Frames that were replayed, what they cost plainly, and how many a plain wire dropped.
    pub all: Share,
    /// What hosts sent that ran nothing, because the bound was reached; or not that one side.
    pub not_replayed: u64,
    pub plain_delay: Histogram,
    pub delay: Histogram,
    pub added: Differences,
    pub sent: Sent,
    /// Counted by the engines: of all hosts.
    pub trains: Trains,
    /// Frames that a train had, and trains that had so many.
    pub train_frames: Vec<(u16, u64)>,
    /// Bytes of trains, of those that they could have had.
    pub fill: Option<f64>,
    /// Trains by their fill, in twentieths.
    pub fills: Vec<(u8, u64)>,
    /// Trains and frames that a full queue before a wire refused.
    pub refused: u64,
    /// By the engines, with their reasons.
    pub drops: Vec<(&'static str, u64)>,
    pub classes: Vec<ClassResults>,
    pub conversations: Vec<Conversation>,
    pub others: Others,
    /// Longer pauses count as this long, and how much of them was left out.
    pub pause_left_out: Duration,
    /// What the trains saved of their frames, and by what: framing, padding, headers, payload. Of what left the engines,
    /// delivered or not.
    pub coding: CodingSnapshot,
    /// Frames that left, of those that were replayed and of what engines say, from the first frame on.
    pub timeline: Timeline,
}

impl Results {
    /// Of what the delivered frames would have cost plainly: how much less, control messages included.
    pub fn saved_frames(&self) -> f64 {
        let control = self.sent.control().frames;
        saved(
            self.all.delivered_plain.frames,
            self.all.delivered_cost.frames + control,
        )
    }

    pub fn saved_bytes(&self) -> f64 {
        let control = self.sent.control().bytes;
        saved(
            self.all.delivered_plain.bytes,
            self.all.delivered_cost.bytes + control,
        )
    }

    /// Whole frames that a train carried on average.
    pub fn frames_per_train(&self) -> Option<f64> {
        let trains = self.trains_with_frames();
        (trains > 0).then(|| self.trains.frames as f64 / trains as f64)
    }

    /// Trains that carried frames or pieces: neither acknowledgements nor probes.
    pub fn trains_with_frames(&self) -> u64 {
        self.train_frames.iter().map(|(_, trains)| trains).sum()
    }
}

/// The share of `before` that is gone; less than nothing where there is more after.
pub fn saved(before: f64, after: f64) -> f64 {
    match before > 0.0 {
        true => 1.0 - after / before,
        false => 0.0,
    }
}
