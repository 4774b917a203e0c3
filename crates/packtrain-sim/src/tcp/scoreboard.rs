//! What is under way, what is lost, and what goes again, by segments.
//!
//! Three ways to find out what is lost: by duplicate acknowledgements (`duplicate_acks`), by what came behind (RFC 6675), and
//! by time (RACK, `by_time`). Segments stay as they were cut, so all bytes of one share a fate, and everything is kept up with
//! each acknowledgement, in time that does not grow with the window; `tests/tcp/scoreboard.rs` has RFC 6675's own words, which
//! reckon in bytes and each time anew, beside it, and `tests/tcp/rack.rs` those of RFC 8985.
//!
//! A difference from RFC 6675: within a recovery nothing goes again that was first sent after it began. What of that is lost asks
//! for a reduction of its own, and goes again in the recovery that begins then. By time, all that is lost goes again at once, as
//! in Linux.
//!
//! What is left out of it: that three duplicates in a row say the same as IsLost (section 5, step 1). It makes a difference where
//! segments are shorter than the largest, and three of them together are no more than two of those.
//!
//! The receiver never takes back what it said it had (RFC 2018 lets it), so SACKs are kept after a timeout.

use core::ops::Range;

use packtrain_proto::time::Instant;

use super::rack::{Came, Seen};
use super::ranges::Ranges;
use by_time::ByTime;
use duplicate_acks::DuplicateAcks;
pub use duplicate_acks::Ends;
use news::Gathered;
pub use news::News;
use segments::{Segments, Sent};

mod again;
mod by_time;
mod duplicate_acks;
mod news;
mod segments;

/// RFC 6675: so many that came behind it, and a segment is lost.
const DUP_THRESH: usize = 3;

/// How a loss is found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Detection {
    /// Without SACK.
    DuplicateAcks(Ends),
    /// RFC 6675.
    #[default]
    Sack,
    /// RFC 8985.
    Rack,
}

impl Detection {
    pub const RENO: Detection = Detection::DuplicateAcks(Ends::AtAnyProgress);
    pub const NEW_RENO: Detection = Detection::DuplicateAcks(Ends::AtAll);
}

/// The same, with what it has to know.
#[derive(Debug)]
enum Detector {
    DuplicateAcks(DuplicateAcks),
    Sack {
        /// What is lost has been marked before this number.
        marked_to: u64,
        /// RescueRxt.
        rescued: bool,
    },
    Rack(ByTime),
}

/// A part of the stream that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub offset: u64,
    pub len: u32,
}

#[derive(Debug)]
pub struct Scoreboard {
    mss: u64,
    detector: Detector,
    segments: Segments,
    /// Everything before it is acknowledged.
    acknowledged: u64,
    next: u64,
    sacked: Ranges,
    sacked_segments: u64,
    lost_segments: u64,
    /// Bytes that were lost, ever; each time that they were.
    lost_ever: u64,
    pipe: u64,
    /// HighRxt: the next one that goes again has this number or a later one.
    resend_from: u64,
}

impl Scoreboard {
    /// By RFC 6675.
    pub fn new(mss: u64) -> Scoreboard {
        Scoreboard::with(mss, Detection::Sack)
    }

    pub fn with(mss: u64, detection: Detection) -> Scoreboard {
        Scoreboard {
            mss,
            detector: match detection {
                Detection::DuplicateAcks(ends) => Detector::DuplicateAcks(DuplicateAcks::new(ends)),
                Detection::Sack => Detector::Sack {
                    marked_to: 0,
                    rescued: false,
                },
                Detection::Rack => Detector::Rack(ByTime::default()),
            },
            segments: Segments::default(),
            acknowledged: 0,
            next: 0,
            sacked: Ranges::default(),
            sacked_segments: 0,
            lost_segments: 0,
            lost_ever: 0,
            pipe: 0,
            resend_from: 0,
        }
    }

    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Where the next new segment begins.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// FlightSize: sent, and not acknowledged with all before it.
    pub fn flight(&self) -> u64 {
        self.next - self.acknowledged
    }

    /// The same, in segments.
    pub fn flight_segments(&self) -> u64 {
        self.segments.end() - self.segments.first()
    }

    /// What is thought to be in the network.
    pub fn pipe(&self) -> u64 {
        match &self.detector {
            Detector::DuplicateAcks(state) => self.pipe.saturating_sub(state.left()),
            Detector::Sack { .. } | Detector::Rack(_) => self.pipe,
        }
    }

    pub fn sacked_bytes(&self) -> u64 {
        self.sacked.bytes()
    }

