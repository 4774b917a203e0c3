//! Lines, and who sends over them: the core of the network simulator.
//!
//! ```text
//!  sender ── line ──┐             ┌── line ── receiver        data go forward by a route's lines,
//!                   ├─── line ────┤                           acknowledgements and answers back by others
//!  sender ── line ──┘             └── line ── receiver
//! ```
//!
//! A line is a [`Wire`], the one that the lab emulates, with its queue, rate and everything that happens on the way; what has
//! no bytes travels on it ([`Packet`]). A route is a list of lines. Connections, those who come and go, and datagrams are
//! driven by events of virtual time; a run depends on its configuration and its seed alone.
//!
//! What is under way on a line has one event together, that of the first to arrive, so that few are planned at a time however
//! long the line is; and in the steady state nothing is allocated.

use std::cell::RefCell;
use std::rc::Rc;

use packtrain_proto::time::{Duration, Instant};

pub use self::config::{
    Backpressure, DatagramsConfig, Ends, FabricConfig, FlowConfig, LineId, RouteConfig, Source,
    UNLIMITED_BYTES, VisitorsConfig,
};
use self::connection::Connection;
pub use self::count::Count;
use self::line::Line;
pub use self::observer::Observer;
use self::packet::{Load, Packet};
use self::source::Station;
use self::visitors::Class;
use crate::event_queue::{EventQueue, Queue};
use crate::net::wire::{Passed, Wire, WireDrop};
use crate::random::Random;
use crate::tcp::auto::Destination;
use crate::tcp::segment::Content;

mod build;
pub mod config;
mod connecting;
mod connection;
pub mod count;
mod datagrams;
mod line;
mod look;
pub mod observer;
pub mod packet;
pub mod source;
pub mod visitors;

/// Behind the last line of a way.
const END: LineId = LineId::MAX;

/// What is planned.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    Connect(u32),
    Write(u32, u64),
    /// The first frame of a line's queue has left.
    Left(LineId),
    /// Something has come to a line's end.
    Arrives(LineId),
    SenderTimer(u32),
    ReceiverTimer(u32),
    /// Somebody of a class comes.
    Visit(u32),
    Datagram(u32),
    /// A request that was sent then is not waited for any longer.
    Impatient(u32, Instant),
}

#[derive(Debug)]
pub struct Fabric<O: Observer = (), Q: Queue<Event> = EventQueue<Event>> {
    events: Q,
    now: Instant,
    lines: Vec<Line>,
    /// All ways, one behind the other, each with an [`END`].
    hops: Vec<LineId>,
    connections: Vec<Connection>,
    /// Places of connections that are gone.
    free: Vec<u32>,
    classes: Vec<Class>,
    stations: Vec<Station>,
    groups: Vec<Count>,
    /// All flows go to one.
    destination: Rc<RefCell<Destination>>,
    /// Kept for its room.
    dropped: Vec<(WireDrop, Packet)>,
    /// Packets of connections that had gone when they came.
    late: u64,
    events_done: u64,
    pub observer: O,
}

impl<O: Observer> Fabric<O> {
    /// # Panics
    /// If a route has no lines, or names one that is not there.
    pub fn new(config: &FabricConfig, observer: O) -> Fabric<O> {
        Fabric::on(EventQueue::default(), config, observer)
    }
}

impl<O: Observer, Q: Queue<Event>> Fabric<O, Q> {
    /// The same, on an empty queue of another kind.
    pub fn on(events: Q, config: &FabricConfig, observer: O) -> Fabric<O, Q> {
        let mut random = Random::new(config.seed);
        let lines = config.lines.iter();
        let lines = lines.map(|wire| Line::new(Wire::new(wire, &mut random)));
        let mut fabric = Fabric {
            events,
            now: Instant::ZERO,
            lines: lines.collect(),
            hops: Vec::new(),
            connections: Vec::new(),
            free: Vec::new(),
            classes: Vec::new(),
            stations: Vec::new(),
            groups: Vec::new(),
            destination: Rc::default(),
            dropped: Vec::new(),
            late: 0,
            events_done: 0,
            observer,
        };
        for flow in &config.flows {
            fabric.add_flow(flow);
        }
        for (from, flow) in (0..).zip(&config.flows) {
            if let Some(to) = flow.feeds {
                fabric.connections[to as usize].fed_by = Some(from);
            }
        }
        for class in &config.visitors {
            fabric.add_visitors(class, random.fork());
        }
        for datagrams in &config.datagrams {
            fabric.add_datagrams(datagrams, random.fork());
        }
        fabric
    }
}

impl<O: Observer, Q: Queue<Event>> Fabric<O, Q> {
    /// Everything that is due by then.
    pub fn run_until(&mut self, until: Instant) {
        while self.events.next_at().is_some_and(|at| at <= until) {
            self.step();
        }
        self.now = self.now.max(until);
    }

    pub fn run_for(&mut self, time: Duration) {
        self.run_until(self.now + time);
    }

