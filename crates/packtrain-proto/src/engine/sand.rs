//! How long frames may hold each path, as fast as it is now.

use super::Engine;
use super::paths::rate_bps;
use crate::config::LinkId;
use crate::link::Link;
use crate::peer::Path;
use crate::stats::LinkSand;
use crate::time::Instant;

impl Engine {
    /// What small frames wait for at a link.
    pub fn link_sand(&self, link: LinkId, now: Instant) -> LinkSand {
        let link = self.links.iter().find(|of| of.id == link);
        let link = link.filter(|_| self.bounds_sand());
        link.map_or_else(LinkSand::default, |link| link.sand(now))
    }

    /// Whether anybody sees to it how long small frames wait at a link. Where there are several, they have another one.
    pub(super) fn bounds_sand(&self) -> bool {
        self.links.len() == 1
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
        let is_bounded = self.bounds_sand();
        let links = &self.links;
        let peers = self.peers.iter_mut();
        let paths = peers.flat_map(|(_, peer)| &mut peer.paths);
        for path in paths.filter(|path| which(path)) {
            let link = links.iter().find(|link| link.id == path.link);
            let link = link.filter(|_| is_bounded);
            path.sand_max = link.map_or(usize::MAX, |link| at_once_max(link, path, now));
        }
    }

    /// Bytes of the longest frame that the host is to make while it is let send at this rate: small ones wait for such where it is held
    /// back, too. Where there is one way, no longer than what goes by it at once.
    pub(super) fn frame_of_host_max(&self, rate_bps: u64) -> usize {
        let [link] = &self.links[..] else {
            return usize::MAX;
        };
        let by_rate = link.sand_in_use().frame_max(rate_bps);
        let mut paths = self.peers.iter().flat_map(|(_, peer)| &peer.paths);
        match (paths.next(), paths.next()) {
            (Some(only), None) => by_rate.min(only.sand_max),
            _ => by_rate,
        }
    }
}

/// Bytes of the longest frame that goes by this path at once, as fast as it is now.
fn at_once_max(link: &Link, path: &Path, now: Instant) -> usize {
    // What is acknowledged shows the most of a while, and what leaves the local queue what is so now.
    let rates = [rate_bps(link, path, now), link.drain_rate_bps(now)];
    let slowest = rates.into_iter().flatten().min();
    slowest.map_or(usize::MAX, |bps| link.sand_in_use().frame_max(bps))
}
