//! Aggregates of the DFAP paper: to stations that take them, from these, and how they are known.
//!
//! To the network, a station that takes aggregates is a host without packtrain: it has one address, `pt0`'s, and its
//! frames leave plainly by the home link of its segment. So an aggregate is a plain frame, too, of which no
//! sequence is told and no copy is kept.

use super::from_host::largest_on_wire;
use super::to_host::Arrival;
use super::transmit::Outgoing;
use super::{Engine, Event};
use crate::aggregator::finish_checksum;
use crate::buffer::Buffer;
use crate::config::{LinkId, Mode};
use crate::data_units::packets_of_1500;
use crate::dfap::best_fit::can_ride;
use crate::dfap::stations::Heard;
use crate::duplicates::New;
use crate::link::TRAIN_MTU_MIN;
use crate::offload::Offload;
use crate::queue::drr::Signal;
use crate::queue::frame::QueuedFrame;
use crate::station_table::Place;
use crate::stats::{DropReason, FlushReason};
use crate::time::Instant;
use crate::turns::Destination;
use crate::wire::dfap::{self, Aggregate, DfapError};
use crate::wire::ethernet::{HEADER_LEN, Header, MacAddr, ether_type};
use crate::wire::station::{StationError, StationMessage};

impl From<DfapError> for DropReason {
    fn from(error: DfapError) -> DropReason {
        match error {
            DfapError::Truncated => DropReason::Truncated,
            DfapError::NoPackets | DfapError::BadOffset | DfapError::BadType => {
                DropReason::BadAggregate
            }
        }
    }
}

impl From<StationError> for DropReason {
    fn from(error: StationError) -> DropReason {
        match error {
            StationError::Truncated => DropReason::Truncated,
            StationError::UnknownVersion => DropReason::UnknownVersion,
            StationError::UnknownType => DropReason::UnknownType,
            StationError::BadEtherType(_) | StationError::BadAddress(_) => DropReason::BadHello,
        }
    }
}

impl Engine {
    /// Whether a plain frame waits among those for a station that takes aggregates, and for which one. Frames of
    /// stations behind us do not: an aggregate has one source.
    pub(super) fn aggregating_station(&self, frame: &QueuedFrame) -> Option<usize> {
        if self.dfap_stations.is_empty()
            || frame.copy.is_some()
            || frame.header.source != self.config.address
        {
            return None;
        }
        self.dfap_stations.slot_of(frame.header.destination)
    }

    /// Whether frames for such stations wait for this home link.
    pub(super) fn stations_wait_for(&self, link: LinkId) -> bool {
        let mut stations = self.dfap_stations.iter();
        stations.any(|(_, station)| station.home == link && !station.is_empty())
    }

