//! Trains that must not overtake direct frames.
//!
//! A flow that comes back to the engine may have direct frames under way which its next train would overtake: in
//! the link's queues (`mq`, `fq_codel`, bands), by another link, or at the other end, where they wait for a processor
//! and the daemon has one. So that train, and those after it, say how many direct frames left before them, and the
//! receiver keeps them back until so many have come. It is the receiver who waits, since usually they have come
//! already: nothing is late then, however long the way.
//!
//! Both ends count, each from where it began. What lies between the two counts is learned when the path is
//! new, before any direct frame goes by it. Frames that are lost would be waited for in vain: when none came
//! for a while, what is missing is lost, and what lies between the counts is less from then on.

use super::DIRECT_WAYS_MAX;
use crate::link::LIMIT_UNKNOWN;
use crate::time::{Duration, Instant};
use crate::trunk::lane::{LANES_MAX, LaneId};
use crate::wire::sequence::Sequence;
use crate::wire::train::{Behind, Fence};

/// On one train: one for each way to the peer. One more takes the place of the oldest.
pub const FENCES_MAX: usize = DIRECT_WAYS_MAX;

/// How soon it is asked again how many have come, at first and at last.
const ASK_MIN: Duration = Duration::from_micros(50);
const ASK_MAX: Duration = Duration::from_millis(1);
/// When none has come for so long, and a round trip, none comes any more: the train may have taken a shorter way.
const QUIET: Duration = Duration::from_millis(20);
/// … unless the way is busy with full trains, or with such as say that they wait, behind which they may stand: until so many bytes of those have
/// come as a sender puts before a link whose rate it does not know yet.
const BUSY_BYTES: usize = LIMIT_UNKNOWN;
/// However many come, no train waits longer, but for a round trip.
const WAIT_MAX: Duration = Duration::from_millis(300);

/// Of a sender: what its trains to one peer say until one of them is acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub struct RaisedFences {
    fences: [Fence; FENCES_MAX],
    len: usize,
    /// Of each other lane, at most one.
    behind: [Behind; LANES_MAX - 1],
    behind_len: usize,
}

impl RaisedFences {
    pub fn is_empty(&self) -> bool {
        self.len == 0 && self.behind_len == 0
    }

    pub fn entries(&self) -> &[Fence] {
        &self.fences[..self.len]
    }

    pub fn raise(&mut self, fence: Fence) {
        let path = |of: &Fence| (of.link, of.remote_link);
        let mut raised = self.fences[..self.len].iter_mut();
        if let Some(same) = raised.find(|other| path(other) == path(&fence)) {
            // Those that wait since then wait for a few more.
            same.sent = fence.sent;
            return;
        }
        if self.len == FENCES_MAX {
            self.fences.rotate_left(1);
            self.len -= 1;
        }
        self.fences[self.len] = fence;
        self.len += 1;
    }

    /// Trains of other lanes that the next ones must not overtake either.
    pub fn behind(&self) -> &[Behind] {
        &self.behind[..self.behind_len]
    }

    pub fn raise_behind(&mut self, behind: Behind) {
        let mut raised = self.behind[..self.behind_len].iter_mut();
        if let Some(same) = raised.find(|other| other.lane == behind.lane) {
            // Those in between have said themselves behind what they come. Were they to wait for more, two lanes might for each
            // other.
            *same = behind;
        } else if let Some(free) = self.behind.get_mut(self.behind_len) {
            *free = behind;
            self.behind_len += 1;
        }
    }

    /// One train that said so was acknowledged.
    pub fn lower(&mut self) {
        self.len = 0;
        self.behind_len = 0;
    }
}

/// What a receiver does of one path.
#[derive(Debug, Default)]
pub struct FenceWait {
    /// What was counted as come, less what was counted as sent, where both were still.
    offset: Option<u32>,
    /// How many were sent before the trains that were let through last.
    passed: Option<u32>,
    awaited: Option<Awaited>,
    /// How often trains were to wait, and how often in vain.
    pub fences: u64,
    pub given_up: u64,
}

#[derive(Debug)]
struct Awaited {
    /// The first train of each lane that has to wait.
    from: [Option<Sequence>; LANES_MAX],
    sent: u32,
    since: Instant,
    /// How many had come when that was heard last, and when it was more than before.
    came: Option<u32>,
    came_at: Instant,
    /// Trains that have come since by the same way, and were full or said so: bytes, and when the last one did.
    busy_bytes: usize,
    busy_at: Instant,
    ask_at: Instant,
    ask_interval: Duration,
    /// Of the way that they come.
    round_trip: Duration,
}

