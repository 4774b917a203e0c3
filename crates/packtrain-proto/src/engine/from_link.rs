//! Frames that arrive on a link, up to where they wait for their turn (`release.rs`).

use super::Engine;
use super::kinds::{kind_of, take_tag};
use super::to_host::Arrival;
use crate::buffer::Buffer;
use crate::config::LinkId;
use crate::direct::kinds::DirectKind;
use crate::duplicates::New;
use crate::gso;
use crate::offload::Offload;
use crate::peer_table::Owner;
use crate::segments::Standing;
use crate::station_table::Place;
use crate::stats::DropReason;
use crate::time::{Duration, Instant};
use crate::trunk::lane::{LANES_MAX, LaneId, TrainId};
use crate::trunk::resequencer::{Refused, Repairing};
use crate::wire::ethernet::{HEADER_LEN, Header, MacAddr, ether_type};
use crate::wire::subframe;
use crate::wire::train::{
    self, Fence, TYPE_HELLO, TYPE_LIVENESS, TYPE_STATION, Train, TrainError, TrainHeader,
};

/// Between two questions for a hello that names us.
const EPOCH_ASK_INTERVAL: Duration = Duration::from_millis(20);

impl From<TrainError> for DropReason {
    fn from(error: TrainError) -> DropReason {
        match error {
            TrainError::Truncated => DropReason::Truncated,
            TrainError::UnknownVersion => DropReason::UnknownVersion,
            TrainError::UnknownType => DropReason::UnknownType,
            TrainError::BadOption => DropReason::BadOption,
            TrainError::UnknownCriticalOption => DropReason::UnknownCriticalOption,
        }
    }
}

impl From<Refused> for DropReason {
    fn from(refused: Refused) -> DropReason {
        match refused {
            Refused::Duplicate => DropReason::Duplicate,
            Refused::Late => DropReason::Late,
            Refused::Jump => DropReason::SequenceJump,
            Refused::Full => DropReason::ResequencerFull,
        }
    }
}

impl Engine {
    /// A frame that arrived on `link`.
    pub fn handle_link_frame(
        &mut self,
        link: LinkId,
        mut frame: Buffer,
        offload: Offload,
        now: Instant,
    ) {
        let Some(known) = self.link_mut(link) else {
            return self.drop_frame(frame, DropReason::NoLink);
        };
        known.rx.count(frame.len());
        let (own_link, in_lag) = (known.state.address, known.settings.in_lag);
        // Before anything is given up for what stood in a socket all that time.
        self.forgive_own_lateness(now);
        let is_tagged = take_tag(&mut frame, self.config.direct_vlan);
        let Some(header) = Header::parse(&frame) else {
            return self.drop_frame(frame, DropReason::Runt);
        };
        let may_be_others = in_lag && header.destination != own_link;
        let meant = may_be_others.then(|| self.meant_link(header.destination));
        let meant = meant.flatten();
        let (link, own_link) = meant.unwrap_or((link, own_link));
        if header.ether_type == ether_type::PACKTRAIN {
            let for_us = header.destination == own_link || header.destination == MacAddr::HELLO;
            if !for_us {
                return self.drop_frame(frame, DropReason::NotForUs);
            }
            self.handle_message(link, (header, is_tagged), frame, now);
        } else if let Some(owner) = self.peers.owner_of_mark(header.source) {
            self.handle_marked(header.destination == own_link, owner, frame, offload, now);
        } else if self.is_aggregate(&header, &frame) {
            self.handle_aggregate(link, header, frame, now);
        } else {
            self.handle_plain(link, header, frame, offload, now);
        }
    }

    /// The link that a frame was for, and the address of it: where a switch takes several for one, what is for one of them comes
    /// by any.
    fn meant_link(&self, destination: MacAddr) -> Option<(LinkId, MacAddr)> {
        let mut in_lag = self.links.iter().filter(|link| link.settings.in_lag);
        let meant = in_lag.find(|link| link.state.address == destination);
        meant.map(|link| (link.id, destination))
    }