    /// Bytes that were lost, ever; what is lost again counts again.
    pub fn lost_ever(&self) -> u64 {
        self.lost_ever
    }

    /// A recovery begins, unless one is going on: the first segment that is missing is lost, or, by time, any.
    pub fn has_loss(&self) -> bool {
        match &self.detector {
            Detector::Rack(_) => self.lost_segments > 0,
            _ => self.segments.front().is_some_and(|first| first.lost),
        }
    }

    pub fn send_new(&mut self, len: u32, now: Instant) -> Part {
        let sent = Sent {
            offset: self.next,
            at: now,
            len,
            sacked: false,
            lost: false,
            resent: false,
            ambiguous: false,
        };
        self.segments.push(sent);
        self.next += u64::from(len);
        self.pipe += u64::from(len);
        sent.part()
    }

    /// By time nothing is lost yet then: ask [`Scoreboard::detect`].
    ///
    /// # Panics
    /// If something is acknowledged that was never sent, or a part of a segment.
    pub fn acknowledge(&mut self, to: u64, sacks: &[Range<u64>], now: Instant) -> News {
        assert!(to <= self.next, "{to} is not sent, but up to {}", self.next);
        let mut gathered = Gathered::new(now);
        if let Detector::Rack(by_time) = &mut self.detector {
            by_time.rack.begin();
        }
        if !matches!(self.detector, Detector::DuplicateAcks(_)) {
            for sack in sacks {
                self.sack(sack, &mut gathered);
            }
        }
        let first_len = self
            .segments
            .front()
            .map_or(0, |first| u64::from(first.len));
        while let Some(&first) = self.segments.front()
            && first.end() <= to
        {
            self.segments.pop();
            self.pipe -= first.share();
            self.sacked_segments -= u64::from(first.sacked);
            if !first.sacked {
                self.came(&first, &mut gathered);
            }
        }
        let front = self.segments.front();
        let whole = front.is_none_or(|first| first.offset >= to);
        assert!(whole, "{to} is within a segment");
        let advanced = to.saturating_sub(self.acknowledged);
        let is_duplicate = to == self.acknowledged && front.is_some();
        if advanced > 0 {
            self.acknowledged = to;
            self.sacked.remove_below(to);
        }
        let mut news = News {
            advanced,
            delivered: gathered.delivered,
            rtt: gathered.rtt(),
        };
        match &mut self.detector {
            Detector::DuplicateAcks(_) => {
                if advanced > 0 || is_duplicate {
                    news.delivered = self.count(advanced, first_len);
                }
                // What had come before waited for what went again, and was not told of: that is no round trip.
                news.rtt = news.rtt.filter(|_| !gathered.has_ambiguous);
            }
            Detector::Sack { .. } => self.mark_lost(),
            Detector::Rack(_) => {}
        }
        news
    }

    fn sack(&mut self, sack: &Range<u64>, gathered: &mut Gathered) {
        assert!(sack.end <= self.next, "{sack:?} is not sent");
        let range = sack.start.max(self.acknowledged)..sack.end.max(self.acknowledged);
        // Most were told of before.
        if self
            .sacked
            .containing(range.start)
            .is_some_and(|known| known.end >= range.end)
        {
            return;
        }
        let mut sacked = core::mem::take(&mut self.sacked);
        sacked.insert_each(range, |part| {
            let first = self.segments.number(part.start, self.mss);
            for number in first.. {
                let Some(&sent) = self
                    .segments
                    .get(number)
                    .filter(|sent| sent.offset < part.end)
                else {
                    break;
                };
                self.pipe -= sent.share();
                self.sacked_segments += 1;
                self.segments.get_mut(number).sacked = true;
                self.came(&sent, gathered);
            }
        });
        self.sacked = sacked;
    }

    /// A segment was not known to have come.
    fn came(&mut self, sent: &Sent, gathered: &mut Gathered) {
        self.lost_segments -= u64::from(sent.lost);
        gathered.add(sent);
        if let Detector::Rack(by_time) = &mut self.detector {
            let came = Came {
                sent: sent.at,
                end: sent.end(),
                is_ambiguous: sent.ambiguous,
            };
            by_time.rack.came(came, gathered.now);
        }
    }

