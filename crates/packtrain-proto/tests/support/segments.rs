//! Engines with some links each, and segments between them: cables, and switches that flood.
#![allow(dead_code)] // each test binary uses a part

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use packtrain_proto::class::Class;
use packtrain_proto::config::{Config, LinkId, LinkState, NodeId, mark_of};
use packtrain_proto::engine::{Engine, Event};
use packtrain_proto::offload::Offload;
use packtrain_proto::stats::{PathSnapshot, PathState, Snapshot};
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::ethernet::MacAddr;

/// The host without packtrain.
pub const PLAIN: MacAddr = MacAddr([4, 0, 0, 0, 0, 9]);

pub fn pt0(side: usize) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, side as u8 + 1])
}

/// A link's own address.
pub fn host(side: usize, link: u8) -> MacAddr {
    MacAddr([0x0a, 0, 0, 0, link, side as u8 + 1])
}

/// A frame that says `word`, neither IPv4 nor IPv6.
pub fn frame_to(to: MacAddr, from: MacAddr, word: u8) -> Vec<u8> {
    let mut frame = [&to.0[..], &from.0, &[0x90, 0x00]].concat();
    frame.resize(80, word);
    frame
}

/// One of a type that nobody knows, with a number at its end.
pub fn numbered_of_type(ether_type: [u8; 2], n: u32) -> Vec<u8> {
    let mut frame = frame_to(pt0(1), pt0(0), 0);
    frame[12..14].copy_from_slice(&ether_type);
    let at = frame.len() - 4;
    frame[at..].copy_from_slice(&n.to_be_bytes());
    frame
}

pub fn group_frame(from: usize, word: u8) -> Vec<u8> {
    frame_to(MacAddr::BROADCAST, pt0(from), word)
}

/// A segment: whoever is on it hears all that the others send, and filters by address as a card does.
#[derive(Clone, Debug)]
pub struct Cable {
    ends: Vec<(usize, LinkId)>,
    has_plain_host: bool,
    /// Its switch has the ports of this side in a static link aggregation.
    pub lag_of: Option<usize>,
    /// It takes what is sent, and nobody gets it.
    pub broken: bool,
}

impl Cable {
    pub fn of(ends: &[(usize, u8)]) -> Cable {
        Cable {
            ends: ends
                .iter()
                .map(|&(side, link)| (side, LinkId(link)))
                .collect(),
            has_plain_host: false,
            lag_of: None,
            broken: false,
        }
    }

    /// … and the plain host.
    pub fn plain(ends: &[(usize, u8)]) -> Cable {
        Cable {
            has_plain_host: true,
            ..Cable::of(ends)
        }
    }
}

type Loss = Box<dyn FnMut(usize, LinkId, &[u8]) -> bool>;

pub struct Bed {
    pub now: Instant,
    pub engines: Vec<Engine>,
    pub cables: Vec<Cable>,
    /// All segments are one.
    pub trunk: bool,
    /// What each host was given.
    pub out: Vec<Vec<Vec<u8>>>,
    pub events: Vec<Vec<Event>>,
    pub plain_got: Vec<Vec<u8>>,
    /// Links whose local queue has no room.
    pub full: HashSet<(usize, LinkId)>,
    /// Bytes that stand in the local queues of these links, of what was sent, until the test takes them out.
    pub queues: HashMap<(usize, LinkId), usize>,
    /// Whether what a host sends by this link is lost.
    pub lose: Loss,
    /// What a host sends by this link arrives so much later.
    pub delay: Option<((usize, LinkId), Duration)>,
    on_the_wire: VecDeque<(Instant, usize, LinkId, Vec<u8>)>,
    pub last_group_hello: HashMap<(usize, LinkId), Vec<u8>>,
    /// Where it is not 1500.
    pub mtus: HashMap<(usize, LinkId), u16>,
    carrier: HashMap<(usize, LinkId), bool>,
    /// Who does not run, and what has come to them meanwhile.
    stopped: BTreeSet<usize>,
    unread: Vec<(usize, LinkId, Vec<u8>)>,
    /// By which links frames of each outer source address have left, since it was asked last.
    sources: HashMap<MacAddr, BTreeSet<(usize, LinkId)>>,
    /// Frames on each segment, by their destination.
    sent_to: HashMap<(usize, MacAddr), usize>,
}

