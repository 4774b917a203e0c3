//! Nodes with packtrain that were heard, and everything kept for each: its links, what waits
//! for it, what is in flight to it, the order of what comes from it.
//!
//! Bounded; a flood of strangers displaces strangers, never a peer that is up.

use std::collections::{HashMap, VecDeque};

use crate::aggregator::Aggregator;
use crate::buffer::Buffer;
use crate::config::{Limits, LinkId, NodeId, direct_mark_of};
use crate::due::DueTimes;
use crate::link::TRAIN_MTU_MIN;
use crate::mac_map::{MacHashBuilder, MacMap};
use crate::queue::drr::FlowQueues;
use crate::reassembly::Reassembly;
use crate::time::{Duration, Instant};
use crate::trunk::flight::Flight;
use crate::trunk::hold_times::HoldTimes;
use crate::trunk::join::Join;
use crate::trunk::receipts::Receipts;
use crate::trunk::replay::Replay;
use crate::trunk::resequencer::Resequencer;
use crate::trunk::unsequenced::UnsequencedFrames;
use crate::wire::ethernet::{self, MacAddr};
use crate::wire::hello::{Hello, LINKS_MAX, LinkRecord};
use crate::wire::sequence::Sequence;

/// Peers that were forgotten and are known again.
const LEFT_MAX: usize = 64;
/// How much later than what a node sends now may come what it sent in a former life, by a slow link's queue.
const FORMER_LIFE_FOR: Duration = Duration::from_secs(4);
/// A hello is late by fewer than so many others, or it is not late.
const HELLOS_LATE_MAX: u32 = 256;
/// An MTU with room for a hello that names as many links as one can.
const HELLO_MTU_MIN: usize = 512;

/// One of our links to one of the peer's.
#[derive(Debug)]
pub struct Path {
    pub link: LinkId,
    pub remote_link: LinkId,
    pub remote_address: MacAddr,
    pub remote_mtu: u16,
    pub remote_carrier: bool,
    pub flight: Flight,
    /// When the other end was.
    pub last_heard: Instant,
    /// All links of the peer that are heard on this one of ours, and when last: a switch may lie between.
    heard: Vec<(LinkId, Instant)>,
    /// Its trains were not acknowledged for too long.
    pub silent: Option<Silence>,
    /// What went by another path before, without a sequence, must arrive first.
    pub joining: bool,
    /// Our link had no carrier, and nothing was heard on it since: its other end may still have none.
    pub unheard: bool,
    /// Its other end is gone, and what is under way is lost.
    pub broken: bool,
    pub trains_tx: u64,
}

impl Path {
    fn new(link: LinkId, record: &LinkRecord, flight: Flight, now: Instant) -> Path {
        Path {
            link,
            remote_link: record.link,
            remote_address: record.address,
            remote_mtu: record.mtu,
            remote_carrier: record.carrier,
            flight,
            last_heard: now,
            heard: vec![(record.link, now)],
            silent: None,
            joining: false,
            unheard: false,
            broken: false,
            trains_tx: 0,
        }
    }

    fn note_heard(&mut self, remote_link: LinkId, now: Instant) {
        self.unheard = false;
        match self.heard.iter_mut().find(|(link, _)| *link == remote_link) {
            Some((_, heard)) => *heard = now,
            None => {
                // A peer names no more links than that at once.
                if self.heard.len() >= LINKS_MAX {
                    let oldest = (0..self.heard.len()).min_by_key(|&at| self.heard[at].1);
                    self.heard.swap_remove(oldest.expect("some"));
                }
                self.heard.push((remote_link, now));
            }
        }
        if self.remote_link == remote_link {
            self.last_heard = now;
        }
    }

    /// Bytes of the largest train, outer header included, over our link of `frame_max`.
    pub fn train_max(&self, frame_max: usize) -> usize {
        frame_max.min(usize::from(self.remote_mtu) + ethernet::HEADER_LEN)
    }

    /// Whether the other end takes trains.
    pub fn is_open(&self) -> bool {
        self.remote_carrier && !self.unheard && self.remote_mtu >= TRAIN_MTU_MIN
    }
}

