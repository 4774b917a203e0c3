//! What the engine tells of its paths: each change once, in its order, with why and how long.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use crate::segments::{Bed, Cable, frame_to, pt0};
use packtrain_proto::config::{Balance, LinkId};
use packtrain_proto::engine::{Event, PeerDownReason};
use packtrain_proto::stats::{PathBecause, PathState};
use packtrain_proto::time::Duration;

const MS: Duration = Duration::from_millis(1);

fn cables(n: u8) -> Vec<Cable> {
    (0..n)
        .map(|link| Cable::of(&[(0, link), (1, link)]))
        .collect()
}

type Change = (u8, Option<PathState>, PathBecause, Option<PathState>);

/// What host 0 was told of its paths since it was asked last, and how long the former states had lasted.
fn told(bed: &mut Bed) -> (Vec<Change>, Vec<Duration>) {
    let events = std::mem::take(&mut bed.events[0]);
    let changes = events.iter().filter_map(|event| match *event {
        Event::PathChanged {
            address,
            link,
            state,
            because,
            before,
            lasted,
            skipped,
            ..
        } => {
            assert_eq!((address, skipped), (pt0(1), 0), "{event:?}");
            Some(((link.0, state, because, before), lasted))
        }
        _ => None,
    });
    changes.unzip()
}

/// Of this link, each change begins where the one before has ended; gives the first and the last of the way.
#[track_caller]
fn way_of(changes: &[Change], link: u8) -> (Option<PathState>, Option<PathState>) {
    let of_link: Vec<_> = changes.iter().filter(|change| change.0 == link).collect();
    for pair in of_link.windows(2) {
        assert_eq!(pair[1].3, pair[0].1, "{changes:?}");
    }
    let (first, last) = (of_link.first(), of_link.last());
    (
        first.and_then(|change| change.3),
        last.and_then(|change| change.1),
    )
}

fn send_for(bed: &mut Bed, time: Duration) {
    for word in 0..(time.as_millis() / 5) as u64 {
        bed.send(0, &frame_to(pt0(1), pt0(0), word as u8));
        bed.run(5 * MS);
    }
}

#[test]
fn a_link_that_goes_and_comes_back_is_told_at_both_ends_with_the_reason_of_each() {
    use PathBecause::*;
    use PathState::*;
    let mut bed = Bed::new(2, &cables(2));
    bed.run(Duration::from_secs(4));
    let is_up = |event: &Event| matches!(event, Event::PeerUp { .. });
    let first_up = bed.events[0].iter().position(is_up).expect("it is up");
    let is_path = |event: &Event| matches!(event, Event::PathChanged { .. });
    let first_path = bed.events[0].iter().position(is_path);
    assert!(first_path.is_some_and(|at| at > first_up));
    let (changes, _) = told(&mut bed);
    for link in 0..2 {
        assert_eq!(way_of(&changes, link), (None, Some(Open)));
    }

    // The peer's end: it says so.
    bed.set_carrier(1, 1, false);
    bed.run(100 * MS);
    let (changes, lasted) = told(&mut bed);
    assert_eq!(changes, [(1, Some(Closed), PeerEndDead, Some(Open))]);
    assert!(lasted[0] > Duration::from_secs(2) && lasted[0] < Duration::from_secs(5));
    bed.set_carrier(1, 1, true);
    bed.run(Duration::from_secs(2));
    // It has to show for a while that it works.
    let (changes, _) = told(&mut bed);
    assert_eq!(way_of(&changes, 1), (Some(Closed), Some(Open)));
    let held =
        |change: &Change| change.1 == Some(Held) && matches!(change.2, Unproven | FailedBefore);
    assert!(changes.iter().any(held), "{changes:?}");

    // Our own: at once. And until something is heard on it, nobody knows whether the other end works.
    bed.set_carrier(0, 0, false);
    bed.run(MS);
    assert_eq!(told(&mut bed).0, [(0, Some(Closed), NoCarrier, Some(Open))]);
    bed.run(1500 * MS);
    bed.set_carrier(0, 0, true);
    bed.run(Duration::from_secs(2));
    let (changes, lasted) = told(&mut bed);
    assert_eq!(way_of(&changes, 0), (Some(Closed), Some(Open)));
    assert!(lasted[0] > 1400 * MS && lasted[0] < 2800 * MS, "{lasted:?}");

    // A link that leaves takes its path with it, and the last one the peer.
    bed.engines[0].remove_link(LinkId(1), bed.now);
    bed.run(MS);
    let (changes, _) = told(&mut bed);
    let gone: Vec<_> = changes.iter().map(|change| (change.0, change.1)).collect();
    assert_eq!(gone, [(1, None)]);
    bed.engines[0].remove_link(LinkId(0), bed.now);
    bed.run(MS);
    let is_down = |event: &Event| matches!(event, Event::PeerDown { reason, .. } if *reason == PeerDownReason::NoLink);
    assert!(bed.events[0].iter().any(is_down));
}

