//! How long frames may be that pass a path: discovery by probes, as in RFC 8899, between two links.
//!
//! Both ends say what their links take. What stands between them may take less, or come to: then long frames vanish without a
//! word, and short ones pass. So a liveness message that is padded to a size asks whether that passes, and a short one goes right
//! behind it. When the other end has heard the long one, its size passes; when it has heard the short one, and the long one not, that is
//! lost: however long either takes. First of all what both links take is tried. Where that fails the longest of a few
//! common sizes that passes is used, and what lies between it and what has failed is halved, up to a few bytes. Trains
//! that are acknowledged show the same.
//!
//! ```text
//!             what both ends take passes
//!   VERIFY ─────────────────────────────────▶ COMPLETE ──── after 30 s, if it is less: once more ──┐
//!     ▲  │                                      ▲  ▲                                               │
//!     │  │ fails        passes                  │  └───────────────────────────────────────────────┘
//!     │  └──────▶ BASE ───────▶ SEARCH ─────────┘
//!     │            │  ▲            nothing left between
//!     │            └──┘ fails: the next smaller
//!     └──── long trains are lost, and short ones are not; or the link comes back
//! ```

use crate::time::{Duration, Instant};
use crate::wire::ethernet::HEADER_LEN;

/// Sizes that are tried in turn, bytes of frames: of Ethernet, and of the links that IPv6 and IPv4 ask for at least; and of
/// what trains need.
const COMMON: [usize; 4] = [
    1500 + HEADER_LEN,
    1280 + HEADER_LEN,
    576 + HEADER_LEN,
    256 + HEADER_LEN,
];
/// What is found is at most that much shorter than what passes.
const GRAIN: usize = 16;
/// So many polls of a size go unanswered before it counts as one that fails.
const TRIES: u8 = 3;
/// … where only a few bytes hang on it.
const TRIES_OF_SEARCH: u8 = 2;
/// A path that takes less than its links is asked again so much later.
const RAISE_AFTER: Duration = Duration::from_secs(30);
/// What has passed is not doubted for so long.
const TRUSTED_FOR: Duration = Duration::from_millis(100);
/// Two tries of a size are that far apart, so that no burst takes both.
const TRIES_APART: Duration = Duration::from_millis(10);
/// The short message goes again when nothing was heard for two round trips, these at least, then after twice the time.
const WAIT_MIN: Duration = Duration::from_millis(20);
const WAIT_MAX: Duration = Duration::from_secs(1);
/// … and before a round trip is known.
const WAIT_FIRST: Duration = Duration::from_millis(100);

/// What is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// A frame of so many bytes.
    Long(usize),
    Short,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// The long one is to go once more.
    Again,
    /// The short one is to go.
    Behind,
    /// It went, with this count.
    Asked(u32),
}

/// A size that is being tried.
#[derive(Clone, Copy, Debug)]
struct Poll {
    size: usize,
    /// The count of the first message of that length.
    first: u32,
    tries: u8,
    step: Step,
    /// When that is to be done; or, of what was asked, when it is asked again.
    due: Instant,
    wait: Duration,
}

#[derive(Debug)]
pub struct PathMtu {
    /// What the links of both ends take.
    nominal: usize,
    /// What is used while nothing has passed and nothing has failed.
    begun_with: usize,
    /// The longest that has passed, and the shortest that has not, or one more than is tried.
    passes: Option<usize>,
    fails: usize,
    /// It passed, and may not any more.
    doubted: Option<usize>,
    /// It is time to ask for all again.
    raises: bool,
    poll: Option<Poll>,
    /// When a size was found to pass or not, last.
    found_at: Instant,
    /// Nothing is sent before.
    next_at: Instant,
}

impl PathMtu {
    /// `nominal`: bytes of the longest frame that the links of both ends take. `trusted`: such have been sent by it.
    pub fn new(nominal: usize, trusted: bool, now: Instant) -> PathMtu {
        PathMtu {
            nominal,
            begun_with: match trusted {
                true => nominal,
                false => nominal.min(COMMON[0]),
            },
            passes: None,
            fails: nominal + 1,
            doubted: None,
            raises: false,
            poll: None,
            found_at: now,
            next_at: now,
        }
    }

