//! The way that the program finds for a frame by its class, against the engine's own table.

use packtrain_proto::class::{
    Action, Class, ClassPath, ClassTable, Facts, KernelPath, Match, Pack,
};
use packtrain_proto::classifier::Classifier;
use packtrain_proto::direct::OpenTo;
use packtrain_proto::wire::packet::Packet;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::tests::{GO_ON, PEER, PT0, REDIRECT, destination, leave_with_mark, with_path};
use super::{Destination, DirectPath, take_mark};

const TABLES: usize = 100;
const FRAMES: usize = 100;

/// What conditions ask for; frames have the same few values, so that they meet.
const CONDITIONS: &[&str] = &[
    "arp",
    "ip",
    "ip6",
    "ethertype 0x88cc,0-1500",
    "vlan any",
    "vlan 5,4000-",
    "tcp",
    "udp",
    "proto 0-10,44",
    "dscp ef,0",
    "dscp 1-45",
    "port 53",
    "sport 1-100,5060",
    "dport 53,100-",
    "src 10.0.0.0/8",
    "dst 10.0.0.1,fd00::1",
    "host fd00::/9,10.0.0.2/31",
    "host 0.0.0.0/0",
    "host ::/0",
    "size -70",
    "size 60-90,100-",
    "tcp empty",
    "empty",
    "mark 0x10/0xf0",
    "mark 7",
];

fn any_match() -> impl Strategy<Value = Match> {
    let condition = (any::<bool>(), proptest::sample::select(CONDITIONS));
    proptest::collection::vec(condition, 0..4).prop_map(|conditions| {
        let terms = conditions.iter().map(|(negated, text)| {
            let not = if *negated { "not " } else { "" };
            format!("{not}{text}")
        });
        let text = terms.collect::<Vec<_>>().join(" ");
        let text = if text.is_empty() { "any" } else { &text };
        text.parse()
            .unwrap_or_else(|error| panic!("{text}: {error}"))
    })
}

fn any_class() -> impl Strategy<Value = Class> {
    let path =
        proptest::sample::select(&[ClassPath::Auto, ClassPath::Engine, ClassPath::Direct][..]);
    let within = Pack::Within(packtrain_proto::time::Duration::from_micros(100));
    let pack = proptest::sample::select(vec![Pack::Queued, Pack::Now, within]);
    let action = (path, pack, any::<bool>()).prop_map(|(path, pack, loss_ok)| Action {
        pack,
        path,
        loss_ok,
        ..Action::default()
    });
    (any_match(), action).prop_map(|(matches, action)| Class {
        name: "c".parse().unwrap(),
        matches,
        links: Vec::new(),
        action,
    })
}

fn transport(protocol: u8) -> BoxedStrategy<Vec<u8>> {
    let port = proptest::sample::select(&[53u16, 50, 5060, 40_000][..]);
    let payload = prop_oneof![3 => Just(0usize), 2 => 1usize..60];
    (port.clone(), port, 0u8..16, payload)
        .prop_map(move |(source, destination, doff, payload)| {
            let mut bytes = [source.to_be_bytes(), destination.to_be_bytes()].concat();
            if protocol == 6 {
                // Mostly right.
                let doff = if doff < 8 { 5 } else { doff };
                bytes.resize(12, 0);
                bytes.push(doff << 4);
                bytes.resize(usize::from(doff.max(5)) * 4, 0);
            } else {
                bytes.resize(8, 0);
            }
            bytes.resize(bytes.len() + payload, 0xaa);
            bytes
        })
        .boxed()
}

fn protocol() -> impl Strategy<Value = u8> {
    proptest::sample::select(&[6u8, 6, 17, 17, 1, 58, 99, 0, 43, 44, 60][..])
}

