//! What both ends have counted of direct frames, and which trains must not overtake them.

use super::transmit::Outgoing;
use super::{Engine, Event};
use crate::config::{Config, LinkId, LinkOrder, direct_mark_of};
use crate::direct::counts::Signal;
use crate::direct::gate::DirectGate;
use crate::direct::kinds::DirectKind;
use crate::direct::{Came, ENGINE_SURE_BPS};
use crate::peer::{Path, Peer};
use crate::sand::PACKET_MAX;
use crate::stats::{Closures, DirectSnapshot};
use crate::time::Instant;
use crate::trunk::lane::{LaneId, LaneRx, TrainId};
use crate::trunk::liveness::Session;
use crate::wire::ethernet::MacAddr;
use crate::wire::hello::capability;
use crate::wire::train::{DirectReport, Fence};

/// What paths have counted of direct frames; of those that are gone, too.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DirectTotals {
    lost: u64,
    fences: u64,
    fences_given_up: u64,
    late: u64,
    striping_given_up: u64,
    closures: Closures,
}

impl DirectTotals {
    pub(super) fn add_gate(&mut self, gate: &DirectGate) {
        self.closures.add(gate.closures);
    }

    pub(super) fn add(&mut self, path: &Path) {
        self.add_gate(&path.direct_gate);
        self.lost += path.direct.lost();
        self.fences += path.fence.fences;
        self.fences_given_up += path.fence.given_up;
        self.late += path.striping.late;
        self.striping_given_up += path.striping.given_up;
    }
}

/// Whether both ends take direct frames, and so tell each other by their marks.
pub(super) fn both_take_direct(config: &Config, peer: &Peer) -> bool {
    config.direct_frames && peer.capabilities & capability::DIRECT_FRAMES != 0
}

impl Engine {
    /// So many frames, a GSO frame as its segments, have gone directly to this `pt0` by this link, ever. Told
    /// twenty times a second while there are more and more, and four times a second otherwise, so that the
    /// peer can be asked what has come.
    pub fn handle_direct_sent(
        &mut self,
        address: MacAddr,
        link: LinkId,
        frames: u32,
        now: Instant,
    ) {
        let Some(slot) = self.peers.slot_of_address(address) else {
            return;
        };
        if self.is_away(slot) {
            return; // Nobody answers what we would say of them.
        }
        let Some(path) = self.peers.get_mut(slot).and_then(|p| p.path_mut(link)) else {
            return;
        };
        let more = frames.wrapping_sub(path.direct.sent());
        let was_known = path.direct.is_known();
        let signal = path.direct.on_sent(frames, now);
        if was_known && !path.direct.is_known() {
            path.direct_kinds.begin_anew();
        }
        if path.direct.is_due() {
            self.owe_direct_report(slot, link);
        }
        self.full
            .sent
            .on_direct(u64::from(more) * u64::from(self.config.mtu));
        self.on_direct_signal((slot, link), signal, now);
    }

    /// Of the frames that have gone by this link, whomever to, so many are still in a queue of the owner's before it, which what tells
    /// of them goes past. Said before [`Engine::handle_direct_sent`].
    pub fn handle_direct_waiting(&mut self, link: LinkId, frames: u32) {
        for slot in self.peers.slots() {
            if let Some(path) = self.peers.get_mut(slot).and_then(|p| p.path_mut(link)) {
                path.direct.on_waiting(frames);
            }
        }
    }

    /// The answer to [`Event::DirectAsked`]: so many have come, ever. Deliveries and transmits follow.
    pub fn handle_direct_received(
        &mut self,
        link: LinkId,
        direct_mark: MacAddr,
        came: impl Into<Came>,
        now: Instant,
    ) {
        let came = came.into();
        let Some(slot) = self.peers.slot_of_direct_mark(direct_mark) else {
            return;
        };
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        let Some(path) = peer.path_mut(link) else {
            return;
        };
        let more = path.direct.note_came(came.frames);
        let asked = path.direct.on_received(came);
        if let Some(sent) = asked {
            path.fence.on_counts(sent, came.frames);
        }
        path.fence.on_came(came.frames, now);
        peer.follow_fences();
        self.full
            .received
            .on_direct(u64::from(more) * u64::from(self.config.mtu));
        if asked.is_some() {
            self.owe_direct_report(slot, link);
        }
        self.release_trains(slot, now);
    }

    /// Whether [`Engine::poll_transmit`] has something to tell a peer of direct frames.
    pub fn has_direct_reports(&self) -> bool {
        !self.direct_reports.is_empty()
    }

    fn owe_direct_report(&mut self, slot: usize, link: LinkId) {
        if !self.direct_reports.contains(&(slot, link)) {
            self.direct_reports.push((slot, link));
        }
    }

    pub(super) fn take_direct_report(&mut self, now: Instant) -> Option<Outgoing> {
        while let Some((slot, link)) = self.direct_reports.pop() {
            let report = self.send_direct_report(slot, link, now);
            if report.is_some() {
                return report;
            }
        }
        None
    }

