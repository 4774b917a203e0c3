//! What an acknowledgement changes.

use packtrain_proto::pacing::spacing;
use packtrain_proto::time::{Duration, Instant};

use super::super::auto::Auto;
use super::super::prr::Prr;
use super::super::recovery::Recovery;
use super::super::scoreboard::{Detection, News};
use super::super::segment::{Acknowledgement, SACK_BLOCKS_MAX};
use super::super::{hystart, rack};
use super::{Reduction, Sender};

impl Sender {
    pub(super) fn acknowledge(&mut self, read: &Acknowledgement, now: Instant) {
        let mut sacks: [_; SACK_BLOCKS_MAX] = Default::default();
        let mut told = 0;
        for (sack, block) in sacks.iter_mut().zip(read.sacks()) {
            *sack = block;
            told += 1;
        }
        let (lost_before, flight_before) = (self.board.lost_ever(), self.board.flight());
        let tells_of_room = self.tells_of_room(read);
        let news = match tells_of_room && self.counts_duplicates() {
            true => News::default(),
            false => self.board.acknowledge(read.to, &sacks[..told], now),
        };
        self.note_room(read);
        if let Some((oldest, newest)) = news.rtt {
            self.rtt.sample(oldest, newest);
        }
        if news.advanced > 0 {
            self.rtt.progress();
            let under_way = self.board.flight() > 0;
            self.expires = under_way.then(|| now + self.rtt.timeout());
        }
        self.delivered += news.delivered;
        // Over a path whose round trip is shorter than its interval, a stream has nothing under way most of the time.
        let rests = self.board.flight() == 0 && self.new_len().is_none();
        if let Some(auto) = &mut self.auto {
            auto.delivered(news.delivered, self.rtt.min(), rests, now);
        }
        self.end_slow_start(&news, now);
        self.grow(&news, now);
        self.detect(now);
        let is_duplicate = news.advanced == 0 && news.delivered == 0 && !tells_of_room;
        self.answer_of_probe(read.to, is_duplicate, flight_before, now);
        self.recover(read.ece.then_some(flight_before), now);
        let loses_more = self.board.lost_ever() > lost_before;
        self.come_down(news.delivered, news.advanced > 0 && !loses_more);
        self.recall(now);
        self.first_slow_start &= self.window.in_slow_start();
        if self.pacer.is_on() {
            match self.is_reducing() {
                true => self.pacer.slow_start_ends(now),
                false => self.space(now),
            }
        }
        if news.advanced > 0 {
            self.plan_probe(now);
        }
        self.note_window(now);
    }

    /// Of that alone, in another window than the one before: it is no duplicate (RFC 5681, 2). The window of the handshake has no
    /// scale, and is not compared.
    fn tells_of_room(&mut self, read: &Acknowledgement) -> bool {
        let before = self.told_bytes.replace(read.window_bytes);
        let is_other = before.is_some_and(|before| before != read.window_bytes);
        is_other && read.to == self.board.acknowledged()
    }

    fn counts_duplicates(&self) -> bool {
        matches!(self.config.detection, Detection::DuplicateAcks(_))
    }

    fn note_room(&mut self, read: &Acknowledgement) {
        let was_shut = self.board.flight() == 0 && self.is_shut();
        self.room_to = self.room_to.max(read.to + read.window_bytes);
        if was_shut && !self.is_shut() {
            // The timer ran for the question, and its waits tell nothing of those for data.
            (self.expires, self.asks) = (None, false);
            self.rtt.begin_anew();
        }
    }

    fn space(&mut self, now: Instant) {
        let seen = self.seen();
        // Who shares the path leaves the others what they have of it: as in the program, nothing is free then.
        let is_alone = self.auto.as_ref().is_none_or(Auto::is_alone);
        match self.pacer.jumps_to(&seen).filter(|_| is_alone) {
            None => self.pacer.acknowledged(&seen, now),
            Some(window) => {
                let delivered = self.delivered_segments();
                self.pacer.jumps(&seen, window, delivered, now);
            }
        }
    }

    /// Before the queue is full, if there is a sign of it.
    fn end_slow_start(&mut self, news: &News, now: Instant) {
        if self.is_reducing() || !self.window.in_slow_start() {
            return;
        }
        let Some(hystart) = &mut self.hystart else {
            return;
        };
        let (Some((_, newest)), Some(rtt_min)) = (news.rtt, self.rtt.min()) else {
            return;
        };
        let seen = hystart::Seen {
            acknowledged: self.board.acknowledged(),
            next: self.board.next(),
            cwnd: self.window.cwnd_segments(),
            cwnd_bytes: self.window.cwnd(),
            rtt: newest,
            rtt_min,
            rtt_smoothed: self.rtt.smoothed().unwrap_or(rtt_min),
        };
        if hystart.ends(&seen, now) {
            self.window.set_ssthresh(seen.cwnd_bytes);
        }
    }

