//! Every kind of frame passes over the direct path whole and once, whatever the links do for it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt::UdpGsoSegment};
use packtrain::lab::host::Host;
use packtrain::lab::namespaces::Namespace;
use packtrain::lab::{wait_for, wire};
use packtrain::status::PeerPath;
use packtrain_proto::wire::ethernet::MacAddr;

use super::frames::{self, HEADER_LEN, frame};
use super::port::End;
use crate::common::cabled::{MEBIBYTE, pause, status};
use crate::common::direct::{path, wait_for_direct};
use crate::common::{A, A6, B, B6, Pair, packtrain, pings_whole, transfer};

/// Which of all sizes of a ping are tried.
enum Sizes {
    All,
    Some,
}

#[test]
fn every_kind_passes_with_all_offloads_on() {
    live!();
    let pair = Pair::cable("kinds", 1500).unwrap();
    switch_offloads(&pair, "eth1", true);
    bring_up(&pair, 1500);
    every_kind_passes(&pair, 1500, Sizes::All);
    all_of_a_transfer_is_direct(&pair);
}

#[test]
fn every_kind_passes_with_all_offloads_off_and_over_a_fifo() {
    live!(wire::shaping_unavailable());
    let pair = Pair::cable("kinds", 1500).unwrap();
    switch_offloads(&pair, "eth1", false);
    for_both(&pair, "tc qdisc add dev eth1 root pfifo limit 1000");
    bring_up(&pair, 1500);
    switch_offloads(&pair, "pt0", false);
    every_kind_passes(&pair, 1500, Sizes::Some);
    whole_transfers(&pair);
}

#[test]
fn every_kind_passes_behind_an_htb_of_one_class() {
    live!(wire::shaping_unavailable());
    let pair = Pair::cable("kinds", 1500).unwrap();
    for host in [&pair.a, &pair.b] {
        wire::shape(&host.namespace, "eth1", 1000).unwrap();
    }
    bring_up(&pair, 1500);
    every_kind_passes(&pair, 1500, Sizes::Some);
    whole_transfers(&pair);
}

#[test]
fn every_kind_passes_behind_a_token_bucket() {
    live!(wire::shaping_unavailable());
    let pair = Pair::cable("kinds", 1500).unwrap();
    let tbf = "tc qdisc add dev eth1 root tbf rate 1gbit burst 100000 limit 1000000";
    for_both(&pair, tbf);
    bring_up(&pair, 1500);
    every_kind_passes(&pair, 1500, Sizes::Some);
    whole_transfers(&pair);
}

#[test]
fn every_kind_passes_over_a_bridge() {
    live!();
    let (pair, _switch) = over_a_bridge();
    bring_up(&pair, 1500);
    every_kind_passes(&pair, 1500, Sizes::Some);
    all_of_a_transfer_is_direct(&pair);
}

#[test]
fn every_kind_passes_at_an_mtu_of_9000() {
    live!();
    let pair = Pair::cable("kinds", 9000).unwrap();
    bring_up(&pair, 9000);
    every_kind_passes(&pair, 9000, Sizes::Some);
    all_of_a_transfer_is_direct(&pair);
}

pub fn over_a_bridge() -> (Pair, Namespace) {
    let switch = Namespace::create("kinds").unwrap();
    let [a, b] = ["one", "two"].map(|port| {
        let host = Host::create("kinds", packtrain()).unwrap();
        wire::veth((&host.namespace, "eth1"), (&switch, port)).unwrap();
        host
    });
    wire::bridge(&switch, "br0", &["one", "two"]).unwrap();
    (Pair { a, b }, switch)
}

fn for_both(pair: &Pair, line: &str) {
    for host in [&pair.a, &pair.b] {
        host.namespace.sh(line).unwrap();
    }
}

