//! Lines to make documents of in tests: one that has just started, and one at which everything has happened.

use super::*;
use crate::settings::values::BalancePolicy;
use packtrain_proto::class::{Action, ClassPath, Pack};
use packtrain_proto::config::{LinkId, LinkSettings, Mode, NodeId};
use packtrain_proto::direct::OpenTo;
use packtrain_proto::direct::kinds::{DirectKind, KindRefused};
use packtrain_proto::queue::pressure::AutoChoice;
use packtrain_proto::stats::{
    self, DropReason, HoldBucket, HoldSnapshot, HostSnapshot, LinkSnapshot, LivenessSnapshot,
    PathMeasures, PathSize, PathSnapshot, PathState, PeerSnapshot, ReplaySnapshot, Snapshot,
};
use packtrain_proto::time::Duration;
use packtrain_proto::trunk::bit_errors::Estimate;
use packtrain_proto::unit_size::SizeBecause;
use packtrain_proto::wire::ethernet::MacAddr;
use packtrain_proto::wire::liveness::{Diagnostic, State};

fn mac(last: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, last])
}

/// Just started: nothing is known yet.
pub(crate) fn quiet_snapshot() -> Snapshot {
    Snapshot {
        node_id: NodeId(0x0123_4567_89ab_cdef),
        address: mac(1),
        mtu: 1500,
        host_rx: stats::Traffic::default(),
        host_tx: stats::Traffic::default(),
        links: Vec::new(),
        peers: Vec::new(),
        hosts: Vec::new(),
        trains_tx: stats::Trains::default(),
        trains_rx: stats::Trains::default(),
        flushes: stats::Flushes::default(),
        train_sizes: stats::TrainSizesSnapshot::default(),
        data_units: stats::DataUnits::default(),
        coding: stats::CodingSnapshot::default(),
        dictionary: None,
        dfap: stats::DfapSnapshot::default(),
        classes: Vec::new(),
        queue: stats::QueueSnapshot::default(),
        sand: stats::SandSnapshot::default(),
        elephants: stats::ElephantsSnapshot::default(),
        resequencer: stats::ResequencerSnapshot::default(),
        replay: ReplaySnapshot::default(),
        reassembly: stats::ReassemblySnapshot::default(),
        direct: stats::DirectSnapshot::default(),
        too_big: stats::TooBigSnapshot::default(),
        drops: stats::Drops::default(),
    }
}

