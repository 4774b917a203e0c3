//! What a line leaves to whoever keeps its direct path when it is gone, and what it knows of such peers.

use std::os::fd::{AsFd, BorrowedFd};

use packtrain_proto::engine::Word;

use super::Line;
use crate::linux::direct::Destination;

impl Line {
    /// What is to be said in our place, each with the interface to say it on ([`Engine::words_for_absence`]).
    ///
    /// [`Engine::words_for_absence`]: packtrain_proto::engine::Engine::words_for_absence
    pub fn words_for_absence(&mut self) -> Vec<(u32, Word)> {
        let words = self.engine.words_for_absence(self.clock.now());
        let with_interface = words.into_iter().filter_map(|word| {
            let member = self.members.get_mut(word.link)?;
            Some((member.attached.as_ref()?.socket.ifindex(), word))
        });
        with_interface.collect()
    }

    /// Where frames may go directly while we are away.
    pub fn destinations_in_absence(&self) -> Vec<Destination> {
        self.with_interfaces(self.engine.destinations_in_absence())
    }

    /// Whether some peer is reached by direct frames alone.
    pub fn has_peer_away(&self) -> bool {
        self.engine.has_peer_away()
    }

    pub fn tap_fd(&self) -> BorrowedFd<'_> {
        self.tap.as_fd()
    }
}
