//! Which peers' frames may go past the engine, and what has changed of it.

use super::kinds::outer_source;
use super::paths::standing;
use super::{Engine, Event};
use crate::config::{Balance, LinkId, LinkOrder, direct_mark_of};
use crate::direct::counts::Signal;
use crate::direct::gate::DirectGate;
use crate::direct::kinds::DirectKind;
use crate::direct::{DIRECT_WAYS_MAX, DirectDestination, DirectSource, OpenTo};
use crate::link::Link;
use crate::peer::{Path, Peer};
use crate::stats::EngineBecause;
use crate::time::Instant;
use crate::trunk::balance::Standing;
use crate::trunk::path_mtu::PathMtu;
use crate::wire::ethernet::HEADER_LEN;
use crate::wire::hello::capability;

/// What the owner was last told to read.
#[derive(Debug, Default)]
pub(super) struct Published {
    pub(super) destinations: Vec<DirectDestination>,
    sources: Vec<DirectSource>,
    /// [`Engine::leaves_small_frames`].
    leaves_small_frames: bool,
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

    /// Whether many small frames may go directly as well, for the engine was full of them and is not known to carry more.
    /// Read it when [`Event::PathsChanged`] says so.
    pub fn leaves_small_frames(&self) -> bool {
        self.published.leaves_small_frames
    }

    /// A queue of direct frames stands on this link, or small ones are so many that they are better
    /// packed.
    pub fn handle_direct_congestion(&mut self, link: LinkId, now: Instant) {
        if let Some(link) = self.link_mut(link) {
            link.direct_gate.on_congestion(now);
            self.on_gate_closing(now);
            self.publish_paths();
        }
    }

    /// So many small frames a second have gone directly lately, by all links, in a time of at least 20 ms: where they are
    /// many, it is compared with what the engine can take.
    pub fn handle_direct_small_frames(&mut self, per_second: u64, now: Instant) {
        if self.small_frames.on_direct(per_second, now) {
            self.publish_paths();
        }
    }

    /// Those that the host gives to the engine.
    #[inline]
    pub(super) fn counts_small_frames(&self) -> bool {
        self.gates_closed || self.small_frames.is_on_trial()
    }

    /// What both ends have counted says that it is not well on the way to this peer by this link.
    pub(super) fn on_direct_signal(
        &mut self,
        (slot, link): (usize, LinkId),
        signal: Option<Signal>,
        now: Instant,
    ) {
        let Some(signal) = signal else {
            return;
        };
        if let Some(path) = self.peers.get_mut(slot).and_then(|p| p.path_mut(link)) {
            path.direct_gate.on_hidden_congestion(signal, now);
            self.on_gate_closing(now);
            self.publish_paths();
        }
    }

    /// We carry as much as we can; but where the links are seen draining just now, and not much faster than that, it is they that are
    /// full.
    pub(super) fn on_engine_full(&mut self, full_bps: u64, now: Instant) {
        if self.are_links_full(full_bps, now) {
            return;
        }
        let is_just_now = self.intake.owner_is_full_still();
        if is_just_now && self.counts_small_frames() && self.small_frames.on_engine_full(now) {
            self.each_gate(|gate| gate.on_given_back(now));
            self.publish_paths();
        }
        let was_open = self.full.sent.is_open();
        let engine_bytes = self.counters.host_rx.bytes;
        self.full.sent.on_engine_full(full_bps, engine_bytes, now);
        if !was_open {
            self.publish_paths();
        }
        self.let_flows_rest(full_bps, now);
    }

    /// We carry as much as when we were found full.
    pub(super) fn on_engine_full_again(&mut self, bps: u64, now: Instant) {
        if self.are_links_full(bps, now) {
            return;
        }
        let engine_bytes = self.counters.host_rx.bytes;
        self.full.sent.on_full_again(bps, engine_bytes, now);
        self.publish_paths();
        self.let_flows_rest(bps, now);
    }

    fn are_links_full(&self, bps: u64, now: Instant) -> bool {
        let live = self.links.iter().filter(|link| link.carries_trains());
        let rates = live.map(|link| link.drains_at(now));
        let line_bps: Option<u64> = rates.sum();
        line_bps.is_some_and(|line_bps| line_bps < bps / 4 * 5)
    }

