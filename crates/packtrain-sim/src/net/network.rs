//! Segments: a cable between two ports, or a switch with many. It carries frames between ports and
//! tells what happened; who is behind a port is not its business.

use std::collections::BTreeMap;

use packtrain_proto::offload::Offload;
use packtrain_proto::time::{Duration, Instant};

use super::nic;
use super::segment::Segment;
pub use super::segment::{SegmentConfig, SegmentKind};
use super::wire::{Passed, Wire, WireConfig};
use crate::event_queue::EventQueue;
use crate::frame::Frame;
use crate::random::Random;
use crate::simulator::Event;

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
        segment: usize,
        wire: usize,
        epoch: u32,
    },
    Arrives {
        segment: usize,
        wire: usize,
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

#[derive(Debug)]
pub struct Network {
    segments: Vec<Segment>,
    /// Frames that were dropped since last asked: the accounts want to know what was inside.
    lost: Vec<Frame>,
}

impl Network {
    pub fn new(
        configs: Vec<SegmentConfig>,
        random: &mut Random,
        queue: &mut EventQueue<Event>,
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
                queue.push(outage.from, Event::Net(start));
                let end = NetEvent::CutEnds {
                    segment: number,
                    outage: i,
                };
                queue.push(outage.until, Event::Net(end));
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
                        queue.push(at + lag, Event::Net(notice));
                    }
                }
            }
        }
        Network {
            segments,
            lost: Vec::new(),
        }
    }

    /// Hands a frame to the card behind a port.
    pub fn transmit(
        &mut self,
        port: PortId,
        frame: Frame,
        now: Instant,
        queue: &mut EventQueue<Event>,
    ) -> Result<(), Refused> {
        let segment = &mut self.segments[port.segment];
        if !frame.fits(segment.config.mtu) {
            return Err(Refused::TooLong);
        }
        let len = frame.bytes.len();
        if segment.config.carries_offload {
            if frame.offload != Offload::NONE && nic::to_wire(frame.clone()).is_none() {
                return Err(Refused::BadOffload);
            }
            if !segment.wires[port.port].has_room(len, frame.segment_count()) {
                return self.refuse(port, frame);
            }
            return self.offer(port, frame, now, queue);
        }
        let whole = frame.clone();
        let Some(frames) = nic::to_wire(frame) else {
            return Err(Refused::BadOffload);
        };
        let total = frames.iter().map(|f| f.bytes.len()).sum();
        if !self.segments[port.segment].wires[port.port].has_room(total, frames.len()) {
            return self.refuse(port, whole);
        }
        for frame in frames {
            self.offer(port, frame, now, queue)?;
        }
        Ok(())
    }

    fn refuse(&mut self, port: PortId, frame: Frame) -> Result<(), Refused> {
        let counters = &mut self.segments[port.segment].wires[port.port].counters;
        counters.offered += 1;
        counters.offered_bytes += frame.bytes.len() as u64;
        counters.queue_full += 1;
        self.lost.push(frame);
        Err(Refused::QueueFull)
    }

    fn offer(
        &mut self,
        port: PortId,
        frame: Frame,
        now: Instant,
        queue: &mut EventQueue<Event>,
    ) -> Result<(), Refused> {
        match self.segments[port.segment].offer(port.segment, port.port, frame, now, queue) {
            Ok(()) => Ok(()),
            Err(frame) => {
                self.lost.push(frame);
                Err(Refused::QueueFull)
            }
        }
    }

    pub fn handle(
        &mut self,
        event: NetEvent,
        now: Instant,
        queue: &mut EventQueue<Event>,
    ) -> Outcome {
        match event {
            NetEvent::Sent {
                segment: number,
                wire: index,
                epoch,
            } => {
                let segment = &mut self.segments[number];
                let wire = &mut segment.wires[index];
                if wire.epoch != epoch {
                    return Outcome::Nothing; // it was cut off
                }
                let next = wire.sent(now, |passed| match passed {
                    Passed::Dropped(_, frame) => self.lost.push(frame),
                    Passed::Arrives(at, frame) => {
                        let event = NetEvent::Arrives {
                            segment: number,
                            wire: index,
                            epoch,
                            frame,
                        };
                        queue.push(at, Event::Net(event));
                    }
                });
                if let Some(at) = next {
                    let event = NetEvent::Sent {
                        segment: number,
                        wire: index,
                        epoch,
                    };
                    queue.push(at, Event::Net(event));
                }
                match index < segment.ports() {
                    true => Outcome::Drained(PortId {
                        segment: number,
                        port: index,
                    }),
                    false => Outcome::Nothing,
                }
            }
            NetEvent::Arrives {
                segment,
                wire,
                epoch,
                frame,
            } => self.arrived(segment, wire, epoch, frame, now, queue),
            NetEvent::CutStarts {
                segment: number,
                outage,
            } => {
                let segment = &mut self.segments[number];
                segment.cuts_happened += 1;
                let outage = segment.config.cut.outages()[outage];
                let seen = outage.seen && !outage.lags();
                for wire in segment.wires_of(outage.port) {
                    self.lost.extend(segment.wires[wire].cut(seen));
                }
                if !seen {
                    return Outcome::Nothing;
                }
                segment.set_carrier(outage.port, false);
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
                let segment = &mut self.segments[number];
                match up {
                    true => segment.wires[port].mend(),
                    false => self.lost.extend(segment.wires[port].cut(true)),
                }
                segment.set_carrier(Some(port), up);
                Outcome::Carrier {
                    segment: number,
                    port: Some(port),
                    up,
                }
            }
        }
    }

    fn arrived(
        &mut self,
        number: usize,
        wire: usize,
        epoch: u32,
        frame: Frame,
        now: Instant,
        queue: &mut EventQueue<Event>,
    ) -> Outcome {
        let segment = &mut self.segments[number];
        if segment.wires[wire].epoch != epoch {
            segment.wires[wire].count_cut_on_the_way();
            self.lost.push(frame);
            return Outcome::Nothing;
        }
        let ports = segment.ports();
        let is_cable = segment.config.kind == SegmentKind::Cable;
        if is_cable && !segment.carrier[1 - wire] {
            segment.wires[wire].count_cut_on_the_way();
            self.lost.push(frame);
            return Outcome::Nothing;
        }
        if is_cable {
            return Outcome::Delivered(
                PortId {
                    segment: number,
                    port: 1 - wire,
                },
                frame,
            );
        }
        if wire >= ports {
            return Outcome::Delivered(
                PortId {
                    segment: number,
                    port: wire - ports,
                },
                frame,
            );
        }
        for port in segment.forward(wire, &frame) {
            if let Err(frame) = segment.offer(number, ports + port, frame.clone(), now, queue) {
                self.lost.push(frame);
            }
        }
        Outcome::Nothing
    }

    /// Takes what was dropped since the last call.
    pub fn take_lost(&mut self) -> Vec<Frame> {
        core::mem::take(&mut self.lost)
    }

    pub fn local_queue_bytes(&self, port: PortId) -> usize {
        self.segments[port.segment].wires[port.port].queued_bytes()
    }

    pub fn mtu(&self, segment: usize) -> u16 {
        self.segments[segment].config.mtu
    }

    pub fn carrier(&self, port: PortId) -> bool {
        self.segments[port.segment].carrier[port.port]
    }

    /// Since when no cut has touched the segment; `None` while one does.
    pub fn well_since(&self, segment: usize, now: Instant) -> Option<Instant> {
        self.segments[segment].config.cut.well_since(now)
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
        let wire = &self.segments[port.segment].config.up[port.port];
        wire.rate.map(|rate| rate.bps)
    }

    pub fn configs(&self) -> impl Iterator<Item = &SegmentConfig> {
        self.segments.iter().map(|segment| &segment.config)
    }

    pub fn wires(&self) -> impl Iterator<Item = &Wire> {
        self.segments.iter().flat_map(|segment| &segment.wires)
    }

    /// From now on the network only carries.
    pub fn heal(&mut self) {
        for segment in &mut self.segments {
            // What a switch learned from altered frames would age out, in minutes.
            segment.stations.clear();
            for wire in &mut segment.wires {
                wire.heal();
                wire.mend();
            }
        }
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
