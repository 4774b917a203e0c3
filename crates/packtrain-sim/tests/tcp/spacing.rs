//! What Clustered Packet Spacing is said to do to the bottleneck's queue, over drawn paths: whoever fails says its
//! seed.
//!
//! Nothing else shares the path. A path holds at most 1500 packets: what happens goes by packets, and not by
//! seconds, so that a thousand paths cost no more than a few large ones.

use packtrain_proto::pacing::path::Path;
use packtrain_proto::pacing::spacing::{Phase, doublings_max};
use packtrain_proto::time::Duration;
use packtrain_sim::random::Random;
use packtrain_sim::tcp::dumbbell::Dumbbell;
use packtrain_sim::tcp::pacer::{RoundTrip, SpacingConfig};
use packtrain_sim::tcp::record::Queued;
use packtrain_sim::tcp::sender::SenderConfig;

use crate::support::{FRAME_BYTES, Line, MSS, PACKET_BYTES, ms, ns};

const SEEDS: u64 = 1000;
const PACKETS_MAX: f64 = 1500.0;
const INITIAL_WINDOW: u32 = 10;

#[derive(Clone, Debug)]
struct Case {
    line: Line,
    precision: Duration,
    /// Of the path.
    packets: f64,
}

/// Round trips of 1 to 500 ms, 1 Mbit/s to 10 Gbit/s, a sender up to ten times as fast, a buffer of 1 to 200 % of what the
/// path holds and at least four packets, T of 10 µs to 10 ms; up to four times what the path holds is sent.
fn draw(seed: u64) -> Case {
    let mut random = Random::new(seed);
    let (rtt_ns, bottleneck_bps, packets) = loop {
        let rtt_ns = random.magnitude(1_000_000, 500_000_000);
        let bps = random.magnitude(1_000_000, 10_000_000_000);
        let packets = bps as f64 * rtt_ns as f64 / 8e9 / PACKET_BYTES as f64;
        if packets < PACKETS_MAX {
            break (rtt_ns, bps, packets);
        }
    };
    let times = 1.0 + 9.0 * random.unit();
    let interface_bps = (bottleneck_bps as f64 * times) as u64 * 1538 / 1500;
    let share = random.magnitude(1, 200) as f64 / 100.0;
    let precision = ns(random.magnitude(10_000, 10_000_000));
    let segments = random.magnitude(10, (4.0 * packets) as u64 + 40);
    let line = Line {
        rtt: ns(rtt_ns),
        bottleneck_bps,
        interface_bps,
        buffer_bytes: ((packets * share) as usize * PACKET_BYTES as usize).max(4 * FRAME_BYTES),
        ..Line::sends(segments)
    };
    Case {
        line,
        precision,
        packets,
    }
}

impl Case {
    fn spaced(&self, round_trip: RoundTrip) -> Line {
        self.with(Some(SpacingConfig {
            precision: self.precision,
            path: None,
            round_trip,
        }))
    }

    fn with(&self, spacing: Option<SpacingConfig>) -> Line {
        let mut line = self.line.clone();
        line.sender.spacing = spacing;
        line
    }

    /// What an earlier connection would have measured.
    fn remembered(&self) -> SpacingConfig {
        let interface = ns(8_000_000_000 * 1538 / self.line.interface_bps);
        let rtt = self.line.rtt + self.line.service() + interface;
        SpacingConfig {
            precision: self.precision,
            path: Some(Path {
                rate_bytes_per_s: self.line.bottleneck_bps / 8 * MSS / PACKET_BYTES,
                rtt_min_us: rtt.as_micros() as u32,
            }),
            round_trip: RoundTrip::Smoothed,
        }
    }
}

/// What the first slow start does to the queue, as far as it goes.
fn first_slow_start(line: &Line) -> (Queued, bool) {
    let mut dumbbell = line.dumbbell();
    dumbbell
        .run_while(|dumbbell| !dumbbell.is_done() && dumbbell.sender(0).is_in_first_slow_start());
    let was_spaced = !dumbbell.sender(0).pacer().log.is_empty();
    (dumbbell.router().first_slow_start, was_spaced)
}

