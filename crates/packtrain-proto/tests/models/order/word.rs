//! How long a sender that repairs may take to say that what is missing goes again.

use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::trunk::resequencer::Repairing;
use packtrain_proto::wire::sequence::Sequence;

use super::{Order, What};
use crate::breakage::Breakage;

const MORE: Duration = Duration::from_millis(4);
const LOSSLESS_MIN: Duration = Duration::from_secs(2);

impl Order {
    /// What was said last of what is lost.
    fn repairing(&self) -> Repairing {
        let mut said = self.history.iter().rev();
        let last = said.find_map(|event| match event.what {
            What::Told { repairs, .. } => Some(repairs),
            _ => None,
        });
        last.unwrap_or_default()
    }

    fn kept_from(&self) -> Option<Sequence> {
        let mut said = self
            .history
            .iter()
            .rev()
            .filter_map(|event| match event.what {
                What::Told { by, kept_from, .. } => Some((by, kept_from)),
                _ => None,
            });
        let (last_by, mut newest) = said.next()?;
        // By markers of one sequence, which overtake each other, the newest that one of them names.
        for (by, from) in said {
            match (newest, from) {
                (Some(known), Some(from)) if by == last_by => {
                    newest = Some(if from.is_newer_than(known) {
                        from
                    } else {
                        known
                    });
                }
                _ => break,
            }
        }
        newest
    }

    pub fn is_lossless(&self) -> bool {
        self.repairing() == Repairing::Lossless
    }

    /// Its sender has said last that it has a copy of what is missing, and sends that again until it has come.
    pub fn has_copy(&self) -> bool {
        let is_kept = |from: Sequence| !from.is_newer_than(self.expected());
        let is_right = !self.is(Breakage::LosslessIsInTime);
        self.is_lossless() && is_right && self.kept_from().is_some_and(is_kept)
    }

    /// A gap that nothing seems to bring is waited for at least so long.
    pub fn word_awaited_for(&self) -> Duration {
        if self.repairing() == Repairing::No || self.is(Breakage::NobodyRepairs) {
            return Duration::ZERO;
        }
        let is_older = |from: Sequence| from.is_newer_than(self.expected());
        if self.kept_from().is_some_and(is_older) {
            return Duration::ZERO;
        }
        let mut repairs = false;
        let (mut took, mut at_first) = (None, self.wait_max);
        let mut given_up_at = None::<Instant>;
        for event in &self.history {
            match event.what {
                What::Told { repairs: says, .. } => repairs = says != Repairing::No,
                What::WordKept { took: t } => {
                    let before = took.unwrap_or(Duration::ZERO);
                    took = Some(t.max(before * 31 / 32));
                }
                What::AgainTooLate { took: t } if repairs => {
                    let before = took.unwrap_or(Duration::ZERO);
                    took = Some(before.max(t.min(at_first * 4)));
                }
                What::GivenUp { breaks_word, .. } => {
                    // Several trains in a row are one gap.
                    let is_new = given_up_at.replace(event.at) != Some(event.at);
                    if breaks_word && is_new && repairs && !self.is(Breakage::WordsAreAlwaysKept) {
                        match &mut took {
                            Some(took) => *took = *took * 7 / 8,
                            None => at_first /= 2,
                        }
                    }
                }
                _ => {}
            }
        }
        let of_word = took.map_or(at_first, |took| took * 2 + MORE);
        match self.is_lossless() && !self.is(Breakage::LosslessIsInTime) {
            true => of_word.max(LOSSLESS_MIN),
            false => of_word,
        }
    }
}
