//! The sender's state machines against scripts: which segment leaves when.

use std::ops::Range;

use packtrain_proto::time::Duration;
use packtrain_sim::tcp::scoreboard::Detection;
use packtrain_sim::tcp::segment::Ecn;
use packtrain_sim::tcp::sender::{Reduction, SenderConfig};

use crate::script::{MSS, Script};
use crate::support::ms;

fn plain(detection: Detection) -> SenderConfig {
    SenderConfig {
        detection,
        ..SenderConfig::default()
    }
}

fn first(segments: u64) -> Vec<u64> {
    (0..segments).collect()
}

const NONE: Range<u64> = 0..0;

#[test]
fn the_handshake_opens_the_window_and_what_opens_goes_again_each_time_twice_as_late() {
    let (script, left) = Script::opens(SenderConfig::linux(), 100);
    assert_eq!(left, first(10));
    assert_eq!(script.rto(), ms(300));
    let mut script = Script::new(SenderConfig::linux());
    script.sender.connect();
    assert_eq!(script.writes(0, 10), [0]);
    let again = [1_000_000, 3_000_000, 7_000_000].map(|us| (us, vec![0]));
    assert_eq!(script.waits_until(10_000), again);
}

/// RFC 6298, 5.7: no sample may be taken of a SYN that went again, and a second is soon.
#[test]
fn data_behind_a_syn_that_went_again_wait_three_seconds_for_their_first_acknowledgement() {
    let mut script = Script::new(plain(Detection::Sack));
    script.sender.connect();
    script.writes(0, 10);
    assert_eq!(script.waits_until(1000), [(1_000_000, vec![0])]);
    assert_eq!(script.opened(2500), [0]);
    let again = [5_500_000, 11_500_000].map(|us| (us, vec![0]));
    assert_eq!(script.waits_until(12_000), again);
}

#[test]
fn what_comes_before_the_answer_to_the_syn_is_dropped_and_the_syn_goes_again() {
    let mut script = Script::new(plain(Detection::Sack));
    script.sender.connect();
    script.writes(0, 10);
    assert_eq!(script.tells(100, 0, 50), [] as [u64; 0]);
    assert_eq!(script.waits_until(1000), [(1_000_000, vec![0])]);
    assert_eq!(script.sender.opened, None);
}

#[test]
fn by_sacks_the_third_says_what_is_lost_and_new_data_wait_for_half_the_window() {
    let (mut script, _) = Script::opens(plain(Detection::Sack), 100);
    // 0 is lost. Limited transmit, then fast retransmit.
    assert_eq!(script.acks(200, 0, 1..2), [10]);
    assert_eq!(script.acks(201, 0, 1..3), [11]);
    assert_eq!(script.acks(202, 0, 1..4), [0]);
    assert_eq!((script.cwnd(), script.ssthresh()), (5, 5));
    // Under way are 4 to 9, 10, 11 and 0 again; five may be.
    for (n, left) in (5..=10).zip([&[] as &[u64], &[], &[], &[], &[12], &[13]]) {
        assert_eq!(script.acks(198 + n, 0, 1..n), left, "{n}");
    }
    assert_eq!(script.acks(300, 0, 1..11), [14]);
    assert_eq!(script.acks(301, 0, 1..12), [15]);
    assert_eq!(script.acks(302, 12, NONE), [16]);
    assert_eq!(script.sender.counters.retransmitted, 1);
    assert_eq!(script.cwnd(), 5);
}

#[test]
fn without_sacks_newreno_repairs_one_loss_in_a_round_trip() {
    let (mut script, _) = Script::opens(plain(Detection::NEW_RENO), 100);
    // 0, 4 and 7 are lost.
    assert_eq!(script.acks(200, 0, NONE), [10]);
    assert_eq!(script.acks(201, 0, NONE), [11]);
    assert_eq!(script.acks(202, 0, NONE), [0]);
    for ms in 203..=206 {
        assert_eq!(script.acks(ms, 0, NONE), [] as [u64; 0]);
    }
    // 10 and 11 have come, too: nine duplicates, so that of twelve three are left, of five that may be.
    assert_eq!(script.acks(300, 0, NONE), [12]);
    assert_eq!(script.acks(301, 0, NONE), [13]);
    // 0 has: the next gap, and what has left again.
    assert_eq!(script.acks(302, 4, NONE), [4, 14]);
    assert_eq!(script.acks(402, 7, NONE), [7, 15]);
    assert_eq!(script.acks(502, 12, NONE), [16]);
    let counters = script.sender.counters;
    assert_eq!((counters.fast_recoveries, counters.retransmitted), (1, 3));
    assert_eq!(script.cwnd(), 5);
}

