//! Frames of every kind, to the byte.

use std::net::{Ipv4Addr, Ipv6Addr};

use packtrain_proto::wire::checksum::checksum;
use packtrain_proto::wire::ethernet::{MacAddr, ether_type};

use crate::common::pattern;

pub const ICMP: u8 = 1;
pub const UDP: u8 = 17;
/// For experiments (RFC 3692): no stack knows it.
const UNKNOWN_PROTOCOL: u8 = 253;
const ICMPV6: u8 = 58;

/// IEEE 802 local experimental EtherType 2: nobody's.
pub const NOBODYS_TYPE: u16 = 0x88b6;
pub const HEADER_LEN: usize = 14;
const TAG_LEN: usize = 4;

/// A frame with these addresses; `rest` begins with its EtherType.
pub fn frame(to: MacAddr, from: MacAddr, rest: &[u8]) -> Vec<u8> {
    [&to.0, &from.0, rest].concat()
}

/// `len` bytes that no other `seed` gives.
pub fn payload(seed: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| pattern(seed << 20 | i)).collect()
}

/// An EtherType (or a length), and so many bytes.
pub fn typed(ether_type: u16, seed: u64, len: usize) -> Vec<u8> {
    [&ether_type.to_be_bytes()[..], &payload(seed, len)].concat()
}

/// `tci`: priority and VLAN.
pub fn tagged(tpid: u16, tci: u16, rest: &[u8]) -> Vec<u8> {
    [&tpid.to_be_bytes(), &tci.to_be_bytes(), rest].concat()
}

