//! Virtual time and who lives in it. One event after the other, from one queue, with one seed:
//! the same seed gives the same run, everywhere.

use packtrain_proto::class::Class;
use packtrain_proto::config::LinkSettings;
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::ethernet::MacAddr;

use crate::checker::Checkers;
use crate::event_queue::EventQueue;
use crate::frame::Frame;
use crate::host::{Host, World};
use crate::net::network::{NetEvent, Network, Outcome, PortId};
use crate::plain_host::PlainHost;
use crate::random::Random;
use crate::workload::Arrivals;

/// Between two looks at how links are used.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// A host, by its number in the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StationId(pub usize);

#[derive(Debug)]
pub enum Event {
    Net(NetEvent),
    HostTimer {
        station: StationId,
        set_for: Instant,
    },
    /// A host looks at what came in.
    HostBatch {
        station: StationId,
    },
    /// The next frame of a source.
    Source {
        source: usize,
    },
    Restart {
        station: StationId,
    },
    /// The process of a host does not run until then.
    Stop {
        station: StationId,
        until: Instant,
    },
    /// It runs again.
    Continue {
        station: StationId,
    },
    /// A host's interface at this port takes so much from now on.
    LinkMtu {
        station: StationId,
        port: PortId,
        mtu: u16,
    },
    /// What is longer vanishes in a segment; `None`: all that its ports take passes.
    PathMtu {
        segment: usize,
        mtu: Option<u16>,
    },
    /// A host wants to know when all that it sent has arrived.
    Drain {
        station: StationId,
    },
    /// A link joins a host's line.
    Plug {
        station: StationId,
        port: PortId,
        address: MacAddr,
    },
    /// A link is to leave it.
    Unplug {
        station: StationId,
        port: PortId,
    },
    /// What a host's link by this port is used for changes.
    LinkSettings {
        station: StationId,
        port: PortId,
        settings: LinkSettings,
    },
    /// A direct frame leaves its queue of a host's card.
    CardSends {
        station: StationId,
        port: PortId,
        frame: Frame,
    },
    /// A host's daemon looks at the programs of the direct path.
    KernelTurn {
        station: StationId,
    },
    /// A link is closed to a host's direct frames; `None`: all are as its engine says.
    ToggleDirect {
        station: StationId,
        port: Option<PortId>,
    },
    /// A host treats other frames in a way of their own from now on.
    Classes {
        station: StationId,
        classes: Vec<Class>,
    },
    /// The checkers look at how the hosts use their links, and will again.
    Look,
}

impl Event {
    /// Whose process has to run for it.
    fn is_for_process_of(&self) -> Option<StationId> {
        match *self {
            Event::Drain { station }
            | Event::Plug { station, .. }
            | Event::Unplug { station, .. }
            | Event::LinkSettings { station, .. }
            | Event::LinkMtu { station, .. }
            | Event::KernelTurn { station }
            | Event::ToggleDirect { station, .. }
            | Event::Classes { station, .. } => Some(station),
            _ => None,
        }
    }
}

impl From<NetEvent> for Event {
    fn from(event: NetEvent) -> Event {
        Event::Net(event)
    }
}

#[derive(Debug)]
pub enum Station {
    Packtrain(Box<Host>),
    Plain(PlainHost),
}

/// Gives a flow its times.
#[derive(Debug)]
pub struct Source {
    pub flow: usize,
    pub arrivals: Arrivals,
    pub random: Random,
    pub next_sequence: u32,
    /// Frames still to be sent.
    pub remaining: u32,
}

#[derive(Debug)]
pub struct Simulator {
    now: Instant,
    pub queue: EventQueue<Event>,
    pub network: Network,
    pub stations: Vec<Station>,
    /// Who is plugged in where.
    ports: Vec<(PortId, StationId)>,
    sources: Vec<Source>,
    pub checkers: Checkers,
    events_at_this_instant: u64,
    pub restarts: u64,
    pub stops: u64,
    /// Since when all processes run.
    calm_since: Instant,
}

impl Simulator {
    /// Events that may fall on one nanosecond. A loop without time passes any number.
    const EVENTS_AT_ONE_INSTANT_MAX: u64 = 200_000;

    pub fn new(network: Network, queue: EventQueue<Event>, checkers: Checkers) -> Simulator {
        Simulator {
            now: Instant::ZERO,
            queue,
            network,
            stations: Vec::new(),
            ports: Vec::new(),
            sources: Vec::new(),
            checkers,
            events_at_this_instant: 0,
            restarts: 0,
            stops: 0,
            calm_since: Instant::ZERO,
        }
    }

    pub fn now(&self) -> Instant {
        self.now
    }

