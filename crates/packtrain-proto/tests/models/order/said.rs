//! What the sender has said, and what links have brought: whether a train may still come.

use packtrain_proto::config::LinkId;
use packtrain_proto::time::Instant;
use packtrain_proto::trunk::resequencer::Repairing;
use packtrain_proto::wire::sequence::Sequence;
use packtrain_proto::wire::train::{REPLAYED, REPLAYED_FROM};

use super::{Event, Order, STALL_MIN, What};
use crate::breakage::Breakage;

/// How far senders let the newest train be ahead of the oldest that is under way.
const SPAN: i32 = 3072;

/// No train newer than this may still come by this link.
#[derive(Clone, Copy, Debug)]
struct Claim {
    link: LinkId,
    newest: Sequence,
    told_at: Instant,
}

impl Order {
    /// The sender has spoken of several links, ever.
    pub(super) fn names_links(&self) -> bool {
        self.history.iter().any(|event| match &event.what {
            What::Told { links, .. } => {
                let mut links = links.iter();
                links.any(|(link, _)| *link != LinkId(REPLAYED_FROM))
            }
            _ => false,
        })
    }

    /// The newest train or marker that told of links.
    pub(super) fn told_by(&self) -> Sequence {
        let mut events = self.told_lately().iter().rev();
        let told = events.find_map(|event| match event.what {
            What::Told { by, .. } => Some(by),
            _ => None,
        });
        told.unwrap_or(self.began_after())
    }

    /// What the sender said by that, and by others of the same sequence, the last first: nobody knows which was sent last.
    fn told(&self) -> Vec<(&[(LinkId, Sequence)], Instant)> {
        let by = self.told_by();
        let told = self.told_lately().iter().rev();
        let told = told.filter_map(|event| match &event.what {
            What::Told { by, links, .. } => Some((*by, &links[..], event.at)),
            _ => None,
        });
        let told = told.take_while(|(told_by, ..)| *told_by == by);
        let mut told: Vec<_> = told.map(|(_, links, at)| (links, at)).collect();
        if self.is(Breakage::MarkersTakeBack) {
            told.truncate(1);
        }
        told
    }

    /// Nothing older goes again.
    fn again_from(&self) -> Option<Sequence> {
        let told = self.told().into_iter();
        let named = told.flat_map(|(links, _)| links.iter().copied());
        let from = named.filter(|(link, _)| *link == LinkId(REPLAYED_FROM));
        let from = from.map(|(_, train)| train);
        let oldest = from.reduce(|a, b| if a.is_newer_than(b) { b } else { a });
        oldest.filter(|_| !self.is(Breakage::WhatIsOlderGoesAgainToo))
    }

    fn claims(&self) -> Vec<Claim> {
        let told = self.told();
        let mut claims: Vec<Claim> = Vec::new();
        for (links, told_at) in told.into_iter().rev() {
            let of_links = |(link, _): &&(LinkId, Sequence)| *link != LinkId(REPLAYED_FROM);
            for &(link, train) in links.iter().filter(of_links) {
                let before = claims.iter().position(|claim| claim.link == link);
                let before = before.map(|at| claims.swap_remove(at).newest);
                let newest = before.filter(|before| before.is_newer_than(train));
                claims.push(Claim {
                    link,
                    newest: newest.unwrap_or(train),
                    told_at,
                });
            }
        }
        claims
    }

    pub(super) fn passed_by(&self, link: LinkId) -> Option<Sequence> {
        // Each is newer than those before.
        let mut events = self.told_lately().iter().rev();
        events.find_map(|event| match event.what {
            What::Passed { link: l, train, .. } if l == link => Some(train),
            _ => None,
        })
    }

    /// Whether this train may still come, by what was told and what has come.
    pub(super) fn may_come(&self, train: Sequence) -> bool {
        if train.is_newer_than(self.told_by()) {
            return !self.is(Breakage::NothingIsKnownOfNewerTrains);
        }
        self.claims()
            .iter()
            .any(|claim| self.may_bring(claim, train))
    }

