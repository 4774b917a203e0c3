//! What the direct path wants of a line: what the engine has decided, by interfaces, and when all
//! that went to the engine has arrived.

use std::time::Duration;

use packtrain_proto::config::LinkId;
use packtrain_proto::wire::ethernet::MacAddr;

use super::super::member::Attached;
use super::Line;
use crate::linux::direct::Destination;

impl Line {
    /// Outer source addresses of direct frames for us, and the `pt0` of each
    /// ([`Engine::direct_sources`]).
    pub fn direct_sources(&self) -> Vec<(MacAddr, MacAddr)> {
        let sources = self.engine.direct_sources().into_iter();
        sources.map(|s| (s.direct_mark, s.address)).collect()
    }

    /// Where frames may go past the engine ([`Engine::direct_destinations`]).
    pub fn direct_destinations(&self) -> Vec<Destination> {
        let destinations = self.engine.direct_destinations().into_iter();
        let with_interface = destinations.filter_map(|destination| {
            let member = self.members.iter().find(|m| m.id == destination.link)?;
            Some(Destination {
                address: destination.address,
                ifindex: member.attached.as_ref()?.socket.ifindex(),
                outer_destination: destination.remote_address,
                outer_source: destination.direct_mark,
                payload_max: destination.payload_max,
                link: destination.link.0,
                only_classes: destination.only_classes,
            })
        });
        with_interface.collect()
    }

    /// So many frames have gone directly to this `pt0` ([`Engine::handle_direct_sent`]).
    pub fn direct_sent(&mut self, address: MacAddr, link: LinkId, frames: u32) {
        let now = self.clock.now();
        self.engine.handle_direct_sent(address, link, frames, now);
        self.send_soon();
    }

    /// So many have come, of this direct mark ([`Engine::handle_direct_received`]).
    pub fn direct_received(&mut self, link: LinkId, direct_mark: MacAddr, frames: u32) {
        self.engine
            .handle_direct_received(link, direct_mark, frames);
        self.send_soon();
    }

    /// The turn is over, and nothing may come that begins another one.
    fn send_soon(&mut self) {
        self.more_to_send |= self.engine.has_direct_reports();
    }

    /// A program has closed the direct path: by this interface a queue stands, or small frames are many.
    pub fn direct_path_closed(&mut self, ifindex: u32) {
        if let Some(link) = self.link_of(ifindex) {
            self.engine.handle_direct_congestion(link, self.clock.now());
        }
    }

    /// Whether the queue of this interface is known to let frames out as they came.
    pub fn link_order(&mut self, ifindex: u32, keeps_order: bool) {
        if let Some(link) = self.link_of(ifindex) {
            self.engine.handle_link_order(link, keeps_order);
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

    /// Asks the engine to tell when all that `pt0` holds now, and all before, was delivered.
    /// The answer ([`Event::Drained`](packtrain_proto::engine::Event::Drained)) has the same number.
    pub fn request_drain(&mut self, number: u64) {
        self.drain = Some(number);
        // What is there is read, or found not to be.
        self.tap_readable.on_ready(Duration::ZERO, false);
    }
}
