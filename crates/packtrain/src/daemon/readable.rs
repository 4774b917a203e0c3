//! Whether a descriptor may hold frames, at the least cost of finding out.
//!
//! A descriptor is watched level-triggered: what is left in it is reported again. One that gives a
//! frame now and then is read once a wake-up, because reading on only to be told that there is no
//! more costs such a frame a tenth of its time. Where something was there before we asked, there may
//! be more, and it is read until it is empty: so the slower the host, the more frames meet.

use packtrain_proto::time::Duration;

/// Who waited for less did not sleep: something was there already.
const NO_SLEEP: Duration = Duration::from_micros(10);

#[derive(Debug)]
pub(super) struct Readable {
    /// Something may be left unread.
    ready: bool,
    /// Read until it is empty.
    busy: bool,
}

impl Readable {
    /// Of a descriptor that was just opened.
    pub(super) fn new() -> Readable {
        Readable {
            ready: true,
            busy: true,
        }
    }

    /// `waited`: how long it took until this was reported. `once`: it is not reported again until
    /// it was read empty.
    pub(super) fn on_ready(&mut self, waited: Duration, once: bool) {
        self.busy = once || self.ready || waited < NO_SLEEP;
        self.ready = true;
    }

    pub(super) fn is_ready(&self) -> bool {
        self.ready
    }

    /// One frame was read.
    pub(super) fn on_frame(&mut self) {
        self.ready = self.busy;
    }

    pub(super) fn on_empty(&mut self) {
        self.ready = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_slept_reads_one_frame_and_who_found_it_there_reads_until_none_is_left() {
        let mut tap = Readable::new();
        assert!(tap.is_ready(), "not known before the first look");
        tap.on_empty();
        assert!(!tap.is_ready());
        for (waited, goes_on) in [(50, false), (50, false), (2, true)] {
            tap.on_ready(Duration::from_micros(waited), false);
            assert!(tap.is_ready());
            tap.on_frame();
            assert_eq!(tap.is_ready(), goes_on, "after {waited} us");
        }
        tap.on_empty();
        assert!(!tap.is_ready());
    }

    #[test]
    fn what_is_reported_once_is_read_until_none_is_left() {
        let mut link = Readable::new();
        link.on_empty();
        link.on_ready(Duration::from_secs(1), true);
        link.on_frame();
        assert!(link.is_ready());
    }
}
