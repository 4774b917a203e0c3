//! What becomes of frames: each once, by its reason, in order, the same again for the same seed, and
//! whatever is changed on the way.

use std::collections::BTreeSet;

use packtrain_proto::queue::codel::CodelParams;
use packtrain_proto::time::Duration;
use packtrain_sim::frame::Frame;
use packtrain_sim::net::bit_errors::BitErrorConfig;
use packtrain_sim::net::corruption::CorruptionConfig;
use packtrain_sim::net::jitter::{JitterConfig, JitterDistribution};
use packtrain_sim::net::loss::LossConfig;
use packtrain_sim::net::packet_cap::PacketCapConfig;
use packtrain_sim::net::processing::ProcessingConfig;
use packtrain_sim::net::queue::{Discipline, QueueConfig, QueueLimit};
use packtrain_sim::net::rate::{RateConfig, RateLevel};
use packtrain_sim::net::reordering::ReorderingConfig;
use packtrain_sim::net::wire::{WireConfig, WireCounters, WireDrop};
use proptest::option;
use proptest::prelude::*;

use crate::support::{Driven, Fate, any_frame, bare, duration, huge, magnitude};

fn any_loss() -> impl Strategy<Value = LossConfig> {
    prop_oneof![
        (0.0..0.3).prop_map(|probability| LossConfig::Bernoulli { probability }),
        (0.0..0.1, 0.1..1.0, 0.3..1.0).prop_map(|(good_to_bad, bad_to_good, loss_in_bad)| {
            LossConfig::GilbertElliott {
                good_to_bad,
                bad_to_good,
                loss_in_good: 0.0,
                loss_in_bad,
            }
        }),
        (1u64..20).prop_map(|every| LossConfig::Periodic { every }),
        prop::collection::btree_set(1u64..100, 0..20).prop_map(|frames| LossConfig::Given {
            frames: frames.into_iter().collect()
        }),
    ]
}

fn any_queue() -> impl Strategy<Value = QueueConfig> {
    let limit = prop_oneof![
        (0usize..100_000).prop_map(QueueLimit::Bytes),
        (0usize..100).prop_map(QueueLimit::Frames),
    ];
    let params = CodelParams {
        target: Duration::from_micros(200),
        interval: Duration::from_millis(1),
    };
    let discipline = prop_oneof![
        Just(Discipline::DropTail),
        any::<bool>().prop_map(move |ecn| Discipline::Codel { params, ecn }),
        (0usize..50_000).prop_map(|bytes| Discipline::MarkAbove { bytes }),
        (1500usize..20_000, option::of(1000usize..30_000)).prop_map(
            |(quantum_bytes, flow_limit_bytes)| Discipline::Drr {
                quantum_bytes,
                flow_limit_bytes,
            }
        ),
        (300usize..20_000, any::<bool>()).prop_map(move |(quantum_bytes, ecn)| {
            Discipline::FqCodel {
                quantum_bytes,
                params,
                ecn,
            }
        }),
        (0u64..20_000).prop_map(|threshold_bytes| Discipline::ShortFirst { threshold_bytes }),
        (0usize..20_000, 1usize..20_000, any::<(bool, bool)>()).prop_map(
            |(min_bytes, more, (ecn, gentle))| Discipline::Red {
                min_bytes,
                max_bytes: min_bytes + more,
                max_probability: 0.2,
                weight: 0.1,
                ecn,
                gentle,
            }
        ),
    ];
    (limit, discipline).prop_map(|(limit, discipline)| QueueConfig { limit, discipline })
}

fn any_jitter() -> impl Strategy<Value = JitterConfig> {
    let distribution = (0..4, duration(8)).prop_map(|(kind, time)| match kind {
        0 => JitterDistribution::Queue { max: time },
        1 => JitterDistribution::Uniform { max: time },
        2 => JitterDistribution::Normal { deviation: time },
        _ => JitterDistribution::Pareto { mean: time },
    });
    (distribution, any::<bool>()).prop_map(|(distribution, keeps_order)| JitterConfig {
        distribution,
        keeps_order,
    })
}