/// Of a path: a copy of one of its trains, sent again and again, shows when it works again.
#[derive(Debug)]
pub struct Silence {
    pub sample: Buffer,
    pub next_try: Instant,
    pub interval: Duration,
}

#[derive(Debug)]
pub struct Peer {
    pub node_id: NodeId,
    /// Its `pt0`'s.
    pub address: MacAddr,
    pub capabilities: u32,
    pub mtu: u16,
    pub software: String,
    /// It hears us: trains may go.
    pub up: bool,
    pub last_heard: Instant,
    /// When it last said that it hears us.
    pub last_confirmed: Instant,
    /// What tells one of our states for it from an earlier one, and its for us.
    pub epoch: u8,
    /// `None`: it has not named us yet, and what it sends may be for our former life.
    pub remote_epoch: Option<u8>,
    /// Its epoch, and the train that was due, when it was forgotten before.
    left_at: Option<(u8, Sequence)>,
    /// When we last asked for it.
    pub epoch_asked: Option<Instant>,
    /// Of the newest of its hellos.
    hello_count: u32,
    /// Its links, as it says.
    pub links: Vec<LinkRecord>,
    /// What of it the table's indexes were last made from: `pt0`'s address, and the links.
    indexed: Option<(MacAddr, Vec<LinkRecord>)>,
    pub paths: Vec<Path>,
    /// Our link on which what it sends to everybody is taken.
    pub group_link: Option<LinkId>,
    pub receipts: Vec<Receipts>,
    /// It stands in the list of peers to acknowledge.
    pub ack_listed: bool,
    pub queues: FlowQueues,
    pub aggregator: Aggregator,
    pub next_train: Sequence,
    pub replay: Replay,
    pub join: Option<Join>,
    /// The link by which the last train left.
    pub last_link: LinkId,
    /// Ours by which its last train came.
    pub last_arrival: LinkId,
    pub resequencer: Resequencer,
    pub hold_times: HoldTimes,
    /// Frames without a sequence that came while trains were held.
    pub unsequenced: UnsequencedFrames,
    pub reassembly: Reassembly,
}

impl Peer {
    fn new(hello: &Hello, epoch: u8, limits: &Limits, now: Instant) -> Peer {
        Peer {
            node_id: hello.node_id,
            address: hello.address,
            capabilities: hello.capabilities,
            mtu: hello.mtu,
            software: hello.software.clone(),
            up: false,
            last_heard: now,
            last_confirmed: now,
            epoch,
            remote_epoch: None,
            left_at: None,
            epoch_asked: None,
            hello_count: 0,
            links: hello.links.clone(),
            indexed: None,
            paths: Vec::new(),
            group_link: None,
            receipts: Vec::new(),
            ack_listed: false,
            queues: FlowQueues::new(limits.quantum),
            aggregator: Aggregator::default(),
            next_train: Sequence::FIRST,
            replay: Replay::default(),
            join: None,
            last_link: LinkId(0),
            last_arrival: LinkId(0),
            resequencer: Resequencer::new(
                Sequence::FIRST,
                limits.resequencer_bytes_max,
                (limits.resequencer_wait_max, limits.resequencer_stall_max),
            ),
            hold_times: HoldTimes::default(),
            unsequenced: UnsequencedFrames::default(),
            reassembly: Reassembly::new(limits.reassembly_bytes_max, limits.reassembly_age_max),
        }
    }

    pub fn path(&self, link: LinkId) -> Option<&Path> {
        self.paths.iter().find(|path| path.link == link)
    }

    pub fn path_mut(&mut self, link: LinkId) -> Option<&mut Path> {
        self.paths.iter_mut().find(|path| path.link == link)
    }

    /// Whether a hello of this number is newer than all before. One that is much older was forged, or
    /// those before it were.
    pub fn is_newest(&mut self, count: u32) -> bool {
        let behind = self.hello_count.wrapping_sub(count);
        let is_old = count != 0 && self.hello_count != 0 && (1..HELLOS_LATE_MAX).contains(&behind);
        if !is_old {
            self.hello_count = count;
        }
        !is_old
    }

