//! Whether links hear each other: sessions of paths ([`crate::trunk::liveness`]), their messages, and what becomes of a
//! path that is dead.

use super::Engine;
use super::paths::{link_of, rate_bps, standing};
use super::transmit::Outgoing;
use crate::config::LinkId;
use crate::peer::{Answering, Path, Peer};
use crate::stats::DropReason;
use crate::time::{Duration, Instant};
use crate::trunk::balance::Standing;
use crate::trunk::liveness::{Change, MULTIPLIER, Session};
use crate::trunk::path_mtu::{Ask, PathMtu};
use crate::wire::ethernet::{HEADER_LEN, Header, MacAddr, ether_type};
use crate::wire::hello::{LINKS_MAX, LinkRecord, capability};
use crate::wire::liveness::{Diagnostic, LEN, Liveness, LivenessError, State};

/// All sessions together send no more often than that.
const APART_MIN: Duration = Duration::from_millis(1);
/// Of a link's rate, liveness takes no more than one part of so many.
const SHARE: u64 = 100;
/// … and however slow it seems, messages are no further apart for that.
const SLOW_MAX: Duration = Duration::from_millis(500);
/// A message on the wire, with preamble and gap.
const WIRE_BITS: u64 = 84 * 8;
/// Pairs that one peer has chosen, and we have not: one for each of its links.
const ANSWERING_MAX: usize = LINKS_MAX;
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

/// How often messages go at most. The round trip bounds what is under way of them, however slow the link is.
fn desired(required: Duration, rate_bps: Option<u64>, session: &Session) -> Duration {
    let of_rate = rate_bps.map_or(Duration::ZERO, |bps| {
        Duration::from_nanos(WIRE_BITS * SHARE * 1_000_000_000 / bps.max(1))
    });
    let of_round_trip = session.round_trip().unwrap_or_default() / 4;
    required.max(of_rate.max(of_round_trip).min(SLOW_MAX))
}

/// A session of a path. What has carried trains until now goes on doing so.
fn begun(path: &Path, required: Duration, now: Instant) -> Session {
    let carries = path.trains_tx > 0 && !path.joining && !path.damping.is_down();
    Session::new(path.remote_link, required, carries, now)
}

/// When the path is asked how long frames may be, while it lives.
fn asks_at(path: &Path, session: &Session) -> Option<Instant> {
    let mtu = path.mtu.as_ref()?;
    mtu.ask_at().filter(|_| session.state() == State::Up)
}

