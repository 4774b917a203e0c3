//! Backpressure to the sockets that send into `pt0`.
//!
//! A TAP takes every frame off the socket's account at once, and drops what its ring does not hold;
//! so nobody above learns that the line is slow. A qdisc before it does what a NIC's does: while a
//! frame waits there, its socket is charged for it, TCP small queues hold, and `send` blocks.
//!
//! # Shape
//! ```text
//! pt0 ── HTB ─┬─ direct queue                     not shaped: as long as the line keeps up
//! 7074:       └─ 7074:1, the rate ─┬─ 7074:10
//!                                  ├─ …           256 leaves, one a flow, DRR between them
//!                                  └─ 7074:10f
//! ```
//! Sand goes ahead of the leaves (`bpf/intake.bpf.h`): small frames of flows that send a 64th of the rate at most, together a 16th.
//! A leaf's own rate is lent by nobody, and HTB serves it first: a flow that sends little (a ping, a
//! call, a name lookup) does not wait behind those that fill the line. It follows the whole rate from
//! afar, and is a small part of it: a leaf may overdraw by one frame, and many leaves that were
//! often allowed to would put the whole into debt, and then nobody may send.
//!
//! No frame is larger than the line carries in [`FRAME_TIME`]: TCP fills 64 KB where round trips are
//! short, and has two of those waiting in each connection. On a line of 100 Mbit/s that is 5 ms which
//! every other flow waits in its turn, and with 64 connections a queue of 0.7 s.
//!
//! # Why the HTB is always there
//! Swapping the root qdisc would cost frames: what stands in the old one is purged, and while
//! the new one is put in, frames are refused for milliseconds. So the HTB is put in once, before
//! `pt0` goes up, and a program decides by a map whether a frame passes by. Sending a 22-byte
//! datagram into a TAP then costs 14 % more than through no qdisc, and 36 % more through
//! the leaves; 56,000 bytes as one GSO frame 7 % and 24 % (processor time of the sender, least of
//! eight runs; the program itself is not seen in it).
//!
//! All of it goes with `pt0`.

use std::fs;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use libbpf_rs::{MapCore, MapFlags, MapHandle};

use super::bpf_object::{self, embedded};
use super::htb::{self, Class};
use super::netlink::{Netlink, NetlinkError};
use super::ring::Ring;
use super::tc::{self, FilterPlace, QueueStats};

// As in bpf/intake.h.
#[cfg(test)] // the map's first value
const UNUSED: u32 = 0;
const SHAPED: u32 = 1;
const OPEN: u32 = 2;
const MODE: u32 = 0;
const IDLE_TIME: u32 = 1;
const FLOW_SAND: u32 = 2;
const ALL_SAND: u32 = 3;
/// Sand, small frames of flows that send little, may be such a part of the rate and goes ahead of all leaves: of each flow, and of all.
const FLOW_SAND_PART: u64 = 64;
const ALL_SAND_PART: u64 = 16;
/// "pt" in ASCII: nobody else's handle, and so the direct path knows whose qdisc is there.
const MAJOR: u32 = 0x7074;
const FIRST_LEAF: u32 = 16;
const LEAVES: u32 = 256;

pub const QDISC: u32 = MAJOR << 16;
const RATE_CLASS: u32 = QDISC | 1;

