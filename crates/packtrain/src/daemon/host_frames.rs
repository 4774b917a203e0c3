//! Frames of the host, which come by the TAP and by a ring beside it, in the order of their flows.
//!
//! A frame that is in the ring when another one was read from the TAP may be an older one of its flow: so that
//! one waits until all is read that was in the ring by then. The other way nothing can be older: a flow goes by the ring
//! only when all of it was read that went by the TAP, and up to where that was the program in the queue before `pt0` is
//! told here; or it says which frame from the TAP it comes after.
//!
//! How much was read is told by counts: so many went on to the TAP, so many were read from it. Those that were dropped
//! in between never come, which [`Tickets`] finds out; a flow of those stays with the TAP until then.

use std::io;

use packtrain_proto::buffer::{Buffer, BufferPool};
use packtrain_proto::offload::Offload;
use packtrain_proto::time::{Duration, Instant};

use super::readable::Readable;
use super::tickets::Tickets;
use crate::linux::ring::{Ring, RingCounts};
use crate::linux::tap::Tap;

/// What is taken in a turn. In bytes too, because 64 frames may be 4 MB: milliseconds that the other direction
/// would wait.
const TAP_FRAMES: usize = 64;
const TAP_BYTES: usize = 48 * 1024;
const RING_FRAMES: usize = 256;

/// What is not in the TAP for so long was dropped.
const LATE_MAX: Duration = Duration::from_millis(100);
/// When no rate is set any more, the queue before `pt0` is empty after so long.
const EMPTIED_IN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct HostFrames {
    tap_readable: Readable,
    turn: Turn,
    ring: Option<RingIntake>,
}

/// What is left of a turn.
#[derive(Debug)]
struct Turn {
    tap_frames: usize,
    tap_bytes: usize,
    ring_frames: usize,
}

impl Turn {
    const WHOLE: Turn = Turn {
        tap_frames: TAP_FRAMES,
        tap_bytes: TAP_BYTES,
        ring_frames: RING_FRAMES,
    };

    fn takes_from_tap(&self) -> bool {
        self.tap_frames > 0 && self.tap_bytes > 0
    }
}

#[derive(Debug)]
struct RingIntake {
    ring: Ring,
    /// Was read from the TAP when this was the end of the ring, up to which all comes first.
    behind: Option<(Buffer, Offload, u64)>,
    /// Frames that came by the TAP.
    tap_frames: u64,
    tickets: Tickets,
    /// A frame of the ring waits for one from the TAP that has this count, since then.
    awaited: Option<(u32, Instant)>,
    /// The TAP was seen to be empty, after all that is counted.
    tap_is_empty: bool,
    /// When nothing waits in the queue before `pt0`, so that the ring may be open; `None`: something may.
    opens_at: Option<Instant>,
    is_open: bool,
}

impl HostFrames {
    pub(super) fn new() -> HostFrames {
        HostFrames {
            tap_readable: Readable::new(),
            turn: Turn::WHOLE,
            ring: None,
        }
    }

    /// `waits_before`: frames may wait before `pt0` of which the ring's program knows nothing.
    pub(super) fn set_ring(&mut self, ring: Ring, waits_before: bool, now: Instant) {
        let opens_at = if waits_before { now + EMPTIED_IN } else { now };
        self.ring = Some(RingIntake {
            tickets: Tickets::new(ring.to_tap(), 0),
            ring,
            behind: None,
            tap_frames: 0,
            awaited: None,
            tap_is_empty: false,
            opens_at: Some(opens_at),
            is_open: false,
        });
    }

    /// The host is held back from now on, or no longer. While it is, its sockets have to be charged for what waits.
    pub(super) fn hold_back(&mut self, holds_back: bool, now: Instant) {
        let Some(intake) = &mut self.ring else {
            return;
        };
        if holds_back {
            intake.opens_at = None;
            intake.open(false);
        } else if intake.opens_at.is_none() {
            intake.opens_at = Some(now + EMPTIED_IN);
        }
    }

    pub(super) fn on_tap_ready(&mut self, waited: Duration) {
        self.tap_readable.on_ready(waited, false);
    }

    /// Something may be there that was not taken.
    pub(super) fn may_have_more(&self) -> bool {
        let in_ring = |intake: &RingIntake| intake.behind.is_some() || intake.ring.has_frames();
        self.tap_readable.is_ready() || self.ring.as_ref().is_some_and(in_ring)
    }

    /// Before a sleep: whether nothing was there. Whatever comes from now on ends the sleep.
    pub(super) fn may_sleep(&self) -> bool {
        self.ring.as_ref().is_none_or(|i| i.ring.may_sleep())
    }

    /// After a sleep.
    pub(super) fn is_awake(&self) {
        if let Some(intake) = &self.ring {
            intake.ring.is_awake();
        }
    }

    pub(super) fn ring_counts(&self) -> Option<RingCounts> {
        self.ring.as_ref().map(|intake| intake.ring.counts())
    }

