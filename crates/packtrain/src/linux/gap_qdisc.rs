//! The gap behind each frame of an interface, and rates of some of its frames, by the kernel's queues.
//!
//! ```text
//! eth1 ── HTB ── 7063:1, the line ─┬─ 7063:2, what no rule is about
//! 7063:     its rate, and what     │    └── TBF           cuts a GSO frame that is longer than this; has no rate of its own
//!           each frame costs       │    7064:
//!           beside its length      │         └── a queue in order, of so many frames
//!                                  │         7065:
//!                                  ├─ 7063:10, a rule's frames, at its rate ([`rules`]), below it the same two
//!                                  └─ …
//! ```
//! Where rules stand and no gap is asked for, the line has no rate, and what no rule is about goes past all classes: by HTB's
//! direct queue, which costs least.
//!
//! HTB lets a frame go as soon as nothing is owed any more for those before it, and charges for it then: so a frame is followed
//! by its own gap. TBF, which has saved up a frame's cost before the frame goes, puts its gap before it: behind a large frame a
//! small one would come while the large one is still being sent.
//!
//! The gap is HTB's *overhead* of a rate. Lengths, and so what stands in the queue, stay true for all who read them: the engine
//! of a line above goes by that. Only a GSO frame that leaves whole counts for more, by a size table ([`SizeTable`]).
//!
//! # Why GSO frames are cut here
//! `ethtool -K … tso off gso off` does not keep them from a qdisc: since Linux 4.17 TCP makes them in any case, and without the
//! offload they are cut behind it, 45 segments in a row. And a router, a virtual machine or a packet socket makes them too. TBF cuts
//! those that are longer than its bucket, whoever has made them, and nothing of the interface need be changed. Small ones, no
//! longer than a full-size frame, go whole.
//!
//! All is changed in place: what waits stays.

use std::time::Duration;

use packtrain_proto::pacing::gap::{Charge, SizeTable};

use super::htb::{self, Class};
use super::netlink::{Netlink, NetlinkError, interface};
use super::tc::{self, ROOT};

pub mod rules;
mod sorter;

pub use sorter::{Otherwise, Sorter, SorterError, VALUES_MAX};

/// "pc" in ASCII: nobody else's handle.
pub const HANDLE: u32 = 0x7063_0000;
const LINE: u32 = HANDLE | 1;
const REST: Leaf = Leaf {
    class: HANDLE | 2,
    cutter: 0x7064_0000,
    queue: 0x7065_0000,
};

const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;

/// A rate that never holds a frame.
const OPEN_RATE_BPS: u64 = 1_000_000_000_000;
/// Saved up at that rate: none of its frames is ever held, nor looked at twice.
const OPEN_BURST: Duration = Duration::from_millis(1);
/// At which TBF finds that no frame takes any time.
const NO_TIME_BYTES_PER_SECOND: u64 = 1_000_000_000_000_000;
/// No GSO frame is longer (`GSO_MAX_SIZE` of the kernel, with BIG TCP), and the TBF cuts none.
const WHOLE_LEN_MAX: u32 = 8 * 65_536;
/// Of two VLANs, which the MTU does not count.
const TAGS_LEN: u32 = 8;
/// The queue that a TBF brings, until its own one is there.
const FIRST_QUEUE_BYTES: u32 = 1 << 20;

/// How frames are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spacing {
    /// `None`: by nothing more than Ethernet's own gap.
    pub gap: Option<Charge>,
    /// Payload bytes of the interface's largest frame.
    pub mtu: u32,
    /// What may be saved up while nothing is sent, or while the timer is late.
    pub burst: Duration,
    pub gso: Gso,
    /// Frames that wait at most.
    pub queue_frames_max: u32,
}

/// What becomes of a GSO frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gso {
    /// It is cut, and each segment is followed by a gap.
    Split,
    /// It leaves whole, and is followed by the gaps of all its segments.
    Whole,
}

impl Gso {
    pub fn as_str(self) -> &'static str {
        match self {
            Gso::Split => "split",
            Gso::Whole => "whole",
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// That stand in the queue.
    pub queue_frames: u32,
    pub queue_bytes: u32,
    /// Ever; of a GSO frame each segment.
    pub sent_frames: u64,
    /// That found no room.
    pub dropped_frames: u64,
}

/// What stands at the interface's way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Root {
    /// What the kernel gives an interface by itself: nobody has asked for it.
    Default,
    Ours,
    /// Somebody has put it there.
    Foreign {
        kind: String,
        handle: u32,
    },
}

