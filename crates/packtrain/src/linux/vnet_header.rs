//! The kernel's `virtio_net_hdr` in its 10-byte form, as TAPs (`IFF_VNET_HDR`) and packet sockets
//! (`PACKET_VNET_HDR`) put it before each frame; in the host's byte order, which is what both use
//! unless told otherwise.
//!
//! ```text
//!  0       1          2            4              6                8             10
//! +-------+----------+------------+--------------+----------------+-------------+
//! | flags | GSO type | header len | segment len  | checksum start | its offset  |
//! +-------+----------+------------+--------------+----------------+-------------+
//! ```
//! Source: `include/uapi/linux/virtio_net.h`, `include/linux/virtio_net.h`.

use packtrain_proto::offload::{Gso, GsoKind, Offload, PartialChecksum};

pub const LEN: usize = 10;

const FLAG_NEEDS_CSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_UDP_FRAGMENTS: u8 = 3;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;

const TCP_HEADER_LEN_MIN: u16 = 20;
const UDP_HEADER_LEN: u16 = 8;

/// Why a header says something that [`Offload`] has no words for. The frame has to be dropped:
/// without what the header says it is not a frame that a network could carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VnetHeaderError {
    #[error("GSO type {0:#04x} is not known")]
    UnknownGsoType(u8),
    #[error("UDP fragmentation offload (UFO) is not supported")]
    UdpFragments,
    #[error("a GSO frame whose checksum is not partial does not say where its headers end")]
    GsoWithoutChecksum,
    #[error("a GSO frame ends before its headers do")]
    HeaderTruncated,
}

/// What the header before `frame` says. `frame` may be its first part, if all headers are in it.
///
/// The length of the headers is read from the frame itself, because the kernel's field is only a
/// hint how much to keep linear (`skb_headlen`, up to the whole frame). Flags of the receive side
/// (`DATA_VALID`, `RSC_INFO`) are passed over: they leave nothing to be done.
pub fn parse(header: &[u8; LEN], frame: &[u8]) -> Result<Offload, VnetHeaderError> {
    let field = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
    let checksum = (header[0] & FLAG_NEEDS_CSUM != 0).then(|| PartialChecksum {
        start: field(6),
        offset: field(8),
    });
    let kind = match header[1] & !GSO_ECN {
        // An ECN bit of its own means nothing.
        GSO_NONE => {
            return Ok(Offload {
                checksum,
                gso: None,
            });
        }
        GSO_TCPV4 => GsoKind::TcpV4,
        GSO_TCPV6 => GsoKind::TcpV6,
        GSO_UDP_L4 => GsoKind::UdpL4,
        GSO_UDP_FRAGMENTS => return Err(VnetHeaderError::UdpFragments),
        other => return Err(VnetHeaderError::UnknownGsoType(other)),
    };
    let transport = checksum.ok_or(VnetHeaderError::GsoWithoutChecksum)?.start;
    let gso = Gso {
        kind,
        ecn: header[1] & GSO_ECN != 0,
        header_len: header_len(kind, transport, frame)?,
        segment_len: field(4),
    };
    Ok(Offload {
        checksum,
        gso: Some(gso),
    })
}

fn header_len(kind: GsoKind, transport: u16, frame: &[u8]) -> Result<u16, VnetHeaderError> {
    let transport_len = match kind {
        GsoKind::UdpL4 => UDP_HEADER_LEN,
        GsoKind::TcpV4 | GsoKind::TcpV6 => {
            let data_offset = frame.get(usize::from(transport) + 12);
            let words = data_offset.ok_or(VnetHeaderError::HeaderTruncated)? >> 4;
            (u16::from(words) * 4).max(TCP_HEADER_LEN_MIN)
        }
    };
    transport
        .checked_add(transport_len)
        .filter(|&len| usize::from(len) <= frame.len())
        .ok_or(VnetHeaderError::HeaderTruncated)
}

/// The header that tells the kernel what `offload` says.
pub fn emit(offload: Offload) -> [u8; LEN] {
    let mut header = [0; LEN];
    let mut put = |at: usize, value: u16| header[at..at + 2].copy_from_slice(&value.to_ne_bytes());
    if let Some(checksum) = offload.checksum {
        put(6, checksum.start);
        put(8, checksum.offset);
    }
    if let Some(gso) = offload.gso {
        put(2, gso.header_len);
        put(4, gso.segment_len);
        header[1] = match gso.kind {
            GsoKind::TcpV4 => GSO_TCPV4,
            GsoKind::TcpV6 => GSO_TCPV6,
            GsoKind::UdpL4 => GSO_UDP_L4,
        } | if gso.ecn { GSO_ECN } else { 0 };
    }
    header[0] = if offload.checksum.is_some() {
        FLAG_NEEDS_CSUM
    } else {
        0
    };
    header
}

/// The same facts about a frame that has become `by` bytes longer before its network header.
pub fn shift(offload: Offload, by: u16) -> Offload {
    let mut shifted = offload;
    if let Some(checksum) = &mut shifted.checksum {
        checksum.start = checksum.start.saturating_add(by);
    }
    if let Some(gso) = &mut shifted.gso {
        gso.header_len = gso.header_len.saturating_add(by);
    }
    shifted
}

