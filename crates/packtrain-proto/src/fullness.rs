//! Whether somebody who reads takes all that he can: he leaves something unread at each look, for a while.

use crate::time::{Duration, Instant};

/// For so long, now and then, …
const FULL_AFTER: Duration = Duration::from_millis(50);
/// … and not since: what was before does not count any more.
const FADES: Duration = Duration::from_millis(250);

/// The first look and the last one at which something was left.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fullness(Option<(Instant, Instant)>);

impl Fullness {
    pub fn note(&mut self, left_unread: bool, now: Instant) {
        if left_unread {
            self.0.get_or_insert((now, now)).1 = now;
        } else {
            self.0.take_if(|(_, last)| now.since(*last) > FADES);
        }
    }

    pub fn forget(&mut self) {
        self.0 = None;
    }

    pub fn is_full(&self, now: Instant) -> bool {
        self.0
            .is_some_and(|(since, _)| now.since(since) >= FULL_AFTER)
    }

    /// Whether something was left at the look of this time: that it is full fades slowly.
    pub fn was_left(&self, looked_at: Instant) -> bool {
        self.0.is_some_and(|(_, last)| last == looked_at)
    }
}