/// All that the driver lets one choose.
fn switch_offloads(pair: &Pair, interface: &str, on: bool) {
    let value = if on { "on" } else { "off" };
    for host in [&pair.a, &pair.b] {
        let offloads = || {
            let text = host.namespace.exec(["ethtool", "-k", interface]).unwrap();
            let lines = text.lines().filter_map(|line| line.trim().split_once(": "));
            let lines = lines.map(|(name, state)| (name.to_owned(), state.to_owned()));
            lines.collect::<Vec<_>>()
        };
        for (name, _) in offloads()
            .iter()
            .filter(|(_, state)| !state.contains("fixed"))
        {
            // Names of several at once are refused, and each of them is in the list too.
            let words = ["ethtool", "-K", interface, name, value];
            host.namespace.try_exec(words).unwrap();
        }
        for name in ["tx-checksum-ip-generic", "tx-tcp-segmentation", "rx-gro"] {
            let now = offloads();
            let state = now.iter().find(|(of, _)| of == name);
            let is_so = state.is_none_or(|(_, state)| state.starts_with(value));
            assert!(is_so, "{name}: {state:?}");
        }
    }
}

fn bring_up(pair: &Pair, mtu: u16) {
    let mtu = mtu.to_string();
    for host in [&pair.a, &pair.b] {
        // Nobody else has the addresses, and to look for them takes a second or two each time.
        let detection = "net/ipv6/conf/default/accept_dad";
        host.namespace.sysctl(detection, "0").unwrap();
    }
    pair.a_up(&["--mtu", &mtu]).unwrap();
    pair.b_up(&["--mtu", &mtu]).unwrap();
    pair.wait().unwrap();
    for host in [&pair.a, &pair.b] {
        wait_for_direct(host);
    }
    // They know each other's addresses from now on; and what said so went by the engine, and is delivered.
    assert!(pings_whole(&pair.a, B, 56) && pings_whole(&pair.a, B6, 56));
    pause(Duration::from_millis(200));
}

fn every_kind_passes(pair: &Pair, mtu: usize, sizes: Sizes) {
    let (mut a, mut b) = (End::of(&pair.a), End::of(&pair.b));
    frames_pass(&mut a, &mut b, mtu);
    pings_pass(&mut a, &mut b, mtu, &sizes);
    neighbours_are_found(&mut a, &mut b);
    datagrams_pass(pair, (a.direct_mark(), &mut b), mtu);
    for host in [&pair.a, &pair.b] {
        assert_eq!(path(host), (PeerPath::Direct, None));
    }
    // These go by the engine, and begin to.
    groups_pass_once(&mut a, &mut b);
    for host in [&pair.a, &pair.b] {
        // What the host says before the link joins has none to leave by.
        let mut drops = status(host).drops;
        drops.remove("no_link");
        assert_eq!(drops.values().sum::<u64>(), 0, "{drops:?}");
    }
}

fn frames_pass(a: &mut End, b: &mut End, mtu: usize) {
    let [from, to] = [A, B].map(|text| text.parse().expect("an address"));
    let kinds = frames::of_every_kind(from, to, mtu);
    let longest = kinds.iter().map(|(_, rest)| 12 + rest.len()).max();
    assert_eq!(longest, Some(frames::tagged_len_max(mtu)));
    let (mut given, mut carried) = (Vec::new(), Vec::new());
    for (what, rest) in &kinds {
        let inner = frame(b.pt0_address, a.pt0_address, rest);
        a.pt0.send(&inner);
        given.extend(b.pt0.wait_for(what, |frame| *frame == inner));
    }
    given.extend(b.pt0.rest());
    carried.extend(b.link.take());
    for (what, rest) in &kinds {
        let outer = frame(b.link_address, a.direct_mark(), rest);
        assert_eq!(alike(&given, rest), 1, "{what}: once, at pt0");
        let directly = carried.iter().filter(|frame| **frame == outer).count();
        assert_eq!(directly, 1, "{what}: with the direct mark, on the link");
        assert_eq!(alike(&carried, rest), 1, "{what}: once, on the link");
    }
}

/// Frames with this behind their addresses.
fn alike(frames: &[Vec<u8>], rest: &[u8]) -> usize {
    frames.iter().filter(|frame| frame[12..] == *rest).count()
}

