//! What the owner was told of something last, and when it is to be told again: a change at once, but not each
//! of many.
//!
//! Of what changes to and fro, each change but the first few waits until it has lasted a moment. So the last one is
//! always told, and never more than a bounded number in a time.

use crate::time::{Duration, Instant};

/// What has lasted so long is told in any case.
pub const SETTLED: Duration = Duration::from_secs(1);
/// So many changes in a period are told at once.
const AT_ONCE_MAX: u8 = 12;
const PERIOD: Duration = Duration::from_secs(10);

/// The state of something that has one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToldState<S> {
    /// Since when it was so.
    told: Option<(S, Instant)>,
    seen: Option<(S, Instant)>,
    skipped: u32,
    at_once: u8,
    period_since: Instant,
}

/// What is to be told beside the new state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<S> {
    /// `None`: nothing was told before.
    pub before: Option<S>,
    /// How long that had lasted, with changes that were not told.
    pub lasted: Duration,
    /// Changes since then that were not told.
    pub skipped: u32,
}

impl<S> Default for ToldState<S> {
    fn default() -> ToldState<S> {
        ToldState {
            told: None,
            seen: None,
            skipped: 0,
            at_once: 0,
            period_since: Instant::ZERO,
        }
    }
}

impl<S: Copy + PartialEq> ToldState<S> {
    /// What nobody needs to be told: it has been so from the start.
    pub fn known(state: S, now: Instant) -> ToldState<S> {
        ToldState {
            told: Some((state, now)),
            seen: Some((state, now)),
            ..ToldState::default()
        }
    }

    pub fn told(&self) -> Option<S> {
        self.told.map(|(state, _)| state)
    }

    /// It is so now. `Some`: that is to be told. `at_once`: though it has lasted for no time yet.
    pub fn look(&mut self, state: S, at_once: bool, now: Instant) -> Option<Change<S>> {
        let since = match self.seen {
            Some((seen, since)) if seen == state => since,
            seen => {
                // What was seen before and has not been told never will be.
                let is_untold = seen.is_some_and(|(seen, _)| Some(seen) != self.told());
                self.skipped += u32::from(is_untold);
                self.seen = Some((state, now));
                now
            }
        };
        if self.told() == Some(state) {
            return None;
        }
        if now.since(since) < SETTLED && !(at_once && self.may_at_once(now)) {
            return None;
        }
        let change = Change {
            before: self.told(),
            lasted: self
                .told
                .map_or(Duration::ZERO, |(_, told_since)| since.since(told_since)),
            skipped: std::mem::take(&mut self.skipped),
        };
        self.told = Some((state, since));
        Some(change)
    }

    /// It is no more. `None`: nobody was told of it.
    pub fn end(&self, now: Instant) -> Option<Change<S>> {
        let (state, since) = self.told?;
        Some(Change {
            before: Some(state),
            lasted: now.since(since),
            skipped: self.skipped,
        })
    }

    fn may_at_once(&mut self, now: Instant) -> bool {
        if now.since(self.period_since) >= PERIOD {
            (self.period_since, self.at_once) = (now, 0);
        }
        let may = self.at_once < AT_ONCE_MAX;
        self.at_once += u8::from(may);
        may
    }
}

/// A rate that is measured again and again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToldRate {
    told_bps: Option<u64>,
    told_at: Instant,
    /// Since when it is another one.
    differs_since: Option<Instant>,
}

/// Between two of the same path.
pub const RATE_INTERVAL: Duration = Duration::from_secs(5);