fn any_config() -> impl Strategy<Value = WireConfig> {
    let rate = (magnitude(6, 11), any::<bool>()).prop_map(|(bps, ip)| RateConfig {
        bps,
        level: if ip {
            RateLevel::Ip
        } else {
            RateLevel::Ethernet
        },
    });
    let cap =
        (magnitude(3, 7), 1u64..30).prop_map(|(frames_per_second, burst_frames)| PacketCapConfig {
            frames_per_second,
            burst_frames,
        });
    let errors = (1i32..8).prop_map(|power| BitErrorConfig {
        rate: 10f64.powi(-power),
    });
    let corruption = (0.0..0.3, 1u64..8).prop_map(|(probability, bits_max)| CorruptionConfig {
        probability,
        bits_max,
        fcs: true,
    });
    let reordering = (0.0..0.5, duration(8)).prop_map(|(probability, hold_max)| ReorderingConfig {
        probability,
        hold_max,
    });
    let processing = (duration(5), any::<bool>())
        .prop_map(|(per_unit, masked)| ProcessingConfig { per_unit, masked });
    let line = (
        option::of(rate),
        any_queue(),
        option::of(cap),
        option::of(processing),
        duration(8),
    );
    let harm = (
        option::of(any_loss()),
        option::of(errors),
        option::of(corruption),
        option::of(0.0..0.3),
        option::of(any_jitter()),
        option::weighted(0.3, reordering),
    );
    (line, harm).prop_map(
        |((rate, queue, packet_cap, processing, delay), harm)| WireConfig {
            rate,
            queue,
            packet_cap,
            processing,
            loss: harm.0,
            bit_errors: harm.1,
            fec: None,
            arq: None,
            corruption: harm.2,
            duplication: harm.3,
            delay,
            jitter: harm.4,
            reordering: harm.5,
        },
    )
}

#[derive(Clone, Debug)]
enum Step {
    Offer(Frame),
    Wait(Duration),
    Set(Box<WireConfig>),
    Cut(bool),
    Mend,
}

fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        30 => any_frame().prop_map(Step::Offer),
        10 => duration(7).prop_map(Step::Wait),
        2 => any_config().prop_map(|config| Step::Set(Box::new(config))),
        1 => any::<bool>().prop_map(Step::Cut),
        2 => Just(Step::Mend),
    ];
    prop::collection::vec(step, 1..200)
}

/// Conservation: by the counters, and frame by frame.
fn nothing_is_unaccounted_for(driven: &Driven) {
    let counters = &driven.wire.counters;
    let held = driven.wire.queued_frames() as u64;
    assert_eq!(counters.offered, u64::from(driven.offered));
    assert_eq!(
        counters.offered + counters.more_copies,
        counters.arriving + counters.dropped() + held
    );
    let mut told = WireCounters::default();
    let (mut arrived, mut gone) = (BTreeSet::new(), BTreeSet::new());
    for fate in &driven.fates {
        match *fate {
            Fate::Arrived(number, _) => {
                told.arriving += 1;
                told.more_copies += u64::from(!arrived.insert(number));
            }
            Fate::Refused(number) => assert!(gone.insert(number)),
            Fate::Dropped(number, reason) => {
                assert!(gone.insert(number), "{number} is dropped twice");
                match reason {
                    WireDrop::QueueFull => told.queue_full += 1,
                    WireDrop::Early => unreachable!("it was refused"),
                    WireDrop::BadOffload => unreachable!("the network refuses it"),
                    WireDrop::Collisions => unreachable!("it is no hub"),
                    WireDrop::TooLong => unreachable!("a segment says that"),
                    WireDrop::Codel => told.codel += 1,
                    WireDrop::Cut => told.cut += 1,
                    WireDrop::Loss => told.lost += 1,
                    WireDrop::BitErrors => told.bit_errors += 1,
                    WireDrop::Corrupted => told.corrupted += 1,
                }
            }
        }
    }
    assert!(arrived.is_disjoint(&gone));
    assert_eq!((arrived.len() + gone.len()) as u64 + held, counters.offered);
    // A frame that a cut wire refuses is counted as cut, and another one as refused, or as hit early.
    let refused = gone.len() as u64 - told.dropped();
    let cut_at_once = counters.cut - told.cut;
    let refused_for_room = counters.queue_full - told.queue_full;
    assert_eq!(refused, refused_for_room + counters.early + cut_at_once);
    let by_reason = |c: &WireCounters| [c.codel, c.lost, c.bit_errors, c.corrupted];
    assert_eq!(by_reason(counters), by_reason(&told));
    assert_eq!(
        (counters.arriving, counters.more_copies),
        (told.arriving, told.more_copies)
    );
}

