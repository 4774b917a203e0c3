//! Whether links hear each other: sessions of paths ([`crate::trunk::liveness`]), their messages, and what becomes of a
//! path that is dead.

use super::Engine;
use super::paths::{link_of, rate_bps, standing};
use super::transmit::Outgoing;
use crate::config::LinkId;
use crate::link::Link;
use crate::peer::{Path, Peer};
use crate::stats::DropReason;
use crate::time::{Duration, Instant};
use crate::trunk::balance::Standing;
use crate::trunk::liveness::{Change, MULTIPLIER, Session};
use crate::wire::ethernet::{HEADER_LEN, Header, MacAddr, ether_type};
use crate::wire::hello::capability;
use crate::wire::liveness::{Diagnostic, LEN, Liveness, LivenessError};

/// All sessions together send no more often than that.
const APART_MIN: Duration = Duration::from_millis(1);
/// Of a link's rate, liveness takes no more than one part of so many.
const SHARE: u64 = 100;
/// A message on the wire, with preamble and gap.
const WIRE_BITS: u64 = 84 * 8;
/// What ended so short a time before all links of a peer were silent was not that link's fault.
const TOGETHER: Duration = Duration::from_secs(1);

impl From<LivenessError> for DropReason {
    fn from(error: LivenessError) -> DropReason {
        match error {
            LivenessError::Truncated => DropReason::Truncated,
            LivenessError::UnknownVersion => DropReason::UnknownVersion,
            LivenessError::UnknownType => DropReason::UnknownType,
            LivenessError::BadState(_) | LivenessError::BadInterval(..) => DropReason::BadLiveness,
        }
    }
}

/// How often messages go by this path at most. The round trip bounds what is under way of them, however slow the link is.
fn desired(
    required: Duration,
    links: &[Link],
    path: &Path,
    session: &Session,
    now: Instant,
) -> Duration {
    let rate = links.iter().find(|link| link.id == path.link);
    let rate = rate.and_then(|link| rate_bps(link, path, now));
    let of_rate = rate.map_or(Duration::ZERO, |bps| {
        Duration::from_nanos(WIRE_BITS * SHARE * 1_000_000_000 / bps.max(1))
    });
    let of_round_trip = session.round_trip().unwrap_or_default() / 4;
    required.max(of_rate).max(of_round_trip)
}

impl Engine {
    /// How often messages are wanted on each link.
    fn liveness_required(&self) -> Option<Duration> {
        let detection_time = self.config.detection_time?;
        let apart = APART_MIN * self.liveness_sessions;
        Some((detection_time / u32::from(MULTIPLIER)).max(apart))
    }

    /// Paths begin and end to be watched: where there are several that can be, and where the peer sees several.
    pub(super) fn follow_liveness(&mut self, slot: usize, now: Instant) {
        let required = self.liveness_required();
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        let knows_how = peer.capabilities & capability::LIVENESS != 0;
        let required = required.filter(|_| knows_how && peer.up && !peer.away);
        let is_open = |path: &&Path| link_of(&self.links, path).is_some();
        let asks = peer.paths.iter().filter(is_open).count() > 1;
        for path in &mut peer.paths {
            let is_open = link_of(&self.links, path).is_some();
            let same = path.session.take();
            let same = same.filter(|session| session.remote_link == path.remote_link);
            let is_asked = same.as_ref().is_some_and(|session| session.is_asked(now));
            let Some(required) = required.filter(|_| is_open && (asks || is_asked)) else {
                continue;
            };
            let carries = path.trains_tx > 0 && !path.joining && !path.damping.is_down();
            let begun = || Session::new(path.remote_link, required, carries, now);
            let mut session = same.unwrap_or_else(begun);
            session.asks = asks;
            path.session = Some(session);
        }
    }

    pub(super) fn follow_liveness_of_all(&mut self, now: Instant) {
        let sessions = |peer: &Peer| peer.paths.iter().filter(|p| p.session.is_some()).count();
        self.liveness_sessions = self
            .peers
            .iter()
            .map(|(_, peer)| sessions(peer) as u32)
            .sum();
        for slot in self.peers.slots() {
            self.follow_liveness(slot, now);
        }
    }

    pub(super) fn handle_liveness(
        &mut self,
        link: LinkId,
        source: MacAddr,
        message: &[u8],
        now: Instant,
    ) {
        let said = match Liveness::parse(message) {
            Ok(said) => said,
            Err(error) => return self.counters.drops.count(error.into()),
        };
        let Some(slot) = self.peers.owner_of_link(source).map(|owner| owner.slot) else {
            return self.counters.drops.count(DropReason::UnknownPeer);
        };
        let peer = self
            .peers
            .get_mut(slot)
            .expect("the index names peers that exist");
        match peer.remote_incarnation() {
            None => {
                self.ask_epoch(link, slot, now);
                return self.counters.drops.count(DropReason::UnknownPeer);
            }
            Some(session) if session != said.incarnation => {
                self.ask_epoch(link, slot, now);
                return self.counters.drops.count(DropReason::StaleIncarnation);
            }
            Some(_) => {}
        }
        if said.remote_link != link {
            return self.counters.drops.count(DropReason::BadLiveness);
        }
        // Each end has chosen which of the other's links it speaks to: the one with the greater id follows.
        if peer.node_id < self.config.node_id {
            peer.pair(link, said.link, now);
        }
        self.follow_liveness(slot, now);
        let required = self.liveness_required();
        let (Some(required), Some(peer)) = (required, self.peers.get_mut(slot)) else {
            return;
        };
        let may_answer = peer.up && !peer.away && said.asks;
        let Some(path) = peer.path_mut(link) else {
            return;
        };
        if path.session.is_none() && may_answer && path.remote_link == said.link {
            let carries = path.trains_tx > 0 && !path.joining;
            let mut session = Session::new(said.link, required, carries, now);
            session.asks = false;
            path.session = Some(session);
        }
        // Or it has not heard yet that we do not take part, or that we have chosen another link of its.
        let of_pair = |session: &&mut Session| session.remote_link == said.link;
        let Some(session) = path.session.as_mut().filter(of_pair) else {
            return;
        };
        match session.on_message(&said, now) {
            None => self.counters.drops.count(DropReason::StaleLiveness),
            Some(None) => {}
            Some(Some(change)) => self.on_liveness(slot, link, change, now),
        }
    }