    /// Takes in what a hello says, heard on our `link` (its largest frame: `frame_max`) from the
    /// peer's link `record`. Of one that is not the newest, only that it was heard.
    pub fn update(
        &mut self,
        hello: &Hello,
        is_newest: bool,
        (link, frame_max): (LinkId, usize),
        record: &LinkRecord,
        limits: &Limits,
        now: Instant,
    ) {
        self.last_heard = now;
        if is_newest {
            self.address = hello.address;
            self.capabilities = hello.capabilities;
            self.mtu = hello.mtu;
            if self.software != hello.software {
                self.software.clone_from(&hello.software);
            }
            self.links.clone_from(&hello.links);
        }
        match self.paths.iter_mut().find(|path| path.link == link) {
            Some(path) => path.note_heard(record.link, now),
            None => {
                let frame_max = frame_max.min(usize::from(record.mtu) + ethernet::HEADER_LEN);
                let mut path = Path::new(link, record, Flight::new(frame_max), now);
                // Before it was up, nothing was sent to it.
                path.joining = self.up && !self.paths.is_empty();
                self.paths.push(path);
            }
        }
        // Over a link of a small MTU a hello may leave some links out.
        let names_all = usize::from(record.mtu) >= HELLO_MTU_MIN;
        self.choose_remote_links(names_all, limits.peer_silence_max, now);
        for path in &mut self.paths {
            if let Some(record) = self.links.iter().find(|r| r.link == path.remote_link) {
                path.broken |= path.is_open() && !record.carrier;
                if !path.is_open() {
                    path.silent = None;
                }
                path.remote_address = record.address;
                path.remote_mtu = record.mtu;
                path.remote_carrier = record.carrier;
            }
        }
    }

    /// Each link of ours has one of the peer's as its other end: as long as it works the same, but not one
    /// that another link of ours has while one is free, or a switch would send all to one port.
    fn choose_remote_links(&mut self, names_all: bool, silence_max: Duration, now: Instant) {
        for at in 0..self.paths.len() {
            let path = &self.paths[at];
            let works = |&(remote, heard): &(LinkId, Instant)| {
                let carries = match self.links.iter().find(|record| record.link == remote) {
                    Some(record) => record.carrier && record.mtu >= TRAIN_MTU_MIN,
                    None => !names_all && remote == path.remote_link && path.is_open(),
                };
                carries && now.since(heard) < silence_max
            };
            let is_others = |remote: LinkId| {
                let others = self.paths.iter().enumerate();
                others
                    .into_iter()
                    .any(|(other, p)| other != at && p.remote_link == remote)
            };
            let working = || path.heard.iter().filter(|heard| works(heard));
            let current = working().find(|(remote, _)| *remote == path.remote_link);
            let free = working().find(|(remote, _)| !is_others(*remote));
            let wanted = match (current, free) {
                (Some(current), _) if !is_others(current.0) => current,
                (_, Some(free)) => free,
                (Some(current), None) => current,
                (None, None) => match working().next() {
                    Some(any) => any,
                    None => continue,
                },
            };
            let (remote_link, last_heard) = *wanted;
            let other_end_is_lost = current.is_none();
            let path = &mut self.paths[at];
            path.broken |= other_end_is_lost && path.remote_link != remote_link;
            path.remote_link = remote_link;
            path.last_heard = last_heard;
        }
    }

    /// What had to arrive before the newest paths are used has arrived, or never will.
    pub fn end_join(&mut self) {
        self.join = None;
        self.paths.iter_mut().for_each(|path| path.joining = false);
    }

    /// What our trains to it carry: our life, and what we keep for it.
    pub fn incarnation(&self, own: NodeId) -> u16 {
        session(own, self.epoch)
    }

    /// What its trains to us carry. `None`: it has not named us yet.
    pub fn remote_incarnation(&self) -> Option<u16> {
        Some(session(self.node_id, self.remote_epoch?))
    }

    /// The first train that is to come of a row of sequences that is new to us. `named`: the first behind what
    /// a hello says is sent; it may be an old one, that others have overtaken.
    pub fn first_of_row(&mut self, epoch: u8, named: Sequence) -> Sequence {
        match self.left_at.take() {
            Some((left_in, due)) if left_in == epoch && due.is_newer_than(named) => due,
            _ => named,
        }
    }