impl Awaited {
    /// Whether none comes any more.
    fn is_quiet(&self, now: Instant) -> bool {
        let quiet = QUIET + self.round_trip;
        let is_busy = self.busy_bytes < BUSY_BYTES && now.since(self.busy_at) < QUIET;
        now.since(self.came_at) >= quiet && !is_busy
    }
}

impl FenceWait {
    /// The peer counts anew.
    pub fn restart(&mut self) {
        *self = FenceWait {
            fences: self.fences,
            given_up: self.given_up,
            ..FenceWait::default()
        };
    }

    /// So many had come when so many had been sent: the first time, nothing else is under way.
    pub fn on_counts(&mut self, sent: u32, came: u32) {
        self.offset.get_or_insert(came.wrapping_sub(sent));
    }

    /// A train of the lane says so of direct frames whose way there and back takes so long. Whether more trains wait, and the
    /// count is to be asked for.
    pub fn on_fence(
        &mut self,
        lane: LaneId,
        fence: &Fence,
        round_trip: Duration,
        now: Instant,
    ) -> bool {
        let is_newer = |than: u32| fence.sent.wrapping_sub(than) as i32 > 0;
        if self.offset.is_none() || !self.passed.is_none_or(is_newer) {
            return false;
        }
        if let Some(awaited) = &mut self.awaited {
            if is_newer(awaited.sent) {
                awaited.sent = fence.sent;
            }
            let from = &mut awaited.from[lane.place()];
            let is_first_of_lane = from.is_none();
            from.get_or_insert(fence.from);
            return is_first_of_lane;
        }
        let mut from = [None; LANES_MAX];
        from[lane.place()] = Some(fence.from);
        self.fences += 1;
        self.awaited = Some(Awaited {
            from,
            sent: fence.sent,
            since: now,
            came: None,
            came_at: now,
            busy_bytes: 0,
            busy_at: now,
            ask_at: now + ASK_MIN,
            ask_interval: ASK_MIN,
            round_trip,
        });
        true
    }

    /// So many have come by now.
    pub fn on_came(&mut self, came: u32, now: Instant) {
        let (Some(awaited), Some(offset)) = (&mut self.awaited, self.offset) else {
            return;
        };
        if awaited.came.replace(came) != Some(came) {
            awaited.came_at = now;
            awaited.busy_bytes = 0;
        }
        let missing = awaited.sent.wrapping_add(offset).wrapping_sub(came) as i32;
        if missing <= 0 {
            self.let_through();
        }
    }

    /// A train has come by the same way that is about as long as trains are where something waits for the link, or left right behind
    /// the direct frames.
    pub fn on_train_of_many(&mut self, bytes: usize, now: Instant) {
        if let Some(awaited) = &mut self.awaited {
            awaited.busy_bytes += bytes;
            awaited.busy_at = now;
        }
    }

    /// There is no room for more that would wait.
    pub fn give_up(&mut self) {
        self.given_up += u64::from(self.awaited.is_some());
        self.let_through();
    }

    fn let_through(&mut self) {
        if let Some(awaited) = self.awaited.take() {
            self.passed = Some(awaited.sent);
        }
    }

    /// What time makes of it; whether the count is to be asked for.
    pub fn handle_timeout(&mut self, now: Instant) -> bool {
        let Some(awaited) = &mut self.awaited else {
            return false;
        };
        if now < awaited.ask_at {
            return false;
        }
        // Only who was told is sure that none comes.
        let is_quiet = awaited.is_quiet(now);
        if is_quiet || now.since(awaited.since) >= WAIT_MAX + awaited.round_trip {
            self.given_up += 1;
            if let Some(came) = awaited.came.filter(|_| is_quiet) {
                self.offset = Some(came.wrapping_sub(awaited.sent));
            }
            self.let_through();
            return false;
        }
        awaited.ask_interval = (awaited.ask_interval * 2).min(ASK_MAX);
        awaited.ask_at = now + awaited.ask_interval;
        true
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        self.awaited.as_ref().map(|awaited| awaited.ask_at)
    }

