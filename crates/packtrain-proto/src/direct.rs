//! The direct path: past the engines of both hosts, from one `pt0` to the other. Whoever owns the
//! engine carries the frames; the engine decides where they may go, and says so.

pub mod counts;

use crate::config::LinkId;
use crate::stats::EngineBecause;
use crate::time::{Duration, Instant};
use crate::wire::ethernet::MacAddr;
use crate::wire::packet::Packet;

use counts::Signal;

/// So long the line must be calm before the direct path opens again.
pub const DIRECT_CALM: Duration = Duration::from_secs(2);

/// Closed again so soon after it was opened, by what cannot be seen, it stays closed for twice as long, up to …
const HIDDEN_AGAIN: Duration = Duration::from_secs(60);
const HIDDEN_CALM_MAX: Duration = Duration::from_secs(64);

/// Fewer small frames a second than this are not worth packing. Half of what closes the path
/// (`bpf/direct.bpf.c`), so that it does not come and go.
const SMALL_PER_SECOND: u64 = 40_000;
const SMALL_BYTES: usize = 300;

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
    /// It is closed to all frames but those of classes that say direct.
    pub only_classes: bool,
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
    /// Not by what is seen of the link itself.
    hidden: Option<Signal>,
    /// How long it must be calm; after [`DIRECT_CALM`] where it is `None`.
    calm: Option<Duration>,
    /// What was asked for when it was closed so last.
    calm_after_hidden: Option<Duration>,
    opened_at: Instant,
    /// When the line was last seen busy.
    busy_at: Instant,
    /// How often it has closed.
    pub closures: u64,
    /// Small frames that the host has sent since it was last looked, and when that was.
    small_frames: u64,
    looked_at: Instant,
}

impl DirectGate {
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Direct frames stand in a queue, or small ones are many.
    pub fn on_congestion(&mut self, now: Instant) {
        if !self.closed {
            self.closures += 1;
            (self.small_frames, self.looked_at) = (0, now);
            self.hidden = None;
            self.calm = None;
        }
        self.closed = true;
        self.busy_at = now;
    }

    /// Direct frames are lost, or stand in a queue that nobody sees. That this is over cannot be seen
    /// either, but by opening; who is wrong again soon tries less and less often.
    pub fn on_hidden_congestion(&mut self, signal: Signal, now: Instant) {
        if self.closed {
            return;
        }
        let was_open = now.since(self.opened_at);
        let calm = match self.calm_after_hidden {
            Some(calm) if was_open < HIDDEN_AGAIN => (calm * 2).min(HIDDEN_CALM_MAX),
            _ => DIRECT_CALM,
        };
        self.on_congestion(now);
        self.hidden = Some(signal);
        self.calm = Some(calm);
        self.calm_after_hidden = Some(calm);
    }

    /// By what it was closed, while it is.
    pub fn closed_because(&self) -> Option<EngineBecause> {
        self.closed.then_some(match self.hidden {
            None => EngineBecause::Congestion,
            Some(Signal::Loss) => EngineBecause::Loss,
            Some(Signal::Delay) => EngineBecause::Delay,
        })
    }

    /// A frame that the host has sent while it is closed. Acknowledgements of a flow in the other direction are as
    /// many as that is fast, and would only be late in a train: they do not count.
    #[inline]
    pub fn on_host_frame(&mut self, frame: &[u8]) {
        let is_small = frame.len() <= SMALL_BYTES
            && !Packet::parse(frame).is_ok_and(|packet| packet.is_empty_tcp());
        self.small_frames += u64::from(is_small);
    }

    /// Whether the host has sent so many small frames since the last look that packing them pays.
    pub fn small_ones_are_many(&mut self, now: Instant) -> bool {
        let frames = core::mem::take(&mut self.small_frames);
        let elapsed = now.since(core::mem::replace(&mut self.looked_at, now));
        frames > SMALL_PER_SECOND * elapsed.as_micros() as u64 / 1_000_000
    }

    /// Something waits, or is held back.
    pub fn on_busy(&mut self, now: Instant) {
        self.busy_at = now;
    }

    /// Nothing waits now.
    pub fn on_calm(&mut self, now: Instant) {
        if self.closed && now.since(self.busy_at) >= self.calm.unwrap_or(DIRECT_CALM) {
            self.closed = false;
            self.opened_at = now;
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
    fn who_finds_what_cannot_be_seen_again_and_again_tries_less_and_less_often() {
        let mut gate = DirectGate::default();
        let (mut ms, mut calms) = (100_000, Vec::new());
        for _ in 0..8 {
            gate.on_hidden_congestion(Signal::Loss, at(ms));
            assert_eq!(gate.closed_because(), Some(EngineBecause::Loss));
            let closed_at = ms;
            while gate.is_closed() {
                ms += 100;
                gate.on_calm(at(ms));
            }
            calms.push((ms - closed_at) / 1000);
            ms += 1000;
        }
        assert_eq!(calms, [2, 4, 8, 16, 32, 64, 64, 64]);
        // A queue that is seen, and long after.
        gate.on_congestion(at(ms));
        assert_eq!(gate.closed_because(), Some(EngineBecause::Congestion));
        gate.on_calm(at(ms + 2000));
        assert!(!gate.is_closed());
        gate.on_hidden_congestion(Signal::Delay, at(ms + 70_000));
        gate.on_calm(at(ms + 72_000));
        assert_eq!(gate.closed_because(), None);
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
        gate.on_congestion(at(0));
        let mut after = |frames: u64, len: usize, ms: u64| {
            (0..frames).for_each(|_| gate.on_host_frame(&vec![0; len]));
            gate.small_ones_are_many(at(ms))
        };
        assert!(after(12_000, 106, 250));
        assert!(!after(12_000, 1514, 500));
        assert!(!after(9_000, 106, 750));
        assert!(after(25_000, 300, 1250));
        assert!(!after(0, 0, 1500));
    }

    /// IPv4 and TCP, with so many bytes of payload.
    fn tcp(payload: u16) -> Vec<u8> {
        let mut frame = vec![0; 54 + usize::from(payload)];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&(40 + payload).to_be_bytes());
        frame[23] = 6;
        frame[46] = 0x50;
        frame
    }

    #[test]
    fn acknowledgements_of_a_fast_flow_are_not_many_however_many_they_are() {
        let mut gate = DirectGate::default();
        gate.on_congestion(at(0));
        let mut after = |frame: &[u8], ms: u64| {
            (0..100_000).for_each(|_| gate.on_host_frame(frame));
            gate.small_ones_are_many(at(ms))
        };
        assert!(!after(&tcp(0), 1000));
        let mut padded = tcp(0);
        padded.resize(60, 0);
        assert!(!after(&padded, 2000));
        assert!(after(&tcp(1), 3000));
    }

    #[test]
    fn being_busy_closes_nothing() {
        let mut gate = DirectGate::default();
        gate.on_busy(at(10));
        assert!(!gate.is_closed());
    }
}
