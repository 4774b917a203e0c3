//! One policy, over one kind of wire: what becomes of the frames. It counts nothing of a frame's: it writes a journal.

use packtrain_proto::class::{Action, Class, KernelPath, defaults};
use packtrain_proto::config::{Balance, Config, NodeId};
use packtrain_proto::engine::Event as EngineEvent;
use packtrain_proto::mac_map::{MacHashBuilder, MacMap};
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::ethernet::{HEADER_LEN, MacAddr, ether_type};

use super::direct::{Direct, Redirected};
use super::engines::Engines;
use super::fingerprints::fingerprint;
use super::frame::Captured;
use super::intake::Batch;
use super::journal::{Journal, Number, Record};
use super::node::{Item, Node, NodeSettings, node_of};
use super::results::{Sent, WireLoad};
use super::timeline::Timeline;
use super::wire::{Cost, WireSettings};

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

impl Setup {
    /// A line as it is where nobody asks for anything else, over one such wire.
    pub fn over(wire: WireSettings) -> Setup {
        Setup {
            wire,
            links: 1,
            balance: Balance::default(),
            rest: Action::default(),
            classes: defaults(),
            direct: true,
            hosts_max: 16,
            only: None,
        }
    }
}

#[derive(Debug)]
pub struct Replay {
    setup: Setup,
    settings: NodeSettings,
    nodes: Vec<Node>,
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
    journal: Journal,
}

#[derive(Debug, Default)]
struct Counts {
    sent: Sent,
    refused: u64,
    pause_left_out: Duration,
    timeline: Timeline,
}

/// What is known at the end of a replay, but for its frames.
#[derive(Debug)]
pub struct Ended {
    pub(super) hosts: usize,
    pub(super) links: usize,
    pub(super) duration: Duration,
    pub(super) sent: Sent,
    pub(super) refused: u64,
    pub(super) engines: Engines,
    pub(super) pause_left_out: Duration,
    pub(super) timeline: Timeline,
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
        let mut replay = Replay {
            settings,
            nodes: Vec::new(),
            by_address: MacMap::with_hasher(MacHashBuilder::new(1)),
            due: Vec::new(),
            paths,
            now: Instant::ZERO,
            origin: None,
            first_at: None,
            last_at: Instant::ZERO,
            counts: Counts::default(),
            journal: Journal::default(),
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
        self.journal.write(Record::Begins { at: self.now });
    }

    /// What became of its frames and of those before, as far as it is known by then.
    pub fn batch(&mut self, batch: &Batch) -> Journal {
        for (number, frame) in (0..).zip(batch.frames()) {
            self.frame(number, frame, batch.bytes(frame));
        }
        self.take_journal()
    }

    fn take_journal(&mut self) -> Journal {
        let len = self.journal.0.len();
        std::mem::replace(&mut self.journal, Journal(Vec::with_capacity(len)))
    }

    /// Lets everything arrive that is under way.
    pub fn finish(mut self) -> (Journal, Ended) {
        let end = self.now + END_MAX;
        while self.now < end && !self.nodes.iter().all(Node::is_idle) {
            self.advance(self.now + Duration::from_millis(10));
        }
        let mut engines = Engines::default();
        for node in &self.nodes {
            let before = node
                .before
                .as_ref()
                .expect("taken when it came, or when all had met");
            engines.add(&node.engine.snapshot(self.now), before);
        }
        let ended = Ended {
            hosts: self.nodes.len(),
            links: self.setup.links,
            duration: self.last_at.since(self.first_at.unwrap_or(self.last_at)),
            sent: self.counts.sent,
            refused: self.counts.refused,
            engines,
            pause_left_out: self.counts.pause_left_out,
            timeline: self.counts.timeline,
        };
        (self.journal, ended)
    }

    /// The next frame of the capture. Times never go back.
    fn frame(&mut self, number: u32, frame: &Captured, bytes: &[u8]) {
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
            self.journal.write(Record::NotReplayed);
            return;
        };
        self.send(host, number, frame, bytes);
    }

    fn leave_out_pause(&mut self, at: Instant) {
        let pause = at.since(self.last_at);
        if pause <= PAUSE_MAX {
            return;
        }
        self.advance(self.now + PAUSE_MAX);
        if self.nodes.iter().all(Node::is_idle) {
            self.counts.pause_left_out += pause - PAUSE_MAX;
        }
    }

    fn send(&mut self, host: usize, number: u32, frame: &Captured, bytes: &[u8]) {
        let now = self.now;
        let path = self.paths[usize::from(frame.class)];
        let node = &mut self.nodes[host];
        let direct = node.direct.as_mut();
        let redirected = direct.and_then(|direct| direct.leave(frame, path));
        self.journal.write(Record::Sent {
            frame: number,
            host: host as u32,
            at: now,
            directly: redirected.is_some(),
        });
        let number = node.sent_frames;
        node.sent_frames += 1;
        if let Some(redirected) = redirected {
            return self.send_directly(host, number, frame, redirected);
        }
        let buffer = node.engine.buffers().copy_of(bytes);
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
        number: Number,
        frame: &Captured,
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
                self.counts.sent.direct += frame.cost.load();
                let leaves = link.line.free_at();
                self.counts.timeline.with(leaves, frame.cost.frames);
                let outer_source = redirected.outer_source;
                let item = Item::Direct {
                    number,
                    to,
                    outer_source,
                    frames: frame.cost.frames,
                };
                link.under_way.push_back((at, item));
            }
            None => {
                self.counts.refused += 1;
                let host = host as u32;
                self.journal.write(Record::Refused { host, number });
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
            Item::Plain { fingerprint } => self.journal.write(Record::CamePlainly {
                from: from as u32,
                fingerprint,
                at: now,
            }),
            Item::Direct {
                number,
                to,
                outer_source,
                frames,
            } => {
                let node = &mut self.nodes[to];
                let id = node.links[link].id;
                if let Some(direct) = &mut node.direct {
                    direct.arrive(id, outer_source, frames);
                }
                self.journal.write(Record::CameDirectly {
                    from: from as u32,
                    number,
                    at: now,
                });
            }
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
        let mut is_given = false;
        while let Some(delivery) = node.engine.poll_delivery(now) {
            let source = MacAddr::from_slice(&delivery.head[6..12]);
            let Some(&from) = self.by_address.get(&source) else {
                continue;
            };
            let ether_type = u16::from_be_bytes([delivery.head[12], delivery.head[13]]);
            is_given = true;
            self.journal.write(Record::Given {
                from: from as u32,
                fingerprint: fingerprint(ether_type, delivery.body),
            });
        }
        if is_given {
            self.journal.write(Record::Shared {
                host: host as u32,
                cost: std::mem::take(&mut node.uncharged),
                at: now,
            });
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
                let ether_type = u16::from_be_bytes([frame[12], frame[13]]);
                let fingerprint = fingerprint(ether_type, &frame[HEADER_LEN..]);
                out.under_way.push_back((at, Item::Plain { fingerprint }));
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
