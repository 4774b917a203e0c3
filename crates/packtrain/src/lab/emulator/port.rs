//! A host's port: a TAP in its namespace, and the qdisc that gives it a rate.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use packtrain_proto::buffer::BufferPool;
use packtrain_proto::engine::Delivery;
use packtrain_proto::offload::Offload;
use packtrain_proto::wire::ethernet::MacAddr;
use packtrain_sim::net::network::PortId;

use crate::lab::namespaces;
use crate::lab::{Error, Result};
use crate::linux::netlink::{Netlink, NetlinkError};
use crate::linux::port_rate::{self, PortRate};
use crate::linux::tap::Tap;

/// Frames that may stand between the kernel and us, who may be away for some milliseconds. What a
/// port of a slow link queues stands before, in its qdisc.
const RING_FRAMES: u32 = 16_384;

/// Below what was set, so that the wire behind never has to queue what its own port lets through.
const RATE_SHARE: f64 = 0.999;

/// What a port is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortPlan {
    /// The host's namespace, by its name in /run/netns.
    pub namespace: String,
    pub interface: String,
    pub mac: MacAddr,
    pub mtu: u16,
    pub place: PortId,
    pub rate: Option<PortRate>,
}

#[derive(Debug)]
pub struct Port {
    pub place: PortId,
    /// Namespace and interface.
    name: String,
    tap: Tap,
    /// In the host's namespace.
    netlink: Netlink,
    rate: Option<PortRate>,
}

impl Port {
    /// Makes the interface, and sets it up; it has no address yet.
    pub fn create(plan: &PortPlan) -> Result<Port> {
        let make = || -> Result<(Tap, Netlink)> {
            let tap = Tap::create(&plan.interface, plan.mac).map_err(|source| Error::Start {
                command: format!("{} in {}", plan.interface, plan.namespace),
                source,
            })?;
            Ok((tap, Netlink::open()?))
        };
        let (tap, netlink) = namespaces::enter(&plan.namespace, make)??;
        let mut port = Port {
            place: plan.place,
            name: format!("{} in {}", plan.interface, plan.namespace),
            tap,
            netlink,
            rate: None,
        };
        let ifindex = port.tap.ifindex();
        port.netlink.set_mtu(ifindex, plan.mtu.into())?;
        port.netlink.set_queue_len(ifindex, RING_FRAMES)?;
        port.set_rate(plan.rate)?;
        port.netlink.set_up(ifindex, true)?;
        Ok(port)
    }

    /// Gives the port another rate; `None`: as fast as the host can.
    pub fn set_rate(&mut self, rate: Option<PortRate>) -> std::result::Result<(), NetlinkError> {
        let ifindex = self.tap.ifindex();
        let before = self.rate;
        match (before, rate) {
            _ if before == rate => {}
            (_, None) => port_rate::clear(&mut self.netlink, ifindex)?,
            // What waits stays.
            (Some(before), Some(rate)) if before.counted == rate.counted => {
                port_rate::change(&mut self.netlink, ifindex, below(rate.rate_bps))?;
                if before.queue_frames_max != rate.queue_frames_max {
                    port_rate::set_queue(&mut self.netlink, ifindex, rate.queue_frames_max)?;
                }
            }
            (_, Some(rate)) => {
                let rate_bps = below(rate.rate_bps);
                let rate = PortRate { rate_bps, ..rate };
                port_rate::set(&mut self.netlink, ifindex, rate)?;
            }
        }
        self.rate = rate;
        Ok(())
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn set_carrier(&self, up: bool) -> io::Result<()> {
        self.tap.set_carrier(up)
    }

    /// The next frame that the host sent; `None` when none waits.
    pub fn receive(&mut self, pool: &mut BufferPool) -> io::Result<Option<(Vec<u8>, Offload)>> {
        let Some((buffer, offload)) = self.tap.receive(pool)? else {
            return Ok(None);
        };
        let bytes = buffer.to_vec();
        pool.give_back(buffer);
        Ok(Some((bytes, offload)))
    }

    pub fn send(&self, delivery: &Delivery<'_>) -> io::Result<()> {
        self.tap.send(delivery)
    }

    /// Frames that the host sent and that found no room on their way to us: we were away for longer
    /// than the ring is deep, and the wire was none for that time.
    pub fn dropped(&mut self) -> std::result::Result<u64, NetlinkError> {
        self.netlink.transmit_dropped(self.tap.ifindex())
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tap.as_fd()
    }
}

fn below(rate_bps: u64) -> u64 {
    (rate_bps as f64 * RATE_SHARE) as u64
}
