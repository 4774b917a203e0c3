//! Trains of a lane that come after some of others: frames of their flows went there before (BEHIND in docs/wire-format.md).
//!
//! That is so for a moment, when a class comes to name links, or others. What they wait for is under way; where it is lost, and
//! nothing behind it shows that, they would wait in vain.

use arrayvec::ArrayVec;

use crate::time::{Duration, Instant};
use crate::trunk::lane::{LANES_MAX, LaneId};
use crate::wire::sequence::Sequence;

/// How long is waited for what does not come, where nothing is held that came after it, and its sender says no more of its
/// lane.
const WAIT_MAX: Duration = Duration::from_millis(1200);
/// … and where all comes by one link, in order, or nearly: what has not come with the train behind it is lost.
const ONE_LINK_MAX: Duration = Duration::from_millis(50);
/// … and where something is held, which knows how long it waits itself.
const HELD_MAX: Duration = Duration::from_secs(6);
const LOSSLESS_MAX: Duration = Duration::from_secs(12);
/// Where nothing may be lost, its sender goes on to say what it has copies of until all has come. Who is silent for so long has
/// none, or is given up as a peer.
const LOSSLESS_SILENT_MAX: Duration = Duration::from_secs(4);
/// A sender has as many lanes, and says the same until it is heard.
const WAITS_MAX: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wait {
    /// The first train of this lane that has to.
    from: Sequence,
    other: LaneId,
    last: Sequence,
    since: Instant,
}

/// How far another lane is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The train that is due in it; `None`: nobody knows yet with which it begins.
    pub expected: Option<Sequence>,
    pub holds: bool,
    /// Its sender has no other link, and had none; and by what was heard of the lane nothing of it goes again.
    pub by_one_link: bool,
    /// What is missing in it is waited for as long as it may take.
    pub is_lossless: bool,
    /// When its sender last said anything of it.
    pub told_at: Instant,
}

/// Those of one lane.
#[derive(Debug, Default)]
pub struct LaneWaits {
    waits: Vec<Wait>,
    /// Up to which train of another lane nothing is waited for any more: it has come, or was waited for in vain.
    passed: [Option<Sequence>; LANES_MAX],
}

impl LaneWaits {
    /// Train `from` and those after it come behind the `last` of another lane.
    ///
    /// # Panics
    /// Of a lane that there cannot be.
    pub fn add(&mut self, from: Sequence, (other, last): (LaneId, Sequence), now: Instant) {
        let is_same = |wait: &Wait| (wait.other, wait.last) == (other, last);
        let passed = self.passed[other.place()];
        let is_over = passed.is_some_and(|passed| !last.is_newer_than(passed));
        if let Some(known) = self.waits.iter_mut().find(|wait| is_same(wait)) {
            // The train that said so first may come later.
            known.from = known.from.older_of(from);
        } else if self.waits.len() < WAITS_MAX && !is_over {
            self.waits.push(Wait {
                from,
                other,
                last,
                since: now,
            });
        }
    }

    /// Nothing is waited for of such lanes. Gives up to which train of which lanes something was.
    pub fn let_go(
        &mut self,
        of: impl Fn(LaneId) -> bool,
    ) -> ArrayVec<(LaneId, Sequence), WAITS_MAX> {
        let mut gone = ArrayVec::new();
        let passed = &mut self.passed;
        self.waits.retain(|wait| {
            let goes = of(wait.other);
            if goes {
                pass(passed, wait);
                gone.push((wait.other, wait.last));
            }
            !goes
        });
        gone
    }

    /// We were not running for so long: what is waited for may have come meanwhile, and stand in a socket.
    pub fn forgive(&mut self, away: Duration, now: Instant) {
        for wait in &mut self.waits {
            wait.since = (wait.since + away).min(now);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.waits.is_empty()
    }

    /// The lanes of which something is waited for.
    pub fn others(&self) -> impl Iterator<Item = LaneId> + '_ {
        self.waits.iter().map(|wait| wait.other)
    }

