//! What goes on which link, and when.

use super::from_host::largest_on_wire;
use super::paths::{best_path, train_max};
use super::tell::under_way;
use super::{Engine, Transmit};
use crate::aggregator::{Filled, Surroundings};
use crate::buffer::Buffer;
use crate::config::{Config, LinkId};
use crate::link::Link;
use crate::offload::Offload;
use crate::peer::Peer;
use crate::queue::codel::CodelParams;
use crate::queue::drr::{FlowQueues, QueuedFrame};
use crate::stats::{DropReason, FlushReason};
use crate::time::Instant;
use crate::trunk::flight::Kind;
use crate::trunk::receipts::Receipts;
use crate::turns::Destination;
use crate::wire::ethernet::{HEADER_LEN, MacAddr};
use crate::wire::hello::capability;
use crate::wire::subframe;
use crate::wire::train::{
    self, ACK_OPTION_LEN, Ack, NEWEST_MAX, Options, TrainHeader, TrainWriter, newest_option_len,
};

/// More never ride on one train: the others' turn comes.
pub(super) const ACKS_MAX: usize = 4;
pub(super) const MARKER_LEN_MAX: usize =
    HEADER_LEN + train::HEADER_LEN + ACKS_MAX * ACK_OPTION_LEN + newest_option_len(NEWEST_MAX);

/// A frame that is to go, before it is lent out.
pub(super) struct Outgoing {
    link: LinkId,
    offload: Offload,
    /// It stands in the records of this peer's path, and not in `outgoing`.
    kept_for: Option<usize>,
    len: usize,
}

impl Outgoing {
    /// One of packtrain's own, which no card has anything to do with.
    pub(super) fn message(link: LinkId) -> Outgoing {
        Outgoing::train(link, None, 0)
    }

    pub(super) fn train(link: LinkId, kept_for: Option<usize>, len: usize) -> Outgoing {
        Outgoing {
            link,
            offload: Offload::NONE,
            kept_for,
            len,
        }
    }
}

