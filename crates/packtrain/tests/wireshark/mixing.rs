//! Trains that are coded by mixing: restored as the engine restores them, and where they are damaged, refused by both.

use packtrain_proto::coding::coder::{Coder, Finished, Treatment};
use packtrain_proto::coding::mixing::{Segment, Writer};
use packtrain_proto::offload::Offload;
use packtrain_proto::wire::coded::Coding;
use packtrain_proto::wire::subframe::InnerHeader;
use packtrain_sim::checker::inside;
use packtrain_sim::random::Random;

use crate::coded::{CODED, assert_same, block, coded, named, sources, udp};
use crate::flows::{Flow, Kind};
use crate::hostile::restored;
use crate::named::Forged;
use crate::tshark::{Passes, fields, fields_with, in_a_row, with_tshark};

/// Where the subframes of a train without options begin.
const SUBFRAMES_AT: usize = 14 + 16;
const NOT_RESTORED: &str = "Coded by mixing";

/// G.711.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Law {
    Mu,
    A,
}

/// One side of a telephone call: a tone that goes up and down, and noise.
struct Call {
    law: Law,
    sent: u32,
    phase: f64,
}

impl Call {
    fn new(law: Law) -> Call {
        let (sent, phase) = (0, 0.0);
        Call { law, sent, phase }
    }

    /// The code of a place on the law's own scale: the loudest below zero first.
    fn code(&self, rank: u8) -> u8 {
        match (self.law, rank >= 128) {
            (Law::Mu, true) => 0xff - (rank - 128),
            (Law::Mu, false) => rank,
            (Law::A, true) => rank ^ 0x55,
            (Law::A, false) => (127 - rank) ^ 0x55,
        }
    }

    /// IPv4's payload: UDP and RTP, 10 ms of sound.
    fn next(&mut self, random: &mut Random) -> Vec<u8> {
        self.sent += 1;
        let loud = 60.0 * random.unit();
        let mut bytes = vec![0x45, 0xb8, 0, 120, 0, 0, 0x40, 0, 64, 17, 0, 0];
        bytes.extend([10, 9, 0, 1, 10, 9, 0, 2]);
        let sum = packtrain_proto::wire::checksum::checksum(&bytes);
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        bytes.extend([0x0f, 0xa0, 0x13, 0x8c, 0, 100, 0, 0, 0x80]);
        bytes.push(if self.law == Law::Mu { 0 } else { 8 });
        bytes.extend((self.sent as u16).to_be_bytes());
        bytes.extend((self.sent * 80).to_be_bytes());
        bytes.extend([0xca, 0x11, 0, self.law as u8]);
        bytes.extend((0..80).map(|_| {
            self.phase += 0.2;
            let rank = 128.0 + loud * self.phase.sin() + 6.0 * (random.unit() - 0.5);
            self.code(rank as u8)
        }));
        bytes
    }
}

/// What comes from one of several calls, flows, or from nowhere.
struct Talk {
    calls: [Call; 2],
    flows: Vec<Flow>,
}

impl Talk {
    fn new() -> Talk {
        let kinds = [Kind::Udp, Kind::TimedTcp, Kind::UdpOverIpv6, Kind::Arp];
        Talk {
            calls: [Law::Mu, Law::A].map(Call::new),
            flows: kinds.map(|kind| Flow::new(kind, 0)).into(),
        }
    }

    /// EtherType and payload. `sound`: how much of it is.
    fn next(&mut self, sound: f64, random: &mut Random) -> (u16, Vec<u8>) {
        if random.chance(sound) {
            let at = random.below(2) as usize;
            return (0x0800, self.calls[at].next(random));
        }
        let at = random.below(self.flows.len() as u64) as usize;
        let frame = self.flows[at].next(random);
        let ether_type = u16::from_be_bytes([frame[12], frame[13]]);
        (ether_type, frame[14..].to_vec())
    }
}

