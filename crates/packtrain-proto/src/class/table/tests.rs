//! The table against the definition: a frame's class is the first that matches.

use proptest::prelude::*;

use super::*;
use crate::class::condition::{Match, Side, Test};
use crate::class::facts::{IpFacts, UNTAGGED};
use crate::class::prefix::Prefix;
use crate::class::ranges::Ranges;
use crate::class::{Pack, REST, defaults};
use crate::wire::packet::{IpVersion, Packet};

fn ranges(max: u32) -> impl Strategy<Value = Ranges> {
    let range = (0..=max, 0..=max).prop_map(|(a, b)| (a.min(b), a.max(b)));
    proptest::collection::vec(range, 1..3).prop_map(Ranges::new)
}

fn prefix() -> impl Strategy<Value = Prefix> {
    // Few networks, so that facts meet them.
    proptest::sample::select(vec![
        "10.0.0.0/8",
        "10.0.0.1",
        "0.0.0.0/0",
        "fd00::/8",
        "fd00::1",
        "::/0",
        "10.0.0.0/31",
    ])
    .prop_map(|text| text.parse().unwrap())
}

fn side() -> impl Strategy<Value = Side> {
    proptest::sample::select(vec![Side::Source, Side::Destination, Side::Either])
}

fn test() -> impl Strategy<Value = Test> {
    prop_oneof![
        ranges(65_535).prop_map(Test::EtherType),
        Just(Test::EtherType(Ranges::one(0x0800))),
        proptest::option::of(ranges(4095)).prop_map(Test::Vlan),
        ranges(255).prop_map(Test::Protocol),
        Just(Test::Protocol(Ranges::one(17))),
        ranges(63).prop_map(Test::Dscp),
        (side(), proptest::collection::vec(prefix(), 1..3)).prop_map(|(s, p)| Test::Address(s, p)),
        (side(), ranges(65_535)).prop_map(|(side, ports)| Test::Port(side, ports)),
        ranges(3000).prop_map(Test::Size),
        Just(Test::EmptyTcp),
        (any::<u32>(), any::<u32>()).prop_map(|(value, mask)| Test::Mark {
            value: value & mask,
            mask
        }),
    ]
}

pub(in crate::class) fn any_match() -> impl Strategy<Value = Match> {
    let condition = (any::<bool>(), test()).prop_map(|(negated, test)| Condition { negated, test });
    proptest::collection::vec(condition, 0..4).prop_map(Match)
}

fn any_facts() -> impl Strategy<Value = Facts> {
    let version = proptest::sample::select(vec![None, Some(IpVersion::V4), Some(IpVersion::V6)]);
    let ports = proptest::option::of([any::<u16>(), any::<u16>()]);
    let flow = (version, 0u128..3, 0u8..64, 0u8..32, ports, 0u16..8).prop_map(
        |(version, address, dscp, protocol, ports, vlan)| {
            let base: u128 = match version {
                Some(IpVersion::V4) => 10 << 24,
                Some(IpVersion::V6) => 0xfd << 120,
                None => 0,
            };
            FlowFacts {
                source: base + address,
                destination: base + 1,
                ports: ports.filter(|_| version.is_some()),
                ether_type: match version {
                    None => 0x806,
                    Some(IpVersion::V4) => 0x800,
                    Some(IpVersion::V6) => 0x86dd,
                },
                vlan: if vlan == 0 { UNTAGGED } else { vlan },
                ip: version.map(|version| IpFacts {
                    version,
                    protocol,
                    dscp,
                }),
            }
        },
    );
    (flow, 60u32..3000, any::<bool>(), any::<u32>()).prop_map(|(flow, size, empty_tcp, mark)| {
        Facts {
            flow,
            size,
            empty_tcp,
            mark,
        }
    })
}

fn named(matches: Vec<Match>) -> Vec<Class> {
    let class = |(number, matches)| Class {
        name: format!("c{number}").parse().unwrap(),
        matches,
        links: Vec::new(),
        action: Action::default(),
    };
    matches.into_iter().enumerate().map(class).collect()
}

proptest! {
    #[test]
    fn a_frame_is_of_the_first_class_that_matches(
        matches in proptest::collection::vec(any_match(), 0..CLASSES_MAX),
        // Few numbers, so that different flows meet in one place of the memory.
        frames in proptest::collection::vec((any_facts(), 0u32..3), 1..60),
    ) {
        let mut table = ClassTable::new(named(matches.clone()), Action::default());
        for (facts, flow_hash) in frames {
            let first = matches.iter().position(|m| m.matches(&facts));
            let expected = ClassId(first.unwrap_or(matches.len()) as u8);
            prop_assert_eq!(table.class_of(flow_hash, &facts), expected);
            prop_assert_eq!(table.class_of(flow_hash, &facts), expected);
        }
    }
}

/// Class of a frame among the defaults, by name.
fn default_class(frame: &[u8]) -> String {
    let mut table = ClassTable::new(defaults(), Action::default());
    let class = table.class_of(0, &Facts::of(frame, &Packet::parse(frame), 0));
    let name = table.iter().nth(class.0.into()).map(|c| c.name.to_string());
    name.unwrap_or_else(|| REST.into())
}

fn ethernet(ether_type: u16, packet: &[u8]) -> Vec<u8> {
    [&[2; 12][..], &ether_type.to_be_bytes(), packet].concat()
}

