//! Hellos: who is there, by which links, and whether they hear us.

use super::{Engine, Event, PeerDownReason};
use crate::config::{LinkId, NodeId};
use crate::station_table::Place;
use crate::stats::DropReason;
use crate::time::Instant;
use crate::wire::ethernet::{HEADER_LEN, Header, MacAddr, ether_type};
use crate::wire::hello::{Hello, LINKS_MAX, LinkRecord, STATIONS_MAX, capability};
use crate::wire::sequence::Sequence;

impl Engine {
    /// A round: to the group on every link, and to each peer on its paths, so that it knows that it
    /// is heard.
    pub(super) fn greet_all(&mut self, goodbye: bool, now: Instant) {
        let links: Vec<LinkId> = self
            .links
            .iter()
            .filter(|l| l.state.carrier)
            .map(|l| l.id)
            .collect();
        for link in links {
            self.send_hello(link, None, false, goodbye);
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
            self.send_hello(link, Some(slot), false, false);
        }
        let _ = now;
    }

    pub(super) fn send_hello(
        &mut self,
        link: LinkId,
        to: Option<usize>,
        answer: bool,
        goodbye: bool,
    ) {
        let Some(known) = self.link(link).filter(|l| l.state.carrier) else {
            return;
        };
        let (source, frame_max) = (known.state.address, known.frame_max());
        let peer = to.and_then(|slot| self.peers.get(slot));
        let destination = match peer.map(|peer| peer.path(link)) {
            Some(Some(path)) => path.remote_address,
            Some(None) => return,
            None => MacAddr::HELLO,
        };
        let records = self.links.iter().take(LINKS_MAX).map(|link| LinkRecord {
            link: link.id,
            carrier: link.state.carrier,
            mtu: link.state.mtu,
            address: link.state.address,
            mark: link.state.mark,
            rate_kbps: link
                .state
                .rate_bps
                .map(|bps| u32::try_from(bps / 1000).unwrap_or(u32::MAX)),
            newest_train: peer.map_or(Sequence::ZERO, |peer| peer.next_train.minus(1)),
            newest_link: peer
                .and_then(|peer| peer.path(link.id))
                .map_or(Sequence::ZERO, |path| path.flight.next_sequence().minus(1)),
        });
        let mut hello = Hello {
            answer,
            goodbye,
            link,
            node_id: self.config.node_id,
            recipient: peer.map(|peer| peer.node_id),
            line_id: self.config.line_id,
            capabilities: capability::MARKED_FRAMES | capability::GSO_FRAMES,
            address: self.config.address,
            mtu: self.config.mtu,
            lanes: 1,
            epoch: peer.map_or(0, |peer| peer.epoch),
            links: records.collect(),
            stations: self.stations_behind.iter().take(STATIONS_MAX).collect(),
            software: self.config.software.clone(),
        };
        let mut message = self.pool.take(1500 + HEADER_LEN);
        while HEADER_LEN + hello.buffer_len() > frame_max && !hello.stations.is_empty() {
            hello.stations.pop();
        }
        let outer = Header {
            destination,
            source,
            ether_type: ether_type::PACKTRAIN,
        };
        let fits = message.push(&outer.to_bytes());
        debug_assert!(fits);
        hello.emit(&mut message);
        self.post(link, message);
    }

    pub(super) fn handle_hello(
        &mut self,
        link: LinkId,
        source: MacAddr,
        message: &[u8],
        now: Instant,
    ) {
        let hello = match Hello::parse(message) {
            Ok(hello) => hello,
            Err(error) => return self.counters.drops.count(error.drop_reason()),
        };
        if let Err(reason) = self.check_hello(&hello, source) {
            return self.counters.drops.count(reason);
        }
        let record = hello.links.iter().find(|record| record.link == hello.link);
        let record = *record.expect("checked");
        if hello.goodbye {
            if let Some(slot) = self.peers.slot_of_node(hello.node_id) {
                self.remove_peer(slot, PeerDownReason::Goodbye, now);
            }
            return;
        }
        let Some((slot, is_new)) = self.admit(&hello, source, now) else {
            return self.counters.drops.count(DropReason::PeerTableFull);
        };
        let names_us = hello.recipient == Some(self.config.node_id);
        let limits = &self.config.limits;
        let peer = self.peers.get_mut(slot).expect("admitted");
        peer.update(&hello, link, &record, now);
        let mut came_up = false;
        if names_us {
            if peer.remote_epoch != Some(hello.epoch) {
                // It may have been sending for long before it was heard: it says where it is.
                let lost = peer.restart_reception(record.newest_train.next(), limits);
                self.counters.drops.count_many(DropReason::PeerGone, lost);
                peer.remote_epoch = Some(hello.epoch);
            }
            peer.last_confirmed = now;
            came_up = !std::mem::replace(&mut peer.up, true);
        }
        let (up, node_id, address) = (peer.up, peer.node_id, peer.address);
        if self.peers.index(slot) {
            self.events.push_back(Event::MarksChanged);
        }
        for station in &hello.stations {
            self.stations.learn(*station, Place::Peer(node_id), now);
        }
        if (is_new || hello.answer || (!up && !names_us)) && self.greeter.may_answer(now) {
            self.send_hello(link, Some(slot), !up, false);
        }
        if came_up {
            self.events.push_back(Event::PeerUp { node_id, address });
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
        let names = |record: &&LinkRecord| record.link == hello.link;
        match hello.links.iter().find(names) {
            Some(record) if record.address == source => Ok(()),
            _ => Err(DropReason::BadHello),
        }
    }

    /// The slot of who speaks, and whether it is new. A link that spoke for another node before
    /// has been restarted: that node is gone.
    fn admit(&mut self, hello: &Hello, source: MacAddr, now: Instant) -> Option<(usize, bool)> {
        if let Some(slot) = self.peers.slot_of_node(hello.node_id) {
            return Some((slot, false));
        }
        let former = self.peers.owner_of_link(source).map(|owner| owner.slot);
        let former = former.or_else(|| self.former_life(hello.node_id, hello.address));
        if let Some(slot) = former {
            self.remove_peer(slot, PeerDownReason::Restarted, now);
        }
        if !self.greeter.may_answer(now) {
            return None;
        }
        let evicted = self.peers.stranger_to_evict();
        if let Some(slot) = evicted {
            self.remove_peer(slot, PeerDownReason::Silent, now);
        }
        let epoch = self.greeter.draw() as u8;
        let slot = self.peers.insert(hello, epoch, &self.config.limits, now)?;
        Some((slot, true))
    }

    /// A node of the same `pt0` that has another id.
    fn former_life(&self, node_id: NodeId, address: MacAddr) -> Option<usize> {
        let same = |(_, peer): &(usize, &crate::peer_table::Peer)| {
            peer.address == address && peer.node_id != node_id
        };
        self.peers.iter().find(same).map(|(slot, _)| slot)
    }
}
