//! What a link loses that lives goes again by another, in time and in its order; and what does not.

use crate::segments::{Bed, Cable, frame_to, pt0};
use packtrain_proto::class::{Action, Class, Repairs};
use packtrain_proto::config::{Config, LinkId};
use packtrain_proto::stats::{DropReason, HoldSnapshot};
use packtrain_proto::time::Duration;
use packtrain_proto::wire::train::{REPLAYED, REPLAYED_FROM, Train};

const MS: Duration = Duration::from_millis(1);
const A: usize = 0;
const B: usize = 1;

fn train(message: &[u8]) -> Option<Train<'_>> {
    let is_train = message[12..15] == [0x88, 0xb5, 0x11];
    is_train.then(|| Train::parse(&message[14..]).expect("our own"))
}

fn two_cables(set: impl Fn(&mut Config)) -> Bed {
    let cables = [0, 1].map(|link| Cable::of(&[(A, link), (B, link)]));
    let mut bed = Bed::with(2, &cables, set);
    bed.run(1500 * MS);
    bed
}

fn numbered(n: u32) -> Vec<u8> {
    let mut frame = frame_to(pt0(B), pt0(A), 0);
    let at = frame.len() - 4;
    frame[at..].copy_from_slice(&n.to_be_bytes());
    frame
}

/// Of A's trains by link 1, new ones and those sent again, every so many is lost.
fn lose_every(bed: &mut Bed, nth: u32) {
    let mut count = 0;
    bed.lose = Box::new(move |side, link, message| {
        let counts = side == A && link == LinkId(1);
        let is_carrying = train(message).is_some_and(|train| !train.header.marker);
        count += u32::from(counts && is_carrying);
        counts && is_carrying && count.is_multiple_of(nth)
    });
}

fn send(bed: &mut Bed, frames: u32, apart: Duration) {
    for n in 0..frames {
        bed.send(A, &numbered(n));
        bed.run(apart);
    }
}

impl Bed {
    fn hold(&self) -> HoldSnapshot {
        self.seen(B).peers[0].hold.clone()
    }
}

#[test]
fn what_a_link_loses_comes_all_the_same_in_its_order_and_soon() {
    let mut bed = two_cables(|_| {});
    lose_every(&mut bed, 50);
    send(&mut bed, 4000, MS / 5);
    bed.run(100 * MS);
    assert!(bed.numbers(B).into_iter().eq(0..4000));
    let replay = bed.seen(A).replay;
    assert!((20..=60).contains(&replay.repaired), "{replay:?}");
    assert_eq!((replay.replayed, replay.not_repaired), (replay.repaired, 0));
    // Nothing that had arrived was sent again, and nothing was waited for for longer than it takes to say so.
    let drops = bed.seen(B).drops;
    assert_eq!(drops.get(DropReason::Duplicate), 0);
    assert!(bed.hold().max < 5 * MS, "{:?}", bed.hold());
}

#[test]
fn the_last_train_of_a_burst_goes_again_before_anybody_misses_it() {
    let mut bed = two_cables(|_| {});
    send(&mut bed, 40, 5 * MS);
    for lost in [1, 3] {
        bed.out[B].clear();
        bed.lose = Box::new(|side, _, message| {
            let carries = train(message).is_some_and(|t| !t.header.marker && !t.header.replay);
            side == A && carries
        });
        send(&mut bed, lost, Duration::ZERO);
        bed.run(MS);
        bed.lose = Box::new(|_, _, _| false);
        bed.run(14 * MS);
        assert!(
            bed.numbers(B).into_iter().eq(0..lost),
            "{:?}",
            bed.numbers(B)
        );
        bed.run(500 * MS);
    }
    assert_eq!(bed.seen(B).drops.get(DropReason::Late), 0);
}

#[test]
fn what_was_sent_again_and_is_lost_as_well_goes_once_more() {
    let mut bed = two_cables(|_| {});
    send(&mut bed, 40, MS);
    bed.out[B].clear();
    // Each train of its kind once by either link: the first is lost, and what goes again for it.
    let mut left = 2;
    bed.lose = Box::new(move |side, _, message| {
        let Some(train) = train(message).filter(|train| side == A && !train.header.marker) else {
            return false;
        };
        let is_next = train.header.replay == (left == 1);
        let lost = left > 0 && is_next;
        left -= u32::from(lost);
        lost
    });
    send(&mut bed, 200, MS / 2);
    bed.run(100 * MS);
    assert!(
        bed.numbers(B).into_iter().eq(0..200),
        "{:?}",
        bed.numbers(B)
    );
    assert_eq!(bed.seen(A).replay.repaired, 2);
}

