//! Links whose ends take longer frames than what stands between them: found out, used for what passes, and found out again.

use std::cell::Cell;
use std::rc::Rc;

use crate::segments::{Bed, Cable, frame_to, pt0};
use packtrain_proto::config::{Config, LinkId};
use packtrain_proto::engine::Event;
use packtrain_proto::stats::PeerSnapshot;
use packtrain_proto::time::Duration;
use packtrain_proto::wire::train::Train;

const MS: Duration = Duration::from_millis(1);
const A: usize = 0;
const B: usize = 1;
const HEADER: usize = 14;

/// What the wires take, payload bytes, by link.
type Wires = Rc<[Cell<usize>; 2]>;

/// Two hosts with two cables of 9000 each, as they say.
fn jumbo(takes: [usize; 2], set: impl Fn(&mut Config)) -> (Bed, Wires) {
    let cables = [0, 1].map(|link| Cable::of(&[(A, link), (B, link)]));
    let mut bed = Bed::with(2, &cables, |config| {
        config.mtu = 9000;
        config.direct_frames = false;
        set(config);
    });
    let wires: Wires = Rc::new(takes.map(Cell::new));
    let of = wires.clone();
    bed.lose =
        Box::new(move |_, link, message| message.len() - HEADER > of[usize::from(link.0)].get());
    for side in [A, B] {
        for link in [0, 1] {
            bed.mtus.insert((side, LinkId(link)), 9000);
            bed.set_carrier(side, link, true);
        }
    }
    bed.run(3000 * MS);
    (bed, wires)
}

fn frame(n: u32, len: usize) -> Vec<u8> {
    let mut frame = frame_to(pt0(B), pt0(A), 0);
    frame.resize(len, 0);
    frame[len - 4..].copy_from_slice(&n.to_be_bytes());
    frame
}

/// From A to B, which gets the last `0..frames`.
fn send(bed: &mut Bed, frames: u32, len: usize) {
    bed.out[B].clear();
    for n in 0..frames {
        bed.send(A, &frame(n, len));
        bed.run(MS);
    }
    bed.run(500 * MS);
}

impl Bed {
    fn peer(&self, side: usize) -> PeerSnapshot {
        self.seen(side).peers[0].clone()
    }

    fn mtus(&self, side: usize) -> Vec<Option<u16>> {
        let paths = self.peer(side).paths;
        paths.iter().map(|path| path.measures.mtu).collect()
    }
}

#[test]
fn where_all_passes_that_both_ends_take_it_is_used_and_asked_for_once() {
    let (mut bed, _) = jumbo([9000, 9000], |_| {});
    assert_eq!(bed.mtus(A), [Some(9000); 2]);
    assert_eq!(bed.mtus(B), [Some(9000); 2]);
    let long = Rc::new(Cell::new(0));
    let seen = long.clone();
    bed.lose = Box::new(move |_, _, message| {
        let is_liveness = message[12..15] == [0x88, 0xb5, 0x14];
        seen.set(seen.get() + u32::from(is_liveness && message.len() > 60));
        false
    });
    bed.run(20_000 * MS);
    assert_eq!(long.get(), 0, "nobody doubts it");
    send(&mut bed, 100, 8000);
    assert!(bed.numbers(B).into_iter().eq(0..100));
}

#[test]
fn a_link_that_takes_less_than_its_ends_say_is_used_for_what_passes() {
    let (mut bed, _) = jumbo([9000, 1500], |_| {});
    let [Some(9000), Some(less)] = bed.mtus(A)[..] else {
        panic!("{:?}", bed.mtus(A));
    };
    assert!((1484..=1500).contains(&less), "{less}");
    // Frames that are longer than one of them takes are cut, and come whole.
    let sent = |bed: &Bed| -> Vec<u64> {
        let paths = bed.peer(A).paths;
        paths.iter().map(|path| path.trains_tx).collect()
    };
    let trains = sent(&bed);
    send(&mut bed, 200, 8000);
    assert!(bed.numbers(B).into_iter().eq(0..200));
    let after = sent(&bed);
    assert!(after[1] > trains[1] + 100, "{trains:?} {after:?}");
    assert_eq!(bed.peer(A).paths[1].lost_trains, 0);
}

