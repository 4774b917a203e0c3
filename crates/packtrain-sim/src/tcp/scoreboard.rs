//! What is under way, what is lost, and what goes again: RFC 6675's scoreboard, by segments.
//!
//! The RFC reckons in bytes, each time anew. Segments stay as they were cut, so all bytes of one share a fate,
//! and everything is kept up with each acknowledgement instead, in time that does not grow with the window;
//! `tests/tcp/scoreboard.rs` has the RFC's own words beside it.
//!
//! A difference: within a recovery nothing goes again that was first sent after it began. What of that is lost asks
//! for a reduction of its own, and goes again in the recovery that begins then.
//!
//! The receiver never takes back what it said it had (RFC 2018 lets it), so SACKs are kept after a timeout.

use core::ops::Range;
use std::collections::VecDeque;

use packtrain_proto::time::{Duration, Instant};

use super::ranges::Ranges;

/// RFC 6675: so many that came behind it, and a segment is lost.
const DUP_THRESH: usize = 3;

/// A segment that was sent and is not acknowledged with all before it.
#[derive(Clone, Copy, Debug)]
struct Sent {
    offset: u64,
    len: u32,
    /// The last time.
    at: Instant,
    sacked: bool,
    lost: bool,
    /// In the recovery that is going on. The RFC: it ends at or before HighRxt.
    resent: bool,
    /// Ever: its round trip says nothing (Karn).
    ambiguous: bool,
}

impl Sent {
    fn end(&self) -> u64 {
        self.offset + u64::from(self.len)
    }

    /// What it adds to the pipe (RFC 6675, 4, SetPipe).
    fn share(&self) -> u64 {
        let copies = u64::from(!self.lost) + u64::from(self.resent);
        if self.sacked {
            0
        } else {
            copies * u64::from(self.len)
        }
    }
}

/// A part of the stream that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub offset: u64,
    pub len: u32,
}

/// What an acknowledgement said that was not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// Bytes that the other end now has with all before them.
    pub advanced: u64,
    /// Bytes that it has and was not known to have.
    pub delivered: u64,
    /// Round trips of the oldest and the newest of those, of what was sent once.
    pub rtt: Option<(Duration, Duration)>,
}

impl News {
    fn delivers(&mut self, sent: &Sent, now: Instant) {
        self.delivered += u64::from(sent.len);
        if sent.ambiguous {
            return;
        }
        let rtt = now.since(sent.at);
        let (oldest, newest) = self.rtt.unwrap_or((rtt, rtt));
        self.rtt = Some((oldest.max(rtt), newest.min(rtt)));
    }
}

#[derive(Debug)]
pub struct Scoreboard {
    mss: u64,
    /// In order, without gaps.
    sent: VecDeque<Sent>,
    /// Everything before it is acknowledged.
    acknowledged: u64,
    next: u64,
    sacked: Ranges,
    pipe: u64,
    /// What is lost before it has been marked.
    marked_to: u64,
    /// HighRxt: the next one that goes again begins here or later.
    resend_from: u64,
    /// RescueRxt.
    rescued: bool,
}

