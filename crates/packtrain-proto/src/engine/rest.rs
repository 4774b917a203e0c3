//! What is kept back from the host while its flows are to rest ([`Rest`](crate::direct::rest::Rest)): acknowledgements of TCP,
//! and what comes of the same flows behind them.

use std::collections::{HashSet, VecDeque};

use super::{Delivery, Engine, Event};
use crate::buffer::{Buffer, LARGE_CAPACITY};
use crate::direct::OpenTo;
use crate::due::FIRST;
use crate::offload::Offload;
use crate::time::Instant;
use crate::wire::packet::Packet;

/// More is not kept back: the rest is over then.
const KEPT_MAX: usize = 4096;
const KEPT_BYTES_MAX: usize = 4 << 20;

/// What is kept, in the order in which it came.
#[derive(Debug, Default)]
pub(super) struct Kept {
    queue: VecDeque<Item>,
    bytes: usize,
    /// Whose frames they are, by hash.
    flows: HashSet<u32>,
}

#[derive(Debug)]
enum Item {
    Frame {
        frame: Buffer,
        offload: Offload,
    },
    /// A peer's question whether all before it was given to us: not yet.
    Probe {
        slot: usize,
        message: Buffer,
        arrived: Instant,
    },
}

impl Engine {
    /// The engine is full while flows that begin go past it: those that it has are to rest for a moment.
    pub(super) fn let_flows_rest(&mut self, full_bps: u64, now: Instant) {
        let mut ways = self.published.destinations.iter();
        if ways.any(|way| way.open_to == OpenTo::All) && self.rest.on_engine_full(full_bps, now) {
            self.events.push_back(Event::FlowsRest);
        }
    }

    /// What comes for the host goes through this: a rest is on, or something of it is left.
    pub(super) fn keeps_back(&self) -> bool {
        self.rest.is_on() || !self.kept.queue.is_empty()
    }

    /// The next frame for the host that is not kept back.
    pub(super) fn poll_unkept(&mut self, now: Instant) -> Option<Delivery<'_>> {
        while self.rest.is_on() {
            let (frame, offload) = self.copy_next(now)?;
            if !self.is_to_be_kept(&frame) {
                return Some(self.lend(frame, offload));
            }
            self.keep_frame(frame, offload);
        }
        while let Some(item) = self.kept.queue.pop_front() {
            match item {
                Item::Frame { frame, offload } => return Some(self.lend(frame, offload)),
                Item::Probe {
                    slot,
                    message,
                    arrived,
                } => {
                    self.on_probe(slot, &message, arrived);
                    self.pool.give_back(message);
                }
            }
        }
        self.kept = Kept::default();
        self.poll_any(now)
    }

    fn copy_next(&mut self, now: Instant) -> Option<(Buffer, Offload)> {
        let mut copy = self.pool.take(LARGE_CAPACITY);
        let offload = self.poll_any(now).map(|delivery| {
            let fits = copy.push(delivery.head) && copy.push(delivery.body);
            assert!(fits, "the largest frame does");
            delivery.offload
        });
        match offload {
            Some(offload) => Some((copy, offload)),
            None => {
                self.pool.give_back(copy);
                None
            }
        }
    }

    fn is_to_be_kept(&mut self, frame: &[u8]) -> bool {
        let parsed = Packet::parse(frame);
        let flow = self.classifier.flow_hash_of(frame, &parsed);
        if parsed.is_ok_and(|packet| packet.is_acknowledgement(frame)) {
            self.kept.flows.insert(flow);
        }
        self.kept.flows.contains(&flow)
    }

    fn keep_frame(&mut self, frame: Buffer, offload: Offload) {
        // Most are small, and there may be many.
        let mut kept = self.pool.take(frame.len());
        let fits = kept.push(&frame);
        assert!(fits, "taken for this size");
        self.pool.give_back(frame);
        self.kept.bytes += kept.len();
        let frame = kept;
        self.keep(Item::Frame { frame, offload });
    }

    fn keep(&mut self, item: Item) {
        self.kept.queue.push_back(item);
        if self.kept.queue.len() >= KEPT_MAX || self.kept.bytes >= KEPT_BYTES_MAX {
            self.rest.end();
        }
    }

    /// A peer asks whether all before this was given to the host, while some of it is kept back. Who keeps back as well waits
    /// for our answer as we do for its: one of the two is to go first.
    pub(super) fn keep_probe(
        &mut self,
        slot: usize,
        message: Buffer,
        arrived: Instant,
        now: Instant,
    ) {
        let peer = self.peers.get(slot).map(|peer| peer.node_id);
        if peer.is_some_and(|peer| peer < self.config.node_id) {
            self.rest.hurry(now);
        }
        self.keep(Item::Probe {
            slot,
            message,
            arrived,
        });
    }

    pub(super) fn look_at_rest(&mut self, now: Instant) {
        if self.rest.poll_timeout().is_some_and(|until| until <= now) && self.rest.end() {
            self.note_rest(false, now);
        }
    }

    /// When what was kept back is to be taken, or the rest has lasted too long.
    pub(super) fn rest_timeout(&self) -> Option<Instant> {
        let is_left = !self.rest.is_on() && self.keeps_back();
        is_left.then_some(FIRST).or(self.rest.poll_timeout())
    }
}
