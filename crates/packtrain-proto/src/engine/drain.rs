//! Probes: whether the peers have given to their hosts all that was sent to them before.

use super::head::{HEAD_LEN_MAX, Head};
use super::transmit::Outgoing;
use super::{Engine, Event};
use crate::config::LinkId;
use crate::peer::{Path, Peer};
use crate::stats::FlushReason;
use crate::time::Instant;
use crate::trunk::flight::Kind;
use crate::trunk::lane::{LaneId, TrainId};
use crate::wire::sequence::Sequence;

impl Engine {
    /// Asks whether all that was handed to [`Engine::handle_host_frame`] up to now has been given to
    /// the peers' hosts, or dropped. [`Event::Drained`] says so. It does not come when a peer stays
    /// silent, or when a newer request came before anybody was asked for this one, and not while links
    /// join those that there are. Transmits follow, as after every `handle_*`.
    ///
    /// What it rests on: frames without a sequence (as they are, and plain) keep their place on the
    /// link before the probe; 16 trains in a row do not come after their gap was given up, for then
    /// they are believed to be new. Without a peer that is up, nobody can tell more than that nothing
    /// stands in our queues; and nobody is asked for what is under way to a life of a peer that is over: of that,
    /// frames as they are may still come to the next one.
    pub fn request_drain(&mut self, ticket: u64, now: Instant) {
        self.drain.request(ticket);
        self.rest.on_asked(ticket, self.counters.host_rx.bytes, now);
        self.step_drain(now);
    }

    /// After all that may have answered the last peer, or emptied the queues.
    pub(super) fn step_drain(&mut self, now: Instant) {
        loop {
            if let Some(ticket) = self.drain.take_done() {
                let host_bytes = self.counters.host_rx.bytes;
                self.rest.on_arrived(ticket, host_bytes, now);
                self.events.push_back(Event::Drained { ticket });
            }
            // Frames without a sequence, of when there was one link, are not before a probe on another.
            let joins = |(_, peer): (usize, &Peer)| peer.paths.iter().any(|path| path.joining);
            if self.peers.iter().any(joins) {
                self.drain.begin_anew();
                return;
            }
            if !self.drain.may_begin() || self.queued_frames > 0 {
                return;
            }
            let up = self.peers.iter().filter(|(_, peer)| peer.up && !peer.away);
            let round_trip = |peer: &Peer| {
                let paths = peer.paths.iter();
                paths.filter_map(|path| path.flight.round_trip()).max()
            };
            let in_lanes = |(slot, peer): (usize, &Peer)| {
                let is_used = |lane: &LaneId| {
                    *lane == LaneId::FIRST || peer.tx_of(*lane).next_train != Sequence::FIRST
                };
                let used: Vec<LaneId> = peer.lanes_tx().filter(is_used).collect();
                let round_trip = round_trip(peer);
                used.into_iter().map(move |lane| ((slot, lane), round_trip))
            };
            let asked: Vec<_> = up.flat_map(in_lanes).collect();
            self.drain.begin(asked.into_iter(), now);
        }
    }

    /// The next probe, behind all that the queues held when it was asked for.
    pub(super) fn take_probe(&mut self, now: Instant) -> Option<Outgoing> {
        if self.drain.is_idle() {
            return None;
        }
        self.step_drain(now);
        let probed = self.drain.due().find_map(|to| {
            let peer = self.peers.get(to.0)?;
            Some((to, self.probing_link(peer)?))
        });
        let (to, link_id) = probed?;
        let (outgoing, sequence) = self.send_probe(to, link_id, now)?;
        self.drain.on_sent(to, (link_id, sequence));
        Some(outgoing)
    }

    /// A train without subframes, and its link sequence.
    pub(super) fn send_probe(
        &mut self,
        (slot, lane): (usize, LaneId),
        link_id: LinkId,
        now: Instant,
    ) -> Option<(Outgoing, Sequence)> {
        let peer = self.peers.get_mut(slot)?;
        let link = self.links.iter().find(|link| link.id == link_id)?;
        let at = peer.paths.iter().position(|path| path.link == link_id)?;
        if !peer.paths[at].is_open() || !link.carries_trains() {
            return None;
        }
        let own = self.config.node_id;
        let mut head = Head::of_train((&mut *peer, at), lane, link, own, now);
        head.header.ack_now = true;
        let train = TrainId {
            lane,
            sequence: head.header.train_sequence,
        };
        let mut buffer = self.pool.take(HEAD_LEN_MAX);
        head.write(&mut buffer, (&*peer, at), link);
        // Whatever it takes says nothing about the link's rate.
        peer.paths[at].flight.on_source_empty();
        self.counters.trains_tx.trains += 1;
        self.counters.flushes.count(FlushReason::Control);
        peer.tx_mut(lane).on_sent(now);
        self.send_train((slot, at), train, (buffer, 0), (Kind::New, now), now)
    }

    fn probing_link(&self, peer: &Peer) -> Option<LinkId> {
        let carries = |path: &&Path| {
            let link = self.link(path.link);
            path.is_open() && link.is_some_and(|link| link.carries_trains())
        };
        // One that answers, if there is one.
        let open = peer.paths.iter().filter(carries);
        open.min_by_key(|path| path.is_silent())
            .map(|path| path.link)
    }
}
