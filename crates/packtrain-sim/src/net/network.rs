//! Segments: a cable between two ports, or a switch with many. It carries frames between ports and
//! tells what happened; who is behind a port is not its business.

use std::collections::BTreeMap;

use packtrain_proto::offload::Offload;
use packtrain_proto::time::Instant;

pub use self::sighting::{Keep, Sighting};
use super::nic;
use super::segment::Segment;
pub use super::segment::{SegmentConfig, SegmentKind};
use super::wire::{Passed, Wire, WireDrop};
use crate::event_queue::EventQueue;
use crate::frame::Frame;
use crate::random::Random;

mod hub;
mod look;
mod sighting;
#[cfg(test)]
mod tests;

/// Where a station's link is plugged in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortId {
    pub segment: usize,
    pub port: usize,
}

/// Something on its way through the network.
#[derive(Debug)]
pub enum NetEvent {
    Sent {
        wire: WireId,
        epoch: u32,
    },
    Arrives {
        wire: WireId,
        epoch: u32,
        frame: Frame,
    },
    CutStarts {
        segment: usize,
        outage: usize,
    },
    CutEnds {
        segment: usize,
        outage: usize,
    },
    /// Something is due on a hub's medium, or was when this was planned.
    Medium {
        segment: usize,
        due: Instant,
    },
    /// One end of a cable sees what the other has seen already, or is still to see.
    PortNotices {
        segment: usize,
        port: usize,
        up: bool,
    },
}

/// What came of it for those outside.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    Nothing,
    /// The port's local queue is shorter by a frame.
    Drained(PortId),
    /// That of one or more of a hub's ports is.
    MediumDrained {
        segment: usize,
    },
    Delivered(PortId, Frame),
    /// Carrier of one port of the segment; `None`: of all.
    Carrier {
        segment: usize,
        port: Option<usize>,
        up: bool,
    },
}

/// Why the network did not take a frame from a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The local queue is full, or the carrier is gone: a loss like others.
    QueueFull,
    /// Longer than the MTU: who sends it has made a mistake.
    TooLong,
    /// Offload metadata that contradicts the frame: a mistake as well.
    BadOffload,
}

/// One direction of something: a wire of a segment. Of a cable, wire n leads from port n to the other;
/// of a switch with p ports, wire n leads from port n to the switch and wire p + n back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WireId {
    pub segment: usize,
    pub wire: usize,
}

impl WireId {
    /// The wire that begins at a port of a station.
    fn out_of(port: PortId) -> WireId {
        port.segment_wire(port.port)
    }
}

impl PortId {
    fn segment_wire(self, wire: usize) -> WireId {
        WireId {
            segment: self.segment,
            wire,
        }
    }
}

#[derive(Debug)]
pub struct Network {
    segments: Vec<Segment>,
    /// Ports of two switches with a cable between them: what one sends out by it comes in by the other.
    joins: BTreeMap<PortId, PortId>,
    /// Frames that were dropped since last asked: the accounts want to know what was inside.
    lost: Vec<Frame>,
    /// A GSO frame comes to a wire on which single frames count in the pieces that a card makes.
    cuts_where_frames_count: bool,
    watched: BTreeMap<WireId, Keep>,
    sightings: Vec<Sighting>,
}

impl Network {
    pub fn new<E: From<NetEvent>>(
        configs: Vec<SegmentConfig>,
        random: &mut Random,
        queue: &mut EventQueue<E>,
    ) -> Network {
        let segments: Vec<Segment> = configs
            .into_iter()
            .map(|config| Segment::new(config, random))
            .collect();
        for (number, segment) in segments.iter().enumerate() {
            for (i, outage) in segment.config.cut.outages().iter().enumerate() {
                let start = NetEvent::CutStarts {
                    segment: number,
                    outage: i,
                };
                queue.push(outage.from, start.into());
                let end = NetEvent::CutEnds {
                    segment: number,
                    outage: i,
                };
                queue.push(outage.until, end.into());
                if !outage.lags() {
                    continue;
                }
                for (at, up) in [(outage.from, false), (outage.until, true)] {
                    for (port, &lag) in outage.lag.iter().enumerate() {
                        let notice = NetEvent::PortNotices {
                            segment: number,
                            port,
                            up,
                        };
                        queue.push(at + lag, notice.into());
                    }
                }
            }
        }
        Network {
            segments,
            joins: BTreeMap::new(),
            lost: Vec::new(),
            cuts_where_frames_count: false,
            watched: BTreeMap::new(),
            sightings: Vec::new(),
        }
    }

