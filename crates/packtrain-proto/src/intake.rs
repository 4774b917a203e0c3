//! How fast the host's frames should be taken: backpressure, worked out.
//!
//! A TAP takes every frame at once and charges no socket for it, so a sender would fill our queues
//! until something is dropped. When a line is slower than its host, the owner shapes `pt0`
//! to the rate given here: then the queue stands where sockets are charged for it, as
//! on a NIC, and only as much stands in the engine as it needs to pack (the target below).
//!
//! A proportional controller on the waiting time in the engine, with a slow integral
//! for what proportion cannot know: how many wire bytes a host byte becomes.

use crate::time::{Duration, Instant};

const STEP: Duration = Duration::from_millis(10);
/// The wait in the engine that is aimed at.
const TARGET: Duration = Duration::from_millis(2);
/// A wait that calls for shaping, when it lasts for [`ENGAGE_AFTER`].
const ENGAGE: Duration = Duration::from_millis(4);
const ENGAGE_AFTER: Duration = Duration::from_millis(20);
/// Without a wait for so long, shaping ends.
const RELEASE_AFTER: Duration = Duration::from_secs(2);
const PROPORTION: f64 = 0.2;
const INTEGRAL: f64 = 0.01;

#[derive(Debug)]
pub struct Intake {
    next_step: Instant,
    /// Since when the wait is above [`ENGAGE`].
    long_since: Option<Instant>,
    waited_at: Instant,
    rate_bps: Option<u64>,
    gain: f64,
}

impl Intake {
    pub fn new(now: Instant) -> Intake {
        Intake {
            next_step: now,
            long_since: None,
            waited_at: now,
            rate_bps: None,
            gain: 1.0,
        }
    }

    /// When to step next; only while something waits or is shaped.
    pub fn poll_timeout(&self, waiting_bytes: usize) -> Option<Instant> {
        (waiting_bytes > 0 || self.rate_bps.is_some()).then_some(self.next_step)
    }

    /// One step of control: `waiting_bytes` in the engine over links that drain at `drain_bps`
    /// together. Returns the new rate when it has changed.
    pub fn step(
        &mut self,
        waiting_bytes: usize,
        drain_bps: Option<u64>,
        now: Instant,
    ) -> Option<Option<u64>> {
        if now < self.next_step {
            return None;
        }
        self.next_step = now + STEP;
        let before = self.rate_bps;
        self.rate_bps = self.decide(waiting_bytes, drain_bps, now);
        let moved = match (before, self.rate_bps) {
            (Some(a), Some(b)) => a.abs_diff(b) > a / 100,
            (a, b) => a != b,
        };
        if !moved {
            self.rate_bps = before;
        }
        moved.then_some(self.rate_bps)
    }

    fn decide(&mut self, waiting: usize, drain_bps: Option<u64>, now: Instant) -> Option<u64> {
        let drain = drain_bps.filter(|&bps| bps > 0)?;
        let wait = Duration::from_nanos((waiting as u64).saturating_mul(8_000_000_000) / drain);
        if waiting > 0 {
            self.waited_at = now;
        }
        if self.rate_bps.is_none() {
            if wait < ENGAGE {
                self.long_since = None;
                return None;
            }
            let since = *self.long_since.get_or_insert(now);
            if now.since(since) < ENGAGE_AFTER {
                return None;
            }
            self.gain = 1.0;
        } else if now.since(self.waited_at) > RELEASE_AFTER {
            self.long_since = None;
            return None;
        }
        let error = (1.0 - wait.as_secs_f64() / TARGET.as_secs_f64()).max(-1.0);
        self.gain = (self.gain + INTEGRAL * error).clamp(0.5, 2.0);
        Some((drain as f64 * (self.gain + PROPORTION * error)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A greedy host over a line of `drain_bps`, each host byte becoming `cost` on the wire.
    /// Returns the wait in the engine over the last second: mean and maximum.
    fn run(drain_bps: u64, cost: f64) -> (f64, f64) {
        let mut intake = Intake::new(Instant::ZERO);
        let mut rate = None;
        let mut waiting = 0.0f64;
        let (mut sum, mut max, mut n) = (0.0, 0.0f64, 0.0);
        for ms in 0..4000u64 {
            let now = Instant::ZERO + Duration::from_millis(ms);
            let taken = rate.unwrap_or(10 * drain_bps) as f64 / 8000.0;
            waiting = (waiting + taken * cost - drain_bps as f64 / 8000.0).max(0.0);
            if let Some(changed) = intake.step((waiting / cost) as usize, Some(drain_bps), now) {
                rate = changed;
            }
            if ms >= 3000 {
                let wait_ms = waiting * 8000.0 / drain_bps as f64;
                sum += wait_ms;
                max = max.max(wait_ms);
                n += 1.0;
            }
        }
        (sum / n, max)
    }

    #[test]
    fn a_greedy_host_is_held_at_a_wait_of_two_milliseconds() {
        for (drain, cost) in [(1_000_000, 1.0), (100_000_000, 0.85), (1_000_000_000, 1.05)] {
            let (mean, max) = run(drain, cost);
            assert!(
                (0.5..4.0).contains(&mean) && max < 8.0,
                "{drain} {cost}: {mean} {max}"
            );
        }
    }

    #[test]
    fn a_host_slower_than_the_line_is_left_alone() {
        let mut intake = Intake::new(Instant::ZERO);
        for ms in 0..1000 {
            let now = Instant::ZERO + Duration::from_millis(ms);
            assert_eq!(intake.step(1500, Some(100_000_000), now), None);
        }
    }

    #[test]
    fn shaping_ends_when_nothing_waits_any_more() {
        let mut intake = Intake::new(Instant::ZERO);
        let mut rate = None;
        for ms in 0..5000 {
            let now = Instant::ZERO + Duration::from_millis(ms);
            let waiting = if ms < 1000 { 100_000 } else { 0 };
            rate = intake.step(waiting, Some(100_000_000), now).unwrap_or(rate);
            if ms == 500 {
                assert!(rate.is_some());
            }
        }
        assert_eq!(rate, None);
    }
}
