//! What can be seen of a network from outside, and whether all that was planned for it has happened.

use std::collections::BTreeMap;

use packtrain_proto::time::{Duration, Instant};

use super::{Network, PortId, SegmentConfig, SegmentKind};
use crate::net::segment::Segment;
use crate::net::wire::{Wire, WireConfig};

impl Network {
    /// What stands behind a port's card, at a hub what waits for the medium included.
    pub fn local_queue_bytes(&self, port: PortId) -> usize {
        let waiting = self.station_queued_bytes(port).unwrap_or(0);
        self.segments[port.segment].wires[port.port].queued_bytes() + waiting
    }

    pub fn mtu(&self, segment: usize) -> u16 {
        self.segments[segment].config.mtu
    }

    /// Frames that vanished because a segment lets less pass than its ports take.
    pub fn frames_too_long(&self) -> u64 {
        let wires = self.segments.iter().flat_map(|segment| &segment.wires);
        wires.map(|wire| wire.counters.too_long).sum()
    }

    /// What a port's interface takes.
    pub fn port_mtu(&self, port: PortId) -> u16 {
        self.segments[port.segment].port_mtus[port.port]
    }

    pub fn carrier(&self, port: PortId) -> bool {
        self.segments[port.segment].carrier[port.port]
    }

    /// Some of what is sent on the segment is lost, at any time, or with a cut.
    pub fn loses(&self, segment: usize) -> bool {
        let config = &self.segments[segment].config;
        let mut wires = config.up.iter().chain(&config.down);
        let is_cut = !config.cut.outages().is_empty();
        is_cut
            || wires.any(|w| w.loss.is_some() || w.bit_errors.is_some() || w.corruption.is_some())
    }

    /// Since when no cut has touched the segment; `None` while one does.
    pub fn well_since(&self, segment: usize, now: Instant) -> Option<Instant> {
        self.segments[segment].config.cut.well_since(now)
    }

    /// Since when frames vanish on a segment of which this port is, and nobody sees it; and whether those to this port do.
    pub fn silent_since(&self, port: PortId, now: Instant) -> Option<(Instant, bool)> {
        let outage = self.segments[port.segment].config.cut.silent(now)?;
        Some((outage.from, outage.port != Some(port.port)))
    }

    /// The longest that a frame of `bytes` and its answer take on an idle segment, queues of a switch
    /// left out.
    pub fn round_trip_max(&self, segment: usize, bytes: usize) -> Duration {
        let config = &self.segments[segment].config;
        let one = |wire: &WireConfig| wire.passage_max(bytes);
        let worst = |wires: &[WireConfig]| wires.iter().map(one).max().unwrap_or_default();
        2 * (worst(&config.up) + worst(&config.down))
    }

    pub fn rate_bps(&self, port: PortId) -> Option<u64> {
        let config = &self.segments[port.segment].config;
        if let SegmentKind::Hub { rate_bps } = config.kind {
            return Some(rate_bps);
        }
        let wire = &config.up[port.port];
        wire.rate.map(|rate| rate.bps)
    }

    pub fn configs(&self) -> impl Iterator<Item = &SegmentConfig> {
        self.segments.iter().map(|segment| &segment.config)
    }

    pub fn wires(&self) -> impl Iterator<Item = &Wire> {
        self.segments.iter().flat_map(|segment| &segment.wires)
    }

    /// Names of the configured faults that have not happened yet.
    pub fn faults_missing(&self) -> Vec<&'static str> {
        let mut missing: Vec<_> = self.wires().flat_map(Wire::faults_missing).collect();
        missing.extend(self.cuts_missing());
        missing
    }

    /// The same where hosts may choose their links: a fault has to happen on one of the wires that
    /// have it, and only when these carried enough for it to be likely.
    pub fn kinds_missing(&self) -> Vec<&'static str> {
        const ENOUGH_FRAMES: u64 = 2000;
        let mut kinds: BTreeMap<&'static str, (u64, bool)> = BTreeMap::new();
        for wire in self.wires() {
            for (name, happened) in wire.faults() {
                let kind = kinds.entry(name).or_default();
                kind.0 += wire.counters.offered;
                kind.1 |= happened;
            }
        }
        let missing = kinds
            .into_iter()
            .filter(|(_, (offered, happened))| !happened && *offered > ENOUGH_FRAMES);
        missing
            .map(|(name, _)| name)
            .chain(self.cuts_missing())
            .collect()
    }

    fn cuts_missing(&self) -> impl Iterator<Item = &'static str> {
        let missing =
            |segment: &&Segment| segment.cuts_happened < segment.config.cut.outages().len();
        self.segments.iter().filter(missing).map(|_| "cut")
    }
}
