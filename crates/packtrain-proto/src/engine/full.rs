//! An engine that takes all that it can, by what it sends or by what it is sent, and what its peers are told of that: what may go past
//! it is welcome to, in both directions.

use super::paths::link_of;
use super::{Engine, Event};
use crate::config::LinkId;
use crate::direct::DIRECT_CALM;
use crate::peer::Peer;
use crate::time::{Duration, Instant};

/// Who is sent less than this by us is not full of it, bit/s.
const MUCH_BPS: u64 = 200_000_000;
/// Flows that have rested show by then whether they go past us.
const SHOWS: Duration = Duration::from_millis(600);

/// What peers are told.
type Said = (bool, bool);

impl Engine {
    /// The owner has read what it wants for now of what has come by the links, and left frames unread, or there are no more.
    pub fn handle_links_read(&mut self, left_unread: bool, now: Instant) {
        let given = self.counters.host_tx.bytes;
        let Some(full_bps) = self.reading.on_read(left_unread, given, now) else {
            return;
        };
        let said = self.said();
        self.surplus_rx.on_engine_full(full_bps, given, now);
        self.tell_if_other(said, now);
    }

    /// That it is full of what it is sent; and that much goes past it. An engine that is full of what it sends itself says so only then:
    /// acknowledgements that came past it before could not be kept back ([`crate::direct::rest`]).
    fn said(&self) -> Said {
        (self.surplus_rx.is_open(), self.past_until.is_some())
    }

    /// A rest is over; whether all rested, so that flows may go past us now.
    pub(super) fn note_rest(&mut self, is_success: bool, now: Instant) {
        let said = self.said();
        if is_success {
            let shows = now + SHOWS;
            self.past_until = Some(self.past_until.map_or(shows, |until| until.max(shows)));
        } else if self.directly_bps < MUCH_BPS {
            self.past_until = None;
        }
        self.tell_if_other(said, now);
    }

    fn tell_if_other(&mut self, said: Said, now: Instant) {
        if said == self.said() {
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
    pub(super) fn note_whether_full(&mut self, slot: usize, (full, past): Said) {
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        let before = std::mem::replace(&mut peer.full, full);
        let before = std::mem::replace(&mut peer.past, past) || before;
        // What rests now may go past it from then on.
        if (full || past) && !before && !self.events.contains(&Event::FlowsRest) {
            self.events.push_back(Event::FlowsRest);
        }
    }

    /// A few times a second: what we send, or a peer is sent, that takes no more would go past it if it rested for a moment.
    pub(super) fn look_who_is_full(&mut self, now: Instant) {
        let said = self.said();
        self.surplus.look(self.counters.host_rx.bytes, now);
        self.surplus_rx.look(self.counters.host_tx.bytes, now);
        self.directly_bps = self.direct_meter.rate_bps(self.surplus.direct_bytes(), now);
        // Who is full says so of itself: not of what others say, or two would say it of each other for ever.
        let is_one = |(_, peer): (usize, &Peer)| peer.up && peer.full;
        let is_full = self.surplus.is_open() || self.peers.iter().any(is_one);
        if !is_full {
            self.past_until = None;
        } else if self.directly_bps >= MUCH_BPS {
            self.past_until = Some(now + DIRECT_CALM);
        } else {
            self.past_until.take_if(|until| *until <= now);
        }
        self.tell_if_other(said, now);
        let sent_bps = self.sent_meter.rate_bps(self.counters.host_rx.bytes, now);
        let to_peers_bps = self.peers_meter.rate_bps(self.taken_for_peers, now);
        if is_full && to_peers_bps >= MUCH_BPS.max(sent_bps / 2) {
            self.begin_rest(sent_bps, now);
        }
    }
}
