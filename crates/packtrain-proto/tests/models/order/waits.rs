//! How long a gap is waited for, and what is learned of that.

use packtrain_proto::time::{Duration, Instant};

use super::{Order, STALL_MIN, What};
use crate::breakage::Breakage;

const WAIT_START: Duration = Duration::from_millis(16);
const WAIT_MIN: Duration = Duration::from_millis(1);
const FADE_AFTER: Duration = Duration::from_secs(10);
/// What is named again and again is waited for so many times as long.
const CLAIMS_MAX: u32 = 5;

/// Who says nothing of copies for so long has none, and no copy goes again for longer.
pub const COPIES_SILENT_MAX: Duration = Duration::from_secs(4);
const COPIES_MAX: Duration = Duration::from_secs(10);

impl Order {
    /// Looks at the first gap since the last train was let through: when, and whether nothing brings it.
    fn looks(&self) -> impl DoubleEndedIterator<Item = (Instant, bool)> {
        let ends = |what: &What| {
            let is_discarded = matches!(what, What::Discarded { trains } if !trains.is_empty());
            is_discarded || matches!(what, What::LetThrough { .. } | What::Moved { .. })
        };
        self.since(ends)
            .iter()
            .filter_map(|event| match event.what {
                What::Missed { nothing_brings_it } => Some((event.at, nothing_brings_it)),
                _ => None,
            })
    }

    /// Since when something is held before which one is missing, if somebody has looked.
    pub(super) fn gap_since(&self) -> Option<Instant> {
        let (noticed, _) = self.looks().next()?;
        let held = self.held().into_iter().map(|(_, _, arrived)| arrived);
        held.filter(|arrived| *arrived <= noticed).min()
    }

    /// Since when nothing brings what is missing.
    pub(super) fn passed_since(&self) -> Option<Instant> {
        let looks: Vec<_> = self.looks().collect();
        let last = looks.iter().rposition(|(_, nothing)| !nothing);
        match last {
            None => self.gap_since(),
            Some(_) if self.is(Breakage::TheMomentBeginsWithTheGap) && looks.last()?.1 => {
                self.gap_since()
            }
            Some(last) => looks.get(last + 1).map(|(at, _)| *at),
        }
    }

    /// How long a gap is waited for that nothing brings.
    pub(super) fn wait(&self) -> Duration {
        let mut wait = WAIT_START.min(self.wait_max);
        let mut given_up_at = None;
        for event in &self.history {
            match event.what {
                _ if self.is(Breakage::NothingIsLearned) => {}
                What::GivenUp { learns, .. } => {
                    // Several trains in a row are one gap.
                    if learns && given_up_at != Some(event.at) {
                        wait = (wait / 2).max(WAIT_MIN).min(self.wait_max);
                    }
                    given_up_at = Some(event.at);
                }
                What::TooLate { late } => wait = (late * 2).max(WAIT_MIN).min(self.wait_max),
                What::Overtaken { gap_age } => wait = wait.max(gap_age * 2).min(self.wait_max),
                _ => {}
            }
        }
        wait
    }

    /// How long one is waited for that something may bring.
    fn stall(&self) -> Duration {
        let mut skew = Duration::ZERO;
        for event in &self.history {
            if let What::Filled { took } = event.what {
                skew = took.max(skew * 31 / 32);
            }
        }
        if self.is(Breakage::StallsAreNotLearned) {
            skew = Duration::ZERO;
        }
        (skew * 4).max(STALL_MIN).min(self.stall_max)
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        let since = self.gap_since()?;
        if self.has_copy() {
            let told_at = self.told_at().map_or(since, |at| at.max(since));
            return Some((told_at + COPIES_SILENT_MAX).min(since + COPIES_MAX));
        }
        let named_at = self.named_at();
        let expected_since = named_at.map_or(since, |at| at.max(since));
        // Nothing was heard of the sender since.
        let is_last_word = named_at.is_some() && named_at == self.told_at();
        let stall = match is_last_word && !self.is(Breakage::SilenceIsAWord) {
            true => self.stall_max,
            false => self.stall(),
        };
        let longest = since + self.stall_max * CLAIMS_MAX;
        let stalled = (expected_since + stall).min(longest);
        let stalled = match self.is(Breakage::NoStallEnds) {
            true => stalled + self.stall_max,
            false => stalled,
        };
        let doubt = self.doubt_until();
        let known = self
            .passed_since()
            .map(|since| doubt.map_or(since, |until| until.max(since)));
        let wait = self.wait().max(self.word_awaited_for());
        let passed = known.map(|since| since + wait);
        Some(passed.map_or(stalled, |passed| passed.min(stalled)))
    }

    /// Stragglers weigh 1000 trains in order; 8000 at most are remembered, for 10 s.
    pub fn reorders(&self, now: Instant) -> bool {
        let mut disorder = 0u32;
        let mut last = Instant::ZERO;
        for event in &self.history {
            match event.what {
                What::Overtaken { .. } | What::TooLate { .. } => {
                    disorder = (disorder + 1000).min(8000);
                    last = event.at;
                }
                What::Passed { is_newer: true, .. } => disorder = disorder.saturating_sub(1),
                What::Missed { .. } if event.at.since(last) > FADE_AFTER => disorder = 0,
                _ => {}
            }
        }
        disorder > 4000 && now.since(last) <= FADE_AFTER
    }
}
