//! What went over segments, and what hosts made of it.

use packtrain_proto::stats::DropReason;
use packtrain_proto::time::{Duration, Instant};

use super::config::StationConfig;
use crate::net::network::{Network, PortId, SegmentKind, WireId};
use crate::simulator::{Simulator, Station};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub at: Instant,
    pub segments: Vec<SegmentCount>,
    pub stations: Vec<StationCount>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentCount {
    /// That hosts have sent on it whole, and their bytes without preamble, padding and check sequence.
    pub frames: u64,
    pub bytes: u64,
    /// Of a hub, and attempts that failed: two or more in each of them.
    pub collisions: u64,
    pub failed_attempts: u64,
    /// How long somebody was sending, and of that: what collided, jams included.
    pub busy: Duration,
    pub collision: Duration,
    /// Frames given up after 16 attempts.
    pub given_up: u64,
    /// … that had no room in a queue, of a host or of a switch's port.
    pub queue_full: u64,
    /// … that a cut took with it.
    pub cut: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StationCount {
    /// In the order of its ports.
    pub ports: Vec<PortCount>,
    /// Trains that carry frames, and probes; the frames in them; and frames that went as they are.
    pub trains: u64,
    pub frames_in_trains: u64,
    pub marked: u64,
    pub plain: u64,
    /// Of the DFAP paper.
    pub aggregates: u64,
    pub aggregated: u64,
    /// Of its engine, those that happened.
    pub drops: Vec<(&'static str, u64)>,
}

/// What was sent by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCount {
    pub frames: u64,
    pub bytes: u64,
}

impl Counts {
    pub fn since(&self, before: &Counts) -> Counts {
        let segments = self.segments.iter().zip(&before.segments);
        let stations = self.stations.iter().zip(&before.stations);
        Counts {
            at: self.at,
            segments: segments.map(|(now, then)| now.since(then)).collect(),
            stations: stations.map(|(now, then)| now.since(then)).collect(),
        }
    }
}

impl SegmentCount {
    fn since(&self, before: &SegmentCount) -> SegmentCount {
        SegmentCount {
            frames: self.frames - before.frames,
            bytes: self.bytes - before.bytes,
            collisions: self.collisions - before.collisions,
            failed_attempts: self.failed_attempts - before.failed_attempts,
            busy: self.busy - before.busy,
            collision: self.collision - before.collision,
            given_up: self.given_up - before.given_up,
            queue_full: self.queue_full - before.queue_full,
            cut: self.cut - before.cut,
        }
    }
}

impl StationCount {
    fn since(&self, before: &StationCount) -> StationCount {
        let ports = self.ports.iter().zip(&before.ports);
        let of = |all: &[(&'static str, u64)], reason| {
            let found = all.iter().find(|(name, _)| *name == reason);
            found.map_or(0, |(_, count)| *count)
        };
        let drops = self.drops.iter();
        let drops = drops.map(|&(reason, count)| (reason, count - of(&before.drops, reason)));
        StationCount {
            ports: ports
                .map(|(now, then)| PortCount {
                    frames: now.frames - then.frames,
                    bytes: now.bytes - then.bytes,
                })
                .collect(),
            trains: self.trains - before.trains,
            frames_in_trains: self.frames_in_trains - before.frames_in_trains,
            marked: self.marked - before.marked,
            plain: self.plain - before.plain,
            aggregates: self.aggregates - before.aggregates,
            aggregated: self.aggregated - before.aggregated,
            drops: drops.filter(|(_, count)| *count > 0).collect(),
        }
    }

    /// `None`: nothing left in trains or aggregates.
    pub fn frames_per_train(&self) -> Option<f64> {
        let trains = self.trains + self.aggregates;
        let frames = self.frames_in_trains + self.aggregated;
        (trains > 0).then(|| frames as f64 / trains as f64)
    }
}

pub fn of(simulator: &Simulator, stations: &[StationConfig]) -> Counts {
    let network = &simulator.network;
    let configs = network.configs().enumerate();
    let segments = configs.map(|(segment, config)| match config.kind {
        SegmentKind::Hub { .. } => of_hub(network, segment, config.up.len()),
        _ => of_wires(network, segment, config.up.len(), config.down.len()),
    });
    let hosts = simulator.stations.iter().zip(stations);
    Counts {
        at: simulator.now(),
        segments: segments.collect(),
        stations: hosts
            .map(|(host, config)| of_station(simulator, host, &config.ports))
            .collect(),
    }
}

fn of_hub(network: &Network, segment: usize, ports: usize) -> SegmentCount {
    let medium = network.medium_counters(segment).expect("it is a hub");
    let mut count = SegmentCount {
        busy: medium.busy,
        collision: medium.collision,
        collisions: medium.collisions,
        ..SegmentCount::default()
    };
    for port in 0..ports {
        let station = network.station_counters(PortId { segment, port });
        let station = station.expect("it is a hub");
        count.frames += station.sent_frames;
        count.bytes += station.sent_bytes;
        count.failed_attempts += station.collisions;
        count.given_up += station.excessive_collisions;
        count.queue_full += station.queue_full;
        count.cut += station.cut;
    }
    count
}

fn of_wires(network: &Network, segment: usize, up: usize, down: usize) -> SegmentCount {
    let mut count = SegmentCount::default();
    for wire in 0..up + down {
        let counters = &network.wire(WireId { segment, wire }).counters;
        if wire < up {
            count.frames += counters.left;
            count.bytes += counters.left_bytes;
            count.busy += counters.busy;
        }
        count.queue_full += counters.queue_full;
        count.cut += counters.cut;
    }
    count
}

fn of_station(simulator: &Simulator, station: &Station, ports: &[PortId]) -> StationCount {
    let network = &simulator.network;
    let sent = |port: &PortId| match network.station_counters(*port) {
        Some(station) => PortCount {
            frames: station.sent_frames,
            bytes: station.sent_bytes,
        },
        None => {
            let wire = WireId {
                segment: port.segment,
                wire: port.port,
            };
            let counters = &network.wire(wire).counters;
            PortCount {
                frames: counters.left,
                bytes: counters.left_bytes,
            }
        }
    };
    let count = StationCount {
        ports: ports.iter().map(sent).collect(),
        ..StationCount::default()
    };
    let Station::Packtrain(host) = station else {
        return count;
    };
    let snapshot = host.engine.snapshot(simulator.now());
    let dropped = |reason: DropReason| {
        let links = snapshot.links.iter().map(|link| link.drops.get(reason));
        snapshot.drops.get(reason) + links.sum::<u64>()
    };
    let reasons = DropReason::ALL.iter();
    let drops = reasons.map(|&reason| (reason.as_str(), dropped(reason)));
    StationCount {
        trains: snapshot.trains_tx.trains,
        frames_in_trains: snapshot.trains_tx.frames,
        marked: snapshot.trains_tx.marked,
        plain: snapshot.trains_tx.plain,
        aggregates: snapshot.trains_tx.aggregates,
        aggregated: snapshot.trains_tx.aggregated,
        drops: drops.filter(|(_, count)| *count > 0).collect(),
        ..count
    }
}
