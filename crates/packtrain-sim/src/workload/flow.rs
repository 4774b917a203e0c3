//! A flow of frames that describe themselves.
//!
//! Every frame is a function of (flow, sequence in the flow): a checker that meets one anywhere
//! reads which it is, makes it anew and compares, so nobody keeps what was sent. The content of
//! each segment starts with
//!
//! ```text
//! | flow (2) | sequence (4) | segment (2) | check (4) | filler from the check …
//! ```
//!
//! so that a GSO frame that arrives in parts is known by each of them. Frames too short for that
//! ([`Dress::Tiny`]) say their flow by their EtherType and their sequence by their bytes.

use core::ops::Range;

use packtrain_proto::offload::{Gso, GsoKind, Offload, PartialChecksum};
use packtrain_proto::wire::ethernet::{MacAddr, ether_type};

use crate::checksum::{self, Transport};
use crate::frame::Frame;
use crate::random::mix;
use crate::simulator::StationId;

/// Bytes of the description at the start of each segment.
pub const DESCRIPTION_LEN: usize = 12;
/// IEEE 802 local experimental EtherType 2.
pub(super) const BARE: u16 = 0x88b6;
/// Flow n of tiny frames has this plus n. The range is nobody's.
pub(super) const TINY: u16 = 0x7000;
/// What a UDP GSO frame may be cut into (Linux' `UDP_MAX_SEGMENTS`); here for TCP as well.
pub const SEGMENTS_MAX: usize = 128;
const OTHER_PROTOCOL: u8 = 253; // RFC 3692: for experiments

/// What a frame looks like to those who read headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dress {
    /// An EtherType, then the content.
    Bare,
    /// An EtherType, and fewer bytes than a description has.
    Tiny {
        payload_len: usize,
    },
    /// IEEE 802.3: a length where others have their EtherType.
    Llc,
    Arp,
    Udp,
    Tcp {
        timestamps: bool,
    },
    /// IP, and a protocol that nobody knows.
    Other,
    /// IPv4 fragments, three a datagram; only the first has ports.
    Fragments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipient {
    Station(StationId),
    /// A group address: every station but the sender.
    All,
}

#[derive(Clone, Debug)]
pub struct Flow {
    pub index: u16,
    pub from: StationId,
    pub to: Recipient,
    pub source: MacAddr,
    pub destination: MacAddr,
    pub vlan: Option<u16>,
    pub dress: Dress,
    pub ipv6: bool,
    /// With it, frames longer than one segment are GSO frames. TCP and UDP only.
    pub segment_len: Option<u16>,
    /// Leaves the checksum to whoever is next. TCP and UDP only; GSO frames always do.
    pub partial_checksum: bool,
    pub ecn: bool,
    /// Bytes of content, least and most.
    pub content_len: (usize, usize),
    pub seed: u64,
}

impl Flow {
    /// Whether its headers go on as those of most hosts do: what is told apart from the frame before says little.
    /// Else they jump about, and much has to be told.
    fn is_steady(&self) -> bool {
        self.seed.is_multiple_of(2)
    }

    /// Whether its content can be compressed, but for what describes it.
    fn shrinks(&self) -> bool {
        self.seed >> 1 & 1 == 0
    }

    /// Whether who sends it understands marks (RFC 3168), and says so in each packet: ECT(0).
    fn is_ecn_capable(&self) -> bool {
        self.seed >> 2 & 3 == 0
    }

    /// Bytes of all headers, Ethernet's included.
    pub fn headers_len(&self, sequence: u32) -> usize {
        let link = 14 + if self.vlan.is_some() { 4 } else { 0 };
        let network = if self.ipv6 { 40 } else { 20 };
        link + match self.dress {
            Dress::Bare | Dress::Tiny { .. } => 0,
            Dress::Llc => 3,
            Dress::Arp => 8,
            Dress::Other => network,
            Dress::Udp => network + 8,
            Dress::Tcp { timestamps } => network + if timestamps { 32 } else { 20 },
            Dress::Fragments => network + if sequence.is_multiple_of(3) { 8 } else { 0 },
        }
    }

    /// Bytes of content of a frame, in all its segments.
    pub fn content_len(&self, sequence: u32) -> usize {
        if let Dress::Tiny { payload_len } = self.dress {
            return payload_len;
        }
        let (low, high) = self.content_len;
        let drawn = mix(self.seed ^ 0x5151 ^ (u64::from(sequence) << 20));
        // Half of them at the ends: there is where mistakes are.
        let len = match drawn % 4 {
            0 => low,
            1 => high,
            _ => low + (drawn >> 8) as usize % (high - low + 1),
        };
        let len = match self.dress {
            // Fragments but the last are whole multiples of eight bytes, and so their headers.
            Dress::Fragments if sequence % 3 != 2 => (len & !7).max(16),
            _ => len,
        };
        let Some(segment) = self.segment_len.map(usize::from) else {
            return len;
        };
        let rest = len % segment;
        // Each segment describes itself, the last as well.
        if len > segment && (1..DESCRIPTION_LEN).contains(&rest) {
            len - rest
        } else {
            len
        }
    }

