//! How long frames may hold each path, as fast as it is now.

use super::Engine;
use super::paths::rate_bps;
use crate::config::LinkId;
use crate::link::Link;
use crate::peer::Path;
use crate::sand::SandBound;
use crate::stats::LinkSand;
use crate::time::Instant;

impl Engine {
    /// What small frames wait for at a link. Of several, no frame is longer than on one alone, but what stands there is not bounded so: which
    /// of them a train takes depends on which has room.
    pub fn link_sand(&self, link: LinkId, now: Instant) -> LinkSand {
        let link = self.links.iter().find(|of| of.id == link);
        let said = link.map_or_else(LinkSand::default, |link| link.sand(now));
        let is_alone = self.links.len() == 1;
        LinkSand {
            waits_max: said.waits_max.filter(|_| is_alone),
            ..said
        }
    }

    /// Each path may be of another rate than it was.
    pub(super) fn follow_sand(&mut self, now: Instant) {
        self.follow_sand_of(|_| true, now);
    }

    /// … of this link, which was measured anew, or leads to somebody who was not there.
    pub(super) fn follow_sand_on(&mut self, link: LinkId, now: Instant) {
        self.follow_sand_of(|path| path.link == link, now);
    }

    fn follow_sand_of(&mut self, which: impl Fn(&Path) -> bool, now: Instant) {
        let links = &self.links;
        let peers = self.peers.iter_mut();
        let paths = peers.flat_map(|(_, peer)| &mut peer.paths);
        for path in paths.filter(|path| which(path)) {
            let link = links.iter().find(|link| link.id == path.link);
            let of = |bound: fn(&Link) -> SandBound| {
                link.map_or(usize::MAX, |link| longest(bound(link), (link, path), now))
            };
            (path.sand_max, path.sand_whole_max) = (of(Link::sand_in_use), of(Link::sand_at_once));
        }
    }

    /// Bytes of the longest frame that the host is to make while it is let send at this rate: small ones wait for such where it is held
    /// back, too. Where there is one way, no longer than what goes by it at once.
    pub(super) fn frame_of_host_max(&self, rate_bps: u64, now: Instant) -> usize {
        let [link] = &self.links[..] else {
            return usize::MAX;
        };
        let by_rate = link.sand_in_use().frame_max(rate_bps);
        let mut paths = self.peers.iter().flat_map(|(_, peer)| &peer.paths);
        match (paths.next(), paths.next()) {
            (Some(only), None) => by_rate.min(longest(link.sand_in_use(), (link, only), now)),
            _ => by_rate,
        }
    }
}

/// Bytes of the longest frame within a bound on this path, as fast as it is now.
fn longest(bound: SandBound, (link, path): (&Link, &Path), now: Instant) -> usize {
    // What leaves the local queue shows what is so now, and what is acknowledged that it is less further on. Where no queue stands there,
    // most may go as it is: then hardly anything is acknowledged.
    let drains = link.drain_rate_bps(now);
    let acknowledged =
        (drains.is_none() || path.flight.has_queue()).then(|| rate_bps(link, path, now));
    let slowest = drains.into_iter().chain(acknowledged.flatten()).min();
    slowest.map_or(usize::MAX, |bps| bound.frame_max(link.at_most(bps)))
}
