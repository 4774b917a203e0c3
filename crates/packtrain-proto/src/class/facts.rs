//! What classes look at in a frame.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::prefix::number_of;
use crate::wire::packet::{self, IpVersion, Packet, PacketError, Transport, field};

/// Of a frame without a VLAN tag.
pub const UNTAGGED: u16 = u16::MAX;

/// What the frames of a flow have in common, mostly: [`super::ClassTable`] remembers what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowFacts {
    /// Numbers of the addresses ([`number_of`]); 0 of what is not IP.
    pub source: u128,
    pub destination: u128,
    /// Source and destination, of TCP and UDP; not of fragments, of which only the first would have them.
    pub ports: Option<[u16; 2]>,
    /// The one after the tags; what stands in its place in a frame of IEEE 802.3 is a length.
    pub ether_type: u16,
    /// The id in the outermost tag, or [`UNTAGGED`].
    pub vlan: u16,
    pub ip: Option<IpFacts>,
}

/// Only of frames whose IP and transport headers are whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpFacts {
    pub version: IpVersion,
    pub protocol: u8,
    pub dscp: u8,
}

/// All that classes look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    pub flow: FlowFacts,
    /// Bytes from the destination address on, without a checksum; a GSO frame is one frame.
    pub size: u32,
    /// A TCP segment without payload.
    pub empty_tcp: bool,
    /// The socket's or the firewall's mark (`SO_MARK`), where it is known.
    pub mark: u32,
}

impl Facts {
    /// `parsed`: what [`Packet::parse`] says of the frame.
    #[inline]
    pub fn of(frame: &[u8], parsed: &Result<Packet, PacketError>, mark: u32) -> Facts {
        let mut flow = FlowFacts {
            source: 0,
            destination: 0,
            ports: None,
            ether_type: 0,
            vlan: UNTAGGED,
            ip: None,
        };
        let mut empty_tcp = false;
        // Of broken IP, what stands before it is known all the same.
        let tags = match parsed {
            Ok(packet) => Some((packet.ether_type, packet.vlan)),
            Err(_) => packet::behind_tags(frame)
                .ok()
                .map(|tags| (tags.ether_type, tags.vlan)),
        };
        if let Some((ether_type, vlan)) = tags {
            flow.ether_type = ether_type;
            flow.vlan = vlan.unwrap_or(UNTAGGED);
        }
        if let Ok(packet) = parsed
            && let Some(ip) = &packet.ip
        {
            let network = &frame[packet.network_start..];
            let (source, destination) = addresses(ip.version, network);
            flow.source = number_of(source);
            flow.destination = number_of(destination);
            flow.ip = Some(IpFacts {
                version: ip.version,
                protocol: ip.protocol,
                dscp: dscp(ip.version, network),
            });
            if ip.transport.is_some() {
                let port = |at| u16::from_be_bytes([frame[at], frame[at + 1]]);
                flow.ports = Some([port(ip.transport_start), port(ip.transport_start + 2)]);
            }
            empty_tcp =
                matches!(ip.transport, Some(Transport::Tcp { .. })) && packet.is_empty_tcp();
        }
        Facts {
            flow,
            size: frame.len() as u32,
            empty_tcp,
            mark,
        }
    }
}

#[inline]
fn addresses(version: IpVersion, network: &[u8]) -> (IpAddr, IpAddr) {
    match version {
        IpVersion::V4 => {
            let [a, b] = halves::<4>(&network[field::IPV4_ADDRESSES]);
            (Ipv4Addr::from(a).into(), Ipv4Addr::from(b).into())
        }
        IpVersion::V6 => {
            let [a, b] = halves::<16>(&network[field::IPV6_ADDRESSES]);
            (Ipv6Addr::from(a).into(), Ipv6Addr::from(b).into())
        }
    }
}

#[inline]
fn halves<const N: usize>(both: &[u8]) -> [[u8; N]; 2] {
    [
        *both.first_chunk().expect("two addresses"),
        *both.last_chunk().expect("two addresses"),
    ]
}

/// The differentiated services code point (RFC 2474, section 3).
#[inline]
fn dscp(version: IpVersion, network: &[u8]) -> u8 {
    match version {
        IpVersion::V4 => network[1] >> 2,
        IpVersion::V6 => (network[0] << 4 | network[1] >> 4) >> 2,
    }
}
