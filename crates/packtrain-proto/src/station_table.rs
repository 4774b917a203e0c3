//! Where stations are: behind a peer's `pt0`, or plainly on a link, as a switch learns it.
//!
//! A full table learns nothing new and loses nothing: frames for unknown stations go plain on the
//! home links, where every station hears them.

use crate::config::{LinkId, NodeId};
use crate::mac_map::{MacHashBuilder, MacMap};
use crate::time::{Duration, Instant};
use crate::wire::ethernet::MacAddr;

/// Three rounds of hellos, and a little.
const CLAIM_AGE_MAX: Duration = Duration::from_millis(3500);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Behind the `pt0` of this node.
    Peer(NodeId),
    /// On this link, without packtrain.
    Plain(LinkId),
    /// The `pt0` of a peer that is gone, and was heard on this link last.
    Former(LinkId),
}

#[derive(Clone, Copy, Debug)]
struct Station {
    place: Place,
    last_heard: Instant,
}

#[derive(Debug)]
pub struct StationTable {
    stations: MacMap<Station>,
    stations_max: usize,
    age_max: Duration,
}

impl StationTable {
    pub fn new(stations_max: usize, age_max: Duration, seed: u64) -> StationTable {
        StationTable {
            stations: MacMap::with_hasher(MacHashBuilder::new(seed)),
            stations_max,
            age_max,
        }
    }

    /// Says whether frames for it now go another way than before. What a peer says of itself holds
    /// against what is overheard: its group frames pass by plainly, too.
    pub fn learn(&mut self, address: MacAddr, place: Place, now: Instant) -> bool {
        self.note(address, place, self.age_max, now)
    }

    /// A station that was heard to speak plainly to one alone is there, unless a peer has claimed
    /// it just now: a peer repeats its claim with each hello, and a false one must not hide a
    /// station for longer.
    pub fn learn_from_unicast(&mut self, address: MacAddr, place: Place, now: Instant) -> bool {
        self.note(address, place, CLAIM_AGE_MAX, now)
    }

    fn note(
        &mut self,
        address: MacAddr,
        place: Place,
        claim_age_max: Duration,
        now: Instant,
    ) -> bool {
        if address.is_group() || address.is_zero() {
            return false;
        }
        if let Some(station) = self.stations.get_mut(&address) {
            let overheard = matches!((station.place, place), (Place::Peer(_), Place::Plain(_)))
                && now.since(station.last_heard) < claim_age_max;
            if overheard {
                return false;
            }
            let moved = station.place != place;
            *station = Station {
                place,
                last_heard: now,
            };
            moved
        } else if self.stations.len() < self.stations_max {
            self.stations.insert(
                address,
                Station {
                    place,
                    last_heard: now,
                },
            );
            // Unknown ones are looked for plainly.
            matches!(place, Place::Peer(_))
        } else {
            false
        }
    }

    pub fn find(&self, address: MacAddr) -> Option<Place> {
        self.stations.get(&address).map(|station| station.place)
    }

    pub fn forget_node(&mut self, node_id: NodeId) {
        self.stations
            .retain(|_, station| station.place != Place::Peer(node_id));
    }

    pub fn forget_link(&mut self, link: LinkId) {
        self.stations.retain(|_, station| {
            ![Place::Plain(link), Place::Former(link)].contains(&station.place)
        });
    }

    pub fn expire(&mut self, now: Instant) {
        let age_max = self.age_max;
        self.stations
            .retain(|_, station| now.since(station.last_heard) < age_max);
    }

    /// Stations without packtrain.
    pub fn plain(&self) -> impl Iterator<Item = (MacAddr, LinkId, Instant)> + '_ {
        self.stations
            .iter()
            .filter_map(|(&address, station)| match station.place {
                Place::Plain(link) => Some((address, link, station.last_heard)),
                Place::Peer(_) | Place::Former(_) => None,
            })
    }
}

/// Stations behind our own `pt0` (it stands in a bridge): what hellos tell the peers.
#[derive(Debug)]
pub struct StationsBehind {
    stations: MacMap<Instant>,
    stations_max: usize,
    age_max: Duration,
}

impl StationsBehind {
    pub fn new(stations_max: usize, age_max: Duration, seed: u64) -> StationsBehind {
        let stations = MacMap::with_hasher(MacHashBuilder::new(seed));
        StationsBehind {
            stations,
            stations_max,
            age_max,
        }
    }

    /// Says whether it is a new one.
    pub fn learn(&mut self, address: MacAddr, now: Instant) -> bool {
        if address.is_group() || address.is_zero() {
            return false;
        }
        if let Some(heard) = self.stations.get_mut(&address) {
            *heard = now;
            return false;
        }
        let room = self.stations.len() < self.stations_max;
        if room {
            self.stations.insert(address, now);
        }
        room
    }

    pub fn contains(&self, address: MacAddr) -> bool {
        self.stations.contains_key(&address)
    }

    pub fn expire(&mut self, now: Instant) {
        let age_max = self.age_max;
        self.stations.retain(|_, heard| now.since(*heard) < age_max);
    }

    pub fn iter(&self) -> impl Iterator<Item = MacAddr> + '_ {
        self.stations.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_strangers_displaces_nobody() {
        let mut table = StationTable::new(2, Duration::from_secs(300), 7);
        let mac = |n| MacAddr([2, 0, 0, 0, 0, n]);
        let plain = Place::Plain(LinkId(0));
        for n in 0..100 {
            table.learn(mac(n), plain, Instant::ZERO);
        }
        assert_eq!(table.find(mac(0)), Some(plain));
        assert_eq!(table.find(mac(2)), None);
        table.expire(Instant::ZERO + Duration::from_secs(300));
        table.learn(mac(2), plain, Instant::ZERO);
        assert_eq!(table.find(mac(2)), Some(plain));
    }

    #[test]
    fn what_a_peer_sent_is_behind_it_though_its_group_frames_pass_by_plainly() {
        let mut table = StationTable::new(8, Duration::from_secs(300), 7);
        let mac = MacAddr([2; 6]);
        table.learn(mac, Place::Peer(NodeId(5)), Instant::ZERO);
        table.learn(mac, Place::Plain(LinkId(0)), Instant::ZERO);
        assert_eq!(table.find(mac), Some(Place::Peer(NodeId(5))));
        let plain = Place::Plain(LinkId(0));
        assert!(!table.learn_from_unicast(mac, plain, Instant::ZERO));
        assert!(!table.learn(mac, plain, Instant::ZERO + CLAIM_AGE_MAX));
        assert!(table.learn_from_unicast(mac, plain, Instant::ZERO + CLAIM_AGE_MAX));
        assert_eq!(table.find(mac), Some(Place::Plain(LinkId(0))));
        table.learn(mac, Place::Peer(NodeId(5)), Instant::ZERO);
        table.forget_node(NodeId(5));
        assert_eq!(table.find(mac), None);
    }
}
