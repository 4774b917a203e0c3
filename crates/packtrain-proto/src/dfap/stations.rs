//! The stations that take aggregates: the paper's *list of capable systems*, and what waits for each.
//!
//! Nobody else is ever sent one. A station is on the list because its host's settings name it, because it has said so
//! ([`crate::wire::station`]), or because it has sent an aggregate itself. What is not repeated is forgotten.

use crate::config::LinkId;
use crate::dfap::best_fit::BestFit;
use crate::mac_map::{MacHashBuilder, MacMap};
use crate::queue::drr::FlowQueues;
use crate::queue::frame::QueuedFrame;
use crate::time::Instant;
use crate::wire::dfap::{PACKETS_MAX, data_len};
use crate::wire::ethernet::{HEADER_LEN, MacAddr};

/// Stations on the list; all others are sent plain frames.
pub const STATIONS_MAX: usize = 256;

/// What every Ethernet takes: the longest data field to who has said nothing.
const DATA_LEN_UNTOLD: u16 = 1500;

/// One that takes aggregates.
#[derive(Debug)]
pub struct Station {
    pub address: MacAddr,
    /// By which it knows them.
    pub ether_type: u16,
    /// The longest data field that reaches it, as far as it is known.
    mtu: u16,
    /// When it leaves the list unless it is heard again; `None`: the settings name it.
    forgotten_at: Option<Instant>,
    /// Our home link to it, as frames were queued last.
    pub home: LinkId,
    pub queues: FlowQueues,
    pub fit: BestFit,
}

impl Station {
    /// Frames that have not left, and their bytes.
    pub fn waiting(&self) -> (usize, usize) {
        let frames = self.queues.frames() + self.fit.frames();
        (frames, self.queues.bytes() + self.fit.bytes())
    }

    pub fn is_empty(&self) -> bool {
        self.queues.is_empty() && self.fit.frames() == 0
    }

    /// The longest data field for it by a link of so long ones.
    pub fn data_max(&self, link_mtu: usize) -> usize {
        link_mtu.min(usize::from(self.mtu))
    }

    /// Whether something that waits need not wait for more, in a data field of so many bytes.
    pub fn is_ripe(&self, data_max: usize, now: Instant) -> bool {
        let frames = self.queues.frames();
        let packet_bytes = self.queues.bytes() - frames * HEADER_LEN;
        let is_full =
            || frames >= PACKETS_MAX || frames > 0 && data_len(frames, packet_bytes) >= data_max;
        self.fit.frames() > 0 || self.queues.ripe_at().is_none_or(|at| at <= now) || is_full()
    }

    /// When the first need not, where all that wait may.
    pub fn ripe_at(&self) -> Option<Instant> {
        match self.fit.frames() {
            0 => self.queues.ripe_at(),
            _ => None,
        }
    }

    pub fn is_listed(&self) -> bool {
        self.forgotten_at.is_none()
    }

    /// Takes everything out, of each flow in its order.
    pub fn drain(&mut self) -> Vec<QueuedFrame> {
        let mut all: Vec<QueuedFrame> = self.fit.drain().collect();
        all.extend(self.queues.drain());
        all
    }
}

/// How a station was heard to take aggregates, and of which EtherType.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It says so, and what its link takes.
    Says { ether_type: u16, mtu: u16 },
    /// It has sent one of such a data field.
    Sends { ether_type: u16, data_len: u16 },
}

#[derive(Debug)]
pub struct Stations {
    /// A slot is a station's for as long as it is on the list.
    slots: Vec<Option<Box<Station>>>,
    by_address: MacMap<usize>,
    quantum: usize,
}

