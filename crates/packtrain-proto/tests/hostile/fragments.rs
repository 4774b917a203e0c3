//! Pieces of frames that overlap, never end, or claim more than they bring.

use packtrain_proto::config::{Limits, mark_of};
use packtrain_proto::offload::{GsoKind, Offload};
use packtrain_proto::stats::DropReason;
use packtrain_proto::time::Duration;

use super::counts;
use super::offloads::{ethernet, field, honest};
use super::support::forger::{FIRST, Forger, first, next, option, subframe};
use super::support::{Pair, link_address, pt0};

const NEWEST: u8 = 2;
const OTHER_LINK: u8 = 9;

#[test]
fn pieces_that_overlap_or_go_beyond_their_frame_drop_it_once() {
    let mut pair = Pair::new(true);
    let mut forger = Forger::known_to(&mut pair, 1, 1);
    let bad = [
        next(3, 0, &[2; 100]),   // all of it again
        next(3, 99, &[2; 10]),   // one byte of it again
        next(3, 100, &[2; 901]), // a byte beyond the end
        next(3, 1000, &[2; 1]),
        next(3, 65_000, &[2; 400]),
    ];
    for piece in bad {
        let reasons = [
            (DropReason::ReassemblyBadPiece, 1),
            (DropReason::StrayPiece, 1),
        ];
        counts(&mut pair, &reasons, |pair| {
            forger.send(pair, 1, &first(3, 1000, &[1; 100]));
            forger.send(pair, 1, &piece);
            // What still comes of it belongs to nothing.
            forger.send(pair, 1, &next(3, 100, &[3; 900]));
        });
    }
    counts(&mut pair, &[(DropReason::ReassemblyHole, 1)], |pair| {
        forger.send(pair, 1, &first(3, 1000, &[1; 100]));
        forger.send(pair, 1, &next(3, 101, &[2; 899]));
    });
    assert_eq!(pair.out[1], []);
    assert_eq!(pair.snapshot(1).reassembly.bytes, 0);
    pair.still_works();
}

#[test]
fn a_first_piece_takes_the_id_over_and_the_former_frame_is_a_hole() {
    let mut pair = Pair::new(true);
    let mut forger = Forger::known_to(&mut pair, 1, 1);
    counts(&mut pair, &[(DropReason::ReassemblyHole, 99)], |pair| {
        for i in 0..100 {
            forger.send(pair, 1, &first(3, 160, &[i; 100]));
        }
        forger.send(pair, 1, &next(3, 100, &[99; 60]));
    });
    assert_eq!(pair.out[1].len(), 1);
    assert_eq!(pair.out[1][0].0[14..], [99; 160]);
    pair.still_works();
}

#[test]
fn frames_that_never_end_hold_no_more_than_the_bound_and_go_when_their_time_is_over() {
    let age_max = Duration::from_millis(100);
    let mut pair = Pair::with(|_, config| config.limits.reassembly_age_max = age_max);
    let bound = Limits::default().reassembly_bytes_max as u64;
    let mut forgers: Vec<Forger> = (0..20)
        .map(|n| Forger::known_to(&mut pair, 1, n + 1))
        .collect();
    let before = pair.drops(1);
    for id in 0..2000u16 {
        for forger in &mut forgers {
            // The least bytes that claim the largest frame.
            forger.send(&mut pair, 1, &first(id, 65_535, &[1]));
        }
        let held = pair.snapshot(1).reassembly;
        assert!(
            held.bytes <= bound && held.bytes_max_seen <= bound,
            "{held:?}"
        );
    }
    let refused: u64 = pair.dropped_since(1, &before).iter().map(|(_, n)| n).sum();
    let held = pair.snapshot(1).reassembly.frames;
    assert_eq!(refused + held, 2000 * 20);
    pair.run(age_max * 10 + Duration::from_millis(10));
    let dropped = pair.dropped_since(1, &before);
    assert!(
        dropped.contains(&(DropReason::ReassemblyTimeout, held)),
        "{dropped:?}"
    );
    assert_eq!(dropped.iter().map(|(_, n)| n).sum::<u64>(), 2000 * 20);
    assert_eq!(pair.snapshot(1).reassembly.bytes, 0);
    pair.still_works();
}

#[test]
fn a_frame_fed_a_byte_at_a_time_ends_with_its_last_byte() {
    let mut pair = Pair::new(true);
    let mut forger = Forger::known_to(&mut pair, 1, 1);
    counts(&mut pair, &[], |pair| {
        forger.send(pair, 1, &first(1, 3000, &[0]));
        for offset in 1..3000u16 {
            forger.send(pair, 1, &next(1, offset, &[offset as u8]));
        }
    });
    assert_eq!(pair.out[1].len(), 1);
    let expected: Vec<u8> = (0..3000u16).map(|i| i as u8).collect();
    assert_eq!(pair.out[1][0].0[14..], expected);
    pair.still_works();
}