/// A rate that never holds a frame, for what waited when shaping ended.
const OPEN_RATE_BPS: u64 = 1_000_000_000_000;
/// Below, a few busy leaves' own rates are more than the whole.
pub const RATE_BPS_MIN: u64 = 64_000;
/// A leaf's own rate: what a call takes, on a slow line less and on a fast one more. All of them
/// together are a quarter of the whole at most. A leaf that has a frame's worth too little sends nevertheless
/// and owes the rest, and so do all that fill the line at the same time: a burst, and then nothing.
const LEAF_RATE_BPS: u64 = 100_000;
const LEAF_PART_MIN: u64 = 4096;
const LEAF_PART_MAX: u64 = 4 * LEAVES as u64;
/// How far the rate may drift before leaves and frame sizes follow: 256 leaves are told in about a
/// millisecond, and the kernel cuts all that waits before `pt0` to segments where the largest frame becomes smaller, which
/// takes several milliseconds to read. So it must not be often …
const DRIFT: u64 = 2;
/// … and frames are told to be so much smaller than the line takes them: what that is changes by some percent all the time.
const FRAME_PART: (usize, usize) = (7, 8);
/// What a leaf may save up of its own, bytes: a few packets of a call, or one frame however large, which it may overdraw
/// by. When shaping begins all leaves have saved it, and what they send then is charged to the line: 64 flows that
/// might send two full frames each were a debt of a tenth of a second, during which hardly anything went.
const LEAF_BURST_BYTES: u64 = 500;
/// How late the kernel's timer may be without costing rate. A frame may always overdraw.
const BURST_NS: u64 = 1_000_000;
/// What the line carries in this time is the largest frame that the host makes, within these bounds.
const FRAME_TIME: Duration = Duration::from_millis(1);
/// Two segments of TCP on an Ethernet, with the headers of each: fewer it makes only where no two fit.
pub const FRAME_BYTES_MIN: u32 = 3072;
pub const FRAME_BYTES_MAX: u32 = 65_536;
const ROUTE_FLUSH: &str = "/proc/sys/net/ipv4/route/flush";
/// What may wait before the line: two of the smallest frames in each leaf. A flow that was silent for as
/// long as that takes has nothing waiting.
const WAITING_BYTES_MAX: u64 = 2 * LEAVES as u64 * FRAME_BYTES_MIN as u64;
const IDLE_MS_MIN: u64 = 1000;

#[derive(Debug, thiserror::Error)]
pub enum IntakeError {
    #[error("cannot load the BPF program that sorts pt0's frames: {source}{}", bpf_object::hint(.source))]
    Load { source: libbpf_rs::Error },
    #[error("cannot tell the program that sorts pt0's frames: {source}")]
    Map { source: libbpf_rs::Error },
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
}

/// The queue before a `pt0`, and its rate.
#[derive(Debug)]
pub struct Intake {
    ifindex: u32,
    netlink: Netlink,
    state: MapHandle,
    rate_bps: Option<u64>,
    leaf_rate_bps: u64,
    /// The largest frame that the rate of the leaves goes with.
    frame_bytes_max: u32,
    /// The longest that the line takes as it is.
    frame_max: usize,
    burst_ns: u64,
    /// The host makes frames for this interface, and may be told how large.
    is_the_hosts: bool,
    /// The host was told so.
    limits_frames: bool,
    /// The largest that it makes at any rate.
    frame_bytes_any: u32,
    /// Whose program sorts frames instead of ours.
    instead: MapHandle,
    leaf_sets: MapHandle,
    /// Held by the filter as well.
    _program: OwnedFd,
}

impl Intake {
    /// Puts the queue before the interface, open. Before the interface goes up, because its
    /// qdisc is replaced.
    pub fn attach(ifindex: u32) -> Result<Intake, IntakeError> {
        let mut netlink = Netlink::open()?;
        htb::add_root(&mut netlink, ifindex, QDISC)?;
        Intake::with_program(ifindex, netlink, BURST_NS)
    }

    /// Before another interface than a `pt0`, which frames pass on their way to a link: whoever makes them is not told how large.
    /// Little may be saved up, for all of it would stand in the link's own queue.
    pub(super) fn attach_on_the_way(ifindex: u32, burst_ns: u64) -> Result<Intake, IntakeError> {
        let mut netlink = Netlink::open()?;
        htb::add_root(&mut netlink, ifindex, QDISC)?;
        let mut intake = Intake::with_program(ifindex, netlink, burst_ns)?;
        intake.is_the_hosts = false;
        Ok(intake)
    }

