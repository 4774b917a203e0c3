//! What is lost by time (RACK, RFC 8985, 6.2, steps 4 and 5): segments in the order in which they were sent last.
//!
//! The RFC looks at all segments that were sent before the newest that came, with each acknowledgement. Here each of them is
//! looked at when it is overtaken, and then only the first and the last of those that were overtaken and are neither here nor
//! lost: they are in order of their times, and all are waited for equally long.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use packtrain_proto::time::Instant;

use super::segments::{Segments, Sent};
use crate::tcp::rack::{Rack, Seen, TIMER_SLACK};

/// A transmission.
type Sending = (Instant, u64);

#[derive(Debug, Default)]
pub(super) struct ByTime {
    pub rack: Rack,
    /// Which have not been overtaken yet: those that were sent once from this number on, …
    once_from: u64,
    /// … and these, which were sent again. Not all of them are still true, here and below.
    again: VecDeque<Sending>,
    overtaken: VecDeque<Sending>,
    /// Numbers of what is lost and goes again.
    lost: BinaryHeap<Reverse<u64>>,
    /// When the last of those that are overtaken is lost.
    pub due: Option<Instant>,
}

impl ByTime {
    pub fn resent(&mut self, number: u64, now: Instant) {
        self.again.push_back((now, number));
    }

    /// The caller has marked it.
    pub fn is_lost(&mut self, number: u64) {
        self.lost.push(Reverse(number));
    }

    /// The number of the first that goes again.
    pub fn next_to_resend(&mut self, segments: &Segments) -> Option<u64> {
        while let Some(&Reverse(number)) = self.lost.peek() {
            let waits = |sent: &Sent| sent.lost && !sent.resent && !sent.sacked;
            if segments.get(number).is_some_and(waits) {
                return Some(number);
            }
            self.lost.pop();
        }
        None
    }

    /// When an acknowledgement has been taken in, or it is [`ByTime::due`]: calls `lose` with each that is lost now.
    pub fn detect(
        &mut self,
        segments: &mut Segments,
        seen: &Seen,
        sacked: u64,
        now: Instant,
        mut lose: impl FnMut(&mut Sent),
    ) {
        self.rack.learn(seen.rtt_min);
        if !self.rack.take_advanced() && self.due.is_none_or(|due| due > now) {
            return;
        }
        self.overtake(segments);
        if self.overtaken.is_empty() {
            self.due = None;
            return;
        }
        let patience = self.rack.patience(seen, sacked);
        while let Some(&(at, number)) = self.overtaken.front() {
            if is_true((at, number), segments) {
                if at + patience > now {
                    break;
                }
                lose(segments.get_mut(number));
                self.lost.push(Reverse(number));
            }
            self.overtaken.pop_front();
        }
        while let Some(&last) = self.overtaken.back() {
            if is_true(last, segments) {
                break;
            }
            self.overtaken.pop_back();
        }
        let last = self.overtaken.back();
        self.due = last.map(|&(at, _)| at + patience + TIMER_SLACK);
    }

    fn overtake(&mut self, segments: &Segments) {
        loop {
            let once = self.next_once(segments);
            let again = self.next_again(segments);
            let Some(sending @ (at, number)) = [once, again].into_iter().flatten().min() else {
                return;
            };
            let end = segments.get(number).map_or(0, Sent::end);
            if !self.rack.is_overtaken(at, end) {
                return;
            }
            match once == Some(sending) {
                true => self.once_from = number + 1,
                false => drop(self.again.pop_front()),
            }
            self.overtaken.push_back(sending);
        }
    }

    fn next_once(&mut self, segments: &Segments) -> Option<Sending> {
        self.once_from = self.once_from.max(segments.first());
        loop {
            let sent = segments.get(self.once_from)?;
            let sending = (sent.at, self.once_from);
            if !sent.ambiguous && is_true(sending, segments) {
                return Some(sending);
            }
            self.once_from += 1;
        }
    }

    fn next_again(&mut self, segments: &Segments) -> Option<Sending> {
        loop {
            let sending = *self.again.front()?;
            if is_true(sending, segments) {
                return Some(sending);
            }
            self.again.pop_front();
        }
    }
}

/// The segment was not sent again since, has not come, and is not lost.
fn is_true((at, number): Sending, segments: &Segments) -> bool {
    let waits = |sent: &Sent| sent.at == at && !sent.sacked && (!sent.lost || sent.resent);
    segments.get(number).is_some_and(waits)
}
