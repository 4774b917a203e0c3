//! Whether a frame that waits can expect company: what a wait is for.
//!
//! Two answers, and both must be yes. *By rate*: frames that may wait come often enough that, were their arrivals
//! a Poisson process of the rate that was seen, one more is to be expected within the time (its mean is one or
//! more). *By experience*: waits for this destination were not in vain. Who sends the next frame only when
//! the last one was answered comes often, and never in company: after a few waits that nobody joined, frames do
//! not wait for a while, twice as long each time that it is found to be so still.

use crate::time::{Duration, Instant};

/// The weight of one more gap between two frames is an eighth.
const GAP_SHIFT: u32 = 3;
/// A longer gap says that nothing was sent, not how often frames come when they do.
const GAP_MAX: Duration = Duration::from_millis(100);
/// So many waits in a row that nobody joined were in vain by no accident.
const IN_VAIN_MAX: u32 = 4;
/// Frames that do not wait then, at first and at most.
const UNTRIED_MIN: u32 = 32;
const UNTRIED_MAX: u32 = 4096;

#[derive(Debug)]
pub struct Company {
    /// Between two frames, on average; `None`: there were none yet.
    gap_ns: Option<u64>,
    last: Option<Instant>,
    in_vain: u32,
    /// Frames that leave without a wait, still; and how many the next time.
    untried: u32,
    untried_next: u32,
}

impl Default for Company {
    fn default() -> Company {
        Company {
            gap_ns: None,
            last: None,
            in_vain: 0,
            untried: 0,
            untried_next: UNTRIED_MIN,
        }
    }
}

impl Company {
    /// A frame came that may wait.
    pub fn on_arrival(&mut self, now: Instant) {
        if let Some(last) = self.last.replace(now) {
            let gap = now.since(last).min(GAP_MAX).as_nanos() as u64;
            self.gap_ns = Some(match self.gap_ns {
                None => gap,
                Some(average) => average - (average >> GAP_SHIFT) + (gap >> GAP_SHIFT),
            });
        }
    }

    /// Frames that are to be expected within the time, were they independent of each other.
    pub fn expected(&self, time: Duration) -> f64 {
        match self.gap_ns {
            None => 0.0,
            Some(gap) => time.as_nanos() as f64 / gap.max(1) as f64,
        }
    }

    /// Whether the frame that came last may expect another one within the time.
    pub fn is_worth(&mut self, time: Duration) -> bool {
        if self.expected(time) < 1.0 {
            return false;
        }
        if self.untried > 0 {
            self.untried -= 1;
            return false;
        }
        true
    }

    /// A wait is over, and so many frames leave together.
    pub fn on_wait_over(&mut self, frames: usize) {
        if frames > 1 {
            self.in_vain = 0;
            self.untried_next = UNTRIED_MIN;
            return;
        }
        self.in_vain += 1;
        if self.in_vain >= IN_VAIN_MAX {
            // One wait tells whether it is so still.
            self.in_vain = IN_VAIN_MAX - 1;
            self.untried = self.untried_next;
            self.untried_next = (2 * self.untried_next).min(UNTRIED_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Duration = Duration::from_millis(1);

    /// So many frames with this gap; how many of them waited, where `joined` says who leaves with the one that did.
    fn waits(company: &mut Company, gap: Duration, frames: u32, joined: usize) -> u32 {
        let mut now = company.last.unwrap_or(Instant::ZERO);
        let mut waits = 0;
        for _ in 0..frames {
            now += gap;
            company.on_arrival(now);
            if company.is_worth(BUDGET) {
                waits += 1;
                company.on_wait_over(joined);
            }
        }
        waits
    }

    #[test]
    fn who_is_alone_within_the_time_does_not_wait() {
        let mut company = Company::default();
        assert!(!company.is_worth(BUDGET), "nothing is known");
        assert_eq!(waits(&mut company, BUDGET * 2, 1000, 2), 0);
        // The average has to come down first.
        assert!(waits(&mut company, BUDGET / 4, 100, 2) > 80);
        assert!(waits(&mut company, BUDGET * 2, 100, 2) < 20);
    }

    #[test]
    fn a_pause_is_forgotten_soon() {
        let mut company = Company::default();
        assert!(waits(&mut company, BUDGET / 10, 1000, 2) > 990);
        company.on_arrival(company.last.unwrap() + Duration::from_secs(3600));
        assert!(waits(&mut company, BUDGET / 10, 100, 2) > 60);
    }

    #[test]
    fn who_is_never_joined_waits_no_more_but_now_and_then() {
        let mut company = Company::default();
        // 4 at first, then one before each pause: 32, 64, … 4096.
        assert_eq!(waits(&mut company, BUDGET / 10, 1 + 4, 1), 4);
        assert_eq!(waits(&mut company, BUDGET / 10, 32, 1), 0);
        assert_eq!(waits(&mut company, BUDGET / 10, 1, 1), 1);
        assert_eq!(waits(&mut company, BUDGET / 10, 64, 1), 0);
        let many = waits(&mut company, BUDGET / 10, 1_000_000, 1);
        assert!((244..255).contains(&many), "{many}");
        // Somebody else sends too: the next wait shows it.
        waits(&mut company, BUDGET / 10, 4096, 2);
        assert!(waits(&mut company, BUDGET / 10, 1000, 2) > 990);
    }
}
