//! One policy, over one kind of wire: what becomes of the frames.

use packtrain_proto::class::Action;
use packtrain_proto::class::{Class, KernelPath};
use packtrain_proto::config::{Balance, Config, NodeId};
use packtrain_proto::engine::Event as EngineEvent;
use packtrain_proto::mac_map::{MacHashBuilder, MacMap};
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::ethernet::{HEADER_LEN, MacAddr, ether_type};

use super::conversations::Conversations;
use super::direct::{Direct, Redirected};
use super::flight::{Entry, EntryId, Flight};
use super::frame::{Captured, fingerprint};
use super::histogram::{Differences, Histogram};
use super::intake::Batch;
use super::node::{Item, Node, NodeSettings, node_of};
use super::results::{ClassResults, Results, Sent, Share, WireLoad};
use super::timeline::Timeline;
use super::wire::{Cost, Line, WireSettings};

mod conclude;

/// Longer pauses of the capture count as this long: nothing happens in the rest but hellos.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// How long hosts may take to find each other before the first frame.
const GREETING_MAX: Duration = Duration::from_secs(30);
/// How long what waits at the end may take.
const END_MAX: Duration = Duration::from_secs(600);

/// What is replayed, and over what.
#[derive(Clone, Debug)]
pub struct Setup {
    pub wire: WireSettings,
    /// Cables that each host has, each as the wire says. Plainly, one of them is used.
    pub links: usize,
    pub balance: Balance,
    /// What no class matches.
    pub rest: Action,
    pub classes: Vec<Class>,
    /// Frames may go past the engine where nothing is to be gained by it.
    pub direct: bool,
    /// Hosts that run packtrain; those that come later are without it.
    pub hosts_max: usize,
    /// Only what this one sends.
    pub only: Option<MacAddr>,
}

#[derive(Debug)]
pub struct Replay {
    setup: Setup,
    settings: NodeSettings,
    nodes: Vec<Node>,
    /// Of the same hosts: their frames that are under way, and their cables without packtrain.
    flights: Vec<Flight>,
    plain: Vec<Line>,
    by_address: MacMap<usize>,
    due: Vec<Instant>,
    /// Which way the frames of each class may take; the rest last.
    paths: Vec<KernelPath>,
    now: Instant,
    /// Virtual time of the capture's zero; pauses that were left out move it back.
    origin: Option<Instant>,
    /// When the first frame was sent, and the last one so far, by the capture.
    first_at: Option<Instant>,
    last_at: Instant,
    counts: Counts,
    conversations: Conversations,
    /// Frames that a host was given since they were charged last.
    delivered: Vec<Entry>,
}

#[derive(Debug, Default)]
struct Counts {
    all: Share,
    not_replayed: u64,
    plain_delay: Histogram,
    delay: Histogram,
    added: Differences,
    sent: Sent,
    refused: u64,
    classes: Vec<(Share, Differences)>,
    pause_left_out: Duration,
    timeline: Timeline,
}

impl Replay {
    /// `hosts`: those that have found each other before the first frame.
    pub fn new(setup: Setup, hosts: &[MacAddr]) -> Replay {
        let mut config = Config::new(NodeId(1), MacAddr::default());
        config.balance = setup.balance;
        config.rest = setup.rest;
        let settings = NodeSettings {
            wire: setup.wire,
            links: setup.links,
            direct: setup.direct,
            classes: setup.classes.clone(),
            config,
        };
        let actions = setup.classes.iter().map(|class| class.action);
        let actions = actions.chain([setup.rest]);
        let paths: Vec<KernelPath> = actions.map(|action| action.kernel_path()).collect();
        let counts = Counts {
            classes: vec![Default::default(); paths.len()],
            ..Counts::default()
        };
        let mut replay = Replay {
            settings,
            nodes: Vec::new(),
            flights: Vec::new(),
            plain: Vec::new(),
            by_address: MacMap::with_hasher(MacHashBuilder::new(1)),
            due: Vec::new(),
            paths,
            now: Instant::ZERO,
            origin: None,
            first_at: None,
            last_at: Instant::ZERO,
            counts,
            conversations: Conversations::default(),
            delivered: Vec::new(),
            setup,
        };
        for &host in hosts {
            replay.host(host);
        }
        replay.let_them_meet();
        replay
    }

