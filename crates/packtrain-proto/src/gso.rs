//! GSO frames: one frame that stands for a row of segments with equal headers.
//!
//! Nobody's metadata is believed. The kernel acts on what a `virtio_net_hdr` says, so what came
//! over the wire must agree with the headers to the byte before it is handed on ([`check`]).
//!
//! What Linux puts into the headers of such a frame, and what is therefore asked of them: the IP
//! length is that of the whole frame, the UDP length is that of the whole payload + 8, and the
//! checksum field holds the sum of the pseudo header with that whole length. The `hdr_len` that a
//! TAP gives is only a hint (how much lies in the first piece of memory): the owner of a TAP
//! takes [`header_len`] instead.

use crate::buffer::Buffer;
use crate::offload::{Gso, GsoKind, Offload, PartialChecksum};
use crate::wire::checksum;
use crate::wire::ethernet;
use crate::wire::packet::{Ip, IpVersion, Packet, PacketError, Transport, UDP_HEADER_LEN, field};

/// Where the checksum lies in a TCP and in a UDP header.
pub const TCP_CHECKSUM_OFFSET: u16 = 16;
pub const UDP_CHECKSUM_OFFSET: u16 = 6;
/// What Linux cuts one UDP frame into at most (`UDP_MAX_SEGMENTS`, `include/linux/udp.h`).
pub const UDP_SEGMENTS_MAX: usize = 128;
/// Bytes after the EtherType.
pub const PAYLOAD_LEN_MAX: usize = 65_535;

const TCP_FIN: u8 = 0x01;
const TCP_PSH: u8 = 0x08;
const TCP_CWR: u8 = 0x80;

/// How a frame and its offload metadata disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GsoError {
    #[error(transparent)]
    Packet(#[from] PacketError),
    #[error("the frame is not what {0:?} cuts")]
    Kind(GsoKind),
    #[error("an IP fragment cannot be cut into segments")]
    Fragment,
    #[error("congestion window reduced, of UDP")]
    EcnOfUdp,
    #[error("the headers have {real} bytes, not {claimed}")]
    HeaderLength { claimed: u16, real: usize },
    #[error("a frame to be cut, with a finished checksum")]
    NoPartialChecksum,
    #[error("the checksum starts at {claimed:?}, but the headers put it at {real:?}")]
    ChecksumPlace {
        claimed: PartialChecksum,
        real: PartialChecksum,
    },
    #[error("the checksum at {0:?} is outside of the frame")]
    ChecksumOutside(PartialChecksum),
    #[error("segments of {0} bytes")]
    SegmentLength(u16),
    #[error("nothing after the headers")]
    NoPayload,
    #[error("the IP header claims {claimed} bytes of {real}")]
    IpLength { claimed: usize, real: usize },
    #[error("the UDP header claims {claimed} bytes of {real}")]
    UdpLength { claimed: usize, real: usize },
    #[error("{0} bytes after the EtherType")]
    TooLong(usize),
    #[error("{0} UDP segments")]
    TooManySegments(usize),
    #[error("segments {first} and on, {count} of them, of a frame of {segments}")]
    SegmentRange {
        first: usize,
        count: usize,
        segments: usize,
    },
}

/// Whether everything that the metadata claims agrees with the frame's headers.
///
/// That [`Gso::ecn`] and the CWR flag go together is not asked: neither of the two does harm
/// without the other.
pub fn check(frame: &[u8], offload: &Offload) -> Result<(), GsoError> {
    match (offload.gso, offload.checksum) {
        (Some(gso), checksum) => check_gso(frame, &gso, checksum).map(|_| ()),
        (None, Some(partial)) => checksum_field(frame, partial).map(|_| ()),
        (None, None) => Ok(()),
    }
}

/// Bytes of all headers of a TCP or UDP frame, Ethernet included.
pub fn header_len(frame: &[u8]) -> Option<u16> {
    let len = Packet::parse(frame).ok()?.header_len()?;
    u16::try_from(len).ok()
}

/// Segments that the frame stands for. Never 0 for what [`check`] lets through.
#[inline]
pub fn segment_count(frame_len: usize, gso: &Gso) -> usize {
    let payload_len = frame_len.saturating_sub(usize::from(gso.header_len));
    payload_len.div_ceil(usize::from(gso.segment_len).max(1))
}