/// Everything that can be there is there, and every reason was met.
pub(crate) fn busy_snapshot() -> Snapshot {
    let mut drops = stats::Drops::default();
    for (n, &reason) in DropReason::ALL.iter().enumerate() {
        drops.count_many(reason, n as u64 + 1);
    }
    let link = LinkSnapshot {
        id: LinkId(0),
        address: mac(2),
        mtu: 1500,
        carrier: true,
        rate_bps: Some(100_000_000),
        rate_age: Some(Duration::from_millis(250)),
        sand: stats::LinkSand {
            rate_bps: Some(100_000_000),
            frame_bytes_max: Some(1514),
            waits_max: Some(Duration::from_micros(485)),
            is_late: true,
        },
        local_queue_bytes: 3028,
        local_queue_age: Some(Duration::from_micros(80)),
        in_flight_bytes: 6056,
        home: true,
        lag: None,
        retiring: false,
        trains_tx: 0,
        trains_rx: 0,
        tx: stats::Traffic {
            frames: 1_234_567,
            bytes: 1_500_000_000,
        },
        rx: stats::Traffic {
            frames: 7,
            bytes: 500,
        },
        drops: drops.clone(),
    };
    let path = |round_trip| PathSnapshot {
        link: LinkId(0),
        remote_link: LinkId(3),
        remote_address: mac(9),
        round_trip,
        round_trip_min: round_trip,
        rate_bps: round_trip.map(|_| 99_000_000),
        in_flight_bytes: 6056,
        window_bytes: 65_536,
        lost_trains: 2,
        liveness: Some(LivenessSnapshot {
            state: State::Up,
            diagnostic: Diagnostic::NeighborDown,
            detection_time: Duration::from_millis(40),
            interval: Duration::from_millis(10),
            round_trip: Some(Duration::from_micros(300)),
            held_for: Some(Duration::from_millis(150)),
        }),
        failures: 3,
        trains_tx: 0,
        queued_frames: 0,
        state: PathState::Open,
        size: match round_trip {
            None => PathSize::default(),
            Some(_) => PathSize {
                bytes: 1500,
                because: SizeBecause::BitErrors,
                errors: Some(Estimate {
                    rate: 1.5e-6,
                    other: 0.0,
                    trains: 4000,
                    lost: 60,
                }),
                mends: true,
                looks: false,
            },
        },
        measures: match round_trip {
            None => PathMeasures::default(),
            Some(_) => PathMeasures {
                rate_age: Some(Duration::from_millis(1200)),
                round_trip_deviation: Some(Duration::from_micros(20)),
                mtu: Some(1500),
                mtu_of_ends: Some(1500),
                tx_loss_ppm: Some(0),
                rx_loss_ppm: Some(1234),
                tx_later: Some(Duration::ZERO),
                rx_later: Some(Duration::from_micros(12_345)),
            },
        },
        direct: Some(OpenTo::LossOk),
        direct_mark: Some(DirectKind::None),
        direct_marks_refused: vec![(DirectKind::Source, KindRefused::Unanswered)],
        direct_stripes: true,
        direct_late: 3,
        reordering_seen: true,
    };
    let peer = PeerSnapshot {
        node_id: NodeId(0xfedc),
        address: mac(8),
        up: true,
        away: false,
        software: "packtrain 0.1.0".into(),
        capabilities: 0b111_1011,
        mtu: 9000,
        last_heard: Duration::from_millis(400),
        paths: vec![path(Some(Duration::from_micros(317))), path(None)],
        queued_frames: 12,
        queued_bytes: 18_000,
        tier: Some(1),
        auto: AutoChoice::Waits(Duration::from_micros(200)),
        hold: HoldSnapshot {
            trains: 1_234_567,
            held_trains: 12_346,
            p50: Duration::ZERO,
            p99: Duration::from_nanos(88_064),
            p999: Duration::from_nanos(1_966_080),
            max: Duration::from_micros(2_345),
            buckets: vec![
                HoldBucket {
                    below: Duration::from_nanos(1024),
                    trains: 1_222_221,
                },
                HoldBucket {
                    below: Duration::from_nanos(2_359_296),
                    trains: 12_346,
                },
            ],
        },
        engine_because: None,
        dictionary: Some(0x1003_e603),
        dictionary_unused: None,
    };
    let host = |last, link| HostSnapshot {
        address: mac(last),
        link,
        last_heard: Duration::from_secs(12),
    };
    Snapshot {
        links: vec![link],
        peers: vec![peer],
        // The last is the peer's link itself.
        hosts: vec![
            host(20, LinkId(0)),
            host(21, LinkId(77)),
            host(9, LinkId(0)),
        ],
        classes: vec![
            stats::ClassSnapshot {
                links: Vec::new(),
                name: "voice".into(),
                matches: Some("udp dport 5060".into()),
                action: Action {
                    pack: Pack::Now,
                    path: ClassPath::Engine,
                    ..Action::default()
                },
                waited: HoldSnapshot {
                    trains: 1234,
                    held_trains: 1200,
                    p50: Duration::from_micros(120),
                    ..HoldSnapshot::default()
                },
                traffic: stats::Traffic {
                    frames: 1234,
                    bytes: 250_000,
                },
            },
            stats::ClassSnapshot {
                links: Vec::new(),
                name: "rest".into(),
                matches: None,
                action: Action {
                    pack: Pack::DfapRandom,
                    on_backlog: true,
                    ..Action::default()
                },
                waited: HoldSnapshot::default(),
                traffic: stats::Traffic::default(),
            },
        ],
        trains_tx: stats::Trains {
            trains: 4,
            frames: 10,
            aggregates: 3,
            aggregated: 45,
            ..Default::default()
        },
        queue: stats::QueueSnapshot {
            marked: 321,
            ..stats::QueueSnapshot::default()
        },
        sand: stats::SandSnapshot {
            delay_max: Some(Duration::from_micros(200)),
            waited: HoldSnapshot {
                trains: 12_345,
                held_trains: 12_000,
                p50: Duration::from_micros(590),
                p99: Duration::from_micros(950),
                p999: Duration::from_micros(1700),
                max: Duration::from_micros(2200),
                buckets: Vec::new(),
            },
        },
        elephants: stats::ElephantsSnapshot {
            bytes_max: 50_000,
            elephants: 3,
            mice: 120,
            of_elephants: stats::Traffic {
                frames: 4_321,
                bytes: 98_765_432,
            },
            of_mice: stats::Traffic {
                frames: 1_234,
                bytes: 567_890,
            },
            evicted: 7,
        },
        data_units: stats::DataUnits {
            given: 1_234,
            on_wire: 12_340,
            packets_of_1500: 61_700,
        },
        train_sizes: stats::TrainSizesSnapshot {
            frames: vec![stats::FramesBucket {
                frames: 15,
                trains: 3,
            }],
            fill: vec![stats::FillBucket {
                percent_max: 95,
                trains: 3,
            }],
        },
        too_big: stats::TooBigSnapshot {
            told: 1_000,
            withheld: 30,
            untold: 4,
        },
        coding: stats::CodingSnapshot {
            coded_tx: 3,
            coded_rx: 2,
            dictionary_tx: 1,
            dictionary_rx: 2,
            deltas_tx: 1_234,
            frame_bytes: 1_000_000,
            train_bytes: 400_000,
            saved_padding: 50_000,
            saved_headers: 250_000,
            saved_payload: 100_000,
            tried_bytes: 500_000,
            cost_ns_per_kb: 6_250,
        },
        dictionary: Some(stats::DictionarySnapshot {
            id: 0x1003_e603,
            len: 8192,
        }),
        dfap: stats::DfapSnapshot {
            mode: Mode::Dfap,
            stations: vec![stats::StationSnapshot {
                address: mac(30),
                ether_type: 0xbbbb,
                listed: true,
                home: LinkId(0),
                queued_frames: 7,
            }],
            is_on: Some(true),
            average_per_second: Some(1234.5),
        },
        drops,
        ..quiet_snapshot()
    }
}

