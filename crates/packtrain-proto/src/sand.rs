//! Rocks and sand: how long frames may hold a link before a small one gets its turn.
//!
//! A rock is a frame that is longer than a packet: a GSO frame, or what a link of a large MTU takes at once. Sand is what waits behind
//! it. A frame that comes while a link is busy waits for all that stands there, and nothing overtakes on a link; so its wait is
//! bounded by how much may stand: what the local queue is filled up to, and one frame more, given when it
//! was nearly as full. The XLF paper (section VIII) names the delay of a packet behind an XL frame, and leaves it open.
//!
//! ```text
//!  filled up to ≤ 2/3 of the bound │ one frame more ≤ 1/3
//! ├────────────────────────────────┼───────────────────────┤
//! 0                                                        the bound, in time at the link's rate
//! ```
//!
//! Two things are not cut for it: a packet, for then every frame of a slow link would be two; and the three packets that a link is given at
//! least, so that it has the next one while we are told that one has left.
//!
//! Short frames are more of them, and an owner may be too slow for so many, or be called too late to keep a link busy with so little. Then
//! the bound in use is longer, up to [`SAND_DELAY_LATE_MAX`], and status says so.

use crate::queue::frame::QueuedFrame;
use crate::rates::bytes_in;
use crate::stats::HoldSnapshot;
use crate::time::{Duration, Instant};
use crate::trunk::hold_times::HoldTimes;
use crate::wire::ethernet::HEADER_LEN;

/// What is no longer than this, Ethernet header included, is a packet and no rock.
pub const PACKET_MAX: usize = 1500 + HEADER_LEN;
/// As many frames a link is given at least.
pub const FRAMES_MIN: usize = 3;
/// The bound, unless it is set.
pub const SAND_DELAY_MAX: Duration = Duration::from_micros(200);
/// Where the owner is too late to keep a link busy with that, it grows up to this.
pub const SAND_DELAY_LATE_MAX: Duration = Duration::from_millis(1);

/// Parts of the bound: so many are the local queue's, and one is the last frame's.
const QUEUE_PARTS: u32 = 2;
const PARTS: u32 = QUEUE_PARTS + 1;

/// How long a small frame may wait at a link behind others; `None`: as long as it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SandBound(pub Option<Duration>);

impl SandBound {
    /// The one that allows more.
    pub fn max(self, other: SandBound) -> SandBound {
        match (self.0, other.0) {
            (Some(a), Some(b)) => SandBound(Some(a.max(b))),
            _ => SandBound(None),
        }
    }

    /// … where so much time may stand at a link.
    pub fn of_queue_time(time: Duration) -> SandBound {
        SandBound(Some(time / QUEUE_PARTS * PARTS))
    }

    /// Bytes of the longest frame that goes at once over a link of this rate, whatever its MTU. Whole packets, so that it does not
    /// change with each measurement; `usize::MAX`: any.
    pub fn frame_max(self, bps: u64) -> usize {
        let Some(bound) = self.0 else {
            return usize::MAX;
        };
        let bytes = bytes_in(bound / PARTS, bps / 8);
        (bytes / PACKET_MAX).max(1) * PACKET_MAX
    }

    /// Of frames that are longer, as many as of these are given to a link at least.
    pub fn counted_max(self) -> usize {
        self.0.map_or(usize::MAX, |_| PACKET_MAX)
    }

    /// How long what stands in a link's local queue may take.
    pub fn queue_time(self) -> Option<Duration> {
        self.0.map(|bound| bound / PARTS * QUEUE_PARTS)
    }
}

/// How long small frames have waited, as far as an engine sees it.
#[derive(Debug, Default)]
pub struct SandWaits {
    times: HoldTimes,
    /// What stands before who leaves now takes so long.
    below: Duration,
}

impl SandWaits {
    /// Frames leave from now on by a link on which that stands.
    pub fn leave_behind(&mut self, standing: Duration) {
        self.below = standing;
    }

    pub fn note_left(&mut self, frame: &QueuedFrame, now: Instant) {
        if frame.is_sand() {
            self.times.record(now.since(frame.enqueued) + self.below);
        }
    }

    pub fn snapshot(&self) -> HoldSnapshot {
        self.times.snapshot()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What the rule is for, frame by frame: how long one that comes at the worst moment waits at a link of this rate.
    fn longest_wait(bound: SandBound, bps: u64, mtu: usize) -> Duration {
        let frame = bound.frame_max(bps).min(mtu);
        let few = FRAMES_MIN * frame.min(bound.counted_max());
        let limit = bytes_in(bound.queue_time().unwrap(), bps / 8).max(few);
        // Just below the limit one more was given.
        let standing = limit - 1 + frame;
        Duration::from_nanos(standing as u64 * 8_000_000_000 / bps)
    }

    fn micros(n: u64) -> SandBound {
        SandBound(Some(Duration::from_micros(n)))
    }

    #[test]
    fn frames_are_cut_by_the_rate_and_never_shorter_than_a_packet() {
        let longest = |bps| micros(200).frame_max(bps) / PACKET_MAX;
        assert_eq!(longest(1_000_000), 1);
        assert_eq!(longest(100_000_000), 1);
        assert_eq!(longest(1_000_000_000), 5);
        assert_eq!(longest(10_000_000_000), 55);
        assert_eq!(SandBound(None).frame_max(1), usize::MAX);
    }

    proptest! {
        #[test]
        fn small_frames_wait_no_longer_than_the_bound_or_than_four_packets_take(
            bound_us in 50u64..5000, mbit in 1u64..40_000, mtu in 1514usize..65_550,
        ) {
            let bound = micros(bound_us);
            let bps = mbit * 1_000_000;
            let packets = ((FRAMES_MIN + 1) * PACKET_MAX) as u64;
            let floor = Duration::from_nanos(packets * 8_000_000_000 / bps);
            let wait = longest_wait(bound, bps, mtu);
            prop_assert!(wait <= bound.0.unwrap().max(floor), "{wait:?}");
            // … and no frame is shorter than it has to be, up to a packet.
            let longer = (bound.frame_max(bps) + PACKET_MAX) as u64 * 8_000_000_000 / bps;
            prop_assert!(Duration::from_nanos(longer) * 3 + Duration::from_nanos(3) >= bound.0.unwrap());
        }
    }
}
