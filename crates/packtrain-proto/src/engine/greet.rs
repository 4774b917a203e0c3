//! Hellos: who is there, by which links, and whether they hear us.

use super::full::Said;
use super::to_host::Arrival;
use super::{Engine, Event, PeerDownReason};
use crate::buffer::Buffer;
use crate::coding::dictionary::Dictionary;
use crate::config::{LinkId, Mode, NodeId, mark_of};
use crate::greeter::Greeter;
use crate::link::{Link, TRAIN_MTU_MIN};
use crate::peer::Peer;
use crate::station_table::Place;
use crate::stats::DropReason;
use crate::time::Instant;
use crate::trunk::lane::LANES_MAX;
use crate::wire::ethernet::{HEADER_LEN, Header, MacAddr, ether_type};
use crate::wire::hello::{Hello, LINKS_MAX, LinkRecord, STATIONS_MAX, capability};
use crate::wire::sequence::Sequence;

impl Engine {
    /// A round: to the group on every link, and to each peer on its paths, so that it knows that it
    /// is heard.
    pub(super) fn greet_all(&mut self, goodbye: bool, now: Instant) {
        if self.config.mode == Mode::Dfap {
            return self.greet_stations(goodbye);
        }
        let speaking = self.links.iter().filter(|l| l.carries_trains());
        let links: Vec<LinkId> = speaking.map(|l| l.id).collect();
        for link in links {
            self.send_hello(link, None, false, goodbye, now);
        }
        if goodbye {
            return;
        }
        let paths: Vec<(LinkId, usize)> = self
            .peers
            .iter()
            .flat_map(|(slot, peer)| peer.paths.iter().map(move |path| (path.link, slot)))
            .collect();
        for (link, slot) in paths {
            self.send_hello(link, Some(slot), false, false, now);
        }
    }

    pub(super) fn send_hello(
        &mut self,
        link: LinkId,
        to: Option<usize>,
        answer: bool,
        goodbye: bool,
        now: Instant,
    ) {
        let message = self.hello_frame(link, to, now, |hello, greeter| {
            (hello.answer, hello.goodbye) = (answer, goodbye);
            hello.count = greeter.next_count();
        });
        if let Some(message) = message {
            self.post(link, message);
        }
    }

    /// A hello for this link, of which `say` tells what it is for. `None`: none can leave there.
    pub(super) fn hello_frame(
        &mut self,
        link: LinkId,
        to: Option<usize>,
        now: Instant,
        say: impl FnOnce(&mut Hello, &mut Greeter),
    ) -> Option<Buffer> {
        let known = self.link(link).filter(|l| l.carries_trains())?;
        let (source, frame_max) = (known.state.address, known.frame_max());
        let peer = to.and_then(|slot| self.peers.get(slot));
        let destination = match peer.map(|peer| peer.path(link)) {
            Some(path) => path?.remote_address,
            None => MacAddr::HELLO,
        };
        let addressed = |l: &&Link| !l.state.address.is_zero() && !l.state.address.is_group();
        let named = self.links.iter().filter(addressed).take(LINKS_MAX);
        let newest = peer.map_or_else(Vec::new, |peer| {
            let lanes = peer.tx.iter();
            lanes.map(|lane| lane.next_train.minus(1)).collect()
        });
        let records = named.map(|link| LinkRecord {
            link: link.id,
            carrier: link.state.carrier && link.retiring.is_none(),
            unused_by_host: self.offers_unmarked(link),
            takes_vlan: self.offers_vlan(link),
            mtu: link.state.mtu,
            address: link.state.address,
            mark: link.state.mark,
            rate_kbps: link
                .state
                .rate_bps
                .map(|bps| u32::try_from(bps / 1000).unwrap_or(u32::MAX)),
            newest_train: newest.first().copied().unwrap_or_default(),
            newest_link: peer
                .and_then(|peer| peer.path(link.id))
                .map_or(Sequence::ZERO, |path| path.flight.next_sequence().minus(1)),
        });
        let records = records.collect();
        // Frames as they are have no sequence: what overtakes on the way could not be put right.
        let reorders = |peer: &Peer| peer.reorders(now);
        let any_reorders = match peer {
            Some(peer) => reorders(peer),
            None => self.peers.iter().any(|(_, peer)| reorders(peer)),
        };
        // REPAIR: it waits for what goes again, whether or not it sends so itself.
        let mut capabilities = capability::GSO_FRAMES | capability::POLLS | capability::REPAIR;
        if self.config.coded_trains {
            capabilities |= capability::CODED_TRAINS;
        }
        if self.config.detection_time.is_some() {
            capabilities |= capability::LIVENESS;
        }
        // What a link aggregation brings comes by any of its links, and only what has a sequence is known wherever it comes.
        let in_lag = self.links.iter().any(|link| link.settings.in_lag);
        if !any_reorders && !in_lag {
            capabilities |= capability::MARKED_FRAMES;
            if self.config.direct_frames {
                capabilities |= capability::DIRECT_FRAMES;
            }
        }
        let peer = to.and_then(|slot| self.peers.get(slot));
        let mut hello = Hello {
            answer: false,
            goodbye: false,
            away: false,
            full: self.full.said().full,
            past: self.full.said().past,
            link,
            node_id: self.config.node_id,
            recipient: peer.map(|peer| peer.node_id),
            line_id: self.config.line_id,
            capabilities,
            address: self.config.address,
            mtu: self.config.mtu,
            lanes: LANES_MAX as u8,
            newest_in_lanes: newest.into_iter().skip(1).collect(),
            epoch: peer.map_or(0, |peer| peer.epoch),
            count: 0,
            links: records,
            stations: self.stations_behind.iter().take(STATIONS_MAX).collect(),
            direct_vlan: self.config.direct_vlan,
            dictionary: self.config.dictionary.as_ref().map(Dictionary::id),
            mixing_ns: self.config.coded_trains.then_some(self.config.mixing_ns),
            software: self.config.software.clone(),
        };
        say(&mut hello, &mut self.greeter);
        let mut message = self.pool.take(1500 + HEADER_LEN);
        cut_to(&mut hello, frame_max - HEADER_LEN);
        let outer = Header {
            destination,
            source,
            ether_type: ether_type::PACKTRAIN,
        };
        let fits = message.push(&outer.to_bytes());
        debug_assert!(fits);
        hello.emit(&mut message);
        Some(message)
    }

