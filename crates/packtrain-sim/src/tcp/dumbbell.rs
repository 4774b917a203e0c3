//! Connections that share a bottleneck, in virtual time.
//!
//! Each sender has an interface of its own, which leads to a router; what the router's queue has room for goes
//! on at the bottleneck's rate to the receivers, and what these say goes another way back. All are
//! [`Wire`]s, so any of them can lose, delay and reorder. Whoever sends at once is not asked for more than the
//! interface is about to send: as with a small queue below the socket (Linux' TSQ), what waits has not been cut into
//! segments yet, and what goes again does not stand behind it.

use std::cell::{Ref, RefCell};
use std::rc::Rc;

use packtrain_proto::time::{Duration, Instant};

use super::auto::Destination;
use super::receiver::{Receiver, ReceiverConfig};
use super::record::{Arrived, Router};
use super::segment::{self, Data};
use super::sender::{Sender, SenderConfig};
use crate::event_queue::EventQueue;
use crate::frame::Frame;
use crate::net::wire::{Passed, Wire, WireConfig};
use crate::random::Random;

/// One that is being sent, and one so that the interface never waits for the next.
const INTERFACE_FRAMES_MAX: usize = 2;

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

#[derive(Debug)]
struct Flow {
    sender: Sender,
    receiver: Receiver,
    arrived: Arrived,
    /// The event that comes next for its timers; earlier ones are void.
    sender_due: Option<Instant>,
    receiver_due: Option<Instant>,
    writes_left: usize,
}

/// Which wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Interface(u16),
    Bottleneck,
    WayBack,
}

#[derive(Debug)]
enum Event {
    Connect(u16),
    Write(u16, u64),
    /// The first frame of a wire's queue has left.
    Left(Place),
    Arrives(Place, Frame),
    SenderTimer(u16),
    ReceiverTimer(u16),
}

#[derive(Debug)]
pub struct Dumbbell {
    events: EventQueue<Event>,
    now: Instant,
    flows: Vec<Flow>,
    interfaces: Vec<Wire>,
    bottleneck: Wire,
    way_back: Wire,
    router: Router,
    /// All flows go to one.
    destination: Rc<RefCell<Destination>>,
}

impl Dumbbell {
    pub fn new(config: &DumbbellConfig) -> Dumbbell {
        let mut random = Random::new(config.seed);
        let mut dumbbell = Dumbbell {
            events: EventQueue::default(),
            now: Instant::ZERO,
            flows: Vec::new(),
            interfaces: Vec::new(),
            bottleneck: Wire::new(&config.bottleneck, &mut random),
            way_back: Wire::new(&config.way_back, &mut random),
            router: Router::default(),
            destination: Rc::default(),
        };
        for (index, flow) in (0..).zip(&config.flows) {
            dumbbell.add(index, flow, &mut random);
        }
        dumbbell
    }

    fn add(&mut self, index: u16, config: &FlowConfig, random: &mut Random) {
        // Anywhere, so that numbers wrap.
        let initial_sequence = random.next() as u32;
        let mut sender = Sender::new(config.sender, index, initial_sequence);
        sender.join(&self.destination);
        self.flows.push(Flow {
            sender,
            receiver: Receiver::new(config.receiver),
            arrived: Arrived::default(),
            sender_due: None,
            receiver_due: None,
            writes_left: config.writes.len(),
        });
        self.interfaces.push(Wire::new(&config.interface, random));
        let starts = Instant::ZERO + config.starts;
        self.events.push(starts, Event::Connect(index));
        for &(after, bytes) in &config.writes {
            self.events.push(starts + after, Event::Write(index, bytes));
        }
    }

    pub fn now(&self) -> Instant {
        self.now
    }

    pub fn router(&self) -> &Router {
        &self.router
    }

    /// Its counters are of all frames: data, and what opens connections.
    pub fn bottleneck(&self) -> &Wire {
        &self.bottleneck
    }

    /// From now on it is another one.
    pub fn set_bottleneck(&mut self, config: &WireConfig) {
        self.bottleneck.set(config);
    }

    pub fn set_way_back(&mut self, config: &WireConfig) {
        self.way_back.set(config);
    }