/// Both ways: what answers is the other host's own stack.
fn pings_pass(a: &mut End, b: &mut End, mtu: usize, sizes: &Sizes) {
    let [from, to]: [Ipv4Addr; 2] = [A, B].map(|text| text.parse().expect("an address"));
    let largest = mtu - 28;
    let step = match sizes {
        Sizes::All => 1,
        Sizes::Some => largest / 50,
    };
    for size in (0..largest).step_by(step).chain([largest - 1, largest]) {
        let payload = frames::payload(size as u64, size);
        let ask = frames::echo(true, size as u16, &payload);
        let answer = frames::echo(false, size as u16, &payload);
        let ask = frames::ipv4(from, to, frames::ICMP, &ask);
        a.pt0.send(&frame(b.pt0_address, a.pt0_address, &ask));
        // Its IP header is the other host's.
        const ICMP_AT: usize = HEADER_LEN + 20;
        let is_answer = |frame: &[u8]| frame.get(ICMP_AT..) == Some(&answer[..]);
        let came = a.pt0.wait_for(&format!("{size} bytes"), is_answer);
        let answers = came.iter().filter(|frame| is_answer(frame)).count();
        assert_eq!(answers, 1, "{size} bytes at pt0");
        let of_b = |frame: &[u8]| is_answer(frame) && frame[6..12] == b.direct_mark().0;
        assert!(
            a.link.take().iter().any(|frame| of_b(frame)),
            "{size} bytes: the answer comes directly"
        );
        let asked = frame(b.link_address, a.direct_mark(), &ask);
        assert!(
            b.link.take().contains(&asked),
            "{size} bytes: asked directly"
        );
    }
    b.pt0.take();
}

/// To the neighbour itself, as who knows it asks again: directly, and answered once and directly.
fn neighbours_are_found(a: &mut End, b: &mut End) {
    let [a4, b4]: [Ipv4Addr; 2] = [A, B].map(|text| text.parse().expect("an address"));
    let [a6, b6]: [Ipv6Addr; 2] = [A6, B6].map(|text| text.parse().expect("an address"));
    let asks_arp = frames::arp_request((a.pt0_address, a4), b4);
    let expected = Some((b.pt0_address, b4));
    answered(a, b, &asks_arp, |f| frames::arp_answer(f) == expected);
    let solicits = frames::neighbour_solicitation((a.pt0_address, a6), b6);
    answered(a, b, &solicits, |f| {
        frames::neighbour_advertisement(f) == Some(b6)
    });
}

fn answered(a: &mut End, b: &mut End, question: &[u8], is_answer: impl Fn(&[u8]) -> bool) {
    a.pt0.take();
    a.link.take();
    let asked = frame(b.pt0_address, a.pt0_address, question);
    a.pt0.send(&asked);
    let mut came = a.pt0.wait_for("an answer", &is_answer);
    came.extend(a.pt0.rest());
    let answers = came.iter().filter(|frame| is_answer(frame));
    let from: Vec<_> = answers.map(|f| MacAddr::from_slice(&f[6..12])).collect();
    assert_eq!(from, [b.pt0_address], "one answer, of pt0");
    let on_link = a.link.take();
    let answers = on_link.iter().filter(|frame| is_answer(frame));
    let from: Vec<_> = answers.map(|f| MacAddr::from_slice(&f[6..12])).collect();
    assert_eq!(from, [b.direct_mark()], "one answer, directly");
    let asked_directly = frame(b.link_address, a.direct_mark(), question);
    assert!(b.link.take().contains(&asked_directly));
    b.pt0.take();
}