#[test]
fn reno_leaves_recovery_at_the_first_partial_acknowledgement() {
    let (mut script, _) = Script::opens(plain(Detection::RENO), 100);
    for (ms, left) in [(200, 10), (201, 11), (202, 0)] {
        assert_eq!(script.acks(ms, 0, NONE), [left]);
    }
    // 0 and 4 are lost; 0 has come, and 4 does not go again.
    assert_eq!(script.acks(302, 4, NONE), [] as [u64; 0]);
    assert_eq!(
        (script.cwnd(), script.sender.counters.fast_recoveries),
        (5, 1)
    );
    // It needs duplicates of its own, and is a reduction of its own; of 4 to 11 five may be under way, so that two let none leave.
    assert_eq!(script.acks(303, 4, NONE), [] as [u64; 0]);
    assert_eq!(script.acks(304, 4, NONE), [] as [u64; 0]);
    assert_eq!(script.acks(305, 4, NONE), [4]);
    assert_eq!(
        (script.cwnd(), script.sender.counters.fast_recoveries),
        (2, 2)
    );
}

#[test]
fn the_timer_expires_after_a_round_trip_and_four_variances_and_then_each_time_twice_as_late() {
    for detection in [
        Detection::RENO,
        Detection::NEW_RENO,
        Detection::Sack,
        Detection::Rack,
    ] {
        let (mut script, _) = Script::opens(plain(detection), 10);
        let again = [400_000, 1_000_000, 2_200_000].map(|us| (us, vec![0]));
        assert_eq!(script.waits_until(2300), again);
        assert_eq!((script.cwnd(), script.ssthresh()), (1, 5));
        // Slow start from there.
        assert_eq!(script.acks(2400, 1, NONE), [1, 2]);
        assert_eq!(script.acks(2500, 3, NONE), [3, 4, 5, 6]);
    }
}

/// Karn's rule (RFC 6298, 5; as Linux has it without time stamps).
#[test]
fn the_longer_wait_stays_until_something_is_acknowledged_that_was_sent_once() {
    let (mut script, _) = Script::opens(plain(Detection::Sack), 100);
    let again = [400_000, 1_000_000].map(|us| (us, vec![0]));
    assert_eq!(script.waits_until(1100), again);
    // What went again.
    assert_eq!(script.acks(1200, 1, NONE), [1, 2]);
    assert_eq!(script.waits_until(2399), []);
    assert_eq!(script.waits_until(2400), [(2_400_000, vec![1])]);
    // All of the first flight goes again, and is no measure.
    for (at, to) in [(2500, 2), (2600, 4), (2700, 6), (2800, 8), (2900, 10)] {
        script.acks(at, to, NONE);
        assert_eq!(script.rto(), ms(2400));
    }
    // The first that was sent once left at 2800.
    script.acks(3000, 12, NONE);
    let (smoothed_us, variance_us) = (112_500, 62_500);
    let wait = Duration::from_micros(smoothed_us + 4 * variance_us);
    assert_eq!(script.rto(), wait);
}

/// The timer ran for the question then (RFC 9293, 3.8.6.1), and not for the data (RFC 6298, 5.1).
#[test]
fn what_leaves_when_a_shut_window_opens_has_a_whole_timeout_of_its_own() {
    let mut script = Script::new(plain(Detection::Sack));
    script.sender.connect();
    script.writes(0, 20);
    assert_eq!(script.opened_with(100, 10 * MSS), first(10));
    assert_eq!(script.tells(200, 10, 0), [] as [u64; 0]);
    // It is asked whether there is room, each time twice as late.
    let asked = [500_000, 1_100_000].map(|us| (us, vec![10]));
    assert_eq!(script.waits_until(2299), asked);
    assert_eq!(script.tells(2299, 10, 100), (10..20).collect::<Vec<_>>());
    assert_eq!(script.waits_until(2598), []);
    assert_eq!(script.waits_until(2599), [(2_599_000, vec![10])]);
    assert_eq!(script.sender.counters.timeouts, 1);
}

/// RFC 5681, 2: a duplicate tells of the window that the one before it told of.
#[test]
fn an_acknowledgement_that_tells_of_another_window_is_no_duplicate() {
    for detection in [Detection::RENO, Detection::NEW_RENO] {
        let (mut script, _) = Script::opens(plain(detection), 100);
        assert_eq!(script.tells(200, 1, 50), [10, 11]);
        for (ms, room) in (201..210).zip(51..) {
            assert_eq!(script.tells(ms, 1, room), [] as [u64; 0]);
        }
        // Those that are.
        let left = [210, 211, 212].map(|ms| script.tells(ms, 1, 59));
        assert_eq!(left, [vec![12], vec![13], vec![1]]);
        assert_eq!(script.sender.counters.fast_recoveries, 1);
    }
}

/// RACK alone.
fn rack() -> SenderConfig {
    plain(Detection::Rack)
}

