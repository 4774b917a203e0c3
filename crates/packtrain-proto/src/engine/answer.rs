//! What is said to a peer without anything for its host: acknowledgements, and what is under way.

use super::Engine;
use super::head::{HEAD_LEN_MAX, Head};
use super::kinds::{TAG_LEN, outer_source, put_tag};
use super::transmit::Outgoing;
use crate::config::LinkId;
use crate::direct::kinds::DirectKind;
use crate::link::Link;
use crate::peer::{Path, Peer};
use crate::stats::FlushReason;
use crate::time::{Duration, Instant};
use crate::trunk::lane::LaneId;
use crate::trunk::receipts::Receipts;

/// So much sooner there and back, and acknowledgements take another link than that of the last train: what is under way on a
/// link is bounded by how soon it is acknowledged.
const MUCH_SOONER: Duration = Duration::from_millis(1);
/// But so often one takes that, for the quick one may have died just now.
const ANSWERED_BY_ARRIVAL: Duration = Duration::from_millis(4);

fn takes_answers(link: &&Link) -> bool {
    link.carries_trains() && !link.blocked
}

impl Engine {
    /// An acknowledgement that had no train to ride on in time.
    pub(super) fn take_acknowledgement(&mut self, now: Instant) -> Option<Outgoing> {
        let mut at = 0;
        while at < self.ack_slots.len() {
            let slot = self.ack_slots[at];
            let Some(peer) = self.peers.get(slot) else {
                self.ack_slots.swap_remove(at);
                continue;
            };
            let due = peer.receipts.iter().filter_map(Receipts::due).min();
            match due {
                None => {
                    self.peers.get_mut(slot)?.ack_listed = false;
                    self.ack_slots.swap_remove(at);
                }
                Some(due) if due > now => at += 1,
                Some(_) => {
                    if let Some(outgoing) = self.acknowledge(slot, now) {
                        return Some(outgoing);
                    }
                    at += 1;
                }
            }
        }
        None
    }

    fn acknowledge(&mut self, slot: usize, now: Instant) -> Option<Outgoing> {
        let link = self.answering_link(self.peers.get(slot)?, now)?;
        self.send_marker(slot, LaneId::FIRST, link, false, now)
    }

    /// A train without subframes: what is owed in acknowledgements, and what of the lane is under way on the links.
    /// `ack_now`: what was acknowledged of this link is to be said again, for it may be lost.
    pub(super) fn send_marker(
        &mut self,
        slot: usize,
        lane: LaneId,
        link: LinkId,
        ack_now: bool,
        now: Instant,
    ) -> Option<Outgoing> {
        let peer = self.peers.get(slot)?;
        // Of any other link nobody knows that it works.
        let answers = self.answering_link(peer, now) == Some(link);
        let peer = self.peers.get_mut(slot)?;
        if answers && link == peer.last_arrival {
            peer.answered_by_arrival_at = now;
        }
        let at = peer.paths.iter().position(|path| path.link == link)?;
        let link = self.links.iter().find(|l| l.id == link)?;
        let own = self.config.node_id;
        let mut head = Head::of_marker((&mut *peer, at), lane, link, own, answers, now);
        head.header.ack_now = ack_now;
        let path = &mut peer.paths[at];
        // It says that nothing comes behind what this link carries, as one sent for that would.
        path.flight.on_marker_sent(lane, now);
        if let Some(session) = &mut path.session {
            session.on_other_sent(now);
        }
        let mut buffer = self.pool.take(HEAD_LEN_MAX);
        head.write(&mut buffer, (&*peer, at), link);
        self.counters.trains_tx.markers += 1;
        self.counters.flushes.count(FlushReason::Control);
        let link = link.id;
        self.outgoing = Some(buffer);
        Some(Outgoing::message(link))
    }

    /// What was counted of direct frames, from where they come from: a network that does not let them pass does not
    /// let this pass. So nothing else rides on it.
    pub(super) fn send_direct_report(
        &mut self,
        slot: usize,
        link: LinkId,
        now: Instant,
    ) -> Option<Outgoing> {
        let peer = self.peers.get_mut(slot)?;
        let at = peer.paths.iter().position(|path| path.link == link)?;
        let link = self.links.iter().find(|l| l.id == link)?;
        let kind = peer.paths[at].direct_kinds.kind();
        let source = outer_source(link, kind)?;
        let own = self.config.node_id;
        let report = peer.paths[at].direct.take_report(now)?;
        let mut head = Head::of_marker((&mut *peer, at), LaneId::FIRST, link, own, false, now);
        head.header.ack_now = report.wants_answer;
        head.direct = Some(report);
        let mut buffer = self.pool.take(HEAD_LEN_MAX + TAG_LEN);
        head.write(&mut buffer, (&*peer, at), link);
        buffer[6..12].copy_from_slice(&source.0);
        if let Some(vlan) = self.config.direct_vlan.filter(|_| kind == DirectKind::Vlan) {
            put_tag(&mut buffer, vlan);
        }
        self.counters.trains_tx.markers += 1;
        self.counters.flushes.count(FlushReason::Control);
        let link = link.id;
        self.outgoing = Some(buffer);
        Some(Outgoing::message(link))
    }

    /// Whether an acknowledgement for this peer can go by any link.
    pub(super) fn can_answer(&self, peer: &Peer) -> bool {
        let mut paths = peer.paths.iter();
        paths.any(|path| self.link(path.link).filter(takes_answers).is_some())
    }

    /// The link by which an acknowledgement for this peer goes: the one by which the last train came, for
    /// of that we know that it works; or one by which it is there much sooner, if that is known to live, but for one
    /// now and then. None while each is blocked: what is said later then says more.
    pub(super) fn answering_link(&self, peer: &Peer, now: Instant) -> Option<LinkId> {
        if let [path] = &peer.paths[..] {
            let link = self.link(path.link).filter(takes_answers);
            return link.map(|link| link.id);
        }
        let open = peer.paths.iter().filter_map(|path| {
            let link = self.link(path.link).filter(takes_answers)?;
            let works = path.is_open() && !path.is_silent() && link.retiring.is_none();
            Some((works, path))
        });
        let of_arrival = open.clone().min_by_key(|(works, path)| {
            let is_other = path.link != peer.last_arrival;
            (!works, is_other, path.flight.round_trip_min(), path.link)
        });
        let (_, of_arrival) = of_arrival?;
        let is_its_turn = now.since(peer.answered_by_arrival_at) >= ANSWERED_BY_ARRIVAL;
        let sooner = match (is_its_turn, answer_takes(of_arrival)) {
            (false, Some(takes)) => open
                .filter(|(works, _)| *works)
                .filter_map(|(_, path)| Some((answer_takes(path)?, path.link)))
                .filter(|(sooner, _)| *sooner + MUCH_SOONER < takes)
                .min(),
            _ => None,
        };
        Some(sooner.map_or(of_arrival.link, |(_, link)| link))
    }
}

/// There and back, where somebody asks whether the link lives, and it does.
fn answer_takes(path: &Path) -> Option<Duration> {
    let session = path.session.as_ref().filter(|session| session.works())?;
    session.round_trip()
}
