//! A node whose engine is away while its direct path stays: what is said in its place, and how its peers treat it.
//!
//! Its owner asks for the words beforehand, and gives them to whoever stays behind. A peer that hears them keeps
//! where its direct frames go and come from. All else for that node ends: what waits and what comes is dropped, for
//! nobody would acknowledge it; so nothing of it is under way, and every flow may go directly.

use super::{Engine, Event};
use crate::config::LinkId;
use crate::direct::{DirectDestination, OpenTo};
use crate::stats::DropReason;
use crate::time::Instant;
use crate::turns::Destination;

/// What is to be said on a link in our place: whole frames, made beforehand. They are old when they are sent, so they
/// say no number of hellos.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    pub link: LinkId,
    /// Our engine is away. At once, and as often as hellos are said.
    pub away: Vec<u8>,
    /// It does not come back.
    pub goodbye: Vec<u8>,
}

impl Engine {
    /// For each link that a hello can leave by now.
    pub fn words_for_absence(&mut self, now: Instant) -> Vec<Word> {
        let links: Vec<LinkId> = self.links.iter().map(|link| link.id).collect();
        let mut words = Vec::new();
        for link in links {
            let away = self.hello_frame(link, None, now, |hello, _| hello.away = true);
            let goodbye = self.hello_frame(link, None, now, |hello, _| hello.goodbye = true);
            if let (Some(away), Some(goodbye)) = (&away, &goodbye) {
                words.push(Word {
                    link,
                    away: away.to_vec(),
                    goodbye: goodbye.to_vec(),
                });
            }
            self.recycle(away);
            self.recycle(goodbye);
        }
        words
    }

    /// Where frames may go directly while we are away. More than go so now, where the line is busy.
    pub fn destinations_in_absence(&self) -> Vec<DirectDestination> {
        let paths = self.peers.iter().flat_map(|(slot, peer)| {
            let paths = peer.paths.iter();
            paths.filter_map(move |path| self.way_past_gates(slot, peer, path, true).ok())
        });
        let open = |(way, _): &(DirectDestination, _)| way.open_to == OpenTo::All;
        paths.filter(open).map(|(way, _)| way).collect()
    }

    /// Whether only direct frames reach some peer: the direct path must not close.
    pub fn has_peer_away(&self) -> bool {
        self.peers.iter().any(|(_, peer)| peer.up && peer.away)
    }

    pub(super) fn is_away(&self, slot: usize) -> bool {
        self.peers.get(slot).is_some_and(|peer| peer.away)
    }

    /// What the newest hello of a peer says of it.
    pub(super) fn note_whether_away(&mut self, slot: usize, away: bool, now: Instant) {
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        if away {
            // Who speaks in its place hears nobody: that it does is not to be waited for.
            peer.last_confirmed = now;
        }
        if std::mem::replace(&mut peer.away, away) == away {
            return;
        }
        if away {
            self.let_go_of_what_waits_for(slot);
            // Nobody would answer: nothing is under way to it any more.
            self.drain.forget_peer(slot);
            self.step_drain(now);
        }
        if !self.events.contains(&Event::PathsChanged) {
            self.events.push_back(Event::PathsChanged);
        }
    }

    fn let_go_of_what_waits_for(&mut self, slot: usize) {
        let peer = self.peers.get_mut(slot).expect("looked up just now");
        let later = peer.later.take().unwrap_or_default();
        let frames: Vec<_> = peer.queues.drain().chain(later).collect();
        self.forget_lane_change();
        self.turns.leave(Destination::Peer(slot));
        self.direct_reports.retain(|(of, _)| *of != slot);
        for frame in frames {
            self.on_unqueued(1, frame.waiting());
            self.drop_frame(frame.buffer, DropReason::PeerAway);
        }
    }
}