    pub(super) fn handle_hello(
        &mut self,
        link: LinkId,
        source: MacAddr,
        message: &[u8],
        now: Instant,
    ) {
        if self.config.mode == Mode::Dfap {
            return self.counters.drops.count(DropReason::OtherMode);
        }
        let hello = match Hello::parse(message) {
            Ok(hello) => hello,
            Err(error) => return self.counters.drops.count(error.drop_reason()),
        };
        self.note_own_echo(link, source, &hello, now);
        if let Err(reason) = self.check_hello(&hello, source) {
            if reason == DropReason::OtherLine {
                self.note_other_line(link, source, now);
            }
            return self.counters.drops.count(reason);
        }
        if self.peers.gone.is_former_life(hello.node_id, now) {
            return self.counters.drops.count(DropReason::StaleIncarnation);
        }
        let record = hello.links.iter().find(|record| record.link == hello.link);
        let record = *record.expect("checked");
        if hello.goodbye {
            if let Some(slot) = self.peers.slot_of_node(hello.node_id) {
                // What it sent before has its place in the order, and comes first.
                self.let_go_before(slot, now);
                self.arrivals.push_back(Arrival::Goodbye {
                    slot,
                    node_id: hello.node_id,
                });
            }
            return;
        }
        let Some((slot, is_new)) = self.admit(&hello, source, now) else {
            return self.counters.drops.count(DropReason::PeerTableFull);
        };
        let names_us = hello.recipient == Some(self.config.node_id);
        let frame_max = self.link(link).map_or(0, Link::frame_max);
        let home_before = self.home_towards(slot);
        let limits = &self.config.limits;
        let peer = self.peers.get_mut(slot).expect("admitted");
        peer.use_lanes(&self.vias);
        let is_newest = peer.is_newest(hello.count, now);
        // A link that has taken the place of another one there is new as well, and is to hear us at once.
        let is_new_path = peer
            .path(link)
            .is_none_or(|path| !path.has_heard(record.link));
        peer.update(&hello, is_newest, (link, frame_max), &record, limits, now);
        let home = self.home_towards(slot);
        let peer = self.peers.get_mut(slot).expect("admitted");
        peer.plain_home = home;
        let mut came_up = false;
        if names_us && (is_newest || peer.remote_epoch.is_some()) {
            if is_newest && peer.remote_epoch != Some(hello.epoch) {
                // It may have been sending for long before it was heard: it says where it is.
                let is_heard_first = !peer.left_in(hello.epoch);
                let first = peer.first_of_row(hello.epoch, record.newest_train.next());
                let lost = peer.restart_reception(first, &hello.newest_in_lanes, limits);
                self.counters.drops.count_many(DropReason::PeerGone, lost);
                peer.remote_epoch = Some(hello.epoch);
                if is_heard_first {
                    for lane in &mut peer.rx {
                        lane.resequencer.may_begin_earlier();
                    }
                }
            }
            if is_newest {
                let others = hello.newest_in_lanes.iter().copied();
                let newest = [record.newest_train].into_iter().chain(others);
                // One of which nothing has come begins with what comes first.
                for (lane, newest) in peer.rx.iter_mut().zip(newest) {
                    lane.resequencer.on_newest_sent(newest, now);
                }
            }
            // Of other links it may tell what is long past.
            let receipts = peer.receipts.iter_mut().find(|r| r.link == hello.link.0);
            if let Some(receipts) = receipts {
                receipts.on_newest_sent(record.newest_link);
            }
            peer.last_confirmed = now;
            came_up = !std::mem::replace(&mut peer.up, true);
        }
        if is_newest {
            self.note_whether_away(slot, hello.away, now);
            let said = Said {
                full: hello.full,
                past: hello.past,
            };
            self.note_whether_full(slot, said);
        }
        let peer = self.peers.get(slot).expect("admitted");
        let (up, node_id, address) = (peer.up, peer.node_id, peer.address);
        if is_new || is_new_path {
            self.follow_sand_on(link, now);
        }
        self.replay_broken(slot, now);
        self.follow_liveness(slot, now);
        // Those that waited for direct frames of a path that leads elsewhere now.
        self.release_trains(slot, now);
        self.begin_join(slot);
        if self.peers.index(slot) {
            self.events.push_back(Event::MarksChanged);
        }
        let mut found_behind = false;
        for station in &hello.stations {
            found_behind |= self.stations.learn(*station, Place::Peer(node_id), now);
        }
        self.stations_moved |= found_behind;
        if came_up || found_behind {
            self.join_behind_plain_frames(slot);
        }
        if (is_new || is_new_path || hello.answer || (!up && !names_us))
            && !hello.away
            && self.greeter.may_answer(now)
        {
            self.send_hello(link, Some(slot), !up, false, now);
        }
        if came_up {
            self.events.push_back(Event::PeerUp { node_id, address });
            self.introduce_mark(slot, now);
        }
        // What was looked for everywhere has been found, or goes to the deaf one by another link now.
        let other_home = !up && self.home_towards(slot) != home_before;
        if came_up || is_new || other_home {
            self.redispatch_plain(now);
        }
    }

