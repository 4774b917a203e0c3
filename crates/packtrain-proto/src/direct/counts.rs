//! What two ends have counted of direct frames on one path, and what that says of the way between them.
//!
//! Direct frames carry no sequence. But each end counts them, and tells the other one now and then, in a
//! marker behind them, how many it has sent; the other one says how many of them it had received by then:
//!
//! ```text
//!   sender                                             receiver
//!     │ ─ direct frames ──────────────────────────────▶ │ counted by its guard
//!     │ ─ marker: sent 1000 ──────────────────────────▶ │
//!     │ ◀──────────── marker: of your 1000, I have 970 ─ │   30 lost, and a round trip
//! ```
//!
//! A frame that leaves between the reading of a count and the marker is counted by the receiver
//! alone. So a sample may show less loss than there was, never more: what is lost is how far the
//! difference has risen *at most*.

use crate::time::{Duration, Instant};
use crate::trunk::extreme::Extreme;
use crate::wire::train::DirectReport;

/// Fewer frames than these say nothing of loss.
const JUDGED_MIN: u32 = 64;
/// One in so many, and at least so many.
const LOSS_SHARE: u32 = 50;
const LOSS_MIN: u32 = 8;
/// A queue that nobody sees stands somewhere when so many samples in a row are so much later than the
/// earliest of late. More than an end whose processor is busy takes to answer.
const LATE: Duration = Duration::from_millis(20);
const LATE_SAMPLES: u32 = 6;
const ROUND_TRIP_PERIOD: Duration = Duration::from_secs(10);
/// Messages of which the time is known that they left at: of two round trips.
const ANNOUNCED_MAX: usize = 8;
/// So many in a row without an answer, for so long and a round trip and a half, are lost with many others.
const UNANSWERED: usize = 4;
const UNANSWERED_FOR: Duration = Duration::from_millis(150);
/// Called later than this, we may have been away, and answers wait to be read.
const AWAY: Duration = Duration::from_millis(150);
/// Between two messages at least; a third of a round trip where that is more, and this where it is not known.
const GAP_MIN: Duration = Duration::from_millis(40);
const GAP_UNKNOWN: Duration = Duration::from_millis(500);
/// A peer that has not answered so often does not know how.
const FIRST_WORDS_MAX: u32 = 10;
/// A receiver that has as many more than were sent has counted before we did.
const AHEAD_MAX: i32 = 4096;

/// What the counts say against the direct path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Frames are lost on the way.
    Loss,
    /// They stand in a queue that is not the link's own.
    Delay,
}

/// What a report of the peer leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// The peer wants to know how many of its frames have come.
    pub asks: bool,
    pub signal: Option<Signal>,
}

#[derive(Debug, Default)]
pub struct DirectCounts {
    /// Frames that we have sent.
    sent: u32,
    announced: [Option<Announced>; ANNOUNCED_MAX],
    first_words: u32,
    /// When we were told last what was sent.
    counted_at: Instant,
    /// What the peer has said last that it has sent.
    asked: Option<u32>,
    /// What it is answered: what it had said, and how many had come after that was heard.
    seen_sent: u32,
    seen_received: u32,
    /// Something is to be said.
    due: bool,
    judged: Option<Judged>,
    lost: u64,
    round_trip_min: Extreme<Duration>,
    late: u32,
}

/// What the peer was told, the last first.
#[derive(Clone, Copy, Debug)]
struct Announced {
    sent: u32,
    at: Instant,
    is_answered: bool,
}

/// Where the judgement of loss stands.
#[derive(Clone, Copy, Debug)]
struct Judged {
    sent: u32,
    /// How many more were sent than received, at most so far.
    missing_max: i32,
}

