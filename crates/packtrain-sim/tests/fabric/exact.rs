//! What can be reckoned with a pencil, to the nanosecond.

use packtrain_proto::time::{Duration, Instant};
use packtrain_sim::fabric::{Fabric, FabricConfig, Source};
use packtrain_sim::workload::Sizes;

use crate::support::{datagrams, flow, line, ms, periodic, route, us, visitors};

/// 1500 bytes of IP with all that Ethernet adds, at 1 Gbit/s.
const FULL: Duration = Duration::from_nanos(12_304);

#[test]
fn a_datagram_takes_the_time_of_each_line_that_it_crosses_and_so_does_its_answer() {
    let source = datagrams(route(&[0, 1], &[2]), Source::Given(vec![(ms(5), 1500)]));
    let config = FabricConfig {
        lines: vec![
            line(1_000_000_000, ms(1)),
            line(1_000_000_000, ms(2)),
            // 28 bytes are padded to 60: 672 bits.
            line(1_000_000, ms(4)),
        ],
        datagrams: vec![packtrain_sim::fabric::DatagramsConfig {
            reply_bytes: Some(28),
            ..source
        }],
        ..FabricConfig::default()
    };
    let mut fabric = Fabric::new(&config, ());
    fabric.run_until(Instant::ZERO + ms(100));
    let station = fabric.station(0);
    assert_eq!(station.delays.max(), ms(3) + FULL * 2);
    assert_eq!(station.round_trips.max(), ms(7) + FULL * 2 + us(672));
    assert_eq!((station.count.sent, station.replies), (1, 1));
    assert_eq!(station.count.delivered_bytes, 1472);
}

#[test]
fn a_closed_loop_sends_the_next_request_when_the_answer_has_come_and_thought_is_over() {
    let source = Source::AfterReply {
        think: ms(3),
        patience: Duration::from_secs(1),
        packet_bytes: 1500,
    };
    let config = FabricConfig {
        lines: vec![line(1_000_000_000, ms(1)), line(1_000_000_000, ms(1))],
        datagrams: vec![packtrain_sim::fabric::DatagramsConfig {
            reply_bytes: Some(1500),
            ..datagrams(route(&[0], &[1]), source)
        }],
        ..FabricConfig::default()
    };
    let mut fabric = Fabric::new(&config, ());
    // Each takes 2 ms and twice 12.304 µs, and 3 ms follow it.
    fabric.run_until(Instant::ZERO + (ms(5) + FULL * 2) * 10 - Duration::from_nanos(1));
    assert_eq!(fabric.station(0).count.sent, 10);
    fabric.run_for(Duration::from_nanos(1));
    assert_eq!(fabric.station(0).count.sent, 11);
}

#[test]
fn who_gets_no_answer_asks_again_when_patience_is_over() {
    let source = Source::AfterReply {
        think: ms(0),
        patience: ms(50),
        packet_bytes: 100,
    };
    let config = FabricConfig {
        lines: vec![line(1_000_000_000, ms(1))],
        datagrams: vec![datagrams(route(&[0], &[]), source)],
        ..FabricConfig::default()
    };
    let mut fabric = Fabric::new(&config, ());
    fabric.run_until(Instant::ZERO + ms(499));
    assert_eq!(fabric.station(0).count.sent, 10);
}

#[test]
fn a_visit_takes_the_handshake_and_a_round_trip_for_each_window() {
    // 10 segments in the first window, 20 in the second.
    let mss = 1460;
    let durations = [1, 10, 11, 30].map(|segments| {
        let sizes = Sizes::Fixed {
            bytes: segments * mss,
        };
        let config = FabricConfig {
            lines: vec![line(1_000_000_000, ms(10)), line(1_000_000_000, ms(10))],
            visitors: vec![visitors(vec![route(&[0], &[1])], ms(1000), sizes)],
            ..FabricConfig::default()
        };
        let mut fabric = Fabric::new(&config, ());
        while fabric.class(0).counters.finished == 0 {
            assert!(fabric.step());
        }
        fabric.class(0).durations.max()
    });
    // A SYN and its answer are 60 bytes and 66 with padding, and 24 around them.
    let syn = Duration::from_nanos(8 * (84 + 86));
    let handshake = ms(20) + syn;
    let acknowledgement = Duration::from_nanos(8 * 84);
    let last = [
        handshake + FULL + ms(10),
        handshake + FULL * 10 + ms(10),
        handshake + FULL + ms(20) + acknowledgement + FULL + ms(10),
        // The acknowledgements of ten let twenty go, two by two.
        handshake + FULL + ms(20) + acknowledgement + FULL * 20 + ms(10),
    ];
    assert_eq!(durations, last);
}

#[test]
fn connections_that_share_an_interface_take_turns_at_it() {
    let mut config = FabricConfig {
        lines: vec![line(10_000_000, ms(1)), line(1_000_000_000, ms(1))],
        ..FabricConfig::default()
    };
    config.flows = (0..3).map(|_| flow(route(&[0], &[1]), 1 << 30)).collect();
    let mut fabric = Fabric::new(&config, ());
    fabric.run_for(Duration::from_secs(10));
    let arrived = [0, 1, 2].map(|flow| fabric.count(flow).arrived);
    // Together what the line carries, less what acknowledgements waited for at the start.
    let all: u64 = arrived.iter().sum();
    assert!((8000..=8130).contains(&all), "{all}");
    assert!(
        arrived.iter().max().unwrap() - arrived.iter().min().unwrap() < 100,
        "{arrived:?}"
    );
}

#[test]
fn what_an_interface_is_not_asked_for_is_never_lost_there() {
    let mut config = FabricConfig {
        lines: vec![line(10_000_000, ms(1)), line(1_000_000_000, ms(1))],
        flows: vec![flow(route(&[0], &[1]), 1 << 24)],
        ..FabricConfig::default()
    };
    config.lines[0].queue = packtrain_sim::net::queue::QueueConfig::drop_tail(5000);
    let run = |config: &FabricConfig| {
        let mut fabric = Fabric::new(config, ());
        fabric.run_for(Duration::from_secs(5));
        fabric.count(0).dropped
    };
    assert_eq!(run(&config), 0);
    // As in ns-2 everything that the window lets goes there.
    config.flows[0].ends.backpressure = packtrain_sim::fabric::Backpressure::None;
    assert!(run(&config) > 5);
}

#[test]
fn datagrams_at_an_even_pace_are_what_fills_a_line() {
    let config = FabricConfig {
        lines: vec![line(1_000_000_000, ms(1))],
        datagrams: vec![datagrams(route(&[0], &[]), periodic(FULL * 2, 1500))],
        ..FabricConfig::default()
    };
    let mut fabric = Fabric::new(&config, ());
    fabric.run_for(FULL * 2000);
    let busy = fabric.wire(0).counters.busy;
    assert_eq!(busy, FULL * 1000);
    assert_eq!(fabric.station(0).delays.max(), ms(1) + FULL);
}
