//! What an emulator is to build of a topology: segments and ports, numbered.
//!
//! A wire between two hosts is a cable. A switch or a hub is a segment with a port for each of its
//! wires; a wire between two of them joins a port of one with a port of the other, and each direction
//! is the wire that leads out of the port where it begins.

use std::collections::BTreeMap;
use std::time::Duration;

use packtrain_proto::queue::codel::CodelParams;
use packtrain_proto::wire::ethernet::MacAddr;
use packtrain_sim::net::bit_errors::BitErrorConfig;
use packtrain_sim::net::corruption::CorruptionConfig;
use packtrain_sim::net::cut::Cut;
use packtrain_sim::net::jitter::{JitterConfig, JitterDistribution};
use packtrain_sim::net::loss::LossConfig;
use packtrain_sim::net::network::{PortId, SegmentConfig, SegmentKind, WireId};
use packtrain_sim::net::packet_cap::PacketCapConfig;
use packtrain_sim::net::queue::{self, QueueConfig};
use packtrain_sim::net::rate::{RateConfig, RateLevel};
use packtrain_sim::net::reordering::ReorderingConfig;
use packtrain_sim::net::wire::WireConfig;

use super::port::PortPlan;
use crate::lab::topology::direction::{Counts, Discipline, JitterKind, Loss, QueueLimit, Rate};
use crate::lab::topology::{Direction, Name, NodeKind, Topology, WireSettings};
use crate::linux::port_rate::{BURST, Counted, PortRate};

#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub segments: Vec<SegmentConfig>,
    /// Ports of two switches with a wire between them.
    pub joins: Vec<(PortId, PortId)>,
    pub ports: Vec<PortPlan>,
    /// As in the topology.
    pub wires: Vec<PlannedWire>,
}

