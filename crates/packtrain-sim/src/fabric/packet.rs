//! What travels on a fabric, and what wires want to know of it.

use packtrain_proto::time::Instant;
use packtrain_proto::wire::ethernet;

use crate::frame::{FCS_BYTES, FRAME_BYTES_MIN, WIRE_OVERHEAD_BYTES};
use crate::net::carried::Carried;
use crate::net::corruption::{Corrupted, Corruption};
use crate::net::ecn::Marking;
use crate::random::mix;
use crate::tcp::segment::{Ecn, Segment};

/// A datagram of UDP without its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    pub source: u32,
    /// As IP counts it.
    pub packet_bytes: u32,
    /// When it, or what it answers, was sent.
    pub sent: Instant,
    pub is_reply: bool,
    pub ecn: Ecn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    Segment(Segment),
    Datagram(Datagram),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Where on its way it is, and under way where it will be next: an index of the fabric's hops.
    pub at: u32,
    /// Of the connection that had its place when it was sent.
    pub generation: u32,
    pub group: u16,
    pub load: Load,
}

impl Packet {
    /// As IP counts it.
    pub fn packet_bytes(&self) -> usize {
        match &self.load {
            Load::Segment(segment) => segment.packet_bytes(),
            Load::Datagram(datagram) => datagram.packet_bytes as usize,
        }
    }

    fn ecn(&mut self) -> &mut Ecn {
        match &mut self.load {
            Load::Segment(segment) => &mut segment.ecn,
            Load::Datagram(datagram) => &mut datagram.ecn,
        }
    }
}

impl Carried for Packet {
    fn len_bytes(&self) -> usize {
        ethernet::HEADER_LEN + self.packet_bytes()
    }

    fn segment_count(&self) -> usize {
        1
    }

    #[inline]
    fn wire_bits(&self) -> u64 {
        8 * (self.len_bytes().max(FRAME_BYTES_MIN) + WIRE_OVERHEAD_BYTES) as u64
    }

    fn ip_bits(&self) -> u64 {
        8 * self.packet_bytes() as u64
    }

    fn checked_bits(&self) -> u64 {
        8 * (self.len_bytes().max(FRAME_BYTES_MIN) + FCS_BYTES) as u64
    }

    fn mark(&mut self) -> Marking {
        let ecn = self.ecn();
        match *ecn {
            Ecn::NotCapable => Marking::NotCapable,
            Ecn::Experienced => Marking::MarkedBefore,
            Ecn::Capable => {
                *ecn = Ecn::Experienced;
                Marking::Marked
            }
        }
    }

    /// There are no bytes that could be altered unseen: a struck one is always found out.
    fn strike(&mut self, corruption: &mut Corruption) -> Corrupted {
        match corruption.strike(&mut [0; FRAME_BYTES_MIN]) {
            Corrupted::No => Corrupted::No,
            Corrupted::Seen | Corrupted::Unseen => Corrupted::Seen,
        }
    }

    /// Connections and sources are told apart, and those who had a place before.
    fn flow_hash(&self) -> u64 {
        let (kind, index) = match &self.load {
            Load::Segment(segment) => (0, segment.flow),
            Load::Datagram(datagram) => (1, datagram.source),
        };
        mix(u64::from(self.generation) << 33 | u64::from(index) << 1 | kind)
    }
}
