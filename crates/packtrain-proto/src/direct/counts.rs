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
//! The marker has the same source address as the frames. Not every network lets a foreign one pass; of one
//! that does not, no answer comes, and no frame goes there.
//!
//! A frame that leaves between the reading of a count and the marker is counted by the receiver
//! alone. So a sample may show less loss than there was, never more: what is lost is how far the
//! difference has risen *at most*. Where the link's queue lets the marker overtake frames, those that it has
//! overtaken are missing for a moment: there, what is lost is missing in several samples in a row. While many are missing, the same is
//! asked again, though no more have gone: where none of them comes for some time, they do not stand in a queue. Nor where the link keeps
//! the order and the next answer does without them too: one marker a network further on may have let overtake them.

use super::Came;
use crate::time::{Duration, Instant};
use crate::trunk::extreme::Extreme;
use crate::wire::train::DirectReport;

/// Fewer frames than these say nothing of loss.
const JUDGED_MIN: u32 = 64;
/// … unless so many of them are missing, and those are one in so many: of a very long frame's bits that many are wrong.
const MISSING_MIN: i32 = 4;
const MANY_OF: u32 = 8;
/// So many samples in a row show what a marker that may overtake says of loss.
const OVERTAKEN: usize = 4;
/// No link takes so long for one frame: where none has come since, what was missing then does not stand before it.
const STILL_FOR: Duration = Duration::from_millis(200);
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
/// Where counting begins: a peer that has heard nothing says that it has seen 0.
const FIRST: u32 = 1;
/// A peer that has not answered so often does not know how, or is not reached so, and is asked less often.
const FIRST_WORDS_MANY: u32 = 10;
const GAP_UNANSWERED: Duration = Duration::from_secs(5);
/// A receiver that has as many more than were sent has counted before we did.
const AHEAD_MAX: i32 = 4096;
/// Later so many may have left between the reading of a count and the answer: of a fast link's in a tenth of a second.
const LEFT_SINCE_MAX: i32 = 1 << 20;

/// What the counts say against the direct path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Frames are lost on the way.
    Loss,
    /// They stand in a queue that is not the link's own.
    Delay,
    /// Of flows that are spread over links too many come long after later ones, and no faster than the engine could carry them.
    Disorder,
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
    /// Of those by this link that many, at most, are still in a queue that what tells of them goes past.
    waiting: u32,
    announced: [Option<Announced>; ANNOUNCED_MAX],
    first_words: u32,
    /// When we were told last what was sent.
    counted_at: Instant,
    /// What the last fence said that we had sent. `None`: there was none.
    fenced: Option<u32>,
    /// What the peer has said last that it has sent, and whether it waits for how many have come.
    asked: Option<u32>,
    is_asked: bool,
    /// What it is answered: what it had said, and how many had come after that was heard.
    seen_sent: u32,
    seen: Came,
    /// How many had come when that was told last.
    came: Option<u32>,
    /// Something is to be said.
    due: bool,
    judged: Option<Judged>,
    /// What was lost while nothing was answered has led to what it leads to.
    is_told: bool,
    /// How many were missing in the last samples, and how many of these there are.
    missing: [i32; OVERTAKEN],
    samples: usize,
    /// Since when none has come, though some were missing.
    still: Option<Still>,
    /// Many were missing in the last sample.
    many: Option<Many>,
    /// Many are missing: it is asked whether they still are.
    is_doubted: bool,
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

/// None has come for some time, though the other end answers: a queue would have let some go.
#[derive(Clone, Copy, Debug)]
struct Still {
    received: u32,
    missing: i32,
    /// The answer that said so came.
    since: Instant,
}

/// So many were missing of what was sent by then.
#[derive(Clone, Copy, Debug)]
struct Many {
    sent: u32,
    missing: i32,
}

impl DirectCounts {
    /// What was told last of how many we have sent.
    pub fn sent(&self) -> u32 {
        self.sent.wrapping_sub(FIRST)
    }

    /// Of those that leave by this link, to whomever, so many wait before it.
    pub fn on_waiting(&mut self, frames: u32) {
        self.waiting = frames;
    }

    /// What has surely left before what is said now, and never less than was said already.
    fn surely_sent(&self) -> u32 {
        let surely = self.sent.wrapping_sub(self.waiting);
        match self.announced[0] {
            None => self.sent,
            Some(_) if self.waiting == 0 => self.sent,
            Some(last) if (surely.wrapping_sub(last.sent) as i32) < 0 => last.sent,
            Some(_) => surely,
        }
    }

    /// We have sent so many, ever.
    pub fn on_sent(&mut self, frames: u32, now: Instant) -> Option<Signal> {
        let frames = frames.wrapping_add(FIRST);
        self.sent = frames;
        if now.since(core::mem::replace(&mut self.counted_at, now)) > AWAY {
            self.forget_unanswered();
        }
        // The first word tells where both begin, so it is said until it was heard.
        self.due |= match self.least_round_trip() {
            None => self.wants_to_be_known(now),
            Some(least) => self.has_more_to_tell(least, now),
        };
        let is_unanswered = self.is_unanswered(now);
        if is_unanswered {
            // Nothing is sent before it answers again.
            self.round_trip_min = Extreme::default();
            self.first_words = 0;
            self.is_told = true;
        }
        is_unanswered.then_some(Signal::Loss)
    }

