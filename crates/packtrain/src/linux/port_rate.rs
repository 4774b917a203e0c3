//! The rate of an interface's own port: an HTB that counts what a wire would.
//!
//! A qdisc counts the bytes of an `sk_buff`. A wire carries more: preamble, FCS and the gap between
//! frames, 64 bytes at least, and of a GSO frame the headers of every segment. HTB's size table
//! (`TCA_STAB`) says for each length how much that is, so that GSO frames and single ones leave at the
//! rate that was set, and sockets feel it as they feel a card's.
//!
//! The segments of a GSO frame are not known from its length. They are taken for TCP's over IPv4 with
//! time stamps, as large as the MTU allows: with other headers the count is off by a percent at most;
//! UDP cut into smaller pieces (`UDP_SEGMENT`) is charged too little.

use std::time::Duration;

use packtrain_proto::pacing::gap::SizeTable;
use packtrain_proto::wire::ethernet::HEADER_LEN;

use super::htb::{self, Class};
use super::netlink::message::Request;
use super::netlink::{Netlink, NetlinkError, interface};
use super::tc::{self, ROOT};

/// What of a frame is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// All that a wire spends on it.
    Ethernet,
    /// The IP packet.
    Ip,
}

/// What a port lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRate {
    pub rate_bps: u64,
    pub counted: Counted,
    /// Payload bytes of the largest frame.
    pub mtu: u16,
    /// Frames that wait at most; a GSO frame is one.
    pub queue_frames_max: u32,
}

const HANDLE: u32 = 0x1_0000;
const CLASS: u32 = 0x1_0001;
const LEAF: u32 = 0x2_0000;

const CELL_LOG: u32 = SizeTable::CELL_LOG as u32;
/// Entries are 16 bits wide, and 64 KB in segments are more than 65,535 bytes of wire.
const SIZE_LOG: u8 = 1;

const WIRE_OVERHEAD: usize = 24;
const FRAME_MIN: usize = 60;
/// IPv4 and TCP with time stamps.
const SEGMENT_HEADERS: usize = 20 + 32;

/// Saved up while the port is idle, as time at the rate: enough to make up for a timer that is late.
/// Whoever wants frames evenly spaced does so behind the port.
pub const BURST: Duration = Duration::from_millis(4);

/// Gives the interface a rate, instead of what it had.
pub fn set(netlink: &mut Netlink, ifindex: u32, rate: PortRate) -> Result<(), NetlinkError> {
    let root = htb::root_request(ifindex, HANDLE, CLASS & 0xffff);
    let root = with_size_table(root, rate);
    netlink.change(|| format!("give {} an HTB", interface(ifindex)), root)?;
    change(netlink, ifindex, rate.rate_bps)?;
    set_queue(netlink, ifindex, rate.queue_frames_max)
}

/// Another rate for a port that has one; what waits stays.
pub fn change(netlink: &mut Netlink, ifindex: u32, rate_bps: u64) -> Result<(), NetlinkError> {
    let class = Class {
        handle: CLASS,
        parent: HANDLE,
        rate_bps,
        ceil_bps: rate_bps,
        burst_ns: BURST.as_nanos() as u64,
        quantum: 3000,
        overhead: 0,
        least: 0,
    };
    htb::set_class(netlink, ifindex, class)
}

/// Another bound for its queue.
pub fn set_queue(netlink: &mut Netlink, ifindex: u32, frames_max: u32) -> Result<(), NetlinkError> {
    let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
    // `struct tc_fifo_qopt`.
    let request = tc::request(libc::RTM_NEWQDISC, flags, ifindex, LEAF, CLASS, 0)
        .attribute_str(libc::TCA_KIND, "pfifo")
        .attribute(libc::TCA_OPTIONS, &frames_max.to_ne_bytes());
    netlink.change(|| format!("give {} a queue", interface(ifindex)), request)
}

/// Lets the interface send as fast as it can.
pub fn clear(netlink: &mut Netlink, ifindex: u32) -> Result<(), NetlinkError> {
    let request = tc::request(
        libc::RTM_DELQDISC,
        libc::NLM_F_ACK,
        ifindex,
        HANDLE,
        ROOT,
        0,
    );
    netlink.change(
        || format!("take the HTB of {} away", interface(ifindex)),
        request,
    )
}

fn with_size_table(request: Request, rate: PortRate) -> Request {
    let counted = |cell: usize| (counted_bytes(cell << CELL_LOG, rate) >> SIZE_LOG) as u16;
    let entries: Vec<u16> = (0..SizeTable::ENTRIES).map(counted).collect();
    tc::with_size_table(request, SIZE_LOG, &entries)
}