/// What it says of the same frame where `by` bytes before those headers are gone.
pub fn shift_back(offload: Offload, by: u16) -> Offload {
    let mut shifted = offload;
    if let Some(checksum) = &mut shifted.checksum {
        checksum.start = checksum.start.saturating_sub(by);
    }
    if let Some(gso) = &mut shifted.gso {
        gso.header_len = gso.header_len.saturating_sub(by);
    }
    shifted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame whose byte at the TCP data offset of `transport` says `words`.
    fn frame(transport: usize, words: u8) -> Vec<u8> {
        let mut frame = vec![0; 2000];
        frame[transport + 12] = words << 4;
        frame
    }

    fn tcp(kind: GsoKind, ecn: bool, header_len: u16) -> Offload {
        Offload {
            checksum: Some(PartialChecksum {
                start: 34,
                offset: 16,
            }),
            gso: Some(Gso {
                kind,
                ecn,
                header_len,
                segment_len: 1448,
            }),
        }
    }

    #[test]
    fn what_is_emitted_parses_to_the_same() {
        let udp = Offload {
            checksum: Some(PartialChecksum {
                start: 34,
                offset: 6,
            }),
            gso: Some(Gso {
                kind: GsoKind::UdpL4,
                ecn: false,
                header_len: 42,
                segment_len: 1200,
            }),
        };
        let checksum = Offload {
            checksum: Some(PartialChecksum {
                start: 54,
                offset: 16,
            }),
            gso: None,
        };
        for offload in [
            Offload::NONE,
            checksum,
            tcp(GsoKind::TcpV4, false, 66),
            tcp(GsoKind::TcpV6, true, 66),
            udp,
        ] {
            assert_eq!(parse(&emit(offload), &frame(34, 8)), Ok(offload));
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_kernels_structure() {
        let header = emit(tcp(GsoKind::TcpV4, true, 66));
        assert_eq!(header[..2], [1, 0x81]);
        let fields: Vec<u16> = header[2..]
            .chunks(2)
            .map(|b| u16::from_ne_bytes([b[0], b[1]]))
            .collect();
        assert_eq!(fields, [66, 1448, 34, 16]);
        assert_eq!(emit(Offload::NONE), [0; LEN]);
    }

    #[test]
    fn the_kernels_hint_of_a_header_length_is_not_believed() {
        let mut header = emit(tcp(GsoKind::TcpV4, false, 66));
        header[2..4].copy_from_slice(&1514u16.to_ne_bytes());
        assert_eq!(
            parse(&header, &frame(34, 8)),
            Ok(tcp(GsoKind::TcpV4, false, 66))
        );
        assert_eq!(
            parse(&header, &frame(34, 5)),
            Ok(tcp(GsoKind::TcpV4, false, 54))
        );
    }

    #[test]
    fn flags_of_the_receive_side_leave_nothing_to_do() {
        for flags in [2, 4, 6] {
            let mut header = [0; LEN];
            header[0] = flags;
            assert_eq!(parse(&header, &[]), Ok(Offload::NONE));
        }
    }

    #[test]
    fn what_has_no_words_is_an_error_that_names_it() {
        let with_type = |gso_type: u8| {
            let mut header = emit(tcp(GsoKind::TcpV4, false, 66));
            header[1] = gso_type;
            parse(&header, &frame(34, 8))
        };
        assert_eq!(with_type(3), Err(VnetHeaderError::UdpFragments));
        assert_eq!(with_type(2), Err(VnetHeaderError::UnknownGsoType(2)));
        assert_eq!(with_type(0x21), Err(VnetHeaderError::UnknownGsoType(0x21)));
        let mut header = emit(tcp(GsoKind::TcpV4, false, 66));
        header[0] = 0;
        assert_eq!(
            parse(&header, &frame(34, 8)),
            Err(VnetHeaderError::GsoWithoutChecksum)
        );
    }

    #[test]
    fn a_gso_frame_that_ends_in_its_headers_is_an_error_at_every_length() {
        let header = emit(tcp(GsoKind::TcpV4, false, 66));
        let whole = frame(34, 8);
        for len in 0..66 {
            assert_eq!(
                parse(&header, &whole[..len]),
                Err(VnetHeaderError::HeaderTruncated)
            );
        }
        assert!(parse(&header, &whole[..66]).is_ok());
        let mut far = header;
        far[6..8].copy_from_slice(&u16::MAX.to_ne_bytes());
        assert_eq!(parse(&far, &whole), Err(VnetHeaderError::HeaderTruncated));
    }

    #[test]
    fn a_tag_put_in_moves_every_offset_and_no_length() {
        let moved = shift(tcp(GsoKind::TcpV4, false, 66), 4);
        assert_eq!(
            moved.checksum,
            Some(PartialChecksum {
                start: 38,
                offset: 16
            })
        );
        assert_eq!(
            moved.gso.map(|g| (g.header_len, g.segment_len)),
            Some((70, 1448))
        );
        assert_eq!(shift_back(moved, 4), tcp(GsoKind::TcpV4, false, 66));
        assert_eq!(shift(Offload::NONE, 4), Offload::NONE);
    }
}
