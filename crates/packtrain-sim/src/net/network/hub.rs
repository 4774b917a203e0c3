//! Hubs: shared Ethernet in the middle of a segment. What comes in by a port waits for its turn on the
//! medium, and what is heard whole goes out by every other port.

use packtrain_proto::offload::Offload;
use packtrain_proto::time::Instant;

use super::{NetEvent, Network, PortId, WireId};
use crate::event_queue::EventQueue;
use crate::frame::Frame;
use crate::net::medium::{Heard, MediumCounters, StationCounters};
use crate::net::nic;
use crate::net::segment::Segment;
use crate::net::wire::WireDrop;

impl Network {
    /// A frame has come to a hub by a port, and waits for its turn there.
    pub(super) fn offer_to_medium<E: From<NetEvent>>(
        &mut self,
        port: PortId,
        frame: Frame,
        now: Instant,
        queue: &mut EventQueue<E>,
    ) {
        let wire = WireId::out_of(port);
        let whole = (frame.offload != Offload::NONE).then(|| frame.clone());
        let Some(frames) = nic::to_wire(frame) else {
            let whole = whole.expect("without metadata there is nothing wrong with it");
            return self.dropped(wire, whole, WireDrop::BadOffload, now);
        };
        for frame in frames {
            let medium = self.segments[port.segment].medium.as_mut();
            let medium = medium.expect("it is a hub's port");
            let is_cut = medium.is_cut(port.port);
            if let Err(frame) = medium.offer(port.port, frame, now) {
                let reason = if is_cut {
                    WireDrop::Cut
                } else {
                    WireDrop::QueueFull
                };
                self.dropped(wire, frame, reason, now);
            }
        }
        self.schedule_medium(port.segment, now, queue);
    }

    /// Lets a medium go on until now.
    pub(super) fn run_medium<E: From<NetEvent>>(
        &mut self,
        segment: usize,
        now: Instant,
        queue: &mut EventQueue<E>,
    ) {
        let ports = self.segments[segment].ports();
        self.segments[segment].medium_due = None;
        let mut all = Vec::new();
        let medium = self.segments[segment].medium.as_mut();
        medium
            .expect("it is a hub")
            .handle(now, |heard| all.push(heard));
        for heard in all {
            match heard {
                Heard::Frame { by, frame, .. } => {
                    for port in by.iter() {
                        let wire = WireId {
                            segment,
                            wire: ports + port,
                        };
                        // A full queue has counted it.
                        let _ = self.offer(wire, frame.clone(), now, queue);
                    }
                }
                Heard::GivenUp { from, frame, at } => {
                    let wire = WireId {
                        segment,
                        wire: from,
                    };
                    self.dropped(wire, frame, WireDrop::Collisions, at);
                }
            }
        }
        self.schedule_medium(segment, now, queue);
    }

    /// One event at a time is enough: whoever comes to it looks when the next one is due.
    fn schedule_medium<E: From<NetEvent>>(
        &mut self,
        segment: usize,
        now: Instant,
        queue: &mut EventQueue<E>,
    ) {
        let Segment {
            medium, medium_due, ..
        } = &mut self.segments[segment];
        let next = medium.as_ref().and_then(|medium| medium.next_at());
        let Some(next) = next.map(|at| at.max(now)) else {
            return;
        };
        if medium_due.is_none_or(|due| next < due) {
            *medium_due = Some(next);
            queue.push(next, NetEvent::Medium { segment, due: next }.into());
        }
    }

    /// Whether a hub's medium is done with frames of which nobody was told.
    pub(super) fn has_drained(&mut self, segment: usize) -> bool {
        let segment = &mut self.segments[segment];
        let Some(medium) = &segment.medium else {
            return false;
        };
        let done = (0..segment.config.up.len()).map(|station| {
            let counters = medium.station_counters(station);
            counters.sent_frames + counters.excessive_collisions + counters.cut
        });
        let done = done.sum();
        core::mem::replace(&mut segment.medium_done, done) != done
    }

    /// What a hub's port has met; `None` for other ports.
    pub fn station_counters(&self, port: PortId) -> Option<&StationCounters> {
        let medium = self.segments[port.segment].medium.as_ref()?;
        Some(medium.station_counters(port.port))
    }

    pub fn medium_counters(&self, segment: usize) -> Option<MediumCounters> {
        Some(self.segments[segment].medium.as_ref()?.counters())
    }

    pub fn station_queued_bytes(&self, port: PortId) -> Option<usize> {
        let medium = self.segments[port.segment].medium.as_ref()?;
        Some(medium.queued_bytes(port.port))
    }

    /// The cable of a hub's port is pulled, or put back.
    pub(super) fn plug_station(&mut self, port: PortId, up: bool, now: Instant) {
        let medium = self.segments[port.segment].medium.as_mut();
        let medium = medium.expect("it is a hub");
        if up {
            return medium.mend(port.port, now);
        }
        for frame in medium.cut(port.port, now) {
            self.dropped(WireId::out_of(port), frame, WireDrop::Cut, now);
        }
    }
}
