//! Over which paths trains to a peer can go, and what happens when one cannot any more.

use super::{Engine, Event};
use crate::config::{Balance, LinkId};
use crate::link::{Link, Retiring};
use crate::peer::{Path, Peer};
use crate::stats::PathState;
use crate::time::{Duration, Instant};
use crate::trunk::balance::{self, Candidate, Standing};
use crate::wire::sequence::Sequence;

/// What peers had put on a link before they heard that it leaves takes no longer to arrive.
const RETIRE_MIN: Duration = Duration::from_millis(100);
const RETIRE_MAX: Duration = Duration::from_secs(2);
const RETIRE_LOOK: Duration = Duration::from_millis(10);

/// The paths to a peer over which trains can go now, by their place among its paths.
pub(super) fn candidates<'a>(
    links: &'a [Link],
    peer: &'a Peer,
    now: Instant,
) -> impl Iterator<Item = Candidate> + Clone + 'a {
    let is_alone = peer.paths.len() == 1;
    peer.paths.iter().enumerate().filter_map(move |(at, path)| {
        let link = link_of(links, path)?;
        let local_bytes = link.local_queue_bytes();
        let flight = &path.flight;
        let rate_bps = rate_bps(link, path, now);
        // Before its local queue was ever seen draining, a link takes much: here others wait for it.
        let is_short = rate_bps.is_none_or(|bps| local_bytes < link.short_queue_bytes(bps));
        let has_room = link.has_room()
            && flight.has_room(local_bytes)
            && (is_alone || (flight.is_proven() && is_short));
        Some(Candidate {
            at,
            link: path.link,
            standing: standing(link, path),
            has_room,
            rate_bps,
            ahead_bytes: local_bytes + flight.excess_bytes(local_bytes),
            delay: flight.round_trip_min().unwrap_or_default(),
        })
    })
}

/// The link of a path that can carry trains now.
pub(super) fn link_of<'a>(links: &'a [Link], path: &Path) -> Option<&'a Link> {
    let link = links.iter().find(|link| link.id == path.link)?;
    (link.carries_trains() && path.is_open()).then_some(link)
}

fn standing(link: &Link, path: &Path) -> Standing {
    if link.retiring.is_some() {
        Standing::Retiring
    } else if path.joining {
        Standing::Joining
    } else if path.silent.is_some() {
        Standing::Silent
    } else {
        Standing::Open
    }
}

fn rate_bps(link: &Link, path: &Path, now: Instant) -> Option<u64> {
    let acknowledged = path.flight.rate_bps().map(|(bps, _)| bps);
    acknowledged
        .or_else(|| link.drain_rate_bps(now))
        .or(link.state.rate_bps)
}

/// Bytes of the largest train that each open path to the peer carries: one that is sent again must fit
/// whichever is left.
pub(super) fn train_max(links: &[Link], peer: &Peer) -> Option<usize> {
    let open = peer.paths.iter().filter_map(|path| {
        let link = link_of(links, path)?;
        Some(path.train_max(link.frame_max()))
    });
    open.min()
}

/// Whether the receiver can hold what is ahead of the oldest train that is under way, and one more.
fn has_span(links: &[Link], peer: &Peer) -> bool {
    let waiting = peer.replay.first().map(|waiting| waiting.train);
    let under_way = peer
        .paths
        .iter()
        .map(|path| path.flight.oldest_outstanding());
    let older = |a: Sequence, b: Sequence| if a.is_newer_than(b) { b } else { a };
    let oldest = under_way.chain([waiting]).flatten().reduce(older);
    let span_max = balance::span_trains_max(train_max(links, peer).unwrap_or(0));
    oldest.is_none_or(|oldest| peer.next_train.distance_from(oldest) < span_max as i32)
}

/// Frames wait only because the oldest train is not acknowledged: the path that it went by, and when it is
/// overdue there. `None` also where nothing can be done about it.
fn holds_span_up(links: &[Link], peer: &Peer) -> Option<(usize, Instant)> {
    if peer.paths.len() == 1 || peer.queues.is_empty() || has_span(links, peer) {
        return None;
    }
    let oldest = |path: &Path| path.flight.oldest_outstanding();
    let under_way = peer.paths.iter().enumerate();
    let under_way = under_way.filter_map(|(at, path)| Some((at, oldest(path)?)));
    let (at, train) = under_way.reduce(|a, b| if a.1.is_newer_than(b.1) { b } else { a })?;
    if peer
        .replay
        .first()
        .is_some_and(|waiting| train.is_newer_than(waiting.train))
    {
        return None; // it leaves as soon as there is room
    }
    let is_good = |path: &Path| {
        link_of(links, path).is_some_and(|link| standing(link, path) == Standing::Open)
    };
    let mut others = peer
        .paths
        .iter()
        .filter(|path| path.link != peer.paths[at].link);
    let flight = &peer.paths[at].flight;
    let may_go_again = flight.oldest_is_probe() || others.any(is_good);
    Some((at, flight.overdue_at().filter(|_| may_go_again)?))
}

