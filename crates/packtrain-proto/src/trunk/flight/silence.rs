//! How long a link may be without a word while something is under way on it.

use super::{Flight, SILENCE_MIN};
use crate::time::{Duration, Instant};

/// While no round trip is known, a link is not dead before that.
const SILENCE_START: Duration = Duration::from_secs(1);
/// Each time that all that was out counted as lost, and nothing was acknowledged since, twice as long is waited, up to so often: it
/// may all be on its way still.
const DOUBLINGS_MAX: u32 = 2;
const LOOK_AGAIN: Duration = Duration::from_millis(50);
const HOPELESS_AFTER: Duration = Duration::from_secs(2);
/// Probes are acknowledged in their turn, behind gaps that may take long.
const PROBE_SILENCE_MIN: Duration = Duration::from_secs(5);

impl Flight {
    fn silence_max(&self) -> Duration {
        self.doubled(SILENCE_MIN.max(self.round_trip().unwrap_or_default() * 4))
    }

    fn doubled(&self, time: Duration) -> Duration {
        time * (1 << self.given_up_in_a_row.min(DOUBLINGS_MAX))
    }

    /// When what is out counts as lost, if no acknowledgement comes.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let silence_max = match self.in_flight {
            0 => self.silence_max().max(PROBE_SILENCE_MIN),
            _ => self.silence_max(),
        };
        (self.outstanding > 0).then(|| self.last_progress + silence_max)
    }

    /// Whether no acknowledgement came for too long.
    pub fn is_silent(&self, now: Instant) -> bool {
        self.poll_timeout().is_some_and(|at| at <= now)
    }

    /// What is out is acknowledged later than it takes when all is well: nothing shows that this link works.
    pub fn is_late(&self, now: Instant) -> bool {
        self.in_flight > 0 && now.since(self.last_progress) > self.late_after()
    }

    /// It has answered before, and is not late with what is out.
    pub fn shows_life(&self, now: Instant) -> bool {
        self.round_trip().is_some() && !self.is_late(now)
    }

    /// Silent for longer than an acknowledgement takes on any link.
    pub fn is_dead(&self, now: Instant) -> bool {
        let start = self.doubled(SILENCE_START);
        self.round_trip().is_some() || now.since(self.acknowledged_at) >= start
    }

    /// Everything is silent, and for so long that more has to be lost than what is out.
    pub fn is_hopeless(&self, now: Instant) -> bool {
        now.since(self.acknowledged_at) > HOPELESS_AFTER
    }

    /// Nothing can be said yet: it is looked at again soon.
    pub fn wait_on(&mut self, now: Instant) {
        self.last_progress = now + LOOK_AGAIN - self.silence_max();
    }

    /// We were not called for so long: nobody could have been heard in that time.
    pub fn forgive(&mut self, away: Duration, now: Instant) {
        self.last_progress = (self.last_progress + away).min(now);
    }
}
