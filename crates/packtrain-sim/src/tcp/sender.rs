//! The end that sends: its parts put together, and no algorithm of its own.
//!
//! ```text
//!                 first loss known                        all that was
//!          ┌──────────────────────────▶ Fast ───────────▶ sent by then   ──┐
//!  Open ───┤                             │ timer          is acknowledged  ├──▶ Open
//!          └──────────────────────────▶ Timeout ────────▶                ──┘
//!                 timer
//! ```
//!
//! Who drives it, in virtual time: [`Sender::connect`] once, [`Sender::write`] when the application has data,
//! [`Sender::handle`] for what comes, [`Sender::handle_timeout`] when [`Sender::poll_timeout`] has come; and after
//! each of them, and whenever the interface has room, [`Sender::poll_transmit`] until it gives nothing. Times never
//! go back.

use std::cell::RefCell;
use std::rc::Rc;

use packtrain_proto::pacing::path::Path;
use packtrain_proto::pacing::spacing::{self, Seen};
use packtrain_proto::time::{Duration, Instant};

use super::auto::{Auto, Destination};
use super::congestion::Reno;
use super::cubic::Cubic;
use super::pacer::{Pacer, RoundTrip, SpacingConfig};
use super::recovery::{self, Choice, Recovery};
use super::rtt::RttEstimator;
use super::scoreboard::{News, Scoreboard};
use super::segment::{Acknowledgement, Data, Phase, SACK_BLOCKS_MAX};
use super::usage::Usage;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderConfig {
    /// Bytes of content of a segment.
    pub mss: u32,
    pub initial_window_segments: u32,
    /// Where slow start is to end, if something is known. A path that is remembered for spacing sets it, too.
    pub ssthresh_segments: Option<u32>,
    /// `None`: segments leave as fast as the interface takes them.
    pub spacing: Option<SpacingConfig>,
    /// It leaves at its part of what the path carries, by what all flows that do so have found out.
    pub auto: bool,
    /// The window is CUBIC's, out of slow start, and not Reno's.
    pub cubic: bool,
}

