//! What has changed about paths, told to the owner when it has: what each is used for and why, how fast it is, how long frames may be
//! that pass it, and whether frames go past the engine.
//!
//! States are compared with what was told last, wherever they may have changed; nobody who changes one has to tell of
//! it. What closes a path is seen in the round in which it happens. Which of several that work are used may change with
//! every train, and is looked at now and then. `trunk/told.rs` bounds how much is told.

use super::paths::{link_of, standing};
use super::{Engine, Event};
use crate::link::{Link, TRAIN_MTU_MIN};
use crate::peer::{Path, Peer};
use crate::stats::{PathBecause, PathState};
use crate::time::Instant;
use crate::trunk::balance::Standing;
use crate::wire::liveness::Diagnostic;

/// An owner that does not ask for what there is to tell is told it later.
const EVENTS_WAITING_MAX: usize = 512;

/// What keeps trains from a path. `None`: nothing does.
fn hindrance(links: &[Link], path: &Path) -> Option<(PathState, PathBecause)> {
    let Some(link) = link_of(links, path) else {
        return Some((PathState::Closed, closed_because(links, path)));
    };
    match standing(link, path) {
        Standing::Open => None,
        Standing::Joining => Some((PathState::Joining, PathBecause::Order)),
        Standing::Retiring => Some((PathState::Retiring, PathBecause::Retiring)),
        Standing::Silent => Some((PathState::Silent, silent_because(path))),
        Standing::Held => Some((
            PathState::Held,
            match path.damping.held_until() {
                Some(_) => PathBecause::FailedBefore,
                None => PathBecause::Unproven,
            },
        )),
    }
}

/// What was asked for an answer says more than what was only sent.
fn silent_because(path: &Path) -> PathBecause {
    let failed = path.session.as_ref().filter(|s| s.has_failed());
    match failed.map(|session| (session.diagnostic(), session.failed_after())) {
        Some((Diagnostic::NeighborDown, _)) => PathBecause::PeerDeaf,
        Some((_, after)) => PathBecause::NotHeard(after),
        None => {
            let silence = path.silent.as_ref();
            PathBecause::Unanswered(silence.map(|s| s.unanswered_for).unwrap_or_default())
        }
    }
}

/// The nearest cause first: what is known of our own end needs no word of the peer's.
fn closed_because(links: &[Link], path: &Path) -> PathBecause {
    let own = links.iter().find(|link| link.id == path.link);
    match own.map(|link| link.state) {
        Some(state) if state.carrier && state.mtu < TRAIN_MTU_MIN => PathBecause::MtuTooSmall,
        Some(state) if state.carrier => match path.remote_carrier {
            false => PathBecause::PeerEndDead,
            true if path.remote_mtu < TRAIN_MTU_MIN => PathBecause::PeerMtuTooSmall,
            true => PathBecause::Unheard,
        },
        _ => PathBecause::NoCarrier,
    }
}

/// Of one that works.
fn used_because(state: PathState) -> PathBecause {
    match state {
        PathState::Backup => PathBecause::NotPreferred,
        PathState::TooSlow => PathBecause::TooSlow,
        _ => PathBecause::Works,
    }
}

fn works(state: PathState) -> bool {
    use PathState::{Backup, Closed, Held, Joining, Open, Retiring, Silent, TooSlow};
    match state {
        Open | Backup | TooSlow => true,
        Closed | Held | Joining | Silent | Retiring => false,
    }
}

impl Engine {
    /// After a round: what has opened or closed paths of those who were touched.
    pub(super) fn watch_touched(&mut self, now: Instant) {
        let mut at = 0;
        while let Some(&slot) = self.peers.due.touched().get(at) {
            at += 1;
            let Some(peer) = self.peers.get(slot) else {
                continue;
            };
            let has_changed = |path: &Path| match (path.told.told(), hindrance(&self.links, path)) {
                (Some(told), None) => !works(told),
                (Some(told), Some((state, _))) => told != state,
                (None, _) => true,
            };
            if peer.up && peer.paths.iter().any(has_changed) {
                self.watch_paths(slot, now);
            }
        }
    }

    /// Now and then: everything, of everybody.
    pub(super) fn watch_all(&mut self, now: Instant) {
        for slot in self.peers.slots() {
            if self.peers.get(slot).is_some_and(|peer| peer.up) {
                self.watch_paths(slot, now);
                self.watch_rates(slot, now);
                self.watch_mtus(slot);
                self.watch_direct(slot, now);
            }
        }
    }

