//! How long a sender that repairs may take to say that what is missing goes again: an acknowledgement has to reach it that
//! leaves it out, and its word to come back. That is learned; until then the longest wait for any gap is waited for.

use crate::time::Duration;
use crate::wire::sequence::Sequence;

/// As many times the longest of late.
const TIMES: u32 = 2;
/// … and this: hosts are not always prompt.
const MORE: Duration = Duration::from_millis(4);
/// Where nothing may be lost, and nothing was said of copies: what says that it goes again may be lost as well.
const LOSSLESS_MIN: Duration = Duration::from_secs(2);

/// What a sender says of trains that a link loses which lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repairing {
    #[default]
    No,
    /// They go again, where that is in time.
    InTime,
    /// … until they have arrived.
    Lossless,
}

impl Repairing {
    /// As the flags of a train say it.
    pub fn of_flags(repairs: bool, lossless: bool) -> Repairing {
        match (repairs, lossless) {
            (false, _) => Repairing::No,
            (true, false) => Repairing::InTime,
            (true, true) => Repairing::Lossless,
        }
    }
}

#[derive(Debug)]
pub(super) struct Word {
    repairs: Repairing,
    /// The oldest train that it keeps.
    kept_from: Option<Sequence>,
    told_by: Option<Sequence>,
    /// The longest that its word has taken of late, from when all links had passed the gap: falls slowly. `None`: it has kept
    /// none yet.
    took: Option<Duration>,
    at_first: Duration,
}

impl Word {
    pub(super) fn new(at_first: Duration) -> Word {
        Word {
            repairs: Repairing::No,
            kept_from: None,
            told_by: None,
            took: None,
            at_first,
        }
    }

    /// What came first was something that goes again: it tells nothing but this.
    pub(super) fn begin(&mut self, repairs: Repairing, kept_from: Sequence) {
        (self.repairs, self.kept_from) = (repairs, Some(kept_from));
    }

    pub(super) fn on_told(
        &mut self,
        told_by: Sequence,
        (repairs, kept_from): (Repairing, Option<Sequence>),
    ) {
        self.repairs = repairs;
        // Markers of one sequence overtake each other, and copies are let go of in order.
        let is_again = self.told_by.replace(told_by) == Some(told_by);
        self.kept_from = match (self.kept_from, kept_from) {
            (Some(before), Some(now)) if is_again && before.is_newer_than(now) => Some(before),
            (_, now) => now,
        };
    }

    pub(super) fn repairs(&self) -> bool {
        self.repairs != Repairing::No
    }

    pub(super) fn is_lossless(&self) -> bool {
        self.repairs == Repairing::Lossless
    }

    /// Where nothing may be lost: by what it said last there is a copy of this train, unless it has come.
    pub(super) fn keeps(&self, train: Sequence) -> bool {
        let is_kept = |from: Sequence| !from.is_newer_than(train);
        self.is_lossless() && self.kept_from.is_some_and(is_kept)
    }

    /// It has said that the train that is due goes again.
    pub(super) fn on_kept(&mut self, took: Duration) {
        let before = self.took.unwrap_or_default();
        self.took = Some(took.max(before * 31 / 32));
    }

    /// It has sent a train again that was given up so long after all links had passed it.
    pub(super) fn on_late(&mut self, took: Duration) {
        if self.repairs != Repairing::No {
            self.took = Some(
                self.took
                    .unwrap_or_default()
                    .max(took.min(self.at_first * 4)),
            );
        }
    }

    /// It has not said so of what was given up just now.
    pub(super) fn on_broken(&mut self) {
        match &mut self.took {
            _ if self.repairs == Repairing::No => {}
            Some(took) => *took = *took * 7 / 8,
            None => self.at_first /= 2,
        }
    }

    /// So long this train, which all links have passed, may still be said to go again.
    pub(super) fn waited_for(&self, train: Sequence) -> Duration {
        if self.kept_from.is_some_and(|from| from.is_newer_than(train)) {
            return Duration::ZERO; // it cannot
        }
        let learnt = |took: Duration| took * TIMES + MORE;
        let of_word = self.took.map_or(self.at_first, learnt);
        match self.repairs {
            Repairing::No => Duration::ZERO,
            Repairing::InTime => of_word,
            Repairing::Lossless => of_word.max(LOSSLESS_MIN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn who_repairs_is_waited_for_as_long_as_its_word_has_taken() {
        let mut word = Word::new(50 * MS);
        assert_eq!(word.waited_for(Sequence::FIRST), Duration::ZERO);
        word.on_told(Sequence::FIRST, (Repairing::InTime, None));
        assert_eq!(word.waited_for(Sequence::FIRST), 50 * MS);
        word.on_kept(3 * MS);
        assert_eq!(word.waited_for(Sequence::FIRST), 10 * MS);
        word.on_kept(MS);
        assert!(
            word.waited_for(Sequence::FIRST) < 10 * MS && word.waited_for(Sequence::FIRST) > 9 * MS
        );
        word.on_told(Sequence::FIRST, (Repairing::No, None));
        assert_eq!(word.waited_for(Sequence::FIRST), Duration::ZERO);
    }

    #[test]
    fn who_does_not_keep_it_is_hardly_waited_for_in_the_end() {
        let mut word = Word::new(50 * MS);
        word.on_told(Sequence::FIRST, (Repairing::InTime, None));
        word.on_broken();
        assert_eq!(word.waited_for(Sequence::FIRST), 25 * MS);
        word.on_kept(20 * MS);
        assert_eq!(word.waited_for(Sequence::FIRST), 44 * MS);
        for _ in 0..40 {
            word.on_broken();
        }
        assert!(
            word.waited_for(Sequence::FIRST) < 5 * MS,
            "{:?}",
            word.waited_for(Sequence::FIRST)
        );
    }

    #[test]
    fn what_came_too_late_is_waited_for_longer_but_not_for_ever() {
        let mut word = Word::new(50 * MS);
        word.on_late(20 * MS);
        assert_eq!(
            word.waited_for(Sequence::FIRST),
            Duration::ZERO,
            "a link had died"
        );
        word.on_told(Sequence::FIRST, (Repairing::InTime, None));
        word.on_late(20 * MS);
        assert_eq!(word.waited_for(Sequence::FIRST), 44 * MS);
        word.on_late(5000 * MS);
        assert_eq!(word.waited_for(Sequence::FIRST), 404 * MS);
    }
}
