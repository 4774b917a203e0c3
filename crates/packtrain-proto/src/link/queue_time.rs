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

#[derive(Clone, Copy, Debug)]
pub(super) struct QueueTime {
    time: Duration,
    /// When it changed last.
    changed_at: Instant,
    min: Duration,
    max: Duration,
    is_bound: bool,
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
            min,
            max,
            is_bound: bound.0.is_some(),
        }
    }

    pub(super) fn get(&self) -> Duration {
        self.time
    }

    /// What holds now, where a bound is set: what stands has two thirds of it.
    pub(super) fn bound(&self) -> SandBound {
        match self.is_bound {
            true => SandBound::of_queue_time(self.time),
            false => SandBound(None),
        }
    }

    /// More than the least was needed.
    pub(super) fn is_late(&self) -> bool {
        self.time > self.min
    }

    pub(super) fn max(&self) -> Duration {
        self.max
    }

    /// The local queue was asked for. `ran_dry`: it was empty, and something was given to it and something else kept back.
    pub(super) fn on_told(&mut self, ran_dry: bool, now: Instant) {
        if ran_dry {
            self.time = (self.time * 5 / 4).min(self.max);
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
    fn it_grows_when_the_link_ran_dry_and_shrinks_when_it_was_enough_within_its_bounds() {
        for (bound, min, max) in [
            (Some(200), 133, 666),
            (Some(300), 200, 666),
            (Some(5000), 3333, 3333),
            (None, 1000, 4000),
        ] {
            let mut time = QueueTime::within(SandBound(bound.map(Duration::from_micros)));
            assert_eq!(time.get().as_micros(), min);
            (0..20).for_each(|ms| time.on_told(true, at(ms)));
            assert_eq!(time.get().as_micros(), max);
            // Told often, it shrinks once in 100 ms.
            (20..2020).for_each(|ms| time.on_told(false, at(ms)));
            let once = max as f64 * 0.9f64.powi(19);
            assert!((time.get().as_micros() as f64 - once.max(min as f64)).abs() < once * 0.06);
            (2020..6000).for_each(|ms| time.on_told(false, at(ms)));
            assert_eq!(time.get().as_micros(), min);
        }
    }
}
