//! Segments: a cable between two ports, or a switch with many. It carries frames between ports and
//! tells what happened; who is behind a port is not its business.

use std::collections::BTreeMap;

use packtrain_proto::offload::Offload;
use packtrain_proto::time::Instant;
use packtrain_proto::wire::ethernet::MacAddr;

use super::cut::Cut;
use super::nic;
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// Two ports.
    Cable,
    /// Learns addresses, floods what it does not know. Each port has a queue of its own.
    Switch,
    /// Everybody hears everything.
    Hub,
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
    config: SegmentConfig,
    /// Up wires, then down wires.
    wires: Vec<Wire>,
    stations: BTreeMap<MacAddr, usize>,
    cuts_happened: usize,
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
    },
}

/// What came of it for those outside.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    Nothing,
    /// The port's local queue is shorter by a frame.
    Drained(PortId),
    Delivered(PortId, Frame),
    /// Carrier of all ports of the segment.
    Carrier {
        segment: usize,
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
                queue.push(
                    outage.until,
                    Event::Net(NetEvent::CutEnds { segment: number }),
                );
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
            if !segment.wires[port.port].has_room(len) {
                return self.refuse(port, frame);
            }
            return self.offer(port, frame, now, queue);
        }
        let whole = frame.clone();
        let Some(frames) = nic::to_wire(frame) else {
            return Err(Refused::BadOffload);
        };
        let total = frames.iter().map(|f| f.bytes.len()).sum();
        if !self.segments[port.segment].wires[port.port].has_room(total) {
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
                let seen = segment.config.cut.outages()[outage].seen;
                segment.cuts_happened += 1;
                for wire in &mut segment.wires {
                    self.lost.extend(wire.cut(seen));
                }
                if seen {
                    Outcome::Carrier {
                        segment: number,
                        up: false,
                    }
                } else {
                    Outcome::Nothing
                }
            }
            NetEvent::CutEnds { segment: number } => {
                self.segments[number].wires.iter_mut().for_each(Wire::mend);
                Outcome::Carrier {
                    segment: number,
                    up: true,
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
        if segment.config.kind == SegmentKind::Cable {
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

    pub fn rate_bps(&self, port: PortId) -> u64 {
        self.segments[port.segment].config.up[port.port].rate_bps
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
        for segment in &self.segments {
            if segment.cuts_happened < segment.config.cut.outages().len() {
                missing.push("cut");
            }
        }
        missing
    }
}

impl Segment {
    fn new(config: SegmentConfig, random: &mut Random) -> Segment {
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
        Segment {
            config,
            wires,
            stations: BTreeMap::new(),
            cuts_happened: 0,
        }
    }

    fn ports(&self) -> usize {
        self.config.up.len()
    }

    fn offer(
        &mut self,
        number: usize,
        wire: usize,
        frame: Frame,
        now: Instant,
        queue: &mut EventQueue<Event>,
    ) -> Result<(), Frame> {
        if let Some(at) = self.wires[wire].offer(frame, now)? {
            let epoch = self.wires[wire].epoch;
            queue.push(
                at,
                Event::Net(NetEvent::Sent {
                    segment: number,
                    wire,
                    epoch,
                }),
            );
        }
        Ok(())
    }

    /// The ports that a frame goes out by.
    fn forward(&mut self, from: usize, frame: &Frame) -> Vec<usize> {
        let header = frame.header();
        let others = (0..self.ports()).filter(|&port| port != from);
        if self.config.kind == SegmentKind::Hub {
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
