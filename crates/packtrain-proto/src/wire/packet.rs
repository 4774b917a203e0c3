//! What is inside an inner frame, as far as packtrain must know it: tags, IP, the transport header.
//!
//! ```text
//! +----------+----------------+--------------------------+-----------+----------
//! | Ethernet | 0 … 2 VLAN tags| IPv4, or IPv6 and its    | TCP / UDP | payload …
//! | 14       | 4 each         | extension headers        | header    |
//! +----------+----------------+--------------------------+-----------+----------
//!                             ^ network_start            ^ transport_start
//! ```
//!
//! Only what is needed to find the headers is checked here. Lengths that IP and UDP claim are
//! reported as they stand: an Ethernet frame may be padded, and who needs agreement
//! ([`crate::gso`]) compares.

use super::ethernet::{self, ether_type};

pub const IPV4_HEADER_LEN: usize = 20;
pub const IPV6_HEADER_LEN: usize = 40;
pub const TCP_HEADER_LEN: usize = 20;
pub const UDP_HEADER_LEN: usize = 8;

/// Tags that are looked behind: a customer's inside a provider's (IEEE 802.1ad).
pub const TAGS_MAX: usize = 2;
/// IPv6 extension headers that are walked. RFC 8200 knows six kinds and asks for each once (the
/// destination options twice); who sends more has no transport header as far as we look.
pub const EXTENSION_HEADERS_MAX: usize = 8;

/// IP protocol numbers.
pub mod protocol {
    pub const HOP_BY_HOP: u8 = 0;
    pub const TCP: u8 = 6;
    pub const UDP: u8 = 17;
    pub const ROUTING: u8 = 43;
    pub const FRAGMENT: u8 = 44;
    pub const DESTINATION: u8 = 60;
}

/// Where fields stand in the headers, from their first byte.
pub mod field {
    use core::ops::Range;
    pub const IPV4_TOTAL_LEN: Range<usize> = 2..4;
    pub const IPV4_ID: Range<usize> = 4..6;
    pub const IPV4_FRAGMENT: Range<usize> = 6..8;
    pub const IPV4_PROTOCOL: usize = 9;
    pub const IPV4_CHECKSUM: Range<usize> = 10..12;
    pub const IPV4_ADDRESSES: Range<usize> = 12..20;
    pub const IPV6_PAYLOAD_LEN: Range<usize> = 4..6;
    pub const IPV6_NEXT_HEADER: usize = 6;
    pub const IPV6_ADDRESSES: Range<usize> = 8..40;
    pub const TCP_SEQUENCE: Range<usize> = 4..8;
    pub const TCP_DATA_OFFSET: usize = 12;
    pub const TCP_FLAGS: usize = 13;
    pub const UDP_LEN: Range<usize> = 4..6;
}

/// FIN, SYN, RST.
const TCP_BEGINS_OR_ENDS: u8 = 0x07;

