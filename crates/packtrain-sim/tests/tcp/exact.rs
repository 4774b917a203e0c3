//! What can be reckoned with a pencil, to the nanosecond.

use packtrain_proto::time::Duration;
use packtrain_sim::tcp::sender::SenderConfig;

use crate::support::{
    EVEN_INTERFACE_NS, EVEN_OPENED, EVEN_RTT, EVEN_SERVICE_NS, FRAME_BYTES, Line, MSS, at, cwnd_at,
    ms, ns,
};

#[test]
fn slow_start_doubles_the_window_each_round_trip() {
    let dumbbell = Line::sends(2000).run();
    let sender = dumbbell.sender(0);
    assert_eq!(sender.opened, Some(at(EVEN_OPENED)));
    for round in 0..6 {
        let end = at(EVEN_OPENED + EVEN_RTT * (round + 1) - ns(1));
        assert_eq!(cwnd_at(&dumbbell, end), 10 << round, "round {round}");
    }
    assert_eq!(sender.rtt().min(), Some(EVEN_OPENED));
    assert_eq!(sender.counters.retransmitted, 0);
}

#[test]
fn delayed_acknowledgements_do_not_slow_the_doubling_down() {
    let line = Line {
        delayed_ack: Some(ms(40)),
        ..Line::sends(2000)
    };
    let dumbbell = line.run();
    // The first of two waits until the bottleneck has sent the second.
    let round_trip = EVEN_RTT + ns(EVEN_SERVICE_NS);
    for round in 0..6 {
        let end = at(EVEN_OPENED + round_trip * (round + 1) - ns(1));
        assert_eq!(cwnd_at(&dumbbell, end), 10 << round, "round {round}");
    }
    assert_eq!(dumbbell.receiver(0).counters.acknowledgements, 1001);
}

/// When segment number `n`, from 0, arrives: each round begins a round trip after the one before, and its segments
/// leave the bottleneck one behind the other; once a round is longer than a round trip, for good.
fn arrives(n: u64) -> Duration {
    let in_rounds_before = |round: u32| 10 * ((1 << round) - 1);
    let full = (0..).find(|&round| (10 << round) * EVEN_SERVICE_NS > EVEN_RTT.as_nanos() as u64);
    let round = (0..full.expect("some round is")).find(|&round| n < in_rounds_before(round + 1));
    let round = round.or(full).expect("found");
    let in_round = n - in_rounds_before(round);
    let service = ns(EVEN_SERVICE_NS) * (in_round as u32 + 1);
    EVEN_OPENED + EVEN_RTT * round + ns(EVEN_INTERFACE_NS) + service + ms(50)
}

#[test]
fn every_segment_arrives_when_it_is_due() {
    let dumbbell = Line::sends(3000).run();
    let arrived = dumbbell.arrived(0);
    let due: Vec<_> = (0..3000).map(|n| at(arrives(n))).collect();
    assert_eq!(arrived.segments, due);
    assert_eq!(arrived.had(2500 * MSS), Some(at(arrives(2499))));
    // Rounds of 10 to 640 are shorter than a round trip, that of 1280 is longer.
    let seconds = |n| arrives(n).as_secs_f64();
    assert!(seconds(1269) < 0.85 && seconds(1270) > 0.85);
}

#[test]
fn the_queue_holds_what_the_bottleneck_has_not_sent_yet() {
    let dumbbell = Line::sends(10).run();
    // The tenth comes 9 · 12.304 µs after the first, which takes 120.
    assert_eq!(
        dumbbell.router().first_slow_start.bytes_max,
        10 * FRAME_BYTES
    );
    let slower = Line {
        interface_bps: 200_000_000,
        ..Line::sends(10)
    };
    // 61.52 µs apart: when the last one comes, 553.68 µs after the first, four have left.
    assert_eq!(
        slower.run().router().first_slow_start.bytes_max,
        6 * FRAME_BYTES
    );
}

