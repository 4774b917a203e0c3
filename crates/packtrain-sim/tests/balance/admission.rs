//! A link that would only delay the others: the line is no worse than its best link alone.

use packtrain_proto::config::Balance;
use packtrain_proto::time::Duration;

use super::line::{Cable, Line};
use super::{MS, SECOND, rise};

/// What came of so much offered: Mbit/s, and how long trains were held for their order.
#[derive(Debug)]
struct Outcome {
    mbit: f64,
    p50: Duration,
    p99: Duration,
    /// Of all trains.
    held: f64,
}

fn outcome(cables: &[Cable], balance: Balance, offered_mbit: u64, time: Duration) -> Outcome {
    const FLOWS: u64 = 10;
    let bits = 8 * 1000 * FLOWS;
    let mut line = Line::new(cables, FLOWS as usize, 1000 - 12, |config| {
        config.balance = balance
    });
    let before = line.simulator.checkers.frames_delivered;
    line.begin(Duration::from_nanos(bits * 1000 / offered_mbit), time);
    line.simulator.run_for(time);
    let frames = line.simulator.checkers.frames_delivered - before;
    line.simulator.run_for(2 * SECOND);
    assert_eq!(line.simulator.checkers.violation(), None);
    let hold = line.receiver().peers[0].hold.clone();
    Outcome {
        mbit: frames as f64 * 8000.0 / time.as_nanos() as f64 * 1000.0,
        p50: hold.p50,
        p99: hold.p99,
        held: hold.held_trains as f64 / hold.trains as f64,
    }
}

fn are_no_worse(fars: &[Cable], by: impl Fn(usize, &Outcome, &Outcome)) {
    for balance in [
        Balance::EarliestFinish,
        Balance::RoundRobin,
        Balance::Weighted,
    ] {
        for offered_mbit in [50, 90, 150] {
            let near = Cable::new(100, 0);
            let alone = outcome(&[near], balance, offered_mbit, 6 * SECOND);
            for (index, &far) in fars.iter().enumerate() {
                let both = outcome(&[near, far], balance, offered_mbit, 6 * SECOND);
                println!(
                    "{far:?}, {balance:?}, {offered_mbit} Mbit/s: alone {alone:?}, both {both:?}"
                );
                assert!(both.mbit > alone.mbit * 0.995, "{both:?}, alone {alone:?}");
                by(index, &alone, &both);
            }
        }
    }
}

/// It is found out by what it carries first, and then the line is as without it.
fn neither_takes_nor_delays_anything(far: Cable) {
    are_no_worse(&[far], |_, _, both| {
        // A link has to carry some until it is known.
        assert!(both.p50.is_zero() && both.held < 0.1, "{far:?}: {both:?}");
    });
}

#[test]
fn a_very_slow_link_far_away_neither_takes_nor_delays_anything() {
    neither_takes_nor_delays_anything(Cable::new(1, 150));
}

#[test]
fn nor_does_a_slow_one_far_away() {
    neither_takes_nor_delays_anything(Cable::new(10, 100));
}

#[test]
fn one_that_adds_as_much_as_it_delays_is_used() {
    let fars = [Cable::new(100, 20), Cable::new(20, 0), Cable::new(10, 0)];
    let bounds = [(130.0, 25 * MS), (108.0, 4 * MS), (99.0, 6 * MS)];
    are_no_worse(&fars, |index, alone, both| {
        let (least_mbit, p99_max) = bounds[index];
        let is_full = alone.mbit > 92.0;
        assert!(!is_full || both.mbit > least_mbit, "{index}: {both:?}");
        assert!(both.p99 < p99_max, "{index}: {both:?}");
    });
}

#[test]
fn a_wire_that_carries_less_than_its_ends_say_is_used_for_what_it_carries() {
    for said in [20, 100, 1000] {
        let cables = [Cable::new(100, 1), Cable::new(20, 1).says(said)];
        let mut line = Line::new(&cables, 10, 1400, |_| {});
        line.send(2 * MS, 2 * SECOND, SECOND);
        let before = (line.sent(), line.simulator.checkers.frames_delivered);
        // 113 Mbit/s of frames and trains, of 120.
        line.send(MS, 4 * SECOND, SECOND);
        let sent = rise(&before.0, &line.sent());
        let share = sent[1] as f64 / (sent[0] + sent[1]) as f64;
        assert!((0.10..0.19).contains(&share), "{said}: {sent:?}");
        let came = line.simulator.checkers.frames_delivered - before.1;
        assert!(came >= 39_600, "{said}: {came} of 40,000");
    }
}
