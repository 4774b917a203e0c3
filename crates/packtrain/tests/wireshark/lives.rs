//! Restarts, stale trains, markers, probes, and sequences that jump.

use packtrain_proto::buffer::Buffer;
use packtrain_proto::config::{LinkId, NodeId};
use packtrain_proto::offload::Offload;
use packtrain_proto::time::Duration;
use packtrain_proto::wire::hello::{Hello, LinkRecord};
use packtrain_proto::wire::sequence::Sequence;

use crate::named::{Forged, message};
use crate::tshark::{Passes, fields, in_a_row, with_tshark};
use crate::world::{World, datagram, link_address, pt0};

const FIELDS: &[&str] = &[
    "packtrain.drop_reason",
    "packtrain.probe",
    "packtrain.acked_by",
    "packtrain.stream",
];

#[test]
fn a_restart_is_said_at_the_hello_and_what_was_sent_before_is_stale_or_unknown() {
    with_tshark!();
    let mut world = World::new(&[Duration::from_micros(200)]);
    world.send(0, &datagram(0, [1, 2], b"before"), Offload::NONE);
    world.run(Duration::from_millis(20));
    let is_train_of =
        |from: u8| move |bytes: &[u8]| bytes[11] == from && bytes[12..15] == [0x88, 0xb5, 0x11];
    let old = world
        .seen
        .iter()
        .rfind(|seen| is_train_of(1)(&seen.bytes))
        .unwrap()
        .bytes
        .clone();
    let before = world.seen.len();
    // A side begins anew, and at once a train for its former life comes.
    world.restart(1, 0x7777_7777_7777_0001);
    let node = NodeId(0x7777_7777_7777_0001);
    for _ in 0..100 {
        world.run(Duration::from_micros(100));
        let is_new = |bytes: &[u8]| bytes[14] == 0x12 && bytes[18..26] == node.0.to_be_bytes();
        if world.seen[before..].iter().any(|seen| is_new(&seen.bytes)) {
            break;
        }
    }
    let hello = world.seen[before..]
        .iter()
        .position(|seen| seen.bytes[18..26] == node.0.to_be_bytes());
    let hello = before + hello.expect("a hello of the new life");
    let stray = hello + 1;
    let at = world.seen[hello].at;
    world
        .seen
        .insert(stray, crate::tshark::Seen::new(at, old.clone()));
    world.run(Duration::from_millis(500));
    world.send(0, &datagram(0, [1, 2], b"after"), Offload::NONE);
    world.run(Duration::from_millis(20));
    let last = world.seen.len();
    world.seen.push(crate::tshark::Seen::new(world.now, old));
    for passes in [Passes::One, Passes::Two] {
        let rows = fields(&world.seen, passes, FIELDS);
        assert!(
            rows[hello].mentions("7777777777770001 takes the place of node"),
            "{:?}",
            rows[hello]
        );
        assert_eq!(rows[stray].all("packtrain.drop_reason"), ["unknown_peer"]);
        assert_eq!(
            rows[last].all("packtrain.drop_reason"),
            ["stale_incarnation"]
        );
        let refused = rows
            .iter()
            .filter(|row| !row.all("packtrain.drop_reason").is_empty());
        assert_eq!(refused.count(), 2, "all others are taken");
        assert_eq!(
            rows.iter()
                .filter(|row| row.mentions("takes the place"))
                .count(),
            1
        );
    }
}

#[test]
fn without_hellos_a_new_incarnation_is_a_restart_and_the_one_before_is_stale() {
    with_tshark!();
    let train = |incarnation, sequence| {
        Forged {
            incarnation,
            ..Forged::new(sequence)
        }
        .emit(0)
    };
    let seen = in_a_row([
        train(1, 50),
        train(1, 51),
        train(2, 1),
        train(1, 52),
        train(2, 2),
    ]);
    for passes in [Passes::One, Passes::Two] {
        let rows = fields(&seen, passes, FIELDS);
        let restarts: Vec<bool> = rows
            .iter()
            .map(|row| row.mentions("the sender begins anew"))
            .collect();
        assert_eq!(restarts, [false, false, true, false, false]);
        let stale: Vec<bool> = rows
            .iter()
            .map(|row| row.says("stale_incarnation"))
            .collect();
        assert_eq!(stale, [false, false, false, true, false]);
        assert!(
            rows.iter().all(|row| !row.mentions("not seen before")),
            "a new row is no gap"
        );
    }
}