fn run(config: &WireConfig, steps: &[Step], seed: u64) -> Driven {
    let mut driven = Driven::new(config, seed);
    for step in steps {
        match step {
            Step::Offer(frame) => {
                driven.offer(frame.clone());
            }
            Step::Wait(time) => driven.run_for(*time),
            Step::Set(config) => driven.set(config),
            Step::Cut(seen) => driven.cut(*seen),
            Step::Mend => driven.wire.mend(),
        }
        nothing_is_unaccounted_for(&driven);
    }
    driven.drain();
    nothing_is_unaccounted_for(&driven);
    assert_eq!(driven.wire.queued_frames(), 0);
    assert_eq!(driven.wire.queued_bytes(), 0);
    driven
}

proptest! {
    #[test]
    fn every_frame_arrives_is_dropped_for_a_reason_or_stands_in_the_queue(
        config in any_config(),
        steps in any_steps(),
        seed: u64,
    ) {
        run(&config, &steps, seed);
    }

    #[test]
    fn the_same_seed_gives_the_same_fates(config in any_config(), steps in any_steps(), seed: u64) {
        let (once, again) = (run(&config, &steps, seed), run(&config, &steps, seed));
        prop_assert_eq!(once.fates, again.fates);
        prop_assert_eq!(once.arrived, again.arrived);
        prop_assert_eq!(once.wire.counters, again.wire.counters);
    }

    #[test]
    fn who_leaves_first_arrives_first_unless_that_is_asked_for(
        config in any_config(),
        steps in any_steps(),
        seed: u64,
    ) {
        let in_order = |config: &WireConfig| {
            let jitter = config.jitter.map(|jitter| JitterConfig { keeps_order: true, ..jitter });
            let discipline = match config.queue.discipline {
                Discipline::Drr { .. } | Discipline::FqCodel { .. } | Discipline::ShortFirst { .. } => {
                    Discipline::DropTail
                }
                one_after_the_other => one_after_the_other,
            };
            let queue = QueueConfig { discipline, ..config.queue };
            WireConfig { jitter, reordering: None, queue, ..config.clone() }
        };
        let steps: Vec<Step> = steps
            .into_iter()
            .map(|step| match step {
                Step::Set(config) => Step::Set(Box::new(in_order(&config))),
                step => step,
            })
            .collect();
        let config = in_order(&config);
        prop_assert!(!config.reorders());
        let arrivals = run(&config, &steps, seed).arrivals();
        prop_assert!(arrivals.is_sorted_by_key(|arrival| arrival.0));
        prop_assert!(arrivals.is_sorted_by_key(|arrival| arrival.1));
    }

    /// A wire that is healed keeps the order even if its jitter does not.
    #[test]
    fn a_healed_wire_does_nothing_but_delay(
        config in any_config(),
        frames in prop::collection::vec(any_frame(), 1..50),
        seed: u64,
    ) {
        let mut driven = Driven::new(&config, seed);
        driven.wire.heal();
        for frame in frames {
            driven.offer(frame);
            driven.drain();
        }
        let arrivals = driven.arrivals();
        prop_assert_eq!(arrivals.len() as u32, driven.offered);
        prop_assert!(arrivals.is_sorted_by_key(|arrival| arrival.1));
    }
}

