//! Over which paths trains to a peer can go, and what becomes of a path that is gone.

use arrayvec::ArrayVec;

use super::Engine;
use crate::config::{Balance, LinkId};
use crate::link::Link;
use crate::peer::{Path, Peer};
use crate::peer_table::PeerTable;
use crate::queue::band::{BANDS_MAX, BandId};
use crate::queue::drr::FlowQueues;
use crate::queue::shares::Weight;
use crate::stats::PathState;
use crate::time::{Duration, Instant};
use crate::trunk::balance::admission::Admission;
use crate::trunk::balance::{self, Candidate, Part, Policy, Rate, Standing};
use crate::trunk::lane::LaneId;
use crate::trunk::via::{LinkSet, Vias};
use crate::wire::hello::LINKS_MAX;
use crate::wire::sequence::Sequence;

/// Between two looks at which links are worth being waited for: estimates change with acknowledgements, and not with
/// each train.
const ADMISSION_LOOK: Duration = Duration::from_millis(1);

/// The paths to a peer over which trains can go now, by their place among its paths.
pub(super) fn candidates<'a>(
    links: &'a [Link],
    peer: &'a Peer,
    now: Instant,
) -> impl Iterator<Item = Candidate> + 'a {
    let is_alone = peer.paths.len() == 1;
    peer.paths.iter().enumerate().filter_map(move |(at, path)| {
        let link = link_of(links, path)?;
        let local_bytes = link.local_queue_bytes();
        let flight = &path.flight;
        let rate_bps = rate_bps(link, path, now);
        // Before its local queue was ever seen draining, a link takes much: here others wait for it.
        let is_short = rate_bps.is_none_or(|bps| local_bytes < link.short_queue_bytes(bps));
        let has_room = has_room(links, link)
            && flight.has_room(local_bytes)
            && (is_alone || (flight.is_proven() && is_short));
        Some(Candidate {
            at,
            link: path.link,
            settings: link.settings,
            served: path.served,
            admission: path.admission,
            standing: standing(link, path),
            in_doubt: flight.in_doubt_for(now),
            has_room,
            rate: match rate_bps {
                Some(bps) => Rate::Measured(bps),
                None => Rate::Expected(link.at_most(flight.expected_bps())),
            },
            ahead_bytes: local_bytes + flight.excess_bytes(local_bytes),
            delay: flight.round_trip_min().unwrap_or_default(),
        })
    })
}

/// Whether a train more may stand on a link of this line, which may have others. It is the owner's bound too, below which it
/// calls again ([`Engine::link_queue_limit`]), or none that is less.
pub(super) fn has_room(links: &[Link], link: &Link) -> bool {
    match links.len() {
        1 => link.has_room(),
        _ => link.has_room_among_others(),
    }
}

/// The link of a path that can carry trains now.
pub(super) fn link_of<'a>(links: &'a [Link], path: &Path) -> Option<&'a Link> {
    let link = links.iter().find(|link| link.id == path.link)?;
    (link.carries_trains() && path.is_open()).then_some(link)
}

pub(super) fn standing(link: &Link, path: &Path) -> Standing {
    if path.joining {
        Standing::Joining
    } else if link.retiring.is_some() {
        Standing::Retiring
    } else if path.is_silent() {
        Standing::Silent
    } else if path.is_held() {
        Standing::Held
    } else {
        Standing::Open
    }
}

pub(super) fn rate_bps(link: &Link, path: &Path, now: Instant) -> Option<u64> {
    let acknowledged = path.flight.rate_bps().map(|(bps, _)| bps);
    let rate_bps = acknowledged
        .or_else(|| link.drain_rate_bps(now))
        .or(link.state.rate_bps);
    rate_bps.map(|bps| link.at_most(bps))
}

/// Bytes of the largest train that passes this path; 0: none does.
pub(super) fn pass_bytes_max(links: &[Link], path: &Path) -> usize {
    link_of(links, path).map_or(0, |link| path.pass_max(link.frame_max()))
}