    /// What senders with `auto` remember.
    pub fn destination(&self) -> Ref<'_, Destination> {
        self.destination.borrow()
    }

    pub fn sender(&self, flow: usize) -> &Sender {
        &self.flows[flow].sender
    }

    pub fn receiver(&self, flow: usize) -> &Receiver {
        &self.flows[flow].receiver
    }

    pub fn arrived(&self, flow: usize) -> &Arrived {
        &self.flows[flow].arrived
    }

    /// Every application has written everything, and every sender knows that it came.
    pub fn is_done(&self) -> bool {
        let mut flows = self.flows.iter();
        flows.all(|flow| flow.writes_left == 0 && flow.sender.is_done())
    }

    /// Until all is done or so much time has passed.
    pub fn run(&mut self, most: Duration) {
        let until = Instant::ZERO + most;
        self.run_while(|dumbbell| !dumbbell.is_done() && dumbbell.now < until);
    }

    /// As long as this holds, and something is still to happen.
    pub fn run_while(&mut self, mut goes_on: impl FnMut(&Dumbbell) -> bool) {
        while goes_on(self) && self.step() {}
    }

    fn step(&mut self) -> bool {
        let Some((now, event)) = self.events.pop() else {
            return false;
        };
        self.now = now;
        match event {
            Event::Connect(index) => {
                self.flow(index).sender.connect();
                self.pump(index);
            }
            Event::Write(index, bytes) => {
                let flow = self.flow(index);
                flow.writes_left -= 1;
                flow.sender.write(bytes);
                self.pump(index);
            }
            Event::Left(place) => self.left(place),
            Event::Arrives(Place::Interface(_), frame) => self.route(frame),
            Event::Arrives(Place::Bottleneck, frame) => self.receive(&frame),
            Event::Arrives(Place::WayBack, frame) => {
                let index = segment::flow(&frame);
                self.flow(index).sender.handle(&frame, now);
                self.pump(index);
            }
            Event::SenderTimer(index) => {
                let flow = self.flow(index);
                if flow.sender_due.take_if(|due| *due == now).is_some() {
                    flow.sender.handle_timeout(now);
                    self.pump(index);
                }
            }
            Event::ReceiverTimer(index) => {
                let flow = self.flow(index);
                if flow.receiver_due.take_if(|due| *due == now).is_some() {
                    flow.receiver.handle_timeout(now);
                    self.answer(index);
                }
            }
        }
        true
    }

    fn flow(&mut self, index: u16) -> &mut Flow {
        &mut self.flows[usize::from(index)]
    }

    fn wire(&mut self, place: Place) -> &mut Wire {
        match place {
            Place::Interface(index) => &mut self.interfaces[usize::from(index)],
            Place::Bottleneck => &mut self.bottleneck,
            Place::WayBack => &mut self.way_back,
        }
    }

    fn left(&mut self, place: Place) {
        let now = self.now;
        let mut arrivals = Vec::new();
        let next = self.wire(place).sent(now, |passed| {
            if let Passed::Arrives(at, frame) = passed {
                arrivals.push((at, frame));
            }
        });
        for (at, frame) in arrivals {
            self.events.push(at, Event::Arrives(place, frame));
        }
        if let Some(at) = next {
            self.events.push(at, Event::Left(place));
        }
        if let Place::Interface(index) = place {
            self.pump(index);
        }
    }

    /// Whether the wire took it.
    fn offer(&mut self, place: Place, frame: Frame) -> bool {
        let now = self.now;
        match self.wire(place).offer(frame, now) {
            Ok(Some(at)) => self.events.push(at, Event::Left(place)),
            Ok(None) => {}
            Err(_) => return false,
        }
        true
    }

    /// The sender sends as much as it wants to and the interface takes.
    fn pump(&mut self, index: u16) {
        let place = Place::Interface(index);
        while self.wire(place).queued_frames() < INTERFACE_FRAMES_MAX {
            let now = self.now;
            let Some(frame) = self.flow(index).sender.poll_transmit(now) else {
                break;
            };
            let taken = self.offer(place, frame);
            assert!(taken, "an interface has room for two frames");
        }
        let flow = &mut self.flows[usize::from(index)];
        let timeout = flow.sender.poll_timeout();
        let event = Event::SenderTimer(index);
        arm(&mut self.events, &mut flow.sender_due, timeout, event);
    }

    fn route(&mut self, frame: Frame) {
        if segment::is_syn(&frame) {
            self.offer(Place::Bottleneck, frame);
            return;
        }
        let phase = segment::phase(&frame);
        let taken = self.offer(Place::Bottleneck, frame);
        let bytes = self.bottleneck.queued_bytes();
        let queued = self.router.of(phase);
        queued.frames += 1;
        queued.dropped += u64::from(!taken);
        queued.bytes_max = queued.bytes_max.max(bytes);
    }

    fn receive(&mut self, frame: &Frame) {
        let now = self.now;
        let index = segment::flow(frame);
        let flow = self.flow(index);
        let data = Data::of_frame(frame, flow.sender.numbering(), flow.receiver.next());
        if !data.syn {
            flow.arrived.segments.push(now);
        }
        if let Some(delivered) = flow.receiver.handle(&data, now) {
            flow.arrived.delivered.push((now, delivered));
        }
        self.answer(index);
    }

    fn answer(&mut self, index: u16) {
        let flow = &mut self.flows[usize::from(index)];
        let frame = flow.receiver.poll_transmit(flow.sender.numbering());
        let timeout = flow.receiver.poll_timeout();
        let event = Event::ReceiverTimer(index);
        arm(&mut self.events, &mut flow.receiver_due, timeout, event);
        if let Some(frame) = frame {
            self.offer(Place::WayBack, frame);
        }
    }
}

/// One event waits for a timer, if any: it is void when an earlier one has taken its place, and an
/// early one asks again.
fn arm(
    events: &mut EventQueue<Event>,
    due: &mut Option<Instant>,
    timeout: Option<Instant>,
    event: Event,
) {
    if let Some(at) = timeout
        && due.is_none_or(|due| at < due)
    {
        events.push(at, event);
        *due = Some(at);
    }
}
