//! Frames that are too long for where they would have to go, lost and counted: and whoever sent them is told how much goes through
//! ([`crate::too_big`]), as a router would tell.
//!
//! What is told is remembered for minutes, and nothing takes it back. So a node with packtrain, to which frames of any length go by trains, must
//! not be taken for a host without while it is being met, or is away for a moment: then nobody is told.

use super::Engine;
use super::from_host::largest_on_wire;
use super::to_host::Arrival;
use crate::buffer::{LARGE_CAPACITY, SMALL_CAPACITY};
use crate::config::Mode;
use crate::gso;
use crate::offload::Offload;
use crate::queue::frame::QueuedFrame;
use crate::station_table::Place;
use crate::stats::{DropReason, TooBigSnapshot};
use crate::time::{Duration, Instant};
use crate::too_big::{self, Untold};
use crate::wire::ethernet::{HEADER_LEN, MacAddr};

/// As many as a Linux host says at most, of itself (`icmp_msgs_per_sec`), and as many at once (`icmp_msgs_burst`).
const INTERVAL: Duration = Duration::from_millis(1);
const BURST: u32 = 50;
/// A bridge forwards frames that are so much longer than its port's MTU, whether there is a tag or not (Linux: `is_skb_forwardable`).
pub(super) const BRIDGE_SLACK: usize = 4;
/// So long after a link has got carrier, neighbours are being met: three hellos, and their answers.
const MEETING: Duration = Duration::from_secs(1);
/// So long a node that is heard, and does not hear us, is waited for. Else one that never does would be a black hole.
const DEAF_MAX: Duration = Duration::from_secs(10);

/// Who was told, and who may be.
#[derive(Debug, Default)]
pub(super) struct TooBig {
    counts: TooBigSnapshot,
    /// When as many may be told at once as ever (the generic cell rate algorithm).
    full_at: Instant,
    /// Since when neighbours should have been met.
    met_at: Instant,
    /// Since when frames are lost for nodes that do not hear us, and the last one.
    deaf: Option<(Instant, Instant)>,
}

impl TooBig {
    pub(super) fn on_carrier(&mut self, now: Instant) {
        self.met_at = now + MEETING;
    }

    /// Whether one more may be told.
    fn give(&mut self, now: Instant) -> bool {
        let full_at = self.full_at.max(now) + INTERVAL;
        let may = full_at <= now + INTERVAL * BURST;
        if may {
            self.full_at = full_at;
        }
        may
    }

    fn is_waited_for(&mut self, now: Instant) -> bool {
        let since = match self.deaf {
            Some((since, last)) if now.since(last) < DEAF_MAX * 3 => since,
            _ => now,
        };
        self.deaf = Some((since, now));
        now.since(since) < DEAF_MAX
    }
}

impl Engine {
    /// A frame that no link to a host without packtrain takes.
    pub(super) fn refuse_for_plain(&mut self, frame: QueuedFrame, frame_max: usize, now: Instant) {
        // Where another copy goes on, the frame is not lost.
        let reason = self.spread.on_dropped(&frame, DropReason::TooLargeForPlain);
        if reason == DropReason::TooLargeForPlain {
            match self.may_be_a_node(frame.header.destination, now) {
                true => self.too_big.counts.untold += 1,
                false => self.tell_too_big(&frame, frame_max, now),
            }
        }
        self.drop_frame(frame.buffer, reason);
    }

    /// A frame for a station behind a peer's `pt0` that is longer than this takes: its bridge would drop it, and tell nobody. What is for the
    /// peer itself it takes whatever its length.
    pub(super) fn refuse_for_peer(&mut self, frame: QueuedFrame, frame_max: usize, now: Instant) {
        self.tell_too_big(&frame, frame_max, now);
        self.drop_frame(frame.buffer, DropReason::TooLargeForPeer);
    }

    /// Of frames for a station behind a peer; `None`: it is the peer, and takes any.
    pub(super) fn frame_max_behind(&self, slot: usize, destination: MacAddr) -> Option<usize> {
        let peer = self.peers.get(slot)?;
        (peer.address != destination).then_some(HEADER_LEN + usize::from(peer.mtu))
    }

    /// Whether it has packtrain, and cannot be reached by trains yet, or just now.
    fn may_be_a_node(&mut self, destination: MacAddr, now: Instant) -> bool {
        if self.config.mode == Mode::Trains && now < self.too_big.met_at {
            return true;
        }
        let place = self.stations.find(destination);
        let is_heard =
            self.peers.is_peer_address(destination) || matches!(place, Some(Place::Peer(_)));
        match place {
            // Whoever is there in its place says so by the first frame.
            Some(Place::Former(_)) => true,
            _ => is_heard && self.too_big.is_waited_for(now),
        }
    }

    fn tell_too_big(&mut self, frame: &QueuedFrame, frame_max: usize, now: Instant) {
        let told = match self.too_big.give(now) {
            true => self.answer_too_big(frame, frame_max),
            false => {
                self.too_big.counts.withheld += 1;
                return;
            }
        };
        match told {
            Ok(()) => self.too_big.counts.told += 1,
            Err(_) => self.too_big.counts.untold += 1,
        }
    }

    /// In the words of a router that has been given what goes on the wire: of segments the first.
    fn answer_too_big(&mut self, frame: &QueuedFrame, frame_max: usize) -> Result<(), Untold> {
        let excess = largest_on_wire(frame).saturating_sub(frame_max);
        let mut first = self.pool.take(LARGE_CAPACITY);
        let rest = gso::slice(&frame.buffer, &frame.offload, 0, 1, &mut first);
        if let Some(partial) = rest.ok().and_then(|rest| rest.checksum) {
            // It was checked when the frame came.
            let _ = gso::finish_checksum(&mut first, partial);
        }
        let mut answer = self.pool.take(SMALL_CAPACITY);
        let told = too_big::answer(&first, excess, &mut answer);
        self.pool.give_back(first);
        match told {
            Ok(()) => self.arrivals.push_back(Arrival::Frame {
                buffer: answer,
                offload: Offload::NONE,
            }),
            Err(_) => self.pool.give_back(answer),
        }
        told
    }

    pub(super) fn too_big_snapshot(&self) -> TooBigSnapshot {
        self.too_big.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_are_told_than_a_burst_and_one_each_millisecond() {
        let mut limit = TooBig::default();
        let mut now = Instant::ZERO + Duration::from_secs(5);
        let given = |limit: &mut TooBig, now| (0..200).filter(|_| limit.give(now)).count();
        assert_eq!(given(&mut limit, now), 50);
        now += Duration::from_millis(7);
        assert_eq!(given(&mut limit, now), 7);
        now += Duration::from_secs(1);
        assert_eq!(given(&mut limit, now), 50);
    }

    #[test]
    fn a_node_that_never_hears_us_is_not_waited_for_without_end() {
        let mut of = TooBig::default();
        let second = Duration::from_secs(1);
        let mut now = Instant::ZERO + second;
        for _ in 0..10 {
            assert!(of.is_waited_for(now));
            now += second;
        }
        assert!(!of.is_waited_for(now));
        // After a while without any, it is another one.
        now += second * 30;
        assert!(of.is_waited_for(now));
    }
}