impl Engine {
    /// The next frame for a link. Control messages first; then whoever's turn it is, on a link
    /// that has room.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit<'_>> {
        let used = self.outgoing.take();
        self.recycle(used);
        let outgoing = self
            .take_greeting()
            .or_else(|| self.take_replay(now))
            .or_else(|| self.take_data(now))
            .or_else(|| self.take_probe(now))
            .or_else(|| self.take_due(now))
            .or_else(|| self.take_acknowledgement(now));
        let Some(outgoing) = outgoing else {
            // The round is over.
            self.settle_due_times();
            return None;
        };
        let Outgoing {
            link,
            offload,
            kept_for,
            ..
        } = outgoing;
        let frame = match kept_for {
            None => self.outgoing.as_ref(),
            Some(slot) => {
                let path = self.peers.get(slot).and_then(|peer| peer.path(link));
                path.and_then(|path| path.flight.newest_copy())
            }
        };
        let frame = frame.expect("put there by each of them");
        if let Some(link) = self.links.iter_mut().find(|l| l.id == link) {
            link.on_given(frame.len());
        }
        Some(Transmit {
            link,
            frame,
            offload,
        })
    }

    fn take_greeting(&mut self) -> Option<Outgoing> {
        while let Some((link, message)) = self.greeter.take() {
            if self.link(link).is_some_and(|l| l.state.carrier) {
                self.outgoing = Some(message);
                return Some(Outgoing::message(link));
            }
            self.pool.give_back(message);
        }
        None
    }

    /// What time makes one say to a peer.
    fn take_due(&mut self, now: Instant) -> Option<Outgoing> {
        self.peers.due.next(0, now)?;
        self.take_join_probe(now)
            .or_else(|| self.take_try(now))
            .or_else(|| self.take_marker(now))
    }

    fn take_data(&mut self, now: Instant) -> Option<Outgoing> {
        if self.queued_frames == 0 {
            return None;
        }
        for link in self.links.iter_mut().filter(|link| !link.has_room()) {
            link.on_kept_back();
        }
        // CoDel may empty a queue that was chosen: then it is the next one's turn.
        while let Some((destination, way)) = self.next_destination(now) {
            let outgoing = match destination {
                Destination::Plain(_) => self.take_plain(way, now),
                Destination::Peer(slot) => self.take_for_peer(slot, way, now),
            };
            if let Some(outgoing) = &outgoing {
                self.turns.charge(destination, outgoing.len);
            }
            self.leave_if_empty(destination);
            if outgoing.is_some() {
                return outgoing;
            }
        }
        None
    }

    /// Whose turn it is of those that have a link with room, and the place of that: among our links for
    /// plain frames, among the peer's paths for trains.
    fn next_destination(&mut self, now: Instant) -> Option<(Destination, usize)> {
        let segments = &self.segments;
        let (links, peers, balance) = (&self.links, &self.peers, self.config.balance);
        let has_room = match links.len() {
            1 => Link::has_room,
            _ => Link::has_shared_room,
        };
        let mut way = None;
        let destination = self.turns.next(|destination| {
            way = match destination {
                Destination::Plain(of) => links
                    .iter()
                    .position(|link| link.id == of && has_room(link) && segments.is_home(of)),
                Destination::Peer(slot) => peers
                    .get(slot)
                    .and_then(|peer| best_path(links, peer, balance, now)),
            };
            way.is_some()
        })?;
        Some((destination, way?))
    }

    fn leave_if_empty(&mut self, destination: Destination) {
        let empty = match destination {
            Destination::Plain(of) => self.plain.of(of).is_none_or(|queues| queues.is_empty()),
            Destination::Peer(slot) => match self.peers.get_mut(slot) {
                None => true,
                Some(peer) => {
                    let empty = peer.queues.is_empty();
                    if empty {
                        peer.paths
                            .iter_mut()
                            .for_each(|path| path.flight.on_source_empty());
                    }
                    empty
                }
            },
        };
        if empty {
            self.turns.leave(destination);
        }
    }

    fn codel(&self) -> CodelParams {
        CodelParams {
            target: self.config.limits.codel_target,
            interval: self.config.limits.codel_interval,
        }
    }

    /// The links, or CoDel, have taken something out of the queues.
    fn on_taken(&mut self, frames: usize, bytes: usize) {
        self.on_unqueued(frames, bytes);
        self.taken_bytes += bytes as u64;
        self.intake.on_taken(self.queued_bytes);
    }

    /// A frame for a host without packtrain, as it is.
    fn take_plain(&mut self, at: usize, now: Instant) -> Option<Outgoing> {
        let codel = self.codel();
        let link = self.links[at].id;
        let mtu = self.links[at].frame_max();
        let queues = self.plain.of(link)?;
        let before = (queues.frames(), queues.bytes());
        let (pool, drops, spread) = (&mut self.pool, &mut self.counters.drops, &mut self.spread);
        let flow = queues.select(now, &codel, mtu, &mut |frame| {
            drops.count(spread.on_dropped(&frame, DropReason::Codel));
            pool.give_back(frame.buffer);
        });
        let frame = flow.map(|flow| {
            let frame = queues.pop(flow);
            queues.charge(flow, frame.buffer.len());
            frame
        });
        let after = (queues.frames(), queues.bytes());
        self.on_taken(before.0 - after.0, before.1 - after.1);
        let frame = frame?;
        if largest_on_wire(&frame) > mtu {
            // The link's MTU has changed since it was queued.
            self.drop_copy(frame, DropReason::TooLargeForPlain);
            return None;
        }
        if self.spread.is_late(&frame, now) {
            self.drop_copy(frame, DropReason::SegmentCopy);
            return None;
        }
        self.spread.on_left(&frame, now);
        self.note_sent(&frame, link, now);
        self.counters.trains_tx.plain += 1;
        let len = frame.buffer.len();
        self.outgoing = Some(frame.buffer);
        Some(Outgoing {
            offload: frame.offload,
            ..Outgoing::train(link, None, len)
        })
    }

    /// A train, or a frame as it is with our mark.
    fn take_for_peer(&mut self, slot: usize, path_at: usize, now: Instant) -> Option<Outgoing> {
        let codel = self.codel();
        let peer = self.peers.get_mut(slot)?;
        let path = &peer.paths[path_at];
        let link = self.links.iter().find(|link| link.id == path.link)?;
        let has_one_link = self.links.len() == 1;
        let mark = mark_for(&self.config, peer, link).filter(|_| has_one_link);
        let train_max = match peer.paths.len() {
            1 => path.train_max(link.frame_max()),
            _ => train_max(&self.links, peer)?,
        };
        let way = Way {
            own: self.config.address,
            peer: peer.address,
            train_max,
            mark,
            link,
        };
        let before = (peer.queues.frames(), peer.queues.bytes());
        let mut surroundings = Surroundings {
            own: way.own,
            peer: way.peer,
            codel: &codel,
            pool: &mut self.pool,
            drops: &mut self.counters.drops,
            now,
        };
        let (link_id, train) = (link.id, peer.next_train);
        let alone = way.head_that_goes_alone(&mut peer.queues, &mut surroundings);
        let mut filled = None;
        let mut as_it_is = None;
        match alone {
            None => {}
            Some(Some(mut frame)) => {
                frame.buffer[0..6].copy_from_slice(&peer.paths[path_at].remote_address.0);
                frame.buffer[6..12].copy_from_slice(&mark.expect("it goes alone").0);
                as_it_is = Some(frame);
            }
            Some(None) => {
                let session = peer.incarnation(self.config.node_id);
                filled = way.train(peer, path_at, session, &mut surroundings);
            }
        }
        let after = (peer.queues.frames(), peer.queues.bytes());
        self.on_taken(before.0 - after.0, before.1 - after.1);
        if let Some(frame) = as_it_is {
            self.counters.trains_tx.marked += 1;
            let len = frame.buffer.len();
            self.outgoing = Some(frame.buffer);
            return Some(Outgoing {
                offload: frame.offload,
                ..Outgoing::train(link_id, None, len)
            });
        }
        let (buffer, filled) = filled?;
        let tx = &mut self.counters.trains_tx;
        tx.trains += 1;
        tx.frames += u64::from(filled.frames);
        tx.pieces += u64::from(filled.pieces);
        self.counters.flushes.count(filled.flush);
        let len = buffer.len();
        let sent = self.send_train((slot, path_at), train, (buffer, len), Kind::New, now);
        sent.map(|(outgoing, _)| outgoing)
    }

    /// An acknowledgement that had no train to ride on in time.
    fn take_acknowledgement(&mut self, now: Instant) -> Option<Outgoing> {
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
        let link = self.answering_link(self.peers.get(slot)?)?;
        self.send_marker(slot, link, false, now)
    }

    /// A train without subframes: what is owed in acknowledgements, and what is under way on the links.
    /// `ack_now`: what was acknowledged of this link is to be said again, for it may be lost.
    pub(super) fn send_marker(
        &mut self,
        slot: usize,
        link: LinkId,
        ack_now: bool,
        now: Instant,
    ) -> Option<Outgoing> {
        let peer = self.peers.get(slot)?;
        // Of any other link nobody knows that it works.
        let answers = self.answering_link(peer) == Some(link);
        let acks_max = if answers { ACKS_MAX } else { 0 };
        let peer = self.peers.get_mut(slot)?;
        let own_incarnation = peer.incarnation(self.config.node_id);
        let told = under_way(peer, link);
        let link = self.links.iter().find(|l| l.id == link)?;
        let path = peer.paths.iter_mut().find(|path| path.link == link.id)?;
        // It says that nothing comes behind what this link carries, as one sent for that would.
        path.flight.on_marker_sent(now);
        let session = peer.remote_incarnation();
        let (acks, n) = take_acks(&mut peer.receipts, session, acks_max, now);
        let path = peer.paths.iter().find(|path| path.link == link.id)?;
        let header = TrainHeader {
            ack_now,
            marker: true,
            replay: false,
            lane: 0,
            link: link.id.0,
            incarnation: own_incarnation,
            train_sequence: peer.next_train.minus(1),
            link_sequence: path.flight.next_sequence().minus(1),
        };
        let options = Options {
            acks: &acks[..n],
            newest: told.entries(),
        };
        let mut buffer = self.pool.take(MARKER_LEN_MAX);
        let (to, from) = (path.remote_address, link.state.address);
        TrainWriter::begin(&mut buffer, to, from, &header, &options);
        self.counters.trains_tx.markers += 1;
        let link = link.id;
        self.outgoing = Some(buffer);
        Some(Outgoing::message(link))
    }

    /// The link by which an acknowledgement for this peer goes: the one by which the last train came, for
    /// of that we know that it works.
    pub(super) fn answering_link(&self, peer: &Peer) -> Option<LinkId> {
        if let [path] = &peer.paths[..] {
            let link = self.link(path.link).filter(|link| link.carries_trains());
            return link.map(|link| link.id);
        }
        let open = peer.paths.iter().filter_map(|path| {
            let link = self.link(path.link).filter(|link| link.carries_trains())?;
            let works = path.is_open() && path.silent.is_none() && link.retiring.is_none();
            Some((
                !works,
                path.link != peer.last_arrival,
                path.flight.round_trip_min(),
                link.id,
            ))
        });
        let (.., link) = open.min()?;
        Some(link)
    }

    pub(super) fn post(&mut self, link: LinkId, message: Buffer) {
        let refused = self.greeter.post(link, message);
        self.recycle(refused);
    }
}

