//! Two engines on one segment, and whoever else speaks there.
#![allow(dead_code)] // each test binary uses a part

pub mod forger;

use std::collections::HashMap;

use packtrain_proto::config::{Config, LinkId, LinkState, NodeId, mark_of};
use packtrain_proto::engine::{Engine, Event};
use packtrain_proto::offload::Offload;
use packtrain_proto::stats::{DropReason, Drops, Snapshot};
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::ethernet::MacAddr;

pub const LINK: LinkId = LinkId(0);
pub const MTU: u16 = 1500;

pub fn pt0(side: usize) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, side as u8 + 1])
}

pub fn link_address(side: usize) -> MacAddr {
    MacAddr([0x0a, 0, 0, 0, 0, side as u8 + 1])
}

pub fn node(side: usize) -> NodeId {
    NodeId(0x1111 * (side as u64 + 1))
}

pub fn link_state(side: usize) -> LinkState {
    let address = link_address(side);
    LinkState {
        address,
        mark: mark_of(address),
        mtu: MTU,
        carrier: true,
        rate_bps: None,
    }
}

pub fn config(side: usize) -> Config {
    let mut config = Config::new(node(side), pt0(side));
    config.mtu = 65_521;
    config
}

type Loss = Box<dyn FnMut(usize, &[u8]) -> bool>;

pub struct Pair {
    pub now: Instant,
    pub engines: [Engine; 2],
    /// What each host was given.
    pub out: [Vec<(Vec<u8>, Offload)>; 2],
    pub events: [Vec<Event>; 2],
    /// Whether a frame of this side is lost.
    pub lose: Loss,
    /// Frames of each side on the wire, while wanted.
    pub record: bool,
    pub recorded: Vec<(usize, Vec<u8>, Offload)>,
    /// Frames for neither of the two.
    pub strays: usize,
    /// The epoch in each side's last hello to a link's address.
    epochs: HashMap<(usize, MacAddr), u8>,
    /// Of direct frames, how many each side has sent, and how many of the other's have come to it.
    pub direct_sent: [u32; 2],
    pub direct_came: [u32; 2],
    /// When false, nobody calls `handle_timeout` of that side.
    pub ticking: [bool; 2],
    /// Of the two links.
    pub mtu: [u16; 2],
}

impl Pair {
    pub fn new(marked: bool) -> Pair {
        Pair::with(|_, config| config.marked_frames = marked)
    }

    /// Two engines that have met, with settings of their own.
    pub fn with(set: impl Fn(usize, &mut Config)) -> Pair {
        let mut pair = Pair::strangers(set);
        pair.run(Duration::from_millis(400));
        for events in &pair.events {
            let up = |event: &Event| matches!(event, Event::PeerUp { .. });
            assert_eq!(events.iter().filter(|event| up(event)).count(), 1);
        }
        pair.out = Default::default();
        pair
    }

    /// … that have not heard each other yet.
    pub fn strangers(set: impl Fn(usize, &mut Config)) -> Pair {
        let engine = |side| {
            let mut config = config(side);
            set(side, &mut config);
            let mut engine = Engine::new(config, Instant::ZERO);
            engine.handle_link_state(LINK, link_state(side), Instant::ZERO);
            engine
        };
        Pair {
            now: Instant::ZERO,
            engines: [engine(0), engine(1)],
            out: Default::default(),
            events: Default::default(),
            lose: Box::new(|_, _| false),
            record: false,
            recorded: Vec::new(),
            strays: 0,
            epochs: HashMap::new(),
            direct_sent: [0; 2],
            direct_came: [0; 2],
            ticking: [true; 2],
            mtu: [MTU; 2],
        }
    }

    /// A side starts its life anew.
    pub fn restart(&mut self, side: usize, config: Config) {
        self.engines[side] = Engine::new(config, self.now);
        self.engines[side].handle_link_state(LINK, link_state(side), self.now);
    }

    /// The link of a side is of this MTU from now on.
    pub fn set_mtu(&mut self, side: usize, mtu: u16) {
        self.mtu[side] = mtu;
        let state = LinkState {
            mtu,
            ..link_state(side)
        };
        self.engines[side].handle_link_state(LINK, state, self.now);
    }

    pub fn send(&mut self, side: usize, frame: &[u8], offload: Offload) {
        let buffer = self.engines[side].buffers().copy_of(frame);
        self.engines[side].handle_host_frame(buffer, offload, self.now);
    }

    /// A frame of somebody else reaches a side.
    pub fn inject(&mut self, side: usize, frame: &[u8], offload: Offload) {
        let buffer = self.engines[side].buffers().copy_of(frame);
        self.engines[side].handle_link_frame(LINK, buffer, offload, self.now);
        self.settle();
    }

    /// Everything that can go now.
    pub fn settle(&mut self) {
        for _ in 0..100_000 {
            let mut idle = true;
            for side in 0..2 {
                idle &= !self.drain(side);
            }
            if idle {
                return;
            }
        }
        panic!("the engines never come to rest at {:?}", self.now);
    }

    fn drain(&mut self, side: usize) -> bool {
        let mut moved = false;
        let engine = &mut self.engines[side];
        while let Some(delivery) = engine.poll_delivery(self.now) {
            let frame = [delivery.head, delivery.body].concat();
            self.out[side].push((frame, delivery.offload));
            moved = true;
        }
        let mut sent = Vec::new();
        while let Some(transmit) = engine.poll_transmit(self.now) {
            sent.push((transmit.link, transmit.frame.to_vec(), transmit.offload));
            assert!(sent.len() < 100_000, "transmits without end");
        }
        while let Some(event) = engine.poll_event() {
            if let Event::DirectAsked {
                link,
                direct_mark,
                address,
            } = event
            {
                engine.handle_direct_sent(address, link, self.direct_sent[side], self.now);
                let came = self.direct_came[side];
                engine.handle_direct_received(link, direct_mark, came, self.now);
                moved = true;
            }
            self.events[side].push(event);
        }
        engine.handle_link_queue(LINK, 0, self.now);
        for (link, frame, offload) in sent {
            moved = true;
            assert_eq!(link, LINK);
            self.carry(side, frame, offload);
        }
        moved
    }

