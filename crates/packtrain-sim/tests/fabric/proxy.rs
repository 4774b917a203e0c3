//! Split TCP: a proxy between two connections.

use packtrain_proto::time::Duration;
use packtrain_sim::fabric::{Fabric, FabricConfig};
use packtrain_sim::net::loss::LossConfig;

use crate::support::{flow, line, ms, route};

const BYTES: u64 = 3_000_000;

/// 100 ms at 100 Mbit/s, then 10 ms at 10 Mbit/s that loses 1 %.
fn split(window_bytes: u64) -> FabricConfig {
    let mut near = flow(route(&[0], &[1]), BYTES);
    near.feeds = Some(1);
    near.ends.receiver.window_bytes = window_bytes;
    let mut far = flow(route(&[2], &[3]), 0);
    far.writes.clear();
    let mut config = FabricConfig {
        lines: vec![
            line(100_000_000, ms(50)),
            line(100_000_000, ms(50)),
            line(10_000_000, ms(5)),
            line(10_000_000, ms(5)),
        ],
        flows: vec![near, far],
        seed: 5,
        ..FabricConfig::default()
    };
    config.lines[2].loss = Some(LossConfig::Bernoulli { probability: 0.01 });
    config
}

#[test]
fn everything_goes_on_and_the_proxy_never_holds_more_than_the_window() {
    for window_bytes in [10_000, 100_000, 1 << 30] {
        let config = split(window_bytes);
        let mut fabric = Fabric::new(&config, ());
        let mut most = 0;
        while fabric.count(1).delivered_bytes < BYTES {
            assert!(fabric.step(), "with {window_bytes} it stops");
            let held = fabric.receiver(0).next() - fabric.sender(1).acknowledged();
            most = most.max(held);
        }
        assert!(most <= window_bytes, "{most} of {window_bytes}");
        assert_eq!(fabric.receiver(0).counters.refused, 0);
        assert_eq!(fabric.count(0).delivered_bytes, BYTES);
    }
}

#[test]
fn a_proxy_hides_the_losses_of_a_short_line_from_a_long_one() {
    let time = |config: &FabricConfig, last: u32| {
        let mut fabric = Fabric::new(config, ());
        while fabric.count(last).delivered_bytes < BYTES {
            assert!(fabric.step());
        }
        fabric.now().as_nanos()
    };
    let split_time = time(&split(1 << 20), 1);
    let mut whole = split(1 << 20);
    whole.flows.truncate(1);
    whole.flows[0].feeds = None;
    whole.flows[0].route = route(&[0, 2], &[3, 1]);
    let whole_time = time(&whole, 0);
    assert!(2 * split_time < whole_time, "{split_time} {whole_time}");
}

#[test]
fn a_window_that_is_shut_is_asked_about_though_what_told_of_room_is_lost() {
    let mut config = split(10_000);
    // Back from the proxy little comes through.
    config.lines[1].loss = Some(LossConfig::Bernoulli { probability: 0.5 });
    let mut fabric = Fabric::new(&config, ());
    fabric.run_for(Duration::from_secs(600));
    assert!(fabric.count(1).delivered_bytes > 500_000);
    let last = fabric.count(1).delivered_bytes;
    fabric.run_for(Duration::from_secs(600));
    assert!(fabric.count(1).delivered_bytes > last || last == BYTES);
}
