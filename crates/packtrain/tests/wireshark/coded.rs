//! Coded trains: what is shown of them is what they were made from, and of what does not restore nothing is.

use std::collections::BTreeMap;
use std::num::NonZero;

use packtrain_proto::offload::Offload;
use packtrain_proto::time::Duration;
use packtrain_proto::wire::hello::capability;
use packtrain_sim::checker::inside;
use packtrain_sim::random::Random;

use crate::books;
use crate::flows::{Flow, KINDS};
use crate::hostile::payloads;
use crate::lives::hello;
use crate::named::Forged;
use crate::tshark::{Passes, Seen, fields, from_hex, in_a_row, run, with_tshark};
use crate::vectors;
use crate::world::World;

pub const CODED: u8 = 0x08;
/// Of the wires: slow enough that payload is worth being compressed.
const RATE_BPS: u64 = 10_000_000;

/// What tshark made of the packets that a filter takes: by its name, each piece of bytes that it shows.
pub fn sources(seen: &[Seen], filter: &str) -> Vec<Vec<(String, Vec<u8>)>> {
    let mut packets: Vec<Vec<(String, Vec<u8>)>> = Vec::new();
    for line in run(seen, Passes::Two, &["-x", "-Y", filter]).lines() {
        if let Some(name) = line.strip_suffix(" bytes):") {
            let name = name.rsplit_once(" (").expect("a length").0.to_owned();
            if name == "Frame" {
                packets.push(Vec::new());
            }
            let packet = packets.last_mut().expect("a frame is first");
            packet.push((name, Vec::new()));
        } else if let Some(digits) = line.get(6..54) {
            let packet = packets.last_mut().expect("a frame is first");
            let source = packet.last_mut().expect("a name is first");
            source.1.extend(from_hex(digits));
        }
    }
    packets
}

pub fn named<'a>(packet: &'a [(String, Vec<u8>)], beginning: &str) -> Vec<&'a [u8]> {
    let is_named = |source: &&(String, Vec<u8>)| source.0.starts_with(beginning);
    packet
        .iter()
        .filter(is_named)
        .map(|source| &source.1[..])
        .collect()
}

/// Where two lists part, and not all of them.
pub fn assert_same(got: &[&[u8]], expected: &[Vec<u8>], what: &str) {
    let parted = got
        .iter()
        .zip(expected)
        .position(|(got, expected)| got != expected);
    if let Some(n) = parted {
        let (got, expected) = (got[n], &expected[n]);
        let at = got.iter().zip(expected).position(|(a, b)| a != b);
        panic!(
            "{what}: of frame {n}, byte {at:?} is another; {} bytes and {}",
            got.len(),
            expected.len()
        );
    }
    assert_eq!(got.len(), expected.len(), "{what}: frames");
}

