//! What applications stand on: hosts and their segments, connections, datagrams and time.

use std::mem;

use packtrain_proto::config::{LinkId, NodeId};
use packtrain_proto::engine::Event as EngineEvent;
use packtrain_proto::time::Instant;
use packtrain_proto::wire::ethernet::{HEADER_LEN, MacAddr, ether_type};

use super::config::{Kind, StationConfig};
use super::connection::Connection;
use super::counts::{self, Counts};
use super::datagram::Datagram;
use super::outlet::Outlet;
use crate::checker::{Checkers, StationFacts};
use crate::checksum;
use crate::event_queue::EventQueue;
use crate::fabric::Ends;
use crate::frame::Frame;
use crate::host::{Host, Pace};
use crate::net::network::{Network, PortId, SegmentConfig};
use crate::plain_host::PlainHost;
use crate::random::{Random, mix};
use crate::simulator::{Simulator, Station, StationId};
use crate::tcp::codec::{self, HostAddress, Hosts, Numbering};
use crate::tcp::segment::{Content, Segment};

/// Of the IPv4 header.
const PROTOCOL: usize = HEADER_LEN + 9;

/// What is planned above the hosts.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// What is next is the network's.
    Network,
    Start {
        application: usize,
    },
    Timer {
        application: usize,
        token: u64,
    },
    Sender(u32),
    Receiver(u32),
    /// What stands before a host's way out may go.
    Outlet(usize),
}

/// What a frame was to an application.
#[derive(Debug)]
pub enum Came {
    Bytes { connection: u32, bytes: u64 },
    Acknowledged { connection: u32 },
    Datagram(Datagram),
}

#[derive(Debug)]
pub struct Core {
    simulator: Simulator,
    events: EventQueue<Event>,
    stations: Vec<StationConfig>,
    outlets: Vec<Outlet>,
    connections: Vec<Connection>,
    random: Random,
    /// Kept for its room.
    handed_on: Vec<(StationId, Frame)>,
}

impl Core {
    pub fn new(segments: Vec<SegmentConfig>, stations: Vec<StationConfig>, seed: u64) -> Core {
        let mut random = Random::new(seed);
        let facts = (0..).zip(&stations).map(|(number, station)| StationFacts {
            address: address_of(number).mac,
            packtrain: matches!(station.kind, Kind::Packtrain(_)),
            promiscuous: false,
        });
        let checkers = Checkers::for_applications(facts.collect());
        let mut queue = EventQueue::default();
        let network = Network::new(segments, &mut random, &mut queue);
        let mut simulator = Simulator::new(network, queue, checkers);
        for (number, station) in stations.iter().enumerate() {
            let host = host_of(number, station, &simulator.network, seed);
            simulator.add(host, &station.ports);
        }
        let outlet = |station: &StationConfig| match station.kind {
            Kind::Plain => Outlet::before_card(),
            Kind::Packtrain(_) => Outlet::before_engine(),
        };
        let mut core = Core {
            simulator,
            events: EventQueue::default(),
            outlets: stations.iter().map(outlet).collect(),
            stations,
            connections: Vec::new(),
            random,
            handed_on: Vec::new(),
        };
        core.simulator.start();
        core
    }

    pub fn now(&self) -> Instant {
        self.simulator.now()
    }

    pub fn simulator(&self) -> &Simulator {
        &self.simulator
    }

    pub fn simulator_mut(&mut self) -> &mut Simulator {
        &mut self.simulator
    }

    pub fn counts(&self) -> Counts {
        counts::of(&self.simulator, &self.stations)
    }

    pub fn connections_of(&self, application: usize) -> impl Iterator<Item = &Connection> {
        let connections = self.connections.iter();
        connections.filter(move |connection| connection.application == application)
    }

    /// For an application of its own.
    pub fn fork_random(&mut self) -> Random {
        self.random.fork()
    }

    /// What happens next, if that is by then. It is that time from now on.
    pub fn next(&mut self, until: Instant) -> Option<Event> {
        let network = self.simulator.queue.next_at();
        let own = self.events.next_at();
        let at = network.into_iter().chain(own).min()?;
        if at > until {
            return None;
        }
        if network == Some(at) {
            return Some(Event::Network);
        }
        self.idle_until(at);
        self.events.pop().map(|(_, event)| event)
    }

    /// Nothing happens by then but what is planned for then.
    pub fn idle_until(&mut self, at: Instant) {
        if self.now() < at {
            self.run_simulator(at);
        }
    }

    fn run_simulator(&mut self, until: Instant) {
        self.simulator.run_until(until);
        let violation = self.simulator.checkers.violation();
        assert!(violation.is_none(), "{}", violation.expect("there is one"));
    }