    /// The host of this address, which may have to come first. `None`: it runs no packtrain.
    fn host(&mut self, address: MacAddr) -> Option<usize> {
        if let Some(&known) = self.by_address.get(&address) {
            return Some(known);
        }
        let number = self.nodes.len();
        if number >= self.setup.hosts_max || address.is_group() || address.is_zero() {
            return None;
        }
        let mut node = Node::new(number, address, &self.settings, self.now);
        if self.origin.is_some() {
            node.before = Some(node.engine.snapshot(self.now));
        }
        self.nodes.push(node);
        self.flights.push(Flight::default());
        self.plain.push(Line::new(self.setup.wire));
        self.due.push(Instant::ZERO);
        self.by_address.insert(address, number);
        self.pump(number);
        Some(number)
    }

    /// Until each knows all others, and whether the way past the engines is open.
    fn let_them_meet(&mut self) {
        let steps = GREETING_MAX.as_millis() as u64 / 500;
        let others = self.nodes.len().saturating_sub(1);
        for _ in 0..steps {
            self.advance(self.now + Duration::from_millis(500));
            let now = self.now;
            let knows_all = |node: &Node| {
                let peers = node.engine.snapshot(now).peers;
                peers.iter().filter(|peer| peer.up).count() >= others
            };
            let has_ways = |node: &Node| {
                !self.setup.direct
                    || self.setup.links > 1
                    || node
                        .engine
                        .direct_destinations()
                        .iter()
                        .filter(|way| way.open_to != packtrain_proto::engine::OpenTo::Nobody)
                        .count()
                        >= others
            };
            if self
                .nodes
                .iter()
                .all(|node| knows_all(node) && has_ways(node))
            {
                break;
            }
        }
        self.origin = Some(self.now);
        self.begin_counting();
    }

    /// What engines have said to each other until now is no cost of these frames.
    fn begin_counting(&mut self) {
        self.counts.sent = Sent::default();
        self.counts.refused = 0;
        self.counts.timeline = Timeline::from(self.now);
        for node in &mut self.nodes {
            node.before = Some(node.engine.snapshot(self.now));
            node.uncharged = WireLoad::default();
        }
    }

    pub fn batch(&mut self, batch: &Batch) {
        for frame in batch.frames() {
            self.frame(frame, batch.bytes(frame));
        }
    }

    /// The next frame of the capture. Times never go back.
    pub fn frame(&mut self, frame: &Captured, bytes: &[u8]) {
        let at = frame.at.max(self.last_at);
        let origin = self.origin.expect("they have met");
        self.leave_out_pause(at);
        self.last_at = at;
        let now = origin + at.since(Instant::ZERO) - self.counts.pause_left_out;
        self.advance(now);
        if self.first_at.is_none() {
            self.first_at = Some(at);
            self.begin_counting();
        }
        let is_of_other_side = self.setup.only.is_some_and(|only| only != frame.source);
        let host = self.host(frame.source).filter(|_| !is_of_other_side);
        // Who is only spoken to runs packtrain too.
        self.host(frame.destination);
        let Some(host) = host else {
            self.counts.not_replayed += 1;
            return;
        };
        self.send(host, frame, bytes);
    }

    fn leave_out_pause(&mut self, at: Instant) {
        let pause = at.since(self.last_at);
        if pause <= PAUSE_MAX {
            return;
        }
        self.advance(self.now + PAUSE_MAX);
        let is_idle = self.flights.iter().all(|flight| flight.under_way == 0);
        let plain_free = self.plain.iter().map(Line::free_at).max();
        if is_idle && plain_free.is_none_or(|free| free <= self.now) {
            self.counts.pause_left_out += pause - PAUSE_MAX;
        }
    }

