//! What links lose that live: it goes again, if it may still arrive in time and is not too much, or if its class lets nothing be lost.
//!
//! Copies of trains are kept for links that die. Where the acknowledgements of a link leave one out
//! ([`crate::trunk::flight`]), its copy takes the way of those: by the best link, before all that is new. Its receiver
//! holds what is newer for as long, because each train says that its sender repairs.

use super::Engine;
use super::paths::link_of;
use crate::buffer::Buffer;
use crate::peer::{Peer, RepairUntil};
use crate::time::{Duration, Instant};
use crate::trunk::flight::Missing;

/// Copies that go again because nothing behind them is acknowledged take no more memory at once.
const TAIL_BYTES_MAX: usize = 1 << 20;

/// Its receiver waits no longer for what may not be lost.
pub(super) const LOSSLESS_WITHIN: Duration = Duration::from_secs(10);

/// How long something takes by the quickest of the peer's links, half of a round trip.
fn way(peer: &Peer) -> Duration {
    let paths = peer.paths.iter().filter(|path| !path.is_silent());
    let round_trips = paths.filter_map(|path| path.flight.round_trip());
    round_trips.min().unwrap_or_default() / 2
}

impl Engine {
    /// What acknowledgements have left out.
    pub(super) fn repair_missing(&mut self, slot: usize, now: Instant) {
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        if !peer.paths.iter().any(|path| path.flight.has_missing()) {
            return;
        }
        let way = way(peer);
        for at in 0..peer.paths.len() {
            let missing: Vec<Missing> = peer.paths[at].flight.take_missing().collect();
            for Missing {
                train,
                first_sent,
                copy,
            } in missing
            {
                let arrives_after = now.since(first_sent) + way;
                let goes_again = match peer.repairs(train.lane) {
                    None => false,
                    Some(RepairUntil::Arrived) => arrives_after <= LOSSLESS_WITHIN,
                    Some(RepairUntil::After(within)) => {
                        arrives_after <= within && peer.repair_budget.take()
                    }
                };
                if goes_again {
                    self.copies.repaired += 1;
                    let again = (train, copy, first_sent);
                    self.copies.send_again(peer, again, &mut self.pool);
                } else {
                    self.copies.not_repaired += 1;
                    self.copies.release(copy, &mut self.pool);
                }
            }
        }
    }

    /// The last trains of bursts that nobody acknowledges.
    pub(super) fn look_for_tails(&mut self, now: Instant) {
        let mut from = 0;
        while let Some(slot) = self.peers.due.next(from, now) {
            from = slot + 1;
            let paths = self.peers.get(slot).map_or(0, |peer| peer.paths.len());
            for at in 0..paths {
                self.look_for_tail(slot, at, now);
            }
            self.repair_missing(slot, now);
        }
    }

    fn look_for_tail(&mut self, slot: usize, at: usize, now: Instant) {
        let Some(peer) = self.peers.get(slot) else {
            return;
        };
        if peer.paths[at].flight.tail_due().is_none_or(|due| due > now) {
            return;
        }
        let (copies, pool) = (&mut self.copies, &mut self.pool);
        if let Some(peer) = self.peers.get_mut(slot) {
            let flight = &mut peer.paths[at].flight;
            flight.give_up_holes(now, &mut |copy| copies.release(copy, pool));
            if flight.tail_due().is_none_or(|due| due > now) {
                return;
            }
        }
        let Some(peer) = self.peers.get(slot) else {
            return;
        };
        // Where nothing is acknowledged by any link, it is the peer that is late, or what it says.
        let mut others = peer.paths.iter().enumerate();
        let works = others.any(|(other, path)| {
            let is_open = link_of(&self.links, path).is_some();
            other != at && is_open && !path.is_silent() && !path.flight.is_late(now)
        });
        // By an only link, they go again all the same if their class asks for it.
        let is_alone = peer.paths.len() == 1 && peer.repairs_alone();
        let has_room = (works || is_alone)
            && self
                .copies
                .has_room(&self.config.limits, peer, TAIL_BYTES_MAX);
        let (copies, pool) = (&mut self.copies, &mut self.pool);
        let mut copy_of = |copy: &Buffer| {
            let again = has_room.then(|| pool.copy_of(copy))?;
            copies.keep(&again);
            Some(again)
        };
        if let Some(peer) = self.peers.get_mut(slot) {
            peer.paths[at].flight.take_tail(&mut copy_of, now);
            peer.paths[at].doubt_mtu(now);
        }
    }
}