#[test]
fn the_vectors_are_restored_to_the_frames_that_they_were_made_from() {
    with_tshark!();
    let trains: Vec<Vec<u8>> = vectors::all()
        .into_iter()
        .filter(|(name, _)| name.starts_with("train-coded"))
        .map(|(_, bytes)| bytes)
        .collect();
    assert_eq!(trains.len(), 3);
    let seen = in_a_row(trains.clone());
    let packets = sources(&seen, "packtrain");
    assert_eq!(packets.len(), 3);
    for (train, packet) in trains.iter().zip(&packets) {
        let subframes = books::subframes(&train[14..], 16).expect("a right checksum");
        assert_eq!(named(packet, "Restored subframes"), [&subframes[..]]);
        let header = [&train[..12], &[0x08, 0x00]].concat();
        let frames: Vec<Vec<u8>> = payloads(&subframes)
            .0
            .iter()
            .map(|payload| [&header[..], payload].concat())
            .collect();
        assert_same(&named(packet, "Restored frame"), &frames, "a vector");
    }
    let names = &[
        "packtrain.coded.coding",
        "packtrain.coded.checksum",
        "packtrain.coded.block.length",
        "packtrain.coded.block.plain_length",
        "packtrain.coded.restored_length",
        "packtrain.coded.deltas",
        "packtrain.delta.reference",
        "packtrain.delta.slot",
        "packtrain.delta.mask",
        "packtrain.delta.field",
        "packtrain.used",
        "udp.srcport",
        "udp.length",
    ];
    let rows = fields(&seen, Passes::Two, names);
    let numbers = |n: usize, name: &str| rows[n].numbers(name);
    assert_eq!(numbers(0, "packtrain.coded.coding"), [1]);
    assert_eq!(numbers(1, "packtrain.coded.coding"), [2]);
    assert_eq!(numbers(0, "packtrain.coded.checksum"), [0x248e_c597]);
    assert!(numbers(0, "packtrain.coded.block.length").is_empty());
    assert_eq!(numbers(1, "packtrain.coded.block.length"), [87]);
    assert_eq!(numbers(1, "packtrain.coded.block.plain_length"), [216]);
    assert_eq!(numbers(0, "packtrain.coded.restored_length"), [188]);
    assert_eq!(numbers(1, "packtrain.coded.restored_length"), [332]);
    assert_eq!(numbers(0, "packtrain.used"), [93]);
    assert_eq!(numbers(1, "packtrain.used"), [112]);
    assert_eq!(numbers(2, "packtrain.coded.coding"), [4]);
    assert_eq!(numbers(2, "packtrain.coded.block.plain_length"), [245]);
    assert_eq!(numbers(2, "packtrain.coded.restored_length"), [367]);
    assert_eq!(numbers(2, "packtrain.coded.deltas"), [4]);
    assert_eq!(numbers(2, "packtrain.used"), [184]);
    for row in &rows[..2] {
        assert_eq!(row.numbers("packtrain.coded.deltas"), [3]);
        assert_eq!(row.numbers("packtrain.delta.reference"), [1, 1, 3]);
        assert_eq!(row.numbers("packtrain.delta.slot"), [0, 0, 0]);
        assert_eq!(row.numbers("packtrain.delta.mask"), [0x2e]);
        assert_eq!(
            row.all("packtrain.delta.field")[1..],
            [
                "RTP sequence: 1 more than expected",
                "UDP source port: 2 more than expected",
                "RTP source: 0xca110002"
            ]
        );
        assert_eq!(row.numbers("udp.srcport"), [4000, 4002, 4000, 4000]);
    }
    assert_eq!(numbers(0, "udp.length"), [24; 4]);
    assert_eq!(numbers(1, "udp.length"), [60; 4]);
}

/// Two engines, and what their hosts said to each other: all that headers can be.
pub fn conversation(random: &mut Random, rounds: usize) -> (World, Vec<Vec<u8>>) {
    let mut world = World::over(&[Duration::from_micros(200)], Some(RATE_BPS));
    let mut flows: Vec<Flow> = (0..2)
        .flat_map(|from| KINDS.map(|kind| Flow::new(kind, from)))
        .collect();
    let mut sent = Vec::new();
    for _ in 0..rounds {
        let speaking = [0; 3].map(|_| random.below(flows.len() as u64) as usize);
        for _ in 0..random.between(2, 40) {
            let at = *random.pick(&speaking);
            let frame = flows[at].next(random);
            world.send(flows[at].from, &frame, Offload::NONE);
            sent.push(frame);
        }
        world.run(Duration::from_millis(3));
    }
    world.run(Duration::from_millis(300));
    (world, sent)
}

