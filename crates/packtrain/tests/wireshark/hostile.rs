//! Whatever bytes come: no Lua error, and the reason that the engine's parsers have.

use packtrain_proto::coding::restore::Restorer;
use packtrain_proto::stats::DropReason;
use packtrain_proto::time::Duration;
use packtrain_proto::wire::coded::CodedError;
use packtrain_proto::wire::ethernet::HEADER_LEN;
use packtrain_proto::wire::hello::Hello;
use packtrain_proto::wire::liveness::Liveness;
use packtrain_proto::wire::station::{StationError, StationMessage};
use packtrain_proto::wire::subframe::Subframe;
use packtrain_proto::wire::train::{self, TYPE_HELLO, TYPE_LIVENESS, TYPE_TRAIN, Train};
use packtrain_sim::checker::inside;
use packtrain_sim::random::Random;

use crate::coded::conversation;
use crate::named::{Forged, message};
use crate::tshark::{Passes, Row, fields, in_a_row, run, with_tshark};
use crate::world::{World, datagram, segment};

const PACKETS: usize = 3000;

/// Messages of all kinds that are right.
fn good(random: &mut Random) -> Vec<Vec<u8>> {
    let mut world = World::new(&[Duration::from_micros(200), Duration::from_micros(900)]);
    for round in 0..20 {
        for n in 0..4 {
            world.send(
                n % 2,
                &datagram(n % 2, [7, n as u16], &vec![round; 40 + 20 * n]),
                Default::default(),
            );
        }
        let (frame, offload) = segment(0, u32::from(round) * 9000, &[round; 9000], Some(1000));
        world.send(0, &frame, offload);
        world.run(random.duration(Duration::from_micros(50), Duration::from_millis(2)));
    }
    let mut list: Vec<Vec<u8>> = world.seen.into_iter().map(|seen| seen.bytes).collect();
    list.extend(coded_trains(random));
    for _ in 0..list.len() / 20 {
        list.extend(crate::vectors::all().into_iter().map(|(_, bytes)| bytes));
    }
    list
}

/// Engines' own.
fn coded_trains(random: &mut Random) -> Vec<Vec<u8>> {
    let (world, _) = conversation(random, 15);
    let trains = world.seen.into_iter().map(|seen| seen.bytes);
    trains.filter(|bytes| inside::is_coded(bytes)).collect()
}

fn mutated(message: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = message.to_vec();
    for _ in 0..random.between(1, 4) {
        let len = bytes.len() as u64;
        // The front is where headers are.
        let near = (len - 14).min(if random.chance(0.7) { 60 } else { len });
        let at = 14 + random.below(near.max(1)) as usize;
        match random.below(6) {
            0 => bytes.truncate(at.max(15)),
            1 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            2 if at < bytes.len() => {
                bytes[at] = *random.pick(&[0, 1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 0x80, 0xff])
            }
            3 if at < bytes.len() => {
                bytes.remove(at);
            }
            4 => bytes.insert(at.min(bytes.len()), random.next() as u8),
            _ => bytes.extend((0..random.below(40)).map(|_| random.next() as u8)),
        }
        if bytes.len() < 16 {
            bytes.resize(16, 0x11);
        }
    }
    bytes
}