    /// What is not as it was told is written down, and nothing else is touched: looking makes nobody due.
    fn watch_paths(&mut self, slot: usize, now: Instant) {
        let paths = self.peers.get(slot).map_or(0, |peer| peer.paths.len());
        for at in 0..paths {
            if self.events.len() >= EVENTS_WAITING_MAX {
                return;
            }
            let Some(peer) = self.peers.get(slot) else {
                return;
            };
            let path = &peer.paths[at];
            let (state, because) = self.state_and_why(peer, path, now);
            let mut watched = path.told;
            // Between those that work there is no hurry.
            let at_once = !(works(state) && watched.told().is_some_and(works));
            let change = watched.look(state, at_once, now);
            let event = change.map(|change| Event::PathChanged {
                node_id: peer.node_id,
                address: peer.address,
                link: path.link,
                state: Some(state),
                because,
                before: change.before,
                lasted: change.lasted,
                skipped: change.skipped,
            });
            if watched != path.told
                && let Some(peer) = self.peers.get_mut(slot)
            {
                peer.paths[at].told = watched;
            }
            self.events.extend(event);
        }
    }

    fn state_and_why(&self, peer: &Peer, path: &Path, now: Instant) -> (PathState, PathBecause) {
        hindrance(&self.links, path).unwrap_or_else(|| {
            let state = self.path_state(peer, path, now);
            (state, used_because(state))
        })
    }

    fn watch_rates(&mut self, slot: usize, now: Instant) {
        let paths = self.peers.get(slot).map_or(0, |peer| peer.paths.len());
        for at in 0..paths {
            let Some(peer) = self.peers.get(slot) else {
                return;
            };
            let path = &peer.paths[at];
            let Some((rate_bps, _)) = path.flight.rate_bps() else {
                continue;
            };
            if self.events.len() >= EVENTS_WAITING_MAX {
                return;
            }
            let mut watched = path.told_rate;
            let before = watched.look(rate_bps, now);
            let event = before.map(|before_bps| Event::PathRate {
                node_id: peer.node_id,
                address: peer.address,
                link: path.link,
                before_bps,
                rate_bps,
            });
            if watched != path.told_rate
                && let Some(peer) = self.peers.get_mut(slot)
            {
                peer.paths[at].told_rate = watched;
            }
            self.events.extend(event);
        }
    }

    fn watch_mtus(&mut self, slot: usize) {
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        for path in &mut peer.paths {
            let settled = path.mtu.as_ref().filter(|mtu| mtu.is_settled());
            let Some((mtu, of_ends)) = settled.map(|mtu| (mtu.payload(), mtu.payload_of_ends()))
            else {
                continue;
            };
            let before = path.told_mtu.unwrap_or(of_ends);
            if mtu == before || self.events.len() >= EVENTS_WAITING_MAX {
                continue;
            }
            path.told_mtu = Some(mtu).filter(|&mtu| mtu < of_ends);
            self.events.push_back(Event::PathMtu {
                node_id: peer.node_id,
                address: peer.address,
                link: path.link,
                before,
                mtu,
                mtu_of_ends: of_ends,
            });
        }
    }

    fn watch_direct(&mut self, slot: usize, now: Instant) {
        let Some(peer) = self.peers.get(slot) else {
            return;
        };
        if self.events.len() >= EVENTS_WAITING_MAX || !self.config.direct_frames {
            return;
        }
        let because = self.engine_because(slot, peer);
        let mut watched = peer.told_direct;
        let change = watched.look(because.is_none(), false, now);
        let event = change.map(|change| Event::DirectChanged {
            node_id: peer.node_id,
            address: peer.address,
            because,
            lasted: change.lasted,
            skipped: change.skipped,
        });
        if watched != peer.told_direct
            && let Some(peer) = self.peers.get_mut(slot)
        {
            peer.told_direct = watched;
        }
        self.events.extend(event);
    }

    /// A path is no more, of a peer that stays.
    pub(super) fn tell_path_gone(&mut self, slot: usize, path: &Path, now: Instant) {
        if let Some(peer) = self.peers.get(slot).filter(|peer| peer.up)
            && let Some(change) = path.told.end(now)
        {
            self.events.push_back(Event::PathChanged {
                node_id: peer.node_id,
                address: peer.address,
                link: path.link,
                state: None,
                because: PathBecause::NoCarrier,
                before: change.before,
                lasted: change.lasted,
                skipped: change.skipped,
            });
        }
    }
}