    fn send(&mut self, host: usize, frame: &Captured, bytes: &[u8]) {
        let now = self.now;
        let plain = self.plain[host].offer(&frame.cost, now);
        let plain_delay = plain.map(|at| at.since(now));
        if plain.is_some() {
            let leaves = self.plain[host].free_at();
            self.counts.timeline.plain(leaves, frame.cost.frames);
        }
        let slot = self.conversations.on_sent(frame);
        let (share, _) = &mut self.counts.classes[usize::from(frame.class)];
        let shares = [&mut self.counts.all, share];
        for share in shares {
            share.on_sent(frame);
            share.plain_dropped += u64::from(plain.is_none());
        }
        match plain_delay {
            Some(delay) => self.counts.plain_delay.record(delay.as_nanos() as u64),
            None => self.conversations.share(slot).plain_dropped += 1,
        }
        let entry = Entry::new(now, plain_delay, frame.cost, frame.class, slot);
        let path = self.paths[usize::from(frame.class)];
        let direct = self.nodes[host].direct.as_mut();
        if let Some(redirected) = direct.and_then(|direct| direct.leave(frame, path)) {
            return self.send_directly(host, frame, entry, redirected);
        }
        let mut buffer = self.nodes[host].engine.buffers().copy_of(bytes);
        let (counts, conversations) = (&mut self.counts, &mut self.conversations);
        let lost = |entry: &Entry| counts.on_lost(entry, conversations);
        self.flights[host].add(entry, frame.fingerprint, &mut buffer, lost);
        let node = &mut self.nodes[host];
        if node.engine.asks_for_backlog() {
            node.tell_queues(now);
        }
        node.engine.handle_host_frame(buffer, frame.offload, now);
        if let Some(direct) = &mut node.direct {
            direct.look_for_flows_that_left(&mut node.engine, now);
        }
        self.pump_sent(host);
    }

    /// … past the engine.
    fn send_directly(
        &mut self,
        host: usize,
        frame: &Captured,
        entry: Entry,
        redirected: Redirected,
    ) {
        let now = self.now;
        let node = &mut self.nodes[host];
        let mut links = node.links.iter_mut();
        let link = links.find(|link| link.id == redirected.link);
        let link = link.expect("the engine knows no other");
        let to = node_of(redirected.remote_address).expect("hosts have no other addresses");
        let queued = link.line.queued_bytes(now);
        if let Some(direct) = &mut node.direct {
            direct.watch(link.id, frame.len, queued, now);
        }
        match link.line.offer(&frame.cost, now) {
            Some(at) => {
                let (counts, conversations) = (&mut self.counts, &mut self.conversations);
                let lost = |entry: &Entry| counts.on_lost(entry, conversations);
                let entry = self.flights[host].add_numbered(entry, lost);
                let cost = frame.cost.load();
                self.counts.sent.direct += cost;
                let leaves = link.line.free_at();
                self.counts.timeline.with(leaves, frame.cost.frames);
                let outer_source = redirected.outer_source;
                let item = Item::Direct {
                    entry,
                    to,
                    outer_source,
                    cost,
                };
                link.under_way.push_back((at, item));
            }
            None => {
                self.counts.refused += 1;
                self.counts.on_lost(&entry, &mut self.conversations);
            }
        }
        if let Some(direct) = &mut node.direct {
            direct.plan_turn(now);
        }
        self.due[host] = node.due();
    }

    /// Everything that happens up to `until`, that moment with it.
    fn advance(&mut self, until: Instant) {
        while let Some((host, at)) = self.next_due().filter(|(_, at)| *at <= until) {
            self.now = self.now.max(at);
            self.happen(host);
        }
        self.now = self.now.max(until);
    }

    fn next_due(&self) -> Option<(usize, Instant)> {
        let due = self.due.iter().copied().enumerate();
        due.min_by_key(|(_, at)| *at)
    }

    /// What is due of this host now.
    fn happen(&mut self, host: usize) {
        let now = self.now;
        for link in 0..self.nodes[host].links.len() {
            let arrivals = &mut self.nodes[host].links[link].under_way;
            if arrivals.front().is_none_or(|(at, _)| *at > now) {
                continue;
            }
            let (_, item) = arrivals.pop_front().expect("looked at above");
            self.arrive(host, link, item);
            // One after the other, for who is given something may answer by then.
            self.due[host] = self.nodes[host].due();
            return;
        }
        let node = &mut self.nodes[host];
        if node.timer.is_some_and(|at| at <= now) {
            node.engine.handle_timeout(now);
        }
        if let Some(direct) = &mut node.direct
            && direct.turn_at.is_some_and(|at| at <= now)
        {
            direct.turn(&mut node.engine, now);
        }
        self.pump(host);
    }

