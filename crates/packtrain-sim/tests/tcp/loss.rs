//! What is lost, by number, and how it is repaired.

use packtrain_proto::time::Duration;
use packtrain_sim::tcp::sender::{SenderConfig, SenderCounters};

use crate::script::Script;
use crate::support::{
    EVEN_INTERFACE_NS, EVEN_OPENED, EVEN_RTT, EVEN_SERVICE_NS, Line, MSS, at, cwnd_at, ms, ns,
};

/// The frame that segment `n`, from 0, leaves the bottleneck in, if nothing went again before it: the first one
/// opens the connection.
fn frame(n: u64) -> u64 {
    n + 2
}

fn steady(segments: u64, lost: Vec<u64>) -> Line {
    Line {
        lost,
        sender: SenderConfig {
            ssthresh_segments: Some(20),
            ..SenderConfig::default()
        },
        ..Line::sends(segments)
    }
}

#[test]
fn a_single_loss_is_repaired_by_one_retransmission_and_halves_the_window_once() {
    let dumbbell = steady(300, vec![frame(100)]).run();
    let sender = dumbbell.sender(0);
    let repaired = SenderCounters {
        segments: 301,
        retransmitted: 1,
        fast_recoveries: 1,
        ..SenderCounters::default()
    };
    assert_eq!(sender.counters, repaired);
    let halved = sender
        .windows
        .windows(2)
        .find(|pair| pair[1].cwnd_bytes < pair[0].cwnd_bytes);
    let [before, after] = halved.expect("once") else {
        unreachable!("pairs");
    };
    assert_eq!(before.cwnd_bytes, 24 * MSS);
    assert_eq!(
        (after.cwnd_bytes, after.ssthresh_bytes),
        (12 * MSS, 12 * MSS)
    );
    // It stays there for the recovery, and grows by one in each round trip after it.
    let later = |rounds| cwnd_at(&dumbbell, after.at + EVEN_RTT * rounds + ms(3));
    assert_eq!([later(1), later(2), later(3)], [12, 13, 14]);
    assert_eq!(dumbbell.receiver(0).counters.duplicates, 0);
}

#[test]
fn losses_of_one_window_are_one_reduction_and_each_goes_again_once() {
    let lost = [100, 102, 103, 110].map(frame).to_vec();
    let counters = steady(300, lost).run().sender(0).counters;
    assert_eq!((counters.fast_recoveries, counters.retransmitted), (1, 4));
    assert_eq!(counters.timeouts, 0);
}

#[test]
fn losses_of_two_windows_are_two_reductions() {
    let counters = steady(300, [frame(100), frame(150) + 1].to_vec())
        .run()
        .sender(0)
        .counters;
    assert_eq!((counters.fast_recoveries, counters.retransmitted), (2, 2));
}

/// With one sample the timeout is three times it.
const RTO: Duration = ns(3 * EVEN_OPENED.as_nanos() as u64);
const TO_THE_RECEIVER: Duration = ns(EVEN_INTERFACE_NS + EVEN_SERVICE_NS + 50_000_000);

#[test]
fn a_lost_tail_goes_again_when_the_timer_expires_each_time_twice_as_late() {
    for times in 0..4 {
        let line = Line {
            lost: (0..times).map(frame).collect(),
            ..Line::sends(1)
        };
        let dumbbell = line.run();
        let waited = RTO * (1u32 << times) - RTO;
        let due = at(EVEN_OPENED + waited + TO_THE_RECEIVER);
        assert_eq!(dumbbell.arrived(0).had(1), Some(due), "{times} times");
        assert_eq!(dumbbell.sender(0).counters.timeouts, times);
    }
}

#[test]
fn a_timeout_leaves_one_segment_and_slow_start_to_half_of_what_was_under_way() {
    // All of a window of 24.
    let dumbbell = steady(300, (100..124).map(frame).collect()).run();
    let sender = dumbbell.sender(0);
    assert_eq!(sender.counters.timeouts, 1);
    assert_eq!(sender.counters.fast_recoveries, 0);
    let collapsed = sender
        .windows
        .iter()
        .find(|window| window.cwnd_bytes == MSS);
    let collapsed = collapsed.expect("one segment");
    let before = cwnd_at(&dumbbell, collapsed.at - ns(1));
    assert_eq!(collapsed.ssthresh_bytes, before * MSS / 2);
    let rounds: Vec<u64> = (1..5)
        .map(|n| cwnd_at(&dumbbell, collapsed.at + EVEN_RTT * n + ms(1)))
        .collect();
    assert_eq!(rounds, [2, 4, 8, before / 2]);
}

/// RFC 5681, 3.1: slow start counts what is acknowledged in order. Else a flow whose first hole is not repaired would open its
/// window for ever by what comes behind it.
#[test]
fn after_a_timeout_the_window_grows_by_what_comes_in_order_alone() {
    let config = SenderConfig {
        initial_window_segments: 4,
        ..SenderConfig::default()
    };
    let (mut script, first) = Script::opens(config, 100);
    assert_eq!(first, [0, 1, 2, 3]);
    assert_eq!(script.waits_until(450), [(400_000, vec![0])]);
    assert_eq!(script.cwnd(), 1);
    script.acks(500, 0, 1..4);
    assert_eq!(script.cwnd(), 1);
    script.acks(510, 4, 0..0);
    assert_eq!(script.cwnd(), 2);
}

#[test]
fn what_opens_the_connection_goes_again_after_a_second_and_the_window_is_one() {
    let line = Line {
        lost: vec![1],
        ..Line::sends(10)
    };
    let dumbbell = line.run();
    let sender = dumbbell.sender(0);
    assert_eq!(
        sender.opened,
        Some(at(EVEN_OPENED + Duration::from_secs(1)))
    );
    assert_eq!(sender.windows[0].cwnd_bytes, MSS);
    // Karn: the first sample is that of the first segment.
    assert_eq!(sender.rtt().min(), Some(EVEN_RTT));
}

#[test]
fn a_queue_that_overflows_loses_what_has_no_room_and_all_of_it_goes_again() {
    let line = Line {
        buffer_bytes: 60_000,
        ..Line::sends(3000)
    };
    let dumbbell = line.run();
    let (router, counters) = (dumbbell.router(), dumbbell.sender(0).counters);
    assert!(router.first_slow_start.dropped > 0);
    assert!(router.bytes_max() <= 60_000);
    assert!(counters.retransmitted >= router.dropped());
    assert_eq!(counters.segments, 3000 + counters.retransmitted);
    let all =
        router.first_slow_start.frames + router.later_slow_start.frames + router.steady.frames;
    assert_eq!(all, counters.segments);
    let arrived = dumbbell.arrived(0).segments.len() as u64;
    assert_eq!(arrived, counters.segments - router.dropped());
    assert_eq!(dumbbell.receiver(0).counters.duplicates, arrived - 3000);
}
