//! Whether a descriptor may hold frames, at the least cost of finding out.
//!
//! A descriptor is watched level-triggered: what is left in it is reported again. One that gives a
//! frame now and then is read once a wake-up, because reading on only to be told that there is no
//! more costs such a frame a tenth of its time. One that is busy is read until it is empty.

use packtrain_proto::time::{Duration, Instant};

/// Read again so soon after the last time, it is busy.
const BUSY: Duration = Duration::from_micros(20);

#[derive(Debug)]
pub(super) struct Readable {
    /// Something may be left unread.
    ready: bool,
    /// Read until it is empty.
    busy: bool,
    read_at: Instant,
}

impl Readable {
    /// Of a descriptor that was just opened.
    pub(super) fn new() -> Readable {
        Readable {
            ready: true,
            busy: true,
            read_at: Instant::ZERO,
        }
    }

    /// `once`: this is not reported again until it was read empty.
    pub(super) fn on_ready(&mut self, once: bool, now: Instant) {
        self.busy = once || self.ready || now.since(self.read_at) < BUSY;
        self.ready = true;
    }

    pub(super) fn is_ready(&self) -> bool {
        self.ready
    }

    /// One frame was read.
    pub(super) fn on_frame(&mut self, now: Instant) {
        self.read_at = now;
        self.ready = self.busy;
    }

    pub(super) fn on_empty(&mut self, now: Instant) {
        self.read_at = now;
        self.ready = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_far_apart_are_read_once_a_wake_up_and_those_close_together_until_none_is_left() {
        let mut now = Instant::from_nanos(1_000_000);
        let mut tap = Readable::new();
        assert!(tap.is_ready(), "not known before the first look");
        tap.on_empty(now);
        assert!(!tap.is_ready());
        for (gap, goes_on) in [(50, false), (50, false), (5, true)] {
            now += Duration::from_micros(gap);
            tap.on_ready(false, now);
            assert!(tap.is_ready());
            tap.on_frame(now);
            assert_eq!(tap.is_ready(), goes_on, "{gap} us after the last");
        }
        tap.on_empty(now);
        assert!(!tap.is_ready());
    }

    #[test]
    fn what_is_reported_once_is_read_until_none_is_left() {
        let mut link = Readable::new();
        link.on_empty(Instant::ZERO);
        let now = Instant::from_nanos(1_000_000_000);
        link.on_ready(true, now);
        link.on_frame(now);
        assert!(link.is_ready());
    }
}