    /// One frame as it is, or several in an aggregate.
    pub(super) fn take_for_station(
        &mut self,
        slot: usize,
        at: usize,
        now: Instant,
    ) -> Option<Outgoing> {
        let aqm = self.aqm();
        let (link, frame_max) = (self.links[at].id, self.links[at].frame_max());
        let aggregates = self.waiting.aggregates();
        let order = self.config.dfap.order;
        let station = self.dfap_stations.get_mut(slot)?;
        let data_max = station.data_max(frame_max - HEADER_LEN);
        let before = station.waiting();
        let ended_by = station.queues.wait_ended_by(now);
        let (queues, fit) = (&mut station.queues, &mut station.fit);
        let (pool, drops) = (&mut self.pool, &mut self.counters.drops);
        let marked = &mut self.counters.marked;
        // In hand already when the link's MTU changed.
        let mut too_long = fit.take_back(|frame| largest_on_wire(frame) > frame_max);
        let take = || {
            loop {
                let flow = queues.select(now, &aqm, frame_max, &mut |signal| match signal {
                    Signal::Marked => *marked += 1,
                    Signal::Dropped(frame) => {
                        drops.count(DropReason::Codel);
                        pool.give_back(frame.buffer);
                    }
                })?;
                let mut frame = queues.pop(flow);
                queues.charge(flow, frame.buffer.len());
                if largest_on_wire(&frame) > frame_max {
                    // The link's MTU has changed since it was queued.
                    too_long.push(frame);
                    continue;
                }
                if can_ride(&frame, data_max) {
                    finish_checksum(&mut frame);
                }
                return Some(frame);
            }
        };
        let sent = match aggregates {
            true => fit.next(data_max, order, take),
            false => fit.next_alone(data_max, take),
        };
        let mut sent = std::mem::take(sent);
        let outer = Header {
            destination: station.address,
            source: self.config.address,
            ether_type: station.ether_type,
        };
        let bytes: usize = sent.iter().map(|frame| frame.buffer.len()).sum();
        if !sent.is_empty() {
            station.queues.note_train(bytes, HEADER_LEN + data_max, now);
        }
        let after = station.waiting();
        let is_over = station.is_empty();
        self.on_taken(before.0 - after.0, before.1 - after.1);
        for frame in too_long {
            self.refuse_for_plain(frame, frame_max, now);
        }
        let (frame, outgoing) = match sent.len() {
            0 => return None,
            1 => {
                self.counters.trains_tx.plain += 1;
                let frame = sent.pop().expect("there is one");
                self.note_left(&frame, now);
                let units = &mut self.counters.data_units;
                units.on_frame(&frame.buffer, &frame.offload);
                let len = frame.buffer.len();
                let outgoing = Outgoing::plain(link, frame.offload, len);
                (frame.buffer, outgoing)
            }
            count => {
                let tx = &mut self.counters.trains_tx;
                tx.aggregates += 1;
                tx.aggregated += count as u64;
                let ended = ended_by.unwrap_or(FlushReason::IdleLink);
                let reason = if is_over { ended } else { FlushReason::Full };
                self.counters.flushes.count(reason);
                let bytes = sent.iter().map(|frame| frame.payload().len()).sum();
                let len = HEADER_LEN + dfap::data_len(count, bytes);
                let mut buffer = self.pool.take(len);
                let packets = sent.iter().map(|f| (f.header.ether_type, f.payload()));
                dfap::emit(&mut buffer, &outer, packets);
                self.note_train(count, len, HEADER_LEN + data_max);
                self.counters.data_units.on_train();
                for frame in sent.drain(..) {
                    self.note_left(&frame, now);
                    let units = &mut self.counters.data_units;
                    units.packets_of_1500 += packets_of_1500(&frame.buffer, &frame.offload);
                    self.pool.give_back(frame.buffer);
                }
                (buffer, Outgoing::aggregate(link, len))
            }
        };
        self.links[at].on_plain(frame.len());
        self.outgoing = Some(frame);
        let station = self.dfap_stations.get_mut(slot)?;
        station.fit.recycle(sent);
        Some(outgoing)
    }

    /// Whether a frame that has come is an aggregate for us. Somebody may know the type as something else's, but for
    /// the one by which we know aggregates where we speak nothing else: so of who is not known to send any, it has to
    /// look like one to the byte. One of a single packet, which is easily taken for one, nobody sends.
    pub(super) fn is_aggregate(&self, header: &Header, frame: &[u8]) -> bool {
        if !dfap::is_aggregate_type(header.ether_type) || header.destination != self.config.address
        {
            return false;
        }
        let config = &self.config;
        let is_ours = config.mode == Mode::Dfap && config.dfap.ether_type == header.ether_type;
        let is_known = || self.dfap_stations.slot_of(header.source).is_some();
        let looks_like_one = || {
            let aggregate = Aggregate::parse(&frame[HEADER_LEN..]);
            aggregate.is_ok_and(|aggregate| aggregate.len() > 1)
        };
        is_ours || is_known() || looks_like_one()
    }

    pub(super) fn handle_aggregate(
        &mut self,
        link: LinkId,
        header: Header,
        frame: Buffer,
        now: Instant,
    ) {
        let source = header.source;
        if source == self.config.address {
            return self.drop_frame(frame, DropReason::OwnEcho);
        }
        if source.is_group() || source.is_zero() {
            return self.drop_frame(frame, DropReason::BadAggregate);
        }
        let packets = match Aggregate::parse(&frame[HEADER_LEN..]) {
            Ok(aggregate) => aggregate.len(),
            Err(error) => return self.drop_frame(frame, error.into()),
        };
        if self.look_for_copies(&frame, &Offload::NONE, source, (link, true), now) != New::All {
            return self.drop_frame(frame, DropReason::Duplicate);
        }
        self.note_plain_station(source, link, now);
        // Who sends one takes one, as long as that.
        let sends = Heard::Sends {
            ether_type: header.ether_type,
            data_len: u16::try_from(frame.len() - HEADER_LEN).unwrap_or(u16::MAX),
        };
        self.learn_aggregating(source, sends, now);
        let rx = &mut self.counters.trains_rx;
        rx.aggregates += 1;
        rx.aggregated += packets as u64;
        self.arrivals
            .push_back(Arrival::Aggregate { buffer: frame });
    }

    fn learn_aggregating(&mut self, address: MacAddr, kind: Heard, now: Instant) {
        let limits = &self.config.limits;
        let time = match kind {
            // It does so again and again.
            Heard::Says { .. } => limits.peer_silence_max,
            Heard::Sends { .. } => limits.station_age_max,
        };
        if self.dfap_stations.learn(address, kind, now + time) {
            // What waits plainly for it goes before what comes now.
            self.stations_moved = true;
            self.events.push_back(Event::StationUp { address });
        }
    }

