//! How long a link has to work again before it carries anything: longer each time that it fails soon after it was back, so that one
//! that comes and goes does not take trains with it again and again; and less long each time that it lasted. What a failure costs is
//! some milliseconds, so a link that works for half a second between two of them is of use.

use crate::time::{Duration, Instant};

/// The hold time doubles so often, but once.
const LEVEL_MAX: u32 = 8;
/// So long without a failure, and one is forgotten.
const FORGET_AFTER: Duration = Duration::from_secs(10);
/// It failed soon: before it had worked for so many times as long as it has to at least.
const SOON: u32 = 5;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Damping {
    /// 0: it never failed, or long ago; 1: once; each more doubles the hold time.
    level: u32,
    /// When it last failed, or that was forgotten.
    level_at: Instant,
    /// It has failed, and not come back yet.
    is_down: bool,
    /// It is back, and carries no trains until then.
    held_until: Option<Instant>,
    /// Until when it fails soon, if it does.
    soon_until: Instant,
    /// The level, and its time, before the last failure.
    before: (u32, Instant),
    failures: u64,
}

impl Damping {
    /// It failed; again and again without having come back is once.
    pub fn on_failure(&mut self, now: Instant) {
        if std::mem::replace(&mut self.is_down, true) {
            return;
        }
        self.forget(now);
        self.before = (self.level, self.level_at);
        self.level = match self.level {
            0 => 1,
            level if now < self.soon_until => (level + 1).min(LEVEL_MAX),
            level => (level - 1).max(1),
        };
        self.level_at = now;
        self.failures += 1;
        self.held_until = None;
    }

    /// It works again. `hold`: the shortest time for which it has to show that; `detection`: how long it takes to be noticed that it does
    /// not.
    pub fn on_return(&mut self, hold: Duration, detection: Duration, now: Instant) {
        if std::mem::take(&mut self.is_down) {
            self.forget(now);
            let doubled = self.level.saturating_sub(1);
            let held_until = now + hold * (1 << doubled);
            self.held_until = Some(held_until);
            // While it was held, nobody saw how it carries.
            self.soon_until = held_until + hold * (SOON - 1) + detection;
        }
    }

    /// The failures since then were not its own.
    pub fn forgive(&mut self, since: Instant) {
        if self.is_down && self.level_at >= since {
            (self.level, self.level_at) = self.before;
            self.is_down = false;
        }
    }

    fn forget(&mut self, now: Instant) {
        while self.level > 0 && now.since(self.level_at) >= FORGET_AFTER {
            self.level -= 1;
            self.level_at += FORGET_AFTER;
        }
    }

    pub fn is_down(&self) -> bool {
        self.is_down
    }

    pub fn held_until(&self) -> Option<Instant> {
        self.held_until
    }

    /// Lets it carry trains again, when it is time.
    pub fn release(&mut self, now: Instant) {
        self.held_until = self.held_until.filter(|&until| until > now);
    }

    /// Ever.
    pub fn failures(&self) -> u64 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOLD: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// Fails at these times and returns 10 ms later each: how long it is held then, ms.
    fn held(failures: &[u64]) -> Vec<u64> {
        let mut damping = Damping::default();
        let hold = |&ms: &u64| {
            damping.on_failure(at(ms));
            damping.on_return(HOLD, Duration::ZERO, at(ms + 10));
            let held_until = damping.held_until().expect("it has failed");
            held_until.since(at(ms + 10)).as_millis() as u64
        };
        failures.iter().map(hold).collect()
    }

    #[test]
    fn who_fails_again_and_again_is_held_longer_each_time_up_to_a_bound() {
        let often: Vec<u64> = (0..11).map(|n| 1000 + n * 500).collect();
        assert_eq!(
            held(&often),
            [
                100, 200, 400, 800, 1600, 3200, 6400, 12_800, 12_800, 12_800, 12_800
            ]
        );
    }

    #[test]
    fn one_that_works_for_half_a_second_is_held_no_longer_for_it() {
        let each = |apart: u64| held(&(1..6).map(|n| n * apart).collect::<Vec<_>>());
        assert_eq!(each(510), [100; 5]);
        assert_eq!(each(509), [100, 200, 400, 800, 1600]);
        // One that has become better, and is believed so step by step.
        let better = [1000, 1100, 1200, 2500, 4000, 6000];
        assert_eq!(held(&better), [100, 200, 400, 200, 100, 100]);
    }

    #[test]
    fn each_ten_seconds_of_rest_forget_one_failure() {
        let then = |last: u64| held(&[0, 300, 600, 900, last])[3..].to_vec();
        assert_eq!(then(1200), [800, 1600]);
        assert_eq!(then(5000), [800, 400]);
        assert_eq!(then(13_000), [800, 200]);
        assert_eq!(then(90_000), [800, 100]);
    }

    #[test]
    fn one_that_never_failed_or_was_forgiven_is_not_held() {
        let mut damping = Damping::default();
        damping.on_return(HOLD, Duration::ZERO, at(5));
        assert_eq!(damping.held_until(), None);
        damping.on_failure(at(10));
        damping.on_failure(at(11));
        damping.forgive(at(11));
        assert!(damping.is_down(), "it failed before");
        damping.forgive(at(10));
        damping.on_return(HOLD, Duration::ZERO, at(30));
        assert_eq!(damping.held_until(), None);
        assert_eq!(damping.failures(), 1);
    }

    #[test]
    fn it_is_released_at_its_time() {
        let mut damping = Damping::default();
        damping.on_failure(at(10));
        damping.on_return(HOLD, Duration::ZERO, at(20));
        damping.release(at(119));
        assert_eq!(damping.held_until(), Some(at(120)));
        damping.release(at(120));
        assert_eq!(damping.held_until(), None);
    }
}