    fn has_more_to_tell(&self, least: Duration, now: Instant) -> bool {
        let gap = GAP_MIN.max(least / 3);
        let has_more = |last: Announced| {
            let is_news = last.sent != self.surely_sent() || self.is_doubted;
            is_news && now.since(last.at) >= gap
        };
        self.announced[0].is_none_or(has_more)
    }

    /// Whether it is time to ask whether the peer is reached at all.
    pub fn wants_to_be_known(&self, now: Instant) -> bool {
        let gap = match self.first_words < FIRST_WORDS_MANY {
            true => GAP_UNKNOWN,
            false => GAP_UNANSWERED,
        };
        let is_due = |last: Announced| now.since(last.at) >= gap;
        !self.is_known() && self.announced[0].is_none_or(is_due)
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
    pub fn least_round_trip(&self) -> Option<Duration> {
        self.round_trip_min.get(Duration::min)
    }

    fn forget_unanswered(&mut self) {
        let announced = self.announced.iter_mut().flatten();
        announced.for_each(|said| said.is_answered = true);
    }

    /// So many have come, ever: how many more than were told last.
    pub fn note_came(&mut self, frames: u32) -> u32 {
        let before = self.came.replace(frames).unwrap_or(frames);
        frames.wrapping_sub(before)
    }

    /// So many have come by now. Returns of how many the peer had asked it, if it had.
    pub fn on_received(&mut self, came: Came) -> Option<u32> {
        // Both at once: a message that leaves before we know must not say the one without the other.
        let asked = self.asked.filter(|_| self.is_asked)?;
        (self.seen_sent, self.seen) = (asked, came);
        self.is_asked = false;
        self.due = true;
        Some(asked)
    }

    /// Whether the peer has counted: it has answered.
    pub fn is_known(&self) -> bool {
        self.least_round_trip().is_some()
    }

    /// What was sent, if it is more than trains say already.
    pub fn take_unfenced(&mut self) -> Option<u32> {
        if self.sent == 0 {
            return None; // nobody has counted yet
        }
        // Of what never was sent there is nothing to wait for: trains have room for few fences.
        let before = self.fenced.replace(self.sent).unwrap_or(FIRST);
        (before != self.sent).then_some(self.sent)
    }

    /// The peer has forgotten us.
    pub fn restart(&mut self) {
        *self = DirectCounts {
            sent: self.sent,
            waiting: self.waiting,
            lost: self.lost,
            ..DirectCounts::default()
        };
    }

    /// Frames go by another kind of mark from now on, of which nothing is known yet.
    pub fn try_anew(&mut self, is_seldom: bool) {
        // What was asked by the former one says nothing of this one.
        self.announced = Default::default();
        self.round_trip_min = Extreme::default();
        self.first_words = if is_seldom { FIRST_WORDS_MANY } else { 0 };
        self.late = 0;
        self.is_told = true;
        self.still = None;
        self.many = None;
        self.is_doubted = false;
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
        // An answer says nothing new before its time: it would be answered, and so would that, for ever.
        if least.is_none_or(|least| self.has_more_to_tell(least, now)) {
            let sent = self.surely_sent();
            self.announced.rotate_right(1);
            self.announced[0] = Some(Announced {
                sent,
                at: now,
                is_answered: false,
            });
        }
        Some(DirectReport {
            wants_answer: least.is_none() || self.is_doubted,
            sent: self.announced[0].map_or(self.sent, |last| last.sent),
            seen_sent: self.seen_sent,
            seen_received: self.seen.frames,
            seen_late: self.seen.late,
        })
    }

    /// `overtakes`: our markers may overtake direct frames.
    pub fn on_report(&mut self, report: &DirectReport, overtakes: bool, now: Instant) -> Heard {
        let is_new = self.asked.replace(report.sent) != Some(report.sent);
        let asks = is_new || report.wants_answer;
        self.is_asked |= asks;
        let signal = self.left_at(report.seen_sent).and_then(|left| {
            let delay = self.on_round_trip(now.since(left), now);
            let (sent, received) = (report.seen_sent, report.seen_received);
            let missing = sent.wrapping_sub(received) as i32;
            let least = match overtakes {
                true => self.least_missing(missing),
                false => Some(missing),
            };
            let still = self.still_missing((sent, received), left, now);
            let again = self.missing_again(sent, missing).filter(|_| !overtakes);
            let loss = match still.or(again) {
                Some(missing) => self.judge(sent, missing, (overtakes, true)),
                None => least.and_then(|least| self.judge(sent, least, (overtakes, false))),
            };
            self.is_doubted = self.are_many(sent, missing);
            loss.or(delay)
        });
        Heard { asks, signal }
    }

    /// When the message left that said so. Once: the answer is repeated with each of the peer's own messages. Of
    /// several that said the same, the first: which one is answered nobody knows, and after a round trip that was
    /// taken for too short all others seem late.
    fn left_at(&mut self, sent: u32) -> Option<Instant> {
        let announced = self.announced.iter_mut().flatten();
        let said_so = announced.filter(|said| said.sent == sent && !said.is_answered);
        let left = said_so.map(|said| {
            said.is_answered = true;
            said.at
        });
        left.min()
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

    fn least_missing(&mut self, missing: i32) -> Option<i32> {
        self.missing[self.samples % OVERTAKEN] = missing;
        self.samples += 1;
        // The first shows how the two counts stand to each other: nothing was under way then.
        let is_enough = self.samples == 1 || self.samples >= OVERTAKEN;
        let known = &self.missing[..self.samples.min(OVERTAKEN)];
        known.iter().min().copied().filter(|_| is_enough)
    }

    /// So many are missing since so long that they do not stand in a queue: none has come, though the answers do.
    /// `left`: when it was asked.
    fn still_missing(
        &mut self,
        (sent, received): (u32, u32),
        left: Instant,
        now: Instant,
    ) -> Option<i32> {
        let missing = sent.wrapping_sub(received) as i32;
        let lost = self.judged.map_or(0, |judged| judged.missing_max);
        let is_same = |still: &Still| {
            still.received == received && still.missing.wrapping_sub(lost) >= MISSING_MIN
        };
        let still = self.still.filter(is_same);
        let still = *self.still.insert(still.unwrap_or(Still {
            received,
            missing,
            since: now,
        }));
        let is_long = left.since(still.since) >= STILL_FOR;
        (is_long && self.are_many(sent, still.missing)).then_some(still.missing)
    }

    /// Many were missing when it was answered last, and so many of these as it seems still are.
    fn missing_again(&mut self, sent: u32, missing: i32) -> Option<i32> {
        let now = Many { sent, missing };
        let now = self.are_many(sent, missing).then_some(now);
        let before = core::mem::replace(&mut self.many, now)?;
        let least = before.missing.min(missing);
        self.are_many(before.sent, least).then_some(least)
    }

    /// So many more are missing than were lost, and that is much of what went since it was judged.
    fn are_many(&self, sent: u32, missing: i32) -> bool {
        self.judged.is_some_and(|judged| {
            let more = missing.wrapping_sub(judged.missing_max);
            let since = sent.wrapping_sub(judged.sent);
            more >= MISSING_MIN && more.unsigned_abs().saturating_mul(MANY_OF) >= since
        })
    }

    /// `are_many`: of few, and what is missing stands in no queue.
    fn judge(
        &mut self,
        sent: u32,
        missing: i32,
        (overtakes, are_many): (bool, bool),
    ) -> Option<Signal> {
        let Some(judged) = &mut self.judged else {
            // Either end may have counted before the other one did.
            let is_ahead = (-AHEAD_MAX..0).contains(&missing);
            let missing_max = if is_ahead { 0 } else { missing };
            self.judged = Some(Judged { sent, missing_max });
            return None;
        };
        let since = sent.wrapping_sub(judged.sent);
        let more = missing.wrapping_sub(judged.missing_max);
        let possible = -i64::from(LEFT_SINCE_MAX) - i64::from(since)..=i64::from(since);
        if since > i32::MAX as u32 || !possible.contains(&more.into()) {
            // One end has begun anew.
            self.judged = None;
            self.samples = 0;
            self.still = None;
            self.many = None;
            return self.judge(sent, missing, (overtakes, are_many));
        }
        if since < JUDGED_MIN && !are_many {
            return None;
        }
        judged.sent = sent;
        let lost = more.max(0).unsigned_abs();
        self.lost += u64::from(lost);
        if overtakes && more < 0 {
            // They stood somewhere all the time.
            let found = u64::from(more.unsigned_abs()).min(self.lost);
            self.lost -= found;
            judged.missing_max -= found as i32;
        } else {
            judged.missing_max = judged.missing_max.max(missing);
        }
        let is_told = core::mem::take(&mut self.is_told);
        (lost >= LOSS_MIN.max(since / LOSS_SHARE) && !is_told).then_some(Signal::Loss)
    }

    /// Direct frames that were lost on the way, as far as it was found out.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests;
#[test]
fn a_fence_is_raised_for_what_was_sent_since_the_last_one_and_for_nothing_else() {
    let mut counts = DirectCounts::default();
    assert_eq!(counts.take_unfenced(), None);
    counts.on_sent(0, Instant::ZERO);
    assert_eq!(counts.take_unfenced(), None);
    counts.on_sent(5, Instant::ZERO);
    assert_eq!(counts.take_unfenced(), Some(5 + FIRST));
    assert_eq!(counts.take_unfenced(), None);
    // The other end has forgotten, and what was sent may be under way.
    counts.restart();
    assert_eq!(counts.take_unfenced(), Some(5 + FIRST));
}
