//! Two packtrain hosts joined by two to eight cables, each a segment of its own.
//!
//! Four courses: *faults*, where cables also lose, double, reorder and alter frames, all of them may
//! be gone at once, and hosts restart; *carrier cuts*, where cables only break, and links come and go,
//! but one that works is always there, so nothing may be lost at all; *silent cuts*, the same where
//! nobody is told that a cable is broken, and it stays so until the traffic is over; *lossless*, where cables
//! break and lose, double and reorder what they carry, and nothing may be lost because all is of classes that say so.

use packtrain_proto::buffer::LARGE_CAPACITY;
use packtrain_proto::config::{Balance, Config, LinkId, LinkSettings};
use packtrain_proto::time::{Duration, Instant};

use super::direct::Carriage;
use super::draw::{self, Dictionaries, Traffic, Trouble};
use super::outages::{Outages, Rules};
use super::{Experiment, Order, Report, classes, hardships};
use crate::checker::accounted::Kept;
use crate::checker::{Checkers, StationFacts};
use crate::event_queue::EventQueue;
use crate::host::Host;
use crate::net::network::{Network, PortId, SegmentConfig, SegmentKind};
use crate::net::queue::QueueConfig;
use crate::net::wire::WireConfig;
use crate::random::Random;
use crate::sabotage::Saboteur;
use crate::simulator::{Event, Simulator, Station, StationId};
use crate::workload::mix::{Endpoint, Scale};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    Faults,
    CarrierCuts,
    SilentCuts,
    Lossless,
}

/// So long is more than four round trips of any link there: a silent cut outlasts the traffic by it, so
/// that what it took is missed before the cable works again. (A link that fails for less than that
/// cannot be told from one that loses frames, and what that loses nobody sends again.)
const SILENCE: Duration = Duration::from_secs(3);
/// Where one link is used at a time, all that are dead may be tried before the one that lives, and one that has never answered is
/// waited for this long.
const TRIED: Duration = Duration::from_millis(1200);

fn silence(cables: usize) -> Duration {
    let all_but_one = cables as u32 - 1;
    SILENCE.max(TRIED * all_but_one + TRIED / 2)
}

/// Hellos go each second: by then a new link is known at both ends, with what its cable takes besides.
const SETTLES: Duration = Duration::from_millis(1500);

pub fn run(order: Order) -> Report {
    build(order, Course::Faults).run()
}

pub fn run_carrier_cuts(order: Order) -> Report {
    build(order, Course::CarrierCuts).run()
}

pub fn run_silent_cuts(order: Order) -> Report {
    build(order, Course::SilentCuts).run()
}

pub fn run_lossless(order: Order) -> Report {
    build(order, Course::Lossless).run()
}

pub fn build(order: Order, course: Course) -> Experiment {
    build_with(order, course, Carriage::Engine)
}