#[test]
fn reordering_by_less_than_a_quarter_of_a_round_trip_loses_nothing_and_more_does() {
    // 0 is overtaken by two, and comes 24 ms later.
    let (mut script, _) = Script::opens(rack(), 100);
    script.acks(200, 0, 1..2);
    script.acks(200, 0, 1..3);
    assert_eq!(script.waits_until(223), []);
    script.acks(224, 3, NONE);
    assert_eq!(script.sender.counters.retransmitted, 0);
    // From now on it is known that segments change their order: the first of 3 to 9 is overtaken by six, for as long.
    for end in 5..=10 {
        script.acks(225, 3, 4..end);
    }
    assert_eq!(script.sender.counters.retransmitted, 0);
    script.acks(249, 10, NONE);
    assert_eq!(
        (
            script.sender.counters.retransmitted,
            script.sender.counters.fast_recoveries
        ),
        (0, 0)
    );

    // Overtaken by two, and it does not come: 25 ms and Linux' two of grace.
    let (mut script, _) = Script::opens(rack(), 100);
    script.acks(200, 0, 1..2);
    script.acks(200, 0, 1..3);
    assert_eq!(script.waits_until(300), [(227_000, vec![0])]);
    assert_eq!(script.sender.counters.fast_recoveries, 1);
}

#[test]
fn three_that_overtake_one_lose_it_at_once_while_no_segments_have_changed_their_order() {
    let (mut script, _) = Script::opens(rack(), 100);
    assert_eq!(script.acks(200, 0, 1..2), [10]);
    assert_eq!(script.acks(200, 0, 1..3), [11]);
    assert_eq!(script.acks(200, 0, 1..4), [0]);
}

#[test]
fn what_goes_again_and_is_lost_again_goes_a_third_time_without_the_timer() {
    let (mut script, _) = Script::opens(rack(), 100);
    script.acks(200, 0, 1..2);
    script.acks(201, 0, 1..3);
    assert_eq!(script.acks(202, 0, 1..4), [0]);
    for end in 5..=10 {
        script.acks(203, 0, 1..end);
    }
    assert_eq!(script.acks(300, 0, 1..11), [14]);
    assert_eq!(script.acks(301, 0, 1..12), [15]);
    // What was sent after it has come.
    assert_eq!(script.acks(303, 0, 1..13), [0, 16]);
    assert_eq!(script.sender.counters.timeouts, 0);
    // RFC 6675 waits for the timer.
    let (mut script, _) = Script::opens(plain(Detection::Sack), 100);
    script.acks(200, 0, 1..2);
    script.acks(200, 0, 1..3);
    assert_eq!(script.acks(200, 0, 1..4), [0]);
    for end in 5..=13 {
        assert!(!script.acks(201, 0, 1..end).contains(&0));
    }
}

fn probing() -> SenderConfig {
    SenderConfig {
        tail_probe: true,
        ..rack()
    }
}

#[test]
fn a_probe_finds_a_lost_tail_after_two_round_trips() {
    let (mut script, _) = Script::opens(probing(), 10);
    script.acks(200, 8, NONE);
    // 8 and 9 are lost: the last one goes again, and tells of the other.
    assert_eq!(script.waits_until(500), [(402_000, vec![9])]);
    assert_eq!(script.acks(502, 8, 9..10), [8]);
    script.acks(602, 10, NONE);
    let counters = script.sender.counters;
    assert_eq!(
        (counters.probes, counters.fast_recoveries, counters.timeouts),
        (1, 1, 0)
    );
    assert!(script.sender.is_done());
    // Without: the timer, and slow start.
    let (mut script, _) = Script::opens(rack(), 10);
    script.acks(200, 8, NONE);
    assert_eq!(script.waits_until(600), [(500_000, vec![8])]);
    assert_eq!(script.sender.counters.timeouts, 1);
}

#[test]
fn a_probe_is_new_data_where_there_are_some_whatever_the_window_says() {
    let (mut script, _) = Script::opens(probing(), 20);
    // The window is full, and nothing comes.
    assert_eq!(script.waits_until(350), [(302_000, vec![10])]);
    // One at a time; then the timer, a timeout after the probe.
    assert_eq!(script.waits_until(700), [(602_000, vec![0])]);
    assert_eq!(script.sender.counters.timeouts, 1);
}