    /// Asks whether peers are reached by our mark, on the way to them, and back.
    pub(super) fn introduce_mark(&mut self, slot: usize, now: Instant) {
        let asked = |engine: &Engine, at: usize| -> Option<(bool, LinkId)> {
            let peer = engine.peers.get(slot)?;
            let path = peer.paths.get(at)?;
            let asks = both_take_direct(&engine.config, peer)
                && path.is_open()
                && path.direct.wants_to_be_known(now);
            Some((asks, path.link))
        };
        let mut at = 0;
        while let Some((asks, link)) = asked(self, at) {
            if asks {
                self.choose_kind(slot, at);
                self.ask_for_direct(slot, link);
            }
            at += 1;
        }
    }

    pub(super) fn introduce_marks(&mut self, now: Instant) {
        for slot in self.peers.slots() {
            self.introduce_mark(slot, now);
        }
    }

    /// What a peer says of direct frames between it and this link of ours.
    pub(super) fn on_direct_report(
        &mut self,
        (slot, link): (usize, LinkId),
        by: DirectKind,
        report: &DirectReport,
        now: Instant,
    ) {
        let report = &self.follow_kind((slot, link), by, *report);
        let overtakes = self
            .link(link)
            .is_none_or(|link| link.order != LinkOrder::Whole);
        let is_spread = report.seen_late.is_some() && self.is_spread_over(slot, link);
        let Some(path) = self.peers.get_mut(slot).and_then(|p| p.path_mut(link)) else {
            return;
        };
        let was_known = path.direct.is_known();
        let heard = path.direct.on_report(report, overtakes, now);
        let was_striped = path.striping.is_on();
        let (received, late) = (report.seen_received, report.seen_late);
        let disordered = path.striping.on_report(received, late, is_spread, now);
        let is_striped = path.striping.is_on();
        let is_new = !was_known && path.direct.is_known();
        if heard.asks {
            self.ask_for_direct(slot, link);
        }
        self.on_direct_signal((slot, link), heard.signal, now);
        self.note_unnumbered_loss(slot, now);
        if is_new || was_striped != is_striped {
            self.publish_paths();
        }
        if let Some(frames_per_second) = disordered {
            self.on_disorder((slot, link), frames_per_second, now);
        }
    }

    /// Of what was spread over this path and others too much comes too late by it, of so many frames a second.
    fn on_disorder(&mut self, (slot, link): (usize, LinkId), frames_per_second: f64, now: Instant) {
        let drained_bps = self.link(link).and_then(|link| link.direct_rate.get(now));
        let came_bps = (frames_per_second * f64::from(self.config.mtu) * 8.0) as u64;
        if drained_bps.unwrap_or(0).max(came_bps) < ENGINE_SURE_BPS {
            return self.on_direct_signal((slot, link), Some(Signal::Disorder), now);
        }
        if let Some(path) = self.peers.get_mut(slot).and_then(|p| p.path_mut(link)) {
            path.striping.give_up(now);
            self.publish_paths();
        }
    }

    /// Direct frames that stood in the link's queue left it at this rate, bit/s.
    pub fn handle_direct_rate(&mut self, link: LinkId, rate_bps: u64, now: Instant) {
        if let Some(link) = self.link_mut(link) {
            link.direct_rate.set(rate_bps, now);
        }
    }

    /// Flows that went directly come to the engine from now on: what they hand in comes after what
    /// [`Engine::handle_direct_sent`] was told of last.
    pub fn handle_flows_left_direct(&mut self) {
        for slot in self.peers.slots() {
            let Some(peer) = self.peers.get_mut(slot) else {
                continue;
            };
            for at in 0..peer.paths.len() {
                let path = &mut peer.paths[at];
                let Some(sent) = path.direct.take_unfenced() else {
                    continue;
                };
                let (link, remote_link) = (path.link.0, path.remote_link.0);
                for lane in peer.lanes_tx() {
                    let fence = Fence {
                        link,
                        remote_link,
                        from: peer.tx_of(lane).next_train,
                        sent,
                    };
                    peer.raise_fence(lane, fence);
                }
            }
        }
    }

    /// A train of this peer's lane must not overtake direct frames.
    pub(super) fn on_fence(&mut self, (slot, lane): (usize, LaneId), fence: &Fence, now: Instant) {
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        let (own, remote) = (LinkId(fence.remote_link), LinkId(fence.link));
        let mut paths = peer.paths.iter_mut();
        let path = paths.find(|path| (path.link, path.remote_link) == (own, remote));
        let is_new = path.is_some_and(|path| {
            // Also of one to which nothing was sent but that. An answer of before the counts began anew can be taken
            // for a fast one; those of trains are known by their numbers.
            let asked = path.session.as_ref().and_then(Session::round_trip);
            // Acknowledgements may have come back by a quicker link.
            let round_trips = [
                path.direct.least_round_trip(),
                path.flight.round_trip_min(),
                asked,
            ];
            let round_trip = round_trips.into_iter().flatten().max();
            path.fence
                .on_fence(lane, fence, round_trip.unwrap_or_default(), now)
        });
        if is_new {
            peer.follow_fences();
            self.ask_for_direct(slot, own);
        }
    }