impl ToldRate {
    /// It is this now. `Some`: that is to be told, and what was told before: it has differed from that by more than a
    /// quarter for a second.
    pub fn look(&mut self, bps: u64, now: Instant) -> Option<Option<u64>> {
        let differs = self
            .told_bps
            .is_none_or(|told| bps.abs_diff(told) > told / 4);
        if !differs {
            self.differs_since = None;
            return None;
        }
        let since = *self.differs_since.get_or_insert(now);
        let is_soon = self.told_bps.is_some() && now.since(self.told_at) < RATE_INTERVAL;
        if now.since(since) < SETTLED || is_soon {
            return None;
        }
        self.differs_since = None;
        self.told_at = now;
        Some(self.told_bps.replace(bps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_change_is_told_once_with_what_was_before_and_how_long() {
        let mut told = ToldState::default();
        let first = told.look('a', true, at(100)).unwrap();
        assert_eq!((first.before, first.lasted), (None, Duration::ZERO));
        assert_eq!(told.look('a', true, at(200)), None);
        let change = told.look('b', true, at(350)).unwrap();
        assert_eq!(change.before, Some('a'));
        assert_eq!(change.lasted, Duration::from_millis(250));
        assert_eq!((change.skipped, told.told()), (0, Some('b')));
    }

    #[test]
    fn what_is_not_urgent_is_told_once_it_has_lasted() {
        let mut told = ToldState::known('a', at(0));
        assert_eq!(told.look('b', false, at(1000)), None);
        assert_eq!(told.look('b', false, at(1999)), None);
        let change = told.look('b', false, at(2000)).unwrap();
        // From when it began, not from when it was told.
        assert_eq!(change.lasted, Duration::from_millis(1000));
        assert_eq!(told.look('a', false, at(2100)), None);
        assert_eq!(
            told.look('b', false, at(2200)),
            None,
            "as was told: no change"
        );
    }

    #[test]
    fn of_what_flaps_only_some_is_told_and_how_much_was_not() {
        let mut told = ToldState::known('a', at(0));
        let mut changes = Vec::new();
        for step in 1..=100u64 {
            let state = if step % 2 == 0 { 'a' } else { 'b' };
            changes.extend(told.look(state, true, at(10_000 + 10 * step)));
        }
        assert_eq!(changes.len(), usize::from(AT_ONCE_MAX));
        assert_eq!(told.look('b', true, at(11_050)), None);
        let last = told.look('b', true, at(12_050)).unwrap();
        assert_eq!((last.before, told.told()), (Some('a'), Some('b')));
        // Each of those ninety-odd that was something else than what is known.
        assert_eq!(last.skipped, (100 - u32::from(AT_ONCE_MAX)) / 2);
    }

    #[test]
    fn a_rate_is_told_when_it_has_changed_by_a_quarter_for_a_second() {
        let mut told = ToldRate::default();
        assert_eq!(told.look(100, at(0)), None, "it may still grow");
        assert_eq!(told.look(110, at(1000)), Some(None));
        for (bps, millis) in [(110, 2000), (137, 9000), (138, 9500), (112, 10_000)] {
            assert_eq!(told.look(bps, at(millis)), None, "{bps}");
        }
        assert_eq!(told.look(60, at(10_250)), None);
        assert_eq!(told.look(50, at(11_250)), Some(Some(110)));
        // Soon after the last.
        assert_eq!(told.look(100, at(11_500)), None);
        assert_eq!(told.look(100, at(16_000)), None);
        assert_eq!(told.look(100, at(16_250)), Some(Some(50)));
    }

    proptest! {
        /// Whatever happens: what is told differs from what was told before, never more than so often, and once all
        /// is quiet what is told is what is so.
        #[test]
        fn the_last_state_is_told_and_few_before(
            steps in prop::collection::vec((0u8..4, any::<bool>(), 0u64..700), 1..400)
        ) {
            let mut told = ToldState::default();
            let (mut millis, mut last) = (0, None);
            let mut times = Vec::new();
            let mut state = 0;
            for (next, at_once, step) in steps {
                millis += step;
                state = next;
                if let Some(change) = told.look(state, at_once, at(millis)) {
                    prop_assert_eq!(change.before, last);
                    prop_assert_ne!(last, Some(state));
                    last = Some(state);
                    times.push(millis);
                }
            }
            for (n, from) in times.iter().enumerate() {
                let within = times[n..].iter().filter(|time| **time < from + 10_000).count();
                // Those at once of two periods, and one a second of those that lasted.
                prop_assert!(within <= 2 * usize::from(AT_ONCE_MAX) + 10, "{}", within);
            }
            let _ = told.look(state, false, at(millis + 1000));
            prop_assert_eq!(told.told(), Some(state));
        }

        /// Against the list of all that was seen.
        #[test]
        fn a_rate_is_told_if_all_of_the_last_second_differed(
            steps in prop::collection::vec((50u64..200, 0u64..500), 1..300)
        ) {
            let mut told = ToldRate::default();
            let mut seen: Vec<(u64, u64)> = Vec::new();
            let (mut millis, mut known, mut known_at) = (0, None, 0);
            for (bps, step) in steps {
                millis += step;
                seen.push((millis, bps));
                let differs = |bps: u64| known.is_none_or(|known: u64| bps.abs_diff(known) > known / 4);
                let differing = seen.iter().rev().take_while(|(_, bps)| differs(*bps));
                let since = differing.last().map(|(at, _)| *at);
                let is_soon = known.is_some() && millis - known_at < 5000;
                let expected = since.is_some_and(|since| millis - since >= 1000) && !is_soon;
                let answer = told.look(bps, at(millis));
                prop_assert_eq!(answer, expected.then_some(known));
                if expected {
                    (known, known_at) = (Some(bps), millis);
                    seen.clear();
                }
            }
        }
    }
}