/// A train with so much room, full of it; sometimes with frames that are not compressed between those that are.
fn train(sequence: u32, room: usize, sound: f64, talk: &mut Talk, random: &mut Random) -> Vec<u8> {
    let mut coder = Coder::default();
    coder.begin(Coding::Mixing, room);
    let mixed = random.chance(0.3);
    loop {
        let (ether_type, payload) = talk.next(sound, random);
        let header = InnerHeader {
            addresses: None,
            ether_type,
            offload: Offload::NONE,
        };
        let treatment = match mixed && random.chance(0.2) {
            true => Treatment::Headers,
            false => Treatment::Payload,
        };
        if !coder.put_frame(&header, &payload, treatment) {
            break;
        }
    }
    let Finished::Coded(head, content) = coder.finish() else {
        panic!("train {sequence} did not become shorter");
    };
    assert_eq!(head.coding, Coding::Mixing);
    Forged {
        flags: CODED,
        subframes: [&head.to_bytes()[..], content].concat(),
        ..Forged::new(sequence)
    }
    .emit(0)
}

/// Of all sorts: of sound, of text, of both; small ones, and one as large as a link takes.
fn trains(random: &mut Random) -> Vec<Vec<u8>> {
    let mut talk = Talk::new();
    let rooms = [1470, 300, 300, 300, 500, 500, 500];
    let sounds = [0.5, 0.0, 1.0, 0.3, 0.0, 1.0, 0.7];
    rooms
        .into_iter()
        .zip(sounds)
        .zip(1..)
        .map(|((room, sound), sequence)| train(sequence, room, sound, &mut talk, random))
        .collect()
}

#[test]
fn trains_by_mixing_restore_to_what_the_engine_restores_them_to() {
    with_tshark!();
    let trains = trains(&mut Random::new(21));
    let packets = sources(&in_a_row(trains.clone()), "packtrain");
    assert_eq!(packets.len(), trains.len());
    let mut frames = 0;
    for (n, (train, packet)) in trains.iter().zip(&packets).enumerate() {
        let subframes = restored(&train[SUBFRAMES_AT..]).expect("the coder's own train");
        assert_same(
            &named(packet, "Restored subframes"),
            &[subframes],
            &format!("train {n}"),
        );
        frames += named(packet, "Restored frame").len();
    }
    assert!(frames > 60, "{frames} frames");
}

#[test]
fn damaged_blocks_of_mixing_are_refused_where_the_engine_refuses_them() {
    with_tshark!();
    let mut random = Random::new(22);
    let good: Vec<Vec<u8>> = trains(&mut random)
        .into_iter()
        .filter(|train| train.len() < 400)
        .collect();
    let mut packets = Vec::new();
    while packets.len() < 150 {
        let mut packet = random.pick(&good).clone();
        // The first bytes are told of a segment; block headers are broken less often.
        let from = if random.chance(0.8) { 9 } else { 5 };
        let to = if random.chance(0.5) {
            14
        } else {
            packet.len() - SUBFRAMES_AT - 1
        };
        let at = SUBFRAMES_AT + random.between(from, to as u64) as usize;
        match random.below(4) {
            0 => packet.truncate(at),
            1 => {
                packet.remove(at);
            }
            _ => packet[at] ^= 1 << random.below(8),
        }
        packets.push(packet);
    }
    let rows = fields(
        &in_a_row(packets.iter().cloned()),
        Passes::One,
        &["packtrain.drop_reason", "packtrain.payload"],
    );
    for (n, (packet, row)) in packets.iter().zip(&rows).enumerate() {
        let is_whole = restored(&packet[SUBFRAMES_AT..]).is_ok();
        let said = row.all("packtrain.drop_reason");
        let is_refused = said.contains(&"coded_damaged".to_owned());
        assert!(is_refused != is_whole, "packet {n}: {:?}", row.expert);
        assert!(is_whole || row.all("packtrain.payload").is_empty());
    }
    // Each of the ways in which it can be.
    for words in [
        "block 1: it ends before it has restored what it says",
        "block 1: a segment of kind ",
        "bytes, where ",
        "the checksum: 0x",
        "block 1: it is longer than what is left",
    ] {
        assert!(rows.iter().any(|row| row.mentions(words)), "{words}");
    }
}

