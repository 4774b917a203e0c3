//! A copy of everything worth reading.

use super::Engine;
use super::kinds::kind_in_use;
use super::paths::{frames_for, rate_bps};
use super::way::takes_coded;
use crate::class::{self, Class};
use crate::coding::worth::Compressor;
use crate::peer::{Path, Peer};
use crate::stats::{
    ClassSnapshot, CodingSnapshot, DfapSnapshot, DictionarySnapshot, DictionaryUnused,
    HostSnapshot, LagUse, LinkSnapshot, LivenessSnapshot, PathMeasures, PathSize, PathSnapshot,
    PathState, PeerSnapshot, QueueSnapshot, ReassemblySnapshot, ResequencerSnapshot, SandSnapshot,
    Snapshot, StationSnapshot, Traffic,
};
use crate::time::Instant;
use crate::trunk::hold_times::HoldTimes;
use crate::trunk::path_mtu::PathMtu;

impl Engine {
    pub fn snapshot(&self, now: Instant) -> Snapshot {
        let counters = &self.counters;
        Snapshot {
            node_id: self.config.node_id,
            address: self.config.address,
            mtu: self.config.mtu,
            host_rx: counters.host_rx,
            host_tx: counters.host_tx,
            links: self
                .links
                .iter()
                .map(|link| self.link_snapshot(link, now))
                .collect(),
            peers: self
                .peers
                .iter()
                .map(|(slot, peer)| self.peer_snapshot(slot, peer, now))
                .collect(),
            hosts: self
                .stations
                .plain()
                .map(|(address, link, heard)| HostSnapshot {
                    address,
                    link,
                    last_heard: now.since(heard),
                })
                .collect(),
            trains_tx: counters.trains_tx,
            trains_rx: counters.trains_rx,
            flushes: counters.flushes.clone(),
            train_sizes: counters.train_sizes.snapshot(),
            data_units: counters.data_units,
            coding: CodingSnapshot {
                cost_ns_per_kb: self.worths.cost_ps(),
                ..counters.coding
            },
            dictionary: self.config.dictionary.as_ref().map(|d| DictionarySnapshot {
                id: d.id(),
                len: d.len(),
            }),
            dfap: self.dfap_snapshot(),
            classes: self.class_snapshots(),
            queue: QueueSnapshot {
                frames: self.queued_frames as u64,
                bytes: self.queued_bytes as u64,
                flows: (self
                    .plain
                    .iter()
                    .map(|(_, queues)| queues.flows())
                    .sum::<usize>()
                    + self
                        .peers
                        .iter()
                        .map(|(_, peer)| peer.queues.flows())
                        .sum::<usize>()
                    + self
                        .dfap_stations
                        .iter()
                        .map(|(_, station)| station.queues.flows())
                        .sum::<usize>()) as u64,
                frames_max_seen: counters.queue_frames_max as u64,
                bytes_max_seen: counters.queue_bytes_max as u64,
                marked: counters.marked,
            },
            sand: SandSnapshot {
                delay_max: self.config.sand().0,
                waited: counters.sand.snapshot(),
            },
            elephants: self.elephants.snapshot(now),
            resequencer: self.resequencer_snapshot(),
            replay: self.replay_snapshot(),
            reassembly: self.reassembly_snapshot(),
            direct: self.direct_snapshot(),
            too_big: self.too_big_snapshot(),
            drops: counters.drops.clone(),
        }
    }

    fn class_snapshots(&self) -> Vec<ClassSnapshot> {
        let of_class = |(class, traffic, waited): (&Class, Traffic, &HoldTimes)| ClassSnapshot {
            name: class.name.to_string(),
            matches: Some(class.matches.to_string()),
            action: class.action,
            links: class.links.clone(),
            traffic,
            waited: waited.snapshot(),
        };
        let (action, traffic, waited) = self.classes.rest();
        let rest = ClassSnapshot {
            name: class::REST.into(),
            matches: None,
            action,
            links: Vec::new(),
            traffic,
            waited: waited.snapshot(),
        };
        let classes = self.classes.iter_counted().map(of_class);
        classes.chain([rest]).collect()
    }