    /// Something came by this link of ours from that one of the peer's.
    pub(super) fn note_life(&mut self, slot: usize, link: LinkId, remote: LinkId, now: Instant) {
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        let Some(at) = peer.paths.iter().position(|path| path.link == link) else {
            return;
        };
        let of_pair = |session: &&Session| session.remote_link == remote;
        let Some(session) = peer.paths[at].session.as_ref().filter(of_pair) else {
            return;
        };
        let learns = session.is_gap(now) && {
            let others = peer.paths.iter().filter(|path| path.link != link);
            let mut others = others.filter_map(|path| path.session.as_ref());
            others.any(|other| other.was_heard_since(session, now))
        };
        let session = peer.paths[at].session.as_mut().expect("it was there");
        if learns {
            session.learn(now);
        }
        session.on_life(now);
    }

    /// Paths on which nothing was heard for too long.
    pub(super) fn look_for_death(&mut self, now: Instant) {
        let mut from = 0;
        while let Some(slot) = self.peers.due.next(from, now) {
            from = slot + 1;
            let paths = self.peers.get(slot).map_or(0, |peer| peer.paths.len());
            for at in 0..paths {
                let peer = self.peers.get_mut(slot).expect("it has paths");
                let Some(mut session) = peer.paths[at].session.take() else {
                    continue;
                };
                peer.paths[at].damping.release(now);
                let others = peer.paths.iter().filter_map(|path| path.session.as_ref());
                let change = session.look(others, now);
                let link = peer.paths[at].link;
                peer.paths[at].session = Some(session);
                if let Some(change) = change {
                    self.on_liveness(slot, link, change, now);
                }
            }
        }
    }

    fn on_liveness(&mut self, slot: usize, link: LinkId, change: Change, now: Instant) {
        let hold = self.config.hold_time;
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        let Some(at) = peer.paths.iter().position(|path| path.link == link) else {
            return;
        };
        let path = &mut peer.paths[at];
        match change {
            Change::Up => {
                path.damping.on_return(hold, now);
            }
            Change::Down(Diagnostic::None) => {}
            Change::Down(Diagnostic::Expired | Diagnostic::NeighborDown) => {
                path.damping.on_failure(now);
                let mut paths = peer.paths.iter();
                let is_good = |path: &Path| {
                    link_of(&self.links, path)
                        .is_some_and(|link| standing(link, path) == Standing::Open)
                };
                if paths.any(is_good) {
                    self.replay_path(slot, at);
                } else {
                    // It was the peer, or we: no link of it is to be held for that.
                    for path in &mut peer.paths {
                        path.damping.forgive(now - TOGETHER);
                    }
                }
            }
        }
    }

    /// The next message that is due.
    pub(super) fn take_liveness(&mut self, now: Instant) -> Option<Outgoing> {
        let required = self.liveness_required()?;
        let mut from = 0;
        while let Some(slot) = self.peers.due.next(from, now) {
            from = slot + 1;
            let Some(peer) = self.peers.get_mut(slot) else {
                continue;
            };
            let incarnation = peer.incarnation(self.config.node_id);
            for path in &mut peer.paths {
                let is_due = |session: &Session| session.transmit_at() <= now;
                if !path.session.as_ref().is_some_and(is_due) {
                    continue;
                }
                let link = link_of(&self.links, path).filter(|link| !link.blocked);
                let mut session = path.session.take().expect("it is due");
                let Some(link) = link else {
                    session.postpone(now);
                    path.session = Some(session);
                    continue;
                };
                let count = self.greeter.next_liveness();
                let desired = desired(required, &self.links, path, &session, now);
                let paces = (desired, required);
                let said = session.message(link.id, incarnation, count, paces, now);
                path.session = Some(session);
                let header = Header {
                    destination: path.remote_address,
                    source: link.state.address,
                    ether_type: ether_type::PACKTRAIN,
                };
                let mut buffer = self.pool.take(HEADER_LEN + LEN);
                assert!(buffer.push(&header.to_bytes()));
                said.emit(&mut buffer);
                self.outgoing = Some(buffer);
                return Some(Outgoing::message(link.id));
            }
        }
        None
    }

    /// When anything is due of a path's session, or it may carry trains again.
    pub(super) fn liveness_timeout(path: &Path) -> Option<Instant> {
        let due = path.session.as_ref()?.poll_timeout();
        let held_until = path.damping.held_until();
        Some(held_until.map_or(due, |until| until.min(due)))
    }
}
