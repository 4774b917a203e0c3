//! Frames of each kind that a filter tells apart.

use std::net::{Ipv4Addr, Ipv6Addr};

use packtrain_proto::wire::ethernet::MacAddr;

use super::world::{GATEWAY, GATEWAY_MAC, OWN_IPV4};

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const SYN: u8 = 2;

pub(super) fn frame(destination: MacAddr, ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = [destination.0, GATEWAY_MAC.0].concat();
    frame.extend_from_slice(&ether_type.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

pub(super) fn arp(operation: u8, sender: Ipv4Addr, target: Ipv4Addr) -> Vec<u8> {
    let mut arp = vec![0, 1, 8, 0, 6, 4, 0, operation];
    arp.extend_from_slice(&GATEWAY_MAC.0);
    arp.extend_from_slice(&sender.octets());
    arp.extend_from_slice(&[0; 6]);
    arp.extend_from_slice(&target.octets());
    frame(MacAddr::BROADCAST, 0x0806, &arp)
}

/// A tag behind the addresses.
pub(super) fn tagged(bytes: &[u8], protocol: u16, id: u16) -> Vec<u8> {
    let mut tagged = bytes[..12].to_vec();
    tagged.extend_from_slice(&protocol.to_be_bytes());
    tagged.extend_from_slice(&id.to_be_bytes());
    tagged.extend_from_slice(&bytes[12..]);
    tagged
}

/// A header of TCP or UDP without payload.
fn transport(protocol: u8, port: u16, flags: u8) -> Vec<u8> {
    let mut header = 40_000u16.to_be_bytes().to_vec();
    header.extend_from_slice(&port.to_be_bytes());
    match protocol {
        TCP => {
            header.extend_from_slice(&[0; 8]);
            header.extend_from_slice(&[0x50, flags, 0x10, 0, 0, 0, 0, 0]);
        }
        _ => header.extend_from_slice(&[0, 8, 0, 0]),
    }
    header
}

pub(super) fn ipv4(
    mac: MacAddr,
    source: Ipv4Addr,
    destination: Ipv4Addr,
    protocol: u8,
    port: u16,
) -> Vec<u8> {
    let transport = transport(protocol, port, SYN);
    let len = 20 + transport.len() as u16;
    let mut packet = vec![0x45, 0];
    packet.extend_from_slice(&len.to_be_bytes());
    packet.extend_from_slice(&[0, 1, 0x40, 0, 64, protocol, 0, 0]);
    packet.extend_from_slice(&source.octets());
    packet.extend_from_slice(&destination.octets());
    packet.extend_from_slice(&transport);
    frame(mac, 0x0800, &packet)
}

pub(super) fn ipv6(
    mac: MacAddr,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    protocol: u8,
    port: u16,
) -> Vec<u8> {
    let transport = transport(protocol, port, SYN);
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend_from_slice(&(transport.len() as u16).to_be_bytes());
    packet.extend_from_slice(&[protocol, 64]);
    packet.extend_from_slice(&source.octets());
    packet.extend_from_slice(&destination.octets());
    packet.extend_from_slice(&transport);
    frame(mac, 0x86dd, &packet)
}

/// For this port of ours, from the gateway.
pub(super) fn udp(mac: MacAddr, port: u16) -> Vec<u8> {
    ipv4(mac, GATEWAY, OWN_IPV4, UDP, port)
}