    /// The next frame of this turn; `None`: there is none, or the turn is over. Follow with
    /// [`HostFrames::end_turn`].
    pub(super) fn next(
        &mut self,
        tap: &mut Tap,
        pool: &mut BufferPool,
        now: Instant,
    ) -> io::Result<Option<(Buffer, Offload)>> {
        let turn = &mut self.turn;
        let Some(intake) = &mut self.ring else {
            return take_from_tap(&mut self.tap_readable, turn, tap, pool);
        };
        if intake.awaits_tap(now) {
            if intake.behind.is_some() {
                return Ok(intake.take_behind());
            }
            // It may have come since we were told of what there is.
            self.tap_readable.on_ready(Duration::ZERO, false);
        } else {
            if intake.is_behind_nothing() {
                return Ok(intake.take_behind());
            }
            if let Some(frame) = intake.take(turn, pool) {
                return Ok(Some(frame));
            }
            if intake.behind.is_some() {
                return Ok(None);
            }
        }
        let looks = self.tap_readable.is_ready() && turn.takes_from_tap();
        let Some((frame, offload)) = take_from_tap(&mut self.tap_readable, turn, tap, pool)? else {
            intake.tap_is_empty |= looks;
            return Ok(None);
        };
        intake.tap_is_empty = false;
        intake.behind = Some((frame, offload, intake.ring.end()));
        if intake.is_behind_nothing() || intake.awaits_tap(now) {
            return Ok(intake.take_behind());
        }
        Ok(intake.take(turn, pool))
    }

    pub(super) fn end_turn(&mut self, now: Instant) {
        self.turn = Turn::WHOLE;
        if let Some(intake) = &mut self.ring {
            intake.end_turn(now);
        }
    }
}

impl RingIntake {
    /// Whether the ring's next frame comes after one that is still to be read from the TAP. Frames come from there in the
    /// order of their counts then.
    fn awaits_tap(&mut self, now: Instant) -> bool {
        let after = self.ring.next_is_after();
        let Some(after) = after.filter(|after| self.is_missing(*after)) else {
            self.awaited = None;
            return false;
        };
        let known = self.awaited.filter(|(awaited, _)| *awaited == after);
        let (_, since) = *self.awaited.insert(known.unwrap_or((after, now)));
        now.since(since) < LATE_MAX
    }

    /// Of a count at the TAP, its lower half.
    fn is_missing(&self, count: u32) -> bool {
        let last_read = self.tickets.last_read(self.tap_frames) as u32;
        count != 0 && count.wrapping_sub(last_read).cast_signed() > 0
    }

    /// Whether it is the turn of what was read from the TAP.
    fn is_behind_nothing(&self) -> bool {
        self.behind
            .as_ref()
            .is_some_and(|(_, _, end)| self.ring.is_past(*end))
    }

    fn take_behind(&mut self) -> Option<(Buffer, Offload)> {
        let (frame, offload, _) = self.behind.take()?;
        self.tap_frames += 1;
        Some((frame, offload))
    }

    fn take(&mut self, turn: &mut Turn, pool: &mut BufferPool) -> Option<(Buffer, Offload)> {
        turn.ring_frames = turn.ring_frames.checked_sub(1)?;
        // Its writer may have become ready just now: nobody has looked yet what it comes after.
        let after = self.ring.next_is_after()?;
        if self.is_missing(after) && self.awaited.is_none_or(|(awaited, _)| awaited != after) {
            return None;
        }
        let frame = self.ring.next_frame()?;
        Some((pool.copy_of(frame.bytes), frame.offload))
    }

    fn end_turn(&mut self, now: Instant) {
        self.ring.release();
        if self.opens_at.is_none_or(|at| now < at) {
            return;
        }
        self.publish_read(now);
        self.open(true);
    }

    /// Nothing waits in a queue before `pt0`.
    fn publish_read(&mut self, now: Instant) {
        let (to_tap, read) = (self.ring.to_tap(), self.tap_frames);
        let all_are_read = self.tickets.none_is_missing(to_tap, read)
            || (std::mem::take(&mut self.tap_is_empty)
                && self.behind.is_none()
                && self.tickets.are_read(to_tap, read, now));
        if all_are_read {
            self.ring.set_read(to_tap);
        }
    }

    fn open(&mut self, open: bool) {
        if std::mem::replace(&mut self.is_open, open) != open {
            self.ring.set_open(open);
        }
    }
}

fn take_from_tap(
    readable: &mut Readable,
    turn: &mut Turn,
    tap: &mut Tap,
    pool: &mut BufferPool,
) -> io::Result<Option<(Buffer, Offload)>> {
    if !readable.is_ready() || !turn.takes_from_tap() {
        return Ok(None);
    }
    let Some((frame, offload)) = tap.receive(pool)? else {
        readable.on_empty();
        return Ok(None);
    };
    readable.on_frame();
    turn.tap_frames -= 1;
    turn.tap_bytes = turn.tap_bytes.saturating_sub(frame.len());
    Ok(Some((frame, offload)))
}
