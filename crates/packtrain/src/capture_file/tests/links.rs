//! What is captured on other links than Ethernet, as frames.

use super::super::byte_order::ByteOrder::{self, Big, Little};
use super::build::{
    MICROS, NANOS, block, enhanced, interface, option, pcap_header, pcap_packet, section, simple,
    u32,
};
use super::{LinkType, Owned, error, frames, hint};

const COOKED: u32 = 113;
const COOKED_V2: u32 = 276;

const HERE: [u8; 6] = [2, 0, 0, 0, 0, 1];
const THERE: [u8; 6] = [2, 0, 0, 0, 0, 2];
const STATION: [u8; 6] = [0x52, 0x54, 0, 0xaa, 0xbb, 0xcc];

/// An IPv4 header with two bytes behind it.
fn ipv4(source: [u8; 4], destination: [u8; 4]) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 22, 0, 0, 0, 0, 64, 17, 0, 0];
    packet.extend(source);
    packet.extend(destination);
    packet.extend([0xca, 0xfe]);
    packet
}

fn ipv6(source: [u8; 16], destination: [u8; 16]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 2, 59, 64];
    packet.extend(source);
    packet.extend(destination);
    packet.extend([0xca, 0xfe]);
    packet
}

fn cooked(
    packet_type: u8,
    hardware: u16,
    address: &[u8],
    protocol: u16,
    payload: &[u8],
) -> Vec<u8> {
    let mut packet = vec![0, packet_type];
    packet.extend(hardware.to_be_bytes());
    packet.extend((address.len() as u16).to_be_bytes());
    packet.extend(address);
    packet.resize(14, 0);
    packet.extend(protocol.to_be_bytes());
    packet.extend(payload);
    packet
}

fn cooked_v2(
    packet_type: u8,
    hardware: u16,
    address: &[u8],
    protocol: u16,
    payload: &[u8],
) -> Vec<u8> {
    let mut packet = protocol.to_be_bytes().to_vec();
    packet.extend([0, 0, 0, 0, 0, 7]);
    packet.extend(hardware.to_be_bytes());
    packet.extend([packet_type, address.len() as u8]);
    packet.extend(address);
    packet.resize(20, 0);
    packet.extend(payload);
    packet
}

fn capture(link_type: u32, packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file = pcap_header(Little, MICROS, link_type);
    for packet in packets {
        file.extend(pcap_packet(Little, (0, 0), packet, packet.len() as u32));
    }
    file
}

fn ethernet(destination: [u8; 6], source: [u8; 6], ethertype: u16, payload: &[u8]) -> Vec<u8> {
    [&destination[..], &source, &ethertype.to_be_bytes(), payload].concat()
}

fn bytes(frames: &[Owned]) -> Vec<&[u8]> {
    frames.iter().map(|frame| &frame.bytes[..]).collect()
}

#[test]
fn a_cooked_packet_has_the_address_of_its_source_and_the_kind_of_its_destination() {
    let unicast = ipv4([10, 0, 0, 1], [10, 0, 0, 2]);
    let group = ipv4([10, 0, 0, 1], [224, 0, 0, 251]);
    let mut vlan = vec![0x20, 7, 0x08, 0x00];
    vlan.extend(&unicast);
    let cases = [
        // To the host, to all, to a group that IP names and to one that nobody does, to another, and from the host.
        (0, &STATION[..], 0x0800, &unicast, HERE, STATION),
        (1, &STATION, 0x0806, &unicast, [0xff; 6], STATION),
        (
            2,
            &STATION,
            0x0800,
            &group,
            [1, 0, 0x5e, 0, 0, 0xfb],
            STATION,
        ),
        (2, &STATION, 0x88cc, &unicast, [3, 0, 0, 0, 0, 0], STATION),
        (3, &STATION, 0x0800, &unicast, [2, 0, 0, 0, 0, 3], STATION),
        (4, &STATION, 0x0800, &unicast, THERE, STATION),
        (
            4,
            &STATION,
            0x0800,
            &group,
            [1, 0, 0x5e, 0, 0, 0xfb],
            STATION,
        ),
        // Of a tunnel, which has no addresses, or others.
        (0, &[], 0x0800, &unicast, HERE, THERE),
        (4, &[], 0x0800, &unicast, THERE, HERE),
        (4, &[192, 0, 2, 1], 0x0800, &unicast, THERE, HERE),
        // A tag is part of the packet.
        (0, &STATION, 0x8100, &vlan, HERE, STATION),
    ];
    for (link_type, build) in [
        (COOKED, cooked as fn(u8, u16, &[u8], u16, &[u8]) -> Vec<u8>),
        (COOKED_V2, cooked_v2),
    ] {
        let packets = cases.map(|(kind, address, protocol, payload, ..)| {
            build(kind, 1, address, protocol, payload)
        });
        let expected = cases.map(|(_, _, protocol, payload, destination, source)| {
            ethernet(destination, source, protocol, payload)
        });
        let frames = frames(&capture(link_type, &packets));
        assert_eq!(bytes(&frames), expected);
        for frame in frames {
            assert_eq!(frame.len_on_wire, frame.bytes.len());
            assert_eq!(frame.link_type, LinkType(link_type));
        }
    }
}