/// Completes the checksum in place, as the kernel or a network card would.
pub fn finish_checksum(frame: &mut [u8], partial: PartialChecksum) -> Result<(), GsoError> {
    let field = checksum_field(frame, partial)?;
    // The sum of the pseudo header stands in the field, within what is summed.
    let mut value = checksum::checksum(&frame[usize::from(partial.start)..]);
    // 0 says "no checksum" in UDP (RFC 768). Both are zero in one's complement.
    if value == 0 && partial.offset == UDP_CHECKSUM_OFFSET {
        value = 0xffff;
    }
    frame[field..field + 2].copy_from_slice(&value.to_be_bytes());
    Ok(())
}

/// Puts into `out` the frame that stands for `count` segments from `first` on, and says what is
/// still to be done to it: one segment alone is no GSO frame, but its checksum is still partial.
/// A frame without GSO is one segment.
///
/// The headers become what a cut of the whole frame would have given these segments (as Linux
/// cuts: `tcp_gso_segment`, `__udp_gso_segment`, `inet_gso_segment`). Checksums are updated, not
/// computed afresh, so that damage in a header is still seen by who checks them.
///
/// # Panics
/// If `out` is too small.
pub fn slice(
    frame: &[u8],
    offload: &Offload,
    first: usize,
    count: usize,
    out: &mut Buffer,
) -> Result<Offload, GsoError> {
    out.clear();
    let Some(gso) = offload.gso else {
        check(frame, offload)?;
        if (first, count) != (0, 1) {
            return Err(GsoError::SegmentRange {
                first,
                count,
                segments: 1,
            });
        }
        push(out, frame);
        return Ok(*offload);
    };
    let (packet, ip) = check_gso(frame, &gso, offload.checksum)?;
    let segments = segment_count(frame.len(), &gso);
    let end = first
        .checked_add(count)
        .filter(|&end| count > 0 && end <= segments)
        .ok_or(GsoError::SegmentRange {
            first,
            count,
            segments,
        })?;

    let (headers, payload) = frame.split_at(usize::from(gso.header_len));
    let segment_len = usize::from(gso.segment_len);
    let from = first * segment_len;
    let to = (end * segment_len).min(payload.len());
    push(out, headers);
    push(out, &payload[from..to]);

    let cut_len = (payload.len() - (to - from)) as u16;
    patch_ip(
        &mut out[packet.network_start..],
        ip.version,
        first as u16,
        cut_len,
    );
    let transport = &mut out[ip.transport_start..];
    let checksum_offset = match gso.kind {
        GsoKind::TcpV4 | GsoKind::TcpV6 => {
            patch_tcp(transport, from as u32, first == 0, end == segments);
            TCP_CHECKSUM_OFFSET
        }
        GsoKind::UdpL4 => {
            subtract(&mut transport[field::UDP_LEN], cut_len);
            UDP_CHECKSUM_OFFSET
        }
    };
    // Of all in the pseudo header only the length has changed.
    let old_len = (frame.len() - ip.transport_start) as u16;
    let at = usize::from(checksum_offset);
    let pseudo = checksum::update(read16(&transport[at..]), old_len, old_len - cut_len);
    transport[at..at + 2].copy_from_slice(&pseudo.to_be_bytes());

    let rest = Gso {
        ecn: gso.ecn && first == 0,
        ..gso
    };
    Ok(Offload {
        checksum: offload.checksum,
        gso: (count > 1).then_some(rest),
    })
}

