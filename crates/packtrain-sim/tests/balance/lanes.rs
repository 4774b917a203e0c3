//! Classes that go by a wire of their own: what that is late with holds up nothing else.

use packtrain_proto::class::{Action, Class};
use packtrain_proto::config::LinkId;
use packtrain_proto::stats::{DropReason, PathState};
use packtrain_proto::time::Duration;

use crate::line::{Cable, Line};
use crate::{MS, SECOND, rise};

/// Every second flow is one of IPv6.
fn class(links: &[u8]) -> Vec<Class> {
    let class = Class {
        name: "own".parse().expect("a right name"),
        matches: "ip6".parse().expect("a right match"),
        links: Vec::new(),
        action: Action {
            links: links.iter().map(|&link| LinkId(link)).collect(),
            ..Action::default()
        },
    };
    vec![class]
}

/// All but what was taken out of a queue that had stood too long: a wire is given little before it is known how much it carries.
fn assert_whole(line: &Line) {
    let checkers = &line.simulator.checkers;
    let dropped = line.sender().drops.get(DropReason::Codel);
    assert_eq!(checkers.frames_delivered + dropped, checkers.frames_sent());
    assert!(dropped * 100 < checkers.frames_sent(), "{dropped}");
}

/// 16 Mbit/s of which half goes by a wire that is 80 ms late: of how many frames of a hundred is one held for longer than 5 ms.
fn held_percent(links: &[u8]) -> u64 {
    let cables = [Cable::new(100, 1), Cable::new(30, 80)];
    let mut line = Line::new(&cables, 10, 1000, |_| {});
    line.give(class(links), Duration::ZERO);
    line.send(5 * MS, 4 * SECOND, SECOND);
    assert_whole(&line);
    let hold = line.receiver().peers[0].hold.clone();
    let long = hold.buckets.iter().filter(|bucket| bucket.below > 6 * MS);
    long.map(|bucket| bucket.trains).sum::<u64>() * 100 / hold.trains
}

#[test]
fn what_goes_by_a_late_wire_alone_holds_up_nothing_else() {
    // Else all wait for it, or nobody uses it.
    assert_eq!(held_percent(&[1]), 0);
}

#[test]
fn each_wire_carries_what_is_its_own_and_the_rest_is_balanced() {
    let cables = [Cable::new(100, 1), Cable::new(100, 1), Cable::new(100, 1)];
    let mut line = Line::new(&cables, 10, 1000, |_| {});
    line.give(class(&[2]), Duration::ZERO);
    line.simulator.run_for(MS);
    let before = line.sent();
    line.send(5 * MS, 3 * SECOND, SECOND);
    let sent = rise(&before, &line.sent());
    // Half of it is the class's, and of the other half the third wire takes what comes to it.
    let all: u64 = sent.iter().sum();
    assert!(sent[2] * 2 > all && sent[0] > 0 && sent[1] > 0, "{sent:?}");
    assert_whole(&line);
}

#[test]
fn a_wire_that_no_other_class_would_use_is_used_by_the_class_that_names_it() {
    // Far too late for all others, and of a higher tier.
    let cables = [Cable::new(100, 1), Cable::new(5, 150).tier(2)];
    let mut line = Line::new(&cables, 4, 1000, |_| {});
    line.give(class(&[1]), Duration::ZERO);
    let before = line.sent();
    line.send(10 * MS, 3 * SECOND, SECOND);
    let sent = rise(&before, &line.sent());
    let bps = sent[1] * 8 / 3;
    assert!((1_600_000..1_900_000).contains(&bps), "{sent:?}");
    assert_eq!(line.states(), [PathState::Open, PathState::Backup]);
}

/// The checkers see to the order of each flow.
#[test]
fn flows_that_change_their_wires_while_they_send_overtake_nothing_and_lose_nothing() {
    let cables = [Cable::new(50, 1), Cable::new(30, 60), Cable::new(20, 20)];
    let mut line = Line::new(&cables, 10, 1000, |_| {});
    let sets: [&[u8]; 5] = [&[1], &[0], &[], &[2, 1], &[0]];
    for (n, links) in sets.iter().cycle().take(20).enumerate() {
        line.give(class(links), n as u32 * 200 * MS);
    }
    line.send(2 * MS, 4 * SECOND + 100 * MS, SECOND);
    assert_whole(&line);
}

/// How long trains of 1,000 frames a second are held at most, beside a class that sends so many a second by a wire of 2 Mbit/s of its own,
/// when the other host does not run for so long, ten times.
fn held_max_beside(per_second: u32, stop: Duration) -> Duration {
    let cables = [Cable::new(1000, 0), Cable::new(2, 0)];
    let mut line = Line::new(&cables, 2, 200, |config| {
        config.detection_time = Some(40 * MS);
    });
    line.give(class(&[1]), Duration::ZERO);
    line.simulator.run_for(MS);
    line.begin_flow(1, Duration::ZERO, SECOND / per_second, 5 * SECOND);
    line.begin_flow(0, SECOND, MS, 4 * SECOND);
    for n in 0..10 {
        line.stop(1, SECOND + 317 * n * MS, stop);
    }
    line.simulator.run_for(7 * SECOND);
    assert_eq!(line.simulator.checkers.violation(), None);
    line.receiver().peers[0].hold.max
}

/// Nobody can tell at once whether the host does not run or the quick wire has died. What went by the slow one meanwhile held up all that
/// came by the quick one, for several times as long as the host was away.
#[test]
fn a_slow_wire_delays_nobody_because_the_other_host_was_away_for_a_moment() {
    // A quarter of what the wire carries, three quarters, and more than all.
    for per_second in [250, 750, 2400] {
        for stop in [2, 4, 6, 8, 10, 15, 20, 30] {
            let held = held_max_beside(per_second, stop * MS);
            assert!(held < MS, "{per_second}, {stop} ms: {held:?}");
        }
    }
}
