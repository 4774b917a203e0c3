//! An engine that takes all that it can, by what it sends or by what it is sent, and what its peers are told of that: what may go past
//! it is welcome to, in both directions.

use super::{Engine, Event};
use crate::direct::DIRECT_CALM;
use crate::peer::Peer;
use crate::time::Instant;

/// Who is sent less than this by us is not full of it, bit/s.
const MUCH_BPS: u64 = 200_000_000;

impl Engine {
    /// The owner has read what it wants for now of what has come by the links, and left frames unread, or there are no more.
    pub fn handle_links_read(&mut self, left_unread: bool, now: Instant) {
        let given = self.counters.host_tx.bytes;
        let Some(full_bps) = self.reading.on_read(left_unread, given, now) else {
            return;
        };
        let said_so = self.says_full();
        self.surplus_rx.on_engine_full(full_bps, given, now);
        self.tell_if_other(said_so, now);
    }

    /// Peers are told so. Of what is sent only once it goes past us: acknowledgements that came past us before could not be kept back
    /// ([`crate::direct::rest`]).
    pub(super) fn says_full(&self) -> bool {
        self.surplus_rx.is_open() || self.goes_past_until.is_some()
    }

    /// A rest is over; whether it has brought flows past us.
    pub(super) fn note_rest(&mut self, is_success: bool, now: Instant) {
        let said_so = self.says_full();
        self.goes_past_until = is_success.then_some(now + DIRECT_CALM);
        self.tell_if_other(said_so, now);
    }

    fn tell_if_other(&mut self, said_so: bool, now: Instant) {
        if said_so != self.says_full() {
            self.tell_that_full(now);
        }
    }

    /// Those to whom it matters, at once: where there is one link, what may go past us does.
    fn tell_that_full(&mut self, now: Instant) {
        let several = self.peers.iter().filter(|(_, peer)| peer.paths.len() > 1);
        let first = several.filter_map(|(slot, peer)| Some((peer.paths.first()?.link, slot)));
        let all: Vec<_> = first.collect();
        for (link, slot) in all {
            self.send_hello(link, Some(slot), false, false, now);
        }
    }

    /// What a peer says of itself.
    pub(super) fn note_whether_full(&mut self, slot: usize, full: bool) {
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        let was_full = std::mem::replace(&mut peer.full, full);
        // What rests now may go past it from then on.
        if full && !was_full && !self.events.contains(&Event::FlowsRest) {
            self.events.push_back(Event::FlowsRest);
        }
    }

    /// A few times a second: what we send, or a peer is sent, that takes no more would go past it if it rested for a moment.
    pub(super) fn look_who_is_full(&mut self, now: Instant) {
        let said_so = self.says_full();
        self.surplus.look(self.counters.host_rx.bytes, now);
        self.surplus_rx.look(self.counters.host_tx.bytes, now);
        let directly = self.direct_meter.rate_bps(self.surplus.direct_bytes(), now);
        let is_one = |(_, peer): (usize, &Peer)| peer.up && peer.full;
        let is_full = self.surplus.is_open() || self.peers.iter().any(is_one);
        match directly >= MUCH_BPS {
            true => self.goes_past_until = Some(now + DIRECT_CALM),
            false => drop(self.goes_past_until.take_if(|until| *until <= now)),
        }
        self.goes_past_until.take_if(|_| !is_full);
        self.tell_if_other(said_so, now);
        let bps = self.sent_meter.rate_bps(self.counters.host_rx.bytes, now);
        if is_full && bps >= MUCH_BPS {
            self.let_flows_rest(bps, now);
        }
    }
}
