//! Classes that say what becomes of trains that wires lose: nothing of one may be, of another it is not worth the wait.

use packtrain_proto::class::{Action, Class, Repairs};
use packtrain_proto::config::Balance;
use packtrain_proto::stats::{DropReason, PathState, ReplaySnapshot};
use packtrain_proto::time::Duration;
use packtrain_sim::net::network::WireId;
use packtrain_sim::net::wire::WireConfig;
use packtrain_sim::simulator::{Event, StationId};

use crate::line::{Cable, Line};
use crate::{MS, SECOND};

/// What matches so.
fn class(matches: &str, repairs: Repairs) -> Vec<Class> {
    let class = Class {
        name: "own".parse().expect("a right name"),
        matches: matches.parse().expect("a right match"),
        links: Vec::new(),
        action: Action {
            repairs,
            ..Action::default()
        },
    };
    vec![class]
}

fn line(cables: &[Cable], repairs: Repairs) -> Line {
    let mut line = Line::new(cables, 10, 1000, |_| {});
    line.give(class("any", repairs), Duration::ZERO);
    line
}

/// From here on nothing that is sent by this cable arrives, and nobody is told.
fn goes_silent(line: &mut Line, cable: usize) -> WireId {
    let away = WireId {
        segment: cable,
        wire: 0,
    };
    let now = line.simulator.now();
    line.simulator.network.cut(away, false, now);
    away
}

/// 2,000 frames a second for three seconds, 16 Mbit/s: how many of a million are lost, and what went again.
fn lost_ppm(cables: &[Cable], repairs: Repairs) -> (u64, ReplaySnapshot) {
    let mut line = line(cables, repairs);
    line.send(5 * MS, 3 * SECOND, 3 * SECOND);
    let checkers = &line.simulator.checkers;
    let lost = checkers.frames_sent() - checkers.frames_delivered;
    let replay = line.sender().replay;
    assert_eq!(replay.waiting_trains + replay.kept_trains, 0);
    (lost * 1_000_000 / checkers.frames_sent(), replay)
}

#[test]
fn a_lossless_class_loses_nothing_over_one_wire_nor_over_two_however_many_they_lose() {
    for loses in [0.01, 0.1, 0.3] {
        let one = Cable::new(50, 5).loses(loses);
        let (lost, replay) = lost_ppm(&[one], Repairs::Lossless);
        assert_eq!(lost, 0, "of one that loses {loses}: {replay:?}");
        assert!(replay.repaired > 50, "{replay:?}");
        let (lost, replay) = lost_ppm(&[one, Cable::new(20, 30).loses(loses)], Repairs::Lossless);
        assert_eq!(lost, 0, "of two that lose {loses}: {replay:?}");
    }
}

#[test]
fn by_one_wire_nothing_goes_again_unless_a_class_asks_for_it_or_the_wire_is_seen_to_lose() {
    let one = [Cable::new(50, 5).loses(0.02)];
    let (lost, replay) = lost_ppm(&one, Repairs::Off);
    assert!((15_000..25_000).contains(&lost), "{lost}");
    assert_eq!(replay.replayed, 0);
    // Not before it was.
    let (lost, replay) = lost_ppm(&one, Repairs::Line);
    assert!(lost < 4000 && replay.repaired > 50, "{lost}, {replay:?}");
    // A round trip of 10 ms, and half of one for the copy: there is time for one or two.
    let (lost, replay) = lost_ppm(&one, Repairs::Within(50 * MS));
    assert!(lost < 2000 && replay.repaired > 50, "{lost}, {replay:?}");
    let (lost, _) = lost_ppm(&one, Repairs::Within(5 * MS));
    assert!((15_000..25_000).contains(&lost), "in no time: {lost}");
}

#[test]
fn what_is_not_to_go_again_does_not_though_the_line_repairs() {
    // Neither carries all.
    let two = [Cable::new(12, 5), Cable::new(12, 5).loses(0.02)];
    let (lost, replay) = lost_ppm(&two, Repairs::Line);
    assert!(lost < 200 && replay.repaired > 30, "{lost}, {replay:?}");
    let (lost, replay) = lost_ppm(&two, Repairs::Off);
    assert!(lost > 5000, "{lost}");
    assert_eq!(replay.replayed, 0, "{replay:?}");
}

