//! Whether more comes by the links than is read: who leaves frames unread each time, for a while, takes all that it can.

use crate::fullness::Fullness;
use crate::time::{Duration, Instant};

/// Each look is over so long.
const STEP: Duration = Duration::from_millis(10);
/// Of a longer step nothing is learned: nobody read in between.
const STEP_MAX: Duration = Duration::from_millis(50);
/// How many steps a rate is a mean of, about.
const SAMPLES: f64 = 8.0;

/// What is read of the links.
#[derive(Debug, Default)]
pub struct Reading {
    begun: Instant,
    /// At each reading of this step something was left.
    stood: Option<bool>,
    given_before: u64,
    bps: f64,
    full: Fullness,
}

impl Reading {
    /// Something was left unread, or all was read; `given`: bytes to the host, ever. What is taken, bit/s, if that is all that can be.
    pub fn on_read(&mut self, left_unread: bool, given: u64, now: Instant) -> Option<u64> {
        self.stood = Some(self.stood.unwrap_or(true) && left_unread);
        let elapsed = now.since(self.begun);
        if elapsed < STEP {
            return None;
        }
        let stood = self.stood.take() == Some(true);
        let bytes = given.saturating_sub(std::mem::replace(&mut self.given_before, given));
        self.begun = now;
        if elapsed > STEP_MAX {
            return None;
        }
        let sample = bytes as f64 * 8.0 / elapsed.as_secs_f64();
        self.bps += (sample - self.bps) / SAMPLES;
        self.full.note(stood, now);
        (stood && self.full.is_full(now)).then_some(self.bps as u64)
    }
}

/// A rate between two looks.
#[derive(Debug, Default)]
pub struct Meter {
    bytes: u64,
    at: Instant,
}

impl Meter {
    /// How much more it is than when the rate was asked for last.
    pub fn more(&self, bytes: u64) -> u64 {
        bytes.saturating_sub(self.bytes)
    }

    /// Since the rate was asked for last.
    pub fn has_run_for(&self, now: Instant) -> Duration {
        now.since(self.at)
    }

    /// Bit/s since it was asked last; `bytes`: ever.
    pub fn rate_bps(&mut self, bytes: u64, now: Instant) -> u64 {
        let more = bytes.saturating_sub(std::mem::replace(&mut self.bytes, bytes));
        let elapsed = now.since(std::mem::replace(&mut self.at, now));
        (more as f64 * 8.0 / elapsed.as_secs_f64().max(1e-3)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// Read each millisecond, with a megabyte a second; when it was found to be all that can be taken.
    fn found(left_unread: impl Fn(u64) -> bool) -> Vec<u64> {
        let mut reading = Reading::default();
        let is_full = |&ms: &u64| {
            reading
                .on_read(left_unread(ms), ms * 1000, at(ms))
                .is_some()
        };
        (1..=400).filter(is_full).collect()
    }

    #[test]
    fn who_leaves_something_each_time_for_a_while_is_full() {
        assert_eq!(found(|_| true).first(), Some(&60));
        assert_eq!(found(|ms| ms % 10 != 3), [], "read empty in each step");
        assert_eq!(found(|_| false), []);
        // For 20 ms of each 100: seldom, and again and again.
        let now_and_then = found(|ms| ms % 100 < 21);
        assert!(
            now_and_then.first().is_some_and(|&ms| ms > 100),
            "{now_and_then:?}"
        );
    }

    #[test]
    fn what_was_long_ago_does_not_count() {
        assert_eq!(found(|ms| ms < 40), []);
        assert_eq!(found(|ms| !(40..=380).contains(&ms)), []);
    }

    #[test]
    fn the_rate_is_that_of_what_the_host_was_given() {
        let mut reading = Reading::default();
        let rates = (1..=400).filter_map(|ms| reading.on_read(true, ms * 1000, at(ms)));
        let last = rates.last().unwrap();
        assert!((7_500_000..=8_000_000).contains(&last), "{last}");
        let mut meter = Meter::default();
        meter.rate_bps(0, at(1000));
        assert_eq!(meter.rate_bps(1000, at(1001)), 8_000_000);
    }
}