    pub fn segment_count(&self, sequence: u32) -> usize {
        let len = self.content_len(sequence);
        self.segment_len
            .map_or(1, |segment| len.div_ceil(usize::from(segment)))
    }

    /// Most frames that the flow can tell apart.
    pub fn frames_max(&self) -> u32 {
        match self.dress {
            Dress::Tiny { payload_len: 1 } => 256,
            Dress::Tiny { payload_len: 2 } => 65_536,
            _ => u32::MAX,
        }
    }

    /// The frame as its host hands it over.
    pub fn frame(&self, sequence: u32) -> Frame {
        let mut frame = self.part(sequence, 0..self.segment_count(sequence));
        let Some(transport) = Transport::find(&frame.bytes) else {
            return frame;
        };
        if self.partial_checksum || frame.offload.gso.is_some() {
            transport.put_partial(&mut frame.bytes);
            frame.offload.checksum = Some(PartialChecksum {
                start: transport.start as u16,
                offset: transport.field_offset() as u16,
            });
        } else {
            transport.put_finished(&mut frame.bytes);
        }
        frame
    }

    /// Some segments of a frame, as one frame; the checksum of TCP and UDP is left 0.
    pub fn part(&self, sequence: u32, segments: Range<usize>) -> Frame {
        let count = self.segment_count(sequence);
        assert!(segments.start < segments.end && segments.end <= count);
        let segment_len = self.segment_len.map_or(usize::MAX, usize::from);
        let whole = self.content_len(sequence);
        let start = segments.start.saturating_mul(segment_len);
        let end = segments.end.saturating_mul(segment_len).min(whole);
        let header_len = self.headers_len(sequence);
        let mut bytes = Vec::with_capacity(header_len + end - start);
        self.put_headers(&mut bytes, sequence, &segments, end - start);
        assert_eq!(bytes.len(), header_len);
        for segment in segments.clone() {
            let at = segment.saturating_mul(segment_len);
            self.put_content(&mut bytes, sequence, segment, (whole - at).min(segment_len));
        }
        let mut offload = Offload::NONE;
        if segments.len() > 1 {
            offload.gso = Some(Gso {
                kind: match (self.dress, self.ipv6) {
                    (Dress::Udp, _) => GsoKind::UdpL4,
                    (_, false) => GsoKind::TcpV4,
                    (_, true) => GsoKind::TcpV6,
                },
                ecn: self.cwr(segments.start),
                header_len: header_len as u16,
                segment_len: segment_len as u16,
            });
        }
        Frame::new(bytes, offload)
    }

    fn cwr(&self, first_segment: usize) -> bool {
        self.ecn && first_segment == 0 && matches!(self.dress, Dress::Tcp { .. })
    }

    fn put_headers(
        &self,
        out: &mut Vec<u8>,
        sequence: u32,
        segments: &Range<usize>,
        content_len: usize,
    ) {
        out.extend_from_slice(&self.destination.0);
        out.extend_from_slice(&self.source.0);
        if let Some(tag) = self.vlan {
            out.extend_from_slice(&ether_type::VLAN.to_be_bytes());
            out.extend_from_slice(&tag.to_be_bytes());
        }
        let kind = match self.dress {
            Dress::Bare => BARE,
            Dress::Tiny { .. } => TINY + self.index,
            Dress::Llc => content_len as u16 + 3,
            Dress::Arp => ether_type::ARP,
            _ if self.ipv6 => ether_type::IPV6,
            _ => ether_type::IPV4,
        };
        out.extend_from_slice(&kind.to_be_bytes());
        match self.dress {
            Dress::Bare | Dress::Tiny { .. } => {}
            Dress::Llc => out.extend_from_slice(&[0xaa, 0xaa, 0x03]),
            Dress::Arp => out.extend_from_slice(&[0, 1, 8, 0, 6, 4, 0, 1]),
            Dress::Other => self.put_network(out, OTHER_PROTOCOL, sequence, segments, content_len),
            Dress::Udp => {
                self.put_network(out, checksum::UDP, sequence, segments, content_len + 8);
                self.put_udp(out, content_len + 8);
            }
            Dress::Tcp { timestamps } => {
                let header = if timestamps { 32 } else { 20 };
                self.put_network(out, checksum::TCP, sequence, segments, content_len + header);
                self.put_tcp(out, sequence, segments, timestamps);
            }
            Dress::Fragments => {
                let udp = sequence.is_multiple_of(3);
                let len = content_len + if udp { 8 } else { 0 };
                self.put_network(out, checksum::UDP, sequence, segments, len);
                if udp {
                    self.put_udp(out, len);
                }
            }
        }
    }

