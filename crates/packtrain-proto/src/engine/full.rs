//! An engine that takes all that it can, by what it sends or by what it is sent, and what its peers are told of that: what may go past
//! it is welcome to, in both directions.

use super::paths::link_of;
use super::{Engine, Event};
use crate::config::LinkId;
use crate::direct::DIRECT_CALM;
use crate::direct::reading::{Meter, Reading};
use crate::direct::surplus::{FULL_MIN_BPS, Surplus};
use crate::peer::Peer;
use crate::time::{Duration, Instant};

/// Flows that have rested show by then whether they go past us.
const SHOWS: Duration = Duration::from_millis(600);

/// What an engine that takes all that it can is known by.
#[derive(Debug, Default)]
pub(super) struct Full {
    /// Of what the host sends.
    pub(super) sent: Surplus,
    /// Of what comes by the links.
    pub(super) received: Surplus,
    reading: Reading,
    pub(super) host_meter: Meter,
    pub(super) peers_meter: Meter,
    direct_meter: Meter,
    /// Host bytes that have left for peers, ever.
    pub(super) taken_for_peers: u64,
    /// What of the host went past us lately, bit/s.
    directly_bps: u64,
    /// Much of what the host sends goes past us, or has lately, where an engine is full.
    past_until: Option<Instant>,
}

/// What a node says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Said {
    /// It takes no more of what it is sent.
    pub(super) full: bool,
    /// Much of what its host sends goes past it. An engine that is full of what it sends says nothing before: acknowledgements
    /// that came past it could not be kept back ([`crate::direct::rest`]).
    pub(super) past: bool,
}

impl Full {
    pub(super) fn said(&self) -> Said {
        Said {
            full: self.received.is_open(),
            past: self.past_until.is_some(),
        }
    }
}

impl Engine {
    /// The owner has read what it wants for now of what has come by the links, and left frames unread, or there are no more.
    pub fn handle_links_read(&mut self, left_unread: bool, now: Instant) {
        // The owner is here many times a second while there is much to do, and what it sends is looked at as often.
        if let Some(bps) = self.full.sent.step(self.counters.host_rx.bytes, now) {
            self.on_engine_full_again(bps, now);
        }
        let given = self.counters.host_tx.bytes;
        let Some(full_bps) = self.full.reading.on_read(left_unread, given, now) else {
            return;
        };
        let said = self.full.said();
        self.full.received.on_engine_full(full_bps, given, now);
        self.tell_if_other(said, now);
    }

    /// A rest is over; whether all rested, so that flows may go past us now.
    pub(super) fn note_rest(&mut self, is_success: bool, now: Instant) {
        let said = self.full.said();
        if is_success {
            let shows = now + SHOWS;
            self.full.past_until =
                Some(self.full.past_until.map_or(shows, |until| until.max(shows)));
        } else if self.full.directly_bps < FULL_MIN_BPS {
            self.full.past_until = None;
        }
        self.tell_if_other(said, now);
    }

    fn tell_if_other(&mut self, said: Said, now: Instant) {
        if said == self.full.said() {
            return;
        }
        // Where there is one link, what may go past us does.
        let several = self.peers.iter().filter(|(_, peer)| peer.paths.len() > 1);
        let way = |peer: &Peer| {
            let mut paths = peer.paths.iter();
            let of_use = paths.find(|p| !p.is_silent() && link_of(&self.links, p).is_some());
            of_use.map(|path| path.link)
        };
        let ways = several.filter_map(|(slot, peer)| Some((way(peer)?, slot)));
        let all: Vec<(LinkId, usize)> = ways.collect();
        for (link, slot) in all {
            self.send_hello(link, Some(slot), false, false, now);
        }
    }

    /// What a peer says of itself.
    pub(super) fn note_whether_full(&mut self, slot: usize, said: Said) {
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        let before = peer.full || peer.past;
        (peer.full, peer.past) = (said.full, said.past);
        // What rests now may go past it from then on.
        if (said.full || said.past) && !before && !self.events.contains(&Event::FlowsRest) {
            self.events.push_back(Event::FlowsRest);
        }
    }

    /// A few times a second: what we send, or a peer is sent, that takes no more would go past it if it rested for a moment.
    pub(super) fn look_who_is_full(&mut self, now: Instant) {
        let said = self.full.said();
        self.full.sent.look(self.counters.host_rx.bytes, now);
        self.full.received.look(self.counters.host_tx.bytes, now);
        self.full.directly_bps = self
            .full
            .direct_meter
            .rate_bps(self.full.sent.direct_bytes(), now);
        // Who is full says so of itself: not of what others say, or two would say it of each other for ever.
        let is_one = |(_, peer): (usize, &Peer)| peer.up && peer.full;
        let is_full = self.full.sent.is_open() || self.peers.iter().any(is_one);
        if !is_full {
            self.full.past_until = None;
        } else if self.full.directly_bps >= FULL_MIN_BPS {
            self.full.past_until = Some(now + DIRECT_CALM);
        } else {
            self.full.past_until.take_if(|until| *until <= now);
        }
        self.tell_if_other(said, now);
        let sent_bps = self
            .full
            .host_meter
            .rate_bps(self.counters.host_rx.bytes, now);
        let to_peers_bps = self
            .full
            .peers_meter
            .rate_bps(self.full.taken_for_peers, now);
        if is_full && to_peers_bps >= FULL_MIN_BPS.max(sent_bps / 2) {
            self.begin_rest(sent_bps, now);
        }
    }
}
