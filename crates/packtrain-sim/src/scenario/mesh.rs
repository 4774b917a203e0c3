//! Three packtrain hosts with different sets of links.
//!
//! ```text
//! triangle: A ─ B, B ─ C, C ─ A, a cable each      one switch: A, B and C twice, and a plain host
//! two switches: A on both, B on the first, C on the second
//! ```

use packtrain_proto::config::LinkId;
use packtrain_proto::time::{Duration, Instant};

use super::draw::{self, Traffic, Trouble};
use super::{Experiment, Order, Report, classes, hardships, links};
use crate::checker::accounted::Kept;
use crate::checker::{Checkers, StationFacts};
use crate::event_queue::EventQueue;
use crate::host::Host;
use crate::net::cut::{Cut, Outage};
use crate::net::network::{Network, PortId, SegmentConfig, SegmentKind};
use crate::net::queue::QueueConfig;
use crate::net::wire::WireConfig;
use crate::plain_host::PlainHost;
use crate::random::Random;
use crate::sabotage::Saboteur;
use crate::simulator::{Event, Simulator, Station, StationId};
use crate::workload::mix::{Endpoint, Scale};

const HOSTS: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    Triangle,
    OneSwitch,
    TwoSwitches,
}

impl Layout {
    /// By segment: which station is plugged into each port. Station 3 has no packtrain.
    fn ports(self) -> &'static [&'static [usize]] {
        match self {
            Layout::Triangle => &[&[0, 1], &[1, 2], &[2, 0]],
            Layout::OneSwitch => &[&[0, 1, 2, 0, 1, 2, 3]],
            Layout::TwoSwitches => &[&[0, 1], &[0, 2]],
        }
    }

    fn kind(self) -> SegmentKind {
        match self {
            Layout::Triangle => SegmentKind::Cable,
            _ => SegmentKind::Switch,
        }
    }

    fn stations(self) -> usize {
        self.ports()
            .iter()
            .flat_map(|s| s.iter())
            .max()
            .expect("a station")
            + 1
    }

    /// Pairs that share a segment.
    fn neighbours(self) -> Vec<(usize, usize)> {
        let mut pairs = Vec::new();
        for segment in self.ports() {
            for &a in *segment {
                for &b in *segment {
                    if a != b && !pairs.contains(&(a, b)) {
                        pairs.push((a, b));
                    }
                }
            }
        }
        pairs
    }
}

pub fn run(order: Order) -> Report {
    build(order).run()
}

pub fn build(order: Order) -> Experiment {
    let mut random = Random::new(order.seed ^ 0x006d_6573_6800);
    let layout = *random.pick(&[Layout::Triangle, Layout::OneSwitch, Layout::TwoSwitches]);
    let trouble = Trouble::draw(&mut random);
    let load = *random.pick(&[0.2, 0.5, 0.8, 2.0]);
    let rate_bps = random.magnitude(5_000_000, 1_000_000_000);
    let scale = scale(rate_bps, load, order.effort, &mut random);
    let delay = Duration::from_nanos(random.magnitude(500, 5_000_000));
    let mtu = draw::link_mtu(&mut random);

    let mut all_up = Vec::new();
    let segments: Vec<SegmentConfig> = layout
        .ports()
        .iter()
        .map(|ports| {
            let up: Vec<WireConfig> = ports
                .iter()
                .map(|_| draw::wire(rate_bps, delay, trouble, order.effort, &mut random))
                .collect();
            all_up.extend(up.iter().cloned());
            let down = match layout.kind() {
                SegmentKind::Cable => Vec::new(),
                // What a switch sends on is harmed on the way up already.
                _ => ports
                    .iter()
                    .map(|_| WireConfig {
                        queue: QueueConfig::drop_tail(1 << 20),
                        ..WireConfig::perfect(rate_bps, delay)
                    })
                    .collect(),
            };
            SegmentConfig {
                kind: layout.kind(),
                mtu,
                carries_offload: random.chance(0.5),
                cut: cut(layout, ports.len(), trouble, scale.duration, &mut random),
                up,
                down,
            }
        })
        .collect();
    let mut faults = draw::faults(&all_up);
    faults.moves_home = true;

    let host_mtu = draw::host_mtu(mtu, &mut random);
    let stations = layout.stations();
    let bridged = random.chance(0.25).then(|| random.below(3) as usize);
    let endpoints: Vec<Endpoint> = (0..stations)
        .map(|n| Endpoint {
            station: StationId(n),
            mtu: if n == HOSTS { mtu } else { host_mtu },
            address: draw::addresses(n as u8).0,
            behind: if bridged == Some(n) {
                draw::behind(n as u8)
            } else {
                Vec::new()
            },
            offloads: n != HOSTS || random.chance(0.5),
        })
        .collect();
    let traffic = draw_traffic(layout, &endpoints, mtu, load, scale, &mut random);

    let facts = endpoints
        .iter()
        .map(|e| StationFacts {
            address: e.address,
            packtrain: e.station.0 != HOSTS,
            promiscuous: bridged == Some(e.station.0),
        })
        .collect();
    let checkers = Checkers::new(traffic.flows, facts, faults);
    let mut queue = EventQueue::default();
    let network = Network::new(segments, &mut random, &mut queue);
    let mut simulator = Simulator::new(network, queue, checkers);
    for endpoint in &endpoints {
        let station = endpoint.station;
        let ports = ports_of(layout, station.0);
        if station.0 == HOSTS {
            let host = PlainHost {
                station,
                port: ports[0],
                address: endpoint.address,
            };
            simulator.add(Station::Plain(host), &ports);
            continue;
        }
        let mut config = draw::config(endpoint.address, host_mtu, &mut random);
        links::draw_trunk(&mut config, &mut random);
        links::draw_liveness(&mut config, order.seed ^ station.0 as u64);
        let mut uses = links::LinkUse::draw(order.seed, station.0);
        uses.of_line(&mut config);
        config.promiscuous = bridged == Some(station.0);
        let mut host = Host::new(station, config, draw::pace(&mut random), Instant::ZERO);
        for (n, &port) in ports.iter().enumerate() {
            let address = draw::link_address(station.0 as u8, n as u8);
            host.add_link(LinkId(n as u8), port, address, &simulator.network);
        }
        for (at, change) in uses.of_links(&mut host, &ports, scale.duration) {
            simulator.queue.push(at, change);
        }
        let sabotage = order.sabotage.filter(|s| s.station == station);
        if let Some(s) = sabotage {
            host.sabotage(Saboteur::new(s.breakage, random.fork()));
        }
        simulator.add(Station::Packtrain(Box::new(host)), &ports);
    }
    let restarts = match trouble {
        Trouble::None => 0,
        _ => links::draw_restarts(&mut simulator, scale.duration, &mut random),
    };
    if trouble != Trouble::None {
        let ports: Vec<Vec<PortId>> = (0..HOSTS).map(|n| ports_of(layout, n)).collect();
        for (at, event) in hardships::draw(order.seed, &ports, &simulator.network, scale.duration) {
            simulator.queue.push(at, event);
        }
    }
    classes::give(&mut simulator, order.seed, scale.duration);
    for (source, start) in traffic.sources {
        simulator.add_source(source, start);
    }
    simulator.queue.push(Instant::ZERO, Event::Look);
    Experiment {
        simulator,
        traffic: scale.duration,
        quiet: Duration::ZERO,
        drain_max: Duration::from_secs(12)
            + Duration::from_secs_f64(40e6 * 8.0 / rate_bps as f64).min(Duration::from_secs(60)),
        probes: traffic.probes,
        faultless: false,
        restarts,
        kept: Kept::Accounts,
        peers: match layout {
            Layout::TwoSwitches => vec![2, 1, 1],
            _ => vec![2, 2, 2],
        },
        paths: None,
        choice: true,
    }
}