    fn with_program(
        ifindex: u32,
        mut netlink: Netlink,
        burst_ns: u64,
    ) -> Result<Intake, IntakeError> {
        let load = |source| IntakeError::Load { source };
        let object = bpf_object::load(embedded!("intake")).map_err(load)?;
        let program = bpf_object::program_fd(&object, "intake_classify").map_err(load)?;
        let map_handle = |name| bpf_object::map_handle(&object, name).map_err(load);
        let state = map_handle("state")?;
        htb::set_class(&mut netlink, ifindex, rate_class(OPEN_RATE_BPS, burst_ns))?;
        let leaf_rate_bps = leaf_rate_bps(RATE_BPS_MIN);
        set_leaves(
            &mut netlink,
            ifindex,
            leaf_rate_bps,
            quantum(FRAME_BYTES_MAX),
        )?;
        let place = filter_place(ifindex);
        tc::add_bpf_filter(
            &mut netlink,
            place,
            program.as_fd(),
            "packtrain_intake",
            tc::BPF_DIRECT_ACTION,
            QDISC,
        )?;
        Ok(Intake {
            ifindex,
            netlink,
            state,
            rate_bps: None,
            leaf_rate_bps,
            frame_bytes_max: FRAME_BYTES_MAX,
            frame_max: usize::MAX,
            burst_ns,
            is_the_hosts: true,
            limits_frames: false,
            frame_bytes_any: FRAME_BYTES_MAX,
            instead: map_handle("instead")?,
            leaf_sets: map_handle("leaf_sets")?,
            _program: program,
        })
    }

    /// The queue that an earlier daemon has put before the interface, which is up: everything passes by it from
    /// now on. What waits there leaves in its order.
    pub fn adopt(ifindex: u32) -> Result<Intake, IntakeError> {
        let mut netlink = Netlink::open()?;
        tc::delete_filter(&mut netlink, filter_place(ifindex))?;
        let mut intake = Intake::with_program(ifindex, netlink, BURST_NS)?;
        intake.tell(MODE, OPEN)?;
        intake.limit_frames(FRAME_BYTES_MAX);
        Ok(intake)
    }

    /// Where small frames come in, once its reader opens it (Linux 6.2). None does when the process ends, however it
    /// does: the kernel takes the program out of `instead` then.
    pub fn open_ring(&self) -> Result<Ring, IntakeError> {
        let load = |source| IntakeError::Load { source };
        let shared = [("state", &self.state), ("leaf_sets", &self.leaf_sets)];
        let object = bpf_object::load_with(embedded!("ring"), &shared).map_err(load)?;
        let program = bpf_object::program_fd(&object, "ring_take").map_err(load)?;
        let ring = Ring::of(&object).map_err(load)?;
        let number = program.as_raw_fd().to_ne_bytes();
        let written = self
            .instead
            .update(&0u32.to_ne_bytes(), &number, MapFlags::ANY);
        written.map_err(|source| IntakeError::Map { source })?;
        Ok(ring)
    }

    /// At most `rate_bps` bits of Ethernet frames a second (without FCS, preamble and gap) from
    /// now on, and not below [`RATE_BPS_MIN`]; `None`: as they come. One message to the
    /// kernel, which keeps what waits: made to be called often.
    /// While there is one the host makes no frame that is longer than `frame_max`, but for [`FRAME_BYTES_MIN`].
    pub fn set_rate(&mut self, rate_bps: Option<u64>, frame_max: usize) -> Result<(), IntakeError> {
        self.frame_max = frame_max;
        let rate_bps = rate_bps.map(|rate_bps| rate_bps.clamp(RATE_BPS_MIN, OPEN_RATE_BPS));
        if rate_bps == self.rate_bps {
            return Ok(());
        }
        let class = rate_class(rate_bps.unwrap_or(OPEN_RATE_BPS), self.burst_ns);
        htb::set_class(&mut self.netlink, self.ifindex, class)?;
        match rate_bps {
            Some(rate_bps) => self.follow_with_leaves(rate_bps)?,
            None => {
                self.limits_frames = false;
                self.limit_frames(FRAME_BYTES_MAX);
            }
        }
        if rate_bps.is_some() != self.rate_bps.is_some() {
            // Once shaped never UNUSED again: something may still wait.
            let state = if rate_bps.is_some() { SHAPED } else { OPEN };
            self.tell(MODE, state)?;
        }
        self.rate_bps = rate_bps;
        Ok(())
    }

