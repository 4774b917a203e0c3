//! What is kept back from the host while its flows are to rest ([`Rest`](crate::direct::rest::Rest)): acknowledgements of TCP,
//! and what comes of the same flows behind them.

use std::collections::{HashSet, VecDeque};

use super::{Delivery, Engine, Event};
use crate::buffer::{Buffer, LARGE_CAPACITY};
use crate::direct::OpenTo;
use crate::due::FIRST;
use crate::offload::Offload;
use crate::time::{Duration, Instant};
use crate::wire::packet::Packet;

/// More is not kept back: the rest is over then.
const KEPT_MAX: usize = 4096;
const KEPT_BYTES_MAX: usize = 8 << 20;
/// So long two nodes that rest wait for each other's answers, and then one of them goes first.
const MUTUAL_WAIT_MAX: Duration = Duration::from_millis(10);

/// What is kept, in the order in which it came.
#[derive(Debug, Default)]
pub(super) struct Kept {
    queue: VecDeque<Item>,
    /// Of the buffers.
    bytes: usize,
    /// Of a peer that goes first, if both wait: its question, and since when it is kept.
    prior: Option<(usize, Instant)>,
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
    /// The engine is full: those flows that it has are to rest for a moment, if it is full of what might go past it, of what goes to peers.
    pub(super) fn let_flows_rest(&mut self, full_bps: u64, now: Instant) {
        let lately = self.full.host_meter.more(self.counters.host_rx.bytes);
        let to_peers = self.full.peers_meter.more(self.full.taken_for_peers);
        if lately > 0 && to_peers >= lately / 2 {
            self.begin_rest(full_bps, now);
        }
    }

    /// … if those that begin go past it.
    pub(super) fn begin_rest(&mut self, full_bps: u64, now: Instant) {
        let mut ways = self.published.destinations.iter();
        let is_open = ways.any(|way| way.open_to == OpenTo::All);
        if is_open && self.rest.on_engine_full(full_bps, now) {
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
            self.keep_frame(frame, offload, now);
        }
        while let Some(item) = self.kept.queue.pop_front() {
            if self.kept.queue.is_empty() {
                self.kept = Kept::default();
            }
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

    fn keep_frame(&mut self, frame: Buffer, offload: Offload, now: Instant) {
        let frame = self.fitted(frame);
        self.keep(frame.capacity(), Item::Frame { frame, offload }, now);
    }

    /// In a buffer of its size: most are small, and there may be many.
    fn fitted(&mut self, frame: Buffer) -> Buffer {
        let mut fitted = self.pool.take(frame.len());
        let fits = fitted.push(&frame);
        assert!(fits, "taken for this size");
        self.pool.give_back(frame);
        fitted
    }

    fn keep(&mut self, bytes: usize, item: Item, now: Instant) {
        self.kept.queue.push_back(item);
        self.kept.bytes += bytes;
        if self.kept.queue.len() >= KEPT_MAX || self.kept.bytes >= KEPT_BYTES_MAX {
            self.end_rest(now);
        }
    }

    /// A peer asks whether all before this was given to the host, while some of it is kept back.
    pub(super) fn keep_probe(
        &mut self,
        slot: usize,
        message: Buffer,
        arrived: Instant,
        now: Instant,
    ) {
        let peer = self.peers.get(slot).map(|peer| peer.node_id);
        if peer.is_some_and(|peer| peer < self.config.node_id) {
            self.kept.prior.get_or_insert((slot, now));
        }
        let message = self.fitted(message);
        let bytes = message.capacity();
        let item = Item::Probe {
            slot,
            message,
            arrived,
        };
        self.keep(bytes, item, now);
    }

    pub(super) fn look_at_rest(&mut self, now: Instant) {
        if self.rest.poll_timeout().is_some_and(|until| until <= now) {
            return self.end_rest(now);
        }
        // Who keeps back as well waits for our answer as we do for its.
        let waits = |(_, since): &mut (usize, Instant)| now.since(*since) >= MUTUAL_WAIT_MAX;
        let Some((slot, since)) = self.kept.prior.take_if(waits) else {
            return;
        };
        if self.rest.is_on() && self.drain.has_waited_for(slot, since) {
            return self.end_rest(now);
        }
        // It may have been asked a moment later than it has asked us.
        self.kept.prior = self.rest.is_on().then_some((slot, now));
    }

    fn end_rest(&mut self, now: Instant) {
        if self.rest.end() {
            self.note_rest(false, now);
        }
    }

    /// When what was kept back is to be taken, or the rest has lasted too long.
    pub(super) fn rest_timeout(&self) -> Option<Instant> {
        let is_left = !self.rest.is_on() && self.keeps_back();
        let prior = self.kept.prior.map(|(_, since)| since + MUTUAL_WAIT_MAX);
        let until = self.rest.poll_timeout();
        let until = prior.map_or(until, |prior| until.map(|until| until.min(prior)));
        is_left.then_some(FIRST).or(until)
    }
}
