//! A host that runs the engine, and drives it by its contract and nothing else: what the daemon
//! does with sockets and a clock happens here with virtual ones.

pub mod damage;
mod direct;
pub mod kernel;
mod links;
mod stop;
pub(crate) mod watch;

use packtrain_proto::class::{self, Class};
use packtrain_proto::config::{Config, LinkId, LinkSettings, LinkState, NodeId};
use packtrain_proto::engine::{Engine, Event as EngineEvent};
use packtrain_proto::stats::Snapshot;
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::ethernet;

use crate::checker::accounted::EngineDrops;
use crate::checker::held_within::Line;
use crate::checker::{Checkers, inside};
use crate::dictionaries::Known;
use crate::event_queue::EventQueue;
use crate::frame::Frame;
use crate::net::network::{Network, PortId, Refused};
use crate::random::{Random, mix};
use crate::sabotage::Saboteur;
use crate::simulator::{Event, StationId};
use damage::Damage;
use kernel::Kernel;
use stop::Stop;

#[derive(Debug)]
pub struct HostLink {
    pub id: LinkId,
    pub port: PortId,
    pub state: LinkState,
    /// As the engine was told last.
    told_bytes: usize,
    /// It gave a frame since, and counts it as standing there: it must hear what became of it.
    given: bool,
    /// Bytes with which a card fills up the short frames among these: the engine hears of them when it is told.
    padding: usize,
    /// It is to leave, and the engine was told so then.
    retiring_since: Option<Instant>,
    /// It is to come back as soon as it has left.
    returns: bool,
}

/// How promptly a host does what it should: no process runs at the instant that it asked for.
#[derive(Clone, Debug)]
pub struct Pace {
    /// Frames that come within this time are handled together. Zero: each at once.
    pub batch: Duration,
    /// Most that a timer goes off too late.
    pub lateness_max: Duration,
    pub random: Random,
}

impl Pace {
    /// Everything at once and on time.
    pub fn prompt() -> Pace {
        Pace {
            batch: Duration::ZERO,
            lateness_max: Duration::ZERO,
            random: Random::new(0),
        }
    }
}

#[derive(Debug)]
enum Incoming {
    FromHost(Frame),
    FromLink(LinkId, Frame),
}

/// Everything outside a host that it touches while it works.
#[derive(Debug)]
pub struct World<'a> {
    pub network: &'a mut Network,
    pub checkers: &'a mut Checkers,
    pub queue: &'a mut EventQueue<Event>,
}

#[derive(Debug)]
pub struct Host {
    pub station: StationId,
    pub engine: Engine,
    config: Config,
    links: Vec<HostLink>,
    /// What the link by a port is used for, whether or not it is in the line; those that are not named, by the defaults.
    link_settings: Vec<(PortId, LinkSettings)>,
    /// `None`: those with which an engine starts.
    classes: Option<Vec<Class>>,
    /// For when it asked to be woken, and when it will be.
    wakes_at: Option<(Instant, Instant)>,
    pace: Pace,
    inbox: Vec<Incoming>,
    /// `None`: its process runs.
    stop: Option<Stop>,
    lives: u64,
    /// How often its engine has let go what waited, for want of room.
    let_go: u64,
    next_link: u8,
    next_ticket: u64,
    /// `None`: no frame of its goes past the engine.
    kernel: Option<Kernel>,
    /// What the engines of earlier lives counted.
    past: EngineDrops,
    pub saboteur: Option<Saboteur>,
    /// What happens to coded trains that come.
    pub damage: Option<Damage>,
    pub events: Vec<EngineEvent>,
}

impl Host {
    /// More than any honest engine has to say at one instant: who says more never stops.
    const POLLS_MAX: usize = 1 << 20;

