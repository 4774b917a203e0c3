//! Whatever bytes come: no Lua error, and the reason that the engine's parsers have.

use packtrain_proto::stats::DropReason;
use packtrain_proto::time::Duration;
use packtrain_proto::wire::ethernet::HEADER_LEN;
use packtrain_proto::wire::hello::Hello;
use packtrain_proto::wire::station::{StationError, StationMessage};
use packtrain_proto::wire::subframe::Subframe;
use packtrain_proto::wire::train::{self, TYPE_HELLO, TYPE_TRAIN, Train};
use packtrain_sim::random::Random;

use crate::named::{Forged, message};
use crate::tshark::{Passes, fields, in_a_row, run, with_tshark};
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
    for _ in 0..list.len() / 20 {
        list.extend(crate::vectors::all().into_iter().map(|(_, bytes)| bytes));
    }
    list
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
                bytes[at] = *random.pick(&[0, 1, 2, 3, 4, 0x11, 0x12, 0x13, 0x80, 0xff])
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
    let mut rest = &message[train.subframes_at..];
    // What is coded the dissector does not look into.
    const CODED: u8 = 0x08;
    if train.header.marker || message[1] & CODED != 0 {
        return None;
    }
    loop {
        match Subframe::parse(rest) {
            Ok(Some((_, len))) => rest = &rest[len..],
            Ok(None) => return None,
            Err(error) => return Some(DropReason::from(error).as_str()),
        }
    }
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
    // What follows from other messages, not from this one's bytes; and what only a receiver's own state tells.
    let of_state = [
        "stale_incarnation",
        "unknown_peer",
        "sequence_jump",
        "bad_lane",
        "reassembly_hole",
        "stray_piece",
        "reassembly_bad_piece",
    ];
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
            let reasons = row
                .all("packtrain.drop_reason")
                .iter()
                .map(|reason| &reason[..]);
            let mut reasons: Vec<&str> = reasons
                .filter(|reason| !of_state.contains(reason))
                .collect();
            let expected = refusal(packet);
            refused += usize::from(expected.is_some());
            if expected != Some("bad_gso") {
                // Of metadata that a subframe's own parser takes, the frame's headers tell more.
                reasons.retain(|&reason| reason != "bad_gso");
            }
            let said = reasons.first().copied();
            assert_eq!(
                said, expected,
                "packet {n}, {passes:?}: {reasons:?} {packet:02x?}"
            );
        }
    }
    assert!(refused > PACKETS / 4, "{refused} were refused");
    // Nor where everything is shown.
    let out = run(&seen[..400], Passes::Two, &["-T", "json"]);
    assert!(out.contains("packtrain.subframe"));
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