/// Bytes of the largest train that passes each of the open paths to the peer.
pub(super) fn pass_sizes(links: &[Link], peer: &Peer) -> impl Iterator<Item = usize> {
    let sizes = peer.paths.iter().map(|path| pass_bytes_max(links, path));
    sizes.filter(|&bytes| bytes > 0)
}

/// Bytes of the largest train that is made for any of them, and passes all: one that is sent again must fit whichever is left. How long
/// those are that are made for each is its own business.
pub(super) fn train_max(links: &[Link], peer: &Peer) -> Option<usize> {
    let passes = pass_sizes(links, peer).min()?;
    let made = |path: &Path| Some(path.train_max(link_of(links, path)?.frame_max()));
    let longest = peer.paths.iter().filter_map(made).max();
    longest.map(|longest| longest.min(passes))
}

/// Whether something that waits for the peer need not wait for more.
pub(super) fn is_ripe(links: &[Link], peer: &Peer, now: Instant) -> bool {
    let holds = peer.queues.ripe_at().is_some();
    !holds
        || peer
            .queues
            .is_ripe(train_max(links, peer).unwrap_or(0), now)
}

/// Whether the receiver can hold what is ahead of the oldest train that is under way in each lane, and one more.
pub(super) fn has_span(links: &[Link], peer: &Peer) -> bool {
    let mut lanes = peer.lanes_tx();
    lanes.all(|lane| has_span_in(links, peer, lane))
}

/// … in this one.
pub(super) fn has_span_in(links: &[Link], peer: &Peer, lane: LaneId) -> bool {
    has_span_of(train_max(links, peer).unwrap_or(0), peer, lane)
}

/// … in this one, where there is no other link: what is lost in it may go again only where its class asks for that.
fn has_span_alone(links: &[Link], peer: &Peer, lane: LaneId) -> bool {
    !peer.may_go_again_alone(lane) || has_span_in(links, peer, peer.lane_towards(lane))
}

/// … of trains of so many bytes.
fn has_span_of(bytes: usize, peer: &Peer, lane: LaneId) -> bool {
    let tx = peer.tx_of(lane);
    let waiting = tx.replay.first().map(|waiting| waiting.train);
    let under_way = peer
        .paths
        .iter()
        .map(|path| path.flight.oldest_outstanding(lane));
    let all = under_way.chain([waiting]).flatten();
    let oldest = all.reduce(Sequence::older_of);
    let span_max = match peer.is_lossless(lane) {
        // All of those together have no more than half of what their receiver can hold.
        true => balance::span_trains_max(bytes) / 2 / peer.lossless_lanes().max(1),
        false => balance::span_trains_max(bytes),
    };
    oldest.is_none_or(|oldest| tx.next_train.distance_from(oldest) < span_max as i32)
}

/// How the next one is chosen.
#[derive(Clone, Copy)]
pub(super) struct Rules<'a> {
    pub policy: Policy,
    pub vias: &'a Vias,
    /// Whether there is room for a copy of one more train to this peer.
    pub keeps: &'a dyn Fn(&Peer) -> bool,
}

/// What may not be lost waits until a copy of it has room.
fn may_be_kept(peer: &Peer, lane: LaneId, keeps: &dyn Fn(&Peer) -> bool) -> bool {
    !peer.is_lossless(peer.lane_towards(lane)) || keeps(peer)
}