#[test]
fn the_bottlenecks_queue_in_slow_start_is_never_longer_with_spacing() {
    let (mut spaced_at_all, mut shorter, mut to_a_fifth) = (0, 0, 0);
    for seed in 0..SEEDS {
        let case = draw(seed);
        let (plain, _) = first_slow_start(&case.line);
        let (spaced, was_spaced) = first_slow_start(&case.spaced(RoundTrip::Smoothed));
        // To the byte.
        assert!(
            spaced.bytes_max <= plain.bytes_max,
            "seed {seed}: {spaced:?} {plain:?} {case:?}"
        );
        spaced_at_all += u32::from(was_spaced);
        shorter += u32::from(spaced.bytes_max < plain.bytes_max);
        to_a_fifth += u32::from(5 * spaced.bytes_max <= plain.bytes_max);
    }
    // Of the others the path was too short for T, or too small for the initial window, or the buffer was full with and
    // without.
    let figures = (spaced_at_all, shorter, to_a_fifth);
    assert!(
        spaced_at_all > 600 && shorter > 300 && to_a_fifth > 150,
        "{figures:?}"
    );
}

/// Where slow start ends before the path is full to the brim, what the window still lets go belongs to it; and the initial window
/// may be any.
#[test]
fn nor_is_it_if_slow_start_ends_at_a_threshold_until_all_is_sent() {
    let mut ended_at_it = 0;
    for seed in 0..SEEDS {
        let mut case = draw(seed);
        let mut random = Random::new(!seed);
        case.line.buffer_bytes = 100_000_000;
        case.line.sender.initial_window_segments = random.between(1, 40) as u32;
        let threshold = random.magnitude(4, 2 * case.line.writes[0].1 + 10) as u32;
        case.line.sender.ssthresh_segments = Some(threshold);
        let plain = case.line.run();
        let spaced = case.spaced(RoundTrip::Smoothed).run();
        let longest = |dumbbell: &Dumbbell| dumbbell.router().bytes_max();
        assert!(longest(&spaced) <= longest(&plain), "seed {seed}: {case:?}");
        ended_at_it += u32::from(!plain.sender(0).window().in_slow_start());
    }
    assert!(ended_at_it > 300, "{ended_at_it}");
}

#[test]
fn with_delayed_acknowledgements_that_holds_if_rounds_are_spread_over_the_least_round_trip() {
    for seed in 0..SEEDS {
        let mut case = draw(seed);
        case.line.delayed_ack = Some(ms(40));
        let (plain, _) = first_slow_start(&case.line);
        let (spaced, _) = first_slow_start(&case.spaced(RoundTrip::Least));
        assert!(
            spaced.bytes_max <= plain.bytes_max,
            "seed {seed}: {spaced:?} {plain:?} {case:?}"
        );
    }
}

/// One path in a thousand. The smoothed round trip is longer than the rounds are, by the time for which the first of two segments
/// waits for the second; what each round leaves behind leaves at once when spacing ends, and that cluster doubles as all do.
#[test]
fn over_the_smoothed_round_trip_it_does_not_hold_with_delayed_acknowledgements() {
    let mut case = draw(23061);
    case.line.delayed_ack = Some(ms(40));
    let frames = |line: &Line| first_slow_start(line).0.bytes_max / FRAME_BYTES;
    assert_eq!(frames(&case.line), 255);
    assert_eq!(frames(&case.spaced(RoundTrip::Smoothed)), 262);
    assert_eq!(frames(&case.spaced(RoundTrip::Least)), 255);
}

/// While spacing lasts, in a path that is not remembered.
fn while_spaced(line: &Line) -> (Dumbbell, usize) {
    let mut dumbbell = line.dumbbell();
    dumbbell.run_while(|dumbbell| {
        let sender = dumbbell.sender(0);
        let lasts = sender.opened.is_none() || sender.pacer().phase() == Phase::Spacing;
        lasts && !dumbbell.is_done()
    });
    let intervals = &dumbbell.sender(0).pacer().log;
    let rounds = intervals.iter().filter(|spaced| spaced.interval.is_some());
    let rounds = rounds.count();
    (dumbbell, rounds)
}

