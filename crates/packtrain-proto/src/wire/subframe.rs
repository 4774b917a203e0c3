//! A subframe: one frame, or a piece of one, inside a train. The diagrams are in docs/wire-format.md.

use crate::offload::{Gso, GsoKind, Offload, PartialChecksum};
use crate::wire::ethernet::{MacAddr, ether_type};
use crate::wire::train::{TrainWriter, be16};

/// Bytes before the payload of a subframe without any optional field.
pub const HEADER_LEN: usize = 3;
/// What FIRST and NEXT add.
pub const PIECE_LEN: usize = 4;
const ADDRESSES_LEN: usize = 12;
const ETHER_TYPE_LEN: usize = 2;
const OFFLOAD_LEN: usize = 8;

mod flag {
    pub const ADDRESSES: u8 = 0x80;
    pub const ETHER_TYPE: u8 = 0x40;
    pub const OFFLOAD: u8 = 0x20;
    pub const RESERVED: u8 = 0x10;
}

mod kind {
    pub const END: u8 = 0;
    pub const FRAME: u8 = 1;
    pub const FIRST: u8 = 2;
    pub const NEXT: u8 = 3;
}

/// Why the rest of a train cannot be unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubframeError {
    #[error("unknown kind or reserved flag")]
    Unknown,
    #[error("longer than what is left of the train")]
    Truncated,
    #[error("no payload")]
    Empty,
    #[error("neither IPv4 nor IPv6, and no EtherType")]
    NoEtherType,
    #[error("a first piece that is the whole")]
    PieceIsWhole,
    #[error("a later piece with fields of a first one")]
    PieceWithHeader,
    #[error("a piece beyond 65,535 bytes")]
    PieceBeyond,
    #[error("unknown GSO kind")]
    UnknownGso,
    #[error("packtrain inside packtrain")]
    Nested,
}

/// The inner Ethernet header of a subframe, as far as it was written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InnerHeader {
    /// Destination and source; `None`: from the sender's `pt0` to the receiver's.
    pub addresses: Option<(MacAddr, MacAddr)>,
    pub ether_type: u16,
    pub offload: Offload,
}

/// What a subframe carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subframe<'a> {
    Frame {
        header: InnerHeader,
        payload: &'a [u8],
    },
    First {
        header: InnerHeader,
        id: u16,
        total_len: u16,
        payload: &'a [u8],
    },
    Next {
        id: u16,
        offset: u16,
        payload: &'a [u8],
    },
}

/// The EtherType of a FRAME that is no GSO frame, by what stands before its payload and by that.
pub(crate) fn ether_type_of(header: &[u8], payload: &[u8]) -> Option<u16> {
    match header[0] & flag::ETHER_TYPE {
        0 => implied_ether_type(payload),
        _ => Some(be16(&header[header.len() - ETHER_TYPE_LEN..])),
    }
}

/// Gives a subframe's header another length of its payload.
pub(crate) fn set_len(header: &mut [u8], len: u16) {
    header[1..3].copy_from_slice(&len.to_be_bytes());
}

/// Whether a train whose subframes would begin here has any.
pub fn has_any(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|first| first & 0x0f != kind::END)
}

