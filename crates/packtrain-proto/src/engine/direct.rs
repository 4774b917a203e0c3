//! Which peers' frames may go past the engine, and what has changed of it.

use super::transmit::Outgoing;
use super::{Engine, Event};
use crate::config::{LinkId, direct_mark_of};
use crate::direct::counts::Signal;
use crate::direct::{DirectDestination, DirectSource};
use crate::link::Link;
use crate::peer::Peer;
use crate::stats::{DirectSnapshot, EngineBecause};
use crate::time::Instant;
use crate::wire::ethernet::MacAddr;
use crate::wire::hello::capability;
use crate::wire::train::DirectReport;

/// What the owner was last told to read.
#[derive(Debug, Default)]
pub(super) struct Published {
    destinations: Vec<DirectDestination>,
    sources: Vec<DirectSource>,
}

impl Engine {
    /// The peers to which frames may go directly now. Read it when [`Event::PathsChanged`] says so.
    pub fn direct_destinations(&self) -> Vec<DirectDestination> {
        self.destinations_now().collect()
    }

    /// By what direct frames of peers are known, whether or not they send any. None where we take none.
    pub fn direct_sources(&self) -> Vec<DirectSource> {
        self.sources_now().collect()
    }

    /// A queue of direct frames stands on this link, or small ones are so many that they are better
    /// packed.
    pub fn handle_direct_congestion(&mut self, link: LinkId, now: Instant) {
        if self.link(link).is_some() {
            self.direct_gate.on_congestion(now);
            self.publish_paths();
        }
    }

    /// So many frames, a GSO frame as its segments, have gone directly to this `pt0` by this link, ever. Told
    /// twenty times a second while there are more and more, and four times a second otherwise, so that the
    /// peer can be asked what has come.
    pub fn handle_direct_sent(
        &mut self,
        address: MacAddr,
        link: LinkId,
        frames: u32,
        now: Instant,
    ) {
        let Some(slot) = self.peers.slot_of_address(address) else {
            return;
        };
        let Some(path) = self.peers.get_mut(slot).and_then(|p| p.path_mut(link)) else {
            return;
        };
        let signal = path.direct.on_sent(frames, now);
        if path.direct.is_due() {
            self.owe_direct_report(slot, link);
        }
        self.on_direct_signal(signal, now);
    }

    fn on_direct_signal(&mut self, signal: Option<Signal>, now: Instant) {
        if let Some(signal) = signal {
            self.direct_gate.on_hidden_congestion(signal, now);
            self.publish_paths();
        }
    }

    /// The answer to [`Event::DirectAsked`]: so many have come, ever.
    pub fn handle_direct_received(&mut self, link: LinkId, direct_mark: MacAddr, frames: u32) {
        let Some(slot) = self.peers.slot_of_direct_mark(direct_mark) else {
            return;
        };
        if let Some(path) = self.peers.get_mut(slot).and_then(|p| p.path_mut(link)) {
            path.direct.on_received(frames);
            self.owe_direct_report(slot, link);
        }
    }

    /// Whether [`Engine::poll_transmit`] has something to tell a peer of direct frames.
    pub fn has_direct_reports(&self) -> bool {
        !self.direct_reports.is_empty()
    }

    fn owe_direct_report(&mut self, slot: usize, link: LinkId) {
        if !self.direct_reports.contains(&(slot, link)) {
            self.direct_reports.push((slot, link));
        }
    }

    pub(super) fn take_direct_report(&mut self, now: Instant) -> Option<Outgoing> {
        while let Some((slot, link)) = self.direct_reports.pop() {
            let path = self.peers.get(slot).and_then(|peer| peer.path(link));
            // It has ridden on another marker meanwhile.
            if path.is_some_and(|path| path.direct.is_due()) {
                return self.send_marker(slot, link, false, now);
            }
        }
        None
    }

    /// What a peer says of direct frames between it and this link of ours.
    pub(super) fn on_direct_report(
        &mut self,
        slot: usize,
        link: LinkId,
        report: &DirectReport,
        now: Instant,
    ) {
        let Some(path) = self.peers.get_mut(slot).and_then(|p| p.path_mut(link)) else {
            return;
        };
        let heard = path.direct.on_report(report, now);
        let remote_link = path.remote_link;
        if heard.asks
            && let Some(direct_mark) = self.direct_mark_of_peer(slot, remote_link)
        {
            let asked = Event::DirectAsked { link, direct_mark };
            if !self.events.contains(&asked) {
                self.events.push_back(asked);
            }
        }
        self.on_direct_signal(heard.signal, now);
    }

    fn direct_mark_of_peer(&self, slot: usize, remote_link: LinkId) -> Option<MacAddr> {
        let records = &self.peers.get(slot)?.links;
        let record = records.iter().find(|record| record.link == remote_link)?;
        Some(direct_mark_of(record.mark?))
    }

