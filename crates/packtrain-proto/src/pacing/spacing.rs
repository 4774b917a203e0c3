//! Clustered Packet Spacing: in slow start, segments leave a round trip ÷ window apart (CPS, section 4).
//!
//! ```text
//!             begin                    interval ≤ T, path unknown
//!   Free ──────────────▶ Spacing ─────────────────────────────────▶ Clusters
//!    ▲                      │                                           │
//!    │ loss; a round after  │                     window ≥ ssthresh, or │
//!    │ window ≥ ssthresh    │                                      loss │
//!    └──────────────────────┴───────────────────────────────────────────┘
//! ```
//!
//! Slow start goes on in rounds: one is over when more is acknowledged than the window that it began with. The window doubles in each, so a
//! round sends twice that window, and these segments are spread over one round trip. (With the window as it
//! grows from one acknowledgement to the next, what each round brings would leave more and more behind: the window would grow by 1.76
//! in a round trip, not by 2.) The first flight is the initial window.
//!
//! T is the precision of who sends: what it cannot space it sends as ordinary TCP does, and the seeds that are
//! set by then grow into clusters, T apart. Where the path is [remembered](super::path), spacing goes on below T, as well as it
//! can be done, and never above the path's rate. And there segments go on to leave evenly when slow start is over, until the first loss: acknowledgements
//! that come in a bunch behind a pause would be answered in a burst, which a small buffer has no room for.

use super::path::Path;

const SECOND_NS: u64 = 1_000_000_000;
/// After slow start a whole window would leave in a round trip less this part of it: what timers that were late have left behind
/// would be missing for ever.
pub const CATCH_UP_DIVISOR: u64 = 64;
/// Of round trips that are shorter than so many times T nothing is made even: it leaves in pieces that take a T.
pub const EVEN_PRECISIONS: u64 = 16;
/// The window of a jump is open for what leaves in so many nanoseconds, five pieces as the kernel sends them, and for some segments.
pub const AHEAD_NS: u64 = 5_000_000;
pub const AHEAD_SEGMENTS: u64 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Phase {
    /// Ordinary TCP, out of slow start.
    #[default]
    Free,
    /// Slow start, spaced.
    Spacing,
    /// Slow start that is not spaced any more: each acknowledgement is answered at once.
    Clusters,
}

/// What becomes of a window that has grown as far as it is to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum Fill {
    #[default]
    NotYet,
    /// For one more round what it lets go is spaced as in slow start.
    Filling,
    /// What it lets go leaves evenly, out of slow start.
    Even,
}

/// What a sender knows when an acknowledgement has been taken in. Sequence numbers in bytes, windows in segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// First byte that is not acknowledged.
    pub una: u32,
    /// First byte that was never sent.
    pub nxt: u32,
    /// The round trip that is spaced by; 0: not known yet. The smoothed one has in it what receivers wait before they acknowledge,
    /// so that what is spaced by it lags behind its acknowledgements; the least one has not.
    pub rtt_us: u32,
    pub cwnd: u32,
    pub ssthresh: u32,
    pub mss: u32,
}

impl Seen {
    fn is_in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// What may be sent before more is acknowledged: `nxt`, once that has been sent.
    fn window_end(&self) -> u32 {
        self.una.wrapping_add(self.cwnd.wrapping_mul(self.mss))
    }
}

/// Of one connection. Every [`Seen`] belongs to the same one, in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Spacing {
    phase: Phase,
    /// The first flight is under way, of so many segments; 0: it is not.
    first_flight: u32,
    /// What follows it may be more than twice as much: nothing was lost that told of the path.
    jumps: bool,
    fill: Fill,
    /// The window may be opened as far as this before it grows by itself, as segments leave; 0: it may not.
    opens_to: u32,
    /// Acknowledged as far as here, the round has ended.
    round_end: u32,
    /// Between two segments.
    interval_ns: u64,
}

impl Spacing {
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Between two segments, while they are spaced.
    pub fn interval_ns(&self) -> Option<u64> {
        let is_spaced = self.phase == Phase::Spacing || self.is_even();
        is_spaced.then_some(self.interval_ns)
    }

    /// Slow start is over, and segments leave evenly.
    pub fn is_even(&self) -> bool {
        self.fill == Fill::Even
    }

    /// Slow start begins: at the handshake's end, after idle, after a timeout. `seen.cwnd` is the first flight. To a path that is
    /// remembered it is spaced also if it is all that the path takes. `jumps`: it does not begin because of a loss.
    pub fn begin(&mut self, seen: &Seen, precision_ns: u64, path: Option<&Path>, jumps: bool) {
        self.first_flight = seen.cwnd;
        self.jumps = jumps && path.is_some();
        self.round_end = seen.window_end();
        self.fill = Fill::NotYet;
        self.opens_to = 0;
        self.phase = match seen.is_in_slow_start() || path.is_some() {
            true => Phase::Spacing,
            false => Phase::Free,
        };
        self.space(seen, seen.cwnd, precision_ns, path);
    }

    /// Whether this acknowledgement is the first answer to a first flight on a path that is remembered: then its window may be
    /// [another one](super::jump).
    pub fn may_jump(&self, seen: &Seen) -> bool {
        self.jumps && self.first_flight > 0 && seen.is_in_slow_start()
    }

    /// The first answer has come, and the window is to be this large, which is sent over one round trip. In place of
    /// [`Spacing::acknowledged`].
    pub fn jumps_to(&mut self, seen: &Seen, window: u32, precision_ns: u64, path: Option<&Path>) {
        self.first_flight = 0;
        self.jumps = false;
        self.opens_to = window;
        // Beyond what is under way now begin the answers to it.
        self.round_end = seen.nxt;
        self.space(seen, window, precision_ns, path);
    }