    pub fn add(&mut self, station: Station, ports: &[PortId]) {
        let id = match &station {
            Station::Packtrain(host) => host.station,
            Station::Plain(host) => host.station,
        };
        assert_eq!(
            id.0,
            self.stations.len(),
            "stations are numbered in the order of their coming"
        );
        self.ports.extend(ports.iter().map(|&port| (port, id)));
        self.stations.push(station);
    }

    pub fn start(&mut self) {
        let now = self.now;
        for i in 0..self.stations.len() {
            let (station, mut world) = self.split(StationId(i));
            match station {
                Station::Packtrain(host) => host.start(now, &mut world),
                Station::Plain(host) => world.checkers.link(host.station, host.port, true, now),
            }
        }
    }

    /// Lets a source begin at `at`.
    pub fn add_source(&mut self, source: Source, at: Instant) {
        if source.remaining > 0 {
            self.queue.push(
                at,
                Event::Source {
                    source: self.sources.len(),
                },
            );
        }
        self.sources.push(source);
    }

    /// No source sends any more.
    pub fn stop_sources(&mut self) {
        self.sources
            .iter_mut()
            .for_each(|source| source.remaining = 0);
    }

    pub fn hosts(&self) -> impl Iterator<Item = &Host> {
        self.stations.iter().filter_map(|station| match station {
            Station::Packtrain(host) => Some(&**host),
            Station::Plain(_) => None,
        })
    }

    /// Runs until `end`, or until a checker objects.
    pub fn run_until(&mut self, end: Instant) {
        while self.checkers.violation().is_none() {
            match self.queue.next_at() {
                Some(at) if at <= end => self.step(),
                _ => {
                    self.now = self.now.max(end);
                    return;
                }
            }
        }
    }

    pub fn run_for(&mut self, duration: Duration) {
        self.run_until(self.now + duration);
    }

    fn step(&mut self) {
        let (at, event) = self.queue.pop().expect("looked before");
        if at > self.now {
            self.now = at;
            self.events_at_this_instant = 0;
        }
        self.events_at_this_instant += 1;
        if self.events_at_this_instant > Self::EVENTS_AT_ONE_INSTANT_MAX {
            let text = format!("{event:?} and no end");
            return self.checkers.object("time moves on", at, text);
        }
        let Some(event) = self.defer_if_stopped(event) else {
            return;
        };
        match event {
            Event::Net(event) => self.network_event(event),
            Event::HostTimer { station, set_for } => {
                let now = self.now;
                let (station, mut world) = self.split(station);
                if let Station::Packtrain(host) = station {
                    host.timer(set_for, now, &mut world);
                }
            }
            Event::HostBatch { station } => {
                let now = self.now;
                let (station, mut world) = self.split(station);
                if let Station::Packtrain(host) = station {
                    host.batch(now, &mut world);
                }
            }
            Event::Source { source } => self.source_event(source),
            Event::Drain { station } => {
                let now = self.now;
                let (station, mut world) = self.split(station);
                if let Station::Packtrain(host) = station {
                    host.request_drain(now, &mut world);
                }
            }
            Event::Plug {
                station,
                port,
                address,
            } => {
                let now = self.now;
                let (station, mut world) = self.split(station);
                if let Station::Packtrain(host) = station {
                    host.plug(port, address, now, &mut world);
                }
            }
            Event::Unplug { station, port } => {
                let now = self.now;
                let (station, mut world) = self.split(station);
                if let Station::Packtrain(host) = station {
                    host.unplug(port, now, &mut world);
                }
            }
            Event::LinkSettings {
                station,
                port,
                settings,
            } => {
                let now = self.now;
                let (station, mut world) = self.split(station);
                if let Station::Packtrain(host) = station {
                    host.change_link_settings(port, settings, now, &mut world);
                }
            }
            Event::Classes { station, classes } => {
                let now = self.now;
                let (station, mut world) = self.split(station);
                if let Station::Packtrain(host) = station {
                    host.change_classes(classes, now, &mut world);
                }
            }
            Event::CardSends {
                station,
                port,
                frame,
            } => self.with_host(station, |host, now, world| {
                host.give_to_card(port, frame, now, world);
            }),
            Event::KernelTurn { station } => {
                self.with_host(station, |host, now, world| host.kernel_turn(now, world));
            }
            Event::ToggleDirect { station, port } => {
                self.with_host(station, |host, now, world| {
                    host.toggle_direct(port, now, world);
                });
            }
            Event::Look => self.look(),
            Event::Stop { station, until } => {
                self.stops += 1;
                self.queue.push(until, Event::Continue { station });
                self.with_host(station, |host, _, _| host.stop(until));
            }
            Event::Continue { station } => {
                self.calm_since = self.now;
                self.with_host(station, |host, now, world| host.go_on(now, world));
            }
            Event::LinkMtu { station, port, mtu } => {
                self.with_host(station, |host, now, world| {
                    host.change_mtu(port, mtu, now, world);
                });
            }
            Event::PathMtu { segment, mtu } => self.network.set_path_mtu(segment, mtu),
            Event::Restart { station } => {
                let now = self.now;
                self.restarts += 1;
                let (station, mut world) = self.split(station);
                if let Station::Packtrain(host) = station {
                    host.restart(now, &mut world);
                }
            }
        }
        for frame in self.network.take_lost() {
            self.checkers.lost(&frame);
        }
    }

