//! The nodes with packtrain that were heard, by what names them.
//!
//! Bounded; a flood of strangers displaces strangers, never a peer that is up.

use std::collections::HashMap;

use crate::config::{Limits, LinkId, NodeId, direct_mark_of};
use crate::due::DueTimes;
use crate::gone_peers::GonePeers;
use crate::mac_map::{MacHashBuilder, MacMap};
use crate::peer::Peer;
use crate::time::Instant;
use crate::trunk::lane::LaneId;
use crate::wire::ethernet::MacAddr;
use crate::wire::hello::{Hello, LinkRecord};

/// Whose an outer source address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    pub slot: usize,
    pub remote_link: LinkId,
}

#[derive(Debug)]
pub struct PeerTable {
    slots: Vec<Option<Box<Peer>>>,
    by_node: HashMap<NodeId, usize>,
    by_address: MacMap<usize>,
    by_link: MacMap<Owner>,
    by_mark: MacMap<Owner>,
    by_direct_mark: MacMap<usize>,
    pub due: DueTimes,
    peers_max: usize,
    pub gone: GonePeers,
}

impl PeerTable {
    pub fn new(peers_max: usize, seed: u64) -> PeerTable {
        let hash = MacHashBuilder::new(seed);
        PeerTable {
            slots: Vec::new(),
            by_node: HashMap::new(),
            by_address: MacMap::with_hasher(hash),
            by_link: MacMap::with_hasher(hash),
            by_mark: MacMap::with_hasher(hash),
            by_direct_mark: MacMap::with_hasher(hash),
            due: DueTimes::default(),
            peers_max,
            gone: GonePeers::default(),
        }
    }

    pub fn len(&self) -> usize {
        self.by_node.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_node.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (usize, &Peer)> + '_ {
        self.slots
            .iter()
            .enumerate()
            .filter_map(|(slot, peer)| Some((slot, peer.as_deref()?)))
    }

