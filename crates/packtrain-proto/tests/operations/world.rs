//! Two engines, the links between them, and what is known of every datagram.

use std::collections::{HashMap, HashSet};

use packtrain_proto::config::{Config, LinkId, LinkState, NodeId, mark_of};
use packtrain_proto::engine::{Engine, Event};
use packtrain_proto::offload::Offload;
use packtrain_proto::stats::DropReason;
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::ethernet::MacAddr;

use super::datagram::{self, HEADERS, Id};
use super::drains::Drains;
use super::random::Random;

/// What the wire and the people do beside carrying frames.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    pub links: u8,
    pub loss: bool,
    /// Of packtrain's own messages: plain frames have no means against it.
    pub duplication: bool,
    pub reordering: bool,
    pub restarts: bool,
    pub flaps: bool,
}

impl Faults {
    pub const NONE: Faults = Faults {
        links: 1,
        loss: false,
        duplication: false,
        reordering: false,
        restarts: false,
        flaps: false,
    };
}

#[derive(Debug)]
struct OnTheWire {
    arrives: Instant,
    to: usize,
    link: LinkId,
    frame: Vec<u8>,
    offload: Offload,
}

pub struct World {
    now: Instant,
    faults: Faults,
    marked: bool,
    engines: [Engine; 2],
    lives: u64,
    /// What each side was last told of its links; `None`: not in the line.
    links: [Vec<Option<LinkState>>; 2],
    /// Bytes a second, when the sender is free again, and the time on the way.
    rate: u64,
    free_at: [Vec<Instant>; 2],
    delay: Duration,
    /// One in so many; 0: none.
    losses: u64,
    wire: Vec<OnTheWire>,
    lost: u64,
    next_number: HashMap<(usize, u16), u64>,
    sent: HashSet<Id>,
    delivered: HashSet<Id>,
    /// Of those, what came without a sequence to a side that has begun anew since: it cannot know that another copy,
    /// by another link, is one.
    may_come_again: HashSet<Id>,
    came_plainly: HashSet<Id>,
    newest: HashMap<(u8, u16), u64>,
    pub drains: Drains,
    /// Drops that engines counted in earlier lives.
    drops_before: u64,
    /// The first of each frame's datagrams, and how many.
    sent_frames: Vec<(Id, u64)>,
}

const QUEUED_FRAMES_MAX: usize = 100;
const QUEUED_BYTES_MAX: usize = 400_000;
const REASSEMBLY_BYTES_MAX: usize = 400_000;
const RESEQUENCER_BYTES_MAX: usize = 300_000;
const FLOWS: u64 = 12;

fn pt0(side: usize) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, side as u8 + 1])
}

fn link_state(side: usize, link: u8, mtu: u16, carrier: bool) -> LinkState {
    let address = MacAddr([0x0a, 0, 0, 0, link, side as u8 + 1]);
    LinkState {
        address,
        mark: mark_of(address),
        mtu,
        carrier,
        rate_bps: None,
    }
}

impl World {
    pub fn new(random: &mut Random, faults: Faults, marked: bool) -> World {
        let now = Instant::from_nanos(1_000_000_000);
        let links = || (0..faults.links).map(|_| None).collect::<Vec<_>>();
        let mut world = World {
            now,
            faults,
            marked,
            engines: [0, 1].map(|side| engine(side, side as u64, marked, now)),
            lives: 2,
            links: [links(), links()],
            rate: [100_000, 1_000_000, 12_500_000, 1_250_000_000][random.below(4) as usize],
            free_at: [0, 1].map(|_| vec![now; usize::from(faults.links)]),
            delay: Duration::from_micros([0, 30, 1000, 20_000][random.below(4) as usize]),
            losses: if faults.loss {
                [3, 20, 200][random.below(3) as usize]
            } else {
                0
            },
            wire: Vec::new(),
            lost: 0,
            next_number: HashMap::new(),
            sent: HashSet::new(),
            delivered: HashSet::new(),
            may_come_again: HashSet::new(),
            came_plainly: HashSet::new(),
            newest: HashMap::new(),
            drains: Drains::default(),
            drops_before: 0,
            sent_frames: Vec::new(),
        };
        for side in 0..2 {
            for link in 0..faults.links {
                world.set_link(side, link, Some(link_state(side, link, 1500, true)));
            }
        }
        world
    }

