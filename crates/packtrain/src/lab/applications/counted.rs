//! What filters have counted.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::filter::document::FilterDocument;

/// In frames.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counted {
    pub judged: u64,
    pub dropped: u64,
    /// Those that were any.
    pub reasons: BTreeMap<String, u64>,
}

impl Counted {
    pub(super) fn add(&mut self, document: &FilterDocument) {
        self.judged += document.handled.frames;
        self.dropped += document.dropped.frames;
        for (reason, count) in &document.reasons {
            if count.frames > 0 {
                *self.reasons.entry(reason.clone()).or_default() += count.frames;
            }
        }
    }

    /// What has come to those before.
    pub(super) fn since(&self, before: &Counted) -> Counted {
        let reasons = self.reasons.iter();
        let more = reasons.map(|(reason, &frames)| (reason.clone(), frames - before.of(reason)));
        Counted {
            judged: self.judged - before.judged,
            dropped: self.dropped - before.dropped,
            reasons: more.filter(|&(_, frames)| frames > 0).collect(),
        }
    }

    pub(super) fn of(&self, reason: &str) -> u64 {
        self.reasons.get(reason).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_before_is_not_counted() {
        let counted = |judged, ours, group| Counted {
            judged,
            dropped: judged / 2,
            reasons: [("ours".to_owned(), ours), ("group".to_owned(), group)].into(),
        };
        let since = counted(10, 7, 3).since(&counted(4, 1, 3));
        assert_eq!((since.judged, since.dropped), (6, 3));
        assert_eq!((since.of("ours"), since.of("group")), (6, 0));
        assert!(!since.reasons.contains_key("group"));
    }
}
