//! Whether links have a carrier that are late with what they were given.
//!
//! Linux tells of carriers by a queue of its own (`net/core/link_watch.c`): at once, if it has told of none within the last
//! second, and else when that is over; only of ports of a bond or team always at once. Where links come and go, one would be
//! lost for a second and known by its silence alone. But how it is now, the kernel knows, and says when it is asked.

use std::collections::BTreeMap;

use packtrain_proto::config::LinkId;
use packtrain_proto::time::{Duration, Instant};

use super::RunningLine;
use super::member::Member;

/// Between two looks, while something is under way over several links.
const LOOK: Duration = Duration::from_millis(5);
/// Of a carrier that comes back sooner than this after it was lost, the kernel may tell late as well.
const TOLD_LATE: Duration = Duration::from_secs(2);
const DARK_LOOK: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(super) struct Carriers {
    look_at: Instant,
    /// Since when links have none.
    dark: BTreeMap<LinkId, Instant>,
    dark_look_at: Instant,
}

impl Carriers {
    pub(super) fn new(now: Instant) -> Carriers {
        Carriers {
            look_at: now,
            dark: BTreeMap::new(),
            dark_look_at: now,
        }
    }

    /// The links that lost their carrier a short while ago.
    fn dark_links(&mut self, members: &[Member], now: Instant) -> Vec<LinkId> {
        let is_dark = |id: LinkId| members.iter().any(|m| m.id == id && m.has_no_carrier());
        self.dark.retain(|id, _| is_dark(*id));
        for member in members.iter().filter(|member| member.has_no_carrier()) {
            self.dark.entry(member.id).or_insert(now);
        }
        let lately = self
            .dark
            .iter()
            .filter(|(_, since)| now.since(**since) < TOLD_LATE);
        lately.map(|(id, _)| *id).collect()
    }
}

impl RunningLine {
    /// Asks the kernel for the links that are late, and for those that were lost lately.
    pub(super) fn look_at_carriers(&mut self) {
        if self.members.len() < 2 {
            return;
        }
        let now = self.clock.now();
        if now < self.carriers.look_at {
            // What has left in this turn may be late by then, and nothing else wake us.
            return self.line.wake_by(self.carriers.look_at);
        }
        self.carriers.look_at = now + LOOK;
        let mut links: Vec<LinkId> = Vec::new();
        if self.line.awaits_links() {
            self.line.wake_by(self.carriers.look_at);
            links.extend(self.line.late_links());
        }
        let dark = self.carriers.dark_links(&self.members, now);
        if !dark.is_empty() {
            self.line.wake_by(now + DARK_LOOK);
            if self.carriers.dark_look_at <= now {
                self.carriers.dark_look_at = now + DARK_LOOK;
                links.extend(dark);
            }
        }
        links.sort_unstable();
        links.dedup();
        for link in links {
            self.ask_for_carrier(link);
        }
    }

    fn ask_for_carrier(&mut self, link: LinkId) {
        let member = self.members.iter().find(|member| member.id == link);
        let Some(ifindex) = member.and_then(Member::ifindex) else {
            return;
        };
        // An interface that is gone, netlink tells of.
        let Ok(Some(seen)) = self.site.netlink.link(ifindex) else {
            return;
        };
        if member.is_some_and(|member| member.is_news(&seen)) {
            self.link_seen(&seen);
        }
    }
}