/// The path by which the next new train leaves, if one has room: the queues are told of whose frames. `urgent`: of frames whose
/// class says *now*.
pub(super) fn best_path(
    links: &[Link],
    peers: &mut PeerTable,
    slot: usize,
    Rules {
        policy,
        vias,
        keeps,
    }: Rules<'_>,
    urgent: bool,
    now: Instant,
) -> Option<usize> {
    let peer = peers.get(slot)?;
    if let [path] = &peer.paths[..] {
        let has_room = has_room_alone(links, path, now);
        peers.get_mut(slot)?.queues.unite();
        let peer = peers.get(slot)?;
        let may_leave = |band: &BandId| {
            has_span_alone(links, peer, band.lane) && may_be_kept(peer, band.lane, keeps)
        };
        let band = bands(&peer.queues, urgent).find(may_leave);
        if band.is_none() && bands(&peer.queues, urgent).next().is_some() {
            return None;
        }
        if let Some(band) = band {
            peers.get_mut(slot)?.queues.serve_band(band);
        }
        return has_room.then_some(0);
    }
    let bytes = train_max(links, peer)?;
    let last = peer.last_link;
    if policy.admits() && now.since(peer.admitted_at) >= ADMISSION_LOOK {
        admit_paths(links, peers, slot, policy, bytes, now);
    }
    let peer = peers.get(slot)?;
    let keeps_flows = policy.balance.keeps_flows();
    let in_turn: ArrayVec<BandId, BANDS_MAX> = bands(&peer.queues, urgent).collect();
    for band in in_turn {
        let peer = peers.get(slot)?;
        let has_span = has_span_of(bytes, peer, peer.lane_towards(band.lane));
        if !has_span || !may_be_kept(peer, band.lane, keeps) {
            continue;
        }
        let via = vias.links_of(band.lane);
        let all = candidates(links, peer, now);
        let part = match via.is_empty() {
            true => balance::taking_part(all, policy, bytes),
            false => balance::taking_part(of_links(all, &via).into_iter(), policy, bytes),
        };
        if keeps_flows {
            divide_flows(peers, (slot, band), &part);
        }
        let queues = &mut peers.get_mut(slot)?.queues;
        let has_frames = |link| match urgent {
            _ if !keeps_flows => true,
            true => queues.has_urgent_for(band, link),
            false => queues.frames_in(band, link) > 0,
        };
        if let Some(at) = balance::choose(&part, policy.balance, last, has_frames) {
            queues.serve_band(band);
            return Some(at);
        }
    }
    None
}

type Candidates = ArrayVec<Candidate, LINKS_MAX>;

/// Of these links, if one of them works, whatever is thought of it beside others; else of any.
fn of_links(all: impl Iterator<Item = Candidate>, links: &LinkSet) -> Candidates {
    let all: Candidates = all.take(LINKS_MAX).collect();
    let works = |c: &&Candidate| links.has(c.link) && c.standing <= Standing::Held;
    let mut own: Candidates = all.iter().filter(works).copied().collect();
    if own.is_empty() {
        return all;
    }
    for candidate in &mut own {
        candidate.admission = Admission::Admitted;
    }
    own
}

/// A moment of doubt changes nothing of how a line stands.
fn whatever_doubt<'a>(
    links: &'a [Link],
    peer: &'a Peer,
    now: Instant,
) -> impl Iterator<Item = Candidate> + 'a {
    candidates(links, peer, now).map(|candidate| Candidate {
        in_doubt: None,
        ..candidate
    })
}

/// By which links frames go of which no class says anything, as things are.
pub(super) fn links_of_all(links: &[Link], peer: &Peer, policy: Policy, now: Instant) -> LinkSet {
    let bytes = train_max(links, peer).unwrap_or(0);
    let part = balance::taking_part(whatever_doubt(links, peer, now), policy, bytes);
    part.iter().map(|(candidate, _)| candidate.link).collect()
}

/// Whether frames of the lane go by this link as things are.
pub(super) fn lets(links: &[Link], peer: &Peer, via: &LinkSet, link: LinkId) -> bool {
    let works = |path: &Path| {
        let link = link_of(links, path);
        via.has(path.link) && link.is_some_and(|link| standing(link, path) <= Standing::Held)
    };
    via.is_empty() || via.has(link) || !peer.paths.iter().any(works)
}

/// Frames for the peer that go by this link as things are.
pub(super) fn frames_for(links: &[Link], peer: &Peer, vias: &Vias, link: LinkId) -> usize {
    let is_let = |lane| lets(links, peer, &vias.links_of(lane), link);
    peer.queues.frames_for(link, is_let)
}

