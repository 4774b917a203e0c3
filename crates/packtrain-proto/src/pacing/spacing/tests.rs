use proptest::prelude::*;

use super::*;

const MSS: u32 = 1448;
const MS: u64 = 1_000_000;
const OPEN: u32 = u32::MAX;

/// A connection whose rounds are acknowledged as a whole: what the spacing decides is seen round by round.
struct Rounds {
    spacing: Spacing,
    seen: Seen,
    precision_ns: u64,
    path: Option<Path>,
    /// All that there were, each once.
    intervals_ns: Vec<u64>,
}

impl Rounds {
    fn begin(rtt_us: u32, ssthresh: u32, precision_ns: u64, path: Option<Path>) -> Rounds {
        let seen = Seen {
            // Sequence numbers wrap under way.
            una: u32::MAX - 20_000,
            nxt: u32::MAX - 20_000,
            rtt_us,
            cwnd: 10,
            ssthresh,
            mss: MSS,
        };
        let mut spacing = Spacing::default();
        spacing.begin(&seen, precision_ns, path.as_ref(), true);
        let mut rounds = Rounds {
            spacing,
            seen,
            precision_ns,
            path,
            intervals_ns: Vec::new(),
        };
        rounds.note();
        rounds.send();
        rounds
    }

    /// As much as the window has room for.
    fn send(&mut self) {
        self.seen.nxt = self.seen.una.wrapping_add(self.seen.cwnd * MSS);
    }

    /// Each segment of what was sent is acknowledged, and answered.
    fn round(&mut self) {
        let under_way = self.seen.nxt.wrapping_sub(self.seen.una) / MSS;
        (0..under_way).for_each(|_| self.acknowledge_one());
    }

    fn acknowledge_one(&mut self) {
        self.seen.una = self.seen.una.wrapping_add(MSS);
        if self.seen.cwnd < self.seen.ssthresh {
            self.seen.cwnd += 1;
        }
        self.spacing
            .acknowledged(&self.seen, self.precision_ns, self.path.as_ref());
        self.note();
        self.send();
    }

    fn note(&mut self) {
        if let Some(interval) = self.interval_ns()
            && self.intervals_ns.last() != Some(&interval)
        {
            self.intervals_ns.push(interval);
        }
    }

    fn interval_ns(&self) -> Option<u64> {
        self.spacing.interval_ns()
    }
}

#[test]
fn each_round_is_spread_over_one_round_trip() {
    let mut rounds = Rounds::begin(198_000, OPEN, MS, None);
    // The first flight, of ten.
    assert_eq!(rounds.interval_ns(), Some(19_800_000));
    // Its first acknowledgement begins the round of twenty, and the first of that the one of forty.
    for (interval, segments) in [
        (9_900_000, 20),
        (4_950_000, 40),
        (2_475_000, 80),
        (1_237_500, 160),
    ] {
        rounds.round();
        assert_eq!(
            (rounds.interval_ns(), rounds.seen.cwnd),
            (Some(interval), segments)
        );
    }
    rounds.round();
    // 320 segments would be 0.62 ms apart.
    assert_eq!(rounds.seen.cwnd, 320);
    assert_eq!(rounds.spacing.phase(), Phase::Clusters);
    assert_eq!(rounds.interval_ns(), None);
}

/// As it is where acknowledgements are put together on the way, or the first flight was a burst: there is still a round trip to be filled
/// by the answers.
#[test]
fn a_flight_that_is_acknowledged_at_once_is_answered_over_a_whole_round_trip() {
    let mut rounds = Rounds::begin(100_000, OPEN, MS, None);
    for (window, interval) in [(20, 5_000_000), (40, 2_500_000), (80, 1_250_000)] {
        rounds.seen.una = rounds.seen.nxt;
        rounds.seen.cwnd = window;
        rounds.spacing.acknowledged(&rounds.seen, MS, None);
        rounds.send();
        assert_eq!(rounds.interval_ns(), Some(interval), "{window}");
    }
}

