//! What a frame is known by when it comes again: each of its segments has a name.
//!
//! A card may cut a GSO frame into its segments on one link and leave it whole on another, or merge what
//! came as segments: by names of segments all forms of a frame are known as the same. A segment has the
//! headers that a cut gives it (as in [`gso::slice`]), without lengths and checksums, which a cut, or
//! a card, fills in.

use std::hash::{DefaultHasher, Hasher};
use std::ops::Range;

use crate::gso;
use crate::offload::Gso;
use crate::wire::packet::{Ip, IpVersion, Packet, Transport, field};

/// Of a segment's payload so much is looked at: what tells datagrams apart stands in front, and of TCP
/// in the header.
const PAYLOAD_MAX: usize = 256;
/// Of a frame that is neither TCP nor UDP.
const BYTES_MAX: usize = 2048;
/// Longer headers are none that a card cuts by.
const HEADERS_MAX: usize = 192;
/// A card fills frames up to this length, with zeros (IEEE 802.3, without the FCS).
const FRAME_LEN_MIN: usize = 60;

/// Puts the name of each segment of a frame into `names`, in their order: of a frame that is not to be cut
/// one. `gso` agrees with the frame.
pub(super) fn names_of(seed: u64, frame: &[u8], gso: Option<Gso>, names: &mut Vec<u64>) {
    names.clear();
    let Some(mut headers) = Headers::of(frame) else {
        names.push(name_of_whole(seed, frame));
        return;
    };
    let payload = &frame[headers.payload.clone()];
    let (count, segment_len) = match gso {
        Some(gso) => (
            gso::segment_count(frame.len(), &gso),
            usize::from(gso.segment_len),
        ),
        None => (1, payload.len()),
    };
    for at in 0..count {
        let from = (at * segment_len).min(payload.len());
        let segment = &payload[from..(from + segment_len).min(payload.len())];
        headers.cut(at, from, at + 1 == count);
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(seed);
        hasher.write(&headers.bytes[..headers.len]);
        hasher.write_usize(segment.len());
        hasher.write(&segment[..segment.len().min(PAYLOAD_MAX)]);
        names.push(hasher.finish());
    }
}

fn name_of_whole(seed: u64, frame: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u64(seed);
    hasher.write_usize(frame.len().max(FRAME_LEN_MIN));
    let seen = &frame[..frame.len().min(BYTES_MAX)];
    hasher.write(seen);
    hasher.write(&[0; FRAME_LEN_MIN][seen.len().min(FRAME_LEN_MIN)..]);
    hasher.finish()
}

/// The headers of a TCP or UDP frame, as one of its segments has them.
struct Headers {
    bytes: [u8; HEADERS_MAX],
    len: usize,
    network_start: usize,
    ip: Ip,
    /// Where the payload lies in the frame: what a card has filled up behind is none of it.
    payload: Range<usize>,
    /// As in the frame.
    id: u16,
    sequence: u32,
    flags: u8,
}

impl Headers {
    fn of(frame: &[u8]) -> Option<Headers> {
        let packet = Packet::parse(frame).ok()?;
        let (ip, len) = (packet.ip?, packet.header_len()?);
        let mut bytes = [0; HEADERS_MAX];
        bytes.get_mut(..len)?.copy_from_slice(frame.get(..len)?);
        let network = &mut bytes[packet.network_start..];
        let mut id = 0;
        match ip.version {
            IpVersion::V4 => {
                id = u16::from_be_bytes([network[4], network[5]]);
                network[field::IPV4_TOTAL_LEN].fill(0);
                network[field::IPV4_CHECKSUM].fill(0);
            }
            IpVersion::V6 => network[field::IPV6_PAYLOAD_LEN].fill(0),
        }
        let transport = &mut bytes[ip.transport_start..];
        let (mut sequence, mut flags) = (0, 0);
        let checksum = match ip.transport? {
            Transport::Tcp { .. } => {
                let at: [u8; 4] = transport[field::TCP_SEQUENCE].try_into().expect("4 bytes");
                sequence = u32::from_be_bytes(at);
                flags = transport[field::TCP_FLAGS];
                gso::TCP_CHECKSUM_OFFSET
            }
            Transport::Udp => {
                transport[field::UDP_LEN].fill(0);
                gso::UDP_CHECKSUM_OFFSET
            }
        };
        transport[usize::from(checksum)..][..2].fill(0);
        let claimed = packet.network_start + ip.total_len;
        let end = match (len..=frame.len()).contains(&claimed) {
            true => claimed,
            false => frame.len(),
        };
        Some(Headers {
            bytes,
            len,
            network_start: packet.network_start,
            ip,
            payload: len..end,
            id,
            sequence,
            flags,
        })
    }

