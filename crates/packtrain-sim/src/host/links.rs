//! The links of a host: they join and leave while it runs, and it says where it is.

use packtrain_proto::buffer::{LARGE_CAPACITY, SMALL_CAPACITY};
use packtrain_proto::config::{LinkId, LinkSettings, LinkState, mark_of};
use packtrain_proto::stats::Snapshot;
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::ethernet::{HEADER_LEN, MacAddr};

use super::{Host, HostLink, World};
use crate::announcement;
use crate::checker::Checkers;
use crate::checker::work_conserving::LinkSeen;
use crate::frame::Frame;
use crate::net::network::{Network, PortId};

impl Host {
    /// Before the start.
    pub fn add_link(&mut self, id: LinkId, port: PortId, address: MacAddr, network: &Network) {
        let state = LinkState {
            address,
            mark: mark_of(address),
            mtu: network.port_mtu(port),
            carrier: network.carrier(port),
            rate_bps: network.rate_bps(port),
        };
        self.next_link = self.next_link.max(id.0 + 1);
        self.links.push(HostLink {
            id,
            port,
            state,
            told_bytes: 0,
            given: false,
            padding: 0,
            retiring_since: None,
            returns: false,
        });
    }

    /// Before the start.
    pub fn give_link_settings(&mut self, port: PortId, settings: LinkSettings) {
        self.link_settings.retain(|(of, _)| *of != port);
        self.link_settings.push((port, settings));
    }

    /// Its link by this port is used for something else from now on, whenever it is in the line.
    pub fn change_link_settings(
        &mut self,
        port: PortId,
        settings: LinkSettings,
        now: Instant,
        world: &mut World<'_>,
    ) {
        self.give_link_settings(port, settings);
        if let Some(link) = self.links.iter().find(|link| link.port == port) {
            self.engine.handle_link_settings(link.id, settings, now);
            self.pump(now, world);
        }
    }

    pub(super) fn settings_of(&self, port: PortId) -> LinkSettings {
        let given = self.link_settings.iter().find(|(of, _)| *of == port);
        given.map_or_else(LinkSettings::default, |(_, settings)| *settings)
    }

    /// A link joins the line while it runs, under a number that no other had.
    pub fn plug(&mut self, port: PortId, address: MacAddr, now: Instant, world: &mut World<'_>) {
        if let Some(link) = self.links.iter_mut().find(|link| link.port == port) {
            link.returns = link.retiring_since.is_some();
            return;
        }
        self.add_link(LinkId(self.next_link), port, address, world.network);
        self.tell_of_last(now, world.checkers);
        self.pump(now, world);
    }

    /// A link is to leave the line: it does when the engine says so.
    pub fn unplug(&mut self, port: PortId, now: Instant, world: &mut World<'_>) {
        let link = self.links.iter_mut().find(|link| link.port == port);
        let Some(link) = link else { return };
        link.returns = false;
        if link.retiring_since.is_some() {
            return;
        }
        link.retiring_since = Some(now);
        self.engine.retire_link(link.id, now);
        self.pump(now, world);
    }

    pub fn links(&self) -> &[HostLink] {
        &self.links
    }

    /// Carrier of a port of a segment, or of all of its ports.
    pub fn carrier(
        &mut self,
        segment: usize,
        port: Option<usize>,
        up: bool,
        now: Instant,
        world: &mut World<'_>,
    ) {
        let concerned =
            |l: &HostLink| l.port.segment == segment && port.is_none_or(|port| port == l.port.port);
        let concerned = self.links.iter().filter(|l| concerned(l));
        let ports: Vec<PortId> = concerned.map(|link| link.port).collect();
        if self.misses_carriers(&ports, up) {
            return;
        }
        for &port in &ports {
            self.note_carrier(port, up, now, world);
        }
        if !ports.is_empty() {
            self.pump(now, world);
        }
    }

    pub(super) fn note_carrier(
        &mut self,
        port: PortId,
        up: bool,
        now: Instant,
        world: &mut World<'_>,
    ) {
        for link in self.links.iter_mut().filter(|link| link.port == port) {
            link.state.carrier = up;
            world.checkers.link(self.station, port, up, now);
            self.engine.handle_link_state(link.id, link.state, now);
        }
    }

    /// What its interface at this port takes is set anew.
    pub fn change_mtu(&mut self, port: PortId, mtu: u16, now: Instant, world: &mut World<'_>) {
        world.network.set_port_mtu(port, mtu);
        if let Some(link) = self.links.iter_mut().find(|link| link.port == port) {
            link.state.mtu = mtu;
            self.engine.handle_link_state(link.id, link.state, now);
            self.pump(now, world);
        }
    }

