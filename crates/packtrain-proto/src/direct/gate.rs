//! When the direct path is closed, and when it opens again.

use super::DIRECT_CALM;
use super::counts::Signal;
use crate::stats::{Closures, EngineBecause};
use crate::time::{Duration, Instant};

/// Closed again so soon after it was opened, by what cannot be seen, it stays closed for twice as long, up to …
const HIDDEN_AGAIN: Duration = Duration::from_secs(60);
const HIDDEN_CALM_MAX: Duration = Duration::from_secs(64);

/// Whether a link, or the way to one peer by it, is too busy for the direct path.
///
/// It closes at once and opens late. A queue that stood below is gone as soon as the engine has taken
/// over, for it keeps the queue with itself: that nothing stands there any more says nothing. And each change has
/// a price: flows wait until what is under way has arrived. So it opens only when there was so little
/// to send for [`DIRECT_CALM`] that no queue stood anywhere.
#[derive(Debug, Default)]
pub struct DirectGate {
    closed: bool,
    /// Not by what is seen of the link itself.
    hidden: Option<Signal>,
    /// How long it must be calm; after [`DIRECT_CALM`] where it is `None`.
    calm: Option<Duration>,
    /// What was asked for when it was closed so last.
    calm_after_hidden: Option<Duration>,
    opened_at: Instant,
    /// When the line was last seen busy.
    busy_at: Instant,
    /// How often it has closed.
    pub closures: Closures,
}

impl DirectGate {
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Direct frames stand in a queue, or small ones are many.
    pub fn on_congestion(&mut self, now: Instant) {
        if !self.closed {
            self.closures.congestion += 1;
            self.hidden = None;
            self.calm = None;
        }
        self.closed = true;
        self.busy_at = now;
    }

    /// Direct frames are lost, or stand in a queue that nobody sees. That this is over cannot be seen
    /// either, but by opening; who is wrong again soon tries less and less often.
    pub fn on_hidden_congestion(&mut self, signal: Signal, now: Instant) {
        if self.closed {
            return;
        }
        let was_open = now.since(self.opened_at);
        let calm = match self.calm_after_hidden {
            Some(calm) if was_open < HIDDEN_AGAIN => (calm * 2).min(HIDDEN_CALM_MAX),
            _ => DIRECT_CALM,
        };
        match signal {
            Signal::Delay => self.closures.delay += 1,
            Signal::Disorder => self.closures.disorder += 1,
            Signal::Loss => self.closures.loss += 1,
        }
        self.closed = true;
        self.busy_at = now;
        self.hidden = Some(signal);
        self.calm = Some(calm);
        self.calm_after_hidden = Some(calm);
    }

    /// By what it was closed, while it is.
    pub fn closed_because(&self) -> Option<EngineBecause> {
        self.closed.then_some(match self.hidden {
            None => EngineBecause::Congestion,
            Some(Signal::Loss) => EngineBecause::Loss,
            Some(Signal::Delay) => EngineBecause::Delay,
            Some(Signal::Disorder) => EngineBecause::Disorder,
        })
    }

    /// Who took over cannot do better. What is not seen of the link may still be so.
    pub fn on_given_back(&mut self, now: Instant) {
        if self.closed && self.hidden.is_none() {
            self.closed = false;
            self.opened_at = now;
        }
    }

    /// Something waits, or is held back.
    pub fn on_busy(&mut self, now: Instant) {
        self.busy_at = now;
    }

    /// Nothing waits now.
    pub fn on_calm(&mut self, now: Instant) {
        if self.closed && now.since(self.busy_at) >= self.calm.unwrap_or(DIRECT_CALM) {
            self.closed = false;
            self.opened_at = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn it_closes_at_once_and_opens_when_all_was_calm_for_long_enough() {
        let mut gate = DirectGate::default();
        assert!(!gate.is_closed());
        gate.on_congestion(at(1000));
        assert!(gate.is_closed());
        for ms in [1000, 2000, 2999] {
            gate.on_calm(at(ms));
            assert!(gate.is_closed(), "{ms}");
        }
        gate.on_calm(at(3000));
        assert!(!gate.is_closed());
    }

    #[test]
    fn who_finds_what_cannot_be_seen_again_and_again_tries_less_and_less_often() {
        let mut gate = DirectGate::default();
        let (mut ms, mut calms) = (100_000, Vec::new());
        for _ in 0..8 {
            gate.on_hidden_congestion(Signal::Loss, at(ms));
            assert_eq!(gate.closed_because(), Some(EngineBecause::Loss));
            let closed_at = ms;
            while gate.is_closed() {
                ms += 100;
                gate.on_calm(at(ms));
            }
            calms.push((ms - closed_at) / 1000);
            ms += 1000;
        }
        assert_eq!(calms, [2, 4, 8, 16, 32, 64, 64, 64]);
        // A queue that is seen, and long after.
        gate.on_congestion(at(ms));
        assert_eq!(gate.closed_because(), Some(EngineBecause::Congestion));
        gate.on_calm(at(ms + 2000));
        assert!(!gate.is_closed());
        gate.on_hidden_congestion(Signal::Delay, at(ms + 70_000));
        gate.on_calm(at(ms + 72_000));
        assert_eq!(gate.closed_because(), None);
    }

    #[test]
    fn each_busy_moment_begins_the_calm_anew_and_many_reports_are_one_closure() {
        let mut gate = DirectGate::default();
        gate.on_congestion(at(0));
        gate.on_congestion(at(500));
        gate.on_busy(at(1500));
        gate.on_calm(at(3499));
        assert!(gate.is_closed());
        gate.on_calm(at(3500));
        assert!(!gate.is_closed());
        gate.on_congestion(at(4000));
        assert!(gate.is_closed());
        let closures = Closures {
            congestion: 2,
            ..Closures::default()
        };
        assert_eq!(gate.closures, closures);
    }

    #[test]
    fn what_is_given_back_opens_it_at_once_unless_it_was_closed_by_what_is_not_seen() {
        let mut gate = DirectGate::default();
        gate.on_congestion(at(1000));
        gate.on_given_back(at(1050));
        assert!(!gate.is_closed());
        gate.on_hidden_congestion(Signal::Loss, at(2000));
        gate.on_given_back(at(2050));
        assert_eq!(gate.closed_because(), Some(EngineBecause::Loss));
    }

    #[test]
    fn being_busy_closes_nothing() {
        let mut gate = DirectGate::default();
        gate.on_busy(at(10));
        assert!(!gate.is_closed());
    }
}