#[test]
fn a_link_that_is_silent_is_told_with_how_long_it_did_not_answer_and_when_it_does_again() {
    use PathState::{Open, Silent};
    let mut bed = Bed::new(2, &cables(2));
    bed.run(Duration::from_secs(4));
    send_for(&mut bed, 200 * MS);
    told(&mut bed);
    bed.cables[0].broken = true;
    send_for(&mut bed, 600 * MS);
    let (changes, _) = told(&mut bed);
    // It was asked, and beside it another one answers.
    let [(0, Some(Silent), PathBecause::NotHeard(silence), Some(Open))] = changes[..] else {
        panic!("{changes:?}");
    };
    assert!(silence >= 20 * MS && silence < 100 * MS, "{silence:?}");
    bed.cables[0].broken = false;
    send_for(&mut bed, Duration::from_secs(2));
    let (changes, lasted) = told(&mut bed);
    assert_eq!(way_of(&changes, 0), (Some(Silent), Some(Open)));
    assert!(lasted[0] > 200 * MS && lasted[0] < 1500 * MS, "{lasted:?}");
}

#[test]
fn where_nobody_asks_whether_it_lives_what_is_not_acknowledged_tells() {
    use PathState::{Open, Silent};
    let mut bed = Bed::with(2, &cables(2), |config| config.detection_time = None);
    bed.run(Duration::from_secs(4));
    send_for(&mut bed, 200 * MS);
    told(&mut bed);
    bed.cables[0].broken = true;
    send_for(&mut bed, 600 * MS);
    let (changes, _) = told(&mut bed);
    let [(0, Some(Silent), PathBecause::Unanswered(silence), Some(Open))] = changes[..] else {
        panic!("{changes:?}");
    };
    assert!(silence > 100 * MS && silence < 400 * MS, "{silence:?}");
    bed.cables[0].broken = false;
    send_for(&mut bed, Duration::from_secs(2));
    let (changes, _) = told(&mut bed);
    assert_eq!(way_of(&changes, 0), (Some(Silent), Some(Open)));
}

#[test]
fn a_backup_is_told_once_it_has_been_one_for_a_while_and_when_it_is_none() {
    use PathState::*;
    let mut bed = Bed::with(2, &cables(2), |config| {
        config.balance = Balance::ActiveBackup
    });
    bed.run(Duration::from_secs(6));
    let (changes, _) = told(&mut bed);
    let last_of = |link: u8| {
        let last = changes.iter().rev().find(|change| change.0 == link);
        last.map(|change| (change.1, change.2))
    };
    assert_eq!(last_of(0), Some((Some(Open), PathBecause::Works)));
    assert_eq!(last_of(1), Some((Some(Backup), PathBecause::NotPreferred)));
    bed.set_carrier(0, 0, false);
    bed.run(Duration::from_secs(2));
    let (changes, _) = told(&mut bed);
    assert_eq!(
        changes,
        [
            (0, Some(Closed), PathBecause::NoCarrier, Some(Open)),
            (1, Some(Open), PathBecause::Works, Some(Backup))
        ]
    );
}

#[test]
fn a_link_that_flaps_is_told_a_few_times_and_how_it_is_in_the_end() {
    let mut bed = Bed::new(2, &cables(2));
    bed.run(Duration::from_secs(4));
    told(&mut bed);
    // The peer's end: it says so each time.
    for flap in 0..100 {
        bed.set_carrier(1, 1, flap % 2 == 1);
        bed.run(50 * MS);
    }
    let is_path = |event: &&Event| matches!(event, Event::PathChanged { .. });
    let told_of = bed.events[0].iter().filter(is_path).count();
    assert!((4..=18).contains(&told_of), "{told_of}");
    bed.set_carrier(1, 1, false);
    bed.run(Duration::from_secs(2));
    let last = bed.events[0].iter().rev().find(is_path).unwrap();
    let Event::PathChanged { state, skipped, .. } = last else {
        panic!("{last:?}");
    };
    assert_eq!(*state, Some(PathState::Closed));
    assert!(*skipped > 5, "{skipped}");
}