/// What leaves at least T apart meets nobody if the bottleneck sends a segment within T: there is never more than the one that
/// is being sent, and the few packets that a buffer must hold are two. If T is shorter than that, spacing goes on above the path's
/// rate, and what overshoots is lost as ever.
#[test]
fn nothing_waits_and_nothing_is_lost_while_spacing_lasts_if_a_segment_is_sent_within_the_precision()
{
    let mut rounds_in_all = 0;
    for seed in 0..SEEDS {
        let mut case = draw(seed);
        case.precision = case.precision.max(case.line.service());
        case.line.writes = vec![(ms(0), 100_000)];
        case.line.buffer_bytes = 2 * FRAME_BYTES;
        for delayed_ack in [None, Some(ms(40))] {
            case.line.delayed_ack = delayed_ack;
            let (dumbbell, rounds) = while_spaced(&case.spaced(RoundTrip::Smoothed));
            let queued = dumbbell.router().first_slow_start;
            assert_eq!(queued.dropped, 0, "seed {seed}: {queued:?} {case:?}");
            if rounds > 0 {
                rounds_in_all += rounds;
                assert!(
                    queued.bytes_max <= FRAME_BYTES,
                    "seed {seed}: {queued:?} {case:?}"
                );
            }
        }
    }
    assert!(rounds_in_all > 2000, "{rounds_in_all}");
}

#[test]
fn spacing_lasts_as_many_rounds_as_the_window_can_double_the_first_flight_among_them() {
    let mut seen = [0; 11];
    for seed in 0..SEEDS {
        let mut case = draw(seed);
        case.precision = case.precision.max(case.line.service());
        case.line.writes = vec![(ms(0), 100_000)];
        let (dumbbell, rounds) = while_spaced(&case.spaced(RoundTrip::Smoothed));
        let sender = dumbbell.sender(0);
        let expected = |rtt: Duration| {
            let (rtt_ns, precision_ns) = (rtt.as_nanos() as u64, case.precision.as_nanos() as u64);
            doublings_max(rtt_ns, precision_ns, INITIAL_WINDOW) as usize
        };
        // What opens the connection is shorter than what follows, and both are cut to microseconds.
        let least = sender.rtt().min().expect("one").saturating_sub(ns(1000));
        let most = sender.rtt().smoothed().expect("one");
        assert!(
            (expected(least)..=expected(most)).contains(&rounds),
            "seed {seed}: {rounds} {case:?}"
        );
        seen[rounds] += 1;
    }
    assert!(seen[..7].iter().all(|cases| *cases > 5), "{seen:?}");
}

/// A segment of the first flight is up to a round trip later than without spacing; what is sent once the path is full is not. So a short
/// transfer pays up to a round trip, and a long one nothing at all.
#[test]
fn spacing_costs_a_short_transfer_less_than_a_round_trip_and_a_long_one_nothing() {
    let (mut paid, mut nothing) = (0, 0);
    for seed in 0..SEEDS / 2 {
        let mut case = draw(seed);
        case.line.buffer_bytes = 100_000_000;
        let segments = case.line.writes[0].1;
        let done = |line: &Line| line.run().arrived(0).had(segments * MSS).expect("all");
        let (plain, spaced) = (done(&case.line), done(&case.spaced(RoundTrip::Smoothed)));
        assert!(
            plain <= spaced,
            "seed {seed}: {plain:?} {spaced:?} {case:?}"
        );
        assert!(
            spaced <= plain + case.line.rtt,
            "seed {seed}: {plain:?} {spaced:?} {case:?}"
        );
        // The path is full at the latest with the round that begins after so many.
        if segments as f64 > 2.0 * case.packets + 20.0 {
            assert_eq!(plain, spaced, "seed {seed}: {case:?}");
            nothing += 1;
        }
        paid += u32::from(plain < spaced);
    }
    assert!(paid > 50 && nothing > 100, "{paid} {nothing}");
}

/// A path of at least twice the initial window: with less the window's least, ten segments, is more than the path and a small buffer
/// hold.
#[test]
fn over_a_remembered_path_nothing_is_lost_at_a_twentieth_of_what_it_holds() {
    let mut most = 0;
    for seed in 0..SEEDS {
        let mut case = draw(seed);
        if case.packets < 2.0 * f64::from(INITIAL_WINDOW) {
            continue;
        }
        let twentieth = (case.packets / 20.0) as usize * PACKET_BYTES as usize;
        case.line.buffer_bytes = twentieth.max(4 * FRAME_BYTES);
        // Slow start and a window more.
        case.line.writes = vec![(ms(0), (3.0 * case.packets) as u64)];
        let dumbbell = case.with(Some(case.remembered())).run();
        let (router, counters) = (dumbbell.router(), dumbbell.sender(0).counters);
        assert_eq!(
            (router.dropped(), counters.retransmitted),
            (0, 0),
            "seed {seed}: {router:?} {case:?}"
        );
        most = most.max(router.bytes_max());
    }
    // The queue is what congestion avoidance adds, and what arrives while a segment is sent.
    assert!(most <= 4 * FRAME_BYTES, "{most}");
}

