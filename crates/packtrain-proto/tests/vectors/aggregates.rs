//! Aggregates of the DFAP paper, and how a station says that it takes them.

use packtrain_proto::buffer::Buffer;
use packtrain_proto::wire::dfap::{self, Aggregate};
use packtrain_proto::wire::ethernet::{self, Header, MacAddr, ether_type};
use packtrain_proto::wire::station::StationMessage;

use super::{LINK_A, message, vector};

#[test]
fn a_station_says_that_it_takes_aggregates() {
    let bytes = vector("station");
    let said = StationMessage {
        goodbye: false,
        answer: true,
        ether_type: dfap::ETHER_TYPE,
        line_id: 7,
        address: MacAddr([2, 0, 0, 0, 0, 0x0a]),
        mtu: 9000,
    };
    let read = StationMessage::parse(message(&bytes, MacAddr::HELLO, LINK_A));
    assert_eq!(read, Ok(said));
    let mut buffer = Buffer::with_capacity(100);
    assert!(buffer.push(&bytes[..ethernet::HEADER_LEN]));
    said.emit(&mut buffer);
    assert_eq!(buffer[..], bytes[..]);
}

/// The packets of an aggregate, and what a sender writes of them.
fn assert_aggregate(name: &str, ether_type: u16, packets: &[(u16, &[u8])]) {
    let bytes = vector(name);
    let outer = Header {
        destination: MacAddr([2, 0, 0, 0, 0, 0x0b]),
        source: MacAddr([2, 0, 0, 0, 0, 0x0a]),
        ether_type,
    };
    assert_eq!(Header::parse(&bytes), Some(outer));
    let data = &bytes[ethernet::HEADER_LEN..];
    let aggregate = Aggregate::parse(data).unwrap();
    let read = (0..aggregate.len()).map(|at| aggregate.packet(at));
    let read: Vec<(u16, &[u8])> = read.map(|(kind, range)| (kind, &data[range])).collect();
    assert_eq!(read, packets);
    let mut buffer = Buffer::with_capacity(2000);
    dfap::emit(&mut buffer, &outer, packets.iter().copied());
    assert_eq!(buffer[..], bytes[..buffer.len()]);
    assert!(bytes[buffer.len()..].iter().all(|&padding| padding == 0));
}

#[test]
fn an_aggregate_of_three_packets() {
    let ipv4 = [
        0x45, 0, 0, 20, 0, 0, 0, 0, 0x40, 0xfd, 0x66, 0xd8, 10, 9, 0, 1, 10, 9, 0, 2,
    ];
    let arp = [
        0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 0x0a, 10, 9, 0, 1, 0, 0, 0, 0, 0, 0, 10, 9, 0, 2,
    ];
    let mut ipv6 = [0; 40];
    ipv6[..10].copy_from_slice(&[0x60, 0, 0, 0, 0, 0, 0x3b, 0x40, 0xfd, 9]);
    ipv6[23..26].copy_from_slice(&[1, 0xfd, 9]);
    ipv6[39] = 2;
    let packets = [
        (ether_type::IPV4, &ipv4[..]),
        (ether_type::ARP, &arp),
        (ether_type::IPV6, &ipv6),
    ];
    assert_aggregate("dfap-three-packets", dfap::ETHER_TYPE, &packets);
}

#[test]
fn an_aggregate_that_was_padded() {
    let ipv4 = [
        0x45, 0, 0, 21, 0, 0, 0, 0, 0x40, 0xfd, 0x66, 0xd7, 10, 9, 0, 1, 10, 9, 0, 2, 0xee,
    ];
    let packets = [(0x9000, &[0xab, 0xcd][..]), (ether_type::IPV4, &ipv4)];
    let kind = dfap::ETHER_TYPE_OF_FOOTNOTE;
    assert_aggregate("dfap-footnote-padded", kind, &packets);
}