impl Default for SenderConfig {
    fn default() -> SenderConfig {
        SenderConfig {
            mss: 1460,
            initial_window_segments: 10,
            ssthresh_segments: None,
            spacing: None,
            auto: false,
            cubic: false,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Segments with data, those that went again included.
    pub segments: u64,
    pub retransmitted: u64,
    /// Times the window was halved for a loss that acknowledgements told of.
    pub fast_recoveries: u64,
    /// Times the timer expired with data under way.
    pub timeouts: u64,
    /// Times the window was old after idleness.
    pub restarts: u64,
}

/// The window at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub at: Instant,
    pub cwnd_bytes: u64,
    pub ssthresh_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Connection {
    Closed,
    /// A SYN is to be sent; how many were.
    Opening {
        sent: u32,
        send: bool,
    },
    Open,
}

#[derive(Debug)]
pub struct Sender {
    config: SenderConfig,
    connection: Connection,
    board: Scoreboard,
    window: Reno,
    cubic: Option<Cubic>,
    usage: Usage,
    rtt: RttEstimator,
    pacer: Pacer,
    auto: Option<Auto>,
    recovery: Option<Recovery>,
    /// Bytes that have arrived, ever, in order or not.
    delivered: u64,
    /// Where what the application has written ends.
    written: u64,
    /// What the other end has room for ends here.
    room_to: u64,
    expires: Option<Instant>,
    last_sent: Instant,
    /// Something could leave if it were not for the pacer.
    held: bool,
    first_slow_start: bool,
    pub counters: SenderCounters,
    /// Every change.
    pub windows: Vec<Window>,
    /// When the handshake ended.
    pub opened: Option<Instant>,
}

impl Sender {
    pub fn new(config: SenderConfig) -> Sender {
        let mss = u64::from(config.mss);
        let mut window = Reno::new(mss, u64::from(config.initial_window_segments));
        if let Some(segments) = config.ssthresh_segments {
            window.set_ssthresh(u64::from(segments) * mss);
        }
        Sender {
            connection: Connection::Closed,
            board: Scoreboard::new(mss),
            window,
            cubic: config.cubic.then(Cubic::default),
            usage: Usage::default(),
            rtt: RttEstimator::default(),
            pacer: Pacer::new(config.spacing),
            auto: None,
            recovery: None,
            delivered: 0,
            written: 0,
            room_to: 0,
            expires: None,
            last_sent: Instant::ZERO,
            held: false,
            first_slow_start: true,
            counters: SenderCounters::default(),
            windows: Vec::new(),
            opened: None,
            config,
        }
    }

    /// Whose rate it has a part of, if its configuration says so.
    pub fn join(&mut self, destination: &Rc<RefCell<Destination>>) {
        let joins = self.config.auto;
        self.auto = joins.then(|| Auto::new(Rc::clone(destination), self.config.mss));
    }

    pub fn window(&self) -> &Reno {
        &self.window
    }

    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    pub fn pacer(&self) -> &Pacer {
        &self.pacer
    }

    /// Bytes that were sent and are not acknowledged with all before them.
    pub fn flight(&self) -> u64 {
        self.board.flight()
    }

    /// Bytes that the other end has, with all before them.
    pub fn acknowledged(&self) -> u64 {
        self.board.acknowledged()
    }

    pub fn is_in_first_slow_start(&self) -> bool {
        self.first_slow_start
    }

    /// Everything that was written is acknowledged.
    pub fn is_done(&self) -> bool {
        self.board.acknowledged() == self.written
    }

    pub fn connect(&mut self) {
        assert_eq!(self.connection, Connection::Closed);
        self.connection = Connection::Opening {
            sent: 0,
            send: true,
        };
    }

    /// The application has so many bytes more.
    pub fn write(&mut self, bytes: u64) {
        self.written += bytes;
    }

    pub fn handle(&mut self, read: &Acknowledgement, now: Instant) {
        if read.syn {
            self.open(read, now);
        } else {
            self.acknowledge(read, now);
        }
    }

    fn open(&mut self, answer: &Acknowledgement, now: Instant) {
        let Connection::Opening { sent, .. } = self.connection else {
            return; // the answer to a SYN that was sent again
        };
        self.connection = Connection::Open;
        self.opened = Some(now);
        self.room_to = answer.window_bytes;
        self.expires = None;
        self.rtt.progress();
        if sent == 1 {
            let rtt = now.since(self.last_sent);
            self.rtt.sample(rtt, rtt);
        } else {
            // RFC 5681, 3.1: what opens the connection was lost, or its answer.
            self.window.collapse();
        }
        self.recall(now);
        if let Some(path) = self.pacer.path() {
            let segments = path.window(self.config.mss);
            let bytes = u64::from(segments) * u64::from(self.config.mss);
            self.window.set_ssthresh(bytes);
        }
        self.pacer.slow_start_begins(&self.seen(), now, true);
        self.note_window(now);
    }

    fn acknowledge(&mut self, read: &Acknowledgement, now: Instant) {
        let mut sacks: [_; SACK_BLOCKS_MAX] = Default::default();
        let mut told = 0;
        for (sack, block) in sacks.iter_mut().zip(read.sacks()) {
            *sack = block;
            told += 1;
        }
        let news = self.board.acknowledge(read.to, &sacks[..told], now);
        self.room_to = self.room_to.max(read.to + read.window_bytes);
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
        self.grow(&news, now);
        self.recover(now);
        self.recall(now);
        self.first_slow_start &= self.window.in_slow_start();
        match self.recovery {
            Some(Recovery::Fast { .. }) => self.pacer.slow_start_ends(now),
            _ => self.space(now),
        }
        self.note_window(now);
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

    /// As a jump lets it.
    fn open_window(&mut self) {
        let mss = u64::from(self.config.mss);
        let segments = |bytes: u64| (bytes / mss) as u32;
        let (in_flight, cwnd) = (self.board.pipe(), self.window.cwnd());
        if let Some(window) = self.pacer.opens(segments(in_flight), segments(cwnd)) {
            self.window.open(u64::from(window) * mss);
        }
    }

    fn delivered_segments(&self) -> u32 {
        (self.delivered / u64::from(self.config.mss)) as u32
    }

    /// What is remembered of the path may have changed, or who shares it.
    fn recall(&mut self, now: Instant) {
        let Some(auto) = &self.auto else {
            return;
        };
        let (path, rate) = (
            auto.path(self.rtt.min(), now),
            auto.rate(self.rtt.min(), now),
        );
        // Slow start is no faster than the rule lets it be.
        self.pacer.remember(path.zip(rate).map(|(path, rate)| Path {
            rate_bytes_per_s: path.rate_bytes_per_s.min(rate),
            ..path
        }));
    }

    /// The earliest time for the next segment.
    fn ready(&self) -> Instant {
        match &self.auto {
            Some(auto) if auto.is_unpaced() => Instant::ZERO,
            Some(auto) => self.pacer.ready().max(auto.ready()),
            None => self.pacer.ready(),
        }
    }

    /// The window grows by what has arrived, unless it is halved for a loss, or was not what held us back.
    fn grow(&mut self, news: &News, now: Instant) {
        let in_slow_start = self.window.in_slow_start();
        let may_grow = match self.recovery {
            Some(Recovery::Fast { .. }) => false,
            Some(Recovery::Timeout { .. }) => true,
            None => news.advanced > 0 && self.usage.may_grow(self.window.cwnd(), in_slow_start),
        };
        if !may_grow {
            return;
        }
        let Some(cubic) = &mut self.cubic else {
            self.window.grow(news.delivered);
            return;
        };
        let segments = self.window.cwnd_segments();
        if in_slow_start {
            self.window.grow(news.delivered);
            if !self.window.in_slow_start() && self.pacer.path().is_some() {
                cubic.is_full_at(segments);
            }
            return;
        }
        let acked = news.delivered / u64::from(self.config.mss);
        let rtt_min = self.rtt.min().unwrap_or(Duration::ZERO);
        let each = cubic.each(segments, acked, rtt_min, now);
        self.window.grow_for_each(each, news.delivered);
    }

    /// The window is cut for a loss.
    fn cut(&mut self, now: Instant) {
        match &mut self.cubic {
            Some(cubic) => {
                let segments = cubic.cut(self.window.cwnd_segments());
                self.window.reduce_to(segments);
            }
            None => self.window.reduce(self.board.flight()),
        }
        if let Some(auto) = &mut self.auto {
            // Whoever has jumped went by all of it.
            let is_spaced =
                self.pacer.phase() == spacing::Phase::Spacing && !self.pacer.is_jump_unproven();
            let interval = self.pacer.interval().filter(|_| is_spaced);
            auto.cut(interval, self.rtt.min(), now);
        }
    }

    fn recover(&mut self, now: Instant) {
        let acknowledged = self.board.acknowledged();
        self.recovery
            .take_if(|recovery| acknowledged >= recovery.until());
        let (seen, delivered) = (self.seen(), self.delivered_segments());
        let is_repairing = matches!(self.recovery, Some(Recovery::Fast { .. }));
        let mut left = self.pacer.still_retreats_to(&seen, delivered, is_repairing);
        if self.recovery.is_none() && self.board.has_loss() {
            self.cut(now);
            left = self.pacer.retreats_to(delivered);
            self.board.begin_recovery();
            self.counters.fast_recoveries += 1;
            self.recovery = Some(Recovery::Fast {
                until: self.board.next(),
                first: true,
            });
        }
        if let Some(segments) = left {
            self.window.reduce_to(u64::from(segments));
        }
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        let ready = self.held.then(|| self.ready());
        self.expires.into_iter().chain(ready).min()
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        if self.expires.is_none_or(|expires| expires > now) {
            return; // it is the pacer's
        }
        self.expires = None;
        // A loss that the window was reduced for already, whether by this timer or before it, is one loss. As Linux has it, it is
        // another one if something new was acknowledged since the timer expired.
        let is_another = match self.recovery {
            None => true,
            Some(Recovery::Fast { .. }) => false,
            Some(Recovery::Timeout { .. }) => !self.rtt.has_expired(),
        };
        self.rtt.expire();
        if let Connection::Opening { send, .. } = &mut self.connection {
            *send = true;
            return;
        }
        self.counters.timeouts += 1;
        if is_another {
            self.cut(now);
        }
        self.window.collapse();
        if let Some(cubic) = &mut self.cubic {
            cubic.reset();
        }
        self.board.lose_all();
        self.recovery = Some(Recovery::Timeout {
            until: self.board.next(),
        });
        self.first_slow_start = false;
        self.recall(now);
        self.pacer.slow_start_begins(&self.seen(), now, false);
        self.note_window(now);
    }

    /// The next segment for the interface, if it is time for one.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Data> {
        match &mut self.connection {
            Connection::Closed => return None,
            Connection::Opening { sent, send } => {
                let due = core::mem::take(send);
                *sent += u32::from(due);
                return due.then(|| self.open_segment(now));
            }
            Connection::Open => {}
        }
        self.held = false;
        self.restart_after_idleness(now);
        self.open_window();
        let choice = self.choose()?;
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
            cwr: false,
            offset: 0,
            len: 0,
            phase: self.phase(),
        }
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

    fn unsent(&self) -> u64 {
        self.written - self.board.next()
    }

    /// Whether one more segment may be under way.
    fn has_room(&self) -> bool {
        self.board.pipe() + u64::from(self.config.mss) <= self.window.cwnd()
    }

    fn choose(&mut self) -> Option<Choice> {
        let (has_room, new) = (self.has_room(), self.new_len());
        recovery::choose(self.recovery, &mut self.board, has_room, new)
    }

    /// Of a segment of new data, if there are some and the other end has room for them.
    fn new_len(&self) -> Option<u32> {
        let len = self.unsent().min(u64::from(self.config.mss));
        let fits = len > 0 && self.board.next() + len <= self.room_to;
        fits.then_some(len as u32)
    }

    fn send(&mut self, choice: Choice, now: Instant) -> Data {
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
        if let Some(Recovery::Fast { first, .. }) = &mut self.recovery {
            *first = false;
        }
        self.counters.segments += 1;
        self.counters.retransmitted += u64::from(!matches!(choice, Choice::New(_)));
        let (flight, is_full) = (self.board.flight(), !self.has_room());
        let (acknowledged, next) = (self.board.acknowledged(), self.board.next());
        self.usage.sent(flight, is_full, acknowledged, next);
        self.pacer.sent(now);
        if let Some(auto) = &mut self.auto {
            auto.sent(part.len, self.rtt.min(), now);
        }
        self.last_sent = now;
        // RFC 6298, 5.1.
        let timeout = self.rtt.timeout();
        self.expires.get_or_insert(now + timeout);
        Data {
            syn: false,
            cwr: false,
            offset: part.offset,
            len: part.len,
            phase: self.phase(),
        }
    }

    fn phase(&self) -> Phase {
        match (self.window.in_slow_start(), self.first_slow_start) {
            (true, true) => Phase::FirstSlowStart,
            (true, false) => Phase::LaterSlowStart,
            (false, _) => Phase::Steady,
        }
    }

    fn seen(&self) -> Seen {
        let mss = u64::from(self.config.mss);
        let segments = |bytes: u64| u32::try_from(bytes / mss).unwrap_or(u32::MAX);
        let round_trip = match self.pacer.round_trip() {
            RoundTrip::Smoothed => self.rtt.smoothed(),
            RoundTrip::Least => self.rtt.min(),
        };
        Seen {
            una: self.board.acknowledged() as u32,
            nxt: self.board.next() as u32,
            rtt_us: round_trip.unwrap_or(Duration::ZERO).as_micros() as u32,
            cwnd: segments(self.window.cwnd()),
            ssthresh: segments(self.window.ssthresh()),
            mss: self.config.mss,
        }
    }

    fn note_window(&mut self, at: Instant) {
        let window = Window {
            at,
            cwnd_bytes: self.window.cwnd(),
            ssthresh_bytes: self.window.ssthresh(),
        };
        let last = self.windows.last();
        let same = |last: &Window| {
            (last.cwnd_bytes, last.ssthresh_bytes) == (window.cwnd_bytes, window.ssthresh_bytes)
        };
        if !last.is_some_and(same) {
            self.windows.push(window);
        }
    }
}
