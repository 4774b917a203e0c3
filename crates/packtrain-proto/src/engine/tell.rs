//! What we tell a peer of what is under way on which link, so that it knows which gaps are lost.

use super::Engine;
use super::paths::link_of;
use super::transmit::Outgoing;
use crate::config::LinkId;
use crate::peer_table::Peer;
use crate::time::Instant;
use crate::wire::train::{NEWEST_MAX, Newest, REPLAYED};

/// What one train tells.
#[derive(Debug)]
pub(super) struct Told {
    entries: [Newest; NEWEST_MAX],
    len: usize,
}

impl Told {
    pub(super) fn entries(&self) -> &[Newest] {
        &self.entries[..self.len]
    }

    fn push(&mut self, newest: Newest) {
        if let Some(entry) = self.entries.get_mut(self.len) {
            *entry = newest;
            self.len += 1;
        }
    }
}

/// What may still arrive by other links than `by`. A train or marker by that link says of it that all
/// before has arrived or is lost.
pub(super) fn under_way(peer: &mut Peer, by: LinkId) -> Told {
    let mut told = Told {
        entries: [Newest::default(); NEWEST_MAX],
        len: 0,
    };
    if peer.paths.len() == 1 && peer.replay.is_empty() {
        return told;
    }
    let replays: usize = peer
        .paths
        .iter()
        .map(|p| p.flight.outstanding_replays())
        .sum();
    if let Some(train) = peer.replay.newest(replays > 0) {
        told.push(Newest {
            link: REPLAYED,
            train,
        });
    }
    for path in peer.paths.iter().filter(|path| path.link != by) {
        if let Some(train) = path.flight.newest_outstanding() {
            told.push(Newest {
                link: path.link.0,
                train,
            });
        }
    }
    told
}

impl Engine {
    /// The end of what a link carries is not acknowledged, and newer trains went by others: it may be lost,
    /// and they would wait for it. A marker behind it says that nothing comes any more.
    pub(super) fn take_marker(&mut self, now: Instant) -> Option<Outgoing> {
        let mut from = 0;
        while let Some(slot) = self.peers.due.next(from, now) {
            from = slot + 1;
            let several = |peer: &&mut Peer| peer.paths.len() > 1;
            let Some(peer) = self.peers.get_mut(slot).filter(several) else {
                continue;
            };
            let newest = peer.next_train.minus(1);
            for at in 0..peer.paths.len() {
                let path = &mut peer.paths[at];
                if path.flight.marker_due().is_none_or(|due| due > now) {
                    continue;
                }
                path.flight.on_marker_sent();
                let is_behind = path
                    .flight
                    .newest_outstanding()
                    .is_some_and(|train| newest.is_newer_than(train));
                if is_behind && link_of(&self.links, path).is_some() {
                    let link = path.link;
                    return self.send_marker(slot, link, now);
                }
            }
        }
        None
    }
}