/// After a timeout a hole is closed, and what had arrived behind it is acknowledged at once: far more than the window is.
#[test]
fn what_is_acknowledged_far_beyond_the_window_begins_a_round_of_that_window() {
    let mut rounds = Rounds::begin(100_000, OPEN, MS, None);
    rounds.seen.cwnd = 1;
    rounds.spacing.begin(&rounds.seen, MS, None, false);
    assert_eq!(rounds.interval_ns(), Some(100_000_000));
    rounds.seen.una = rounds.seen.una.wrapping_add(500 * MSS);
    rounds.seen.nxt = rounds.seen.una.wrapping_add(100 * MSS);
    rounds.seen.cwnd = 8;
    rounds.spacing.acknowledged(&rounds.seen, MS, None);
    assert_eq!(rounds.interval_ns(), Some(12_500_000));
    // The rest of that round, and the next one of as many as the window has become.
    for _ in 0..6 {
        rounds.acknowledge_one();
    }
    assert!(
        rounds.interval_ns() < Some(8_000_000),
        "{:?}",
        rounds.spacing
    );
}

#[test]
fn what_has_grown_into_clusters_is_not_spaced_again_before_slow_start_begins_again() {
    let mut rounds = Rounds::begin(20_000, OPEN, MS, None);
    rounds.round();
    rounds.round();
    assert_eq!(rounds.spacing.phase(), Phase::Clusters);
    // A queue has made the round trip longer.
    rounds.seen.rtt_us = 900_000;
    rounds.round();
    assert_eq!(rounds.spacing.phase(), Phase::Clusters);
    rounds.spacing.end();
    rounds.seen.cwnd = 10;
    rounds.spacing.begin(&rounds.seen, MS, None, false);
    assert_eq!(rounds.interval_ns(), Some(90_000_000));
}

#[test]
fn a_remembered_path_is_spaced_up_to_its_rate_and_slow_start_ends_there() {
    let path = Path {
        rate_bytes_per_s: 72_280_000,
        rtt_min_us: 198_000,
    };
    let window = path.window(MSS);
    let mut rounds = Rounds::begin(198_000, window, 10 * MS, Some(path));
    while rounds.seen.cwnd < window {
        assert_eq!(rounds.spacing.phase(), Phase::Spacing);
        rounds.round();
    }
    assert_eq!(rounds.seen.cwnd, window);
    // One more round, which fills the window.
    assert_eq!(rounds.spacing.phase(), Phase::Spacing);
    rounds.round();
    rounds.round();
    assert_eq!(rounds.spacing.phase(), Phase::Free);
    // Ten doublings, of which the last one is as long as the path; and then what leaves evenly.
    let intervals = &rounds.intervals_ns;
    assert_eq!(intervals.len(), 12);
    assert!(intervals.is_sorted_by(|earlier, later| earlier > later));
    let least = path.interval_ns(MSS);
    assert!((least..=least + 1).contains(&intervals[10]));
}

#[test]
fn a_jump_is_sent_over_one_round_trip_and_doubled_in_the_next() {
    let path = Path {
        rate_bytes_per_s: 72_280_000,
        rtt_min_us: 198_000,
    };
    let window = path.window(MSS);
    let mut rounds = Rounds::begin(198_000, window, 10 * MS, Some(path));
    rounds.seen.una = rounds.seen.una.wrapping_add(MSS);
    assert!(rounds.spacing.may_jump(&rounds.seen));
    let jump = path.jump(1, 0, MSS);
    rounds
        .spacing
        .jumps_to(&rounds.seen, jump, 10 * MS, Some(&path));
    rounds.note();
    let opened = rounds.spacing.opens(9, 10).expect("for the next ones");
    // 40 µs apart.
    assert_eq!(opened, 9 + 4 + 5_000_000 / 40_072);
    while let Some(window) = rounds.spacing.opens(rounds.seen.cwnd, rounds.seen.cwnd) {
        rounds.seen.cwnd = window;
    }
    assert_eq!(rounds.seen.cwnd, jump);
    assert_eq!(rounds.spacing.opens(0, jump), None);
    assert!(!rounds.spacing.may_jump(&rounds.seen));
    // What else the first flight is answered by makes no round, and nor does the window.
    rounds.seen.una = rounds.seen.nxt;
    rounds
        .spacing
        .acknowledged(&rounds.seen, 10 * MS, Some(&path));
    rounds.note();
    rounds.send();
    while rounds.spacing.phase() == Phase::Spacing {
        rounds.round();
    }
    // 9883 is an odd number: the last one of the window makes a round of its own.
    let [first, half, full, _, _] = rounds.intervals_ns[..] else {
        panic!("{:?}", rounds.intervals_ns);
    };
    assert_eq!(first, 19_800_000);
    let least = path.interval_ns(MSS);
    assert!((2 * least..=2 * least + 20).contains(&half), "{half}");
    assert!((least..=least + 20).contains(&full), "{full}");
    assert_eq!(rounds.seen.cwnd, window);
}

