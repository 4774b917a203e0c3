//! What lossy wires cost, with and without repair.

use packtrain_proto::config::Config;
use packtrain_proto::time::Duration;

use crate::line::{Cable, Line};
use crate::{MS, SECOND};

struct Came {
    /// Of all frames.
    lost: f64,
    repaired: u64,
    /// Of the trains that arrived, a hundredth was held for longer.
    held_p99: Duration,
    held_max: Duration,
}

/// 5,000 frames a second for four seconds, 40 Mbit/s.
fn over(cables: &[Cable], set: impl Fn(&mut Config)) -> Came {
    let mut line = Line::new(cables, 10, 1000, set);
    line.send(2 * MS, 4 * SECOND, SECOND);
    let checkers = &line.simulator.checkers;
    let (sent, came) = (
        checkers.frames_sent() as f64,
        checkers.frames_delivered as f64,
    );
    let hold = line.receiver().peers[0].hold.clone();
    Came {
        lost: 1.0 - came / sent,
        repaired: line.sender().replay.repaired,
        held_p99: hold.p99,
        held_max: hold.max,
    }
}

fn without(config: &mut Config) {
    config.limits.repair_within = None;
}

#[test]
fn beside_a_clean_wire_one_that_loses_a_hundredth_loses_next_to_nothing() {
    let cables = [Cable::new(30, 1), Cable::new(30, 1).loses(0.01)];
    let lost = over(&cables, without).lost;
    assert!(lost > 0.003, "what there is to repair: {lost}");
    let came = over(&cables, |_| {});
    assert!(came.lost <= 0.0001 && came.repaired > 40, "{}", came.lost);
    // A round trip of 2 ms, an acknowledgement, and what stands before the copy.
    assert!(came.held_max < 25 * MS, "{:?}", came.held_max);
    assert!(came.held_p99 < 12 * MS, "{:?}", came.held_p99);
}

#[test]
fn nor_do_two_that_both_lose_and_far_ones_as_far_as_there_is_time() {
    let cables = [1, 5].map(|delay| Cable::new(40, delay).loses(0.02));
    let came = over(&cables, |_| {});
    // What goes again is lost as well, one time in fifty, and goes once more.
    assert!(came.lost <= 0.0005, "{}", came.lost);
    // Of a round trip of 100 ms nothing is repaired in 50, and all in 200; nobody waits in vain.
    let far = [50, 52].map(|delay| Cable::new(40, delay).loses(0.01));
    let came = over(&far, |_| {});
    assert_eq!(came.repaired, 0);
    let patient = over(&far, |config| {
        config.limits.repair_within = Some(200 * MS);
    });
    // The first come too late for a receiver that does not know yet how long it takes.
    assert!(patient.lost <= 0.003, "{}", patient.lost);
    assert!(patient.repaired > 40, "{}", patient.repaired);
}

#[test]
fn what_no_wire_loses_is_not_sent_again_however_full_they_are() {
    for delays in [[0, 10], [0, 0], [5, 50]] {
        let cables = delays.map(|delay| Cable::new(40, delay));
        let mut line = Line::new(&cables, 10, 1400, |_| {});
        // 90 Mbit/s, for what carries 80.
        line.send(MS * 5 / 4, 3 * SECOND, SECOND);
        let replay = line.sender().replay;
        assert_eq!(replay.repaired, 0, "{delays:?}: {replay:?}");
    }
}