#[test]
fn a_loss_that_only_a_probe_repaired_cuts_the_window_and_a_probe_for_nothing_does_not() {
    for (is_lost, is_told_of_room) in [(false, false), (true, false), (true, true)] {
        let (mut script, _) = Script::opens(probing(), 10);
        script.acks(200, 9, NONE);
        // A single one may wait for a delayed acknowledgement; but the timer would come no later.
        assert_eq!(script.waits_until(550), [(500_000, vec![9])]);
        let cwnd = script.cwnd();
        script.acks(600, 10, NONE);
        if !is_lost {
            script.acks(601, 10, NONE);
        }
        if is_told_of_room {
            script.tells(601, 10, 1000);
        }
        assert_eq!(script.writes(610, 1), [10]);
        script.acks(710, 11, NONE);
        assert_eq!(script.sender.counters.probes_repaired, u64::from(is_lost));
        assert_eq!(script.cwnd() < cwnd, is_lost);
    }
}

/// What this acknowledgement takes in was under way, too.
#[test]
fn a_loss_that_a_probe_repaired_leaves_half_of_what_was_under_way_however_much_comes_with_it() {
    let (mut script, _) = Script::opens(probing(), 10);
    script.acks(200, 9, NONE);
    assert_eq!(script.waits_until(550), [(500_000, vec![9])]);
    script.acks(600, 10, NONE);
    assert_eq!(script.writes(610, 10), (10..20).collect::<Vec<_>>());
    script.acks(710, 20, NONE);
    assert_eq!(script.sender.counters.probes_repaired, 1);
    assert_eq!(script.ssthresh(), 5);
}

fn prr(initial_window_segments: u32) -> SenderConfig {
    SenderConfig {
        recovery: Reduction::Prr,
        initial_window_segments,
        ..rack()
    }
}

#[test]
fn in_proportion_one_leaves_for_two_that_come_from_the_first_loss_on() {
    let (mut script, _) = Script::opens(prr(20), 100);
    assert_eq!(script.acks(200, 0, 1..2), [20]);
    assert_eq!(script.acks(200, 0, 1..3), [21]);
    assert_eq!(script.acks(200, 0, 1..4), [0]);
    // From 20 to 10, though all of 4 to 21 are under way.
    let left = (5..=20).flat_map(|end| script.acks(201, 0, 1..end));
    assert_eq!(left.collect::<Vec<_>>(), (22..29).collect::<Vec<_>>());
    script.acks(300, 22, NONE);
    assert_eq!(script.cwnd(), 10);
}

#[test]
fn below_the_threshold_one_leaves_for_one() {
    let (mut script, _) = Script::opens(prr(20), 100);
    // 0 to 11 are lost.
    assert_eq!(script.acks(200, 0, 12..13), [20]);
    assert_eq!(script.acks(201, 0, 12..14), [21]);
    assert_eq!(script.acks(202, 0, 12..15), [0]);
    for (end, left) in (16..=20).zip(1..) {
        assert_eq!(script.acks(203, 0, 12..end), [left]);
    }
    assert_eq!(script.acks(300, 0, 12..21), [6]);
    assert_eq!(script.acks(301, 0, 12..22), [7]);
    // One that advances, and loses nothing: one more.
    assert_eq!(script.acks(302, 1, 12..22), [8, 9]);
}

#[test]
fn a_mark_cuts_the_window_once_in_a_round_trip_and_nothing_goes_again() {
    let config = SenderConfig {
        ecn: true,
        ..rack()
    };
    let (mut script, _) = Script::opens(config, 100);
    assert_eq!(script.said, (Ecn::Capable, false));
    assert_eq!(script.echoes(200, 1, NONE, true), [] as [u64; 0]);
    assert_eq!((script.cwnd(), script.sender.counters.marks), (5, 1));
    for to in 2..=5 {
        assert_eq!(script.echoes(200, to, NONE, true), [] as [u64; 0]);
    }
    assert_eq!(script.echoes(200, 6, NONE, true), [10]);
    assert_eq!(script.said, (Ecn::Capable, true), "the cut is told");
    assert_eq!(script.echoes(200, 10, NONE, true), [11, 12, 13, 14]);
    assert_eq!(script.said, (Ecn::Capable, false), "once");
    // What was sent behind the cut is acknowledged: another mark is another cut.
    script.echoes(300, 11, NONE, true);
    assert_eq!((script.cwnd(), script.sender.counters.marks), (2, 2));
    assert_eq!(script.sender.counters.retransmitted, 0);
}

#[test]
fn a_loss_among_marks_is_one_cut_with_them() {
    let config = SenderConfig {
        ecn: true,
        ..rack()
    };
    let (mut script, _) = Script::opens(config, 100);
    script.echoes(200, 1, NONE, true);
    for end in 3..=4 {
        script.echoes(200, 1, 2..end, true);
    }
    let left = script.echoes(200, 1, 2..5, true);
    assert_eq!(left, [1]);
    assert_eq!(script.said, (Ecn::NotCapable, false), "it goes again");
    let counters = script.sender.counters;
    assert_eq!(
        (counters.marks, counters.fast_recoveries, script.cwnd()),
        (1, 1, 5)
    );
}