pub(super) fn build_with(order: Order, course: Course, carriage: Carriage) -> Experiment {
    let mut random = Random::new(order.seed ^ 0x6c69_6e6b_7300 ^ course as u64);
    let trouble = match course {
        Course::Faults => Trouble::draw(&mut random),
        Course::Lossless => *random.pick(&[Trouble::InOrder, Trouble::Any]),
        Course::CarrierCuts | Course::SilentCuts => Trouble::None,
    };
    let load = *random.pick(carriage.loads_of_several());
    let cables = draw_cables(course, carriage, &mut random);
    let total_bps: u64 = cables.iter().map(|cable| cable.rate_bps).sum();
    let slowest_bps = cables.iter().map(|c| c.rate_bps).min().unwrap_or(1);
    let scale = scale(total_bps, load, order.effort, &mut random);

    let longest_delay = cables.iter().map(|c| c.delay).max().unwrap_or_default();
    let settles = SETTLES + 4 * longest_delay;
    let is_alone = cables.len() == 1;
    let rules = Rules {
        cables: cables.len(),
        end: Instant::ZERO + scale.duration * 19 / 20,
        start: Instant::ZERO + settles,
        silent: match course {
            Course::Faults => 0.3,
            Course::CarrierCuts | Course::Lossless => 0.0,
            Course::SilentCuts => 1.0,
        },
        moves: if course == Course::SilentCuts || is_alone {
            0.0
        } else {
            0.35
        },
        // What an only one has lost with its carrier goes again when it is back.
        one_well_for: (course != Course::Faults && !is_alone).then_some(settles),
        outage_max: match course {
            Course::Lossless => Duration::from_millis(2000),
            _ => Duration::from_millis(1500),
        },
        for_good: (course == Course::SilentCuts)
            .then_some(Instant::ZERO + scale.duration + silence(cables.len()) * 9 / 10),
    };
    let most = if trouble == Trouble::None && course == Course::Faults {
        0
    } else {
        4 * cables.len() as u64
    };
    let outages = Outages::draw(&rules, random.below(most + 1), &mut random);

    let mut all_up = Vec::new();
    let segments: Vec<SegmentConfig> = cables
        .iter()
        .zip(&outages.cuts)
        .map(|(cable, cut)| {
            let up: Vec<WireConfig> = (0..2)
                .map(|_| {
                    let mut wire = draw::wire(
                        cable.rate_bps,
                        cable.delay,
                        trouble,
                        order.effort,
                        &mut random,
                    );
                    if course != Course::Faults {
                        // More than an engine ever lets stand there: nothing is refused.
                        wire.queue = QueueConfig::drop_tail(4 << 20);
                    }
                    wire
                })
                .collect();
            all_up.extend(up.iter().cloned());
            SegmentConfig {
                kind: SegmentKind::Cable,
                mtu: cable.mtu,
                carries_offload: random.chance(0.5),
                up,
                down: Vec::new(),
                cut: cut.clone(),
            }
        })
        .collect();
    let mut faults = draw::faults(&all_up);
    faults.moves_home = true;

    let mtu_min = cables.iter().map(|c| c.mtu).min().unwrap_or(1500);
    let mtu_max = cables.iter().map(|c| c.mtu).max().unwrap_or(1500);
    let host_mtu = carriage.host_mtu(draw::host_mtu(mtu_max, &mut random), mtu_min);
    let bridged = random.chance(0.2);
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
    let mut traffic = Traffic::new(mtu_min);
    let count = random.between(3, 7);
    let share = 1.0 / (2 * count) as f64;
    for _ in 0..count {
        for (from, to) in [(0, 1), (1, 0)] {
            // Group frames have no copies: what a cut takes of them is lost.
            let to_all = course == Course::Faults && random.chance(0.08);
            let to = (!to_all).then_some(&endpoints[to]);
            let load = load / count as f64;
            traffic.add(&endpoints[from], to, load, share, scale, &mut random);
        }
    }
    // A cut that meets no traffic shows nothing.
    let losses = outages.losses();
    for (_, start) in &mut traffic.sources {
        if !losses.is_empty() && random.chance(0.5) {
            let before = random.duration(Duration::ZERO, Duration::from_millis(40));
            let loss = *random.pick(&losses);
            *start = Instant::ZERO + loss.since(Instant::ZERO).saturating_sub(before);
        }
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
    let network = Network::new(segments, &mut random, &mut queue);
    let mut simulator = Simulator::new(network, queue, checkers);
    for endpoint in &endpoints {
        let n = endpoint.station.0;
        let mut config = draw::config(endpoint.address, host_mtu, &mut random);
        if course != Course::Faults || trouble == Trouble::None {
            // What is held for the order, or in pieces, may have to wait long for a slow link.
            let defaults = Config::new(config.node_id, config.address).limits;
            config.limits.resequencer_bytes_max = defaults.resequencer_bytes_max;
            config.limits.reassembly_bytes_max = defaults.reassembly_bytes_max;
        }
        draw_trunk(&mut config, &mut random);
        if course == Course::Lossless {
            // Who has no room for the copies of large trains cannot promise anything.
            let limit = &mut config.limits.replay_bytes_max;
            *limit = (*limit).max(4 * LARGE_CAPACITY);
        }
        draw_liveness(&mut config, order.seed ^ (n as u64) << 32);
        let mut uses = LinkUse::draw(order.seed, n);
        uses.of_line(&mut config);
        config.promiscuous = bridged;
        config.dictionary = Dictionaries::draw(order.seed).of(n);
        let mut host = Host::new(
            endpoint.station,
            config,
            draw::pace(&mut random),
            Instant::ZERO,
        );
        let port_of = |cable| PortId {
            segment: cable,
            port: n,
        };
        for cable in 0..cables.len() {
            if outages.at_start[cable][n] {
                let address = draw::link_address(n as u8, cable as u8);
                let id = LinkId(cable as u8);
                host.add_link(id, port_of(cable), address, &simulator.network);
            }
        }
        let sabotage = order.sabotage.filter(|s| s.station == endpoint.station);
        if let Some(s) = sabotage {
            host.sabotage(Saboteur::new(s.breakage, random.fork()));
        }
        let ports: Vec<PortId> = (0..cables.len()).map(port_of).collect();
        for (at, change) in uses.of_links(&mut host, &ports, scale.duration) {
            simulator.queue.push(at, change);
        }
        simulator.add(Station::Packtrain(Box::new(host)), &ports);
    }
    for m in &outages.moves {
        let station = StationId(m.host);
        let port = PortId {
            segment: m.cable,
            port: m.host,
        };
        let event = match m.joins {
            true => Event::Plug {
                station,
                port,
                address: draw::link_address(m.host as u8, m.cable as u8),
            },
            false => Event::Unplug { station, port },
        };
        simulator.queue.push(m.at, event);
    }
    let restarts = match course {
        Course::Faults if trouble != Trouble::None => {
            draw_restarts(&mut simulator, scale.duration, &mut random)
        }
        _ => 0,
    };
    if course == Course::Faults && trouble != Trouble::None {
        let ports_of = |port| (0..cables.len()).map(move |segment| PortId { segment, port });
        let ports: Vec<Vec<PortId>> = (0..2).map(|n| ports_of(n).collect()).collect();
        for (at, event) in hardships::draw(order.seed, &ports, &simulator.network, scale.duration) {
            simulator.queue.push(at, event);
        }
    }
    let stops = match course {
        Course::CarrierCuts => hardships::draw_stops(order.seed, 2, scale.duration),
        // A cut and a stop, one after the other, are more silence than a peer puts up with.
        Course::Lossless if is_alone && !losses.is_empty() => Vec::new(),
        Course::Lossless => hardships::draw_long_stops(order.seed, 2, scale.duration),
        Course::Faults | Course::SilentCuts => Vec::new(),
    };
    for (at, event) in stops {
        simulator.queue.push(at, event);
    }
    for endpoint in &endpoints {
        for _ in 0..random.between(0, 10) {
            let at = random.duration(Duration::ZERO, scale.duration);
            let station = endpoint.station;
            simulator
                .queue
                .push(Instant::ZERO + at, Event::Drain { station });
        }
    }
    match course {
        Course::Lossless => classes::give_lossless(&mut simulator, order.seed, scale.duration),
        _ => carriage.equip(&mut simulator, order.seed, scale.duration),
    }
    for (source, start) in traffic.sources {
        simulator.add_source(source, start);
    }
    simulator.queue.push(Instant::ZERO, Event::Look);
    Experiment {
        simulator,
        traffic: scale.duration,
        quiet: match course {
            Course::SilentCuts => silence(cables.len()),
            _ => Duration::ZERO,
        },
        drain_max: Duration::from_secs(12)
            + Duration::from_secs_f64(40e6 * 8.0 / slowest_bps as f64).min(Duration::from_secs(60)),
        probes: traffic.probes,
        faultless: trouble == Trouble::None && course == Course::Faults,
        restarts,
        kept: match course {
            Course::Faults => Kept::Accounts,
            Course::Lossless => Kept::Copies,
            Course::CarrierCuts | Course::SilentCuts => Kept::Everything,
        },
        peers: vec![1; 2],
        paths: Some(outages.whole_at_end()),
        choice: true,
    }
}

/// What a cable is before anything goes wrong with it.
#[derive(Clone, Copy, Debug)]
struct Cable {
    rate_bps: u64,
    delay: Duration,
    mtu: u16,
}

fn draw_cables(course: Course, carriage: Carriage, random: &mut Random) -> Vec<Cable> {
    let count = match course {
        // An only one may lose nothing of such classes either.
        Course::Lossless => *random.pick(&[1, 1, 1, 2, 2, 2, 3, 4, 8]),
        _ => *random.pick(&[2, 2, 2, 2, 3, 3, 4, 5, 6, 7, 8]),
    };
    let (rate_bps_min, rate_bps_max) = carriage.rates_bps();
    let rate_bps = random.magnitude(rate_bps_min, rate_bps_max);
    let rates = random.below(3);
    let delay_max = match course {
        // Silence is noticed after four round trips, and must be before the receiver waits no more.
        Course::SilentCuts => 20_000_000,
        _ => 100_000_000,
    };
    let delay_max = delay_max.min(carriage.delay_ns_max());
    let delay = random.magnitude(1_000, delay_max);
    let delays = random.below(3);
    let mtu = draw::link_mtu(random);
    let mtus_differ = random.chance(0.3);
    let near = |value: u64, random: &mut Random| {
        (value as f64 * (0.6 + 0.8 * random.unit())).max(1.0) as u64
    };
    (0..count)
        .map(|_| Cable {
            rate_bps: match rates {
                0 => rate_bps,
                1 => near(rate_bps, random),
                _ => random.magnitude(rate_bps_min, rate_bps_max),
            },
            delay: Duration::from_nanos(match delays {
                0 => delay,
                1 => near(delay, random).min(delay_max),
                _ => random.magnitude(1_000, delay_max),
            }),
            mtu: match mtus_differ {
                true => draw::link_mtu(random),
                false => mtu,
            },
        })
        .collect()
}

/// Long enough for links to be cut, to come back and to be cut again, and little enough to send.
fn scale(total_bps: u64, load: f64, effort: u32, random: &mut Random) -> Scale {
    let duration = Duration::from_millis(random.between(3000, 7000) << effort);
    let most = total_bps as f64 * load * duration.as_secs_f64() / 8.0;
    let bytes = (random.magnitude(300_000, 3_000_000) << effort).min(most as u64);
    let spread_bps = (bytes as f64 * 16.0 / (duration.as_secs_f64() * load)) as u64;
    Scale {
        // In bursts at the rate of all links, or all the time.
        rate_bps: match random.chance(0.5) {
            true => total_bps,
            false => spread_bps.clamp(1, total_bps),
        },
        duration,
        bytes,
    }
}

/// What only several links make a difference to.
pub(super) fn draw_trunk(config: &mut Config, random: &mut Random) {
    config.balance = *random.pick(&[
        Balance::EarliestFinish,
        Balance::EarliestFinish,
        Balance::EarliestFinish,
        Balance::EarliestFinish,
        Balance::EarliestFinish,
        Balance::EarliestFinish,
        Balance::EarliestFinish,
        Balance::RoundRobin,
        Balance::RoundRobin,
        Balance::ActiveBackup,
    ]);
    config.marked_frames = random.chance(0.5);
    if random.chance(0.15) {
        config.limits.replay_bytes_max = random.magnitude(64 << 10, 1 << 20) as usize;
    }
}

/// With numbers of its own: what else a seed becomes stays what it was.
pub(super) fn draw_liveness(config: &mut Config, seed: u64) {
    let mut random = Random::new(seed ^ 0x6c69_7665_6c79);
    config.detection_time = match random.below(10) {
        0 => None,
        1 => Some(Duration::from_millis(10)),
        2 => Some(random.duration(Duration::from_millis(10), Duration::from_secs(2))),
        _ => config.detection_time,
    };
    config.hold_time = *random.pick(&[config.hold_time, config.hold_time, Duration::ZERO]);
    config.limits.repair_within = match random.below(10) {
        0 | 1 => None,
        2 => Some(random.duration(Duration::from_millis(1), Duration::from_secs(1))),
        _ => config.limits.repair_within,
    };
}

/// What its links are used for, by another random than the rest: half of the hosts are as they would be without it.
#[derive(Debug)]
pub(super) struct LinkUse {
    random: Random,
    is_drawn: bool,
    has_tiers: bool,
}

impl LinkUse {
    pub fn draw(seed: u64, station: usize) -> LinkUse {
        let mut random = Random::new(seed ^ 0x7573_6573 ^ (station as u64) << 56);
        LinkUse {
            is_drawn: random.chance(0.5),
            has_tiers: random.chance(0.5),
            random,
        }
    }

    pub fn of_line(&mut self, config: &mut Config) {
        if self.is_drawn {
            config.balance = *self.random.pick(&Balance::ALL);
            config.tier_spill = self.random.chance(0.5);
        }
    }

    /// `ports`: those that its links are at. Gives what changes while it runs.
    pub fn of_links(
        &mut self,
        host: &mut Host,
        ports: &[PortId],
        duration: Duration,
    ) -> Vec<(Instant, Event)> {
        if !self.is_drawn {
            return Vec::new();
        }
        for &port in ports {
            host.give_link_settings(port, self.settings());
        }
        let station = host.station;
        let changes = self.random.below(4);
        let change = |_| {
            let at = Instant::ZERO + self.random.duration(Duration::ZERO, duration);
            let event = Event::LinkSettings {
                station,
                port: *self.random.pick(ports),
                settings: self.settings(),
            };
            (at, event)
        };
        (0..changes).map(change).collect()
    }

    fn settings(&mut self) -> LinkSettings {
        LinkSettings {
            tier: match self.has_tiers {
                true => *self.random.pick(&[1, 1, 2, 2, 3, 9]),
                false => 1,
            },
            weight: self.random.between(1, 6) as u8,
            ..LinkSettings::default()
        }
    }
}

/// One host, or both, at once or one after the other.
pub(super) fn draw_restarts(
    simulator: &mut Simulator,
    traffic: Duration,
    random: &mut Random,
) -> u64 {
    let mut restart = |station: usize, at: Duration| {
        let station = StationId(station);
        simulator
            .queue
            .push(Instant::ZERO + at, Event::Restart { station });
    };
    let (low, high) = (traffic * 3 / 10, traffic * 8 / 10);
    let at = random.duration(low, high);
    match random.below(20) {
        0..=3 => {
            restart(random.below(2) as usize, at);
            1
        }
        4..=5 => {
            restart(0, at);
            restart(1, random.duration(low, high));
            2
        }
        6 => {
            restart(0, at);
            restart(1, at);
            2
        }
        _ => 0,
    }
}