    /// From now on GSO frames are cut where chance, or a bound, is about single frames. Without it
    /// they are lost, altered and overtaken whole, as virtual interfaces do it.
    pub fn cut_where_frames_count(&mut self) {
        self.cuts_where_frames_count = true;
    }

    /// Puts a cable between a port of one switch and one of another. Each of its directions is the
    /// wire that leads out of the port where it begins.
    pub fn join(&mut self, a: PortId, b: PortId) {
        for port in [a, b] {
            let kind = self.segments[port.segment].config.kind;
            assert!(kind != SegmentKind::Cable, "a cable has no ports to spare");
            assert!(!self.joins.contains_key(&port), "{port:?} is taken");
        }
        self.joins.insert(a, b);
        self.joins.insert(b, a);
    }

    /// Hands a frame to the card behind a port.
    pub fn transmit<E: From<NetEvent>>(
        &mut self,
        port: PortId,
        frame: Frame,
        now: Instant,
        queue: &mut EventQueue<E>,
    ) -> Result<(), Refused> {
        let segment = &mut self.segments[port.segment];
        if !frame.fits(segment.port_mtus[port.port]) {
            return Err(Refused::TooLong);
        }
        let len = frame.bytes.len();
        if segment.config.carries_offload {
            if frame.offload != Offload::NONE && nic::to_wire(frame.clone()).is_none() {
                return Err(Refused::BadOffload);
            }
            if !segment.wires[port.port].has_room(len, frame.segment_count()) {
                return self.refuse(port, frame, now);
            }
            return self.enter(port, frame, now, queue);
        }
        let whole = frame.clone();
        let Some(frames) = nic::to_wire(frame) else {
            return Err(Refused::BadOffload);
        };
        let total = frames.iter().map(|f| f.bytes.len()).sum();
        if !self.segments[port.segment].wires[port.port].has_room(total, frames.len()) {
            return self.refuse(port, whole, now);
        }
        let mut result = Ok(());
        for frame in frames {
            result = result.and(self.enter(port, frame, now, queue));
        }
        result
    }

    fn refuse(&mut self, port: PortId, frame: Frame, now: Instant) -> Result<(), Refused> {
        let wire = WireId::out_of(port);
        let counters = &mut self.wire_mut(wire).counters;
        counters.offered += 1;
        counters.offered_bytes += frame.bytes.len() as u64;
        counters.queue_full += 1;
        self.dropped(wire, frame, WireDrop::QueueFull, now);
        Err(Refused::QueueFull)
    }

    /// Puts a frame that is known to be right on the wire that begins at a port.
    pub fn enter<E: From<NetEvent>>(
        &mut self,
        port: PortId,
        frame: Frame,
        now: Instant,
        queue: &mut EventQueue<E>,
    ) -> Result<(), Refused> {
        self.offer(WireId::out_of(port), frame, now, queue)
    }

    /// The frame goes into the queue of a wire, cut first where this network does so.
    fn offer<E: From<NetEvent>>(
        &mut self,
        wire: WireId,
        frame: Frame,
        now: Instant,
        queue: &mut EventQueue<E>,
    ) -> Result<(), Refused> {
        let counts = || self.cuts_where_frames_count && self.wire(wire).counts_frames();
        if frame.offload == Offload::NONE || !counts() {
            return self.offer_whole(wire, frame, now, queue);
        }
        let whole = frame.clone();
        let Some(frames) = nic::to_wire(frame) else {
            self.dropped(wire, whole, WireDrop::BadOffload, now);
            return Err(Refused::BadOffload);
        };
        let mut result = Ok(());
        for frame in frames {
            result = result.and(self.offer_whole(wire, frame, now, queue));
        }
        result
    }

    fn offer_whole<E: From<NetEvent>>(
        &mut self,
        id: WireId,
        frame: Frame,
        now: Instant,
        queue: &mut EventQueue<E>,
    ) -> Result<(), Refused> {
        let wire = self.wire_mut(id);
        let epoch = wire.epoch;
        let offered = wire.offer(frame, now);
        while let Some(other) = self.wire_mut(id).evicted() {
            self.dropped(id, other, WireDrop::QueueFull, now);
        }
        match offered {
            Ok(None) => Ok(()),
            Ok(Some(at)) => {
                queue.push(at, NetEvent::Sent { wire: id, epoch }.into());
                Ok(())
            }
            Err((frame, reason)) => {
                self.dropped(id, frame, reason, now);
                Err(Refused::QueueFull)
            }
        }
    }