    /// Those that speak no trains are told of `pt0`, once on each segment; or that it leaves.
    pub(super) fn greet_stations(&mut self, goodbye: bool) {
        for at in 0..self.segments.heads().len() {
            let home = self.segments.heads()[at];
            self.say_station(home, MacAddr::HELLO, goodbye, true);
        }
    }

    fn say_station(&mut self, link: LinkId, destination: MacAddr, goodbye: bool, answer: bool) {
        let Some(known) = self.link(link).filter(|link| link.carries_trains()) else {
            return;
        };
        let outer = Header {
            destination,
            source: known.state.address,
            ether_type: ether_type::PACKTRAIN,
        };
        let said = StationMessage {
            goodbye,
            answer,
            ether_type: self.config.dfap.ether_type,
            line_id: self.config.line_id,
            address: self.config.address,
            mtu: known.state.mtu,
        };
        let mut message = self.pool.copy_of(&outer.to_bytes());
        said.emit(&mut message);
        self.post(link, message);
    }

    pub(super) fn handle_station_message(
        &mut self,
        link: LinkId,
        from: MacAddr,
        message: &[u8],
        now: Instant,
    ) {
        let said = match StationMessage::parse(message) {
            Ok(said) => said,
            Err(error) => return self.counters.drops.count(error.into()),
        };
        let is_ours = self.links.iter().any(|link| link.is_named(from));
        if said.address == self.config.address || is_ours {
            return self.counters.drops.count(DropReason::OwnEcho);
        }
        if said.line_id != self.config.line_id {
            return self.counters.drops.count(DropReason::OtherLine);
        }
        if said.mtu < TRAIN_MTU_MIN {
            return self.counters.drops.count(DropReason::BadHello);
        }
        if said.goodbye {
            return self.forget_station(said.address, now);
        }
        self.note_plain_station(said.address, link, now);
        let StationMessage {
            ether_type, mtu, ..
        } = said;
        self.learn_aggregating(said.address, Heard::Says { ether_type, mtu }, now);
        // In our mode we say it to all, again and again.
        if said.answer && self.config.mode == Mode::Trains && self.greeter.may_answer(now) {
            self.say_station(link, from, false, false);
        }
    }

    pub(super) fn expire_aggregating(&mut self, now: Instant) {
        while let Some(address) = self.dfap_stations.expired(now) {
            self.forget_station(address, now);
        }
    }

    /// What waits for it goes on plainly.
    fn forget_station(&mut self, address: MacAddr, now: Instant) {
        let Some((slot, mut station)) = self.dfap_stations.forget(address) else {
            return;
        };
        self.turns.leave(Destination::Station(slot));
        for frame in station.drain() {
            self.on_unqueued(1, frame.waiting());
            self.dispatch(frame, now);
        }
        self.events.push_back(Event::StationDown { address });
    }

    /// Takes out all that waits for stations that take aggregates.
    pub(super) fn drain_stations(&mut self) -> Vec<(LinkId, QueuedFrame)> {
        let mut all = Vec::new();
        for (slot, station) in self.dfap_stations.iter_mut() {
            self.turns.leave(Destination::Station(slot));
            let home = station.home;
            all.extend(station.drain().into_iter().map(|frame| (home, frame)));
        }
        all
    }

    /// … by this home link.
    pub(super) fn drain_stations_of(&mut self, link: LinkId) -> Vec<QueuedFrame> {
        let mut all = Vec::new();
        for (slot, station) in self.dfap_stations.iter_mut() {
            if station.home == link {
                self.turns.leave(Destination::Station(slot));
                all.extend(station.drain());
            }
        }
        all
    }

    /// Frames of it are on their way into an aggregate, and in no queue any more.
    pub(super) fn holds_parcel(&self, destination: Destination) -> bool {
        match destination {
            Destination::Station(slot) => {
                let station = self.dfap_stations.get(slot);
                station.is_some_and(|station| station.fit.frames() > 0)
            }
            Destination::Peer(_) | Destination::Plain(_) => false,
        }
    }

    /// It is there, plainly, unless it is known to be a peer's.
    fn note_plain_station(&mut self, address: MacAddr, link: LinkId, now: Instant) {
        if !self.peers.is_peer_address(address) {
            let place = Place::Plain(self.segments.place_of(link));
            self.stations_moved |= self.waits_for_settling(address);
            self.stations_moved |= self.stations.learn_from_unicast(address, place, now);
        }
    }
}