#[test]
fn a_cooked_packet_with_a_length_in_place_of_a_type_has_that_length() {
    for protocol in [1, 4] {
        let packet = cooked(2, 1, &STATION, protocol, &[0x42, 0x42, 3]);
        let frames = frames(&capture(COOKED, &[packet]));
        let expected = ethernet([3, 0, 0, 0, 0, 0], STATION, 3, &[0x42, 0x42, 3]);
        assert_eq!(bytes(&frames), [&expected[..]]);
    }
}

#[test]
fn a_cooked_packet_of_what_ethernet_does_not_carry_is_an_error_that_names_it() {
    for (hardware, protocol, told) in [
        (824, 0, "a cooked packet of netlink"),
        (803, 0x0004, "a cooked packet of Wi-Fi in monitor mode"),
        (280, 0x000c, "a cooked packet of CAN"),
        (
            1,
            0x00f5,
            "a cooked packet of protocol 0x00f5, of hardware type 1",
        ),
    ] {
        let whole = cooked(0, 1, &STATION, 0x0800, &ipv4([1; 4], [2; 4]));
        let file = capture(
            COOKED,
            &[whole, cooked(0, hardware, &STATION, protocol, &[0; 8])],
        );
        let expected =
            format!("f: packet 2 at byte 78: {told}, which is nothing that Ethernet carries");
        assert_eq!(error(&file), expected);
    }
    assert_eq!(hint(&capture(COOKED, &[])[..20]), None);
}

#[test]
fn raw_ip_is_a_frame_of_its_version_from_one_end_to_the_other() {
    let (a, b) = ([10, 0, 0, 9], [10, 0, 0, 2]);
    let (a6, b6) = ([0xfd; 16], [0xfc; 16]);
    let mut all = [0; 16];
    (all[0], all[1], all[15]) = (0xff, 2, 1);
    let four = [
        ipv4(a, b),
        ipv4(b, a),
        ipv4(a, [239, 1, 2, 3]),
        ipv4(a, [255; 4]),
    ];
    let six = [ipv6(a6, b6), ipv6(b6, a6), ipv6(b6, all)];
    let four_expected = [
        ethernet(THERE, HERE, 0x0800, &four[0]),
        ethernet(HERE, THERE, 0x0800, &four[1]),
        ethernet([1, 0, 0x5e, 1, 2, 3], HERE, 0x0800, &four[2]),
        ethernet([0xff; 6], HERE, 0x0800, &four[3]),
    ];
    let six_expected = [
        ethernet(THERE, HERE, 0x86dd, &six[0]),
        ethernet(HERE, THERE, 0x86dd, &six[1]),
        ethernet([0x33, 0x33, 0, 0, 0, 1], THERE, 0x86dd, &six[2]),
    ];
    for link_type in [12, 14, 101, 228] {
        assert_eq!(bytes(&frames(&capture(link_type, &four))), four_expected);
    }
    for link_type in [12, 14, 101, 229] {
        assert_eq!(bytes(&frames(&capture(link_type, &six))), six_expected);
    }
    for link_type in [12, 14, 101] {
        let both = [&four[..], &six].concat();
        let expected = [&four_expected[..], &six_expected].concat();
        assert_eq!(bytes(&frames(&capture(link_type, &both))), expected);
        for (packet, told) in [
            (vec![0x55; 20], "IP of version 5"),
            (vec![], "nothing of it was captured, its version neither"),
        ] {
            let file = capture(link_type, &[packet]);
            assert_eq!(error(&file), format!("f: packet 1 at byte 24: {told}"));
        }
    }
}