pub fn root(netlink: &mut Netlink, ifindex: u32) -> Result<Root, NetlinkError> {
    Ok(match tc::root(netlink, ifindex)? {
        Some(root) if root.handle == HANDLE && root.kind == "htb" => Root::Ours,
        // The kernel's own have no number (`qdisc_create_dflt`), others always do.
        None => Root::Default,
        Some(root) if root.handle == 0 => Root::Default,
        Some(root) => Root::Foreign {
            kind: root.kind,
            handle: root.handle,
        },
    })
}

/// Puts it in the place of the kernel's own. What waits there is lost, as with every change of a root qdisc.
pub fn put(netlink: &mut Netlink, ifindex: u32, spacing: Spacing) -> Result<(), NetlinkError> {
    netlink.change(
        || format!("give {} an HTB", interface(ifindex)),
        htb::root_request(ifindex, HANDLE, REST.class & 0xffff),
    )?;
    build(netlink, ifindex, spacing).inspect_err(|_| {
        let _ = remove(netlink, ifindex);
    })
}

fn build(netlink: &mut Netlink, ifindex: u32, spacing: Spacing) -> Result<(), NetlinkError> {
    // Open, until the queues stand in which frames may wait.
    open(netlink, ifindex)?;
    htb::set_class(
        netlink,
        ifindex,
        borrower(REST.class, OPEN_RATE_BPS, OPEN_BURST, spacing),
    )?;
    let longest = longest(spacing);
    REST.build(netlink, ifindex, longest, spacing.queue_frames_max)?;
    change(netlink, ifindex, spacing)
}

/// Spaces frames otherwise from now on; what waits stays. Rules' classes are told by [`rules::set`].
pub fn change(netlink: &mut Netlink, ifindex: u32, spacing: Spacing) -> Result<(), NetlinkError> {
    // A frame that is to leave whole is neither cut nor charged for one gap only, in between.
    set_size_table(netlink, ifindex, spacing.size_table().as_ref())?;
    let longest = longest(spacing);
    REST.set(netlink, ifindex, longest, spacing.queue_frames_max)?;
    htb::set_class(
        netlink,
        ifindex,
        borrower(REST.class, OPEN_RATE_BPS, OPEN_BURST, spacing),
    )?;
    let Some(charge) = spacing.gap else {
        return open(netlink, ifindex);
    };
    let class = Class {
        burst_ns: spacing.burst.as_nanos() as u64,
        overhead: charge.overhead,
        least: charge.least,
        ..line(charge.rate_bps)
    };
    htb::set_class(netlink, ifindex, class)
}

/// Lets everything go as fast as the interface can, but for what rules hold: what waits has left in a moment.
pub fn open(netlink: &mut Netlink, ifindex: u32) -> Result<(), NetlinkError> {
    let class = Class {
        burst_ns: OPEN_BURST.as_nanos() as u64,
        ..line(OPEN_RATE_BPS)
    };
    htb::set_class(netlink, ifindex, class)
}

/// The kernel's own comes back.
pub fn remove(netlink: &mut Netlink, ifindex: u32) -> Result<(), NetlinkError> {
    tc::delete_qdisc(netlink, ifindex, HANDLE, ROOT)
}

/// `None`: it is not there any more.
pub fn counters(netlink: &mut Netlink, ifindex: u32) -> Result<Option<Counters>, NetlinkError> {
    let Some(queue) = tc::queue_stats(netlink, ifindex, HANDLE)? else {
        return Ok(None);
    };
    // It alone counts segments that found no room: the frame that they are of has been taken.
    let cutter = tc::queue_stats(netlink, ifindex, REST.cutter)?.unwrap_or_default();
    let sent = tc::sent(netlink, ifindex, HANDLE)?.unwrap_or_default();
    Ok(Some(Counters {
        queue_frames: queue.frames,
        queue_bytes: queue.bytes,
        sent_frames: sent.frames,
        dropped_frames: cutter.dropped.into(),
    }))
}

fn line(rate_bps: u64) -> Class {
    Class {
        handle: LINE,
        parent: HANDLE,
        rate_bps,
        ceil_bps: rate_bps,
        burst_ns: 0,
        // Among classes of one parent, and it is the only one.
        quantum: 65_536,
        overhead: 0,
        least: 0,
    }
}

