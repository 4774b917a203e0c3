//! What has its place in the order, taken apart and given to the host.

use std::ops::Range;

use super::{Delivery, Engine, PeerDownReason};
use crate::buffer::{Buffer, LARGE_CAPACITY};
use crate::config::NodeId;
use crate::gso;
use crate::offload::Offload;
use crate::peer::Peer;
use crate::peer_table::PeerTable;
use crate::reassembly::{Complete, Output, Reassembly};
use crate::station_table::Place;
use crate::stats::DropReason;
use crate::time::Instant;
use crate::trunk::lane::{LaneId, LaneRx};
use crate::wire::coded::{CodedError, Coding};
use crate::wire::dfap::Aggregate;
use crate::wire::ethernet::{HEADER_LEN, Header};
use crate::wire::subframe::{self, Subframe, SubframeError};
use crate::wire::train::{self, Train};

/// On its way to the host.
#[derive(Debug)]
pub(super) enum Arrival {
    /// A train, unpacked while the host takes it. `at`: its first subframe.
    Train {
        from: (usize, LaneId),
        buffer: Buffer,
        at: usize,
        after_gap: bool,
        arrived: Instant,
    },
    /// Trains of this lane were given up: of frames under way there, what is complete comes now.
    Gap { from: (usize, LaneId) },
    /// A frame of this peer outside its trains: with its mark, or plain.
    AsItIs {
        slot: usize,
        is_marked: bool,
        buffer: Buffer,
        offload: Offload,
    },
    /// An aggregate, unpacked while the host takes it.
    Aggregate { buffer: Buffer },
    /// A plain one of anybody else.
    Frame { buffer: Buffer, offload: Offload },
    /// This peer leaves, after all that came of it before.
    Goodbye { slot: usize, node_id: NodeId },
}

/// An aggregate that is being taken apart.
#[derive(Debug)]
pub(super) struct Unbundling {
    buffer: Buffer,
    next: usize,
}

/// A train that is being taken apart. `at`: the next subframe.
#[derive(Debug)]
pub(super) struct Unpacking {
    pub(super) slot: usize,
    lane: LaneId,
    buffer: Buffer,
    at: usize,
}

impl Unpacking {
    pub(super) fn into_buffer(self) -> Buffer {
        self.buffer
    }
}

impl From<SubframeError> for DropReason {
    fn from(error: SubframeError) -> DropReason {
        match error {
            SubframeError::Truncated => DropReason::Truncated,
            SubframeError::Empty => DropReason::SubframeEmpty,
            SubframeError::Nested => DropReason::Nested,
            SubframeError::UnknownGso => DropReason::BadGso,
            SubframeError::Unknown
            | SubframeError::NoEtherType
            | SubframeError::PieceIsWhole
            | SubframeError::PieceWithHeader
            | SubframeError::PieceBeyond => DropReason::BadSubframe,
        }
    }
}

