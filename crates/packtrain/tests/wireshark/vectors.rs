//! The test vectors of docs/vectors, as a capture.

use std::fs;
use std::path::Path;

use crate::tshark::{Passes, fields, from_hex, in_a_row, with_tshark};

/// Names in their order, and bytes.
pub fn all() -> Vec<(String, Vec<u8>)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/vectors");
    let mut list = Vec::new();
    for entry in fs::read_dir(directory).expect("the vectors are there") {
        let path = entry.expect("a file").path();
        if path.extension().is_some_and(|extension| extension == "hex") {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).expect("a text");
            let hex: String = text
                .lines()
                .map(|line| line.split('#').next().unwrap())
                .collect();
            list.push((name, from_hex(&hex)));
        }
    }
    list.sort();
    list
}

/// Of each vector the Info column, alone in its capture.
#[rustfmt::skip]
const INFO: &[(&str, &str)] = &[
    ("dfap-footnote-padded", "Aggregate: 2 packets, 30 bytes"),
    ("dfap-three-packets", "Aggregate: 3 packets, 99 bytes"),
    ("hello-answer", "Hello of node fedcba9876543210 to node 0123456789abcdef by link 1: 2 links, 2 stations"),
    ("hello-away", "Hello of node 0123456789abcdef by link 0: 1 link, AWAY"),
    ("hello-direct-vlan", "Hello of node 0123456789abcdef by link 0: 1 link"),
    ("hello-first", "Hello of node 0123456789abcdef by link 0: 1 link, ANSWER"),
    ("hello-from-the-future", "Hello of node 0123456789abcdef by link 0: 0 links, GOODBYE"),
    ("hello-full", "Hello of node 0123456789abcdef to node fedcba9876543210 by link 0: 1 link, FULL, PAST"),
    ("hello-unused-link", "Hello of node 0123456789abcdef by link 0: 1 link"),
    ("liveness", "Liveness 273 of link 2 to link 1: Up, ASKS"),
    ("liveness-poll", "Liveness 273 of link 2 to link 1: Up, ASKS, POLL of 94 bytes"),
    ("station", "Station 02:00:00:00:00:0a takes aggregates by 0xbbbb, data of 9000 bytes, ANSWER"),
    ("train-ack-two-frames", "Train 42 on link 0: 2 frames, fill 7 %, ACK-NOW, ACK link 1 up to 273"),
    ("train-behind", "Train 5 on link 0: 1 frame, fill 2 %"),
    ("train-coded-headers", "Train 45 on link 0: 4 frames, fill 6 %, coded (headers)"),
    ("train-coded-lz4", "Train 45 on link 0: 4 frames, fill 7 %, coded (LZ4)"),
    ("train-coded-mixing", "Train 45 on link 0: 5 frames, fill 12 %, coded (mixing)"),
    ("train-direct", "Marker on link 0: up to train 43"),
    ("train-end-padding", "Train 44 on link 0: 1 frame, fill 2 %"),
    ("train-fence", "Train 47 on link 0: 1 frame, fill 2 %"),
    ("train-gso-frame", "Train 43 on link 0: 1 frame, fill 4 %"),
    ("train-late", "Marker on link 0: up to train 43"),
    ("train-lossless", "Marker on link 0: up to train 46"),
    ("train-marker", "Marker on link 0: up to train 43, ACK link 1 up to 273"),
    ("train-pieces", "Train 4294967295 on link 0: 2 pieces, fill 6 %"),
    ("train-probe", "Probe 45 on link 0"),
    ("train-repairs", "Marker on link 0: up to train 46"),
    ("train-replay-newest", "Train 46 on link 0: 1 frame, fill 2 %, REPLAY"),
];