#[test]
fn a_marker_that_names_more_than_was_seen_says_so() {
    with_tshark!();
    let marker = |sequence| {
        Forged {
            flags: 0x02,
            subframes: Vec::new(),
            ..Forged::new(sequence)
        }
        .emit(0)
    };
    let seen = in_a_row([
        Forged::new(10).emit(0),
        marker(10),
        marker(13),
        Forged::new(13).emit(0),
        Forged::new(11).emit(0),
    ]);
    for passes in [Passes::One, Passes::Two] {
        let rows = fields(&seen, passes, FIELDS);
        let unseen: Vec<bool> = rows
            .iter()
            .map(|row| row.mentions("up to this one not seen"))
            .collect();
        assert_eq!(unseen, [false, false, true, false, false]);
        assert!(rows[2].mentions("3 trains"), "{:?}", rows[2].expert);
        let later = rows[2].mentions("2 came later, 1 never");
        assert_eq!(later, passes == Passes::Two, "{:?}", rows[2].expert);
    }
}

#[test]
fn a_probe_without_an_answer_is_known_once_all_was_seen() {
    with_tshark!();
    let probe = |sequence| {
        Forged {
            flags: 0x01,
            subframes: Vec::new(),
            ..Forged::new(sequence)
        }
        .emit(0)
    };
    let ack = |newest: u32, bitmap: u64| {
        let mut options = vec![0x01, 20, 0, 0, 0x11, 0x11, 0, 0, 0, 1];
        options.extend(newest.to_be_bytes());
        options.extend(bitmap.to_be_bytes());
        Forged {
            flags: 0x02,
            incarnation: 0x2222,
            options,
            subframes: Vec::new(),
            ..Forged::new(1)
        }
        .emit(1)
    };
    // The first is named in a bitmap, the second not, the third as the newest; then one that nobody has seen.
    let seen = in_a_row([probe(1), probe(2), probe(3), ack(3, 0b10), ack(9, 0)]);
    for passes in [Passes::One, Passes::Two] {
        let rows = fields(&seen, passes, FIELDS);
        assert_eq!(
            rows.iter()
                .filter(|row| !row.all("packtrain.probe").is_empty())
                .count(),
            3
        );
        let open: Vec<bool> = rows
            .iter()
            .map(|row| row.mentions("names this probe"))
            .collect();
        assert_eq!(open, [false, passes == Passes::Two, false, false, false]);
        if passes == Passes::Two {
            assert_eq!(
                (
                    rows[0].numbers("packtrain.acked_by"),
                    rows[2].numbers("packtrain.acked_by")
                ),
                (vec![4], vec![4])
            );
        }
        assert!(rows[4].mentions("Acknowledges link sequence 9 of link 0, which was not seen"));
        assert!(
            rows.iter()
                .all(|row| row.numbers("packtrain.stream") == [0]),
            "both directions are one"
        );
    }
}

#[test]
fn a_sequence_that_jumps_is_no_gap_until_sixteen_have() {
    with_tshark!();
    let near = (1..=3).map(|n| Forged::new(n).emit(0));
    let far = (0..20).map(|n| Forged::new(100_000 + n).emit(0));
    let seen = in_a_row(near.chain(far));
    for passes in [Passes::One, Passes::Two] {
        let rows = fields(&seen, passes, FIELDS);
        let jumps: Vec<usize> = (0..rows.len())
            .filter(|&n| rows[n].says("sequence_jump"))
            .collect();
        assert_eq!(jumps, (3..19).collect::<Vec<_>>());
        assert!(rows.iter().all(|row| !row.mentions("Trains ")));
    }
}

#[test]
fn sequences_wrap() {
    with_tshark!();
    let numbers = [u32::MAX - 1, u32::MAX, 0, 3];
    let seen = in_a_row(numbers.map(|n| Forged::new(n).emit(0)));
    let rows = fields(
        &seen,
        Passes::Two,
        &["packtrain.gap.first", "packtrain.gap.count"],
    );
    let gaps: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row.numbers("packtrain.gap.first"),
                row.numbers("packtrain.gap.count"),
            )
        })
        .collect();
    assert_eq!(gaps[..3], [const { (Vec::new(), Vec::new()) }; 3]);
    assert_eq!(gaps[3], (vec![1], vec![2]));
}

