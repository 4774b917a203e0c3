//! An aggregate: several packets for one station in one Ethernet frame, as the DFAP paper has it.
//!
//! J. M. Meehan, P. A. Nelson, D. Engeset, A. Pashiardis, *Data Link Frame Aggregation Protocol* (2004),
//! section 2.6, with our reading of its gaps (docs/wire-format.md, "Aggregates"):
//!
//! ```text
//!            ◀───────────── data field ─────────────────────────────────────────────────────────▶
//!  14 bytes   1     2 (n − 1)                  2        …          2        …
//! +----------+-----+----------+-----+---------+--------+----------+--------+----------+-- - - --+
//! | Ethernet |  n  | offset 2 |  …  | offset n| type 1 | packet 1 | type 2 | packet 2 |    …    |
//! +----------+-----+----------+-----+---------+--------+----------+--------+----------+-- - - --+
//! ```
//!
//! All are big-endian. An offset counts from the first byte of the data field, and points at a packet's type.
//! The first packet follows the offsets, at 1 + 2 (n − 1); the last one ends where the frame does.

use crate::buffer::Buffer;
use crate::wire::ethernet::{Header, ether_type};

/// The paper's figure.
pub const ETHER_TYPE: u16 = 0xbbbb;
/// The paper's footnote.
pub const ETHER_TYPE_OF_FOOTNOTE: u16 = 0xaaaa;

/// What the count's byte can say.
pub const PACKETS_MAX: usize = 255;
/// Bytes of a packet's type.
pub const TYPE_LEN: usize = 2;
/// What Ethernet pads a data field to.
pub const PADDED_LEN: usize = 46;
/// What is less is a length (IEEE 802.3, 3.2.6), and has no place in an aggregate.
pub const TYPE_MIN: u16 = 0x0600;

/// Whether frames of this type are aggregates, for who uses them.
pub const fn is_aggregate_type(ether_type: u16) -> bool {
    matches!(ether_type, ETHER_TYPE | ETHER_TYPE_OF_FOOTNOTE)
}

/// Where the type of the first of `n` packets stands.
const fn first_offset(n: usize) -> usize {
    1 + 2 * (n - 1)
}

/// Bytes of the data field of `n` packets of so many bytes together.
pub const fn data_len(n: usize, packet_bytes: usize) -> usize {
    first_offset(n) + n * TYPE_LEN + packet_bytes
}

/// Why a frame is no aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DfapError {
    #[error("shorter than its offsets")]
    Truncated,
    #[error("of no packets")]
    NoPackets,
    #[error("an offset that leaves a packet no room, or lies outside")]
    BadOffset,
    #[error("a packet of a type that cannot ride in an aggregate")]
    BadType,
}

/// A checked view: every packet lies inside, behind its predecessor, and has a type and at least one byte.
#[derive(Clone, Copy, Debug)]
pub struct Aggregate<'a> {
    data: &'a [u8],
}

impl<'a> Aggregate<'a> {
    /// `data` is what follows the Ethernet header, padding included.
    pub fn parse(data: &'a [u8]) -> Result<Aggregate<'a>, DfapError> {
        let n = usize::from(*data.first().ok_or(DfapError::Truncated)?);
        if n == 0 {
            return Err(DfapError::NoPackets);
        }
        if data.len() < first_offset(n) {
            return Err(DfapError::Truncated);
        }
        let aggregate = Aggregate { data };
        for at in 0..n {
            let (start, end) = (aggregate.offset(at), aggregate.end(at));
            if start + TYPE_LEN >= end || end > data.len() {
                return Err(DfapError::BadOffset);
            }
            let inner = aggregate.type_at(start);
            if inner < TYPE_MIN || inner == ether_type::PACKTRAIN || is_aggregate_type(inner) {
                return Err(DfapError::BadType);
            }
        }
        Ok(aggregate)
    }

    /// … of what [`Aggregate::parse`] has let through before: it looks at every packet, and who takes them out one by one
    /// would do so for each.
    pub fn of_checked(data: &'a [u8]) -> Aggregate<'a> {
        debug_assert!(Aggregate::parse(data).is_ok());
        Aggregate { data }
    }

    /// How many packets.
    #[allow(clippy::len_without_is_empty)] // there is one at least
    pub fn len(&self) -> usize {
        usize::from(self.data[0])
    }

    fn offset(&self, at: usize) -> usize {
        match at {
            0 => first_offset(self.len()),
            _ => usize::from(self.be16(1 + 2 * (at - 1))),
        }
    }

    fn end(&self, at: usize) -> usize {
        match at + 1 < self.len() {
            true => self.offset(at + 1),
            false => self.data.len(),
        }
    }

    fn type_at(&self, at: usize) -> u16 {
        self.be16(at)
    }

    fn be16(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.data[at], self.data[at + 1]])
    }

