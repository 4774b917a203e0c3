//! An only link on which long trains vanish, all of them, and nothing shorter is sent that could tell: nobody asks there what passes
//! ([`crate::trunk::path_mtu`]). When nothing of what was out was acknowledged, twice in a row, and all of it was longer than what each
//! Ethernet takes, trains are no longer than that for a while. The same where frames that went past the engine vanished, most of them.

use crate::time::{Duration, Instant};
use crate::wire::ethernet::HEADER_LEN;

/// What each Ethernet takes.
const BASE: usize = 1500 + HEADER_LEN;
const IN_A_ROW: u32 = 2;
/// Until longer ones are tried again; twice as long each time.
const AGAIN_AFTER: Duration = Duration::from_secs(5);
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(600);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BlackHole {
    until: Option<Instant>,
    after: Duration,
}

impl BlackHole {
    /// All that was out; `shortest` of it, bytes.
    pub(super) fn on_given_up(&mut self, shortest: usize, in_a_row: u32, now: Instant) {
        if shortest > BASE && in_a_row >= IN_A_ROW {
            self.doubt(now);
        }
    }

    /// Long ones vanish, as it seems.
    pub(super) fn doubt(&mut self, now: Instant) {
        self.after = (self.after * 2).clamp(AGAIN_AFTER, AGAIN_AFTER_MAX);
        self.until = Some(now + self.after);
    }

    /// It is not known yet whether they do.
    pub(super) fn keep(&mut self, now: Instant) {
        let at_least = now + AGAIN_AFTER;
        self.until = Some(self.until.map_or(at_least, |until| until.max(at_least)));
    }

    /// A train so long has.
    pub(super) fn on_arrived(&mut self, bytes: usize) {
        if bytes > BASE {
            *self = BlackHole::default();
        }
    }

    pub(super) fn above(&self, now: Instant) -> Option<usize> {
        let is_so = self.until.is_some_and(|until| now < until);
        is_so.then_some(BASE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_trains_that_all_vanish_are_left_and_tried_again_less_and_less_often() {
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        let mut hole = BlackHole::default();
        hole.on_given_up(9000, 1, at(1));
        hole.on_given_up(1500, 2, at(1));
        assert_eq!(hole.above(at(1)), None);
        hole.on_given_up(9000, 2, at(2));
        hole.on_arrived(1514);
        assert_eq!(hole.above(at(6)), Some(BASE));
        assert_eq!(hole.above(at(7)), None);
        hole.on_given_up(9000, 2, at(8));
        assert_eq!(hole.above(at(17)), Some(BASE));
        hole.on_arrived(9000);
        assert_eq!(hole.above(at(17)), None);
    }
}