impl Bed {
    pub fn new(hosts: usize, cables: &[Cable]) -> Bed {
        Bed::with(hosts, cables, |_| {})
    }

    /// Two hosts with so many cables between them, where all have met: the first has this class.
    pub fn cabled(count: u8, class: Class, set: impl Fn(&mut Config)) -> Bed {
        let cable = |link| Cable::of(&[(0, link), (1, link)]);
        let all: Vec<Cable> = (0..count).map(cable).collect();
        let mut bed = Bed::with(2, &all, set);
        bed.engines[0].set_classes(vec![class], bed.now);
        bed.run(Duration::from_millis(1500));
        bed
    }

    /// With settings of their own.
    pub fn with(hosts: usize, cables: &[Cable], set: impl Fn(&mut Config)) -> Bed {
        let engine = |side: usize| {
            let mut config = Config::new(NodeId(0x1111 * (side as u64 + 1)), pt0(side));
            set(&mut config);
            Engine::new(config, Instant::ZERO)
        };
        let mut bed = Bed {
            now: Instant::ZERO,
            engines: (0..hosts).map(engine).collect(),
            cables: cables.to_vec(),
            trunk: false,
            out: vec![Vec::new(); hosts],
            events: vec![Vec::new(); hosts],
            plain_got: Vec::new(),
            full: HashSet::new(),
            queues: HashMap::new(),
            lose: Box::new(|_, _, _| false),
            delay: None,
            on_the_wire: VecDeque::new(),
            last_group_hello: HashMap::new(),
            mtus: HashMap::new(),
            carrier: HashMap::new(),
            stopped: BTreeSet::new(),
            unread: Vec::new(),
            sources: HashMap::new(),
            sent_to: HashMap::new(),
        };
        let mut ends: Vec<_> = cables.iter().flat_map(|cable| cable.ends.clone()).collect();
        ends.sort_unstable();
        for (side, link) in ends {
            bed.set_carrier(side, link.0, true);
        }
        bed
    }

    pub fn set_carrier(&mut self, side: usize, link: u8, carrier: bool) {
        let address = host(side, link);
        let state = LinkState {
            address,
            mark: mark_of(address),
            mtu: self
                .mtus
                .get(&(side, LinkId(link)))
                .copied()
                .unwrap_or(1500),
            carrier,
            rate_bps: None,
        };
        self.carrier.insert((side, LinkId(link)), carrier);
        self.engines[side].handle_link_state(LinkId(link), state, self.now);
        self.take_events();
    }

    pub fn send(&mut self, side: usize, frame: &[u8]) {
        let buffer = self.engines[side].buffers().copy_of(frame);
        self.engines[side].handle_host_frame(buffer, Offload::NONE, self.now);
    }

    pub fn seen(&self, side: usize) -> Snapshot {
        self.engines[side].snapshot(self.now)
    }

    pub fn paths(&self, side: usize) -> Vec<PathSnapshot> {
        let peers = self.seen(side).peers.into_iter();
        let mut paths: Vec<PathSnapshot> = peers.flat_map(|peer| peer.paths).collect();
        paths.sort_by_key(|path| path.link);
        paths
    }

    pub fn states(&self, side: usize) -> Vec<PathState> {
        self.paths(side).iter().map(|path| path.state).collect()
    }

    pub fn trains_by_link(&self, side: usize) -> Vec<u64> {
        let links = self.seen(side).links;
        links.iter().map(|link| link.trains_tx).collect()
    }

