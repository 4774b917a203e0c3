//! The ways to balance, tiers and weights, on wires whose rates and delays are known: what each link carries.

mod admission;
mod duplicate;
mod lanes;
mod line;
mod lossless;
mod repair;
mod router;
mod sizes;

use line::{Cable, Line};
use packtrain_proto::config::Balance;
use packtrain_proto::stats::PathState;
use packtrain_proto::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

/// What each link sent in between, bytes.
fn rise(before: &[u64], after: &[u64]) -> Vec<u64> {
    after.iter().zip(before).map(|(a, b)| a - b).collect()
}

fn share(of: u64, all: &[u64]) -> f64 {
    of as f64 / all.iter().sum::<u64>() as f64
}

/// Ten flows, together 8 Mbit/s of a line that can do far more.
fn at_ease(cables: &[Cable], balance: Balance) -> Vec<u64> {
    let mut line = Line::new(cables, 10, 1000, |config| config.balance = balance);
    let before = line.sent();
    line.send(10 * MS, 3 * SECOND, SECOND);
    rise(&before, &line.sent())
}

#[test]
fn a_wire_that_answers_later_than_any_silence_is_measured_all_the_same() {
    for delay in [90, 300, 700, 1500] {
        let mut line = Line::new(&[Cable::new(20, delay)], 10, 1000, |_| {});
        line.send(10 * MS, 20 * SECOND, 5 * SECOND);
        let path = line.sender().peers[0].paths[0].clone();
        let round_trip = path.round_trip.expect("it was answered");
        assert!(round_trip >= Duration::from_millis(2 * delay), "{path:?}");
        let checkers = &line.simulator.checkers;
        let part = checkers.frames_delivered as f64 / checkers.frames_sent() as f64;
        // Until it is measured it is given little.
        assert!(part > 0.8, "{delay} ms: {part}, {path:?}");
    }
}

#[test]
fn weighted_links_carry_bytes_by_their_weights_while_they_have_room() {
    let cables = [3, 1, 2].map(|weight| Cable::new(100, 1).weight(weight));
    let sent = at_ease(&cables, Balance::Weighted);
    for (at, expected) in [3.0, 1.0, 2.0].into_iter().enumerate() {
        let share = share(sent[at], &sent);
        assert!((share - expected / 6.0).abs() < 0.01, "{sent:?}");
    }
}

#[test]
fn a_weight_that_a_link_is_too_slow_for_leaves_the_rest_to_the_others() {
    // 60 Mbit/s for links of 10 and 100, of which the slow one should have nine tenths.
    let cables = [Cable::new(10, 1).weight(9), Cable::new(100, 1)];
    let mut line = Line::new(&cables, 10, 1000, |config| {
        config.balance = Balance::Weighted;
    });
    let before = line.sent();
    line.send(MS * 4 / 3, 3 * SECOND, SECOND);
    let sent = rise(&before, &line.sent());
    let slow_bps = sent[0] * 8 / 3;
    assert!((8_500_000..=10_500_000).contains(&slow_bps), "{sent:?}");
    let frames = line.simulator.checkers.frames_delivered;
    let all = line.simulator.checkers.frames_sent();
    assert!(frames > all * 99 / 100, "{frames} of {all}");
}

#[test]
fn hosts_whose_flows_keep_to_links_use_all_of_them_and_one_for_each() {
    let cables = [Cable::new(100, 1); 4];
    // One pair of MAC addresses and two EtherTypes; two pairs of IP addresses; ten of ports.
    for (balance, most) in [
        (Balance::HashMac, 2),
        (Balance::HashIp, 10),
        (Balance::HashPort, 10),
    ] {
        let sent = at_ease(&cables, balance);
        let used = sent.iter().filter(|&&bytes| bytes > 100_000).count();
        assert!(used >= 1 && used <= most.min(4), "{balance:?}: {sent:?}");
        // A flow has a tenth of it, and no link a part of one.
        let flow = sent.iter().sum::<u64>() as f64 / 10.0;
        for &bytes in &sent {
            let flows = (bytes as f64 / flow).round();
            let rest = (bytes as f64 - flows * flow).abs() / flow;
            assert!(rest < 0.1, "{balance:?}: {sent:?}");
        }
    }
    let ports = at_ease(&cables, Balance::HashPort);
    assert!(
        ports.iter().filter(|&&bytes| bytes > 100_000).count() >= 3,
        "{ports:?}"
    );
}

