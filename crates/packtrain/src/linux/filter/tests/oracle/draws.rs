//! Frames of all kinds that a segment brings: from neighbours and strangers, for this host, for others, for groups; most of them
//! right, some of them not.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use packtrain_proto::random::Random;
use packtrain_proto::wire::ethernet::MacAddr;

use super::host::{
    CONNECTED_PORT, OPEN_PORT, OWN, OWN_IPV4, OWN_IPV6, PEER, PEER_PORT, SECOND, mac_of,
};
use super::packets::{
    ACK, ARP, Arp, ICMP, ICMP6, IGMP, IPV4, IPV6, OSPF, RST, SYN, TCP, UDP, address_option,
    control, ethernet, group_mac, ip, ipv4, solicited_group, tagged, tcp, udp,
};

pub(super) fn pick<T: Copy>(random: &mut Random, among: &[T]) -> T {
    among[random.up_to(among.len() as u64 - 1) as usize]
}

fn once_in(random: &mut Random, times: u64) -> bool {
    random.up_to(times - 1) == 0
}

fn v4(text: &str) -> Ipv4Addr {
    text.parse().unwrap()
}

fn v6(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

/// One frame.
pub(super) fn a_frame(random: &mut Random) -> Vec<u8> {
    let mut frame = match random.up_to(11) {
        0..=2 => an_arp(random),
        3..=5 => with_ip(random, false),
        6..=8 => with_ip(random, true),
        9 => a_fragment(random),
        10 => without_ip(random),
        _ => of_link_control(random),
    };
    let tags: &[u16] = match random.up_to(23) {
        // A priority alone, which is no tag to a host.
        0..=2 => &[0],
        3 => &[7],
        4 => &[0, 7],
        5 => &[7, 0],
        6 => &[0, 0, 0],
        _ => &[],
    };
    for id in tags {
        let protocol = pick(random, &[0x8100, 0x8100, 0x88a8]);
        frame = tagged(&frame, protocol, id | 0xa000);
    }
    match random.up_to(19) {
        0 => frame.truncate(random.up_to(frame.len() as u64) as usize),
        1 => {
            let at = random.up_to(frame.len() as u64 - 1) as usize;
            frame[at] = random.up_to(255) as u8;
        }
        _ => {}
    }
    // As Ethernet pads, or not; a program is run on no less than 15 bytes.
    let len_min = pick(random, &[15, 60]);
    if frame.len() < len_min {
        frame.resize(len_min, 0);
    }
    frame
}

fn ours4(random: &mut Random) -> Ipv4Addr {
    let others = [
        "10.1.0.3",
        "192.0.2.7",
        "10.2.0.1",
        "10.9.0.1",
        "198.51.100.77",
    ];
    match random.up_to(1) {
        0 => OWN_IPV4,
        _ => v4(pick(random, &others)),
    }
}

fn anybody4(random: &mut Random) -> Ipv4Addr {
    let known = [
        "10.1.0.254",
        "10.1.0.20",
        "10.1.0.21",
        "10.1.0.22",
        "10.1.0.23",
        "10.1.0.30",
    ];
    let special = [
        "0.0.0.0",
        "255.255.255.255",
        "10.1.0.255",
        "10.1.0.0",
        "127.0.0.1",
        "127.9.9.9",
        "10.1.0.200",
        "10.3.0.9",
        "10.3.0.254",
        "10.3.0.77",
        "10.9.0.2",
        "10.2.0.9",
        "203.0.113.5",
        "169.254.7.7",
        "240.0.0.1",
    ];
    match random.up_to(7) {
        0..=2 => v4(pick(random, &known)),
        3 | 4 => Ipv4Addr::new(10, 1, 0, 100 + random.up_to(15) as u8),
        5 => v4(pick(random, &special)),
        6 => ours4(random),
        _ => Ipv4Addr::new(10, random.up_to(9) as u8, 0, random.up_to(20) as u8),
    }
}

fn a_group4(random: &mut Random) -> Ipv4Addr {
    let groups = [
        // Joined, then not; 239.129.2.3 has the Ethernet address of 239.1.2.3.
        "224.0.0.1",
        "224.0.0.251",
        "239.1.2.3",
        "239.255.255.250",
        "224.0.0.5",
        "232.1.1.1",
        "239.129.2.3",
        "224.0.0.2",
        "224.0.0.22",
        "224.0.0.18",
        "224.0.0.252",
        "239.9.9.9",
        "224.0.1.129",
        "232.9.9.9",
    ];
    v4(pick(random, &groups))
}

fn ours6(random: &mut Random) -> Ipv6Addr {
    let others = [
        "fe80::5054:ff:fe00:1",
        "fd00:2::1",
        "fd00:1::",
        "fe80::",
        "fd00:3::1",
    ];
    match random.up_to(1) {
        0 => OWN_IPV6,
        _ => v6(pick(random, &others)),
    }
}

fn anybody6(random: &mut Random) -> Ipv6Addr {
    let known = [
        "fd00:1::254",
        "fd00:1::20",
        "fd00:1::21",
        "fe80::5054:ff:fe01:16",
        "fd00:1::30",
    ];
    let special = [
        "::",
        "::1",
        "fd00:3::9",
        "2001:db8::5",
        "fe80::1",
        "::ffff:10.1.0.1",
        "fd00:1::ffff",
    ];
    match random.up_to(7) {
        0..=2 => v6(pick(random, &known)),
        3 | 4 => Ipv6Addr::new(0xfd00, 1, 0, 0, 0, 0, 0, 0x100 + random.up_to(15) as u16),
        5 => v6(pick(random, &special)),
        6 => ours6(random),
        _ => Ipv6Addr::new(
            0xfe80,
            0,
            0,
            0,
            0x5054,
            0xff,
            0xfe02,
            random.up_to(15) as u16,
        ),
    }
}

fn a_group6(random: &mut Random) -> Ipv6Addr {
    let groups = [
        "ff02::1",
        "ff02::fb",
        "ff02::1:3",
        "ff05::1234",
        "ff02::2",
        "ff02::16",
        "ff02::5",
        "ff01::1",
        "ff02::c",
        "ff0e::99",
        "ff05::2",
    ];
    match random.up_to(2) {
        0 => solicited_group(anybody6(random)),
        _ => v6(pick(random, &groups)),
    }
}

fn a_target(random: &mut Random, is_ipv6: bool) -> IpAddr {
    match (is_ipv6, random.up_to(5)) {
        (false, 0..=2) => ours4(random).into(),
        (false, 3) => anybody4(random).into(),
        (false, _) => a_group4(random).into(),
        (true, 0..=2) => ours6(random).into(),
        (true, 3) => anybody6(random).into(),
        (true, _) => a_group6(random).into(),
    }
}

/// Whom Ethernet would send it to; or somebody else.
fn destination_mac(random: &mut Random, right: Option<MacAddr>) -> MacAddr {
    match random.up_to(9) {
        0 => MacAddr::BROADCAST,
        1 => OWN,
        2 => any_mac(random),
        _ => right.unwrap_or(OWN),
    }
}

fn any_mac(random: &mut Random) -> MacAddr {
    let last = random.up_to(0x3f) as u8;
    let addresses = [
        SECOND,
        MacAddr([0x52, 0x54, 0, 0, 0, last]),
        MacAddr([0x53, 0x54, 0, 0, 0, 1]),
        MacAddr([0, 0x1b, 0x21, 1, 1, last]),
        // The last one is joined, by hand.
        MacAddr([0x01, 0x00, 0x5e, 0, 0, 0x77]),
        MacAddr([0x01, 0x00, 0x5e, 9, 9, 9]),
        MacAddr([0x33, 0x33, 0, 0, 0, last]),
        MacAddr([0x33, 0x33, 0xff, 0, 0, last]),
        MacAddr([0x01, 0x80, 0xc2, 0, 0, last]),
        MacAddr([0x03, 0, 0, 0, 0, 1]),
    ];
    pick(random, &addresses)
}

fn source_mac(random: &mut Random, source: IpAddr) -> MacAddr {
    match random.up_to(7) {
        // It has moved.
        0 => MacAddr([0x52, 0x54, 9, 9, 9, random.up_to(3) as u8]),
        1 => OWN,
        _ => mac_of(source),
    }
}

fn an_arp(random: &mut Random) -> Vec<u8> {
    let sender = match random.up_to(9) {
        0 => Ipv4Addr::UNSPECIFIED,
        _ => anybody4(random),
    };
    let target = match random.up_to(5) {
        // It announces itself.
        0 | 1 => sender,
        2 => ours4(random),
        _ => anybody4(random),
    };
    let sender_mac = source_mac(random, sender.into());
    let arp = Arp {
        hardware_type: pick(random, &[1, 1, 1, 1, 1, 1, 1, 6, 15]),
        operation: pick(random, &[1, 1, 1, 2, 2, 3, 8]),
        sender_mac,
        sender,
        target_mac: pick(
            random,
            &[MacAddr([0; 6]), OWN, MacAddr::BROADCAST, sender_mac],
        ),
        target,
    };
    let destination = match random.up_to(9) {
        0 => OWN,
        1 => any_mac(random),
        _ => MacAddr::BROADCAST,
    };
    ethernet(destination, sender_mac, ARP, &arp.bytes())
}

fn with_ip(random: &mut Random, is_ipv6: bool) -> Vec<u8> {
    let source = match is_ipv6 {
        false => anybody4(random).into(),
        true => anybody6(random).into(),
    };
    let (destination, protocol, message) = match random.up_to(9) {
        0 | 1 if is_ipv6 => a_discovery(random),
        2 if is_ipv6 => a_listener_message(random),
        0 if !is_ipv6 => a_group_message(random),
        0..=2 => an_echo(random, is_ipv6),
        3..=6 => a_datagram(random, is_ipv6),
        7 | 8 => a_segment(random, is_ipv6),
        _ => {
            let protocols = [OSPF, 4, 41, 47, 50, 51, 103, 112, 132, 136, 255];
            let payload = [2, 1, 0, 44, 10, 1, 0, 254, 0, 0, 0, 0, 0, 0, 0, 0];
            (
                a_target(random, is_ipv6),
                pick(random, &protocols),
                payload.to_vec(),
            )
        }
    };
    // Who answers on a connection, or to one.
    let source = match (source, random.up_to(3)) {
        (IpAddr::V4(_), 0) => IpAddr::V4(PEER),
        (source, _) => source,
    };
    let packet = ip(source, destination, protocol, &message);
    let mac = destination_mac(random, group_mac(destination));
    let ether_type = if is_ipv6 { IPV6 } else { IPV4 };
    ethernet(mac, source_mac(random, source), ether_type, &packet)
}

type Message = (IpAddr, u8, Vec<u8>);

fn an_echo(random: &mut Random, is_ipv6: bool) -> Message {
    let target = a_target(random, is_ipv6);
    let word = random.up_to(u64::from(u32::MAX)) as u32;
    match is_ipv6 {
        false => {
            // Questions, answers, and errors about what nobody has sent.
            let kind = pick(random, &[8, 8, 8, 0, 13, 3, 5, 11, 12, 9]);
            (target, ICMP, control(kind, 0, word, &[0x45; 28]))
        }
        true => {
            let kind = pick(random, &[128, 128, 128, 129, 1, 2, 3, 4, 139]);
            (target, ICMP6, control(kind, 0, word, &[0x60; 48]))
        }
    }
}

/// Neighbours, routers and redirects (RFC 4861, section 4).
fn a_discovery(random: &mut Random) -> Message {
    let target = match random.up_to(2) {
        0 => ours6(random),
        _ => anybody6(random),
    };
    let mac = source_mac(random, target.into());
    let to = |random: &mut Random, group: Ipv6Addr| match random.up_to(2) {
        0 => ours6(random),
        _ => group,
    };
    let mut rest = target.octets().to_vec();
    match random.up_to(9) {
        0..=3 => {
            if !once_in(random, 4) {
                rest.extend(address_option(1, mac));
            }
            let group = to(random, solicited_group(target));
            (group.into(), ICMP6, control(135, 0, 0, &rest))
        }
        4..=6 => {
            if !once_in(random, 4) {
                rest.extend(address_option(2, mac));
            }
            // From a router, solicited, and in the place of what is known.
            let flags = (random.up_to(7) as u32) << 29;
            let group = to(random, v6("ff02::1"));
            (group.into(), ICMP6, control(136, 0, flags, &rest))
        }
        7 => {
            let group = to(random, v6("ff02::2"));
            let rest = address_option(1, mac);
            (group.into(), ICMP6, control(133, 0, 0, &rest))
        }
        8 => {
            let group = to(random, v6("ff02::1"));
            // Reachable and retransmission times, which it does not say.
            let mut rest = vec![0; 8];
            rest.extend(address_option(1, mac));
            (group.into(), ICMP6, control(134, 0, 0x4000_0708, &rest))
        }
        _ => {
            rest.extend(anybody6(random).octets());
            let group = to(random, v6("ff02::1"));
            (group.into(), ICMP6, control(137, 0, 0, &rest))
        }
    }
}

/// Questions for listeners, and what they say (RFC 2710, RFC 3810). The answers are of timers.
fn a_listener_message(random: &mut Random) -> Message {
    let group = a_group6(random);
    let kind = pick(random, &[130, 131, 132, 143]);
    let mut rest = group.octets().to_vec();
    if once_in(random, 2) {
        rest.extend([2, 125, 0, 0]);
    }
    (group.into(), ICMP6, control(kind, 0, 100 << 16, &rest))
}

/// The same for IPv4 (RFC 2236, RFC 3376).
fn a_group_message(random: &mut Random) -> Message {
    let group = a_group4(random);
    let kind = pick(random, &[0x11, 0x11, 0x12, 0x16, 0x17, 0x22]);
    let mut message = control(kind, 1, group.to_bits(), &[]);
    if once_in(random, 2) {
        message.extend([2, 125, 0, 0]);
    }
    (group.into(), IGMP, message)
}

fn a_datagram(random: &mut Random, is_ipv6: bool) -> Message {
    let target = a_target(random, is_ipv6);
    let ports = [
        OPEN_PORT,
        OPEN_PORT,
        CONNECTED_PORT,
        7002,
        7003,
        7004,
        7005,
        5353,
        1900,
        5355,
        68,
        67,
        9,
        137,
        40_000,
    ];
    let port = pick(random, &ports);
    let source = match port {
        CONNECTED_PORT => PEER_PORT,
        _ => pick(random, &[PEER_PORT, 40_000, port, 53]),
    };
    let payload = vec![0x55; random.up_to(60) as usize];
    (target, UDP, udp(source, port, &payload))
}

fn a_segment(random: &mut Random, is_ipv6: bool) -> Message {
    let target = a_target(random, is_ipv6);
    let port = pick(random, &[OPEN_PORT, OPEN_PORT, CONNECTED_PORT, 22, 9]);
    let source = pick(random, &[PEER_PORT, 40_000, 40_001]);
    let flags = pick(random, &[SYN, SYN, ACK, SYN | ACK, RST, RST | ACK, 1, 0x18]);
    let mut segment = tcp([source, port], random.up_to(1 << 20) as u32, 1001, flags);
    if flags == 0x18 {
        segment.extend(b"data");
    }
    (target, TCP, segment)
}

/// A datagram in two pieces is one when both have come: here the first, or the second, of one or another.
fn a_fragment(random: &mut Random) -> Vec<u8> {
    let whole = udp(40_000, OPEN_PORT, &[0; 24]);
    // The checksum is left out.
    let source = pick(random, &[v4("10.1.0.254"), v4("10.1.0.101"), PEER]);
    let IpAddr::V4(destination) = a_target(random, false) else {
        unreachable!("of IPv4");
    };
    let (fragment, piece) = match random.up_to(1) {
        0 => (0x2000, &whole[..16]),
        _ => (2, &whole[16..]),
    };
    let packet = ipv4(source, destination, UDP, &[], fragment, piece);
    let mac = destination_mac(random, group_mac(destination.into()));
    ethernet(mac, mac_of(source.into()), IPV4, &packet)
}

/// LLC, which has a length instead of a type, and other types than IP's.
fn without_ip(random: &mut Random) -> Vec<u8> {
    let types = [
        // Lengths, NetWare's raw frames among them; then LLDP, EtherCAT, PROFINET, AVTP, PPPoE, MPLS, EAPOL, IPX, RARP, loopback.
        38, 3, 100, 0x88cc, 0x88a4, 0x8892, 0x22f0, 0x8863, 0x8847, 0x888e, 0x8137, 0x8035, 0x9000,
        0x0001, 0x0004, 0x0600,
    ];
    let starts: [&[u8]; 4] = [
        &[0x42, 0x42, 3, 0, 0],
        &[0xaa, 0xaa, 3, 0, 0, 0x0c, 0x20, 0],
        &[0xff, 0xff, 0, 0x22],
        &[0xf0, 0xf0, 3, 0x2c],
    ];
    let mut payload = pick(random, &starts).to_vec();
    payload.resize(payload.len() + random.up_to(60) as usize, 7);
    let groups = [
        MacAddr([0x01, 0x00, 0x0c, 0xcc, 0xcc, 0xcc]),
        MacAddr([0x03, 0, 0, 0, 0, 1]),
    ];
    let right = pick(random, &groups);
    let mac = match once_in(random, 3) {
        true => any_mac(random),
        false => destination_mac(random, Some(right)),
    };
    ethernet(
        mac,
        MacAddr([0x52, 0x54, 0, 1, 0, 99]),
        pick(random, &types),
        &payload,
    )
}

fn of_link_control(random: &mut Random) -> Vec<u8> {
    let mac = match random.up_to(3) {
        0 => MacAddr([0x01, 0x1b, 0x19, 0, 0, 0]),
        _ => MacAddr([0x01, 0x80, 0xc2, 0, 0, random.up_to(0x30) as u8]),
    };
    let types = [0x88cc, 0x888e, 0x88f7, 0x8808, 0x8809, 38, IPV4, IPV6];
    let ether_type = pick(random, &types);
    ethernet(
        mac,
        MacAddr([0x52, 0x54, 0, 1, 0, 98]),
        ether_type,
        &[0x42; 46],
    )
}