    /// The last four bytes of each frame that the host was given, as a number.
    pub fn numbers(&self, side: usize) -> Vec<u32> {
        let number = |frame: &Vec<u8>| {
            let tail = frame[frame.len() - 4..].try_into().expect("four");
            u32::from_be_bytes(tail)
        };
        self.out[side].iter().map(number).collect()
    }

    pub fn inject(&mut self, side: usize, link: u8, frame: &[u8]) {
        let buffer = self.engines[side].buffers().copy_of(frame);
        self.engines[side].handle_link_frame(LinkId(link), buffer, Offload::NONE, self.now);
    }

    pub fn stop(&mut self, side: usize) {
        self.stopped.insert(side);
    }

    /// It runs again, is told of the time first, and reads what has come.
    pub fn resume(&mut self, side: usize) {
        self.stopped.remove(&side);
        self.engines[side].handle_timeout(self.now);
        let unread = std::mem::take(&mut self.unread);
        for (of, link, frame) in unread {
            match of == side {
                true => self.inject(side, link.0, &frame),
                false => self.unread.push((of, link, frame)),
            }
        }
    }

    pub fn plain_says(&mut self, frame: &[u8]) {
        let at = self.cables.iter().position(|cable| cable.has_plain_host);
        self.carry(at.expect("there is one"), None, frame);
    }

    /// The ports behind which switches have seen this address since it was asked last.
    pub fn ports_of(&mut self, address: MacAddr) -> Vec<(usize, u8)> {
        let ports = self.sources.remove(&address).unwrap_or_default();
        ports.iter().map(|(side, link)| (*side, link.0)).collect()
    }

    pub fn plain_sent(&self, cable: usize, to: MacAddr) -> usize {
        self.sent_to.get(&(cable, to)).copied().unwrap_or_default()
    }

    fn carry(&mut self, cable: usize, from: Option<(usize, LinkId)>, frame: &[u8]) {
        let destination = MacAddr::from_slice(frame);
        *self.sent_to.entry((cable, destination)).or_default() += 1;
        let segments = match self.trunk {
            true => (0..self.cables.len()).collect(),
            false => vec![cable],
        };
        for cable in segments {
            if self.cables[cable].broken {
                continue;
            }
            let lag_of = self.cables[cable].lag_of;
            let chosen = lag_of.and_then(|side| self.port_of_lag(cable, side, frame));
            for (side, link) in self.cables[cable].ends.clone() {
                let has_carrier = self.carrier[&(side, link)];
                let mut mine = [host(side, link.0), pt0(side)].contains(&destination);
                if lag_of == Some(side) {
                    // What comes by one of the ports goes out by none of the others.
                    if from.is_some_and(|(of, _)| of == side) || chosen != Some(link) {
                        continue;
                    }
                    mine |= (0..8).any(|other| host(side, other) == destination);
                }
                let card_takes = destination.is_group() || mine;
                if Some((side, link)) == from || !has_carrier || !card_takes {
                    continue;
                }
                match self.stopped.contains(&side) {
                    true => self.unread.push((side, link, frame.to_vec())),
                    false => self.inject(side, link.0, frame),
                }
            }
            let plain = self.cables[cable].has_plain_host && from.is_some();
            let own_message = frame[12..14] == [0x88, 0xb5];
            if plain && !own_message && (destination == PLAIN || destination.is_group()) {
                self.plain_got.push(frame.to_vec());
            }
        }
    }

    /// By which port of those that it takes for one a switch sends a frame.
    fn port_of_lag(&self, cable: usize, side: usize, frame: &[u8]) -> Option<LinkId> {
        let ends = self.cables[cable].ends.iter();
        let up = ends.filter(|end| end.0 == side && self.carrier[*end]);
        let ports: Vec<LinkId> = up.map(|&(_, link)| link).collect();
        let sum: usize = frame[..12].iter().map(|&byte| usize::from(byte)).sum();
        ports.get(sum % ports.len().max(1)).copied()
    }

