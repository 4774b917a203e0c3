//! Lanes: trains of one are numbered and delivered in one order, and know nothing of those of others.
//!
//! All of which classes say nothing is of the first lane. What is to go by some links alone, or is repaired in a way of its own
//! ([`super::via`]), is of another one: where that takes longer, nothing else waits for it, and its gaps hold nothing else.

use super::balance::span_trains_max;
use super::lane_waits::LaneWaits;
use super::replay::Replay;
use super::resequencer::{Resequencer, ResequencerStats};
use crate::class::Repairs;
use crate::config::Limits;
use crate::direct::fence::RaisedFences;
use crate::reassembly::{Reassembly, ReassemblyStats};
use crate::time::Instant;
use crate::wire::sequence::Sequence;

/// Of one line, to one peer.
pub const LANES_MAX: usize = 5;
/// Nothing is known of what a lane has sent before the first train of it that is heard: one of so high a number is not among the
/// first ones.
const AMONG_FIRST_MAX: i32 = 1024;

/// The number of a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LaneId(pub u8);

impl LaneId {
    /// Of all that may go by any link.
    pub const FIRST: LaneId = LaneId(0);

    pub fn place(self) -> usize {
        usize::from(self.0)
    }

    /// The first ones, so many.
    pub fn first(count: usize) -> impl Iterator<Item = LaneId> {
        (0..count as u8).map(LaneId)
    }
}

/// Some lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lanes(u8);

impl Lanes {
    pub fn has(self, lane: LaneId) -> bool {
        self.0 >> lane.0 & 1 != 0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<LaneId> for Lanes {
    fn from_iter<T: IntoIterator<Item = LaneId>>(lanes: T) -> Lanes {
        Lanes(lanes.into_iter().fold(0, |all, lane| all | 1 << lane.0))
    }
}

/// Which train it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrainId {
    pub lane: LaneId,
    pub sequence: Sequence,
}

/// What we send in one lane.
#[derive(Debug)]
pub struct LaneTx {
    pub next_train: Sequence,
    /// When the last one left.
    pub sent_at: Instant,
    /// Direct frames that our next trains must not overtake.
    pub fences: RaisedFences,
    pub replay: Replay,
    /// What of it is lost goes again.
    pub repairs: Repairs,
}

impl Default for LaneTx {
    fn default() -> LaneTx {
        LaneTx {
            next_train: Sequence::FIRST,
            sent_at: Instant::ZERO,
            fences: RaisedFences::default(),
            replay: Replay::default(),
            repairs: Repairs::default(),
        }
    }
}

impl LaneTx {
    /// A train leaves.
    pub fn on_sent(&mut self, now: Instant) {
        self.next_train = self.next_train.next();
        self.sent_at = now;
    }
}

/// What comes in one lane.
#[derive(Debug)]
pub struct LaneRx {
    pub resequencer: Resequencer,
    pub reassembly: Reassembly,
    pub waits: LaneWaits,
}

impl LaneRx {
    /// `first`: the sequence of the first train that is to come.
    pub fn new(first: Sequence, limits: &Limits) -> LaneRx {
        LaneRx {
            resequencer: Resequencer::new(
                first,
                limits.resequencer_bytes_max,
                (limits.resequencer_wait_max, limits.resequencer_stall_max),
            ),
            reassembly: Reassembly::new(limits.reassembly_bytes_max, limits.reassembly_age_max),
            waits: LaneWaits::default(),
        }
    }

    /// Of a lane of which this train is heard first. `given_up`: up to this one another lane has waited in vain.
    pub fn heard_first(train: Sequence, given_up: Option<Sequence>, limits: &Limits) -> LaneRx {
        let ahead = train.distance_from(Sequence::FIRST);
        let is_among_first = (0..AMONG_FIRST_MAX).contains(&ahead);
        let first = if is_among_first {
            Sequence::FIRST
        } else {
            train
        };
        // Nobody has more under way.
        let is_near = |last: &Sequence| {
            let ahead = last.distance_from(first);
            (0..span_trains_max(0) as i32).contains(&ahead)
        };
        let given_up = given_up.filter(is_near);
        LaneRx::new(given_up.map_or(first, Sequence::next), limits)
    }

    /// What it holds waits for no gap and no direct frames any more, and for other lanes only.
    pub fn hurry(&mut self) {
        self.resequencer.hurry();
        self.resequencer.fence = self.waits.holds_from();
    }

    /// Trains and frames that have come and were not given to the host yet.
    pub fn held(&self) -> usize {
        self.resequencer.held_trains() + self.reassembly.frames()
    }

    /// When something is due of it.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let both = [
            self.resequencer.poll_timeout(),
            self.reassembly.poll_timeout(),
        ];
        both.into_iter().flatten().min()
    }
}

/// What lanes have counted that are no more.
#[derive(Clone, Copy, Debug, Default)]
pub struct LaneCounts {
    pub order: ResequencerStats,
    pub pieces: ReassemblyStats,
}

impl LaneCounts {
    pub fn add(&mut self, lane: &LaneRx) {
        let (order, pieces) = (&lane.resequencer.stats, &lane.reassembly.stats);
        self.order.gaps += order.gaps;
        self.order.reordered += order.reordered;
        self.order.held_bytes_max = self.order.held_bytes_max.max(order.held_bytes_max);
        self.pieces.completed += pieces.completed;
        self.pieces.partial += pieces.partial;
        self.pieces.bytes_max = self.pieces.bytes_max.max(pieces.bytes_max);
    }
}