    fn dfap_snapshot(&self) -> DfapSnapshot {
        let stations = self.dfap_stations.iter().map(|(_, station)| station);
        let count = self.waiting.traffic_count();
        DfapSnapshot {
            mode: self.config.mode,
            stations: stations
                .map(|station| StationSnapshot {
                    address: station.address,
                    ether_type: station.ether_type,
                    listed: station.is_listed(),
                    home: station.home,
                    queued_frames: station.waiting().0 as u64,
                })
                .collect(),
            is_on: count.map(|count| count.is_on()),
            average_per_second: count.and_then(|count| count.average_per_second()),
        }
    }

    fn peer_snapshot(&self, slot: usize, peer: &Peer, now: Instant) -> PeerSnapshot {
        PeerSnapshot {
            node_id: peer.node_id,
            address: peer.address,
            up: peer.up,
            away: peer.away,
            software: peer.software.clone(),
            capabilities: peer.capabilities,
            mtu: peer.mtu,
            last_heard: now.since(peer.last_heard),
            paths: peer
                .paths
                .iter()
                .map(|path| {
                    let way = self.direct_way(slot, peer, path).ok();
                    let way = way.map(|(way, _)| way);
                    PathSnapshot {
                        state: self.path_state(peer, path, now),
                        queued_frames: frames_for(&self.links, peer, &self.vias, path.link) as u64,
                        direct: way.map(|way| way.open_to),
                        direct_stripes: way.is_some_and(|way| way.stripes),
                        direct_mark: kind_in_use(path),
                        direct_marks_refused: self.kinds_refused(peer, path),
                        size: self.path_size(peer, path, now),
                        ..path_snapshot(path, peer, now)
                    }
                })
                .collect(),
            queued_frames: peer.queues.frames() as u64,
            queued_bytes: peer.queues.bytes() as u64,
            tier: peer.tier_in_use,
            hold: peer.hold_times.snapshot(),
            auto: peer.queues.pressure().choice,
            engine_because: self.engine_because(slot, peer),
            dictionary: peer.dictionary,
            dictionary_unused: self.dictionary_unused(peer, now),
        }
    }

    /// Why payload to a peer is not compressed with the dictionary; as `coding_for` decides it for each train.
    fn dictionary_unused(&self, peer: &Peer, now: Instant) -> Option<DictionaryUnused> {
        use DictionaryUnused::*;
        let Some(own) = &self.config.dictionary else {
            return Some(NoneHere);
        };
        if !peer.up {
            return Some(NotUp);
        }
        if !takes_coded(&self.config, peer) {
            return Some(NotCoded);
        }
        if !self.classes.any_compresses_payload() {
            return Some(Classes);
        }
        match peer.dictionary {
            None => return Some(NoneThere),
            Some(theirs) if theirs != own.id() => return Some(AnotherThere),
            Some(_) => {}
        }
        let rate = |path: &Path| {
            let link = self.link(path.link)?;
            rate_bps(link, path, now).map(|bps| link.rate_of_full_trains(bps))
        };
        let slowest = peer.paths.iter().filter_map(rate).min();
        match slowest {
            None => Some(RateUnknown),
            Some(bps) if self.worths.may_pay_for(bps, Compressor::Zstd, now) => None,
            Some(_) => Some(FastLinks),
        }
    }

    fn link_snapshot(&self, link: &crate::link::Link, now: Instant) -> LinkSnapshot {
        let paths = || self.peers.iter().filter_map(|(_, peer)| peer.path(link.id));
        let in_flight = paths().map(|path| path.flight.in_flight_bytes()).sum();
        let acked = paths().filter_map(|path| path.flight.rate_bps()).max();
        LinkSnapshot {
            sand: self.link_sand(link.id, now),
            home: self.segments.is_home(link.id),
            lag: link
                .settings
                .in_lag
                .then(|| match self.segments.lag_is_refused() {
                    true => LagUse::Refused,
                    false => LagUse::Used,
                }),
            ..link.snapshot(in_flight, acked, now)
        }
    }

