//! Frames that the host sends into `pt0`, up to the queue in which they wait.

use super::home::NextHop;
use super::to_host::Arrival;
use super::too_big::BRIDGE_SLACK;
use super::{Engine, PeerDownReason};
use crate::buffer::Buffer;
use crate::class::{Class, Facts, Pack};
use crate::gso;
use crate::offload::Offload;
use crate::queue::band::BandId;
use crate::queue::frame::QueuedFrame;
use crate::station_table::Place;
use crate::stats::DropReason;
use crate::time::Instant;
use crate::trunk::lane::LaneId;
use crate::turns::Destination;
use crate::waiting::Verdict;
use crate::wire::dfap;
use crate::wire::ethernet::{HEADER_LEN, Header, ether_type};
use crate::wire::packet::Packet;

/// Frames that go at once when the queues are full (as many as Linux' FQ-CoDel drops).
const SHED_MAX: usize = 64;

impl Engine {
    /// A frame that the host sent into `pt0`.
    pub fn handle_host_frame(&mut self, frame: Buffer, offload: Offload, now: Instant) {
        self.handle_marked_host_frame(frame, offload, 0, now);
    }

    /// … which its socket or the firewall has given a mark, for the classes that ask for it.
    pub fn handle_marked_host_frame(
        &mut self,
        frame: Buffer,
        offload: Offload,
        mark: u32,
        now: Instant,
    ) {
        self.counters.host_rx.count(frame.len());
        self.count_traffic(now);
        if self.counts_small_frames() {
            self.small_frames.on_host_frame(&frame);
        }
        if std::mem::take(&mut self.stations_moved) {
            // Before this one takes the new way, and overtakes those of its flow that wait.
            self.redispatch_plain(now);
        }
        let header = match self.check_host_frame(&frame, &offload) {
            Ok(header) => header,
            Err(reason) => return self.drop_frame(frame, reason),
        };
        let parsed = Packet::parse(&frame);
        let flow_hash = self.classifier.flow_hash_of(&frame, &parsed);
        let is_gso = offload.gso.is_some();
        let of_elephant = (self.elephants).on_frame(flow_hash, frame.len(), is_gso, now);
        let (classifier, balance) = (&self.classifier, self.config.balance);
        let share = classifier.share_of(balance, &frame, &parsed, flow_hash);
        let facts = Facts::of(&frame, &parsed, mark);
        let class = self.classes.class_of(flow_hash, &facts);
        self.classes.count(class, frame.len());
        let lane = self.vias.lane_of(&self.classes.via_of(flow_hash, &facts));
        let changes_lane = self.lane_change.moves(flow_hash, &facts, lane);
        let queued = QueuedFrame {
            buffer: frame,
            header,
            offload,
            enqueued: now,
            sent: 0,
            piece_id: 0,
            copy: None,
            flow_hash,
            share,
            class,
            lane,
            band: BandId::FIRST,
            changes_lane,
            of_elephant,
            short: self.config.short_flows_first && !of_elephant,
            marked: false,
            urgent: self.classes.action(class).pack == Pack::Now,
            hold_until: None,
            random: Default::default(),
        };
        self.dispatch(queued, now);
    }

    /// Which frames are treated in a way of their own, from now on.
    ///
    /// # Panics
    /// With more than [`crate::class::CLASSES_MAX`].
    pub fn set_classes(&mut self, classes: Vec<Class>, now: Instant) {
        let before = self.classes.replace(classes);
        self.change_lanes(before, now);
        self.worths.forget();
        self.waiting.set_classes(self.classes.actions());
        self.publish_paths();
    }