/// The last pieces of a frame are lost; the next frame of its flow goes as it is, and overtakes
/// nothing.
#[test]
fn a_marked_frame_comes_after_what_is_complete_of_its_flow() {
    let mut pair = Pair::new(true);
    let mut forger = Forger::known_to(&mut pair, 1, 1);
    let (ether_type, packet, offload) = honest(GsoKind::TcpV4, 5000);
    let total = (packet.len() as u16).to_be_bytes();
    let fields = [&field(&offload)[..], &[0, 5], &total].concat();
    let mut piece = subframe(FIRST, ether_type, &fields, &packet[..1300]);
    piece[0] |= 0x20;
    let (_, other, _) = honest(GsoKind::TcpV6, 100);
    let as_it_is = |ether_type: u16, packet: &[u8]| {
        let mut frame = ethernet(ether_type, packet);
        frame[..6].copy_from_slice(&link_address(1).0);
        frame[6..12].copy_from_slice(&mark_of(forger.link).unwrap().0);
        frame
    };
    let others = as_it_is(0x86dd, &other);
    let (_, mut next, _) = honest(GsoKind::TcpV4, 1000);
    next[24..28].copy_from_slice(&5001u32.to_be_bytes());
    let next = as_it_is(0x0800, &next);
    forger.send(&mut pair, 1, &piece);
    // Another flow is no reason.
    pair.inject(1, &others, Offload::NONE);
    assert_eq!(pair.out[1].len(), 1);
    counts(&mut pair, &[(DropReason::ReassemblyHole, 1)], |pair| {
        pair.inject(1, &next, Offload::NONE);
    });
    let sequences: Vec<u32> = pair.out[1][1..]
        .iter()
        .map(|(frame, _)| u32::from_be_bytes(frame[38..42].try_into().unwrap()))
        .collect();
    assert_eq!(sequences, [1, 5001]);
    assert_eq!(pair.out[1][1].0.len(), 54 + 1000);
    pair.still_works();
}

/// A sender has as many frames under way in pieces as it has flows, if nothing holds it back.
#[test]
fn two_hundred_bulk_flows_in_pieces_all_arrive() {
    for len in [9_000, 60_000] {
        let mut pair = Pair::new(false);
        let frames: Vec<Vec<u8>> = (0..200u16).map(|flow| udp_frame(flow, len)).collect();
        for frame in &frames {
            pair.send(0, frame, Offload::NONE);
        }
        pair.run(Duration::from_millis(100));
        let dropped = [pair.drops(0), pair.drops(1)].map(|drops| drops.iter().collect::<Vec<_>>());
        assert_eq!(pair.out[1].len(), 200, "{dropped:?}");
        pair.still_works();
    }
}

fn udp_frame(port: u16, len: usize) -> Vec<u8> {
    let mut frame = super::support::frame(0, 14, 0);
    frame[12..14].copy_from_slice(&[8, 0]);
    frame.extend([0x45, 0]);
    frame.extend(((len - 14) as u16).to_be_bytes());
    frame.extend([0, 1, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend(port.to_be_bytes());
    frame.extend([0, 9]);
    frame.extend(((len - 34) as u16).to_be_bytes());
    frame.resize(len, 7);
    frame
}

/// Some of a host's frames are flooded before its peer is known to be behind a link, and come late by another.
#[test]
fn a_plain_frame_of_a_peer_with_several_links_ends_no_frame_in_pieces_and_one_with_a_mark_does() {
    for (is_marked, whole) in [(false, 1), (true, 0)] {
        let mut pair = Pair::new(true);
        let mut forger = Forger::known_to(&mut pair, 1, 1);
        let mut piece = forger.train(1, &first(3, 200, &[1; 100]));
        piece.options = option(NEWEST, &[OTHER_LINK, 0, 0, 1]);
        pair.inject(1, &piece.bytes(), Offload::NONE);
        let (to, from) = match is_marked {
            true => (link_address(1), mark_of(forger.link).expect("it has one")),
            false => (pt0(1), forger.pt0),
        };
        let frame = [&to.0[..], &from.0, &[0x90, 0], &[9; 60]].concat();
        pair.inject(1, &frame, Offload::NONE);
        let before = pair.drops(1).get(DropReason::ReassemblyHole);
        assert_eq!(before, 1 - whole as u64);
        forger.send(&mut pair, 1, &next(3, 100, &[1; 100]));
        let payloads: Vec<u8> = pair.out[1].iter().map(|(frame, _)| frame[14]).collect();
        assert_eq!(payloads, [9, 1][..1 + whole]);
    }
}
