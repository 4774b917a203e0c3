//! The CPS paper's path in virtual time: what spacing does to a transfer and to the bottleneck's queue.
//! `cargo run --release -p packtrain-sim --example spacing`

use packtrain_proto::pacing::path::Path;
use packtrain_proto::time::{Duration, Instant};
use packtrain_sim::net::queue::QueueConfig;
use packtrain_sim::net::rate::{RateConfig, RateLevel};
use packtrain_sim::net::wire::WireConfig;
use packtrain_sim::tcp::dumbbell::{Dumbbell, DumbbellConfig, FlowConfig};
use packtrain_sim::tcp::pacer::{RoundTrip, SpacingConfig};
use packtrain_sim::tcp::receiver::ReceiverConfig;
use packtrain_sim::tcp::sender::SenderConfig;

const RTT: Duration = Duration::from_millis(198);
/// Of IP packets: an OC-12.
const BOTTLENECK_BPS: u64 = 599_000_000;
const INTERFACE_BPS: u64 = 1_000_000_000;
const BYTES: u64 = 100_000_000;
const FRAME_BYTES: usize = 1514;

fn main() {
    let spaced = |precision| SpacingConfig {
        precision,
        path: None,
        round_trip: RoundTrip::Least,
    };
    println!(
        "100 MB over {RTT:?}, 599 Mbit/s, from a gigabit interface; queues in frames of 1514 bytes\n\n\
         buffer  spacing     time   lost in slow start  later  sent again  timeouts  queue in slow start   ever"
    );
    for percent in [5, 25, 100] {
        // The first connection is spaced as far as it knows how to: it fills the path before it loses anything.
        let first = run(percent, Some(spaced(Duration::from_millis(1))));
        let path = remembered(&first);
        let ways = [
            ("none", None),
            ("10 ms", Some(spaced(Duration::from_millis(10)))),
            ("1 ms", Some(spaced(Duration::from_millis(1)))),
            ("20 µs", Some(spaced(Duration::from_micros(20)))),
            (
                "remembered",
                Some(SpacingConfig {
                    path: Some(path),
                    ..spaced(Duration::from_millis(1))
                }),
            ),
        ];
        for (name, spacing) in ways {
            let dumbbell = run(percent, spacing);
            let (router, counters) = (dumbbell.router(), dumbbell.sender(0).counters);
            let done = dumbbell.arrived(0).had(BYTES).expect("all of it");
            println!(
                "{percent:4} %  {name:10} {:6.3} s {:19} {:6} {:11} {:9} {:20} {:6}",
                done.since(Instant::ZERO).as_secs_f64(),
                router.first_slow_start.dropped,
                router.dropped() - router.first_slow_start.dropped,
                counters.retransmitted,
                counters.timeouts,
                router.first_slow_start.bytes_max / FRAME_BYTES,
                router.bytes_max() / FRAME_BYTES,
            );
        }
    }
}

/// What a connection has found out about its path: what came in the best round trip. One that lost before the path was full
/// (at a small buffer, without spacing) has seen less than the path carries.
fn remembered(dumbbell: &Dumbbell) -> Path {
    let rtt_min = dumbbell.sender(0).rtt().min().expect("it was measured");
    let most = dumbbell.arrived(0).most_within(rtt_min) as u64;
    let mss = u64::from(SenderConfig::default().mss);
    Path {
        rate_bytes_per_s: most * mss * 1_000_000_000 / rtt_min.as_nanos() as u64,
        rtt_min_us: rtt_min.as_micros() as u32,
    }
}

fn run(buffer_percent: u64, spacing: Option<SpacingConfig>) -> Dumbbell {
    let product_bytes = BOTTLENECK_BPS * RTT.as_millis() as u64 / 8000;
    let flow = FlowConfig {
        sender: SenderConfig {
            spacing,
            ..SenderConfig::default()
        },
        receiver: ReceiverConfig::default(),
        interface: WireConfig::perfect(INTERFACE_BPS, Duration::ZERO),
        starts: Duration::ZERO,
        writes: vec![(Duration::ZERO, BYTES)],
    };
    let mut dumbbell = Dumbbell::new(&DumbbellConfig {
        flows: vec![flow],
        bottleneck: WireConfig {
            rate: Some(RateConfig {
                bps: BOTTLENECK_BPS,
                level: RateLevel::Ip,
            }),
            queue: QueueConfig::drop_tail((product_bytes * buffer_percent / 100) as usize),
            ..WireConfig::unrated(RTT / 2)
        },
        way_back: WireConfig::unrated(RTT / 2),
        seed: 1,
    });
    dumbbell.run(Duration::from_secs(600));
    dumbbell
}
