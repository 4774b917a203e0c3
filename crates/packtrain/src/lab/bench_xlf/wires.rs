//! Two plain hosts with wires between them that differ in the discipline of their queues alone: what a router with
//! that discipline would do to packets and XL frames.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use crate::lab::emulator::counters::DirectionStatus;
use crate::lab::namespaces::Namespace;
use crate::lab::standing::HeldLab;
use crate::lab::topology::direction::{Counts, Discipline, Rate};
use crate::lab::topology::{Direction, Topology, TopologyOptions};
use crate::lab::{Result, wire};
use crate::units::Bytes;

/// F = 13 packets of 1500 bytes: the paper's XL frame.
pub const XL_BYTES: u16 = 13 * 1500;
const RATE_BPS: u64 = 100_000_000;
/// What fills a wire is bounded by its queue alone, as in a router.
const ONE_WAY: Duration = Duration::from_millis(10);

/// What all wires have.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// What it is for, in a few letters.
    pub tag: &'a str,
    /// 100 ms of the rate are 1.25 MB.
    pub queue_bytes: u64,
    /// Whether TCP asks for marks.
    pub ecn: bool,
}

#[derive(Debug)]
pub struct Wires {
    lab: HeldLab,
    pub a: Namespace,
    pub b: Namespace,
}

impl Wires {
    /// A wire for each of these disciplines, of the paper's longest frames and of 100 Mbit/s.
    pub fn set(packtrain: &Path, plan: Plan<'_>, disciplines: &[&str]) -> Result<Wires> {
        let lab = HeldLab::up(plan.tag, &topology(plan, disciplines), packtrain)?;
        let wires = Wires {
            a: lab.host("a")?,
            b: lab.host("b")?,
            lab,
        };
        for host in [&wires.a, &wires.b] {
            host.sysctl("net/ipv4/tcp_ecn", if plan.ecn { "1" } else { "0" })?;
            for number in 0..disciplines.len() {
                // A data unit is a frame, and never a row of them that the wire takes for one.
                for feature in ["tso", "gso"] {
                    wire::offload(host, &interface(number), feature, false)?;
                }
            }
        }
        Ok(wires)
    }

    /// B's, by the wire of that number.
    pub fn at(&self, number: usize, port: u16) -> SocketAddr {
        let (_, address) = self.lab.addresses()[1].links[number];
        SocketAddr::new(IpAddr::from(address), port)
    }

    /// What became so far of what A sent by that wire.
    pub fn counters(&self, number: usize) -> Result<DirectionStatus> {
        let status = self.lab.status()?;
        let [from_a, _] = &status.wires[number].directions;
        Ok(from_a.clone())
    }
}

fn interface(number: usize) -> String {
    format!("eth{number}")
}

/// A wire of that rate whose queue is its own.
pub fn as_of_a_router(direction: &mut Direction, one_way: Duration, queue_bytes: u64) {
    // A host's port of the same rate would hold back what is to meet in the wire's queue.
    direction.port = Default::default();
    direction.wire.rate = Some(Rate {
        bps: RATE_BPS,
        counts: Counts::Ethernet,
    });
    direction.wire.delay_ns = one_way.as_nanos() as u64;
    let limit = Bytes(queue_bytes).to_string();
    direction.wire.queue.limit = limit.parse().expect("a number of bytes");
}

fn topology(plan: Plan<'_>, disciplines: &[&str]) -> Topology {
    let options = TopologyOptions {
        links: disciplines.len(),
        mtu: XL_BYTES,
        packtrain: false,
        ..TopologyOptions::default()
    };
    let mut topology = options.topology().expect("two hosts and their wires");
    for (wire, discipline) in topology.wires.iter_mut().zip(disciplines) {
        let discipline: Discipline = discipline.parse().expect("a discipline of ours");
        for direction in &mut wire.directions {
            as_of_a_router(direction, ONE_WAY, plan.queue_bytes);
            direction.wire.queue.discipline = discipline;
        }
    }
    topology
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wires_differ_in_their_disciplines_alone() {
        let plan = Plan {
            tag: "x",
            queue_bytes: 1_250_000,
            ecn: false,
        };
        let mut topology = topology(plan, &["drop-tail", "drr:19500b"]);
        assert!(topology.check().is_empty());
        let [one, other] = &mut topology.wires[..] else {
            panic!("two wires");
        };
        for (wire, discipline) in [(&*one, "drop-tail"), (other, "drr:19500b")] {
            assert_eq!(wire.mtu, 19_500);
            for direction in &wire.directions {
                let queue = direction.wire.queue;
                assert_eq!(queue.discipline.to_string(), discipline);
                assert_eq!(queue.limit.to_string(), "1250000b");
                assert_eq!(direction.port.rate_bps, None);
            }
        }
        for direction in &mut one.directions {
            direction.wire.queue.discipline = "drr:19500b".parse().unwrap();
        }
        assert_eq!(one.directions, other.directions);
    }
}
