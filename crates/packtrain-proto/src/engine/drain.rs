//! Probes: whether the peers have given to their hosts all that was sent to them before.

use super::transmit::{ACKS_MAX, Outgoing, take_acks};
use super::{Engine, Event};
use crate::config::LinkId;
use crate::peer_table::Peer;
use crate::time::Instant;
use crate::wire::ethernet::HEADER_LEN;
use crate::wire::train::{self, ACK_OPTION_LEN, TrainHeader, TrainWriter};

impl Engine {
    /// Asks whether all that was handed to [`Engine::handle_host_frame`] up to now has been given to
    /// the peers' hosts, or dropped. [`Event::Drained`] says so. It does not come when a peer stays
    /// silent, or when a newer request came before anybody was asked for this one. Transmits follow,
    /// as after every `handle_*`.
    ///
    /// What it rests on: frames without a sequence (as they are, and plain) keep their place on the
    /// link before the probe; 16 trains in a row do not come after their gap was given up, for then
    /// they are believed to be new. Without a peer that is up, nobody can tell more than that nothing
    /// stands in our queues.
    pub fn request_drain(&mut self, ticket: u64, now: Instant) {
        self.drain.request(ticket);
        self.step_drain(now);
    }

    /// After all that may have answered the last peer, or emptied the queues.
    pub(super) fn step_drain(&mut self, now: Instant) {
        loop {
            if let Some(ticket) = self.drain.take_done() {
                self.events.push_back(Event::Drained { ticket });
            }
            if !self.drain.may_begin() || self.queued_frames > 0 {
                return;
            }
            let up = self.peers.iter().filter(|(_, peer)| peer.up);
            let round_trip = |peer: &Peer| {
                let paths = peer.paths.iter();
                paths.filter_map(|path| path.flight.round_trip()).max()
            };
            let asked = up.map(|(slot, peer)| (slot, round_trip(peer)));
            self.drain.begin(asked, now);
        }
    }

    /// The next probe, behind all that the queues held when it was asked for.
    pub(super) fn take_probe(&mut self, now: Instant) -> Option<Outgoing> {
        if self.drain.is_idle() {
            return None;
        }
        self.step_drain(now);
        let probed = self.drain.due().find_map(|slot| {
            let peer = self.peers.get(slot)?;
            Some((slot, self.probing_link(peer)?))
        });
        let (slot, link_id) = probed?;
        let peer = self.peers.get_mut(slot)?;
        let link = self.links.iter().find(|link| link.id == link_id)?;
        let incarnation = peer.incarnation(self.config.node_id);
        let session = peer.remote_incarnation();
        let (acks, n) = take_acks(&mut peer.receipts, session, now);
        let path = peer.paths.iter_mut().find(|path| path.link == link_id)?;
        let header = TrainHeader {
            ack_now: true,
            marker: false,
            lane: 0,
            link: link_id.0,
            incarnation,
            train_sequence: peer.next_train,
            link_sequence: path.flight.next_sequence(),
        };
        let len = HEADER_LEN + train::HEADER_LEN + ACKS_MAX * ACK_OPTION_LEN;
        let mut buffer = self.pool.take(len);
        let (to, from) = (path.remote_address, link.state.address);
        TrainWriter::begin(&mut buffer, to, from, &header, &acks[..n]);
        peer.next_train = peer.next_train.next();
        // Whatever it takes says nothing about the link's rate.
        path.flight.on_source_empty();
        let sequence = path.flight.on_sent(buffer.len(), now);
        self.drain.on_sent(slot, link_id, sequence);
        self.counters.trains_tx.trains += 1;
        self.outgoing = Some(buffer);
        Some(Outgoing::message(link_id))
    }

    fn probing_link(&self, peer: &Peer) -> Option<LinkId> {
        let open = peer.paths.iter().filter(|path| path.is_open());
        let mut links = open.map(|path| path.link);
        links.find(|&id| self.link(id).is_some_and(|link| link.carries_trains()))
    }
}