    pub fn classes(&self) -> impl Iterator<Item = &Class> + '_ {
        self.classes.iter()
    }

    fn check_host_frame(&self, frame: &[u8], offload: &Offload) -> Result<Header, DropReason> {
        let header = Header::parse(frame).ok_or(DropReason::Runt)?;
        let payload_len = frame.len() - HEADER_LEN;
        if payload_len == 0 {
            return Err(DropReason::Runt);
        }
        if payload_len > usize::from(u16::MAX) {
            return Err(DropReason::TooLarge);
        }
        // Those that take aggregates would take it for one.
        let looks_aggregated = dfap::is_aggregate_type(header.ether_type)
            && self.dfap_stations.slot_of(header.destination).is_some();
        if header.ether_type == ether_type::PACKTRAIN || looks_aggregated {
            return Err(DropReason::Nested);
        }
        if !offload.is_none() && gso::check(frame, offload).is_err() {
            return Err(DropReason::BadGso);
        }
        Ok(header)
    }

    pub(super) fn drop_frame(&mut self, frame: Buffer, reason: DropReason) {
        self.counters.drops.count(reason);
        self.pool.give_back(frame);
    }

    /// One that waited for somebody else: classes may be others by now.
    pub(super) fn dispatch_again(&mut self, mut frame: QueuedFrame, now: Instant) {
        // Also where none names ways any more: of a flow, some may have come while one did.
        frame.lane = match self.classes.names_ways() {
            true => self.lane_of(&frame),
            false => LaneId::FIRST,
        };
        self.dispatch(frame, now);
    }

    /// Into the queue of whom it is for.
    pub(super) fn dispatch(&mut self, frame: QueuedFrame, now: Instant) {
        let Header {
            destination,
            source,
            ..
        } = frame.header;
        if source != self.config.address && !source.is_group() {
            let is_new = self.stations_behind.learn(source, now);
            if is_new {
                self.tell_of_stations_behind(now);
            }
        }
        if destination.is_group() {
            return self.dispatch_group(frame);
        }
        match self.next_hop(destination) {
            NextHop::Peer(slot) if self.is_away(slot) => {
                self.drop_frame(frame.buffer, DropReason::PeerAway);
            }
            NextHop::Peer(slot) => match self.frame_max_behind(slot, destination) {
                Some(frame_max) if largest_on_wire(&frame) > frame_max + BRIDGE_SLACK => {
                    let now = frame.enqueued;
                    self.refuse_for_peer(frame, frame_max, now);
                }
                _ => self.enqueue(Destination::Peer(slot), frame),
            },
            NextHop::Plain(home) => self.enqueue_plain(home, frame),
            NextHop::Everywhere => self.enqueue_unknown(frame),
            NextHop::Nowhere => self.drop_frame(frame.buffer, DropReason::NoLink),
        }
    }

    /// Plain and once on each segment, for everyone hears it there. One that is too large for any of
    /// them goes to each peer: who would get it plainly and who would not, only each peer can tell.
    fn dispatch_group(&mut self, frame: QueuedFrame) {
        if self.fits_everywhere(&frame) {
            return self.enqueue_everywhere(frame);
        }
        let slots: Vec<usize> = self
            .peers
            .iter()
            .filter(|(_, peer)| peer.up && !peer.away)
            .map(|(slot, _)| slot)
            .collect();
        if slots.is_empty() {
            return self.enqueue_everywhere(frame);
        }
        for slot in slots {
            let copy = QueuedFrame {
                buffer: self.pool.copy_of(&frame.buffer),
                random: frame.random.clone(),
                ..frame
            };
            self.enqueue(Destination::Peer(slot), copy);
        }
        self.pool.give_back(frame.buffer);
    }

    pub(super) fn enqueue(&mut self, destination: Destination, mut frame: QueuedFrame) {
        match destination {
            Destination::Peer(slot) => {
                if frame.changes_lane
                    && let Some(later) = self.peers.get_mut(slot).and_then(|p| p.later.as_mut())
                {
                    self.queued_frames += 1;
                    self.queued_bytes += frame.buffer.len();
                    let now = frame.enqueued;
                    later.push(frame);
                    return self.bound_queues(now);
                }
                let action = self.classes.action(frame.class);
                frame.band = BandId {
                    lane: frame.lane,
                    twice: action.duplicate && self.links.len() > 1,
                };
            }
            _ => frame.band = BandId::FIRST,
        }
        let now = frame.enqueued;
        let verdict = self.let_wait(destination, &mut frame);
        self.queued_frames += 1;
        self.queued_bytes += frame.buffer.len();
        let queues = match destination {
            Destination::Plain(link) => self.plain.of(link).expect("a link that is there"),
            Destination::Peer(slot) => {
                &mut self.peers.get_mut(slot).expect("looked up just now").queues
            }
            Destination::Station(slot) => {
                let station = self.dfap_stations.get_mut(slot);
                &mut station.expect("looked up just now").queues
            }
        };
        if queues.is_empty() {
            self.turns.join(destination);
        }
        let flow = queues.push(frame);
        match verdict {
            Verdict::Leave | Verdict::Wait { renewed: None, .. } => {}
            Verdict::Wait {
                renewed: Some(at), ..
            } => queues.renew_wait(at),
            Verdict::Enough => queues.ripen_by_count(),
        }
        if let Some(bytes_max) = self.config.limits.flow_queue_bytes_max {
            let (pool, drops) = (&mut self.pool, &mut self.counters.drops);
            let spread = &mut self.spread;
            let (mut frames, mut bytes) = (0, 0);
            queues.bound(flow, bytes_max, |frame| {
                frames += 1;
                bytes += frame.waiting();
                drops.count(spread.on_dropped(&frame, DropReason::FlowQueueFull));
                pool.give_back(frame.buffer);
            });
            self.on_unqueued(frames, bytes);
            if let (Destination::Peer(slot), 1..) = (destination, frames) {
                self.go_on_with_lane_change(slot, now);
            }
        }
        self.bound_queues(now);
    }

    fn bound_queues(&mut self, now: Instant) {
        let frames_max = self.config.limits.queued_frames_max;
        let bytes_max = self.config.limits.queued_bytes_max;
        while self.queued_frames > frames_max || self.queued_bytes > bytes_max {
            let dropped = match self.most_wait_for_lanes() {
                true => self.drop_from_later(),
                false => {
                    (self.most_wait_for_own_links() && self.drop_from_fattest(true, now))
                        || self.drop_from_fattest(false, now)
                        || self.drop_from_later()
                }
            };
            if !dropped {
                break;
            }
        }
        let counters = &mut self.counters;
        counters.queue_frames_max = counters.queue_frames_max.max(self.queued_frames);
        counters.queue_bytes_max = counters.queue_bytes_max.max(self.queued_bytes);
    }

    /// Of what there is too much, more than half waits for links that classes name. The host is not held back for these, so they fill
    /// all the room, and are not to take it from others: with many small flows none of them would be the fattest.
    fn most_wait_for_own_links(&self) -> bool {
        if self.vias.lanes() == 1 {
            return false;
        }
        let is_own = |lane| !self.vias.links_of(lane).is_empty();
        let queues = self.peers.iter().map(|(_, peer)| &peer.queues);
        match self.queued_frames > self.config.limits.queued_frames_max {
            true => queues.map(|of| of.frames_of(is_own)).sum::<usize>() * 2 > self.queued_frames,
            false => queues.map(|of| of.bytes_of(is_own)).sum::<usize>() * 2 > self.queued_bytes,
        }
    }

    /// Makes room at the cost of the flow that holds most, wherever it goes; `of_own_links`: of those that wait for links that a class
    /// names. `false`: of all that waits, pieces have left already.
    fn drop_from_fattest(&mut self, of_own_links: bool, now: Instant) -> bool {
        let vias = &self.vias;
        let may_lose = |lane| !of_own_links || !vias.links_of(lane).is_empty();
        let plain = self.plain.iter_mut();
        let plain = plain.map(|(link, queues)| (Destination::Plain(link), queues));
        let peers = self.peers.iter_mut();
        let peers = peers.map(|(slot, peer)| (Destination::Peer(slot), &mut peer.queues));
        let stations = self.dfap_stations.iter_mut();
        let stations = stations.map(|(slot, one)| (Destination::Station(slot), &mut one.queues));
        let sizes = plain
            .chain(stations)
            .chain(peers)
            .map(|(whose, queues)| (queues.fattest_bytes(may_lose), whose, queues));
        // Of equals the first: plain frames before those of peers.
        let fattest = sizes.reduce(|most, next| if next.0 > most.0 { next } else { most });
        let Some((_, whose, fattest)) = fattest else {
            return false;
        };
        let (pool, drops, spread) = (&mut self.pool, &mut self.counters.drops, &mut self.spread);
        let (mut frames, mut waiting, mut for_own_links) = (0, 0, 0);
        fattest.shed(may_lose, SHED_MAX, |frame| {
            frames += 1;
            waiting += frame.waiting();
            if !vias.links_of(frame.band.lane).is_empty() {
                for_own_links += frame.waiting();
            }
            drops.count(spread.on_dropped(&frame, DropReason::QueueFull));
            pool.give_back(frame.buffer);
        });
        let is_empty = fattest.is_empty();
        if is_empty && !self.holds_parcel(whose) {
            self.turns.leave(whose);
        }
        self.on_unqueued(frames, waiting);
        // Its flows have their part of what the host is let send, whatever their links take of it: the others' part would
        // else be measured too small.
        self.taken_bytes += for_own_links as u64;
        if let Destination::Peer(slot) = whose {
            self.go_on_with_lane_change(slot, now);
        }
        frames > 0
    }

    pub(super) fn on_unqueued(&mut self, frames: usize, bytes: usize) {
        self.queued_frames -= frames;
        self.queued_bytes -= bytes;
    }

    pub(super) fn remove_peer(&mut self, slot: usize, reason: PeerDownReason, now: Instant) {
        let Some(mut peer) = self.peers.remove(slot) else {
            return;
        };
        self.turns.leave(Destination::Peer(slot));
        self.stations.forget_node(peer.node_id);
        // It may be back soon: it takes a frame on any link, and copies are for those that may be anywhere.
        if let Some(path) = peer.paths.iter().min_by_key(|path| path.link) {
            self.stations
                .learn(peer.address, Place::Former(path.link), now);
        }
        self.ack_slots.retain(|s| *s != slot);
        self.direct_reports.retain(|(s, _)| *s != slot);
        self.drain.forget_peer(slot);
        self.forget_arrivals_of(slot);
        if peer.up {
            self.events.push_back(super::Event::PeerDown {
                node_id: peer.node_id,
                address: peer.address,
                reason,
            });
        }
        self.events.push_back(super::Event::MarksChanged);
        let later = peer.later.take().unwrap_or_default();
        self.forget_lane_change();
        let frames: Vec<QueuedFrame> = peer.queues.drain().chain(later).collect();
        for frame in frames {
            self.on_unqueued(1, frame.waiting());
            // Half of it may have been delivered as segments: the rest cannot go another way. And of a
            // frame for everybody, every other peer was given its own.
            if frame.sent > 0 || frame.header.destination.is_group() {
                self.drop_frame(frame.buffer, DropReason::PeerGone);
            } else {
                self.dispatch_again(frame, now);
            }
        }
        self.release_copies(&mut peer);
        self.counters.retire(&peer);
        self.publish_paths();
        self.step_drain(now);
    }
}