    pub fn handle<E: From<NetEvent>>(
        &mut self,
        event: NetEvent,
        now: Instant,
        queue: &mut EventQueue<E>,
    ) -> Outcome {
        match event {
            NetEvent::Sent { wire, epoch } => self.sent(wire, epoch, now, queue),
            NetEvent::Arrives { wire, epoch, frame } => {
                self.arrived(wire, epoch, frame, now, queue)
            }
            NetEvent::Medium { segment, due } => {
                if self.segments[segment].medium_due == Some(due) {
                    self.run_medium(segment, now, queue);
                }
                match self.has_drained(segment) {
                    true => Outcome::MediumDrained { segment },
                    false => Outcome::Nothing,
                }
            }
            NetEvent::CutStarts {
                segment: number,
                outage,
            } => {
                let segment = &mut self.segments[number];
                segment.cuts_happened += 1;
                let outage = segment.config.cut.outages()[outage];
                let seen = outage.seen && !outage.lags();
                for wire in segment.wires_of(outage.port) {
                    self.cut(
                        WireId {
                            segment: number,
                            wire,
                        },
                        seen,
                        now,
                    );
                }
                if !seen {
                    return Outcome::Nothing;
                }
                self.segments[number].set_carrier(outage.port, false);
                Outcome::Carrier {
                    segment: number,
                    port: outage.port,
                    up: false,
                }
            }
            NetEvent::CutEnds {
                segment: number,
                outage,
            } => {
                let segment = &mut self.segments[number];
                let outage = segment.config.cut.outages()[outage];
                if outage.lags() {
                    return Outcome::Nothing; // each end has its own time
                }
                for wire in segment.wires_of(outage.port) {
                    segment.wires[wire].mend();
                }
                segment.set_carrier(outage.port, true);
                Outcome::Carrier {
                    segment: number,
                    port: outage.port,
                    up: true,
                }
            }
            NetEvent::PortNotices {
                segment: number,
                port,
                up,
            } => {
                let id = PortId {
                    segment: number,
                    port,
                };
                match up {
                    true => self.mend(WireId::out_of(id)),
                    false => self.cut(WireId::out_of(id), true, now),
                }
                self.set_carrier(id, up, now);
                Outcome::Carrier {
                    segment: number,
                    port: Some(port),
                    up,
                }
            }
        }
    }

    fn sent<E: From<NetEvent>>(
        &mut self,
        id: WireId,
        epoch: u32,
        now: Instant,
        queue: &mut EventQueue<E>,
    ) -> Outcome {
        let segment = &mut self.segments[id.segment];
        let wire = &mut segment.wires[id.wire];
        if wire.epoch != epoch {
            return Outcome::Nothing; // it was cut off
        }
        // What has left a wire to a hub stands before its medium.
        let is_first = id.wire < segment.config.up.len() && segment.medium.is_none();
        let mut dropped = Vec::new();
        let next = wire.sent(now, |passed| match passed {
            Passed::Dropped(reason, frame) => dropped.push((reason, frame)),
            Passed::Arrives(at, frame) => {
                let event = NetEvent::Arrives {
                    wire: id,
                    epoch,
                    frame,
                };
                queue.push(at, event.into());
            }
        });
        if let Some(at) = next {
            queue.push(at, NetEvent::Sent { wire: id, epoch }.into());
        }
        for (reason, frame) in dropped {
            self.dropped(id, frame, reason, now);
        }
        match is_first {
            true => Outcome::Drained(PortId {
                segment: id.segment,
                port: id.wire,
            }),
            false => Outcome::Nothing,
        }
    }

    fn arrived<E: From<NetEvent>>(
        &mut self,
        id: WireId,
        epoch: u32,
        frame: Frame,
        now: Instant,
        queue: &mut EventQueue<E>,
    ) -> Outcome {
        let segment = &mut self.segments[id.segment];
        let ports = segment.ports();
        let is_cable = segment.config.kind == SegmentKind::Cable;
        let unplugged = is_cable && !segment.carrier[1 - id.wire];
        let is_too_long = segment.path_mtu.is_some_and(|mtu| !frame.fits(mtu));
        let reason = match segment.wires[id.wire].epoch != epoch || unplugged {
            true => Some(WireDrop::Cut),
            false => is_too_long.then_some(WireDrop::TooLong),
        };
        if let Some(reason) = reason {
            segment.wires[id.wire].count_on_the_way(reason);
            self.dropped(id, frame, reason, now);
            return Outcome::Nothing;
        }
        self.sighted(id, &frame, None, now);
        let port = |port| PortId {
            segment: id.segment,
            port,
        };
        if is_cable {
            return Outcome::Delivered(port(1 - id.wire), frame);
        }
        if id.wire < ports {
            self.forward(port(id.wire), frame, now, queue);
            return Outcome::Nothing;
        }
        let out = port(id.wire - ports);
        match self.joins.get(&out) {
            None => Outcome::Delivered(out, frame),
            Some(&into) => {
                self.forward(into, frame, now, queue);
                Outcome::Nothing
            }
        }
    }