impl DirectCounts {
    /// We have sent so many, ever.
    pub fn on_sent(&mut self, frames: u32, now: Instant) -> Option<Signal> {
        self.sent = frames;
        if now.since(core::mem::replace(&mut self.counted_at, now)) > AWAY {
            self.forget_unanswered();
        }
        let least = self.least_round_trip();
        let gap = least.map_or(GAP_UNKNOWN, |least| GAP_MIN.max(least / 3));
        // The first word tells where both begin, so it is said until it was heard.
        let may_be_unheard = least.is_none() && self.first_words < FIRST_WORDS_MAX;
        self.due |= self.announced[0].is_none_or(|last| {
            (last.sent != frames || may_be_unheard) && now.since(last.at) >= gap
        });
        self.is_unanswered(now).then_some(Signal::Loss)
    }

    /// Nothing is heard of what was said, by a peer that has answered before.
    fn is_unanswered(&mut self, now: Instant) -> bool {
        let Some(round_trip) = self.least_round_trip() else {
            return false;
        };
        let last = self.announced.iter().flatten();
        let unanswered = last.take_while(|said| !said.is_answered);
        let oldest = unanswered.enumerate().last();
        let patience = UNANSWERED_FOR + round_trip * 3 / 2;
        let is_over = oldest.is_some_and(|(others, said)| {
            others + 1 >= UNANSWERED && now.since(said.at) >= patience
        });
        if is_over {
            self.forget_unanswered();
        }
        is_over
    }

    /// A queue that stands on the way is no reason to be patient.
    fn least_round_trip(&self) -> Option<Duration> {
        self.round_trip_min.get(Duration::min)
    }

    fn forget_unanswered(&mut self) {
        let announced = self.announced.iter_mut().flatten();
        announced.for_each(|said| said.is_answered = true);
    }

    /// Of what the peer asked for, so many had come.
    pub fn on_received(&mut self, frames: u32) {
        // Both at once: a message that leaves before we know must not say the one without the other.
        if let Some(asked) = self.asked {
            (self.seen_sent, self.seen_received) = (asked, frames);
            self.due = true;
        }
    }

    /// Whether something is to be said.
    pub fn is_due(&self) -> bool {
        self.due
    }

    /// What is to be said, if anything is.
    pub fn take_report(&mut self, now: Instant) -> Option<DirectReport> {
        if !std::mem::take(&mut self.due) {
            return None;
        }
        let least = self.least_round_trip();
        self.first_words += u32::from(least.is_none());
        if least.is_none() || self.announced[0].is_none_or(|last| last.sent != self.sent) {
            self.announced.rotate_right(1);
            self.announced[0] = Some(Announced {
                sent: self.sent,
                at: now,
                is_answered: false,
            });
        }
        Some(DirectReport {
            sent: self.sent,
            seen_sent: self.seen_sent,
            seen_received: self.seen_received,
        })
    }

    pub fn on_report(&mut self, report: &DirectReport, now: Instant) -> Heard {
        let asks = self.asked.replace(report.sent) != Some(report.sent);
        let signal = self.left_at(report.seen_sent).and_then(|left| {
            let delay = self.on_round_trip(now.since(left), now);
            let loss = self.judge(report.seen_sent, report.seen_received);
            loss.or(delay)
        });
        Heard { asks, signal }
    }

    /// When the message left that said so. Once: the answer is repeated with each of the peer's own messages.
    fn left_at(&mut self, sent: u32) -> Option<Instant> {
        let mut announced = self.announced.iter_mut().flatten();
        let said = announced.find(|said| said.sent == sent && !said.is_answered)?;
        said.is_answered = true;
        Some(said.at)
    }

    fn on_round_trip(&mut self, sample: Duration, now: Instant) -> Option<Signal> {
        self.round_trip_min
            .update(sample, Duration::min, ROUND_TRIP_PERIOD, now);
        let least = self.least_round_trip().unwrap_or(sample);
        self.late = match sample > least + LATE {
            true => self.late + 1,
            false => 0,
        };
        (self.late >= LATE_SAMPLES).then_some(Signal::Delay)
    }

