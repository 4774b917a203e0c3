//! Connections that share a bottleneck, in virtual time, and all that happens to their data written down.
//!
//! Each sender has an interface of its own, which leads to a router; what the router's queue has room for goes
//! on at the bottleneck's rate to the receivers, and what these say goes another way back. It is a [`Fabric`] of
//! these lines, and any of them can lose, delay and reorder. Whoever sends at once is not asked for more than the
//! interface is about to send.

use core::ops::Range;
use std::cell::Ref;

use packtrain_proto::time::{Duration, Instant};

use super::auto::Destination;
use super::receiver::{Receiver, ReceiverConfig};
use super::record::{Arrived, Router};
use super::segment::{Content, Data};
use super::sender::{Sender, SenderConfig};
use crate::fabric::packet::{Load, Packet};
use crate::fabric::{
    self, Backpressure, Ends, Fabric, FabricConfig, LineId, Observer, RouteConfig,
};
use crate::net::wire::{Wire, WireConfig};

#[derive(Clone, Debug)]
pub struct FlowConfig {
    pub sender: SenderConfig,
    pub receiver: ReceiverConfig,
    /// From the sender to the router.
    pub interface: WireConfig,
    /// When the connection is opened.
    pub starts: Duration,
    /// What the application writes, how long after `starts`.
    pub writes: Vec<(Duration, u64)>,
}

#[derive(Clone, Debug)]
pub struct DumbbellConfig {
    pub flows: Vec<FlowConfig>,
    pub bottleneck: WireConfig,
    pub way_back: WireConfig,
    pub seed: u64,
}

const BOTTLENECK: LineId = 0;
const WAY_BACK: LineId = 1;
/// Of flow n it is the n-th from here.
const INTERFACES: LineId = 2;

#[derive(Debug)]
struct Recorder {
    arrived: Vec<Arrived>,
    router: Router,
}

impl Observer for Recorder {
    fn offered(&mut self, line: LineId, packet: &Packet, taken: bool, queued_bytes: usize) {
        let Load::Segment(segment) = &packet.load else {
            return;
        };
        let Content::Data(data) = &segment.content else {
            return;
        };
        if line != BOTTLENECK || data.syn {
            return;
        }
        let queued = self.router.of(data.phase);
        queued.frames += 1;
        queued.dropped += u64::from(!taken);
        queued.bytes_max = queued.bytes_max.max(queued_bytes);
    }

    fn arrived(&mut self, connection: u32, _data: &Data, now: Instant) {
        self.arrived[connection as usize].segments.push(now);
    }

    fn delivered(&mut self, connection: u32, range: Range<u64>, now: Instant) {
        self.arrived[connection as usize]
            .delivered
            .push((now, range));
    }
}

#[derive(Debug)]
pub struct Dumbbell {
    fabric: Fabric<Recorder>,
}

impl Dumbbell {
    pub fn new(config: &DumbbellConfig) -> Dumbbell {
        let mut lines = vec![config.bottleneck.clone(), config.way_back.clone()];
        lines.extend(config.flows.iter().map(|flow| flow.interface.clone()));
        let flows = (INTERFACES..).zip(&config.flows);
        let flows = flows.map(|(interface, flow)| fabric::FlowConfig {
            ends: Ends {
                sender: flow.sender,
                receiver: flow.receiver,
                backpressure: Backpressure::default(),
            },
            route: RouteConfig {
                forward: vec![interface, BOTTLENECK],
                back: vec![WAY_BACK],
            },
            group: 0,
            starts: flow.starts,
            writes: flow.writes.clone(),
            feeds: None,
        });
        let config = FabricConfig {
            lines,
            flows: flows.collect(),
            seed: config.seed,
            ..FabricConfig::default()
        };
        let recorder = Recorder {
            arrived: vec![Arrived::default(); config.flows.len()],
            router: Router::default(),
        };
        Dumbbell {
            fabric: Fabric::new(&config, recorder),
        }
    }

    pub fn now(&self) -> Instant {
        self.fabric.now()
    }

    pub fn router(&self) -> &Router {
        &self.fabric.observer.router
    }

    /// Its counters are of all frames: data, and what opens connections.
    pub fn bottleneck(&self) -> &Wire<Packet> {
        self.fabric.wire(BOTTLENECK)
    }

    /// From now on it is another one.
    pub fn set_bottleneck(&mut self, config: &WireConfig) {
        self.fabric.set_wire(BOTTLENECK, config);
    }

    pub fn set_way_back(&mut self, config: &WireConfig) {
        self.fabric.set_wire(WAY_BACK, config);
    }

    /// What senders with `auto` remember.
    pub fn destination(&self) -> Ref<'_, Destination> {
        self.fabric.destination()
    }

    pub fn sender(&self, flow: usize) -> &Sender {
        self.fabric.sender(flow as u32)
    }

    pub fn receiver(&self, flow: usize) -> &Receiver {
        self.fabric.receiver(flow as u32)
    }

    pub fn arrived(&self, flow: usize) -> &Arrived {
        &self.fabric.observer.arrived[flow]
    }

    /// Every application has written everything, and every sender knows that it came.
    pub fn is_done(&self) -> bool {
        self.fabric.is_done()
    }

    /// Until all is done or so much time has passed.
    pub fn run(&mut self, most: Duration) {
        let until = Instant::ZERO + most;
        self.run_while(|dumbbell| !dumbbell.is_done() && dumbbell.now() < until);
    }

    /// As long as this holds, and something is still to happen.
    pub fn run_while(&mut self, mut goes_on: impl FnMut(&Dumbbell) -> bool) {
        while goes_on(self) && self.fabric.step() {}
    }
}