/// Why the engine's parsers refuse a message, or the subframe that they stop at.
fn refusal(frame: &[u8]) -> Option<&'static str> {
    let message = &frame[HEADER_LEN..];
    match train::message_type(message) {
        Err(error) => return Some(DropReason::from(error).as_str()),
        Ok(TYPE_HELLO) => {
            return Hello::parse(message)
                .err()
                .map(|error| error.drop_reason().as_str());
        }
        Ok(TYPE_TRAIN) => {}
        Ok(TYPE_LIVENESS) => {
            let error = Liveness::parse(message).err()?;
            return Some(DropReason::from(error).as_str());
        }
        Ok(_) => {
            return match StationMessage::parse(message) {
                Err(StationError::Truncated) => Some("truncated"),
                Err(_) => Some("bad_hello"),
                Ok(message) => (message.mtu < 256).then_some("bad_hello"),
            };
        }
    }
    let train = match Train::parse(message) {
        Err(error) => return Some(DropReason::from(error).as_str()),
        Ok(train) => train,
    };
    if train.header.marker {
        return None;
    }
    let subframes = &message[train.subframes_at..];
    let subframes = match train::is_coded(message) {
        false => subframes,
        true => match restored(subframes) {
            Ok(subframes) => &subframes.clone(),
            Err(CodedError::UnknownCoding) => return Some("coded_unknown"),
            Err(CodedError::NoDictionary) => return None,
            Err(_) => return Some("coded_damaged"),
        },
    };
    payloads(subframes).1
}

/// By the engine's own reader.
pub fn restored(coded: &[u8]) -> Result<Vec<u8>, CodedError> {
    let mut plain = vec![0; usize::from(u16::MAX)];
    let len = Restorer::default().restore(coded, &mut plain)?;
    plain.truncate(len);
    Ok(plain)
}

/// Of all subframes, and why the engine stops at the one that is behind them.
pub fn payloads(mut rest: &[u8]) -> (Vec<Vec<u8>>, Option<&'static str>) {
    let mut list = Vec::new();
    loop {
        let (subframe, len) = match Subframe::parse(rest) {
            Ok(Some(found)) => found,
            Ok(None) => return (list, None),
            Err(error) => return (list, Some(DropReason::from(error).as_str())),
        };
        let (Subframe::Frame { payload, .. }
        | Subframe::First { payload, .. }
        | Subframe::Next { payload, .. }) = subframe;
        list.push(payload.to_vec());
        rest = &rest[len..];
    }
}

/// What follows from other messages, not from this one's bytes; and what only a receiver's own state tells.
const OF_STATE: [&str; 7] = [
    "stale_incarnation",
    "unknown_peer",
    "sequence_jump",
    "bad_lane",
    "reassembly_hole",
    "stray_piece",
    "reassembly_bad_piece",
];

/// What the dissector says first of a message's own bytes.
fn said<'a>(row: &'a Row, expected: Option<&str>) -> Option<&'a str> {
    let reasons = row.all("packtrain.drop_reason").iter().map(String::as_str);
    // Of metadata that a subframe's own parser takes, the frame's headers tell more.
    let tells_more = |reason: &str| reason == "bad_gso" && expected != Some("bad_gso");
    let mut of_bytes = reasons.filter(|reason| !OF_STATE.contains(reason) && !tells_more(reason));
    of_bytes.next()
}

#[test]
fn mutated_messages_make_no_lua_error_and_are_refused_as_the_engine_refuses_them() {
    with_tshark!();
    let mut random = Random::new(5);
    let good = good(&mut random);
    let packets: Vec<Vec<u8>> = (0..PACKETS)
        .map(|_| {
            let message: Vec<u8> = random.pick(&good).clone();
            match random.chance(0.1) {
                true => message,
                false => mutated(&message, &mut random),
            }
        })
        .collect();
    let seen = in_a_row(packets.iter().cloned());
    let mut refused = 0;
    for passes in [Passes::One, Passes::Two] {
        let rows = fields(
            &seen,
            passes,
            &["packtrain.drop_reason", "packtrain.gso.kind"],
        );
        for (n, (packet, row)) in packets.iter().zip(&rows).enumerate() {
            if packet[12..14] != [0x88, 0xb5] {
                continue;
            }
            let expected = refusal(packet);
            refused += usize::from(expected.is_some());
            let said = said(row, expected);
            // Behind what is compressed with a dictionary that the engine lacks, it does not look for blocks that cannot be.
            let is_farther = needs_a_dictionary(packet) && said == Some("coded_damaged");
            assert!(
                said == expected || is_farther,
                "packet {n}, {passes:?}: {said:?}, not {expected:?}: {:?} {:02x?}",
                row.expert,
                &packet[..packet.len().min(200)]
            );
        }
    }
    assert!(refused > PACKETS / 4, "{refused} were refused");
    // Nor where everything is shown.
    let out = run(&seen[..400], Passes::Two, &["-T", "json"]);
    assert!(out.contains("packtrain.subframe"));
}