    fn may_bring(&self, claim: &Claim, train: Sequence) -> bool {
        let passed_by = self.passed_by(claim.link);
        let has_passed = passed_by.is_some_and(|by| by.is_newer_than(train));
        let is_older = train.is_newer_than(claim.newest) && !self.is(Breakage::DistanceIsIgnored);
        let goes_again = claim.link == LinkId(REPLAYED);
        let is_before = |from: Sequence| from.is_newer_than(train);
        if goes_again && self.again_from().is_some_and(is_before) {
            return false;
        }
        !is_older && (!has_passed || self.is(Breakage::LinksNamedNeverPass))
    }

    /// When the sender said last that something may bring what is missing.
    pub(super) fn named_at(&self) -> Option<Instant> {
        let (missing, claims) = (self.expected(), self.claims());
        let named = claims.iter().filter(|claim| self.may_bring(claim, missing));
        let named_at = named.map(|claim| claim.told_at).max();
        named_at.filter(|_| !self.is(Breakage::NamingAgainChangesNothing))
    }

    /// The sender has said that this one goes again.
    fn goes_again_by_word(&self, train: Sequence) -> bool {
        let claims = self.claims().into_iter();
        let mut again = claims.filter(|claim| claim.link == LinkId(REPLAYED));
        again.any(|claim| self.may_bring(&claim, train))
    }

    pub fn tell(
        &mut self,
        by: Sequence,
        links: &[(LinkId, Sequence)],
        (repairs, kept_from): (Repairing, Option<Sequence>),
        now: Instant,
    ) {
        let is_old = self.told_by().is_newer_than(by);
        if !self.is_near(by) || (is_old && !self.is(Breakage::OldNewsIsNews)) {
            return;
        }
        let links = links.to_vec();
        self.log(
            now,
            What::Told {
                by,
                links,
                repairs,
                kept_from,
            },
        );
        if let Some(newest) = self.goes_again() {
            self.log(now, What::GoesAgain { newest });
        }
        if let Some(since) = self.passed_since()
            && self.goes_again_by_word(self.expected())
        {
            let took = now.since(since);
            self.log(now, What::WordKept { took });
        }
    }

    fn goes_again(&self) -> Option<Sequence> {
        let claims = self.claims().into_iter();
        let mut again = claims.filter(|claim| claim.link == LinkId(REPLAYED));
        again.next().map(|claim| claim.newest)
    }

    pub fn link_removed(&mut self, now: Instant) {
        let told = self.goes_again();
        self.log(now, What::LinkRemoved { told });
    }

    /// Before that, what nothing seems to bring may go again by other links.
    pub fn doubt_until(&self) -> Option<Instant> {
        let is_removal = |event: &Event| matches!(event.what, What::LinkRemoved { .. });
        let removal = self.history.iter().rposition(is_removal)?;
        let What::LinkRemoved { told } = self.history[removal].what else {
            unreachable!("just found");
        };
        let newer = |newest: Sequence| told.is_none_or(|told| newest.is_newer_than(told));
        let says_so =
            |event: &Event| matches!(event.what, What::GoesAgain { newest } if newer(newest));
        let is_told = self.history[removal..].iter().any(says_so);
        let held = self.held().into_iter();
        let ahead = held.map(|(train, ..)| train.distance_from(self.expected()) + 1);
        let is_beyond = ahead.max().is_some_and(|ahead| ahead > SPAN);
        let ends = is_told && !self.is(Breakage::DoubtOutlastsTheWord);
        let is_over = ends || is_beyond || self.is(Breakage::RemovalsChangeNothing);
        let until = self.history[removal].at + STALL_MIN.min(self.stall_max);
        (!is_over).then_some(until)
    }

    /// When the sender told anything last.
    pub(super) fn told_at(&self) -> Option<Instant> {
        let mut events = self.present().iter().rev();
        events.find_map(|event| match event.what {
            What::Told { .. } => Some(event.at),
            _ => None,
        })
    }
}
