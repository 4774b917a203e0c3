//! A host without packtrain: it sends frames, takes those that are for it, and must notice nothing.

use packtrain_proto::offload::Offload;
use packtrain_proto::time::Instant;
use packtrain_proto::wire::ethernet::{MacAddr, ether_type};

use crate::checker::aggregate;
use crate::frame::Frame;
use crate::host::World;
use crate::net::network::{PortId, Refused};
use crate::simulator::StationId;

#[derive(Debug)]
pub struct PlainHost {
    pub station: StationId,
    pub port: PortId,
    pub address: MacAddr,
}

impl PlainHost {
    pub fn send(&mut self, frame: &Frame, now: Instant, world: &mut World<'_>) {
        world
            .checkers
            .transmitted(self.station, self.port, frame, now);
        match world
            .network
            .transmit(self.port, frame.clone(), now, world.queue)
        {
            Ok(()) | Err(Refused::QueueFull) => {}
            Err(mistake) => panic!("the workload gave {mistake:?} to a plain host"),
        }
    }

    pub fn receive(&mut self, frame: &Frame, now: Instant, world: &mut World<'_>) {
        let header = frame.header();
        // Its card takes group frames of groups that it is in, and hellos are none of them.
        let taken = header.destination == self.address
            || header.destination.is_group() && header.destination != MacAddr::HELLO;
        if taken && (header.ether_type == ether_type::PACKTRAIN || aggregate::is_one(frame)) {
            world.checkers.noticed(self.station, frame, now);
        } else if taken {
            let frame = Frame {
                bytes: frame.bytes.clone(),
                offload: Offload { ..frame.offload },
            };
            world.checkers.delivered(self.station, &frame, now);
        }
    }
}
