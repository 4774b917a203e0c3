//! What a receive filter reads of a frame.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::wire::ethernet::MacAddr;

const ETHERNET_LEN: usize = 14;
const TAG_LEN: usize = 4;
const TAGS_MAX: usize = 2;

pub(super) const IPV4: u16 = 0x0800;
pub(super) const ARP: u16 = 0x0806;
pub(super) const VLAN: u16 = 0x8100;
pub(super) const QINQ: u16 = 0x88a8;
const IPV6: u16 = 0x86dd;
pub(super) const PACKTRAIN: u16 = 0x88b5;

const TCP: u8 = 6;
const UDP: u8 = 17;
/// Source and destination port, length, checksum; of TCP as much is asked for.
const PORTS_LEN: usize = 8;

/// As far as the Ethernet header and the tags behind it go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    bytes: &'a [u8],
    pub destination: MacAddr,
    /// After the tags.
    pub ether_type: u16,
    pub is_tagged: bool,
    network_start: usize,
}

/// Of ARP for IPv4 on Ethernet (RFC 826).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arp {
    pub is_request: bool,
    pub sender: Ipv4Addr,
    pub target: Ipv4Addr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    Tcp,
    Udp,
}

/// Whom a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    pub protocol: Protocol,
    pub address: IpAddr,
    pub port: u16,
}

impl<'a> Frame<'a> {
    /// `None`: it ends within its Ethernet header or a tag. `is_tagged`: a tag has been taken out of it.
    pub fn read(bytes: &'a [u8], is_tagged: bool) -> Option<Frame<'a>> {
        let header = bytes.first_chunk::<ETHERNET_LEN>()?;
        let mut frame = Frame {
            bytes,
            destination: MacAddr(*header.first_chunk().expect("14 bytes")),
            ether_type: u16::from_be_bytes([header[12], header[13]]),
            is_tagged,
            network_start: ETHERNET_LEN,
        };
        for _ in usize::from(is_tagged)..TAGS_MAX {
            if !matches!(frame.ether_type, VLAN | QINQ) {
                break;
            }
            let tag = bytes.get(frame.network_start..)?.first_chunk::<TAG_LEN>()?;
            frame.ether_type = u16::from_be_bytes([tag[2], tag[3]]);
            frame.network_start += TAG_LEN;
            frame.is_tagged = true;
        }
        Some(frame)
    }

    fn network(&self) -> &'a [u8] {
        &self.bytes[self.network_start..]
    }

    /// `None`: it is cut off, or of another kind of network.
    pub fn arp(&self) -> Option<Arp> {
        let arp = self.network().first_chunk::<28>()?;
        // Ethernet, IPv4, and the lengths of their addresses.
        if arp[..6] != [0, 1, 8, 0, 6, 4] {
            return None;
        }
        let address = |at: usize| Ipv4Addr::new(arp[at], arp[at + 1], arp[at + 2], arp[at + 3]);
        Some(Arp {
            is_request: arp[6..8] == [0, 1],
            sender: address(14),
            target: address(24),
        })
    }

    /// `None` of all but whole headers of TCP and UDP right behind those of IP without options or
    /// extensions: others are for the stack to read.
    pub fn endpoint(&self) -> Option<Endpoint> {
        let network = self.network();
        let (protocol, address, transport) = match self.ether_type {
            IPV4 => {
                let ip = network.first_chunk::<20>()?;
                let fragment = u16::from_be_bytes([ip[6], ip[7]]) & 0x3fff;
                if ip[0] != 0x45 || fragment != 0 {
                    return None;
                }
                let address = Ipv4Addr::new(ip[16], ip[17], ip[18], ip[19]);
                (ip[9], IpAddr::V4(address), &network[20..])
            }
            IPV6 => {
                let ip = network.first_chunk::<40>()?;
                if ip[0] >> 4 != 6 {
                    return None;
                }
                let address: [u8; 16] = *ip[24..].first_chunk().expect("40 bytes");
                (ip[6], IpAddr::V6(Ipv6Addr::from(address)), &network[40..])
            }
            _ => return None,
        };
        let ports = transport.first_chunk::<PORTS_LEN>()?;
        let protocol = match protocol {
            TCP => Protocol::Tcp,
            UDP => Protocol::Udp,
            _ => return None,
        };
        Some(Endpoint {
            protocol,
            address,
            port: u16::from_be_bytes([ports[2], ports[3]]),
        })
    }
}