fn harmful() -> WireConfig {
    WireConfig {
        loss: Some(LossConfig::Bernoulli { probability: 0.1 }),
        bit_errors: Some(BitErrorConfig { rate: 1e-4 }),
        corruption: Some(CorruptionConfig {
            probability: 0.1,
            bits_max: 3,
            fcs: true,
        }),
        duplication: Some(0.1),
        ..WireConfig::perfect(100_000_000, Duration::from_millis(1))
    }
}

/// Fates of 1000 frames; after 500 of them the wire is changed.
fn changed_in_the_middle(to: Option<WireConfig>) -> Driven {
    let mut driven = Driven::new(&harmful(), 7);
    for i in 0..1000 {
        if let Some(config) = to.as_ref().filter(|_| i == 500) {
            driven.set(config);
        }
        driven.offer(bare(100));
        driven.drain();
    }
    driven
}

#[test]
fn what_does_not_change_goes_on_as_if_nothing_had() {
    let unchanged = changed_in_the_middle(None);
    let same = changed_in_the_middle(Some(harmful()));
    assert_eq!(same.fates, unchanged.fates);

    let slower = changed_in_the_middle(Some(WireConfig {
        delay: Duration::from_millis(9),
        rate: Some(RateConfig::ethernet(1_000_000)),
        jitter: Some(JitterConfig {
            distribution: JitterDistribution::Normal {
                deviation: Duration::from_millis(1),
            },
            keeps_order: false,
        }),
        ..harmful()
    }));
    for reason in [WireDrop::Loss, WireDrop::BitErrors, WireDrop::Corrupted] {
        assert!(unchanged.dropped(reason).len() > 50, "{reason:?}");
        assert_eq!(slower.dropped(reason), unchanged.dropped(reason));
    }
}

/// The generator of what begins depends on the wire and on what it is, and on nothing that was before.
#[test]
fn what_is_switched_on_later_does_what_it_would_have_done_from_the_start() {
    let other = LossConfig::Bernoulli { probability: 0.2 };
    let only = |loss: LossConfig| WireConfig {
        loss: Some(loss),
        ..WireConfig::perfect(100_000_000, Duration::ZERO)
    };
    let mut from_the_start = Driven::new(&only(other.clone()), 7);
    let mut later = Driven::new(&harmful(), 7);
    for _ in 0..300 {
        later.offer(bare(100));
        later.drain();
    }
    let before = later.dropped(WireDrop::Loss).len();
    later.set(&only(other));
    for _ in 0..300 {
        from_the_start.offer(bare(100));
        later.offer(bare(100));
    }
    from_the_start.drain();
    later.drain();
    let lost: Vec<u32> = later.dropped(WireDrop::Loss)[before..].to_vec();
    let expected = from_the_start.dropped(WireDrop::Loss);
    assert!(expected.len() > 30);
    assert_eq!(lost, expected.iter().map(|n| n + 300).collect::<Vec<u32>>());
}

#[test]
fn a_shorter_rate_holds_from_the_next_frame_on() {
    let mut driven = Driven::new(&WireConfig::perfect(1_000_000, Duration::ZERO), 1);
    (0..3).for_each(|_| assert!(driven.offer(bare(101))));
    driven.set(&WireConfig::perfect(1_000_000_000, Duration::ZERO));
    driven.drain();
    let left: Vec<u64> = driven.arrivals().iter().map(|a| a.1.as_nanos()).collect();
    assert_eq!(left, [1_000_000, 1_001_000, 1_002_000]);
    driven.set(&WireConfig::unrated(Duration::ZERO));
    assert!(driven.offer(bare(101)) && driven.offer(bare(101)));
    assert_eq!(driven.wire.sending_until(), Some(driven.now));
    driven.drain();
    assert_eq!(driven.arrivals()[4].1.as_nanos(), 1_002_000);
}