    /// What leaves the link's local queue in the order in which it was given to it.
    pub fn handle_link_order(&mut self, link: LinkId, order: LinkOrder) {
        if let Some(link) = self.link_mut(link) {
            link.order = order;
            self.publish_paths();
        }
    }

    fn destinations_now(&self) -> impl Iterator<Item = DirectDestination> + '_ {
        let is_of_use = |way: &DirectDestination| {
            way.open_to == OpenTo::Nobody || self.classes.uses(way.open_to)
        };
        self.peers.iter().flat_map(move |(slot, peer)| {
            let paths = peer.paths.iter();
            let ways = paths.filter_map(move |path| self.direct_way(slot, peer, path).ok());
            let ways = ways.map(|(way, _)| way).filter(is_of_use);
            ways.take(DIRECT_WAYS_MAX)
        })
    }

    /// How frames go to a peer directly by this path, and why not all; or why none.
    pub(super) fn direct_way(
        &self,
        slot: usize,
        peer: &Peer,
        path: &Path,
    ) -> Result<(DirectDestination, Option<EngineBecause>), EngineBecause> {
        self.way_past_gates(slot, peer, path, peer.away)
    }

    /// `past_gates`: nothing but direct frames reaches it, however busy its link is. Only where there is no other
    /// link: who is away says nothing of which of several still works.
    pub(super) fn way_past_gates(
        &self,
        slot: usize,
        peer: &Peer,
        path: &Path,
        past_gates: bool,
    ) -> Result<(DirectDestination, Option<EngineBecause>), EngineBecause> {
        if !self.config.direct_frames {
            return Err(EngineBecause::Settings);
        }
        if past_gates && !self.has_one_link(peer) {
            return Err(EngineBecause::SeveralLinks);
        }
        // Somebody else may have had its address before.
        if self.peers.slot_of_address(peer.address) != Some(slot) {
            return Err(EngineBecause::NotUp);
        }
        if peer.capabilities & capability::DIRECT_FRAMES == 0 {
            return Err(EngineBecause::NotOffered);
        }
        let link = self.link(path.link).ok_or(EngineBecause::NotUp)?;
        if !link.state.carrier || !path.remote_carrier || !self.may_go_by(peer, path) {
            return Err(EngineBecause::NotUp);
        }
        let kind = path.direct_kinds.kind();
        let payload_max = link.state.mtu.min(path.remote_mtu).min(peer.mtu);
        let passes = path.mtu.as_ref().filter(|mtu| mtu.is_less());
        let passes = passes.map_or(u16::MAX, PathMtu::payload);
        let payload_max = payload_max.min(passes);
        if self.config.mtu > payload_max || !link.carries_trains() || !path.is_open() {
            return Err(EngineBecause::Mtu);
        }
        let frame_max = usize::from(self.config.mtu) + HEADER_LEN;
        if path.size.chosen().is_some_and(|bytes| bytes < frame_max) {
            return Err(EngineBecause::Size);
        }
        let (open_to, because) = match past_gates && path.direct.is_known() {
            true => (OpenTo::All, None),
            false => self.open_to(peer, link, path),
        };
        let way = DirectDestination {
            address: peer.address,
            link: link.id,
            remote_address: path.remote_address,
            outer_source: outer_source(link, kind).ok_or(EngineBecause::NoMark)?,
            kind,
            vlan: self.vlan_of(kind),
            payload_max,
            open_to,
            stripes: self.stripes(peer, path, open_to),
        };
        Ok((way, because))
    }

    /// Whether the owner was told to spread flows over this path and others.
    pub(super) fn is_spread_over(&self, slot: usize, link: LinkId) -> bool {
        let Some(peer) = self.peers.get(slot) else {
            return false;
        };
        let told = self.published.destinations.iter();
        let mut spread = told.filter(|way| way.stripes && way.address == peer.address);
        spread.clone().any(|way| way.link == link) && spread.any(|way| way.link != link)
    }

    /// Whether frames of one flow go by it and by others. Who wants flows to keep to links, or links to be used by weight, has
    /// said so.
    fn stripes(&self, peer: &Peer, path: &Path, open_to: OpenTo) -> bool {
        // What is most often not so comes first: it is asked of each path many times a second.
        path.striping.is_on()
            && open_to >= OpenTo::LossOk
            && self.config.balance == Balance::EarliestFinish
            && self.has_several_ways(peer)
            && self.classes.have_loss_ok()
    }

    /// Which frames may go by this path directly, and why not all.
    fn open_to(&self, peer: &Peer, link: &Link, path: &Path) -> (OpenTo, Option<EngineBecause>) {
        let gates = [&link.direct_gate, &path.direct_gate];
        if !path.direct.is_known() {
            (OpenTo::Nobody, Some(EngineBecause::Unanswered))
        } else if let Some(because) = gates.iter().find_map(|gate| gate.closed_because()) {
            (OpenTo::Classes, Some(because))
        } else if path.errors.wants_trains() && peer.paths.len() == 1 {
            // Only the engine sees what is lost, and sends it again.
            (OpenTo::Classes, Some(EngineBecause::BitErrors))
        } else if self.has_several_ways(peer) && self.config.balance == Balance::Duplicate {
            // Only the engine sends twice.
            (OpenTo::Classes, Some(EngineBecause::SeveralLinks))
        } else if self.has_several_ways(peer)
            && !self.full.sent.is_open()
            && !peer.full
            && !peer.past
        {
            (OpenTo::LossOk, Some(EngineBecause::SeveralLinks))
        } else {
            (OpenTo::All, None)
        }
    }

    /// Why not all frames to a peer may go directly.
    pub(super) fn engine_because(&self, slot: usize, peer: &Peer) -> Option<EngineBecause> {
        let ways = peer
            .paths
            .iter()
            .map(|path| match self.direct_way(slot, peer, path) {
                Ok((way, because)) => (way.open_to, because),
                Err(because) => (OpenTo::Nobody, Some(because)),
            });
        // Of those that are open to the most, the first.
        let widest = ways.reduce(|a, b| if b.0 > a.0 { b } else { a });
        widest.map_or(Some(EngineBecause::NotUp), |(_, because)| because)
    }

    /// What a link takes with it, only the engine sends again by another one. And only the engine keeps the order
    /// of what goes by several.
    fn has_several_ways(&self, peer: &Peer) -> bool {
        let is_live = |path: &&Path| {
            let link = self.link(path.link);
            path.is_open() && link.is_some_and(|link| link.carries_trains())
        };
        peer.paths.iter().filter(is_live).count() > 1
    }

    /// There is no other link, and never was since the peer came.
    pub(super) fn has_one_link(&self, peer: &Peer) -> bool {
        self.links.len() == 1 && peer.paths.len() == 1
    }

    /// Whether the engine would use this path.
    fn may_go_by(&self, peer: &Peer, path: &Path) -> bool {
        let is_usable = |path: &Path| {
            let link = self.link(path.link);
            link.is_some_and(|link| path.is_open() && standing(link, path) == Standing::Open)
        };
        let rank = |path: &Path| {
            let tier = self.link(path.link).map(|link| link.settings.tier);
            (
                tier,
                (self.config.balance == Balance::ActiveBackup).then_some(path.link),
            )
        };
        let is_active = || {
            let mut others = peer.paths.iter();
            others.all(|other| rank(other) >= rank(path) || !is_usable(other))
        };
        self.has_one_link(peer) || is_usable(path) && is_active()
    }

    /// In the order of the peers' slots and of their links, so that two readings can be compared.
    fn sources_now(&self) -> impl Iterator<Item = DirectSource> + '_ {
        let peers = self.peers.iter().filter(|_| self.config.direct_frames);
        // Also of one that is not up yet: it may know us before we know that it does.
        let holding =
            peers.filter(|(slot, peer)| self.peers.holder_of_address(peer.address) == Some(*slot));
        holding.flat_map(move |(slot, peer)| {
            let marked = peer.links.iter().filter_map(move |record| {
                let direct_mark = direct_mark_of(record.mark?);
                let is_its_own = self.peers.slot_of_direct_mark(direct_mark) == Some(slot);
                is_its_own.then_some(DirectSource {
                    outer_source: direct_mark,
                    kind: DirectKind::Source,
                    link: None,
                    address: peer.address,
                })
            });
            marked.chain(self.unmarked_sources(slot, peer))
        })
    }

    /// After all that may change what the owner reads. Allocates nothing when nothing has.
    pub(super) fn publish_paths(&mut self) {
        self.note_tiers();
        self.leave_unusable_kinds();
        let Published {
            destinations,
            sources,
            leaves_small_frames,
        } = &self.published;
        let leaves_small_now = !self.small_frames.are_packed();
        let is_as_told = leaves_small_now == *leaves_small_frames
            && self.destinations_now().eq(destinations.iter().copied())
            && self.sources_now().eq(sources.iter().copied());
        if is_as_told {
            return;
        }
        let mut open = destinations.iter();
        let are_back = open.any(|way| {
            let as_before = |now: DirectDestination| DirectDestination {
                stripes: way.stripes,
                ..now
            };
            let mut ways = self.destinations_now().map(as_before);
            way.open_to == OpenTo::All && !ways.any(|now| now == *way)
        });
        self.published = Published {
            destinations: self.direct_destinations(),
            sources: self.direct_sources(),
            leaves_small_frames: leaves_small_now,
        };
        if are_back {
            self.rest.on_flows_back(self.ticked_at);
        }
        if !self.events.contains(&Event::PathsChanged) {
            self.events.push_back(Event::PathsChanged);
        }
    }

    /// Between two looks whether it is calm: a moment in which something waits is not to be missed.
    pub(super) fn note_busy_moment(&mut self, now: Instant) {
        if self.gates_closed {
            self.tell_gates(|gate, is_calm| {
                if !is_calm {
                    gate.on_busy(now);
                }
            });
        }
    }

    pub(super) fn look_whether_calm(&mut self, now: Instant) {
        self.small_frames.pass_time(now);
        let paths = self.peers.iter_mut().flat_map(|(_, peer)| &mut peer.paths);
        paths.for_each(|path| path.striping.look(now));
        let small_ones_are_kept = self.counts_small_frames() && self.small_frames.look(now);
        if self.gates_closed {
            let mut are_closed = false;
            self.tell_gates(|gate, is_calm| {
                match is_calm && !small_ones_are_kept {
                    true => gate.on_calm(now),
                    false => gate.on_busy(now),
                }
                are_closed |= gate.is_closed();
            });
            self.gates_closed = are_closed;
        }
        self.publish_paths();
    }

    /// … whether nothing waits here or before us, and below not more than what is just on its way.
    fn tell_gates(&mut self, mut tell: impl FnMut(&mut DirectGate, bool)) {
        let is_idle = self.intake.rate_bps().is_none() && self.queued_frames == 0;
        let is_calm = |link: &Link| is_idle && link.local_queue_bytes() < 2 * link.frame_max();
        for path in self.peers.iter_mut().flat_map(|(_, peer)| &mut peer.paths) {
            if let Some(link) = self.links.iter().find(|link| link.id == path.link) {
                tell(&mut path.direct_gate, is_calm(link));
            }
        }
        for link in &mut self.links {
            let is_calm = is_calm(link);
            tell(&mut link.direct_gate, is_calm);
        }
    }

    fn each_gate(&mut self, mut tell: impl FnMut(&mut DirectGate)) {
        let paths = self.peers.iter_mut().flat_map(|(_, peer)| &mut peer.paths);
        paths.for_each(|path| tell(&mut path.direct_gate));
        let links = &mut self.links;
        links
            .iter_mut()
            .for_each(|link| tell(&mut link.direct_gate));
    }

    /// A gate closes: small frames are counted from when the first does.
    fn on_gate_closing(&mut self, now: Instant) {
        if !self.gates_closed {
            self.small_frames.begin(now);
            self.gates_closed = true;
        }
    }
}