    /// A train of so many bytes has come by these links, ours and its: direct frames may stand behind such as are full, if no more than
    /// packets (what a slow link is given at once), and behind those that say so still: these left before their sender had heard
    /// that one of them had come, right behind the direct frames.
    pub(super) fn note_train_at_fence(
        &mut self,
        (slot, (link, remote_link)): (usize, (LinkId, LinkId)),
        (bytes, says_fence): (usize, bool),
        now: Instant,
    ) {
        let own = self.links.iter().find(|known| known.id == link);
        let is_full = own.is_some_and(|known| bytes * 2 > known.frame_max().min(PACKET_MAX));
        let is_fenced = |peer: &&mut Peer| {
            let mut lanes = peer.rx.iter();
            lanes.any(|lane| lane.resequencer.fence.is_some())
        };
        let Some(peer) = self.peers.get_mut(slot).filter(is_fenced) else {
            return;
        };
        let mut paths = peer.paths.iter_mut();
        let path = paths.find(|path| (path.link, path.remote_link) == (link, remote_link));
        if let Some(path) = path.filter(|_| is_full || says_fence) {
            path.fence.on_train_of_many(bytes, now);
        }
    }

    /// What time makes of those that wait for direct frames of this peer.
    pub(super) fn look_at_fences(&mut self, slot: usize, now: Instant) {
        let mut is_due = false;
        let mut at = 0;
        while let Some(path) = self.peers.get_mut(slot).and_then(|p| p.paths.get_mut(at)) {
            at += 1;
            if path.fence.poll_timeout().is_some_and(|due| due <= now) {
                is_due = true;
                // Each of them: one that is not asked for seems quiet, and is given up.
                if path.fence.handle_timeout(now) {
                    let link = path.link;
                    self.ask_for_direct(slot, link);
                }
            }
        }
        if !is_due {
            return;
        }
        if let Some(peer) = self.peers.get_mut(slot) {
            peer.follow_fences();
        }
        self.release_trains(slot, now);
    }

    /// A train of so many bytes has come: it must find room behind those that wait for direct frames. To be overtaken
    /// is less for a flow than to lose what all flows have sent meanwhile.
    pub(super) fn make_room_behind_fences(
        &mut self,
        slot: usize,
        (train, bytes): (TrainId, usize),
        now: Instant,
    ) {
        let is_crowded = |engine: &Engine| {
            engine.peers.get(slot).is_some_and(|peer| {
                let resequencer = &peer.rx_of(train.lane).resequencer;
                resequencer.crowds_fence(train.sequence, bytes)
                    || (resequencer.is_fenced() && engine.resequencers_are_full())
            })
        };
        if !is_crowded(self) {
            return;
        }
        self.counters.let_go_for_room += 1;
        if let Some(peer) = self.peers.get_mut(slot) {
            // What waits for another lane may wait for what that waits for.
            if peer.lanes_wait() {
                // What is lossless is not given up for room, nor acknowledged as if it had come.
                let lanes = peer.rx.iter_mut();
                let may_hurry = lanes.filter(|lane| !lane.resequencer.is_lossless());
                may_hurry.for_each(LaneRx::hurry);
            }
            peer.paths.iter_mut().for_each(|path| path.fence.give_up());
            peer.follow_fences();
        }
        self.release_trains(slot, now);
        if is_crowded(self) {
            self.let_lanes_go(slot, now);
        }
    }

    /// How many direct frames of this peer have come by this link of ours?
    fn ask_for_direct(&mut self, slot: usize, link: LinkId) {
        let Some(peer) = self.peers.get(slot) else {
            return;
        };
        let Some(remote_link) = peer.path(link).map(|path| path.remote_link) else {
            return;
        };
        let address = peer.address;
        if let Some(direct_mark) = self.direct_mark_of_peer(slot, remote_link) {
            let asked = Event::DirectAsked {
                link,
                direct_mark,
                address,
            };
            if !self.events.contains(&asked) {
                self.events.push_back(asked);
            }
        }
    }

    fn direct_mark_of_peer(&self, slot: usize, remote_link: LinkId) -> Option<MacAddr> {
        let records = &self.peers.get(slot)?.links;
        let record = records.iter().find(|record| record.link == remote_link)?;
        Some(direct_mark_of(record.mark?))
    }

    pub(super) fn direct_snapshot(&self) -> DirectSnapshot {
        let mut sum = self.counters.direct;
        let paths = self.peers.iter().flat_map(|(_, peer)| &peer.paths);
        paths.for_each(|path| sum.add(path));
        let links = self.links.iter();
        links.for_each(|link| sum.add_gate(&link.direct_gate));
        DirectSnapshot {
            takes_surplus: self.full.sent.is_open(),
            surpluses: self.full.sent.openings,
            rests: self.rest.rests,
            rests_in_vain: self.rest.in_vain,
            leaves_small_frames: self.leaves_small_frames(),
            small_frames_left: self.small_frames.times_given_back,
            small_frames_per_second: self.small_frames.rates(),
            closures: sum.closures,
            lost: sum.lost,
            fences: sum.fences,
            fences_given_up: sum.fences_given_up,
            late: sum.late,
            striping_given_up: sum.striping_given_up,
        }
    }
}