    fn handle_message(
        &mut self,
        link: LinkId,
        (header, is_tagged): (Header, bool),
        frame: Buffer,
        now: Instant,
    ) {
        match train::message_type(&frame[HEADER_LEN..]) {
            Err(error) => self.drop_frame(frame, error.into()),
            Ok(TYPE_HELLO) => {
                self.handle_hello(link, header.source, &frame[HEADER_LEN..], now);
                self.publish_paths();
                self.pool.give_back(frame);
            }
            Ok(TYPE_STATION) => {
                self.handle_station_message(link, header.source, &frame[HEADER_LEN..], now);
                self.pool.give_back(frame);
            }
            Ok(TYPE_LIVENESS) => {
                self.handle_liveness(link, header.source, &frame[HEADER_LEN..], now);
                self.pool.give_back(frame);
            }
            Ok(_) => {
                // By a direct mark comes what is said of direct frames.
                let by_link = self.peers.owner_of_link(header.source);
                let slot = by_link.map(|owner| owner.slot);
                match slot.or_else(|| self.peers.slot_of_direct_mark(header.source)) {
                    None => self.drop_frame(frame, DropReason::UnknownPeer),
                    Some(slot) => {
                        let by = match is_tagged {
                            true => DirectKind::Vlan,
                            false => kind_of(&frame, &self.peers),
                        };
                        self.handle_train(link, slot, by, frame, now);
                    }
                }
            }
        }
    }