    /// A link that was to leave has nothing under way any more.
    pub(super) fn let_go(&mut self, id: LinkId, now: Instant, world: &mut World<'_>) {
        let leaves = |l: &HostLink| l.id == id && l.retiring_since.is_some();
        let Some(at) = self.links.iter().position(leaves) else {
            return;
        };
        let link = self.links.remove(at);
        self.engine.remove_link(id, now);
        world.checkers.link(self.station, link.port, false, now);
        if link.returns {
            let id = LinkId(self.next_link);
            self.add_link(id, link.port, link.state.address, world.network);
            self.tell_of_last(now, world.checkers);
        }
    }

    /// Of the link that has just joined.
    fn tell_of_last(&mut self, now: Instant, checkers: &mut Checkers) {
        let link = self.links.last().expect("just put there");
        checkers.link(self.station, link.port, link.state.carrier, now);
        let settings = self.settings_of(link.port);
        self.engine.handle_link_state(link.id, link.state, now);
        self.engine.handle_link_settings(link.id, settings, now);
        self.tell_orders();
    }

    /// Tells the switches of a segment where we are from now on, and those behind us.
    pub(super) fn announce(&mut self, id: LinkId, now: Instant, world: &mut World<'_>) {
        let Some(link) = self.links.iter().find(|link| link.id == id) else {
            return;
        };
        let behind = self.engine.stations_behind();
        for address in core::iter::once(self.config.address).chain(behind) {
            let frame = announcement::of(address);
            // As with any frame on a link: it may be lost, and the next one of ours tells as well.
            let _ = world.network.transmit(link.port, frame, now, world.queue);
        }
    }

    /// Lets the checkers see how it uses its links. All processes have run since `calm_since`.
    pub fn look(&mut self, calm_since: Instant, now: Instant, world: &mut World<'_>) {
        let snapshot = self.snapshot(now);
        let lines = self.lines(world.network);
        let loses = |link: &HostLink| world.network.loses(link.port.segment);
        let repeats_losses =
            world.checkers.lets_nothing_be_lost(self.station) && self.links.iter().any(loses);
        let waits_for_copies = self.waits_for_copies(&snapshot, world.checkers);
        let well_since = |segment| world.network.well_since(segment, now);
        let silent_since = |port| world.network.silent_since(port, now);
        let seen = |link: &HostLink| LinkSeen {
            station: self.station,
            id: link.id,
            port: link.port,
            retiring_since: link.retiring_since,
            local_queue_bytes: world.network.local_queue_bytes(link.port),
            well_since: well_since(link.port.segment).map(|at| at.max(calm_since)),
            silent_since: silent_since(link.port).map(|(at, to_us)| (at.max(calm_since), to_us)),
            patience: self.patience(link.port.segment, world.network),
            repeats_losses,
            waits_for_copies,
        };
        let links: Vec<LinkSeen> = self.links.iter().map(seen).collect();
        for link in &links {
            world.checkers.look_at_link(link, &snapshot, &lines, now);
        }
        world.checkers.look_for_dead(&links, &snapshot, now);
    }

    /// The MTU of the link that takes least, of those by which a frame for all goes. What all links take is not asked about further.
    pub(super) fn shortest_home(&self, frame: &Frame, now: Instant) -> Option<u16> {
        let up = || self.links.iter().filter(|link| link.state.carrier);
        let least = up().map(|link| link.state.mtu).min()?;
        if frame.payload_bytes_max() <= usize::from(least) {
            return Some(least);
        }
        let homes = self.engine.snapshot(now).links;
        let is_home = |link: &HostLink| homes.iter().any(|home| home.home && home.id == link.id);
        let has_home = |segment| up().any(|link| link.port.segment == segment && is_home(link));
        // Where it is not known yet which one is, it may become any.
        let may_be = |link: &&HostLink| is_home(link) || !has_home(link.port.segment);
        up().filter(may_be).map(|link| link.state.mtu).min()
    }

    /// Nothing may be lost, and so nothing leaves of which there is no room for a copy.
    pub(super) fn waits_for_copies(&self, snapshot: &Snapshot, checkers: &Checkers) -> bool {
        checkers.lets_nothing_be_lost(self.station) && !self.has_room_for_a_copy(snapshot)
    }

    /// Trains are as long as all links take, and a copy is kept in a buffer for a short one, or for a long one.
    fn has_room_for_a_copy(&self, snapshot: &Snapshot) -> bool {
        let mtu = self.links.iter().map(|link| link.state.mtu).min();
        let bytes = match usize::from(mtu.unwrap_or(0)) + HEADER_LEN <= SMALL_CAPACITY {
            true => SMALL_CAPACITY,
            false => LARGE_CAPACITY,
        };
        let limit = self.config.limits.replay_bytes_max;
        snapshot.replay.kept_bytes as usize + bytes.min(limit) <= limit
    }

    /// Longest that the engine may be without an answer over a segment on which all is well.
    fn patience(&self, segment: usize, network: &Network) -> Duration {
        let largest = usize::from(network.mtu(segment)) + HEADER_LEN;
        let own = self.pace.batch + self.pace.lateness_max;
        network.round_trip_max(segment, largest) + 2 * own
    }
}