    fn with_host(
        &mut self,
        station: StationId,
        act: impl FnOnce(&mut Host, Instant, &mut World<'_>),
    ) {
        let now = self.now;
        let (station, mut world) = self.split(station);
        if let Station::Packtrain(host) = station {
            act(host, now, &mut world);
        }
    }

    /// What takes a process that does not run waits until it does.
    fn defer_if_stopped(&mut self, event: Event) -> Option<Event> {
        let Some(StationId(station)) = event.is_for_process_of() else {
            return Some(event);
        };
        match &mut self.stations[station] {
            Station::Packtrain(host) => host.defer(event),
            Station::Plain(_) => Some(event),
        }
    }

    fn look(&mut self) {
        let (now, calm_since) = (self.now, self.calm_since);
        // Who does not run says nothing and answers nothing.
        let all_run = self.hosts().all(|host| host.stopped_until().is_none());
        for i in 0..self.stations.len() {
            let (station, mut world) = self.split(StationId(i));
            if let Station::Packtrain(host) = station
                && all_run
            {
                host.look(calm_since, now, &mut world);
            }
        }
        self.queue.push(now + LOOK_INTERVAL, Event::Look);
    }

    fn network_event(&mut self, event: NetEvent) {
        let now = self.now;
        match self.network.handle(event, now, &mut self.queue) {
            Outcome::Nothing => {}
            Outcome::Drained(port) => {
                let (station, mut world) = self.split(self.behind(port));
                if let Station::Packtrain(host) = station {
                    host.drained(port, now, &mut world);
                }
            }
            Outcome::MediumDrained { segment } => {
                for at in 0..self.ports.len() {
                    let (port, station) = self.ports[at];
                    if port.segment == segment {
                        self.with_host(station, |host, now, world| host.drained(port, now, world));
                    }
                }
            }
            Outcome::Delivered(port, frame) => {
                let (station, mut world) = self.split(self.behind(port));
                match station {
                    Station::Packtrain(host) => host.receive(port, frame, now, &mut world),
                    Station::Plain(host) => host.receive(&frame, now, &mut world),
                }
            }
            Outcome::Carrier { segment, port, up } => {
                for i in 0..self.stations.len() {
                    let (station, mut world) = self.split(StationId(i));
                    if let Station::Packtrain(host) = station {
                        host.carrier(segment, port, up, now, &mut world);
                    }
                }
            }
        }
    }

    fn source_event(&mut self, number: usize) {
        let now = self.now;
        let source = &mut self.sources[number];
        if source.remaining == 0 {
            return;
        }
        let sequence = source.next_sequence;
        source.next_sequence += 1;
        source.remaining -= 1;
        if source.remaining > 0 {
            let at = now + source.arrivals.gap(sequence, &mut source.random);
            self.queue.push(at, Event::Source { source: number });
        }
        let flow = source.flow;
        self.send(flow, sequence);
    }

    /// Lets a host send one frame of a flow now.
    pub fn send(&mut self, flow: usize, sequence: u32) {
        let now = self.now;
        let frame = self.checkers.flows()[flow].frame(sequence);
        let from = self.checkers.flows()[flow].from;
        self.checkers.sent(flow, sequence, now);
        self.hand_over(from, &frame);
    }

    /// Gives a host a frame of one of its applications now.
    pub fn hand_over(&mut self, station: StationId, frame: &Frame) {
        let now = self.now;
        let (station, mut world) = self.split(station);
        match station {
            Station::Packtrain(host) => host.send(frame, now, &mut world),
            Station::Plain(host) => host.send(frame, now, &mut world),
        }
    }

    fn behind(&self, port: PortId) -> StationId {
        self.ports
            .iter()
            .find(|(p, _)| *p == port)
            .expect("no port stands open")
            .1
    }

    fn split(&mut self, station: StationId) -> (&mut Station, World<'_>) {
        let world = World {
            network: &mut self.network,
            checkers: &mut self.checkers,
            queue: &mut self.queue,
        };
        (&mut self.stations[station.0], world)
    }
}