    /// Whether what is given to the link's local queue leaves it in that order, of all kinds of
    /// frames and flows.
    pub fn handle_link_order(&mut self, link: LinkId, keeps_order: bool) {
        if let Some(link) = self.link_mut(link) {
            link.keeps_order = keeps_order;
            self.publish_paths();
        }
    }

    fn destinations_now(&self) -> impl Iterator<Item = DirectDestination> + '_ {
        let peers = self.peers.iter();
        peers.filter_map(|(slot, peer)| self.direct_destination(slot, peer).ok())
    }

    /// How frames go to a peer directly, or why not.
    pub(super) fn direct_destination(
        &self,
        slot: usize,
        peer: &Peer,
    ) -> Result<DirectDestination, EngineBecause> {
        if !self.config.direct_frames {
            return Err(EngineBecause::Settings);
        }
        // Somebody else may have had its address before.
        if self.peers.slot_of_address(peer.address) != Some(slot) {
            return Err(EngineBecause::NotUp);
        }
        if peer.capabilities & capability::DIRECT_FRAMES == 0 {
            return Err(EngineBecause::NotOffered);
        }
        if self.links.len() > 1 || peer.paths.len() > 1 {
            return Err(EngineBecause::SeveralLinks);
        }
        let path = peer.paths.first().ok_or(EngineBecause::NotUp)?;
        let link = self.link(path.link).ok_or(EngineBecause::NotUp)?;
        if !link.state.carrier || !path.remote_carrier {
            return Err(EngineBecause::NotUp);
        }
        let mark = link.state.mark.ok_or(EngineBecause::NoMark)?;
        let payload_max = link.state.mtu.min(path.remote_mtu).min(peer.mtu);
        if self.config.mtu > payload_max || !link.carries_trains() || !path.is_open() {
            return Err(EngineBecause::Mtu);
        }
        if !link.keeps_order {
            return Err(EngineBecause::Unordered);
        }
        if let Some(because) = self.direct_gate.closed_because()
            && !self.classes.has_direct()
        {
            return Err(because);
        }
        Ok(DirectDestination {
            address: peer.address,
            link: link.id,
            remote_address: path.remote_address,
            direct_mark: direct_mark_of(mark),
            payload_max,
            only_classes: self.direct_gate.is_closed(),
        })
    }

    /// In the order of the peers' slots and of their links, so that two readings can be compared.
    fn sources_now(&self) -> impl Iterator<Item = DirectSource> + '_ {
        let peers = self.peers.iter().filter(|_| self.config.direct_frames);
        // Also of one that is not up yet: it may know us before we know that it does.
        let holding =
            peers.filter(|(slot, peer)| self.peers.holder_of_address(peer.address) == Some(*slot));
        holding.flat_map(move |(slot, peer)| {
            peer.links.iter().filter_map(move |record| {
                let direct_mark = direct_mark_of(record.mark?);
                let is_its_own = self.peers.slot_of_direct_mark(direct_mark) == Some(slot);
                is_its_own.then_some(DirectSource {
                    direct_mark,
                    address: peer.address,
                })
            })
        })
    }

    /// After all that may change what the owner reads. Allocates nothing when nothing has.
    pub(super) fn publish_paths(&mut self) {
        let Published {
            destinations,
            sources,
        } = &self.published;
        let is_as_told = self.destinations_now().eq(destinations.iter().copied())
            && self.sources_now().eq(sources.iter().copied());
        if is_as_told {
            return;
        }
        self.published = Published {
            destinations: self.direct_destinations(),
            sources: self.direct_sources(),
        };
        if !self.events.contains(&Event::PathsChanged) {
            self.events.push_back(Event::PathsChanged);
        }
    }

    /// Between two looks whether it is calm: a moment in which something waits is not to be missed.
    pub(super) fn note_busy_moment(&mut self, now: Instant) {
        if self.direct_gate.is_closed() && !self.is_calm() {
            self.direct_gate.on_busy(now);
        }
    }

    pub(super) fn look_whether_calm(&mut self, now: Instant) {
        let small_ones_are_many = self.direct_gate.small_ones_are_many(now);
        if self.is_calm() && !small_ones_are_many {
            self.direct_gate.on_calm(now);
        } else {
            self.direct_gate.on_busy(now);
        }
        self.publish_paths();
    }

    /// Nothing waits here or before us, and below not more than what is just on its way.
    fn is_calm(&self) -> bool {
        let is_short = |link: &Link| link.local_queue_bytes() < 2 * link.frame_max();
        self.intake.rate_bps().is_none()
            && self.queued_frames == 0
            && self.links.iter().all(is_short)
    }

    fn direct_lost(&self) -> u64 {
        let paths = self.peers.iter().flat_map(|(_, peer)| &peer.paths);
        self.counters.direct_lost + paths.map(|path| path.direct.lost()).sum::<u64>()
    }

    pub(super) fn direct_snapshot(&self) -> DirectSnapshot {
        DirectSnapshot {
            closed_by_congestion: self.direct_gate.is_closed(),
            closures: self.direct_gate.closures,
            lost: self.direct_lost(),
        }
    }
}