    /// `by`: what a DIRECT in it has come by.
    fn handle_train(
        &mut self,
        link: LinkId,
        slot: usize,
        by: DirectKind,
        frame: Buffer,
        now: Instant,
    ) {
        let train = match Train::parse(&frame[HEADER_LEN..]) {
            Ok(train) => train,
            Err(error) => return self.drop_frame(frame, error.into()),
        };
        let peer = self
            .peers
            .get_mut(slot)
            .expect("the index names peers that exist");
        let head = train.header;
        peer.last_heard = now;
        peer.forgive_lateness(now);
        let session = peer.remote_incarnation();
        if session != Some(head.incarnation) {
            let reason = match session {
                None => DropReason::UnknownPeer,
                Some(_) => DropReason::StaleIncarnation,
            };
            self.ask_epoch(link, slot, now);
            return self.drop_frame(frame, reason);
        }
        let lane = LaneId(head.lane);
        if lane.place() >= LANES_MAX {
            return self.drop_frame(frame, DropReason::BadLane);
        }
        let own_incarnation = peer.incarnation(self.config.node_id);
        let mut has_error_news = false;
        for ack in train.acks() {
            if ack.incarnation != own_incarnation {
                self.counters.drops.count(DropReason::StaleIncarnation);
                continue;
            }
            let (copies, pool) = (&mut self.copies, &mut self.pool);
            let (repairs, is_alone) = (peer.lanes_repaired(), peer.paths.len() == 1);
            let longest = match repairs.is_empty() {
                true => Duration::ZERO,
                false => peer.longest_round_trip(),
            };
            let mut arrived = Vec::new();
            let taken = match peer.path_mut(LinkId(ack.link)) {
                None => Ok(false), // a link that has left since
                Some(path) => {
                    let release = &mut |copy| copies.release(copy, pool);
                    path.flight.set_repairs(repairs, longest, is_alone);
                    let taken = path.flight.on_ack(&ack, now, release);
                    arrived = path.flight.take_arrived_again();
                    if taken == Ok(true) {
                        path.silent = None;
                    }
                    if let (Ok(true), Some(mtu)) = (taken, &mut path.mtu) {
                        mtu.on_passed(path.flight.longest_arrived());
                    }
                    if path.flight.take_long_lost() {
                        path.doubt_mtu(now);
                    }
                    has_error_news |= path.flight.has_error_news(now);
                    taken
                }
            };
            self.copies
                .forget_arrived(peer, arrived.into_iter(), &mut self.pool);
            if taken.is_ok() {
                peer.last_confirmed = now;
                peer.lower_fences(&ack);
                if peer
                    .join
                    .as_ref()
                    .is_some_and(|join| join.is_answered_by(&ack))
                {
                    peer.end_join();
                }
                self.drain.on_ack(slot, &ack);
            } else {
                self.counters.drops.count(DropReason::BadAck);
            }
        }
        peer.hear_lane(lane, head.train_sequence, &self.config.limits);
        self.repair_missing(slot, now);
        if has_error_news {
            self.follow_sizes(slot, now);
        }
        self.step_drain(now);
        if let Some(report) = train.direct_report() {
            self.on_direct_report((slot, link), by, &report, now);
        }
        for fence in train.fences() {
            self.on_fence((slot, lane), &fence, now);
        }
        for behind in train.behind() {
            if let Some(peer) = self.peers.get_mut(slot) {
                peer.wait_behind(lane, &behind, now);
            }
        }
        self.note_life(slot, link, LinkId(head.link), now);
        let is_of_way = |fence: Fence| fence.link == head.link && fence.remote_link == link.0;
        let says_fence = train.fences().any(is_of_way);
        let way = (link, LinkId(head.link));
        self.note_train_at_fence((slot, way), (frame.len(), says_fence), now);
        let peer = self.peers.get_mut(slot).expect("it was there");
        let by = LinkId(head.link);
        peer.last_arrival = link;
        if !head.replay {
            // Of what went again, what it tells is long past.
            let told = train
                .newest()
                .map(|newest| (LinkId(newest.link), newest.train));
            let order = &mut peer.rx_mut(lane).resequencer;
            let repairs = Repairing::of_flags(head.repairs, head.lossless);
            let says = (repairs, train.kept_from());
            order.on_told(head.train_sequence, told, says, now);
        }
        if head.marker {
            let order = &mut peer.rx_mut(lane).resequencer;
            order.note(by, head.train_sequence, now);
            if head.ack_now {
                self.say_again(slot, head.link);
            }
            self.counters.trains_rx.markers += 1;
            self.pool.give_back(frame);
            return self.release_trains(slot, now);
        }
        let subframes_at = HEADER_LEN + train.subframes_at;
        let order = &mut peer.rx_mut(lane).resequencer;
        if order.is_untouched() {
            match train.kept_from() {
                // It tells not with which train the lane begins. It comes once more.
                None if head.lossless => {
                    return self.drop_frame(frame, DropReason::UnknownPeer);
                }
                from => order.begin(Repairing::of_flags(head.repairs, head.lossless), from),
            }
        }
        // A probe is acknowledged in its turn, for what came before it. And what is lossless when it has its place, or had it.
        let owes_receipt = subframe::has_any(&frame[subframes_at..]);
        let has_no_place_yet = || {
            let peer = self.peers.get(slot).expect("it was there");
            let expected = peer.rx_of(lane).resequencer.expected();
            head.train_sequence.distance_from(expected) >= 0
        };
        let owes_later = owes_receipt && head.lossless && has_no_place_yet();
        if owes_receipt && !owes_later {
            self.owe_receipt(slot, &head, now);
        }
        let id = TrainId {
            lane,
            sequence: head.train_sequence,
        };
        self.make_room_behind_fences(slot, (id, frame.capacity()), now);
        let peer = self.peers.get_mut(slot).expect("it was there");
        // Who holds nothing may hold one: that starts the wait for its gap, and so the end of it.
        let in_turn = head.train_sequence == peer.rx_of(lane).resequencer.expected();
        let holds = peer.holds_trains();
        // The bound of a peer holds for all its lanes together.
        let bytes_max = self.config.limits.resequencer_bytes_max;
        if holds && !in_turn && peer.held_bytes() + frame.capacity() > bytes_max {
            self.make_room_in_lanes(slot, frame.capacity(), now);
        }
        let peer = self.peers.get_mut(slot).expect("it was there");
        let holds = peer.holds_trains();
        let in_turn = head.train_sequence == peer.rx_of(lane).resequencer.expected();
        let is_full = peer.held_bytes() + frame.capacity() > bytes_max
            || head.lossless && peer.lossless_bytes() + frame.capacity() > bytes_max / 2;
        if holds && !in_turn && (is_full || self.resequencers_are_full()) {
            return self.drop_frame(frame, DropReason::ResequencerFull);
        }
        let peer = self.peers.get_mut(slot).expect("it was there");
        // Of what went again, the way tells nothing; and by one link nothing is overtaken.
        if !head.replay && peer.paths.len() > 1 {
            let gap_since = peer.rx_of(lane).resequencer.gap_since();
            let waited_since = gap_since.filter(|_| in_turn);
            let later = waited_since.map_or(Duration::ZERO, |since| now.since(since));
            peer.receipts_of(head.link).on_later(later, now);
        }
        let order = &mut peer.rx_mut(lane).resequencer;
        let inserted = order.insert(
            head.train_sequence,
            (!head.replay).then_some(by),
            frame,
            subframes_at,
            now,
        );
        let discarded = std::mem::take(&mut order.discarded);
        self.counters
            .drops
            .count_many(DropReason::SequenceJump, discarded);
        let has_place = !matches!(inserted, Err((_, Refused::Full | Refused::Jump)));
        if owes_later && has_place {
            self.owe_receipt(slot, &head, now);
        }
        match inserted {
            Ok(()) => {
                self.counters.trains_rx.trains += 1;
                if let Some(link) = self.link_mut(link) {
                    link.trains_rx += 1;
                }
                self.release_trains(slot, now);
            }
            Err((frame, refused)) => self.drop_frame(frame, refused.into()),
        }
    }

