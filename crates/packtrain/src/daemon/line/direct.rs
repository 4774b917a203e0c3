//! What the direct path wants of a line: what the engine has decided, by interfaces, and when all
//! that went to the engine has arrived.

use std::collections::BTreeMap;

use packtrain_proto::config::{LinkId, LinkOrder, Unused};
use packtrain_proto::direct::{Came, DirectDestination, DirectSource};
use packtrain_proto::wire::ethernet::MacAddr;

use super::super::member::Attached;
use super::Line;
use crate::linux::direct::{Destination, SentTo, Tally};

impl Line {
    /// By what direct frames for us are known ([`Engine::direct_sources`]).
    pub fn direct_sources(&self) -> Vec<DirectSource> {
        self.engine.direct_sources()
    }

    /// Whether peers may send direct frames of one flow by several links of theirs.
    pub fn is_sent_to_by_several_links(&self) -> bool {
        // One link has a source of each kind.
        let mut links = BTreeMap::new();
        self.engine.direct_sources().iter().any(|source| {
            let peer = (source.address, source.kind);
            *links.entry(peer).or_insert(source.outer_source) != source.outer_source
        })
    }

    /// What the host has no use of its own for on this link ([`Engine::handle_link_use`]).
    pub fn link_use(&mut self, ifindex: u32, unused: Unused) {
        if let Some(link) = self.link_of(ifindex) {
            let now = self.clock.now();
            self.engine.handle_link_use(link, unused, now);
        }
    }

    /// Where frames may go past the engine ([`Engine::direct_destinations`]).
    pub fn direct_destinations(&self) -> Vec<Destination> {
        self.with_interfaces(self.engine.direct_destinations())
    }

    /// Whether small frames may be many there ([`Engine::leaves_small_frames`]).
    pub fn leaves_small_frames(&self) -> bool {
        self.engine.leaves_small_frames()
    }

    pub(super) fn with_interfaces(&self, destinations: Vec<DirectDestination>) -> Vec<Destination> {
        let with_interface = destinations.into_iter().filter_map(|destination| {
            let member = self.members.iter().find(|m| m.id == destination.link)?;
            let attached = member.attached.as_ref()?;
            Some(Destination {
                address: destination.address,
                ifindex: attached.socket.ifindex(),
                outer_destination: destination.remote_address,
                outer_source: destination.outer_source,
                kind: destination.kind,
                vlan: destination.vlan,
                payload_max: destination.payload_max,
                link: destination.link.0,
                has_queue: attached.has_queue,
                open_to: destination.open_to,
                stripes: destination.stripes,
            })
        });
        with_interface.collect()
    }

    /// What is asked between two frames from now on.
    pub fn set_tally(&mut self, tally: Tally) {
        match tally.tickets() {
            Ok(tickets) => self.drain.count(tickets, self.host_frames),
            Err(error) => tracing::warn!("{error}; flows stay with the engine"),
        }
        self.tally = Some(tally);
    }

    /// At this rate frames left the link's queue ([`Engine::handle_direct_rate`]).
    pub fn direct_rate(&mut self, link: LinkId, rate_bps: u64) {
        let now = self.clock.now();
        self.engine.handle_direct_rate(link, rate_bps, now);
    }

    /// For whom it is asked.
    pub fn count_direct_to(&mut self, counted: Vec<(SentTo, u32)>) {
        if let Some(tally) = &mut self.tally {
            tally.set_counted(counted);
        }
        self.count_direct();
    }

    /// So many frames have gone directly to this `pt0` ([`Engine::handle_direct_sent`]).
    pub fn direct_sent(&mut self, address: MacAddr, link: LinkId, frames: u32) {
        let now = self.clock.now();
        self.count_waiting();
        self.engine.handle_direct_sent(address, link, frames, now);
        self.send_soon();
    }

    /// So many small frames a second have ([`Engine::handle_direct_small_frames`]).
    pub fn direct_small_frames(&mut self, per_second: u32) {
        let now = self.clock.now();
        self.engine
            .handle_direct_small_frames(per_second.into(), now);
    }