    fn follow_with_leaves(&mut self, rate_bps: u64) -> Result<(), IntakeError> {
        let leaf_rate_bps = leaf_rate_bps(rate_bps);
        let (part, of) = FRAME_PART;
        let frame_bytes = frame_bytes_max(rate_bps, self.frame_max / of * part);
        if self.limits_frames
            && is_near(leaf_rate_bps, self.leaf_rate_bps)
            && is_near(frame_bytes.into(), self.frame_bytes_max.into())
            && self.frame_bytes_max as usize <= self.frame_max.max(FRAME_BYTES_MIN as usize)
        {
            return Ok(());
        }
        // Frames that could not be limited would have several turns at once with a small quantum.
        let largest = if !self.is_the_hosts {
            frame_bytes
        } else if self.limit_frames(frame_bytes) {
            frame_bytes_made(frame_bytes, self.mtu())
        } else {
            FRAME_BYTES_MAX
        };
        let quantum = quantum(largest);
        set_leaves(&mut self.netlink, self.ifindex, leaf_rate_bps, quantum)?;
        self.tell(IDLE_TIME, idle_ms(rate_bps))?;
        self.tell(FLOW_SAND, byte_ns(rate_bps / FLOW_SAND_PART))?;
        self.tell(ALL_SAND, byte_ns(rate_bps / ALL_SAND_PART))?;
        self.leaf_rate_bps = leaf_rate_bps;
        self.frame_bytes_max = frame_bytes;
        self.limits_frames = true;
        Ok(())
    }

    /// From now on the host makes no larger frame, at whichever rate. Not below [`FRAME_BYTES_MIN`]; [`FRAME_BYTES_MAX`]: as large as
    /// it likes.
    pub fn keep_frames_below(&mut self, bytes: u32) {
        self.frame_bytes_any = bytes.clamp(FRAME_BYTES_MIN, FRAME_BYTES_MAX);
        let by_rate = match self.limits_frames {
            true => self.frame_bytes_max,
            false => FRAME_BYTES_MAX,
        };
        self.limit_frames(by_rate);
    }

    /// A kernel that does not let itself be told makes larger frames: the line is less even, and works.
    fn limit_frames(&mut self, bytes: u32) -> bool {
        if !self.is_the_hosts {
            return false;
        }
        let bytes = bytes.min(self.frame_bytes_any);
        if let Err(error) = self.netlink.set_gso_max_size(self.ifindex, bytes) {
            tracing::debug!("{error}");
            return false;
        }
        // A socket keeps the size that it found with its route.
        let flushed = fs::write(ROUTE_FLUSH, "1");
        if let Err(error) = &flushed {
            tracing::debug!("{ROUTE_FLUSH}: {error}");
        }
        flushed.is_ok()
    }

    /// The interface's; who cannot tell says that it is short.
    fn mtu(&mut self) -> u32 {
        let link = self.netlink.link(self.ifindex);
        link.ok().flatten().map_or(0, |link| link.mtu)
    }

    /// An entry of the map `state`.
    fn tell(&mut self, entry: u32, value: u32) -> Result<(), IntakeError> {
        let (entry, value) = (entry.to_ne_bytes(), value.to_ne_bytes());
        self.state
            .update(&entry, &value, MapFlags::ANY)
            .map_err(|source| IntakeError::Map { source })
    }

    pub fn rate_bps(&self) -> Option<u64> {
        self.rate_bps
    }

    /// Whether frames may wait before `pt0` now. Who cannot tell says yes.
    pub fn may_hold_frames(&mut self) -> bool {
        self.queue().map_or(true, |queue| queue.frames > 0)
    }