    /// The first train that has to wait.
    pub fn holds_from(&self) -> Option<Sequence> {
        let from = self.waits.iter().map(|wait| wait.from);
        from.reduce(Sequence::older_of)
    }

    /// Forgets what is over: it has come, or is waited for in vain. Gives up to which train of which lanes the latter is so.
    pub fn settle(
        &mut self,
        progress: impl Fn(LaneId) -> Option<Progress>,
        now: Instant,
    ) -> ArrayVec<(LaneId, Sequence), WAITS_MAX> {
        let mut in_vain = ArrayVec::new();
        let passed = &mut self.passed;
        self.waits.retain(|wait| {
            let other = progress(wait.other);
            let expected = other.and_then(|other| other.expected);
            let has_come = expected.is_some_and(|expected| expected.is_newer_than(wait.last));
            let waits = !has_come && now < wait.until(other);
            if !waits {
                pass(passed, wait);
            }
            if !waits && !has_come {
                in_vain.push((wait.other, wait.last));
            }
            waits
        });
        in_vain
    }

    pub fn poll_timeout(&self, progress: impl Fn(LaneId) -> Option<Progress>) -> Option<Instant> {
        let until = |wait: &Wait| wait.until(progress(wait.other));
        self.waits.iter().map(until).min()
    }
}

fn pass(passed: &mut [Option<Sequence>; LANES_MAX], wait: &Wait) {
    let passed = &mut passed[wait.other.place()];
    if passed.is_none_or(|passed| wait.last.is_newer_than(passed)) {
        *passed = Some(wait.last);
    }
}