fn ipv4() -> impl Strategy<Value = Vec<u8>> {
    let head = (
        prop_oneof![9 => Just(4u8), 1 => 0u8..16],
        5u8..8,
        any::<u8>(),
        prop_oneof![3 => Just(0u16), 1 => any::<u16>()],
        0u8..4,
    );
    let lie = prop_oneof![4 => Just(0i32), 1 => -30i32..30];
    (head, protocol(), lie).prop_flat_map(|((version, ihl, tos, fragment, last), protocol, lie)| {
        transport(protocol).prop_map(move |transport| {
            let len = (i32::from(ihl) * 4 + transport.len() as i32 + lie).max(0) as u16;
            let tos = if tos < 100 { 46 << 2 } else { tos };
            let mut packet = vec![version << 4 | ihl, tos];
            packet.extend(len.to_be_bytes());
            packet.extend([0, 0]);
            packet.extend(fragment.to_be_bytes());
            packet.extend([64, protocol, 0, 0, 10, 0, 0, last, 10, 0, last, 1]);
            packet.resize(usize::from(ihl) * 4, 1);
            packet.extend(transport);
            packet
        })
    })
}

fn ipv6() -> impl Strategy<Value = Vec<u8>> {
    let kinds = proptest::sample::select(&[0u8, 43, 60, 60, 44][..]);
    let extensions = proptest::collection::vec((kinds, 0u8..3), 0..10);
    let head = (any::<u8>(), any::<u8>(), 0u8..4, extensions);
    (head, protocol()).prop_flat_map(|((class, flow, last, extensions), protocol)| {
        transport(protocol).prop_map(move |transport| {
            let mut rest = Vec::new();
            let kinds: Vec<u8> = extensions.iter().map(|(kind, _)| *kind).collect();
            let next = |at: usize| kinds.get(at).copied().unwrap_or(protocol);
            for (at, (kind, len)) in extensions.iter().enumerate() {
                let len = if *kind == 44 { 0 } else { *len };
                rest.extend([next(at + 1), len]);
                rest.resize(rest.len() + 6 + 8 * usize::from(len), 0);
            }
            rest.extend(&transport);
            let mut packet = vec![0x60 | class >> 4, class << 4 | flow & 15, 0, 0];
            packet.extend((rest.len() as u16).to_be_bytes());
            packet.extend([next(0), 64]);
            for end in [last, 1] {
                packet.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, end]);
            }
            packet.extend(rest);
            packet
        })
    })
}

/// A frame between the two `pt0`s, often cut.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let packet = prop_oneof![
        4 => ipv4().prop_map(|packet| (0x0800u16, packet)),
        4 => ipv6().prop_map(|packet| (0x86dd, packet)),
        1 => (proptest::sample::select(&[0x0806u16, 0x88cc, 60, 0x0800, 0x86dd][..]),
              proptest::collection::vec(any::<u8>(), 1..80)),
    ];
    let tags = proptest::collection::vec((any::<bool>(), any::<u16>()), 0..4);
    let cut = prop_oneof![3 => Just(usize::MAX), 1 => 15usize..120];
    (packet, tags, any::<bool>(), cut).prop_map(|((ether_type, packet), tags, tagged, cut)| {
        let mut frame = [PEER.0, PT0.0].concat();
        for (customer, control) in tags.into_iter().filter(|_| tagged) {
            frame.extend(if customer { [0x81, 0] } else { [0x88, 0xa8] });
            let control = if control % 3 == 0 { 5 } else { control };
            frame.extend(control.to_be_bytes());
        }
        frame.extend(ether_type.to_be_bytes());
        frame.extend(packet);
        frame.truncate(cut);
        // A test run takes no shorter ones: behind a tag there are some.
        let whole = match frame[12..14] {
            [8, 0] => 34,
            [0x86, 0xdd] => 54,
            _ => 15,
        };
        frame.resize(frame.len().max(whole), 0xff);
        frame
    })
}

fn sample<T>(runner: &mut TestRunner, strategy: &impl Strategy<Value = T>) -> T {
    strategy
        .new_tree(runner)
        .expect("it always has one")
        .current()
}

fn verdict(path: &mut DirectPath, to: Destination, frame: &[u8], mark: u32) -> u32 {
    // So many small frames in so short a time close the path for themselves.
    if !path.closed_links().unwrap().is_empty() {
        path.set_destinations(&[to]).unwrap();
    }
    leave_with_mark(path, frame, mark).0
}