/// A wire between two nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedWire {
    pub ends: [PlannedEnd; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedEnd {
    pub place: PortId,
    /// The direction that begins here.
    pub out: WireId,
    /// Of a host: which of the plan's ports.
    pub port: Option<usize>,
}

impl Plan {
    /// `namespace_of` says what the namespace of a host is called.
    pub fn of(topology: &Topology, namespace_of: impl Fn(&Name) -> String) -> Plan {
        let mut plan = Plan {
            seed: topology.seed,
            segments: Vec::new(),
            joins: Vec::new(),
            ports: Vec::new(),
            wires: Vec::new(),
        };
        let mut nodes = BTreeMap::new();
        for node in &topology.nodes {
            let kind = match node.kind {
                NodeKind::Switch => SegmentKind::Switch,
                NodeKind::Hub { rate_bps } => SegmentKind::Hub { rate_bps },
            };
            nodes.insert(&node.name, plan.segments.len());
            plan.segments.push(segment(kind, u16::MAX));
        }
        for wire in &topology.wires {
            let nodes = wire
                .ends
                .each_ref()
                .map(|end| nodes.get(&end.node).copied());
            let [there, back] = wire.directions.each_ref().map(config_of);
            let places = match nodes {
                [None, None] => {
                    let number = plan.segments.len();
                    let mut cable = segment(SegmentKind::Cable, wire.mtu);
                    cable.up = vec![there, back];
                    plan.segments.push(cable);
                    [0, 1].map(|port| PortId {
                        segment: number,
                        port,
                    })
                }
                [Some(a), None] => [plan.add_port(a, back, there); 2],
                [None, Some(b)] => [plan.add_port(b, there, back); 2],
                [Some(a), Some(b)] => {
                    let nothing = || WireConfig::unrated(Duration::ZERO);
                    let a = plan.add_port(a, nothing(), there);
                    let b = plan.add_port(b, nothing(), back);
                    plan.joins.push((a, b));
                    [a, b]
                }
            };
            let ends = [0, 1].map(|i| {
                let end = &wire.ends[i];
                let port = end.interface.as_ref().map(|interface| {
                    plan.ports.push(PortPlan {
                        namespace: namespace_of(&end.node),
                        interface: interface.clone(),
                        mac: mac(plan.ports.len()),
                        mtu: wire.mtu,
                        place: places[i],
                        rate: port_rate_of(&wire.directions[i], wire.mtu),
                    });
                    plan.ports.len() - 1
                });
                let PortId {
                    segment,
                    port: number,
                } = places[i];
                PlannedEnd {
                    place: places[i],
                    out: WireId {
                        segment,
                        wire: number,
                    },
                    port,
                }
            });
            plan.wires.push(PlannedWire { ends });
        }
        plan.number_wires_out_of_nodes();
        plan
    }

    /// Wires out of a switch are numbered after those into it, and their number is known at the end.
    fn number_wires_out_of_nodes(&mut self) {
        for end in self.wires.iter_mut().flat_map(|wire| &mut wire.ends) {
            if end.port.is_none() {
                end.out.wire += self.segments[end.place.segment].up.len();
            }
        }
    }

    /// A further port of a switch or a hub: the wire into it, and the one out of it.
    fn add_port(&mut self, segment: usize, up: WireConfig, down: WireConfig) -> PortId {
        let config = &mut self.segments[segment];
        config.up.push(up);
        config.down.push(down);
        PortId {
            segment,
            port: config.up.len() - 1,
        }
    }
}

fn segment(kind: SegmentKind, mtu: u16) -> SegmentConfig {
    SegmentConfig {
        kind,
        mtu,
        carries_offload: true,
        up: Vec::new(),
        down: Vec::new(),
        cut: Cut::default(),
    }
}

/// Locally administered; the same for the same topology, so that a run is like the one before.
fn mac(number: usize) -> MacAddr {
    let [high, low] = (number as u16 + 1).to_be_bytes();
    MacAddr([0x02, 0x1a, 0xb0, 0x00, high, low])
}

/// What the host's own port lets through, if it has a rate.
pub fn port_rate_of(direction: &Direction, mtu: u16) -> Option<PortRate> {
    let port = direction.port;
    port.rate_bps.map(|rate_bps| PortRate {
        rate_bps,
        counted: Counted::Ethernet,
        mtu,
        queue_frames_max: port
            .queue_packets
            .unwrap_or(crate::lab::topology::direction::PORT_QUEUE_PACKETS_DEFAULT),
    })
}

/// The simulator's word for one direction.
pub fn config_of(direction: &Direction) -> WireConfig {
    let wire = &direction.wire;
    WireConfig {
        rate: wire.rate.map(rate_of),
        queue: queue_of(direction),
        packet_cap: wire.packets_per_second.map(|cap| PacketCapConfig {
            frames_per_second: cap.rate.into(),
            burst_frames: cap.burst.into(),
        }),
        loss: wire.loss.as_ref().map(loss_of),
        bit_errors: wire.bit_error_rate.map(|rate| BitErrorConfig { rate }),
        corruption: wire.corrupt.map(|probability| CorruptionConfig {
            probability,
            bits_max: 1,
            fcs: false,
        }),
        duplication: wire.duplicate,
        delay: Duration::from_nanos(wire.delay_ns),
        jitter: wire.jitter.map(|jitter| {
            let size = Duration::from_nanos(jitter.size_ns);
            JitterConfig {
                distribution: match jitter.kind {
                    JitterKind::Uniform => JitterDistribution::Uniform { max: size },
                    JitterKind::Normal => JitterDistribution::Normal { deviation: size },
                    JitterKind::Pareto => JitterDistribution::Pareto { mean: size },
                },
                keeps_order: jitter.keep_order,
            }
        }),
        reordering: wire.reorder.map(|reorder| ReorderingConfig {
            probability: reorder.share,
            hold_max: Duration::from_nanos(reorder.hold_ns),
        }),
    }
}

fn rate_of(rate: Rate) -> RateConfig {
    RateConfig {
        bps: rate.bps,
        level: match rate.counts {
            Counts::Ethernet => RateLevel::Ethernet,
            Counts::Ip => RateLevel::Ip,
        },
    }
}

fn queue_of(direction: &Direction) -> QueueConfig {
    let WireSettings { rate, queue, .. } = &direction.wire;
    let limit = match queue.limit {
        QueueLimit::Bytes(bytes) => queue::QueueLimit::Bytes(bytes as usize),
        QueueLimit::Packets(packets) => queue::QueueLimit::Frames(packets as usize),
    };
    let discipline = match queue.discipline {
        Discipline::DropTail => queue::Discipline::DropTail,
        Discipline::CoDel {
            target_us,
            interval_us,
        } => queue::Discipline::Codel {
            params: CodelParams {
                target: Duration::from_micros(target_us),
                interval: Duration::from_micros(interval_us),
            },
            ecn: false,
        },
        Discipline::EcnAbove { bytes } => queue::Discipline::MarkAbove {
            bytes: bytes as usize,
        },
    };
    let limit = match (limit, direction.port.rate_bps, rate) {
        // Behind a port of the same rate only that stands here which the port lets through at once,
        // and the bound is the port's own.
        (queue::QueueLimit::Bytes(bytes), Some(port), Some(rate)) if port <= rate.bps => {
            queue::QueueLimit::Bytes(bytes.max(burst_bytes(port)))
        }
        (limit, ..) => limit,
    };
    QueueConfig { limit, discipline }
}

/// Twice what a port may send at once, and the largest frame on top.
fn burst_bytes(rate_bps: u64) -> usize {
    let burst = u128::from(rate_bps) * BURST.as_nanos() / 8_000_000_000;
    2 * burst as usize + 2 * (1 << 16)
}

fn loss_of(loss: &Loss) -> LossConfig {
    match loss {
        Loss::Independent { share } => LossConfig::Bernoulli {
            probability: *share,
        },
        Loss::GilbertElliott {
            good_to_bad,
            bad_to_good,
            loss_in_good,
            loss_in_bad,
        } => LossConfig::GilbertElliott {
            good_to_bad: *good_to_bad,
            bad_to_good: *bad_to_good,
            loss_in_good: *loss_in_good,
            loss_in_bad: *loss_in_bad,
        },
        Loss::Periodic { every } => LossConfig::Periodic { every: *every },
        Loss::Frames { numbers } => LossConfig::Given {
            frames: numbers.clone(),
        },
    }
}