#[test]
fn congestion_avoidance_adds_a_segment_each_round_trip_from_the_threshold_on() {
    let line = Line {
        sender: SenderConfig {
            ssthresh_segments: Some(32),
            ..SenderConfig::default()
        },
        ..Line::sends(1000)
    };
    let dumbbell = line.run();
    // Of the 20 acknowledgements of the third round slow start needs 12; the other 8 count already.
    let windows = [10, 20, 32, 33, 34, 35, 36];
    for (round, cwnd) in (1..).zip(windows) {
        let end = at(EVEN_OPENED + EVEN_RTT * round - ns(1));
        assert_eq!(cwnd_at(&dumbbell, end), cwnd, "round {round}");
    }
}

#[test]
fn the_receivers_window_bounds_what_is_under_way() {
    let line = Line {
        window_bytes: 20 * MSS,
        ..Line::sends(1000)
    };
    let mut dumbbell = line.dumbbell();
    let mut most = 0;
    dumbbell.run_while(|dumbbell| {
        let sender = dumbbell.sender(0);
        most = most.max(sender.flight());
        !dumbbell.is_done()
    });
    assert_eq!(most, 20 * MSS);
    // A window a round trip, after 10 in the first: the last of 1000 is in the 51st.
    let rounds = dumbbell.now().since(at(EVEN_OPENED)).as_secs_f64() / EVEN_RTT.as_secs_f64();
    assert!((50.5..51.5).contains(&rounds), "{rounds}");
}

#[test]
fn a_window_is_old_after_a_timeout_of_idleness_and_slow_start_begins_again() {
    let line = Line {
        writes: vec![(ms(0), 150), (ms(3000), 150)],
        ..Line::even()
    };
    let dumbbell = line.run();
    let sender = dumbbell.sender(0);
    assert_eq!(sender.counters.restarts, 1);
    assert_eq!(cwnd_at(&dumbbell, at(ms(2999))), 160);
    assert_eq!(cwnd_at(&dumbbell, at(ms(3000))), 10);
    assert_eq!(cwnd_at(&dumbbell, at(ms(3000) + EVEN_RTT * 2 - ns(1))), 20);
    assert_eq!(dumbbell.router().later_slow_start.frames, 150);
    // And not after less than one.
    let short = Line {
        writes: vec![(ms(0), 150), (ms(700), 150)],
        ..Line::even()
    };
    let dumbbell = short.run();
    assert_eq!(dumbbell.sender(0).counters.restarts, 0);
    assert_eq!(cwnd_at(&dumbbell, at(ms(700))), 160);
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    // What is written at 0 waits for the handshake.
    let little = (1..20).map(|n| (ms(200 * n), 4)).collect();
    let line = Line {
        writes: little,
        ..Line::even()
    };
    let dumbbell = line.run();
    assert_eq!(dumbbell.sender(0).counters.restarts, 0);
    assert_eq!(dumbbell.sender(0).window().cwnd(), 10 * MSS);
    // Of 7 under way it may become 14.
    let line = Line {
        writes: (1..20).map(|n| (ms(200 * n), 7)).collect(),
        ..line
    };
    assert_eq!(line.run().sender(0).window().cwnd(), 14 * MSS);
}

/// As TCP was before RFC 3465: of two segments that are acknowledged together one counts.
#[test]
fn delayed_acknowledgements_slow_the_doubling_down_where_they_are_counted_and_not_their_bytes() {
    let mut line = Line {
        delayed_ack: Some(ms(40)),
        ..Line::sends(2000)
    };
    line.sender.counts_acknowledgements = true;
    let dumbbell = line.run();
    let round_trip = EVEN_RTT + ns(EVEN_SERVICE_NS);
    for (round, cwnd) in [10, 15].into_iter().enumerate() {
        let end = at(EVEN_OPENED + round_trip * (round as u32 + 1) - ns(1));
        assert_eq!(cwnd_at(&dumbbell, end), cwnd, "round {round}");
    }
    // Half of what is acknowledged, 10 · 1.5⁵, and a half more where a round is odd and its last waits for no second.
    let end = at(EVEN_OPENED + round_trip * 6 - ns(1));
    let cwnd = cwnd_at(&dumbbell, end);
    assert!((75..=80).contains(&cwnd), "{cwnd}");
}
