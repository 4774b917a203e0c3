//! What travels in the simulator: bytes of an Ethernet frame without FCS, and what is still to be
//! done to it.

use packtrain_proto::offload::Offload;
use packtrain_proto::wire::ethernet::{HEADER_LEN, Header, ether_type};

/// Preamble, start delimiter, FCS and the gap between frames: paid on the wire, seen by nobody.
pub const WIRE_OVERHEAD_BYTES: usize = 24;
/// Frame check sequence: what the receiver finds flipped bits by.
pub const FCS_BYTES: usize = 4;
/// Shortest frame on a real wire, without FCS.
pub const FRAME_BYTES_MIN: usize = 60;
const VLAN_TAG_BYTES: usize = 4;
const IPV6_HEADER_BYTES: usize = 40;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub bytes: Vec<u8>,
    pub offload: Offload,
}

impl Frame {
    pub fn new(bytes: Vec<u8>, offload: Offload) -> Frame {
        assert!(
            bytes.len() >= HEADER_LEN,
            "{} bytes are no frame",
            bytes.len()
        );
        Frame { bytes, offload }
    }

    pub fn header(&self) -> Header {
        Header::parse(&self.bytes).expect("checked when it was made")
    }

    /// How many frames it is once it is on a wire that knows no GSO.
    pub fn segment_count(&self) -> usize {
        self.segment_count_of(self.bytes.len())
    }

    /// The same, if it had so many bytes.
    pub fn segment_count_of(&self, len: usize) -> usize {
        match self.offload.gso {
            None => 1,
            Some(gso) => {
                let payload = len.saturating_sub(usize::from(gso.header_len));
                payload.div_ceil(usize::from(gso.segment_len).max(1)).max(1)
            }
        }
    }

    /// Length of the longest frame that it becomes on the wire.
    pub fn segment_bytes_max(&self) -> usize {
        match self.offload.gso {
            None => self.bytes.len(),
            Some(gso) => {
                let whole = usize::from(gso.header_len) + usize::from(gso.segment_len);
                whole.min(self.bytes.len())
            }
        }
    }

    /// … of which a link's MTU speaks: it takes a VLAN tag on top of that.
    pub fn payload_bytes_max(&self) -> usize {
        let tag = match self.header().ether_type {
            ether_type::VLAN => 4,
            _ => 0,
        };
        self.segment_bytes_max() - HEADER_LEN - tag
    }

    /// Bits on the wire, all that nobody sees included: of a frame that is still to be cut, those of
    /// what it becomes.
    pub fn wire_bits(&self) -> u64 {
        let before_the_last = self.segment_count() - 1;
        let header_len = self
            .offload
            .gso
            .map_or(0, |gso| usize::from(gso.header_len));
        let full = self.segment_bytes_max();
        let last = self.bytes.len() + before_the_last * header_len;
        let last = last.saturating_sub(before_the_last * full);
        let on_the_wire = |len: usize| len.max(FRAME_BYTES_MIN) + WIRE_OVERHEAD_BYTES;
        8 * (before_the_last * on_the_wire(full) + on_the_wire(last)) as u64
    }

    /// Bits between preamble and gap, the FCS included: a flipped one among them is found by the FCS.
    pub fn checked_bits(&self) -> u64 {
        const UNCHECKED_BYTES: usize = WIRE_OVERHEAD_BYTES - FCS_BYTES;
        self.wire_bits() - 8 * (self.segment_count() * UNCHECKED_BYTES) as u64
    }

    /// Bits behind the Ethernet header and its tags. An IP packet ends where its header says, and not
    /// where the padding does; nobody says it of others.
    pub fn ip_bits(&self) -> u64 {
        let (kind, start) = self.network();
        let rest = &self.bytes[start..];
        let word = |at: usize| match rest.get(at..at + 2) {
            Some(word) => usize::from(u16::from_be_bytes([word[0], word[1]])),
            None => 0,
        };
        // A length of 0 says nothing: a huge frame that is still to be cut, or a jumbogram.
        let told = match kind {
            ether_type::IPV4 => word(2),
            ether_type::IPV6 if word(4) > 0 => word(4) + IPV6_HEADER_BYTES,
            _ => 0,
        };
        let whole = match told {
            0 => rest.len(),
            told => told.min(rest.len()),
        };
        let headers = self.offload.gso.map_or(0, |gso| {
            usize::from(gso.header_len).saturating_sub(start) * (self.segment_count() - 1)
        });
        8 * (whole + headers) as u64
    }