/// Frames wait, and a link that has not shown its rate yet is late with the little that it was given: before it
/// answers it gets no more, and four of its round trips may be long. When it is to go again by others.
fn is_late_at_first(links: &[Link], peer: &Peer) -> Option<(usize, Instant)> {
    if peer.paths.len() == 1 || peer.queues.is_empty() {
        return None;
    }
    let good = peer.paths.iter().enumerate().filter(|(_, path)| {
        link_of(links, path).is_some_and(|link| standing(link, path) == Standing::Open)
    });
    if good.clone().count() < 2 {
        return None;
    }
    let overdue = good.filter_map(|(at, path)| Some((at, path.flight.late_at_first_at()?)));
    overdue.min_by_key(|(_, overdue_at)| *overdue_at)
}

/// What must not be waited for any longer: the path that it went by, and from when on.
fn holds_up(links: &[Link], peer: &Peer) -> Option<(usize, Instant)> {
    let both = [holds_span_up(links, peer), is_late_at_first(links, peer)];
    let both = both.into_iter().flatten();
    both.min_by_key(|(_, overdue_at)| *overdue_at)
}

/// The path by which the next train leaves, if one has room. `len`: of a train that exists, and does not
/// fit everywhere.
pub(super) fn best_path(
    links: &[Link],
    peer: &Peer,
    balance: Balance,
    len: Option<usize>,
    now: Instant,
) -> Option<usize> {
    if let [path] = &peer.paths[..] {
        let link = link_of(links, path)?;
        let has_room = link.has_room() && path.flight.has_room(link.local_queue_bytes());
        return has_room.then_some(0);
    }
    let fits = |c: &Candidate| {
        let path = &peer.paths[c.at];
        let link = links.iter().find(|link| link.id == path.link);
        len.is_none_or(|len| link.is_some_and(|l| len <= path.train_max(l.frame_max())))
    };
    let bytes = len.or_else(|| train_max(links, peer))?;
    if len.is_none() && !has_span(links, peer) {
        return None;
    }
    let fitting = candidates(links, peer, now).filter(fits);
    let choose_alive = || {
        let shows_life =
            |c: &Candidate| c.standing == Standing::Open && peer.paths[c.at].flight.shows_life(now);
        let part = balance::taking_part(fitting.clone(), balance, bytes);
        balance::choose(part.filter(shows_life), balance, bytes, peer.last_link)
    };
    // What goes again was lost with one link: where others are dead too, and nobody knows it yet, everything
    // would wait for one after the other.
    let alive = len.and_then(|_| choose_alive());
    alive.or_else(|| balance::choose(fitting.clone(), balance, bytes, peer.last_link))
}

impl Engine {
    /// What a path is used for now.
    pub(super) fn path_state(&self, peer: &Peer, path: &Path, now: Instant) -> PathState {
        let Some(link) = link_of(&self.links, path) else {
            return PathState::Closed;
        };
        match standing(link, path) {
            Standing::Retiring => return PathState::Retiring,
            Standing::Joining => return PathState::Joining,
            Standing::Silent => return PathState::Silent,
            Standing::Open => {}
        }
        let bytes = train_max(&self.links, peer).unwrap_or(0);
        let all = candidates(&self.links, peer, now);
        let mut part = balance::taking_part(all, self.config.balance, bytes);
        if part.any(|candidate| candidate.link == path.link) {
            PathState::Open
        } else if self.config.balance == Balance::ActiveBackup {
            PathState::Backup
        } else {
            PathState::TooSlow
        }
    }

    /// One of our links carries nothing any more.
    pub(super) fn on_link_down(&mut self, link: LinkId) {
        for slot in self.peers.slots() {
            let of_link = |peer: &Peer| peer.paths.iter().position(|path| path.link == link);
            if let Some(at) = self.peers.get(slot).and_then(of_link) {
                self.replay_path(slot, at);
                if let Some(peer) = self.peers.get_mut(slot) {
                    peer.paths[at].unheard = peer.paths.len() > 1;
                }
            }
        }
    }