#[test]
fn what_hosts_said_to_each_other_comes_out_of_coded_trains_as_it_was() {
    with_tshark!();
    let (world, sent) = conversation(&mut Random::new(11), 40);
    let packets = sources(&world.seen, "packtrain.coded == 1");
    let trains: Vec<&Seen> = world
        .seen
        .iter()
        .filter(|seen| inside::is_coded(&seen.bytes))
        .collect();
    assert_eq!(packets.len(), trains.len());
    let mut left: BTreeMap<&[u8], usize> = BTreeMap::new();
    for frame in &sent {
        *left.entry(frame).or_default() += 1;
    }
    let (mut deltas, mut blocks) = (0, 0);
    for (n, (train, packet)) in trains.iter().zip(&packets).enumerate() {
        let restored = inside::restored(&train.bytes).expect("an engine's own train");
        (deltas, blocks) = (deltas + restored.deltas, blocks + restored.lz4_blocks);
        let subframes = named(packet, "Restored subframes");
        assert_same(&subframes, &[restored.subframes], &format!("train {n}"));
        let frames = named(packet, "Restored frame");
        assert_eq!(
            frames.len(),
            inside::whole_frames(&train.bytes).len(),
            "train {n}"
        );
        for frame in frames {
            let count = left.get_mut(frame).expect("a frame that nobody sent");
            *count = count
                .checked_sub(1)
                .expect("a frame that was sent less often");
        }
    }
    let alone: usize = left.values().sum();
    println!(
        "{} frames, {alone} of them in trains as they are; {deltas} DELTA, {blocks} blocks",
        sent.len()
    );
    assert!(
        deltas > 200 && blocks > 20,
        "{deltas} DELTA, {blocks} blocks"
    );
    assert!(
        alone < sent.len() / 4,
        "{alone} of {} were not in coded trains",
        sent.len()
    );
}

#[test]
fn inner_frames_of_coded_trains_are_dissected_as_any_ethernet() {
    with_tshark!();
    let (world, sent) = conversation(&mut Random::new(12), 25);
    let names = &[
        "packtrain.drop_reason",
        "packtrain.frames",
        "packtrain.coded.restored_length",
        "eth.src",
        "ip.id",
        "tcp.seq_raw",
        "tcp.options.timestamp.tsval",
        "ipv6.src",
        "vlan.id",
        "udp.srcport",
        "tcp.checksum.status",
        "udp.checksum.status",
        "ip.checksum.status",
        "packtrain.delta.field",
    ];
    let rows = fields_with_checksums(&world.seen, names);
    let mut frames = 0;
    for (seen, row) in world.seen.iter().zip(&rows) {
        assert!(
            row.all("packtrain.drop_reason").is_empty(),
            "{:?}",
            row.expert
        );
        if !inside::is_coded(&seen.bytes) {
            continue;
        }
        let whole = inside::whole_frames(&seen.bytes).len();
        frames += whole;
        assert_eq!(row.numbers("packtrain.frames"), [whole as u64]);
        assert_eq!(row.all("eth.src").len(), 1 + whole);
        // 0: wrong. 1: right. 3: there is none.
        for name in [
            "tcp.checksum.status",
            "udp.checksum.status",
            "ip.checksum.status",
        ] {
            assert!(
                row.all(name).iter().all(|status| status != "0"),
                "{name}: {:?}",
                row.all(name)
            );
        }
    }
    assert!(frames > sent.len() / 2, "{frames} of {}", sent.len());
    for name in [
        "ip.id",
        "tcp.options.timestamp.tsval",
        "ipv6.src",
        "vlan.id",
        "udp.srcport",
    ] {
        let count: usize = rows.iter().map(|row| row.all(name).len()).sum();
        assert!(count > 20, "{name}: {count}");
    }
    for protocol in ["IPv4", "IPv6", "UDP", "TCP", "RTP"] {
        let told = rows.iter().flat_map(|row| row.all("packtrain.delta.field"));
        let count = told.filter(|text| text.starts_with(protocol)).count();
        assert!(count > 3, "{protocol}: {count} fields that were told");
    }
}

/// With the checksums of all protocols looked at.
fn fields_with_checksums(seen: &[Seen], names: &[&str]) -> Vec<crate::tshark::Row> {
    let checks = [
        "ip.check_checksum",
        "tcp.check_checksum",
        "udp.check_checksum",
    ];
    let options: Vec<String> = checks.iter().map(|name| format!("{name}:TRUE")).collect();
    let arguments: Vec<&str> = options.iter().flat_map(|option| ["-o", option]).collect();
    crate::tshark::fields_with(seen, Passes::One, &arguments, names)
}

