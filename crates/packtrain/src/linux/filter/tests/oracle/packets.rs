//! Packets as hosts send them: whole, and with checksums that are right, so that a kernel does not drop them for that.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use packtrain_proto::wire::checksum;
use packtrain_proto::wire::ethernet::MacAddr;

pub(super) const ICMP: u8 = 1;
pub(super) const IGMP: u8 = 2;
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const ICMP6: u8 = 58;
pub(super) const OSPF: u8 = 89;

pub(super) const IPV4: u16 = 0x0800;
pub(super) const ARP: u16 = 0x0806;
pub(super) const IPV6: u16 = 0x86dd;

pub(super) const RST: u8 = 4;
pub(super) const SYN: u8 = 2;
pub(super) const ACK: u8 = 16;

pub(super) fn ethernet(
    destination: MacAddr,
    source: MacAddr,
    ether_type: u16,
    payload: &[u8],
) -> Vec<u8> {
    let mut frame = [destination.0, source.0].concat();
    frame.extend(ether_type.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A tag behind the addresses.
pub(super) fn tagged(frame: &[u8], protocol: u16, id: u16) -> Vec<u8> {
    let tag = [protocol.to_be_bytes(), id.to_be_bytes()].concat();
    [&frame[..12], &tag, &frame[12..]].concat()
}

pub(super) struct Arp {
    pub(super) hardware_type: u16,
    pub(super) operation: u16,
    pub(super) sender_mac: MacAddr,
    pub(super) sender: Ipv4Addr,
    pub(super) target_mac: MacAddr,
    pub(super) target: Ipv4Addr,
}

impl Arp {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.hardware_type.to_be_bytes().to_vec();
        bytes.extend([8, 0, 6, 4]);
        bytes.extend(self.operation.to_be_bytes());
        bytes.extend(self.sender_mac.0);
        bytes.extend(self.sender.octets());
        bytes.extend(self.target_mac.0);
        bytes.extend(self.target.octets());
        bytes
    }
}

/// An IP packet of the addresses' version. `message` is what the protocol says, with 0 in the place of its checksum.
pub(super) fn ip(source: IpAddr, destination: IpAddr, protocol: u8, message: &[u8]) -> Vec<u8> {
    let message = with_checksum(source, destination, protocol, message);
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            // Group management has to carry a router alert (RFC 2236, section 2).
            let options: &[u8] = if protocol == IGMP {
                &[0x94, 4, 0, 0]
            } else {
                &[]
            };
            ipv4(source, destination, protocol, options, 0, &message)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            ipv6(source, destination, protocol, &message)
        }
        _ => unreachable!("addresses of one version"),
    }
}

/// `fragment`: the word of flags and offset.
pub(super) fn ipv4(
    source: Ipv4Addr,
    destination: Ipv4Addr,
    protocol: u8,
    options: &[u8],
    fragment: u16,
    message: &[u8],
) -> Vec<u8> {
    let header_len = 20 + options.len();
    let len = (header_len + message.len()) as u16;
    let mut packet = vec![0x40 | (header_len / 4) as u8, 0];
    packet.extend(len.to_be_bytes());
    packet.extend([0x12, 0x34]);
    packet.extend(fragment.to_be_bytes());
    packet.extend([64, protocol, 0, 0]);
    packet.extend(source.octets());
    packet.extend(destination.octets());
    packet.extend(options);
    let sum = checksum::checksum(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend(message);
    packet
}

/// Neighbour discovery and listeners want hop limits of their own.
pub(super) fn ipv6(
    source: Ipv6Addr,
    destination: Ipv6Addr,
    protocol: u8,
    message: &[u8],
) -> Vec<u8> {
    let kind = message.first().copied().unwrap_or(0);
    let is_listener = protocol == ICMP6 && matches!(kind, 130..=132 | 143);
    // A hop-by-hop header with a router alert (RFC 2710, section 3).
    let alert: &[u8] = match is_listener {
        true => &[ICMP6, 0, 5, 2, 0, 0, 1, 0],
        false => &[],
    };
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(((alert.len() + message.len()) as u16).to_be_bytes());
    packet.extend(match is_listener {
        true => [0, 1],
        false => [protocol, 255],
    });
    packet.extend(source.octets());
    packet.extend(destination.octets());
    packet.extend(alert);
    packet.extend(message);
    packet
}

fn with_checksum(source: IpAddr, destination: IpAddr, protocol: u8, message: &[u8]) -> Vec<u8> {
    let at = match protocol {
        ICMP | IGMP | ICMP6 => 2,
        TCP => 16,
        UDP => 6,
        _ => return message.to_vec(),
    };
    let mut message = message.to_vec();
    let mut covered = Vec::new();
    if !matches!(protocol, ICMP | IGMP) {
        for address in [source, destination] {
            match address {
                IpAddr::V4(address) => covered.extend(address.octets()),
                IpAddr::V6(address) => covered.extend(address.octets()),
            }
        }
        covered.extend([0, protocol]);
        covered.extend((message.len() as u16).to_be_bytes());
    }
    covered.extend(&message);
    let sum = match checksum::checksum(&covered) {
        // Of UDP 0 would be none.
        0 => 0xffff,
        sum => sum,
    };
    message[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    message
}

pub(super) fn udp(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let len = 8 + payload.len() as u16;
    let mut message = [source, destination, len, 0].map(u16::to_be_bytes).concat();
    message.extend(payload);
    message
}

pub(super) fn tcp(ports: [u16; 2], sequence: u32, acknowledged: u32, flags: u8) -> Vec<u8> {
    let mut message = ports.map(u16::to_be_bytes).concat();
    message.extend(sequence.to_be_bytes());
    message.extend(acknowledged.to_be_bytes());
    message.extend([0x50, flags, 0x20, 0, 0, 0, 0, 0]);
    message
}

/// Of ICMP in both versions, and of IGMP: kind, code, checksum, a word of its own, and the rest.
pub(super) fn control(kind: u8, code: u8, word: u32, rest: &[u8]) -> Vec<u8> {
    let mut message = vec![kind, code, 0, 0];
    message.extend(word.to_be_bytes());
    message.extend(rest);
    message
}

/// An option of neighbour discovery: an Ethernet address, of the source (1) or of the target (2).
pub(super) fn address_option(kind: u8, mac: MacAddr) -> Vec<u8> {
    [&[kind, 1][..], &mac.0].concat()
}

/// Where a packet to this address is sent, if it is one to a group or to everybody (RFC 1112, section 6.4; RFC 2464, section 7).
pub(super) fn group_mac(destination: IpAddr) -> Option<MacAddr> {
    match destination {
        IpAddr::V4(Ipv4Addr::BROADCAST) => Some(MacAddr::BROADCAST),
        IpAddr::V4(group) if group.is_multicast() => {
            let [_, b, c, d] = group.octets();
            Some(MacAddr([0x01, 0x00, 0x5e, b & 0x7f, c, d]))
        }
        IpAddr::V6(group) if group.is_multicast() => {
            let [.., a, b, c, d] = group.octets();
            Some(MacAddr([0x33, 0x33, a, b, c, d]))
        }
        _ => None,
    }
}

/// The group in which an IPv6 address is asked for (RFC 4291, section 2.7.1).
pub(super) fn solicited_group(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    let last = u16::from_be_bytes([b, c]);
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | u16::from(a), last)
}
