//! A host of the capture that runs packtrain: its engine, and the cables by which it sends.

use std::collections::VecDeque;

use packtrain_proto::buffer::Buffer;
use packtrain_proto::class::Class;
use packtrain_proto::config::{Config, LinkId, LinkState, NodeId, mark_of};
use packtrain_proto::engine::Engine;
use packtrain_proto::offload::Offload;
use packtrain_proto::stats::Snapshot;
use packtrain_proto::time::Instant;
use packtrain_proto::wire::ethernet::MacAddr;

use super::direct::Direct;
use super::journal::Number;
use super::results::WireLoad;
use super::wire::{Line, WireSettings};
use crate::random::mix;

/// Addresses of links begin so, behind it the link and the host. Locally administered, and nobody's so far.
const LINK_ADDRESS: [u8; 3] = [0x02, 0x9b, 0x74];

/// Something on its way to others.
#[derive(Debug)]
pub(super) enum Item {
    /// For the engine of a host.
    Message {
        to: usize,
        buffer: Buffer,
        offload: Offload,
        /// What the frames in it are charged.
        cost: WireLoad,
    },
    /// A frame for whom no engine is needed.
    Plain { fingerprint: u64 },
    /// … and past whose engine it goes.
    Direct {
        number: Number,
        to: usize,
        outer_source: MacAddr,
        /// Those that the card makes of it.
        frames: u64,
    },
}

impl Item {
    fn carries_frames(&self) -> bool {
        match self {
            Item::Message { cost, .. } => *cost != WireLoad::default(),
            Item::Plain { .. } | Item::Direct { .. } => true,
        }
    }
}

#[derive(Debug)]
pub(super) struct NodeLink {
    pub id: LinkId,
    pub line: Line,
    /// In the order in which they arrive.
    pub under_way: VecDeque<(Instant, Item)>,
    /// As the engine was told last.
    pub told_bytes: usize,
    /// It gave a frame since, and counts it as standing there.
    pub given: bool,
}

#[derive(Debug)]
pub(super) struct Node {
    pub engine: Engine,
    pub links: Vec<NodeLink>,
    /// `None`: no frame goes past the engine.
    pub direct: Option<Direct>,
    pub timer: Option<Instant>,
    /// When a queue has shrunk so far that the engine wants to know.
    pub queue_wakes: Option<Instant>,
    /// What has come on the wire, and was not charged to frames yet.
    pub uncharged: WireLoad,
    /// Frames that its host has sent, ever.
    pub sent_frames: Number,
    /// Its engine's counters, when counting began.
    pub before: Option<Snapshot>,
}

/// What the engines of all hosts are told.
#[derive(Clone, Debug)]
pub(super) struct NodeSettings {
    pub wire: WireSettings,
    pub links: usize,
    pub direct: bool,
    pub classes: Vec<Class>,
    /// But for what names the host.
    pub config: Config,
}

pub(super) fn link_address(link: u8, node: usize) -> MacAddr {
    let [a, b, c] = LINK_ADDRESS;
    MacAddr([a, b, c, link, (node >> 8) as u8, node as u8])
}

/// Whose link has this address.
pub(super) fn node_of(address: MacAddr) -> Option<usize> {
    let [a, b, c, _, high, low] = address.0;
    ([a, b, c] == LINK_ADDRESS).then_some(usize::from(high) << 8 | usize::from(low))
}

impl Node {
    pub fn new(number: usize, address: MacAddr, settings: &NodeSettings, now: Instant) -> Node {
        // The same numbers in each run: what is replayed twice comes out the same.
        let node_id = NodeId(mix(number as u64 + 1).max(1));
        let config = Config {
            node_id,
            address,
            seed: node_id.0,
            mtu: settings.wire.mtu,
            direct_frames: settings.direct,
            ..settings.config.clone()
        };
        let mut engine = Engine::new(config, now);
        engine.set_classes(settings.classes.clone(), Instant::ZERO);
        let mut links = Vec::new();
        for link in 0..settings.links as u8 {
            let id = LinkId(link);
            let address = link_address(link, number);
            let state = LinkState {
                address,
                mark: mark_of(address),
                mtu: settings.wire.mtu,
                carrier: true,
                rate_bps: settings.wire.rate_bps,
            };
            engine.handle_link_state(id, state, now);
            links.push(NodeLink {
                id,
                line: Line::new(settings.wire),
                under_way: VecDeque::new(),
                told_bytes: 0,
                given: false,
            });
        }
        Node {
            engine,
            links,
            direct: settings.direct.then(Direct::default),
            timer: None,
            queue_wakes: None,
            uncharged: WireLoad::default(),
            sent_frames: 0,
            before: None,
        }
    }

    /// What stands before the links, as a socket would say it.
    pub fn tell_queues(&mut self, now: Instant) {
        for link in &mut self.links {
            let queued = link.line.queued_bytes(now);
            if queued != link.told_bytes || link.given {
                link.told_bytes = queued;
                link.given = false;
                self.engine.handle_link_queue(link.id, queued, now);
            }
        }
    }

    /// When something is due here next.
    pub fn due(&self) -> Instant {
        let never = Instant::from_nanos(u64::MAX);
        let arrivals = self.links.iter().filter_map(|link| link.under_way.front());
        let turn = self.direct.as_ref().and_then(|direct| direct.turn_at);
        arrivals
            .map(|(at, _)| *at)
            .chain(self.timer)
            .chain(self.queue_wakes)
            .chain(turn)
            .fold(never, Instant::min)
    }

    /// As for a host: the engine is called when a queue falls below what it wants there, and something waits.
    pub fn plan(&mut self, now: Instant) {
        self.timer = self.engine.poll_timeout().map(|at| at.max(now));
        self.queue_wakes = None;
        if self.engine.has_frames_waiting() {
            for link in &mut self.links {
                let limit = self.engine.link_queue_limit(link.id);
                let at = link.line.below_at(limit, now);
                self.queue_wakes = self.queue_wakes.into_iter().chain(at).min();
            }
        }
        if let Some(direct) = &mut self.direct {
            direct.plan_turn(now);
        }
    }

    /// Nothing of the host's frames stands or travels here.
    pub fn is_idle(&self) -> bool {
        let mut under_way = self.links.iter().flat_map(|link| &link.under_way);
        !self.engine.has_frames_waiting() && !under_way.any(|(_, item)| item.carries_frames())
    }
}
