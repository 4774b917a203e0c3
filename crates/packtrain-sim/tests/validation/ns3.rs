//! The same dumbbell in ns-3 3.44 (docs/validation.md), whose results stand here as numbers.
//!
//! They are what `benches/peers/ns3_dumbbell.py` printed as `goodput_bps` with the arguments beside them. Each of the flows has
//! an access line of its own, which delays as its leaf does by 1 ms; a segment has 1448 bytes and is 1502 long on each line.

use packtrain_proto::time::Duration;
use packtrain_sim::fabric::{
    Backpressure, Ends, Fabric, FabricConfig, FlowConfig, LineId, RouteConfig, UNLIMITED_BYTES,
};
use packtrain_sim::net::loss::LossConfig;
use packtrain_sim::net::queue::QueueConfig;
use packtrain_sim::net::rate::{RateConfig, RateLevel};
use packtrain_sim::net::wire::WireConfig;
use packtrain_sim::random::Random;
use packtrain_sim::tcp::receiver::ReceiverConfig;
use packtrain_sim::tcp::sender::{Reduction, SenderConfig};

use crate::support::{ms, unrecorded};

/// Of ns-3: content, and all of the frame. Ours has no time stamps, and its lines count what IP counts: the difference is content.
const SEGMENT_BYTES: u64 = 1448;
const FRAME_BYTES: u64 = 1502;
const MSS: u32 = FRAME_BYTES as u32 - 40;
const ACCESS_BPS: u64 = 100_000_000;
/// As our queues count it, with Ethernet's header.
const QUEUED_BYTES: u64 = FRAME_BYTES + 14;

#[derive(Clone, Debug)]
struct Dumbbell {
    flows: u32,
    bps: u64,
    rtt: Duration,
    /// As ns-3 counts them, without what is being sent.
    queue_bytes: u64,
    loss: Option<LossConfig>,
    sender: SenderConfig,
    seed: u64,
}

impl Dumbbell {
    fn fabric(&self) -> Fabric {
        let line = |bps: u64, delay: Duration, queue_bytes: u64| {
            let queue_bytes = queue_bytes * QUEUED_BYTES / FRAME_BYTES + QUEUED_BYTES;
            WireConfig {
                rate: Some(RateConfig {
                    bps,
                    level: RateLevel::Ip,
                }),
                queue: QueueConfig::drop_tail(queue_bytes as usize),
                ..WireConfig::unrated(delay)
            }
        };
        let (between, large) = (self.rtt / 2 - ms(2), 1_500_000);
        let mut lines = vec![line(self.bps, between, self.queue_bytes); 2];
        lines[0].loss = self.loss.clone();
        let mut random = Random::new(self.seed);
        let flows = (0..self.flows).map(|_| {
            let first = lines.len() as LineId;
            let [access, leaf] = [ACCESS_BPS, 10 * ACCESS_BPS].map(|bps| line(bps, ms(1), large));
            lines.extend([access.clone(), leaf.clone(), leaf, access]);
            FlowConfig {
                ends: Ends {
                    sender: SenderConfig {
                        mss: MSS,
                        ..unrecorded(self.sender)
                    },
                    receiver: ReceiverConfig::default(),
                    backpressure: Backpressure::None,
                },
                route: RouteConfig {
                    forward: vec![first, 0, first + 1],
                    back: vec![first + 2, 1, first + 3],
                },
                group: 0,
                starts: random.duration(Duration::ZERO, Duration::from_secs(1)),
                writes: vec![(Duration::ZERO, UNLIMITED_BYTES)],
                feeds: None,
            }
        });
        let config = FabricConfig {
            flows: flows.collect(),
            lines,
            seed: self.seed,
            ..FabricConfig::default()
        };
        Fabric::new(&config, ())
    }

    /// Content of segments as ns-3 has them, in bit/s, of all flows.
    fn goodput_bps(&self, ignored: u64, until: u64) -> f64 {
        let mut fabric = self.fabric();
        fabric.run_for(Duration::from_secs(ignored));
        let before = fabric.group(0);
        let seconds = until - ignored;
        fabric.run_for(Duration::from_secs(seconds));
        let delivered = (fabric.group(0) - before).delivered_bytes as f64;
        let segments = delivered / f64::from(MSS);
        8.0 * segments * SEGMENT_BYTES as f64 / seconds as f64
    }
}

/// `--tcp newreno --recovery classic`
fn classic() -> SenderConfig {
    SenderConfig::default()
}

