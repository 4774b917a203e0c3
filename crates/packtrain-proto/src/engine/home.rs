//! Home links: by which of our links plain frames leave and are taken, and what becomes of those that
//! wait when another link becomes one.

use std::collections::HashMap;

use arrayvec::ArrayVec;

use super::from_host::largest_on_wire;
use super::{Engine, Event};
use crate::config::{Balance, LinkId};
use crate::duplicates::New;
use crate::link::Link;
use crate::offload::Offload;
use crate::peer::{Path, Peer};
use crate::queue::frame::QueuedFrame;
use crate::queue::shares::{Weight, owner_of};
use crate::station_table::Place;
use crate::stats::DropReason;
use crate::time::Instant;
use crate::turns::Destination;
use crate::wire::ethernet::MacAddr;
use crate::wire::hello::{Hello, LINKS_MAX};

/// Where a frame of the host goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextHop {
    /// To the peer in this slot of the peer table, which hears us.
    Peer(usize),
    /// Plainly, on the segment of which this is the home link.
    Plain(LinkId),
    /// Plainly, on each segment: it is for everybody, or nobody knows where its addressee is.
    Everywhere,
    /// It was behind a link that leads nowhere now.
    Nowhere,
}

/// What frames wait for that have been handed out.
struct Places {
    /// Each got a copy of its own of what went everywhere.
    homes: Vec<LinkId>,
    /// By which they leave.
    ways: Vec<LinkId>,
    /// Links that carry what is for a home beside it.
    beside: Vec<(LinkId, LinkId)>,
}

impl Places {
    /// For which home what waits for a link is meant.
    fn home_of(&self, link: LinkId) -> LinkId {
        let beside = self.beside.iter().find(|(of, _)| *of == link);
        beside.map_or(link, |(_, home)| *home)
    }
}

impl Engine {
    pub(super) fn next_hop(&self, destination: MacAddr) -> NextHop {
        if destination.is_group() {
            return NextHop::Everywhere;
        }
        if let Some(slot) = self.peers.slot_of_address(destination) {
            return NextHop::Peer(slot);
        }
        let place = self.stations.find(destination);
        let behind = match place {
            Some(Place::Peer(node_id)) => self.peers.slot_of_node(node_id),
            _ => None,
        };
        if let Some(slot) = behind.filter(|&slot| self.peers.get(slot).is_some_and(|p| p.up)) {
            return NextHop::Peer(slot);
        }
        // One that does not hear us yet is heard already: it is not looked for on every segment.
        let deaf = self.peers.holder_of_address(destination).or(behind);
        let home = match (deaf.and_then(|slot| self.home_towards(slot)), place) {
            (Some(home), _) => Some(home),
            (None, Some(Place::Plain(link))) => self.segments.head_of(link),
            // A node that turns up elsewhere says so itself.
            (None, Some(Place::Former(link))) => match self.segments.head_of(link) {
                Some(home) => return NextHop::Plain(home),
                None => return NextHop::Nowhere,
            },
            (None, _) => None,
        };
        home.map_or(NextHop::Everywhere, NextHop::Plain)
    }

    /// The homes of the segments on which this peer is heard, and by which it is reached.
    fn homes_towards<'a>(&'a self, peer: &'a Peer) -> impl Iterator<Item = LinkId> + 'a {
        let heard = self.paths_heard(peer).filter(|path| {
            let is_dead = path.is_silent() || path.broken || path.unheard;
            path.remote_carrier && !is_dead
        });
        let up = heard.filter(|path| self.link(path.link).is_some_and(|l| l.state.carrier));
        up.filter_map(|path| self.segments.head_of(path.link))
    }