    /// A duplicate acknowledgement, or one that advances. What is delivered by it.
    fn count(&mut self, advanced: u64, first_len: u64) -> u64 {
        let Detector::DuplicateAcks(state) = &mut self.detector else {
            unreachable!("the caller has looked");
        };
        let meaning = match advanced {
            0 => {
                let behind = self.next - self.acknowledged - first_len;
                state.duplicate(self.mss, behind, self.acknowledged)
            }
            _ => state.advanced(advanced, first_len, self.acknowledged),
        };
        if let Some(first) = self.segments.front_mut().filter(|_| meaning.first_is_lost) {
            self.pipe -= first.share();
            self.lost_segments += u64::from(!first.lost);
            self.lost_ever += u64::from(first.len);
            (first.lost, first.resent) = (true, false);
            self.pipe += first.share();
        }
        meaning.delivered
    }

    /// Everything missing before this is lost (RFC 6675, 4, IsLost): so much, or so many ranges, came behind.
    fn lost_below(&self) -> u64 {
        let mut bytes = 0;
        for (index, range) in self.sacked.descending().enumerate() {
            bytes += range.end - range.start;
            if bytes > (DUP_THRESH as u64 - 1) * self.mss || index + 1 == DUP_THRESH {
                return range.start;
            }
        }
        0
    }

    fn mark_lost(&mut self) {
        if self.sacked.is_empty() {
            return;
        }
        let to = self.lost_below();
        let Detector::Sack { marked_to, .. } = &mut self.detector else {
            unreachable!("the caller has looked");
        };
        *marked_to = (*marked_to).max(self.segments.first());
        while self
            .segments
            .get(*marked_to)
            .is_some_and(|sent| sent.offset < to)
        {
            let sent = self.segments.get_mut(*marked_to);
            if !sent.sacked && !sent.lost {
                self.pipe -= u64::from(sent.len);
                self.lost_segments += 1;
                self.lost_ever += u64::from(sent.len);
            }
            sent.lost |= !sent.sacked;
            *marked_to += 1;
        }
    }

    /// What is lost by time, when an acknowledgement has been taken in or it is [`Scoreboard::detects_at`].
    pub fn detect(&mut self, seen: &Seen, now: Instant) {
        let Detector::Rack(by_time) = &mut self.detector else {
            return;
        };
        let sacked = self.sacked_segments;
        by_time.detect(&mut self.segments, seen, sacked, now, |sent| {
            self.pipe -= sent.share();
            self.lost_segments += u64::from(!sent.lost);
            self.lost_ever += u64::from(sent.len);
            (sent.lost, sent.resent) = (true, false);
        });
    }

    /// Something is lost then if nothing comes.
    pub fn detects_at(&self) -> Option<Instant> {
        match &self.detector {
            Detector::Rack(by_time) => by_time.due,
            Detector::DuplicateAcks(_) | Detector::Sack { .. } => None,
        }
    }

    /// A recovery begins: what is lost goes again from the bottom. It ends when so much is acknowledged.
    pub fn begin_recovery(&mut self) -> u64 {
        self.resend_from = self.segments.first();
        match &mut self.detector {
            Detector::DuplicateAcks(state) => state.begin_recovery(self.acknowledged, self.next),
            Detector::Sack { rescued, .. } => {
                *rescued = false;
                self.next
            }
            Detector::Rack(_) => self.next,
        }
    }

    /// The timer has expired: nothing that is missing is thought to be in the network, except, by time, what was sent less
    /// than a round trip ago (RFC 8985, 6.3).
    pub fn time_out(&mut self, now: Instant) {
        let since = match &self.detector {
            Detector::Rack(by_time) => now - by_time.rack.rtt(),
            Detector::DuplicateAcks(_) | Detector::Sack { .. } => now,
        };
        self.lose_sent_until(since);
    }

    /// The same, whenever it was sent.
    pub fn lose_all(&mut self) {
        self.lose_sent_until(Instant::from_nanos(u64::MAX));
    }

    fn lose_sent_until(&mut self, until: Instant) {
        let first = self.segments.first();
        for (number, sent) in (first..).zip(self.segments.iter_mut()) {
            let is_lost = !sent.sacked && (sent.at <= until || number == first);
            if !is_lost || sent.lost && !sent.resent {
                continue;
            }
            self.pipe -= sent.share();
            self.lost_segments += u64::from(!sent.lost);
            self.lost_ever += u64::from(sent.len);
            (sent.lost, sent.resent) = (true, false);
            if let Detector::Rack(by_time) = &mut self.detector {
                by_time.is_lost(number);
            }
        }
        self.begin_recovery();
        match &mut self.detector {
            Detector::DuplicateAcks(state) => state.timed_out(self.next),
            Detector::Sack { marked_to, .. } => *marked_to = self.segments.end(),
            Detector::Rack(_) => {}
        }
    }
}
