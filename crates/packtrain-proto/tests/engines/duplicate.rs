//! Trains that go by two links: the first that comes is delivered, and it takes two losses to lose one.

use crate::segments::{Bed, numbered_of_type as frame};
use packtrain_proto::class::{Action, Class};
use packtrain_proto::config::{Balance, Config, LinkId};
use packtrain_proto::stats::DropReason;
use packtrain_proto::time::Duration;
use packtrain_proto::wire::train::Train;

const MS: Duration = Duration::from_millis(1);
const A: usize = 0;
const B: usize = 1;
/// Of what goes twice, and what does not: nobody knows these.
const TWICE: [u8; 2] = [0x9a, 0x01];
const ONCE: [u8; 2] = [0x9a, 0x02];

fn class() -> Class {
    Class {
        name: "twice".parse().expect("a right name"),
        matches: "ethertype 0x9a01".parse().expect("a right match"),
        links: Vec::new(),
        action: Action {
            duplicate: true,
            ..Action::default()
        },
    }
}

fn cables(count: u8, set: impl Fn(&mut Config)) -> Bed {
    Bed::cabled(count, class(), |config| {
        // What a link loses is lost: the second is all there is.
        config.limits.repair_within = None;
        set(config);
    })
}

fn send(bed: &mut Bed, frames: u32, of: impl Fn(u32) -> [u8; 2]) {
    for n in 0..frames {
        bed.send(A, &frame(of(n), n));
        bed.run(MS);
    }
    bed.run(100 * MS);
}

/// Of A's trains by this link, so many in a row of as many as twice that are lost.
fn lose_half(bed: &mut Bed, link: LinkId, row: u32) {
    let mut count = 0;
    bed.lose = Box::new(move |side, by, message| {
        let is_train = message[12..15] == [0x88, 0xb5, 0x11];
        let carries = is_train && !Train::parse(&message[14..]).expect("our own").header.marker;
        let counts = side == A && by == link && carries;
        count += u32::from(counts);
        counts && count / row % 2 == 1
    });
}

#[test]
fn each_train_of_such_a_class_goes_by_two_links_and_is_delivered_once_in_its_order() {
    let mut bed = cables(3, |_| {});
    send(&mut bed, 300, |_| TWICE);
    assert!(bed.numbers(B).into_iter().eq(0..300));
    let replay = bed.seen(A).replay;
    assert_eq!((replay.duplicated, replay.not_duplicated), (300, 0));
    assert_eq!(bed.seen(B).drops.get(DropReason::Duplicate), 300);
    assert_eq!(replay.replayed, 0);
    // Two of the three each time, and not always the same ones.
    let by_link = bed.trains_by_link(A);
    assert!(by_link.iter().all(|n| *n >= 150), "{by_link:?}");
}

#[test]
fn what_one_of_the_two_loses_the_other_has_brought() {
    for lossy in [0, 1] {
        let mut bed = cables(2, |_| {});
        lose_half(&mut bed, LinkId(lossy), 5);
        send(&mut bed, 400, |_| TWICE);
        assert!(
            bed.numbers(B).into_iter().eq(0..400),
            "{:?}",
            bed.numbers(B)
        );
        let hold = bed.seen(B).peers[0].hold.clone();
        assert!(hold.max < 2 * MS, "{hold:?}");
    }
    // By one alone they would have been lost.
    let mut bed = cables(2, |_| {});
    lose_half(&mut bed, LinkId(0), 5);
    send(&mut bed, 400, |_| ONCE);
    assert!(bed.numbers(B).len() < 320, "{}", bed.numbers(B).len());
}