/// Checksums are left to the link; the last two are larger than the MTU, and one is a row for it to cut.
fn datagrams_pass(pair: &Pair, (mark, b): (MacAddr, &mut End), mtu: usize) {
    for (ours, theirs) in [(A, B), (A6, B6)] {
        let [from, to] = [(&pair.a, ours), (&pair.b, theirs)].map(|(host, address)| {
            let address: IpAddr = address.parse().expect("an address");
            let bind = || UdpSocket::bind((address, 0)).expect("the address is there");
            host.namespace.in_namespace(bind).unwrap()
        });
        to.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        from.connect(to.local_addr().unwrap()).unwrap();
        let mut buffer = vec![0; 65_536];
        for size in [1, 100, 1000, mtu - 48, 20_000, 60_000] {
            let sent = frames::payload(size as u64, size);
            from.send(&sent).unwrap();
            let len = to.recv(&mut buffer).expect("the datagram");
            assert!(buffer[..len] == sent, "{size} bytes to {theirs}");
            assert!(
                carried_directly(b, mark) >= size,
                "{size} bytes to {theirs}"
            );
        }
        const SEGMENT: usize = 1000;
        const SEGMENTS: usize = 40;
        setsockopt(&from, UdpGsoSegment, &(SEGMENT as i32)).unwrap();
        let row = frames::payload(77, SEGMENT * SEGMENTS);
        from.send(&row).unwrap();
        for segment in row.chunks(SEGMENT) {
            let len = to.recv(&mut buffer).expect("each segment of the row");
            assert!(buffer[..len] == *segment, "in order, to {theirs}");
        }
        assert!(carried_directly(b, mark) >= row.len(), "a row to {theirs}");
        to.set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        assert!(to.recv(&mut buffer).is_err(), "nothing comes twice");
    }
    b.pt0.take();
}

/// Bytes behind the Ethernet headers of what has come directly since it was asked last.
fn carried_directly(to: &mut End, mark: MacAddr) -> usize {
    let outer = frame(to.link_address, mark, &[]);
    let frames = to.link.take();
    let direct = frames.iter().filter(|frame| frame.starts_with(&outer));
    direct.map(|frame| frame.len() - HEADER_LEN).sum()
}

/// Broadcast, multicast of both families, a bridge's own group: plainly, and one copy of each.
fn groups_pass_once(a: &mut End, b: &mut End) {
    let groups = [
        MacAddr::BROADCAST,
        MacAddr([1, 0, 0x5e, 7, 7, 7]),
        MacAddr([0x33, 0x33, 0, 0, 0x70, 0x74]),
        MacAddr([1, 0x80, 0xc2, 0, 0, 0]),
    ];
    for (seed, group) in (20..).zip(groups) {
        let rest = frames::typed(frames::NOBODYS_TYPE, seed, 100);
        let sent = frame(group, a.pt0_address, &rest);
        a.pt0.send(&sent);
        let mut came = b.pt0.wait_for(&group.to_string(), |frame| *frame == sent);
        came.extend(b.pt0.rest());
        assert_eq!(alike(&came, &rest), 1, "one copy to {group}");
    }
}

/// In both directions and families. A shaped link's queue may stand meanwhile, and the engine come in.
fn whole_transfers(pair: &Pair) {
    for (from, to, at) in [(&pair.a, &pair.b, B), (&pair.b, &pair.a, A6)] {
        assert_eq!(transfer(from, to, at, 4 * MEBIBYTE), 4 * MEBIBYTE, "{at}");
    }
}

fn all_of_a_transfer_is_direct(pair: &Pair) {
    let sent = |host: &Host| {
        let status = status(host);
        (status.direct.tx.bytes, status.host.taken.bytes)
    };
    // Groups, before, are delivered by now.
    wait_for("the direct path", Duration::from_secs(5), || {
        path(&pair.a).0 == PeerPath::Direct
    })
    .unwrap();
    let before = [&pair.a, &pair.b].map(sent);
    whole_transfers(pair);
    let after = [&pair.a, &pair.b].map(sent);
    for (before, after) in before.iter().zip(after) {
        assert!(after.0 - before.0 > 4 * MEBIBYTE, "{before:?} {after:?}");
        assert!(after.1 - before.1 < MEBIBYTE / 10, "{before:?} {after:?}");
    }
}
