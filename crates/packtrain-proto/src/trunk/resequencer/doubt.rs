//! A link of ours that was taken away, and may be back at once: what it would have brought meanwhile, its sender
//! sends again by others as soon as it knows. What comes by that link later shows nothing until then.

use crate::time::Instant;
use crate::wire::sequence::Sequence;

#[derive(Debug, Default)]
pub(super) struct Doubt {
    until: Option<Instant>,
    /// What the sender said to go again before: for another link.
    replayed: Option<Sequence>,
}

impl Doubt {
    /// `replayed`: the newest train that the sender says to go again, if any does.
    pub(super) fn begin(&mut self, until: Instant, replayed: Option<Sequence>) {
        self.until = Some(until);
        self.replayed = replayed;
    }

    /// The sender knows when it says that more goes again than before.
    pub(super) fn on_told(&mut self, replayed: impl FnOnce() -> Option<Sequence>) {
        if self.until.is_none() {
            return;
        }
        let Some(replayed) = replayed() else {
            return;
        };
        if self.replayed.is_none_or(|r| replayed.is_newer_than(r)) {
            self.until = None;
        }
    }

    pub(super) fn until(&self) -> Option<Instant> {
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{LINK, WAIT_MAX, WAITS, drain, insert, told_at};
    use super::super::*;
    use crate::trunk::balance::span_trains_max;
    use crate::wire::train::REPLAYED;

    const NONE: [u32; 0] = [];
    const OTHER: LinkId = LinkId(1);
    const AGAIN: LinkId = LinkId(REPLAYED);

    /// Train 2 was under way when its link was taken away; what comes by that link now is newer.
    fn after_a_removal(now: Instant) -> Resequencer {
        let mut r = Resequencer::new(Sequence::FIRST, 1 << 24, WAITS);
        insert(&mut r, 1, LINK, now).unwrap();
        told_at(&mut r, 3, &[(OTHER, 2)], now);
        assert_eq!(drain(&mut r, now), [1]);
        r.on_link_removed(now);
        r.insert(Sequence(3), Some(OTHER), Buffer::with_capacity(64), 0, now)
            .unwrap();
        r
    }

    #[test]
    fn what_a_link_that_was_away_brings_makes_nobody_give_up_what_goes_again() {
        let now = Instant::from_nanos(1_000_000_000);
        let mut r = after_a_removal(now);
        assert!(r.poll(now + WAIT_MAX).is_none());
        assert_eq!(r.poll_timeout(), Some(now + STALL_MIN));
        let again = r.insert(Sequence(2), None, Buffer::with_capacity(64), 0, now);
        again.unwrap();
        assert!(r.poll(now).is_some() && r.poll(now).is_some());
    }

    #[test]
    fn once_the_sender_has_said_what_goes_again_links_show_what_is_lost_as_ever() {
        let now = Instant::from_nanos(1_000_000_000);
        let mut r = after_a_removal(now);
        told_at(&mut r, 3, &[(AGAIN, 2)], now);
        assert!(r.poll(now + WAIT_START * 2).is_none(), "it goes again");
        let later = now + WAIT_START * 3;
        told_at(&mut r, 4, &[], later);
        assert!(r.poll(later).is_none());
        assert!(r.poll(later + WAIT_START).is_some());
    }

    #[test]
    fn what_the_sender_says_of_another_link_is_no_word_of_this_one() {
        let now = Instant::from_nanos(1_000_000_000);
        let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
        told_at(&mut r, 8, &[(AGAIN, 5)], now);
        r.on_link_removed(now);
        for n in 1..=5 {
            insert(&mut r, n, LINK, now).unwrap();
        }
        assert_eq!(drain(&mut r, now), [1, 2, 3, 4, 5]);
        insert(&mut r, 8, OTHER, now).unwrap();
        told_at(&mut r, 9, &[(AGAIN, 5)], now);
        assert_eq!(
            drain(&mut r, now + WAIT_START * 2),
            NONE,
            "6 and 7 may come"
        );
    }

    #[test]
    fn so_far_behind_its_newest_train_no_sender_has_anything_under_way() {
        let now = Instant::from_nanos(1_000_000_000);
        let mut r = after_a_removal(now);
        let span = span_trains_max(0);
        for n in 4..2 + span {
            insert(&mut r, n, OTHER, now).unwrap();
        }
        told_at(&mut r, 2 + span, &[], now);
        assert!(r.poll(now + WAIT_START).is_none());
        insert(&mut r, 2 + span, OTHER, now).unwrap();
        assert!(r.poll(now + WAIT_START).is_some());
    }
}
