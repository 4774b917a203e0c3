//! What most hosts have, on a path.

use packtrain_proto::time::Duration;
use packtrain_sim::net::queue::{Discipline, QueueConfig, QueueLimit};
use packtrain_sim::tcp::dumbbell::Dumbbell;
use packtrain_sim::tcp::sender::SenderConfig;

use crate::support::{
    EVEN_INTERFACE_NS, EVEN_OPENED, EVEN_RTT, EVEN_SERVICE_NS, FRAME_BYTES, Line, at, ms, ns,
};

/// To be reckoned with a pencil: ten segments, of which the last two are lost.
#[test]
fn a_lost_tail_is_repaired_to_the_nanosecond() {
    let line = Line {
        lost: vec![10, 11],
        sender: SenderConfig::linux(),
        ..Line::sends(10)
    };
    let dumbbell = line.run();
    let answered = |n: u32| EVEN_OPENED + ms(100) + ns(EVEN_INTERFACE_NS) + ns(EVEN_SERVICE_NS) * n;
    // By the eighth acknowledgement the smoothed round trip is this.
    let mut smoothed = EVEN_OPENED.as_nanos() as u64;
    for n in 1..=8u32 {
        // The first two leave for the interface at once, and each other one when one has left it.
        let sent = EVEN_OPENED + ns(EVEN_INTERFACE_NS) * n.saturating_sub(2);
        let rtt = (answered(n) - sent).as_nanos() as u64;
        smoothed = (smoothed * 7 + rtt) / 8;
    }
    let probed = answered(8) + ns(2 * smoothed) + ms(2);
    let to_the_receiver = ns(EVEN_INTERFACE_NS + EVEN_SERVICE_NS + 50_000_000);
    let arrived = dumbbell.arrived(0);
    assert_eq!(arrived.segments[8], at(probed + to_the_receiver));
    // Its acknowledgement lets the other one go.
    assert_eq!(arrived.segments[9], at(probed + EVEN_RTT + to_the_receiver));
    assert_eq!(dumbbell.now(), at(probed + EVEN_RTT * 2));
    assert_eq!(dumbbell.sender(0).counters.timeouts, 0);
}

/// A buffer of a little more than half a round trip, and slow start alone.
fn overshoots(hystart: bool) -> Dumbbell {
    let line = Line {
        buffer_bytes: 450 * FRAME_BYTES,
        sender: SenderConfig {
            hystart,
            ..SenderConfig::linux()
        },
        ..Line::sends(6000)
    };
    line.run()
}

#[test]
fn hystart_leaves_slow_start_before_a_queue_overflows() {
    let without = overshoots(false);
    assert!(without.router().first_slow_start.dropped > 100);
    let with = overshoots(true);
    assert_eq!(with.router().first_slow_start.dropped, 0);
    let windows = &with.sender(0).windows;
    let left = windows
        .iter()
        .find(|window| window.ssthresh_bytes < u64::MAX);
    let left = left.expect("slow start has ended");
    // Acknowledgements of the flight of 640 have come for half a round trip and half a millisecond more, one in 120 µs.
    let segments = left.ssthresh_bytes / 1460;
    assert!((1060..=1063).contains(&segments), "{segments}");
}

#[test]
fn marks_keep_the_queue_short_and_lose_nothing() {
    let line = Line {
        sender: SenderConfig {
            ecn: true,
            ..SenderConfig::linux()
        },
        ..Line::sends(20_000)
    };
    let mut config = line.config();
    let most = 1500 * FRAME_BYTES;
    config.bottleneck.queue = QueueConfig {
        limit: QueueLimit::Bytes(most),
        discipline: Discipline::MarkAbove {
            bytes: 200 * FRAME_BYTES,
        },
    };
    let mut dumbbell = Dumbbell::new(&config);
    dumbbell.run(Duration::from_secs(60));
    assert!(dumbbell.is_done());
    let counters = dumbbell.sender(0).counters;
    assert!(counters.marks >= 1, "{counters:?}");
    assert_eq!((counters.retransmitted, counters.fast_recoveries), (0, 0));
    assert!(dumbbell.router().bytes_max() < most);
    // The path stays full.
    let busy = line.service() * 20_000;
    let took = dumbbell.now().since(at(EVEN_OPENED)).as_secs_f64() / busy.as_secs_f64();
    assert!(took < 1.8, "{took} {counters:?}");
}

#[test]
fn what_is_not_recorded_is_not_kept() {
    let line = Line {
        sender: SenderConfig {
            record: false,
            ..SenderConfig::linux()
        },
        ..Line::sends(1000)
    };
    let dumbbell = line.run();
    assert!(dumbbell.sender(0).windows.is_empty());
    assert!(dumbbell.sender(0).pacer().log.is_empty());
}