    /// A packet's EtherType, and where in the data field its bytes lie. The last one may carry padding, which goes
    /// where Ethernet has added some and the packet itself says how long it is.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn packet(&self, at: usize) -> (u16, core::ops::Range<usize>) {
        let start = self.offset(at);
        let inner = self.type_at(start);
        let (start, end) = (start + TYPE_LEN, self.end(at));
        let is_padded = at + 1 == self.len() && self.data.len() <= PADDED_LEN;
        let told = match is_padded {
            true => told_len(inner, &self.data[start..end]),
            false => None,
        };
        let len = told.map_or(end - start, |told| told.min(end - start));
        (inner, start..start + len)
    }
}

/// Whether a packet's own header says where it ends, so that padding behind it does no harm.
pub fn tells_its_length(ether_type: u16, packet: &[u8]) -> bool {
    told_len(ether_type, packet).is_some_and(|told| told == packet.len())
}

/// Bytes of a packet as its own header has them.
fn told_len(ether_type: u16, packet: &[u8]) -> Option<usize> {
    const IPV4_HEADER_LEN: usize = 20;
    const IPV6_HEADER_LEN: usize = 40;
    let be16 = |at: usize| {
        Some(usize::from(u16::from_be_bytes([
            *packet.get(at)?,
            *packet.get(at + 1)?,
        ])))
    };
    let (told, least) = match ether_type {
        ether_type::IPV4 => (be16(2)?, IPV4_HEADER_LEN),
        ether_type::IPV6 => (be16(4)? + IPV6_HEADER_LEN, IPV6_HEADER_LEN),
        _ => return None,
    };
    (told >= least).then_some(told)
}

