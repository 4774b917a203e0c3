//! Classes have come to name other links, or to have what is lost go again otherwise: frames of some flows go in another lane than those before them, which they must not
//! overtake.
//!
//! What waits already leaves first, and what comes meanwhile of such a flow waits for that. Then what goes says behind which trains of
//! other lanes it comes, until that is acknowledged; the receiver keeps it back until they have come.

use super::Engine;
use crate::class::{Class, ClassTable, Facts, Match};
use crate::peer::Peer;
use crate::queue::frame::QueuedFrame;
use crate::stats::DropReason;
use crate::time::Instant;
use crate::trunk::lane::LaneId;
use crate::trunk::via::{Via, Vias};
use crate::turns::Destination;
use crate::wire::packet::Packet;

/// What classes said before they changed last, as long as somebody waits because of that.
#[derive(Debug, Default)]
pub(super) enum LaneChange {
    #[default]
    None,
    From(Box<Before>),
    /// They have changed again meanwhile: any flow may have been of any lane.
    FromSeveral,
}

#[derive(Debug)]
pub(super) struct Before {
    classes: ClassTable,
    vias: Vias,
}

impl LaneChange {
    /// Whether a flow that is of this lane now may have been of another one.
    pub(super) fn moves(&mut self, flow_hash: u32, facts: &Facts, lane: LaneId) -> bool {
        match self {
            LaneChange::None => false,
            LaneChange::FromSeveral => true,
            LaneChange::From(before) => {
                let via = before.classes.via_of(flow_hash, facts);
                before.vias.lane_of(&via) != lane
            }
        }
    }
}

/// What says how flows go: the classes that have all frames of theirs, up to the last that says anything of it.
fn lanes_by<'a>(classes: impl Iterator<Item = &'a Class>) -> Vec<(&'a Match, Via)> {
    let deciding = classes.filter(|class| class.matches.is_fixed());
    let mut all: Vec<_> = deciding
        .map(|class| (&class.matches, class.action.via()))
        .collect();
    let last = all.iter().rposition(|(_, via)| !via.is_any());
    all.truncate(last.map_or(0, |last| last + 1));
    all
}

impl Engine {
    /// Other classes are in force than `before`.
    pub(super) fn change_lanes(&mut self, before: Vec<Class>, now: Instant) {
        if lanes_by(before.iter()) == lanes_by(self.classes.iter()) {
            return;
        }
        let vias = self.vias.clone();
        let ways = self.classes.actions().map(|action| action.via());
        let ways: Vec<Via> = ways.collect();
        let peers = &self.peers;
        let is_under_way = |lane: LaneId| {
            let is_busy = |peer: &Peer| peer.has_lane(lane) && peer.is_busy(lane, now);
            peers.iter().any(|(_, peer)| is_busy(peer))
        };
        self.vias.set(ways.into_iter(), is_under_way);
        self.lane_change = match std::mem::take(&mut self.lane_change) {
            LaneChange::None => {
                let (rest, _, _) = self.classes.rest();
                let classes = ClassTable::new(before, rest);
                LaneChange::From(Box::new(Before { classes, vias }))
            }
            LaneChange::From(_) | LaneChange::FromSeveral => LaneChange::FromSeveral,
        };
        for slot in self.peers.slots() {
            if let Some(peer) = self.peers.get_mut(slot) {
                peer.use_lanes(&self.vias);
                peer.later.get_or_insert_default();
                peer.queues.mark(now);
            }
        }
        // Only when all of them wait: it is over when none does.
        for slot in self.peers.slots() {
            self.go_on_with_lane_change(slot, now);
        }
        self.forget_lane_change();
    }

    /// More than half of all that waits does so because of a change of lanes.
    pub(super) fn most_wait_for_lanes(&self) -> bool {
        let later = self
            .peers
            .iter()
            .filter_map(|(_, peer)| peer.later.as_ref());
        later.map(Vec::len).sum::<usize>() * 2 > self.queued_frames
    }

    /// Makes room at the cost of those that wait for a change of lanes. `false`: none do.
    pub(super) fn drop_from_later(&mut self) -> bool {
        let later = self
            .peers
            .iter_mut()
            .filter_map(|(_, peer)| peer.later.as_mut());
        let most = later.max_by_key(|later| later.len());
        let Some(frame) = most.and_then(Vec::pop) else {
            return false;
        };
        self.on_unqueued(1, frame.buffer.len());
        self.drop_copy(frame, DropReason::QueueFull);
        true
    }

    /// The last frame of before may have left.
    pub(super) fn go_on_with_lane_change(&mut self, slot: usize, now: Instant) {
        // Asked for each train: mostly nobody waits.
        if matches!(self.lane_change, LaneChange::None) {
            return;
        }
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        if peer.queues.has_older() {
            return;
        }
        let Some(later) = peer.later.take() else {
            return;
        };
        peer.order_lanes(now);
        for mut frame in later {
            self.on_unqueued(1, frame.buffer.len());
            // Classes may have changed again since it came.
            frame.lane = self.lane_of(&frame);
            self.enqueue(Destination::Peer(slot), frame);
        }
        self.forget_lane_change();
    }

    pub(super) fn lane_of(&mut self, frame: &QueuedFrame) -> LaneId {
        let parsed = Packet::parse(&frame.buffer);
        // No class that says how its trains go asks for a mark.
        let facts = Facts::of(&frame.buffer, &parsed, 0);
        let via = self.classes.via_of(frame.flow_hash, &facts);
        self.vias.lane_of(&via)
    }

    /// If nobody waits because of it any more.
    pub(super) fn forget_lane_change(&mut self) {
        if self.peers.iter().all(|(_, peer)| peer.later.is_none()) {
            self.lane_change = LaneChange::None;
        }
    }
}