/// A block of segments that are as they are given.
fn mixed(segments: &[&[u8]]) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.begin_train();
    for segment in segments {
        writer.put(Segment::of_bytes(), segment);
    }
    writer.finish_block().to_vec()
}

#[test]
fn what_a_block_of_mixing_says_is_what_it_has_to_be() {
    with_tshark!();
    let frame = udp(b"the same, and the same, and the same again");
    let len = frame.len() as u16;
    let (front, back) = frame.split_at(20);
    let bytes = mixed(&[front, back]);
    let checksum = inside::coded::crc32(&frame);
    let of = |content: &[u8]| coded(1, 4, checksum, content);
    let stored = |len: u16| {
        [
            &(0x8000 | len).to_be_bytes()[..],
            &vec![0; usize::from(len)],
        ]
        .concat()
    };
    let longer = [&bytes[..], &[0]].concat();
    let shorter = &bytes[..bytes.len() / 2];
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (of(&block(len, &bytes)), ""),
        // What is stored is no part of what is learned.
        (
            of(&[
                &[0x80, 20][..],
                front,
                &block(len - 20, &mixed(&[back])),
                &[0; 9],
            ]
            .concat()),
            "",
        ),
        (
            of(&block(len, &longer)),
            "block 1: it goes on when it has restored the 73 bytes that it says",
        ),
        (
            of(&block(len, shorter)),
            "block 1: it ends before it has restored what it says",
        ),
        (
            of(&block(20, &bytes)),
            "block 1: it goes on when it has restored the 20 bytes that it says",
        ),
        (
            of(&block(len - 1, &bytes)),
            "block 1: a segment of 53 bytes, where 52 are left",
        ),
        (
            of(&block(16_385, &bytes)),
            "block 1: the train restores to more than 16,384 bytes",
        ),
        (
            of(&[stored(16_384), stored(1)].concat()),
            "block 2: the train restores to more than 16,384 bytes",
        ),
        (
            of(&block(9, &mixed(&[&[]]))),
            "block 1: a segment of no bytes",
        ),
        // What is told of each counts as well: four bytes.
        (
            of(&block(4097, &mixed(&[&b"x"[..]; 4097]))),
            "block 1: more than 20,480 bytes of the train, what is told of segments counted",
        ),
    ];
    let seen = in_a_row(cases.iter().map(|(bytes, _)| bytes.clone()));
    let names = &["packtrain.drop_reason", "udp.payload"];
    let rows = fields(&seen, Passes::One, names);
    for (n, ((packet, words), row)) in cases.iter().zip(&rows).enumerate() {
        let is_right = words.is_empty();
        assert!(row.mentions(words) || is_right, "{n}: {:?}", row.expert);
        assert_eq!(restored(&packet[SUBFRAMES_AT..]).is_ok(), is_right, "{n}");
        assert_eq!(row.all("packtrain.drop_reason").is_empty(), is_right, "{n}");
        let payloads = row.bytes("udp.payload");
        assert!(payloads == [&frame[31..]] || !is_right, "{n}");
    }
    // Who has no time for it is told that, and nothing is called malformed; nor are blocks lost.
    let names = &[
        "packtrain.drop_reason",
        "packtrain.coded.block.plain_length",
    ];
    let off = &["-o", "packtrain.mixing:FALSE"];
    let rows = fields_with(&seen, Passes::One, off, names);
    assert!(rows[0].says(NOT_RESTORED), "{:?}", rows[0].expert);
    assert!(rows[0].all("packtrain.drop_reason").is_empty());
    assert_eq!(
        rows[0].numbers("packtrain.coded.block.plain_length"),
        [u64::from(len)]
    );
    assert!(
        rows[6].says("coded_damaged: block 1: the train"),
        "{:?}",
        rows[6].expert
    );
}
