//! What a capture says of packets: when each came, and how long it was.

use std::path::Path;
use std::time::Duration;

use packtrain_proto::wire::ethernet::ether_type;
use packtrain_proto::wire::packet::field;

use crate::capture_file::{CaptureFile, Frame};

/// An Ethernet header without its EtherType.
const ADDRESSES_LEN: usize = 12;
/// IPv4 and UDP; shorter ones are none that the simulator has.
const PACKET_BYTES_MIN: usize = 28;
const PACKET_BYTES_MAX: usize = 65_535;
const TAGS_MAX: usize = 2;

/// Since the first one, in the order of their times; bytes as IP counts them.
pub(super) fn packets(path: &Path) -> Result<Vec<(Duration, u32)>, String> {
    let mut capture = CaptureFile::open(path).map_err(|error| error.to_string())?;
    let mut packets = Vec::new();
    while let Some(frame) = capture.next_frame().map_err(|error| error.to_string())? {
        let Some(bytes) = ip_bytes(&frame) else {
            continue;
        };
        let Some(at) = frame.at else {
            let file = path.display();
            return Err(format!("{file}: packet {} has no time", frame.number));
        };
        packets.push((at, bytes));
    }
    // Those of several interfaces may stand in another order than they came.
    packets.sort_by_key(|(at, _)| *at);
    let first = packets.first().map_or(Duration::ZERO, |(at, _)| *at);
    packets.iter_mut().for_each(|(at, _)| *at -= first);
    Ok(packets)
}

/// `None`: it is none of IP's.
fn ip_bytes(frame: &Frame<'_>) -> Option<u32> {
    let bytes = frame.bytes;
    let number = |at: usize| {
        let field = bytes.get(at..at + 2)?;
        Some(u16::from_be_bytes([field[0], field[1]]))
    };
    let mut at = ADDRESSES_LEN;
    let mut kind = number(at)?;
    for _ in 0..TAGS_MAX {
        if [ether_type::VLAN, ether_type::QINQ].contains(&kind) {
            at += 4;
            kind = number(at)?;
        }
    }
    let start = at + 2;
    let claimed = match kind {
        ether_type::IPV4 => number(start + field::IPV4_TOTAL_LEN.start)?.into(),
        ether_type::IPV6 => match number(start + field::IPV6_PAYLOAD_LEN.start)? {
            0 => 0,
            payload => 40 + usize::from(payload),
        },
        _ => return None,
    };
    // What a card was to cut does not say how long it is.
    let len = match claimed {
        0 => frame.len_on_wire - start,
        claimed => claimed,
    };
    Some(len.clamp(PACKET_BYTES_MIN, PACKET_BYTES_MAX) as u32)
}
