//! Links that do not answer as soon as they do when all is well. They may only be slow; but a kernel may be in no hurry to
//! tell that a link has lost its carrier, and who can ask it is told here which ones to ask for.

use super::Engine;
use crate::config::LinkId;
use crate::peer::Peer;
use crate::time::Instant;

fn several_ways(peer: &Peer) -> bool {
    peer.paths.len() > 1
}

impl Engine {
    /// Whether something is under way to a peer that several links lead to: one of them may be late with it soon.
    pub fn awaits_links(&self) -> bool {
        let mut peers = self.peers.iter().filter(|(_, peer)| several_ways(peer));
        peers.any(|(_, peer)| {
            let mut paths = peer.paths.iter();
            paths.any(|path| path.flight.in_flight_bytes() > 0)
        })
    }

    /// The links whose other end is dead, as a peer says that several lead to: it may be the cable, and ours as well.
    pub fn links_said_dead(&self) -> impl Iterator<Item = LinkId> {
        let peers = self.peers.iter().filter(|(_, peer)| several_ways(peer));
        peers.flat_map(|(_, peer)| {
            let dead = peer.paths.iter().filter(|path| !path.remote_carrier);
            dead.map(|path| path.link)
        })
    }

    /// The links that are late with what is under way to such a peer; one that is late for several, as often.
    pub fn late_links(&self, now: Instant) -> impl Iterator<Item = LinkId> {
        let peers = self.peers.iter().filter(|(_, peer)| several_ways(peer));
        peers.flat_map(move |(_, peer)| {
            let late = peer
                .paths
                .iter()
                .filter(move |path| path.flight.is_late(now));
            late.map(|path| path.link)
        })
    }
}