pub fn coded(sequence: u32, coding: u8, checksum: u32, content: &[u8]) -> Vec<u8> {
    let mut subframes = vec![coding];
    subframes.extend(checksum.to_be_bytes());
    subframes.extend(content);
    Forged {
        flags: CODED,
        subframes,
        ..Forged::new(sequence)
    }
    .emit(0)
}

/// A block of LZ4 that says to restore to so many bytes.
pub fn block(plain_len: u16, bytes: &[u8]) -> Vec<u8> {
    [
        &(bytes.len() as u16).to_be_bytes()[..],
        &plain_len.to_be_bytes(),
        bytes,
    ]
    .concat()
}

/// One byte, a match of it that goes on for so many times 255 bytes, and one byte more.
fn bomb(times: u16, plain_len: u16) -> Vec<u8> {
    let mut bytes = vec![0x1f, 0x01, 1, 0];
    bytes.extend(vec![255; times.into()]);
    bytes.extend([0, 0x10, 7]);
    block(plain_len, &bytes)
}

fn bomb_len(times: u16) -> u16 {
    1 + 19 + 255 * times + 1
}

/// IPv4 and UDP, of 28 bytes and as many behind as are given.
pub fn udp(behind: &[u8]) -> Vec<u8> {
    let len = 28 + behind.len() as u8;
    let mut frame = vec![1, 0, len, 0x45, 0, 0, len, 0, 0, 0x40, 0, 64, 17, 0, 0];
    frame.extend([10, 0, 0, 1, 10, 0, 0, 2, 0, 7, 0, 9, 0, len - 20, 0, 0]);
    frame.extend(behind);
    frame
}

