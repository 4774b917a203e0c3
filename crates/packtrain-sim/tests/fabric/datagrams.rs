//! Datagrams on a line with a queue, against the theory of queues.

use packtrain_proto::time::{Duration, Instant};
use packtrain_sim::fabric::{Fabric, FabricConfig, Source};
use packtrain_sim::net::loss::LossConfig;
use packtrain_sim::net::queue::Discipline;
use packtrain_sim::workload::{Process, Sizes};

use crate::support::{datagrams, line, ms, periodic, route};

/// The mean time in the queue and on the line, in nanoseconds, of packets of 1250 bytes of IP at this load.
fn sojourn(load: f64, seconds: u64) -> f64 {
    // 1250 + 14 + 24 bytes at 103.04 Mbit/s: 100 µs each.
    let service = 100_000.0;
    let source = Source::Drawn {
        arrivals: Process::Poisson {
            mean_gap: Duration::from_nanos((service / load) as u64),
        },
        sizes: Sizes::Fixed { bytes: 1250 },
    };
    let config = FabricConfig {
        lines: vec![line(103_040_000, Duration::ZERO)],
        datagrams: vec![datagrams(route(&[0], &[]), source)],
        seed: 3,
        ..FabricConfig::default()
    };
    let mut fabric = Fabric::new(&config, ());
    fabric.run_until(Instant::ZERO + Duration::from_secs(seconds));
    fabric.station(0).delays.mean().as_nanos() as f64
}

#[test]
fn a_queue_of_equal_packets_that_come_at_random_is_an_m_d_1_queue() {
    for (load, seconds) in [(0.3, 40), (0.6, 40), (0.9, 150)] {
        let service = 100_000.0;
        // Pollaczek and Khinchin: the wait is ρ / (2 (1 − ρ)) services.
        let theory = service * (1.0 + load / (2.0 * (1.0 - load)));
        let ratio = sojourn(load, seconds) / theory;
        assert!((ratio - 1.0).abs() < 0.03, "at {load}: {ratio}");
    }
}

#[test]
fn what_is_lost_on_the_way_is_counted_as_that() {
    let source = Source::Drawn {
        arrivals: Process::Periodic { gap: ms(1) },
        sizes: Sizes::Fixed { bytes: 100 },
    };
    let mut config = FabricConfig {
        lines: vec![line(10_000_000, ms(1))],
        datagrams: vec![datagrams(route(&[0], &[]), source)],
        ..FabricConfig::default()
    };
    config.lines[0].loss = Some(LossConfig::Periodic { every: 10 });
    let mut fabric = Fabric::new(&config, ());
    fabric.run_until(Instant::ZERO + ms(1005));
    let count = fabric.station(0).count;
    assert_eq!((count.sent, count.lost, count.dropped), (1006, 100, 0));
    assert_eq!(fabric.group(0), count);
}

#[test]
fn an_answer_is_marked_for_its_own_way_and_not_for_what_was_marked_before_it() {
    // Each has something in its queue all the time.
    let marking = [10_000_000, 9_000_000].map(|bps| {
        let mut line = line(bps, ms(1));
        line.queue.discipline = Discipline::MarkAbove { bytes: 0 };
        line
    });
    let mut asks = datagrams(route(&[0], &[1]), periodic(ms(1), 1250));
    asks.reply_bytes = Some(1250);
    asks.ecn = true;
    let config = FabricConfig {
        lines: marking.to_vec(),
        datagrams: vec![asks],
        ..FabricConfig::default()
    };
    let mut fabric = Fabric::new(&config, ());
    fabric.run_for(Duration::from_secs(1));
    let [there, back] = [0, 1].map(|line| fabric.wire(line).counters.marked);
    assert!(there > 900 && back > 800, "{there} {back}");
}
