//! A host whose frames may go past its engine: what [`Kernel`] decides, done.

use packtrain_proto::class;
use packtrain_proto::config::LinkId;
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::ethernet::{HEADER_LEN, MacAddr};

use super::kernel::{DirectCounters, Kernel, Redirected};
use super::{Host, World};
use crate::frame::Frame;
use crate::net::network::{Network, PortId, Refused};
use crate::sabotage::Saboteur;
use crate::simulator::Event;
use crate::workload::identity::identify;

impl Host {
    /// Before the start: some of its frames go past the engine.
    pub fn give_kernel(&mut self, kernel: Kernel, now: Instant) {
        if !self.config.direct_frames {
            self.config.direct_frames = true;
            self.engine = self.new_engine(now);
        }
        self.kernel = Some(kernel);
    }

    pub fn direct_counters(&self) -> DirectCounters {
        self.kernel
            .as_ref()
            .map_or_else(DirectCounters::default, |kernel| kernel.counters)
    }

    /// Whether the host's frame has gone past the engine.
    pub(super) fn leaves_directly(
        &mut self,
        frame: &Frame,
        now: Instant,
        world: &mut World<'_>,
    ) -> bool {
        let Some(kernel) = &mut self.kernel else {
            return false;
        };
        let what = identify(&frame.bytes, world.checkers.flows());
        let flow = what.expect("hosts send nothing else").flow;
        let defaults = class::defaults();
        let classes = self.classes.as_ref().unwrap_or(&defaults);
        let host = (self.config.address, &classes[..]);
        let Some(redirected) = kernel.leave(frame, flow, host, now) else {
            return false;
        };
        let redirected = match &mut self.saboteur {
            Some(saboteur) => saboteur.redirected(redirected, |way| kernel.misled(way)),
            None => Some(redirected),
        };
        world
            .checkers
            .left_directly(self.station, frame, redirected.as_ref(), now);
        if let Some(redirected) = redirected {
            self.redirect(redirected, now, world);
        }
        self.plan_kernel_turn(now, world);
        true
    }

    fn redirect(&mut self, redirected: Redirected, now: Instant, world: &mut World<'_>) {
        let Redirected { link, frame, .. } = redirected;
        let mut links = self.links.iter();
        let port = links.find(|l| l.id == link).map(|link| link.port);
        let (Some(port), Some(kernel)) = (port, &mut self.kernel) else {
            return world.checkers.lost(&frame);
        };
        let queued = world.network.local_queue_bytes(port);
        kernel.watch(link, frame.bytes.len(), queued, now);
        if let Some(at) = redirected.leaves_card {
            let station = self.station;
            let event = Event::CardSends {
                station,
                port,
                frame,
            };
            return world.queue.push(at, event);
        }
        self.give_to_card(port, frame, now, world);
    }

    /// What is refused was counted as lost by the network.
    pub fn give_to_card(
        &mut self,
        port: PortId,
        frame: Frame,
        now: Instant,
        world: &mut World<'_>,
    ) {
        match world.network.transmit(port, frame, now, world.queue) {
            Ok(()) | Err(Refused::QueueFull) => {}
            Err(mistake) => world.checkers.refused(self.station, mistake, now),
        }
    }

    /// Whether a frame has gone to the host past the engine.
    pub(super) fn arrives_directly(
        &mut self,
        (link, address): (LinkId, MacAddr),
        frame: &Frame,
        now: Instant,
        world: &mut World<'_>,
    ) -> bool {
        let Some(kernel) = &mut self.kernel else {
            return false;
        };
        let Some(inner) = kernel.arrive(link, address, self.config.address, frame) else {
            return false;
        };
        let round_trip = self.round_trip_max(link, world.network);
        world.checkers.direct_came(self.station, round_trip, now);
        world.checkers.delivered(self.station, &inner, now);
        true
    }

    fn round_trip_max(&self, link: LinkId, network: &Network) -> Duration {
        let known = self.links().iter().find(|known| known.id == link);
        let port = known.expect("a link that we have").port;
        let largest = usize::from(network.mtu(port.segment)) + HEADER_LEN;
        network.round_trip_max(port.segment, largest)
    }

    pub(super) fn tell_direct_counts(
        &mut self,
        peer: (MacAddr, LinkId),
        direct_mark: MacAddr,
        now: Instant,
    ) {
        match &mut self.kernel {
            Some(kernel) => kernel.answer(&mut self.engine, peer, direct_mark, now),
            // None ever goes there.
            None => {
                let (address, link) = peer;
                self.engine.handle_direct_sent(address, link, 0, now);
                self.engine
                    .handle_direct_received(link, direct_mark, 0, now);
            }
        }
    }

    pub(super) fn publish_paths(&mut self, now: Instant) {
        if let Some(kernel) = &mut self.kernel {
            kernel.publish(&mut self.engine, now);
        }
    }

    /// After frames were taken from the host: those that come back must not overtake what went directly.
    pub(super) fn look_for_flows_that_left(&mut self, now: Instant) {
        let Some(kernel) = &mut self.kernel else {
            return;
        };
        if !kernel.take_flows_left() {
            return;
        }
        let hides = Saboteur::hides_flows_that_left;
        if self.saboteur.as_mut().is_some_and(hides) {
            return;
        }
        kernel.tell_sent(&mut self.engine, now);
        self.engine.handle_flows_left_direct();
    }

    pub(super) fn tell_orders(&mut self) {
        let Some(kernel) = &self.kernel else {
            return;
        };
        for link in &self.links {
            let order = kernel.order_of(link.id);
            self.engine.handle_link_order(link.id, order);
        }
    }

    pub(super) fn plan_kernel_turn(&mut self, now: Instant, world: &mut World<'_>) {
        let turn = self
            .kernel
            .as_mut()
            .and_then(|kernel| kernel.plan_turn(now));
        if let Some(at) = turn {
            let station = self.station;
            world.queue.push(at, Event::KernelTurn { station });
        }
    }

    /// The daemon looks at the programs.
    pub fn kernel_turn(&mut self, now: Instant, world: &mut World<'_>) {
        let Some(kernel) = &mut self.kernel else {
            return;
        };
        kernel.turn_begins();
        kernel.tell_sent(&mut self.engine, now);
        for link in kernel.take_closed() {
            self.engine.handle_direct_congestion(link, now);
        }
        let Some(ticket) = kernel.wants_to_know(now) else {
            return self.pump(now, world);
        };
        if self.saboteur.as_mut().is_some_and(Saboteur::believes_early) {
            kernel.set_drained(ticket);
            return self.pump(now, world);
        }
        kernel.asks(self.next_ticket + 1, ticket, now);
        self.request_drain(now, world);
    }

    /// A link is closed to direct frames by force; `None`: all are open again, as far as the engine says.
    pub fn toggle_direct(&mut self, port: Option<PortId>, now: Instant, world: &mut World<'_>) {
        let Some(kernel) = &mut self.kernel else {
            return;
        };
        let is_it = |port: PortId| self.links.iter().find(|link| link.port == port);
        match port {
            Some(port) => {
                if let Some(link) = is_it(port) {
                    kernel.close(link.id);
                }
            }
            None => self.publish_paths(now),
        }
        self.pump(now, world);
    }
}