    fn check_hello(&self, hello: &Hello, source: MacAddr) -> Result<(), DropReason> {
        if hello.node_id == self.config.node_id {
            return Err(DropReason::OwnEcho);
        }
        if hello.line_id != self.config.line_id {
            return Err(DropReason::OtherLine);
        }
        if hello.address == self.config.address {
            // Another node with our own address: frames for it could never leave.
            return Err(DropReason::BadHello);
        }
        let believable = |record: &LinkRecord| {
            // Any other mark may be the address of a host, whose frames would be taken for a peer's.
            let mark_is_its_own = record
                .mark
                .is_none_or(|m| Some(m) == mark_of(record.address));
            let is_ours = self.links.iter().any(|l| l.is_named(record.address));
            mark_is_its_own && !is_ours
        };
        let names = |record: &&LinkRecord| record.link == hello.link;
        match hello.links.iter().find(names) {
            Some(record)
                if record.address == source
                    && record.mtu >= TRAIN_MTU_MIN
                    && hello.links.iter().all(believable) =>
            {
                Ok(())
            }
            _ => Err(DropReason::BadHello),
        }
    }

    /// The slot of who speaks, and whether it is new. A link that spoke for another node before
    /// has been restarted: that node is gone.
    fn admit(&mut self, hello: &Hello, source: MacAddr, now: Instant) -> Option<(usize, bool)> {
        if let Some(slot) = self.peers.slot_of_node(hello.node_id) {
            return Some((slot, false));
        }
        if !self.greeter.may_answer(now) {
            return None;
        }
        let former = self.peers.owner_of_link(source).map(|owner| owner.slot);
        let former = former.or_else(|| self.former_life(hello.node_id, hello.address));
        if let Some(slot) = former {
            if let Some(peer) = self.peers.get(slot) {
                let node_id = peer.node_id;
                self.peers.gone.note_former_life(node_id, now);
            }
            self.remove_peer(slot, PeerDownReason::Restarted, now);
        }
        let evicted = self.peers.stranger_to_evict();
        if let Some(slot) = evicted {
            self.remove_peer(slot, PeerDownReason::Silent, now);
        }
        let epoch = self.greeter.next_epoch();
        let slot = self.peers.insert(hello, epoch, &self.config.limits, now)?;
        Some((slot, true))
    }

    /// A node of the same `pt0` that has another id.
    fn former_life(&self, node_id: NodeId, address: MacAddr) -> Option<usize> {
        let same = |(_, peer): &(usize, &Peer)| peer.address == address && peer.node_id != node_id;
        self.peers.iter().find(same).map(|(slot, _)| slot)
    }
}

/// Leaves out what the link has no room for, the least needed first. The link that speaks is
/// always named: [`TRAIN_MTU_MIN`] has room for it.
fn cut_to(hello: &mut Hello, len_max: usize) {
    while hello.buffer_len() > len_max && hello.stations.pop().is_some() {}
    if hello.buffer_len() > len_max {
        hello.software.clear();
    }
    while hello.buffer_len() > len_max {
        let other = hello.links.iter().rposition(|r| r.link != hello.link);
        match other {
            Some(at) => hello.links.remove(at),
            None => break,
        };
    }
}
