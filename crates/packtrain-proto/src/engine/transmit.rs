//! What goes on which link, and when.

use super::from_host::largest_on_wire;
use super::{Engine, Transmit};
use crate::aggregator::{Filled, Surroundings};
use crate::buffer::Buffer;
use crate::config::LinkId;
use crate::link::Link;
use crate::offload::Offload;
use crate::peer_table::Peer;
use crate::queue::codel::CodelParams;
use crate::queue::drr::{FlowQueues, QueuedFrame};
use crate::stats::{DropReason, FlushReason};
use crate::time::Instant;
use crate::trunk::receipts::Receipts;
use crate::turns::Destination;
use crate::wire::ethernet::{HEADER_LEN, MacAddr};
use crate::wire::hello::capability;
use crate::wire::subframe;
use crate::wire::train::{self, ACK_OPTION_LEN, Ack, TrainHeader, TrainWriter};

/// More never ride on one train: the others' turn comes.
pub(super) const ACKS_MAX: usize = 4;

/// A frame that is to go, before it is lent out.
pub(super) struct Outgoing {
    link: LinkId,
    offload: Offload,
}

impl Outgoing {
    /// One of packtrain's own, which no card has anything to do with.
    pub(super) fn message(link: LinkId) -> Outgoing {
        Outgoing {
            link,
            offload: Offload::NONE,
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
            .or_else(|| self.take_data(now))
            .or_else(|| self.take_probe(now))
            .or_else(|| self.take_acknowledgement(now))?;
        let frame = self.outgoing.as_ref().expect("put there by each of them");
        let Outgoing { link, offload } = outgoing;
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

    fn take_data(&mut self, now: Instant) -> Option<Outgoing> {
        if self.queued_frames == 0 {
            return None;
        }
        for turn in 0..self.links.len() {
            let at = (self.next_link + turn) % self.links.len();
            if !self.links[at].has_room() {
                self.links[at].on_kept_back();
                continue;
            }
            // CoDel may empty a queue that was chosen: then it is the next one's turn.
            while let Some(destination) = self.destination_for(at) {
                let outgoing = match destination {
                    Destination::Plain => self.take_plain(at, now),
                    Destination::Peer(slot) => self.take_for_peer(at, slot, now),
                };
                if outgoing.is_some() {
                    self.next_link = at + 1;
                    let bytes = self.outgoing.as_ref().map_or(0, |frame| frame.len());
                    self.turns.charge(destination, bytes);
                }
                self.leave_if_empty(destination);
                if outgoing.is_some() {
                    return outgoing;
                }
            }
        }
        None
    }

    /// Whose turn it is on this link.
    fn destination_for(&mut self, at: usize) -> Option<Destination> {
        let link = self.links[at].id;
        let is_home = self.home_link().is_some_and(|home| home.id == link);
        let carries_trains = self.links[at].carries_trains();
        let local_bytes = self.links[at].local_queue_bytes();
        let peers = &self.peers;
        self.turns.next(|destination| match destination {
            Destination::Plain => is_home,
            Destination::Peer(slot) => peers
                .get(slot)
                .and_then(|peer| peer.path(link))
                .is_some_and(|path| {
                    carries_trains && path.is_open() && path.flight.has_room(local_bytes)
                }),
        })
    }

    fn leave_if_empty(&mut self, destination: Destination) {
        let empty = match destination {
            Destination::Plain => self.plain.is_empty(),
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
        let mtu = self.links[at].frame_max();
        let before = (self.plain.frames(), self.plain.bytes());
        let (pool, drops) = (&mut self.pool, &mut self.counters.drops);
        let flow = self.plain.select(now, &codel, mtu, &mut |frame| {
            drops.count(DropReason::Codel);
            pool.give_back(frame.buffer);
        });
        let frame = flow.map(|flow| {
            let frame = self.plain.pop(flow);
            self.plain.charge(flow, frame.buffer.len());
            frame
        });
        let after = (self.plain.frames(), self.plain.bytes());
        self.on_taken(before.0 - after.0, before.1 - after.1);
        let frame = frame?;
        if largest_on_wire(&frame) > mtu {
            // The home link has changed since it was queued.
            self.drop_frame(frame.buffer, DropReason::TooLargeForPlain);
            return None;
        }
        self.counters.trains_tx.plain += 1;
        self.outgoing = Some(frame.buffer);
        Some(Outgoing {
            link: self.links[at].id,
            offload: frame.offload,
        })
    }

    /// A train, or a frame as it is with our mark.
    fn take_for_peer(&mut self, at: usize, slot: usize, now: Instant) -> Option<Outgoing> {
        let mark = self.mark_for(at, slot);
        let codel = self.codel();
        let link = &self.links[at];
        let peer = self.peers.get_mut(slot)?;
        let path_at = peer.paths.iter().position(|path| path.link == link.id)?;
        let way = Way {
            own: self.config.address,
            peer: peer.address,
            train_max: peer.paths[path_at].train_max(link.frame_max()),
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
        let outgoing = match way.head_that_goes_alone(&mut peer.queues, &mut surroundings) {
            None => None,
            Some(Some(mut frame)) => {
                frame.buffer[0..6].copy_from_slice(&peer.paths[path_at].remote_address.0);
                frame.buffer[6..12].copy_from_slice(&mark.expect("it goes alone").0);
                self.counters.trains_tx.marked += 1;
                Some((frame.buffer, frame.offload))
            }
            Some(None) => {
                let session = peer.incarnation(self.config.node_id);
                let train = way.train(peer, path_at, session, &mut surroundings);
                train.map(|(buffer, filled)| {
                    let tx = &mut self.counters.trains_tx;
                    tx.trains += 1;
                    tx.frames += u64::from(filled.frames);
                    tx.pieces += u64::from(filled.pieces);
                    self.counters.flushes.count(filled.flush);
                    (buffer, Offload::NONE)
                })
            }
        };
        let link = link.id;
        let after = (peer.queues.frames(), peer.queues.bytes());
        self.on_taken(before.0 - after.0, before.1 - after.1);
        let (buffer, offload) = outgoing?;
        self.outgoing = Some(buffer);
        Some(Outgoing { link, offload })
    }

    /// Our mark on this link, where frames may go to this peer as they are: a mark has no
    /// sequence, so only while there is one way, and the peer, who takes them, sees that it keeps
    /// order.
    fn mark_for(&self, at: usize, slot: usize) -> Option<MacAddr> {
        let peer = self.peers.get(slot)?;
        let usable = self.config.marked_frames
            && peer.capabilities & capability::MARKED_FRAMES != 0
            && peer.paths.len() == 1;
        if usable {
            self.links[at].state.mark
        } else {
            None
        }
    }

    /// An acknowledgement that had no train to ride on in time.
    fn take_acknowledgement(&mut self, now: Instant) -> Option<Outgoing> {
        let mut at = 0;
        while at < self.ack_slots.len() {
            let slot = self.ack_slots[at];
            let Some(peer) = self.peers.get_mut(slot) else {
                self.ack_slots.swap_remove(at);
                continue;
            };
            let due = peer.receipts.iter().filter_map(Receipts::due).min();
            match due {
                None => {
                    peer.ack_listed = false;
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
        let peer = self.peers.get_mut(slot)?;
        let own_incarnation = peer.incarnation(self.config.node_id);
        let link = self.links.iter().find(|l| l.id == link)?;
        let path = peer.paths.iter().find(|path| path.link == link.id)?;
        let session = peer.remote_incarnation();
        let (acks, n) = take_acks(&mut peer.receipts, session, now);
        let header = TrainHeader {
            ack_now: false,
            marker: true,
            lane: 0,
            link: link.id.0,
            incarnation: own_incarnation,
            train_sequence: peer.next_train.minus(1),
            link_sequence: path.flight.next_sequence().minus(1),
        };
        let mut buffer = self.pool.take(HEADER_LEN + 64 + ACKS_MAX * ACK_OPTION_LEN);
        TrainWriter::begin(
            &mut buffer,
            path.remote_address,
            link.state.address,
            &header,
            &acks[..n],
        );
        self.counters.trains_tx.markers += 1;
        let link = link.id;
        self.outgoing = Some(buffer);
        Some(Outgoing::message(link))
    }

    /// The first link that an acknowledgement for this peer can take.
    pub(super) fn answering_link(&self, peer: &Peer) -> Option<LinkId> {
        let open = |id: &LinkId| self.link(*id).is_some_and(Link::carries_trains);
        peer.paths.iter().map(|path| path.link).find(open)
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
        let (acks, n) = take_acks(&mut peer.receipts, session, with.now);
        let path = &mut peer.paths[path_at];
        let header = TrainHeader {
            ack_now: path.flight.wants_ack(self.link.local_queue_bytes()),
            marker: false,
            lane: 0,
            link: self.link.id.0,
            incarnation: own_incarnation,
            train_sequence: peer.next_train,
            link_sequence: path.flight.next_sequence(),
        };
        let mut buffer = with.pool.take(self.train_max);
        let (to, from) = (path.remote_address, self.link.state.address);
        let mut writer = TrainWriter::begin(&mut buffer, to, from, &header, &acks[..n]);
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
        path.flight.on_sent(buffer.len(), with.now);
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

/// The acknowledgements that are owed, as many as ride on one train.
pub(super) fn take_acks(
    receipts: &mut [Receipts],
    session: Option<u16>,
    now: Instant,
) -> ([Ack; ACKS_MAX], usize) {
    let mut acks = [Ack::default(); ACKS_MAX];
    let mut n = 0;
    let Some(incarnation) = session else {
        return (acks, n); // nothing of it was taken
    };
    for receipts in receipts.iter_mut().filter(|r| r.has_news()).take(ACKS_MAX) {
        if let Some(ack) = receipts.take(incarnation, now) {
            acks[n] = ack;
            n += 1;
        }
    }
    (acks, n)
}