    /// As [`Intake::queue`]; `None`: it is not there any more.
    pub(super) fn queue_if_there(&mut self) -> Result<Option<QueueStats>, IntakeError> {
        Ok(tc::queue_stats(&mut self.netlink, self.ifindex, QDISC)?)
    }

    /// What waits before `pt0`, and what was dropped there because too much waited. Zero where
    /// somebody has put another qdisc in its place.
    pub fn queue(&mut self) -> Result<QueueStats, IntakeError> {
        Ok(tc::queue_stats(&mut self.netlink, self.ifindex, QDISC)?.unwrap_or_default())
    }
}

/// Whether frames wait in the queue before this `pt0`, whoever has put it there. Who cannot tell says no.
pub fn holds_frames(ifindex: u32) -> bool {
    let queue = Netlink::open().and_then(|mut n| tc::queue_stats(&mut n, ifindex, QDISC));
    queue.is_ok_and(|queue| queue.is_some_and(|queue| queue.frames > 0))
}

fn rate_class(rate_bps: u64, burst_ns: u64) -> Class {
    Class {
        handle: RATE_CLASS,
        parent: QDISC,
        rate_bps,
        ceil_bps: rate_bps,
        burst_ns,
        quantum: quantum(FRAME_BYTES_MAX),
        overhead: 0,
        least: 0,
    }
}

fn filter_place(ifindex: u32) -> FilterPlace {
    FilterPlace {
        ifindex,
        parent: QDISC,
        priority: 1,
        handle: 1,
    }
}

fn leaf_rate_bps(rate_bps: u64) -> u64 {
    LEAF_RATE_BPS.clamp(rate_bps / LEAF_PART_MIN, rate_bps / LEAF_PART_MAX)
}

fn idle_ms(rate_bps: u64) -> u32 {
    let drained_in = WAITING_BYTES_MAX * 8 * 1000 / rate_bps.max(1);
    u32::try_from(drained_in.max(IDLE_MS_MIN)).unwrap_or(u32::MAX)
}

/// How long a byte takes at this rate; never 0, which stands for none.
fn byte_ns(rate_bps: u64) -> u32 {
    let nanos = 8_000_000_000 / rate_bps.max(1);
    u32::try_from(nanos).unwrap_or(u32::MAX).max(1)
}

fn is_near(wanted: u64, known: u64) -> bool {
    wanted <= known * DRIFT && wanted >= known / DRIFT
}

fn frame_bytes_max(rate_bps: u64, frame_max: usize) -> u32 {
    let bytes = rate_bps / 8 * FRAME_TIME.as_millis() as u64 / 1000;
    let bytes = bytes.min(frame_max as u64);
    (bytes.min(FRAME_BYTES_MAX.into()) as u32).max(FRAME_BYTES_MIN)
}

/// The largest that TCP makes, where it is told to make none larger than this: two of its segments it puts together
/// whatever it is told, where they fit into a frame at all.
pub fn frame_bytes_made(told: u32, mtu: u32) -> u32 {
    told.max((2 * mtu).min(FRAME_BYTES_MAX))
}

/// Bytes a leaf in its turn. HTB gives a leaf one frame at least and one quantum at most, whatever
/// it overdrew before: so no frame may be larger (its segments' headers are counted too), or large
/// frames get more than their share.
fn quantum(frame_bytes_max: u32) -> u32 {
    frame_bytes_max / 8 * 9
}

fn set_leaves(
    netlink: &mut Netlink,
    ifindex: u32,
    rate_bps: u64,
    quantum: u32,
) -> Result<(), NetlinkError> {
    for leaf in FIRST_LEAF..FIRST_LEAF + LEAVES {
        let class = Class {
            handle: QDISC | leaf,
            parent: RATE_CLASS,
            rate_bps,
            ceil_bps: OPEN_RATE_BPS,
            burst_ns: LEAF_BURST_BYTES * 8 * 1_000_000_000 / rate_bps.max(1),
            quantum,
            overhead: 0,
            least: 0,
        };
        htb::set_class(netlink, ifindex, class)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