    fn resequencer_snapshot(&self) -> ResequencerSnapshot {
        let mut sum = ResequencerSnapshot {
            gaps: self.counters.gaps,
            reordered: self.counters.reordered,
            held_bytes_max_seen: self.counters.held_bytes_max as u64,
            ..ResequencerSnapshot::default()
        };
        for (_, peer) in self.peers.iter() {
            for lane in &peer.rx {
                sum.held_trains += lane.resequencer.held_trains() as u64;
                sum.held_bytes += lane.resequencer.held_bytes() as u64;
            }
            let order = peer.lane_counts().order;
            sum.held_bytes_max_seen = sum.held_bytes_max_seen.max(order.held_bytes_max as u64);
            sum.gaps += order.gaps;
            sum.reordered += order.reordered;
        }
        sum
    }

    fn reassembly_snapshot(&self) -> ReassemblySnapshot {
        let mut sum = ReassemblySnapshot {
            completed: self.counters.reassembled,
            partial: self.counters.reassembled_partly,
            bytes_max_seen: self.counters.reassembly_bytes_max as u64,
            ..ReassemblySnapshot::default()
        };
        for (_, peer) in self.peers.iter() {
            for lane in &peer.rx {
                sum.frames += lane.reassembly.frames() as u64;
                sum.bytes += lane.reassembly.bytes() as u64;
            }
            let pieces = peer.lane_counts().pieces;
            sum.bytes_max_seen = sum.bytes_max_seen.max(pieces.bytes_max as u64);
            sum.completed += pieces.completed;
            sum.partial += pieces.partial;
        }
        sum
    }
}

fn path_snapshot(path: &Path, peer: &Peer, now: Instant) -> PathSnapshot {
    PathSnapshot {
        link: path.link,
        remote_link: path.remote_link,
        remote_address: path.remote_address,
        round_trip: path.flight.round_trip(),
        round_trip_min: path.flight.round_trip_min(),
        rate_bps: path.flight.rate_bps().map(|(bps, _)| bps),
        in_flight_bytes: path.flight.in_flight_bytes() as u64,
        window_bytes: path.flight.window_bytes() as u64,
        lost_trains: path.flight.lost_trains(),
        trains_tx: path.trains_tx,
        liveness: path.session.as_ref().map(|session| LivenessSnapshot {
            state: session.state(),
            diagnostic: session.diagnostic(),
            detection_time: session.detection_time(now),
            interval: session.interval(now),
            round_trip: session.round_trip(),
            held_for: path.damping.held_until().map(|until| until.since(now)),
        }),
        failures: path.damping.failures(),
        state: PathState::Open,
        queued_frames: 0,
        measures: measures(path, peer, now),
        size: PathSize::default(),
        direct: None,
        direct_mark: None,
        direct_marks_refused: Vec::new(),
        direct_stripes: false,
        direct_late: path.striping.late,
        reordering_seen: peer.reorders(now),
    }
}

fn measures(path: &Path, peer: &Peer, now: Instant) -> PathMeasures {
    let flight = &path.flight;
    let mut receipts = peer.receipts.iter();
    let receipts = receipts.find(|receipts| receipts.link == path.remote_link.0);
    let all = peer.paths.iter();
    let least = all.filter_map(|path| path.flight.round_trip_min()).min();
    // One alone is later than none.
    let least = least.filter(|_| peer.paths.len() > 1);
    let known_mtu = path.mtu.as_ref().filter(|mtu| mtu.is_known());
    PathMeasures {
        rate_age: flight.rate_bps().map(|(_, at)| now.since(at)),
        round_trip_deviation: flight.round_trip_deviation(),
        tx_loss_ppm: flight.loss_ppm(now),
        rx_loss_ppm: receipts.and_then(|receipts| receipts.loss_ppm(now)),
        mtu: known_mtu.map(PathMtu::payload),
        mtu_of_ends: known_mtu.map(PathMtu::payload_of_ends),
        tx_later: least.and_then(|least| Some(flight.round_trip_min()?.saturating_sub(least))),
        rx_later: receipts.and_then(|receipts| receipts.later(now)),
    }
}