impl Scoreboard {
    pub fn new(mss: u64) -> Scoreboard {
        Scoreboard {
            mss,
            sent: VecDeque::new(),
            acknowledged: 0,
            next: 0,
            sacked: Ranges::default(),
            pipe: 0,
            marked_to: 0,
            resend_from: 0,
            rescued: false,
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

    /// What is thought to be in the network.
    pub fn pipe(&self) -> u64 {
        self.pipe
    }

    pub fn sacked_bytes(&self) -> u64 {
        self.sacked.bytes()
    }

    /// Whether the first segment that is missing is lost: a recovery begins, unless one is going on.
    pub fn has_loss(&self) -> bool {
        self.sent.front().is_some_and(|first| first.lost)
    }

    pub fn send_new(&mut self, len: u32, now: Instant) -> Part {
        let part = Part {
            offset: self.next,
            len,
        };
        self.sent.push_back(Sent {
            offset: part.offset,
            len,
            at: now,
            sacked: false,
            lost: false,
            resent: false,
            ambiguous: false,
        });
        self.next += u64::from(len);
        self.pipe += u64::from(len);
        part
    }

    /// # Panics
    /// If something is acknowledged that was never sent, or a part of a segment.
    pub fn acknowledge(&mut self, to: u64, sacks: &[Range<u64>], now: Instant) -> News {
        assert!(to <= self.next, "{to} is not sent, but up to {}", self.next);
        let mut news = News::default();
        for sack in sacks {
            assert!(sack.end <= self.next, "{sack:?} is not sent");
            let range = sack.start.max(self.acknowledged)..sack.end.max(self.acknowledged);
            for part in self.sacked.insert(range) {
                self.sack(part, now, &mut news);
            }
        }
        while let Some(first) = self.sent.front().filter(|first| first.end() <= to) {
            self.pipe -= first.share();
            if !first.sacked {
                news.delivers(first, now);
            }
            self.sent.pop_front();
        }
        let whole = self.sent.front().is_none_or(|first| first.offset >= to);
        assert!(whole, "{to} is within a segment");
        if to > self.acknowledged {
            news.advanced = to - self.acknowledged;
            self.acknowledged = to;
            self.sacked.remove_below(to);
        }
        self.mark_lost();
        news
    }

    fn sack(&mut self, part: Range<u64>, now: Instant, news: &mut News) {
        let first = self.position(part.start);
        for sent in self.sent.range_mut(first..) {
            if sent.offset >= part.end {
                break;
            }
            self.pipe -= sent.share();
            sent.sacked = true;
            news.delivers(sent, now);
        }
    }

    /// The first segment that begins there or later.
    fn position(&self, offset: u64) -> usize {
        self.sent.partition_point(|sent| sent.offset < offset)
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
        let to = self.lost_below();
        if to <= self.marked_to {
            return;
        }
        let first = self.position(self.marked_to);
        for sent in self.sent.range_mut(first..) {
            if sent.offset >= to {
                break;
            }
            self.pipe -= sent.share();
            sent.lost = true;
            self.pipe += sent.share();
        }
        self.marked_to = to;
    }

    /// A recovery begins: what is lost goes again from the bottom.
    pub fn begin_recovery(&mut self) {
        self.resend_from = self.acknowledged;
        self.rescued = false;
        let again = |sent: &Sent| sent.resent && !sent.sacked;
        debug_assert!(!self.sent.iter().any(again), "of the recovery before");
    }

    /// The timer has expired: nothing that is missing is thought to be in the network.
    pub fn lose_all(&mut self) {
        for sent in &mut self.sent {
            sent.lost = true;
            sent.resent = false;
        }
        self.pipe = 0;
        self.marked_to = self.next;
        self.begin_recovery();
    }

    /// NextSeg's first rule: what is lost and goes again, of what was sent before `below`.
    pub fn lost(&mut self, below: u64) -> Option<Part> {
        let sent = self.first_to_resend(below)?;
        sent.lost.then(|| sent.part())
    }

    /// Its third rule: what is missing before something that came, though it does not count as lost yet.
    pub fn missing(&mut self, below: u64) -> Option<Part> {
        let highest = self.sacked.descending().next()?;
        let sent = self.first_to_resend(below)?;
        (sent.offset < highest.end).then(|| sent.part())
    }

    fn first_to_resend(&mut self, below: u64) -> Option<Sent> {
        let first = self.position(self.resend_from.max(self.acknowledged));
        let sent = self.sent.range(first..).find(|sent| !sent.sacked)?;
        let sent = *sent;
        // What came since is not looked at again.
        self.resend_from = sent.offset;
        (sent.offset < below).then_some(sent)
    }

    /// Its fourth: once in a recovery, the last segment that is missing, behind which nothing can come.
    pub fn rescue(&self) -> Option<Part> {
        if self.rescued {
            return None;
        }
        let last = self.sent.iter().rev().find(|sent| !sent.sacked)?;
        Some(last.part())
    }

    /// What [`Scoreboard::lost`] or [`Scoreboard::missing`] has named goes again.
    pub fn resend(&mut self, part: Part, now: Instant) {
        let sent = self.resend_any(part, now);
        sent.resent = true;
        self.pipe += u64::from(part.len);
        self.resend_from = part.offset + u64::from(part.len);
    }

    /// What [`Scoreboard::rescue`] has named goes again; it does not count as under way twice.
    pub fn resend_rescue(&mut self, part: Part, now: Instant) {
        self.resend_any(part, now);
        self.rescued = true;
    }

    fn resend_any(&mut self, part: Part, now: Instant) -> &mut Sent {
        let index = self.position(part.offset);
        let sent = &mut self.sent[index];
        debug_assert_eq!(sent.part(), part);
        sent.at = now;
        sent.ambiguous = true;
        sent
    }
}

impl Sent {
    fn part(&self) -> Part {
        Part {
            offset: self.offset,
            len: self.len,
        }
    }
}
