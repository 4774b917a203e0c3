//! How long frames may be that pass a path: discovery by probes, as in RFC 8899, between two links.
//!
//! Both ends say what their links take. What stands between them may take less, or come to: then long frames vanish without a
//! word, and short ones pass. So a poll that is padded to a size asks whether that passes; what is not answered in time
//! has failed, if the other end was heard since. First of all what both links take is tried. Where that fails the longest of a few
//! common sizes that passes is used, and what lies between it and what has failed is halved, up to a few bytes.
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
/// An answer takes no less, whatever the round trip was: it goes at once.
const TIMEOUT_MIN: Duration = Duration::from_millis(20);
/// … and before a round trip is known.
const TIMEOUT_FIRST: Duration = Duration::from_millis(100);

/// A poll that is out.
#[derive(Clone, Copy, Debug)]
struct Poll {
    size: usize,
    /// The counts of the first and the last message that asked for this size.
    first: u32,
    at: Instant,
    timeout: Duration,
    tries: u8,
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
    asked_last: Instant,
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
            asked_last: now,
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

    /// Long frames are lost on it, or it was away: what has passed is asked again.
    pub fn doubt(&mut self, now: Instant) {
        let is_fresh = now.since(self.asked_last) < TRUSTED_FOR;
        let Some(bytes) = self.passes.filter(|_| !is_fresh && self.poll.is_none()) else {
            return; // or it is being asked already
        };
        self.doubted = Some(bytes);
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

    /// When a poll is due; `None`: there is nothing to ask.
    pub fn poll_at(&self) -> Option<Instant> {
        match (&self.poll, self.next()) {
            (Some(poll), _) => Some(poll.at + poll.timeout),
            (None, Some(_)) => Some(Instant::ZERO),
            (None, None) => self.is_less().then_some(self.asked_last + RAISE_AFTER),
        }
    }

    /// The size of the poll that is to be sent now, if one is. `heard_at`: when anything was last heard by this path: before that
    /// it is not the size that is in the way. `round_trip`: of messages.
    pub fn take_poll(
        &mut self,
        heard_at: Instant,
        round_trip: Option<Duration>,
        count: u32,
        now: Instant,
    ) -> Option<usize> {
        if self.poll_at().is_none_or(|at| at > now) {
            return None;
        }
        let timeout = match round_trip {
            Some(round_trip) => (round_trip * 2).max(TIMEOUT_MIN),
            None => TIMEOUT_FIRST,
        };
        if let Some(poll) = self.poll {
            let tries_max = self.next().map_or(0, |(_, tries_max)| tries_max);
            let is_size_to_blame = heard_at > poll.at;
            let tries = poll.tries + u8::from(is_size_to_blame);
            if tries <= tries_max {
                self.poll = Some(Poll {
                    at: now,
                    timeout,
                    tries,
                    ..poll
                });
                return Some(poll.size);
            }
            self.poll = None;
            self.on_failed(poll.size, now);
        } else if self.next().is_none() {
            self.raises = true;
        }
        let (size, _) = self.next()?;
        self.poll = Some(Poll {
            size,
            first: count,
            at: now,
            timeout,
            tries: 1,
        });
        Some(size)
    }

    /// The other end has answered a poll; the newest that it has heard is `heard`.
    pub fn on_answer(&mut self, heard: u32, now: Instant) {
        let is_answer = |poll: &Poll| heard.wrapping_sub(poll.first) as i32 >= 0;
        let Some(poll) = self.poll.filter(is_answer) else {
            return;
        };
        self.poll = None;
        self.asked_last = now;
        self.raises = false;
        self.doubted = None;
        self.passes = Some(
            self.passes
                .map_or(poll.size, |passes| passes.max(poll.size)),
        );
        if self.fails <= poll.size {
            self.fails = self.nominal + 1;
        }
    }

    fn on_failed(&mut self, size: usize, now: Instant) {
        self.asked_last = now;
        if self.doubted.take().is_some() {
            self.passes = None;
            self.fails = size;
        } else if std::mem::take(&mut self.raises) {
            // As before.
        } else {
            self.fails = size;
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
    use super::*;
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);
    const ROUND_TRIP: Duration = Duration::from_millis(5);

    /// A path on a wire, asked each millisecond.
    struct Wire {
        mtu: PathMtu,
        takes: usize,
        is_dead: bool,
        now: Instant,
        heard_at: Instant,
        count: u32,
        polls: Vec<usize>,
    }

    impl Wire {
        fn new(nominal: usize, trusted: bool, takes: usize) -> Wire {
            let now = Instant::ZERO + Duration::from_secs(1);
            Wire {
                mtu: PathMtu::new(nominal, trusted, now),
                takes,
                is_dead: false,
                now,
                heard_at: now,
                count: 0,
                polls: Vec::new(),
            }
        }

        fn run(&mut self, time: Duration) {
            let end = self.now + time;
            let mut answer = None;
            while self.now < end {
                self.now += MS;
                if !self.is_dead {
                    self.heard_at = self.now;
                    if let Some((_, count)) = answer.take_if(|(at, _)| *at <= self.now) {
                        self.mtu.on_answer(count, self.now);
                    }
                }
                self.count += 1;
                let (heard, round_trip) = (self.heard_at, Some(ROUND_TRIP));
                let poll = self.mtu.take_poll(heard, round_trip, self.count, self.now);
                if let Some(size) = poll {
                    self.polls.push(size);
                    if size <= self.takes && !self.is_dead {
                        answer = Some((self.now + ROUND_TRIP, self.count));
                    }
                }
            }
        }
    }

    #[test]
    fn what_both_links_take_is_asked_once_and_used_when_it_passes() {
        let mut wire = Wire::new(9014, false, 9014);
        assert_eq!(wire.mtu.bytes(), 1514, "nobody knows yet");
        wire.run(100 * MS);
        assert_eq!((wire.mtu.bytes(), &wire.polls[..]), (9014, &[9014][..]));
        assert!(!wire.mtu.is_less() && wire.mtu.poll_at().is_none());
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
        wire.run(150 * MS);
        assert!(wire.mtu.bytes() <= 1500, "{:?}", wire.mtu);
    }

    #[test]
    fn a_dead_link_shows_nothing_of_sizes() {
        let mut wire = Wire::new(9014, true, 9014);
        wire.is_dead = true;
        wire.run(2000 * MS);
        assert_eq!(wire.mtu.bytes(), 9014);
        assert!(wire.polls.iter().all(|size| *size == 9014));
        wire.is_dead = false;
        wire.run(100 * MS);
        assert_eq!((wire.mtu.bytes(), wire.mtu.poll_at()), (9014, None));
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
            // All sizes in turn, and what was a shorter one for a while is asked again.
            wire.run(40 * Duration::from_secs(1));
            let can = wire.takes.min(wire.mtu.nominal);
            let found = wire.mtu.bytes();
            prop_assert!(found <= can, "{} of {}: {:?}", found, can, wire.mtu);
            // What took less once is raised only when all of it passes.
            prop_assert!(wire.mtu.is_less() || found == can, "{} of {}", found, can);
        }
    }
}
