//! Connections that share an interface.

use packtrain_proto::time::{Duration, Instant};
use packtrain_sim::fabric::{Fabric, FabricConfig, FlowConfig};
use packtrain_sim::random::Random;
use packtrain_sim::tcp::pacer::{RoundTrip, SpacingConfig};

use crate::support::{flow, line, ms, route, us};

/// Who is woken when there is room, and has nothing to send, must not keep it from those behind.
#[test]
fn nobody_waits_for_ever_at_an_interface_that_others_have_left() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let flows = (0..40).map(|_| FlowConfig {
            starts: us(random.below(10_000)),
            writes: (0..4)
                .map(|_| (us(random.below(30_000)), 1 + random.below(3_000)))
                .collect(),
            ..flow(route(&[0], &[1]), 0)
        });
        let config = FabricConfig {
            lines: vec![
                line(50_000_000, us(100 + seed * 20)),
                line(1_000_000_000, us(100)),
            ],
            flows: flows.collect(),
            ..FabricConfig::default()
        };
        let mut fabric = Fabric::new(&config, ());
        fabric.run_until(Instant::ZERO + ms(400) + Duration::from_secs(1));
        assert!(fabric.is_done(), "seed {seed}");
    }
}

/// A segment's time has come, and others have the interface: it waits for that, and time goes on.
#[test]
fn who_is_paced_and_finds_the_interface_full_does_not_ask_again_at_the_same_time() {
    let spaced = || {
        let mut flow = flow(route(&[0], &[1]), 1_000_000);
        flow.ends.sender.spacing = Some(SpacingConfig {
            precision: us(10),
            path: None,
            round_trip: RoundTrip::Least,
        });
        flow
    };
    let config = FabricConfig {
        lines: vec![line(20_000_000, ms(20)), line(1_000_000_000, ms(20))],
        flows: (0..8).map(|_| spaced()).collect(),
        ..FabricConfig::default()
    };
    let mut fabric = Fabric::new(&config, ());
    while !fabric.is_done() {
        assert!(fabric.step(), "it stops");
        assert!(fabric.events_done() < 200_000, "at {:?}", fabric.now());
    }
}
