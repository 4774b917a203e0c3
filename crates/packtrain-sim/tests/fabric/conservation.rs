//! Whatever sends over whatever: each data unit has arrived, was dropped, was lost, or is still somewhere.

use packtrain_proto::queue::codel::CodelParams;
use packtrain_proto::time::Duration;
use packtrain_sim::event_queue::HeapQueue;
use packtrain_sim::fabric::{
    Backpressure, Count, Fabric, FabricConfig, LineId, RouteConfig, Source,
};
use packtrain_sim::net::jitter::{JitterConfig, JitterDistribution};
use packtrain_sim::net::loss::LossConfig;
use packtrain_sim::net::queue::{Discipline, QueueConfig, QueueLimit};
use packtrain_sim::net::reordering::ReorderingConfig;
use packtrain_sim::net::wire::WireConfig;
use packtrain_sim::random::Random;
use packtrain_sim::workload::{Process, Sizes};

use crate::support::{datagrams, flow, ms, us, visitors};

const SEEDS: u64 = 60;

fn any_line(random: &mut Random) -> WireConfig {
    let disciplines = [
        Discipline::DropTail,
        Discipline::DropTail,
        Discipline::Codel {
            params: CodelParams {
                target: ms(5),
                interval: ms(100),
            },
            ecn: random.chance(0.5),
        },
        Discipline::MarkAbove { bytes: 5000 },
        Discipline::Drr {
            quantum_bytes: 1514,
            flow_limit_bytes: random.chance(0.5).then_some(10_000),
        },
        Discipline::FqCodel {
            quantum_bytes: 1514,
            params: CodelParams {
                target: ms(5),
                interval: ms(100),
            },
            ecn: random.chance(0.5),
        },
        Discipline::ShortFirst {
            threshold_bytes: 50_000,
        },
        Discipline::Red {
            min_bytes: 5000,
            max_bytes: 15_000,
            max_probability: 0.1,
            weight: 0.002,
            ecn: random.chance(0.5),
            gentle: true,
        },
    ];
    let limit = match random.chance(0.5) {
        true => QueueLimit::Bytes(random.magnitude(3000, 300_000) as usize),
        false => QueueLimit::Frames(random.between(2, 200) as usize),
    };
    let rate_bps = random.magnitude(500_000, 100_000_000);
    WireConfig {
        queue: QueueConfig {
            limit,
            discipline: *random.pick(&disciplines),
        },
        loss: random.chance(0.3).then(|| LossConfig::Bernoulli {
            probability: 0.05 * random.unit(),
        }),
        jitter: random.chance(0.3).then(|| JitterConfig {
            distribution: JitterDistribution::Uniform {
                max: random.duration(Duration::ZERO, ms(20)),
            },
            keeps_order: random.chance(0.5),
        }),
        reordering: random.chance(0.2).then_some(ReorderingConfig {
            probability: 0.05,
            hold_max: ms(30),
        }),
        ..WireConfig::perfect(rate_bps, random.duration(us(10), ms(50)))
    }
}

/// Lines in any number, and everybody takes any of them, some more than once.
fn any(random: &mut Random) -> FabricConfig {
    let lines: Vec<_> = (0..random.between(2, 8))
        .map(|_| any_line(random))
        .collect();
    let count = lines.len() as u64;
    let way = |random: &mut Random, least: u64| -> Vec<LineId> {
        let hops = random.between(least, 4);
        (0..hops).map(|_| random.below(count) as LineId).collect()
    };
    let any_route = |random: &mut Random| RouteConfig {
        forward: way(random, 1),
        back: way(random, 0),
    };
    let flows = (0..random.between(0, 4)).map(|_| {
        let mut flow = flow(any_route(random), random.magnitude(1, 1_000_000));
        flow.starts = random.duration(Duration::ZERO, ms(500));
        if random.chance(0.3) {
            flow.ends.backpressure = Backpressure::None;
        }
        flow
    });
    let flows = flows.collect();
    let classes = (0..random.between(0, 2)).map(|_| {
        let routes = (0..random.between(1, 3))
            .map(|_| any_route(random))
            .collect();
        let mut class = visitors(
            routes,
            random.duration(ms(10), ms(300)),
            Sizes::Fixed {
                bytes: random.magnitude(1, 100_000),
            },
        );
        class.at_once_max = random.between(1, 30) as u32;
        class
    });
    let classes = classes.collect();
    let stations = (0..random.between(0, 3)).map(|_| {
        let packet_bytes = random.between(28, 9000);
        let source = match random.chance(0.5) {
            true => Source::Drawn {
                arrivals: Process::Poisson {
                    mean_gap: random.duration(us(500), ms(50)),
                },
                sizes: Sizes::Fixed {
                    bytes: packet_bytes,
                },
            },
            false => Source::AfterReply {
                think: random.duration(Duration::ZERO, ms(10)),
                patience: ms(500),
                packet_bytes: packet_bytes as u32,
            },
        };
        let mut station = datagrams(any_route(random), source);
        station.reply_bytes = random.chance(0.7).then_some(200);
        station.ecn = random.chance(0.5);
        station
    });
    let datagrams = stations.collect();
    FabricConfig {
        lines,
        flows,
        visitors: classes,
        datagrams,
        seed: random.next(),
    }
}