#[test]
fn what_waits_for_a_lossless_class_is_nothing_else() {
    // Every second flow is one of IPv6.
    let mut line = Line::new(&[Cable::new(50, 40).loses(0.05)], 10, 1000, |_| {});
    line.give(class("ip6", Repairs::Lossless), Duration::ZERO);
    line.send(5 * MS, 3 * SECOND, 3 * SECOND);
    let hold = line.receiver().peers[0].hold.clone();
    // Who waits does so for a round trip of 80 ms and half of one; all others for no more than frames that overtake take.
    let long = hold.buckets.iter().filter(|bucket| bucket.below > 60 * MS);
    let long = long.map(|bucket| bucket.trains).sum::<u64>() * 100 / hold.trains;
    assert!((20..=52).contains(&long), "{long} of a hundred, {hold:?}");
}

#[test]
fn questions_that_are_lost_hold_a_lossless_class_up_no_longer_than_what_goes_again() {
    let mut line = line(&[Cable::new(50, 5).loses(0.05)], Repairs::Lossless);
    line.begin(5 * MS, 3 * SECOND);
    for n in 0..150 {
        let station = StationId(0);
        let at = line.simulator.now() + 20 * MS * n;
        line.simulator.queue.push(at, Event::Drain { station });
    }
    line.simulator.run_for(6 * SECOND);
    let checkers = &line.simulator.checkers;
    assert_eq!(checkers.violation(), None);
    assert_eq!(checkers.frames_delivered, checkers.frames_sent());
    // A question that is lost is not kept, and so not waited for.
    let hold = line.receiver().peers[0].hold.clone();
    assert!(hold.max < 200 * MS, "{hold:?}");
}

#[test]
fn a_wire_that_comes_to_answer_later_than_any_silence_is_learned_and_loses_nothing() {
    let mut line = line(&[Cable::new(20, 5)], Repairs::Lossless);
    line.send(10 * MS, 2 * SECOND, SECOND);
    let replayed = line.sender().replay.replayed;
    for wire in 0..2 {
        let id = WireId { segment: 0, wire };
        let far = WireConfig::perfect(20_000_000, 300 * MS);
        line.simulator.network.wire_mut(id).set(&far);
    }
    line.send(200 * MS, 10 * SECOND, 5 * SECOND);
    let (sender, checkers) = (line.sender(), &line.simulator.checkers);
    assert_eq!(checkers.frames_delivered, checkers.frames_sent());
    let round_trip = sender.peers[0].paths[0].round_trip;
    assert!(round_trip > Some(500 * MS), "{round_trip:?}");
    // What was out went again a few times, until that was learned.
    let again = sender.replay.replayed - replayed;
    assert!(again < 200, "{again}");
}

#[test]
fn one_of_two_wires_that_was_silent_for_long_is_used_again() {
    let cables = [Cable::new(50, 1), Cable::new(50, 1)];
    let mut line = Line::new(&cables, 10, 1000, |config| {
        config.balance = Balance::RoundRobin;
    });
    line.give(class("any", Repairs::Lossless), Duration::ZERO);
    line.begin(5 * MS, 8 * SECOND);
    line.simulator.run_for(SECOND);
    let away = goes_silent(&mut line, 1);
    // By then its last trains are further back than anybody remembers.
    line.simulator.run_for(3 * SECOND);
    assert_eq!(line.states()[1], PathState::Silent);
    line.simulator.network.mend(away);
    line.simulator.run_for(10 * SECOND);
    assert_eq!(line.states(), [PathState::Open; 2]);
    let checkers = &line.simulator.checkers;
    assert_eq!(checkers.violation(), None);
    assert_eq!(checkers.frames_delivered, checkers.frames_sent());
}

#[test]
fn a_wire_that_is_silent_for_a_while_takes_nothing_of_a_lossless_class_with_it() {
    let mut line = line(&[Cable::new(50, 5)], Repairs::Lossless);
    line.begin(5 * MS, 3 * SECOND);
    line.simulator.run_for(SECOND);
    let away = goes_silent(&mut line, 0);
    line.simulator.run_for(400 * MS);
    line.simulator.network.mend(away);
    line.simulator.run_for(5 * SECOND);
    let checkers = &line.simulator.checkers;
    assert_eq!(checkers.violation(), None);
    // What stood in a queue for too long meanwhile has never left.
    let dropped = line.sender().drops.get(DropReason::Codel);
    assert_eq!(checkers.frames_delivered + dropped, checkers.frames_sent());
    assert!(dropped < checkers.frames_sent() / 100, "{dropped}");
}