#[test]
fn what_does_not_restore_is_refused_for_what_it_is_and_nothing_of_it_is_shown() {
    with_tshark!();
    let vector = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let found = vectors::all().into_iter().find(|(other, _)| other == name);
        let mut bytes = found.expect("a vector").1;
        change(&mut bytes);
        bytes
    };
    let lz4 = |change: &dyn Fn(&mut Vec<u8>)| vector("train-coded-lz4", change);
    let with = |content: &[&[u8]]| coded(1, 1, 0, &content.concat());
    let two_bombs = bomb(200, bomb_len(200)).repeat(2);
    let cases: Vec<(Vec<u8>, &str, &str)> = vec![
        (
            vector("train-coded-headers", &|bytes| bytes[31] ^= 0x10),
            "coded_damaged",
            "the checksum: 0x348ec597, and what the train restores to has 0x248ec597",
        ),
        (
            lz4(&|bytes| bytes[45] ^= 1),
            "coded_damaged",
            "the checksum: 0xcab7f24a, and what",
        ),
        (
            lz4(&|bytes| bytes.truncate(120)),
            "coded_damaged",
            "block 1: it is longer than what is left",
        ),
        (
            lz4(&|bytes| bytes.truncate(38)),
            "coded_damaged",
            "block 1: its header is longer",
        ),
        (
            lz4(&|bytes| bytes[38] = 215),
            "coded_damaged",
            "block 1: it restores to more than it says",
        ),
        (
            lz4(&|bytes| bytes[38] = 217),
            "coded_damaged",
            "block 1: it restores to less than the 217 bytes that it says",
        ),
        (
            // The first match's offset.
            lz4(&|bytes| bytes[86] = 0),
            "coded_damaged",
            "block 1: a match 0 bytes back, where 45 are there",
        ),
        (
            lz4(&|bytes| bytes[86] = 200),
            "coded_damaged",
            "block 1: a match 200 bytes back, where 45 are there",
        ),
        (
            coded(1, 2, 0, &block(9, &[0xf0, 255, 255])),
            "coded_damaged",
            "block 1: a sequence is longer than what is left",
        ),
        (coded(1, 9, 0, &[1]), "coded_unknown", "coding 9"),
        (coded(1, 0, 0, &[1]), "coded_unknown", "coding 0"),
        (
            Forged {
                flags: CODED,
                subframes: vec![1, 2, 3, 4],
                ..Forged::new(1)
            }
            .emit(0),
            "coded_damaged",
            "it is shorter than coding and checksum",
        ),
        (
            Forged {
                flags: CODED,
                subframes: Vec::new(),
                ..Forged::new(1)
            }
            .emit(0),
            "coded_damaged",
            "it is shorter than coding and checksum",
        ),
        // A few bytes that would be many.
        (
            coded(1, 2, 0, &bomb(5000, 65_535)),
            "coded_damaged",
            "block 1: it restores to more than it says",
        ),
        (
            coded(1, 2, 0, &two_bombs),
            "coded_damaged",
            "block 2: the train restores to more than 65,535 bytes",
        ),
        (
            with(&[
                &[0x41, 0xff, 0xf0, 0x12, 0x34],
                &[7; 0xfff0],
                &[0x04],
                &[7; 0xfff0],
            ]),
            "coded_damaged",
            "subframe 2: the train restores to more than 65,535 bytes",
        ),
        // Deltas that cannot be.
        (
            with(&[&[0x04, 1]]),
            "coded_damaged",
            "subframe 1: no frame is before it",
        ),
        (
            with(&[&udp(&[1]), &[0x84, 5, 1]]),
            "coded_damaged",
            "subframe 2: no frame is in slot 5",
        ),
        (
            with(&[&udp(&[1]), &[0x24, 0x80, 0x20, 1]]),
            "coded_damaged",
            "subframe 2: a mask of fields that its headers do not have",
        ),
        (
            with(&[&udp(&[1]), &[0x44, 0xff, 0xff, 0xff, 0xff, 0x10, 1]]),
            "coded_damaged",
            "subframe 2: a number of more than 32 bits",
        ),
        (
            with(&[&udp(&[1]), &[0x44, 27]]),
            "coded_damaged",
            "subframe 2: a payload of 27 bytes, with headers of 28",
        ),
        (
            with(&[&udp(&[1]), &[0x14, 1]]),
            "coded_damaged",
            "subframe 2: RTP, where its reference has no room for it",
        ),
        (
            with(&[&udp(&[1, 2]), &[0x04, 1]]),
            "coded_damaged",
            "subframe 2: it is longer than what is left",
        ),
        (
            // Flags and fragment offset, the eleventh field, make it a fragment.
            with(&[&udp(&[1]), &[0x24, 0x80, 0x08, 0x20, 0, 1]]),
            "coded_damaged",
            "subframe 2: it has other headers than its reference",
        ),
        (
            with(&[&[0x41, 0, 1, 0x88, 0xb5, 0]]),
            "coded_damaged",
            "subframe 1: nested",
        ),
        (
            with(&[&udp(&[1]), &[0x05, 0, 1, 1]]),
            "coded_damaged",
            "subframe 2: bad_subframe (kind 5 is not known)",
        ),
        (
            with(&[&udp(&[1]), &[0x01, 0, 9, 0x45]]),
            "coded_damaged",
            "subframe 2: truncated (a subframe is longer",
        ),
    ];
    let seen = in_a_row(cases.iter().map(|(bytes, ..)| bytes.clone()));
    let names = &[
        "packtrain.drop_reason",
        "packtrain.frames",
        "packtrain.payload",
        "eth.src",
        "packtrain.coded.restored_length",
        "packtrain.probe",
    ];
    let rows = fields(&seen, Passes::Two, names);
    for (n, ((_, reason, words), row)) in cases.iter().zip(&rows).enumerate() {
        assert!(
            row.all("packtrain.drop_reason")
                .contains(&(*reason).to_owned())
                && row.mentions(words),
            "case {n}, {words}: {:?}",
            row.expert
        );
        assert_eq!(row.all("eth.src").len(), 1, "case {n}: the outer one alone");
        for name in &names[1..3] {
            assert!(row.all(name).is_empty(), "case {n}: {name}");
        }
        assert!(row.all("packtrain.probe").is_empty(), "case {n}");
    }
}