fn link_facts(id: u8, condition: LinkCondition) -> LinkFacts {
    let there = condition != LinkCondition::Absent;
    LinkFacts {
        id: LinkId(id),
        name: format!("eth{}", id + 1),
        ifindex: there.then_some(5),
        condition,
        mtu: there.then_some(1500),
        address: there.then_some(mac(2)),
        used: LinkSettings::default(),
        queue: None,
        direct_tx: stats::Traffic::default(),
        direct_rx: stats::Traffic::default(),
        direct_rate: there.then_some((4_000_000_000, Duration::from_millis(250))),
        direct_shaper: there.then(|| DirectShaper {
            interface: "ptq7".into(),
            rate_bps: 980_000_000,
            frame_bytes_max: 12_500,
            frames: 3,
            bytes: 37_500,
            dropped: 0,
        }),
        drops: vec![
            (drop_reason::SOCKET_OVERRUN, 5),
            (drop_reason::SOCKET_TRUNCATED, 0),
        ],
    }
}

pub(crate) fn facts(conditions: &[LinkCondition]) -> LineFacts {
    let links = conditions.iter().zip(0..).map(|(&c, id)| link_facts(id, c));
    LineFacts {
        name: "pt0".into(),
        ifindex: 9,
        line_id: 0,
        balance: BalancePolicy::EarliestFinish,
        tier_spill: false,
        up: true,
        promiscuous: false,
        addresses: vec!["10.9.0.1/24".parse().unwrap()],
        uptime: Duration::from_millis(61_500),
        links: links.collect(),
        intake: Some(Intake {
            rate_bps: None,
            waiting_frames: 0,
            waiting_bytes: 0,
            ring: Some(HostRing {
                frames: 40,
                tap_frames: 2,
                full: 1,
            }),
        }),
        stay: None,
        direct_changes: 2,
        direct_flow_returns: 17,
        direct_striped: 5,
        direct_vlan: None,
        direct_refusal: None,
        dictionary_file: Some("/etc/packtrain/json.dict".into()),
        coalesced: Coalesced {
            datagrams: 12,
            frames: 3,
            segments: 40,
            segment_frames: 2,
        },
        drops: vec![(drop_reason::INTAKE_FULL, 3)],
        warnings: Vec::new(),
    }
}
