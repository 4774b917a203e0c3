//! Explicit congestion notification (RFC 3168): a router that could drop a packet marks it instead.

use packtrain_proto::wire::ethernet::ether_type;

use crate::frame::Frame;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marking {
    /// No IP packet, or its sender does not understand marks.
    NotCapable,
    Marked,
    /// Somebody before us has.
    MarkedBefore,
}

/// The two bits of Not-ECT; of CE both are set.
const NOT_ECT: u8 = 0b00;
const CE: u8 = 0b11;

/// Puts Congestion Experienced on an IP packet that is capable of it, below at most two VLAN tags. Of a
/// frame that is still to be cut each segment will have the mark.
pub fn mark(frame: &mut Frame) -> Marking {
    let (kind, start) = frame.network();
    let packet = &mut frame.bytes[start..];
    match kind {
        ether_type::IPV4 if packet.len() >= 20 && packet[0] >> 4 == 4 => mark_ipv4(packet),
        ether_type::IPV6 if packet.len() >= 40 && packet[0] >> 4 == 6 => mark_ipv6(packet),
        _ => Marking::NotCapable,
    }
}

fn mark_ipv4(packet: &mut [u8]) -> Marking {
    match packet[1] & CE {
        NOT_ECT => return Marking::NotCapable,
        CE => return Marking::MarkedBefore,
        _ => {}
    }
    let word = |packet: &[u8], at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
    let before = word(packet, 0);
    packet[1] |= CE;
    let after = word(packet, 0);
    // RFC 1624, equation 3: HC' = ~(~HC + ~m + m'). A wrong checksum stays wrong.
    let sum = u32::from(!word(packet, 10)) + u32::from(!before) + u32::from(after);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    Marking::Marked
}

/// The traffic class lies across two bytes, and there is no checksum.
fn mark_ipv6(packet: &mut [u8]) -> Marking {
    match packet[1] >> 4 & CE {
        NOT_ECT => Marking::NotCapable,
        CE => Marking::MarkedBefore,
        _ => {
            packet[1] |= CE << 4;
            Marking::Marked
        }
    }
}
