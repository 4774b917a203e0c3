//! What a router says of a packet that is too big for the next link, built from the frame that carries it: ICMP's "fragmentation
//! needed and DF set" (RFC 792, RFC 1191) and ICMPv6's "packet too big" (RFC 4443, section 3.2).
//!
//! There is no router between `pt0` and a host without packtrain, but there are two sizes of frames: `pt0` may be given 65,521 bytes where the
//! host's link takes 1500. On a segment that is a mistake nobody is told of. So the host's own stack is told, and does what it
//! does of any path: it sends less there from now on, and cuts datagrams itself.
//!
//! ```text
//! +--------------------------+-----------+----------------+-------------------------------+
//! | Ethernet, tags:          | IP        | ICMP, 8        | the packet that was too big:  |
//! | as the frame's, reversed | reversed  | type, code,    | as much as may be quoted      |
//! |                          |           | checksum, MTU  |                               |
//! +--------------------------+-----------+----------------+-------------------------------+
//! ```
//!
//! - **From the destination's own addresses**, MAC and IP. No other address is known here that the stack must believe: it has a route to
//!   this one out of `pt0`, so reverse path filters let it in, and a bridge over `pt0` learns what is true.
//! - **Never in answer to** an error message, a group, a fragment behind the first, or an address that is nobody's (RFC 1122,
//!   3.2.2; RFC 1812, 4.3.2.7; RFC 4443, 2.4 e). Of IPv6, RFC 4443 lets one answer to multicast; we do not: a group frame has other ways.
//! - **Also where IPv4 may be fragmented** (no DF). A router would cut it. But the stack that is told cuts what follows by itself, with its own
//!   identification and in a queue for which its sockets are charged, where we would cut each datagram of 60 kB into 45 frames for ever.

use crate::buffer::Buffer;
use crate::wire::checksum;
use crate::wire::ethernet::MacAddr;
use crate::wire::packet::{
    IPV4_HEADER_LEN, IPV6_HEADER_LEN, Ip, IpVersion, Packet, field, protocol,
};

/// The longest answer: a frame with two tags.
pub const ANSWER_MAX: usize = 22 + IPV6_PACKET_MAX;

/// An ICMP error of at most so many bytes with its IP header (RFC 1812, 4.3.2.3).
const IPV4_PACKET_MAX: usize = 576;
/// … of IPv6: the least MTU of any link (RFC 4443, 3.2).
const IPV6_PACKET_MAX: usize = 1280;
/// Less than this no host has to believe (RFC 791; RFC 8200, section 5).
const IPV4_MTU_MIN: usize = 68;
const IPV6_MTU_MIN: usize = 1280;

const ICMP_HEADER_LEN: usize = 8;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
/// Destination unreachable: fragmentation needed.
const FRAGMENTATION_NEEDED: [u8; 2] = [3, 4];
const PACKET_TOO_BIG: [u8; 2] = [2, 0];
/// Internetwork control (RFC 1812, 4.3.2.5).
const PRECEDENCE: u8 = 0xc0;
const DONT_FRAGMENT: u16 = 0x4000;
const FRAGMENT_OFFSET: u16 = 0x1fff;
const TTL: u8 = 64;

/// Why nobody is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Untold {
    #[error("no IP packet, or one with headers that are not whole or not right")]
    NotIp,
    #[error("for a group, or from one")]
    Group,
    #[error("from or for an address that is nobody's")]
    NoAddress,
    #[error("not the first fragment of its packet")]
    LaterFragment,
    #[error("an ICMP error message, or what may be one")]
    Error,
    #[error("what it carries fits; the rest is padding")]
    Fits,
    #[error("less than {0} bytes is no MTU of this protocol")]
    BelowLeast(usize),
}

