//! Links that come to carry, and cease to: the host is let send at once what the line is worth then. The control of its rate
//! ([`crate::intake`]) would find it out as well, but in a third of a second.

use arrayvec::ArrayVec;

use super::Engine;
use super::paths::{link_of, standing};
use crate::config::{Balance, LinkId};
use crate::peer::Peer;
use crate::time::Instant;
use crate::wire::hello::LINKS_MAX;

/// Links that carry trains.
pub(super) type Carrying = ArrayVec<LinkId, LINKS_MAX>;

impl Engine {
    /// Before the rate of the host is decided anew.
    pub(super) fn follow_capacity(&mut self, now: Instant) {
        // By these it is one link that bounds what the host may send, whichever are there.
        if let Balance::ActiveBackup | Balance::Duplicate = self.config.balance {
            return;
        }
        let carrying = self.carrying();
        if carrying == self.carrying {
            return;
        }
        let before = std::mem::replace(&mut self.carrying, carrying.clone());
        let worth = |links: &Carrying| -> Option<u64> {
            let rates = links.iter().map(|&link| self.best_rate_bps(link, now));
            rates.sum()
        };
        if let (Some(before), Some(after)) = (worth(&before), worth(&carrying))
            && before > 0
            && after > 0
        {
            self.intake.on_capacity(before, after);
        }
    }

    /// The links by which trains go to some peer, as things stand.
    fn carrying(&self) -> Carrying {
        let of_peer = |peer: &Peer, link: LinkId| {
            let ranks = peer.paths.iter().filter_map(|path| {
                let of = link_of(&self.links, path)?;
                Some((standing(of, path), of.settings.tier, path.link))
            });
            let least = ranks.clone().map(|(standing, tier, _)| (standing, tier));
            let least = least.min();
            let mut best = ranks.filter(|(standing, tier, _)| Some((*standing, *tier)) == least);
            best.any(|(_, _, of)| of == link)
        };
        let carries = |link: &LinkId| {
            let mut peers = self.peers.iter().filter(|(_, peer)| peer.up);
            peers.any(|(_, peer)| of_peer(peer, *link))
        };
        let links = self.links.iter().map(|link| link.id);
        links.filter(carries).take(LINKS_MAX).collect()
    }

    /// As it was measured.
    fn best_rate_bps(&self, link: LinkId, now: Instant) -> Option<u64> {
        let known = self.link(link)?;
        let paths = self.peers.iter().filter_map(|(_, peer)| peer.path(link));
        let acknowledged = paths.filter_map(|path| path.flight.rate_bps());
        let fastest = acknowledged.map(|(bps, _)| bps).max();
        let measured = fastest.or_else(|| known.drain_rate_bps(now));
        measured.map(|bps| known.at_most(bps))
    }
}
