//! A frame that waits, and what is known of it.

use std::cell::Cell;

use crate::buffer::Buffer;
use crate::class::ClassId;
use crate::coding::worth::looks_random;
use crate::offload::Offload;
use crate::queue::band::BandId;
use crate::sand::PACKET_MAX;
use crate::time::Instant;
use crate::trunk::lane::LaneId;
use crate::wire::ethernet::{self, Header};

#[derive(Debug)]
pub struct QueuedFrame {
    pub buffer: Buffer,
    pub header: Header,
    pub offload: Offload,
    pub enqueued: Instant,
    /// Payload bytes that already left in pieces.
    pub sent: usize,
    /// The id of those pieces.
    pub piece_id: u16,
    /// Each segment got one of these, this one that of the link it waits for.
    pub copy: Option<CopyOf>,
    /// The number of its flow.
    pub flow_hash: u32,
    /// Which part of the flows it is in, where each keeps to one link: all of its flow are in the same.
    pub share: u8,
    /// Among the classes that the line had when it came.
    pub class: ClassId,
    /// Its flow's, on the way to a peer.
    pub lane: LaneId,
    /// Which frames it may ride with.
    pub band: BandId,
    /// Its flow was of another lane before classes changed last, or may have been.
    pub changes_lane: bool,
    /// Its flow is an elephant, with this frame or before it.
    pub of_elephant: bool,
    /// It goes before those of flows that are elephants.
    pub short: bool,
    /// It has been marked here: its queue stood.
    pub marked: bool,
    /// Its class says *now*.
    pub urgent: bool,
    /// Its class lets it wait so long for others.
    pub hold_until: Option<Instant>,
    /// What was found by who asked first.
    pub random: Cell<Option<bool>>,
}

/// The same for all copies of one frame: which frame, and how many there were at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyOf {
    pub frame: u64,
    pub copies: u16,
}

impl QueuedFrame {
    pub fn payload(&self) -> &[u8] {
        &self.buffer[ethernet::HEADER_LEN..]
    }

    /// Whether its payload [`looks_random`]. It is asked for more than once, and takes as long as packing a small frame.
    pub fn looks_random(&self) -> bool {
        let found = self.random.get();
        let is_random = found.unwrap_or_else(|| looks_random(self.payload()));
        self.random.set(Some(is_random));
        is_random
    }

    /// What is not to wait behind rocks: a packet of a mouse.
    pub fn is_sand(&self) -> bool {
        !self.of_elephant && self.offload.gso.is_none() && self.buffer.len() <= PACKET_MAX
    }

    /// Bytes of it that still wait.
    pub fn waiting(&self) -> usize {
        self.buffer.len() - self.sent
    }
}
