//! What a host says when it is reached by another port than before: so that switches send its
//! frames there, and neighbours know that its addresses are still its own.
//!
//! For each IPv4 address of `pt0` a gratuitous ARP (RFC 5227, section 3), for each IPv6 address an
//! unsolicited neighbour advertisement (RFC 4861, section 7.2.6), and for each station behind `pt0`,
//! of whose addresses nothing is known here, a RARP request of its own (RFC 903): switches learn from
//! the source alone. Hypervisors do the same when a guest has moved.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use packtrain_proto::config::LinkId;
use packtrain_proto::time::Instant;
use packtrain_proto::wire::checksum;
use packtrain_proto::wire::ethernet::{Header, MacAddr, ether_type};

use super::RunningLine;
use crate::events::What;
use crate::linux::netlink::IpPrefix;

/// The first may be lost: a port of a switch needs a moment before it forwards.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

const ETHER_TYPE_RARP: u16 = 0x8035;
const ARP_REQUEST: u16 = 1;
const RARP_REQUEST: u16 = 3;
const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
/// The address is the sender's, whatever neighbours believed before.
const OVERRIDE: u8 = 0x20;
const OPTION_TARGET_LINK_ADDRESS: u8 = 2;
const NEXT_HEADER_ICMPV6: u8 = 58;
/// No router has passed it on: receivers refuse any other (RFC 4861, section 7.1.2).
const HOP_LIMIT: u8 = 255;
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// ff02::1 on Ethernet (RFC 2464, section 7).
const ALL_NODES_MAC: MacAddr = MacAddr([0x33, 0x33, 0, 0, 0, 1]);

/// Something that is to be said once more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Announcement {
    at: Instant,
}

impl RunningLine {
    /// Plain hosts reach us by another link now.
    pub(super) fn home_moved(&mut self, link: LinkId) {
        let link = self.link_name(link);
        self.tell(What::Home { link });
        self.announce();
        // Several homes may move at once, and each time all is said: one repetition is enough.
        let at = self.clock.now() + AGAIN_AFTER;
        self.announcement = Some(Announcement { at });
    }

    pub(super) fn repeat_announcement(&mut self) {
        let Some(Announcement { at }) = self.announcement else {
            return;
        };
        if self.clock.now() < at {
            return self.line.wake_by(at);
        }
        self.announcement = None;
        self.announce();
    }

    fn announce(&mut self) {
        // A host that is set down says nothing.
        if !self.host.up {
            return;
        }
        let stations = self.line.stations_behind();
        let frames = frames(self.host.address, &self.host.addresses, &stations);
        self.line.send_as_host(frames.iter().map(Vec::as_slice));
    }
}

/// All that `host` has to say of itself, its addresses, and the stations behind it.
fn frames(host: MacAddr, addresses: &[IpPrefix], stations: &[MacAddr]) -> Vec<Vec<u8>> {
    let mut frames: Vec<Vec<u8>> = addresses
        .iter()
        .map(|prefix| match prefix.address {
            IpAddr::V4(address) => gratuitous_arp(host, address),
            IpAddr::V6(address) => neighbour_advertisement(host, address),
        })
        .collect();
    if frames.is_empty() {
        // In a bridge it has no address, and frames of its own all the same.
        frames.push(reverse_arp(host));
    }
    let others = stations.iter().filter(|&&station| station != host);
    frames.extend(others.map(|&station| reverse_arp(station)));
    frames
}

fn gratuitous_arp(host: MacAddr, address: Ipv4Addr) -> Vec<u8> {
    arp(
        host,
        ether_type::ARP,
        ARP_REQUEST,
        MacAddr::default(),
        address,
    )
}

fn reverse_arp(station: MacAddr) -> Vec<u8> {
    arp(
        station,
        ETHER_TYPE_RARP,
        RARP_REQUEST,
        station,
        Ipv4Addr::UNSPECIFIED,
    )
}

/// A broadcast of which both protocol addresses are `address` (RFC 826).
fn arp(
    sender: MacAddr,
    ether_type: u16,
    operation: u16,
    target: MacAddr,
    address: Ipv4Addr,
) -> Vec<u8> {
    let mut frame = header(MacAddr::BROADCAST, sender, ether_type);
    // Ethernet, IPv4, and the lengths of their addresses.
    frame.extend([0, 1, 8, 0, 6, 4]);
    frame.extend(operation.to_be_bytes());
    frame.extend(sender.0);
    frame.extend(address.octets());
    frame.extend(target.0);
    frame.extend(address.octets());
    frame
}