#[test]
fn each_vector_is_shown_as_what_it_is_and_none_is_refused() {
    with_tshark!();
    let vectors = all();
    let seen = in_a_row(vectors.iter().map(|(_, bytes)| bytes.clone()));
    let names = &[
        "_ws.col.Info",
        "packtrain.drop_reason",
        "dfap.drop_reason",
        "packtrain.ack.bitmap",
        "packtrain.ack.delay",
        "packtrain.newest.train",
        "packtrain.fence.sent",
        "packtrain.behind.last",
        "packtrain.kept_from",
        "packtrain.direct.sent",
        "packtrain.direct.late",
        "packtrain.gso.segment_length",
        "packtrain.piece.offset",
        "packtrain.hello.station",
        "packtrain.hello.software",
        "packtrain.padding",
        "dfap.padding",
        "dfap.type",
        "packtrain.link_record.mark",
        "packtrain.subframe.placeholder",
        "eth.src",
    ];
    for passes in [Passes::One, Passes::Two] {
        let rows = fields(&seen, passes, names);
        let row = |name: &str| {
            &rows[vectors
                .iter()
                .position(|(other, _)| other == name)
                .expect("a vector")]
        };
        let listed: Vec<&str> = INFO.iter().map(|(name, _)| *name).collect();
        let found: Vec<&str> = vectors.iter().map(|(name, _)| &name[..]).collect();
        assert_eq!(found, listed, "vectors have a line above");
        for (name, info) in INFO {
            assert_eq!(row(name).all("_ws.col.Info"), [*info], "{name}");
            let reasons = [
                row(name).all("packtrain.drop_reason"),
                row(name).all("dfap.drop_reason"),
            ]
            .concat();
            // They are no capture of one line's life: a NEXT has no FIRST, for one.
            let fine = [
                "stray_piece",
                "reassembly_hole",
                "stale_incarnation",
                "sequence_jump",
            ];
            assert!(
                reasons.iter().all(|reason| fine.contains(&&reason[..])),
                "{name}: {reasons:?}"
            );
        }
        let train = row("train-ack-two-frames");
        assert_eq!(
            train.numbers("packtrain.ack.bitmap"),
            [0x8000_0000_0000_0005]
        );
        assert_eq!(train.numbers("packtrain.ack.delay"), [250_000]);
        // The hellos before have told pt0's address.
        assert_eq!(train.all("eth.src")[1..], ["02:00:00:00:0a:00"; 2]);
        assert!(train.all("packtrain.subframe.placeholder").is_empty());
        assert!(!row("train-fence").all("packtrain.fence.sent").is_empty());
        assert_eq!(row("train-behind").numbers("packtrain.behind.last"), [47]);
        assert_eq!(row("train-lossless").numbers("packtrain.kept_from"), [41]);
        assert_eq!(row("train-late").numbers("packtrain.direct.late"), [1200]);
        assert!(!row("train-direct").all("packtrain.direct.sent").is_empty());
        assert!(
            !row("train-replay-newest")
                .all("packtrain.newest.train")
                .is_empty()
        );
        let again = row("train-repairs").numbers("packtrain.newest.train");
        assert_eq!(again, [40, 38]);
        assert_eq!(
            row("train-pieces").numbers("packtrain.piece.offset"),
            [8995]
        );
        assert_eq!(
            row("train-pieces").numbers("packtrain.gso.segment_length"),
            [1000]
        );
        assert_eq!(
            row("train-end-padding").bytes("packtrain.padding"),
            [from_hex("00 01 00 01 45 ff")]
        );
        assert_eq!(row("hello-answer").all("packtrain.hello.station").len(), 2);
        assert_eq!(
            row("hello-first").all("packtrain.hello.software"),
            ["packtrain 0.1.0"]
        );
        assert_eq!(
            row("hello-first").all("packtrain.link_record.mark"),
            ["5a:00:00:00:0a:a4"]
        );
        assert_eq!(
            row("dfap-footnote-padded").bytes("dfap.padding"),
            [vec![0; 16]]
        );
        assert_eq!(
            row("dfap-three-packets").numbers("dfap.type"),
            [0x0800, 0x0806, 0x86dd]
        );
    }
}

#[test]
fn addresses_that_no_hello_told_are_those_of_the_links_and_said_to_be() {
    with_tshark!();
    let train = all()
        .into_iter()
        .find(|(name, _)| name == "train-ack-two-frames")
        .unwrap()
        .1;
    let names = &[
        "packtrain.subframe.placeholder",
        "eth.src",
        "eth.dst",
        "udp.port",
    ];
    for passes in [Passes::One, Passes::Two] {
        let row = &fields(&in_a_row([train.clone()]), passes, names)[0];
        assert_eq!(row.all("packtrain.subframe.placeholder").len(), 2);
        assert_eq!(row.all("eth.src"), ["02:00:00:00:0a:01"; 3]);
        assert_eq!(row.all("eth.dst"), ["02:00:00:00:0b:01"; 3]);
        assert_eq!(row.numbers("udp.port"), [5060, 5060, 4000, 53]);
    }
}

#[test]
fn a_capture_that_kept_only_a_part_is_not_called_malformed() {
    with_tshark!();
    let mut seen = in_a_row(Vec::new());
    for (_, bytes) in all() {
        for keep in 14..bytes.len() {
            let at = packtrain_proto::time::Instant::ZERO;
            seen.push(crate::tshark::Seen {
                at,
                bytes: bytes[..keep].to_vec(),
                len: bytes.len(),
            });
        }
    }
    let names = &["packtrain.drop_reason", "dfap.drop_reason"];
    for (frame, row) in seen.iter().zip(fields(&seen, Passes::Two, names)) {
        let reasons = [
            row.all("packtrain.drop_reason"),
            row.all("dfap.drop_reason"),
        ]
        .concat();
        let broken = [
            "truncated",
            "bad_option",
            "bad_subframe",
            "bad_hello",
            "bad_aggregate",
        ];
        let wrong = reasons.iter().find(|reason| broken.contains(&&reason[..]));
        assert!(
            wrong.is_none(),
            "{wrong:?} of {} of {} bytes: {:02x?}",
            frame.bytes.len(),
            frame.len,
            frame.bytes
        );
    }
}