#[test]
fn what_a_host_does_not_send_again_is_lost_and_what_others_send_it_is_not() {
    for off in [A, B] {
        let mut bed = two_cables(|config| {
            if config.address == pt0(off) {
                config.limits.repair_within = None;
            }
        });
        lose_every(&mut bed, 50);
        send(&mut bed, 4000, MS / 5);
        bed.run(100 * MS);
        let got = bed.numbers(B);
        assert!(got.is_sorted());
        let replay = bed.seen(A).replay;
        let counts = (replay.replayed, replay.repaired, replay.not_repaired);
        if off == A {
            assert!(got.len() < 3980, "{}", got.len());
            assert_eq!(counts, (0, 0, 0), "nobody waits");
        } else {
            assert_eq!(got.len(), 4000);
            assert!(replay.repaired > 20, "{counts:?}");
        }
    }
}

#[test]
fn what_would_come_too_late_does_not_go_and_is_not_waited_for() {
    // Sooner than any acknowledgement.
    let mut bed = two_cables(|config| config.limits.repair_within = Some(MS));
    lose_every(&mut bed, 50);
    send(&mut bed, 4000, MS / 5);
    bed.run(100 * MS);
    assert_eq!(bed.seen(A).replay.repaired, 0);
    assert!(bed.numbers(B).is_sorted());
    let hold = bed.hold();
    // The wait for any gap, at first.
    assert!(hold.max < 17 * MS, "{hold:?}");
}

#[test]
fn of_a_link_that_loses_half_only_a_part_goes_again() {
    let mut bed = two_cables(|config| config.detection_time = None);
    lose_every(&mut bed, 2);
    send(&mut bed, 20_000, MS / 20);
    bed.run(200 * MS);
    let got = bed.numbers(B);
    assert!(got.is_sorted());
    let replay = bed.seen(A).replay;
    let trains: u64 = bed.seen(A).links.iter().map(|link| link.trains_tx).sum();
    let most = (trains - replay.replayed) / 4 + 256;
    assert!(replay.replayed <= most, "{replay:?} of {trains}");
}

#[test]
fn each_train_says_that_its_sender_repairs_and_from_where_on() {
    let mut bed = two_cables(|_| {});
    let mut count = 0;
    let seen = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let says = seen.clone();
    bed.lose = Box::new(move |side, _, message| {
        let Some(train) = train(message).filter(|_| side == A) else {
            return false;
        };
        assert!(train.header.repairs);
        let names = |wanted: u8| {
            let mut named = train.newest().filter(|newest| newest.link == wanted);
            named.next().map(|newest| newest.train)
        };
        if !train.header.replay {
            says.borrow_mut()
                .push((names(REPLAYED), names(REPLAYED_FROM)));
        }
        count += u32::from(!train.header.marker);
        !train.header.marker && count == 30
    });
    send(&mut bed, 100, MS / 5);
    let seen = seen.borrow();
    // One was lost, so both name the same.
    assert!(seen.iter().all(|(newest, from)| newest == from));
    let named = seen.iter().filter(|(newest, _)| newest.is_some()).count();
    assert!((1..=20).contains(&named), "{named} of {}", seen.len());
}

/// A lane begins with what its sender says of its copies, and what goes again says it too.
#[test]
fn where_nothing_may_be_lost_a_lane_begins_with_what_goes_again_if_nothing_else_has_come() {
    let cables = [0, 1].map(|link| Cable::of(&[(A, link), (B, link)]));
    let mut bed = Bed::with(2, &cables, |_| {});
    let lossless = Class {
        name: "all".parse().unwrap(),
        matches: "any".parse().unwrap(),
        links: Vec::new(),
        action: Action {
            repairs: Repairs::Lossless,
            ..Action::default()
        },
    };
    bed.engines[A].set_classes(vec![lossless], bed.now);
    // B knows that there is A, and A is known to nobody to know B: its hello comes when most of its trains have left.
    bed.lose = Box::new(|side, _, message| side == A && message[0] & 1 == 0);
    bed.run(1500 * MS);
    assert!(bed.seen(A).peers[0].up && !bed.seen(B).peers[0].up);
    send(&mut bed, 40, MS);
    bed.lose = Box::new(|side, _, message| {
        side == A && train(message).is_some_and(|train| !train.header.replay)
    });
    bed.run(3000 * MS);
    assert!(bed.seen(B).peers[0].up);
    assert!(bed.numbers(B).into_iter().eq(0..40), "{:?}", bed.numbers(B));
    bed.lose = Box::new(|_, _, _| false);
    send(&mut bed, 40, MS);
    bed.run(100 * MS);
    assert!(bed.numbers(B).into_iter().eq((0..40).chain(0..40)));
}
