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

use std::cell::{Ref, RefCell};
use std::rc::Rc;

use packtrain_proto::time::{Duration, Instant};

pub use self::config::{
    Backpressure, DatagramsConfig, Ends, FabricConfig, FlowConfig, LineId, RouteConfig, Source,
    UNLIMITED_BYTES, VisitorsConfig,
};
use self::connection::{Connection, Way};
pub use self::count::Count;
use self::line::Line;
pub use self::observer::Observer;
use self::packet::{Datagram, Load, Packet};
use self::source::Station;
use self::visitors::Class;
use crate::event_queue::{EventQueue, Queue};
use crate::net::wire::{Passed, Wire, WireConfig, WireDrop};
use crate::random::Random;
use crate::tcp::auto::Destination;
use crate::tcp::receiver::Receiver;
use crate::tcp::segment::{Content, Segment};
use crate::tcp::sender::Sender;

pub mod config;
mod connection;
pub mod count;
mod line;
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

    fn add_flow(&mut self, config: &FlowConfig) {
        let way = self.way(&config.route);
        let mut ends = config.ends;
        ends.receiver.is_taken = config.feeds.is_some();
        let index = self.place(&ends, way, config.group);
        let connection = &mut self.connections[index as usize];
        connection.writes_left = config.writes.len();
        connection.feeds = config.feeds;
        let starts = Instant::ZERO + config.starts;
        self.events.push(starts, Event::Connect(index));
        for &(after, bytes) in &config.writes {
            self.events.push(starts + after, Event::Write(index, bytes));
        }
    }

    fn add_visitors(&mut self, config: &VisitorsConfig, random: Random) {
        let ways = config.routes.iter().map(|route| self.way(route)).collect();
        self.count_group(config.group);
        let number = self.classes.len() as u32;
        let mut class = Class::new(config.clone(), ways, random);
        let first = Instant::ZERO + config.starts + class.gap();
        self.classes.push(class);
        self.events.push(first, Event::Visit(number));
    }

    fn add_datagrams(&mut self, config: &DatagramsConfig, random: Random) {
        let way = self.way(&config.route);
        self.count_group(config.group);
        let station = Station::new(config.clone(), way, random);
        if let Some(starts) = station.starts() {
            let number = self.stations.len() as u32;
            let first = Instant::ZERO + starts;
            self.events.push(first, Event::Datagram(number));
        }
        self.stations.push(station);
    }

    fn way(&mut self, route: &RouteConfig) -> Way {
        let mut add = |lines: &[LineId]| {
            let known = |line: &LineId| (*line as usize) < self.lines.len();
            assert!(
                lines.iter().all(known),
                "a route over lines that are not there"
            );
            let at = self.hops.len() as u32;
            self.hops.extend_from_slice(lines);
            self.hops.push(END);
            at
        };
        let interface = *route.forward.first().expect("a route has lines");
        Way {
            forward: add(&route.forward),
            back: add(&route.back),
            interface,
        }
    }

    fn count_group(&mut self, group: u16) {
        let groups = usize::from(group) + 1;
        self.groups
            .resize(self.groups.len().max(groups), Count::default());
    }

    /// A place for a connection, a new one or that of one that is gone.
    fn place(&mut self, ends: &Ends, way: Way, group: u16) -> u32 {
        self.count_group(group);
        let freed = self.free.pop();
        let before = freed.map(|index| &self.connections[index as usize]);
        let generation = before.map_or(0, |before| before.generation.wrapping_add(1));
        let mut connection = Connection::new(ends, way, group, generation);
        connection.sender.join(&self.destination);
        match freed {
            Some(index) => {
                self.connections[index as usize] = connection;
                index
            }
            None => {
                self.connections.push(connection);
                self.connections.len() as u32 - 1
            }
        }
    }
}

/// What is seen from outside.
impl<O: Observer, Q: Queue<Event>> Fabric<O, Q> {
    pub fn now(&self) -> Instant {
        self.now
    }

    /// How many have happened. As in other simulators each packet has two on each line: it has left, and it has come.
    pub fn events_done(&self) -> u64 {
        self.events_done
    }

    pub fn events_planned(&self) -> usize {
        self.events.len()
    }

    /// Its counters are of all frames that went by it.
    pub fn wire(&self, line: LineId) -> &Wire<Packet> {
        &self.lines[line as usize].wire
    }

