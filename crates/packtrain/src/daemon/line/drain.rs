//! When the engine is asked whether all that the host has sent to it was delivered: once all that has a ticket
//! was read.

use std::time::Duration;

use packtrain_proto::time::Instant;

use super::super::tickets::Tickets;
use super::Line;

/// A drain that the engine was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainBegun {
    pub number: u64,
    /// Everything that had a ticket up to this one is what it asks about.
    pub ticket: u64,
    /// What the host had sent to the engine until then.
    pub host_frames: u64,
}

#[derive(Debug, Default)]
pub(super) struct DrainWanted {
    number: Option<u64>,
    /// `None`: nobody counts tickets.
    tickets: Option<Tickets>,
    begun: Option<DrainBegun>,
}

impl DrainWanted {
    /// From now on frames have tickets.
    pub(super) fn count(&mut self, tickets: u64, host_frames: u64) {
        self.tickets = Some(Tickets::new(tickets, host_frames));
    }
}

impl Line {
    /// Asks the engine to tell when all that has a ticket now was delivered, or dropped. It is asked as soon as all of
    /// that was read ([`Line::take_drain_begun`]), and nothing may wait in a queue before `pt0` meanwhile: whoever
    /// is not told soon asks again. The engine's answer
    /// ([`Event::Drained`](packtrain_proto::engine::Event::Drained)) has the same number.
    pub fn request_drain(&mut self, number: u64) {
        self.drain.number = Some(number);
        // What is there is read, or found not to be.
        self.from_host.on_tap_ready(Duration::ZERO);
    }

    /// A drain that is waited for is not wanted yet: something waits before `pt0`. What is missing is looked for again when nothing does.
    pub fn withdraw_drain(&mut self) {
        self.drain.number = None;
    }

    /// The drain that the engine was asked for since this was called last.
    pub fn take_drain_begun(&mut self) -> Option<DrainBegun> {
        self.drain.begun.take()
    }

    /// After frames were taken from the host.
    pub(super) fn begin_drain(&mut self, now: Instant) {
        if self.drain.number.is_none() || self.from_host.may_have_more() {
            return;
        }
        let (wanted, host_frames) = (&mut self.drain, self.host_frames);
        let (Some(tally), Some(tickets)) = (&self.tally, &mut wanted.tickets) else {
            return;
        };
        let ticket = match tally.tickets() {
            Ok(ticket) => ticket,
            Err(error) => return tracing::debug!("{error}"),
        };
        if !tickets.are_read(ticket, host_frames, now) {
            return;
        }
        if let Some(number) = wanted.number.take() {
            wanted.begun = Some(DrainBegun {
                number,
                ticket,
                host_frames,
            });
            self.engine.request_drain(number, now);
        }
    }
}
