//! What goes on which link, and when.

use arrayvec::ArrayVec;

use super::from_host::largest_on_wire;
use super::paths::{Rules, best_path, frames_for, has_room, is_ripe, rate_bps, train_max};
use super::way::{Goes, Way, coding_for, mark_for};
use super::{Engine, Transmit};
use crate::aggregator::{Filled, Surroundings};
use crate::buffer::{Buffer, LARGE_CAPACITY, SMALL_CAPACITY};
use crate::config::LinkId;
use crate::dfap::stations::Station;
use crate::link::Link;
use crate::offload::Offload;
use crate::peer::{Path, Peer};
use crate::peer_table::PeerTable;
use crate::queue::codel::{Aqm, CodelParams};
use crate::queue::drr::Signal;
use crate::queue::frame::QueuedFrame;
use crate::stats::DropReason;
use crate::time::Instant;
use crate::trunk::balance::Policy;
use crate::trunk::flight::Kind;
use crate::trunk::lane::TrainId;
use crate::turns::Destination;
use crate::wire::coded::Coding;
use crate::wire::ethernet::{HEADER_LEN, on_wire};
use crate::wire::hello::LINKS_MAX;

/// A frame that is to go, before it is lent out.
pub(super) struct Outgoing {
    link: LinkId,
    offload: Offload,
    /// It stands in the records of this peer's path, and not in `outgoing`.
    kept_for: Option<usize>,
    len: usize,
    /// A train, or an aggregate: what comes meanwhile may ride in the next one.
    has_room_for_others: bool,
}

impl Outgoing {
    /// One of packtrain's own, which no card has anything to do with.
    pub(super) fn message(link: LinkId) -> Outgoing {
        Outgoing::train(link, None, 0)
    }

    /// A frame as it is.
    pub(super) fn plain(link: LinkId, offload: Offload, len: usize) -> Outgoing {
        Outgoing {
            offload,
            has_room_for_others: false,
            ..Outgoing::train(link, None, len)
        }
    }

    /// Frames in one, of which no copy is kept.
    pub(super) fn aggregate(link: LinkId, len: usize) -> Outgoing {
        Outgoing::train(link, None, len)
    }