    fn carry_from(&mut self, side: usize, link: LinkId, frame: &[u8]) {
        let is_on = |cable: &Cable| cable.ends.contains(&(side, link));
        let cable = self.cables.iter().position(is_on);
        self.carry(
            cable.expect("each link is on one"),
            Some((side, link)),
            frame,
        );
    }

    /// What is late, and is there by now.
    fn bring_late(&mut self) {
        while let Some((at, ..)) = self.on_the_wire.front()
            && *at <= self.now
        {
            let (_, side, link, frame) = self.on_the_wire.pop_front().expect("looked at");
            self.carry_from(side, link, &frame);
        }
    }

    fn take_events(&mut self) {
        for (engine, events) in self.engines.iter_mut().zip(&mut self.events) {
            events.extend(std::iter::from_fn(|| engine.poll_event()));
        }
    }

    fn drain(&mut self, side: usize) -> bool {
        if self.stopped.contains(&side) {
            return false;
        }
        let mut moved = false;
        while let Some(delivery) = self.engines[side].poll_delivery(self.now) {
            self.out[side].push([delivery.head, delivery.body].concat());
            moved = true;
        }
        let mut sent = Vec::new();
        while let Some(transmit) = self.engines[side].poll_transmit(self.now) {
            sent.push((transmit.link, transmit.frame.to_vec()));
            assert!(sent.len() < 100_000, "transmits without end");
        }
        self.take_events();
        for (link, frame) in sent {
            moved = true;
            assert!(self.carrier[&(side, link)], "a frame for a dead link");
            let source = MacAddr::from_slice(&frame[6..]);
            self.sources.entry(source).or_default().insert((side, link));
            if frame[12..15] == [0x88, 0xb5, 0x12] && frame[0..6] == MacAddr::HELLO.0 {
                self.last_group_hello.insert((side, link), frame.clone());
            }
            if let Some(queue) = self.queues.get_mut(&(side, link)) {
                *queue += frame.len();
            }
            if (self.lose)(side, link, &frame) {
                continue;
            }
            match self.delay.filter(|(of, _)| *of == (side, link)) {
                Some((_, delay)) => {
                    let arrival = (self.now + delay, side, link, frame);
                    self.on_the_wire.push_back(arrival);
                }
                None => self.carry_from(side, link, &frame),
            }
        }
        for &(side, link) in self.carrier.keys().filter(|(of, _)| *of == side) {
            let queue = self.queues.get(&(side, link));
            let queued = match self.full.contains(&(side, link)) {
                true => 1 << 30,
                false => queue.copied().unwrap_or(0),
            };
            self.engines[side].handle_link_queue(link, queued, self.now);
        }
        moved
    }

    fn settle(&mut self) {
        for _ in 0..100_000 {
            let moved = (0..self.engines.len())
                .filter(|&side| self.drain(side))
                .count();
            if moved == 0 {
                return;
            }
        }
        panic!("the engines never come to rest at {:?}", self.now);
    }

    /// Lets time pass, and sees to it that each wake-up leads further.
    pub fn run(&mut self, time: Duration) {
        let end = self.now + time;
        let mut at_one_instant = 0;
        loop {
            self.settle();
            let running = (0..self.engines.len()).filter(|side| !self.stopped.contains(side));
            let running: Vec<usize> = running.collect();
            let timeouts = running
                .iter()
                .map(|&side| self.engines[side].poll_timeout());
            let late = self.on_the_wire.front().map(|(at, ..)| *at);
            let next = timeouts.flatten().chain(late).min();
            let Some(next) = next.filter(|&next| next <= end) else {
                self.now = end;
                return;
            };
            at_one_instant = if next > self.now {
                0
            } else {
                at_one_instant + 1
            };
            assert!(at_one_instant < 20, "time stands still at {:?}", self.now);
            self.now = self.now.max(next);
            self.bring_late();
            for side in running {
                self.engines[side].handle_timeout(self.now);
            }
        }
    }
}