#[test]
fn only_a_rate_a_queue_of_bytes_and_a_delay_do_not_count_frames() {
    let plain = WireConfig::perfect(1_000_000, Duration::from_millis(1));
    let params = CodelParams {
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
    };
    let disciplines = [
        Discipline::Codel { params, ecn: false },
        Discipline::MarkAbove { bytes: 1000 },
    ];
    let mut counting = vec![
        WireConfig {
            queue: QueueConfig {
                limit: QueueLimit::Frames(10),
                ..plain.queue
            },
            ..plain.clone()
        },
        WireConfig {
            packet_cap: Some(PacketCapConfig {
                frames_per_second: 1000,
                burst_frames: 1,
            }),
            ..plain.clone()
        },
        WireConfig {
            processing: Some(ProcessingConfig {
                per_unit: Duration::from_micros(1),
                masked: true,
            }),
            ..plain.clone()
        },
        WireConfig {
            jitter: Some(JitterConfig {
                distribution: JitterDistribution::Uniform {
                    max: Duration::from_millis(1),
                },
                keeps_order: true,
            }),
            ..plain.clone()
        },
        WireConfig {
            reordering: Some(ReorderingConfig {
                probability: 0.1,
                hold_max: Duration::from_millis(1),
            }),
            ..plain.clone()
        },
    ];
    let (loss, bit_errors) = (harmful().loss, harmful().bit_errors);
    let (corruption, duplication) = (harmful().corruption, harmful().duplication);
    counting.extend([
        WireConfig {
            loss,
            ..plain.clone()
        },
        WireConfig {
            bit_errors,
            ..plain.clone()
        },
        WireConfig {
            corruption,
            ..plain.clone()
        },
        WireConfig {
            duplication,
            ..plain.clone()
        },
    ]);
    counting.extend(disciplines.map(|discipline| WireConfig {
        queue: QueueConfig {
            discipline,
            ..plain.queue
        },
        ..plain.clone()
    }));
    for config in counting {
        assert!(config.counts_frames(), "{config:?}");
    }
    let slow_and_small = WireConfig {
        queue: QueueConfig::drop_tail(10),
        rate: Some(RateConfig {
            bps: 1,
            level: RateLevel::Ip,
        }),
        ..plain.clone()
    };
    for config in [plain, slow_and_small, WireConfig::unrated(Duration::ZERO)] {
        assert!(!config.counts_frames(), "{config:?}");
    }
}

/// What [`WireConfig::counts_frames`] says no to: cut or not, the last bit leaves at the same time.
#[test]
fn a_wire_that_does_not_count_frames_carries_a_huge_one_as_its_segments() {
    for level in [RateLevel::Ethernet, RateLevel::Ip] {
        let config = WireConfig {
            rate: Some(RateConfig {
                bps: 7_000_000,
                level,
            }),
            ..WireConfig::unrated(Duration::ZERO)
        };
        // The last one is shorter than a frame may be.
        let mut frame = huge(0, 7, 1000);
        frame.bytes.truncate(54 + 6001);
        frame.bytes[16..18].copy_from_slice(&6041u16.to_be_bytes());
        let (mut whole, mut cut) = (Driven::new(&config, 1), Driven::new(&config, 1));
        for segment in packtrain_sim::net::nic::to_wire(frame.clone()).expect("it is valid") {
            assert!(cut.offer(segment));
        }
        assert!(whole.offer(frame));
        whole.drain();
        cut.drain();
        assert_eq!((cut.arrivals().len(), whole.arrivals().len()), (7, 1));
        assert_eq!(whole.now, cut.now);
    }
}
