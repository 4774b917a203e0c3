//! One sender on one path.

use packtrain_proto::time::Duration;
use packtrain_sim::fabric::{Ends, Fabric, FabricConfig, FlowConfig, RouteConfig, UNLIMITED_BYTES};
use packtrain_sim::net::loss::LossConfig;
use packtrain_sim::net::queue::QueueConfig;
use packtrain_sim::net::wire::WireConfig;
use packtrain_sim::tcp::sender::SenderConfig;

pub const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[derive(Clone, Debug)]
pub struct Path {
    pub rtt: Duration,
    pub bps: u64,
    pub queue_bytes: usize,
    pub loss: Option<LossConfig>,
    pub sender: SenderConfig,
    pub delayed_ack: Option<Duration>,
    pub seed: u64,
}

impl Path {
    /// So fast that no queue stands and nothing but chance loses anything.
    pub fn lossy(rtt: Duration, loss: LossConfig) -> Path {
        Path {
            rtt,
            bps: 100_000_000_000,
            queue_bytes: 1 << 30,
            loss: Some(loss),
            sender: unrecorded(SenderConfig::default()),
            delayed_ack: None,
            seed: 1,
        }
    }

    pub fn fabric(&self, bytes: u64) -> Fabric {
        let line = |bps: u64| WireConfig {
            queue: QueueConfig::drop_tail(self.queue_bytes),
            ..WireConfig::perfect(bps, self.rtt / 2)
        };
        let mut ends = Ends {
            sender: self.sender,
            ..Ends::default()
        };
        ends.receiver.delayed_ack = self.delayed_ack;
        let flow = FlowConfig {
            ends,
            route: RouteConfig {
                forward: vec![0, 1],
                back: vec![2],
            },
            group: 0,
            starts: Duration::ZERO,
            writes: vec![(Duration::ZERO, bytes)],
            feeds: None,
        };
        // The interface is twice as fast as what it leads to.
        let interface = WireConfig::perfect(2 * self.bps, Duration::ZERO);
        let mut there = line(self.bps);
        there.loss = self.loss.clone();
        Fabric::new(
            &FabricConfig {
                lines: vec![interface, there, line(100_000_000_000)],
                flows: vec![flow],
                seed: self.seed,
                ..FabricConfig::default()
            },
            (),
        )
    }

    /// Segments a second that arrived and were new, after `ignored`.
    pub fn segments_per_second(&self, ignored: Duration, counted: Duration) -> f64 {
        let mut fabric = self.fabric(UNLIMITED_BYTES);
        fabric.run_for(ignored);
        let before = fabric.count(0);
        fabric.run_for(counted);
        let delivered = (fabric.count(0) - before).delivered_bytes;
        delivered as f64 / f64::from(self.sender.mss) / counted.as_secs_f64()
    }
}

/// What is long writes nothing down.
pub fn unrecorded(sender: SenderConfig) -> SenderConfig {
    SenderConfig {
        record: false,
        ..sender
    }
}
