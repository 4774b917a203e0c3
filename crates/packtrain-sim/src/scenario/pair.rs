//! Two packtrain hosts at the two ends of one cable.

use packtrain_proto::config::LinkId;
use packtrain_proto::time::{Duration, Instant};

use super::direct::Carriage;
use super::draw::{self, Dictionaries, Traffic, Trouble};
use super::{Experiment, Order, Report};
use crate::checker::accounted::Kept;
use crate::checker::{Checkers, StationFacts};
use crate::event_queue::EventQueue;
use crate::host::Host;
use crate::net::network::{Network, PortId, SegmentConfig, SegmentKind};
use crate::random::Random;
use crate::sabotage::Saboteur;
use crate::simulator::{Event, Simulator, Station, StationId};
use crate::workload::mix::Endpoint;

pub fn run(order: Order) -> Report {
    build(order).run()
}

pub fn build(order: Order) -> Experiment {
    build_with(order, Carriage::Engine)
}

pub(super) fn build_with(order: Order, carriage: Carriage) -> Experiment {
    let mut random = Random::new(order.seed);
    let trouble = Trouble::draw(&mut random);
    let load = *random.pick(carriage.loads());

    let rates = {
        let rate = random.magnitude(2_000_000, 10_000_000_000);
        let other = if random.chance(0.3) {
            random.magnitude(2_000_000, 1_000_000_000)
        } else {
            rate
        };
        [rate, other]
    };
    let slowest = rates[0].min(rates[1]);
    let scale = draw::scale(slowest, load, order.effort, &mut random);
    let delay = Duration::from_nanos(random.magnitude(500, 40_000_000));
    let up = rates
        .map(|rate| draw::wire(rate, delay, trouble, order.effort, &mut random))
        .to_vec();
    let mtu = draw::link_mtu(&mut random);
    let faults = draw::faults(&up);
    let segment = SegmentConfig {
        kind: SegmentKind::Cable,
        mtu,
        carries_offload: random.chance(0.5),
        up,
        down: Vec::new(),
        cut: draw::cut(trouble, scale.duration, &mut random),
    };

    let host_mtu = carriage.host_mtu(draw::host_mtu(mtu, &mut random), mtu);
    let bridged = random.chance(0.25);
    let endpoints: Vec<Endpoint> = (0..2)
        .map(|n| Endpoint {
            station: StationId(n),
            mtu: host_mtu,
            address: draw::addresses(n as u8).0,
            behind: if bridged {
                draw::behind(n as u8)
            } else {
                Vec::new()
            },
            offloads: true,
        })
        .collect();
    let mut traffic = Traffic::new(mtu);
    let count = random.between(3, 7);
    let share = 1.0 / (2 * count) as f64;
    for _ in 0..count {
        for (from, to) in [(0, 1), (1, 0)] {
            let to = if random.chance(0.08) {
                None
            } else {
                Some(&endpoints[to])
            };
            let load = load / count as f64;
            traffic.add(&endpoints[from], to, load, share, scale, &mut random);
        }
    }
    if host_mtu > mtu + 100 && random.chance(0.3) {
        traffic.add_long_group_flow(&endpoints[0], load / 10.0, share, scale, &mut random);
    }
    traffic.add_probe(&endpoints[0], &endpoints[1], &mut random);
    traffic.add_probe(&endpoints[1], &endpoints[0], &mut random);

    let facts = endpoints
        .iter()
        .map(|e| StationFacts {
            address: e.address,
            packtrain: true,
            promiscuous: bridged,
        })
        .collect();
    let checkers = Checkers::new(traffic.flows, facts, faults);
    let mut queue = EventQueue::default();
    let faultless = trouble == Trouble::None;
    let network = Network::new(vec![segment], &mut random, &mut queue);
    let mut simulator = Simulator::new(network, queue, checkers);
    for endpoint in &endpoints {
        let n = endpoint.station.0;
        let mut config = draw::config(endpoint.address, host_mtu, &mut random);
        let keeps_order = !(faults.duplicates || faults.reorders);
        // Where order is not kept, frames as they are have what the link makes of them, and the
        // checkers know which they were.
        config.marked_frames = random.chance(if keeps_order { 0.8 } else { 0.3 });
        config.promiscuous = bridged;
        config.dictionary = Dictionaries::draw(order.seed).of(n);
        config.direct_frames = true;
        let mut host = Host::new(
            endpoint.station,
            config,
            draw::pace(&mut random),
            Instant::ZERO,
        );
        let port = PortId {
            segment: 0,
            port: n,
        };
        host.add_link(
            LinkId(n as u8),
            port,
            draw::addresses(n as u8).1,
            &simulator.network,
        );
        let sabotage = order.sabotage.filter(|s| s.station == endpoint.station);
        if let Some(s) = sabotage {
            host.sabotage(Saboteur::new(s.breakage, random.fork()));
        }
        simulator.add(Station::Packtrain(Box::new(host)), &[port]);
    }
    let mut restarts = 0;
    if !faultless && random.chance(0.2) {
        let at = random.duration(scale.duration * 3 / 10, scale.duration * 8 / 10);
        let station = StationId(random.below(2) as usize);
        simulator
            .queue
            .push(Instant::ZERO + at, Event::Restart { station });
        restarts = 1;
    }
    // Of their own, so that nothing else of a seed depends on them.
    let mut random = Random::new(order.seed ^ 0x6472_6169_6e73);
    for endpoint in &endpoints {
        for _ in 0..random.between(2, 30) {
            let at = random.duration(Duration::ZERO, scale.duration);
            let station = endpoint.station;
            simulator
                .queue
                .push(Instant::ZERO + at, Event::Drain { station });
        }
    }
    carriage.equip(&mut simulator, order.seed, scale.duration);
    for (source, start) in traffic.sources {
        simulator.add_source(source, start);
    }
    Experiment {
        simulator,
        traffic: scale.duration,
        quiet: Duration::ZERO,
        drain_max: Duration::from_secs(12)
            + Duration::from_secs_f64(40e6 * 8.0 / slowest as f64).min(Duration::from_secs(60)),
        probes: traffic.probes,
        faultless: faultless && restarts == 0,
        restarts,
        kept: Kept::Accounts,
        peers: vec![1; 2],
        paths: None,
        choice: false,
    }
}