    /// Bytes of the longest frame that is sent by it.
    pub fn bytes(&self) -> usize {
        let found = self.doubted.or(self.passes);
        let found = found.unwrap_or_else(|| match self.fails > self.nominal {
            true => self.begun_with,
            false => common_below(self.fails).unwrap_or(COMMON[COMMON.len() - 1]),
        });
        found.min(self.nominal)
    }

    /// … without its header.
    pub fn payload(&self) -> u16 {
        payload(self.bytes())
    }

    /// … that both ends take.
    pub fn payload_of_ends(&self) -> u16 {
        payload(self.nominal)
    }

    /// It has shown that less passes than both links take.
    pub fn is_less(&self) -> bool {
        self.fails <= self.nominal
    }

    /// The links take something else from now on.
    pub fn set_nominal(&mut self, nominal: usize) {
        if nominal == self.nominal {
            return;
        }
        if self.fails > self.nominal || self.fails > nominal {
            self.fails = nominal + 1;
        }
        self.begun_with = self.begun_with.min(nominal);
        self.passes = self.passes.map(|bytes| bytes.min(nominal));
        self.doubted = self.doubted.map(|bytes| bytes.min(nominal));
        self.nominal = nominal;
        self.poll = None;
    }

    /// Long frames are lost on it: what has passed is asked again.
    pub fn doubt(&mut self, now: Instant) {
        let is_fresh = now.since(self.found_at) < TRUSTED_FOR;
        if !is_fresh && self.poll.is_none() {
            self.doubted = self.passes;
        }
    }

    /// It was away, and may lead another way now.
    pub fn restart(&mut self) {
        self.poll = None;
        self.doubted = self.passes;
    }

    /// Nothing can be sent now.
    pub fn postpone(&mut self, until: Instant) {
        self.next_at = self.next_at.max(until);
    }

    /// Whether it is known what passes.
    pub fn is_known(&self) -> bool {
        self.passes.is_some() || self.is_less()
    }

    /// … and nothing is left to be asked.
    pub fn is_settled(&self) -> bool {
        self.is_known() && self.next().is_none()
    }

    /// What is to be asked next, and how often at most.
    fn next(&self) -> Option<(usize, u8)> {
        if let Some(bytes) = self.doubted {
            return Some((bytes, TRIES));
        }
        if self.raises {
            return Some((self.nominal, 1));
        }
        match self.passes {
            None if self.fails > self.nominal => Some((self.nominal, TRIES)),
            None => common_below(self.fails).map(|bytes| (bytes, TRIES)),
            // Nothing has failed yet.
            Some(passes) if self.fails > self.nominal => {
                (passes < self.nominal).then_some((self.nominal, TRIES))
            }
            Some(passes) => {
                let between = self.fails - passes;
                (between > GRAIN).then_some((passes + between / 2, TRIES_OF_SEARCH))
            }
        }
    }

    /// When something is to be sent; `None`: there is nothing to ask.
    pub fn ask_at(&self) -> Option<Instant> {
        let due = match (&self.poll, self.next()) {
            (Some(poll), _) => poll.due,
            (None, Some(_)) => Instant::ZERO,
            (None, None) if self.is_less() => self.found_at + RAISE_AFTER,
            (None, None) => return None,
        };
        Some(due.max(self.next_at))
    }

    /// What is to be sent now, by the message of this count. `round_trip`: of messages.
    pub fn take_ask(
        &mut self,
        round_trip: Option<Duration>,
        count: u32,
        now: Instant,
    ) -> Option<Ask> {
        if self.ask_at().is_none_or(|at| at > now) {
            return None;
        }
        let Some(poll) = &mut self.poll else {
            self.raises = self.next().is_none();
            let (size, _) = self.next()?;
            self.poll = Some(Poll {
                size,
                first: count,
                tries: 1,
                step: Step::Behind,
                due: now,
                wait: round_trip.map_or(WAIT_FIRST, |round_trip| (round_trip * 2).max(WAIT_MIN)),
            });
            return Some(Ask::Long(size));
        };
        match poll.step {
            Step::Again => {
                poll.tries += 1;
                (poll.step, poll.due) = (Step::Behind, now);
                return Some(Ask::Long(poll.size));
            }
            Step::Behind => poll.step = Step::Asked(count),
            Step::Asked(_) => poll.wait = (poll.wait * 2).min(WAIT_MAX),
        }
        poll.due = now + poll.wait;
        Some(Ask::Short)
    }