impl Engine {
    /// What a peer that leaves has sent and the host has not taken yet.
    fn forget_arrivals_of(&mut self, slot: usize) {
        if self
            .unpacking
            .as_ref()
            .is_some_and(|unpacking| unpacking.slot == slot)
        {
            let rest = self.unpacking.take().expect("looked at");
            self.drop_frame(rest.into_buffer(), DropReason::PeerGone);
        }
        for _ in 0..self.arrivals.len() {
            match self.arrivals.pop_front().expect("counted") {
                Arrival::Train {
                    from: (of, _),
                    buffer,
                    ..
                } if of == slot => self.drop_frame(buffer, DropReason::PeerGone),
                other => self.arrivals.push_back(other),
            }
        }
    }
}

/// Bytes of the largest frame that this becomes on a wire without offloads. A VLAN tag is left
/// out: links take it on top of their MTU (Linux: `packet_extra_vlan_len_allowed`).
pub(super) fn largest_on_wire(frame: &QueuedFrame) -> usize {
    let tag = match frame.header.ether_type {
        ether_type::VLAN => 4,
        _ => 0,
    };
    let bytes = match frame.offload.gso {
        Some(gso) => usize::from(gso.header_len) + usize::from(gso.segment_len),
        None => frame.buffer.len(),
    };
    bytes - tag
}