/// A path of a thousand segments, and a window that has become that.
fn filled() -> Rounds {
    let path = Path {
        rate_bytes_per_s: 14_480_000,
        rtt_min_us: 100_000,
    };
    let mut rounds = Rounds::begin(100_000, 1000, MS, Some(path));
    while rounds.spacing.phase() == Phase::Spacing {
        rounds.round();
    }
    rounds
}

#[test]
fn on_a_path_that_is_known_a_window_leaves_evenly_after_slow_start_until_the_first_loss() {
    let mut rounds = filled();
    assert_eq!(rounds.seen.cwnd, 1000);
    // A window leaves in a little less than a round trip, or what a late timer has left behind would be missing for ever.
    assert_eq!(rounds.interval_ns(), Some(100_000 - 100_000 / 64));
    for _ in 0..50 {
        rounds.round();
    }
    rounds.seen.cwnd = 2000;
    rounds.acknowledge_one();
    assert_eq!(rounds.spacing.phase(), Phase::Free);
    assert_eq!(rounds.interval_ns(), Some(50_000 - 50_000 / 64));
    rounds.spacing.end();
    assert_eq!(rounds.interval_ns(), None);
    rounds.acknowledge_one();
    assert_eq!(rounds.interval_ns(), None);
}

#[test]
fn over_a_short_round_trip_all_is_ordinary_after_slow_start() {
    let is_even = |rtt_us, is_known: bool| {
        let path = Path {
            rate_bytes_per_s: 1_000_000_000,
            rtt_min_us: rtt_us,
        };
        let mut rounds = Rounds::begin(rtt_us, 1000, MS, is_known.then_some(path));
        while rounds.spacing.phase() != Phase::Free {
            rounds.round();
        }
        rounds.spacing.is_even()
    };
    assert!(is_even(16_000, true) && !is_even(15_999, true));
    assert!(!is_even(100_000, false));
}

/// The receiver has no room for more than a part of it: what it has room for leaves at the jump's rate, in the rounds after it as well.
#[test]
fn a_jump_that_waits_for_the_receiver_goes_on_at_its_rate() {
    let path = Path {
        rate_bytes_per_s: 72_280_000,
        rtt_min_us: 198_000,
    };
    let mut rounds = Rounds::begin(198_000, path.window(MSS), MS, Some(path));
    rounds.seen.una = rounds.seen.una.wrapping_add(MSS);
    rounds.spacing.jumps_to(&rounds.seen, 4941, MS, Some(&path));
    let interval = rounds.interval_ns();
    rounds.seen.cwnd = 190;
    for _ in 0..150 {
        rounds.acknowledge_one();
    }
    assert_eq!(rounds.interval_ns(), interval);
    assert!(rounds.spacing.opens(300, rounds.seen.cwnd).is_some());
    let mut ended = rounds.spacing;
    ended.end();
    assert_eq!(ended.opens(300, rounds.seen.cwnd), None);
    // The round trip has grown: slow start ends where it is.
    rounds.seen.ssthresh = rounds.seen.cwnd;
    rounds.acknowledge_one();
    assert_eq!(rounds.spacing.phase(), Phase::Spacing);
    assert_eq!(rounds.spacing.opens(300, rounds.seen.cwnd), None);
}

#[test]
fn nobody_jumps_after_a_loss_or_on_a_path_that_is_not_known_or_twice() {
    let path = Path {
        rate_bytes_per_s: 72_280_000,
        rtt_min_us: 198_000,
    };
    let mut rounds = Rounds::begin(198_000, 9883, MS, Some(path));
    assert!(rounds.spacing.may_jump(&rounds.seen));
    rounds.acknowledge_one();
    assert!(!rounds.spacing.may_jump(&rounds.seen), "it was answered");
    rounds.spacing.begin(&rounds.seen, MS, Some(&path), false);
    assert!(!rounds.spacing.may_jump(&rounds.seen), "a loss");
    rounds.spacing.begin(&rounds.seen, MS, None, true);
    assert!(!rounds.spacing.may_jump(&rounds.seen), "nothing is known");
}

#[test]
fn the_last_round_before_the_threshold_is_as_long_as_what_is_missing_and_so_is_one_more() {
    let mut rounds = Rounds::begin(100_000, 50, MS, None);
    rounds.round();
    rounds.round();
    rounds.acknowledge_one();
    // Not 80, but the 50 that it may become.
    assert_eq!(
        rounds.intervals_ns,
        [10_000_000, 5_000_000, 2_500_000, 2_000_000]
    );
    let mut acknowledged = 0;
    while rounds.spacing.phase() == Phase::Spacing {
        assert_eq!(rounds.interval_ns(), Some(2_000_000));
        if rounds.seen.cwnd == 50 {
            acknowledged += 1;
        }
        rounds.acknowledge_one();
    }
    // The window was full when that one came that makes it 50; then 50 more.
    assert_eq!(acknowledged, 50);
    assert_eq!(rounds.spacing.phase(), Phase::Free);
}