/// A silence ends. It was none of a dead link, if others of the peer were heard in it and this one was not given up.
fn learn_of_silence(peer: &mut Peer, at: usize, now: Instant) {
    let is_long = |session: &&Session| session.state() == State::Up && session.is_gap(now);
    let Some(session) = peer.paths[at].session.as_ref().filter(is_long) else {
        return;
    };
    // It does not outlive itself.
    if peer.sessions().any(|other| other.outlives(session, now))
        && let Some(session) = &mut peer.paths[at].session
    {
        session.learn(now);
    }
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
        let answers_polls = peer.capabilities & capability::POLLS != 0;
        let required = required.filter(|_| knows_how && peer.up && !peer.away);
        let is_open = |path: &&Path| link_of(&self.links, path).is_some();
        let has_choice = peer.paths.iter().filter(is_open).count() > 1;
        let takes_less = |path: &Path| path.mtu.as_ref().is_some_and(PathMtu::is_less);
        // What was found has to be asked again, or it would stay for ever.
        let asks = has_choice || peer.paths.iter().any(takes_less);
        let answering = &mut peer.answering;
        for path in &mut peer.paths {
            let is_open = link_of(&self.links, path).is_some();
            let is_of_pair = |link: LinkId, session: &Session| {
                (link, session.remote_link) == (path.link, path.remote_link)
            };
            let mut same = None;
            if let Some(session) = path.session.take() {
                match is_of_pair(path.link, &session) {
                    true => same = Some(session),
                    // It speaks to another one now; who asked goes on being answered.
                    false => answering.push(Answering {
                        link: path.link,
                        session,
                    }),
                }
            }
            if let Some(at) = answering
                .iter()
                .position(|a| is_of_pair(a.link, &a.session))
            {
                let answered = answering.swap_remove(at).session;
                same.get_or_insert(answered);
            }
            let is_asked = same.as_ref().is_some_and(|session| session.is_asked(now));
            let Some(required) = required.filter(|_| is_open && (asks || is_asked)) else {
                continue;
            };
            let mut session = same.unwrap_or_else(|| begun(path, required, now));
            session.asks = asks;
            path.session = Some(session);
            if let Some(link) = link_of(&self.links, path) {
                path.follow_mtu(link.frame_max(), answers_polls, now);
            }
        }
        let carries = |id: LinkId| {
            self.links
                .iter()
                .any(|link| link.id == id && link.carries_trains())
        };
        answering.retain_mut(|answering| {
            answering.session.asks = false;
            required.is_some() && answering.session.is_asked(now) && carries(answering.link)
        });
    }

    pub(super) fn follow_liveness_of_all(&mut self, now: Instant) {
        let sessions = self
            .peers
            .iter()
            .map(|(_, peer)| peer.sessions().count() as u32);
        self.liveness_sessions = sessions.sum();
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
        let speaks = |record: &LinkRecord| (record.link, record.address) == (said.link, source);
        let is_from_its_link = peer.links.iter().any(speaks);
        let refused = match peer.remote_incarnation() {
            None => Some(DropReason::UnknownPeer),
            Some(session) if session != said.incarnation => Some(DropReason::StaleIncarnation),
            Some(_) => None,
        };
        if let Some(reason) = refused {
            self.ask_epoch(link, slot, now);
            return self.counters.drops.count(reason);
        }
        if said.remote_link != link || !is_from_its_link {
            return self.counters.drops.count(DropReason::BadLiveness);
        }
        self.follow_liveness(slot, now);
        let peer = self.peers.get_mut(slot).expect("it was there");
        let of_pair = |path: &Path| (path.link, path.remote_link) == (link, said.link);
        if let Some(at) = peer.paths.iter().position(of_pair)
            && let Some(session) = &peer.paths[at].session
            && session.is_news(said.count, now)
        {
            learn_of_silence(peer, at, now);
        }
        let Some((of_path, session)) = self.session_of(slot, link, &said, now) else {
            return; // it has not heard yet that we do not take part
        };
        let change = match session.on_message(&said, now) {
            None => return self.counters.drops.count(DropReason::StaleLiveness),
            Some(change) => change,
        };
        if !of_path {
            return;
        }
        if let Some(change) = change {
            self.on_liveness(slot, link, change, now);
            self.follow_liveness(slot, now);
        }
        self.on_heard_of_sizes(slot, link, &said, now);
    }

    /// The other end says which messages it has heard: that shows how long frames pass.
    fn on_heard_of_sizes(&mut self, slot: usize, link: LinkId, said: &Liveness, now: Instant) {
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        let Some(at) = peer.paths.iter().position(|path| path.link == link) else {
            return;
        };
        let Some(mtu) = &mut peer.paths[at].mtu else {
            return;
        };
        let before = mtu.bytes();
        mtu.on_heard(said.heard, said.heard_long, now);
        let after = mtu.bytes();
        if after < before {
            self.replay_longer_than(slot, at, after);
        }
    }

    /// The session that a message is for, begun if it asks for one; and whether it is of a path of ours.
    fn session_of(
        &mut self,
        slot: usize,
        link: LinkId,
        said: &Liveness,
        now: Instant,
    ) -> Option<(bool, &mut Session)> {
        let required = self.liveness_required()?;
        let peer = self.peers.get_mut(slot)?;
        let may_begin =
            said.asks && peer.up && !peer.away && peer.capabilities & capability::LIVENESS != 0;
        let mut paths = peer.paths.iter_mut();
        let of_pair = |path: &&mut Path| (path.link, path.remote_link) == (link, said.link);
        if let Some(path) = paths.find(of_pair) {
            // One that is closed would lose it again with the next message, and each new one is answered at once.
            if path.session.is_none() && may_begin && link_of(&self.links, path).is_some() {
                path.session = Some(begun(path, required, now));
            }
            return path.session.as_mut().map(|session| (true, session));
        }
        let of_pair = |answering: &Answering| {
            (answering.link, answering.session.remote_link) == (link, said.link)
        };
        let at = match peer.answering.iter().position(of_pair) {
            Some(at) => at,
            None if may_begin && peer.answering.len() < ANSWERING_MAX => {
                let session = Session::new(said.link, required, false, now);
                peer.answering.push(Answering { link, session });
                peer.answering.len() - 1
            }
            None => return None,
        };
        Some((false, &mut peer.answering[at].session))
    }

    /// Something came by this link of ours from that one of the peer's.
    pub(super) fn note_life(&mut self, slot: usize, link: LinkId, remote: LinkId, now: Instant) {
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        let of_pair = |path: &Path| (path.link, path.remote_link) == (link, remote);
        let session = match peer.paths.iter().position(of_pair) {
            Some(at) => {
                learn_of_silence(peer, at, now);
                peer.paths[at].session.as_mut()
            }
            None => {
                let mut answering = peer.answering.iter_mut();
                let found = answering.find(|a| (a.link, a.session.remote_link) == (link, remote));
                found.map(|answering| &mut answering.session)
            }
        };
        if let Some(session) = session {
            session.on_life(now);
        }
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
                let change = session.look(peer.sessions(), now);
                let link = peer.paths[at].link;
                peer.paths[at].session = Some(session);
                if let Some(change) = change {
                    self.on_liveness(slot, link, change, now);
                }
            }
            // Nothing hangs on these but what the other end is told.
            if let Some(peer) = self.peers.get_mut(slot) {
                let of_paths = peer.paths.iter().filter_map(|path| path.session.as_ref());
                for answering in &mut peer.answering {
                    answering.session.look(of_paths.clone(), now);
                }
            }
        }
    }

    fn on_liveness(&mut self, slot: usize, link: LinkId, change: Change, now: Instant) {
        let hold = self.config.hold_time;
        let detection = self.config.detection_time.unwrap_or_default();
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        let Some(at) = peer.paths.iter().position(|path| path.link == link) else {
            return;
        };
        let path = &mut peer.paths[at];
        match change {
            Change::Up => {
                path.damping.on_return(hold, detection, now);
                if let Some(mtu) = &mut path.mtu {
                    mtu.restart();
                }
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
            let (links, greeter) = (&self.links, &mut self.greeter);
            let mut due = None;
            let mut say = |session: &mut Session, id: LinkId, path: Option<&mut Path>| {
                let asks_at = path.as_ref().and_then(|path| asks_at(path, session));
                let transmit_at = session.transmit_at();
                let at = asks_at.map_or(transmit_at, |at| at.min(transmit_at));
                if due.is_some() || at > now {
                    return;
                }
                let link = links.iter().find(|link| link.id == id);
                let link = link.filter(|link| link.carries_trains() && !link.blocked);
                let Some(link) = link else {
                    session.postpone(now);
                    if let Some(mtu) = path.and_then(|path| path.mtu.as_mut()) {
                        mtu.postpone(session.transmit_at());
                    }
                    return;
                };
                let rate_bps = path.as_ref().and_then(|path| rate_bps(link, path, now));
                let paces = (desired(required, rate_bps, session), required);
                let count = greeter.next_liveness();
                // What the other end waits for is not to be lost for being long.
                let asks = asks_at.is_some_and(|at| at <= now) && !session.has_news();
                let ask = path.filter(|_| asks).and_then(|path| {
                    let nominal = path.nominal_max(link.frame_max());
                    let mtu = path.mtu.as_mut()?;
                    mtu.set_nominal(nominal);
                    mtu.take_ask(session.round_trip(), count.0, now)
                });
                let mut said = session.message(id, incarnation, count, paces, now);
                said.poll = ask.is_some();
                let len = match ask {
                    Some(Ask::Long(bytes)) => bytes,
                    Some(Ask::Short) | None => HEADER_LEN + LEN,
                };
                due = Some((id, link.state.address, said, len));
            };
            for path in &mut peer.paths {
                if let Some(mut session) = path.session.take() {
                    say(&mut session, path.link, Some(&mut *path));
                    path.session = Some(session);
                }
            }
            for answering in &mut peer.answering {
                say(&mut answering.session, answering.link, None);
            }
            let Some((link, source, said, len)) = due else {
                continue;
            };
            let to = |record: &&LinkRecord| record.link == said.remote_link;
            let Some(record) = peer.links.iter().find(to) else {
                continue; // it is gone, and so is who would hear it
            };
            let header = Header {
                destination: record.address,
                source,
                ether_type: ether_type::PACKTRAIN,
            };
            let mut buffer = self.pool.take(len);
            assert!(buffer.push(&header.to_bytes()));
            said.emit(&mut buffer);
            buffer.pad_to(len);
            self.outgoing = Some(buffer);
            return Some(Outgoing::message(link));
        }
        None
    }

    /// When anything is due of a path's session, or it may carry trains again.
    pub(super) fn liveness_timeout(path: &Path) -> Option<Instant> {
        let session = path.session.as_ref()?;
        let due = session.poll_timeout();
        let due = asks_at(path, session).map_or(due, |at| at.min(due));
        let held_until = path.damping.held_until();
        Some(held_until.map_or(due, |until| until.min(due)))
    }
}