    /// The next event; whether there was one.
    pub fn step(&mut self) -> bool {
        let Some((now, event)) = self.events.pop() else {
            return false;
        };
        self.now = now;
        self.events_done += 1;
        match event {
            Event::Left(line) => self.left(line),
            Event::Arrives(line) => self.arrives(line),
            Event::SenderTimer(index) => {
                let connection = &mut self.connections[index as usize];
                if connection.sender_due.take_if(|due| *due == now).is_some() {
                    connection.sender.handle_timeout(now);
                    self.pump(index);
                }
            }
            Event::ReceiverTimer(index) => {
                let connection = &mut self.connections[index as usize];
                if connection.receiver_due.take_if(|due| *due == now).is_some() {
                    connection.receiver.handle_timeout(now);
                    self.answer(index);
                }
            }
            Event::Connect(index) => {
                self.connections[index as usize].sender.connect();
                self.pump(index);
            }
            Event::Write(index, bytes) => {
                let connection = &mut self.connections[index as usize];
                connection.writes_left -= 1;
                connection.sender.write(bytes);
                self.pump(index);
            }
            Event::Visit(class) => self.visit(class),
            Event::Datagram(station) => self.send_datagram(station),
            Event::Impatient(station, since) => {
                let waits = &mut self.stations[station as usize].waits_since;
                if waits.take_if(|waits| *waits == since).is_some() {
                    self.send_datagram(station);
                }
            }
        }
        true
    }

    fn left(&mut self, id: LineId) {
        let now = self.now;
        let line = &mut self.lines[id as usize];
        let (wire, under_way) = line.parts();
        let dropped = &mut self.dropped;
        let next = wire.sent(now, |passed| match passed {
            Passed::Arrives(at, mut packet) => {
                packet.at += 1;
                line::insert(under_way, at, packet);
            }
            Passed::Dropped(reason, packet) => dropped.push((reason, packet)),
        });
        if let Some(at) = next {
            self.events.push(at, Event::Left(id));
        }
        self.plan_arrival(id);
        while let Some((reason, packet)) = self.dropped.pop() {
            self.count_of(&packet, |count| match reason {
                WireDrop::QueueFull | WireDrop::Codel | WireDrop::Early => count.dropped += 1,
                _ => count.lost += 1,
            });
        }
        self.wake(id);
    }

    /// One event waits for what comes first, if anything does.
    fn plan_arrival(&mut self, id: LineId) {
        let line = &mut self.lines[id as usize];
        let first = line.first_at();
        arm(&mut self.events, &mut line.due, first, Event::Arrives(id));
    }

    fn arrives(&mut self, id: LineId) {
        let now = self.now;
        if self.lines[id as usize]
            .due
            .take_if(|due| *due == now)
            .is_none()
        {
            return; // an earlier one took its place
        }
        if let Some(packet) = self.lines[id as usize].pop(now) {
            self.plan_arrival(id);
            self.begin(packet);
        }
    }

    /// The next line of its way, or its end at once where there is none.
    fn begin(&mut self, packet: Packet) {
        match self.hops[packet.at as usize] {
            END => self.receive(&packet),
            line => {
                self.offer(line, packet);
            }
        }
    }

    /// Whether the line took it.
    fn offer(&mut self, id: LineId, packet: Packet) -> bool {
        let wire = &mut self.lines[id as usize].wire;
        let (taken, lost) = match wire.offer(packet, self.now) {
            Ok(Some(at)) => {
                self.events.push(at, Event::Left(id));
                (true, None)
            }
            Ok(None) => (true, None),
            Err((packet, _)) => (false, Some(packet)),
        };
        let queued = wire.queued_bytes();
        self.observer.offered(id, &packet, taken, queued);
        if let Some(packet) = lost {
            self.count_of(&packet, |count| count.dropped += 1);
        }
        while let Some(packet) = self.lines[id as usize].wire.evicted() {
            self.count_of(&packet, |count| count.dropped += 1);
        }
        taken
    }

    /// Counts something of a packet's data, unless its connection has gone: its group stays.
    fn count_of(&mut self, packet: &Packet, counts: impl Fn(&mut Count)) {
        match &packet.load {
            Load::Segment(segment) => {
                let Content::Data(data) = &segment.content else {
                    return;
                };
                if data.syn {
                    return;
                }
                let connection = &mut self.connections[segment.flow as usize];
                if connection.generation == packet.generation {
                    counts(&mut connection.count);
                }
            }
            Load::Datagram(datagram) if datagram.is_reply => return,
            Load::Datagram(datagram) => counts(&mut self.stations[datagram.source as usize].count),
        }
        counts(&mut self.groups[usize::from(packet.group)]);
    }

    fn receive(&mut self, packet: &Packet) {
        match &packet.load {
            Load::Segment(segment) => {
                let connection = &self.connections[segment.flow as usize];
                if connection.generation != packet.generation {
                    self.late += 1;
                    return;
                }
                match &segment.content {
                    Content::Data(_) => self.receive_data(packet, segment),
                    Content::Acknowledgement(said) => {
                        let index = segment.flow;
                        let now = self.now;
                        self.connections[index as usize].sender.handle(said, now);
                        self.take_on(index);
                        self.pump(index);
                        self.leave_if_done(index);
                    }
                }
            }
            Load::Datagram(datagram) => self.receive_datagram(packet, datagram),
        }
    }
}

/// One event waits for a timer, if any: it is void when an earlier one has taken its place, and an
/// early one asks again.
fn arm(
    events: &mut impl Queue<Event>,
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
