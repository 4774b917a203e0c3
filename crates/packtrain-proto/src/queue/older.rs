//! How many frames wait that had come by some time.

use crate::queue::frame::QueuedFrame;
use crate::time::Instant;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Older {
    frames: usize,
    /// `None`: nobody has asked.
    by: Option<Instant>,
}

impl Older {
    /// So many have come by now.
    pub(super) fn mark(frames: usize, now: Instant) -> Older {
        Older {
            frames,
            by: Some(now),
        }
    }

    pub(super) fn any(&self) -> bool {
        self.frames > 0
    }

    fn counts(&self, frame: &QueuedFrame) -> usize {
        usize::from(self.by.is_some_and(|by| frame.enqueued <= by))
    }

    pub(super) fn on_pushed(&mut self, frame: &QueuedFrame) {
        self.frames += self.counts(frame);
    }

    pub(super) fn on_popped(&mut self, frame: &QueuedFrame) {
        self.frames -= self.counts(frame);
    }
}