    /// From now on it is another one.
    pub fn set_wire(&mut self, line: LineId, config: &WireConfig) {
        self.lines[line as usize].wire.set(config);
    }

    /// Frames that have left lines: packet-hops.
    pub fn hops_done(&self) -> u64 {
        let lines = self.lines.iter();
        lines.map(|line| line.wire.counters.left).sum()
    }

    pub fn packets_under_way(&self) -> usize {
        self.lines.iter().map(Line::packets_under_way).sum()
    }

    /// What senders with `auto` remember.
    pub fn destination(&self) -> Ref<'_, Destination> {
        self.destination.borrow()
    }

    pub fn sender(&self, flow: u32) -> &Sender {
        &self.connections[flow as usize].sender
    }

    pub fn receiver(&self, flow: u32) -> &Receiver {
        &self.connections[flow as usize].receiver
    }

    pub fn count(&self, flow: u32) -> Count {
        self.connections[flow as usize].count
    }

    pub fn group(&self, group: u16) -> Count {
        let group = self.groups.get(usize::from(group));
        group.copied().unwrap_or_default()
    }

    pub fn class(&self, class: u32) -> &Class {
        &self.classes[class as usize]
    }

    pub fn station(&self, station: u32) -> &Station {
        &self.stations[station as usize]
    }

    /// Packets that came to connections that had gone.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// How long visits and datagrams took is counted from now on.
    pub fn forget_durations(&mut self) {
        for class in &mut self.classes {
            class.durations = Default::default();
        }
        for station in &mut self.stations {
            station.delays = Default::default();
            station.round_trips = Default::default();
        }
    }

    /// Every application has written everything, and every sender knows that it came.
    pub fn is_done(&self) -> bool {
        self.connections.iter().all(Connection::is_done)
    }
}

/// What happens.
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
        // One has left, so there is room for one.
        if let Some(index) = self.lines[id as usize].waiting.pop_front() {
            self.connections[index as usize].is_waiting = false;
            self.pump(index);
        }
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

/// Connections.
impl<O: Observer, Q: Queue<Event>> Fabric<O, Q> {
    /// The sender sends as much as it wants to and the interface takes.
    fn pump(&mut self, index: u32) {
        let now = self.now;
        loop {
            let connection = &mut self.connections[index as usize];
            let line = connection.way.interface as usize;
            if self.lines[line].wire.queued_frames() >= connection.interface_frames_max {
                if !connection.is_waiting && !connection.is_done() {
                    connection.is_waiting = true;
                    self.lines[line].waiting.push_back(index);
                }
                break;
            }
            let Some((data, ecn)) = connection.sender.poll_transmit(now) else {
                break;
            };
            let segment = Segment {
                ecn,
                ..Segment::data(index, data)
            };
            let packet = Packet {
                at: connection.way.forward,
                generation: connection.generation,
                group: connection.group,
                load: Load::Segment(segment),
            };
            let bytes = packet.packet_bytes() as u64;
            self.count_of(&packet, |count| {
                count.sent += 1;
                count.sent_bytes += bytes;
            });
            self.offer(line as LineId, packet);
        }
        let connection = &mut self.connections[index as usize];
        let timeout = connection.sender.poll_timeout();
        let event = Event::SenderTimer(index);
        arm(&mut self.events, &mut connection.sender_due, timeout, event);
    }

    fn receive_data(&mut self, packet: &Packet, segment: &Segment) {
        let now = self.now;
        let index = segment.flow;
        let Content::Data(data) = &segment.content else {
            return;
        };
        let receiver = &mut self.connections[index as usize].receiver;
        let delivered = receiver.handle(data, segment.ecn, now);
        if !data.syn {
            self.observer.arrived(index, data, now);
            let bytes = packet.packet_bytes() as u64;
            let new = delivered
                .as_ref()
                .map_or(0, |range| range.end - range.start);
            self.count_of(packet, |count| {
                count.arrived += 1;
                count.arrived_bytes += bytes;
                count.delivered_bytes += new;
            });
        }
        if let Some(range) = delivered {
            let connection = &self.connections[index as usize];
            if let Some(visit) = connection.visit.filter(|visit| range.end == visit.bytes) {
                self.classes[visit.class as usize].completes(&visit, now);
            }
            let feeds = connection.feeds;
            let bytes = range.end - range.start;
            self.observer.delivered(index, range, now);
            if let Some(next) = feeds {
                self.connections[next as usize].sender.write(bytes);
                self.pump(next);
            }
        }
        self.answer(index);
    }

