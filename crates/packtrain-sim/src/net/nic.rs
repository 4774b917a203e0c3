//! What a network card does before the wire: cuts GSO frames, finishes checksums, pads.
//!
//! It is hardware here: written apart from the engine's own segmentation, so that each can be
//! wrong without the other.

use packtrain_proto::offload::{GsoKind, Offload};

use crate::checksum::{Transport, sum};
use crate::frame::{FRAME_BYTES_MIN, Frame};

const TCP_CWR: u8 = 0x80;
const TCP_FIN_AND_PSH: u8 = 0x09;

/// The frames that go on a wire that knows no offload. `None` if the metadata contradicts the
/// frame: a driver would hang or send rubbish, so whoever asked for it is wrong.
pub fn to_wire(frame: Frame) -> Option<Vec<Frame>> {
    let mut frames = match frame.offload.gso {
        Some(_) => segments(&frame)?,
        None => vec![frame],
    };
    for frame in &mut frames {
        finish_checksum(frame)?;
        if frame.bytes.len() < FRAME_BYTES_MIN {
            frame.bytes.resize(FRAME_BYTES_MIN, 0);
        }
    }
    Some(frames)
}

fn finish_checksum(frame: &mut Frame) -> Option<()> {
    let Some(partial) = frame.offload.checksum.take() else {
        return Some(());
    };
    let start = usize::from(partial.start);
    let field = start + usize::from(partial.offset);
    if field + 2 > frame.bytes.len() {
        return None;
    }
    let value = !sum(0, &frame.bytes[start..]);
    let value = if value == 0 { 0xffff } else { value };
    frame.bytes[field..field + 2].copy_from_slice(&value.to_be_bytes());
    Some(())
}

fn segments(frame: &Frame) -> Option<Vec<Frame>> {
    let gso = frame.offload.gso?;
    let transport = Transport::find(&frame.bytes)?;
    let header_len = usize::from(gso.header_len);
    let segment_len = usize::from(gso.segment_len);
    let tcp = matches!(gso.kind, GsoKind::TcpV4 | GsoKind::TcpV6);
    let transport_header_len = if tcp {
        usize::from(*frame.bytes.get(transport.start + 12)? >> 4) * 4
    } else {
        8
    };
    let agrees = segment_len > 0
        && header_len == transport.start + transport_header_len
        && header_len < frame.bytes.len()
        && transport.end == frame.bytes.len()
        && transport.protocol
            == if tcp {
                crate::checksum::TCP
            } else {
                crate::checksum::UDP
            }
        && (gso.kind == GsoKind::UdpL4 || transport.ipv6 == (gso.kind == GsoKind::TcpV6));
    if !agrees {
        return None;
    }
    let (headers, payload) = frame.bytes.split_at(header_len);
    let count = payload.len().div_ceil(segment_len);
    let cut = payload.chunks(segment_len).enumerate().map(|(i, piece)| {
        let mut bytes = Vec::with_capacity(header_len + piece.len());
        bytes.extend_from_slice(headers);
        bytes.extend_from_slice(piece);
        let network = transport.network;
        let network_len = (bytes.len() - network) as u16;
        if transport.ipv6 {
            put(&mut bytes, network + 4, network_len - 40);
        } else {
            put(&mut bytes, network + 2, network_len);
            let id = word(headers, network + 4).wrapping_add(i as u16);
            put(&mut bytes, network + 4, id);
            put(&mut bytes, network + 10, 0);
            let check = !sum(0, &bytes[network..transport.start]);
            put(&mut bytes, network + 10, check);
        }
        if tcp {
            let at = transport.start + 4;
            let sequence = u32::from_be_bytes(headers[at..at + 4].try_into().expect("four bytes"));
            let sequence = sequence.wrapping_add((i * segment_len) as u32);
            bytes[at..at + 4].copy_from_slice(&sequence.to_be_bytes());
            if i + 1 < count {
                bytes[transport.start + 13] &= !TCP_FIN_AND_PSH;
            }
            if i > 0 {
                bytes[transport.start + 13] &= !TCP_CWR;
            }
        } else {
            let udp_len = (bytes.len() - transport.start) as u16;
            put(&mut bytes, transport.start + 4, udp_len);
        }
        let own = Transport {
            end: bytes.len(),
            ..transport
        };
        own.put_finished(&mut bytes);
        Frame::new(bytes, Offload::NONE)
    });
    Some(cut.collect())
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}