fn neighbour_advertisement(host: MacAddr, address: Ipv6Addr) -> Vec<u8> {
    let mut message = vec![NEIGHBOUR_ADVERTISEMENT, 0, 0, 0, OVERRIDE, 0, 0, 0];
    message.extend(address.octets());
    // Lengths of options count in units of eight bytes.
    message.extend([OPTION_TARGET_LINK_ADDRESS, 1]);
    message.extend(host.0);
    let sum = icmpv6_checksum(address, ALL_NODES, &message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());

    let mut frame = header(ALL_NODES_MAC, host, ether_type::IPV6);
    frame.extend([0x60, 0, 0, 0]);
    frame.extend((message.len() as u16).to_be_bytes());
    frame.extend([NEXT_HEADER_ICMPV6, HOP_LIMIT]);
    frame.extend(address.octets());
    frame.extend(ALL_NODES.octets());
    frame.extend(message);
    frame
}

/// Over the pseudo-header of RFC 8200, section 8.1, and the message with a zero in its place.
fn icmpv6_checksum(source: Ipv6Addr, destination: Ipv6Addr, message: &[u8]) -> u16 {
    let mut covered = Vec::with_capacity(40 + message.len());
    covered.extend(source.octets());
    covered.extend(destination.octets());
    covered.extend((message.len() as u32).to_be_bytes());
    covered.extend([0, 0, 0, NEXT_HEADER_ICMPV6]);
    covered.extend(message);
    checksum::checksum(&covered)
}

fn header(destination: MacAddr, source: MacAddr, ether_type: u16) -> Vec<u8> {
    let header = Header {
        destination,
        source,
        ether_type,
    };
    header.to_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

    #[test]
    fn a_gratuitous_arp_is_a_broadcast_request_of_an_address_for_itself() {
        #[rustfmt::skip]
        let expected = [
            0xff, 0xff, 0xff, 0xff, 0xff, 0xff,  2, 0, 0, 0, 0, 1,  0x08, 0x06,
            0x00, 0x01,  0x08, 0x00,  6, 4,  0x00, 0x01,
            2, 0, 0, 0, 0, 1,  10, 9, 0, 1,
            0, 0, 0, 0, 0, 0,  10, 9, 0, 1,
        ];
        assert_eq!(gratuitous_arp(HOST, Ipv4Addr::new(10, 9, 0, 1)), expected);
    }

    #[test]
    fn an_advertisement_overrides_what_neighbours_know_and_has_a_right_checksum() {
        let address: Ipv6Addr = "fd09::1".parse().unwrap();
        #[rustfmt::skip]
        let expected = [
            0x33, 0x33, 0, 0, 0, 1,  2, 0, 0, 0, 0, 1,  0x86, 0xdd,
            0x60, 0, 0, 0,  0, 32,  58, 255,
            0xfd, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
            0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
            // The sum by hand, in 16-bit words: fd09 + 1 + ff02 + 1 (addresses), 20 (length), 3a
            // (next header), 8800 + 2000 (head), fd09 + 1 (target), 0201 + 0200 + 0 + 1 (option)
            // = 3a573; a573 + 3 = a576; its complement 5a89.
            136, 0, 0x5a, 0x89,  0x20, 0, 0, 0,
            0xfd, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
            2, 1,  2, 0, 0, 0, 0, 1,
        ];
        assert_eq!(neighbour_advertisement(HOST, address), expected);
    }

    #[test]
    fn a_station_asks_by_rarp_for_its_own_address_as_itself() {
        let station = MacAddr([2, 0, 0, 0, 0, 9]);
        #[rustfmt::skip]
        let expected = [
            0xff, 0xff, 0xff, 0xff, 0xff, 0xff,  2, 0, 0, 0, 0, 9,  0x80, 0x35,
            0x00, 0x01,  0x08, 0x00,  6, 4,  0x00, 0x03,
            2, 0, 0, 0, 0, 9,  0, 0, 0, 0,
            2, 0, 0, 0, 0, 9,  0, 0, 0, 0,
        ];
        assert_eq!(reverse_arp(station), expected);
    }

    #[test]
    fn everything_is_said_once_and_a_host_without_addresses_speaks_for_its_own() {
        let addresses = ["10.9.0.1/24", "fd09::1/64", "fe80::1/64"];
        let addresses = addresses.map(|a| a.parse::<IpPrefix>().unwrap());
        let behind = MacAddr([2, 0, 0, 0, 0, 9]);
        let said = frames(HOST, &addresses, &[behind, HOST]);
        let kinds: Vec<(MacAddr, u16)> = said
            .iter()
            .map(|frame| Header::parse(frame).unwrap())
            .map(|header| (header.source, header.ether_type))
            .collect();
        assert_eq!(
            kinds,
            [
                (HOST, ether_type::ARP),
                (HOST, ether_type::IPV6),
                (HOST, ether_type::IPV6),
                (behind, ETHER_TYPE_RARP),
            ]
        );
        assert_eq!(frames(HOST, &[], &[]), [reverse_arp(HOST)]);
    }
}
