//! Links that are to leave: they carry what is under way, and nothing new; unless the only others still wait for what stands there.

use super::{Engine, Event};
use crate::config::LinkId;
use crate::link::Retiring;
use crate::time::{Duration, Instant};

/// What peers had put on a link before they heard that it leaves takes no longer to arrive.
const RETIRE_MIN: Duration = Duration::from_millis(100);
const RETIRE_MAX: Duration = Duration::from_secs(2);
const RETIRE_LOOK: Duration = Duration::from_millis(10);

impl Engine {
    /// A link is to leave: nothing new is put on it where another may be used, and the peers are told that it is gone.
    /// [`Event::LinkRetired`] says when it may be removed.
    pub fn retire_link(&mut self, link: LinkId, now: Instant) {
        let Some(link) = self.link_mut(link) else {
            self.events.push_back(Event::LinkRetired { link });
            return;
        };
        link.retiring.get_or_insert(Retiring {
            since: now,
            next_look: now + RETIRE_MIN,
            told: false,
        });
        let link = link.id;
        self.peers.touch_all();
        self.segments.retire(link);
        self.update_homes(now);
        self.greeter.hurry(now);
        self.publish_paths();
    }

    pub(super) fn retire_timeout(&self) -> Option<Instant> {
        let retiring = self.links.iter().filter_map(|link| link.retiring);
        let open = retiring.filter(|retiring| !retiring.told);
        open.map(|retiring| retiring.next_look).min()
    }

    pub(super) fn look_who_is_retired(&mut self, now: Instant) {
        for link in &mut self.links {
            let Some(mut retiring) = link.retiring.filter(|r| !r.told && r.next_look <= now) else {
                continue;
            };
            let paths = self.peers.iter().filter_map(|(_, peer)| peer.path(link.id));
            let under_way: usize = paths.map(|path| path.flight.outstanding_trains()).sum();
            let has_left = under_way == 0 && link.local_queue_bytes() == 0;
            let is_late = now.since(retiring.since) >= RETIRE_MAX;
            retiring.next_look = now + RETIRE_LOOK;
            retiring.told = has_left || is_late || !link.state.carrier;
            link.retiring = Some(retiring);
            if retiring.told {
                self.events.push_back(Event::LinkRetired { link: link.id });
            }
        }
    }
}
