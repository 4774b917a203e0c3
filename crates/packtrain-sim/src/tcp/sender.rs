//! The end that sends: its parts put together, and no algorithm of its own.
//!
//! ```text
//!                 first loss known                        all that was
//!          ┌──────────────────────────▶ Fast ───────────▶ sent by then   ──┐
//!          │                             │ timer          is acknowledged  │
//!  Open ───┼──────────────────────────▶ Timeout ────────▶                ──┼──▶ Open
//!          │      timer                  ▲ timer                           │
//!          └──────────────────────────▶ Marked ─────────▶ and one more   ──┘
//!                 mark                   │ loss
//!                                        └──────────────▶ Fast
//! ```
//!
//! What is done when an acknowledgement comes stands in `acknowledging`, when a timer does in `timing`, and when something may
//! leave in `sending`.
//!
//! Who drives it, in virtual time: [`Sender::connect`] once, [`Sender::write`] when the application has data,
//! [`Sender::handle`] for what comes, [`Sender::handle_timeout`] when [`Sender::poll_timeout`] has come; and after
//! each of them, and whenever the interface has room, [`Sender::poll_transmit`] until it gives nothing. Times never
//! go back.

use std::cell::RefCell;
use std::rc::Rc;

use packtrain_proto::pacing::path::Path;
use packtrain_proto::pacing::spacing::Seen;
use packtrain_proto::time::{Duration, Instant};

use super::auto::{Auto, Destination};
use super::congestion::Reno;
use super::cubic::Cubic;
use super::hystart::HyStart;
use super::marks::Marked;
use super::pacer::{Pacer, RoundTrip};
use super::prr::Prr;
use super::recovery::Recovery;
use super::rtt::RttEstimator;
use super::scoreboard::Scoreboard;
use super::segment::{Acknowledgement, Phase};
use super::tlp::Tlp;
use super::usage::Usage;
pub use config::{Reduction, SenderConfig, SenderCounters, Window};

mod acknowledging;
mod config;
mod sending;
mod timing;

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
    hystart: Option<HyStart>,
    usage: Usage,
    rtt: RttEstimator,
    pacer: Pacer,
    auto: Option<Auto>,
    marked: Marked,
    recovery: Option<Recovery>,
    /// While the window comes down.
    prr: Option<Prr>,
    tlp: Tlp,
    /// Bytes that have arrived, ever, in order or not.
    delivered: u64,
    /// Where what the application has written ends.
    written: u64,
    /// What the other end has room for ends here.
    room_to: u64,
    /// The window that the last acknowledgement told of.
    told_bytes: Option<u64>,
    expires: Option<Instant>,
    /// When a probe goes, if nothing comes.
    probes_at: Option<Instant>,
    /// It is to go now.
    probes: bool,
    last_sent: Instant,
    /// Something could leave if it were not for the pacer.
    held: bool,
    /// The other end is to be asked whether it has room.
    asks: bool,
    first_slow_start: bool,
    pub counters: SenderCounters,
    /// Every change, if it is recorded.
    pub windows: Vec<Window>,
    /// When the handshake ended.
    pub opened: Option<Instant>,
    /// When the window was cut for the first time, and when everything that was under way then had come.
    pub first_cut: Option<Instant>,
    pub first_repaired: Option<Instant>,
}

impl Sender {
    /// # Panics
    /// If the configuration contradicts itself.
    pub fn new(config: SenderConfig) -> Sender {
        config.check();
        let mss = u64::from(config.mss);
        let mut window = Reno::new(mss, u64::from(config.initial_window_segments));
        if let Some(segments) = config.ssthresh_segments {
            window.set_ssthresh(u64::from(segments) * mss);
        }
        Sender {
            connection: Connection::Closed,
            board: Scoreboard::with(mss, config.detection),
            window,
            cubic: config.cubic.then(|| Cubic::new(config.cubic_holds)),
            hystart: config.hystart.then(HyStart::default),
            usage: Usage::default(),
            rtt: RttEstimator::default(),
            pacer: Pacer::new(config.spacing, config.record),
            auto: None,
            marked: Marked::default(),
            recovery: None,
            prr: None,
            tlp: Tlp::default(),
            delivered: 0,
            written: 0,
            room_to: 0,
            told_bytes: None,
            expires: None,
            probes_at: None,
            probes: false,
            last_sent: Instant::ZERO,
            held: false,
            asks: false,
            first_slow_start: true,
            counters: SenderCounters::default(),
            windows: Vec::new(),
            opened: None,
            first_cut: None,
            first_repaired: None,
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
        } else if self.connection == Connection::Open {
            self.acknowledge(read, now);
        }
        // Else the answer to the SYN was lost, and this is dropped (RFC 9293, 3.10.7.3).
    }

    fn open(&mut self, answer: &Acknowledgement, now: Instant) {
        let Connection::Opening { sent, .. } = self.connection else {
            return; // the answer to a SYN that was sent again
        };
        self.connection = Connection::Open;
        self.opened = Some(now);
        self.room_to = answer.window_bytes;
        self.marked.open(self.config.ecn, answer.ece);
        self.expires = None;
        if sent == 1 {
            let rtt = now.since(self.last_sent);
            self.rtt.sample(rtt, rtt);
        } else {
            self.rtt.opens_unmeasured();
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
}

/// What the parts are told of each other.
impl Sender {
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

    /// The window is being cut, or a loss repaired without a timeout.
    fn is_reducing(&self) -> bool {
        matches!(
            self.recovery,
            Some(Recovery::Fast { .. } | Recovery::Marked { .. })
        )
    }

    fn is_repairing(&self) -> bool {
        matches!(self.recovery, Some(Recovery::Fast { .. }))
    }

    fn phase(&self) -> Phase {
        let in_slow_start = self.window.in_slow_start() && !self.is_reducing();
        match (in_slow_start, self.first_slow_start) {
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
        if !self.config.record {
            return;
        }
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
