//! Frames as files have them: cut, out of order, without times, of packtrain's own.

use packtrain_proto::class::{Pack, defaults};
use packtrain_proto::time::Duration;

use super::traffic::{A, B, Sent, batches, replay, setup, udp, wire};
use crate::whatif::Intake;

fn micros(at: u64) -> Option<Duration> {
    Some(Duration::from_micros(at))
}

#[test]
fn what_is_out_of_order_by_little_is_put_in_order() {
    let sent: Vec<Sent> = (0..20_000)
        .map(|n: u64| ((n ^ 31) * 10, udp(A, B, 7, 20, n as u32)))
        .collect();
    let batches = batches(&sent);
    let times: Vec<_> = batches
        .iter()
        .flat_map(|batch| batch.frames())
        .map(|f| f.at)
        .collect();
    assert_eq!(times.len(), 20_000);
    assert!(times.is_sorted());
    assert!(
        times
            .windows(2)
            .all(|two| two[1].since(two[0]) == Duration::from_micros(10))
    );
}

#[test]
fn frames_that_are_all_the_same_are_told_apart() {
    let mut intake = Intake::new(defaults(), 1500, None);
    let frame = udp(A, B, 7, 20, 9);
    for n in 0..500 {
        assert!(intake.frame(micros(n * 100), &frame, frame.len()).is_none());
    }
    assert_eq!(intake.counts().told_apart, 499);
    let batch = intake.rest();
    let mut bytes: Vec<_> = batch.frames().iter().map(|one| batch.bytes(one)).collect();
    assert_eq!(bytes[0], frame);
    bytes.sort_unstable();
    bytes.dedup();
    assert_eq!(bytes.len(), 500);
}

#[test]
fn what_comes_far_too_late_is_taken_when_it_comes() {
    let mut intake = Intake::new(defaults(), 1500, None);
    let mut given = Vec::new();
    for n in 0..20_000u32 {
        let at = if n == 15_000 {
            0
        } else {
            5_000_000 + u64::from(n) * 10
        };
        given.extend(intake.frame(micros(at), &udp(A, B, 7, 20, n), 62));
    }
    given.push(intake.rest());
    let times: Vec<_> = given
        .iter()
        .flat_map(|batch| batch.frames())
        .map(|f| f.at)
        .collect();
    assert!(times.is_sorted());
    assert_eq!((intake.counts().late, intake.counts().sorted), (1, 0));
    assert_eq!(intake.counts().taken, 20_000);
}

#[test]
fn a_frame_that_was_cut_counts_with_its_whole_length() {
    let mut intake = Intake::new(defaults(), 1500, None);
    let whole = udp(A, B, 7, 1000, 1);
    assert!(intake.frame(micros(0), &whole[..64], whole.len()).is_none());
    let batch = intake.rest();
    let frame = &batch.frames()[0];
    assert_eq!((frame.len, frame.cost.wire_bytes), (1042, 1066));
    assert_eq!(batch.bytes(frame)[..64], whole[..64]);
    // What it is filled with is no row of zeros.
    assert!(
        batch.bytes(frame)[64..]
            .iter()
            .filter(|&&byte| byte == 0)
            .count()
            < 100
    );
    assert_eq!(intake.counts().cut, 1);
}

#[test]
fn what_cannot_be_replayed_is_counted_by_its_reason() {
    let mut intake = Intake::new(defaults(), 1500, None);
    let mut own = udp(A, B, 7, 100, 1);
    own[12..14].copy_from_slice(&[0x88, 0xb5]);
    let mut from_a_group = udp(A, B, 7, 100, 1);
    from_a_group[6] |= 1;
    let mut jumbo = udp(A, B, 7, 4000, 1);
    jumbo[23] = 50; // ESP, which no card cuts
    for frame in [&own[..], &from_a_group, &jumbo, &own[..9], &[]] {
        assert!(intake.frame(micros(0), frame, frame.len()).is_none());
    }
    // One that was cut, and says to be longer than any frame.
    assert!(intake.frame(micros(0), &own[..60], 1 << 30).is_none());
    let counts = intake.counts();
    assert_eq!((counts.frames, counts.taken), (6, 0));
    assert_eq!(
        (counts.no_frame, counts.of_packtrain, counts.too_long),
        (3, 2, 1)
    );
}

#[test]
fn a_frame_without_a_time_comes_with_the_one_before() {
    let mut intake = Intake::new(defaults(), 1500, None);
    for at in [None, micros(10), None, micros(30)] {
        intake.frame(at, &udp(A, B, 7, 20, 1), 62);
    }
    let batch = intake.rest();
    let first = batch.frames()[1].at;
    let since: Vec<_> = batch
        .frames()
        .iter()
        .map(|f| f.at.since(first).as_micros())
        .collect();
    assert_eq!(since, [0, 0, 0, 20]);
    assert_eq!(intake.counts().timeless, 2);
}

/// A TCP frame of so many bytes of payload.
fn tcp(payload: usize) -> Vec<u8> {
    let mut frame = udp(A, B, 80, 12 + payload, 1);
    frame[23] = 6;
    frame[46] = 5 << 4;
    frame
}

#[test]
fn a_frame_that_a_card_would_cut_costs_what_it_becomes() {
    let sent: Vec<Sent> = (0..100).map(|n| (n * 50_000, tcp(14_600))).collect();
    let batches = batches(&sent);
    assert_eq!(batches[0].frames()[0].cost.frames, 10);
    let results = replay(&sent, setup(wire(Some(1_000_000_000), None), Pack::Queued));
    assert_eq!(results.all.plain.frames, 1000.0);
    assert_eq!((results.all.delivered, results.all.dropped), (100, 0));
    assert_eq!(results.sent.direct.frames, 1000.0);
}

#[test]
fn a_receive_filter_drops_what_is_for_others() {
    let mut intake = Intake::new(defaults(), 1500, Some(A));
    let arp = |from: u8, target: u8| {
        let mut frame = [0xff; 6].to_vec();
        frame.extend([2, 0, 0, 0, 0, from]);
        frame.extend([0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1]);
        frame.extend([2, 0, 0, 0, 0, from, 10, 0, 0, from]);
        frame.extend([0, 0, 0, 0, 0, 0, 10, 0, 0, target]);
        frame
    };
    let frames = [
        arp(2, 9), // its addresses are not known yet
        arp(1, 2),
        arp(2, 1),
        arp(2, 3),
        udp(B, A, 7, 20, 1),
        udp(B, super::traffic::host(3), 7, 20, 1),
        udp(
            B,
            packtrain_proto::wire::ethernet::MacAddr::BROADCAST,
            7,
            20,
            1,
        ),
    ];
    for frame in &frames {
        intake.frame(micros(0), frame, frame.len());
    }
    let counts = intake.filter().unwrap().counts;
    assert_eq!(
        (counts.foreign_arp.frames, counts.foreign_unicast.frames),
        (1, 1)
    );
    assert_eq!(
        (
            counts.resolution.frames,
            counts.for_host.frames,
            counts.broadcast.frames
        ),
        (2, 1, 1)
    );
    assert_eq!((counts.dropped().frames, counts.kept().frames), (2, 4));
}
