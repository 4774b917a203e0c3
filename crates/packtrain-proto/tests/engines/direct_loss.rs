//! Direct frames that are lost: how they are counted, and what that leads to.

use std::cell::Cell;
use std::rc::Rc;

use crate::direct::{direct_mark, direct_pair, direct_pair_with, to_side_1};
use crate::support::{LINK, Pair, frame, link_address, pt0};
use packtrain_proto::config::{LinkId, direct_mark_of, mark_of};
use packtrain_proto::direct::DIRECT_CALM;
use packtrain_proto::engine::Event;
use packtrain_proto::offload::Offload;
use packtrain_proto::stats::EngineBecause;
use packtrain_proto::time::Duration;
use packtrain_proto::unit_size::SizeBecause;
use packtrain_proto::wire::train::Train;

/// Side 0 has sent so many directly, and so many have come.
pub fn count(pair: &mut Pair, sent: u32, came: u32) {
    pair.events = Default::default();
    (pair.direct_sent[0], pair.direct_came[1]) = (sent, came);
    let now = pair.now;
    pair.engines[0].handle_direct_sent(pt0(1), LINK, sent, now);
    pair.settle();
    let asked = Event::DirectAsked {
        link: LINK,
        direct_mark: direct_mark(0),
        address: pt0(0),
    };
    assert!(pair.events[1].contains(&asked));
    pair.run(Duration::from_millis(100));
}

#[test]
fn direct_frames_that_are_lost_are_counted_and_many_of_them_close_the_path() {
    // Else it would be looked at by a few that bits are wrong.
    let mut pair = direct_pair_with(|config| config.limits.repair_within = None);
    count(&mut pair, 1000, 1000);
    count(&mut pair, 2000, 1990);
    assert_eq!(pair.engines[0].direct_destinations(), [to_side_1()]);
    // Nothing new is sent: nothing is said.
    let markers = pair.snapshot(0).trains_tx.markers;
    let now = pair.now;
    pair.engines[0].handle_direct_sent(pt0(1), LINK, 2000, now);
    pair.run(Duration::from_millis(300));
    assert_eq!(pair.snapshot(0).trains_tx.markers, markers);
    count(&mut pair, 3000, 2900);
    assert_eq!(pair.engines[0].direct_destinations(), []);
    let seen = pair.snapshot(0);
    assert_eq!(seen.peers[0].engine_because, Some(EngineBecause::Loss));
    assert_eq!((seen.direct.lost, seen.direct.closures.loss), (100, 1));
    assert_eq!(pair.snapshot(1).direct.lost, 0);
    pair.run(DIRECT_CALM + Duration::from_millis(500));
    assert_eq!(pair.engines[0].direct_destinations(), [to_side_1()]);
    // So soon again: it tries later.
    count(&mut pair, 4000, 3000);
    pair.run(DIRECT_CALM + Duration::from_millis(500));
    assert_eq!(pair.engines[0].direct_destinations(), []);
    pair.run(DIRECT_CALM);
    assert_eq!(pair.engines[0].direct_destinations(), [to_side_1()]);
    pair.still_works();
}

#[test]
fn a_few_that_are_lost_have_the_path_looked_at_for_bits_that_are_wrong_and_closed_meanwhile() {
    let mut pair = direct_pair();
    let because = |pair: &Pair| pair.snapshot(0).peers[0].engine_because;
    count(&mut pair, 1000, 1000);
    count(&mut pair, 2000, 1998);
    assert_eq!(pair.engines[0].direct_destinations(), [to_side_1()]);
    count(&mut pair, 3000, 2996);
    assert_eq!(pair.engines[0].direct_destinations(), []);
    assert_eq!(because(&pair), Some(EngineBecause::BitErrors));
    assert!(pair.snapshot(0).peers[0].paths[0].size.looks);
    // Nothing was lost that went in trains.
    pair.run(Duration::from_millis(5500));
    assert_eq!(pair.engines[0].direct_destinations(), [to_side_1()]);
    count(&mut pair, 4000, 3980);
    assert_eq!(
        pair.engines[0].direct_destinations(),
        [to_side_1()],
        "so soon"
    );
    pair.run(Duration::from_secs(30));
    count(&mut pair, 5000, 4966);
    assert_eq!(because(&pair), Some(EngineBecause::BitErrors));
}