    fn judge(&mut self, sent: u32, received: u32) -> Option<Signal> {
        let missing = sent.wrapping_sub(received) as i32;
        let Some(judged) = &mut self.judged else {
            // Either end may have counted before the other one did.
            let is_ahead = (-AHEAD_MAX..0).contains(&missing);
            let missing_max = if is_ahead { 0 } else { missing };
            self.judged = Some(Judged { sent, missing_max });
            return None;
        };
        let since = sent.wrapping_sub(judged.sent);
        let more = missing.wrapping_sub(judged.missing_max);
        let possible = -i64::from(AHEAD_MAX) - i64::from(since)..=i64::from(since);
        if since > i32::MAX as u32 || !possible.contains(&more.into()) {
            // One end has begun anew.
            self.judged = None;
            return self.judge(sent, received);
        }
        if since < JUDGED_MIN {
            return None;
        }
        judged.sent = sent;
        let lost = more.max(0).unsigned_abs();
        judged.missing_max = judged.missing_max.max(missing);
        self.lost += u64::from(lost);
        (lost >= LOSS_MIN.max(since / LOSS_SHARE)).then_some(Signal::Loss)
    }

    /// Direct frames that were lost on the way, as far as it was found out.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// An end that sends, and an answer to it `later` ms after each message.
    struct Sender {
        counts: DirectCounts,
        ms: u64,
        sent: u32,
        received: u32,
    }

    impl Sender {
        fn new(sent: u32, received: u32) -> Sender {
            Sender {
                counts: DirectCounts::default(),
                ms: 1,
                sent,
                received,
            }
        }

        /// `sent` more, of which `received` had come when the marker did.
        fn sample(&mut self, sent: u32, received: u32, later: u64) -> Option<Signal> {
            self.ms += 100;
            self.sent = self.sent.wrapping_add(sent);
            self.received = self.received.wrapping_add(received);
            assert_eq!(self.counts.on_sent(self.sent, at(self.ms)), None);
            let report = self.counts.take_report(at(self.ms)).unwrap();
            assert_eq!(report.sent, self.sent);
            let answer = DirectReport {
                sent: 0,
                seen_sent: self.sent,
                seen_received: self.received,
            };
            let heard = self.counts.on_report(&answer, at(self.ms + later));
            // Said again, it says nothing.
            assert_eq!(
                self.counts.on_report(&answer, at(self.ms + 99)).signal,
                None
            );
            heard.signal
        }
    }

    #[test]
    fn one_in_fifty_that_is_lost_is_told_and_less_is_only_counted() {
        for start in [0, u32::MAX - 150] {
            let mut end = Sender::new(start, start);
            assert_eq!(end.sample(100, 100, 1), None);
            assert_eq!(end.sample(1000, 981, 1), None);
            assert_eq!(end.sample(1000, 980, 1), Some(Signal::Loss));
            assert_eq!(end.sample(1000, 1000, 1), None);
            assert_eq!(end.counts.lost(), 39);
        }
    }

    #[test]
    fn a_few_frames_say_nothing_until_they_are_enough() {
        let mut end = Sender::new(0, 0);
        assert_eq!(end.sample(10, 10, 1), None);
        assert_eq!(end.sample(30, 20, 1), None);
        assert_eq!(end.sample(33, 33, 1), None);
        assert_eq!(end.sample(1, 1, 1), Some(Signal::Loss), "10 of 64");
    }

    #[test]
    fn who_counts_more_for_a_moment_has_lost_nothing_when_that_is_over() {
        let mut end = Sender::new(0, 0);
        assert_eq!(end.sample(1000, 1000, 1), None);
        assert_eq!(end.sample(1000, 1800, 1), None, "it was looked at late");
        assert_eq!(end.sample(1000, 200, 1), None);
        assert_eq!(end.sample(1000, 900, 1), Some(Signal::Loss));
        assert_eq!(end.counts.lost(), 100);
    }

    #[test]
    fn an_end_that_begins_anew_has_lost_nothing() {
        // The receiver knows us from before, or does not yet.
        for (sent, received) in [(0, 900_000), (900_000, 0), (0, 50)] {
            let mut end = Sender::new(sent, received);
            for _ in 0..3 {
                assert_eq!(end.sample(1000, 1000, 1), None, "{sent} {received}");
            }
            end.received = 0;
            assert_eq!(end.sample(1000, 1000, 1), None);
            assert_eq!(end.sample(1000, 1000, 1), None);
            end.sent = 0;
            assert_eq!(end.sample(10, 1000, 1), None);
            assert_eq!(end.sample(1000, 1000, 1), None);
            assert_eq!(end.counts.lost(), 0);
        }
    }