#[test]
fn a_loopback_packet_is_of_the_family_that_its_host_or_openbsd_numbers() {
    let (four, six) = (ipv4([127, 0, 0, 1], [127, 0, 0, 1]), ipv6([1; 16], [2; 16]));
    for (link_type, order) in [(0, Little), (0, Big), (108, Big)] {
        let with = |family, packet: &[u8]| [&u32(order, family)[..], packet].concat();
        for (family, packet, ethertype) in [
            (2, &four, 0x0800),
            (24, &six, 0x86dd),
            (28, &six, 0x86dd),
            (30, &six, 0x86dd),
        ] {
            let frames = frames(&capture(link_type, &[with(family, packet)]));
            let expected = ethernet(THERE, HERE, ethertype, packet);
            assert_eq!(bytes(&frames), [&expected[..]]);
        }
        assert_eq!(
            error(&capture(link_type, &[with(7, &four)])),
            "f: packet 1 at byte 24: a loopback packet of address family 7, which is nothing that \
             Ethernet carries"
        );
        assert_eq!(
            error(&capture(link_type, &[vec![2, 0, 0]])),
            "f: packet 1 at byte 24: its address family was not captured"
        );
    }
}

#[test]
fn a_packet_that_was_cut_in_capturing_is_as_long_on_the_wire_as_a_frame_would_be() {
    let payload = ipv4([10, 0, 0, 1], [10, 0, 0, 2]);
    for (link_type, packet) in [
        (COOKED, cooked(0, 1, &STATION, 0x0800, &payload)),
        (COOKED_V2, cooked_v2(0, 1, &STATION, 0x0800, &payload)),
        (101, payload.clone()),
        (108, [&[0, 0, 0, 2][..], &payload].concat()),
    ] {
        let header_len = packet.len() - payload.len();
        let mut file = pcap_header(Big, NANOS, link_type);
        file.extend(pcap_packet(Big, (0, 0), &packet, 1000));
        let frames = frames(&file);
        assert_eq!(frames[0].bytes.len(), 14 + payload.len());
        assert_eq!(frames[0].len_on_wire, 14 + 1000 - header_len);
    }
    let cut = cooked(0, 1, &STATION, 0x0800, &[])[..15].to_vec();
    assert_eq!(
        error(&capture(COOKED, &[cut])),
        "f: packet 1 at byte 24: 15 bytes of it were captured, of a header of 16"
    );
}

#[test]
fn interfaces_of_one_file_may_be_of_different_links_and_tell_directions() {
    let payload = ipv4([10, 0, 0, 1], [10, 0, 0, 2]);
    let from_ethernet = ethernet(STATION, STATION, 0x0800, &payload);
    let flagged = |order: ByteOrder, interface, flags| {
        let len = u32(order, payload.len() as u32);
        let mut body = [u32(order, interface), [0; 4], [0; 4], len, len].concat();
        body.extend(&payload);
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend(option(order, 2, &u32(order, flags)));
        block(order, 6, &body)
    };
    for order in [Little, Big] {
        let mut file = section(order);
        // First, so that simple packets are its: their record has 12 bytes before what was captured, of 14.
        file.extend(interface(order, 101, 0, &[]));
        file.extend(interface(order, 1, 0, &[]));
        file.extend(interface(order, 113, 0, &[]));
        file.extend(simple(order, &payload, 22));
        file.extend(enhanced(order, 1, 0, &from_ethernet, 36));
        file.extend(enhanced(
            order,
            2,
            0,
            &cooked(0, 1, &STATION, 0x0800, &payload),
            38,
        ));
        file.extend(flagged(order, 0, 1));
        file.extend(flagged(order, 0, 2));
        let frames = frames(&file);
        let expected = [
            ethernet(THERE, HERE, 0x0800, &payload),
            from_ethernet.clone(),
            ethernet(HERE, STATION, 0x0800, &payload),
            ethernet(HERE, THERE, 0x0800, &payload),
            ethernet(THERE, HERE, 0x0800, &payload),
        ];
        assert_eq!(bytes(&frames), expected);
        let link_types = frames.iter().map(|frame| frame.link_type.0);
        assert_eq!(link_types.collect::<Vec<_>>(), [101, 1, 113, 101, 101]);
    }
}
