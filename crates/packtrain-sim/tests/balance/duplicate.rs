//! What goes by two wires: it is there as soon as by the better one, and is lost only where both lose it.

use packtrain_proto::config::Balance;

use crate::line::{Cable, Line};
use crate::{MS, SECOND};

/// Of 1,000 frames a second for four seconds, 8 Mbit/s: those that did not come; and how many trains found no second wire.
fn lost(cables: &[Cable], balance: Balance, repairs: bool) -> (u64, u64) {
    let mut line = Line::new(cables, 10, 1000, |config| {
        config.balance = balance;
        if !repairs {
            config.limits.repair_within = None;
        }
    });
    line.send(10 * MS, 4 * SECOND, SECOND);
    let checkers = &line.simulator.checkers;
    let lost = checkers.frames_sent() - checkers.frames_delivered;
    (lost, line.sender().replay.not_duplicated)
}

#[test]
fn what_the_quick_wire_loses_comes_by_the_other_however_much_later_that_is() {
    for later in [0, 5, 25, 80] {
        let cables = [Cable::new(30, 1).loses(0.05), Cable::new(30, 1 + later)];
        for repairs in [false, true] {
            // A wire is given little before it is known how much it carries, the less the longer it is.
            let (lost, once) = lost(&cables, Balance::Duplicate, repairs);
            assert!(lost * 10 <= once, "{later} ms, {repairs}: {lost}, {once}");
            assert!(once <= 8 * later, "{later} ms: {once}");
        }
    }
    let cables = [Cable::new(30, 1).loses(0.05), Cable::new(30, 1)];
    let (lost, _) = lost(&cables, Balance::RoundRobin, false);
    assert!(lost > 20, "what there is to lose: {lost}");
}

#[test]
fn where_both_lose_only_what_both_have_lost_is() {
    let cables = [1, 10].map(|delay| Cable::new(30, delay).loses(0.03));
    let (lost, _) = lost(&cables, Balance::Duplicate, false);
    // 4,000 frames, of which one in a thousand is lost twice.
    assert!(lost <= 15, "{lost}");
}
