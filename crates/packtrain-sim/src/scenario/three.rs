//! Three packtrain hosts and a plain one on one switch, or one hub.

use packtrain_proto::config::{LinkId, Mode};
use packtrain_proto::time::{Duration, Instant};

use super::draw::{self, Traffic, Trouble};
use super::{Experiment, Order, Report, classes};
use crate::checker::accounted::Kept;
use crate::checker::{Checkers, StationFacts};
use crate::event_queue::EventQueue;
use crate::host::Host;
use crate::net::network::{Network, PortId, SegmentConfig, SegmentKind};
use crate::net::queue::QueueConfig;
use crate::net::wire::WireConfig;
use crate::plain_host::PlainHost;
use crate::random::Random;
use crate::sabotage::Saboteur;
use crate::simulator::{Event, Simulator, Station, StationId};
use crate::workload::mix::Endpoint;

const STATIONS: usize = 4;
/// The last one has no packtrain.
const PLAIN: usize = 3;
const XL_MTUS: [u16; 3] = [16_000, 32_768, 65_521];

pub fn run(order: Order) -> Report {
    build(order).run()
}

pub fn build(order: Order) -> Experiment {
    build_with(order, &[Mode::Trains; PLAIN], None)
}

/// The same, and some of them know only aggregates. Some links take much longer frames than any other do.
pub fn run_aggregates(order: Order) -> Report {
    // Of a generator of its own, as all that is added.
    let mut random = Random::new(order.seed ^ 0x6466_6170);
    let mut modes = [Mode::Dfap; PLAIN];
    if random.chance(0.6) {
        modes[random.below(PLAIN as u64) as usize] = Mode::Trains;
    }
    let mtu = random.chance(0.3).then(|| *random.pick(&XL_MTUS));
    build_with(order, &modes, mtu).run()
}

