//! Paths that do not answer: when what went by them goes again by others, and when they are tried.

use super::Engine;
use super::paths::{has_span, has_span_in, link_of, standing};
use crate::link::Link;
use crate::peer::{Path, Peer};
use crate::time::Instant;
use crate::trunk::balance::Standing;
use crate::trunk::lane::LaneId;

pub(super) fn is_good(links: &[Link], path: &Path) -> bool {
    link_of(links, path).is_some_and(|link| standing(link, path) == Standing::Open)
}

/// What must not be waited for any longer.
#[derive(Clone, Copy, Debug)]
struct Overdue {
    /// The path that it went by.
    at: usize,
    lane: LaneId,
    /// From when on.
    since: Instant,
}

/// Frames wait only because the oldest train of a lane is not acknowledged. `None` also where nothing can be done about it.
fn holds_span_up(links: &[Link], peer: &Peer, lane: LaneId) -> Option<Overdue> {
    if has_span_in(links, peer, lane) {
        return None;
    }
    let oldest = |path: &Path| path.flight.oldest_outstanding(lane);
    let under_way = peer.paths.iter().enumerate();
    let under_way = under_way.filter_map(|(at, path)| Some((at, oldest(path)?)));
    let (at, train) = under_way.reduce(|a, b| if a.1.is_newer_than(b.1) { b } else { a })?;
    let replay = &peer.tx_of(lane).replay;
    if replay
        .first()
        .is_some_and(|waiting| train.is_newer_than(waiting.train))
    {
        return None; // it leaves as soon as there is room
    }
    let mut others = peer
        .paths
        .iter()
        .filter(|path| path.link != peer.paths[at].link);
    let flight = &peer.paths[at].flight;
    let may_go_again = flight.oldest_is_probe(lane) || others.any(|path| is_good(links, path));
    Some(Overdue {
        at,
        lane,
        since: flight.overdue_at(lane).filter(|_| may_go_again)?,
    })
}

/// Frames wait, and a link that has not shown its rate yet is late with the little that it was given: before it
/// answers it gets no more, and four of its round trips may be long. When it is to go again by others.
fn is_late_at_first(links: &[Link], peer: &Peer) -> Option<Overdue> {
    let paths = peer.paths.iter().enumerate();
    let good = paths.filter(|(_, path)| is_good(links, path));
    if good.clone().count() < 2 {
        return None;
    }
    let overdue = good.filter_map(|(at, path)| {
        let (lane, since) = path.flight.late_at_first_at()?;
        Some(Overdue { at, lane, since })
    });
    overdue.min_by_key(|overdue| overdue.since)
}

/// What is overdue first, while frames wait.
fn holds_up(links: &[Link], peer: &Peer) -> Option<Overdue> {
    if peer.queues.is_empty() {
        return None;
    }
    // By an only link nothing waits for the oldest train but where it may go again all the same. Others bring none of it: what can be
    // given up there is a probe, which was lost, and would be missed by nobody before all that is behind it.
    let is_alone = peer.paths.len() == 1;
    let waits = |lane: &LaneId| !is_alone || peer.may_go_again_alone(*lane);
    let lanes = peer.lanes_tx().filter(waits);
    let of_lanes = lanes.filter_map(|lane| holds_span_up(links, peer, lane));
    let all = of_lanes.chain(is_late_at_first(links, peer));
    all.min_by_key(|overdue| overdue.since)
}

impl Engine {
    /// Paths that have not acknowledged for too long. Where another one works, their trains go again by
    /// that; where none does, the peer may just be slow, or what it acknowledged was lost: everything
    /// waits for a while, and each path is tried.
    pub(super) fn look_for_silence(&mut self, now: Instant) {
        let mut from = 0;
        while let Some(slot) = self.peers.due.next(from, now) {
            from = slot + 1;
            let Some(peer) = self.peers.get(slot) else {
                continue;
            };
            let is_silent = |path: &Path| path.flight.is_silent(now);
            if !peer.paths.iter().any(is_silent) {
                continue;
            }
            let open = || {
                let paths = peer.paths.iter();
                paths.filter(|path| link_of(&self.links, path).is_some())
            };
            let open_paths = open().count();
            let answers = |path: &Path| path.silent.is_none() && !is_silent(path);
            // What the peer has to say may wait in a queue of its own: then it is late by all links, and one
            // that was put to use later shows nothing of the others.
            let works = |path: &Path| answers(path) && !path.flight.is_late(now);
            let (some_answer, some_work) = (open().any(answers), open().any(works));
            // Nobody can wait any longer for one that was never heard.
            let is_urgent = !has_span(&self.links, peer);
            for at in 0..peer.paths.len() {
                let Some(peer) = self.peers.get_mut(slot) else {
                    break;
                };
                let path = &mut peer.paths[at];
                if !path.flight.is_silent(now) {
                    continue;
                }
                path.doubt_mtu(now);
                let flight = &mut path.flight;
                let has_trains = flight.in_flight_bytes() > 0;
                let is_hopeless = flight.is_hopeless(now);
                let is_dead = match some_work {
                    true => is_urgent || flight.is_dead(now),
                    false => some_answer && is_hopeless,
                };
                if has_trains && is_dead {
                    self.silence_path(slot, at, now);
                } else if open_paths > 1 && !some_work && flight.has_second_copies_alone() {
                    // It cannot be tried with any of them, and new trains can tell as soon as these are not waited for.
                    self.give_up_path(slot, at, now);
                } else if has_trains && open_paths > 1 && !is_hopeless {
                    flight.wait_on(now);
                    self.try_path(slot, at, now);
                } else if has_trains && !flight.is_dead(now) {
                    flight.wait_on(now);
                } else {
                    self.give_up_path(slot, at, now);
                }
            }
        }
    }

    pub(super) fn overdue_timeout(&self, peer: &Peer) -> Option<Instant> {
        Some(holds_up(&self.links, peer)?.since)
    }

    /// Nothing new may leave before the oldest train is acknowledged, or nothing by this link. One that is late
    /// may only be slow today, but others stand idle, or it does: what it has goes again by them, and it is tried.
    pub(super) fn look_for_overdue(&mut self, now: Instant) {
        let mut from = 0;
        while let Some(slot) = self.peers.due.next(from, now) {
            from = slot + 1;
            while let Some(peer) = self.peers.get_mut(slot)
                && let Some(Overdue { at, lane, since }) = holds_up(&self.links, peer)
                && since <= now
            {
                let (copies, pool) = (&mut self.copies, &mut self.pool);
                let release = &mut |copy| copies.release(copy, pool);
                if !peer.paths[at].flight.give_up_oldest_probe(lane, release) {
                    self.replay_late_path(slot, at, now);
                }
            }
        }
    }
}