    /// The EtherType behind at most two VLAN tags, and where what it names begins.
    pub fn network(&self) -> (u16, usize) {
        let (mut kind, mut start) = (self.header().ether_type, HEADER_LEN);
        for _ in 0..2 {
            let tag = matches!(kind, ether_type::VLAN | ether_type::QINQ);
            match self.bytes.get(start + 2..start + VLAN_TAG_BYTES) {
                Some(next) if tag => kind = u16::from_be_bytes([next[0], next[1]]),
                _ => break,
            }
            start += VLAN_TAG_BYTES;
        }
        (kind, start)
    }

    /// Whether it is within what a link of this MTU takes: a VLAN tag comes on top, as Linux has
    /// it.
    pub fn fits(&self, mtu: u16) -> bool {
        let tagged = matches!(
            self.header().ether_type,
            ether_type::VLAN | ether_type::QINQ
        );
        let limit = usize::from(mtu) + HEADER_LEN + if tagged { 4 } else { 0 };
        self.segment_bytes_max() <= limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packtrain_proto::offload::{Gso, GsoKind};

    /// An IPv4 packet of so many bytes behind `tags` VLAN tags, in a frame of `len` bytes.
    fn ipv4(tags: usize, packet_len: u16, len: usize) -> Frame {
        let mut bytes = vec![0; len];
        for tag in 0..tags {
            bytes[12 + 4 * tag..][..2].copy_from_slice(&ether_type::VLAN.to_be_bytes());
        }
        let start = 14 + 4 * tags;
        bytes[start - 2..start].copy_from_slice(&ether_type::IPV4.to_be_bytes());
        bytes[start] = 0x45;
        bytes[start + 2..start + 4].copy_from_slice(&packet_len.to_be_bytes());
        Frame::new(bytes, Offload::NONE)
    }

    #[test]
    fn an_ip_packet_is_counted_without_padding_and_tags() {
        for tags in 0..=2 {
            assert_eq!(ipv4(tags, 28, 60).ip_bits(), 8 * 28);
            assert_eq!(ipv4(tags, 1500, 1514 + 4 * tags).ip_bits(), 8 * 1500);
        }
        // It says more than there is, or nothing.
        assert_eq!(ipv4(0, 9000, 60).ip_bits(), 8 * 46);
        assert_eq!(ipv4(0, 0, 60).ip_bits(), 8 * 46);
    }

    #[test]
    fn the_headers_of_each_segment_count() {
        let mut frame = ipv4(1, 40 + 3000, 18 + 40 + 3000);
        frame.offload.gso = Some(Gso {
            kind: GsoKind::TcpV4,
            ecn: false,
            header_len: 18 + 40,
            segment_len: 1000,
        });
        assert_eq!(frame.segment_count(), 3);
        assert_eq!(frame.ip_bits(), 8 * 3 * 1040);
        assert_eq!(frame.wire_bits(), 8 * 3 * (18 + 1040 + 24));
        assert_eq!(frame.checked_bits(), 8 * 3 * (18 + 1040 + 4));
    }

    #[test]
    fn a_last_segment_that_is_short_is_padded() {
        let mut frame = ipv4(0, 40 + 2001, 54 + 2001);
        frame.offload.gso = Some(Gso {
            kind: GsoKind::TcpV4,
            ecn: false,
            header_len: 54,
            segment_len: 1000,
        });
        assert_eq!(frame.wire_bits(), 8 * (2 * (1054 + 24) + 60 + 24));
        assert_eq!(frame.ip_bits(), 8 * (2 * 1040 + 41));
    }

    #[test]
    fn the_shortest_frame_has_64_bytes_that_the_fcs_covers() {
        assert_eq!(ipv4(0, 28, 42).checked_bits(), 8 * 64);
    }
}
