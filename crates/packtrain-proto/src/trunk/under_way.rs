//! Which trains may still arrive, and by which link of their sender: what it tells in each train (NEWEST in
//! docs/wire-format.md), and what each link has delivered since.

use crate::config::LinkId;
use crate::time::Instant;
use crate::wire::sequence::Sequence;
use crate::wire::train::{NEWEST_MAX, REPLAYED, REPLAYED_FROM};

/// Of more links than a train can name, only a forger speaks.
const CLAIMS_MAX: usize = 2 * NEWEST_MAX;

#[derive(Debug)]
pub(super) struct UnderWay {
    /// The newest that each link delivered, for links that delivered anything.
    delivered: Vec<(LinkId, Sequence)>,
    /// What other links than its own carried when this train left.
    claims: Vec<Claim>,
    told_by: Sequence,
    /// When it, or another of the same sequence, has come.
    told_at: Instant,
    names_links: bool,
    /// No train before this one goes again, if that was told.
    replayed_from: Option<Sequence>,
}

/// No train newer than this is under way on this link.
#[derive(Clone, Copy, Debug)]
struct Claim {
    link: LinkId,
    newest: Sequence,
    /// When the sender last said so.
    told_at: Instant,
}

/// A train beside those that its link delivered before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivered {
    First,
    Newer,
    Again,
    Older,
}

impl UnderWay {
    /// Nothing is known of what comes after this train.
    pub(super) fn after(train: Sequence) -> UnderWay {
        UnderWay {
            delivered: Vec::new(),
            claims: Vec::new(),
            told_by: train,
            told_at: Instant::ZERO,
            names_links: false,
            replayed_from: None,
        }
    }

    /// The same, but a sender that has several links still has them.
    pub(super) fn restart_after(&mut self, train: Sequence) {
        self.delivered.clear();
        self.claims.clear();
        self.replayed_from = None;
        self.told_by = train;
    }

    /// The sender has spoken of several links, ever: what comes late may be another link's.
    pub(super) fn names_links(&self) -> bool {
        self.names_links
    }

    #[cfg(test)]
    pub(super) fn claims(&self) -> usize {
        self.claims.len()
    }

    /// Links keep their order: all that this one was given before has arrived, or is lost.
    pub(super) fn on_delivered(&mut self, link: LinkId, train: Sequence) -> Delivered {
        let Some((_, newest)) = self.delivered.iter_mut().find(|(l, _)| *l == link) else {
            self.delivered.push((link, train));
            return Delivered::First;
        };
        if train.is_newer_than(*newest) {
            *newest = train;
            Delivered::Newer
        } else if train == *newest {
            Delivered::Again
        } else {
            Delivered::Older
        }
    }

    /// What a newer train tells takes the place of what an older one told. Markers with the same sequence
    /// overtake each other, on links of different delay, and nobody knows which is newer: what only one of
    /// them names may still be under way. Says whether it was no older one.
    pub(super) fn on_told(
        &mut self,
        told_by: Sequence,
        links: impl Iterator<Item = (LinkId, Sequence)>,
        now: Instant,
    ) -> bool {
        if self.told_by.is_newer_than(told_by) {
            return false;
        }
        if told_by != self.told_by {
            self.told_by = told_by;
            self.claims.clear();
            self.replayed_from = None;
        }
        self.told_at = now;
        for (link, newest) in links {
            if link == LinkId(REPLAYED_FROM) {
                let before = self.replayed_from.unwrap_or(newest);
                self.replayed_from = Some(before.older_of(newest));
                continue;
            }
            let claim = Claim {
                link,
                newest,
                told_at: now,
            };
            match self.claims.iter().position(|claim| claim.link == link) {
                None if self.claims.len() == CLAIMS_MAX => {}
                None => self.claims.push(claim),
                Some(at) if self.claims[at].newest.is_newer_than(newest) => {
                    self.claims[at].told_at = now;
                }
                Some(at) => self.claims[at] = claim,
            }
        }
        self.names_links |= !self.claims.is_empty();
        true
    }

    /// Whether nothing is under way that may still bring this train.
    pub(super) fn has_passed(&self, train: Sequence) -> bool {
        // What an older train told says nothing of it: one that was sent again has come first.
        if train.is_newer_than(self.told_by) {
            return false;
        }
        self.claims_of(train).next().is_none()
    }

    /// When the sender last named what may still bring this train: it may have given up since.
    pub(super) fn named_at(&self, train: Sequence) -> Option<Instant> {
        self.claims_of(train).map(|claim| claim.told_at).max()
    }

    /// The newest that has told anything, or with which it began.
    pub(super) fn told_by(&self) -> Sequence {
        self.told_by
    }

    /// When the sender last told anything.
    pub(super) fn told_at(&self) -> Instant {
        self.told_at
    }

    /// The newest train that it says to be sent again, by whatever link.
    pub(super) fn replayed(&self) -> Option<Sequence> {
        let replayed = |claim: &&Claim| claim.link == LinkId(REPLAYED);
        self.claims.iter().find(replayed).map(|claim| claim.newest)
    }

    /// Whether this train is said to be sent again.
    pub(super) fn replays(&self, train: Sequence) -> bool {
        let mut claims = self.claims_of(train);
        claims.any(|claim| claim.link == LinkId(REPLAYED))
    }

    /// What may still bring this train, as far as was told.
    fn claims_of(&self, train: Sequence) -> impl Iterator<Item = &Claim> {
        let delivered_newer = move |link: LinkId| {
            let newest = self.delivered.iter().find(|(l, _)| *l == link);
            newest.is_some_and(|(_, newest)| newest.is_newer_than(train))
        };
        let is_before = self
            .replayed_from
            .is_some_and(|from| from.is_newer_than(train));
        let goes_again = move |link: LinkId| link != LinkId(REPLAYED) || !is_before;
        self.claims.iter().filter(move |claim| {
            let may_bring = !train.is_newer_than(claim.newest) && goes_again(claim.link);
            may_bring && !delivered_newer(claim.link)
        })
    }
}