/// Why a frame that says it is IP is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    #[error("the frame ends within its {0}")]
    Truncated(&'static str),
    #[error("IP version {0} does not match the EtherType")]
    Version(u8),
    #[error("an IPv4 header of {0} bytes")]
    Ipv4HeaderLength(usize),
    #[error("a TCP header of {0} bytes")]
    TcpHeaderLength(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IpVersion {
    V4,
    V6,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Tcp {
        /// With options; all of it is in the frame.
        header_len: usize,
    },
    Udp,
}

impl Transport {
    pub fn header_len(self) -> usize {
        match self {
            Transport::Tcp { header_len } => header_len,
            Transport::Udp => UDP_HEADER_LEN,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip {
    pub version: IpVersion,
    /// Bytes of the packet, IP header included, as the header claims.
    pub total_len: usize,
    /// What follows the headers that were walked. For a fragment: what its fragmentable part
    /// starts with, the same in all pieces of a datagram.
    pub protocol: u8,
    /// A piece of a datagram: has an offset or more to follow (IPv4), or a fragment header (IPv6).
    pub fragment: bool,
    /// First byte after the IP headers, from the start of the frame.
    pub transport_start: usize,
    /// Of TCP and UDP; never of a fragment, because only the first piece would have it.
    pub transport: Option<Transport>,
}

/// The headers of an Ethernet frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The one after the tags.
    pub ether_type: u16,
    /// The id in the outermost tag (IEEE 802.1Q, 9.6).
    pub vlan: Option<u16>,
    /// First byte after that EtherType.
    pub network_start: usize,
    /// `None` where the EtherType is not IP's.
    pub ip: Option<Ip>,
}

impl Packet {
    #[inline]
    pub fn parse(frame: &[u8]) -> Result<Packet, PacketError> {
        let Tags {
            vlan,
            ether_type,
            network_start,
        } = behind_tags(frame)?;
        let ip = match ether_type {
            ether_type::IPV4 => Some(parse_ipv4(frame, network_start)?),
            ether_type::IPV6 => Some(parse_ipv6(frame, network_start)?),
            _ => None,
        };
        Ok(Packet {
            ether_type,
            vlan,
            network_start,
            ip,
        })
    }

    /// Bytes of all headers up to the transport's payload, where there is a transport header.
    pub fn header_len(&self) -> Option<usize> {
        let ip = self.ip?;
        Some(ip.transport_start + ip.transport?.header_len())
    }

    /// A TCP segment that carries nothing: an acknowledgement, or a connection's begin or end.
    pub fn is_empty_tcp(&self) -> bool {
        self.ip.is_some_and(|ip| {
            let end = self.network_start + ip.total_len;
            matches!(ip.transport, Some(Transport::Tcp { .. })) && self.header_len() == Some(end)
        })
    }

    /// One that does nothing but acknowledge, and neither begins nor ends a connection. `frame`: that this was read of.
    pub fn is_acknowledgement(&self, frame: &[u8]) -> bool {
        let flags = self.ip.map(|ip| ip.transport_start + field::TCP_FLAGS);
        self.is_empty_tcp() && flags.is_some_and(|at| frame[at] & TCP_BEGINS_OR_ENDS == 0)
    }
}

/// What stands between the addresses and the rest of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tags {
    /// The id in the outermost tag (IEEE 802.1Q, 9.6).
    pub vlan: Option<u16>,
    /// As in [`Packet`].
    pub ether_type: u16,
    pub network_start: usize,
}

#[inline]
pub fn behind_tags(frame: &[u8]) -> Result<Tags, PacketError> {
    const TRUNCATED: PacketError = PacketError::Truncated("VLAN tag");
    let mut tags = Tags {
        vlan: None,
        ether_type: be16(frame, 12).ok_or(PacketError::Truncated("Ethernet header"))?,
        network_start: ethernet::HEADER_LEN,
    };
    for _ in 0..TAGS_MAX {
        if !matches!(tags.ether_type, ether_type::VLAN | ether_type::QINQ) {
            break;
        }
        let control = be16(frame, tags.network_start).ok_or(TRUNCATED)?;
        tags.vlan.get_or_insert(control & 0x0fff);
        tags.ether_type = be16(frame, tags.network_start + 2).ok_or(TRUNCATED)?;
        tags.network_start += 4;
    }
    Ok(tags)
}

#[inline]
fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    let two = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([two[0], two[1]]))
}

#[inline]
fn parse_ipv4(frame: &[u8], start: usize) -> Result<Ip, PacketError> {
    const TRUNCATED: PacketError = PacketError::Truncated("IPv4 header");
    let header: &[u8; IPV4_HEADER_LEN] = frame
        .get(start..)
        .and_then(|rest| rest.first_chunk())
        .ok_or(TRUNCATED)?;
    if header[0] >> 4 != 4 {
        return Err(PacketError::Version(header[0] >> 4));
    }
    let header_len = usize::from(header[0] & 0x0f) * 4;
    if header_len < IPV4_HEADER_LEN {
        return Err(PacketError::Ipv4HeaderLength(header_len));
    }
    let transport_start = start + header_len;
    if frame.len() < transport_start {
        return Err(TRUNCATED);
    }
    // More-fragments and the offset; not don't-fragment, not the reserved bit.
    let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    let protocol = header[field::IPV4_PROTOCOL];
    Ok(Ip {
        version: IpVersion::V4,
        total_len: usize::from(u16::from_be_bytes([header[2], header[3]])),
        protocol,
        fragment,
        transport_start,
        transport: if fragment {
            None
        } else {
            parse_transport(frame, transport_start, protocol)?
        },
    })
}

#[inline]
fn parse_ipv6(frame: &[u8], start: usize) -> Result<Ip, PacketError> {
    let header: &[u8; IPV6_HEADER_LEN] = frame
        .get(start..)
        .and_then(|rest| rest.first_chunk())
        .ok_or(PacketError::Truncated("IPv6 header"))?;
    if header[0] >> 4 != 6 {
        return Err(PacketError::Version(header[0] >> 4));
    }
    let mut ip = Ip {
        version: IpVersion::V6,
        total_len: IPV6_HEADER_LEN + usize::from(u16::from_be_bytes([header[4], header[5]])),
        protocol: header[field::IPV6_NEXT_HEADER],
        fragment: false,
        transport_start: start + IPV6_HEADER_LEN,
        transport: None,
    };
    for _ in 0..EXTENSION_HEADERS_MAX {
        let is_fragment = match ip.protocol {
            protocol::HOP_BY_HOP | protocol::ROUTING | protocol::DESTINATION => false,
            protocol::FRAGMENT => true,
            _ => break,
        };
        const TRUNCATED: PacketError = PacketError::Truncated("IPv6 extension header");
        let head = frame
            .get(ip.transport_start..ip.transport_start + 8)
            .ok_or(TRUNCATED)?;
        let len = if is_fragment {
            8
        } else {
            (usize::from(head[1]) + 1) * 8
        };
        ip.protocol = head[0];
        ip.transport_start += len;
        if frame.len() < ip.transport_start {
            return Err(TRUNCATED);
        }
        if is_fragment {
            // What follows is the middle of something in all pieces but the first.
            ip.fragment = true;
            return Ok(ip);
        }
    }
    ip.transport = parse_transport(frame, ip.transport_start, ip.protocol)?;
    Ok(ip)
}

#[inline]
fn parse_transport(
    frame: &[u8],
    start: usize,
    protocol: u8,
) -> Result<Option<Transport>, PacketError> {
    let room = frame.len() - start;
    match protocol {
        protocol::TCP => {
            const TRUNCATED: PacketError = PacketError::Truncated("TCP header");
            if room < TCP_HEADER_LEN {
                return Err(TRUNCATED);
            }
            let header_len = usize::from(frame[start + field::TCP_DATA_OFFSET] >> 4) * 4;
            if header_len < TCP_HEADER_LEN {
                return Err(PacketError::TcpHeaderLength(header_len));
            }
            if room < header_len {
                return Err(TRUNCATED);
            }
            Ok(Some(Transport::Tcp { header_len }))
        }
        protocol::UDP if room < UDP_HEADER_LEN => Err(PacketError::Truncated("UDP header")),
        protocol::UDP => Ok(Some(Transport::Udp)),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ethernet(ether_types: &[u16]) -> Vec<u8> {
        let mut frame = vec![2; 12];
        for (i, ether_type) in ether_types.iter().enumerate() {
            if i > 0 {
                frame.extend([0x00, 0x2a]);
            }
            frame.extend(ether_type.to_be_bytes());
        }
        frame
    }

    fn ipv4(fragment: u16, options: usize, protocol: u8, payload: &[u8]) -> Vec<u8> {
        let header_len = 20 + options;
        let mut packet = vec![0; header_len];
        packet[0] = 0x40 | (header_len / 4) as u8;
        packet[2..4].copy_from_slice(&((header_len + payload.len()) as u16).to_be_bytes());
        packet[6..8].copy_from_slice(&fragment.to_be_bytes());
        packet[9] = protocol;
        packet.extend(payload);
        packet
    }

    fn ipv6(next_header: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 40];
        packet[0] = 0x60;
        packet[4..6].copy_from_slice(&(payload.len() as u16).to_be_bytes());
        packet[6] = next_header;
        packet.extend(payload);
        packet
    }

    fn parse(ether_types: &[u16], packet: &[u8]) -> Result<Packet, PacketError> {
        Packet::parse(&[&ethernet(ether_types)[..], packet].concat())
    }

    #[test]
    fn a_udp_datagram_behind_tags_and_options_is_found() {
        for (ether_types, network_start) in [
            (&[ether_type::IPV4][..], 14),
            (&[ether_type::VLAN, ether_type::IPV4], 18),
            (&[ether_type::QINQ, ether_type::VLAN, ether_type::IPV4], 22),
        ] {
            let packet = parse(ether_types, &ipv4(0x4000, 8, protocol::UDP, &[0; 11])).unwrap();
            assert_eq!(packet.network_start, network_start);
            assert_eq!(packet.header_len(), Some(network_start + 28 + 8));
            let ip = packet.ip.unwrap();
            assert_eq!((ip.total_len, ip.fragment), (39, false));
            assert_eq!(ip.transport, Some(Transport::Udp));
        }
    }

    #[test]
    fn a_third_tag_is_not_looked_behind() {
        let types = [
            ether_type::QINQ,
            ether_type::VLAN,
            ether_type::VLAN,
            ether_type::IPV4,
        ];
        let packet = parse(&types, &ipv4(0, 0, protocol::UDP, &[0; 8])).unwrap();
        assert_eq!((packet.ether_type, packet.ip), (ether_type::VLAN, None));
    }

    #[test]
    fn extension_headers_are_walked_to_the_transport_header() {
        let mut payload = vec![protocol::ROUTING, 0];
        payload.extend([0; 6]);
        payload.extend([protocol::DESTINATION, 1]);
        payload.extend([0; 14]);
        payload.extend([protocol::TCP, 0]);
        payload.extend([0; 6]);
        let mut tcp = [0; 24];
        tcp[12] = 0x60;
        payload.extend(tcp);
        let packet = parse(&[ether_type::IPV6], &ipv6(protocol::HOP_BY_HOP, &payload)).unwrap();
        let ip = packet.ip.unwrap();
        assert_eq!(ip.transport_start, 14 + 40 + 8 + 16 + 8);
        assert_eq!(ip.transport, Some(Transport::Tcp { header_len: 24 }));
        assert_eq!(ip.total_len, 40 + payload.len());
    }

    #[test]
    fn too_many_extension_headers_leave_no_transport() {
        let mut payload =
            [protocol::DESTINATION, 0, 0, 0, 0, 0, 0, 0].repeat(EXTENSION_HEADERS_MAX);
        let n = payload.len();
        payload[n - 8] = protocol::UDP;
        payload.extend([0; 8]);
        let fits = parse(&[ether_type::IPV6], &ipv6(protocol::DESTINATION, &payload)).unwrap();
        assert_eq!(fits.ip.unwrap().transport, Some(Transport::Udp));
        payload.splice(0..0, [protocol::DESTINATION, 0, 0, 0, 0, 0, 0, 0]);
        let over = parse(&[ether_type::IPV6], &ipv6(protocol::DESTINATION, &payload)).unwrap();
        assert_eq!(over.ip.unwrap().transport, None);
    }

    #[test]
    fn fragments_have_no_transport_header() {
        for fragment in [0x2000, 0x2001, 0x0001, 0x1fff] {
            let packet = parse(
                &[ether_type::IPV4],
                &ipv4(fragment, 0, protocol::UDP, &[0; 8]),
            );
            let ip = packet.unwrap().ip.unwrap();
            assert!(ip.fragment && ip.transport.is_none() && ip.protocol == protocol::UDP);
        }
        for fragment in [0x0000, 0x4000, 0x8000] {
            let packet = parse(
                &[ether_type::IPV4],
                &ipv4(fragment, 0, protocol::UDP, &[0; 8]),
            );
            assert!(!packet.unwrap().ip.unwrap().fragment);
        }
        let piece = [protocol::UDP, 0, 0, 8, 0, 0, 0, 1, 9, 9];
        let ip = parse(&[ether_type::IPV6], &ipv6(protocol::FRAGMENT, &piece))
            .unwrap()
            .ip
            .unwrap();
        assert!(ip.fragment && ip.transport.is_none() && ip.protocol == protocol::UDP);
    }

    #[test]
    fn each_lie_is_named() {
        let parse4 = |packet: &[u8]| parse(&[ether_type::IPV4], packet).unwrap_err();
        assert_eq!(
            parse4(&ipv6(protocol::UDP, &[0; 8])),
            PacketError::Version(6)
        );
        assert_eq!(parse4(&[0x44; 20]), PacketError::Ipv4HeaderLength(16));
        assert_eq!(parse4(&[0x46; 20]), PacketError::Truncated("IPv4 header"));
        assert_eq!(
            parse4(&ipv4(0, 0, protocol::TCP, &[0; 20])),
            PacketError::TcpHeaderLength(0)
        );
        assert_eq!(
            parse4(&ipv4(0, 0, protocol::TCP, &[0xff; 59])),
            PacketError::Truncated("TCP header")
        );
        assert_eq!(
            parse(&[ether_type::IPV6], &ipv4(0, 0, protocol::UDP, &[0; 40])).unwrap_err(),
            PacketError::Version(4)
        );
        assert_eq!(
            parse(
                &[ether_type::IPV6],
                &ipv6(protocol::ROUTING, &[protocol::TCP, 9, 0, 0, 0, 0, 0, 0])
            )
            .unwrap_err(),
            PacketError::Truncated("IPv6 extension header")
        );
    }

    #[test]
    fn a_frame_cut_anywhere_within_its_headers_is_truncated() {
        let mut tcp = [0; 20];
        tcp[12] = 0x50;
        let mut extended = vec![protocol::TCP, 0, 0, 0, 0, 0, 0, 0];
        extended.extend(tcp);
        for packet in [
            [
                ethernet(&[ether_type::VLAN, ether_type::IPV4]),
                ipv4(0, 4, protocol::TCP, &tcp),
            ]
            .concat(),
            [
                ethernet(&[ether_type::IPV6]),
                ipv6(protocol::HOP_BY_HOP, &extended),
            ]
            .concat(),
        ] {
            assert_eq!(
                Packet::parse(&packet).unwrap().header_len(),
                Some(packet.len())
            );
            for len in 0..packet.len() {
                let result = Packet::parse(&packet[..len]);
                assert!(
                    matches!(result, Err(PacketError::Truncated(_))),
                    "{len}: {result:?}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_found_lies_within_the_frame(
            ether_types in prop::sample::select(vec![
                vec![ether_type::IPV4], vec![ether_type::IPV6], vec![ether_type::VLAN, ether_type::IPV6],
            ]),
            first in prop::sample::select(vec![0x45u8, 0x60, 0x4f, 0x00]),
            next in prop::sample::select(vec![0u8, 6, 17, 43, 44, 60, 1]),
            mut rest in prop::collection::vec(prop::sample::select(vec![0u8, 1, 6, 17, 43, 60, 0x50, 0xff]), 0..200),
        ) {
            if rest.len() > 9 {
                rest[0] = first;
                rest[6] = next;
                rest[9] = next;
            }
            let frame = [&ethernet(&ether_types)[..], &rest].concat();
            if let Ok(packet) = Packet::parse(&frame) {
                prop_assert!(packet.network_start <= frame.len());
                if let Some(ip) = packet.ip {
                    prop_assert!(ip.transport_start <= frame.len());
                    prop_assert!(!(ip.fragment && ip.transport.is_some()));
                }
                if let Some(len) = packet.header_len() {
                    prop_assert!(len <= frame.len());
                }
            }
        }
    }
}
