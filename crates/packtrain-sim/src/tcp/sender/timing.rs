//! What time changes when nothing comes.

use packtrain_proto::time::Instant;

use super::super::recovery::Recovery;
use super::super::tlp::Tlp;
use super::{Connection, Sender};

impl Sender {
    pub fn poll_timeout(&self) -> Option<Instant> {
        let earlier = |a: Option<Instant>, b: Option<Instant>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let ready = self.held.then(|| self.ready());
        let lost = earlier(self.board.detects_at(), self.probes_at);
        earlier(earlier(self.expires, ready), lost)
    }

    /// There is no room for what it would send: it is asked again when there is, and not when its time has come.
    pub fn wait_for_room(&mut self) {
        self.held = false;
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if is_due(self.board.detects_at()) {
            self.overdue(now);
        }
        if is_due(self.probes_at) {
            self.probes_at = None;
            self.probes = self.may_probe();
            if self.probes {
                // It has its time again.
                self.expires = Some(now + self.rtt.timeout());
            }
        }
        if is_due(self.expires) {
            self.expire(now);
        }
    }

    /// What was overtaken has not come.
    fn overdue(&mut self, now: Instant) {
        let pipe = self.board.pipe();
        self.detect(now);
        if self.board.pipe() == pipe {
            return;
        }
        let was_repairing = self.is_repairing();
        self.recover(None, now);
        if !was_repairing {
            // As if a segment had come, so that there is a window.
            self.come_down(u64::from(self.config.mss), false);
        }
        self.note_window(now);
    }

    fn may_probe(&self) -> bool {
        let is_open = matches!(self.recovery, None | Some(Recovery::Marked { .. }));
        let is_told_nothing = self.board.sacked_bytes() == 0 && self.board.detects_at().is_none();
        is_open && is_told_nothing && !self.tlp.is_outstanding() && self.board.flight() > 0
    }

    /// From now on it is waited for.
    pub(super) fn plan_probe(&mut self, now: Instant) {
        if !self.config.tail_probe {
            return;
        }
        self.probes = false;
        self.probes_at = self.may_probe().then(|| {
            let is_single = self.board.flight_segments() == 1;
            let at = now + Tlp::timeout(self.rtt.smoothed(), is_single);
            self.expires.map_or(at, |expires| at.min(expires))
        });
    }

    pub(super) fn forget_probe(&mut self) {
        self.tlp.reset();
        self.probes_at = None;
        self.probes = false;
    }

    /// The other end has no room, and nothing is under way that could tell of any: it is asked (RFC 9293, 3.8.6.1).
    pub(super) fn plan_question(&mut self, now: Instant) {
        if self.expires.is_none() && self.board.flight() == 0 && self.is_shut() {
            self.expires = Some(now + self.rtt.timeout());
        }
    }

    fn expire(&mut self, now: Instant) {
        self.expires = None;
        if self.board.flight() == 0 && self.connection == Connection::Open {
            self.asks = self.is_shut();
            self.rtt.expire();
            return;
        }
        // A loss that the window was reduced for already, whether by this timer or before it, is one loss. As Linux has it, it is
        // another one if something new was acknowledged since the timer expired.
        let is_another = match self.recovery {
            None => true,
            Some(Recovery::Fast { .. } | Recovery::Marked { .. }) => false,
            Some(Recovery::Timeout { .. }) => !self.rtt.has_expired(),
        };
        self.rtt.expire();
        if let Connection::Opening { send, .. } = &mut self.connection {
            *send = true;
            return;
        }
        self.counters.timeouts += 1;
        if is_another {
            self.cut(self.board.flight(), now);
        }
        self.prr = None;
        self.forget_probe();
        if let Some(cubic) = &mut self.cubic {
            cubic.reset();
        }
        if let Some(hystart) = &mut self.hystart {
            hystart.begin();
        }
        self.board.time_out(now);
        self.window.collapse_beside(self.board.pipe());
        self.recovery = Some(Recovery::Timeout {
            until: self.board.next(),
        });
        self.first_slow_start = false;
        self.recall(now);
        self.pacer.slow_start_begins(&self.seen(), now, false);
        self.note_window(now);
    }
}