impl<'a> Subframe<'a> {
    /// The subframe at the front of `bytes` and its length there; `None` at the end of the train.
    pub fn parse(bytes: &'a [u8]) -> Result<Option<(Subframe<'a>, usize)>, SubframeError> {
        let Some(&first) = bytes.first() else {
            return Ok(None);
        };
        let kind = first & 0x0f;
        if kind == kind::END {
            return Ok(None);
        }
        if kind > kind::NEXT || first & flag::RESERVED != 0 {
            return Err(SubframeError::Unknown);
        }
        let mut at = HEADER_LEN;
        let mut field = |len: usize| {
            let field = bytes.get(at..at + len).ok_or(SubframeError::Truncated);
            at += len;
            field
        };
        let len = usize::from(be16(bytes.get(1..3).ok_or(SubframeError::Truncated)?));
        if len == 0 {
            return Err(SubframeError::Empty);
        }
        if kind == kind::NEXT {
            if first & 0xf0 != 0 {
                return Err(SubframeError::PieceWithHeader);
            }
            let piece = field(PIECE_LEN)?;
            let (id, offset) = (be16(piece), be16(&piece[2..]));
            if usize::from(offset) + len > usize::from(u16::MAX) {
                return Err(SubframeError::PieceBeyond);
            }
            let payload = field(len)?;
            return Ok(Some((
                Subframe::Next {
                    id,
                    offset,
                    payload,
                },
                at,
            )));
        }
        let addresses = match first & flag::ADDRESSES {
            0 => None,
            _ => {
                let field = field(ADDRESSES_LEN)?;
                Some((MacAddr::from_slice(field), MacAddr::from_slice(&field[6..])))
            }
        };
        let ether_type = match first & flag::ETHER_TYPE {
            0 => None,
            _ => Some(be16(field(ETHER_TYPE_LEN)?)),
        };
        let offload = match first & flag::OFFLOAD {
            0 => Offload::NONE,
            _ => parse_offload(field(OFFLOAD_LEN)?)?,
        };
        let piece = match kind {
            kind::FIRST => Some(field(PIECE_LEN)?),
            _ => None,
        };
        let payload = field(len)?;
        let ether_type = match ether_type {
            Some(ether_type::PACKTRAIN) => return Err(SubframeError::Nested),
            Some(ether_type) => ether_type,
            None => implied_ether_type(payload).ok_or(SubframeError::NoEtherType)?,
        };
        let header = InnerHeader {
            addresses,
            ether_type,
            offload,
        };
        let subframe = match piece {
            None => Subframe::Frame { header, payload },
            Some(piece) => {
                let (id, total_len) = (be16(piece), be16(&piece[2..]));
                if usize::from(total_len) <= len {
                    return Err(SubframeError::PieceIsWhole);
                }
                Subframe::First {
                    header,
                    id,
                    total_len,
                    payload,
                }
            }
        };
        Ok(Some((subframe, at)))
    }
}

/// The EtherType that the first four bits of a payload tell.
fn implied_ether_type(payload: &[u8]) -> Option<u16> {
    match payload.first()? >> 4 {
        4 => Some(ether_type::IPV4),
        6 => Some(ether_type::IPV6),
        _ => None,
    }
}

fn parse_offload(field: &[u8]) -> Result<Offload, SubframeError> {
    let kind = match field[0] & 0x7f {
        1 => GsoKind::TcpV4,
        2 => GsoKind::TcpV6,
        3 => GsoKind::UdpL4,
        _ => return Err(SubframeError::UnknownGso),
    };
    Ok(Offload {
        checksum: Some(PartialChecksum {
            start: be16(&field[6..]),
            offset: u16::from(field[1]),
        }),
        gso: Some(Gso {
            kind,
            ecn: field[0] & 0x80 != 0,
            header_len: be16(&field[2..]),
            segment_len: be16(&field[4..]),
        }),
    })
}

fn offload_to_bytes(gso: &Gso, checksum: PartialChecksum) -> [u8; OFFLOAD_LEN] {
    let mut bytes = [0; OFFLOAD_LEN];
    bytes[0] = match gso.kind {
        GsoKind::TcpV4 => 1,
        GsoKind::TcpV6 => 2,
        GsoKind::UdpL4 => 3,
    } | if gso.ecn { 0x80 } else { 0 };
    bytes[1] = checksum.offset as u8;
    bytes[2..4].copy_from_slice(&gso.header_len.to_be_bytes());
    bytes[4..6].copy_from_slice(&gso.segment_len.to_be_bytes());
    bytes[6..8].copy_from_slice(&checksum.start.to_be_bytes());
    bytes
}

/// Bytes that a subframe of this header takes before its payload; `piece`: as FIRST.
pub fn overhead(header: &InnerHeader, payload: &[u8], piece: bool) -> usize {
    HEADER_LEN
        + if header.addresses.is_some() {
            ADDRESSES_LEN
        } else {
            0
        }
        + if implied_ether_type(payload) == Some(header.ether_type) {
            0
        } else {
            ETHER_TYPE_LEN
        }
        + if header.offload.gso.is_some() {
            OFFLOAD_LEN
        } else {
            0
        }
        + if piece { PIECE_LEN } else { 0 }
}