    fn arrive(&mut self, from: usize, link: usize, item: Item) {
        let now = self.now;
        match item {
            Item::Message {
                to,
                buffer,
                offload,
                cost,
            } => {
                let node = &mut self.nodes[to];
                node.uncharged += cost;
                let id = node.links[link].id;
                node.engine.handle_link_frame(id, buffer, offload, now);
                self.pump(to);
            }
            Item::Plain { entry, cost } => self.came(from, entry, cost),
            Item::Direct {
                entry,
                to,
                outer_source,
                cost,
            } => {
                let node = &mut self.nodes[to];
                let id = node.links[link].id;
                if let Some(direct) = &mut node.direct {
                    direct.arrive(id, outer_source, cost.frames as u64);
                }
                self.came(from, entry, cost);
            }
        }
    }

    /// A frame has arrived by itself.
    fn came(&mut self, from: usize, id: EntryId, cost: WireLoad) {
        if let Some(entry) = self.flights[from].take(id) {
            self.counts
                .on_delivered(&entry, cost, self.now, &mut self.conversations);
        }
    }

    /// What follows every call of an engine: queues told, deliveries, transmits, events, the timeout.
    fn pump(&mut self, host: usize) {
        self.nodes[host].tell_queues(self.now);
        loop {
            self.deliver(host);
            self.transmit(host);
            if !self.events(host) {
                break;
            }
        }
        self.plan(host);
    }

    /// … with a frame of the host, which makes no deliveries.
    fn pump_sent(&mut self, host: usize) {
        self.nodes[host].tell_queues(self.now);
        self.transmit(host);
        match self.events(host) {
            true => self.pump(host),
            false => self.plan(host),
        }
    }

    fn plan(&mut self, host: usize) {
        let node = &mut self.nodes[host];
        node.tell_queues(self.now);
        node.plan(self.now);
        self.due[host] = node.due();
    }

    fn deliver(&mut self, host: usize) {
        let now = self.now;
        let node = &mut self.nodes[host];
        while let Some(delivery) = node.engine.poll_delivery(now) {
            let source = MacAddr::from_slice(&delivery.head[6..12]);
            let Some(&from) = self.by_address.get(&source) else {
                continue;
            };
            let ether_type = u16::from_be_bytes([delivery.head[12], delivery.head[13]]);
            let flight = &mut self.flights[from];
            let found = flight.find(fingerprint(ether_type, delivery.body));
            self.delivered.extend(found.and_then(|id| flight.take(id)));
        }
        if self.delivered.is_empty() {
            return;
        }
        // They share what has come since frames were given last: mostly one train, that they came in.
        let cost = std::mem::take(&mut node.uncharged);
        let bytes: usize = self.delivered.iter().map(|entry| entry.cost.len).sum();
        let count = self.delivered.len() as f64;
        for entry in self.delivered.drain(..) {
            let cost = WireLoad {
                frames: cost.frames / count,
                bytes: cost.bytes * entry.cost.len as f64 / bytes as f64,
            };
            self.counts
                .on_delivered(&entry, cost, now, &mut self.conversations);
        }
    }

    fn transmit(&mut self, host: usize) {
        let now = self.now;
        loop {
            let (before, rest) = self.nodes.split_at_mut(host);
            let (node, after) = rest.split_first_mut().expect("it is there");
            let Some(transmit) = node.engine.poll_transmit(now) else {
                return;
            };
            let (frame, offload, link) = (
                transmit.frame,
                transmit.offload,
                usize::from(transmit.link.0),
            );
            let out = &mut node.links[link];
            let cost = Cost::of(frame.len(), &offload);
            out.given = true;
            let Some(at) = out.line.offer(&cost, now) else {
                let id = transmit.link;
                self.counts.refused += 1;
                node.engine.handle_transmit_refused(id, now);
                continue;
            };
            self.counts.timeline.with(out.line.free_at(), cost.frames);
            let cost = cost.load();
            let destination = MacAddr::from_slice(&frame[..6]);
            let kind = Kind::of(frame);
            *kind.counter(&mut self.counts.sent) += cost;
            let mut under_way = |to: usize, peer: &mut Node, cost| {
                let buffer = peer.engine.buffers().copy_of(frame);
                out.under_way.push_back((
                    at,
                    Item::Message {
                        to,
                        buffer,
                        offload,
                        cost,
                    },
                ));
            };
            let charged = match kind {
                Kind::Train | Kind::Marked => cost,
                _ => WireLoad::default(),
            };
            if kind == Kind::Plain {
                let found = self.flights[host].find(fingerprint(
                    u16::from_be_bytes([frame[12], frame[13]]),
                    &frame[HEADER_LEN..],
                ));
                // Else it is one more copy of one that goes out by two cables.
                if let Some(entry) = found {
                    out.under_way.push_back((at, Item::Plain { entry, cost }));
                }
            } else if destination.is_group() {
                let others = before.iter_mut().enumerate();
                let later = after.iter_mut().enumerate();
                let others = others.chain(later.map(|(at, node)| (host + 1 + at, node)));
                others.for_each(|(to, peer)| under_way(to, peer, charged));
            } else if let Some(to) = node_of(destination) {
                match to {
                    to if to < host => under_way(to, &mut before[to], charged),
                    to if to > host => under_way(to, &mut after[to - host - 1], charged),
                    _ => {}
                }
            }
        }
    }

