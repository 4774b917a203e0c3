//! How much may stand in a link's local queue, in time at its rate.
//!
//! As little as keeps the link busy: it grows by a quarter when the link ran dry though frames were kept back for it, and shrinks by a
//! tenth when it was enough for so long. A host that is late once a second pays with a little rate, and not with a queue
//! that always stands. Where small frames are not to wait for longer than a bound, it begins with that, and what
//! it may grow to is bounded as well. Frames at once grow with it: who is late has too much to do, and fewer frames are less.

use crate::sand::{SAND_DELAY_LATE_MAX, SandBound};
use crate::time::{Duration, Instant};

/// Where no bound is set.
pub(super) const UNBOUND_MIN: Duration = Duration::from_millis(1);
pub(super) const UNBOUND_MAX: Duration = Duration::from_millis(4);
const ENOUGH_FOR: Duration = Duration::from_millis(100);
/// Who runs dry several times in so short a time is late once.
const GROWS_AFTER: Duration = Duration::from_millis(20);
/// Frames become shorter when so much less was needed for so long.
const FRAMES_AFTER: Duration = Duration::from_secs(10);
const FRAMES_PART: (u32, u32) = (3, 4);

#[derive(Clone, Copy, Debug)]
pub(super) struct QueueTime {
    time: Duration,
    /// When it changed last, and when it grew.
    changed_at: Instant,
    grew_at: Option<Instant>,
    min: Duration,
    max: Duration,
    is_bound: bool,
    /// What frames at once go by: as much as was needed lately.
    of_frames: Duration,
    /// The most since then.
    most: Duration,
    most_since: Instant,
}

impl QueueTime {
    pub(super) fn within(bound: SandBound) -> QueueTime {
        let late = SandBound(Some(SAND_DELAY_LATE_MAX)).queue_time();
        let (min, max) = match (bound.queue_time(), late) {
            (Some(min), Some(late)) => (min, late.max(min)),
            _ => (UNBOUND_MIN, UNBOUND_MAX),
        };
        QueueTime {
            time: min,
            changed_at: Instant::ZERO,
            grew_at: None,
            min,
            max,
            is_bound: bound.0.is_some(),
            of_frames: min,
            most: min,
            most_since: Instant::ZERO,
        }
    }

    pub(super) fn get(&self) -> Duration {
        self.time
    }

    /// What holds now for frames, where a bound is set: what stands has two thirds of it, or less.
    pub(super) fn bound(&self) -> SandBound {
        match self.is_bound {
            true => SandBound::of_queue_time(self.of_frames),
            false => SandBound(None),
        }
    }

    /// … for frames that go with what may stand now: never longer.
    pub(super) fn bound_now(&self) -> SandBound {
        match self.is_bound {
            true => SandBound::of_queue_time(self.time),
            false => SandBound(None),
        }
    }

    /// What holds for a frame that is there already: where more than the least is needed anyway, the host may have made it before it was told.
    pub(super) fn bound_at_once(&self) -> SandBound {
        match self.is_bound && self.is_late() {
            true => SandBound(Some(SAND_DELAY_LATE_MAX)).max(self.bound()),
            false => self.bound(),
        }
    }

    /// More than the least was needed.
    pub(super) fn is_late(&self) -> bool {
        self.of_frames > self.min
    }

    pub(super) fn max(&self) -> Duration {
        self.max
    }

    /// The local queue was asked for. `ran_dry`: it was empty, and something was given to it and something else kept back.
    pub(super) fn on_told(&mut self, ran_dry: bool, now: Instant) {
        self.adapt(ran_dry, now);
        self.of_frames = self.of_frames.max(self.time);
        self.most = self.most.max(self.time);
        if now.since(self.most_since) < FRAMES_AFTER {
            return;
        }
        let (part, of) = FRAMES_PART;
        if self.most <= self.of_frames / of * part || self.most == self.min {
            self.of_frames = self.most;
        }
        (self.most, self.most_since) = (self.time, now);
    }

    fn adapt(&mut self, ran_dry: bool, now: Instant) {
        if ran_dry {
            if self.grew_at.is_none_or(|at| now.since(at) >= GROWS_AFTER) {
                self.time = (self.time * 5 / 4).min(self.max);
                self.grew_at = Some(now);
            }
        } else if now.since(self.changed_at) > ENOUGH_FOR {
            self.time = (self.time * 9 / 10).max(self.min);
        } else {
            return;
        }
        self.changed_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn frames_follow_at_once_what_grows_and_late_and_by_much_what_shrinks() {
        let mut time = QueueTime::within(SandBound(Some(Duration::from_micros(200))));
        let frames = |time: &QueueTime| time.bound().0.unwrap().as_micros();
        assert_eq!((frames(&time), time.is_late()), (199, false));
        // Twice in a moment is once.
        (0..80).for_each(|ms| time.on_told(ms % 10 == 0, at(ms)));
        assert_eq!((frames(&time), time.is_late()), (488, true));
        // A little less, and as much again: as it was.
        for ms in 80..30_000 {
            time.on_told(ms % 250 == 0, at(ms));
        }
        assert!(frames(&time) >= 488, "{}", frames(&time));
        let mut shorter = Vec::new();
        for ms in 30_000..90_000 {
            let before = frames(&time);
            time.on_told(false, at(ms));
            if frames(&time) != before {
                shorter.push(frames(&time));
            }
        }
        assert!(shorter.len() <= 3, "{shorter:?}");
        assert_eq!((frames(&time), time.is_late()), (199, false));
    }

    #[test]
    fn it_grows_when_the_link_ran_dry_and_shrinks_when_it_was_enough_within_its_bounds() {
        for (bound, min, max) in [
            (Some(200), 133, 666),
            (Some(300), 200, 666),
            (Some(5000), 3333, 3333),
            (None, 1000, 4000),
        ] {
            let mut time = QueueTime::within(SandBound(bound.map(Duration::from_micros)));
            assert_eq!(time.get().as_micros(), min);
            (0..20).for_each(|n| time.on_told(true, at(n * 20)));
            assert_eq!(time.get().as_micros(), max);
            // Told often, it shrinks once in 100 ms.
            (400..2400).for_each(|ms| time.on_told(false, at(ms)));
            let once = max as f64 * 0.9f64.powi(19);
            assert!((time.get().as_micros() as f64 - once.max(min as f64)).abs() < once * 0.06);
            (2400..6400).for_each(|ms| time.on_told(false, at(ms)));
            assert_eq!(time.get().as_micros(), min);
        }
    }
}
