//! Whether frames of one flow may take turns between a path and others, past the engines.
//!
//! There nothing puts them in order again but the receiver's TCP. That bears a little disorder, and takes what is
//! long behind for lost. So the peer counts what comes long after later frames of its flow, and says it with its counts of
//! direct frames (LATE). Is much late by a path, the engine takes over what goes there, for it keeps the order. But where
//! the link is seen to be faster than an engine is sure to be, flows only keep to one link each, for a while.

use super::DIRECT_CALM;
use crate::time::{Duration, Instant};

/// Fewer frames than these say nothing.
const JUDGED_MIN: u32 = 1024;
/// One of so many that is late is too much.
const LATE_SHARE: u32 = 32;
/// Given up again so soon after it was tried again, it is left alone for twice as long, up to …
const AGAIN: Duration = Duration::from_secs(60);
const REST_MAX: Duration = Duration::from_secs(64);

#[derive(Debug, Default)]
pub struct Striping {
    /// What the peer has said last, and what it had said when it was judged last. `None`: it does not look at it.
    heard: Option<Sample>,
    judged: Sample,
    /// Until then it gets no such frames.
    off_until: Option<Instant>,
    /// When it was tried again last, and for how long it had been left alone.
    on_since: Instant,
    rest: Option<Duration>,
    /// Frames that were late by it, and how often that was too much.
    pub late: u64,
    pub given_up: u64,
}

/// Frames that had come, and which of them were late; both wrap.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    received: u32,
    late: u32,
}

impl Striping {
    pub fn is_on(&self) -> bool {
        self.heard.is_some() && self.off_until.is_none()
    }

    /// The peer says what has come by this path. Whether too much of it was late.
    pub fn on_report(&mut self, received: u32, late: Option<u32>) -> bool {
        let Some(late) = late else {
            self.heard = None;
            return false;
        };
        let sample = Sample { received, late };
        let Some(before) = self.heard.replace(sample) else {
            self.judged = sample;
            return false;
        };
        self.late += u64::from(late.wrapping_sub(before.late));
        let received = received.wrapping_sub(self.judged.received);
        let late = late.wrapping_sub(self.judged.late);
        if received < JUDGED_MIN {
            return false;
        }
        self.judged = sample;
        late.saturating_mul(LATE_SHARE) >= received && self.off_until.is_none()
    }

    /// It gets no more such frames, for a while.
    pub fn give_up(&mut self, now: Instant) {
        let rest = match self.rest {
            Some(rest) if now.since(self.on_since) < AGAIN => (rest * 2).min(REST_MAX),
            _ => DIRECT_CALM,
        };
        self.rest = Some(rest);
        self.off_until = Some(now + rest);
        self.given_up += 1;
    }

    /// A few times a second.
    pub fn look(&mut self, now: Instant) {
        if self.off_until.take_if(|until| *until <= now).is_some() {
            self.on_since = now;
        }
    }

    /// The peer counts anew.
    pub fn restart(&mut self) {
        self.heard = None;
    }
}

/// At which direct frames left a link's queue while they stood there, as long as that counts: a minute.
#[derive(Debug, Default)]
pub struct DirectRate {
    seen: Option<(u64, Instant)>,
}

impl DirectRate {
    pub fn set(&mut self, rate_bps: u64, now: Instant) {
        self.seen = Some((rate_bps, now));
    }

    pub fn get(&self, now: Instant) -> Option<u64> {
        let (rate_bps, at) = self.seen?;
        (now.since(at) < AGAIN).then_some(rate_bps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// A path whose peer looks at the order, and has counted so far.
    struct Path {
        striping: Striping,
        received: u32,
        late: u32,
        ms: u64,
    }

    impl Path {
        fn new(start: u32) -> Path {
            let mut path = Path {
                striping: Striping::default(),
                received: start,
                late: start,
                ms: 0,
            };
            assert!(!path.striping.is_on(), "nobody looks yet");
            path.come(0, 0);
            assert!(path.striping.is_on());
            path
        }

        fn come(&mut self, received: u32, late: u32) -> bool {
            self.received = self.received.wrapping_add(received);
            self.late = self.late.wrapping_add(late);
            self.ms += 50;
            let now = at(self.ms);
            self.striping.look(now);
            let is_late = self.striping.on_report(self.received, Some(self.late));
            if is_late {
                self.striping.give_up(now);
            }
            is_late
        }
    }

    #[test]
    fn one_in_thirty_two_that_is_late_ends_it_and_less_is_only_counted() {
        for start in [0, u32::MAX - 700] {
            let mut path = Path::new(start);
            assert!(!path.come(3200, 99));
            assert!(path.striping.is_on());
            assert!(path.come(3200, 100));
            assert!(!path.striping.is_on());
            assert_eq!((path.striping.late, path.striping.given_up), (199, 1));
        }
    }

    #[test]
    fn few_frames_are_judged_with_those_that_follow() {
        let mut path = Path::new(0);
        for _ in 0..5 {
            assert!(!path.come(200, 200));
        }
        assert!(path.come(24, 0));
    }

    #[test]
    fn who_is_late_again_and_again_is_tried_more_and_more_seldom() {
        let mut path = Path::new(0);
        let mut rests = Vec::new();
        for _ in 0..8 {
            while !path.come(2000, 2000) {}
            let begin = path.ms;
            while !path.striping.is_on() {
                path.come(2000, 0);
            }
            rests.push((path.ms - begin) / 1000);
        }
        assert_eq!(rests, [2, 4, 8, 16, 32, 64, 64, 64]);
        for _ in 0..1200 {
            assert!(!path.come(2000, 10));
        }
        assert!(path.come(2000, 2000));
        path.ms += 2000;
        path.striping.look(at(path.ms));
        assert!(path.striping.is_on(), "that was long ago");
    }

    #[test]
    fn a_peer_that_does_not_look_gets_none() {
        let mut path = Path::new(0);
        path.come(5000, 0);
        assert!(!path.striping.on_report(6000, None));
        assert!(!path.striping.is_on());
        // Counts of another life say nothing.
        assert!(!path.striping.on_report(9_000_000, Some(8_000_000)));
        assert!(path.striping.is_on());
        path.striping.restart();
        assert!(!path.striping.is_on());
        assert!(!path.striping.on_report(5000, Some(4000)));
        assert_eq!(path.striping.late, 0);
    }
}
