//! Trains that are sent by two links, because their class or the line says so: what one of them loses, or is late with, the other brings.
//!
//! The second takes the same train sequence, a link sequence of its own, and the way of what goes again: its receiver delivers
//! the one that comes first, and drops the other. Only the first is kept until it is acknowledged, and goes again if its link loses it
//! or dies: no train waits for a second one, and where no other link has room there is none.

use super::Engine;
use super::paths::{pass_bytes_max, second_path};
use super::transmit::Outgoing;
use crate::buffer::Buffer;
use crate::config::{Balance, LinkId, NodeId};
use crate::peer::Path;
use crate::time::Instant;
use crate::trunk::flight::Kind;
use crate::trunk::lane::TrainId;
use crate::wire::hello::capability;

/// A train that has left, and is to leave by this link too.
#[derive(Debug)]
pub(super) struct Second {
    peer: (usize, NodeId),
    link: LinkId,
    train: TrainId,
    message: Buffer,
}

impl Engine {
    /// The train is about to leave by the path `at`. It takes a second one next, if its class or the line says so.
    pub(super) fn prepare_second(
        &mut self,
        (slot, at): (usize, usize),
        train: TrainId,
        message: &Buffer,
        now: Instant,
    ) {
        let Some(peer) = self.peers.get(slot) else {
            return;
        };
        let via = self.vias.links_of(peer.queues.served_band().lane);
        let says_class = || peer.queues.served_band().twice;
        let is_wanted = self.config.balance == Balance::Duplicate || says_class();
        if !is_wanted || peer.paths.len() == 1 {
            return;
        }
        // While trains say what they must not overtake, one that says nothing would.
        let may = peer.tx_of(train.lane).fences.is_empty();
        let second = may
            .then(|| second_path(&self.links, peer, (at, &via), message.len(), now))
            .flatten();
        match second {
            None => self.copies.not_duplicated += 1,
            Some(second) => {
                self.second = Some(Second {
                    peer: (slot, peer.node_id),
                    link: peer.paths[second].link,
                    train,
                    message: self.pool.copy_of(message),
                });
            }
        }
    }

    /// Right behind the first, if that path is still there and takes as much.
    pub(super) fn take_second(&mut self, now: Instant) -> Option<Outgoing> {
        let second = self.second.take()?;
        let (slot, node_id) = second.peer;
        let peer = self.peers.get(slot).filter(|peer| peer.node_id == node_id);
        let at = peer.and_then(|peer| {
            let fits = |path: &Path| second.message.len() <= pass_bytes_max(&self.links, path);
            let mut paths = peer.paths.iter();
            paths.position(|path| path.link == second.link && fits(path))
        });
        let message = at.and_then(|at| self.readdressed(slot, at, &second.message, false));
        self.pool.give_back(second.message);
        let (Some(at), Some(message)) = (at, message) else {
            self.copies.not_duplicated += 1;
            return None;
        };
        self.copies.duplicated += 1;
        // Its receiver is told that it may still come, if it also knows from which one on.
        if let Some(peer) = self.peers.get_mut(slot)
            && peer.capabilities & capability::KNOWS_FROM != 0
        {
            let sequence = second.train.sequence;
            peer.tx_mut(second.train.lane).replay.note_sent(sequence);
        }
        let bytes = message.len();
        let to = (slot, at);
        let sent = self.send_train(
            to,
            second.train,
            (message, bytes),
            (Kind::Duplicate, now),
            now,
        );
        sent.map(|(outgoing, _)| outgoing)
    }
}
