//! Fills a train with what waits: 1-persistent, so it never waits for more.
//!
//! Small frames ride whole. A frame that does not fit any more rides in pieces, so that each train
//! is filled; the flows take turns between pieces, so a small frame waits for a train, not for
//! a large frame. (The DFAP paper, section 2.4, packs whole packets only and sends
//! partly filled frames.)

use crate::buffer::BufferPool;
use crate::class::ClassTable;
use crate::coding::body::Body;
use crate::coding::coder::Treatment;
use crate::coding::worth::Worths;
use crate::data_units::packets_of_1500;
use crate::gso;
use crate::offload::Offload;
use crate::queue::codel::Aqm;
use crate::queue::drr::{FlowQueues, Signal};
use crate::queue::frame::QueuedFrame;
use crate::sand::SandWaits;
use crate::stats::{DropReason, Drops, FlushReason};
use crate::time::Instant;
use crate::wire::ethernet::{self, MacAddr};
use crate::wire::subframe::{self, InnerHeader};

/// A piece of less than this is not worth its header, unless it is the last.
const PIECE_MIN: usize = 64;
/// Frames of one peer that are under way in pieces at once; of each link's, where flows keep to links, or one would wait for
/// another. The receiver holds a buffer for each, and refuses more than its bound: with a flow for each of them, everything
/// would be lost.
const UNFINISHED_MAX: usize = 4;

/// What went into a train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filled {
    /// Whole frames, and last pieces.
    pub frames: u32,
    pub pieces: u32,
    /// What the frames would have taken on the wire each alone, and how much of that is padding.
    pub frame_bytes: u64,
    pub padding: u64,
    /// Packets of 1500 bytes that they would have needed.
    pub packets_of_1500: u64,
    pub flush: FlushReason,
}

impl Filled {
    /// A frame as it would have left alone, a GSO frame as its segments.
    fn count_alone(&mut self, frame: &QueuedFrame) {
        let len = frame.buffer.len();
        self.packets_of_1500 += packets_of_1500(&frame.buffer, &frame.offload);
        match frame.offload.gso {
            None => {
                self.frame_bytes += ethernet::on_wire(len) as u64;
                self.padding += ethernet::padding(len) as u64;
            }
            Some(gso) => {
                let segments = gso::segment_count(len, &gso);
                let headers = usize::from(gso.header_len);
                let all = len - headers + segments * ethernet::on_wire(headers);
                self.frame_bytes += all as u64;
            }
        }
    }
}

/// What a train of this peer is made with.
#[derive(Debug)]
pub struct Surroundings<'a> {
    /// The two `pt0`s whose addresses need not be written out.
    pub own: MacAddr,
    pub peer: MacAddr,
    pub aqm: &'a Aqm,
    pub pool: &'a mut BufferPool,
    pub drops: &'a mut Drops,
    /// Frames that were marked and not dropped.
    pub marked: &'a mut u64,
    /// Where it is counted how long frames have waited, and said what may be done with them.
    pub classes: &'a mut ClassTable,
    /// … those that are small.
    pub sand: &'a mut SandWaits,
    /// Whose payload is worth being compressed, on this link.
    pub worths: &'a mut Worths,
    pub now: Instant,
}

impl Surroundings<'_> {
    /// CoDel has found that a queue stands.
    pub fn on_signal(&mut self, signal: Signal) {
        match signal {
            Signal::Marked => *self.marked += 1,
            Signal::Dropped(frame) => {
                self.drops.count(DropReason::Codel);
                self.pool.give_back(frame.buffer);
            }
        }
    }
}

/// Packs frames for one peer and lane.
#[derive(Debug, Default)]
pub struct Aggregator {
    next_piece_id: u16,
}