#[test]
fn an_owner_that_asks_for_nothing_is_told_the_rest_later() {
    let mut bed = Bed::new(2, &cables(2));
    bed.run(Duration::from_secs(4));
    // Nobody takes events here: a flap each two minutes, for a day.
    let mut now = bed.now;
    for flap in 0..720 {
        now += Duration::from_secs(120);
        let state = packtrain_proto::config::LinkState {
            address: crate::segments::host(0, 1),
            mark: None,
            mtu: 1500,
            carrier: flap % 2 == 1,
            rate_bps: None,
        };
        bed.engines[0].handle_link_state(LinkId(1), state, now);
        while bed.engines[0].poll_transmit(now).is_some() {}
    }
    let mut paths = 0;
    while let Some(event) = bed.engines[0].poll_event() {
        paths += usize::from(matches!(event, Event::PathChanged { .. }));
    }
    assert!(paths <= 512, "{paths}");
}

#[test]
fn what_is_measured_of_a_path_is_told_and_of_one_that_was_never_used_nothing() {
    let mut bed = Bed::new(2, &cables(2));
    bed.run(Duration::from_secs(4));
    let measures = |bed: &Bed, side: usize, link: u8| {
        let peer = bed.engines[side].snapshot(bed.now).peers.remove(0);
        let path = peer.paths.into_iter().find(|path| path.link.0 == link);
        path.expect("a path").measures
    };
    for link in 0..2 {
        let seen = measures(&bed, 0, link);
        assert_eq!((seen.rate_age, seen.tx_loss_ppm), (None, None));
    }
    // Of what goes by the first link, each tenth frame is lost.
    let mut n = 0;
    bed.lose = Box::new(move |side, link, frame| {
        let counts = side == 0 && link == LinkId(0) && frame.len() > 1000;
        n += u32::from(counts);
        counts && n % 10 == 0
    });
    let mut large = frame_to(pt0(1), pt0(0), 1);
    large.resize(1400, 7);
    for _ in 0..2000 {
        bed.send(0, &large);
        bed.run(MS);
    }
    let out: Vec<_> = (0..2).map(|link| measures(&bed, 0, link)).collect();
    let came: Vec<_> = (0..2).map(|link| measures(&bed, 1, link)).collect();
    assert!(out.iter().all(|seen| seen.tx_later.is_some()));
    for (ours, theirs) in out.iter().zip(&came) {
        let (tx, rx) = (ours.tx_loss_ppm.unwrap(), theirs.rx_loss_ppm.unwrap());
        // Both ends count the same trains, over seconds that need not be quite the same.
        assert!(tx.abs_diff(rx) < 20_000, "{out:?}\n{came:?}");
    }
    assert!(out[0].tx_loss_ppm.unwrap() > 20_000, "{out:?}");
    assert_eq!(out[1].tx_loss_ppm, Some(0));
}

/// Trains leave by both links in turn; what goes by the second is given to the peer later.
#[test]
fn a_link_whose_trains_come_later_than_the_others_is_known_at_the_end_that_they_come_to() {
    const LATER: Duration = Duration::from_millis(20);
    let mut bed = Bed::with(2, &cables(2), |config| {
        config.balance = Balance::RoundRobin;
    });
    bed.run(Duration::from_secs(4));
    let kept = Rc::new(RefCell::new(VecDeque::new()));
    let keeper = kept.clone();
    let clock = Rc::new(Cell::new(bed.now));
    let at = clock.clone();
    bed.lose = Box::new(move |side, link, frame| {
        let is_late = side == 0 && link == LinkId(1) && frame[12..15] != [0x88, 0xb5, 0x12];
        if is_late {
            keeper
                .borrow_mut()
                .push_back((at.get() + LATER, frame.to_vec()));
        }
        is_late
    });
    for n in 0..4000u32 {
        clock.set(bed.now);
        bed.send(0, &frame_to(pt0(1), pt0(0), n as u8));
        bed.run(MS);
        let now = bed.now;
        while kept.borrow().front().is_some_and(|(at, _)| *at <= now) {
            let (_, frame) = kept.borrow_mut().pop_front().unwrap();
            bed.inject(1, 1, &frame);
        }
    }
    let seen = bed.engines[1].snapshot(bed.now).peers.remove(0);
    let later: Vec<Duration> = (0..2)
        .map(|link| {
            let path = seen.paths.iter().find(|path| path.link.0 == link).unwrap();
            path.measures.rx_later.unwrap()
        })
        .collect();
    assert!(later[0] < 2 * MS, "{later:?}");
    // A train by the other link left a millisecond later.
    assert!(later[1] > 12 * MS && later[1] < 24 * MS, "{later:?}");
    // The sender knows of it by the round trips.
    let sent = bed.engines[0].snapshot(bed.now).peers.remove(0);
    let told = sent.paths.iter().find(|path| path.link.0 == 1).unwrap();
    let tx_later = told.measures.tx_later.unwrap();
    assert!(tx_later > 15 * MS && tx_later < 25 * MS, "{tx_later:?}");
}