    /// The newest messages that the other end has heard: of any length, and of the long ones.
    pub fn on_heard(&mut self, heard: u32, heard_long: u32, now: Instant) {
        let tries_max = self.next().map_or(0, |(_, tries_max)| tries_max);
        let Some(poll) = &mut self.poll else {
            return;
        };
        let has_heard =
            |count: u32, heard: u32| heard != 0 && heard.wrapping_sub(count) as i32 >= 0;
        if has_heard(poll.first, heard_long) {
            let size = poll.size;
            self.found_at = now;
            return self.on_passed(size);
        }
        let Step::Asked(behind) = poll.step else {
            return;
        };
        if !has_heard(behind, heard) {
            return;
        }
        if poll.tries < tries_max {
            (poll.step, poll.due) = (Step::Again, now + TRIES_APART);
            return;
        }
        let size = poll.size;
        self.poll = None;
        self.found_at = now;
        if self.doubted.take().is_some() {
            self.passes = None;
            self.fails = size;
        } else if !std::mem::take(&mut self.raises) {
            self.fails = size;
        }
    }

    /// A frame of so many bytes has arrived.
    pub fn on_passed(&mut self, bytes: usize) {
        // The links may take less by now.
        let bytes = bytes.min(self.nominal);
        let shows_more = bytes >= self.bytes();
        let is_asked = self.poll.is_some_and(|poll| poll.size <= bytes);
        if is_asked {
            self.poll = None;
            self.raises = false;
        }
        if self.doubted.is_some_and(|doubted| doubted <= bytes) {
            self.doubted = None;
        }
        if !is_asked && !shows_more {
            return;
        }
        self.passes = Some(self.passes.map_or(bytes, |passes| passes.max(bytes)));
        if self.fails <= bytes {
            self.fails = self.nominal + 1;
        }
    }
}

fn payload(frame_bytes: usize) -> u16 {
    u16::try_from(frame_bytes - HEADER_LEN).unwrap_or(u16::MAX)
}