    /// A train has arrived, and is to be acknowledged.
    pub(super) fn owe_receipt(&mut self, slot: usize, head: &TrainHeader, arrived: Instant) {
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        peer.receipts_of(head.link)
            .on_train(head.link_sequence, head.ack_now, arrived);
        let listed = std::mem::replace(&mut peer.ack_listed, true);
        if !listed {
            self.ack_slots.push(slot);
        }
    }

    /// What was acknowledged of this link may be lost: its sender asks.
    fn say_again(&mut self, slot: usize, link: u8) {
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        peer.receipts_of(link).take_back();
        if !std::mem::replace(&mut peer.ack_listed, true) {
            self.ack_slots.push(slot);
        }
    }

    pub(super) fn resequencers_are_full(&self) -> bool {
        let lanes = self.peers.iter().flat_map(|(_, peer)| &peer.rx);
        let held = lanes.map(|lane| lane.resequencer.held_bytes());
        held.sum::<usize>() >= self.config.limits.resequencer_bytes_total_max
    }

    /// A train that is not of the row that the peer's last hello to us named: it was under way for
    /// long, or for our former life, or that hello was lost. For then it is asked for.
    pub(super) fn ask_epoch(&mut self, link: LinkId, slot: usize, now: Instant) {
        let peer = self.peers.get_mut(slot).expect("the caller has looked");
        let asked = peer.epoch_asked;
        let due = asked.is_none_or(|at| now.since(at) >= EPOCH_ASK_INTERVAL);
        if due && self.greeter.may_answer(now) {
            peer.epoch_asked = Some(now);
            self.send_hello(link, Some(slot), true, false, now);
        }
    }

    fn handle_marked(
        &mut self,
        for_us: bool,
        owner: Owner,
        mut frame: Buffer,
        offload: Offload,
        now: Instant,
    ) {
        if !for_us {
            return self.drop_frame(frame, DropReason::NotForUs);
        }
        let peer = self
            .peers
            .get_mut(owner.slot)
            .expect("the index names peers that exist");
        peer.last_heard = now;
        frame[0..6].copy_from_slice(&self.config.address.0);
        frame[6..12].copy_from_slice(&peer.address.0);
        if frame.len() == HEADER_LEN {
            return self.drop_frame(frame, DropReason::Runt);
        }
        if !offload.is_none() && gso::check(&frame, &offload).is_err() {
            return self.drop_frame(frame, DropReason::BadGso);
        }
        self.counters.trains_rx.marked += 1;
        self.queue_unsequenced(owner.slot, (frame, offload), true, now);
    }