/// Puts into `out` what its sender is told of a frame that is `excess` bytes longer than what goes through. The frame is one as on a wire: no
/// segments to be cut, no checksum to be filled in.
///
/// # Panics
/// If `out` has less than [`ANSWER_MAX`] bytes of room.
pub fn answer(frame: &[u8], excess: usize, out: &mut Buffer) -> Result<(), Untold> {
    let packet = Packet::parse(frame).map_err(|_| Untold::NotIp)?;
    let ip = packet.ip.ok_or(Untold::NotIp)?;
    let start = packet.network_start;
    let ends = [&frame[0..6], &frame[6..12]].map(MacAddr::from_slice);
    if ends.iter().any(|end| end.is_group()) {
        return Err(Untold::Group);
    }
    let header_len = ip.transport_start - start;
    if ip.total_len < header_len || ip.total_len > frame.len() - start {
        return Err(Untold::NotIp);
    }
    let quoted = &frame[start..start + ip.total_len];
    check(quoted, &ip, ip.transport_start - start)?;
    // A frame is as much too long as its packet, whatever tags it has.
    let mtu = (frame.len() - start).saturating_sub(excess);
    if ip.total_len <= mtu {
        return Err(Untold::Fits);
    }
    out.clear();
    push(out, &frame[6..12]);
    push(out, &frame[0..6]);
    push(out, &frame[12..start]);
    match ip.version {
        IpVersion::V4 => put_v4(quoted, mtu, out),
        IpVersion::V6 => put_v6(quoted, mtu, out),
    }
}

/// Whether a packet may be answered at all. `packet`: from its IP header on.
fn check(packet: &[u8], ip: &Ip, transport: usize) -> Result<(), Untold> {
    match ip.version {
        IpVersion::V4 => {
            let header_len = usize::from(packet[0] & 0x0f) * 4;
            if checksum::checksum(&packet[..header_len]) != 0 {
                return Err(Untold::NotIp);
            }
            let [source, destination] = [12, 16].map(|at| quad(packet, at));
            check_v4(source)?;
            check_v4(destination)?;
            if be16(packet, field::IPV4_FRAGMENT.start) & FRAGMENT_OFFSET != 0 {
                return Err(Untold::LaterFragment);
            }
            // All that are known to be none: an unknown one may be an error.
            let may_be_answered = |kind: u8| matches!(kind, 0 | 8..=10 | 13..=18 | 42 | 43);
            match packet.get(transport) {
                Some(&kind) if ip.protocol == ICMP && may_be_answered(kind) => Ok(()),
                _ if ip.protocol == ICMP => Err(Untold::Error),
                _ => Ok(()),
            }
        }
        IpVersion::V6 => {
            check_v6(&packet[8..24])?;
            check_v6(&packet[24..40])?;
            // The fragment header is the last that is walked.
            if ip.fragment && be16(packet, transport - 6) >> 3 != 0 {
                return Err(Untold::LaterFragment);
            }
            match (ip.protocol, packet.get(transport)) {
                (ICMPV6, Some(&kind)) if kind >= 128 && kind != REDIRECT => Ok(()),
                (ICMPV6, _) => Err(Untold::Error),
                // More headers than are walked: an error may stand behind them.
                (
                    protocol::HOP_BY_HOP
                    | protocol::ROUTING
                    | protocol::FRAGMENT
                    | protocol::DESTINATION,
                    _,
                ) => Err(Untold::Error),
                _ => Ok(()),
            }
        }
    }
}

/// RFC 4443, 2.4 e 2.
const REDIRECT: u8 = 137;

fn check_v4([first, rest @ ..]: [u8; 4]) -> Result<(), Untold> {
    match first {
        0 | 127 => Err(Untold::NoAddress),
        224..=239 => Err(Untold::Group),
        255 if rest == [255; 3] => Err(Untold::Group),
        _ => Ok(()),
    }
}

fn check_v6(address: &[u8]) -> Result<(), Untold> {
    let is_low = address[..15] == [0; 15];
    match (address[0], address[15]) {
        (0xff, _) => Err(Untold::Group),
        // Unspecified, and the host itself.
        (_, 0 | 1) if is_low => Err(Untold::NoAddress),
        _ => Ok(()),
    }
}