/// A TCP whose first window is lost sends one segment for each of its timeouts: nothing could be found of those.
#[test]
fn where_most_direct_frames_are_lost_trains_are_short_at_once_and_go_again() {
    for mtu in [9000, 1500] {
        let mut pair = direct_pair_with(|config| config.mtu = mtu);
        pair.set_mtu(0, mtu);
        pair.set_mtu(1, mtu);
        pair.run(Duration::from_millis(1500));
        count(&mut pair, 10, 10);
        count(&mut pair, 20, 10);
        let is_open = !pair.engines[0].direct_destinations().is_empty();
        assert!(is_open, "a marker may have overtaken them");
        count(&mut pair, 20, 10);
        assert_eq!(pair.engines[0].direct_destinations(), []);
        let size = pair.snapshot(0).peers[0].paths[0].size;
        assert!(size.looks && !size.mends, "{size:?}");
        let because = match mtu {
            1500 => SizeBecause::LinkMtu,
            _ => SizeBecause::LongLost,
        };
        assert_eq!((size.bytes, size.because), (1500, because));
        if mtu > 1500 {
            // Who has lost so much may send the next one after many seconds.
            pair.run(Duration::from_secs(12));
            assert_eq!(pair.engines[0].direct_destinations(), []);
            assert_eq!(pair.snapshot(0).peers[0].paths[0].size.bytes, 1500);
        }
        let mut trains = 0;
        pair.lose = Box::new(move |side, frame| {
            trains += usize::from(side == 0 && frame.len() > 500);
            side == 0 && frame.len() > 500 && trains % 5 == 2
        });
        pair.out = Default::default();
        for n in 0..20 {
            let payload = usize::from(mtu) - 100;
            pair.send(0, &frame(0, payload, n), Offload::NONE);
            pair.run(Duration::from_millis(5));
        }
        pair.run(Duration::from_millis(300));
        // What is no longer than a train may go as it is where trains are as long.
        let (came, again) = (pair.out[1].len(), pair.snapshot(0).replay.repaired);
        match mtu {
            1500 => assert!(came < 20 && again == 0, "{came}, {again}"),
            _ => assert!(came == 20 && again > 5, "{came}, {again}"),
        }
    }
}

/// Of frames that are very long there are few.
#[test]
fn of_few_direct_frames_most_must_be_lost_to_be_noticed() {
    let mut pair = direct_pair();
    count(&mut pair, 10, 10);
    count(&mut pair, 16, 13);
    assert_eq!(pair.engines[0].direct_destinations(), [to_side_1()]);
    // A marker may overtake them in some network.
    count(&mut pair, 30, 13);
    assert_eq!(pair.engines[0].direct_destinations(), [to_side_1()]);
    count(&mut pair, 30, 29);
    assert_eq!(pair.engines[0].direct_destinations(), [to_side_1()]);
    count(&mut pair, 60, 43);
    count(&mut pair, 60, 43);
    assert_eq!(pair.engines[0].direct_destinations(), []);
}

/// Two of five frames of 65,000 bytes, of which a TCP sends no more when its window is lost: the owner counts twenty times a second while
/// there are more, and then four times.
#[test]
fn where_two_of_five_are_lost_it_is_found_within_half_a_second() {
    let mut pair = direct_pair();
    count(&mut pair, 10, 10);
    let began = pair.now;
    for (sent, came, apart_ms) in [(13, 12, 50), (20, 16, 50), (20, 16, 250), (20, 16, 250)] {
        pair.run(Duration::from_millis(apart_ms));
        (pair.direct_sent[0], pair.direct_came[1]) = (sent, came);
        let now = pair.now;
        pair.engines[0].handle_direct_sent(pt0(1), LINK, sent, now);
        pair.settle();
        if pair.engines[0].direct_destinations().is_empty() {
            break;
        }
    }
    let took = pair.now.since(began);
    assert_eq!(pair.engines[0].direct_destinations(), []);
    assert!(took <= Duration::from_millis(500), "{took:?}");
}

#[test]
fn counts_of_a_path_that_nobody_has_change_nothing() {
    let mut pair = direct_pair();
    let stranger = direct_mark_of(mark_of(link_address(7)).unwrap());
    let now = pair.now;
    pair.engines[0].handle_direct_sent(pt0(9), LINK, 5, now);
    pair.engines[0].handle_direct_sent(pt0(1), LinkId(9), 5, now);
    pair.engines[0].handle_direct_received(LINK, stranger, 5, now);
    pair.engines[0].handle_direct_received(LINK, direct_mark(1), 5, now);
    let markers = pair.snapshot(0).trains_tx.markers;
    pair.run(Duration::from_millis(50));
    assert_eq!(pair.snapshot(0).trains_tx.markers, markers);
    pair.still_works();
}

