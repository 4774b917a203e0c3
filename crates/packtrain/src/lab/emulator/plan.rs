//! What an emulator is to build of a topology: segments and ports, numbered.
//!
//! A wire between two hosts is a cable. A switch or a hub is a segment with a port for each of its
//! wires; a wire between two of them joins a port of one with a port of the other, and each direction
//! is the wire that leads out of the port where it begins.

use std::collections::BTreeMap;
use std::time::Duration;

use packtrain_proto::wire::ethernet::MacAddr;
use packtrain_sim::net::cut::Cut;
use packtrain_sim::net::network::{PortId, SegmentConfig, SegmentKind, WireId};
use packtrain_sim::net::queue::QueueLimit;
use packtrain_sim::net::wire::WireConfig;

use super::port::PortPlan;
use crate::lab::topology::{Direction, Name, NodeKind, Topology};
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
    let mut config = direction.wire.config();
    config.queue.limit = match (config.queue.limit, direction.port.rate_bps, config.rate) {
        // Behind a port of the same rate only that stands here which the port lets through at once,
        // and the bound is the port's own.
        (QueueLimit::Bytes(bytes), Some(port), Some(rate)) if port <= rate.bps => {
            QueueLimit::Bytes(bytes.max(burst_bytes(port)))
        }
        (limit, ..) => limit,
    };
    config
}