#[test]
fn blocks_and_subframes_may_end_in_padding_and_blocks_may_stand_as_they_were() {
    with_tshark!();
    let subframes = udp(&[1, 2, 3]);
    let checksum = inside::coded::crc32(&subframes);
    let stored = |bytes: &[u8]| [&[0x80, bytes.len() as u8][..], bytes].concat();
    let (front, back) = subframes.split_at(9);
    // LZ4 of literals alone.
    let literals = [&[0xf0, back.len() as u8 - 15][..], back].concat();
    let blocks = [stored(front), block(back.len() as u16, &literals)].concat();
    let endings = [&[][..], &[0], &[0, 0], &[0, 0, 7, 9]];
    let mut seen = in_a_row([]);
    let mut used = Vec::new();
    for (content, coding) in [
        (&subframes, 1),
        (&blocks, 2),
        (&stored(&subframes), 2),
        (&stored(&subframes), 3),
    ] {
        for ending in endings {
            let train = coded(
                used.len() as u32 + 1,
                coding,
                checksum,
                &[content, ending].concat(),
            );
            seen.extend(in_a_row([train]));
            used.push((16 + 5 + content.len() as u64, ending.to_vec()));
        }
    }
    // And nothing at all, which has a checksum too.
    seen.extend(in_a_row([coded(40, 1, 0, &[]), coded(41, 2, 0, &[0, 0])]));
    let names = &[
        "packtrain.drop_reason",
        "packtrain.used",
        "packtrain.padding",
        "packtrain.frames",
        "udp.payload",
    ];
    let rows = fields(&seen, Passes::Two, names);
    for (n, ((used, padding), row)) in used.iter().zip(&rows).enumerate() {
        assert!(
            row.all("packtrain.drop_reason").is_empty(),
            "{n}: {:?}",
            row.expert
        );
        assert_eq!(row.numbers("packtrain.used"), [*used], "{n}");
        assert_eq!(row.bytes("packtrain.padding").concat(), *padding, "{n}");
        assert_eq!(row.bytes("udp.payload"), [[1, 2, 3]], "{n}");
    }
    for row in &rows[used.len()..] {
        assert_eq!(row.numbers("packtrain.frames"), [0]);
        assert!(!row.mentions("coded_damaged"), "{:?}", row.expert);
    }
}

#[test]
fn a_train_that_needs_a_dictionary_is_said_to_need_it_and_is_not_malformed() {
    with_tshark!();
    let content = block(40, &[1, 2, 3, 4, 5]);
    let seen = in_a_row([
        coded(1, 3, 0, &content),
        hello(0, |hello| {
            hello.capabilities = capability::CODED_TRAINS;
            hello.dictionary = Some(0x5eed_1234);
            hello.mixing_ns = NonZero::new(731);
        }),
        coded(2, 3, 0, &content),
        coded(3, 3, 0, &content[..7]),
    ]);
    let names = &[
        "packtrain.drop_reason",
        "packtrain.coded.block.plain_length",
        "packtrain.hello.dictionary",
        "packtrain.hello.mixing_ns",
        "packtrain.hello.coded_trains",
        "packtrain.probe",
        "_ws.col.Info",
    ];
    let rows = fields(&seen, Passes::One, names);
    assert!(
        rows[0].says("Compressed with a dictionary, and needs it"),
        "{:?}",
        rows[0]
    );
    assert!(
        rows[2].says("Compressed with dictionary 0x5eed1234, and needs it"),
        "{:?}",
        rows[2]
    );
    for n in [0, 2] {
        assert!(
            rows[n].all("packtrain.drop_reason").is_empty(),
            "{:?}",
            rows[n]
        );
        assert_eq!(rows[n].numbers("packtrain.coded.block.plain_length"), [40]);
        assert!(rows[n].all("packtrain.probe").is_empty());
        let info = format!("Train {} on link 0: coded (Zstandard)", n / 2 + 1);
        assert_eq!(rows[n].all("_ws.col.Info"), [info]);
    }
    assert_eq!(rows[1].numbers("packtrain.hello.dictionary"), [0x5eed_1234]);
    assert_eq!(rows[1].numbers("packtrain.hello.mixing_ns"), [731]);
    assert_eq!(rows[1].all("packtrain.hello.coded_trains"), ["1"]);
    assert!(
        rows[3].says("coded_damaged: block 1: it is longer"),
        "{:?}",
        rows[3]
    );
}
