//! Whatever the path does: every byte comes out once and in order, and all of them do.

use packtrain_proto::pacing::path::Path;
use packtrain_proto::time::Duration;
use packtrain_sim::net::jitter::{JitterConfig, JitterDistribution};
use packtrain_sim::net::loss::LossConfig;
use packtrain_sim::net::queue::{Discipline, QueueConfig};
use packtrain_sim::net::reordering::ReorderingConfig;
use packtrain_sim::net::wire::WireConfig;
use packtrain_sim::random::Random;
use packtrain_sim::tcp::dumbbell::{Dumbbell, DumbbellConfig, FlowConfig};
use packtrain_sim::tcp::pacer::{RoundTrip, SpacingConfig};
use packtrain_sim::tcp::receiver::ReceiverConfig;
use packtrain_sim::tcp::scoreboard::Detection;
use packtrain_sim::tcp::sender::{Reduction, SenderConfig, SenderCounters};

use crate::support::{Line, MSS, ms};

const SEEDS: u64 = 1000;

/// Rates, losses in both directions, duplicates, reordering, small windows and buffers, marks, segments of any length, and senders of
/// any parts.
fn any(random: &mut Random) -> DumbbellConfig {
    let hard = |random: &mut Random, wire: WireConfig| WireConfig {
        loss: random.chance(0.5).then(|| LossConfig::Bernoulli {
            probability: 0.1 * random.unit(),
        }),
        duplication: random.chance(0.2).then_some(0.05),
        jitter: random.chance(0.3).then(|| JitterConfig {
            distribution: JitterDistribution::Uniform {
                max: random.duration(Duration::ZERO, ms(20)),
            },
            keeps_order: random.chance(0.5),
        }),
        reordering: random.chance(0.2).then(|| ReorderingConfig {
            probability: 0.05,
            hold_max: ms(30),
        }),
        ..wire
    };
    let delay = random.duration(Duration::from_micros(100), ms(100));
    let rate_bps = random.magnitude(500_000, 1_000_000_000);
    let buffer = random.magnitude(3000, 300_000) as usize;
    let queue = QueueConfig {
        discipline: match random.chance(0.3) {
            true => Discipline::MarkAbove { bytes: buffer / 4 },
            false => Discipline::DropTail,
        },
        ..QueueConfig::drop_tail(buffer)
    };
    let bottleneck = WireConfig {
        queue,
        ..WireConfig::perfect(rate_bps, delay)
    };
    let flows = (0..random.between(1, 3))
        .map(|_| any_flow(random, buffer as u64))
        .collect();
    DumbbellConfig {
        flows,
        bottleneck: hard(random, bottleneck),
        way_back: hard(random, WireConfig::unrated(delay)),
        seed: random.next(),
    }
}

/// Two segments fit into the buffer, and into the receiver's window.
fn any_flow(random: &mut Random, buffer: u64) -> FlowConfig {
    let path = Path {
        rate_bytes_per_s: random.magnitude(10_000, 100_000_000),
        rtt_min_us: random.between(100, 200_000) as u32,
    };
    let spacing = SpacingConfig {
        precision: random.duration(Duration::from_micros(10), ms(10)),
        path: random.chance(0.5).then_some(path),
        round_trip: *random.pick(&[RoundTrip::Smoothed, RoundTrip::Least]),
    };
    let writes = (0..random.between(1, 4)).map(|_| {
        let after = random.duration(Duration::ZERO, ms(3000));
        (after, random.magnitude(1, 200_000))
    });
    let mut writes: Vec<_> = writes.collect();
    writes.sort();
    let detections = [
        Detection::RENO,
        Detection::NEW_RENO,
        Detection::Sack,
        Detection::Rack,
    ];
    let detection = *random.pick(&detections);
    let window_bytes = random.magnitude(3000, 10_000_000);
    let mss_max = (buffer.min(window_bytes) / 2 - 60).min(65_000);
    let mss = match random.chance(0.8) {
        true => random.between(200, mss_max.min(1460)),
        false => random.magnitude(200, mss_max),
    };
    let cubic = random.chance(0.5);
    FlowConfig {
        sender: SenderConfig {
            detection,
            cubic,
            hystart: cubic && random.chance(0.5),
            recovery: *random.pick(&[Reduction::Halving, Reduction::Prr]),
            tail_probe: detection == Detection::Rack && random.chance(0.7),
            ecn: random.chance(0.4),
            record: random.chance(0.5),
            mss: mss as u32,
            initial_window_segments: random.between(1, 20) as u32,
            ssthresh_segments: random.chance(0.3).then(|| random.between(1, 50) as u32),
            spacing: random.chance(0.5).then_some(spacing),
            ..SenderConfig::default()
        },
        receiver: ReceiverConfig {
            window_bytes,
            delayed_ack: random.chance(0.5).then_some(ms(40)),
            ..ReceiverConfig::default()
        },
        interface: WireConfig::perfect(random.magnitude(1_000_000, 1_000_000_000), Duration::ZERO),
        starts: random.duration(Duration::ZERO, ms(100)),
        writes,
    }
}

