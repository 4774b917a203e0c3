//! A class for each rule: frames that leave together at a rate of their own, and wait in a queue of their own.
//!
//! A rule's class has everything from the line's, so what it sends is followed by the line's gap like all else, and where a gap
//! leaves less than rules ask for, all share it. It never has more than its rate: the ceiling is where it stands. Large frames are cut
//! here in any case, whatever is done with others, for what has a rate is to leave evenly.

use std::time::Duration;

use super::{Gso, HANDLE, Leaf, OPEN_BURST, OPEN_RATE_BPS, Spacing, borrower, longest};
use crate::linux::htb;
use crate::linux::netlink::{Netlink, NetlinkError};
use crate::linux::tc;

/// Of one interface.
pub const RULES_MAX: usize = 16;

/// As in bpf/pace_class.h: the first rule's.
pub(super) const FIRST_CLASS: u32 = 0x10;
const FIRST_CUTTER: u32 = 0x7100_0000;
const FIRST_QUEUE: u32 = 0x7200_0000;

const LATE_MAX: Duration = Duration::from_millis(1);

/// What a size table adds to a tagged frame of full size, which it takes for two segments, beside its overhead.
const SECOND_SEGMENT_LEN: u32 = 66;

/// Where a rule's frames wait; below [`RULES_MAX`], and each another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot(pub u8);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleClass {
    pub slot: Slot,
    /// Bits of IP packets a second, as full-size frames carry them.
    pub rate_bps: u64,
    /// Frames that wait at most, segments of cut ones counted each.
    pub queue_frames_max: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleCounters {
    pub queue_frames: u32,
    pub queue_bytes: u32,
    /// Ever; of a GSO frame each segment.
    pub sent_frames: u64,
    pub sent_bytes: u64,
    /// That found no room.
    pub dropped_frames: u64,
}

impl Slot {
    fn leaf(self) -> Leaf {
        let place = u32::from(self.0);
        Leaf {
            class: HANDLE | (FIRST_CLASS + place),
            cutter: FIRST_CUTTER + (place << 16),
            queue: FIRST_QUEUE + (place << 16),
        }
    }
}

/// Frames come into it once a [`super::Sorter`] says so.
pub fn put(
    netlink: &mut Netlink,
    ifindex: u32,
    rule: RuleClass,
    spacing: Spacing,
) -> Result<(), NetlinkError> {
    set_class(netlink, ifindex, rule, spacing)?;
    let leaf = rule.slot.leaf();
    let frames_max = rule.queue_frames_max;
    leaf.build(netlink, ifindex, longest_uncut(spacing), frames_max)?;
    set(netlink, ifindex, rule, spacing)
}

/// Otherwise from now on; what waits stays.
pub fn set(
    netlink: &mut Netlink,
    ifindex: u32,
    rule: RuleClass,
    spacing: Spacing,
) -> Result<(), NetlinkError> {
    let leaf = rule.slot.leaf();
    let frames_max = rule.queue_frames_max;
    leaf.set(netlink, ifindex, longest_uncut(spacing), frames_max)?;
    set_class(netlink, ifindex, rule, spacing)
}

fn set_class(
    netlink: &mut Netlink,
    ifindex: u32,
    rule: RuleClass,
    spacing: Spacing,
) -> Result<(), NetlinkError> {
    let rate_bps = frames_rate_bps(rule.rate_bps, spacing.mtu);
    let burst = burst(rate_bps, spacing);
    let class = borrower(rule.slot.leaf().class, rate_bps, burst, spacing);
    htb::set_class(netlink, ifindex, class)
}

/// What waits there has left in a moment, where the line lets it.
pub fn open(
    netlink: &mut Netlink,
    ifindex: u32,
    slot: Slot,
    spacing: Spacing,
) -> Result<(), NetlinkError> {
    let class = borrower(slot.leaf().class, OPEN_RATE_BPS, OPEN_BURST, spacing);
    htb::set_class(netlink, ifindex, class)
}

/// No sorter may give it frames any more. What waits there is lost.
pub fn remove(netlink: &mut Netlink, ifindex: u32, slot: Slot) -> Result<(), NetlinkError> {
    htb::delete_class(netlink, ifindex, slot.leaf().class)
}

/// `None`: it is not there.
pub fn counters(
    netlink: &mut Netlink,
    ifindex: u32,
    slot: Slot,
) -> Result<Option<RuleCounters>, NetlinkError> {
    // What does the cutting counts each segment that found no room below it.
    let cutter = slot.leaf().cutter;
    let Some(queue) = tc::queue_stats(netlink, ifindex, cutter)? else {
        return Ok(None);
    };
    let sent = tc::sent(netlink, ifindex, cutter)?.unwrap_or_default();
    Ok(Some(RuleCounters {
        queue_frames: queue.frames,
        queue_bytes: queue.bytes,
        sent_frames: sent.frames,
        sent_bytes: sent.bytes,
        dropped_frames: queue.dropped.into(),
    }))
}

/// HTB counts Ethernet's header, and cannot be told to leave it out: what it adds to a length is never less than nothing. So rates
/// are those of full-size packets. Smaller ones carry less, and never more: of 1200 bytes 0.2 % less, of 100 bytes 12 %.
fn frames_rate_bps(rate_bps: u64, mtu: u32) -> u64 {
    let mtu = u128::from(mtu.max(1));
    let rate_bps = u128::from(rate_bps) * (mtu + 14) / mtu;
    rate_bps.min(OPEN_RATE_BPS.into()) as u64
}

/// A timer that is late by less than a full-size frame takes costs no rate then: the next frame follows sooner. A slow rule's frames take
/// longer than any timer is late.
fn burst(rate_bps: u64, spacing: Spacing) -> Duration {
    let frame_bits = u64::from(spacing.mtu + 14) * 8;
    let frame = Duration::from_nanos(frame_bits * 1_000_000_000 / rate_bps.max(1));
    frame.min(LATE_MAX).max(spacing.burst)
}

fn longest_uncut(spacing: Spacing) -> u32 {
    let split = Spacing {
        gso: Gso::Split,
        ..spacing
    };
    let counted_more = match (spacing.gap, spacing.gso) {
        (Some(charge), Gso::Whole) => SECOND_SEGMENT_LEN + u32::from(charge.overhead),
        _ => 0,
    };
    longest(split) + counted_more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_that_of_full_size_packets_with_their_header() {
        assert_eq!(frames_rate_bps(15_000_000, 1500), 15_140_000);
        assert_eq!(frames_rate_bps(u64::MAX, 68), OPEN_RATE_BPS);
        assert_eq!(frames_rate_bps(1, 0), 15, "of an interface without an MTU");
    }

    #[test]
    fn as_much_as_a_frame_takes_may_be_made_up_for() {
        let spacing = Spacing {
            gap: None,
            mtu: 1486,
            burst: Duration::from_micros(80),
            gso: Gso::Whole,
            queue_frames_max: 1000,
        };
        for (rate_bps, micros) in [(20_000_000, 600), (1_000_000, 1000), (1_000_000_000, 80)] {
            assert_eq!(burst(rate_bps, spacing), Duration::from_micros(micros));
        }
    }
}