#[test]
fn spacing_begins_again_after_idleness() {
    let line = Line {
        sender: SenderConfig {
            spacing: Some(SpacingConfig {
                precision: ms(4),
                path: None,
                round_trip: RoundTrip::Least,
            }),
            ..SenderConfig::default()
        },
        writes: vec![(ms(0), 150), (ms(3000), 150)],
        ..Line::even()
    };
    let dumbbell = line.run();
    let log = &dumbbell.sender(0).pacer().log;
    let micros: Vec<_> = log
        .iter()
        .map(|spaced| spaced.interval.map(|i| i.as_micros()))
        .collect();
    let one = [Some(10_000), Some(5_000), None];
    assert_eq!(micros, [one, one].concat());
    let begins = log[3].at.as_nanos();
    assert_eq!(begins, 3_000_000_000);
    // Ten in the round trip that follows, 10 ms apart.
    let per = dumbbell.arrived(0).per(ms(10), log[3].at);
    assert_eq!(per[5..15], [1; 10]);
}

/// What the overshoot has cost is repaired, timeouts among it, no slower than without spacing: rounds go on when a hole is closed and
/// far more than the window is acknowledged at once.
#[test]
fn on_the_papers_path_the_first_connection_is_not_held_up_by_its_overshoot() {
    let mut line = Line {
        rtt: ms(198),
        bottleneck_bps: 599_000_000,
        buffer_bytes: 741_262,
        ..Line::sends(40_000)
    };
    let done = |line: &Line| line.run().arrived(0).had(40_000 * MSS).expect("all");
    let plain = done(&line);
    for precision in [ms(10), ms(1)] {
        line.sender.spacing = Some(SpacingConfig {
            precision,
            path: None,
            round_trip: RoundTrip::Least,
        });
        let spaced = done(&line);
        assert!(spaced < plain, "{precision:?}: {spaced:?} {plain:?}");
    }
}

/// Its section 4, Linux 2.6: a gigabit interface, 198 ms, an OC-12, and a buffer of a twentieth of the product. The first connection is
/// spaced down to a millisecond and then overshoots by a whole window; the second one knows.
#[test]
fn on_the_papers_path_the_second_connection_loses_nothing() {
    let mut line = Line {
        rtt: ms(198),
        bottleneck_bps: 599_000_000,
        buffer_bytes: 741_262,
        ..Line::sends(40_000)
    };
    let mut spacing = SpacingConfig {
        precision: ms(1),
        path: None,
        round_trip: RoundTrip::Least,
    };
    line.sender.spacing = Some(spacing);
    let mut first = line.dumbbell();
    first.run_while(|dumbbell| dumbbell.sender(0).is_in_first_slow_start());
    let micros = |dumbbell: &Dumbbell| -> Vec<Option<u128>> {
        let log = dumbbell.sender(0).pacer().log.iter();
        log.map(|spaced| spaced.interval.map(|i| i.as_micros()))
            .collect()
    };
    let five = [19_800, 9_900, 4_950, 2_475, 1_237].map(Some);
    assert_eq!(micros(&first), [&five[..], &[None]].concat());
    assert_eq!(first.router().first_slow_start.dropped, 6518);

    let rtt_min = first.sender(0).rtt().min().expect("it was measured");
    let most = first.arrived(0).most_within(rtt_min) as u64;
    let path = Path {
        rate_bytes_per_s: most * MSS * 1_000_000_000 / rtt_min.as_nanos() as u64,
        rtt_min_us: rtt_min.as_micros() as u32,
    };
    assert_eq!(path.window(MSS as u32), 9883);
    spacing.path = Some(path);
    line.sender.spacing = Some(spacing);
    let second = line.run();
    let router = second.router();
    assert_eq!(router.dropped(), 0);
    assert_eq!(router.first_slow_start.bytes_max, FRAME_BYTES);
    assert!(router.bytes_max() <= 4 * FRAME_BYTES, "{router:?}");
}