/// More of them than a receiver takes ahead of their turn.
#[test]
fn trains_that_wait_for_a_direct_frame_that_is_lost_are_not_lost_with_it() {
    let mut pair = direct_pair();
    let now = pair.now;
    count(&mut pair, 100, 100);
    (pair.direct_sent[0], pair.direct_came[1]) = (200, 199);
    pair.engines[0].handle_direct_sent(pt0(1), LINK, 200, now);
    pair.engines[0].handle_flows_left_direct();
    pair.out = Default::default();
    let small = frame(0, 60, 1);
    for sent in 1..=5000 {
        pair.send(0, &small, Offload::NONE);
        pair.settle();
        let waits = pair.out[1].is_empty();
        assert_eq!(waits, sent <= 3072, "{sent}");
    }
    assert_eq!(pair.out[1].len(), 5000);
    assert_eq!(pair.drops(1).total(), 0);
    let direct = pair.snapshot(1).direct;
    assert_eq!((direct.fences, direct.fences_given_up), (1, 1));
}

/// Most direct frames of 9000 bytes were lost, and nothing was sent for as long since.
fn looks_urgently(rest: Duration) -> Pair {
    let mut pair = direct_pair_with(|config| config.mtu = 9000);
    pair.set_mtu(0, 9000);
    pair.set_mtu(1, 9000);
    pair.run(Duration::from_millis(1500));
    count(&mut pair, 10, 10);
    count(&mut pair, 20, 10);
    count(&mut pair, 20, 10);
    pair.run(rest);
    pair.out = Default::default();
    pair
}

/// Frames of several trains, so far apart, of which one train in five is lost, again as well.
fn come_of_twenty(rest: Duration, apart: Duration, nth: usize) -> usize {
    let mut pair = looks_urgently(rest);
    let mut trains = 0;
    pair.lose = Box::new(move |side, frame| {
        let counts = side == 0 && frame.len() > 500;
        trains += usize::from(counts);
        counts && trains % 5 == nth
    });
    for n in 0..20 {
        pair.send(0, &frame(0, 8900, n), Offload::NONE);
        pair.run(apart);
    }
    pair.run(Duration::from_millis(300));
    assert_eq!(pair.snapshot(0).replay.not_repaired, 0);
    pair.out[1].len()
}

#[test]
fn what_goes_again_and_is_lost_again_is_waited_for_though_nothing_comes_behind_it() {
    let rest = Duration::from_secs(25);
    for (apart_ms, nth) in [(2, 3), (5, 1), (5, 4), (8, 1), (8, 4), (20, 2)] {
        let came = come_of_twenty(rest, Duration::from_millis(apart_ms), nth);
        assert_eq!(came, 20, "{apart_ms} ms apart, the {nth}th of five");
    }
}

/// Four places behind it nothing comes, as it does behind those that were said soon to go again before.
#[test]
fn what_is_lost_near_the_end_of_a_burst_is_waited_for_after_a_rest() {
    let mut pair = looks_urgently(Duration::ZERO);
    // Which of a frame's trains is lost, and of what goes again; how many have gone of it.
    let lost = Rc::new(Cell::new((0, 0)));
    let sent = Rc::new(Cell::new((0, 0)));
    let (is_lost, count) = (lost.clone(), sent.clone());
    pair.lose = Box::new(move |side, frame| {
        let Some(train) = Train::parse(&frame[14..]).ok().filter(|_| side == 0) else {
            return false;
        };
        let (new, again) = count.get();
        let (lost_new, lost_again) = is_lost.get();
        let (counts, is_again) = (!train.header.marker, train.header.replay);
        let new = new + usize::from(counts && !is_again);
        let again = again + usize::from(counts && is_again);
        count.set((new, again));
        counts
            && if is_again {
                again == lost_again
            } else {
                new == lost_new
            }
    });
    let send = |pair: &mut Pair, lose: (usize, usize), apart: Duration| {
        lost.set(lose);
        sent.set((0, 0));
        pair.send(0, &frame(0, 8900, 1), Offload::NONE);
        pair.run(apart);
        sent.get().0
    };
    for _ in 0..20 {
        send(&mut pair, (1, 1), Duration::from_millis(50));
    }
    pair.run(Duration::from_secs(25));
    let trains = send(&mut pair, (0, 0), Duration::from_millis(200));
    for _ in 0..20 {
        send(&mut pair, (trains - 1, 0), Duration::from_millis(200));
    }
    let gaps = pair.snapshot(1).resequencer.gaps;
    assert_eq!((pair.out[1].len(), gaps), (41, 0), "{trains} trains each");
}