/// Flows of a link that is full wait for it; those of the others do not wait with them.
#[test]
fn where_flows_keep_to_links_no_link_waits_for_the_frames_of_another() {
    let cables = [Cable::new(10, 1), Cable::new(10, 1)];
    let mut line = Line::new(&cables, 40, 1000, |config| {
        config.balance = Balance::HashPort;
    });
    let before = line.sent();
    // Twice what both can carry.
    line.begin(8 * MS, 4 * SECOND);
    line.simulator.run_for(4 * SECOND);
    let sent = rise(&before, &line.sent());
    for bytes in &sent {
        let bps = bytes * 8 / 4;
        assert!(bps > 9_300_000, "{sent:?}");
    }
    line.simulator.run_for(2 * SECOND);
    assert_eq!(line.simulator.checkers.violation(), None);
}

#[test]
fn a_higher_tier_carries_nothing_while_a_lower_one_works_however_full_that_is() {
    for balance in Balance::ALL {
        let cables = [Cable::new(10, 1), Cable::new(100, 1).tier(2)];
        let mut line = Line::new(&cables, 10, 1000, |config| config.balance = balance);
        let (before, changes) = (line.sent(), line.tier_changes());
        line.send(4 * MS, SECOND, 2 * SECOND);
        let sent = rise(&before, &line.sent());
        // Hellos and acknowledgements are no trains.
        assert!(
            sent[1] < 10_000 && sent[0] > 1_000_000,
            "{balance:?}: {sent:?}"
        );
        assert_eq!(
            line.states(),
            [PathState::Open, PathState::Backup],
            "{balance:?}"
        );
        assert_eq!(line.tier_changes(), changes);
    }
}

#[test]
fn with_a_spill_it_carries_what_the_lower_ones_have_no_room_for_and_no_more() {
    let cables = [Cable::new(10, 1), Cable::new(100, 1).tier(2)];
    for balance in Balance::ALL
        .into_iter()
        .filter(|balance| !balance.keeps_flows())
    {
        let spilled = |gap: Duration| {
            let mut line = Line::new(&cables, 10, 1000, |config| {
                config.balance = balance;
                config.tier_spill = true;
            });
            let before = line.sent();
            line.send(gap, 2 * SECOND, SECOND);
            let sent = rise(&before, &line.sent());
            [sent[0] * 8 / 2, sent[1] * 8 / 2]
        };
        // 8 Mbit/s, and 40.
        let [_, over] = spilled(10 * MS);
        assert!(over < 200_000, "{balance:?}: {over}");
        let [first, over] = spilled(2 * MS);
        assert!(
            first > 9_000_000 && over > 28_000_000,
            "{balance:?}: {first} {over}"
        );
    }
}

#[test]
fn a_tier_takes_over_when_the_one_below_dies_and_gives_back_and_each_change_is_told() {
    let cables = [
        Cable::new(100, 1),
        Cable::new(10, 1).tier(2),
        Cable::new(10, 1).tier(3),
    ];
    let mut line = Line::new(&cables, 4, 500, |_| {});
    line.begin(10 * MS, 10 * SECOND);
    line.simulator.run_for(SECOND);
    // A hello by another one may have come first.
    let at_start = line.tier_changes().len();
    let changes = |line: &Line| line.tier_changes()[at_start..].to_vec();
    let tier = |line: &mut Line, tier| {
        let mut settings = cables[0].settings;
        settings.tier = tier;
        line.set(0, settings);
        line.simulator.run_for(SECOND);
    };
    tier(&mut line, 9);
    assert_eq!(changes(&line), [(1, 2)]);
    tier(&mut line, 1);
    assert_eq!(changes(&line), [(1, 2), (2, 1)]);
    // Both ends of the first cable, and of the second.
    for cable in [0, 1] {
        for port in 0..2 {
            let event = packtrain_sim::simulator::Event::Unplug {
                station: packtrain_sim::simulator::StationId(port),
                port: packtrain_sim::net::network::PortId {
                    segment: cable,
                    port,
                },
            };
            line.simulator.queue.push(line.simulator.now(), event);
        }
        line.simulator.run_for(SECOND);
    }
    assert_eq!(changes(&line), [(1, 2), (2, 1), (1, 2), (2, 3)]);
    line.simulator.run_for(6 * SECOND);
    let checkers = &line.simulator.checkers;
    assert_eq!(checkers.violation(), None);
    assert_eq!(
        checkers.frames_delivered,
        checkers.frames_sent(),
        "nothing was lost by it"
    );
}
