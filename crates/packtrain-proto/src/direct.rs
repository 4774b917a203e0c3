//! The direct path: past the engines of both hosts, from one `pt0` to the other. Whoever owns the
//! engine carries the frames; the engine decides where they may go, and says so.

use crate::config::LinkId;
use crate::stats::Traffic;
use crate::time::{Duration, Instant};
use crate::wire::ethernet::MacAddr;

/// So long the line must be calm before the direct path opens again.
pub const DIRECT_CALM: Duration = Duration::from_secs(2);

/// Fewer small frames a second than this are not worth packing. Half of what closes the path
/// (`bpf/direct.bpf.c`), so that it does not come and go.
const SMALL_PER_SECOND: u64 = 40_000;
const SMALL_BYTES: u64 = 300;

/// A peer to which frames may go directly, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectDestination {
    /// The peer's `pt0`.
    pub address: MacAddr,
    pub link: LinkId,
    /// The outer destination.
    pub remote_address: MacAddr,
    /// The outer source.
    pub direct_mark: MacAddr,
    /// Payload bytes after the EtherType.
    pub payload_max: u16,
}

/// By what a peer's direct frames are known, and whose they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectSource {
    /// The outer source.
    pub direct_mark: MacAddr,
    /// The peer's `pt0`.
    pub address: MacAddr,
}

/// Whether the line is too busy for the direct path.
///
/// It closes at once and opens late. A queue that stood below is gone as soon as the engine has taken
/// over, for it keeps the queue with itself: that nothing stands there any more says nothing. And each change has
/// a price: flows wait until what is under way has arrived. So it opens only when there was so little
/// to send for [`DIRECT_CALM`] that no queue stood anywhere.
#[derive(Debug, Default)]
pub struct DirectGate {
    closed: bool,
    /// When the line was last seen busy.
    busy_at: Instant,
    /// How often it has closed.
    pub closures: u64,
    /// What the host had sent when last looked at, and when that was.
    host_rx: Traffic,
    looked_at: Instant,
}

impl DirectGate {
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Direct frames stand in a queue, or small ones are many.
    pub fn on_congestion(&mut self, now: Instant) {
        self.closures += u64::from(!self.closed);
        self.closed = true;
        self.busy_at = now;
    }

    /// Whether the host has sent so many small frames since the last look that packing them pays.
    pub fn small_ones_are_many(&mut self, host_rx: Traffic, now: Instant) -> bool {
        let frames = host_rx.frames - self.host_rx.frames;
        let bytes = host_rx.bytes - self.host_rx.bytes;
        let elapsed = now.since(self.looked_at);
        (self.host_rx, self.looked_at) = (host_rx, now);
        let many = SMALL_PER_SECOND * elapsed.as_micros() as u64 / 1_000_000;
        frames > many && bytes <= frames * SMALL_BYTES
    }

    /// Something waits, or is held back.
    pub fn on_busy(&mut self, now: Instant) {
        self.busy_at = now;
    }

    /// Nothing waits now.
    pub fn on_calm(&mut self, now: Instant) {
        if now.since(self.busy_at) >= DIRECT_CALM {
            self.closed = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn it_closes_at_once_and_opens_when_all_was_calm_for_long_enough() {
        let mut gate = DirectGate::default();
        assert!(!gate.is_closed());
        gate.on_congestion(at(1000));
        assert!(gate.is_closed());
        for ms in [1000, 2000, 2999] {
            gate.on_calm(at(ms));
            assert!(gate.is_closed(), "{ms}");
        }
        gate.on_calm(at(3000));
        assert!(!gate.is_closed());
    }

    #[test]
    fn each_busy_moment_begins_the_calm_anew_and_many_reports_are_one_closure() {
        let mut gate = DirectGate::default();
        gate.on_congestion(at(0));
        gate.on_congestion(at(500));
        gate.on_busy(at(1500));
        gate.on_calm(at(3499));
        assert!(gate.is_closed());
        gate.on_calm(at(3500));
        assert!(!gate.is_closed());
        gate.on_congestion(at(4000));
        assert_eq!((gate.is_closed(), gate.closures), (true, 2));
    }

    #[test]
    fn many_small_frames_are_many_and_many_large_or_a_few_are_not() {
        let mut gate = DirectGate::default();
        let mut sent = Traffic::default();
        let mut after = |frames: u64, size: u64, ms: u64| {
            sent.frames += frames;
            sent.bytes += frames * size;
            gate.small_ones_are_many(sent, at(ms))
        };
        assert!(after(12_000, 106, 250));
        assert!(!after(12_000, 1514, 500));
        assert!(!after(9_000, 106, 750));
        assert!(after(25_000, 300, 1250));
        assert!(!after(0, 0, 1500));
    }

    #[test]
    fn being_busy_closes_nothing() {
        let mut gate = DirectGate::default();
        gate.on_busy(at(10));
        assert!(!gate.is_closed());
    }
}
