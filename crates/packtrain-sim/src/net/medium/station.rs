//! What one station of a medium knows: its queue, its attempts, and whether it may begin.

use std::collections::VecDeque;

use packtrain_proto::time::Instant;

use super::ATTEMPTS_MAX;
use crate::frame::Frame;
use crate::random::Random;

/// Of one station; names after 30.3.1.1 where it has one. Bytes without preamble, padding and FCS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StationCounters {
    pub offered_frames: u64,
    pub offered_bytes: u64,
    pub sent_frames: u64,
    pub sent_bytes: u64,
    pub queue_full: u64,
    /// Offered while it was cut off, or still here when that happened.
    pub cut: u64,
    /// Frames whose first attempt waited for somebody else's carrier, or for the gap after it.
    pub deferred: u64,
    /// Frames sent at the first attempt, the second …
    pub sent_at_attempt: [u64; ATTEMPTS_MAX],
    /// Attempts that failed.
    pub collisions: u64,
    /// Later than a slot after the beginning: 0, or the propagation is wrong.
    pub late_collisions: u64,
    /// Frames given up.
    pub excessive_collisions: u64,
}

impl StationCounters {
    /// Frames sent after exactly one.
    pub fn single_collisions(&self) -> u64 {
        self.sent_at_attempt[1]
    }

    /// Frames sent after more than one.
    pub fn multiple_collisions(&self) -> u64 {
        self.sent_at_attempt[2..].iter().sum()
    }
}

/// Deference (4.2.8, process Deference): whether a station may begin.
///
/// ```text
///            carrier, or it begins               silence
///   Clear ───────────────────────────→ Busy ─────────────────→ Gap
///     ↑                                 ↑ it begins, or hears   │
///     │                                 └── a carrier ──────────┤ its end
///     └─────────────────────────────────── else ────────────────┘
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Defer {
    Clear,
    /// It hears a carrier, or sends. `own`: it was sending at some time in it.
    Busy {
        own: bool,
    },
    /// A carrier before `deaf_at` makes it Busy again: in the first two thirds, but not at all after own
    /// sending. Pieces that a pulled cable leaves are all that brings one so early.
    Gap {
        deaf_at: Instant,
        until: Instant,
    },
}

impl Defer {
    pub(super) fn gives_way(self, now: Instant) -> bool {
        match self {
            Defer::Clear => true,
            Defer::Busy { .. } => false,
            Defer::Gap { deaf_at, .. } => now < deaf_at,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Sending {
    pub(super) begun: Instant,
    /// Its last bit, or the last one of its jam.
    pub(super) until: Instant,
    pub(super) collided: bool,
}

#[derive(Debug)]
pub(super) struct Station {
    /// Its own, so that the order in which stations draw at one instant is of no account.
    pub(super) random: Random,
    /// The first one is being sent or waits for its attempt; it counts until its last bit has left.
    pub(super) queue: VecDeque<Frame>,
    pub(super) queued_bytes: usize,
    /// Of the first frame, the present one included.
    pub(super) attempts: usize,
    /// The first frame may go from then on: it has come to the front, or its back-off is over.
    pub(super) ready_at: Instant,
    pub(super) sending: Option<Sending>,
    /// Of others, as they are heard here.
    pub(super) carriers: usize,
    pub(super) carrier_gone_at: Instant,
    pub(super) defer: Defer,
    pub(super) cut: bool,
    pub(super) mended_at: Instant,
    pub(super) counters: StationCounters,
}

impl Station {
    pub(super) fn new(random: Random) -> Station {
        Station {
            random,
            queue: VecDeque::new(),
            queued_bytes: 0,
            attempts: 0,
            ready_at: Instant::ZERO,
            sending: None,
            carriers: 0,
            carrier_gone_at: Instant::ZERO,
            defer: Defer::Clear,
            cut: false,
            mended_at: Instant::ZERO,
            counters: StationCounters::default(),
        }
    }

    pub(super) fn push(
        &mut self,
        frame: Frame,
        bytes_max: usize,
        now: Instant,
    ) -> Result<(), Frame> {
        let len = frame.bytes.len();
        self.counters.offered_frames += 1;
        self.counters.offered_bytes += len as u64;
        if self.cut {
            self.counters.cut += 1;
            return Err(frame);
        }
        // An empty queue takes any frame, as a NIC's ring does.
        if self.queue.is_empty() {
            self.ready_at = now;
        } else if self.queued_bytes + len > bytes_max {
            self.counters.queue_full += 1;
            return Err(frame);
        }
        self.queued_bytes += len;
        self.queue.push_back(frame);
        Ok(())
    }

    pub(super) fn clear(&mut self) -> Vec<Frame> {
        self.queued_bytes = 0;
        self.attempts = 0;
        self.queue.drain(..).collect()
    }

    pub(super) fn wants(&self, now: Instant) -> bool {
        !self.queue.is_empty() && self.sending.is_none() && self.ready_at <= now
    }

    pub(super) fn pop(&mut self, now: Instant) -> Frame {
        let frame = self.queue.pop_front().expect("one was tried");
        self.queued_bytes -= frame.bytes.len();
        self.attempts = 0;
        self.ready_at = now;
        frame
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        let sent = self.sending.map(|sending| sending.until);
        let may = match self.defer {
            Defer::Clear => (!self.queue.is_empty()).then_some(self.ready_at),
            Defer::Busy { .. } => None,
            Defer::Gap { until, .. } => Some(until),
        };
        sent.into_iter().chain(may).min()
    }
}