    fn set_link(&mut self, side: usize, link: u8, state: Option<LinkState>) {
        let engine = &mut self.engines[side];
        match state {
            Some(state) => engine.handle_link_state(LinkId(link), state, self.now),
            None => engine.remove_link(LinkId(link), self.now),
        }
        self.links[side][usize::from(link)] = state;
    }

    pub fn step(&mut self, random: &mut Random) {
        let side = random.below(2) as usize;
        let link = random.below(u64::from(self.faults.links)) as u8;
        match random.below(40) {
            0..=17 => {
                for _ in 0..=random.below(12) {
                    self.host_sends(side, random);
                }
            }
            18..=29 => {
                let micros = 1u64 << random.below(17);
                self.run_with(Duration::from_micros(micros), random);
            }
            30 => self.run_with(Duration::from_millis(random.below(1500)), random),
            31 if self.faults.flaps => {
                let mtu = [576, 1400, 1500, 9000][random.below(4) as usize];
                let state = link_state(side, link, mtu, !random.one_in(3));
                self.set_link(side, link, Some(state));
            }
            32 if self.faults.flaps && random.one_in(4) => self.set_link(side, link, None),
            33 if self.faults.restarts && random.one_in(4) => self.restart(side),
            34 if self.faults.flaps => {
                let mtu = 576 + random.below(60_000) as u16;
                self.engines[side].handle_host_change(mtu, false, self.now);
            }
            35 if self.faults.loss => {
                self.engines[side].handle_transmit_refused(LinkId(link), self.now);
            }
            36 if self.faults.loss => self.losses = [1, 3, 20, 200][random.below(4) as usize],
            // Late, but not stopped: frames go on meanwhile.
            37 => self.now += Duration::from_micros(random.below(3000)),
            38 if self.faults.restarts && random.one_in(8) => {
                self.engines[side].say_goodbye(self.now);
                self.settle(random);
                self.restart(side);
            }
            39 => {
                self.request_drain(side);
                self.settle(random);
            }
            _ => self.settle(random),
        }
    }

    /// Asks for it, and remembers what was handed in before.
    pub fn request_drain(&mut self, side: usize) {
        let ticket = self.drains.ask(side, &self.next_number);
        self.engines[side].request_drain(ticket, self.now);
    }

    fn restart(&mut self, side: usize) {
        if self.faults.links > 1 {
            let came = self
                .came_plainly
                .extract_if(|id| usize::from(id.side) != side);
            self.may_come_again.extend(came);
        }
        self.drains.forget();
        let seen = self.engines[side].snapshot(self.now);
        let under_way = seen.queue.frames + seen.resequencer.held_trains + seen.reassembly.frames;
        self.drops_before += seen.drops.total() + under_way;
        self.engines[side] = engine(side, self.lives, self.marked, self.now);
        self.lives += 1;
        for link in 0..self.faults.links {
            if let Some(state) = self.links[side][usize::from(link)] {
                self.set_link(side, link, Some(state));
            }
        }
    }

    fn host_sends(&mut self, side: usize, random: &mut Random) {
        let flow = random.below(FLOWS) as u16;
        let (count, len) = match random.below(8) {
            0 => (1, 60_000),
            1 => (1, 1472 - 12 + random.below(24) as usize),
            2 => (1 + random.below(40) as usize, 1400),
            3 => (
                1 + random.below(100) as usize,
                100 + random.below(300) as usize,
            ),
            4 => (1, 2000 + random.below(8000) as usize),
            _ => (1, 12 + random.below(300) as usize),
        };
        self.send(side, flow, count, len);
    }

