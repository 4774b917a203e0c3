//! A host whose process does not run for a while, as after `SIGSTOP`, or on a machine that is frozen: what comes waits in its
//! sockets, timers go off late, and what its kernel does goes on.

use packtrain_proto::time::Instant;

use super::{Host, Incoming, World};
use crate::checker::Checkers;
use crate::net::network::PortId;
use crate::simulator::Event;

/// What waits in the sockets of all its links together; what comes then is lost.
const SOCKETS_BYTES_MAX: usize = 4 << 20;

/// A process that does not run.
#[derive(Debug)]
pub struct Stop {
    until: Instant,
    socket_bytes: usize,
    /// What it is to do as soon as it runs again, in this order.
    deferred: Vec<Event>,
    /// Its kernel has seen no carrier there meanwhile.
    dark: Vec<PortId>,
}

impl Host {
    /// It does not run until then.
    pub fn stop(&mut self, until: Instant) {
        self.stop.get_or_insert(Stop {
            until,
            socket_bytes: 0,
            deferred: Vec::new(),
            dark: Vec::new(),
        });
    }

    /// What takes its process waits until that runs. Gives back what need not wait.
    pub fn defer(&mut self, event: Event) -> Option<Event> {
        match &mut self.stop {
            None => Some(event),
            Some(stop) => {
                stop.deferred.push(event);
                None
            }
        }
    }

    /// It runs: what was to happen meanwhile does now, before what comes later. A process that was killed while it did not run is no
    /// other in this: its next life begins with what was asked of the last one.
    pub(super) fn end_stop(&mut self, now: Instant, world: &mut World<'_>) -> Option<Stop> {
        let mut stop = self.stop.take()?;
        for event in stop.deferred.drain(..) {
            world.queue.push(now, event);
        }
        Some(stop)
    }

    /// Carriers of these ports have changed. Whether nobody is there to hear it.
    pub(super) fn misses_carriers(&mut self, ports: &[PortId], up: bool) -> bool {
        if let Some(stop) = self.stop.as_mut().filter(|_| !up) {
            stop.dark.extend(ports);
        }
        self.stop.is_some()
    }

    /// Until when, if it does not run.
    pub fn stopped_until(&self) -> Option<Instant> {
        self.stop.as_ref().map(|stop| stop.until)
    }

    /// Puts what comes in meanwhile where it waits.
    pub(super) fn wait_in_socket(&mut self, incoming: Incoming, checkers: &mut Checkers) {
        let Some(stop) = &mut self.stop else {
            return;
        };
        if let Incoming::FromLink(_, frame) = &incoming {
            let bytes = stop.socket_bytes + frame.bytes.len();
            if bytes > SOCKETS_BYTES_MAX {
                return checkers.lost(frame);
            }
            stop.socket_bytes = bytes;
        }
        self.inbox.push(incoming);
    }

    /// It runs again: timers that are late, carriers that went and came, and what waits, in whichever order.
    pub fn go_on(&mut self, now: Instant, world: &mut World<'_>) {
        if self.stopped_until().is_none_or(|until| until > now) {
            return;
        }
        let Some(stop) = self.end_stop(now, world) else {
            return;
        };
        world.checkers.nothing_waits(self.station);
        self.look_at_carriers(&stop.dark, now, world);
        let is_late = self.wakes_at.take_if(|(_, at)| *at <= now).is_some();
        let timers_first = self.pace.random.chance(0.5);
        if is_late && timers_first {
            self.engine.handle_timeout(now);
        }
        self.empty_inbox(now, world);
        if is_late && !timers_first {
            self.engine.handle_timeout(now);
        }
        self.pump(now, world);
    }

    /// One that was lost and is back has gone all the same: kernels count that, and what was under way then is lost.
    fn look_at_carriers(&mut self, dark: &[PortId], now: Instant, world: &mut World<'_>) {
        let known = self.links.iter().map(|l| (l.port, l.state.carrier));
        let known: Vec<(PortId, bool)> = known.collect();
        for (port, was) in known {
            let is = world.network.carrier(port);
            if was && (!is || dark.contains(&port)) {
                self.note_carrier(port, false, now, world);
            }
            if is && (!was || dark.contains(&port)) {
                self.note_carrier(port, true, now, world);
            }
        }
    }
}