/// Twice what a port may send at once, and the largest frame on top.
fn burst_bytes(rate_bps: u64) -> usize {
    let burst = u128::from(rate_bps) * BURST.as_nanos() / 8_000_000_000;
    2 * burst as usize + 2 * (1 << 16)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::lab::topology::{Change, Host, Node, ready};

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    /// Hosts are those whose names begin with a letter up to m; s is a switch and t another, h a hub.
    /// Each wire has a delay of its number of milliseconds there, and ten times that back.
    fn plan(wires: &[(&str, &str)]) -> Plan {
        let mut topology = Topology::new("t");
        for text in wires.iter().flat_map(|&(a, b)| [a, b]) {
            let name = name(text);
            let kind = match text {
                "s" | "t" => Some(NodeKind::Switch),
                "h" => Some(NodeKind::Hub {
                    rate_bps: 10_000_000,
                }),
                _ => None,
            };
            match kind {
                _ if topology.host(&name).is_some() || topology.node(&name).is_some() => {}
                Some(kind) => topology.nodes.push(Node { name, kind }),
                None => topology.hosts.push(Host {
                    name,
                    packtrain: false,
                    up: Vec::new(),
                }),
            }
        }
        for (number, (from, to)) in (1..).zip(wires) {
            let mut directions: [Direction; 2] = Default::default();
            directions[0].wire.delay_ns = number * 1_000_000;
            directions[1].wire.delay_ns = number * 10_000_000;
            topology.connect(&name(from), &name(to), 1500, directions);
        }
        assert_eq!(topology.check(), []);
        plan_of(&topology)
    }

    fn plan_of(topology: &Topology) -> Plan {
        Plan::of(topology, |host| format!("pt-{host}"))
    }

    /// What the plan's network would do on this direction, in milliseconds.
    fn delay_ms(plan: &Plan, out: WireId) -> u128 {
        let segment = &plan.segments[out.segment];
        let mut wires = segment.up.iter().chain(&segment.down);
        let wire = wires.nth(out.wire).expect("a wire of the segment");
        wire.delay.as_millis()
    }

    fn delays_ms(plan: &Plan, wire: usize) -> [u128; 2] {
        plan.wires[wire].ends.map(|end| delay_ms(plan, end.out))
    }

    fn place(segment: usize, port: usize) -> PortId {
        PortId { segment, port }
    }

    fn out(segment: usize, wire: usize) -> WireId {
        WireId { segment, wire }
    }

    #[test]
    fn a_wire_between_hosts_is_a_cable_with_a_port_at_each_end() {
        let plan = plan(&[("a", "b")]);
        assert_eq!(plan.segments.len(), 1);
        assert_eq!(plan.segments[0].kind, SegmentKind::Cable);
        let end = |port| PlannedEnd {
            place: place(0, port),
            out: out(0, port),
            port: Some(port),
        };
        assert_eq!(plan.wires[0].ends, [end(0), end(1)]);
        assert_eq!(delays_ms(&plan, 0), [1, 10]);
        let ports = plan.ports.iter().map(|port| {
            let (namespace, interface) = (port.namespace.as_str(), port.interface.as_str());
            (namespace, interface, port.place)
        });
        let ports: Vec<_> = ports.collect();
        assert_eq!(
            ports,
            [("pt-a", "eth0", place(0, 0)), ("pt-b", "eth0", place(0, 1))]
        );
    }

    #[test]
    fn at_a_switch_the_way_in_and_the_way_out_are_those_of_the_port_whatever_end_is_named_first() {
        let plan = plan(&[("a", "s"), ("s", "b")]);
        assert_eq!(plan.segments.len(), 1);
        assert_eq!(plan.segments[0].kind, SegmentKind::Switch);
        // Wires 0 and 1 lead in, 2 and 3 out.
        let host = |port| PlannedEnd {
            place: place(0, port),
            out: out(0, port),
            port: Some(port),
        };
        let switch = |port| PlannedEnd {
            place: place(0, port),
            out: out(0, 2 + port),
            port: None,
        };
        assert_eq!(plan.wires[0].ends, [host(0), switch(0)]);
        assert_eq!(plan.wires[1].ends, [switch(1), host(1)]);
        assert_eq!(delays_ms(&plan, 0), [1, 10]);
        assert_eq!(delays_ms(&plan, 1), [2, 20]);
    }

    #[test]
    fn between_switches_each_direction_is_the_way_out_of_where_it_begins() {
        for ends in [("s", "t"), ("t", "s")] {
            let plan = plan(&[("a", "s"), ends, ("t", "b")]);
            assert_eq!(plan.segments.len(), 2);
            let [first, second] = plan.wires[1].ends;
            assert_eq!(plan.joins, [(first.place, second.place)]);
            assert_ne!(first.place.segment, second.place.segment);
            assert_eq!((first.port, second.port), (None, None));
            assert_eq!(delays_ms(&plan, 1), [2, 20], "{ends:?}");
            for end in [first, second] {
                let segment = &plan.segments[end.place.segment];
                assert_eq!(end.out.wire, segment.up.len() + end.place.port);
                // A frame takes its time once.
                let way_in = &segment.up[end.place.port];
                assert_eq!(*way_in, WireConfig::unrated(Duration::ZERO));
            }
        }
    }

    #[test]
    fn a_hub_has_its_rate_and_its_wires_have_their_delays() {
        let plan = plan(&[("a", "h"), ("h", "b")]);
        let rate_bps = 10_000_000;
        assert_eq!(plan.segments[0].kind, SegmentKind::Hub { rate_bps });
        assert_eq!(delays_ms(&plan, 0), [1, 10]);
        assert_eq!(delays_ms(&plan, 1), [2, 20]);
        let rates = plan.ports.iter().map(|port| port.rate.unwrap().rate_bps);
        assert!(rates.eq([rate_bps; 2]));
    }

    #[test]
    fn in_every_ready_topology_each_direction_has_a_wire_and_each_port_a_place_of_its_own() {
        for ready in ready::names() {
            let mut topology = ready::find(ready).unwrap();
            // Told apart by what happens on them.
            let mut number = 0;
            for wire in &mut topology.wires {
                for direction in &mut wire.directions {
                    number += 1;
                    direction.wire.delay_ns = number * 1_000_000;
                }
            }
            let plan = plan_of(&topology);
            let mut outs = BTreeSet::new();
            let mut number = 0;
            for end in plan.wires.iter().flat_map(|wire| wire.ends) {
                number += 1;
                assert!(outs.insert(end.out), "{ready}: {end:?}");
                assert_eq!(delay_ms(&plan, end.out), number, "{ready}: {end:?}");
                let port = end.port.map(|port| plan.ports[port].place);
                assert!(port.is_none_or(|place| place == end.place), "{ready}");
            }
            let places: BTreeSet<PortId> = plan.ports.iter().map(|port| port.place).collect();
            let macs: BTreeSet<_> = plan.ports.iter().map(|port| port.mac.0).collect();
            assert_eq!(
                (places.len(), macs.len()),
                (plan.ports.len(), plan.ports.len()),
                "{ready}"
            );
        }
    }

    #[test]
    fn a_queue_behind_a_port_of_the_same_rate_holds_what_the_port_lets_through_at_once() {
        let mut direction = Direction::default();
        let change = Change {
            rate: Some("1gbit".parse().unwrap()),
            queue: Some("10kb".parse().unwrap()),
            ..Change::default()
        };
        change.apply(&mut direction);
        let limit = |direction: &Direction| config_of(direction).queue.limit;
        // 4 ms at a gigabit are 500,000 bytes.
        let wanted = QueueLimit::Bytes(2 * 500_000 + 2 * 65_536);
        assert_eq!(limit(&direction), wanted);
        direction.port.rate_bps = None;
        assert_eq!(limit(&direction), QueueLimit::Bytes(10_240));
    }
}