    /// The first train of the lane that has to wait.
    pub fn holds_from(&self, lane: LaneId) -> Option<Sequence> {
        self.awaited.as_ref()?.from[lane.place()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LANE: LaneId = LaneId::FIRST;

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(us)
    }

    fn fence(link: u8, from: u32, sent: u32) -> Fence {
        Fence {
            link,
            remote_link: 0,
            from: Sequence(from),
            sent,
        }
    }

    /// The receiver's count was 1000 when the sender's was 0.
    fn wait() -> FenceWait {
        let mut wait = FenceWait::default();
        wait.on_counts(0, 1000);
        wait
    }

    #[test]
    fn trains_wait_until_as_many_have_come_as_had_left() {
        let mut wait = wait();
        assert!(wait.on_fence(LANE, &fence(0, 7, 10), Duration::ZERO, at(0)));
        assert_eq!(wait.holds_from(LANE), Some(Sequence(7)));
        wait.on_came(1009, at(1));
        assert_eq!(wait.holds_from(LANE), Some(Sequence(7)));
        wait.on_came(1010, at(2));
        assert_eq!((wait.holds_from(LANE), wait.poll_timeout()), (None, None));
        // Said again by the next train.
        assert!(!wait.on_fence(LANE, &fence(0, 7, 10), Duration::ZERO, at(3)));
        assert_eq!(wait.holds_from(LANE), None);
        assert!(wait.on_fence(LANE, &fence(0, 9, 11), Duration::ZERO, at(4)));
    }

    #[test]
    fn counts_wrap() {
        let mut wait = FenceWait::default();
        wait.on_counts(u32::MAX - 2, u32::MAX - 1);
        assert!(wait.on_fence(LANE, &fence(0, 7, 5), Duration::ZERO, at(0)));
        wait.on_came(5, at(1));
        assert!(wait.holds_from(LANE).is_some());
        wait.on_came(6, at(2));
        assert_eq!(wait.holds_from(LANE), None);
        assert!(
            !wait.on_fence(LANE, &fence(0, 7, u32::MAX), Duration::ZERO, at(3)),
            "an old one"
        );
    }

    #[test]
    fn without_counts_nobody_waits() {
        let mut wait = FenceWait::default();
        assert!(!wait.on_fence(LANE, &fence(0, 1, 5), Duration::ZERO, at(0)));
        assert_eq!(wait.holds_from(LANE), None);
    }

    #[test]
    fn a_later_fence_makes_those_that_wait_wait_for_more() {
        let mut wait = wait();
        assert!(wait.on_fence(LANE, &fence(0, 7, 10), Duration::ZERO, at(0)));
        assert!(!wait.on_fence(LANE, &fence(0, 9, 20), Duration::ZERO, at(1)));
        assert!(!wait.on_fence(LANE, &fence(0, 7, 10), Duration::ZERO, at(2)));
        wait.on_came(1019, at(3));
        assert_eq!(wait.holds_from(LANE), Some(Sequence(7)));
        wait.on_came(1020, at(4));
        assert_eq!(wait.holds_from(LANE), None);
    }

    /// Until it is given up: (microseconds, questions).
    fn wait_in_vain(wait: &mut FenceWait, came: impl Fn(u64) -> Option<u32>) -> (u64, u32) {
        let (mut asked, mut us) = (0, 0);
        while let Some(ask_at) = wait.poll_timeout() {
            us = ask_at.since(Instant::ZERO).as_micros() as u64;
            if wait.handle_timeout(ask_at) {
                asked += 1;
                if let Some(came) = came(us) {
                    wait.on_came(came, ask_at);
                }
            }
        }
        (us, asked)
    }

    #[test]
    fn what_is_lost_is_waited_for_once() {
        let mut wait = wait();
        assert!(wait.on_fence(LANE, &fence(0, 7, 10), Duration::ZERO, at(0)));
        let (us, asked) = wait_in_vain(&mut wait, |_| Some(1007));
        assert!((20_000..22_000).contains(&us), "{us}");
        assert!((20..40).contains(&asked), "{asked}");
        assert_eq!((wait.fences, wait.given_up), (1, 1));
        // The next ones need not come more than what has come.
        assert!(wait.on_fence(LANE, &fence(0, 9, 12), Duration::ZERO, at(0)));
        wait.on_came(1008, at(1));
        assert!(wait.holds_from(LANE).is_some());
        wait.on_came(1009, at(2));
        assert_eq!(
            (wait.holds_from(LANE), wait.fences, wait.given_up),
            (None, 2, 1)
        );
    }

    #[test]
    fn as_long_as_some_come_they_are_waited_for_but_not_for_ever() {
        let mut wait = wait();
        assert!(wait.on_fence(LANE, &fence(0, 7, 1_000_000), Duration::ZERO, at(0)));
        let (us, _) = wait_in_vain(&mut wait, |us| Some(1000 + us as u32 / 1000));
        assert!((300_000..302_000).contains(&us), "{us}");
        // Those that are still to come are not lost.
        assert!(wait.on_fence(LANE, &fence(0, 9, 1_000_010), Duration::ZERO, at(0)));
        wait.on_came(1_001_009, at(1));
        assert!(wait.holds_from(LANE).is_some());
        wait.on_came(1_001_010, at(1));
        assert_eq!(wait.holds_from(LANE), None);
    }

    #[test]
    fn what_has_no_room_to_wait_is_let_through_and_takes_nothing_for_lost() {
        let mut wait = wait();
        wait.give_up();
        assert_eq!(wait.given_up, 0, "nothing waits");
        assert!(wait.on_fence(LANE, &fence(0, 7, 10), Duration::ZERO, at(0)));
        wait.on_came(1007, at(1));
        wait.give_up();
        assert_eq!((wait.holds_from(LANE), wait.given_up), (None, 1));
        assert!(!wait.on_fence(LANE, &fence(0, 7, 10), Duration::ZERO, at(2)));
        assert!(wait.on_fence(LANE, &fence(0, 9, 11), Duration::ZERO, at(3)));
        wait.on_came(1010, at(4));
        assert!(wait.holds_from(LANE).is_some());
    }

    #[test]
    fn who_is_not_answered_does_not_wait_long_and_takes_nothing_for_lost() {
        let mut wait = wait();
        assert!(wait.on_fence(LANE, &fence(0, 7, 10), Duration::ZERO, at(0)));
        let (us, _) = wait_in_vain(&mut wait, |_| None);
        assert!((20_000..22_000).contains(&us), "{us}");
        assert!(wait.on_fence(LANE, &fence(0, 9, 11), Duration::ZERO, at(0)));
        wait.on_came(1010, at(1));
        assert!(wait.holds_from(LANE).is_some());
    }

    #[test]
    fn by_a_long_way_they_come_later_than_a_train_by_a_short_one() {
        let mut wait = wait();
        assert!(wait.on_fence(LANE, &fence(0, 7, 10), Duration::from_millis(50), at(0)));
        let (us, _) = wait_in_vain(&mut wait, |_| Some(1007));
        assert!((70_000..72_000).contains(&us), "{us}");
    }

    #[test]
    fn behind_full_trains_they_may_come_late_and_are_waited_for_until_many_bytes_have_passed() {
        let wait_beside = |train_bytes: usize, last_us: u64| {
            let mut wait = wait();
            assert!(wait.on_fence(LANE, &fence(0, 7, 10), Duration::ZERO, at(0)));
            let (mut us, mut next) = (0, 0);
            while let Some(ask_at) = wait.poll_timeout() {
                us = ask_at.since(Instant::ZERO).as_micros() as u64;
                while next <= us.min(last_us) {
                    wait.on_train_of_many(train_bytes, at(next));
                    next += 1000;
                }
                if wait.handle_timeout(ask_at) {
                    wait.on_came(1007, ask_at);
                }
            }
            us
        };
        // A slow way; what is lost holds it up no longer than to the end of all patience.
        assert!((300_000..302_000).contains(&wait_beside(100, u64::MAX)));
        assert!((127_000..131_000).contains(&wait_beside(2048, u64::MAX)));
        // A fast one, and one that has fallen silent.
        assert!((20_000..22_000).contains(&wait_beside(18_000, u64::MAX)));
        assert!((60_000..62_000).contains(&wait_beside(100, 40_000)));
    }

    #[test]
    fn a_train_says_what_is_newest_of_each_path_and_of_four_at_most() {
        let mut raised = RaisedFences::default();
        assert!(raised.is_empty());
        for (link, from, sent) in [
            (0, 1, 10),
            (0, 5, 20),
            (1, 6, 7),
            (2, 8, 9),
            (3, 8, 1),
            (4, 9, 2),
        ] {
            raised.raise(fence(link, from, sent));
        }
        let named = [
            fence(1, 6, 7),
            fence(2, 8, 9),
            fence(3, 8, 1),
            fence(4, 9, 2),
        ];
        assert_eq!(raised.entries(), named);
        raised.raise(fence(1, 9, 8));
        assert_eq!(raised.entries()[0], fence(1, 6, 8));
        raised.lower();
        assert!(raised.is_empty());
    }

    /// Two lanes that both come behind each other's newest would wait for each other if an older train came to wait for more.
    #[test]
    fn what_comes_behind_another_lane_does_so_from_the_train_on_of_which_that_was_said() {
        let mut raised = RaisedFences::default();
        let behind = |lane, from, last| Behind {
            lane,
            from: Sequence(from),
            last: Sequence(last),
        };
        raised.raise_behind(behind(1, 32, 13));
        raised.raise_behind(behind(2, 32, 5));
        raised.raise_behind(behind(1, 40, 16));
        assert!(!raised.is_empty());
        assert_eq!(raised.behind(), [behind(1, 40, 16), behind(2, 32, 5)]);
        raised.lower();
        assert!(raised.is_empty() && raised.behind().is_empty());
    }
}