    /// How many frames have gone directly to each that may be sent to now. Whether more than when this was told
    /// last.
    pub fn count_direct(&mut self) -> bool {
        let now = self.clock.now();
        let counts: Vec<_> = self.tally.iter().flat_map(Tally::counts).collect();
        // After them, so that nothing is said to have left which has not.
        self.count_waiting();
        let mut sum = 0u32;
        for count in counts {
            match count {
                Ok(((address, link), frames)) => {
                    sum = sum.wrapping_add(frames);
                    self.engine
                        .handle_direct_sent(address, LinkId(link), frames, now);
                }
                Err(error) => tracing::debug!("{error}"),
            }
        }
        self.send_soon();
        std::mem::replace(&mut self.direct_sum, sum) != sum
    }

    /// Direct frames by this link go through a queue of ours from now on, or by none any more.
    pub fn shape_direct_by(&mut self, link: Option<LinkId>) {
        if let Some(before) = std::mem::replace(&mut self.shaped_link, link) {
            self.engine.handle_direct_waiting(before, 0);
        }
    }

    /// Whether that queue is empty, at a look.
    pub fn look_at_waiting(&mut self, is_empty: bool) {
        let tally = self.tally.as_mut();
        if let Some(Err(error)) = tally.map(|tally| tally.look_whether_gone(is_empty)) {
            tracing::debug!("{error}");
        }
    }

    /// That queue is empty.
    pub fn no_direct_frame_waits(&mut self) {
        if let Some(Err(error)) = self.tally.as_mut().map(Tally::nothing_waits) {
            tracing::debug!("{error}");
        }
    }

    fn count_waiting(&mut self) {
        let (Some(link), Some(tally)) = (self.shaped_link, &self.tally) else {
            return;
        };
        match tally.waiting() {
            Ok(frames) => self.engine.handle_direct_waiting(link, frames),
            Err(error) => tracing::debug!("{error}"),
        }
    }

    /// After frames were taken from the host: whether some are of flows that went directly before, which they
    /// must not overtake.
    pub(super) fn look_for_flows_that_left(&mut self) {
        let Some(tally) = &mut self.tally else {
            return;
        };
        match tally.have_flows_left() {
            Ok(false) => {}
            Ok(true) => {
                self.count_direct();
                self.engine.handle_flows_left_direct();
            }
            Err(error) => tracing::debug!("{error}"),
        }
    }

    /// So many have come, of this direct mark ([`Engine::handle_direct_received`]).
    pub fn direct_received(&mut self, link: LinkId, direct_mark: MacAddr, came: Came) {
        let now = self.clock.now();
        self.engine
            .handle_direct_received(link, direct_mark, came, now);
        // Trains may have waited for them.
        self.deliver(now);
        self.send_soon();
    }

    /// The turn is over, and nothing may come that begins another one.
    fn send_soon(&mut self) {
        self.more_to_send |= self.engine.has_direct_reports();
    }

    /// A program has closed a link to direct frames: its queue stands, or small ones are many.
    pub fn link_closed(&mut self, link: LinkId) {
        self.engine.handle_direct_congestion(link, self.clock.now());
    }

    /// What leaves the queue of this interface in the order in which it was given, and whether frames can be seen
    /// to stand there.
    pub fn link_queue(&mut self, ifindex: u32, order: LinkOrder, has_queue: bool) {
        let is = |attached: &&mut Attached| attached.socket.ifindex() == ifindex;
        for member in self.members.iter_mut() {
            if let Some(attached) = member.attached.as_mut().filter(is) {
                attached.has_queue = has_queue;
                self.engine.handle_link_order(member.id, order);
            }
        }
    }

    fn link_of(&self, ifindex: u32) -> Option<LinkId> {
        let is = |attached: &Attached| attached.socket.ifindex() == ifindex;
        let mut members = self.members.iter();
        let member = members.find(|m| m.attached.as_ref().is_some_and(is))?;
        Some(member.id)
    }

    /// Frames that the host sent to the engine, ever.
    pub fn host_frames(&self) -> u64 {
        self.host_frames
    }
}
