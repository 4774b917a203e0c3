//! What a receiver refuses has the name of its counter.

use packtrain_proto::wire::ethernet::ether_type;

use crate::tshark::{Passes, fields, in_a_row, with_tshark};
use crate::world::link_address;

/// A message from one of the two sides.
pub fn message(from: usize, body: &[u8]) -> Vec<u8> {
    let (destination, source) = (link_address(1 - from, 0), link_address(from, 0));
    [
        &destination.0[..],
        &source.0,
        &ether_type::PACKTRAIN.to_be_bytes(),
        body,
    ]
    .concat()
}

pub struct Forged {
    pub flags: u8,
    pub lane: u8,
    /// The sender's, and the one that it comes by.
    pub by: u8,
    pub incarnation: u16,
    pub train: u32,
    pub link: u32,
    pub options: Vec<u8>,
    pub subframes: Vec<u8>,
}

impl Forged {
    pub fn new(sequence: u32) -> Forged {
        Forged {
            flags: 0,
            lane: 0,
            by: 0,
            incarnation: 0x1111,
            train: sequence,
            link: sequence,
            options: Vec::new(),
            subframes: vec![0x01, 0, 2, 0x45, 0],
        }
    }

    pub fn emit(&self, from: usize) -> Vec<u8> {
        let mut body = vec![0x11, self.flags, self.lane, self.by];
        body.extend(self.incarnation.to_be_bytes());
        body.extend((self.options.len() as u16).to_be_bytes());
        body.extend(self.train.to_be_bytes());
        body.extend(self.link.to_be_bytes());
        body.extend(&self.options);
        body.extend(&self.subframes);
        let mut bytes = message(from, &body);
        let by = usize::from(self.by);
        bytes[..6].copy_from_slice(&link_address(1 - from, by).0);
        bytes[6..12].copy_from_slice(&link_address(from, by).0);
        bytes
    }

    pub fn with_subframes(sequence: u32, subframes: &[u8]) -> Vec<u8> {
        let subframes = subframes.to_vec();
        Forged {
            subframes,
            ..Forged::new(sequence)
        }
        .emit(0)
    }

    pub fn with_options(sequence: u32, options: &[u8]) -> Vec<u8> {
        let options = options.to_vec();
        Forged {
            options,
            ..Forged::new(sequence)
        }
        .emit(0)
    }
}