    /// After a hello: paths of which the other end is gone.
    pub(super) fn replay_broken(&mut self, slot: usize) {
        let paths = self.peers.get(slot).map_or(0, |peer| peer.paths.len());
        for at in 0..paths {
            let peer = self.peers.get_mut(slot).expect("it has paths");
            if std::mem::take(&mut peer.paths[at].broken) {
                self.replay_path(slot, at);
            }
        }
    }

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
                let flight = &mut peer.paths[at].flight;
                if !flight.is_silent(now) {
                    continue;
                }
                let has_trains = flight.in_flight_bytes() > 0;
                let is_hopeless = flight.is_hopeless(now);
                let is_dead = match some_work {
                    true => is_urgent || flight.is_dead(now),
                    false => some_answer && is_hopeless,
                };
                if has_trains && is_dead {
                    self.silence_path(slot, at, now);
                } else if has_trains && open_paths > 1 && !is_hopeless {
                    flight.wait_on(now);
                    self.try_path(slot, at, now);
                } else {
                    self.give_up_path(slot, at, now);
                }
            }
        }
    }

    pub(super) fn overdue_timeout(&self, peer: &Peer) -> Option<Instant> {
        let (_, overdue_at) = holds_up(&self.links, peer)?;
        Some(overdue_at)
    }

    /// Nothing new may leave before the oldest train is acknowledged, or nothing by this link. One that is late
    /// may only be slow today, but others stand idle, or it does: what it has goes again by them, and it is tried.
    pub(super) fn look_for_overdue(&mut self, now: Instant) {
        let mut from = 0;
        while let Some(slot) = self.peers.due.next(from, now) {
            from = slot + 1;
            while let Some(peer) = self.peers.get_mut(slot)
                && let Some((at, overdue_at)) = holds_up(&self.links, peer)
                && overdue_at <= now
            {
                let (copies, pool) = (&mut self.copies, &mut self.pool);
                let release = &mut |copy| copies.release(copy, pool);
                if !peer.paths[at].flight.give_up_oldest_probe(release) {
                    self.replay_late_path(slot, at, now);
                }
            }
        }
    }

    /// A path that has not been heard for long, of a peer that is heard by another.
    pub(super) fn expire_paths(&mut self, now: Instant) {
        let silence_max = self.config.limits.peer_silence_max;
        for slot in self.peers.slots() {
            let old = |path: &Path| !path.unheard && now.since(path.last_heard) > silence_max;
            while let Some(peer) = self.peers.get(slot)
                && peer.paths.len() > 1
                && let Some(at) = peer.paths.iter().position(old)
            {
                self.replay_path(slot, at);
                if let Some(peer) = self.peers.get_mut(slot) {
                    peer.paths[at].unheard = true;
                }
            }
        }
    }

    pub(super) fn remove_path(&mut self, slot: usize, at: usize, now: Instant) {
        if let Some(peer) = self.peers.get_mut(slot)
            && peer.paths.len() > 1
            && peer.paths[at].is_open()
        {
            // A cable that nobody has cut brings what was behind that still, once the link is back.
            peer.resequencer.on_link_removed(now);
        }
        self.replay_path(slot, at);
        if let Some(peer) = self.peers.get_mut(slot) {
            peer.paths.remove(at);
        }
    }

    /// A link is to leave: nothing new is put on it, and the peers are told that it is gone.
    /// [`Event::LinkRetired`] says when it may be removed.
    pub fn retire_link(&mut self, link: LinkId, now: Instant) {
        let Some(link) = self.link_mut(link) else {
            self.events.push_back(Event::LinkRetired { link });
            return;
        };
        link.retiring.get_or_insert(Retiring {
            since: now,
            next_look: now + RETIRE_MIN,
            told: false,
        });
        let link = link.id;
        self.peers.touch_all();
        self.segments.retire(link);
        self.update_homes(now);
        self.greeter.hurry(now);
        self.publish_paths();
    }

    pub(super) fn retire_timeout(&self) -> Option<Instant> {
        let retiring = self.links.iter().filter_map(|link| link.retiring);
        let open = retiring.filter(|retiring| !retiring.told);
        open.map(|retiring| retiring.next_look).min()
    }

    pub(super) fn look_who_is_retired(&mut self, now: Instant) {
        for link in &mut self.links {
            let Some(mut retiring) = link.retiring.filter(|r| !r.told && r.next_look <= now) else {
                continue;
            };
            let paths = self.peers.iter().filter_map(|(_, peer)| peer.path(link.id));
            let under_way: usize = paths.map(|path| path.flight.outstanding_trains()).sum();
            let has_left = under_way == 0 && link.local_queue_bytes() == 0;
            let is_late = now.since(retiring.since) >= RETIRE_MAX;
            retiring.next_look = now + RETIRE_LOOK;
            retiring.told = has_left || is_late || !link.state.carrier;
            link.retiring = Some(retiring);
            if retiring.told {
                self.events.push_back(Event::LinkRetired { link: link.id });
            }
        }
    }
}