    #[test]
    fn a_queue_that_stands_somewhere_is_told_and_one_late_answer_is_not() {
        let mut end = Sender::new(0, 0);
        assert_eq!(end.sample(10, 10, 2), None);
        for later in [90, 23, 23, 23, 23, 22, 23, 23, 23, 23, 23] {
            assert_eq!(end.sample(10, 10, later), None, "{later}");
        }
        assert_eq!(end.sample(10, 10, 23), Some(Signal::Delay));
    }

    #[test]
    fn a_peer_that_has_answered_and_does_not_any_more_is_not_reached() {
        let mut end = Sender::new(0, 0);
        let silent = |end: &mut Sender, ms: u64| {
            end.ms += ms;
            end.sent += 10;
            let signal = end.counts.on_sent(end.sent, at(end.ms));
            (signal, end.counts.take_report(at(end.ms)).is_some())
        };
        // Never heard, it may be one that does not know how.
        for _ in 0..20 {
            assert_eq!(silent(&mut end, 50).0, None);
        }
        (end.sent, end.ms) = (0, end.ms + 500);
        assert_eq!(end.sample(10, 10, 1), None);
        // Not more often than is worth while.
        assert_eq!(silent(&mut end, 30), (None, false));
        for expected in [None, None, None, None, Some(Signal::Loss)] {
            assert_eq!(silent(&mut end, 50), (expected, true));
        }
        // Who was away itself has not read what was answered.
        for _ in 0..3 {
            assert_eq!(silent(&mut end, 50), (None, true));
        }
        assert_eq!(silent(&mut end, 200), (None, true));
        assert_eq!(silent(&mut end, 50), (None, true));
    }

    #[test]
    fn over_a_long_way_an_answer_is_waited_for() {
        let mut end = Sender::new(0, 0);
        assert_eq!(end.sample(10, 10, 200), None);
        end.ms += 200;
        let mut signals = (0..20).map(|_| {
            end.ms += 50;
            end.sent += 10;
            let signal = end.counts.on_sent(end.sent, at(end.ms));
            end.counts.take_report(at(end.ms));
            signal
        });
        // 150 ms, and a round trip and a half of 200 ms.
        assert_eq!(signals.position(|signal| signal.is_some()), Some(9));
    }

    #[test]
    fn what_is_said_before_the_count_is_known_is_what_was_known_before() {
        let mut counts = DirectCounts::default();
        let said = |sent| DirectReport {
            sent,
            ..DirectReport::default()
        };
        assert!(counts.on_report(&said(10), at(1)).asks);
        counts.on_received(10);
        assert!(counts.on_report(&said(20), at(2)).asks);
        let seen = |report: DirectReport| (report.seen_sent, report.seen_received);
        assert_eq!(counts.take_report(at(3)).map(seen), Some((10, 10)));
        counts.on_received(19);
        assert_eq!(counts.take_report(at(4)).map(seen), Some((20, 19)));
        assert!(!counts.on_report(&said(20), at(5)).asks);
    }

    #[test]
    fn two_ends_that_have_said_all_are_silent() {
        let mut ends = [DirectCounts::default(), DirectCounts::default()];
        ends[0].on_sent(5, at(1));
        ends[1].on_sent(7, at(1));
        let mut said = 0;
        for turn in 0..20 {
            let (speaker, hearer) = (turn % 2, 1 - turn % 2);
            let now = at(turn as u64 + 1);
            if let Some(report) = ends[speaker].take_report(now) {
                said += 1;
                if ends[hearer].on_report(&report, now).asks {
                    ends[hearer].on_received(report.sent);
                }
            }
        }
        assert!(said <= 4, "{said} messages");
        assert_eq!(ends[0].take_report(at(50)), None);
        ends[0].on_sent(5, at(1000));
        assert_eq!(ends[0].take_report(at(1000)), None);
    }
}