impl Engine {
    /// The next frame for the host.
    pub fn poll_delivery(&mut self, now: Instant) -> Option<Delivery<'_>> {
        let used = self.delivering.take();
        self.recycle(used);
        match self.keeps_back() {
            true => self.poll_unkept(now),
            false => self.poll_any(now),
        }
    }

    pub(super) fn poll_any(&mut self, now: Instant) -> Option<Delivery<'_>> {
        loop {
            if let Some(Complete { frame, offload }) = self.complete.pop_front() {
                return Some(self.lend_frame(frame, offload));
            }
            if let Some(payload) = self.unbundle_one() {
                let unbundling = self.unbundling.as_ref().expect("a frame came from it");
                self.counters.host_tx.count(HEADER_LEN + payload.len());
                return Some(Delivery {
                    head: &self.delivery_head,
                    body: &unbundling.buffer[payload],
                    offload: Offload::NONE,
                });
            }
            if self.unpacking.is_none() {
                match self.arrivals.pop_front()? {
                    Arrival::Aggregate { buffer } => {
                        self.unbundling = Some(Unbundling { buffer, next: 0 });
                        continue;
                    }
                    Arrival::Gap { from } => {
                        self.on_gap(from);
                        continue;
                    }
                    Arrival::Frame { buffer, offload } => {
                        return Some(self.lend_frame(buffer, offload));
                    }
                    Arrival::AsItIs {
                        slot,
                        is_marked,
                        buffer,
                        offload,
                    } => {
                        self.release_segments_before(slot, &buffer, is_marked);
                        self.complete.push_back(Complete {
                            frame: buffer,
                            offload,
                        });
                        continue;
                    }
                    Arrival::Train {
                        from,
                        buffer,
                        at,
                        after_gap,
                        arrived,
                    } => {
                        if after_gap {
                            self.on_gap(from);
                        }
                        if !subframe::has_any(&buffer[at..]) {
                            if self.keeps_back() {
                                self.keep_probe(from.0, buffer, arrived, now);
                                continue;
                            }
                            self.on_probe(from.0, &buffer, arrived);
                            self.pool.give_back(buffer);
                            continue;
                        }
                        self.unpacking = self.unpacked(from, buffer, at);
                        continue;
                    }
                    Arrival::Goodbye { slot, node_id } => {
                        if self.peers.slot_of_node(node_id) == Some(slot) {
                            self.remove_peer(slot, PeerDownReason::Goodbye, now);
                        }
                        continue;
                    }
                }
            }
            if let Some(payload) = self.unpack_one(now) {
                let unpacking = self.unpacking.as_ref().expect("a frame came from it");
                self.counters.host_tx.count(HEADER_LEN + payload.len());
                return Some(Delivery {
                    head: &self.delivery_head,
                    body: &unpacking.buffer[payload],
                    offload: Offload::NONE,
                });
            }
        }
    }

    /// A train whose turn it is, restored if it is coded. `None`: it does not restore, and is counted.
    fn unpacked(
        &mut self,
        (slot, lane): (usize, LaneId),
        buffer: Buffer,
        at: usize,
    ) -> Option<Unpacking> {
        if !train::is_coded(&buffer[HEADER_LEN..]) {
            return Some(Unpacking {
                slot,
                lane,
                buffer,
                at,
            });
        }
        let mut plain = self.pool.take(LARGE_CAPACITY);
        let restored = self.restorer.restore(&buffer[at..], plain.room_mut());
        let by_dictionary = buffer.get(at) == Some(&Coding::Zstd.to_byte());
        self.pool.give_back(buffer);
        match restored {
            Ok(len) => {
                self.counters.coding.coded_rx += 1;
                self.counters.coding.dictionary_rx += u64::from(by_dictionary);
                plain.set_len(len);
                Some(Unpacking {
                    slot,
                    lane,
                    buffer: plain,
                    at: 0,
                })
            }
            Err(error) => {
                self.counters.drops.count(match error {
                    CodedError::UnknownCoding => DropReason::CodedUnknown,
                    _ => DropReason::CodedDamaged,
                });
                self.pool.give_back(plain);
                // It has come in its turn, and what was in it never will.
                self.on_gap((slot, lane));
                None
            }
        }
    }

    /// Everything before it in the order was given to the host, or is in `complete` now: the host has
    /// it before this is acknowledged, for deliveries come before transmits. Of a frame that lost
    /// pieces, the gap has let out what was complete.
    pub(super) fn on_probe(&mut self, slot: usize, message: &[u8], arrived: Instant) {
        let session = self.peers.get(slot).and_then(Peer::remote_incarnation);
        match Train::parse(&message[HEADER_LEN..]) {
            // Else it is of a row of sequences that has ended since.
            Ok(train) if Some(train.header.incarnation) == session => {
                self.owe_receipt(slot, &train.header, arrived);
            }
            _ => {}
        }
    }

    fn on_gap(&mut self, (slot, lane): (usize, LaneId)) {
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        // The lane may be one of a row of sequences that has ended since.
        let Some(rx) = peer.rx.get_mut(lane.place()) else {
            return;
        };
        rx.reassembly.on_gap(&mut Output {
            pool: &mut self.pool,
            complete: &mut self.complete,
            drops: &mut self.counters.drops,
        });
    }

    /// A frame as it is of a flow that has one under way in pieces: its last pieces were lost, for
    /// a flow's frames leave one after the other. What is complete of it comes first. So it is with a mark, that
    /// is sent by an only link. A plain frame of a peer that has several links, or had, was flooded on another
    /// one: it may have left after the last pieces, or long before the first.
    fn release_segments_before(&mut self, slot: usize, frame: &[u8], is_marked: bool) {
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        let mut lanes = peer.rx.iter();
        let names_links = lanes.any(|lane| lane.resequencer.names_links());
        let has_several_links = peer.paths.len() > 1 || names_links;
        let has_frames = peer.rx.iter().any(|lane| lane.reassembly.frames() > 0);
        if !has_frames || (has_several_links && !is_marked) {
            return;
        }
        let flow = self.classifier.flow_hash(frame);
        let classifier = &self.classifier;
        let mut out = Output {
            pool: &mut self.pool,
            complete: &mut self.complete,
            drops: &mut self.counters.drops,
        };
        for lane in &mut peer.rx {
            lane.reassembly
                .on_end_of(|other| classifier.flow_hash(other) == flow, &mut out);
        }
    }

    fn lend_frame(&mut self, frame: Buffer, offload: Offload) -> Delivery<'_> {
        self.counters.host_tx.count(frame.len());
        self.lend(frame, offload)
    }

    pub(super) fn lend(&mut self, frame: Buffer, offload: Offload) -> Delivery<'_> {
        let frame = self.delivering.insert(frame);
        let (head, body) = frame.split_at(HEADER_LEN);
        Delivery {
            head,
            body,
            offload,
        }
    }

    /// Takes one packet off the aggregate that is being taken apart: its header is in `delivery_head` then. Each is
    /// the very frame that it would have been alone.
    fn unbundle_one(&mut self) -> Option<Range<usize>> {
        let Unbundling { buffer, next } = self.unbundling.as_mut()?;
        let header = Header::parse(buffer).expect("checked when it came");
        let aggregate = Aggregate::of_checked(&buffer[HEADER_LEN..]);
        if *next == aggregate.len() {
            let done = self.unbundling.take().expect("looked at above");
            self.pool.give_back(done.buffer);
            return None;
        }
        let (ether_type, range) = aggregate.packet(*next);
        *next += 1;
        let inner = Header {
            ether_type,
            ..header
        };
        self.delivery_head = inner.to_bytes();
        Some(HEADER_LEN + range.start..HEADER_LEN + range.end)
    }

    /// Takes one subframe off the train that is being unpacked. A whole frame is left where it is,
    /// its header in `delivery_head`: returns where its payload lies. All else goes its way.
    fn unpack_one(&mut self, now: Instant) -> Option<Range<usize>> {
        let Unpacking {
            slot,
            lane,
            buffer,
            at,
        } = self.unpacking.as_mut()?;
        let (subframe, len) = match Subframe::parse(&buffer[*at..]) {
            Ok(Some(found)) => found,
            ended => {
                if let Err(error) = ended {
                    self.counters.drops.count(error.into());
                }
                let done = self.unpacking.take().expect("looked at above");
                self.pool.give_back(done.buffer);
                return None;
            }
        };
        let end = *at + len;
        let peer = self
            .peers
            .get_mut(*slot)
            .expect("a peer that leaves takes its trains along");
        let mut out = Output {
            pool: &mut self.pool,
            complete: &mut self.complete,
            drops: &mut self.counters.drops,
        };
        *at = end;
        let (inner, piece, payload) = match subframe {
            Subframe::Next {
                id,
                offset,
                payload,
            } => {
                self.counters.trains_rx.pieces += 1;
                // The lane may be one of a row of sequences that has ended since.
                let Some(rx) = peer.rx.get_mut(lane.place()) else {
                    out.drops.count(DropReason::StrayPiece);
                    return None;
                };
                let reassembly = &mut rx.reassembly;
                let completed = reassembly.stats.completed + reassembly.stats.partial;
                reassembly.next(id, offset, payload, now, &mut out);
                let after = reassembly.stats.completed + reassembly.stats.partial;
                self.counters.trains_rx.frames += after - completed;
                return None;
            }
            Subframe::First {
                header,
                id,
                total_len,
                payload,
            } => (header, Some((id, total_len)), payload),
            Subframe::Frame { header, payload } => (header, None, payload),
        };
        let (destination, source) = inner
            .addresses
            .unwrap_or((self.config.address, peer.address));
        let for_us =
            destination == self.config.address || destination.is_group() || self.config.promiscuous;
        if !for_us {
            out.drops.count(DropReason::NotForUs);
            return None;
        }
        if source == self.config.address {
            out.drops.count(DropReason::OwnEcho);
            return None;
        }
        if source != peer.address && inner.addresses.is_some() {
            self.stations_moved |= self.stations.learn(source, Place::Peer(peer.node_id), now);
        }
        let header = Header {
            destination,
            source,
            ether_type: inner.ether_type,
        };
        match piece {
            Some((id, total_len)) => {
                let (slot, lane, offload) = (*slot, *lane, inner.offload);
                let bytes_max = self.config.limits.reassembly_bytes_max;
                make_room(&mut self.peers, total_len, bytes_max, &mut out);
                let peer = self.peers.get_mut(slot).expect("looked at above");
                match peer.rx.get_mut(lane.place()) {
                    None => out.drops.count(DropReason::StrayPiece),
                    Some(LaneRx { reassembly, .. }) => {
                        reassembly.first(id, header, offload, total_len, payload, now, &mut out);
                    }
                }
                self.counters.trains_rx.pieces += 1;
                let held: usize = self
                    .peers
                    .iter()
                    .flat_map(|(_, peer)| &peer.rx)
                    .map(|lane| lane.reassembly.bytes())
                    .sum();
                let max = &mut self.counters.reassembly_bytes_max;
                *max = held.max(*max);
                None
            }
            None if inner.offload.gso.is_some() => {
                out.whole_gso_frame(header, inner.offload, payload);
                self.counters.trains_rx.frames += 1;
                None
            }
            None => {
                self.counters.trains_rx.frames += 1;
                self.delivery_head = header.to_bytes();
                Some(end - payload.len()..end)
            }
        }
    }
}

