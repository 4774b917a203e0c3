//! What happens because time passed.

use super::paths::{is_ripe, lets, links_of_all, waits_for_window};
use super::repair::LOSSLESS_WITHIN;
use super::tell::marker_due;
use super::{Duration, Engine, Event, PeerDownReason};
use crate::due::FIRST;
use crate::link::Link;
use crate::peer::Peer;
use crate::reassembly::Output;
use crate::time::Instant;
use crate::trunk::balance::Policy;
use crate::trunk::join::Join;
use crate::trunk::lane::LaneRx;
use crate::trunk::receipts::Receipts;

/// Looking for what is too old.
const EXPIRY_INTERVAL: Duration = Duration::from_millis(250);
/// Called so much later than asked, we were not running: silence in that time means nothing.
const LATE: Duration = Duration::from_millis(500);

/// … and so much later, acknowledgements may wait to be read.
const LATE_FOR_ACKS: Duration = Duration::from_millis(20);

impl Engine {
    /// When [`Engine::handle_timeout`] is to be called at the latest.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let mut next = self.greeter.poll_timeout().min(self.next_expiry);
        let mut consider = |at: Option<Instant>| {
            if let Some(at) = at {
                next = next.min(at);
            }
        };
        consider(self.intake.poll_timeout(self.queued_bytes));
        consider(self.drain.poll_timeout());
        consider(self.rest_timeout());
        consider(self.retire_timeout());
        consider(self.segments.poll_timeout());
        consider(self.former_homes.poll_timeout());
        consider(self.waiting.poll_timeout());
        let stations = self.dfap_stations.iter();
        consider(stations.filter_map(|(_, station)| station.ripe_at()).min());
        self.assert_due_times();
        consider(self.peers.due.earliest());
        for &slot in self.peers.due.touched() {
            consider(self.peers.get(slot).and_then(|peer| self.due_of(peer)));
        }
        Some(next)
    }

    /// When something is due of this peer. It depends on the peer and on the state of links: what changes
    /// either touches the peer.
    fn due_of(&self, peer: &Peer) -> Option<Instant> {
        let held = peer.rx.iter().filter_map(LaneRx::poll_timeout);
        let held = held.chain(peer.lane_waits_due());
        let mut next = held.chain(peer.join.as_ref().map(Join::poll_timeout)).min();
        let mut consider = |at: Option<Instant>| {
            next = match (next, at) {
                (Some(next), Some(at)) => Some(next.min(at)),
                (next, at) => next.or(at),
            };
        };
        let owed = peer.receipts.iter().filter_map(Receipts::due).min();
        // Without a link to send it by, an acknowledgement is not due: an owner that is woken for it would
        // be woken again and again.
        consider(owed.filter(|_| self.can_answer(peer)));
        consider(self.overdue_timeout(peer));
        consider(peer.queues.ripe_at());
        for path in &peer.paths {
            consider(path.flight.poll_timeout());
            consider(path.flight.tail_due());
            consider(marker_due(peer, path));
            consider(self.try_timeout(path));
            consider(path.fence.poll_timeout());
            consider(Engine::liveness_timeout(path));
        }
        let answering = peer.answering.iter();
        consider(answering.map(|a| a.session.poll_timeout()).min());
        next
    }

    /// Asks all peers that were touched what is due of them.
    pub(super) fn settle_due_times(&mut self) {
        while let Some(slot) = self.peers.due.pop_touched() {
            let due = self.peers.get(slot).and_then(|peer| self.due_of(peer));
            self.peers.due.settle(slot, due);
        }
    }

    /// A peer whose times have changed untouched would be woken for too late.
    #[cfg(debug_assertions)]
    fn assert_due_times(&self) {
        for (slot, peer) in self.peers.iter() {
            let first = Instant::from_nanos(1);
            if let Some(settled) = self.peers.due.settled(slot) {
                let due = self.due_of(peer).map(|due| due.max(first));
                assert_eq!(settled, due, "peer {slot} has changed untouched");
            }
        }
    }

    #[cfg(not(debug_assertions))]
    fn assert_due_times(&self) {}

    pub fn handle_timeout(&mut self, now: Instant) {
        self.forgive_lateness_of_acknowledgements(now);
        self.forgive_own_lateness(now);
        self.step_waits(now);
        if self.greeter.round_is_due(now) {
            self.greet_all(false, now);
        }
        if self.segments.poll_timeout().is_some_and(|at| at <= now) {
            self.update_homes(now);
        }
        self.former_homes.handle_timeout(now);
        // What waits is counted peer by peer: not at every call.
        if self.intake.is_due(now) {
            self.step_intake(now);
        }
        self.note_busy_moment(now);
        if now >= self.next_expiry {
            self.next_expiry = now + EXPIRY_INTERVAL;
            self.expire(now);
            self.follow_sand(now);
        }
        let mut from = 0;
        while let Some(slot) = self.peers.due.next(from, now) {
            from = slot + 1;
            let Some(peer) = self.peers.get_mut(slot) else {
                continue;
            };
            peer.queues.ripen(now);
            let mut out = Output {
                pool: &mut self.pool,
                complete: &mut self.complete,
                drops: &mut self.counters.drops,
            };
            let mut is_due = false;
            for LaneRx {
                resequencer,
                reassembly,
                ..
            } in &mut peer.rx
            {
                resequencer.forgive_lateness(now);
                let order_waits = resequencer.held_trains() > 0;
                reassembly.wait_for_pieces(match resequencer.is_lossless() {
                    true => LOSSLESS_WITHIN,
                    false => Duration::ZERO,
                });
                reassembly.handle_timeout(now, order_waits, &mut out);
                is_due |= resequencer.poll_timeout().is_some_and(|at| at <= now);
            }
            is_due |= peer.lane_waits_due().is_some_and(|at| at <= now);
            if is_due {
                self.release_trains(slot, now);
            }
            self.look_at_fences(slot, now);
        }
        self.look_for_death(now);
        self.look_for_silence(now);
        self.look_for_overdue(now);
        self.look_for_tails(now);
        self.look_who_is_retired(now);
        self.drain.handle_timeout(now);
        self.look_at_rest(now);
        self.step_drain(now);
        if self.has_tiers() {
            self.note_tiers();
        }
    }

    /// A host that was stopped or starved has heard nobody: that is not their silence.
    pub(super) fn forgive_own_lateness(&mut self, now: Instant) {
        let away = now.since(self.ticked_at);
        self.ticked_at = now;
        if away > LATE + EXPIRY_INTERVAL {
            self.segments.forgive(away, now);
            for (_, peer) in self.peers.iter_mut() {
                // Frames may have been taken in all that time: nobody is heard in the future.
                peer.last_heard = (peer.last_heard + away).min(now);
                peer.last_confirmed = (peer.last_confirmed + away).min(now);
                for lane in &mut peer.rx {
                    lane.waits.forgive(away, now);
                }
            }
        }
    }

    /// Called later than asked, we have not read what peers had acknowledged long ago.
    fn forgive_lateness_of_acknowledgements(&mut self, now: Instant) {
        // What is due at once has no time that one could be late for.
        let asked_for = self.poll_timeout().filter(|&at| at > FIRST);
        let late = asked_for.map_or(Duration::ZERO, |at| now.since(at));
        if late > LATE_FOR_ACKS {
            for (_, peer) in self.peers.iter_mut() {
                for path in &mut peer.paths {
                    path.flight.forgive(late, now);
                }
            }
        }
    }

    fn step_intake(&mut self, now: Instant) {
        self.follow_capacity(now);
        let below: usize = self.links.iter().map(Link::local_queue_bytes).sum();
        let gone = self.taken_bytes.saturating_sub(below as u64);
        let waiting = self.queued_bytes - self.bytes_that_wait_for_no_link(now);
        if let Some(rate_bps) = self.intake.step(waiting, gone, now) {
            let frame_max = rate_bps.map_or(usize::MAX, |bps| self.frame_of_host_max(bps, now));
            self.events.push_back(Event::IntakeRate {
                rate_bps,
                frame_max,
            });
        }
        if let Some(full_bps) = self.intake.owner_is_full(now) {
            self.on_engine_full(full_bps, now);
        }
    }

    /// What waits until the bound of a path has grown, or for others to fill its train, says nothing of the
    /// line's speed. Nor does what waits for links of its own: the host would be held back to these, with all that it
    /// sends by others.
    fn bytes_that_wait_for_no_link(&self, now: Instant) -> usize {
        let peers = self.peers.iter().map(|(_, peer)| peer);
        let of_peer = |peer: &Peer| {
            let is_alone = peer.paths.len() == 1;
            let mut paths = peer.paths.iter();
            if peer.queues.is_empty() {
                0
            } else if !is_ripe(&self.links, peer, now)
                || paths.any(|path| waits_for_window(&self.links, path, is_alone, now))
            {
                peer.queues.bytes()
            } else {
                self.bytes_for_own_links(peer, now)
            }
        };
        let of_peers: usize = peers.map(of_peer).sum();
        let stations = self.dfap_stations.iter().map(|(_, station)| station);
        // One that is full leaves, and is short of no link for longer than that.
        let unripe = stations.filter(|station| station.ripe_at().is_some_and(|at| at > now));
        of_peers + unripe.map(|station| station.waiting().1).sum::<usize>()
    }

    /// What waits for links that a class names, while all other frames to that peer have one besides.
    fn bytes_for_own_links(&self, peer: &Peer, now: Instant) -> usize {
        if self.vias.lanes() == 1 || peer.paths.len() == 1 {
            return 0;
        }
        let of_all = links_of_all(&self.links, peer, Policy::of(&self.config), now);
        let is_own = |lane| {
            let via = self.vias.links_of(lane);
            let keeps_to_it = !of_all
                .iter()
                .all(|link| lets(&self.links, peer, &via, link));
            !via.is_empty() && keeps_to_it
        };
        peer.queues.bytes_of(is_own)
    }

    fn expire(&mut self, now: Instant) {
        self.stations.expire(now);
        self.stations_behind.expire(now);
        self.update_homes(now);
        let silence_max = self.config.limits.peer_silence_max;
        let mut gone = Vec::new();
        let mut unconfirmed = Vec::new();
        for (slot, peer) in self.peers.iter() {
            if now.since(peer.last_heard) > silence_max {
                gone.push(slot);
            } else if peer.up && now.since(peer.last_confirmed) > silence_max {
                unconfirmed.push(slot);
            }
        }
        for slot in gone {
            self.remove_peer(slot, PeerDownReason::Silent, now);
        }
        // It is heard, but hears nothing: frames go plain until it does.
        for slot in unconfirmed {
            self.remove_peer(slot, PeerDownReason::Deaf, now);
        }
        self.expire_paths(now);
        self.follow_liveness_of_all(now);
        self.expire_aggregating(now);
        self.forget_other_lines(now);
        self.introduce_marks(now);
        self.look_who_is_full(now);
        self.look_whether_calm(now);
        self.follow_all_sizes(now);
        self.watch_all(now);
    }
}
