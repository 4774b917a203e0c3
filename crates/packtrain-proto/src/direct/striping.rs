//! Whether frames of one flow may take turns between a path and others, past the engines.
//!
//! There nothing puts them in order again but the receiver's TCP. That bears a little disorder, and takes what is
//! long behind for lost. So the peer counts what comes long after later frames of its flow, and says it with its counts of
//! direct frames (LATE). Is much late by a path, the engine takes over what goes there, for it keeps the order. But where
//! the link is seen to be faster than an engine is sure to be, flows only keep to one link each, for a while.

use super::DIRECT_CALM;
use crate::time::{Duration, Instant};

/// Fewer frames than these say nothing: what is late comes in frames of up to 45 segments.
const JUDGED_MIN: u32 = 16_384;
/// One of so many that is late is too much.
const LATE_SHARE: u32 = 128;
/// Given up again so soon after it was tried again, it is left alone for twice as long, up to …
const AGAIN: Duration = Duration::from_secs(60);
const REST_MAX: Duration = Duration::from_secs(64);

#[derive(Debug, Default)]
pub struct Striping {
    /// What the peer has said last, and what it had said when it was judged last. `None`: it does not look at it.
    heard: Option<Sample>,
    judged: Sample,
    judged_at: Instant,
    /// Too much was late when it was judged last.
    is_doubted: bool,
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

impl Sample {
    fn since(self, before: Sample) -> Sample {
        Sample {
            received: self.received.wrapping_sub(before.received),
            late: self.late.wrapping_sub(before.late),
        }
    }
}

impl Striping {
    pub fn is_on(&self) -> bool {
        self.heard.is_some() && self.off_until.is_none()
    }

    /// The peer says what has come by this path. `None`: not too much of it was late, twice in a row. Else how many frames a
    /// second have come. `is_spread`: flows are, just now: what is late otherwise is late for other reasons.
    pub fn on_report(
        &mut self,
        received: u32,
        late: Option<u32>,
        is_spread: bool,
        now: Instant,
    ) -> Option<f64> {
        let Some(late) = late else {
            self.heard = None;
            return None;
        };
        let sample = Sample { received, late };
        let before = self.heard.replace(sample);
        let more = before.map(|before| sample.since(before));
        // The first one, or the peer has counted anew meanwhile, or says what cannot be.
        let Some(more) = more.filter(|more| more.late <= more.received) else {
            self.begin(sample, now);
            return None;
        };
        self.late += u64::from(more.late);
        if !is_spread {
            self.begin(sample, now);
            return None;
        }
        let more = sample.since(self.judged);
        if more.received < JUDGED_MIN {
            return None;
        }
        let was_doubted = self.is_doubted;
        let took = now.since(self.judged_at).as_secs_f64();
        self.begin(sample, now);
        self.is_doubted = more.late.saturating_mul(LATE_SHARE) >= more.received;
        (self.is_doubted && was_doubted).then(|| f64::from(more.received) / took)
    }

    fn begin(&mut self, sample: Sample, now: Instant) {
        (self.judged, self.judged_at) = (sample, now);
        self.is_doubted = false;
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

        /// Twice as many, in two reports.
        fn come(&mut self, received: u32, late: u32) -> bool {
            self.report(received, late) | self.report(received, late)
        }

        fn report(&mut self, received: u32, late: u32) -> bool {
            self.received = self.received.wrapping_add(received);
            self.late = self.late.wrapping_add(late);
            self.ms += 50;
            let now = at(self.ms);
            self.striping.look(now);
            let is_spread = self.striping.is_on();
            let report = (self.received, Some(self.late));
            let rate = self.striping.on_report(report.0, report.1, is_spread, now);
            if let Some(rate) = rate {
                let expected = f64::from(received) * 20.0;
                assert!((rate / expected - 1.0).abs() < 0.01, "{rate} {expected}");
                self.striping.give_up(now);
            }
            rate.is_some()
        }
    }

    #[test]
    fn one_in_128_that_is_late_twice_in_a_row_ends_it_and_less_is_only_counted() {
        for start in [0, u32::MAX - 700] {
            let mut path = Path::new(start);
            assert!(!path.come(2 * JUDGED_MIN, 255));
            assert!(!path.report(2 * JUDGED_MIN, 256));
            assert!(!path.report(2 * JUDGED_MIN, 0));
            assert!(!path.report(2 * JUDGED_MIN, 256));
            assert!(path.striping.is_on());
            assert!(path.report(2 * JUDGED_MIN, 256));
            assert!(!path.striping.is_on());
            assert_eq!((path.striping.late, path.striping.given_up), (1278, 1));
        }
    }

    #[test]
    fn few_frames_are_judged_with_those_that_follow() {
        let mut path = Path::new(0);
        for _ in 0..40 {
            assert_eq!(
                path.striping.on_report(1000, Some(1000), true, at(50)),
                None
            );
        }
        // Those of a first window make it doubted, those of the next one end it.
        let mut path = Path::new(0);
        let reports = (1..).find(|_| {
            path.received += 512;
            path.late += 512;
            let (received, late) = (path.received, Some(path.late));
            path.striping
                .on_report(received, late, true, at(100))
                .is_some()
        });
        assert_eq!(reports, Some(2 * JUDGED_MIN / 512));
    }

    #[test]
    fn who_is_late_again_and_again_is_tried_more_and_more_seldom() {
        let mut path = Path::new(0);
        let mut rests = Vec::new();
        for _ in 0..8 {
            while !path.report(JUDGED_MIN, JUDGED_MIN) {}
            let begin = path.ms;
            while !path.striping.is_on() {
                path.report(5000, 0);
            }
            rests.push((path.ms - begin) / 1000);
        }
        assert_eq!(rests, [2, 4, 8, 16, 32, 64, 64, 64]);
        for _ in 0..1200 {
            assert!(!path.report(5000, 10));
        }
        assert!(path.come(JUDGED_MIN, JUDGED_MIN));
        path.ms += 2000;
        path.striping.look(at(path.ms));
        assert!(path.striping.is_on(), "that was long ago");
    }

    #[test]
    fn a_peer_that_does_not_look_gets_none_and_what_it_cannot_have_counted_says_nothing() {
        let mut path = Path::new(0);
        path.come(5000, 0);
        let mut report = |received, late| {
            let striping = &mut path.striping;
            let is_late = striping.on_report(received, late, true, at(5000)).is_some();
            (is_late, striping.is_on(), striping.late)
        };
        assert_eq!(report(6000, None), (false, false, 0));
        // Counts of another life say nothing, nor do such as go back.
        assert_eq!(report(9_000_000, Some(8_000_000)), (false, true, 0));
        assert_eq!(report(9_000_100, Some(7_000_000)), (false, true, 0));
        assert_eq!(report(9_000_200, Some(7_000_200)), (false, true, 0));
        path.striping.restart();
        assert!(!path.striping.is_on());
    }

    /// Retransmissions are late by their nature.
    #[test]
    fn while_nothing_is_spread_nothing_that_is_late_says_anything() {
        let mut path = Path::new(0);
        for n in 1..20 {
            let rate = path
                .striping
                .on_report(n * 5000, Some(n * 5000), false, at(u64::from(n)));
            assert_eq!(rate, None);
        }
        assert!(path.striping.is_on() && path.striping.late > 0);
    }
}
