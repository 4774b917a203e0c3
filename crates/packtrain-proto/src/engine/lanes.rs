//! Classes have come to name other links: frames of a flow go in another lane than those before them, which they must not overtake.
//!
//! What waits already leaves first, and what comes meanwhile waits for that. Then what goes says behind which trains of other lanes
//! it comes, until that is acknowledged; the receiver keeps it back until they have come.

use super::Engine;
use crate::trunk::lane::LANES_MAX;
use crate::turns::Destination;

/// So many frames wait for those that came before other classes, and no more: then some may be overtaken.
pub(super) const LATER_MAX: usize = 1024;

impl Engine {
    pub(super) fn begin_lane_change(&mut self, slot: usize) {
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        if peer.tx.len() > 1 {
            peer.later.get_or_insert_default();
            self.go_on_with_lane_change(slot);
        }
    }

    /// The last frame of before may have left.
    pub(super) fn go_on_with_lane_change(&mut self, slot: usize) {
        let waits = |slot| {
            let peer = self.peers.get(slot)?;
            Some(peer.later.is_some() && peer.queues.is_empty())
        };
        if waits(slot).unwrap_or_default() {
            self.end_lane_change(slot);
        }
    }

    pub(super) fn end_lane_change(&mut self, slot: usize) {
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        let Some(later) = peer.later.take() else {
            return;
        };
        debug_assert!(peer.tx.len() <= LANES_MAX);
        peer.order_lanes();
        for frame in later {
            self.on_unqueued(1, frame.buffer.len());
            self.enqueue(Destination::Peer(slot), frame);
        }
    }
}