    /// A path counts as silent beside a fresher one, and not by the clock: when we were asleep, nobody
    /// was heard.
    fn paths_heard<'a>(&'a self, peer: &'a Peer) -> impl Iterator<Item = &'a Path> + 'a {
        let newest = peer.paths.iter().map(|path| path.last_heard).max();
        let silence_max = self.config.limits.peer_silence_max;
        let is_silent =
            move |path: &Path| newest.is_some_and(|at| at.since(path.last_heard) >= silence_max);
        peer.paths.iter().filter(move |path| !is_silent(path))
    }

    pub(super) fn home_towards(&self, slot: usize) -> Option<LinkId> {
        let peer = self.peers.get(slot)?;
        let stays = |home: &LinkId| self.homes_towards(peer).any(|of| of == *home);
        let chosen = peer.plain_home.filter(stays);
        chosen.or_else(|| self.first_home_towards(peer))
    }

    /// Of the lowest tier, the first.
    fn first_home_towards(&self, peer: &Peer) -> Option<LinkId> {
        let tier = |link: LinkId| self.link(link).map(|link| link.settings.tier);
        self.homes_towards(peer)
            .min_by_key(|&home| (tier(home), home))
    }

    /// Into the queue of this home link.
    pub(super) fn enqueue_plain(&mut self, home: LinkId, frame: QueuedFrame) {
        let frame_max = self.plain_frame_max(home);
        if largest_on_wire(&frame) > frame_max {
            let now = frame.enqueued;
            return self.refuse_for_plain(frame, frame_max, now);
        }
        match self.aggregating_station(&frame) {
            None => {
                let way = self.way_to(home, &frame);
                self.enqueue(Destination::Plain(way), frame);
            }
            Some(slot) => {
                self.dfap_stations.get_mut(slot).expect("found").home = home;
                self.enqueue(Destination::Station(slot), frame);
            }
        }
    }

    /// By which link it leaves for the segment of this home: by that, but where a switch takes several for one. There it is as
    /// `balance` says of trains, where a flow keeps to a link by it, or frames take all in turns; else by the flow.
    fn way_to(&mut self, home: LinkId, frame: &QueuedFrame) -> LinkId {
        let balance = self.config.balance;
        if !self.segments.is_in_lag(home) || balance == Balance::ActiveBackup {
            return home;
        }
        let weight = |link| self.link(link).map_or(1, |known| known.settings.weight);
        let ways = self.segments.ways_to(home).map(|link| (link, weight(link)));
        let ways: ArrayVec<(LinkId, Weight), LINKS_MAX> = ways.take(LINKS_MAX).collect();
        let way = match balance {
            Balance::RoundRobin => {
                self.plain_turns = self.plain_turns.wrapping_add(1);
                ways.get(self.plain_turns % ways.len().max(1)).copied()
            }
            _ if balance.keeps_flows() => owner_of(frame.share, ways.into_iter()),
            _ => owner_of((frame.flow_hash >> 24) as u8, ways.into_iter()),
        };
        way.map_or(home, |(link, _)| link)
    }

    /// Drops a frame that may be one of several copies.
    pub(super) fn drop_copy(&mut self, frame: QueuedFrame, reason: DropReason) {
        let reason = self.spread.on_dropped(&frame, reason);
        self.drop_frame(frame.buffer, reason);
    }

    /// A copy that is not wanted, because another one is.
    fn discard_copy(&mut self, frame: QueuedFrame) {
        self.spread.on_dropped(&frame, DropReason::SegmentCopy);
        self.pool.give_back(frame.buffer);
    }

    /// Nobody knows where its addressee is. While a link settles, neighbours are being met: one of
    /// them may be it.
    pub(super) fn enqueue_unknown(&mut self, frame: QueuedFrame) {
        let mut homes = self.segments.heads().iter();
        match homes.find(|&&home| !self.segments.is_home(home)) {
            Some(&settling) => self.enqueue(Destination::Plain(settling), frame),
            None if self.fits_everywhere(&frame) || !self.peers.iter().any(|(_, p)| p.up) => {
                self.enqueue_everywhere(frame)
            }
            // A peer takes it on one of the segments, and that may be the one without a copy.
            None => {
                let heads = self.segments.heads().iter();
                let frame_max = heads.map(|&home| self.plain_frame_max(home)).min();
                let now = frame.enqueued;
                self.refuse_for_plain(frame, frame_max.unwrap_or(0), now)
            }
        }
    }

    /// Whether nobody knows where this station is, and what is for it waits at a link that is settling, and not at that by which it
    /// will go when it is known.
    pub(super) fn waits_for_settling(&self, station: MacAddr) -> bool {
        let is_settling = |&head: &LinkId| !self.segments.is_home(head);
        self.stations.find(station).is_none() && self.segments.heads().iter().any(is_settling)
    }

    /// One to each segment.
    pub(super) fn enqueue_everywhere(&mut self, mut frame: QueuedFrame) {
        let homes = self.segments.heads().len();
        if homes == 0 {
            return self.drop_frame(frame.buffer, DropReason::NoLink);
        }
        if homes > 1 {
            frame.copy = Some(self.spread.begin(homes as u16));
        }
        for at in 0..homes - 1 {
            let home = self.segments.heads()[at];
            let buffer = self.pool.copy_of(&frame.buffer);
            let random = frame.random.clone();
            let copy = QueuedFrame {
                buffer,
                random,
                ..frame
            };
            self.enqueue_plain(home, copy);
        }
        self.enqueue_plain(self.segments.heads()[homes - 1], frame);
    }

    pub(super) fn fits_everywhere(&self, frame: &QueuedFrame) -> bool {
        let mut homes = self.segments.heads().iter();
        homes.all(|&home| largest_on_wire(frame) <= self.plain_frame_max(home))
    }

    /// Of a frame that may leave for the segment of this home by any of the links that lead there.
    fn plain_frame_max(&self, home: LinkId) -> usize {
        let frame_max = |way| self.link(way).map_or(0, |link| link.frame_max());
        let longest = match self.config.balance {
            Balance::ActiveBackup => Some(frame_max(home)),
            _ => self.segments.ways_to(home).map(frame_max).min(),
        };
        longest.unwrap_or(0)
    }

    /// After all that may make another link home.
    pub(super) fn update_homes(&mut self, now: Instant) {
        let before = self.places();
        let mut settling = self.segments.heads().to_vec();
        settling.retain(|&link| !self.segments.is_home(link));
        let events = &mut self.events;
        self.segments.update(now, |link| {
            let moved = Event::HomeMoved { link };
            if !events.contains(&moved) {
                events.push_back(moved);
            }
        });
        self.wait_for_former_ways(&before, now);
        // Without any carrier, what waits goes on waiting.
        if self.segments.heads().is_empty() {
            return;
        }
        let waits_for = |link| {
            let mut queues = self.plain.iter();
            queues.any(|(of, frames)| of == link && !frames.is_empty())
                || self.stations_wait_for(link)
        };
        let mut links = self.links.iter().map(|link| link.id);
        let is_head = |link: &LinkId| self.segments.heads().contains(link);
        // Those of a flow may have another way from now on.
        let have_other_ways = self.places().ways != before.ways;
        let stranded = links.any(|link| {
            let has_lost = !self.segments.is_way(link)
                || before.homes.contains(&link) && !is_head(&link)
                || have_other_ways
                    && (self.segments.is_in_lag(link) || before.home_of(link) != link);
            has_lost && waits_for(link) || self.stations_wait_for(link) && !is_head(&link)
        });
        let has_settled = |link: &LinkId| self.segments.is_home(*link) && waits_for(*link);
        if stranded || settling.iter().any(has_settled) {
            self.redispatch_since(&before, now);
        }
    }

    /// Frames of a flow that went by one link go by another from now on: what of them stands in the local queue of the first leaves before.
    fn wait_for_former_ways(&mut self, before: &Places, now: Instant) {
        for &former in &before.ways {
            let link = self.link(former);
            let Some(until_left) = link.and_then(Link::plain_stands_until) else {
                continue;
            };
            let Some(home) = self.segments.head_of(former) else {
                continue;
            };
            let stays = self.segments.ways_to(home).any(|way| way == former);
            let takes_over = |way: &LinkId| *way != former && !(stays && before.ways.contains(way));
            let ways = self.segments.ways_to(home).filter(takes_over);
            for way in ways.collect::<ArrayVec<LinkId, LINKS_MAX>>() {
                self.former_homes.begin(way, former, until_left, now);
            }
        }
    }

    /// Who is where has changed: what waits is looked at again, in order, so that no later frame
    /// of a flow overtakes an earlier one in another queue.
    pub(super) fn redispatch_plain(&mut self, now: Instant) {
        let places = self.places();
        self.redispatch_since(&places, now);
    }

    fn places(&self) -> Places {
        let links = self.links.iter().map(|link| link.id);
        let beside = links.filter_map(|link| {
            // Also of one that has just ceased to be a way there.
            let head = self.segments.head_of(link)?;
            (head != link).then_some((link, head))
        });
        let heads = self.segments.heads();
        let ways = heads.iter().flat_map(|&home| self.segments.ways_to(home));
        Places {
            homes: heads.to_vec(),
            ways: ways.collect(),
            beside: beside.collect(),
        }
    }

    fn redispatch_since(&mut self, before: &Places, now: Instant) {
        for (link, _) in self.plain.iter() {
            self.turns.leave(Destination::Plain(link));
        }
        let mut waiting = self.plain.drain();
        waiting.extend(self.drain_stations());
        // Those of a flow may stand in several queues: who came first goes on first.
        waiting.sort_by_key(|(_, frame)| frame.enqueued);
        let mut copies = HashMap::new();
        for copy in waiting.iter().filter_map(|(_, frame)| frame.copy) {
            *copies.entry(copy.frame).or_insert(0) += 1;
        }
        for (link, frame) in waiting {
            self.on_unqueued(1, frame.waiting());
            let Some(copy) = frame.copy else {
                self.dispatch_again(frame, now);
                continue;
            };
            let Some(home) = self.segments.head_of(link) else {
                self.drop_copy(frame, DropReason::NoLink);
                continue;
            };
            let has_its_own = home != before.home_of(link) && before.homes.contains(&home);
            // By a train it would not be known as a copy: none may have left.
            let is_one_of_all = copies[&copy.frame] == copy.copies;
            let alone = |frame| QueuedFrame {
                copy: None,
                ..frame
            };
            // Where one is not wanted, it is no loss: another one is.
            match self.next_hop(frame.header.destination) {
                _ if has_its_own => self.discard_copy(frame),
                NextHop::Everywhere | NextHop::Nowhere => self.enqueue_plain(home, frame),
                NextHop::Plain(of) if of != home => self.discard_copy(frame),
                NextHop::Plain(_) if is_one_of_all => {
                    self.spread.on_left(&frame, now);
                    self.enqueue_plain(home, alone(frame));
                }
                NextHop::Plain(_) => self.enqueue_plain(home, frame),
                NextHop::Peer(slot) if is_one_of_all => {
                    copies.insert(copy.frame, 0);
                    self.spread.on_left(&frame, now);
                    self.enqueue(Destination::Peer(slot), alone(frame));
                }
                NextHop::Peer(_) if copies[&copy.frame] == 0 => self.discard_copy(frame),
                NextHop::Peer(_) => self.enqueue_plain(home, frame),
            }
        }
    }

    /// A link is about to leave: another one of its segment takes over what is plain.
    pub(super) fn leave_segment(&mut self, link: LinkId, now: Instant) {
        self.segments.set_carrier(link, false, now);
        self.update_homes(now);
    }

    /// It has left, and what still waits for it finds another way, or none.
    pub(super) fn redirect_plain_of(&mut self, link: LinkId, now: Instant) {
        self.segments.remove(link);
        self.turns.leave(Destination::Plain(link));
        let Some(mut queues) = self.plain.remove(link) else {
            return;
        };
        let mut waiting: Vec<QueuedFrame> = queues.drain().collect();
        waiting.extend(self.drain_stations_of(link));
        for frame in waiting {
            self.on_unqueued(1, frame.waiting());
            if frame.copy.is_some() {
                self.drop_copy(frame, DropReason::NoLink);
            } else {
                self.dispatch_again(frame, now);
            }
        }
    }

    /// Our own hello to the group, heard on another link than the one that it left by.
    pub(super) fn note_own_echo(
        &mut self,
        heard: LinkId,
        source: MacAddr,
        hello: &Hello,
        now: Instant,
    ) {
        let is_ours = hello.node_id == self.config.node_id
            && hello.line_id == self.config.line_id
            && hello.recipient.is_none()
            && self
                .link(hello.link)
                .is_some_and(|sent| sent.state.address == source);
        if is_ours && self.segments.on_echo(hello.link, heard, now) {
            self.update_homes(now);
        }
    }

    /// Whether what everybody gets is taken on this link. Of a peer, and of those behind it, on one
    /// link: it sends one to each segment. Of others, on the home link of their segment; but what they say to the
    /// next port alone is for the link, which that is; a bridge over `pt0` has to hear of loops.
    pub(super) fn takes_for_all(
        &mut self,
        link: LinkId,
        source: MacAddr,
        destination: MacAddr,
    ) -> bool {
        let of_others = self.segments.listens(link);
        let holder = self.peers.holder_of_address(source);
        let behind = || match self.stations.find(source)? {
            Place::Peer(node_id) => self.peers.slot_of_node(node_id),
            Place::Plain(_) | Place::Former(_) => None,
        };
        let Some(slot) = holder.or_else(behind) else {
            let is_links = destination.is_for_next_port() && !self.config.promiscuous;
            return of_others && !is_links;
        };
        let Some(chosen) = self.choose_group_link(slot) else {
            return of_others;
        };
        // Where the peer was not heard lately, a station that was behind it has moved to. Where it was, and
        // leaves or is not reached, what it has sent may still be on its way.
        let peer = self.peers.get(slot).expect("it was looked up");
        let home = self.segments.head_of(link);
        match holder.is_some() || self.is_heard_beside(peer, home) {
            true => link == chosen || self.are_one(link, chosen),
            false => of_others,
        }
    }

    /// Whether a switch takes both for one: what everybody gets comes by whichever.
    fn are_one(&self, link: LinkId, other: LinkId) -> bool {
        let segments = &self.segments;
        segments.is_in_lag(link) && segments.is_in_lag(other)
    }

    fn is_heard_beside(&self, peer: &Peer, home: Option<LinkId>) -> bool {
        self.paths_heard(peer)
            .any(|path| self.segments.head_of(path.link) == home)
    }

    /// A home link, for a switch that follows memberships sends many groups to no other. And the
    /// same one while it can be: what the peer sends by another may stand in a queue for a while.
    fn choose_group_link(&mut self, slot: usize) -> Option<LinkId> {
        let peer = self.peers.get(slot)?;
        let stays = peer
            .group_link
            .and_then(|link| self.segments.head_of(link))
            .filter(|home| self.homes_towards(peer).any(|of| of == *home));
        let chosen = stays.or_else(|| self.first_home_towards(peer));
        self.peers.get_mut(slot)?.group_link = chosen;
        chosen
    }

    /// Before a station behind us is heard on several segments, the peers learn where it is, and take
    /// of its frames one.
    pub(super) fn tell_of_stations_behind(&mut self, now: Instant) {
        if self.segments.heads().len() < 2 {
            return;
        }
        let links: Vec<LinkId> = self.links.iter().map(|link| link.id).collect();
        for link in links {
            self.send_hello(link, None, false, false, now);
        }
    }

    /// A frame leaves plainly. One for all of a station behind us comes back on our other links of the segment, and
    /// its source does not show that it is ours: it is known as a copy, also when such a link is home then.
    pub(super) fn note_sent(&mut self, frame: &QueuedFrame, link: LinkId, now: Instant) {
        if self.links.len() > 1 && frame.header.source != self.config.address {
            let (duplicates, offload) = (&mut self.duplicates, &frame.offload);
            let link = self.segments.place_of_copies(link);
            duplicates.look(&frame.buffer, offload, (link, true), now);
        }
    }

    /// A plain frame has come for us, or for everybody, and is taken on this link or not. Says what of it
    /// is no copy of one that was. With one link of ours, only who has several can be heard twice: the
    /// other one may come by our next.
    pub(super) fn look_for_copies(
        &mut self,
        frame: &[u8],
        offload: &Offload,
        source: MacAddr,
        (link, taken): (LinkId, bool),
        now: Instant,
    ) -> New {
        // What is for everybody may be of a node that has not been met yet.
        let is_group = frame[0] & 1 != 0;
        let may_come_again = self.links.len() > 1 || is_group || self.is_of_a_node(source);
        match may_come_again {
            true => {
                // By several that a switch takes for one, a frame comes once.
                let link = self.segments.place_of_copies(link);
                self.duplicates.look(frame, offload, (link, taken), now)
            }
            false => New::All,
        }
    }

    /// Whether it is a peer's `pt0`, or behind one.
    fn is_of_a_node(&self, source: MacAddr) -> bool {
        let is_behind = || matches!(self.stations.find(source), Some(Place::Peer(_)));
        self.peers.holder_of_address(source).is_some() || is_behind()
    }
}