/// One of our links to one peer, as far as it decides how frames go.
struct Way<'a> {
    own: MacAddr,
    peer: MacAddr,
    train_max: usize,
    mark: Option<MacAddr>,
    link: &'a Link,
}

impl Way<'_> {
    /// Full-size and GSO frames between the two `pt0`s, if this link carries them whole and is not so
    /// slow that GSO frames are better cut.
    fn goes_alone(&self, frame: &QueuedFrame, now: Instant) -> bool {
        self.mark.is_some()
            && frame.sent == 0
            && frame.header.destination == self.peer
            && frame.header.source == self.own
            && largest_on_wire(frame) <= self.train_max
            && !self.link.cuts(frame.buffer.len(), now)
            && (frame.offload.gso.is_some() || !fits_a_train(frame, self.train_max))
    }

    /// The next frame, if it goes alone; `Some(None)`: it goes by train. `None`: CoDel has
    /// dropped all there was.
    fn head_that_goes_alone(
        &self,
        queues: &mut FlowQueues,
        with: &mut Surroundings<'_>,
    ) -> Option<Option<QueuedFrame>> {
        let Surroundings { pool, drops, .. } = with;
        let flow = queues.select(with.now, with.codel, self.train_max, &mut |frame| {
            drops.count(DropReason::Codel);
            pool.give_back(frame.buffer);
        })?;
        if !self.goes_alone(queues.head(flow), with.now) {
            return Some(None);
        }
        let frame = queues.pop(flow);
        queues.charge(flow, frame.buffer.len());
        Some(Some(frame))
    }

    fn train(
        &self,
        peer: &mut Peer,
        path_at: usize,
        own_incarnation: u16,
        with: &mut Surroundings<'_>,
    ) -> Option<(Buffer, Filled)> {
        let session = peer.remote_incarnation();
        let told = under_way(peer, self.link.id);
        let acks_max = acks_max(told.entries().len());
        let (acks, n) = take_acks(&mut peer.receipts, session, acks_max, with.now);
        let path = &mut peer.paths[path_at];
        let header = TrainHeader {
            ack_now: path.flight.wants_ack(self.link.local_queue_bytes()),
            marker: false,
            replay: false,
            lane: 0,
            link: self.link.id.0,
            incarnation: own_incarnation,
            train_sequence: peer.next_train,
            link_sequence: path.flight.next_sequence(),
        };
        let mut buffer = with.pool.take(self.train_max);
        let (to, from) = (path.remote_address, self.link.state.address);
        let options = Options {
            acks: &acks[..n],
            newest: told.entries(),
        };
        let mut writer = TrainWriter::begin(&mut buffer, to, from, &header, &options);
        let empty_len = writer.len();
        let now = with.now;
        let goes_alone = |frame: &QueuedFrame| self.goes_alone(frame, now);
        let filled = peer.aggregator.fill(
            &mut peer.queues,
            &mut writer,
            self.train_max,
            goes_alone,
            with,
        );
        if writer.len() == empty_len {
            // CoDel has dropped all, or turns have passed up to a frame that goes alone, or this
            // is one with headers that no train of this link has room for.
            if filled.flush == FlushReason::Full {
                self.drop_head(peer, with);
            }
            for ack in &acks[..n] {
                peer.receipts_of(ack.link).take_back();
            }
            with.pool.give_back(buffer);
            return None;
        }
        peer.next_train = peer.next_train.next();
        Some((buffer, filled))
    }
}