/// What a frame of `len` bytes counts for, Ethernet header included and FCS not.
fn counted_bytes(len: usize, rate: PortRate) -> usize {
    let largest = usize::from(rate.mtu) + HEADER_LEN;
    let headers = HEADER_LEN + SEGMENT_HEADERS;
    let segments = match len <= largest || largest <= headers {
        true => 1,
        false => (len - headers).div_ceil(largest - headers),
    };
    let bytes = len + (segments - 1) * headers;
    match rate.counted {
        Counted::Ethernet => bytes.max(FRAME_MIN) + segments * WIRE_OVERHEAD,
        Counted::Ip => bytes - (segments * HEADER_LEN).min(bytes - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::test_namespace::{in_namespace, ip, run};

    fn rate(mtu: u16, counted: Counted) -> PortRate {
        PortRate {
            rate_bps: 10_000_000,
            counted,
            mtu,
            queue_frames_max: 70,
        }
    }

    #[test]
    fn a_frame_counts_with_all_that_ethernet_sends_of_it() {
        let counted = |len| counted_bytes(len, rate(1500, Counted::Ethernet));
        assert_eq!(counted(60), 84);
        assert_eq!(counted(42), 84, "shorter ones are padded");
        assert_eq!(counted(1514), 1538);
    }

    #[test]
    fn at_ip_level_the_packet_counts_alone() {
        let counted = |len| counted_bytes(len, rate(1500, Counted::Ip));
        assert_eq!(counted(60), 46);
        assert_eq!(counted(1514), 1500);
        assert!(
            (1..20).all(|len| counted(len) >= 1),
            "nothing is for nothing"
        );
    }

    /// Every segment has the headers of the whole.
    fn segments_bytes(payload: usize, mtu: usize, of_frame: impl Fn(usize) -> usize) -> usize {
        let largest = mtu - SEGMENT_HEADERS;
        let (full, rest) = (payload / largest, payload % largest);
        let frame = |payload| of_frame(HEADER_LEN + SEGMENT_HEADERS + payload);
        full * frame(largest) + if rest > 0 { frame(rest) } else { 0 }
    }

    #[test]
    fn a_gso_frame_counts_as_its_segments_do() {
        for mtu in [1500, 9000] {
            for counted in [Counted::Ethernet, Counted::Ip] {
                let rate = rate(mtu, counted);
                // From two segments to what the largest IP packet holds, all that TCP may send.
                for payload in (usize::from(mtu)..=65_535 - SEGMENT_HEADERS).step_by(97) {
                    let wanted =
                        segments_bytes(payload, mtu.into(), |len| counted_bytes(len, rate));
                    let whole = HEADER_LEN + SEGMENT_HEADERS + payload;
                    let is = counted_bytes(whole, rate);
                    let share = is as f64 / wanted as f64;
                    assert!(
                        (share - 1.0).abs() < 0.001,
                        "{payload} bytes at {mtu}, {counted:?}: {is}, not {wanted}"
                    );
                }
            }
        }
    }

    #[test]
    fn tc_shows_the_table_the_class_and_the_queue_and_a_change_of_them() {
        in_namespace(|| {
            ip("link add a0 type veth peer name b0");
            ip("link set a0 up");
            let mut netlink = Netlink::open().unwrap();
            let a0 = netlink.link_by_name("a0").unwrap().unwrap().ifindex;
            set(&mut netlink, a0, rate(1500, Counted::Ethernet)).unwrap();
            let qdiscs = run("tc -s -d qdisc show dev a0");
            for part in [
                "htb 1: root",
                "default 0x1",
                "linklayer ethernet",
                "mtu 65400",
                "tsize 32700",
                "pfifo 2: parent 1:1 limit 70p",
            ] {
                assert!(qdiscs.contains(part), "no {part:?} in {qdiscs}");
            }
            let class = || run("tc class show dev a0");
            assert!(
                class().contains("class htb 1:1 root leaf 2: prio 0 rate 10Mbit ceil 10Mbit"),
                "{}",
                class()
            );

            change(&mut netlink, a0, 3_000_000).unwrap();
            set_queue(&mut netlink, a0, 9).unwrap();
            assert!(class().contains("rate 3Mbit ceil 3Mbit"), "{}", class());
            let qdiscs = run("tc qdisc show dev a0");
            assert!(qdiscs.contains("limit 9p"), "{qdiscs}");

            clear(&mut netlink, a0).unwrap();
            let qdiscs = run("tc qdisc show dev a0");
            assert!(!qdiscs.contains("htb"), "{qdiscs}");
        });
    }
}