fn needs_a_dictionary(packet: &[u8]) -> bool {
    let content = inside::content_at(packet).filter(|_| inside::is_coded(packet));
    content.is_some_and(|at| restored(&packet[at..]) == Err(CodedError::NoDictionary))
}

#[test]
fn broken_coded_trains_with_a_right_checksum_are_restored_to_what_the_engine_restores_them_to() {
    with_tshark!();
    let mut random = Random::new(6);
    let trains = coded_trains(&mut random);
    let mut packets = Vec::new();
    while packets.len() < PACKETS / 5 {
        let mut packet = random.pick(&trains).clone();
        let at = inside::content_at(&packet).expect("a train");
        for _ in 0..random.between(1, 3) {
            let broken = random.between(at as u64 + 5, packet.len() as u64 - 1) as usize;
            match random.below(8) {
                0 => packet.truncate(broken + 1),
                1 => packet.insert(broken, random.next() as u8),
                _ => packet[broken] ^= 1 << random.below(8),
            }
        }
        inside::coded::seal(&mut packet[at..], None);
        packets.push(packet);
    }
    let seen = in_a_row(packets.iter().cloned());
    let names = &["packtrain.drop_reason", "packtrain.payload"];
    let rows = fields(&seen, Passes::One, names);
    let (mut whole, mut damaged) = (0, 0);
    for (n, (packet, row)) in packets.iter().zip(&rows).enumerate() {
        let at = inside::content_at(packet).expect("a train");
        let (payloads, reason) = match restored(&packet[at..]) {
            Ok(subframes) => payloads(&subframes),
            Err(_) => (Vec::new(), Some("coded_damaged")),
        };
        assert_eq!(said(row, reason), reason, "packet {n}: {:?}", row.expert);
        let shown = row.bytes("packtrain.payload");
        assert!(
            shown.starts_with(&payloads),
            "packet {n}: {} payloads, and not {} or others",
            shown.len(),
            payloads.len()
        );
        if reason == Some("coded_damaged") {
            assert!(shown.is_empty(), "packet {n}: {} payloads", shown.len());
            damaged += 1;
        } else {
            whole += 1;
        }
    }
    println!("{whole} restored, {damaged} damaged");
    assert!(whole > PACKETS / 20 && damaged > PACKETS / 20);
}

#[test]
fn trains_within_trains_end_somewhere() {
    with_tshark!();
    // A VLAN tag hides the EtherType that a receiver would refuse.
    let mut body = Forged::new(1).emit(0).split_off(HEADER_LEN);
    for sequence in 2..40 {
        let mut subframes = vec![0x41];
        subframes.extend((body.len() as u16 + 4).to_be_bytes());
        subframes.extend([0x81, 0x00, 0, 5, 0x88, 0xb5]);
        subframes.extend(&body);
        body = Forged {
            subframes,
            ..Forged::new(sequence)
        }
        .emit(0)
        .split_off(HEADER_LEN);
    }
    let seen = in_a_row([message(0, &body), Forged::new(40).emit(0)]);
    for passes in [Passes::One, Passes::Two] {
        let rows = fields(&seen, passes, &["packtrain.train_seq"]);
        let shown = rows[0].numbers("packtrain.train_seq");
        assert!(shown.len() > 1 && shown.len() < 10, "{shown:?}");
        assert_eq!(
            rows[1].numbers("packtrain.train_seq"),
            [40],
            "the next packet is as deep as any"
        );
    }
}