    /// The peer began anew what it keeps for us, and sends `first` next. Returns how many trains
    /// and frames were under way: none of them will be whole. A piece of now must not be taken for
    /// one of a frame of before.
    pub fn restart_reception(&mut self, first: Sequence, limits: &Limits) -> u64 {
        let under_way = self.trains_and_frames_held();
        self.unsequenced.clear();
        let (order, pieces) = (self.resequencer.stats, self.reassembly.stats);
        self.resequencer = Resequencer::new(
            first,
            limits.resequencer_bytes_max,
            (limits.resequencer_wait_max, limits.resequencer_stall_max),
        );
        self.reassembly = Reassembly::new(limits.reassembly_bytes_max, limits.reassembly_age_max);
        // What was counted stays, and so does what was learnt of the links.
        self.resequencer.stats = order;
        self.reassembly.stats = pieces;
        self.receipts.clear();
        under_way as u64
    }

    /// What has come of it, and not been given to the host yet.
    pub fn trains_and_frames_held(&self) -> usize {
        self.resequencer.held_trains() + self.reassembly.frames() + self.unsequenced.len()
    }

    pub fn receipts_of(&mut self, remote_link: u8) -> &mut Receipts {
        let at = match self.receipts.iter().position(|r| r.link == remote_link) {
            Some(at) => at,
            None => {
                self.receipts.push(Receipts::new(remote_link));
                self.receipts.len() - 1
            }
        };
        &mut self.receipts[at]
    }
}

/// Trains of one row of sequences: a straggler of an earlier row must not be taken for one of now.
fn session(sender: NodeId, epoch: u8) -> u16 {
    sender.incarnation() ^ u16::from(epoch) << 8
}

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
    /// Of peers that were forgotten, the newest at the end.
    left_at: VecDeque<LeftAt>,
    /// Nodes in whose place another one speaks since, the newest at the end.
    former: VecDeque<(NodeId, Instant)>,
}

/// Where a peer's row of sequences stood when it was forgotten. It may not know that it was, and go on: what
/// it had sent until then has been delivered, or given up.
#[derive(Clone, Copy, Debug)]
struct LeftAt {
    node_id: NodeId,
    epoch: u8,
    expected: Sequence,
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
            left_at: VecDeque::new(),
            former: VecDeque::new(),
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

    /// This node has been restarted, and has another id since.
    pub fn note_former_life(&mut self, node_id: NodeId, now: Instant) {
        if self.former.len() >= LEFT_MAX {
            self.former.pop_front();
        }
        self.former.push_back((node_id, now));
    }

    /// What comes of this node now was under way for long. It must not be taken for the newer life.
    pub fn is_former_life(&self, node_id: NodeId, now: Instant) -> bool {
        let is = |&(former, since): &(NodeId, Instant)| {
            former == node_id && now.since(since) < FORMER_LIFE_FOR
        };
        self.former.iter().any(is)
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
        let known = self.left_at.iter().rev();
        let mut known = known.filter(|left| left.node_id == hello.node_id);
        peer.left_at = known.next().map(|left| (left.epoch, left.expected));
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
            if self.left_at.len() >= LEFT_MAX {
                self.left_at.pop_front();
            }
            self.left_at.push_back(LeftAt {
                node_id: peer.node_id,
                epoch,
                expected: peer.resequencer.expected(),
            });
        }
        Some(peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn hello(node_id: u64) -> Hello {
        Hello {
            answer: false,
            goodbye: false,
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
            software: String::new(),
        }
    }

    #[test]
    fn who_was_restarted_is_not_met_again_while_its_frames_may_be_under_way() {
        let mut table = PeerTable::new(4, 7);
        let since = Instant::ZERO + Duration::from_secs(10);
        table.note_former_life(NodeId(5), since);
        assert!(table.is_former_life(NodeId(5), since));
        assert!(!table.is_former_life(NodeId(6), since));
        let over = since + FORMER_LIFE_FOR;
        assert!(!table.is_former_life(NodeId(5), over));
        // Few are remembered, however many are said to have been.
        for node_id in 0..1000 {
            table.note_former_life(NodeId(node_id), since);
        }
        assert!(table.former.len() <= LEFT_MAX && table.is_former_life(NodeId(999), since));
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
            peer.restart_reception(Sequence(208), &limits);
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
        assert_eq!(table.left_at.len(), LEFT_MAX);
    }
}