/// Those that have frames, in their turn.
fn bands(queues: &FlowQueues, urgent: bool) -> impl Iterator<Item = BandId> + '_ {
    let mut before = None;
    let in_turn = std::iter::from_fn(move || {
        before = queues.next_band(before);
        before.map(|turn| turn.band)
    });
    in_turn.filter(move |&band| !urgent || queues.has_urgent_in(band))
}

/// The path by which a train goes once more, that goes by the path `first`: the one of its tier by which it arrives next, also if
/// it carries nothing else, for nobody waits for the second. Of those of `links`, if these are several. `None`: no other has room.
pub(super) fn second_path(
    links: &[Link],
    peer: &Peer,
    (first, of): (usize, &LinkSet),
    bytes: usize,
    now: Instant,
) -> Option<usize> {
    let all = candidates(links, peer, now);
    let all = match of.len() {
        0 | 1 => all.take(LINKS_MAX).collect(),
        _ => of_links(all, of),
    };
    let first = all.iter().find(|c| c.at == first)?;
    let turn = |c: &Candidate| c.link.0.wrapping_sub(first.link.0);
    let may = all.iter().filter(|c| {
        let works = c.standing <= Standing::Held && c.settings.tier == first.settings.tier;
        let fits = || c.has_room && bytes <= pass_bytes_max(links, &peer.paths[c.at]);
        c.at != first.at && works && fits()
    });
    may.min_by_key(|c| (c.finish(bytes), turn(c))).map(|c| c.at)
}

/// Links that would only delay the others are left out, and those that would not are not any more.
fn admit_paths(
    links: &[Link],
    peers: &mut PeerTable,
    slot: usize,
    policy: Policy,
    bytes: usize,
    now: Instant,
) {
    let Some(peer) = peers.get(slot) else {
        return;
    };
    let measured_at = |c: &Candidate| peer.paths[c.at].flight.rate_bps().map(|(_, at)| at);
    let all = candidates(links, peer, now);
    let changed = balance::admissions(all, policy, bytes, measured_at, now);
    if let Some(peer) = peers.get_mut(slot) {
        peer.admitted_at = now;
        for (at, admission) in changed {
            peer.paths[at].admission = admission;
        }
    }
}

/// Each flow keeps to one of the links that take part.
fn divide_flows(peers: &mut PeerTable, (slot, band): (usize, BandId), part: &Part) {
    let weights = part.iter().map(|(c, _)| (c.link, c.settings.weight));
    let links: ArrayVec<(LinkId, Weight), LINKS_MAX> = weights.collect();
    let is_divided = |peer: &Peer| peer.queues.divided_among(band) == &links[..];
    if !links.is_empty()
        && !peers.get(slot).is_some_and(is_divided)
        && let Some(peer) = peers.get_mut(slot)
    {
        peer.queues.divide(band, &links);
    }
}

/// A train of so many bytes leaves by the path `at`: it was next of its tier.
pub(super) fn charge_weighted(links: &[Link], peer: &mut Peer, at: usize, bytes: usize) {
    let settings = |path: &Path| {
        let link = links.iter().find(|link| link.id == path.link);
        link.map_or_else(Default::default, |link| link.settings)
    };
    let own = settings(&peer.paths[at]);
    let least = peer.paths[at].served;
    let beside = peer.paths.iter_mut();
    let of_tier = beside.filter(|path| settings(path).tier == own.tier);
    of_tier.for_each(|path| path.served.settle(least));
    peer.paths[at].served.add(bytes, own.weight);
}

/// The path by which a train of `bytes` goes again, that is to go by these links. It was lost with one link: where others are dead too, and
/// nobody knows it yet, everything would wait for one after the other, so those that show life come first.
pub(super) fn best_path_again(
    links: &[Link],
    peer: &Peer,
    (policy, of): (Policy, &LinkSet),
    bytes: usize,
    now: Instant,
) -> Option<usize> {
    if let [path] = &peer.paths[..] {
        return has_room_alone(links, path, now).then_some(0);
    }
    let fits = |c: &Candidate| bytes <= pass_bytes_max(links, &peer.paths[c.at]);
    let shows_life =
        |c: &Candidate| c.standing == Standing::Open && peer.paths[c.at].flight.shows_life(now);
    // A copy behind that of which it is one brings nothing, however late the others are.
    let in_no_doubt = |candidate: Candidate| Candidate {
        in_doubt: candidate.in_doubt.map(|_| Duration::MAX),
        ..candidate
    };
    let all = candidates(links, peer, now).filter(fits).map(in_no_doubt);
    let fitting = of_links(all, of);
    let part = balance::taking_part(fitting.into_iter(), policy, bytes);
    let alive = part.iter().map(|(c, _)| *c).filter(shows_life);
    let alive = balance::taking_part(alive, policy, bytes);
    let choose = |part| balance::choose(part, policy.balance, peer.last_link, |_| true);
    choose(&alive).or_else(|| choose(&part))
}