impl Stations {
    pub fn new(quantum: usize, seed: u64) -> Stations {
        Stations {
            slots: Vec::new(),
            by_address: MacMap::with_hasher(MacHashBuilder::new(seed)),
            quantum,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.by_address.is_empty()
    }

    pub fn slot_of(&self, address: MacAddr) -> Option<usize> {
        self.by_address.get(&address).copied()
    }

    pub fn get(&self, slot: usize) -> Option<&Station> {
        self.slots.get(slot)?.as_deref()
    }

    pub fn get_mut(&mut self, slot: usize) -> Option<&mut Station> {
        self.slots.get_mut(slot)?.as_deref_mut()
    }

    pub fn iter(&self) -> impl Iterator<Item = (usize, &Station)> + '_ {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(slot, station)| Some((slot, station.as_deref()?)))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut Station)> + '_ {
        let slots = self.slots.iter_mut().enumerate();
        slots.filter_map(|(slot, station)| Some((slot, station.as_deref_mut()?)))
    }

    /// The settings name it.
    pub fn list(&mut self, address: MacAddr, ether_type: u16) {
        self.put(address, (ether_type, DATA_LEN_UNTOLD), None);
    }

    /// It takes aggregates, as was heard, until then at least; of this type, or, if it has only sent one, of the
    /// type by which it knows us. Says whether it is new.
    pub fn learn(&mut self, address: MacAddr, kind: Heard, until: Instant) -> bool {
        match self.slot_of(address).and_then(|slot| self.get_mut(slot)) {
            Some(station) => {
                match kind {
                    Heard::Says { ether_type, mtu } => {
                        (station.ether_type, station.mtu) = (ether_type, mtu);
                    }
                    Heard::Sends { data_len, .. } => station.mtu = station.mtu.max(data_len),
                }
                if let Some(at) = &mut station.forgotten_at {
                    *at = until.max(*at);
                }
                false
            }
            None => {
                let (ether_type, mtu) = match kind {
                    Heard::Says { ether_type, mtu } => (ether_type, mtu),
                    Heard::Sends {
                        ether_type,
                        data_len,
                    } => (ether_type, data_len.max(DATA_LEN_UNTOLD)),
                };
                self.put(address, (ether_type, mtu), Some(until))
            }
        }
    }

    fn put(
        &mut self,
        address: MacAddr,
        (ether_type, mtu): (u16, u16),
        forgotten_at: Option<Instant>,
    ) -> bool {
        if self.by_address.len() >= STATIONS_MAX || self.by_address.contains_key(&address) {
            return false;
        }
        let station = Box::new(Station {
            address,
            ether_type,
            mtu,
            forgotten_at,
            home: LinkId(0),
            queues: FlowQueues::new(self.quantum),
            fit: BestFit::default(),
        });
        let slot = match self.slots.iter().position(Option::is_none) {
            Some(free) => free,
            None => {
                self.slots.push(None);
                self.slots.len() - 1
            }
        };
        self.slots[slot] = Some(station);
        self.by_address.insert(address, slot);
        true
    }

    /// It takes none any more, unless the settings say so.
    pub fn forget(&mut self, address: MacAddr) -> Option<(usize, Box<Station>)> {
        let slot = self.slot_of(address)?;
        if self.get(slot)?.is_listed() {
            return None;
        }
        self.by_address.remove(&address);
        Some((slot, self.slots[slot].take()?))
    }

    /// One that was not heard for too long, if there is any.
    pub fn expired(&self, now: Instant) -> Option<MacAddr> {
        let is_over = |station: &Station| station.forgotten_at.is_some_and(|at| at <= now);
        let mut old = self.iter().filter(|(_, station)| is_over(station));
        old.next().map(|(_, station)| station.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    fn says(ether_type: u16) -> Heard {
        Heard::Says {
            ether_type,
            mtu: 9000,
        }
    }

    fn sends(ether_type: u16, data_len: u16) -> Heard {
        Heard::Sends {
            ether_type,
            data_len,
        }
    }

    fn mac(n: usize) -> MacAddr {
        MacAddr([2, 0, 0, 0, (n >> 8) as u8, n as u8])
    }

    #[test]
    fn what_is_heard_is_forgotten_and_what_is_listed_is_not() {
        let mut stations = Stations::new(1514, 1);
        let until = Instant::ZERO + Duration::from_secs(3);
        stations.list(mac(1), 0xbbbb);
        assert!(stations.learn(mac(2), sends(0xbbbb, 100), until));
        assert!(
            !stations.learn(mac(2), says(0xaaaa), Instant::ZERO),
            "known already"
        );
        assert!(
            !stations.learn(mac(2), sends(0xbbbb, 100), until),
            "as it knows us"
        );
        assert!(!stations.learn(mac(1), says(0xaaaa), until));
        let type_of = |n| {
            stations
                .get(stations.slot_of(mac(n)).unwrap())
                .unwrap()
                .ether_type
        };
        assert_eq!((type_of(1), type_of(2)), (0xaaaa, 0xaaaa));
        assert_eq!(stations.expired(until - Duration::from_nanos(1)), None);
        assert_eq!(stations.expired(until), Some(mac(2)));
        assert_eq!(stations.forget(mac(2)).unwrap().0, 1);
        assert!(stations.slot_of(mac(2)).is_none() && stations.expired(until).is_none());
        assert!(stations.forget(mac(1)).is_none(), "the settings name it");
        assert!(stations.learn(mac(3), sends(0xbbbb, 100), until));
        assert_eq!(stations.slot_of(mac(3)), Some(1), "the slot is free again");
    }

    #[test]
    fn who_has_said_nothing_is_sent_what_every_ethernet_takes_or_what_it_has_sent_itself() {
        let mut stations = Stations::new(1514, 1);
        let data_max = |stations: &Stations, n| {
            let station = stations.get(stations.slot_of(mac(n)).unwrap()).unwrap();
            (station.data_max(576), station.data_max(65_521))
        };
        stations.list(mac(1), 0xbbbb);
        assert_eq!(data_max(&stations, 1), (576, 1500));
        stations.learn(mac(1), says(0xbbbb), Instant::ZERO);
        assert_eq!(data_max(&stations, 1), (576, 9000));
        for (data_len, longest) in [(40, 1500), (4000, 4000), (2000, 4000)] {
            stations.learn(mac(2), sends(0xbbbb, data_len), Instant::ZERO);
            assert_eq!(data_max(&stations, 2).1, longest);
        }
    }

    #[test]
    fn a_full_list_takes_nobody() {
        let mut stations = Stations::new(1514, 1);
        for n in 0..STATIONS_MAX {
            assert!(stations.learn(mac(n), sends(0xbbbb, 100), Instant::ZERO));
        }
        assert!(!stations.learn(mac(STATIONS_MAX), sends(0xbbbb, 100), Instant::ZERO));
        assert!(stations.slot_of(mac(STATIONS_MAX)).is_none());
        stations.forget(mac(7)).unwrap();
        assert!(stations.learn(mac(STATIONS_MAX), sends(0xbbbb, 100), Instant::ZERO));
    }
}