    /// All that the network has for its next time; gives what came out of hosts.
    pub fn run_network(&mut self) -> Vec<(StationId, Frame)> {
        let at = self.simulator.queue.next_at();
        self.run_simulator(at.expect("it was looked at"));
        let mut frames = mem::take(&mut self.handed_on);
        self.simulator.checkers.take_handed_on(&mut frames);
        frames
    }

    pub fn keep_room(&mut self, frames: Vec<(StationId, Frame)>) {
        self.handed_on = frames;
    }

    pub fn plan(&mut self, at: Instant, event: Event) {
        self.events.push(at, event);
    }
}

/// Connections.
impl Core {
    /// A way for bytes from one station to another, closed so far.
    pub fn connect(&mut self, application: usize, (from, to): (usize, usize), ends: &Ends) -> u32 {
        let count = self.stations.len();
        assert!(from != to && from.max(to) < count, "from {from} to {to}");
        let hosts = Hosts {
            sender: address_of(from),
            receiver: address_of(to),
        };
        let numbering = Numbering::of_syn(self.random.next() as u32);
        let way = (StationId(from), StationId(to));
        let connection = Connection::new(application, way, hosts, numbering, ends);
        self.connections.push(connection);
        self.connections.len() as u32 - 1
    }

    pub fn open(&mut self, connection: u32) {
        self.connections[connection as usize].sender.connect();
        self.pump(connection);
    }

    pub fn write(&mut self, connection: u32, bytes: u64) {
        let writer = &mut self.connections[connection as usize];
        writer.written += bytes;
        writer.sender.write(bytes);
        self.pump(connection);
    }

    /// Bytes that were written and have not been acknowledged.
    pub fn unacknowledged(&self, connection: u32) -> u64 {
        let connection = &self.connections[connection as usize];
        connection.written - connection.sender.acknowledged()
    }

    pub fn sender_timer(&mut self, index: u32) {
        let now = self.now();
        let connection = &mut self.connections[index as usize];
        if connection.sender_due.take_if(|due| *due == now).is_some() {
            connection.sender.handle_timeout(now);
            self.pump(index);
        }
    }

    pub fn receiver_timer(&mut self, index: u32) {
        let now = self.now();
        let connection = &mut self.connections[index as usize];
        if connection.receiver_due.take_if(|due| *due == now).is_some() {
            connection.receiver.handle_timeout(now);
            self.answer(index);
        }
    }

    /// What a frame is to the station that it came out at; nothing, if it is no application's.
    pub fn read(&mut self, station: StationId, frame: &Frame) -> Option<(usize, Came)> {
        if frame.header().ether_type != ether_type::IPV4 {
            return None;
        }
        if frame.bytes[PROTOCOL] == checksum::UDP {
            let datagram = Datagram::of_frame(frame);
            let application = usize::from(datagram.application);
            return Some((application, Came::Datagram(datagram)));
        }
        let (index, is_from_sender) = codec::end(frame);
        let now = self.now();
        let connection = &mut self.connections[index as usize];
        let (near, to) = match is_from_sender {
            true => (connection.receiver.next(), connection.to),
            false => (connection.sender.acknowledged(), connection.from),
        };
        assert_eq!(station, to, "a frame of connection {index} comes elsewhere");
        let (numbering, scale) = (connection.numbering, connection.window_scale);
        let application = connection.application;
        let connection = index;
        let segment = Segment::of_frame(frame, numbering, near, scale);
        match segment.content {
            Content::Data(data) => {
                let receiver = &mut self.connections[index as usize].receiver;
                let delivered = receiver.handle(&data, segment.ecn, now);
                self.answer(index);
                let bytes = delivered.map(|range| range.end - range.start)?;
                Some((application, Came::Bytes { connection, bytes }))
            }
            Content::Acknowledgement(said) => {
                let sender = &mut self.connections[index as usize];
                if said.syn {
                    sender.window_scale = said.window_scale;
                }
                sender.sender.handle(&said, now);
                self.pump(index);
                Some((application, Came::Acknowledged { connection }))
            }
        }
    }

    fn pump(&mut self, index: u32) {
        self.fill(index);
        let station = self.connections[index as usize].from.0;
        self.let_out(station);
        let connection = &mut self.connections[index as usize];
        let timeout = connection.sender.poll_timeout();
        let event = Event::Sender(index);
        arm(
            &mut self.events,
            &mut connection.sender_due,
            timeout,
            event,
            self.simulator.now(),
        );
    }

    /// Puts so much before the way out as its sender wants to and may.
    fn fill(&mut self, index: u32) {
        let now = self.now();
        let connection = &mut self.connections[index as usize];
        while connection.waiting_frames < connection.waiting_frames_max {
            let Some((data, ecn)) = connection.sender.poll_transmit(now) else {
                break;
            };
            let segment = Segment {
                ecn,
                ..Segment::data(index, data)
            };
            let frame = segment.to_frame_between(&connection.hosts, connection.numbering);
            connection.waiting_frames += 1;
            self.outlets[connection.from.0].push(Some(index), frame);
        }
    }