fn common_below(bytes: usize) -> Option<usize> {
    COMMON.into_iter().find(|&common| common < bytes)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);
    const ROUND_TRIP: Duration = Duration::from_millis(5);

    /// A path on a wire of a rate, behind a queue in which other things stand; looked at each millisecond. The other end
    /// answers each message.
    struct Wire {
        mtu: PathMtu,
        takes: usize,
        rate_bps: u64,
        is_dead: bool,
        now: Instant,
        count: u32,
        /// When the last bit of the queue has left.
        free_at: Instant,
        under_way: VecDeque<(Instant, u32, usize)>,
        heard: [u32; 2],
        answers: VecDeque<(Instant, [u32; 2])>,
        polls: Vec<usize>,
        messages: usize,
    }

    impl Wire {
        fn new(nominal: usize, trusted: bool, takes: usize) -> Wire {
            let now = Instant::ZERO + Duration::from_secs(1);
            Wire {
                mtu: PathMtu::new(nominal, trusted, now),
                takes,
                rate_bps: 1_000_000_000,
                is_dead: false,
                now,
                count: 0,
                free_at: now,
                under_way: VecDeque::new(),
                heard: [0; 2],
                answers: VecDeque::new(),
                polls: Vec::new(),
                messages: 0,
            }
        }

        fn put(&mut self, bytes: usize) {
            let nanos = bytes as u64 * 8 * 1_000_000_000 / self.rate_bps;
            self.free_at = self.free_at.max(self.now) + Duration::from_nanos(nanos);
        }

        /// `stands`: bytes that others keep in the queue.
        fn run_behind(&mut self, time: Duration, stands: usize) {
            let end = self.now + time;
            while self.now < end {
                self.now += MS;
                let standing =
                    Duration::from_nanos(stands as u64 * 8 * 1_000_000_000 / self.rate_bps);
                self.free_at = self.free_at.max(self.now + standing);
                while let Some((_, count, len)) = self.under_way.pop_front_if(|m| m.0 <= self.now) {
                    self.heard[0] = count;
                    if len > 64 {
                        self.heard[1] = count;
                    }
                    self.answers
                        .push_back((self.now + ROUND_TRIP / 2, self.heard));
                }
                while let Some((_, [heard, long])) = self.answers.pop_front_if(|a| a.0 <= self.now)
                {
                    self.mtu.on_heard(heard, long, self.now);
                }
                self.count += 1;
                while let Some(ask) = self.mtu.take_ask(Some(ROUND_TRIP), self.count, self.now) {
                    self.messages += 1;
                    let len = match ask {
                        Ask::Long(size) => {
                            self.polls.push(size);
                            size
                        }
                        Ask::Short => 60,
                    };
                    self.put(len);
                    if len <= self.takes && !self.is_dead {
                        let at = self.free_at + ROUND_TRIP / 2;
                        self.under_way.push_back((at, self.count, len));
                    }
                    self.count += 1;
                }
            }
        }

        fn run(&mut self, time: Duration) {
            self.run_behind(time, 0);
        }
    }

    #[test]
    fn neither_a_slow_link_nor_what_stands_before_it_is_taken_for_a_small_one() {
        for (rate_bps, stands) in [
            (64_000, 0),
            (1_000_000, 0),
            (1_000_000, 60_000),
            (100_000_000, 4 << 20),
        ] {
            let mut wire = Wire::new(9014, false, 9014);
            wire.rate_bps = rate_bps;
            wire.run_behind(5000 * MS, stands);
            assert_eq!(
                wire.mtu.bytes(),
                9014,
                "{rate_bps} {stands}: {:?}",
                wire.mtu
            );
            assert_eq!(wire.polls, [9014]);
            assert!(wire.messages <= 10, "{}", wire.messages);
            wire.mtu.doubt(wire.now);
            wire.run_behind(5000 * MS, stands);
            assert_eq!((wire.mtu.bytes(), wire.polls.len()), (9014, 2));
        }
    }

    #[test]
    fn what_trains_have_shown_is_not_asked() {
        let mut mtu = PathMtu::new(9014, true, Instant::ZERO);
        mtu.on_passed(1000);
        assert!(mtu.bytes() == 9014 && !mtu.is_known() && mtu.ask_at().is_some());
        mtu.on_passed(9014);
        assert!(mtu.bytes() == 9014 && mtu.is_known() && mtu.ask_at().is_none());
        let later = Instant::ZERO + Duration::from_secs(9);
        mtu.doubt(later);
        assert_eq!(mtu.take_ask(None, 1, later), Some(Ask::Long(9014)));
        mtu.on_passed(9014);
        assert_eq!((mtu.ask_at(), mtu.bytes()), (None, 9014));
    }

    #[test]
    fn who_cannot_send_is_asked_for_nothing_meanwhile() {
        let now = Instant::ZERO + Duration::from_secs(1);
        let mut mtu = PathMtu::new(1514, false, now);
        mtu.postpone(now + 5 * MS);
        assert_eq!(mtu.ask_at(), Some(now + 5 * MS));
        assert_eq!(mtu.take_ask(None, 1, now + 4 * MS), None);
        assert!(mtu.take_ask(None, 1, now + 5 * MS).is_some());
    }

    #[test]
    fn what_both_links_take_is_asked_once_and_used_when_it_passes() {
        let mut wire = Wire::new(9014, false, 9014);
        assert_eq!(wire.mtu.bytes(), 1514, "nobody knows yet");
        wire.run(100 * MS);
        assert_eq!((wire.mtu.bytes(), &wire.polls[..]), (9014, &[9014][..]));
        assert!(!wire.mtu.is_less() && wire.mtu.ask_at().is_none());
        // What trains go by already is not shortened for being asked.
        let mut used = Wire::new(9014, true, 9014);
        assert_eq!(used.mtu.bytes(), 9014);
        used.run(100 * MS);
        assert_eq!((used.mtu.bytes(), used.polls.len()), (9014, 1));
    }

    #[test]
    fn a_path_that_takes_less_than_its_links_is_found_out_within_a_second_and_asked_again_later() {
        for takes in [9013, 8000, 1514, 1513, 1494, 1295, 600, 280] {
            let mut wire = Wire::new(9014, true, takes);
            wire.run(300 * MS);
            assert!(wire.mtu.bytes() <= takes, "{takes}: {:?}", wire.mtu);
            wire.run(700 * MS);
            let found = wire.mtu.bytes();
            assert!(found <= takes && found + GRAIN > takes, "{takes}: {found}");
            assert!(wire.mtu.is_less(), "{takes}: {:?}", wire.mtu);
            let polls = wire.polls.len();
            wire.run(29 * Duration::from_secs(1));
            assert_eq!(wire.polls.len(), polls, "asked once only");
            wire.takes = 9014;
            wire.run(3 * Duration::from_secs(1));
            assert_eq!((wire.polls.len(), wire.mtu.bytes()), (polls + 1, 9014));
        }
    }

    #[test]
    fn what_comes_to_take_less_is_found_when_somebody_doubts_it() {
        let mut wire = Wire::new(9014, false, 9014);
        wire.run(1000 * MS);
        wire.mtu.doubt(wire.now);
        assert_eq!(wire.mtu.bytes(), 9014, "it may have been chance");
        wire.run(100 * MS);
        assert_eq!((wire.mtu.bytes(), wire.polls.len()), (9014, 2));
        wire.run(200 * MS);
        wire.takes = 1500;
        wire.mtu.doubt(wire.now);
        wire.run(200 * MS);
        assert!(wire.mtu.bytes() <= 1500, "{:?}", wire.mtu);
    }

    #[test]
    fn a_dead_link_shows_nothing_of_sizes() {
        let mut wire = Wire::new(9014, true, 9014);
        wire.is_dead = true;
        wire.run(2000 * MS);
        assert_eq!(wire.mtu.bytes(), 9014);
        assert!(wire.polls.iter().all(|size| *size == 9014));
        // Sooner where its session notices that it is back.
        wire.is_dead = false;
        wire.mtu.restart();
        wire.run(100 * MS);
        assert_eq!((wire.mtu.bytes(), wire.mtu.ask_at()), (9014, None));
    }

    #[test]
    fn links_that_take_something_else_are_asked_anew() {
        let mut wire = Wire::new(1514, false, 9014);
        wire.run(100 * MS);
        assert_eq!(wire.polls, [1514]);
        wire.mtu.set_nominal(9014);
        assert_eq!(wire.mtu.bytes(), 1514);
        wire.run(100 * MS);
        assert_eq!(
            (wire.mtu.bytes(), &wire.polls[..]),
            (9014, &[1514, 9014][..])
        );
        wire.mtu.set_nominal(1414);
        assert_eq!(wire.mtu.bytes(), 1414);
        wire.run(100 * MS);
        assert_eq!(wire.polls.len(), 2, "a shorter one passes too");
        wire.mtu.set_nominal(9014);
        wire.takes = 1414;
        wire.run(1000 * MS);
        let found = wire.mtu.bytes();
        assert!((1398..=1414).contains(&found), "{found}");
    }

    proptest! {
        /// Whatever happens to the wire, in the end what is used passes, and no less is used than can be.
        #[test]
        fn in_the_end_what_passes_is_used(
            steps in proptest::collection::vec((270usize..9100, 300usize..9100, any::<bool>(), 0u64..700), 1..12),
            trusted in any::<bool>(),
        ) {
            let mut wire = Wire::new(9014, trusted, 9014);
            for (takes, nominal, is_dead, ms) in steps {
                wire.takes = takes;
                wire.is_dead = is_dead;
                wire.mtu.set_nominal(nominal);
                wire.mtu.doubt(wire.now);
                wire.run(MS * ms as u32);
                prop_assert!(wire.mtu.bytes() <= nominal);
            }
            wire.is_dead = false;
            wire.run(1000 * MS);
            wire.mtu.doubt(wire.now);
            // All sizes in turn, and what both ends take once more.
            wire.run(40 * Duration::from_secs(1));
            let can = wire.takes.min(wire.mtu.nominal);
            let found = wire.mtu.bytes();
            prop_assert!(found <= can, "{} of {}: {:?}", found, can, wire.mtu);
            // What has failed before is tried no more, but for the longest.
            let known = if wire.mtu.is_less() { wire.mtu.fails - 1 } else { can };
            prop_assert!(found + GRAIN > can.min(known), "{} of {}: {:?}", found, can, wire.mtu);
        }
    }
}