    /// Makes them those of segment `at`, which begins `from` bytes behind the headers.
    fn cut(&mut self, at: usize, from: usize, is_last: bool) {
        if self.ip.version == IpVersion::V4 {
            let id = self.id.wrapping_add(at as u16);
            self.bytes[self.network_start..][field::IPV4_ID].copy_from_slice(&id.to_be_bytes());
        }
        if let Some(Transport::Tcp { .. }) = self.ip.transport {
            let transport = &mut self.bytes[self.ip.transport_start..];
            let sequence = self.sequence.wrapping_add(from as u32);
            transport[field::TCP_SEQUENCE].copy_from_slice(&sequence.to_be_bytes());
            transport[field::TCP_FLAGS] = gso::flags_of_cut(self.flags, at == 0, is_last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Buffer;
    use crate::gso::tests::gso_frames;

    fn names(frame: &[u8], gso: Option<Gso>) -> Vec<u64> {
        let mut names = Vec::new();
        names_of(7, frame, gso, &mut names);
        names
    }

    #[test]
    fn a_frame_has_the_names_of_its_segments_however_it_is_cut() {
        for (frame, offload) in gso_frames() {
            let whole = names(&frame, offload.gso);
            let count = gso::segment_count(frame.len(), &offload.gso.expect("a GSO frame"));
            assert_eq!(whole.len(), count);
            for first in 0..count {
                for n in 1..=count - first {
                    let mut out = Buffer::with_capacity(frame.len());
                    let cut = gso::slice(&frame, &offload, first, n, &mut out).expect("agrees");
                    assert_eq!(names(&out, cut.gso), whole[first..first + n]);
                    if let (1, Some(partial)) = (n, cut.checksum) {
                        // As a card gives it: finished, and filled up.
                        gso::finish_checksum(&mut out, partial).expect("agrees");
                        let filled = [&out[..], &[0; 18]].concat();
                        assert_eq!(names(&filled, None), whole[first..=first]);
                    }
                }
            }
            let mut distinct = whole.clone();
            distinct.sort_unstable();
            distinct.dedup();
            assert_eq!(distinct.len(), count, "they are told apart");
        }
    }

    #[test]
    fn another_byte_makes_another_name_and_what_a_card_fills_in_does_not() {
        let mut datagram = [[2; 12].as_slice(), &[8, 0, 0x45, 0, 0, 50]].concat();
        datagram.extend([0, 0, 0, 0, 64, 17, 0, 0]);
        datagram.resize(64, 5);
        let name = names(&datagram, None);
        let with = |at: usize, value: u8| {
            let mut other = datagram.clone();
            other[at] = value;
            names(&other, None)
        };
        assert_eq!(with(40, 8), name, "of the checksum");
        assert_eq!(with(24, 8), name, "of the IP header's checksum");
        for at in [0, 6, 30, 34, 42, 63] {
            assert_ne!(with(at, 9), name, "byte {at}");
        }
        let (short, filled) = ([3; 42], [[3; 42].as_slice(), &[0; 18]].concat());
        assert_eq!(names(&short, None), names(&filled, None));
        assert_ne!(names(&short, None), names(&short[..41], None));
    }

    #[test]
    fn headers_that_claim_another_length_than_there_is_are_named_by_what_is_there() {
        let mut datagram = [[2; 12].as_slice(), &[8, 0, 0x45, 0, 0, 0]].concat();
        datagram.extend([0, 0, 0, 0, 64, 17, 0, 0]);
        datagram.resize(64, 5);
        for claimed in [0u16, 27, 51, u16::MAX] {
            datagram[16..18].copy_from_slice(&claimed.to_be_bytes());
            let mut other = datagram.clone();
            other[63] = 6;
            assert_ne!(names(&datagram, None), names(&other, None), "{claimed}");
        }
        // Cut off within its headers, and headers that go on and on.
        for len in 0..datagram.len() {
            assert_eq!(names(&datagram[..len], None).len(), 1);
        }
    }
}