    /// `config.node_id` is that of the first life.
    pub fn new(station: StationId, config: Config, pace: Pace, now: Instant) -> Host {
        let engine = Engine::new(config.clone(), now);
        Host {
            station,
            engine,
            config,
            links: Vec::new(),
            link_settings: Vec::new(),
            classes: None,
            wakes_at: None,
            pace,
            inbox: Vec::new(),
            stop: None,
            lives: 1,
            let_go: 0,
            next_link: 0,
            next_ticket: 0,
            kernel: None,
            past: EngineDrops::default(),
            saboteur: None,
            damage: None,
            events: Vec::new(),
        }
    }

    pub fn past(&self) -> &EngineDrops {
        &self.past
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Before the start.
    pub fn give_classes(&mut self, classes: Vec<Class>) {
        self.classes = Some(classes);
    }

    /// Its frames are of other classes from now on.
    pub fn change_classes(&mut self, classes: Vec<Class>, now: Instant, world: &mut World<'_>) {
        self.hand_over_kept_back(now);
        let saboteur = self.saboteur.as_mut();
        if !saboteur.is_some_and(Saboteur::keeps_its_classes) {
            self.engine.set_classes(classes.clone(), now);
        }
        self.classes = Some(classes);
        self.tell_classes(world.checkers);
        self.pump(now, world);
    }

    fn tell_classes(&self, checkers: &mut Checkers) {
        let classes = self.classes.clone().unwrap_or_else(class::defaults);
        let times = (self.config.dfap.tick, self.pace.lateness_max);
        checkers.classes(self.station, classes, times);
    }

    pub fn start(&mut self, now: Instant, world: &mut World<'_>) {
        if let Some(classes) = &self.classes {
            self.engine.set_classes(classes.clone(), now);
        }
        world.checkers.begins(self.station, &self.config);
        self.tell_classes(world.checkers);
        for link in &self.links {
            let checkers = &mut world.checkers;
            checkers.link(self.station, link.port, link.state.carrier, now);
            self.engine.handle_link_state(link.id, link.state, now);
            let settings = self.settings_of(link.port);
            self.engine.handle_link_settings(link.id, settings, now);
        }
        self.tell_orders();
        self.pump(now, world);
    }

    /// The process died and comes again: a new node id, and nothing that the old one knew.
    /// Before the start.
    pub fn sabotage(&mut self, saboteur: Saboteur) {
        self.saboteur = Some(saboteur);
        self.engine = self.new_engine(Instant::ZERO);
    }

    pub(super) fn new_engine(&mut self, now: Instant) -> Engine {
        let mut config = self.config.clone();
        if let Some(saboteur) = &mut self.saboteur {
            saboteur.config(&mut config);
        }
        Engine::new(config, now)
    }

    pub fn restart(&mut self, now: Instant, world: &mut World<'_>) {
        self.lives += 1;
        self.past.add_life(&self.engine.snapshot(now));
        // What it held, what its peers held of it, and what they send until they notice: nobody
        // counts all of that, so a run with a restart has no accounts.
        self.past.ended_with = u64::MAX / 4;
        self.config.node_id = NodeId(mix(self.config.node_id.0 ^ self.lives).max(1));
        self.config.seed = self.config.node_id.0;
        self.engine = self.new_engine(now);
        self.wakes_at = None;
        self.let_go = 0;
        self.inbox.clear();
        self.end_stop(now, world);
        self.links
            .retain(|link| link.retiring_since.is_none() || link.returns);
        for link in &mut self.links {
            // The new socket has nothing queued, whatever of the old one still stands there.
            link.told_bytes = 0;
            link.retiring_since = None;
            // Its former life may have been stopped when this changed.
            link.state.carrier = world.network.carrier(link.port);
        }
        if let Some(kernel) = &mut self.kernel {
            kernel.restart();
        }
        if let Some(saboteur) = &mut self.saboteur {
            saboteur.restarted();
        }
        world.checkers.restarted(self.station, now);
        self.start(now, world);
    }

    pub fn send(&mut self, frame: &Frame, now: Instant, world: &mut World<'_>) {
        if self.kernel.is_some() && self.leaves_directly(frame, now, world) {
            return;
        }
        self.take_in(Incoming::FromHost(frame.clone()), now, world);
    }

    pub fn receive(&mut self, port: PortId, frame: Frame, now: Instant, world: &mut World<'_>) {
        let Some(link) = self.links.iter().find(|l| l.port == port) else {
            return world.checkers.lost(&frame); // nobody listens at this port any more
        };
        let (link, address) = (link.id, link.state.address);
        if self.arrives_directly((link, address), &frame, now, world) {
            return;
        }
        let is_for_us = frame.header().destination == address;
        if let Some(coding) = inside::coding(&frame.bytes).filter(|_| is_for_us)
            && !self.can_restore(coding, &frame)
        {
            let checkers = &mut world.checkers;
            checkers.sent_coded_all_the_same(self.station, coding, now);
        }
        let damage = self.damage.as_mut().filter(|_| is_for_us);
        let frame = match damage.and_then(|damage| damage.strike(&frame)) {
            Some(damaged) => {
                world.checkers.damaged(&frame);
                damaged
            }
            None => frame,
        };
        world.checkers.came(self.station, port, &frame);
        let frames = match &mut self.saboteur {
            Some(saboteur) => saboteur.incoming(frame),
            None => vec![frame],
        };
        for frame in frames {
            self.take_in(Incoming::FromLink(link, frame), now, world);
        }
    }

    /// Whether the host has what a coded train to it takes to be restored.
    fn can_restore(&self, coding: u8, frame: &Frame) -> bool {
        let own = self.config.dictionary.as_ref().and_then(Known::of);
        let may_be = |restored: inside::coded::Restored| restored.dictionary == own;
        self.config.coded_trains
            && (coding != inside::coded::ZSTANDARD
                // What was damaged on the way, nobody can.
                || own.is_some() && inside::restored(&frame.bytes).is_none_or(may_be))
    }

    fn take_in(&mut self, incoming: Incoming, now: Instant, world: &mut World<'_>) {
        if self.stop.is_some() {
            return self.wait_in_socket(incoming, world.checkers);
        }
        if self.pace.batch.is_zero() {
            self.tell_before_frames(now, world.network);
            self.handle(incoming, now, world.checkers);
            self.look_for_flows_that_left(now);
            return self.pump(now, world);
        }
        if self.inbox.is_empty() {
            let event = Event::HostBatch {
                station: self.station,
            };
            world.queue.push(now + self.pace.batch, event);
        }
        self.inbox.push(incoming);
    }

    /// Everything that came in since it last looked, then one pump for all of it.
    pub fn batch(&mut self, now: Instant, world: &mut World<'_>) {
        if self.stop.is_some() {
            return;
        }
        self.empty_inbox(now, world);
        self.pump(now, world);
    }

    fn empty_inbox(&mut self, now: Instant, world: &mut World<'_>) {
        self.tell_before_frames(now, world.network);
        for incoming in core::mem::take(&mut self.inbox) {
            match incoming {
                // Its socket went with the link, before it was read.
                Incoming::FromLink(link, frame) if self.links.iter().all(|l| l.id != link) => {
                    world.checkers.lost(&frame);
                }
                incoming => self.handle(incoming, now, world.checkers),
            }
        }
        self.look_for_flows_that_left(now);
    }

    /// Asks whether all that was sent has arrived: first it is handed to the engine.
    pub fn request_drain(&mut self, now: Instant, world: &mut World<'_>) {
        self.empty_inbox(now, world);
        self.hand_over_kept_back(now);
        self.next_ticket += 1;
        let ticket = self.next_ticket;
        self.engine.request_drain(ticket, now);
        world.checkers.drain_asked(self.station, ticket);
        if self.saboteur.as_mut().is_some_and(Saboteur::drains_early) {
            world.checkers.drain_happened(self.station, ticket);
        }
        self.pump(now, world);
    }

    fn handle(&mut self, incoming: Incoming, now: Instant, checkers: &mut Checkers) {
        match incoming {
            Incoming::FromHost(frame) => {
                let mtu = self.shortest_home(&frame, now);
                let what = checkers.taken_in(self.station, (&frame, mtu), now);
                let frames = match (&mut self.saboteur, what) {
                    (Some(saboteur), Some(what)) => saboteur.from_host(frame, what),
                    _ => vec![frame],
                };
                for frame in frames {
                    self.hand_over(&frame, now);
                }
            }
            Incoming::FromLink(link, frame) => {
                let buffer = self.engine.buffers().copy_of(&frame.bytes);
                self.engine
                    .handle_link_frame(link, buffer, frame.offload, now);
                self.look_what_was_let_go(now, checkers);
            }
        }
    }

    fn look_what_was_let_go(&mut self, now: Instant, checkers: &mut Checkers) {
        let times = self.engine.times_let_go_for_room();
        if std::mem::replace(&mut self.let_go, times) != times {
            checkers.let_go(self.station, now);
        }
    }

    fn hand_over_kept_back(&mut self, now: Instant) {
        for frame in self
            .saboteur
            .iter_mut()
            .flat_map(Saboteur::kept_back)
            .collect::<Vec<_>>()
        {
            self.hand_over(&frame, now);
        }
    }

    fn hand_over(&mut self, frame: &Frame, now: Instant) {
        let buffer = self.engine.buffers().copy_of(&frame.bytes);
        self.engine.handle_host_frame(buffer, frame.offload, now);
    }

    /// The local queue has shrunk: wakes the engine when it crosses below what it wants there.
    pub fn drained(&mut self, port: PortId, now: Instant, world: &mut World<'_>) {
        let Some(link) = self.links.iter().find(|l| l.port == port) else {
            return;
        };
        if self.stop.is_some() {
            return;
        }
        let limit = self.engine.link_queue_limit(link.id);
        let queued = world.network.local_queue_bytes(port);
        if queued < limit && link.told_bytes >= limit {
            self.pump(now, world);
        }
    }

    /// Its timer went off; one that was set for another time says nothing.
    pub fn timer(&mut self, set_for: Instant, now: Instant, world: &mut World<'_>) {
        if self.stop.is_some() || self.wakes_at.is_none_or(|(_, at)| at != set_for) {
            return;
        }
        self.wakes_at = None;
        self.engine.handle_timeout(now);
        self.pump(now, world);
    }

    /// What follows every call: tell the queues, then deliveries, transmits, events, timeout.
    fn pump(&mut self, now: Instant, world: &mut World<'_>) {
        world.checkers.called(self.station, now);
        self.tell_queues(now, world.network);
        let settled = self.turn(now, world);
        self.plan_kernel_turn(now, world);
        let wanted = self.engine.poll_timeout();
        let wanted = match &mut self.saboteur {
            Some(saboteur) => saboteur.timeout(wanted, now),
            None => wanted,
        };
        let wanted = wanted.map(|at| at.max(now));
        if wanted != self.wakes_at.map(|(wanted, _)| wanted) {
            self.wakes_at = wanted.map(|wanted| {
                let late = self
                    .pace
                    .random
                    .duration(Duration::ZERO, self.pace.lateness_max);
                let event = Event::HostTimer {
                    station: self.station,
                    set_for: wanted + late,
                };
                world.queue.push(wanted + late, event);
                (wanted, wanted + late)
            });
        }
        let waiting = self.has_frames_waiting();
        world.checkers.waits(self.station, waiting, now);
        if waiting && settled && !world.checkers.only_hand_on() {
            self.show_what_waits(now, world);
        } else {
            world.checkers.nothing_waits(self.station);
        }
        if let Some(snapshot) = world.checkers.wants_snapshot().then(|| self.snapshot(now)) {
            world
                .checkers
                .looked_at(self.station, &snapshot, &self.config.limits, now);
        }
    }

    /// Deliveries, transmits, events: until no event asks for more of the first two. Whether nothing is to be
    /// polled again.
    fn turn(&mut self, now: Instant, world: &mut World<'_>) -> bool {
        let mut settled = true;
        for turns in 0.. {
            self.deliver(now, world);
            self.transmit(now, world);
            let told = self.tell_queues(now, world.network);
            // What it is told now may be what it waited for.
            let mut was_asked =
                told && self.has_frames_waiting() && self.has_idle_link(world.network);
            while let Some(event) = self.engine.poll_event() {
                settled &= !matches!(event, EngineEvent::LinkRetired { .. });
                was_asked |= matches!(event, EngineEvent::DirectAsked { .. });
                self.on_event(event, now, world);
            }
            if !was_asked {
                break;
            }
            if turns == Self::POLLS_MAX {
                world.checkers.endless(self.station, "poll_event", now);
                break;
            }
        }
        settled
    }

    fn on_event(&mut self, event: EngineEvent, now: Instant, world: &mut World<'_>) {
        match event {
            EngineEvent::DirectAsked {
                link,
                direct_mark,
                address,
            } => self.tell_direct_counts((address, link), direct_mark, now),
            EngineEvent::PathsChanged => self.publish_paths(now),
            EngineEvent::Drained { ticket } => self.tell_drained(ticket, now, world),
            EngineEvent::LinkRetired { link } => self.let_go(link, now, world),
            EngineEvent::HomeMoved { link } => self.announce(link, now, world),
            _ => {}
        }
        self.events.push(event);
    }

    fn has_frames_waiting(&self) -> bool {
        let holds = |saboteur: &Saboteur| saboteur.holds_frames();
        self.engine.has_frames_waiting() || self.saboteur.as_ref().is_some_and(holds)
    }

    fn show_what_waits(&self, now: Instant, world: &mut World<'_>) {
        // Who wants to be called again at once is looked at then.
        if self.engine.poll_timeout().is_some_and(|at| at <= now) {
            return world.checkers.nothing_waits(self.station);
        }
        let lines = self.lines(world.network);
        // A snapshot costs more than the work of most events, and no link has room.
        if lines.iter().all(|line| line.local_queue_bytes > 0) {
            return world.checkers.nothing_waits(self.station);
        }
        let snapshot = self.snapshot(now);
        let checkers = &mut world.checkers;
        if self.waits_for_copies(&snapshot, checkers) {
            return checkers.nothing_waits(self.station);
        }
        checkers.still_waits(self.station, &snapshot, &lines, now);
    }

    fn lines(&self, network: &Network) -> Vec<Line> {
        let line = |link: &HostLink| Line {
            link: link.id,
            local_queue_bytes: network.local_queue_bytes(link.port),
            mtu: link.state.mtu,
        };
        self.links.iter().map(line).collect()
    }

    /// Without a peer that is up, an engine cannot tell more than that its queues are empty.
    fn tell_drained(&mut self, ticket: u64, now: Instant, world: &mut World<'_>) {
        if let Some(kernel) = &mut self.kernel {
            kernel.on_drained(ticket);
        }
        if self.engine.snapshot(now).peers.iter().any(|peer| peer.up) {
            world.checkers.drain_happened(self.station, ticket);
        }
    }

    /// Frames that wait only while a queue stands need to know of it when they come.
    fn tell_before_frames(&mut self, now: Instant, network: &Network) {
        if self.engine.asks_for_backlog() {
            self.tell_queues(now, network);
        }
    }

    fn has_idle_link(&self, network: &Network) -> bool {
        let mut links = self.links.iter();
        links.any(|link| network.local_queue_bytes(link.port) == 0)
    }

    /// Whether there was anything to tell.
    fn tell_queues(&mut self, now: Instant, network: &Network) -> bool {
        let mut told_any = false;
        for link in &mut self.links {
            let queued = network.local_queue_bytes(link.port);
            if queued != link.told_bytes || link.given {
                link.told_bytes = queued;
                link.given = false;
                link.padding = 0;
                let told = match &mut self.saboteur {
                    Some(saboteur) => saboteur.local_queue(link.id, queued),
                    None => queued,
                };
                self.engine.handle_link_queue(link.id, told, now);
                told_any = true;
            }
        }
        told_any
    }

    fn deliver(&mut self, now: Instant, world: &mut World<'_>) {
        for polls in 0.. {
            if polls == Self::POLLS_MAX {
                world.checkers.endless(self.station, "poll_delivery", now);
                return;
            }
            let Some(delivery) = self.engine.poll_delivery(now) else {
                break;
            };
            let bytes = [delivery.head, delivery.body].concat();
            let frame = Frame {
                bytes,
                offload: delivery.offload,
            };
            match &mut self.saboteur {
                None => world.checkers.delivered(self.station, &frame, now),
                Some(saboteur) => {
                    for frame in saboteur.delivery(frame) {
                        world.checkers.delivered(self.station, &frame, now);
                    }
                }
            }
        }
        for frame in self.saboteur.iter_mut().flat_map(Saboteur::smuggled) {
            world.checkers.delivered(self.station, &frame, now);
        }
    }

    fn transmit(&mut self, now: Instant, world: &mut World<'_>) {
        self.look_for_starved(world.checkers);
        self.transmit_all(now, world);
        self.look_for_starved(world.checkers);
    }

    fn look_for_starved(&self, checkers: &mut Checkers) {
        checkers.look_for_starved(self.station, |peer| {
            let held_back = self.saboteur.as_ref().map_or(0, Saboteur::held_back);
            self.engine.frames_waiting_for(peer) + held_back
        });
    }

    fn transmit_all(&mut self, now: Instant, world: &mut World<'_>) {
        for polls in 0.. {
            if polls == Self::POLLS_MAX {
                world.checkers.endless(self.station, "poll_transmit", now);
                return;
            }
            let Some(transmit) = self.engine.poll_transmit(now) else {
                break;
            };
            let id = transmit.link;
            let frame = Frame {
                bytes: transmit.frame.to_vec(),
                offload: transmit.offload,
            };
            let is_alone = self.links.len() == 1;
            let mut links = self.links.iter_mut();
            let link = links.find(|l| l.id == id).expect("a link that we have");
            link.given = true;
            let port = link.port;
            let checkers = &mut world.checkers;
            let carries = checkers.transmitted(self.station, port, &frame, now);
            // What goes past the engine stands there as well, and it is told late.
            let bound = self.config.limits.sand_delay_max;
            if let Some(bound) = bound.filter(|_| self.kernel.is_none())
                && (carries || Some(frame.header().source) == link.state.mark)
            {
                let standing = world
                    .network
                    .local_queue_bytes(port)
                    .saturating_sub(link.padding);
                let said = self.engine.link_sand(id, now);
                let put = (standing, is_alone, &frame);
                checkers.put_on_link(self.station, put, (bound, &said), now);
            }
            link.padding += ethernet::padding(frame.bytes.len());
            let frames = match &mut self.saboteur {
                Some(saboteur) => saboteur.outgoing(frame),
                None => vec![frame],
            };
            for frame in frames {
                match world.network.transmit(port, frame, now, world.queue) {
                    Ok(()) if carries => world.checkers.train_left(self.station, port, now),
                    Ok(()) => {}
                    Err(Refused::QueueFull) => self.engine.handle_transmit_refused(id, now),
                    Err(mistake) => world.checkers.refused(self.station, mistake, now),
                }
            }
        }
    }

    pub fn snapshot(&self, now: Instant) -> Snapshot {
        let mut snapshot = self.engine.snapshot(now);
        if let Some(saboteur) = &self.saboteur {
            saboteur.snapshot(&mut snapshot);
        }
        snapshot
    }
}
