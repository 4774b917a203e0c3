//! A queue of ours that direct frames wait in before a link, so that none stands in the link's own.
//!
//! Direct frames leave at tc egress of `pt0`, before any qdisc there; and the link's own queue is not ours to change. So
//! between the two stands an interface: it has the same HTB as `pt0` ([`super::intake`]), with flows in leaves and sand before
//! them, and a rate below the link's. What it lets out is given to the one below it, and on the way out there to the link
//! (`direct_carry`). Sockets are charged for what waits, as the frame stays theirs all the way; and so do its mark, and its priority unless it is urgent.
//!
//! ```text
//! pt0 ─ direct_leave ─► ptq7 (macvlan): HTB ─► ptr7 (veth) ─ direct_carry ─► link
//! ```
//! All of it is done by whoever takes a frame out of the HTB, before the next one is: so frames keep the order in which they were let
//! out. (By a pair of veths alone they need not: what leaves one end is taken in at the other by the same processor, in its own
//! time, and of two that take turns one may be late with the earlier frame.) What is below
//! is a veth because each kernel has that; nothing ever comes to its other end, `pts7`.
//!
//! Interfaces outlive a process that is killed: they are written down before they are made
//! ([`super::host_state::HostState::expect_interface`]).

use std::os::fd::{AsFd, OwnedFd};

use packtrain_proto::wire::ethernet::MacAddr;

use super::host_state::write_sysctl;
use super::intake::{Intake, IntakeError};
use super::netlink::{Netlink, NetlinkError, interface};
use super::tc::{self, QueueStats};
use super::tcx::{self, Hook};

/// What may be saved up while nothing is sent: it stands in the link's queue when it leaves. As late as the kernel's timers are.
const BURST_NS: u64 = 100_000;
/// Bytes that wait at most in each leaf are what sockets may have there; what others forward is bounded by frames.
const QUEUE_FRAMES: u32 = 1000;

#[derive(Debug, thiserror::Error)]
pub enum ShaperError {
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    #[error(transparent)]
    Intake(#[from] IntakeError),
    #[error("somebody has taken the queue of {interface} away")]
    Gone { interface: String },
    #[error("cannot attach a BPF program to {interface}: {source}")]
    Attach {
        interface: String,
        source: std::io::Error,
    },
}

/// What the interfaces of a `pt0` are called, and the address of the lower one, by which it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// With the queue.
    pub upper: String,
    /// With which the other two go.
    pub lower: String,
    end: String,
    pub address: MacAddr,
}

impl Names {
    /// `number`: which no others on this host have had lately.
    pub fn of(tap_ifindex: u32, number: u64) -> Names {
        let [.., a, b, c, d] = number.to_be_bytes();
        Names {
            upper: format!("ptq{tap_ifindex}"),
            lower: format!("ptr{tap_ifindex}"),
            end: format!("pts{tap_ifindex}"),
            address: MacAddr([0x02, 0x71, a, b, c, d]),
        }
    }
}

/// The interfaces, and what stands before them. They go with this value.
#[derive(Debug)]
pub struct Shaper {
    names: Names,
    upper: u32,
    lower: u32,
    intake: Intake,
}

impl Shaper {
    /// Takes milliseconds. `carry`: [`super::direct::DirectPath::carry_program`].
    pub fn make(names: Names, carry: &OwnedFd) -> Result<Shaper, ShaperError> {
        let mut netlink = Netlink::open()?;
        netlink.add_pair(&names.lower, names.address, &names.end)?;
        Shaper::furnish(&mut netlink, names.clone(), carry).inspect_err(|_| {
            let lower = netlink.link_by_name(&names.lower).ok().flatten();
            if let Some(lower) = lower {
                let _ = netlink.delete_interface(lower.ifindex);
            }
        })
    }

    fn furnish(
        netlink: &mut Netlink,
        names: Names,
        carry: &OwnedFd,
    ) -> Result<Shaper, ShaperError> {
        let lower = index_of(netlink, &names.lower)?;
        netlink.add_on_top(&names.upper, lower)?;
        let (upper, end) = (
            index_of(netlink, &names.upper)?,
            index_of(netlink, &names.end)?,
        );
        for name in [&names.upper, &names.lower, &names.end] {
            // It would say of itself that it is there, to nobody.
            if let Err(error) = write_sysctl("ipv6", name, "disable_ipv6", 1) {
                tracing::debug!("{name}: {error}");
            }
        }
        netlink.set_queue_len(upper, QUEUE_FRAMES)?;
        let intake = Intake::attach_on_the_way(upper, BURST_NS)?;
        // With the interface, and not with this process: a line that stays goes on with it.
        tcx::attach_to_stay(carry.as_fd(), lower, Hook::Egress).map_err(|source| {
            ShaperError::Attach {
                interface: interface(lower),
                source,
            }
        })?;
        for ifindex in [end, lower, upper] {
            netlink.set_up(ifindex, true)?;
        }
        Ok(Shaper {
            names,
            upper,
            lower,
            intake,
        })
    }

    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Where frames go in.
    pub fn ifindex(&self) -> u32 {
        self.upper
    }

    /// At most so much is let out, bit/s; `None`: all as it comes. The leaves take turns of what such a frame is.
    pub fn set_rate(
        &mut self,
        rate_bps: Option<u64>,
        frame_bytes: usize,
    ) -> Result<(), ShaperError> {
        Ok(self.intake.set_rate(rate_bps, frame_bytes)?)
    }

    pub fn rate_bps(&self) -> Option<u64> {
        self.intake.rate_bps()
    }

    /// What waits there, and what was dropped because too much did.
    pub fn queue(&mut self) -> Result<QueueStats, ShaperError> {
        let queue = self.intake.queue_if_there()?;
        queue.ok_or_else(|| ShaperError::Gone {
            interface: self.names.upper.clone(),
        })
    }
}

fn index_of(netlink: &mut Netlink, name: &str) -> Result<u32, NetlinkError> {
    Ok(netlink.link_by_name(name)?.map_or(0, |link| link.ifindex))
}

impl Drop for Shaper {
    fn drop(&mut self) {
        let deleted = Netlink::open().and_then(|mut n| n.delete_interface(self.lower));
        if let Err(error) = deleted.map_err(|error| error.to_string()) {
            tracing::debug!("{error}");
        }
    }
}

/// Whether a queue of ours may stand before the link's own. What is paced in that on purpose stands there; of bands the one that is full
/// is not the one that is seen; and of pfifo_fast nobody can tell what has left it.
pub fn is_for(netlink: &mut Netlink, ifindex: u32) -> bool {
    const NOT_BEFORE: [&str; 8] = [
        "fq",
        "etf",
        "pfifo_fast",
        "prio",
        "mqprio",
        "taprio",
        "ets",
        "multiq",
    ];
    let Ok(all) = tc::qdiscs(netlink, ifindex) else {
        return false; // what cannot be seen is not trusted
    };
    let is_one = |qdisc: &tc::Qdisc| NOT_BEFORE.contains(&qdisc.kind.as_str());
    !all.iter().any(is_one)
}

/// Bytes that have left the link's own queue, ever; `None`: it does not say.
pub fn bytes_of_link(netlink: &mut Netlink, ifindex: u32) -> Option<u64> {
    let queue = tc::root_stats(netlink, ifindex).ok().flatten()?;
    Some(queue.sent_bytes)
}
