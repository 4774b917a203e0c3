//! A second path to a peer, from its first hello until trains may go over it.

use super::Engine;
use super::Event;
use super::paths::link_of;
use super::silence::is_good;
use super::transmit::Outgoing;
use crate::time::Instant;
use crate::trunk::join::Join;
use crate::trunk::lane::LaneId;

impl Engine {
    /// After a hello: a path has come to others, over which frames without a sequence may be under way.
    pub(super) fn begin_join(&mut self, slot: usize) {
        if let Some(peer) = self.peers.get_mut(slot)
            && peer.up
            && peer.join.is_none()
            && peer.paths.iter().any(|path| path.joining)
        {
            peer.join = Some(Join::default());
        }
    }

    /// What was sent plainly goes by trains from now on: not by another link than the home link before
    /// what is under way there has arrived.
    pub(super) fn join_behind_plain_frames(&mut self, slot: usize) {
        let home = self.home_towards(slot);
        if let Some(peer) = self.peers.get_mut(slot)
            && peer.paths.iter().any(|path| Some(path.link) == home)
        {
            for path in &mut peer.paths {
                path.joining |= Some(path.link) != home;
            }
            self.begin_join(slot);
        }
    }

    /// What went by this path is lost, or has its place in the order: nothing has to arrive before the newest paths are used.
    pub(super) fn end_join_behind(&mut self, slot: usize, at: usize) {
        if let Some(peer) = self.peers.get_mut(slot)
            && peer.paths.len() > 1
            && !peer.paths[at].joining
        {
            peer.end_join();
        }
    }

    /// … unless it stands in the link's local queue still, and there is no other link by which it could go again: a large frame takes a
    /// slow link so long that it seems dead. Whether the join waits for it.
    pub(super) fn join_waits_for_silent_path(
        &mut self,
        slot: usize,
        at: usize,
        now: Instant,
    ) -> bool {
        let Some(peer) = self.peers.get_mut(slot) else {
            return false;
        };
        let path = &peer.paths[at];
        let stands = link_of(&self.links, path).is_some_and(|link| link.local_queue_bytes() > 0);
        let mut others = peer.paths.iter().enumerate();
        let goes_by_another = others.any(|(other, path)| other != at && is_good(&self.links, path));
        let may_wait = stands && !path.joining && !goes_by_another;
        let join = peer.join.as_mut().filter(|_| may_wait);
        let waits = join.is_some_and(|join| join.waits_on_silence(now));
        if !waits {
            self.end_join_behind(slot, at);
        }
        waits
    }

    /// A probe behind all that went by the older paths. Not before the owner was told that nothing goes
    /// past us any more, and has been back since.
    pub(super) fn take_join_probe(&mut self, now: Instant) -> Option<Outgoing> {
        if self.events.contains(&Event::PathsChanged) {
            return None;
        }
        let mut has_ended = false;
        let mut from = 0;
        while let Some(slot) = self.peers.due.next(from, now) {
            from = slot + 1;
            let Some(peer) = self.peers.get(slot) else {
                continue;
            };
            let Some(join) = &peer.join else { continue };
            if join.is_hopeless(now) {
                self.peers.get_mut(slot)?.end_join();
                has_ended = true;
                continue;
            }
            if !join.is_due(now) {
                continue;
            }
            let old = peer.paths.iter().find(|path| !path.joining);
            let Some(link) = old.map(|path| path.link) else {
                self.peers.get_mut(slot)?.end_join();
                has_ended = true;
                continue;
            };
            match self.send_probe((slot, LaneId::FIRST), link, now) {
                Some((outgoing, sequence)) => {
                    let join = self.peers.get_mut(slot)?.join.as_mut()?;
                    join.on_sent(link, sequence, now);
                    return Some(outgoing);
                }
                // It cannot carry one: then nothing is under way on it either.
                None => {
                    self.peers.get_mut(slot)?.end_join();
                    has_ended = true;
                }
            }
        }
        // What waits for such a path was asked for before it could be used, and nobody may call again soon.
        match has_ended {
            true => self.take_data(now),
            false => None,
        }
    }
}