    fn handle_plain(
        &mut self,
        link: LinkId,
        header: Header,
        frame: Buffer,
        offload: Offload,
        now: Instant,
    ) {
        let Header {
            destination,
            source,
            ..
        } = header;
        // Of a link that settles it is not known yet whether what leaves by another one comes back there, also of those behind us.
        let may_come_back = || {
            self.segments.standing(link) == Standing::Settling
                && destination != self.config.address
                && self.stations_behind.contains(source)
        };
        if source == self.config.address || may_come_back() {
            return self.drop_frame(frame, DropReason::OwnEcho);
        }
        let own_link = self.link(link).map(|known| known.state.address);
        if Some(destination) == own_link && destination != self.config.address {
            // The link's own traffic, never `pt0`'s, even when that takes all that passes. Or a
            // frame as it is, of a peer that we do not know (yet, or any more).
            let reason = if source.is_local() && !source.is_group() {
                DropReason::BadMark
            } else {
                DropReason::NotForUs
            };
            return self.drop_frame(frame, reason);
        }
        let for_all = destination.is_group() || self.config.promiscuous;
        let for_us = destination == self.config.address;
        let wanted = for_us || (for_all && self.takes_for_all(link, source, destination));
        if frame.len() == HEADER_LEN || !(for_us || for_all) {
            return self.drop_frame(frame, DropReason::NotForUs);
        }
        if !offload.is_none() && gso::check(&frame, &offload).is_err() {
            return self.drop_frame(frame, DropReason::BadGso);
        }
        let new = self.look_for_copies(&frame, &offload, source, (link, wanted), now);
        if !wanted {
            return self.drop_frame(frame, DropReason::NotForUs);
        }
        if new == New::Nothing {
            return self.drop_frame(frame, DropReason::Duplicate);
        }
        // Group frames go in no train; what a peer sends to one host may have, until now.
        let of_peer = match self.stations.find(source) {
            _ if destination.is_group() => None,
            Some(Place::Peer(node_id)) => self.peers.slot_of_node(node_id),
            _ => self.peers.slot_of_address(source),
        };
        // A peer's link may have traffic of its own: that makes it no host without packtrain.
        let is_peers =
            self.peers.is_peer_address(source) || self.peers.owner_of_link(source).is_some();
        if !is_peers {
            let place = Place::Plain(self.segments.place_of(link));
            self.stations_moved |= self.waits_for_settling(source);
            self.stations_moved |= if destination.is_group() {
                self.stations.learn(source, place, now)
            } else {
                self.stations.learn_from_unicast(source, place, now)
            };
        }
        self.counters.trains_rx.plain += 1;
        let New::Segments(runs) = new else {
            return self.take_plainly(of_peer, source, (frame, offload), now);
        };
        for run in runs {
            let mut part = self.pool.take(frame.len());
            let cut = gso::slice(&frame, &offload, run.start, run.len(), &mut part);
            let offload = cut.expect("checked above");
            self.take_plainly(of_peer, source, (part, offload), now);
        }
        self.drop_frame(frame, DropReason::Duplicate);
    }

    /// To the host, or behind what a peer has sent before in trains.
    fn take_plainly(
        &mut self,
        of_peer: Option<usize>,
        source: MacAddr,
        (buffer, offload): (Buffer, Offload),
        now: Instant,
    ) {
        if let Some(slot) = of_peer {
            return self.queue_unsequenced(slot, (buffer, offload), false, now);
        }
        self.arrivals
            .push_back(match self.peers.slot_of_address(source) {
                Some(slot) => Arrival::AsItIs {
                    slot,
                    is_marked: false,
                    buffer,
                    offload,
                },
                None => Arrival::Frame { buffer, offload },
            });
    }
}