    /// Whether there may be more to deliver or to send.
    fn events(&mut self, host: usize) -> bool {
        let now = self.now;
        let node = &mut self.nodes[host];
        let mut was_asked = false;
        while let Some(event) = node.engine.poll_event() {
            let Some(direct) = &mut node.direct else {
                continue;
            };
            match event {
                EngineEvent::DirectAsked {
                    link,
                    direct_mark,
                    address,
                } => {
                    direct.answer(&mut node.engine, (address, link), direct_mark, now);
                    was_asked = true;
                }
                EngineEvent::PathsChanged => Direct::publish(direct, &mut node.engine, now),
                EngineEvent::Drained { ticket } => direct.on_drained(ticket),
                _ => {}
            }
        }
        was_asked
    }
}

impl Counts {
    fn on_delivered(
        &mut self,
        entry: &Entry,
        cost: WireLoad,
        now: Instant,
        conversations: &mut Conversations,
    ) {
        let delay = now.since(entry.sent_at);
        self.delay.record(delay.as_nanos() as u64);
        let compared = |plain: Duration| delay.as_nanos() as i64 - plain.as_nanos() as i64;
        let added = entry.plain_delay.map(compared);
        let (share, differences) = &mut self.classes[usize::from(entry.class)];
        if let Some(added) = added {
            self.added.record(added);
            differences.record(added);
        }
        let conversation = conversations.share(entry.conversation);
        for share in [&mut self.all, share, conversation] {
            share.on_delivered(entry, cost, added);
        }
    }

    fn on_lost(&mut self, entry: &Entry, conversations: &mut Conversations) {
        let (share, _) = &mut self.classes[usize::from(entry.class)];
        let conversation = conversations.share(entry.conversation);
        for share in [&mut self.all, share, conversation] {
            share.dropped += 1;
        }
    }
}

/// What an engine sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Train,
    /// A train that carries nothing.
    Acknowledgement,
    Hello,
    Marked,
    Plain,
}

impl Kind {
    fn of(frame: &[u8]) -> Kind {
        use packtrain_proto::wire::train;
        let word = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
        if word(12) != ether_type::PACKTRAIN {
            let destination = MacAddr::from_slice(&frame[..6]);
            return match node_of(destination) {
                Some(_) => Kind::Marked,
                None => Kind::Plain,
            };
        }
        // The type is in the lower half of the first byte; behind the header stand options of so many bytes.
        const OPTIONS_LEN: usize = HEADER_LEN + 6;
        if frame[HEADER_LEN] & 0x0f != train::TYPE_TRAIN {
            return Kind::Hello;
        }
        let empty = HEADER_LEN + train::HEADER_LEN + usize::from(word(OPTIONS_LEN));
        match packtrain_proto::wire::subframe::has_any(&frame[empty.min(frame.len())..]) {
            true => Kind::Train,
            false => Kind::Acknowledgement,
        }
    }

    fn counter(self, sent: &mut Sent) -> &mut WireLoad {
        match self {
            Kind::Train => &mut sent.trains,
            Kind::Acknowledgement => &mut sent.acknowledgements,
            Kind::Hello => &mut sent.hellos,
            Kind::Marked => &mut sent.marked,
            Kind::Plain => &mut sent.plain,
        }
    }
}
