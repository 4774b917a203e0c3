//! What leaves, and when.

use packtrain_proto::time::Instant;

use super::super::auto::Auto;
use super::super::recovery::{self, Choice, Recovery};
use super::super::segment::{Data, Ecn};
use super::{Connection, Sender};

impl Sender {
    /// The next segment for the interface, if it is time for one, and what its packet says of marks.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<(Data, Ecn)> {
        match &mut self.connection {
            Connection::Closed => return None,
            Connection::Opening { sent, send } => {
                let due = core::mem::take(send);
                *sent += u32::from(due);
                return due.then(|| (self.open_segment(now), Ecn::NotCapable));
            }
            Connection::Open => {}
        }
        self.held = false;
        self.restart_after_idleness(now);
        self.open_window();
        if core::mem::take(&mut self.asks) {
            return Some((self.question(now), Ecn::NotCapable));
        }
        let Some(choice) = self.choose() else {
            self.plan_question(now);
            return None;
        };
        if self.ready() > now {
            self.held = true;
            return None;
        }
        Some(self.send(choice, now))
    }

    fn open_segment(&mut self, now: Instant) -> Data {
        self.last_sent = now;
        self.expires = Some(now + self.rtt.timeout());
        Data {
            syn: true,
            cwr: self.config.ecn,
            offset: 0,
            len: 0,
            phase: self.phase(),
        }
    }

    /// A segment without content, which is answered.
    fn question(&mut self, now: Instant) -> Data {
        self.expires = Some(now + self.rtt.timeout());
        Data {
            syn: false,
            cwr: false,
            offset: self.board.next(),
            len: 0,
            phase: self.phase(),
        }
    }

    /// There is something to send, and no room for it at the other end.
    pub(super) fn is_shut(&self) -> bool {
        self.unsent() > 0 && self.new_len().is_none()
    }

    fn restart_after_idleness(&mut self, now: Instant) {
        let idle = self.board.next() > 0 && self.board.flight() == 0 && self.unsent() > 0;
        if !idle || now.since(self.last_sent) <= self.rtt.timeout_unprolonged() {
            return;
        }
        self.window
            .restart(u64::from(self.config.initial_window_segments));
        self.counters.restarts += 1;
        self.first_slow_start = false;
        self.recall(now);
        self.pacer.slow_start_begins(&self.seen(), now, true);
        self.note_window(now);
        // Once, though the other end may have no room yet.
        self.last_sent = now;
    }

    /// As a jump lets it.
    fn open_window(&mut self) {
        if !self.pacer.is_on() {
            return;
        }
        let mss = u64::from(self.config.mss);
        let segments = |bytes: u64| (bytes / mss) as u32;
        let (in_flight, cwnd) = (self.board.pipe(), self.window.cwnd());
        if let Some(window) = self.pacer.opens(segments(in_flight), segments(cwnd)) {
            self.window.open(u64::from(window) * mss);
        }
    }

    /// The earliest time for the next segment.
    pub(super) fn ready(&self) -> Instant {
        match &self.auto {
            Some(auto) if auto.is_unpaced() => Instant::ZERO,
            Some(auto) => self.pacer.ready().max(Auto::ready(auto)),
            None => self.pacer.ready(),
        }
    }

    fn unsent(&self) -> u64 {
        self.written - self.board.next()
    }

    /// Whether one more segment may be under way.
    fn has_room(&self) -> bool {
        self.board.pipe() + u64::from(self.config.mss) <= self.window.cwnd()
    }

    fn choose(&mut self) -> Option<Choice> {
        let (has_room, new) = (self.has_room(), self.new_len());
        if self.probes {
            let last = self.board.last_missing().map(Choice::Again);
            return new.map(Choice::New).or(last);
        }
        recovery::choose(self.recovery, &mut self.board, has_room, new)
    }

    /// Of a segment of new data, if there are some and the other end has room for them.
    pub(super) fn new_len(&self) -> Option<u32> {
        let len = self.unsent().min(u64::from(self.config.mss));
        let fits = len > 0 && self.board.next() + len <= self.room_to;
        fits.then_some(len as u32)
    }

    fn send(&mut self, choice: Choice, now: Instant) -> (Data, Ecn) {
        let part = match choice {
            Choice::New(len) => self.board.send_new(len, now),
            Choice::Again(part) => {
                self.board.resend(part, now);
                part
            }
            Choice::Rescue(part) => {
                self.board.resend_rescue(part, now);
                part
            }
        };
        let is_new = matches!(choice, Choice::New(_));
        if let Some(Recovery::Fast { first, .. }) = &mut self.recovery {
            *first = false;
        }
        if let Some(prr) = &mut self.prr {
            prr.sent(u64::from(part.len));
        }
        self.counters.segments += 1;
        self.counters.retransmitted += u64::from(!is_new);
        let (flight, is_full) = (self.board.flight(), !self.has_room());
        let (acknowledged, next) = (self.board.acknowledged(), self.board.next());
        self.usage.sent(flight, is_full, acknowledged, next);
        self.pacer.sent(now);
        if let Some(auto) = &mut self.auto {
            auto.sent(part.len, self.rtt.min(), now);
        }
        self.last_sent = now;
        // RFC 6298, 5.1.
        if self.expires.is_none() {
            self.expires = Some(now + self.rtt.timeout());
        }
        self.note_probe(is_new, now);
        let (ecn, cwr) = self.marked.says(is_new);
        let data = Data {
            syn: false,
            cwr,
            offset: part.offset,
            len: part.len,
            phase: self.phase(),
        };
        (data, ecn)
    }

    fn note_probe(&mut self, is_new: bool, now: Instant) {
        if core::mem::take(&mut self.probes) {
            self.counters.probes += 1;
            self.tlp.sent(self.board.next(), !is_new);
        } else if is_new {
            self.plan_probe(now);
        }
    }
}
