//! The first gap, and when it is given up.

use super::astray::STRAYS_MAX;
use super::{FADE_AFTER, Resequencer, WAIT_MIN, WINDOW};
use crate::time::{Duration, Instant};
use crate::trunk::balance::span_trains_max;
use crate::wire::sequence::Sequence;

/// How long a gap that a link may still fill is waited for at least: by then its sender has found out
/// that it is dead (`flight`), and sent the train again.
pub(super) const STALL_MIN: Duration = Duration::from_millis(1200);
/// … and as many times the longest that one took of late.
const STALL_SKEWS: u32 = 4;
/// A sender that says again and again that something may still come is believed for so many times the
/// longest that a gap waits without that: it may try one dead link after the other.
pub(super) const CLAIMS_MAX: u32 = 5;
/// No copy goes again for longer.
pub(super) const COPIES_MAX: Duration = Duration::from_secs(10);
/// Who says nothing of copies for so long has none, or is given up as a peer: that takes 3.5 s, and the time until somebody looks.
pub(super) const COPIES_SILENT_MAX: Duration = Duration::from_secs(4);
/// Looked at so much later than a gap was to be given up, we were not running, and what may fill it has come and was not read
/// yet. It takes no longer to read it.
pub(super) const LATE: Duration = Duration::from_millis(20);

/// The first gap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    /// When it was noticed.
    pub(super) since: Instant,
    /// Since when nothing is under way that may fill it.
    pub(super) passed_since: Option<Instant>,
}

impl Resequencer {
    pub(super) fn on_gap_given_up(&mut self, now: Instant) {
        let passed_since = self.gap.and_then(|gap| gap.passed_since);
        self.waited = passed_since.map_or(Duration::ZERO, |since| now.since(since));
        let to_the_end = self.waited >= self.wait && !self.hurried;
        // Several trains in a row are one gap.
        if to_the_end && self.gap_given_up_at != now {
            self.wait = (self.wait / 2).max(WAIT_MIN).min(self.wait_max);
        }
        if passed_since.is_some() && !self.hurried && self.gap_given_up_at != now {
            self.word.on_broken();
        }
        self.gap_given_up_at = now;
    }

    /// Another lane has waited up to this train of ours in vain, and goes on: what is missing would come behind that.
    /// Follow with [`Resequencer::poll`].
    pub fn give_up_to(&mut self, last: Sequence) {
        let ahead = last.distance_from(self.expected);
        // Nobody has more under way.
        if (0..span_trains_max(0) as i32).contains(&ahead) {
            let newer = |before: Sequence| before.is_newer_than(last);
            self.given_up_to = self.given_up_to.filter(|of| newer(*of)).or(Some(last));
            self.is_untouched = false;
        } else if self.is_untouched && last.is_newer_than(self.expected.minus(WINDOW as u32)) {
            // It would begin with that, if there are copies.
            let newer = |before: &Sequence| before.is_newer_than(last);
            self.begins_after = self.begins_after.filter(newer).or(Some(last));
        }
    }

    /// Whether the train that is due is missing, and was given up so.
    pub(super) fn is_given_up(&mut self) -> bool {
        let expected = self.expected;
        self.given_up_to = self
            .given_up_to
            .filter(|last| !expected.is_newer_than(*last));
        self.given_up_to.is_some() && !matches!(self.held.front(), Some(Some(_)))
    }

    /// It tells nothing of how long links take.
    pub(super) fn skip_given_up(&mut self, now: Instant) {
        self.stats.gaps += 1;
        (self.gap_given_up_at, self.waited) = (now, Duration::ZERO);
        self.gap = None;
        self.advance(false);
        self.after_gap = true;
    }

    pub(super) fn gap_is_lost(&mut self, now: Instant) -> bool {
        let passed = self.under_way.has_passed(self.expected);
        let mut gap = match self.gap {
            Some(gap) => gap,
            None => {
                let arrivals = self.held.iter().flatten().map(|held| held.arrived);
                let since = arrivals.min().unwrap_or(now);
                Gap {
                    since,
                    passed_since: passed.then_some(since),
                }
            }
        };
        gap.passed_since = match passed {
            true => Some(gap.passed_since.unwrap_or(now)),
            false => None,
        };
        self.gap = Some(gap);
        if now.since(self.last_straggler) > FADE_AFTER {
            self.disorder = 0;
        }
        self.hurried || now >= self.given_up_at(gap) || self.is_full() || self.is_beyond_span()
    }

    /// What has come since is so much that its sender does not count what is missing among what is under way: it would have
    /// waited. More of it would not be taken. One train that claims to be far ahead shows nothing.
    pub(super) fn is_beyond_span(&self) -> bool {
        self.held.len() > (span_trains_max(0) + STRAYS_MAX) as usize
            && self.held_trains > WINDOW / 2
    }

    /// We are called, and nothing of what has come was taken in yet. A gap whose time was over long ago waits until that is done:
    /// nobody looked when it was to be given up, and what fills it may stand in a socket.
    /// Once for each gap: who is always late would wait for ever.
    pub fn forgive_lateness(&mut self, now: Instant) {
        let Some(gap) = self.gap.filter(|_| !self.is_fenced()) else {
            return;
        };
        let is_new = self.forgiven_since != Some(gap.since);
        if is_new && now.since(self.over_at(gap)) > LATE {
            self.forgiven_since = Some(gap.since);
            self.reads_until = now + LATE;
        }
    }

    pub(super) fn given_up_at(&self, gap: Gap) -> Instant {
        self.over_at(gap).max(self.reads_until)
    }

    /// When what may fill it has had its time.
    pub(super) fn over_at(&self, gap: Gap) -> Instant {
        if self.word.keeps(self.expected) {
            // Said again and again for as long as there is a copy, which goes again until it has come.
            let said_at = self.under_way.told_at().max(gap.since);
            return (said_at + COPIES_SILENT_MAX).min(gap.since + COPIES_MAX);
        }
        let named_at = self.under_way.named_at(self.expected);
        let stall = match named_at {
            Some(at) if at == self.under_way.told_at() => self.stall_max,
            _ => (self.skew * STALL_SKEWS).max(STALL_MIN).min(self.stall_max),
        };
        let expected_since = named_at.map_or(gap.since, |at| at.max(gap.since));
        let stalled_at = (expected_since + stall).min(gap.since + self.stall_max * CLAIMS_MAX);
        let known_since = |passed: Instant| self.doubt_until().map_or(passed, |at| at.max(passed));
        gap.passed_since.map_or(stalled_at, |passed| {
            stalled_at.min(known_since(passed) + self.wait.max(self.word.waited_for(self.expected)))
        })
    }

    /// Nobody knows before that whether what all links have passed is lost. So far ahead of what may go again no
    /// sender is.
    pub(super) fn doubt_until(&self) -> Option<Instant> {
        let is_beyond = self.held.len() > span_trains_max(0) as usize;
        self.doubt.until().filter(|_| !is_beyond)
    }

    /// When a gap is given up though nothing arrives.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let gap = self.gap.filter(|_| !self.is_fenced())?;
        Some(self.given_up_at(gap))
    }
}