impl Wait {
    fn until(&self, other: Option<Progress>) -> Instant {
        let within = match other {
            Some(other) if other.is_lossless => {
                let silent_at = other.told_at.max(self.since) + LOSSLESS_SILENT_MAX;
                let until = self.since + LOSSLESS_MAX;
                return if other.holds {
                    until
                } else {
                    until.min(silent_at)
                };
            }
            Some(other) if other.holds => HELD_MAX,
            Some(other) if other.by_one_link => ONE_LINK_MAX,
            _ => WAIT_MAX,
        };
        self.since + within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn due(expected: u32, holds: bool) -> impl Fn(LaneId) -> Option<Progress> {
        due_by(false, expected, holds)
    }

    fn due_by(
        by_one_link: bool,
        expected: u32,
        holds: bool,
    ) -> impl Fn(LaneId) -> Option<Progress> {
        move |lane| {
            let progress = Progress {
                expected: Some(Sequence(expected)),
                holds,
                by_one_link,
                is_lossless: false,
                told_at: Instant::ZERO,
            };
            (lane == LaneId(1)).then_some(progress)
        }
    }

    #[test]
    fn trains_wait_until_those_before_them_have_come_in_the_other_lane() {
        let mut waits = LaneWaits::default();
        for from in [7, 8, 9] {
            waits.add(Sequence(from), (LaneId(1), Sequence(20)), at(0));
        }
        assert_eq!(waits.holds_from(), Some(Sequence(7)));
        assert!(waits.settle(due(20, false), at(1)).is_empty());
        assert_eq!(waits.holds_from(), Some(Sequence(7)), "it is due itself");
        assert!(waits.settle(due(21, false), at(2)).is_empty());
        assert!(waits.is_empty() && waits.holds_from().is_none());
    }

    #[test]
    fn a_lane_of_which_nobody_knows_where_it_begins_has_brought_nothing() {
        let mut waits = LaneWaits::default();
        waits.add(Sequence(7), (LaneId(1), Sequence(20)), at(0));
        let begins_later = |_| {
            let known = due(21, false)(LaneId(1)).expect("it is this one");
            Some(Progress {
                expected: None,
                ..known
            })
        };
        assert!(waits.settle(begins_later, at(1)).is_empty());
        assert_eq!(waits.holds_from(), Some(Sequence(7)));
        assert!(waits.settle(due(21, false), at(2)).is_empty());
        assert!(waits.is_empty());
    }

    #[test]
    fn what_is_lost_is_waited_for_in_vain_for_so_long() {
        for (lane, holds, ms) in [(1, false, 1200), (1, true, 6000), (2, false, 1200)] {
            let mut waits = LaneWaits::default();
            waits.add(Sequence(7), (LaneId(lane), Sequence(20)), at(0));
            let progress = due(20, holds);
            assert_eq!(waits.poll_timeout(&progress), Some(at(ms)));
            assert!(waits.settle(&progress, at(ms - 1)).is_empty());
            assert!(!waits.is_empty());
            let in_vain = (LaneId(lane), Sequence(20));
            assert_eq!(waits.settle(&progress, at(ms))[..], [in_vain]);
            assert!(waits.is_empty() && waits.poll_timeout(&progress).is_none());
            // Said again by the next train.
            waits.add(Sequence(7), (LaneId(lane), Sequence(20)), at(ms));
            assert!(waits.is_empty());
            waits.add(Sequence(9), (LaneId(lane), Sequence(21)), at(ms));
            assert!(!waits.is_empty());
            assert!(waits.let_go(|other| other == LaneId(3)).is_empty());
            assert!(!waits.is_empty());
            let gone = (LaneId(lane), Sequence(21));
            assert_eq!(waits.let_go(|_| true)[..], [gone]);
            waits.add(Sequence(9), (LaneId(lane), Sequence(21)), at(ms));
            assert!(waits.is_empty());
        }
    }

    #[test]
    fn by_one_link_nothing_comes_much_later_than_what_left_behind_it() {
        for (holds, ms) in [(false, 50), (true, 6000)] {
            let mut waits = LaneWaits::default();
            waits.add(Sequence(7), (LaneId(1), Sequence(20)), at(0));
            let progress = due_by(true, 20, holds);
            assert_eq!(waits.poll_timeout(&progress), Some(at(ms)));
            let in_vain = (LaneId(1), Sequence(20));
            assert_eq!(waits.settle(&progress, at(ms))[..], [in_vain]);
            assert!(waits.is_empty());
        }
    }

    #[test]
    fn of_a_lane_in_which_nothing_may_be_lost_as_long_as_its_sender_speaks_of_it() {
        let progress = |told_ms: u64, holds: bool| {
            move |_| {
                Some(Progress {
                    expected: Some(Sequence(20)),
                    holds,
                    by_one_link: true,
                    is_lossless: true,
                    told_at: at(told_ms),
                })
            }
        };
        let mut waits = LaneWaits::default();
        waits.add(Sequence(7), (LaneId(1), Sequence(20)), at(1000));
        for (told_ms, holds, until_ms) in [
            (0, false, 5000),
            (2500, false, 6500),
            (12_900, false, 13_000),
            (0, true, 13_000),
        ] {
            let until = waits.poll_timeout(progress(told_ms, holds));
            assert_eq!(until, Some(at(until_ms)));
        }
        waits.forgive(Duration::from_millis(1500), at(2000));
        let until = waits.poll_timeout(progress(0, false));
        assert_eq!(until, Some(at(6000)), "not from a time to come");
    }

    #[test]
    fn of_trains_that_wait_for_the_same_the_first_may_come_last() {
        let mut waits = LaneWaits::default();
        for (from, first) in [(40, 40), (32, 32), (36, 32)] {
            waits.add(Sequence(from), (LaneId(1), Sequence(13)), at(0));
            assert_eq!(waits.holds_from(), Some(Sequence(first)));
        }
        assert_eq!(waits.waits.len(), 1);
    }

    #[test]
    fn nobody_makes_it_remember_more_than_a_sender_has_to_say() {
        let mut waits = LaneWaits::default();
        for last in 0..100 {
            waits.add(Sequence(last), (LaneId(1), Sequence(last)), at(0));
        }
        assert_eq!(waits.waits.len(), WAITS_MAX);
    }
}
