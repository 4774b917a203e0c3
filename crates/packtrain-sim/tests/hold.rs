//! Two cables of different delay, and trains on each in turns: what the resequencer costs is known.

use packtrain_proto::config::{Balance, Config, LinkId, NodeId};
use packtrain_proto::stats::HoldSnapshot;
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::ethernet::MacAddr;
use packtrain_sim::checker::{Checkers, StationFacts};
use packtrain_sim::event_queue::EventQueue;
use packtrain_sim::host::{Host, Pace};
use packtrain_sim::net::cut::Cut;
use packtrain_sim::net::network::{Network, PortId, SegmentConfig, SegmentKind};
use packtrain_sim::net::wire::WireConfig;
use packtrain_sim::random::Random;
use packtrain_sim::scenario::draw;
use packtrain_sim::simulator::{Simulator, Source, Station, StationId};
use packtrain_sim::workload::Arrivals;
use packtrain_sim::workload::flow::{Dress, Flow, Recipient};

const RATE_BPS: u64 = 1_000_000_000;
const FRAMES: u32 = 10_000;
/// So far apart that each frame has a train of its own.
const GAP: Duration = Duration::from_micros(100);
/// Peers have met, and every path is open.
const START: Duration = Duration::from_secs(3);

fn pt0(n: usize) -> MacAddr {
    draw::addresses(n as u8).0
}

fn cable(delay: Duration) -> SegmentConfig {
    SegmentConfig {
        kind: SegmentKind::Cable,
        mtu: 1500,
        carries_offload: false,
        up: vec![WireConfig::perfect(RATE_BPS, delay); 2],
        down: Vec::new(),
        cut: Cut::default(),
    }
}

/// How long the trains of host 0 were held at host 1.
fn hold(balance: Balance, delays: [Duration; 2]) -> HoldSnapshot {
    let flow = Flow {
        index: 0,
        from: StationId(0),
        to: Recipient::Station(StationId(1)),
        source: pt0(0),
        destination: pt0(1),
        vlan: None,
        dress: Dress::Bare,
        ipv6: false,
        segment_len: None,
        partial_checksum: false,
        ecn: false,
        content_len: (100, 100),
        seed: 1,
    };
    let facts = [0, 1].map(|n| StationFacts {
        address: pt0(n),
        packtrain: true,
        promiscuous: false,
    });
    let segments: Vec<SegmentConfig> = delays.map(cable).into();
    let checkers = Checkers::new(vec![flow], facts.into(), draw::faults(&segments[0].up));
    let mut queue = EventQueue::default();
    let network = Network::new(segments, &mut Random::new(1), &mut queue);
    let mut simulator = Simulator::new(network, queue, checkers);
    for n in 0..2 {
        let mut config = Config::new(NodeId(n as u64 + 1), pt0(n));
        config.balance = balance;
        let mut host = Host::new(StationId(n), config, Pace::prompt(), Instant::ZERO);
        let ports = [0, 1].map(|segment| PortId { segment, port: n });
        for (link, port) in (0..).zip(ports) {
            let address = draw::link_address(n as u8, link);
            host.add_link(LinkId(link), port, address, &simulator.network);
        }
        simulator.add(Station::Packtrain(Box::new(host)), &ports);
    }
    let source = Source {
        flow: 0,
        arrivals: Arrivals::OnOff {
            frames: 1,
            gap: GAP,
            pause: GAP,
        },
        random: Random::new(2),
        next_sequence: 0,
        remaining: FRAMES,
    };
    simulator.add_source(source, Instant::ZERO + START);
    simulator.start();
    simulator.run_for(START + GAP * FRAMES + Duration::from_secs(1));
    assert_eq!(simulator.checkers.violation(), None);
    assert_eq!(simulator.checkers.frames_delivered, u64::from(FRAMES));
    let receiver = simulator.hosts().nth(1).expect("two");
    let peers = receiver.snapshot(simulator.now()).peers;
    peers[0].hold.clone()
}

fn is_about(told: Duration, exact: Duration) -> bool {
    (exact..=exact * 9 / 8 + Duration::from_micros(5)).contains(&told)
}

/// The next train over the fast cable arrives 2 ms less the time between two before the one over the
/// slow cable.
#[test]
fn in_turns_over_cables_of_1_and_3_ms_every_second_train_is_held_for_the_difference() {
    let [fast, slow] = [1, 3].map(Duration::from_millis);
    let hold = hold(Balance::RoundRobin, [fast, slow]);
    let exact = slow - fast - GAP;
    assert!(hold.trains >= u64::from(FRAMES), "{hold:?}");
    let share = hold.held_trains as f64 / hold.trains as f64;
    assert!((0.49..=0.51).contains(&share), "{hold:?}");
    assert!(
        is_about(hold.p99, exact) && is_about(hold.p999, exact),
        "{hold:?}"
    );
    let beyond = hold.max.saturating_sub(exact);
    assert!(beyond < Duration::from_micros(5), "{hold:?}");
}

#[test]
fn in_turns_over_two_equal_cables_nothing_is_held() {
    let hold = hold(Balance::RoundRobin, [Duration::from_millis(1); 2]);
    assert_eq!(
        (hold.held_trains, hold.max),
        (0, Duration::ZERO),
        "{hold:?}"
    );
}

/// A link's delay is not known before it has carried something: one train finds out, and what comes by
/// the fast cable meanwhile waits for it.
#[test]
fn where_the_one_that_finishes_first_is_taken_a_slow_cable_is_waited_for_once() {
    let [fast, slow] = [1, 3].map(Duration::from_millis);
    let hold = hold(Balance::EarliestFinish, [fast, slow]);
    let meanwhile = (slow - fast).as_nanos().div_ceil(GAP.as_nanos()) as u64;
    assert!(hold.held_trains <= meanwhile, "{hold:?}");
    assert_eq!(hold.p99, Duration::ZERO, "{hold:?}");
}
