//! How long what waits for one destination may wait for more, so that trains are filled.
//!
//! ```text
//!            a frame that may wait
//!  empty ───────────────────────────▶ holding ── its time is over, one that may not wait, enough ──▶ ripe
//!    ▲                                                                                                │
//!    └────────────────────────────────── the last frame has left ────────────────────────────────────┘
//! ```
//!
//! What is ripe stays so until all has left: more that comes meanwhile rides with it.
//!
//! Each frame has its own bound, which none that comes later moves. Before that, the wait may end at a time that is
//! set anew as others come: as the DFAP paper has it, or as the train fills.

use crate::stats::FlushReason;
use crate::time::Instant;

#[derive(Debug, Default)]
pub struct Hold {
    /// Frames that may not wait.
    impatient: usize,
    /// When the first that may wait has waited as long as it may.
    until: Option<Instant>,
    /// When the wait is over that the last one began anew.
    renewed: Option<Instant>,
    ripe: Option<FlushReason>,
}

impl Hold {
    /// A frame came that may wait until then, or may not.
    pub fn on_pushed(&mut self, hold_until: Option<Instant>) {
        match hold_until {
            None => self.impatient += 1,
            Some(at) => self.until = Some(self.until.map_or(at, |until| until.min(at))),
        }
    }

    /// All that may wait do so until then, and no longer.
    pub fn renew(&mut self, at: Instant) {
        self.renewed = Some(at);
    }

    /// They are enough.
    pub fn ripen(&mut self, reason: FlushReason) {
        self.ripe.get_or_insert(reason);
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
        self.ripe.is_some() || self.impatient > 0 || self.first().is_some_and(|at| at <= now)
    }

    pub fn ends_at(&self) -> Option<Instant> {
        self.first()
            .filter(|_| self.ripe.is_none() && self.impatient == 0)
    }

    fn first(&self) -> Option<Instant> {
        let until = self.until?;
        Some(self.renewed.map_or(until, |at| at.min(until)))
    }

    /// What ends a wait now, if there was one.
    pub fn ended_by(&self, now: Instant) -> Option<FlushReason> {
        let first = self.first()?;
        let by_time = || (first <= now).then_some(FlushReason::Timer);
        let by_others = || (self.impatient > 0).then_some(FlushReason::Exempt);
        self.ripe.or_else(by_time).or_else(by_others)
    }

    /// Says whether a wait is over by that.
    pub fn handle_timeout(&mut self, now: Instant) -> bool {
        let ends = self.ends_at().is_some_and(|at| at <= now);
        if ends {
            self.ripe = Some(FlushReason::Timer);
        }
        ends
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

    #[test]
    fn a_wait_that_is_begun_anew_ends_at_the_bound_of_the_first_frame() {
        let mut hold = Hold::default();
        hold.on_pushed(Some(at(100)));
        hold.renew(at(40));
        assert_eq!(hold.ends_at(), Some(at(40)));
        hold.on_pushed(Some(at(130)));
        hold.renew(at(90));
        assert!(!hold.is_over(at(40)));
        hold.on_pushed(Some(at(170)));
        hold.renew(at(160));
        assert_eq!(hold.ends_at(), Some(at(100)));
        assert_eq!(hold.ended_by(at(99)), None);
        assert!(!hold.handle_timeout(at(99)) && hold.handle_timeout(at(100)));
        assert!(!hold.handle_timeout(at(101)), "it is over already");
        assert_eq!(hold.ended_by(at(101)), Some(FlushReason::Timer));
        hold.on_popped(Some(at(100)), 2);
        hold.on_popped(Some(at(130)), 1);
        hold.on_popped(Some(at(170)), 0);
        assert!(
            !hold.is_over(at(1000)),
            "what ended the last wait does not end the next"
        );
    }

    #[test]
    fn what_ends_a_wait_is_told_and_where_none_was_nothing() {
        let mut hold = Hold::default();
        hold.on_pushed(None);
        assert_eq!(hold.ended_by(at(0)), None, "nobody waited");
        hold.on_pushed(Some(at(10)));
        assert_eq!(hold.ended_by(at(0)), Some(FlushReason::Exempt));
        assert_eq!(hold.ended_by(at(10)), Some(FlushReason::Timer));
        let mut hold = Hold::default();
        hold.on_pushed(Some(at(10)));
        hold.ripen(FlushReason::Count);
        assert!(hold.is_over(at(0)) && hold.ends_at().is_none());
        assert_eq!(hold.ended_by(at(20)), Some(FlushReason::Count));
    }
}