    /// The window grows by what has arrived, unless it is cut, or was not what held us back.
    fn grow(&mut self, news: &News, now: Instant) {
        let in_slow_start = self.window.in_slow_start();
        let may_grow = match self.recovery {
            Some(Recovery::Fast { .. } | Recovery::Marked { .. }) => false,
            // Not by what comes behind a hole: one whose repair is lost again would let it grow for a whole timeout, which with
            // short round trips is many, and is cut for once (RFC 5681, 3.1; Linux' `tcp_may_raise_cwnd`).
            Some(Recovery::Timeout { .. }) => news.advanced > 0,
            None => news.advanced > 0 && self.usage.may_grow(self.window.cwnd(), in_slow_start),
        };
        if !may_grow {
            return;
        }
        let mss = u64::from(self.config.mss);
        let delivered = match self.config.counts_acknowledgements {
            true => news.delivered.min(mss),
            false => news.delivered,
        };
        let Some(cubic) = &mut self.cubic else {
            self.window.grow(delivered);
            return;
        };
        let segments = self.window.cwnd_segments();
        if in_slow_start {
            self.window.grow(delivered);
            if !self.window.in_slow_start() && self.pacer.path().is_some() {
                cubic.is_full_at(segments);
            }
            return;
        }
        let acked = delivered / mss;
        let rtt_min = self.rtt.min().unwrap_or(Duration::ZERO);
        let each = cubic.each(segments, acked, rtt_min, now);
        self.window.grow_for_each(each, delivered);
    }

    /// What is lost by time.
    pub(super) fn detect(&mut self, now: Instant) {
        let seen = rack::Seen {
            rtt_min: self.rtt.min(),
            rtt_smoothed: self.rtt.smoothed(),
            is_recovering: matches!(
                self.recovery,
                Some(Recovery::Fast { .. } | Recovery::Timeout { .. })
            ),
        };
        self.board.detect(&seen, now);
        // One timer at a time: this one comes first.
        if self.board.detects_at().is_some() {
            self.probes_at = None;
        }
    }

    /// `flight`: what was under way before.
    fn answer_of_probe(&mut self, to: u64, is_duplicate: bool, flight: u64, now: Instant) {
        if self.tlp.acknowledged(to, is_duplicate) && self.recovery.is_none() {
            self.counters.probes_repaired += 1;
            self.cut(flight, now);
        }
    }

    /// The window is cut for a loss, or a mark, of so much that was under way.
    pub(super) fn cut(&mut self, flight: u64, now: Instant) {
        match &mut self.cubic {
            Some(cubic) => {
                let segments = cubic.cut(self.window.cwnd_segments());
                self.window.reduce_to(segments);
            }
            None => self.window.reduce(flight),
        }
        self.first_slow_start = false;
        self.first_cut.get_or_insert(now);
        self.marked.cut();
        if let Some(auto) = &mut self.auto {
            // Whoever has jumped went by all of it.
            let is_spaced =
                self.pacer.phase() == spacing::Phase::Spacing && !self.pacer.is_jump_unproven();
            let interval = self.pacer.interval().filter(|_| is_spaced);
            auto.cut(interval, self.rtt.min(), now);
        }
    }

    /// The same, and the window comes down to that in its own time.
    fn begin_reduction(&mut self, flight: u64, now: Instant) {
        let prior = self.window.cwnd();
        self.cut(flight, now);
        if self.config.recovery == Reduction::Prr {
            let mss = u64::from(self.config.mss);
            self.prr = Some(Prr::new(mss, prior, self.window.ssthresh()));
            self.window.hold(prior);
        }
    }

    /// `delivered`, and whether that was progress.
    pub(super) fn come_down(&mut self, delivered: u64, progresses: bool) {
        let Some(prr) = &mut self.prr else {
            return;
        };
        if let Some(cwnd) = prr.acknowledged(delivered, progresses, self.board.pipe()) {
            self.window.hold(cwnd);
        }
    }

    /// A recovery ends, or begins. `echo`: of a mark; and what was under way then.
    pub(super) fn recover(&mut self, echo: Option<u64>, now: Instant) {
        let acknowledged = self.board.acknowledged();
        let ended = self
            .recovery
            .take_if(|recovery| acknowledged >= recovery.until());
        if ended.is_some() {
            self.first_repaired.get_or_insert(now);
        }
        if ended.is_some() && self.prr.take().is_some() {
            self.window.settle();
        }
        let mut left = None;
        if self.pacer.is_on() {
            let (seen, delivered) = (self.seen(), self.delivered_segments());
            let is_repairing = self.is_repairing();
            left = self.pacer.still_retreats_to(&seen, delivered, is_repairing);
        }
        let is_marked = matches!(self.recovery, Some(Recovery::Marked { .. }));
        if (is_marked || self.recovery.is_none()) && self.board.has_loss() {
            if !is_marked {
                self.begin_reduction(self.board.flight(), now);
            }
            left = self.pacer.retreats_to(self.delivered_segments());
            self.counters.fast_recoveries += 1;
            self.forget_probe();
            self.recovery = Some(Recovery::Fast {
                until: self.board.begin_recovery(),
                first: true,
            });
        } else if let Some(flight) = echo
            && self.recovery.is_none()
            && self.marked.is_agreed()
        {
            self.begin_reduction(flight, now);
            self.counters.marks += 1;
            // That the window was cut is told with the next new data, and until they are acknowledged an echo is old.
            self.recovery = Some(Recovery::Marked {
                until: self.board.next() + 1,
            });
        }
        if let Some(segments) = left {
            self.window.reduce_to(u64::from(segments));
            self.prr = None;
        }
    }
}
