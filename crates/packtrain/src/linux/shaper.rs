//! A queue of ours that direct frames wait in before a link, so that none stands in the link's own.
//!
//! Direct frames leave at tc egress of `pt0`, before any qdisc there; and the link's own queue is not ours to change. So
//! between the two stands a pair of interfaces (veth): the near end has the same HTB as `pt0` ([`super::intake`]), with flows in
//! leaves and sand before them, and a rate below the link's; whatever comes out at the far end is given to the link
//! (`direct_carry`). Sockets are charged for what waits, as the frame stays theirs all the way.
//!
//! ```text
//! pt0 ─ direct_leave ─► near ─ HTB ─► far ─ direct_carry ─► link
//! ```
//! What leaves the near end is taken in at the far one by the same processor, in its own time. To leave each flow to one processor (RPS)
//! would keep the order of a flow even where two processors let frames out in turns and one of them is taken away meanwhile, which was
//! never seen (of 500,000 datagrams at a gigabit with both processors full, none); but small frames then wait for that processor:
//! 99 % within 0.1 to 1.3 ms, and without within 0.05 to 0.07.
//!
//! The pair is an interface like others: it outlives a process that is killed, and is written down before it is made
//! ([`super::host_state::HostState::expect_interface`]).

use std::os::fd::{AsRawFd, OwnedFd};

use packtrain_proto::wire::ethernet::MacAddr;

use super::host_state::write_sysctl;
use super::intake::{Intake, IntakeError};
use super::netlink::{Netlink, NetlinkError, interface};
use super::tc::{self, QueueStats};
use super::tcx;

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
    #[error("cannot attach a BPF program to {interface}: {source}")]
    Attach {
        interface: String,
        source: std::io::Error,
    },
}

/// What the pair of a `pt0` is called, and the address by which it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairNames {
    pub near: String,
    pub far: String,
    pub address: MacAddr,
}

impl PairNames {
    /// `number`: of which no other pair on this host has had the same lately.
    pub fn of(tap_ifindex: u32, number: u64) -> PairNames {
        let [.., a, b, c, d] = number.to_be_bytes();
        PairNames {
            near: format!("ptq{tap_ifindex}"),
            far: format!("ptr{tap_ifindex}"),
            address: MacAddr([0x02, 0x71, a, b, c, d]),
        }
    }
}

/// The pair, and what stands before it. It goes with this value.
#[derive(Debug)]
pub struct Shaper {
    names: PairNames,
    near: u32,
    intake: Intake,
}

impl Shaper {
    /// Takes milliseconds. `carry`: [`super::direct::DirectPath::carry_program`].
    pub fn make(names: PairNames, carry: &OwnedFd) -> Result<Shaper, ShaperError> {
        let mut netlink = Netlink::open()?;
        netlink.add_pair(&names.near, names.address, &names.far)?;
        Shaper::furnish(&mut netlink, names.clone(), carry).inspect_err(|_| {
            let near = netlink.link_by_name(&names.near).ok().flatten();
            if let Some(near) = near {
                let _ = netlink.delete_interface(near.ifindex);
            }
        })
    }

    fn furnish(
        netlink: &mut Netlink,
        names: PairNames,
        carry: &OwnedFd,
    ) -> Result<Shaper, ShaperError> {
        let mut index_of = |name: &str| -> Result<u32, NetlinkError> {
            let link = netlink.link_by_name(name)?;
            Ok(link.map_or(0, |link| link.ifindex))
        };
        let (near, far) = (index_of(&names.near)?, index_of(&names.far)?);
        for name in [&names.near, &names.far] {
            // It would say of itself that it is there, to nobody.
            if let Err(error) = write_sysctl("ipv6", name, "disable_ipv6", 1) {
                tracing::debug!("{name}: {error}");
            }
        }
        netlink.set_queue_len(near, QUEUE_FRAMES)?;
        let intake = Intake::attach_on_the_way(near, BURST_NS)?;
        // With the interface, and not with this process: a line that stays goes on with it.
        tcx::attach_behind_to_stay(carry.as_raw_fd(), far, "").map_err(|source| {
            ShaperError::Attach {
                interface: interface(far),
                source,
            }
        })?;
        netlink.set_up(far, true)?;
        netlink.set_up(near, true)?;
        Ok(Shaper {
            names,
            near,
            intake,
        })
    }

    pub fn names(&self) -> &PairNames {
        &self.names
    }

    /// Where frames go in.
    pub fn ifindex(&self) -> u32 {
        self.near
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
        Ok(self.intake.queue()?)
    }
}

impl Drop for Shaper {
    fn drop(&mut self) {
        let deleted = Netlink::open().and_then(|mut n| n.delete_interface(self.near));
        if let Err(error) = deleted.map_err(|error| error.to_string()) {
            tracing::debug!("{error}");
        }
    }
}

/// What the link's own queue has counted. `None`: a queue of ours is not for it. What is paced in it on purpose stands there; bands go
/// by a priority that frames do not keep on their way through the pair; and of pfifo_fast nobody can tell what has left it.
pub fn link_queue(netlink: &mut Netlink, ifindex: u32) -> Option<QueueStats> {
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
    let all = tc::qdiscs(netlink, ifindex).ok()?;
    let is_none = |qdisc: &tc::Qdisc| NOT_BEFORE.contains(&qdisc.kind.as_str());
    if all.iter().any(is_none) {
        return None;
    }
    bytes_of_link(netlink, ifindex)
}

/// … whichever it is.
pub fn bytes_of_link(netlink: &mut Netlink, ifindex: u32) -> Option<QueueStats> {
    tc::root_stats(netlink, ifindex).ok().flatten()
}