fn ports_of(layout: Layout, station: usize) -> Vec<PortId> {
    let segments = layout.ports().iter().enumerate();
    let all = segments.flat_map(|(segment, ports)| {
        let ports = ports.iter().enumerate();
        ports.map(move |(port, &who)| (PortId { segment, port }, who))
    });
    all.filter(|&(_, who)| who == station)
        .map(|(port, _)| port)
        .collect()
}

fn draw_traffic(
    layout: Layout,
    endpoints: &[Endpoint],
    mtu: u16,
    load: f64,
    scale: Scale,
    random: &mut Random,
) -> Traffic {
    let neighbours = layout.neighbours();
    let mut traffic = Traffic::new(mtu);
    let share = 1.0 / (neighbours.len() + 2) as f64;
    for &(from, to) in &neighbours {
        let to = Some(&endpoints[to]);
        traffic.add(&endpoints[from], to, load / 3.0, share, scale, random);
    }
    // A group frame is for all, so its sender must reach all.
    let central: &[usize] = match layout {
        Layout::TwoSwitches => &[0],
        _ => &[0, 1, 2],
    };
    for _ in 0..2 {
        let from = &endpoints[*random.pick(central)];
        traffic.add(from, None, load / 10.0, share, scale, random);
    }
    let tells = |&&(from, to): &&(usize, usize)| from < to || from == HOSTS || to == HOSTS;
    for &(from, to) in neighbours.iter().filter(tells) {
        traffic.add_probe(&endpoints[from], &endpoints[to], random);
    }
    traffic
}

fn scale(rate_bps: u64, load: f64, effort: u32, random: &mut Random) -> Scale {
    let duration = Duration::from_millis(random.between(2000, 5000) << effort);
    let most = rate_bps as f64 * load * duration.as_secs_f64() / 8.0;
    let bytes = (random.magnitude(300_000, 2_000_000) << effort).min(most as u64);
    let spread_bps = (bytes as f64 * 16.0 / (duration.as_secs_f64() * load)) as u64;
    Scale {
        rate_bps: match random.chance(0.5) {
            true => rate_bps,
            false => spread_bps.clamp(1, rate_bps),
        },
        duration,
        bytes,
    }
}

/// Of a cable, or of a switch or a port of it.
fn cut(
    layout: Layout,
    ports: usize,
    trouble: Trouble,
    traffic: Duration,
    random: &mut Random,
) -> Cut {
    if trouble == Trouble::None || !random.chance(0.5) {
        return Cut::default();
    }
    let (start, end) = (traffic / 5, traffic * 9 / 10);
    let count = random.between(1, 4);
    let all = Cut::random(count, Instant::ZERO + start, Instant::ZERO + end, random);
    let outages = all.outages().iter().map(|outage| Outage {
        port: (layout.kind() == SegmentKind::Switch && random.chance(0.7))
            .then(|| random.below(ports as u64) as usize),
        ..*outage
    });
    Cut::new(outages.collect())
}