impl Way<'_> {
    fn drop_head(&self, peer: &mut Peer, with: &mut Surroundings<'_>) {
        let Surroundings { pool, drops, .. } = with;
        let flow = peer
            .queues
            .select(with.now, with.codel, self.train_max, &mut |frame| {
                drops.count(DropReason::Codel);
                pool.give_back(frame.buffer);
            });
        if let Some(flow) = flow {
            let frame = peer.queues.pop(flow);
            peer.aggregator.forget(&frame);
            with.drops.count(DropReason::TooLarge);
            with.pool.give_back(frame.buffer);
        }
    }
}

fn fits_a_train(frame: &QueuedFrame, train_max: usize) -> bool {
    let overhead = HEADER_LEN + train::HEADER_LEN + ACK_OPTION_LEN + subframe::HEADER_LEN;
    overhead + 2 + frame.payload().len() <= train_max
}

/// Our mark on this link, where frames may go to this peer as they are: a mark has no sequence, and no
/// copy is kept, so only while there is one way, and the peer, who takes them, sees that it keeps order.
fn mark_for(config: &Config, peer: &Peer, link: &Link) -> Option<MacAddr> {
    let usable = config.marked_frames
        && peer.capabilities & capability::MARKED_FRAMES != 0
        && peer.paths.len() == 1
        && peer.replay.is_empty();
    link.state.mark.filter(|_| usable)
}

/// How many acknowledgements ride on a train that names so many links: the smallest trains have room for
/// [`ACKS_MAX`] of them.
pub(super) fn acks_max(links: usize) -> usize {
    ACKS_MAX
        .saturating_sub(newest_option_len(links).div_ceil(ACK_OPTION_LEN))
        .max(1)
}

/// The acknowledgements that are owed, as many as ride on one train.
pub(super) fn take_acks(
    receipts: &mut [Receipts],
    session: Option<u16>,
    acks_max: usize,
    now: Instant,
) -> ([Ack; ACKS_MAX], usize) {
    let mut acks = [Ack::default(); ACKS_MAX];
    let mut n = 0;
    let Some(incarnation) = session else {
        return (acks, n); // nothing of it was taken
    };
    for receipts in receipts.iter_mut().filter(|r| r.has_news()).take(acks_max) {
        if let Some(ack) = receipts.take(incarnation, now) {
            acks[n] = ack;
            n += 1;
        }
    }
    (acks, n)
}