impl Output<'_> {
    /// A GSO frame that one train carries whole: copied, for its metadata is checked against one
    /// contiguous frame.
    fn whole_gso_frame(&mut self, header: Header, offload: Offload, payload: &[u8]) {
        let mut frame = self.pool.take(HEADER_LEN + payload.len());
        let fits = frame.push(&header.to_bytes()) && frame.push(payload);
        assert!(fits, "taken for this size");
        if gso::check(&frame, &offload).is_err() {
            self.drops.count(DropReason::BadGso);
            self.pool.give_back(frame);
        } else {
            self.complete.push_back(Complete { frame, offload });
        }
    }
}

/// The bound in bytes holds for all peers together: for a frame of `total_len`, whoever holds most
/// gives up frames until there is room.
fn make_room(peers: &mut PeerTable, total_len: u16, bytes_max: usize, out: &mut Output<'_>) {
    let needed = Reassembly::cost(total_len);
    loop {
        let lanes = peers.iter().flat_map(|(_, peer)| &peer.rx);
        let held: usize = lanes.map(|lane| lane.reassembly.bytes()).sum();
        if held + needed <= bytes_max {
            return;
        }
        let lanes = peers.iter_mut().flat_map(|(_, peer)| &mut peer.rx);
        let all = lanes.map(|lane| &mut lane.reassembly);
        let Some(fattest) = all.max_by_key(|r| r.bytes()).filter(|r| r.bytes() > 0) else {
            return;
        };
        fattest.give_up_stalest(out);
    }
}
