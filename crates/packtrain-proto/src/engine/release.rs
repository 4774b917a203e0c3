//! What has arrived goes on to the host in its order: trains by their lanes, and frames without a sequence behind those that came before.

use std::collections::VecDeque;

use arrayvec::ArrayVec;

use super::Engine;
use super::to_host::Arrival;
use crate::buffer::Buffer;
use crate::offload::Offload;
use crate::peer::Peer;
use crate::stats::DropReason;
use crate::time::Instant;
use crate::trunk::lane::{LANES_MAX, LaneId, LaneRx};
use crate::trunk::unsequenced::Unsequenced;
use crate::wire::sequence::Sequence;

/// Bytes of one peer's frames without a sequence that wait behind its trains.
const UNSEQUENCED_BYTES_MAX: usize = 4 << 20;

impl Engine {
    /// Moves what is in order to the arrivals.
    pub(super) fn release_trains(&mut self, slot: usize, now: Instant) {
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        loop {
            for lane in peer.lanes_rx() {
                release_lane((peer, slot, lane), &mut self.arrivals, now);
            }
            let mut in_vain = Vec::new();
            let may_go_on = peer.settle_lane_waits(now, &mut |lane| in_vain.push(lane));
            release_before_others((peer, slot), in_vain, &mut self.arrivals, now);
            if !may_go_on {
                return;
            }
        }
    }

    /// Goodbye has come from this peer: what came before it in a train does not wait for a gap any longer.
    pub(super) fn let_go_before(&mut self, slot: usize, now: Instant) {
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        let lanes_wait = peer.lanes_wait();
        if lanes_wait {
            peer.paths.iter_mut().for_each(|path| path.fence.give_up());
        }
        peer.rx.iter_mut().for_each(LaneRx::hurry);
        self.release_trains(slot, now);
        if lanes_wait {
            self.let_lanes_go(slot, now);
        }
    }

    /// What is held waits no more for what is not here of other lanes, but still for what is.
    pub(super) fn let_lanes_go(&mut self, slot: usize, now: Instant) {
        while let Some(peer) = self.peers.get_mut(slot)
            && peer.lanes_wait()
        {
            let mut in_vain = Vec::new();
            peer.let_lanes_go(&mut |lane| in_vain.push(lane));
            release_before_others((peer, slot), in_vain, &mut self.arrivals, now);
            self.release_trains(slot, now);
        }
    }

    /// So many bytes more are to find room among what all lanes of a peer hold: the one that holds most waits for nothing that is
    /// missing any longer, then all, and if that is not enough none for another.
    pub(super) fn make_room_in_lanes(&mut self, slot: usize, bytes: usize, now: Instant) {
        let bytes_max = self.config.limits.resequencer_bytes_max;
        let is_fenced = |lane: &LaneRx| lane.resequencer.fence.is_some();
        let waits = |peer: &Peer| peer.rx.iter().any(is_fenced);
        self.counters.let_go_for_room += u64::from(self.peers.get(slot).is_some_and(waits));
        for all in [false, true] {
            let Some(peer) = self.peers.get_mut(slot) else {
                return;
            };
            // What is lossless has no more than its part.
            let may_hurry = |lane: &LaneRx| !lane.resequencer.is_lossless();
            let lanes = peer.rx.iter().filter(|lane| may_hurry(lane));
            let most = lanes.map(|lane| lane.resequencer.held_bytes()).max();
            let least = if all { 0 } else { most.unwrap_or(0) };
            for lane in &mut peer.rx {
                if may_hurry(lane) && lane.resequencer.held_bytes() >= least {
                    lane.hurry();
                }
            }
            self.release_trains(slot, now);
            let held = self.peers.get(slot).map_or(0, Peer::held_bytes);
            if held + bytes <= bytes_max {
                return;
            }
        }
        self.let_lanes_go(slot, now);
    }

    /// A frame without a sequence has come from this peer, and must not overtake what came before it in
    /// a train. By the only link there is: what is missing there is lost, and nobody waits for it.
    pub(super) fn queue_unsequenced(
        &mut self,
        slot: usize,
        (frame, offload): (Buffer, Offload),
        is_marked: bool,
        now: Instant,
    ) {
        let Some(peer) = self.peers.get_mut(slot) else {
            return self.drop_frame(frame, DropReason::PeerGone);
        };
        // Of one lane or several: what is missing in one may come by another link of its sender.
        let mut lanes = peer.rx.iter();
        let names_links = lanes.any(|lane| lane.resequencer.names_links());
        let waits = move |lane: &LaneRx| {
            let order = &lane.resequencer;
            order.newest_held().is_some() || (names_links && order.held_trains() > 0)
        };
        if peer.rx.iter().any(waits) || peer.lanes_wait_for_what_may_come() {
            for lane in &mut peer.rx {
                if !waits(lane) {
                    lane.hurry();
                }
            }
            let newest = |lane: LaneId| {
                let order = &peer.rx[lane.place()].resequencer;
                let counts = order.held_trains() > 0 || order.is_fenced();
                counts.then(|| (lane, order.newest()))
            };
            let behind: ArrayVec<_, LANES_MAX> = peer.lanes_rx().filter_map(newest).collect();
            peer.unsequenced.push(Unsequenced {
                behind,
                is_marked,
                frame,
                offload,
                arrived: now,
            });
            return self.release_trains(slot, now);
        }
        self.let_go_before(slot, now);
        self.arrivals.push_back(Arrival::AsItIs {
            slot,
            is_marked,
            buffer: frame,
            offload,
        });
    }
}

/// Of lanes for which others have waited in vain: what is there comes before what goes on elsewhere.
fn release_before_others(
    (peer, slot): (&mut Peer, usize),
    in_vain: Vec<LaneId>,
    arrivals: &mut VecDeque<Arrival>,
    now: Instant,
) {
    for lane in in_vain {
        if peer.has_heard(lane) {
            release_lane((peer, slot, lane), arrivals, now);
        }
        let from = (slot, lane);
        arrivals.push_back(Arrival::Gap { from });
    }
}

fn release_lane(
    (peer, slot, lane): (&mut Peer, usize, LaneId),
    arrivals: &mut VecDeque<Arrival>,
    now: Instant,
) {
    loop {
        let released = peer.rx_mut(lane).resequencer.poll(now);
        let is_last = released.is_none();
        if let Some((held, after_gap)) = released {
            peer.hold_times.record(now.since(held.arrived()));
            arrivals.push_back(Arrival::Train {
                from: (slot, lane),
                arrived: held.arrived(),
                buffer: held.buffer,
                at: held.subframes_at,
                after_gap,
            });
        }
        if is_last && peer.rx_mut(lane).resequencer.take_gap_before_fence() {
            arrivals.push_back(Arrival::Gap { from: (slot, lane) });
        }
        let stands_behind = |lane: LaneId, last: Sequence| {
            let order = &peer.rx[lane.place()].resequencer;
            match order.is_fenced() {
                // What came behind the train before waits as the one that is due does.
                true => !order.expected().is_newer_than(last.next()),
                // Where nothing is held, what it stands behind has come, or was thrown away.
                false => order.held_trains() > 0 && !order.expected().is_newer_than(last),
            }
        };
        while let Some(waited) = peer.unsequenced.pop(stands_behind, UNSEQUENCED_BYTES_MAX) {
            peer.hold_times.record(now.since(waited.arrived));
            arrivals.push_back(Arrival::AsItIs {
                slot,
                is_marked: waited.is_marked,
                buffer: waited.frame,
                offload: waited.offload,
            });
        }
        if is_last {
            return;
        }
    }
}
