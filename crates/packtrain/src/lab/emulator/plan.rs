//! What an emulator is to build: segments and ports, numbered, with the names that a person knows.

use packtrain_sim::net::network::{PortId, SegmentConfig, WireId};

use super::port::PortPlan;

#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub segments: Vec<SegmentConfig>,
    /// Ports of two switches with a wire between them.
    pub joins: Vec<(PortId, PortId)>,
    pub ports: Vec<PortPlan>,
    pub wires: Vec<PlannedWire>,
}

/// A wire between two nodes, in both of its directions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedWire {
    pub name: String,
    pub ends: [PlannedEnd; 2],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedEnd {
    /// Host, switch or hub.
    pub node: String,
    pub place: PortId,
    /// The direction that begins here; `None` where a hub's medium is what is sent into.
    pub out: WireId,
    /// Of a host: which of the plan's ports.
    pub port: Option<usize>,
}