#[test]
fn a_loss_ends_spacing_at_once() {
    let mut rounds = Rounds::begin(100_000, 50, MS, None);
    rounds.round();
    rounds.spacing.end();
    rounds.seen.ssthresh = 5;
    rounds.seen.cwnd = 5;
    rounds.round();
    assert_eq!(rounds.spacing.phase(), Phase::Free);
}

#[test]
fn a_path_that_takes_no_more_than_the_first_flight_has_it_spaced() {
    let path = Path {
        rate_bytes_per_s: 144_800,
        rtt_min_us: 100_000,
    };
    let mut rounds = Rounds::begin(100_000, path.window(MSS), MS, Some(path));
    assert_eq!(rounds.intervals_ns, [10_000_000]);
    rounds.round();
    assert_eq!(rounds.spacing.phase(), Phase::Spacing);
    rounds.round();
    assert_eq!(rounds.spacing.phase(), Phase::Free);
    assert_eq!(rounds.intervals_ns, [10_000_000, 9_843_750]);
}

#[test]
fn no_round_trip_is_known_so_nothing_is_spaced() {
    let rounds = Rounds::begin(0, OPEN, MS, None);
    assert_eq!(rounds.spacing.phase(), Phase::Clusters);
    let beyond = Rounds::begin(198_000, 10, MS, None);
    assert_eq!(beyond.spacing.phase(), Phase::Free);
}

#[test]
fn doublings_are_as_the_paper_has_them() {
    // "At most 10 times since the maximum RTT is about 500 ms": with a window of one and a timer of a millisecond.
    assert_eq!(doublings_max(500 * MS, MS, 1), 9);
    assert_eq!(doublings_max(198 * MS, MS, 1), 8);
    assert_eq!(doublings_max(198 * MS, 10 * MS, 1), 5);
    assert_eq!(doublings_max(198 * MS, MS, 10), 5);
    assert_eq!(doublings_max(198 * MS, 20_000, 10), 10);
    assert_eq!(doublings_max(MS, MS, 10), 0);
}

/// ⌈log₂(RTT ÷ (T · IW))⌉ in floating point, away from its steps.
fn doublings_by_logarithm(rtt_ns: u64, precision_ns: u64, window: u32) -> Option<u32> {
    let exact = (rtt_ns as f64 / (precision_ns as f64 * f64::from(window))).log2();
    ((exact - exact.round()).abs() > 1e-6).then(|| exact.ceil().max(0.0) as u32)
}

proptest! {
    #[test]
    fn doublings_are_a_logarithm(rtt_us in 1u64..2_000_000, precision_ns in 1_000u64..20_000_000, window in 1u32..100) {
        if let Some(doublings) = doublings_by_logarithm(rtt_us * 1000, precision_ns, window) {
            prop_assert_eq!(doublings_max(rtt_us * 1000, precision_ns, window), doublings);
        }
    }

    #[test]
    fn spacing_lasts_as_many_rounds_as_the_window_can_double(
        rtt_us in 100u32..1_000_000, precision_ns in 10_000u64..10_000_000,
    ) {
        let mut rounds = Rounds::begin(rtt_us, OPEN, precision_ns, None);
        let expected = doublings_max(u64::from(rtt_us) * 1000, precision_ns, 10);
        prop_assume!(expected <= 12);
        while rounds.spacing.phase() == Phase::Spacing {
            rounds.round();
        }
        // Each flight has an interval of its own, the first one included.
        prop_assert_eq!(rounds.intervals_ns.len() as u32, expected);
        prop_assert!(rounds.intervals_ns.iter().all(|interval| *interval > precision_ns));
    }

    #[test]
    fn rate_and_interval_are_of_the_same_stream(interval in 1_000u64..100_000_000, mss in 536u32..9000) {
        let rate = rate_bytes_per_s(interval, mss);
        let back = u64::from(mss) * 1_000_000_000 / rate.max(1);
        prop_assert!(back >= interval);
        prop_assert!(back - interval <= interval * 2 / rate.max(1) + 1 || rate < 1_000_000);
    }
}