    /// The segment: a switch that knows where everyone is.
    fn carry(&mut self, from: usize, frame: Vec<u8>, offload: Offload) {
        assert!(offload.gso.is_some() || frame.len() <= usize::from(self.mtu[from]) + 14);
        if self.record {
            self.recorded.push((from, frame.clone(), offload));
        }
        if frame[12..15] == [0x88, 0xb5, 0x12] {
            self.epochs
                .insert((from, MacAddr::from_slice(&frame)), frame[14 + 37]);
        }
        if (self.lose)(from, &frame) {
            return;
        }
        let to = 1 - from;
        if offload.gso.is_none() && frame.len() > usize::from(self.mtu[to]) + 14 {
            // As a card does with what is too long for it.
            return;
        }
        let destination = MacAddr::from_slice(&frame);
        if destination.is_group() || [link_address(to), pt0(to)].contains(&destination) {
            let buffer = self.engines[to].buffers().copy_of(&frame);
            self.engines[to].handle_link_frame(LINK, buffer, offload, self.now);
        } else {
            self.strays += 1;
        }
    }

    /// Lets time pass, and sees to it that each wake-up leads further.
    pub fn run(&mut self, time: Duration) {
        let end = self.now + time;
        let mut at_one_instant = 0;
        loop {
            self.settle();
            let wakes = (0..2).filter(|&side| self.ticking[side]);
            let next = wakes
                .filter_map(|side| self.engines[side].poll_timeout())
                .min();
            let next = next.filter(|&next| next <= end);
            let Some(next) = next else {
                self.now = end;
                return;
            };
            at_one_instant = if next > self.now {
                0
            } else {
                at_one_instant + 1
            };
            assert!(at_one_instant < 10, "time stands still at {:?}", self.now);
            self.now = self.now.max(next);
            for side in (0..2).filter(|&side| self.ticking[side]) {
                self.engines[side].handle_timeout(self.now);
            }
        }
    }

    pub fn snapshot(&self, side: usize) -> Snapshot {
        self.engines[side].snapshot(self.now)
    }

    /// What trains of a side to this link carry as their incarnation.
    pub fn incarnation(&self, side: usize, to: MacAddr) -> u16 {
        let epoch = self.epochs[&(side, to)];
        node(side).incarnation() ^ u16::from(epoch) << 8
    }

    pub fn drops(&self, side: usize) -> Drops {
        self.snapshot(side).drops
    }

    /// What has been dropped since, by reason.
    pub fn dropped_since(&self, side: usize, before: &Drops) -> Vec<(DropReason, u64)> {
        let now = self.drops(side);
        let rise = |&reason: &DropReason| (reason, now.get(reason) - before.get(reason));
        let all = DropReason::ALL.iter().map(rise);
        all.filter(|&(_, n)| n > 0).collect()
    }

    /// A transfer both ways arrives whole, in order, and once; nothing is left over, and both
    /// engines go to sleep.
    #[track_caller]
    pub fn still_works(&mut self) {
        self.run(Duration::from_millis(20));
        let before = [self.drops(0), self.drops(1)];
        self.out = Default::default();
        let sent: Vec<Vec<Vec<u8>>> = (0..2)
            .map(|side| (0..40).map(|i| frame(side, 60 + 70 * i, i as u8)).collect())
            .collect();
        for (side, frames) in sent.iter().enumerate() {
            for frame in frames {
                self.send(side, frame, Offload::NONE);
            }
        }
        self.run(Duration::from_millis(40));
        for side in 0..2 {
            let dropped = self.dropped_since(side, &before[side]);
            let got: Vec<_> = self.out[side].iter().map(|(frame, _)| frame).collect();
            let expected: Vec<_> = sent[1 - side].iter().collect();
            assert!(
                got == expected,
                "side {side}: {} of {} frames, dropped {dropped:?}",
                got.len(),
                expected.len()
            );
            self.is_at_rest(side);
        }
        self.out = Default::default();
    }

    #[track_caller]
    pub fn is_at_rest(&self, side: usize) {
        let seen = self.snapshot(side);
        let limits = config(side).limits;
        assert_eq!((seen.queue.frames, seen.queue.bytes), (0, 0));
        assert_eq!(seen.resequencer.held_trains, 0);
        assert!(seen.queue.bytes_max_seen <= limits.queued_bytes_max as u64);
        assert!(seen.reassembly.bytes_max_seen <= limits.reassembly_bytes_max as u64);
        assert!(seen.resequencer.held_bytes_max_seen <= limits.resequencer_bytes_max as u64);
        assert!(seen.peers.len() <= limits.peers_max);
        assert!(seen.hosts.len() <= limits.stations_max);
        assert!(self.engines[side].poll_timeout().unwrap() > self.now);
    }
}

/// A frame of `len` bytes to the other `pt0` that is neither IPv4 nor IPv6.
pub fn frame(from: usize, len: usize, fill: u8) -> Vec<u8> {
    let mut frame = [&pt0(1 - from).0[..], &pt0(from).0, &[0x90, 0x00]].concat();
    frame.resize(len, fill);
    frame
}