/// `fragment`: the flags and the offset.
fn ipv4_part(from: Ipv4Addr, to: Ipv4Addr, protocol: u8, fragment: u16, payload: &[u8]) -> Vec<u8> {
    let total = (20 + payload.len()) as u16;
    let mut header = vec![0x45, 0];
    header.extend(total.to_be_bytes());
    header.extend([0x70, 0x74]);
    header.extend(fragment.to_be_bytes());
    header.extend([64, protocol, 0, 0]);
    header.extend(from.octets());
    header.extend(to.octets());
    let sum = checksum(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    [&ether_type::IPV4.to_be_bytes()[..], &header, payload].concat()
}

pub fn ipv4(from: Ipv4Addr, to: Ipv4Addr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    const DONT_FRAGMENT: u16 = 0x4000;
    ipv4_part(from, to, protocol, DONT_FRAGMENT, payload)
}

fn ipv6(from: Ipv6Addr, to: Ipv6Addr, next_header: u8, payload: &[u8]) -> Vec<u8> {
    // What neighbours say comes from nowhere else.
    const HOP_LIMIT: u8 = 255;
    let mut header = vec![0x60, 0, 0, 0];
    header.extend((payload.len() as u16).to_be_bytes());
    header.extend([next_header, HOP_LIMIT]);
    header.extend(from.octets());
    header.extend(to.octets());
    [&ether_type::IPV6.to_be_bytes()[..], &header, payload].concat()
}

/// Without a checksum, which IPv4 allows.
pub fn udp(from_port: u16, to_port: u16, payload: &[u8]) -> Vec<u8> {
    let len = (8 + payload.len()) as u16;
    let header = [from_port, to_port, len, 0].map(u16::to_be_bytes).concat();
    [&header, payload].concat()
}

pub fn echo(is_request: bool, sequence: u16, payload: &[u8]) -> Vec<u8> {
    let mut message = vec![if is_request { 8 } else { 0 }, 0, 0, 0, 0x70, 0x74];
    message.extend(sequence.to_be_bytes());
    message.extend(payload);
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    message
}

pub fn arp_request(from: (MacAddr, Ipv4Addr), who_has: Ipv4Addr) -> Vec<u8> {
    let mut body = ether_type::ARP.to_be_bytes().to_vec();
    body.extend([0, 1, 8, 0, 6, 4, 0, 1]);
    body.extend(from.0.0);
    body.extend(from.1.octets());
    body.extend([0; 6]);
    body.extend(who_has.octets());
    body
}

/// Who answered a question like this, if the frame is an answer.
pub fn arp_answer(frame: &[u8]) -> Option<(MacAddr, Ipv4Addr)> {
    let arp = frame.get(HEADER_LEN..HEADER_LEN + 28)?;
    let is_answer = frame[12..14] == ether_type::ARP.to_be_bytes() && arp[6..8] == [0, 2];
    let address: [u8; 4] = arp[14..18].try_into().expect("four bytes");
    is_answer.then(|| (MacAddr::from_slice(&arp[8..14]), address.into()))
}

/// ICMPv6 135 (RFC 4861, 4.3) with the sender's own link-layer address.
pub fn neighbour_solicitation(from: (MacAddr, Ipv6Addr), target: Ipv6Addr) -> Vec<u8> {
    let mut message = vec![135, 0, 0, 0, 0, 0, 0, 0];
    message.extend(target.octets());
    message.extend([1, 1]);
    message.extend(from.0.0);
    let mut summed = [from.1.octets(), target.octets()].concat();
    summed.extend((message.len() as u32).to_be_bytes());
    summed.extend([0, 0, 0, ICMPV6]);
    summed.extend(&message);
    message[2..4].copy_from_slice(&checksum(&summed).to_be_bytes());
    ipv6(from.1, target, ICMPV6, &message)
}

/// Of which address the frame is an advertisement (ICMPv6 136).
pub fn neighbour_advertisement(frame: &[u8]) -> Option<Ipv6Addr> {
    const ICMP_AT: usize = HEADER_LEN + 40;
    let message = frame.get(ICMP_AT..ICMP_AT + 24)?;
    let is_one = frame[12..14] == ether_type::IPV6.to_be_bytes()
        && frame[HEADER_LEN + 6] == ICMPV6
        && message[0] == 136;
    let address: [u8; 16] = message[8..24].try_into().expect("sixteen bytes");
    is_one.then(|| address.into())
}

/// What may stand behind the addresses of a frame from one host to another, by name. What is there is
/// the largest that an MTU allows, too.
pub fn of_every_kind(from: Ipv4Addr, to: Ipv4Addr, mtu: usize) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<(String, Vec<u8>)> = Vec::new();
    let mut add = |what: String, rest: Vec<u8>| all.push((what, rest));
    // From a single byte on; below and above what is padded, and what is small.
    for len in [1, 2, 31, 45, 46, 47, 50, 286, 287, 1000, mtu - 1, mtu] {
        let what = format!("{} bytes of no known type", HEADER_LEN + len);
        add(what, typed(NOBODYS_TYPE, len as u64, len));
    }
    // Wake-on-LAN, PPPoE, MPLS, LLDP, MACsec, the first and the last one: each with what no parser expects.
    for odd in [
        0x0842, 0x8863, 0x8864, 0x8847, 0x88cc, 0x88e5, 0x0600, 0xffff,
    ] {
        add(format!("EtherType {odd:#06x}"), typed(odd, odd.into(), 80));
    }
    // 802.3: a length, then LLC.
    let bpdu = [&[0, 38, 0x42, 0x42, 3][..], &payload(1, 35), &[0; 8]].concat();
    add("a bridge's 802.3 frame".into(), bpdu);
    let snap = [&[5, 220, 0xaa, 0xaa, 3, 0, 0, 0][..], &payload(2, 1494)].concat();
    add("the longest 802.3 frame".into(), snap);
    add("a length of 0".into(), typed(0, 3, 46));
    add("1535, neither length nor type".into(), typed(1535, 4, 46));

    let inner = typed(NOBODYS_TYPE, 5, 100);
    add("VLAN 7".into(), tagged(ether_type::VLAN, 0x2007, &inner));
    let of_no_vlan = tagged(ether_type::VLAN, 0xe000, &typed(NOBODYS_TYPE, 6, 100));
    add("a priority without a VLAN".into(), of_no_vlan);
    let large = tagged(ether_type::VLAN, 8, &typed(NOBODYS_TYPE, 7, mtu));
    add("a tag, and the MTU behind it".into(), large);
    let twice = tagged(ether_type::QINQ, 9, &tagged(ether_type::VLAN, 7, &inner));
    add("two tags".into(), twice);
    let message = udp(9, 9, &payload(8, 100));
    let packet = tagged(ether_type::VLAN, 7, &ipv4(from, to, UDP, &message));
    add("IPv4 in VLAN 7".into(), packet);
    let four_times = (0..4).fold(inner, |rest, vlan| {
        tagged(ether_type::VLAN, 10 + vlan, &rest)
    });
    add("four tags".into(), four_times);

    let unknown = ipv4(from, to, UNKNOWN_PROTOCOL, &payload(9, mtu - 20));
    add("IPv4 of no known protocol".into(), unknown);
    // Two of three, so that nobody waits for them in a row.
    for (at, more) in [(0u16, 0x2000), (185, 0x2000)] {
        let part = ipv4_part(from, to, UDP, more | at, &payload(10 + u64::from(at), 1480));
        add(format!("a fragment, from byte {}", at * 8), part);
    }
    let [from6, to6] = ["fd09::1", "fd09::2"].map(|text| text.parse().expect("an address"));
    let options = [&[59, 0, 1, 4, 0, 0, 0, 0][..], &payload(11, 500)].concat();
    add(
        "IPv6 with an extension".into(),
        ipv6(from6, to6, 0, &options),
    );
    all
}

/// The largest frame of an MTU with a tag.
pub fn tagged_len_max(mtu: usize) -> usize {
    HEADER_LEN + TAG_LEN + mtu
}