impl TrainWriter<'_> {
    fn put_header(&mut self, kind: u8, header: &InnerHeader, payload: &[u8], first: &[u8]) {
        let mut head = [0; HEADER_LEN + ADDRESSES_LEN + ETHER_TYPE_LEN + OFFLOAD_LEN];
        let mut at = HEADER_LEN;
        head[0] = kind;
        head[1..3].copy_from_slice(&(payload.len() as u16).to_be_bytes());
        if let Some((destination, source)) = header.addresses {
            head[0] |= flag::ADDRESSES;
            head[at..at + 6].copy_from_slice(&destination.0);
            head[at + 6..at + 12].copy_from_slice(&source.0);
            at += ADDRESSES_LEN;
        }
        if implied_ether_type(first) != Some(header.ether_type) {
            head[0] |= flag::ETHER_TYPE;
            head[at..at + 2].copy_from_slice(&header.ether_type.to_be_bytes());
            at += ETHER_TYPE_LEN;
        }
        if let (Some(gso), Some(checksum)) = (header.offload.gso, header.offload.checksum) {
            head[0] |= flag::OFFLOAD;
            head[at..at + OFFLOAD_LEN].copy_from_slice(&offload_to_bytes(&gso, checksum));
            at += OFFLOAD_LEN;
        }
        self.put(&head[..at]);
    }

    pub fn put_frame(&mut self, header: &InnerHeader, payload: &[u8]) {
        self.put_header(kind::FRAME, header, payload, payload);
        self.put(payload);
    }

    pub fn put_first(&mut self, header: &InnerHeader, id: u16, total_len: u16, payload: &[u8]) {
        self.put_header(kind::FIRST, header, payload, payload);
        let mut piece = [0; PIECE_LEN];
        piece[..2].copy_from_slice(&id.to_be_bytes());
        piece[2..].copy_from_slice(&total_len.to_be_bytes());
        self.put(&piece);
        self.put(payload);
    }

    pub fn put_next(&mut self, id: u16, offset: u16, payload: &[u8]) {
        let mut head = [0; HEADER_LEN + PIECE_LEN];
        head[0] = kind::NEXT;
        head[1..3].copy_from_slice(&(payload.len() as u16).to_be_bytes());
        head[3..5].copy_from_slice(&id.to_be_bytes());
        head[5..7].copy_from_slice(&offset.to_be_bytes());
        self.put(&head);
        self.put(payload);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_sender_never_writes_is_refused_by_name() {
        let cases: &[(&[u8], SubframeError)] = &[
            (&[0x04, 0, 1, 0x45], SubframeError::Unknown),
            (&[0x11, 0, 1, 0x45], SubframeError::Unknown),
            (&[0x01, 0, 0], SubframeError::Empty),
            (&[0x01, 0, 2, 0x45], SubframeError::Truncated),
            (&[0x01, 0], SubframeError::Truncated),
            (&[0x01, 0, 1, 0x00], SubframeError::NoEtherType),
            (&[0x41, 0, 1, 0x88, 0xb5, 0x00], SubframeError::Nested),
            (
                &[0x02, 0, 2, 0, 1, 0, 2, 0x45, 0],
                SubframeError::PieceIsWhole,
            ),
            (
                &[0x83, 0, 1, 0, 1, 0, 2, 0x45],
                SubframeError::PieceWithHeader,
            ),
            (
                &[0x03, 0, 2, 0, 1, 0xff, 0xfe, 0x45, 0],
                SubframeError::PieceBeyond,
            ),
            (
                &[0x21, 0, 1, 9, 0, 0, 0, 0, 0, 0, 0, 0x45],
                SubframeError::UnknownGso,
            ),
        ];
        for (bytes, error) in cases {
            assert_eq!(Subframe::parse(bytes), Err(*error), "{bytes:02x?}");
        }
        assert_eq!(Subframe::parse(&[]), Ok(None));
        assert_eq!(Subframe::parse(&[0, 1, 2]), Ok(None));
    }
}