    fn answer(&mut self, index: u32) {
        let now = self.now();
        let connection = &mut self.connections[index as usize];
        let said = connection.receiver.poll_transmit();
        let timeout = connection.receiver.poll_timeout();
        let event = Event::Receiver(index);
        arm(
            &mut self.events,
            &mut connection.receiver_due,
            timeout,
            event,
            now,
        );
        let Some(said) = said else {
            return;
        };
        let segment = Segment::acknowledgement(index, said);
        let frame = segment.to_frame_between(&connection.hosts, connection.numbering);
        let station = connection.to.0;
        self.outlets[station].push(None, frame);
        self.let_out(station);
    }
}

/// Datagrams, and the way out.
impl Core {
    pub fn send(&mut self, (from, to): (usize, usize), datagram: Datagram) {
        let frame = datagram.to_frame(&address_of(from), &address_of(to));
        self.outlets[from].push(None, frame);
        self.let_out(from);
    }

    pub fn outlet_timer(&mut self, station: usize) {
        let now = self.now();
        if self.outlets[station].due == Some(now) {
            self.outlets[station].due = None;
            self.let_out(station);
        }
    }

    /// Something may have left a card, or an engine may have said another rate.
    pub fn let_all_out(&mut self) {
        for station in 0..self.outlets.len() {
            self.read_rate(station);
            if !self.outlets[station].is_empty() {
                self.let_out(station);
            }
        }
    }

    fn let_out(&mut self, station: usize) {
        let now = self.now();
        loop {
            let outlet = &mut self.outlets[station];
            let card_bytes = match outlet.is_card() {
                true => {
                    let port = self.stations[station].ports[0];
                    self.simulator.network.local_queue_bytes(port)
                }
                false => 0,
            };
            let Some((connection, frame)) = outlet.pop(card_bytes, now) else {
                break;
            };
            self.simulator.hand_over(StationId(station), &frame);
            self.read_rate(station);
            if let Some(index) = connection {
                self.connections[index as usize].waiting_frames -= 1;
                self.fill(index);
            }
        }
        let outlet = &mut self.outlets[station];
        let opens_at = outlet.opens_at();
        let event = Event::Outlet(station);
        arm(&mut self.events, &mut outlet.due, opens_at, event, now);
    }

    /// What the engine says of how fast it wants frames; the rest of what it tells is for a log.
    fn read_rate(&mut self, station: usize) {
        if let Station::Packtrain(host) = &mut self.simulator.stations[station] {
            for event in host.events.drain(..) {
                if let EngineEvent::IntakeRate { rate_bps, .. } = event {
                    self.outlets[station].set_rate(rate_bps);
                }
            }
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
    now: Instant,
) {
    if let Some(at) = timeout.map(|at| at.max(now))
        && due.is_none_or(|due| at < due)
    {
        events.push(at, event);
        *due = Some(at);
    }
}

/// That of a host's stack: its card's, or its `pt0`'s.
fn address_of(station: usize) -> HostAddress {
    let [high, low] = (station as u16 + 1).to_be_bytes();
    HostAddress {
        mac: MacAddr([0x02, 0x70, 0, 0, high, low]),
        ip: [10, 1, high, low],
    }
}

fn link_address(station: usize, link: u8) -> MacAddr {
    let [high, low] = (station as u16 + 1).to_be_bytes();
    MacAddr([0x00, 0x16, 0x3e, link, high, low])
}

fn host_of(number: usize, config: &StationConfig, network: &Network, seed: u64) -> Station {
    let station = StationId(number);
    let address = address_of(number).mac;
    match &config.kind {
        Kind::Plain => {
            let &[port]: &[PortId; 1] = config.ports[..]
                .try_into()
                .expect("a host without packtrain has one port");
            Station::Plain(PlainHost {
                station,
                port,
                address,
            })
        }
        Kind::Packtrain(line) => {
            assert!(!config.ports.is_empty(), "station {number} has no port");
            let node_id = NodeId(mix(seed ^ mix(number as u64)).max(1));
            let engine = packtrain_proto::config::Config {
                node_id,
                address,
                seed: node_id.0,
                ..line.config.clone()
            };
            let mut host = Host::new(station, engine, Pace::prompt(), Instant::ZERO);
            if let Some(classes) = &line.classes {
                host.give_classes(classes.clone());
            }
            for (link, &port) in (0u8..).zip(&config.ports) {
                host.add_link(LinkId(link), port, link_address(number, link), network);
            }
            Station::Packtrain(Box::new(host))
        }
    }
}