#[test]
fn a_frame_takes_the_way_that_the_engines_table_says() {
    with_path(|path| {
        path.set_drained(u64::MAX).unwrap();
        let mut runner = TestRunner::deterministic();
        let open = Destination {
            payload_max: u16::MAX,
            ..destination()
        };
        let classifier = Classifier::new(7);
        let classes = proptest::collection::vec(any_class(), 0..6);
        let mut seen = [0; 4];
        for _ in 0..TABLES {
            let classes = sample(&mut runner, &classes);
            let mut table = ClassTable::new(classes.clone(), Action::default());
            path.set_classes(&classes).unwrap();
            let frames: Vec<(Vec<u8>, u32)> = (0..FRAMES)
                .map(|_| {
                    let marks = proptest::sample::select(&[0u32, 7, 0x1f][..]);
                    sample(&mut runner, &(any_frame(), marks))
                })
                .collect();
            let ways: Vec<KernelPath> = frames
                .iter()
                .map(|(frame, mark)| {
                    let parsed = Packet::parse(frame);
                    let flow = classifier.flow_hash_of(frame, &parsed);
                    let class = table.class_of(flow, &Facts::of(frame, &parsed, *mark));
                    table.action(class).kernel_path()
                })
                .collect();
            for open_to in [OpenTo::All, OpenTo::LossOk, OpenTo::Classes, OpenTo::Nobody] {
                let destination = Destination { open_to, ..open };
                path.set_destinations(&[destination]).unwrap();
                for ((frame, mark), way) in frames.iter().zip(&ways) {
                    let expected = if open_to.takes(*way) { REDIRECT } else { GO_ON };
                    let got = verdict(path, destination, frame, *mark);
                    let texts: Vec<_> = classes
                        .iter()
                        .map(|c| (c.matches.to_string(), c.action))
                        .collect();
                    assert_eq!(
                        got,
                        expected,
                        "{way:?}, mark {mark}: {texts:?}\n{frame:02x?}\n{:?}",
                        Facts::of(frame, &Packet::parse(frame), *mark)
                    );
                }
            }
            ways.iter().for_each(|way| seen[*way as usize] += 1);
        }
        // A test of nothing but one way would pass too.
        assert!(
            seen.iter().all(|&count| count > TABLES * FRAMES / 50),
            "{seen:?}"
        );
    });
}

#[test]
fn an_engine_that_asks_for_marks_is_told_them_in_the_place_of_the_address() {
    let class = |matches: &str| Class {
        name: "c".parse().unwrap(),
        matches: matches.parse().unwrap(),
        links: Vec::new(),
        action: Action {
            path: ClassPath::Engine,
            ..Action::default()
        },
    };
    with_path(move |path| {
        path.set_drained(u64::MAX).unwrap();
        path.set_destinations(&[destination()]).unwrap();
        let frame = [&PEER.0[..], &PT0.0, &[0x88, 0xcc], &[0; 50]].concat();
        let behind = [&PEER.0[..], &[2, 9, 9, 9, 9, 9], &[0x88, 0xcc], &[0; 50]].concat();
        path.set_classes(&[class("any")]).unwrap();
        assert_eq!(leave_with_mark(path, &frame, 7), (GO_ON, frame.clone()));
        path.set_classes(&[class("mark 7")]).unwrap();
        let (verdict, mut marked) = leave_with_mark(path, &frame, 7);
        assert_eq!(verdict, GO_ON);
        assert_eq!(marked[6..12], [0x03, 0x70, 0, 0, 0, 7]);
        assert_eq!(take_mark(&mut marked, PT0), 7);
        assert_eq!(marked, frame);
        // One without a mark, and one of a station that needs its address, are as they were.
        assert_eq!(leave_with_mark(path, &behind, 7).1, behind);
        assert_eq!(take_mark(&mut marked, PT0), 0);
        assert_eq!(leave_with_mark(path, &frame, 0).0, REDIRECT);
        let large = leave_with_mark(path, &frame, 0x0102_0307);
        assert_eq!(large.0, REDIRECT, "it is not mark 7");
    });
}