    fn send(&mut self, side: usize, flow: u16, count: usize, len: usize) {
        let number = self.next_number.entry((side, flow)).or_default();
        let first = Id {
            side: side as u8,
            flow,
            number: *number,
        };
        *number += count as u64;
        for number in first.number..*number {
            self.sent.insert(Id { number, ..first });
        }
        self.sent_frames.push((first, count as u64));
        let (frame, offload) = datagram::frame(pt0(1 - side), pt0(side), first, count, len);
        assert!(frame.len() > HEADERS);
        let buffer = self.engines[side].buffers().copy_of(&frame);
        self.engines[side].handle_host_frame(buffer, offload, self.now);
    }

    /// Takes out all that the engines want done now.
    fn settle(&mut self, random: &mut Random) {
        for _ in 0..10_000 {
            let mut moved = self.arrive();
            for side in 0..2 {
                moved |= self.drain(side, random);
            }
            if !moved {
                return;
            }
        }
        panic!("the engines never come to rest");
    }

    fn drain(&mut self, side: usize, random: &mut Random) -> bool {
        let mut moved = false;
        while let Some(delivery) = self.engines[side].poll_delivery(self.now) {
            let frame = [delivery.head, delivery.body].concat();
            let ids = datagram::ids(&frame, &delivery.offload);
            moved = true;
            for id in ids {
                assert_eq!(usize::from(id.side), 1 - side);
                assert!(self.sent.contains(&id), "{id:?} was never sent");
                let is_new = self.delivered.insert(id) || self.may_come_again.remove(&id);
                assert!(is_new, "{id:?} a second time");
                let before = self.newest.insert((id.side, id.flow), id.number);
                let in_order = before.is_none_or(|before| before < id.number);
                let orderly = self.faults.links == 1 && !self.faults.reordering;
                assert!(in_order || !orderly, "{id:?} after {before:?}");
                // Many in a row that a slower link brings long after their gap was given up are
                // believed, and come after all: over one link they are not so late.
                let told = self.faults.links == 1 && self.drains.has_arrived(id);
                assert!(!told, "{id:?} after all was said to have arrived");
            }
        }
        let mut given = Vec::new();
        while let Some(transmit) = self.engines[side].poll_transmit(self.now) {
            given.push((transmit.link, transmit.frame.to_vec(), transmit.offload));
            assert!(given.len() < 10_000, "transmits without end");
        }
        moved |= !given.is_empty();
        for (link, frame, offload) in given {
            self.carry(side, link, frame, offload, random);
        }
        while let Some(event) = self.engines[side].poll_event() {
            // Without a peer nobody can tell more than that the queues are empty.
            let seen = self.engines[side].snapshot(self.now);
            if let Event::Drained { ticket } = event
                && seen.peers.iter().any(|peer| peer.up)
            {
                self.drains.happened(ticket);
            }
        }
        for link in 0..self.faults.links {
            let free_at = self.free_at[side][usize::from(link)];
            let waits = free_at.since(self.now).as_nanos() * u128::from(self.rate);
            let queued = waits.div_ceil(1_000_000_000) as usize;
            let limit = self.engines[side].link_queue_limit(LinkId(link));
            self.engines[side].handle_link_queue(LinkId(link), queued, self.now);
            // As an owner whose socket has room for as much as the engine may fill.
            self.engines[side].handle_link_blocked(LinkId(link), queued > limit);
        }
        moved
    }