    /// What a proxy's further end has acknowledged makes room at its nearer one.
    fn take_on(&mut self, index: u32) {
        let connection = &mut self.connections[index as usize];
        let Some(from) = connection.fed_by else {
            return;
        };
        let acknowledged = connection.sender.acknowledged();
        let more = acknowledged - connection.fed_acknowledged;
        connection.fed_acknowledged = acknowledged;
        self.connections[from as usize].receiver.take(more);
        self.answer(from);
    }

    fn answer(&mut self, index: u32) {
        let connection = &mut self.connections[index as usize];
        let said = connection.receiver.poll_transmit();
        let timeout = connection.receiver.poll_timeout();
        let event = Event::ReceiverTimer(index);
        arm(
            &mut self.events,
            &mut connection.receiver_due,
            timeout,
            event,
        );
        let Some(said) = said else {
            return;
        };
        let packet = Packet {
            at: connection.way.back,
            generation: connection.generation,
            group: connection.group,
            load: Load::Segment(Segment::acknowledgement(index, said)),
        };
        self.begin(packet);
    }

    fn visit(&mut self, number: u32) {
        let now = self.now;
        let class = &mut self.classes[number as usize];
        let comes = class.comes(number, now);
        let next = now + class.gap();
        self.events.push(next, Event::Visit(number));
        let Some((visit, way)) = comes else {
            return;
        };
        let (ends, group) = (class.config.ends, class.config.group);
        let index = self.place(&ends, way, group);
        let connection = &mut self.connections[index as usize];
        connection.visit = Some(visit);
        connection.sender.connect();
        connection.sender.write(visit.bytes);
        self.pump(index);
    }

    /// A visitor whose last byte is acknowledged makes room.
    fn leave_if_done(&mut self, index: u32) {
        let connection = &mut self.connections[index as usize];
        let leaves = connection.visit.take_if(|_| connection.sender.is_done());
        if let Some(visit) = leaves {
            if connection.is_waiting {
                let interface = connection.way.interface as usize;
                self.lines[interface]
                    .waiting
                    .retain(|&waits| waits != index);
            }
            let counters = connection.sender.counters;
            self.classes[visit.class as usize].leaves(&counters);
            self.free.push(index);
        }
    }
}

/// Datagrams.
impl<O: Observer, Q: Queue<Event>> Fabric<O, Q> {
    fn send_datagram(&mut self, number: u32) {
        let now = self.now;
        let station = &mut self.stations[number as usize];
        let (datagram, next) = station.next(number, now);
        let (at, line) = (station.way.forward, station.way.interface);
        let waits = station.waits_since.is_some();
        let packet = Packet {
            at,
            generation: 0,
            group: station.config.group,
            load: Load::Datagram(datagram),
        };
        if let Some(next) = next {
            let event = match waits {
                true => Event::Impatient(number, now),
                false => Event::Datagram(number),
            };
            self.events.push(now + next, event);
        }
        let bytes = u64::from(datagram.packet_bytes);
        self.count_of(&packet, |count| {
            count.sent += 1;
            count.sent_bytes += bytes;
        });
        self.offer(line, packet);
    }

    fn receive_datagram(&mut self, packet: &Packet, datagram: &Datagram) {
        let now = self.now;
        let number = datagram.source;
        let station = &mut self.stations[number as usize];
        if datagram.is_reply {
            if let Some(think) = station.replied(datagram, now) {
                self.events.push(now + think, Event::Datagram(number));
            }
            return;
        }
        station
            .delays
            .record(now.since(datagram.sent).as_nanos() as u64);
        let reply = station.config.reply_bytes;
        let back = station.way.back;
        let bytes = u64::from(datagram.packet_bytes);
        self.count_of(packet, |count| {
            count.arrived += 1;
            count.arrived_bytes += bytes;
            count.delivered_bytes += bytes - source::PACKET_BYTES_MIN;
        });
        if let Some(packet_bytes) = reply {
            let reply = Datagram {
                packet_bytes,
                is_reply: true,
                ..*datagram
            };
            self.begin(Packet {
                at: back,
                load: Load::Datagram(reply),
                ..*packet
            });
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