fn ipv4(dscp: u8, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![
        0x45,
        dscp << 2,
        0,
        20 + payload.len() as u8,
        0,
        0,
        0,
        0,
        64,
        protocol,
    ];
    packet.extend([0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend(payload);
    packet
}

fn ipv6(dscp: u8, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![
        0x60 | dscp >> 2,
        dscp << 6,
        0,
        0,
        0,
        payload.len() as u8,
        protocol,
        64,
    ];
    packet.extend([0xfd; 32]);
    packet.extend(payload);
    packet
}

fn tcp(payload: usize) -> Vec<u8> {
    let mut segment = vec![0; 20 + payload];
    segment[12] = 0x50;
    segment
}

fn udp(source: u16, destination: u16) -> Vec<u8> {
    [source, destination, 12, 0]
        .map(u16::to_be_bytes)
        .concat()
        .into_iter()
        .chain([0; 4])
        .collect()
}

#[test]
fn the_defaults_know_what_a_host_wants_at_once() {
    for (frame, class) in [
        (ethernet(0x806, &[0; 46]), "arp"),
        (ethernet(0x88cc, &[0; 46]), "rest"),
        (ethernet(0x86dd, &ipv6(0, 58, &[135; 24])), "icmp6"),
        (ethernet(0x800, &ipv4(0, 1, &[8; 64])), "icmp"),
        (ethernet(0x800, &ipv4(0, 17, &udp(40_000, 53))), "dns"),
        (ethernet(0x86dd, &ipv6(0, 17, &udp(5353, 5353))), "dns"),
        (ethernet(0x800, &ipv4(0, 17, &udp(40_000, 54))), "rest"),
        (ethernet(0x800, &ipv4(0, 6, &tcp(0))), "tcp-empty"),
        (ethernet(0x800, &ipv4(0, 6, &tcp(1))), "rest"),
        (ethernet(0x86dd, &ipv6(0, 6, &tcp(0))), "tcp-empty"),
        (ethernet(0x800, &ipv4(46, 17, &udp(1, 2))), "ef"),
        (ethernet(0x86dd, &ipv6(46, 17, &udp(1, 2))), "ef"),
        (ethernet(0x86dd, &ipv6(34, 17, &udp(1, 2))), "rest"),
        // Behind a tag, and as no IP at all.
        (
            ethernet(0x8100, &[&[0, 5, 8, 0], &ipv4(0, 1, &[8; 64])[..]].concat()),
            "icmp",
        ),
        (ethernet(0x800, &[0x55; 60]), "rest"),
        (vec![2; 13], "rest"),
    ] {
        assert_eq!(default_class(&frame), class, "{frame:02x?}");
    }
}

#[test]
fn what_is_looked_at_is_what_stands_in_the_frame() {
    let facts = |frame: &[u8]| Facts::of(frame, &Packet::parse(frame), 7);
    let frame = ethernet(
        0x8100,
        &[&[0x6f, 0xfe, 8, 0], &ipv4(10, 17, &udp(9, 10))[..]].concat(),
    );
    let seen = facts(&frame);
    assert_eq!(
        (seen.size, seen.mark, seen.empty_tcp),
        (frame.len() as u32, 7, false)
    );
    let flow = seen.flow;
    assert_eq!((flow.vlan, flow.ether_type), (0xffe, 0x800));
    assert_eq!((flow.source, flow.destination), (0x0a00_0001, 0x0a00_0002));
    assert_eq!(flow.ports, Some([9, 10]));
    assert_eq!(
        flow.ip,
        Some(IpFacts {
            version: IpVersion::V4,
            protocol: 17,
            dscp: 10
        })
    );
    // Of a fragment there are no ports; of broken IP there is nothing but its type.
    let mut fragment = frame.clone();
    fragment[18 + 7] = 1;
    assert_eq!(facts(&fragment).flow.ports, None);
    let broken = facts(&frame[..30]).flow;
    assert_eq!(
        (broken.ip, broken.vlan, broken.ether_type),
        (None, 0xffe, 0x800)
    );
}

#[test]
fn other_classes_forget_what_flows_were_and_keep_what_was_counted() {
    let class = |name: &str, matches: &str| Class {
        name: name.parse().unwrap(),
        matches: matches.parse().unwrap(),
        links: Vec::new(),
        action: Action {
            pack: Pack::Now,
            ..Action::default()
        },
    };
    let frame = ethernet(0x800, &ipv4(0, 17, &udp(9, 10)));
    let facts = Facts::of(&frame, &Packet::parse(&frame), 0);
    let mut table = ClassTable::new(
        vec![class("a", "tcp"), class("b", "udp")],
        Action::default(),
    );
    let b = table.class_of(5, &facts);
    table.count(b, 100);
    table.count(ClassId(2), 10);
    table.replace(vec![class("b", "dport 11"), class("c", "dport 10")]);
    assert_eq!(table.class_of(5, &facts), ClassId(1));
    let traffic: Vec<_> = table
        .iter_counted()
        .map(|(c, t, _)| (c.name.to_string(), t.bytes))
        .collect();
    assert_eq!(traffic, [("b".to_string(), 100), ("c".to_string(), 0)]);
    assert_eq!(table.rest().1.bytes, 10);
    assert_eq!(table.action(ClassId(1)).pack, Pack::Now);
    assert_eq!(table.action(ClassId(2)), Action::default());
}
