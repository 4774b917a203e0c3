//! How long what waits for one destination may wait for more, so that trains are filled.
//!
//! ```text
//!            a frame that may wait
//!  empty ───────────────────────────▶ holding ── its time is over, or one that may not wait ──▶ ripe
//!    ▲                                                                                            │
//!    └──────────────────────────────── the last frame has left ───────────────────────────────────┘
//! ```
//!
//! What is ripe stays so until all has left: more that comes meanwhile rides with it.

use crate::time::Instant;

#[derive(Debug, Default)]
pub struct Hold {
    /// Frames that may not wait.
    impatient: usize,
    /// When the first that may wait has waited long enough.
    until: Option<Instant>,
    ripe: bool,
}

impl Hold {
    /// A frame came that may wait until then, or may not.
    pub fn on_pushed(&mut self, hold_until: Option<Instant>) {
        match hold_until {
            None => self.impatient += 1,
            Some(at) => self.until = Some(self.until.map_or(at, |until| until.min(at))),
        }
    }

    /// A frame has left, and so many are there still.
    pub fn on_popped(&mut self, hold_until: Option<Instant>, left: usize) {
        self.impatient -= usize::from(hold_until.is_none());
        if left == 0 {
            *self = Hold::default();
        }
    }

    /// A piece of a frame has left, that might have waited until then.
    pub fn on_begun(&mut self, hold_until: Option<Instant>) {
        self.impatient += usize::from(hold_until.is_some());
    }

    pub fn is_over(&self, now: Instant) -> bool {
        self.ripe || self.impatient > 0 || self.until.is_some_and(|until| until <= now)
    }

    pub fn ends_at(&self) -> Option<Instant> {
        self.until.filter(|_| !self.ripe && self.impatient == 0)
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        if self.until.is_some_and(|until| until <= now) {
            self.ripe = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn the_first_frame_says_when_all_that_may_wait_go() {
        let mut hold = Hold::default();
        hold.on_pushed(Some(at(10)));
        hold.on_pushed(Some(at(7)));
        hold.on_pushed(Some(at(20)));
        assert_eq!(hold.ends_at(), Some(at(7)));
        assert!(!hold.is_over(at(6)));
        assert!(hold.is_over(at(7)));
        hold.handle_timeout(at(6));
        assert_eq!(hold.ends_at(), Some(at(7)));
        hold.handle_timeout(at(8));
        // Whatever keeps them from leaving now, time does not.
        assert_eq!(hold.ends_at(), None);
        hold.on_popped(Some(at(7)), 2);
        hold.on_pushed(Some(at(30)));
        assert!(hold.is_over(at(8)), "it rides with the others");
        hold.on_popped(Some(at(10)), 2);
        hold.on_popped(Some(at(20)), 1);
        hold.on_popped(Some(at(30)), 0);
        hold.on_pushed(Some(at(40)));
        assert!(!hold.is_over(at(39)));
    }

    #[test]
    fn one_that_may_not_wait_takes_the_others_along() {
        let mut hold = Hold::default();
        hold.on_pushed(Some(at(10)));
        hold.on_pushed(None);
        assert!(hold.is_over(at(0)));
        assert_eq!(hold.ends_at(), None);
        // It went ahead; the other may still wait.
        hold.on_popped(None, 1);
        assert_eq!(hold.ends_at(), Some(at(10)));
    }

    #[test]
    fn the_rest_of_a_frame_has_to_follow() {
        let mut hold = Hold::default();
        hold.on_pushed(Some(at(10)));
        hold.on_begun(Some(at(10)));
        assert!(hold.is_over(at(0)));
        hold.on_begun(None);
        hold.on_popped(None, 0);
        assert!(!hold.is_over(at(100)));
    }
}