    fn carry(
        &mut self,
        side: usize,
        link: LinkId,
        frame: Vec<u8>,
        offload: Offload,
        random: &mut Random,
    ) {
        let state =
            self.links[side][usize::from(link.0)].expect("a frame for a link that has left");
        assert!(state.carrier, "a frame for a link without carrier");
        let on_wire = offload.gso.map_or(frame.len(), |gso| {
            usize::from(gso.header_len + gso.segment_len)
        });
        assert!(
            on_wire <= usize::from(state.mtu) + 14,
            "{on_wire} bytes on {link:?}: {:02x?} …",
            &frame[..frame.len().min(40)]
        );
        let free_at = &mut self.free_at[side][usize::from(link.0)];
        let nanos = frame.len() as u64 * 1_000_000_000 / self.rate;
        *free_at = (*free_at).max(self.now) + Duration::from_nanos(nanos);
        let mut arrives = *free_at + self.delay;
        let own_message = frame[12..14] == [0x88, 0xb5];
        if self.losses > 0 && random.one_in(self.losses) {
            self.lost += 1;
            return;
        }
        if self.faults.reordering && own_message && random.one_in(5) {
            arrives += Duration::from_micros(random.below(5000));
        }
        let to = 1 - side;
        let other = self.links[to][usize::from(link.0)];
        // Too large for the other end, or nobody there.
        if other.is_none_or(|other| !other.carrier || on_wire > usize::from(other.mtu) + 14) {
            self.lost += 1;
            return;
        }
        let again = self.faults.duplication && own_message && random.one_in(10);
        for _ in 0..=usize::from(again) {
            let (frame, link) = (frame.clone(), link);
            self.wire.push(OnTheWire {
                arrives,
                to,
                link,
                frame,
                offload,
            });
        }
    }

    /// What has arrived by now.
    fn arrive(&mut self) -> bool {
        // Stable: what arrives at one time keeps its order.
        self.wire.sort_by_key(|frame| frame.arrives);
        let due = self.wire.partition_point(|frame| frame.arrives <= self.now);
        for OnTheWire {
            to,
            link,
            frame,
            offload,
            ..
        } in self.wire.drain(..due)
        {
            let there = self.links[to][usize::from(link.0)].is_some();
            self.lost += u64::from(!there);
            if there && frame[12..14] != [0x88, 0xb5] {
                self.came_plainly.extend(datagram::ids(&frame, &offload));
            }
            let buffer = self.engines[to].buffers().copy_of(&frame);
            self.engines[to].handle_link_frame(link, buffer, offload, self.now);
        }
        due > 0
    }

    pub fn run(&mut self, time: Duration) {
        self.run_with(time, &mut Random::new(1));
    }

    fn run_with(&mut self, time: Duration, random: &mut Random) {
        let end = self.now + time;
        let mut at_one_instant = 0;
        loop {
            self.settle(random);
            let timeouts = self.engines.iter().filter_map(Engine::poll_timeout);
            let arrivals = self.wire.iter().map(|frame| frame.arrives);
            let busy = self.free_at.iter().flatten().copied();
            let busy = busy.filter(|at| *at > self.now);
            let next = timeouts.chain(arrivals).chain(busy).min();
            let Some(next) = next.filter(|next| *next <= end) else {
                break;
            };
            at_one_instant = if next > self.now {
                0
            } else {
                at_one_instant + 1
            };
            assert!(at_one_instant < 20, "time stands still");
            self.now = self.now.max(next);
            for engine in &mut self.engines {
                engine.handle_timeout(self.now);
            }
        }
        self.now = end;
    }

    /// From here on the wire is perfect, and nobody touches anything.
    pub fn make_peace(&mut self) {
        self.losses = 0;
        let links = self.faults.links;
        self.faults = Faults {
            links,
            ..self.faults
        };
        self.faults.duplication = false;
        for side in 0..2 {
            for link in 0..links {
                self.set_link(side, link, Some(link_state(side, link, 1500, true)));
            }
        }
        self.rate = self.rate.max(1_000_000);
    }

    pub fn check_bounds(&self) {
        for engine in &self.engines {
            let seen = engine.snapshot(self.now);
            assert!(seen.queue.frames_max_seen <= QUEUED_FRAMES_MAX as u64);
            assert!(seen.queue.bytes_max_seen <= QUEUED_BYTES_MAX as u64);
            assert!(seen.reassembly.bytes_max_seen <= REASSEMBLY_BYTES_MAX as u64);
            assert!(seen.resequencer.held_bytes_max_seen <= RESEQUENCER_BYTES_MAX as u64 + 70_000);
            let of_peers: u64 = seen.peers.iter().map(|peer| peer.queued_frames).sum();
            assert!(of_peers <= seen.queue.frames);
        }
    }