/// `check` of a GSO frame, and what was found on the way.
fn check_gso(
    frame: &[u8],
    gso: &Gso,
    partial: Option<PartialChecksum>,
) -> Result<(Packet, Ip), GsoError> {
    let packet = Packet::parse(frame)?;
    let ip = packet.ip.ok_or(GsoError::Kind(gso.kind))?;
    if ip.fragment {
        return Err(GsoError::Fragment);
    }
    let (transport, checksum_offset) = match (gso.kind, ip.version, ip.transport) {
        (GsoKind::TcpV4, IpVersion::V4, Some(tcp @ Transport::Tcp { .. }))
        | (GsoKind::TcpV6, IpVersion::V6, Some(tcp @ Transport::Tcp { .. })) => {
            (tcp, TCP_CHECKSUM_OFFSET)
        }
        (GsoKind::UdpL4, _, Some(Transport::Udp)) => (Transport::Udp, UDP_CHECKSUM_OFFSET),
        _ => return Err(GsoError::Kind(gso.kind)),
    };
    if gso.ecn && gso.kind == GsoKind::UdpL4 {
        return Err(GsoError::EcnOfUdp);
    }
    let header_len = ip.transport_start + transport.header_len();
    if usize::from(gso.header_len) != header_len {
        return Err(GsoError::HeaderLength {
            claimed: gso.header_len,
            real: header_len,
        });
    }
    let claimed = partial.ok_or(GsoError::NoPartialChecksum)?;
    // The header length fits its field, so the start of its last part does.
    let real = PartialChecksum {
        start: ip.transport_start as u16,
        offset: checksum_offset,
    };
    if claimed != real {
        return Err(GsoError::ChecksumPlace { claimed, real });
    }
    // Linux keeps 65,535 for lists of fragments (`GSO_BY_FRAGS`) and refuses it from outside.
    if matches!(gso.segment_len, 0 | u16::MAX) {
        return Err(GsoError::SegmentLength(gso.segment_len));
    }
    if frame.len() == header_len {
        return Err(GsoError::NoPayload);
    }
    let outer_payload_len = frame.len() - ethernet::HEADER_LEN;
    if outer_payload_len > PAYLOAD_LEN_MAX {
        return Err(GsoError::TooLong(outer_payload_len));
    }
    let ip_len = frame.len() - packet.network_start;
    if ip.total_len != ip_len {
        return Err(GsoError::IpLength {
            claimed: ip.total_len,
            real: ip_len,
        });
    }
    if gso.kind == GsoKind::UdpL4 {
        let real = frame.len() - header_len + UDP_HEADER_LEN;
        let claimed = usize::from(read16(&frame[ip.transport_start..][field::UDP_LEN]));
        if claimed != real {
            return Err(GsoError::UdpLength { claimed, real });
        }
        let segments = segment_count(frame.len(), gso);
        if segments > UDP_SEGMENTS_MAX {
            return Err(GsoError::TooManySegments(segments));
        }
    }
    Ok((packet, ip))
}

/// Where the field stands, if it and the first byte of the sum are within the frame's payload.
fn checksum_field(frame: &[u8], partial: PartialChecksum) -> Result<usize, GsoError> {
    let start = usize::from(partial.start);
    let field = start + usize::from(partial.offset);
    if start < ethernet::HEADER_LEN || field + 2 > frame.len() {
        return Err(GsoError::ChecksumOutside(partial));
    }
    Ok(field)
}

fn patch_ip(network: &mut [u8], version: IpVersion, id_ahead: u16, cut_len: u16) {
    match version {
        IpVersion::V4 => {
            let mut sum = !read16(&network[field::IPV4_CHECKSUM]);
            let old_len = read16(&network[field::IPV4_TOTAL_LEN]);
            sum = checksum::update(
                sum,
                old_len,
                subtract(&mut network[field::IPV4_TOTAL_LEN], cut_len),
            );
            let old_id = read16(&network[field::IPV4_ID]);
            let id = old_id.wrapping_add(id_ahead);
            network[field::IPV4_ID].copy_from_slice(&id.to_be_bytes());
            sum = checksum::update(sum, old_id, id);
            network[field::IPV4_CHECKSUM].copy_from_slice(&(!sum).to_be_bytes());
        }
        IpVersion::V6 => {
            subtract(&mut network[field::IPV6_PAYLOAD_LEN], cut_len);
        }
    }
}

fn patch_tcp(tcp: &mut [u8], bytes_ahead: u32, has_first: bool, has_last: bool) {
    let sequence = &mut tcp[field::TCP_SEQUENCE];
    let moved = u32::from_be_bytes(sequence.try_into().expect("4 bytes")).wrapping_add(bytes_ahead);
    sequence.copy_from_slice(&moved.to_be_bytes());
    tcp[field::TCP_FLAGS] = flags_of_cut(tcp[field::TCP_FLAGS], has_first, has_last);
}

/// TCP flags of some segments of a frame: CWR is said once; PSH and FIN come after the last byte.
pub fn flags_of_cut(flags: u8, has_first: bool, has_last: bool) -> u8 {
    let cwr = if has_first { 0 } else { TCP_CWR };
    let end = if has_last { 0 } else { TCP_FIN | TCP_PSH };
    flags & !(cwr | end)
}

/// Lowers a length field, and gives its new value.
fn subtract(field: &mut [u8], len: u16) -> u16 {
    let value = read16(field) - len;
    field.copy_from_slice(&value.to_be_bytes());
    value
}

fn read16(bytes: &[u8]) -> u16 {
    u16::from_be_bytes([bytes[0], bytes[1]])
}

fn push(out: &mut Buffer, bytes: &[u8]) {
    assert!(
        out.push(bytes),
        "no room for a slice in {} bytes",
        out.capacity()
    );
}

#[cfg(test)]
pub(crate) mod tests;