    pub(super) fn train(link: LinkId, kept_for: Option<usize>, len: usize) -> Outgoing {
        Outgoing {
            link,
            offload: Offload::NONE,
            kept_for,
            len,
            has_room_for_others: true,
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
            .take_second(now)
            .or_else(|| self.take_greeting())
            .or_else(|| self.take_replay(now))
            .or_else(|| self.take_data(now))
            .or_else(|| self.take_probe(now))
            .or_else(|| self.take_due(now))
            .or_else(|| self.take_acknowledgement(now))
            .or_else(|| self.take_direct_report(now));
        let Some(outgoing) = outgoing else {
            // The round is over.
            self.watch_touched(now);
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
        self.take_liveness(now)
            .or_else(|| self.take_join_probe(now))
            .or_else(|| self.take_try(now))
            .or_else(|| self.take_marker(now))
    }

    pub(super) fn take_data(&mut self, now: Instant) -> Option<Outgoing> {
        if self.queued_frames == 0 {
            return None;
        }
        for at in 0..self.links.len() {
            if !has_room(&self.links, &self.links[at]) {
                self.links[at].on_kept_back();
            }
        }
        // CoDel may empty a queue that was chosen: then it is the next one's turn.
        while let Some((destination, way)) = self.next_destination(now) {
            let outgoing = match destination {
                Destination::Plain(_) => self.take_plain(way, now),
                Destination::Peer(slot) => {
                    let before = self.taken_bytes;
                    let taken = self.take_for_peer(slot, way, now);
                    self.full.taken_for_peers += self.taken_bytes - before;
                    taken
                }
                Destination::Station(slot) => self.take_for_station(slot, way, now),
            };
            if let Some(outgoing) = &outgoing {
                self.turns.charge(destination, outgoing.len);
                self.note_length(outgoing);
            }
            self.leave_if_empty(destination);
            if let Destination::Peer(slot) = destination {
                self.note_links_without_frames(slot);
                self.go_on_with_lane_change(slot, now);
            }
            if outgoing.is_some() {
                return outgoing;
            }
        }
        None
    }

    /// Where flows or classes keep to links, what is left may all be for others than this one.
    fn note_links_without_frames(&mut self, slot: usize) {
        if !self.config.balance.keeps_flows() && self.vias.lanes() == 1 {
            return;
        }
        let Some(peer) = self.peers.get(slot) else {
            return;
        };
        let has_none = |path: &&Path| frames_for(&self.links, peer, &self.vias, path.link) == 0;
        let without = peer.paths.iter().filter(has_none).map(|path| path.link);
        let without: ArrayVec<LinkId, LINKS_MAX> = without.take(LINKS_MAX).collect();
        if let Some(peer) = self.peers.get_mut(slot) {
            for path in &mut peer.paths {
                if without.contains(&path.link) {
                    path.flight.on_source_empty();
                }
            }
        }
    }

    fn note_length(&mut self, outgoing: &Outgoing) {
        if let Some(link) = self.links.iter_mut().find(|l| l.id == outgoing.link) {
            link.on_train(match outgoing.has_room_for_others {
                true => outgoing.len,
                false => link.frame_max(),
            });
        }
    }

    /// Whose turn it is of those that have a link with room, and the place of that: among our links for
    /// plain frames, among the peer's paths for trains.
    fn next_destination(&mut self, now: Instant) -> Option<(Destination, usize)> {
        let (segments, stations) = (&self.segments, &self.dfap_stations);
        let former_homes = &self.former_homes;
        let takes_plain = |link| segments.carries_plain(link) && !former_homes.hold(link);
        let (links, plain, peers) = (&self.links, &self.plain, &mut self.peers);
        let (copies, limits) = (&self.copies, &self.config.limits);
        let keeps = |peer: &Peer| {
            let bytes = match train_max(links, peer) {
                Some(train) if train <= SMALL_CAPACITY => SMALL_CAPACITY,
                _ => LARGE_CAPACITY,
            };
            copies.has_room(limits, peer, bytes.min(limits.replay_bytes_max))
        };
        let rules = Rules {
            policy: Policy::of(&self.config),
            vias: &self.vias,
            keeps: &keeps,
        };
        let has_room = match links.len() {
            1 => Link::has_room,
            _ => Link::has_shared_room,
        };
        let way_to = |destination, peers: &mut PeerTable, urgent| match destination {
            Destination::Plain(of) => links
                .iter()
                .position(|link| link.id == of && has_room(link) && takes_plain(of)),
            Destination::Station(slot) => stations
                .get(slot)
                .filter(|station| {
                    segments.is_home(station.home) && !former_homes.hold(station.home)
                })
                .and_then(|station| {
                    let at = links.iter().position(|link| link.id == station.home)?;
                    let data_max = station.data_max(links[at].frame_max() - HEADER_LEN);
                    (has_room(&links[at]) && station.is_ripe(data_max, now)).then_some(at)
                }),
            Destination::Peer(slot) => {
                let is_ripe = peers
                    .get(slot)
                    .is_some_and(|peer| is_ripe(links, peer, now));
                is_ripe
                    .then(|| best_path(links, peers, slot, rules, urgent, now))
                    .flatten()
            }
        };
        let has_urgent = |destination, peers: &PeerTable| match destination {
            Destination::Plain(of) => plain.has_urgent(of),
            Destination::Peer(slot) => peers.get(slot).is_some_and(|p| p.queues.has_urgent()),
            Destination::Station(slot) => {
                let station = stations.get(slot);
                station.is_some_and(|station| station.queues.has_urgent())
            }
        };
        let mut way = None;
        let urgent = self.turns.next_urgent(|destination| {
            way = has_urgent(destination, peers)
                .then(|| way_to(destination, peers, true))
                .flatten();
            way.is_some()
        });
        let destination = urgent.or_else(|| {
            self.turns.next(|destination| {
                way = way_to(destination, peers, false);
                way.is_some()
            })
        })?;
        Some((destination, way?))
    }

    fn leave_if_empty(&mut self, destination: Destination) {
        let empty = match destination {
            Destination::Plain(of) => self.plain.of(of).is_none_or(|queues| queues.is_empty()),
            Destination::Station(slot) => {
                let station = self.dfap_stations.get(slot);
                station.is_none_or(Station::is_empty)
            }
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

    pub(super) fn aqm(&self) -> Aqm {
        Aqm {
            codel: CodelParams {
                target: self.config.limits.codel_target,
                interval: self.config.limits.codel_interval,
            },
            ecn: self.config.ecn,
        }
    }

    /// The links, or CoDel, have taken something out of the queues.
    pub(super) fn on_taken(&mut self, frames: usize, bytes: usize) {
        self.on_unqueued(frames, bytes);
        self.taken_bytes += bytes as u64;
        self.intake.on_taken(self.queued_bytes);
    }

    /// A frame for a host without packtrain, as it is.
    fn take_plain(&mut self, at: usize, now: Instant) -> Option<Outgoing> {
        let aqm = self.aqm();
        let link = self.links[at].id;
        let standing = self.links[at].standing_time(now);
        self.counters.sand.leave_behind(standing);
        let mtu = self.links[at].frame_max();
        let queues = self.plain.of(link)?;
        let before = (queues.frames(), queues.bytes());
        let (pool, drops, spread) = (&mut self.pool, &mut self.counters.drops, &mut self.spread);
        let marked = &mut self.counters.marked;
        let flow = queues.select(now, &aqm, mtu, &mut |signal| match signal {
            Signal::Marked => *marked += 1,
            Signal::Dropped(frame) => {
                drops.count(spread.on_dropped(&frame, DropReason::Codel));
                pool.give_back(frame.buffer);
            }
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
            self.refuse_for_plain(frame, mtu, now);
            return None;
        }
        if self.spread.is_late(&frame, now) {
            self.drop_copy(frame, DropReason::SegmentCopy);
            return None;
        }
        self.spread.on_left(&frame, now);
        self.note_sent(&frame, link, now);
        self.note_left(&frame, now);
        self.counters.trains_tx.plain += 1;
        let units = &mut self.counters.data_units;
        units.on_frame(&frame.buffer, &frame.offload);
        let len = frame.buffer.len();
        self.links[at].on_plain(len);
        self.outgoing = Some(frame.buffer);
        Some(Outgoing::plain(link, frame.offload, len))
    }

    /// A frame leaves, whole.
    pub(super) fn note_left(&mut self, frame: &QueuedFrame, now: Instant) {
        let waited = now.since(frame.enqueued);
        self.classes.note_left(frame.class, waited);
        self.counters.sand.note_left(frame, now);
    }

    /// A train leaves, or an aggregate.
    pub(super) fn note_train(&mut self, frames: usize, len: usize, len_max: usize) {
        self.counters.train_sizes.record(frames, len, len_max);
    }

    /// What the frames of a train have saved by it.
    fn note_coding(&mut self, filled: &Filled, len: usize, is_coded: bool, now: Instant) {
        let coding = &mut self.counters.coding;
        coding.frame_bytes += filled.frame_bytes;
        coding.saved_padding += filled.padding;
        coding.train_bytes += on_wire(len) as u64;
        if !is_coded {
            return;
        }
        let brought = self.coder.brought();
        coding.coded_tx += u64::from(brought.is_coded);
        coding.dictionary_tx += u64::from(brought.by_dictionary);
        coding.deltas_tx += u64::from(brought.deltas);
        coding.saved_headers += brought.headers as u64;
        coding.saved_payload += brought.payload as u64;
        coding.tried_bytes += brought.tried as u64;
        self.worths.on_compressed(brought.tried, now);
        for tried in self.coder.trials() {
            self.worths.on_trial(tried, now);
        }
    }

    /// A train, or a frame as it is with our mark.
    fn take_for_peer(&mut self, slot: usize, path_at: usize, now: Instant) -> Option<Outgoing> {
        let mut aqm = self.aqm();
        let peer = self.peers.get_mut(slot)?;
        let path = &peer.paths[path_at];
        let round_trip = path.flight.round_trip_min().unwrap_or_default();
        aqm.codel = aqm.codel.over(round_trip);
        let link = self.links.iter().find(|link| link.id == path.link)?;
        peer.queues.serve(link.id);
        let has_one_link = self.links.len() == 1;
        let mark = mark_for(&self.config, peer, link, now).filter(|_| has_one_link);
        let train_max = match peer.paths.len() {
            1 => path.train_max(link.frame_max()),
            _ => train_max(&self.links, peer)?.min(path.train_max(link.frame_max())),
        };
        let link_bps = rate_bps(link, path, now).map(|bps| link.rate_of_full_trains(bps));
        let coding = coding_for(
            &self.config,
            peer,
            &self.classes,
            (link_bps, train_max),
            &mut self.worths,
            now,
        );
        let mut way = Way {
            own: self.config.address,
            peer: peer.address,
            train_max,
            mark,
            link,
            sand_max: path.sand_whole_max,
            compresses: coding.is_some_and(|coding| coding != Coding::Headers),
        };
        let before = (peer.queues.frames(), peer.queues.bytes());
        let sand = &mut self.counters.sand;
        sand.leave_behind(link.standing_time(now));
        let mut surroundings = Surroundings {
            own: way.own,
            peer: way.peer,
            aqm: &aqm,
            pool: &mut self.pool,
            drops: &mut self.counters.drops,
            marked: &mut self.counters.marked,
            classes: &mut self.classes,
            sand,
            worths: &mut self.worths,
            now,
        };
        let lane = peer.lane_towards(peer.queues.served_band().lane);
        let link_id = link.id;
        let train = TrainId {
            lane,
            sequence: peer.tx_of(lane).next_train,
        };
        // What goes as it is says nothing of what the link loses.
        let could_mend = peer.could_mend();
        let errors = &mut peer.paths[path_at].errors;
        let mut samples = |frame: &QueuedFrame| {
            could_mend && errors.samples(frame.buffer.len(), largest_on_wire(frame), now)
        };
        let goes = way.next(&mut peer.queues, &mut samples, &mut surroundings);
        let mut is_coded = false;
        let mut filled = None;
        let mut as_it_is = None;
        match goes {
            None => {}
            Some(Goes::Alone(mut frame)) => {
                frame.buffer[0..6].copy_from_slice(&peer.paths[path_at].remote_address.0);
                frame.buffer[6..12].copy_from_slice(&mark.expect("it goes alone").0);
                as_it_is = Some(frame);
            }
            Some(Goes::ByTrain { is_incompressible }) => {
                let own = self.config.node_id;
                let coding = coding.filter(|&by| by == Coding::Mixing || !is_incompressible);
                is_coded = coding.is_some();
                let coder = coding.map(|coding| (&mut self.coder, coding));
                filled = way.train(peer, (lane, path_at), own, coder, &mut surroundings);
            }
        }
        let after = (peer.queues.frames(), peer.queues.bytes());
        self.on_taken(before.0 - after.0, before.1 - after.1);
        if let Some(frame) = as_it_is {
            self.counters.trains_tx.marked += 1;
            let units = &mut self.counters.data_units;
            units.on_frame(&frame.buffer, &frame.offload);
            let len = frame.buffer.len();
            self.outgoing = Some(frame.buffer);
            return Some(Outgoing::plain(link_id, frame.offload, len));
        }
        let (buffer, filled) = filled?;
        let queues = &mut self.peers.get_mut(slot)?.queues;
        queues.note_train(buffer.len(), train_max, now);
        let tx = &mut self.counters.trains_tx;
        tx.trains += 1;
        tx.frames += u64::from(filled.frames);
        tx.pieces += u64::from(filled.pieces);
        self.counters.flushes.count(filled.flush);
        let units = &mut self.counters.data_units;
        units.on_train();
        units.packets_of_1500 += filled.packets_of_1500;
        let len = buffer.len();
        self.prepare_second((slot, path_at), train, &buffer, now);
        self.note_train(filled.frames as usize, len, train_max);
        self.note_coding(&filled, len, is_coded, now);
        let sent = self.send_train((slot, path_at), train, (buffer, len), (Kind::New, now), now);
        sent.map(|(outgoing, _)| outgoing)
    }

    pub(super) fn post(&mut self, link: LinkId, message: Buffer) {
        let refused = self.greeter.post(link, message);
        self.recycle(refused);
    }
}
