//! The path past the engine: the programs of a host's kernel, as [`crate::host::kernel`] has them, for one card with
//! one queue.

use std::collections::BTreeMap;

use packtrain_proto::class::KernelPath;
use packtrain_proto::config::LinkId;
use packtrain_proto::direct::leave::{Leave, Leaving, Left};
use packtrain_proto::direct::{DirectDestination, DirectSource};
use packtrain_proto::engine::Engine;
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::ethernet::{HEADER_LEN, MacAddr, ether_type};

use super::frame::Captured;
use crate::host::watch::Watch;

/// Flows share slots, as by a hash.
const SLOTS: u32 = 256;
const VLAN_TAG_LEN: usize = 4;
/// How soon the daemon looks again, at first and at last.
const TURN_MIN: Duration = Duration::from_millis(1);
const TURN_MAX: Duration = Duration::from_millis(50);
/// A question that was lost on the way is asked again.
const PATIENCE: Duration = Duration::from_secs(3);

/// Whether all that has a ticket up to this one was delivered.
#[derive(Clone, Copy, Debug)]
struct Question {
    number: u64,
    ticket: u64,
    at: Instant,
}

#[derive(Debug, Default)]
pub(super) struct Direct {
    leave: Leave,
    destinations: Vec<DirectDestination>,
    sources: Vec<DirectSource>,
    /// Segments that have left, to this host by this link.
    sent: BTreeMap<(MacAddr, LinkId), u32>,
    /// Segments that have come, by this link with this mark.
    came: BTreeMap<(LinkId, MacAddr), u32>,
    untold: bool,
    flows_left: bool,
    watches: BTreeMap<LinkId, Watch>,
    closed: Vec<LinkId>,
    asked: Option<Question>,
    drained: u64,
    next_ticket: u64,
    pub turn_at: Option<Instant>,
    turn_interval: Duration,
}

/// Where a frame goes that leaves directly, and as whose.
#[derive(Clone, Copy, Debug)]
pub(super) struct Redirected {
    pub link: LinkId,
    pub remote_address: MacAddr,
    pub outer_source: MacAddr,
}

impl Direct {
    /// The program before `pt0`. `None`: the frame goes to the engine.
    pub fn leave(&mut self, frame: &Captured, path: KernelPath) -> Option<Redirected> {
        let is_tagged = frame.flow.vlan != packtrain_proto::class::facts::UNTAGGED;
        let around = HEADER_LEN + if is_tagged { VLAN_TAG_LEN } else { 0 };
        let longest = match frame.offload.gso {
            Some(gso) => usize::from(gso.header_len) + usize::from(gso.segment_len),
            None => frame.len,
        };
        let left = self.leave.frame(&Leaving {
            to: frame.destination,
            slot: frame.flow_hash % SLOTS,
            path: if frame.flow.ether_type == ether_type::PACKTRAIN {
                KernelPath::Engine
            } else {
                path
            },
            payload: longest.saturating_sub(around) as u16,
            tcp: None,
        });
        let link = match left {
            Left::Direct(link) => link,
            Left::Engine { returns } => {
                self.flows_left |= returns;
                return None;
            }
        };
        let mut ways = self.destinations.iter();
        let way = ways.find(|way| (way.address, way.link) == (frame.destination, link));
        let way = way.expect("it is chosen among them");
        let sent = self.sent.entry((frame.destination, link)).or_default();
        *sent = sent.wrapping_add(frame.cost.frames as u32);
        self.untold = true;
        Some(Redirected {
            link,
            remote_address: way.remote_address,
            outer_source: way.outer_source,
        })
    }

    /// The program at the way out of a link, before which so many bytes wait.
    pub fn watch(&mut self, link: LinkId, len: usize, queued_bytes: usize, now: Instant) {
        let watch = self.watches.entry(link).or_default();
        if watch.frame(len, queued_bytes > 0, now) {
            self.leave.close(link);
            self.closed.push(link);
        }
    }

    /// The program at the way in.
    pub fn arrive(&mut self, link: LinkId, outer_source: MacAddr, segments: u64) {
        let known = self
            .sources
            .iter()
            .any(|source| source.outer_source == outer_source);
        if known {
            let came = self.came.entry((link, outer_source)).or_default();
            *came = came.wrapping_add(segments as u32);
        }
    }

    /// The engine has decided anew.
    pub fn publish(&mut self, engine: &mut Engine, now: Instant) {
        // First nobody goes direct: what went to a new one before it was a peer was never asked for.
        self.asked = None;
        self.set_drained(0);
        self.destinations = engine.direct_destinations();
        self.sources = engine.direct_sources();
        self.leave.set_destinations(self.destinations.clone());
        self.turn_interval = TURN_MIN;
        self.tell_sent(engine, now);
    }

    fn tell_sent(&mut self, engine: &mut Engine, now: Instant) {
        for (&(address, link), &sent) in &self.sent {
            engine.handle_direct_sent(address, link, sent, now);
        }
        self.untold = false;
    }

    /// The answer to `Event::DirectAsked`.
    pub fn answer(
        &self,
        engine: &mut Engine,
        (address, link): (MacAddr, LinkId),
        direct_mark: MacAddr,
        now: Instant,
    ) {
        let sent = self.sent.get(&(address, link)).copied().unwrap_or(0);
        engine.handle_direct_sent(address, link, sent, now);
        let came = self.came.get(&(link, direct_mark)).copied().unwrap_or(0);
        engine.handle_direct_received(link, direct_mark, came, now);
    }

    /// After frames were taken from the host: those that come back must not overtake what went directly.
    pub fn look_for_flows_that_left(&mut self, engine: &mut Engine, now: Instant) {
        if core::mem::take(&mut self.flows_left) {
            self.tell_sent(engine, now);
            engine.handle_flows_left_direct();
        }
    }

    /// The daemon looks at the programs.
    pub fn turn(&mut self, engine: &mut Engine, now: Instant) {
        self.turn_at = None;
        self.tell_sent(engine, now);
        for link in core::mem::take(&mut self.closed) {
            engine.handle_direct_congestion(link, now);
        }
        if self.wants_to_know(now) {
            self.next_ticket += 1;
            self.asked = Some(Question {
                number: self.next_ticket,
                ticket: self.leave.tickets(),
                at: now,
            });
            engine.request_drain(self.next_ticket, now);
        }
    }

    fn wants_to_know(&self, now: Instant) -> bool {
        let waits = |asked: Question| now.since(asked.at) < PATIENCE;
        let is_behind = self.leave.tickets() > self.drained;
        !self.destinations.is_empty() && is_behind && !self.asked.is_some_and(waits)
    }

    pub fn on_drained(&mut self, number: u64) {
        if let Some(asked) = self.asked.take_if(|asked| asked.number == number) {
            self.set_drained(asked.ticket);
        }
    }

    fn set_drained(&mut self, ticket: u64) {
        self.drained = ticket;
        self.leave.set_drained(ticket);
    }

    /// Says when the daemon is to look next, if it has something to look for.
    pub fn plan_turn(&mut self, now: Instant) {
        let has_work = self.untold
            || !self.closed.is_empty()
            || self.asked.is_some()
            || self.wants_to_know(now);
        if !has_work {
            self.turn_interval = TURN_MIN;
        }
        if !has_work || self.turn_at.is_some() {
            return;
        }
        let interval = self.turn_interval.max(TURN_MIN);
        self.turn_interval = (interval * 2).min(TURN_MAX);
        self.turn_at = Some(now + interval);
    }
}
