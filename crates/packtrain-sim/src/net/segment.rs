//! A cable, a switch or a hub: its wires, who is behind which port, and which ports have carrier.

use std::collections::BTreeMap;

use packtrain_proto::time::Instant;
use packtrain_proto::wire::ethernet::MacAddr;

use super::cut::Cut;
use super::medium::{Medium, MediumConfig};
use super::wire::{Wire, WireConfig};
use crate::frame::Frame;
use crate::random::Random;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// Two ports.
    Cable,
    /// Learns addresses, floods what it does not know. Each port has a queue of its own.
    Switch,
    /// Everybody hears everything, and sends while others do: each port has wires of its own.
    Repeater,
    /// Shared Ethernet (CSMA/CD): one sends, everybody else hears it. A wire up leads to where a frame
    /// waits for its turn.
    Hub { rate_bps: u64 },
}

#[derive(Clone, Debug)]
pub struct SegmentConfig {
    pub kind: SegmentKind,
    /// Payload bytes after the EtherType.
    pub mtu: u16,
    /// GSO frames and partial checksums cross as they are, as between virtual interfaces.
    /// Otherwise the sending card cuts, finishes and pads.
    pub carries_offload: bool,
    /// From each port into the segment.
    pub up: Vec<WireConfig>,
    /// From the switch to each port; a cable has none.
    pub down: Vec<WireConfig>,
    /// One for all ports: the cable, or the switch as a whole.
    pub cut: Cut,
}

#[derive(Debug)]
pub struct Segment {
    pub(super) config: SegmentConfig,
    /// Up wires, then down wires.
    pub(super) wires: Vec<Wire>,
    pub(super) stations: BTreeMap<MacAddr, usize>,
    /// What each port's interface takes.
    pub(super) port_mtus: Vec<u16>,
    /// What passes between them, if that is less, and nobody says so.
    pub(super) path_mtu: Option<u16>,
    /// Of each port, as its card sees it.
    pub(super) carrier: Vec<bool>,
    pub(super) cuts_happened: usize,
    /// Of a hub.
    pub(super) medium: Option<Medium>,
    /// When the network looks at it next.
    pub(super) medium_due: Option<Instant>,
    /// Frames that it was done with when somebody was told last.
    pub(super) medium_done: u64,
}

impl Segment {
    pub(super) fn new(config: SegmentConfig, random: &mut Random) -> Segment {
        let down = if config.kind == SegmentKind::Cable {
            0
        } else {
            config.up.len()
        };
        assert_eq!(config.down.len(), down, "wires down of a {:?}", config.kind);
        assert!(config.kind != SegmentKind::Cable || config.up.len() == 2);
        let wires = config
            .up
            .iter()
            .chain(&config.down)
            .map(|w| Wire::new(w, random))
            .collect();
        let medium = match config.kind {
            SegmentKind::Hub { rate_bps } => {
                let config = MediumConfig::one_hub(rate_bps, config.up.len());
                Some(Medium::new(config, random.fork()))
            }
            _ => None,
        };
        Segment {
            medium,
            medium_due: None,
            medium_done: 0,
            carrier: vec![true; config.up.len()],
            port_mtus: vec![config.mtu; config.up.len()],
            path_mtu: None,
            config,
            wires,
            stations: BTreeMap::new(),
            cuts_happened: 0,
        }
    }

    pub(super) fn ports(&self) -> usize {
        self.config.up.len()
    }

    /// To and from a port; `None`: all.
    pub(super) fn wires_of(&self, port: Option<usize>) -> Vec<usize> {
        match port {
            None => (0..self.wires.len()).collect(),
            // Of a cable, the direction that begins there.
            Some(port) if self.config.kind == SegmentKind::Cable => vec![port],
            Some(port) => vec![port, self.ports() + port],
        }
    }

    pub(super) fn set_carrier(&mut self, port: Option<usize>, up: bool) {
        match port {
            None => self.carrier.fill(up),
            Some(port) => self.carrier[port] = up,
        }
    }

    /// The ports that a frame goes out by.
    pub(super) fn forward(&mut self, from: usize, frame: &Frame) -> Vec<usize> {
        let header = frame.header();
        let others = (0..self.ports()).filter(|&port| port != from);
        if self.config.kind == SegmentKind::Repeater {
            return others.collect();
        }
        if !header.source.is_group() {
            self.stations.insert(header.source, from);
        }
        match self.stations.get(&header.destination) {
            Some(&port) if !header.destination.is_group() => {
                // What came by the port that it should leave by is where it belongs already.
                if port == from { Vec::new() } else { vec![port] }
            }
            _ => others.collect(),
        }
    }
}
