//! Which trains may still arrive, and by which link of their sender: what it tells in each train (NEWEST in
//! docs/wire-format.md), and what each link has delivered since.

use crate::config::LinkId;
use crate::wire::sequence::Sequence;

#[derive(Debug)]
pub(super) struct UnderWay {
    /// The newest that each link delivered, for links that delivered anything.
    delivered: Vec<(LinkId, Sequence)>,
    /// What other links than its own carried when this train left.
    links: Vec<(LinkId, Sequence)>,
    told_by: Sequence,
    names_links: bool,
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
            links: Vec::new(),
            told_by: train,
            names_links: false,
        }
    }

    /// The same, but a sender that has several links still has them.
    pub(super) fn restart_after(&mut self, train: Sequence) {
        self.delivered.clear();
        self.links.clear();
        self.told_by = train;
    }

    /// The sender has spoken of several links, ever: what comes late may be another link's.
    pub(super) fn names_links(&self) -> bool {
        self.names_links
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

    pub(super) fn on_told(
        &mut self,
        told_by: Sequence,
        links: impl Iterator<Item = (LinkId, Sequence)>,
    ) {
        if self.told_by.is_newer_than(told_by) {
            return;
        }
        self.told_by = told_by;
        self.links.clear();
        self.links.extend(links);
        self.names_links |= !self.links.is_empty();
    }

    /// Whether nothing is under way that may still bring this train.
    pub(super) fn has_passed(&self, train: Sequence) -> bool {
        // What an older train told says nothing of it.
        if self.names_links && train.is_newer_than(self.told_by) {
            return false;
        }
        let delivered_newer = |link: LinkId| {
            let newest = self.delivered.iter().find(|(l, _)| *l == link);
            newest.is_some_and(|(_, newest)| newest.is_newer_than(train))
        };
        self.links
            .iter()
            .all(|&(link, newest)| train.is_newer_than(newest) || delivered_newer(link))
    }
}