fn lines_counts<Q>(fabric: &Fabric<(), Q>, lines: usize) -> Vec<[u64; 4]>
where
    Q: packtrain_sim::event_queue::Queue<packtrain_sim::fabric::Event>,
{
    let line = |line| {
        let wire = fabric.wire(line as LineId);
        let counters = wire.counters;
        let [queued, dropped] = [wire.queued_frames() as u64, counters.dropped()];
        [counters.offered, counters.arriving, dropped, queued]
    };
    (0..lines).map(line).collect()
}

#[test]
fn every_packet_is_somewhere() {
    let (mut came, mut finished, mut dropped, mut late) = (0, 0, 0, 0);
    for seed in 0..SEEDS {
        let config = any(&mut Random::new(seed));
        let mut fabric = Fabric::new(&config, ());
        for _ in 0..4 {
            fabric.run_for(Duration::from_secs(2));
            let lines = lines_counts(&fabric, config.lines.len());
            for (line, [offered, arriving, dropped, queued]) in lines.iter().enumerate() {
                let known = arriving + dropped + queued;
                assert_eq!(*offered, known, "seed {seed}, line {line}");
            }
            let all: Count = fabric.group(0);
            let gone = all.arrived + all.dropped + all.lost;
            let queued: u64 = lines.iter().map(|[.., queued]| queued).sum();
            let somewhere = queued + fabric.packets_under_way() as u64;
            assert!(gone <= all.sent, "seed {seed}: {all:?}");
            assert!(
                all.sent - gone <= somewhere + fabric.late(),
                "seed {seed}: {all:?}"
            );
        }
        for class in 0..config.visitors.len() as u32 {
            let class = fabric.class(class);
            let here = u64::from(class.present);
            let known = class.counters.turned_away + class.counters.finished + here;
            assert!(known >= class.counters.came, "seed {seed}");
            assert!(here <= u64::from(class.config.at_once_max));
            came += class.counters.came;
            finished += class.counters.finished;
        }
        dropped += fabric.group(0).dropped;
        late += fabric.late();
    }
    // It was no idle walk.
    assert!(came > 1000 && finished > 500, "{came} {finished}");
    assert!(dropped > 1000 && late > 0, "{dropped} {late}");
}

/// Without those who leave, and what is still on its way, the sum is exact.
#[test]
fn when_all_has_come_each_data_unit_has_arrived_or_was_dropped_or_lost() {
    let (mut sent, mut dropped, mut lost) = (0, 0, 0);
    for seed in 0..SEEDS {
        let mut config = any(&mut Random::new(seed));
        config.visitors.clear();
        config.datagrams.clear();
        let mut fabric = Fabric::new(&config, ());
        for _ in 0..400 {
            if fabric.is_done() {
                break;
            }
            fabric.run_for(Duration::from_secs(10));
        }
        assert!(fabric.is_done(), "seed {seed}");
        fabric.run_for(Duration::from_secs(10));
        let lines = lines_counts(&fabric, config.lines.len());
        let queued: u64 = lines.iter().map(|[.., queued]| queued).sum();
        assert_eq!(queued + fabric.packets_under_way() as u64, 0, "seed {seed}");
        let all = fabric.group(0);
        let known = all.arrived + all.dropped + all.lost;
        assert_eq!(all.sent, known, "seed {seed}: {all:?}");
        let written = config.flows.iter().flat_map(|flow| &flow.writes);
        let written: u64 = written.map(|(_, bytes)| bytes).sum();
        assert_eq!(all.delivered_bytes, written, "seed {seed}");
        (sent, dropped, lost) = (sent + all.sent, dropped + all.dropped, lost + all.lost);
    }
    assert!(
        sent > 1000 && dropped > 10 && lost > 10,
        "{sent} {dropped} {lost}"
    );
}

#[test]
fn a_seed_gives_the_same_run_on_either_queue_of_events() {
    for seed in 0..10 {
        let config = any(&mut Random::new(seed));
        let mut one = Fabric::new(&config, ());
        let mut other = Fabric::on(HeapQueue::default(), &config, ());
        one.run_for(Duration::from_secs(5));
        other.run_for(Duration::from_secs(5));
        assert_eq!(one.events_done(), other.events_done(), "seed {seed}");
        let lines = config.lines.len();
        assert_eq!(
            lines_counts(&one, lines),
            lines_counts(&other, lines),
            "seed {seed}"
        );
        assert_eq!(one.group(0), other.group(0), "seed {seed}");
    }
}

#[test]
fn nothing_grows_while_a_line_is_full() {
    let route = || crate::support::route(&[0], &[1]);
    let config = FabricConfig {
        lines: vec![
            WireConfig::perfect(100_000_000, ms(20)),
            WireConfig::perfect(1_000_000_000, ms(20)),
        ],
        flows: (0..4).map(|_| flow(route(), 1 << 40)).collect(),
        visitors: vec![visitors(
            vec![route()],
            ms(20),
            Sizes::Fixed { bytes: 20_000 },
        )],
        ..FabricConfig::default()
    };
    let mut fabric = Fabric::new(&config, ());
    fabric.run_for(Duration::from_secs(5));
    let mut most = 0;
    for _ in 0..50 {
        fabric.run_for(ms(200));
        most = most.max(fabric.events_planned());
    }
    // For each line one that leaves and one that arrives; two timers each; and a few that are void.
    let connections = 4 + fabric.class(0).present as usize;
    assert!(
        most < 4 + 8 * (connections + 20),
        "{most} events, {connections} connections"
    );
}