fn build_with(order: Order, modes: &[Mode; PLAIN], xl_mtu: Option<u16>) -> Experiment {
    let mut random = Random::new(order.seed ^ 0x0003_0003);
    let trouble = Trouble::draw(&mut random);
    let load = *random.pick(&[0.2, 0.5, 0.8, 2.0]);
    let kind = if random.chance(0.3) {
        SegmentKind::Repeater
    } else {
        SegmentKind::Switch
    };

    let rate = random.magnitude(5_000_000, 2_000_000_000);
    let scale = draw::scale(rate, load, order.effort, &mut random);
    let delay = Duration::from_nanos(random.magnitude(500, 5_000_000));
    let up: Vec<WireConfig> = (0..STATIONS)
        .map(|_| draw::wire(rate, delay, trouble, order.effort, &mut random))
        .collect();
    // What a switch sends on is harmed on the way up already.
    let down: Vec<WireConfig> = (0..STATIONS)
        .map(|_| WireConfig {
            queue: QueueConfig::drop_tail(1 << 20),
            ..WireConfig::perfect(rate, delay)
        })
        .collect();
    let ordinary_mtu = draw::link_mtu(&mut random);
    let mtu = xl_mtu.unwrap_or(ordinary_mtu);
    let faults = draw::faults(&up);
    let segment = SegmentConfig {
        kind,
        mtu,
        carries_offload: random.chance(0.5),
        up,
        down,
        cut: draw::cut(trouble, scale.duration, &mut random),
    };

    let host_mtu = draw::host_mtu(mtu, &mut random);
    let bridged = random.chance(0.25).then(|| random.below(3) as usize);
    let endpoints: Vec<Endpoint> = (0..STATIONS)
        .map(|n| Endpoint {
            station: StationId(n),
            mtu: if n == PLAIN { mtu } else { host_mtu },
            address: draw::addresses(n as u8).0,
            behind: if bridged == Some(n) {
                draw::behind(n as u8)
            } else {
                Vec::new()
            },
            offloads: n != PLAIN || random.chance(0.5),
        })
        .collect();
    let mut traffic = Traffic::new(mtu);
    let rounds = random.between(1, 2);
    let share = 1.0 / (rounds * 14) as f64;
    for _ in 0..rounds {
        for from in 0..STATIONS {
            for to in (0..STATIONS).filter(|&to| to != from) {
                let load = load / (3 * rounds) as f64;
                let to = Some(&endpoints[to]);
                traffic.add(&endpoints[from], to, load, share, scale, &mut random);
            }
        }
        let from = random.below(STATIONS as u64) as usize;
        traffic.add(
            &endpoints[from],
            None,
            load / 10.0,
            share,
            scale,
            &mut random,
        );
    }
    // With the plain one both ways: who is spoken to by it knows where it is.
    for (from, to) in [(0, 1), (1, 2), (2, 0), (PLAIN, 1), (1, PLAIN)] {
        traffic.add_probe(&endpoints[from], &endpoints[to], &mut random);
    }

    // Drawn apart: other seeds are what they were.
    let mut apart = Random::new(order.seed ^ 0x0b16_0b16);
    if host_mtu > mtu.saturating_add(100) {
        let from = &endpoints[apart.below(PLAIN as u64) as usize];
        traffic.add_too_long_flow(from, &endpoints[PLAIN], share, scale, &mut apart);
    }

    let aggregates = modes.contains(&Mode::Dfap);
    let facts = endpoints
        .iter()
        .map(|e| StationFacts {
            address: e.address,
            packtrain: e.station.0 != PLAIN,
            promiscuous: bridged == Some(e.station.0),
        })
        .collect();
    let checkers = Checkers::new(traffic.flows, facts, faults);
    let mut queue = EventQueue::default();
    let network = Network::new(vec![segment], &mut random, &mut queue);
    let mut simulator = Simulator::new(network, queue, checkers);
    for endpoint in &endpoints {
        let station = endpoint.station;
        let n = station.0;
        let port = PortId {
            segment: 0,
            port: n,
        };
        if n == PLAIN {
            let host = PlainHost {
                station,
                port,
                address: endpoint.address,
            };
            simulator.add(Station::Plain(host), &[port]);
            continue;
        }
        let mut config = draw::config(endpoint.address, host_mtu, &mut random);
        let keeps_order = !(faults.duplicates || faults.reorders);
        // Where order is not kept, frames as they are have what the link makes of them, and the
        // checkers know which they were.
        config.marked_frames = random.chance(if keeps_order { 0.8 } else { 0.3 });
        config.promiscuous = bridged == Some(n);
        config.mode = modes[n];
        if aggregates {
            draw::dfap(&mut config, order.seed ^ n as u64);
        }
        let mut host = Host::new(station, config, draw::pace(&mut random), Instant::ZERO);
        host.add_link(
            LinkId(n as u8),
            port,
            draw::addresses(n as u8).1,
            &simulator.network,
        );
        let sabotage = order.sabotage.filter(|s| s.station == station);
        if let Some(s) = sabotage {
            host.sabotage(Saboteur::new(s.breakage, random.fork()));
        }
        simulator.add(Station::Packtrain(Box::new(host)), &[port]);
    }
    let mut restarts = 0;
    if trouble != Trouble::None && random.chance(0.2) {
        let at = random.duration(scale.duration * 3 / 10, scale.duration * 8 / 10);
        let station = StationId(random.below(PLAIN as u64) as usize);
        simulator
            .queue
            .push(Instant::ZERO + at, Event::Restart { station });
        restarts = 1;
    }
    match aggregates {
        true => classes::give_with_waits(&mut simulator, order.seed, scale.duration),
        false => classes::give(&mut simulator, order.seed, scale.duration),
    }
    for (source, start) in traffic.sources {
        simulator.add_source(source, start);
    }
    Experiment {
        simulator,
        traffic: scale.duration,
        quiet: Duration::ZERO,
        drain_max: Duration::from_secs(12)
            + Duration::from_secs_f64(40e6 * 8.0 / rate as f64).min(Duration::from_secs(60)),
        probes: traffic.probes,
        // Three may send to one: its port drops, and reassemblies have holes.
        faultless: false,
        restarts,
        kept: Kept::Accounts,
        peers: modes.iter().map(|mode| peers_of(*mode, modes)).collect(),
        paths: None,
        // What is packed may be so few frames on a wire that none of them meets with what it does to some.
        choice: aggregates,
    }
}

/// Who speaks trains meets all others that do.
fn peers_of(mode: Mode, modes: &[Mode]) -> usize {
    match mode {
        Mode::Trains => modes.iter().filter(|other| **other == mode).count() - 1,
        Mode::Dfap => 0,
    }
}