    /// A frame has come into a switch or a hub by a port, and goes out by others.
    fn forward<E: From<NetEvent>>(
        &mut self,
        from: PortId,
        frame: Frame,
        now: Instant,
        queue: &mut EventQueue<E>,
    ) {
        let segment = &mut self.segments[from.segment];
        if segment.medium.is_some() {
            return self.offer_to_medium(from, frame, now, queue);
        }
        let ports = segment.ports();
        let mut out = segment.forward(from.port, &frame);
        let last = out.pop();
        // A full queue has counted it.
        for port in out {
            let wire = from.segment_wire(ports + port);
            let _ = self.offer(wire, frame.clone(), now, queue);
        }
        if let Some(port) = last {
            let _ = self.offer(from.segment_wire(ports + port), frame, now, queue);
        }
    }

    fn dropped(&mut self, wire: WireId, frame: Frame, reason: WireDrop, now: Instant) {
        self.sighted(wire, &frame, Some(reason), now);
        self.lost.push(frame);
    }

    fn sighted(&mut self, wire: WireId, frame: &Frame, dropped: Option<WireDrop>, at: Instant) {
        let Some(&keep) = self.watched.get(&wire) else {
            return;
        };
        self.sightings.push(Sighting {
            at,
            wire,
            frame: keep.of(frame),
            len: frame.bytes.len(),
            dropped,
        });
    }

    /// Cuts one direction. *Seen*: what stands in its queue and is on its way is gone.
    pub fn cut(&mut self, wire: WireId, seen: bool, now: Instant) {
        for frame in self.wire_mut(wire).cut(seen) {
            self.dropped(wire, frame, WireDrop::Cut, now);
        }
    }

    pub fn mend(&mut self, wire: WireId) {
        self.wire_mut(wire).mend();
    }

    /// Says whether the card behind a port has carrier. A switch forgets who was behind it, and at a
    /// hub what waits there is gone.
    pub fn set_carrier(&mut self, port: PortId, up: bool, now: Instant) {
        let segment = &mut self.segments[port.segment];
        segment.set_carrier(Some(port.port), up);
        if !up {
            segment
                .stations
                .retain(|_, &mut behind| behind != port.port);
        }
        if segment.medium.is_some() {
            self.plug_station(port, up, now);
        }
    }

    /// An interface is told to take no longer frames; what waits there leaves all the same.
    pub fn set_port_mtu(&mut self, port: PortId, mtu: u16) {
        self.segments[port.segment].port_mtus[port.port] = mtu;
    }

    /// From now on longer frames vanish between the ports. `None`: what the segment takes passes.
    pub fn set_path_mtu(&mut self, segment: usize, mtu: Option<u16>) {
        self.segments[segment].path_mtu = mtu;
    }

    pub fn wire(&self, id: WireId) -> &Wire {
        &self.segments[id.segment].wires[id.wire]
    }

    pub fn wire_mut(&mut self, id: WireId) -> &mut Wire {
        &mut self.segments[id.segment].wires[id.wire]
    }

    /// Remembers what becomes of each frame on a wire, until [`Network::take_sightings`] is asked, and so much of it. `None`: from now on
    /// nobody wants to know.
    pub fn watch(&mut self, wire: WireId, keep: Option<Keep>) {
        match keep {
            Some(keep) => self.watched.insert(wire, keep),
            None => self.watched.remove(&wire),
        };
    }

    pub fn take_sightings(&mut self) -> Vec<Sighting> {
        core::mem::take(&mut self.sightings)
    }

    /// Takes what was dropped since the last call.
    pub fn take_lost(&mut self) -> Vec<Frame> {
        core::mem::take(&mut self.lost)
    }

    /// From now on the network only carries.
    pub fn heal(&mut self) {
        for segment in &mut self.segments {
            // What a switch learned from altered frames would age out, in minutes.
            segment.stations.clear();
            segment.path_mtu = None;
            for wire in &mut segment.wires {
                wire.heal();
                wire.mend();
            }
        }
    }
}