/// A hello with two links of a side, by one of them, but for a change.
pub fn hello(side: usize, change: impl FnOnce(&mut Hello)) -> Vec<u8> {
    let record = |link: usize| LinkRecord {
        link: LinkId(link as u8),
        carrier: true,
        unused_by_host: false,
        takes_vlan: false,
        mtu: 1500,
        address: link_address(side, link),
        mark: None,
        rate_kbps: None,
        newest_train: Sequence(0),
        newest_link: Sequence(0),
    };
    let mut hello = Hello {
        answer: false,
        goodbye: false,
        away: false,
        full: false,
        past: false,
        link: LinkId(0),
        node_id: NodeId(0x1111 * (side as u64 + 1)),
        recipient: None,
        line_id: 0,
        capabilities: 0,
        address: pt0(side),
        mtu: 1500,
        lanes: 1,
        epoch: 0,
        count: 0,
        links: vec![record(0), record(1)],
        stations: Vec::new(),
        direct_vlan: None,
        dictionary: None,
        mixing_ns: None,
        newest_in_lanes: Vec::new(),
        software: String::new(),
    };
    change(&mut hello);
    let mut buffer = Buffer::with_capacity(2000);
    assert!(buffer.push(&message(side, &[])));
    hello.emit(&mut buffer);
    buffer.to_vec()
}

#[test]
fn links_that_a_hello_joins_are_one_sender_from_then_on_with_what_was_seen_before() {
    with_tshark!();
    let train = |train, link, by| {
        Forged {
            train,
            link,
            by,
            ..Forged::new(0)
        }
        .emit(0)
    };
    let seen = in_a_row([
        train(1, 1, 0),
        train(2, 1, 1),
        train(3, 2, 0),
        hello(0, |_| ()),
        hello(1, |_| ()),
        train(4, 2, 1),
        train(6, 3, 0),
        train(2, 1, 1),
    ]);
    let names = &[
        "packtrain.gap.first",
        "packtrain.duplicate_of",
        "packtrain.stream",
        "eth.src",
    ];
    for passes in [Passes::One, Passes::Two] {
        let rows = fields(&seen, passes, names);
        let gaps: Vec<_> = rows
            .iter()
            .map(|row| row.numbers("packtrain.gap.first"))
            .collect();
        // By the first link alone, train 2 is missing; that 4 is no gap is known from both.
        assert_eq!(gaps[2], [2], "{rows:?}");
        assert_eq!((&gaps[5], &gaps[6]), (&vec![], &vec![5]), "{rows:?}");
        assert_eq!(rows[7].numbers("packtrain.duplicate_of"), [2]);
        let streams = |n: usize| rows[n].numbers("packtrain.stream");
        assert_eq!(
            (streams(5), streams(6), streams(7)),
            (vec![0], vec![0], vec![0])
        );
        // On a second look, what was joined later is one, and has the address that was told later.
        if passes == Passes::Two {
            assert_eq!(
                (streams(0), streams(1), streams(2)),
                (vec![0], vec![0], vec![0])
            );
            assert_eq!(rows[0].all("eth.src")[1], pt0(0).to_string());
        }
    }
}

#[test]
fn a_coded_train_that_does_not_restore_has_its_place_in_the_order_and_is_no_probe() {
    with_tshark!();
    let coded = Forged {
        flags: 0x08,
        subframes: vec![1, 0xde, 0xad, 0xbe, 0xef, 0x04, 0xff],
        ..Forged::new(2)
    };
    let seen = in_a_row([
        Forged::new(1).emit(0),
        coded.emit(0),
        Forged::new(3).emit(0),
    ]);
    for passes in [Passes::One, Passes::Two] {
        let rows = fields(&seen, passes, FIELDS);
        assert_eq!(rows[1].all("packtrain.drop_reason"), ["coded_damaged"]);
        assert!(rows[1].all("packtrain.probe").is_empty());
        assert!(
            rows.iter().all(|row| !row.mentions("not seen")),
            "it has its place in the order"
        );
    }
}