    fn put_network(
        &self,
        out: &mut Vec<u8>,
        protocol: u8,
        sequence: u32,
        segments: &Range<usize>,
        payload_len: usize,
    ) {
        let flow = self.index.to_be_bytes();
        let (from, to) = (self.source.0[5], self.destination.0[5]);
        let capable = u8::from(self.is_ecn_capable());
        if self.ipv6 {
            out.extend_from_slice(&[0x60, capable << 5, 0, 0]);
            out.extend_from_slice(&(payload_len as u16).to_be_bytes());
            out.extend_from_slice(&[protocol, 64]);
            for end in [from, to] {
                let mut address = [0; 16];
                address[..4].copy_from_slice(&[0xfd, 0x70, 0x74, 0]);
                address[13..].copy_from_slice(&[flow[0], flow[1], end]);
                out.extend_from_slice(&address);
            }
            return;
        }
        let start = out.len();
        let total_len = payload_len as u16 + 20;
        out.extend_from_slice(&[0x45, capable << 1]);
        out.extend_from_slice(&total_len.to_be_bytes());
        let (id, fragment) = match self.dress {
            Dress::Fragments => {
                // Offsets only have to differ and to be no first one's; nobody puts them together.
                let more = if sequence % 3 == 2 { 0 } else { 0x2000 };
                ((sequence / 3) as u16, more | ((sequence % 3) as u16 * 180))
            }
            _ if self.is_steady() => ((sequence as u16).wrapping_add(1), 0x4000),
            _ => ((sequence as u16).wrapping_mul(251), 0x4000),
        };
        out.extend_from_slice(&id.wrapping_add(segments.start as u16).to_be_bytes());
        out.extend_from_slice(&fragment.to_be_bytes());
        out.extend_from_slice(&[64, protocol, 0, 0]);
        out.extend_from_slice(&[10, flow[0], flow[1], from]);
        out.extend_from_slice(&[10, flow[0], flow[1], to]);
        let check = !checksum::sum(0, &out[start..]);
        out[start + 10..start + 12].copy_from_slice(&check.to_be_bytes());
    }

    fn put_udp(&self, out: &mut Vec<u8>, udp_len: usize) {
        self.put_ports(out);
        out.extend_from_slice(&(udp_len as u16).to_be_bytes());
        out.extend_from_slice(&[0, 0]);
    }

    fn put_tcp(&self, out: &mut Vec<u8>, sequence: u32, segments: &Range<usize>, timestamps: bool) {
        self.put_ports(out);
        let segment_len = usize::from(self.segment_len.unwrap_or(0));
        let number = sequence
            .wrapping_mul(70_001)
            .wrapping_add((segments.start * segment_len) as u32);
        out.extend_from_slice(&number.to_be_bytes());
        out.extend_from_slice(&sequence.to_be_bytes());
        // ACK always; PSH on the last segment of some; CWR on the first.
        let last = segments.end == self.segment_count(sequence);
        let push = if last && sequence % 2 == 1 { 0x08 } else { 0 };
        let cwr = if self.cwr(segments.start) { 0x80 } else { 0 };
        let data_offset = if timestamps { 0x80 } else { 0x50 };
        out.extend_from_slice(&[data_offset, 0x10 | push | cwr, 0x20, 0, 0, 0, 0, 0]);
        if timestamps {
            out.extend_from_slice(&[1, 1, 8, 10]);
            let times = match self.is_steady() {
                true => u64::from(sequence) << 32 | u64::from(sequence / 3),
                false => mix(self.seed ^ u64::from(sequence)),
            };
            out.extend_from_slice(&times.to_be_bytes());
        }
    }

    fn put_ports(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(1024 + self.index).to_be_bytes());
        out.extend_from_slice(&(2048 + self.index).to_be_bytes());
    }

    pub(super) fn check(&self, sequence: u32, segment: usize) -> u32 {
        mix(self.seed ^ (u64::from(sequence) << 16) ^ segment as u64) as u32
    }

    /// Words as they stand in logs and messages, in an order that the check of a segment says.
    fn words(&self, check: u32) -> impl Iterator<Item = u8> {
        const WORDS: [&[u8; 8]; 4] = [b"status: ", b"request ", b"0000001 ", b"\"name\": "];
        let word = move |n: u32| WORDS[(check.rotate_left(2 * n) & 3) as usize];
        (0..).flat_map(word).copied()
    }

    fn put_content(&self, out: &mut Vec<u8>, sequence: u32, segment: usize, len: usize) {
        let check = self.check(sequence, segment);
        let end = out.len() + len;
        if matches!(self.dress, Dress::Tiny { .. }) {
            let digits = len.min(4);
            out.extend_from_slice(&sequence.to_be_bytes()[4 - digits..]);
        } else {
            assert!(
                len >= DESCRIPTION_LEN,
                "{len} bytes describe nothing in {:?}",
                self.dress
            );
            out.extend_from_slice(&self.index.to_be_bytes());
            out.extend_from_slice(&sequence.to_be_bytes());
            out.extend_from_slice(&(segment as u16).to_be_bytes());
            out.extend_from_slice(&check.to_be_bytes());
        }
        if self.shrinks() {
            out.extend(self.words(check).take(end - out.len()));
            return;
        }
        let mut filler = u64::from(check) | 1 << 40;
        let start = out.len();
        out.resize(end, 0);
        for chunk in out[start..].chunks_mut(8) {
            filler ^= filler << 13;
            filler ^= filler >> 7;
            filler ^= filler << 17;
            chunk.copy_from_slice(&filler.to_be_bytes()[..chunk.len()]);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