    /// The window before a segment is sent, where it is another one: of a jump no more is open than is about to leave. Whatever goes wrong
    /// with who spaces, or if somebody else decides about this connection from now on, nothing large leaves at once.
    pub fn opens(&self, in_flight: u32, cwnd: u32) -> Option<u32> {
        if self.phase != Phase::Spacing || self.opens_to <= cwnd {
            return None;
        }
        let soon = AHEAD_NS / self.interval_ns.max(1) + AHEAD_SEGMENTS;
        let window = (u64::from(in_flight) + soon).min(u64::from(self.opens_to)) as u32;
        (window > cwnd).then_some(window)
    }

    /// An acknowledgement was taken in, and the window has grown by it. Of a loss [`Spacing::end`] tells instead.
    pub fn acknowledged(&mut self, seen: &Seen, precision_ns: u64, path: Option<&Path>) {
        let beyond = seen.una.wrapping_sub(self.round_end) as i32;
        if !seen.is_in_slow_start() {
            self.fill(seen, precision_ns, path);
            return;
        }
        let window = match self.first_flight {
            // The first answers to what the round before has sent: the window when that was acknowledged counts.
            // Of that no more than half of the window can be acknowledged already, but for a hole that was closed after a timeout.
            _ if beyond > 0 => {
                let mss = u64::from(seen.mss.max(1));
                let answered = u64::from(beyond.unsigned_abs()).min(u64::from(seen.cwnd / 2) * mss);
                let window = seen.cwnd - (answered / mss) as u32;
                let begun = seen.una.wrapping_sub(answered as u32);
                self.round_end = begun.wrapping_add(window.wrapping_mul(seen.mss));
                window
            }
            // The answers to the first flight begin to leave, be it that all of it is acknowledged at once.
            flight if flight > 0 => flight,
            _ => {
                // Nothing is under way: less was sent than the window had room for.
                if seen.una == seen.nxt {
                    self.round_end = seen.una;
                }
                return;
            }
        };
        self.first_flight = 0;
        // What a jump has to send goes on at its rate if it had to wait for room at the receiver.
        self.opens_to = if seen.cwnd < self.opens_to {
            self.opens_to
        } else {
            0
        };
        let doubled = window.saturating_mul(2).max(self.opens_to);
        self.space(seen, doubled.min(seen.ssthresh), precision_ns, path);
    }

    /// Slow start has ended, and for one more round what the window lets go is spaced. On a path that is not known all is
    /// ordinary then; on one that is it leaves evenly.
    fn fill(&mut self, seen: &Seen, precision_ns: u64, path: Option<&Path>) {
        // It may have been ended by a round trip that had grown, before all of a jump was sent.
        self.opens_to = 0;
        match (self.phase, self.fill) {
            (Phase::Free, Fill::Even) => self.make_even(seen),
            (Phase::Spacing, Fill::NotYet) => {
                self.fill = Fill::Filling;
                self.round_end = seen.window_end();
                self.space(seen, seen.cwnd, precision_ns, path);
            }
            (Phase::Spacing, _) => {
                let beyond = seen.una.wrapping_sub(self.round_end) as i32;
                if beyond < 0 && seen.una != seen.nxt {
                    return;
                }
                self.end();
                let rtt_ns = u64::from(seen.rtt_us) * 1000;
                if path.is_some() && rtt_ns / EVEN_PRECISIONS >= precision_ns {
                    self.fill = Fill::Even;
                    self.make_even(seen);
                }
            }
            _ => self.end(),
        }
    }

    fn make_even(&mut self, seen: &Seen) {
        let interval_ns = interval_ns(seen.rtt_us, seen.cwnd);
        self.interval_ns = interval_ns - interval_ns / CATCH_UP_DIVISOR;
    }

    /// Slow start is over at once, or what came after it: by a loss.
    pub fn end(&mut self) {
        self.phase = Phase::Free;
        self.first_flight = 0;
        self.opens_to = 0;
        self.fill = Fill::NotYet;
    }

    /// So many segments are spread over the round trip that begins.
    fn space(&mut self, seen: &Seen, segments: u32, precision_ns: u64, path: Option<&Path>) {
        if self.phase != Phase::Spacing {
            return;
        }
        let interval_ns = interval_ns(seen.rtt_us, segments);
        match path {
            Some(path) => self.interval_ns = interval_ns.max(path.interval_ns(seen.mss)),
            None if interval_ns > precision_ns => self.interval_ns = interval_ns,
            None => self.phase = Phase::Clusters,
        }
    }
}

/// RTT ÷ cwnd.
pub fn interval_ns(rtt_us: u32, segments: u32) -> u64 {
    u64::from(rtt_us) * 1000 / u64::from(segments.max(1))
}

/// What a pacer is told for this interval: bytes of segments, without their headers, in a second.
pub fn rate_bytes_per_s(interval_ns: u64, mss: u32) -> u64 {
    u64::from(mss) * SECOND_NS / interval_ns.max(1)
}

/// How many times a spaced window can double while it has one round trip to itself: ⌈log₂(RTT ÷ (T · IW))⌉. The paper's bound, for
/// a window that begins with one segment, is ⌈log₂(RTT ÷ T)⌉.
pub fn doublings_max(rtt_ns: u64, precision_ns: u64, initial_window: u32) -> u32 {
    let mut window = u128::from(initial_window.max(1));
    let mut doublings = 0;
    while u128::from(rtt_ns) > window * u128::from(precision_ns.max(1)) {
        window *= 2;
        doublings += 1;
    }
    doublings
}

#[cfg(test)]
mod tests;
