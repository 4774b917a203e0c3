//! When something is due of which peer, so that a round in which nothing is need not ask all of them.
//!
//! Whoever is given a peer to change makes it *touched*: it is looked at, and its times are asked anew
//! once the round is over. Of all others the earliest time is known. So a time cannot be forgotten by
//! forgetting to tell of it.

use crate::time::Instant;

/// Touched: due at once. What is settled is never as early.
const TOUCHED: Instant = Instant::ZERO;
pub(crate) const FIRST: Instant = Instant::from_nanos(1);
const NEVER: Instant = Instant::from_nanos(u64::MAX);

#[derive(Debug, Default)]
pub struct DueTimes {
    /// By slot.
    at: Vec<Instant>,
    touched: Vec<usize>,
}

impl DueTimes {
    /// Called many times in a round, for the same slot mostly.
    #[inline]
    pub fn touch(&mut self, slot: usize) {
        if self.at.get(slot) != Some(&TOUCHED) {
            self.touch_first(slot);
        }
    }

    /// Once in a round.
    #[inline(never)]
    fn touch_first(&mut self, slot: usize) {
        if slot >= self.at.len() {
            self.at.resize(slot + 1, NEVER);
        }
        self.at[slot] = TOUCHED;
        self.touched.push(slot);
    }

    /// The next slot from this one on that was touched, or of which something is due.
    pub fn next(&self, from: usize, now: Instant) -> Option<usize> {
        let rest = self.at.get(from..)?;
        let at = rest.iter().position(|&at| at <= now)?;
        Some(from + at)
    }

    pub fn touched(&self) -> &[usize] {
        &self.touched
    }

    /// One that was touched, to be settled.
    pub fn pop_touched(&mut self) -> Option<usize> {
        self.touched.pop()
    }

    pub fn settle(&mut self, slot: usize, due: Option<Instant>) {
        self.at[slot] = due.unwrap_or(NEVER).max(FIRST);
    }

    /// Of all that were settled.
    pub fn earliest(&self) -> Option<Instant> {
        let settled = self.at.iter().copied().filter(|&at| at != TOUCHED);
        settled.min().filter(|&at| at != NEVER)
    }

    /// What was settled of a slot; `None`: it was touched since.
    #[cfg(debug_assertions)]
    pub fn settled(&self, slot: usize) -> Option<Option<Instant>> {
        let at = self.at.get(slot).copied().filter(|&at| at != TOUCHED)?;
        Some((at != NEVER).then_some(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    fn due(times: &DueTimes, now: Instant) -> Vec<usize> {
        let next = |&slot: &usize| times.next(slot + 1, now);
        std::iter::successors(times.next(0, now), next).collect()
    }

    #[test]
    fn who_was_touched_is_due_until_settled_and_then_at_its_time() {
        let mut times = DueTimes::default();
        for slot in [4, 1, 4, 2] {
            times.touch(slot);
        }
        assert_eq!(times.touched(), [4, 1, 2]);
        assert_eq!(due(&times, Instant::ZERO), [1, 2, 4]);
        assert_eq!(times.earliest(), None);
        let settle = |times: &mut DueTimes, slot, due| {
            let touched = times.pop_touched();
            assert_eq!(touched, Some(slot));
            times.settle(slot, due);
        };
        settle(&mut times, 2, Some(at(30)));
        settle(&mut times, 1, None);
        settle(&mut times, 4, Some(at(20)));
        assert_eq!(
            (times.pop_touched(), times.earliest()),
            (None, Some(at(20)))
        );
        assert_eq!(due(&times, at(19)), [] as [usize; 0]);
        assert_eq!(due(&times, at(25)), [4]);
        assert_eq!(due(&times, at(30)), [2, 4]);
        times.touch(4);
        assert_eq!(
            (times.earliest(), due(&times, at(0))),
            (Some(at(30)), vec![4])
        );
    }

    #[test]
    fn what_is_due_since_ever_is_settled_too() {
        let mut times = DueTimes::default();
        times.touch(0);
        times.pop_touched();
        times.settle(0, Some(Instant::ZERO));
        assert!(
            times
                .earliest()
                .is_some_and(|at| at <= Instant::from_nanos(1))
        );
        times.touch(0);
        assert_eq!(times.touched(), [0]);
    }
}