    pub fn check_nothing_is_left(&self) {
        // Now and then a hello, and what says that links live: of each end of a link four in a round trip, and a few more.
        let is_train = |on_wire: &&OnTheWire| on_wire.frame.get(14) == Some(&0x11);
        let trains: Vec<&OnTheWire> = self.wire.iter().filter(is_train).collect();
        assert!(
            trains.is_empty() && self.wire.len() <= 32,
            "{:?}",
            self.wire
        );
        for engine in &self.engines {
            let seen = engine.snapshot(self.now);
            assert_eq!((seen.queue.frames, seen.queue.bytes), (0, 0));
            assert_eq!(
                (seen.resequencer.held_trains, seen.resequencer.held_bytes),
                (0, 0)
            );
            assert_eq!((seen.reassembly.frames, seen.reassembly.bytes), (0, 0));
            assert_eq!(seen.peers.len(), 1);
            assert!(seen.peers[0].up);
            for link in &seen.links {
                assert_eq!(link.in_flight_bytes, 0, "{:?}", link.id);
            }
        }
    }

    pub fn check_all_is_accounted_for(&mut self) {
        let missing = self.sent.difference(&self.delivered).count();
        let seen = [0, 1].map(|side| self.engines[side].snapshot(self.now));
        let of_links = seen.iter().flat_map(|seen| &seen.links);
        let dropped: u64 = seen.iter().map(|seen| seen.drops.total()).sum::<u64>()
            + of_links.map(|link| link.drops.total()).sum::<u64>();
        let all = dropped + self.drops_before + self.lost;
        assert!(missing == 0 || all > 0, "{missing} vanished");
        if self.faults.loss || self.faults.flaps || self.faults.restarts {
            return;
        }
        // Only queues drop, and whole frames: one count each.
        let queues = [
            DropReason::QueueFull,
            DropReason::FlowQueueFull,
            DropReason::Codel,
        ];
        let by_queues: u64 = seen
            .iter()
            .flat_map(|seen| queues.map(|reason| seen.drops.get(reason)))
            .sum();
        let mut missing_frames = 0;
        for &(first, count) in &self.sent_frames {
            let ids = (first.number..first.number + count).map(|number| Id { number, ..first });
            let arrived = ids.filter(|id| self.delivered.contains(id)).count() as u64;
            assert!(
                arrived == 0 || arrived == count,
                "{first:?}: {arrived} of {count}"
            );
            missing_frames += u64::from(arrived == 0);
        }
        assert_eq!((missing_frames, dropped), (by_queues, by_queues));
        let taken: u64 = seen.iter().map(|seen| seen.host_rx.frames).sum();
        assert_eq!(taken, self.sent_frames.len() as u64);
    }

    pub fn check_it_works(&mut self) {
        self.faults.reordering = false;
        let before = self.delivered.len();
        for side in 0..2 {
            for i in 0..10 {
                self.send(side, 100 + i, 1, 100);
                self.send(side, 100 + i, 10, 1000);
                self.send(side, 200, 1, 3000);
                // No queue that stands.
                self.run(Duration::from_millis(30));
            }
        }
        self.run(Duration::from_secs(1));
        assert_eq!(self.delivered.len() - before, 2 * 10 * 12);
    }
}

fn engine(side: usize, life: u64, marked: bool, now: Instant) -> Engine {
    let mut config = Config::new(NodeId(0x1_0000 + life * 0x111), pt0(side));
    config.mtu = 65_521;
    config.marked_frames = marked;
    config.limits.queued_frames_max = QUEUED_FRAMES_MAX;
    config.limits.queued_bytes_max = QUEUED_BYTES_MAX;
    config.limits.reassembly_bytes_max = REASSEMBLY_BYTES_MAX;
    config.limits.resequencer_bytes_max = RESEQUENCER_BYTES_MAX;
    Engine::new(config, now)
}
