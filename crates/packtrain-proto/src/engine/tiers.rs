//! What links are used for, as their owner wants it, and which tier of them carries trains to whom.

use super::paths::{link_of, standing};
use super::{Engine, Event};
use crate::config::{LinkId, LinkSettings};
use crate::peer::Peer;
use crate::time::Instant;

impl Engine {
    /// What a link of the line is used for from now on; until the first telling, by the defaults.
    pub fn handle_link_settings(&mut self, link: LinkId, settings: LinkSettings, now: Instant) {
        let before = match self.link_mut(link) {
            Some(known) if known.settings != settings => {
                std::mem::replace(&mut known.settings, settings)
            }
            _ => return,
        };
        self.peers.touch_all();
        self.segments.set_tier(link, settings.tier);
        self.segments.set_in_lag(link, settings.in_lag);
        self.update_homes(now);
        self.follow_sand_on(link, now);
        if settings.in_lag != before.in_lag {
            // What peers may send us is another matter then.
            self.greeter.hurry(now);
        } else if settings.in_lag && settings.weight != before.weight {
            self.redispatch_plain(now);
        }
        self.publish_paths();
    }

    /// The tier of the links that carry trains to a peer; `None`: none can. The higher ones are for when these have no room, at
    /// most.
    pub(super) fn tier_of(&self, peer: &Peer) -> Option<u8> {
        let ranks = peer.paths.iter().filter_map(|path| {
            let link = link_of(&self.links, path)?;
            Some((standing(link, path), link.settings.tier))
        });
        ranks.min().map(|(_, tier)| tier)
    }

    pub(super) fn has_tiers(&self) -> bool {
        let tiers = || self.links.iter().map(|link| link.settings.tier);
        tiers().min() != tiers().max()
    }

    /// After all that may change who carries. A peer that no link reaches has the tier that it had.
    pub(super) fn note_tiers(&mut self) {
        for slot in self.peers.slots() {
            let Some(peer) = self.peers.get(slot) else {
                continue;
            };
            let (before, node_id, address) = (peer.tier_in_use, peer.node_id, peer.address);
            let Some(to) = self.tier_of(peer).filter(|_| peer.up) else {
                continue;
            };
            if before == Some(to) {
                continue;
            }
            self.peers.get_mut(slot).expect("it is there").tier_in_use = Some(to);
            if let Some(from) = before {
                let changed = Event::TierChanged {
                    node_id,
                    address,
                    from,
                    to,
                };
                self.events.push_back(changed);
            }
        }
    }
}