/// `--tcp newreno`
fn newreno() -> SenderConfig {
    SenderConfig {
        recovery: Reduction::Prr,
        ..SenderConfig::default()
    }
}

/// `--tcp cubic --counts-once`: as it comes ns-3's counts some acknowledgements twice, which ours has no reason for (docs/validation.md).
fn cubic() -> SenderConfig {
    SenderConfig {
        cubic: true,
        hystart: true,
        ..newreno()
    }
}

/// `--flows 1 --bottleneck-bps 1e8 --access-bps 1e8 --source-queue-bytes 1500000`
fn lossy(rtt: Duration, loss: LossConfig, sender: SenderConfig) -> Dumbbell {
    Dumbbell {
        flows: 1,
        bps: 100_000_000,
        rtt,
        queue_bytes: 1_250_000,
        loss: Some(loss),
        sender,
        seed: 1,
    }
}

#[track_caller]
fn judge(what: &str, ours: f64, ns3: f64, within: f64) {
    let ratio = ours / ns3;
    println!(
        "{what}: {:.3} Mbit/s, ns-3 {:.3}, ratio {ratio:.4}",
        ours / 1e6,
        ns3 / 1e6
    );
    assert!((ratio - 1.0).abs() <= within, "{what}: {ours}, ns-3 {ns3}");
}

/// `--seconds 130 --ignore-s 30`, with `--loss-every` and `--rtt-ms`
#[test]
fn losses_at_even_distances_leave_what_they_leave_there() {
    for (every, rtt, sender, name, ns3) in [
        (1000, 100, classic(), "newreno, classic", 4_121_703.0),
        (1000, 100, newreno(), "newreno", 4_211_479.0),
        (1000, 20, classic(), "newreno, classic", 20_323_085.0),
        (1000, 100, cubic(), "cubic", 5_458_728.0),
        (100, 100, cubic(), "cubic", 1_272_734.0),
    ] {
        let ours = lossy(ms(rtt), LossConfig::Periodic { every }, sender).goodput_bps(30, 130);
        let what = format!("{name}, each {every}th lost, {rtt} ms");
        judge(&what, ours, ns3, 0.03);
    }
}

/// `--seconds 160 --ignore-s 40`, with `--bottleneck-bps 1e7`, `--queue-bytes` and `--rtt-ms`: a quarter of what is under way.
#[test]
fn small_queues_keep_a_line_as_full_as_there() {
    for (queue_bytes, rtt, ns3) in [(31_250, 100, 9_514_711.0), (6250, 20, 9_292_395.0)] {
        let one = Dumbbell {
            bps: 10_000_000,
            queue_bytes,
            loss: None,
            ..lossy(ms(rtt), LossConfig::Periodic { every: 1 }, cubic())
        };
        let what = format!("cubic, a queue of {queue_bytes} bytes");
        judge(&what, one.goodput_bps(40, 160), ns3, 0.03);
    }
}

/// Where windows are of ten segments a single one in each recovery is a tenth. How much further off they are is written down, so that
/// it is seen when it changes.
#[test]
fn where_windows_are_small_they_leave_about_as_much() {
    for (every, sender, name, ns3, ratio) in [
        (100, classic(), "newreno, classic", 1_088_664.0, 1.106),
        (100, newreno(), "newreno", 1_166_045.0, 1.033),
    ] {
        let ours = lossy(ms(100), LossConfig::Periodic { every }, sender).goodput_bps(30, 130);
        judge(
            &format!("{name}, each {every}th lost, beside {ratio} of it"),
            ours,
            ns3 * ratio,
            0.02,
        );
    }
}

/// Ten flows that lose one of a hundred by chance: `--flows 10 --loss 0.01 --seconds 60 --ignore-s 10`, means over `--seed` 1, 2, 3
/// and 5, and of CUBIC 4 as well.
#[test]
fn losses_by_chance_leave_what_they_leave_there() {
    let mean = |sender| {
        let ours = (1..=5).map(|seed| {
            let loss = LossConfig::Bernoulli { probability: 0.01 };
            let one = Dumbbell {
                flows: 10,
                seed,
                ..lossy(ms(100), loss, sender)
            };
            one.goodput_bps(10, 60)
        });
        ours.sum::<f64>() / 5.0
    };
    judge("newreno, by chance", mean(newreno()), 12_883_551.0, 0.03);
    judge("cubic, by chance", mean(cubic()), 13_332_443.0, 0.03);
}