#[test]
fn a_link_that_comes_to_take_less_is_found_out_within_a_second_and_loses_nothing() {
    for shrinks in [&[1][..], &[0], &[0, 1]] {
        let (mut bed, wires) = jumbo([9000, 9000], |_| {});
        send(&mut bed, 50, 8000);
        bed.out[B].clear();
        for &link in shrinks {
            wires[link].set(1500);
        }
        let mut found_after = None;
        for n in 0..1000 {
            bed.send(A, &frame(n, 8000));
            bed.run(MS);
            let is_found = |link: &usize| bed.mtus(A)[*link].is_some_and(|mtu| mtu <= 1500);
            if found_after.is_none() && shrinks.iter().all(is_found) {
                found_after = Some(n);
            }
        }
        bed.run(1000 * MS);
        let found_after = found_after.expect("within a second");
        assert!(found_after < 500, "{shrinks:?}: {found_after} ms");
        let got = bed.numbers(B);
        assert!(got.is_sorted());
        match shrinks {
            // There was another one for what it lost.
            [_] => assert_eq!(got.len(), 1000, "{shrinks:?}"),
            // What was under way passes nowhere any more.
            _ => assert!(
                got.len() > 500,
                "{} {found_after} {:?} {:?}",
                got.len(),
                bed.seen(A),
                bed.mtus(A)
            ),
        }
        assert!(got.ends_with(&[997, 998, 999]), "{:?}", got.last());
    }
}

#[test]
fn what_passes_is_told_when_it_is_less_than_the_ends_take_and_when_it_is_not_any_more() {
    let told = |bed: &Bed| -> Vec<(u8, u16, u16)> {
        let events = bed.events[A].iter();
        let mtus = events.filter_map(|event| match event {
            Event::PathMtu {
                link, before, mtu, ..
            } => Some((link.0, *before, *mtu)),
            _ => None,
        });
        mtus.collect()
    };
    let (mut bed, wires) = jumbo([9000, 9000], |_| {});
    assert_eq!(told(&bed), [], "all passes");
    wires[1].set(1500);
    send(&mut bed, 500, 8000);
    let first = told(&bed);
    let [(1, 9000, found)] = first[..] else {
        panic!("{first:?}");
    };
    assert!((1484..=1500).contains(&found), "{found}");
    wires[1].set(9000);
    bed.run(32_000 * MS);
    assert_eq!(told(&bed)[1..], [(1, found, 9000)]);
}

#[test]
fn ends_that_come_to_take_more_are_used_for_it_at_once() {
    let (mut bed, _) = jumbo([9000, 9000], |_| {});
    for mtu in [1500, 9000] {
        for side in [A, B] {
            for link in [0, 1] {
                bed.mtus.insert((side, LinkId(link)), mtu);
                bed.set_carrier(side, link, true);
            }
        }
        bed.run(200 * MS);
        for side in [A, B] {
            assert_eq!(bed.mtus(side), [Some(mtu); 2]);
        }
    }
}

#[test]
fn of_one_link_that_takes_less_it_is_asked_still_when_the_other_is_gone() {
    let (mut bed, wires) = jumbo([9000, 1500], |_| {});
    for side in [A, B] {
        bed.set_carrier(side, 0, false);
    }
    bed.run(5000 * MS);
    wires[1].set(9000);
    bed.run(32_000 * MS);
    assert_eq!(bed.mtus(A)[1], Some(9000));
}

#[test]
fn what_comes_to_take_more_again_is_used_for_it() {
    let (mut bed, wires) = jumbo([9000, 1500], |_| {});
    wires[1].set(9000);
    bed.run(31_000 * MS);
    assert_eq!(bed.mtus(A), [Some(9000); 2]);
    send(&mut bed, 50, 8000);
    assert!(bed.numbers(B).into_iter().eq(0..50));
}

#[test]
fn plain_loss_makes_no_link_take_less() {
    let (mut bed, _) = jumbo([9000, 9000], |_| {});
    let mut count = 0u32;
    bed.lose = Box::new(move |_, link, message| {
        let is_train = message[12..15] == [0x88, 0xb5, 0x11];
        let carries = is_train && !Train::parse(&message[14..]).expect("our own").header.marker;
        count += u32::from(link == LinkId(1) && carries);
        // Five in a row, of fifty.
        link == LinkId(1) && carries && count % 50 < 5
    });
    send(&mut bed, 2000, 8000);
    assert_eq!(bed.mtus(A), [Some(9000); 2]);
}

#[test]
fn who_does_not_answer_polls_is_asked_nothing_and_believed() {
    let (bed, _) = jumbo([9000, 9000], |config| {
        if config.address == pt0(B) {
            config.detection_time = None;
        }
    });
    assert_eq!(bed.mtus(A), [None; 2]);
}