impl Aggregator {
    /// Fills a train of `len_max` bytes (outer Ethernet header included). Frames for which
    /// `goes_alone` holds are left in the queue, and end the train.
    pub fn fill(
        &mut self,
        queues: &mut FlowQueues,
        body: &mut Body<'_, '_>,
        len_max: usize,
        goes_alone: impl Fn(&QueuedFrame, &Surroundings<'_>) -> bool,
        with: &mut Surroundings<'_>,
    ) -> Filled {
        let mut filled = Filled {
            frames: 0,
            pieces: 0,
            frame_bytes: 0,
            padding: 0,
            packets_of_1500: 0,
            flush: queues
                .wait_ended_by(with.now)
                .unwrap_or(FlushReason::IdleLink),
        };
        loop {
            let (now, aqm) = (with.now, with.aqm);
            let selected = queues.select(now, aqm, len_max, &mut |signal| with.on_signal(signal));
            let Some(flow) = selected else { return filled };
            let may_begin = queues.begun() < UNFINISHED_MAX;
            let head = queues.head(flow);
            if goes_alone(head, with) {
                filled.flush = FlushReason::Boundary;
                return filled;
            }
            let treatment = body.treatment_of(head, with.classes, with.worths, with.now);
            let (taken, done) = match self.put((head, may_begin), body, treatment, with) {
                Put::Whole(bytes) => (bytes, true),
                Put::NotYet => {
                    // Its turn passes, up to those that are under way: there are some.
                    queues.pass(flow);
                    continue;
                }
                Put::Piece {
                    overhead,
                    payload,
                    last,
                } => {
                    filled.pieces += 1;
                    queues.take_piece(flow, payload);
                    (overhead + payload, last)
                }
                Put::NoRoom if body.make_room() => continue,
                Put::NoRoom => {
                    filled.flush = FlushReason::Full;
                    return filled;
                }
            };
            queues.charge(flow, taken);
            if done {
                filled.frames += 1;
                let frame = queues.pop(flow);
                filled.count_alone(&frame);
                with.classes
                    .note_left(frame.class, with.now.since(frame.enqueued));
                with.sand.note_left(&frame, with.now);
                with.pool.give_back(frame.buffer);
            }
        }
    }

    /// `may_begin`: one more frame may be under way in pieces.
    fn put(
        &mut self,
        (head, may_begin): (&mut QueuedFrame, bool),
        body: &mut Body<'_, '_>,
        treatment: Treatment,
        with: &Surroundings<'_>,
    ) -> Put {
        if head.sent > 0 {
            return put_next(head, body, treatment);
        }
        finish_checksum(head);
        let header = InnerHeader {
            addresses: (head.header.destination != with.peer || head.header.source != with.own)
                .then_some((head.header.destination, head.header.source)),
            ether_type: head.header.ether_type,
            offload: head.offload,
        };
        let payload = head.payload();
        let overhead = subframe::overhead(&header, payload, false);
        if body.put_frame(&header, payload, treatment) {
            return Put::Whole(overhead + payload.len());
        }
        // Rather whole than in pieces.
        if body.make_room() {
            return self.put((head, may_begin), body, treatment, with);
        }
        let room = body.room(treatment);
        // The headers of a GSO frame must not be torn: its segments are cut by them.
        let headers = head
            .offload
            .gso
            .map_or(0, |gso| usize::from(gso.header_len));
        let overhead = overhead + subframe::PIECE_LEN;
        if room < overhead + PIECE_MIN.max(headers) {
            return Put::NoRoom;
        }
        if !may_begin {
            return Put::NotYet;
        }
        let bytes = room - overhead;
        let id = self.next_piece_id;
        self.next_piece_id = id.wrapping_add(1);
        body.put_first(
            &header,
            (id, payload.len() as u16),
            &payload[..bytes],
            treatment,
        );
        head.piece_id = id;
        Put::Piece {
            overhead,
            payload: bytes,
            last: false,
        }
    }
}

enum Put {
    Whole(usize),
    Piece {
        overhead: usize,
        payload: usize,
        last: bool,
    },
    NoRoom,
    /// It would have to be cut, and enough frames are under way in pieces.
    NotYet,
}

fn put_next(head: &QueuedFrame, body: &mut Body<'_, '_>, treatment: Treatment) -> Put {
    const OVERHEAD: usize = subframe::HEADER_LEN + subframe::PIECE_LEN;
    let rest = &head.buffer[ethernet::HEADER_LEN + head.sent..];
    let room = body.room(treatment);
    let bytes = rest.len().min(room.saturating_sub(OVERHEAD));
    if bytes < PIECE_MIN.min(rest.len()) {
        return Put::NoRoom;
    }
    body.put_next((head.piece_id, head.sent as u16), &rest[..bytes], treatment);
    Put::Piece {
        overhead: OVERHEAD,
        payload: bytes,
        last: bytes == rest.len(),
    }
}

/// Only GSO frames travel with an unfinished checksum. Intake has checked that it lies inside.
pub(crate) fn finish_checksum(frame: &mut QueuedFrame) {
    if let (None, Some(partial)) = (frame.offload.gso, frame.offload.checksum) {
        let finished = gso::finish_checksum(&mut frame.buffer, partial);
        debug_assert!(finished.is_ok(), "checked at intake");
        frame.offload = Offload::NONE;
    }
}