/// Of the only path that there is.
fn has_room_alone(links: &[Link], path: &Path, now: Instant) -> bool {
    link_of(links, path)
        .is_some_and(|link| has_room(links, link) && has_window_alone(link, path, now))
}

fn has_window_alone(link: &Link, path: &Path, now: Instant) -> bool {
    let local_bps = link.drain_rate_bps(now);
    path.flight
        .has_room_alone(link.local_queue_bytes(), local_bps)
}

/// As much is out as may be until a round trip has shown more of the link.
pub(super) fn waits_for_window(links: &[Link], path: &Path, is_alone: bool, now: Instant) -> bool {
    let flight = &path.flight;
    link_of(links, path).is_some_and(|link| {
        let has_window = match is_alone {
            true => has_window_alone(link, path, now),
            false => flight.is_proven() && flight.has_room(link.local_queue_bytes()),
        };
        !has_window && flight.grows()
    })
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
            Standing::Held => return PathState::Held,
            Standing::Open => {}
        }
        let bytes = train_max(&self.links, peer).unwrap_or(0);
        let policy = Policy::of(&self.config);
        let part = balance::taking_part(whatever_doubt(&self.links, peer, now), policy, bytes);
        let takes_part = part.iter().any(|(c, _)| c.link == path.link);
        let is_beyond = || {
            !policy.spills
                && self
                    .tier_of(peer)
                    .is_some_and(|tier| tier < link.settings.tier)
        };
        if takes_part {
            PathState::Open
        } else if policy.balance == Balance::ActiveBackup || is_beyond() {
            PathState::Backup
        } else {
            PathState::TooSlow
        }
    }

    /// One of our links carries nothing any more.
    pub(super) fn on_link_down(&mut self, link: LinkId, now: Instant) {
        for slot in self.peers.slots() {
            let of_link = |peer: &Peer| peer.paths.iter().position(|path| path.link == link);
            if let Some(at) = self.peers.get(slot).and_then(of_link) {
                self.replay_path(slot, at);
                if let Some(peer) = self.peers.get_mut(slot) {
                    peer.paths[at].unheard = peer.paths.len() > 1;
                    peer.paths[at].damping.on_failure(now);
                }
            }
        }
    }

    /// After a hello: paths of which the other end is gone.
    pub(super) fn replay_broken(&mut self, slot: usize, now: Instant) {
        let paths = self.peers.get(slot).map_or(0, |peer| peer.paths.len());
        for at in 0..paths {
            let peer = self.peers.get_mut(slot).expect("it has paths");
            if std::mem::take(&mut peer.paths[at].broken) {
                peer.paths[at].damping.on_failure(now);
                self.replay_path(slot, at);
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
            for lane in &mut peer.rx {
                lane.resequencer.on_link_removed(now);
            }
        }
        self.replay_path(slot, at);
        if let Some(peer) = self.peers.get_mut(slot) {
            let mut path = peer.paths.remove(at);
            // Of an only one nothing could go again by others.
            for unacknowledged in path.flight.take_unacknowledged() {
                if let Some(copy) = unacknowledged.copy {
                    self.copies.release(copy, &mut self.pool);
                }
            }
            self.counters.direct.add(&path);
            peer.follow_fences();
            self.tell_path_gone(slot, &path, now);
            self.release_trains(slot, now);
        }
    }
}