#[test]
fn frames_of_other_classes_go_once_and_share_no_train_with_those() {
    let mut bed = cables(2, |_| {});
    let of = |n: u32| if n.is_multiple_of(4) { TWICE } else { ONCE };
    for round in 0..100 {
        for n in 0..8 {
            bed.send(A, &frame(of(n), round * 8 + n));
        }
        bed.run(MS);
    }
    bed.run(100 * MS);
    let mut got = bed.numbers(B);
    // They are flows of their own: each is in order, and all are there.
    assert!(got.iter().filter(|n| n.is_multiple_of(4)).is_sorted());
    got.sort_unstable();
    assert!(got.into_iter().eq(0..800));
    let replay = bed.seen(A).replay;
    assert_eq!(replay.not_duplicated, 0);
    // As many trains with frames that go twice as there were rounds, or so: none with all frames.
    assert!((100..=200).contains(&replay.duplicated), "{replay:?}");
    let tx = bed.seen(A).trains_tx;
    assert!(tx.trains >= replay.duplicated + 100, "{tx:?}");
}

#[test]
fn a_line_that_duplicates_does_so_with_all() {
    let mut bed = cables(2, |config| config.balance = Balance::Duplicate);
    lose_half(&mut bed, LinkId(1), 3);
    send(&mut bed, 200, |_| ONCE);
    assert!(bed.numbers(B).into_iter().eq(0..200));
    assert_eq!(bed.seen(A).replay.duplicated, 200);
}

#[test]
fn over_one_link_and_beside_a_dead_one_they_go_once_and_none_waits() {
    let mut bed = cables(1, |_| {});
    send(&mut bed, 50, |_| TWICE);
    assert!(bed.numbers(B).into_iter().eq(0..50));
    assert_eq!(bed.seen(A).replay.duplicated, 0);

    let mut bed = cables(2, |_| {});
    send(&mut bed, 50, |_| TWICE);
    let before = bed.seen(A).replay.duplicated;
    bed.lose = Box::new(|_, link, _| link == LinkId(1));
    bed.run(200 * MS);
    bed.out[B].clear();
    send(&mut bed, 50, |_| TWICE);
    assert!(bed.numbers(B).into_iter().eq(0..50), "{:?}", bed.numbers(B));
    let replay = bed.seen(A).replay;
    assert_eq!(replay.duplicated, before, "nothing by a dead link");
    assert_eq!(replay.not_duplicated, 50);
}

#[test]
fn the_first_goes_again_when_its_link_dies_and_what_has_come_is_not_delivered_twice() {
    let mut bed = cables(3, |_| {});
    send(&mut bed, 30, |_| TWICE);
    bed.out[B].clear();
    // Nothing arrives by two of them for a while, and then all does by the third.
    bed.lose = Box::new(|_, link, _| link != LinkId(2));
    for n in 0..60 {
        bed.send(A, &frame(TWICE, n));
        bed.run(MS);
    }
    bed.run(500 * MS);
    assert!(bed.numbers(B).into_iter().eq(0..60), "{:?}", bed.numbers(B));
    assert!(bed.seen(A).replay.replayed > 0);
}

#[test]
fn a_link_that_has_second_copies_alone_is_given_more_when_neither_of_two_answers() {
    // By missing acknowledgements alone, and no longer a train than what may be out before a link has shown its rate.
    let mut bed = cables(2, |config| config.detection_time = None);
    // By the nearer one all go first.
    bed.delay = Some(((A, LinkId(1)), 5 * MS));
    send(&mut bed, 50, |_| TWICE);
    // Long ones pass none of the two, as if what stands between had come to take less: markers do.
    bed.lose = Box::new(|side, _, message| side == A && message.len() > 1000);
    let mut long = frame(TWICE, 0);
    long.resize(1400, 0);
    for _ in 0..40 {
        bed.send(A, &long);
    }
    bed.run(MS);
    let before = bed.trains_by_link(A);
    assert!(bed.engines[A].has_frames_waiting());
    bed.run(300 * MS);
    let after = bed.trains_by_link(A);
    // The one that had them first is tried with what it has kept; the other one takes more of what waits.
    let more: Vec<u64> = before.iter().zip(&after).map(|(b, a)| a - b).collect();
    assert!(more[0] < 4 && more[1] >= 10, "{more:?}");
}