/// A leaf below the line, which it has everything from. Of its own it has next to nothing: that is sent whatever the line says,
/// and the gap would not hold.
fn borrower(handle: u32, ceil_bps: u64, burst: Duration, spacing: Spacing) -> Class {
    Class {
        handle,
        parent: LINE,
        rate_bps: 8,
        ceil_bps,
        burst_ns: burst.as_nanos() as u64,
        // One of the largest frames in each turn: more would let the others wait, less give large frames more than their share.
        quantum: match spacing.gso {
            Gso::Split => longest(spacing),
            Gso::Whole => 65_536,
        },
        overhead: 0,
        least: 0,
    }
}

/// What is no longer than that is not cut.
fn longest(spacing: Spacing) -> u32 {
    match spacing.gso {
        Gso::Split => spacing.mtu + 14 + TAGS_LEN,
        Gso::Whole => WHOLE_LEN_MAX,
    }
}

impl Spacing {
    /// Where frames that are many segments leave whole, and each segment is charged for a gap.
    fn size_table(&self) -> Option<SizeTable> {
        let charge = self.gap.filter(|_| self.gso == Gso::Whole)?;
        Some(SizeTable::of(charge, self.mtu))
    }
}

/// A class's two queues: one that cuts, and one in which frames wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Leaf {
    class: u32,
    cutter: u32,
    queue: u32,
}

impl Leaf {
    fn build(
        self,
        netlink: &mut Netlink,
        ifindex: u32,
        longest: u32,
        frames_max: u32,
    ) -> Result<(), NetlinkError> {
        self.set(netlink, ifindex, longest, FIRST_QUEUE_BYTES)?;
        let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE;
        // `struct tc_fifo_qopt`.
        let limit = frames_max.to_ne_bytes();
        let below = self.cutter | 1;
        let queue = tc::request(libc::RTM_NEWQDISC, flags, ifindex, self.queue, below, 0)
            .attribute_str(libc::TCA_KIND, "pfifo")
            .attribute(libc::TCA_OPTIONS, &limit);
        netlink.change(|| format!("give {} a queue", interface(ifindex)), queue)
    }

    /// A TBF takes the limit for that of the queue below, in whatever that one counts.
    ///
    /// `struct tc_tbf_qopt`: rate and peak rate (12 each), limit, bucket as time, bucket at the peak rate as time (4 each).
    fn set(
        self,
        netlink: &mut Netlink,
        ifindex: u32,
        longest: u32,
        limit: u32,
    ) -> Result<(), NetlinkError> {
        let mut parameters = htb::rate_spec(NO_TIME_BYTES_PER_SECOND, 0, 0).to_vec();
        parameters.extend_from_slice(&[0; 12]);
        parameters.extend_from_slice(&htb::words(&[limit, 0, 0]));
        let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE;
        let Leaf { class, cutter, .. } = self;
        let request = tc::request(libc::RTM_NEWQDISC, flags, ifindex, cutter, class, 0)
            .attribute_str(libc::TCA_KIND, "tbf")
            .nested(libc::TCA_OPTIONS, |options| {
                options
                    .attribute(TCA_TBF_PARMS, &parameters)
                    .attribute(TCA_TBF_RATE64, &NO_TIME_BYTES_PER_SECOND.to_ne_bytes())
                    .attribute(TCA_TBF_BURST, &longest.to_ne_bytes())
            });
        netlink.change(|| format!("give {} a TBF", interface(ifindex)), request)
    }
}

fn set_size_table(
    netlink: &mut Netlink,
    ifindex: u32,
    table: Option<&SizeTable>,
) -> Result<(), NetlinkError> {
    // Without the options of an HTB, which cannot be changed. Without a table there is none any more.
    let request = tc::request(
        libc::RTM_NEWQDISC,
        libc::NLM_F_ACK,
        ifindex,
        HANDLE,
        ROOT,
        0,
    )
    .attribute_str(libc::TCA_KIND, "htb");
    let request = match table {
        Some(table) => tc::with_size_table(request, table.size_log, &table.entries),
        None => request,
    };
    netlink.change(
        || format!("tell {} how long frames count", interface(ifindex)),
        request,
    )
}

#[cfg(test)]
mod tests;
