//! How long slow start takes, against its closed form.

use packtrain_proto::time::{Duration, Instant};
use packtrain_sim::net::loss::LossConfig;
use packtrain_sim::tcp::sender::SenderConfig;
use packtrain_sim::theory::tcp::{slow_start_rounds, slow_start_time};

use crate::support::{Path, ms};

const RTT: Duration = ms(100);

#[test]
fn so_many_segments_take_so_many_round_trips() {
    for (segments, initial) in [(1, 10), (10, 10), (11, 10), (1000, 10), (5000, 2), (300, 1)] {
        let path = Path {
            sender: SenderConfig {
                initial_window_segments: initial,
                ..SenderConfig::default()
            },
            // It never comes to that frame.
            ..Path::lossy(RTT, LossConfig::Periodic { every: 1 << 40 })
        };
        let mss = u64::from(path.sender.mss);
        let mut fabric = path.fabric(segments * mss);
        while fabric.count(0).delivered_bytes < segments * mss {
            assert!(fabric.step());
        }
        // The handshake takes one more; data arrive after half of the last.
        let rounds = slow_start_rounds(segments, u64::from(initial), 1);
        let took = fabric.now().since(Instant::ZERO).as_secs_f64();
        let told = RTT.as_secs_f64() * (f64::from(rounds) + 0.5);
        assert!(
            (took / told - 1.0).abs() < 0.01,
            "{segments} from {initial}: {took} {told}"
        );
    }
}

#[test]
fn on_a_line_of_a_rate_it_takes_what_the_closed_form_says() {
    let path = Path {
        bps: 100_000_000,
        ..Path::lossy(RTT, LossConfig::Periodic { every: 1 << 40 })
    };
    let mss = u64::from(path.sender.mss);
    let service = Duration::from_nanos(8 * 1538 * 10);
    for segments in [100, 500, 3000] {
        let mut fabric = path.fabric(segments * mss);
        while fabric.count(0).delivered_bytes < segments * mss {
            assert!(fabric.step());
        }
        let took = fabric.now().since(Instant::ZERO).as_secs_f64();
        let told = slow_start_time(segments, 10, service, RTT).as_secs_f64();
        // The handshake before it, and half a round trip that the last takes to arrive.
        let ratio = (took - RTT.as_secs_f64() * 1.5) / told;
        println!("slow start of {segments}: {took:.4} {told:.4} {ratio:.3}");
        assert!((ratio - 1.0).abs() < 0.02, "{segments}: {took} {told}");
    }
}
