//! HTB's qdisc and classes as rtnetlink takes them (`struct tc_htb_glob` and `struct tc_htb_opt` of
//! linux/pkt_sched.h).

use super::netlink::message::Request;
use super::netlink::{Netlink, NetlinkError, interface};
use super::tc::{self, ROOT};

const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_INIT: u16 = 2;
const TCA_HTB_RATE64: u16 = 6;
const TCA_HTB_CEIL64: u16 = 7;

const VERSION: u32 = 3;
/// `TC_LINKLAYER_ETHERNET`: the kernel then works from the rate, and wants no table of times.
const LINKLAYER_ETHERNET: u8 = 1;

/// Nanoseconds of one unit in which bursts are told: since Linux 2.6.31 always this, whatever
/// /proc/net/psched has for older programs (its first two numbers are 1000 and 64: 64 ns).
const TICK_NS: u64 = 64;

/// A class and what it may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Class {
    pub(super) handle: u32,
    pub(super) parent: u32,
    /// Sent whatever the parent has left, bit/s.
    pub(super) rate_bps: u64,
    /// Sent at most, while the parent lends, bit/s.
    pub(super) ceil_bps: u64,
    /// What may be saved up, as time at the rate.
    pub(super) burst_ns: u64,
    /// DRR quantum among the leaves of one parent, bytes.
    pub(super) quantum: u32,
    /// Bytes that each frame costs beside its own.
    pub(super) overhead: u16,
    /// That it costs at least, both together.
    pub(super) least: u16,
}

/// The root qdisc, with all unclassified frames in its direct queue.
pub(super) fn add_root(
    netlink: &mut Netlink,
    ifindex: u32,
    handle: u32,
) -> Result<(), NetlinkError> {
    netlink.change(
        || format!("give {} an HTB", interface(ifindex)),
        root_request(ifindex, handle, 0),
    )
}

/// A root qdisc with a class for what is not classified; 0: its direct queue.
pub(super) fn root_request(ifindex: u32, handle: u32, default_class: u32) -> Request {
    let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
    // Version, rate to quantum, default class, debug, direct packets (only read).
    let glob = words(&[VERSION, 10, default_class, 0, 0]);
    tc::request(libc::RTM_NEWQDISC, flags, ifindex, handle, ROOT, 0)
        .attribute_str(libc::TCA_KIND, "htb")
        .nested(libc::TCA_OPTIONS, |options| {
            options.attribute(TCA_HTB_INIT, &glob)
        })
}

/// Adds the class, or changes the one that is there; what waits in it stays.
pub(super) fn set_class(
    netlink: &mut Netlink,
    ifindex: u32,
    class: Class,
) -> Result<(), NetlinkError> {
    netlink.change(
        || {
            format!(
                "set an HTB class of {} to {} bit/s",
                interface(ifindex),
                class.rate_bps
            )
        },
        class_request(ifindex, class),
    )
}

/// Deletes a class that no other is below of; what waits there is lost.
pub(super) fn delete_class(
    netlink: &mut Netlink,
    ifindex: u32,
    handle: u32,
) -> Result<(), NetlinkError> {
    let request = tc::request(libc::RTM_DELTCLASS, libc::NLM_F_ACK, ifindex, handle, 0, 0);
    netlink.change(
        || format!("delete an HTB class of {}", interface(ifindex)),
        request,
    )
}

fn class_request(ifindex: u32, class: Class) -> Request {
    let (rate, ceil) = (
        bytes_per_second(class.rate_bps),
        bytes_per_second(class.ceil_bps),
    );
    let burst = u32::try_from(class.burst_ns / TICK_NS).unwrap_or(u32::MAX);
    let mut parameters = Vec::with_capacity(44);
    for rate in [rate, ceil] {
        parameters.extend_from_slice(&rate_spec(rate, class.overhead, class.least));
    }
    // Burst, burst at the ceiling, quantum, level (only read), priority.
    parameters.extend_from_slice(&words(&[burst, burst, class.quantum, 0, 0]));
    let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE;
    tc::request(
        libc::RTM_NEWTCLASS,
        flags,
        ifindex,
        class.handle,
        class.parent,
        0,
    )
    .attribute_str(libc::TCA_KIND, "htb")
    .nested(libc::TCA_OPTIONS, |options| {
        options
            .attribute(TCA_HTB_PARMS, &parameters)
            .attribute(TCA_HTB_RATE64, &rate.to_ne_bytes())
            .attribute(TCA_HTB_CEIL64, &ceil.to_ne_bytes())
    })
}

/// HTB refuses a rate of 0.
fn bytes_per_second(rate_bps: u64) -> u64 {
    (rate_bps / 8).max(1)
}

/// `struct tc_ratespec`: cell log (1), link layer (1), overhead (2), cell align (2), least packet
/// (2), rate (4). A rate that does not fit is in the 64-bit attribute alone.
pub(super) fn rate_spec(bytes_per_second: u64, overhead: u16, least: u16) -> [u8; 12] {
    let mut spec = [0; 12];
    spec[1] = LINKLAYER_ETHERNET;
    spec[2..4].copy_from_slice(&overhead.to_ne_bytes());
    spec[6..8].copy_from_slice(&least.to_ne_bytes());
    let rate = u32::try_from(bytes_per_second).unwrap_or(u32::MAX);
    spec[8..12].copy_from_slice(&rate.to_ne_bytes());
    spec
}

pub(super) fn words(values: &[u32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_ne_bytes())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::test_namespace::{in_namespace, ip, run};

    #[test]
    fn rates_are_as_tc_shows_them_above_and_below_32_bits() {
        in_namespace(|| {
            ip("link add a0 type veth peer name b0");
            let mut netlink = Netlink::open().unwrap();
            let a0 = netlink.link_by_name("a0").unwrap().unwrap().ifindex;
            add_root(&mut netlink, a0, 0x1_0000).unwrap();
            for (rate_bps, shown) in [
                (1, "rate 8bit ceil 8bit"),
                (50_000_000, "rate 50Mbit ceil 50Mbit"),
                (34_359_738_360, "rate 34359Mbit ceil 34359Mbit"),
                (100_000_000_000, "rate 100Gbit ceil 100Gbit"),
            ] {
                let class = Class {
                    handle: 0x1_0001,
                    parent: 0x1_0000,
                    rate_bps,
                    ceil_bps: rate_bps,
                    burst_ns: 1_000_000,
                    quantum: 3000,
                    overhead: 0,
                    least: 0,
                };
                set_class(&mut netlink, a0, class).unwrap();
                let text = run("tc -d class show dev a0");
                assert!(text.contains(shown), "{rate_bps}: {text}");
                assert_eq!(text.lines().count(), 1, "{text}");
            }
        });
    }
}