    /// All of them are touched by it.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut Peer)> + '_ {
        self.touch_all();
        let slots = self.slots.iter_mut().enumerate();
        slots.filter_map(|(slot, peer)| Some((slot, peer.as_deref_mut()?)))
    }

    /// All slots that may have a peer.
    pub fn slots(&self) -> std::ops::Range<usize> {
        0..self.slots.len()
    }

    pub fn get(&self, slot: usize) -> Option<&Peer> {
        self.slots.get(slot)?.as_deref()
    }

    pub fn get_mut(&mut self, slot: usize) -> Option<&mut Peer> {
        let peer = self.slots.get_mut(slot)?.as_deref_mut()?;
        self.due.touch(slot);
        Some(peer)
    }

    /// Something outside of them has changed on which their times depend.
    pub fn touch_all(&mut self) {
        self.slots().for_each(|slot| self.due.touch(slot));
    }

    pub fn slot_of_node(&self, node_id: NodeId) -> Option<usize> {
        self.by_node.get(&node_id).copied()
    }

    /// The peer whose `pt0` has this address, if it is up.
    pub fn slot_of_address(&self, address: MacAddr) -> Option<usize> {
        let slot = *self.by_address.get(&address)?;
        self.get(slot)?.up.then_some(slot)
    }

    /// The peer, up or not, whose `pt0` has this address.
    pub fn holder_of_address(&self, address: MacAddr) -> Option<usize> {
        self.by_address.get(&address).copied()
    }

    /// Whether a node with packtrain, up or not, has this as its `pt0`'s address.
    pub fn is_peer_address(&self, address: MacAddr) -> bool {
        self.by_address.contains_key(&address)
    }

    pub fn owner_of_link(&self, address: MacAddr) -> Option<Owner> {
        self.by_link.get(&address).copied()
    }

    pub fn owner_of_mark(&self, mark: MacAddr) -> Option<Owner> {
        self.by_mark.get(&mark).copied()
    }

    pub fn slot_of_direct_mark(&self, direct_mark: MacAddr) -> Option<usize> {
        self.by_direct_mark.get(&direct_mark).copied()
    }

    pub fn marks(&self) -> impl Iterator<Item = MacAddr> + '_ {
        self.by_mark.keys().copied()
    }

    /// Who makes room when the table is full: the stranger that was silent longest.
    pub fn stranger_to_evict(&self) -> Option<usize> {
        if self.len() < self.peers_max {
            return None;
        }
        let strangers = self.iter().filter(|(_, peer)| !peer.up);
        strangers
            .min_by_key(|(_, peer)| peer.last_heard)
            .map(|(slot, _)| slot)
    }

    /// A new peer, not up yet; its slot. `None`: the table is full.
    pub fn insert(
        &mut self,
        hello: &Hello,
        epoch: u8,
        limits: &Limits,
        now: Instant,
    ) -> Option<usize> {
        debug_assert!(!self.by_node.contains_key(&hello.node_id));
        if self.len() >= self.peers_max {
            return None;
        }
        let slot = self
            .slots
            .iter()
            .position(Option::is_none)
            .unwrap_or_else(|| {
                self.slots.push(None);
                self.slots.len() - 1
            });
        let mut peer = Peer::new(hello, epoch, limits, now);
        peer.left_at = self.gone.left_at(hello.node_id);
        self.slots[slot] = Some(Box::new(peer));
        self.by_node.insert(hello.node_id, slot);
        self.due.touch(slot);
        Some(slot)
    }

    /// Makes the addresses that the peer names lead to it; says whether the set of marks changed.
    pub fn index(&mut self, slot: usize) -> bool {
        if self.is_indexed(slot) {
            return false;
        }
        let before = (self.marks_of(slot), self.by_mark.len());
        self.unindex(slot);
        let peer = self.slots[slot].as_deref().expect("the caller's peer");
        let (address, links) = (peer.address, peer.links.clone());
        if self.claim(slot, address) {
            self.by_address.insert(address, slot);
        }
        for link in &links {
            let owner = Owner {
                slot,
                remote_link: link.link,
            };
            if self.claim(slot, link.address) {
                self.by_link.insert(link.address, owner);
            }
            if let Some(mark) = link.mark
                && self.claim(slot, mark)
            {
                self.by_mark.insert(mark, owner);
                let direct_mark = direct_mark_of(mark);
                if self.claim(slot, direct_mark) {
                    self.by_direct_mark.insert(direct_mark, slot);
                }
            }
        }
        self.get_mut(slot).expect("looked at above").indexed = Some((address, links));
        // Who is not up may have lost one: then there are fewer.
        (self.marks_of(slot), self.by_mark.len()) != before
    }

    /// Who has named an address, as whatever: the source of a frame tells whose it is, so what one has
    /// as a mark is no other's link, and the other way round.
    fn holders(&self, address: MacAddr) -> impl Iterator<Item = usize> + '_ {
        let of_link = self.by_link.get(&address).map(|owner| owner.slot);
        let of_mark = self.by_mark.get(&address).map(|owner| owner.slot);
        let of_direct_mark = self.by_direct_mark.get(&address).copied();
        let of_address = self.by_address.get(&address).copied();
        [of_address, of_link, of_mark, of_direct_mark]
            .into_iter()
            .flatten()
    }

    /// Whether an address may lead to `slot`: nobody takes what belongs to a peer that is up.
    fn may_hold(&self, slot: usize, address: MacAddr) -> bool {
        let is_up = |holder: usize| self.get(holder).is_some_and(|holder| holder.up);
        self.holders(address)
            .all(|holder| holder == slot || !is_up(holder))
    }

    /// Takes an address for `slot`, from all who have no right to it. `false`: somebody has.
    fn claim(&mut self, slot: usize, address: MacAddr) -> bool {
        if !self.may_hold(slot, address) {
            return false;
        }
        if self.holders(address).any(|holder| holder != slot) {
            self.by_address.remove(&address);
            self.by_link.remove(&address);
            self.by_mark.remove(&address);
            self.by_direct_mark.remove(&address);
        }
        true
    }

    /// Whether everything that the peer names leads to it, or to who has it for good reason.
    fn is_indexed(&self, slot: usize) -> bool {
        let Some(peer) = self.get(slot) else {
            return true;
        };
        let Some((address, links)) = &peer.indexed else {
            return false;
        };
        let named = |link: &LinkRecord| (link.link, link.address, link.mark);
        let settled = |holder: Option<usize>, address: MacAddr| {
            holder == Some(slot) || !self.may_hold(slot, address)
        };
        let mark_is_settled = |mark: MacAddr| {
            let direct_mark = direct_mark_of(mark);
            let holder = self.by_mark.get(&mark).map(|owner| owner.slot);
            settled(holder, mark)
                && (holder != Some(slot)
                    || settled(self.slot_of_direct_mark(direct_mark), direct_mark))
        };
        *address == peer.address
            && links.iter().map(named).eq(peer.links.iter().map(named))
            && settled(self.by_address.get(address).copied(), *address)
            && links.iter().all(|link| {
                let holder = self.by_link.get(&link.address).map(|owner| owner.slot);
                settled(holder, link.address) && link.mark.is_none_or(mark_is_settled)
            })
    }

    fn marks_of(&self, slot: usize) -> Vec<MacAddr> {
        let of_slot = self.by_mark.iter().filter(|(_, owner)| owner.slot == slot);
        let mut marks: Vec<MacAddr> = of_slot.map(|(&mark, _)| mark).collect();
        marks.sort_unstable();
        marks
    }

    fn unindex(&mut self, slot: usize) {
        self.by_address.retain(|_, s| *s != slot);
        self.by_link.retain(|_, owner| owner.slot != slot);
        self.by_mark.retain(|_, owner| owner.slot != slot);
        self.by_direct_mark.retain(|_, s| *s != slot);
    }

    pub fn remove(&mut self, slot: usize) -> Option<Box<Peer>> {
        let peer = self.slots.get_mut(slot)?.take()?;
        self.due.touch(slot);
        self.by_node.remove(&peer.node_id);
        self.unindex(slot);
        if let Some(epoch) = peer.remote_epoch {
            self.gone.note_left(
                peer.node_id,
                epoch,
                peer.rx_of(LaneId::FIRST).resequencer.expected(),
            );
        }
        Some(peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::wire::sequence::Sequence;

    fn hello(node_id: u64) -> Hello {
        Hello {
            answer: false,
            goodbye: false,
            away: false,
            full: false,
            past: false,
            link: LinkId(0),
            node_id: NodeId(node_id),
            recipient: None,
            line_id: 0,
            capabilities: 0,
            address: MacAddr([4; 6]),
            mtu: 1500,
            lanes: 1,
            epoch: 0,
            count: 1,
            links: Vec::new(),
            stations: Vec::new(),
            direct_vlan: None,
            dictionary: None,
            mixing_ns: None,
            newest_in_lanes: Vec::new(),
            software: String::new(),
        }
    }

    #[test]
    fn a_peer_that_was_forgotten_and_goes_on_is_met_where_it_was_left() {
        let limits = Config::new(NodeId(1), MacAddr([2; 6])).limits;
        let mut table = PeerTable::new(4, 7);
        // In the row of epoch 3, with train 208 due, and met again.
        let mut meet_again = |node_id: u64| {
            let first = table.insert(&hello(node_id), 1, &limits, Instant::ZERO);
            let first = first.expect("there is room");
            let peer = table.get_mut(first).expect("it was met");
            peer.remote_epoch = Some(3);
            peer.restart_reception(Sequence(208), &[], &limits);
            table.remove(first);
            let again = table.insert(&hello(node_id), 1, &limits, Instant::ZERO);
            let met = table.remove(again.expect("there is room"));
            met.expect("it was met again")
        };
        // An old hello, a new one, and one of a row that was begun since.
        for (epoch, named, first) in [(3, 205, 208), (3, 210, 210), (4, 1, 1)] {
            let mut peer = meet_again(5);
            let named = Sequence(named);
            assert_eq!(peer.first_of_row(epoch, named), Sequence(first));
            assert_eq!(peer.first_of_row(epoch, named), named, "once");
        }
        for node_id in 6..200 {
            meet_again(node_id);
        }
        assert_eq!(table.gone.left_at(NodeId(5)), None, "few are remembered");
        assert_eq!(table.gone.left_at(NodeId(199)), Some((3, Sequence(208))));
    }
}