/// Appends a whole frame to an empty buffer: `outer` with its packets, each of which is an EtherType and what
/// follows it in a frame of its own.
///
/// # Panics
/// If they are none or more than [`PACKETS_MAX`], do not fit into the buffer, or one begins beyond the 65,535th byte.
pub fn emit<'a>(
    buffer: &mut Buffer,
    outer: &Header,
    packets: impl ExactSizeIterator<Item = (u16, &'a [u8])> + Clone,
) {
    let n = packets.len();
    assert!(
        (1..=PACKETS_MAX).contains(&n),
        "{n} packets in an aggregate"
    );
    let mut push =
        |bytes: &[u8]| assert!(buffer.push(bytes), "an aggregate larger than its buffer");
    push(&outer.to_bytes());
    push(&[n as u8]);
    let mut at = first_offset(n);
    for (_, packet) in packets.clone().take(n - 1) {
        at += TYPE_LEN + packet.len();
        let offset = u16::try_from(at).expect("within the data field of a frame");
        push(&offset.to_be_bytes());
    }
    for (ether_type, packet) in packets {
        push(&ether_type.to_be_bytes());
        push(packet);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ethernet::{HEADER_LEN, MacAddr};
    use proptest::prelude::*;

    const OUTER: Header = Header {
        destination: MacAddr([2, 0, 0, 0, 0, 0x0b]),
        source: MacAddr([2, 0, 0, 0, 0, 0x0a]),
        ether_type: ETHER_TYPE,
    };

    fn emitted(packets: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let mut buffer = Buffer::with_capacity(70_000);
        let parts = packets.iter().map(|(kind, packet)| (*kind, &packet[..]));
        emit(&mut buffer, &OUTER, parts);
        buffer.to_vec()
    }

    fn packets_of(data: &[u8]) -> Result<Vec<(u16, Vec<u8>)>, DfapError> {
        let aggregate = Aggregate::parse(data)?;
        let packet = |at| {
            let (kind, range) = aggregate.packet(at);
            (kind, data[range].to_vec())
        };
        Ok((0..aggregate.len()).map(packet).collect())
    }

    /// The paper's text, word by word: the slow way from the front to the back.
    fn by_the_text(data: &[u8]) -> Option<Vec<(u16, Vec<u8>)>> {
        let (&n, mut rest) = data.split_first()?;
        let mut begins = vec![1 + (usize::from(n).checked_sub(1)?) * 2];
        for _ in 1..n {
            let (offset, after) = rest.split_at_checked(2)?;
            begins.push(usize::from(offset[0]) << 8 | usize::from(offset[1]));
            rest = after;
        }
        let mut ends = begins[1..].to_vec();
        ends.push(data.len());
        let mut all = Vec::new();
        for (begin, end) in begins.into_iter().zip(ends) {
            let whole = data.get(begin..end)?;
            let (kind, packet) = whole.split_at_checked(2)?;
            let kind = u16::from(kind[0]) << 8 | u16::from(kind[1]);
            let cannot = kind < 1536 || [0x88b5, 0xbbbb, 0xaaaa].contains(&kind);
            if packet.is_empty() || cannot {
                return None;
            }
            all.push((kind, packet.to_vec()));
        }
        Some(all)
    }

    #[test]
    fn offsets_count_from_the_count_itself_and_point_at_types() {
        let frame = emitted(&[
            (0x0800, vec![0x45; 20]),
            (0x0806, vec![6; 28]),
            (0x86dd, vec![0x60; 40]),
        ]);
        let data = &frame[HEADER_LEN..];
        assert_eq!(frame[12..14], [0xbb, 0xbb]);
        // The paper says that the first begins at 2 (n − 1), and forgets the byte of n.
        assert_eq!(data[..5], [3, 0, 5 + 22, 0, 5 + 22 + 30]);
        assert_eq!(data[5..7], [0x08, 0x00]);
        assert_eq!(data[27..29], [0x08, 0x06]);
        assert_eq!(data[57..59], [0x86, 0xdd]);
        assert_eq!(data.len(), data_len(3, 20 + 28 + 40));
    }

    #[test]
    fn each_lie_is_named() {
        let error = |data: &[u8]| Aggregate::parse(data).unwrap_err();
        assert_eq!(error(&[]), DfapError::Truncated);
        assert_eq!(error(&[0, 0, 0]), DfapError::NoPackets);
        assert_eq!(error(&[2, 0]), DfapError::Truncated);
        assert_eq!(error(&[1, 8, 0]), DfapError::BadOffset);
        // The second begins before the first has a byte, beyond the end, or has none itself.
        for second in [3, 5, 9, 10] {
            let data = [2, 0, second, 8, 0, 1, 8, 0, 1];
            assert_eq!(error(&data), DfapError::BadOffset, "{second}");
        }
        assert!(Aggregate::parse(&[2, 0, 6, 8, 0, 1, 8, 0, 1]).is_ok());
        for kind in [[0x05, 0xff], [0x88, 0xb5], [0xbb, 0xbb], [0xaa, 0xaa]] {
            let data = [1, kind[0], kind[1], 1];
            assert_eq!(error(&data), DfapError::BadType, "{kind:x?}");
        }
    }

    #[test]
    fn padding_goes_where_the_last_packet_says_how_long_it_is() {
        let mut ip = vec![0; 21];
        (ip[0], ip[3]) = (0x45, 21);
        let unpadded = emitted(&[(0x0806, vec![1; 3]), (0x0800, ip.clone())]);
        let mut padded = unpadded.clone();
        padded.resize(HEADER_LEN + PADDED_LEN, 0);
        assert_eq!(
            packets_of(&padded[HEADER_LEN..]),
            packets_of(&unpadded[HEADER_LEN..])
        );
        assert!(tells_its_length(0x0800, &ip) && !tells_its_length(0x0800, &ip[..20]));
        // Of another type nobody knows, and what is not padded says what it likes.
        assert!(!tells_its_length(0x0806, &[0; 28]));
        let mut long = emitted(&[(0x0806, vec![1; 30]), (0x0800, ip)]);
        long.push(7);
        let packets = packets_of(&long[HEADER_LEN..]).unwrap();
        assert_eq!(packets[1].1.len(), 22);
    }

    fn packet() -> impl Strategy<Value = (u16, Vec<u8>)> {
        let kinds = prop_oneof![
            Just(0x0800),
            Just(0x86dd),
            Just(0x0806),
            TYPE_MIN..=u16::MAX
        ];
        let fits = |kind: &u16| *kind != ether_type::PACKTRAIN && !is_aggregate_type(*kind);
        let kinds = kinds.prop_filter("a type that may ride", fits);
        (kinds, prop::collection::vec(any::<u8>(), 1..200))
    }

    proptest! {
        #[test]
        fn what_is_taken_apart_is_what_was_put_together(packets in prop::collection::vec(packet(), 1..=255)) {
            let bytes = packets.iter().map(|(_, packet)| packet.len()).sum();
            let frame = emitted(&packets);
            let data = &frame[HEADER_LEN..];
            prop_assert_eq!(data.len(), data_len(packets.len(), bytes));
            let text = by_the_text(data);
            prop_assert_eq!(text.as_ref(), Some(&packets));
            // A short one may be taken for padded.
            if data.len() > PADDED_LEN {
                prop_assert_eq!(packets_of(data), Ok(packets));
            }
        }

        #[test]
        fn any_bytes_are_read_as_the_text_reads_them(
            mut data in prop::collection::vec(prop_oneof![0u8..12, any::<u8>()], 0..120),
            n in 0u8..6,
        ) {
            if let Some(first) = data.first_mut() {
                *first = n;
            }
            let read = packets_of(&data).ok();
            match by_the_text(&data) {
                None => prop_assert_eq!(read, None),
                Some(text) => {
                    let read = read.expect("the text reads it");
                    prop_assert_eq!(read.len(), text.len());
                    for ((kind, packet), (text_kind, text_packet)) in read.iter().zip(&text) {
                        prop_assert_eq!(kind, text_kind);
                        prop_assert_eq!(&text_packet[..packet.len()], &packet[..]);
                    }
                }
            }
        }
    }
}
