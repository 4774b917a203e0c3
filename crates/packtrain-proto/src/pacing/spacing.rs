//! Clustered Packet Spacing: in slow start, segments leave a round trip ÷ window apart (CPS, section 4).
//!
//! ```text
//!             begin                    interval ≤ T, path unknown
//!   Free ──────────────▶ Spacing ─────────────────────────────────▶ Clusters
//!    ▲                      │                                           │
//!    └──────────────────────┴───────── window ≥ ssthresh, loss ─────────┘
//! ```
//!
//! Slow start goes on in rounds: a round ends when the window has been acknowledged that it began with. The window doubles in each, so a
//! round sends twice that window, and these segments are spread over one round trip. (With the window as it
//! grows from one acknowledgement to the next, what each round brings would leave more and more behind: the window would grow by 1.76
//! in a round trip, not by 2.) The first flight is the initial window.
//!
//! T is the precision of who sends: what it cannot space it sends as ordinary TCP does, and the seeds that are
//! set by then grow into clusters, T apart. Where the path is [remembered](super::path), spacing goes on below T, as well as it
//! can be done, and never above the path's rate.

use super::path::Path;

const SECOND_NS: u64 = 1_000_000_000;

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

/// What a sender knows when an acknowledgement has been taken in. Sequence numbers in bytes, windows in segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// First byte that is not acknowledged.
    pub una: u32,
    /// First byte that was never sent.
    pub nxt: u32,
    /// Smoothed round trip; 0: not known yet.
    pub srtt_us: u32,
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
        (self.phase == Phase::Spacing).then_some(self.interval_ns)
    }

    /// Slow start begins: at the handshake's end, after idle, after a timeout. `seen.cwnd` is the first flight.
    pub fn begin(&mut self, seen: &Seen, precision_ns: u64, path: Option<&Path>) {
        self.first_flight = seen.cwnd;
        self.round_end = seen.window_end();
        self.phase = match seen.is_in_slow_start() {
            true => Phase::Spacing,
            false => Phase::Free,
        };
        self.space(seen, seen.cwnd, precision_ns, path);
    }

    /// An acknowledgement was taken in, and the window has grown by it.
    pub fn acknowledged(&mut self, seen: &Seen, precision_ns: u64, path: Option<&Path>) {
        if !seen.is_in_slow_start() {
            self.end();
            return;
        }
        let has_ended = is_at_or_after(seen.una, self.round_end) || seen.una == seen.nxt;
        let window = match self.first_flight {
            // The answers to the first flight begin to leave: the window when it left counts.
            flight if flight > 0 && !has_ended => flight,
            _ if has_ended => {
                self.round_end = seen.window_end();
                seen.cwnd
            }
            _ => return,
        };
        self.first_flight = 0;
        let doubled = window.saturating_mul(2).min(seen.ssthresh);
        self.space(seen, doubled, precision_ns, path);
    }

    /// Slow start is over: by a loss, or because the window is large enough.
    pub fn end(&mut self) {
        self.phase = Phase::Free;
        self.first_flight = 0;
    }

    /// So many segments are spread over the round trip that begins.
    fn space(&mut self, seen: &Seen, segments: u32, precision_ns: u64, path: Option<&Path>) {
        if self.phase != Phase::Spacing {
            return;
        }
        let interval_ns = interval_ns(seen.srtt_us, segments);
        match path {
            Some(path) => self.interval_ns = interval_ns.max(path.interval_ns(seen.mss)),
            None if interval_ns > precision_ns => self.interval_ns = interval_ns,
            None => self.phase = Phase::Clusters,
        }
    }
}

/// Sequence numbers wrap.
fn is_at_or_after(sequence: u32, other: u32) -> bool {
    sequence.wrapping_sub(other) as i32 >= 0
}

/// RTT ÷ cwnd.
pub fn interval_ns(srtt_us: u32, segments: u32) -> u64 {
    u64::from(srtt_us) * 1000 / u64::from(segments.max(1))
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
