//! A host whose process does not run for a while, as after `SIGSTOP`, or on a machine that is frozen: what comes waits in its
//! sockets, timers go off late, and what its kernel does goes on.

use packtrain_proto::time::Instant;

use super::{Host, Incoming, World};
use crate::checker::Checkers;
use crate::net::network::PortId;

/// What waits in the sockets of all its links together; what comes then is lost.
const SOCKETS_BYTES_MAX: usize = 4 << 20;

/// A process that does not run.
#[derive(Debug)]
pub struct Stop {
    until: Instant,
    socket_bytes: usize,
}

impl Host {
    /// It does not run until then.
    pub fn stop(&mut self, until: Instant) {
        self.stop.get_or_insert(Stop {
            until,
            socket_bytes: 0,
        });
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
        if self.stop.take_if(|stop| stop.until <= now).is_none() {
            return;
        }
        world.checkers.nothing_waits(self.station);
        self.look_at_carriers(now, world);
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

    fn look_at_carriers(&mut self, now: Instant, world: &mut World<'_>) {
        let known = self.links.iter().map(|l| (l.port, l.state.carrier));
        let is = |port| world.network.carrier(port);
        let changed: Vec<PortId> = known
            .filter(|&(port, was)| is(port) != was)
            .map(|(port, _)| port)
            .collect();
        for port in changed {
            self.note_carrier(port, world.network.carrier(port), now, world);
        }
    }
}