fn put_v4(quoted: &[u8], mtu: usize, out: &mut Buffer) -> Result<(), Untold> {
    if mtu < IPV4_MTU_MIN {
        return Err(Untold::BelowLeast(IPV4_MTU_MIN));
    }
    let quoted = &quoted[..quoted
        .len()
        .min(IPV4_PACKET_MAX - IPV4_HEADER_LEN - ICMP_HEADER_LEN)];
    let len = IPV4_HEADER_LEN + ICMP_HEADER_LEN + quoted.len();
    let mut header = [0; IPV4_HEADER_LEN];
    header[0] = 0x45;
    header[1] = PRECEDENCE;
    header[field::IPV4_TOTAL_LEN].copy_from_slice(&(len as u16).to_be_bytes());
    header[field::IPV4_FRAGMENT].copy_from_slice(&DONT_FRAGMENT.to_be_bytes());
    header[8] = TTL;
    header[field::IPV4_PROTOCOL] = ICMP;
    header[12..16].copy_from_slice(&quoted[16..20]);
    header[16..20].copy_from_slice(&quoted[12..16]);
    let sum = checksum::checksum(&header);
    header[field::IPV4_CHECKSUM].copy_from_slice(&sum.to_be_bytes());
    push(out, &header);
    // The MTU is below the packet's length, which its header has said in 16 bits.
    put_icmp(FRAGMENTATION_NEEDED, mtu as u32, quoted, 0, out);
    Ok(())
}

fn put_v6(quoted: &[u8], mtu: usize, out: &mut Buffer) -> Result<(), Untold> {
    if mtu < IPV6_MTU_MIN {
        return Err(Untold::BelowLeast(IPV6_MTU_MIN));
    }
    let quoted = &quoted[..quoted
        .len()
        .min(IPV6_PACKET_MAX - IPV6_HEADER_LEN - ICMP_HEADER_LEN)];
    let len = (ICMP_HEADER_LEN + quoted.len()) as u16;
    let mut header = [0; IPV6_HEADER_LEN];
    header[0] = 0x60;
    header[field::IPV6_PAYLOAD_LEN].copy_from_slice(&len.to_be_bytes());
    header[field::IPV6_NEXT_HEADER] = ICMPV6;
    header[7] = TTL;
    header[8..24].copy_from_slice(&quoted[24..40]);
    header[24..40].copy_from_slice(&quoted[8..24]);
    push(out, &header);
    // The pseudo header (RFC 8200, 8.1): addresses, length, next header.
    let addresses = checksum::sum(&header[field::IPV6_ADDRESSES]);
    let pseudo = checksum::add(addresses, checksum::add(len, u16::from(ICMPV6)));
    put_icmp(PACKET_TOO_BIG, mtu as u32, quoted, pseudo, out);
    Ok(())
}

/// `pseudo`: the sum of what is summed besides.
fn put_icmp(kind: [u8; 2], mtu: u32, quoted: &[u8], pseudo: u16, out: &mut Buffer) {
    let mut header = [0; ICMP_HEADER_LEN];
    header[0..2].copy_from_slice(&kind);
    header[4..8].copy_from_slice(&mtu.to_be_bytes());
    let sum = checksum::add(checksum::sum(&header), checksum::sum(quoted));
    let value = !checksum::add(sum, pseudo);
    header[2..4].copy_from_slice(&value.to_be_bytes());
    push(out, &header);
    push(out, quoted);
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn quad(bytes: &[u8], at: usize) -> [u8; 4] {
    bytes[at..at + 4].try_into().expect("4 bytes")
}

fn push(out: &mut Buffer, bytes: &[u8]) {
    assert!(out.push(bytes), "no room for an answer");
}

#[cfg(test)]
mod tests;