fn run(seed: u64) -> (DumbbellConfig, Dumbbell) {
    let config = any(&mut Random::new(seed));
    let mut dumbbell = Dumbbell::new(&config);
    dumbbell.run(Duration::from_secs(20_000));
    assert!(dumbbell.is_done(), "seed {seed}: not within hours");
    (config, dumbbell)
}

#[test]
fn every_byte_is_delivered_once_and_in_order() {
    let (mut lost, mut refused) = (0, 0);
    let mut all = SenderCounters::default();
    for seed in 0..SEEDS {
        let (config, dumbbell) = run(seed);
        for (index, flow) in config.flows.iter().enumerate() {
            let written: u64 = flow.writes.iter().map(|(_, bytes)| bytes).sum();
            let mut next = 0;
            for (_, range) in &dumbbell.arrived(index).delivered {
                assert_eq!(range.start, next, "seed {seed}, flow {index}");
                assert!(range.end > next, "seed {seed}, flow {index}");
                next = range.end;
            }
            assert_eq!(next, written, "seed {seed}, flow {index}");
            let (sender, receiver) = (dumbbell.sender(index), dumbbell.receiver(index));
            assert_eq!(sender.acknowledged(), written);
            assert_eq!(
                receiver.out_of_order_bytes(),
                0,
                "seed {seed}, flow {index}"
            );
            all.timeouts += sender.counters.timeouts;
            all.fast_recoveries += sender.counters.fast_recoveries;
            all.probes += sender.counters.probes;
            all.marks += sender.counters.marks;
            refused += receiver.counters.refused;
        }
        lost += dumbbell.bottleneck().counters.dropped();
    }
    // It was no idle walk; and nobody was sent more than he had room for.
    assert!(lost > 5000 && all.timeouts > 1000, "{lost} {all:?}");
    assert!(all.fast_recoveries > 1000, "{all:?}");
    assert!(all.probes > 30 && all.marks > 100, "{all:?}");
    assert_eq!(refused, 0);
}

#[test]
fn a_seed_gives_the_same_run() {
    for seed in 0..10 {
        let [one, other] = [run(seed).1, run(seed).1];
        assert_eq!(one.now(), other.now());
        assert_eq!(one.router(), other.router());
        assert_eq!(one.arrived(0).segments, other.arrived(0).segments);
        assert_eq!(one.sender(0).windows, other.sender(0).windows);
        assert_eq!(one.sender(0).counters, other.sender(0).counters);
    }
}

#[test]
fn connections_that_share_a_bottleneck_have_it_together() {
    let line = Line {
        buffer_bytes: 1_250_000,
        ..Line::sends(8000)
    };
    let mut config = line.config();
    config.flows.push(config.flows[0].clone());
    let mut dumbbell = Dumbbell::new(&config);
    dumbbell.run(Duration::from_secs(60));
    let done = |flow: usize| dumbbell.arrived(flow).had(8000 * MSS).expect("all");
    let busy = line.service() * 16_000;
    // Twice as much as the one needs, and slow start, and what its overshoot costs.
    let last = done(0).max(done(1)).as_nanos() as f64 / busy.as_nanos() as f64;
    assert!((1.0..1.6).contains(&last), "{last}");
}