#[test]
fn each_refusal_has_its_name() {
    with_tshark!();
    let hello = |change: &dyn Fn(&mut Vec<u8>)| {
        let vectors = crate::vectors::all();
        let mut bytes = vectors
            .into_iter()
            .find(|(name, _)| name == "hello-answer")
            .unwrap()
            .1
            .split_off(14);
        change(&mut bytes);
        message(0, &bytes)
    };
    let altered = |vector: &str, at: usize, value: &[u8]| {
        let vectors = crate::vectors::all();
        let mut bytes = vectors
            .into_iter()
            .find(|(name, _)| name == vector)
            .unwrap()
            .1
            .split_off(14);
        bytes[at..at + value.len()].copy_from_slice(value);
        message(0, &bytes)
    };
    let station = |at: usize, value: &[u8]| altered("station", at, value);
    let liveness = |at: usize, value: &[u8]| altered("liveness", at, value);
    let cases: Vec<(Vec<u8>, &str, &str)> = vec![
        (message(0, &[0x21, 0]), "unknown_version", "version 2"),
        (message(0, &[0x15, 0]), "unknown_type", "type 5"),
        (
            message(0, &[0x11; 15]),
            "truncated",
            "shorter than a train's header",
        ),
        (
            message(0, &[0x11, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1]),
            "truncated",
            "",
        ),
        (Forged::with_options(1, &[0x01]), "bad_option", ""),
        (
            Forged::with_options(2, &[0x01, 4, 0, 0, 0, 0]),
            "bad_option",
            "",
        ),
        (
            Forged::with_options(3, &[0x03, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            "bad_option",
            "",
        ),
        (
            Forged::with_options(4, &[0x02, 3, 0, 0, 0]),
            "bad_option",
            "",
        ),
        (
            Forged::with_options(5, &[&[0x81, 25][..], &[7; 25]].concat()),
            "unknown_critical_option",
            "",
        ),
        (
            Forged::with_subframes(1, &[0x04, 0, 1, 0x45]),
            "bad_subframe",
            "kind 4",
        ),
        (
            Forged::with_subframes(2, &[0x11, 0, 1, 0x45]),
            "bad_subframe",
            "a reserved flag",
        ),
        (
            Forged::with_subframes(3, &[0x01, 0, 0]),
            "subframe_empty",
            "",
        ),
        (
            Forged::with_subframes(4, &[0x01, 0, 2, 0x45]),
            "truncated",
            "a subframe is longer",
        ),
        (
            Forged::with_subframes(5, &[0x01, 0]),
            "truncated",
            "a subframe's header",
        ),
        (
            Forged::with_subframes(6, &[0x01, 0, 1, 0x00]),
            "bad_subframe",
            "neither IPv4 nor IPv6",
        ),
        (
            Forged::with_subframes(7, &[0x41, 0, 1, 0x88, 0xb5, 0x00]),
            "nested",
            "",
        ),
        (
            Forged::with_subframes(8, &[0x02, 0, 2, 0, 1, 0, 2, 0x45, 0]),
            "bad_subframe",
            "a first piece that is",
        ),
        (
            Forged::with_subframes(9, &[0x83, 0, 1, 0, 1, 0, 2, 0x45]),
            "bad_subframe",
            "a later piece with",
        ),
        (
            Forged::with_subframes(10, &[0x03, 0, 2, 0, 1, 0xff, 0xfe, 0x45, 0]),
            "bad_subframe",
            "a piece beyond",
        ),
        (
            Forged::with_subframes(11, &[0x21, 0, 1, 9, 0, 0, 0, 0, 0, 0, 0, 0x45]),
            "bad_gso",
            "GSO kind 9",
        ),
        (
            Forged::with_subframes(12, &[0x21, 0, 1, 1, 16, 0, 54, 0, 100, 0, 34, 0x45]),
            "bad_gso",
            "the headers are",
        ),
        // A frame in two pieces that overlap, and a piece of nothing.
        (
            Forged::with_subframes(13, &[0x02, 0, 2, 0, 9, 0, 8, 0x45, 0]),
            "",
            "",
        ),
        (
            Forged::with_subframes(14, &[0x03, 0, 2, 0, 9, 0, 1, 1, 2]),
            "reassembly_bad_piece",
            "",
        ),
        (
            Forged::with_subframes(15, &[0x03, 0, 2, 0, 77, 0, 1, 1, 2]),
            "stray_piece",
            "its first piece",
        ),
        (
            Forged {
                lane: 7,
                ..Forged::new(16)
            }
            .emit(0),
            "bad_lane",
            "lane 7",
        ),
        (
            hello(&|bytes| bytes.truncate(39)),
            "truncated",
            "shorter than a hello's header",
        ),
        (
            hello(&|bytes| bytes.truncate(95)),
            "truncated",
            "shorter than its links",
        ),
        (
            hello(&|bytes| bytes[4..12].fill(0)),
            "bad_hello",
            "node id 0",
        ),
        (hello(&|bytes| bytes[36] = 0), "bad_hello", "no lanes"),
        (
            hello(&|bytes| bytes[28] = 0x01),
            "bad_hello",
            "pt0's address",
        ),
        (
            hello(&|bytes| bytes[68] = bytes[40]),
            "bad_hello",
            "link 1 twice",
        ),
        (hello(&|bytes| bytes[97] = 200), "bad_option", ""),
        (
            hello(&|bytes| bytes[96] = 0x99),
            "unknown_critical_option",
            "",
        ),
        (liveness(1, &[0x41]), "bad_liveness", "no state"),
        (liveness(2, &[51]), "bad_liveness", "may be missed"),
        (liveness(20, &[0; 4]), "bad_liveness", "no interval"),
        (liveness(24, &[4, 0, 0, 0]), "bad_liveness", "no interval"),
        (
            message(0, &[0x14; 27]),
            "truncated",
            "shorter than a liveness message",
        ),
        (station(2, &[8, 0]), "bad_hello", "no type of aggregates"),
        (station(8, &[1]), "bad_hello", "nobody's own address"),
        (station(14, &[0, 255]), "bad_hello", "an MTU below 256"),
        (
            message(0, &[0x13; 15]),
            "truncated",
            "shorter than a station message",
        ),
    ];
    let seen = in_a_row(cases.iter().map(|(bytes, ..)| bytes.clone()));
    for passes in [Passes::One, Passes::Two] {
        let rows = fields(&seen, passes, &["packtrain.drop_reason"]);
        for (n, ((_, reason, words), row)) in cases.iter().zip(&rows).enumerate() {
            let reasons = row.all("packtrain.drop_reason");
            let is_first_piece = reason.is_empty();
            if is_first_piece {
                continue;
            }
            // One is missing before some; that is told beside it.
            assert!(
                reasons.iter().any(|other| other == reason),
                "case {n}, {reason}: {reasons:?}"
            );
            assert!(
                row.says(reason) && row.mentions(words),
                "case {n}, {reason}: {:?}",
                row.expert
            );
        }
    }
}
