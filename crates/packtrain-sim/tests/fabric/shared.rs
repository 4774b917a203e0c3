//! Connections that share an interface.

use packtrain_proto::time::{Duration, Instant};
use packtrain_sim::fabric::{Fabric, FabricConfig, FlowConfig};
use packtrain_sim::random::Random;

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
