//! Frames of a host without packtrain that pretend to be a peer's.
//!
//! Without keys nobody can tell a frame with a peer's true mark from the peer's own, as nobody on plain Ethernet
//! can tell who has sent a frame with another host's source address. So this is what a forger on the segment can
//! do, and could without packtrain: have frames of any type and length, tagged or not, delivered to `pt0` as the
//! peer's. The mark he learns from the peer's hellos, which go to all. What is new is little: as many direct
//! frames as he forges may be lost without being missed, for both ends only count them.
//!
//! What he can not do is tried here: be taken for a peer by any other address, reach the `pt0` of a host that the
//! frame is not for, have a frame delivered without its tag or with other bytes, or end the line.

use packtrain_proto::wire::ethernet::{MacAddr, ether_type};

use super::frames::{self, NOBODYS_TYPE, frame, tagged, typed};
use super::port::{End, Port};
use super::segment::Segment;
use crate::common::cabled::{MEBIBYTE, status};
use crate::common::{B, pings_whole, transfer};

/// Locally administered, as marks are, and nobody's.
const NOBODY: MacAddr = MacAddr([0x0a, 0x54, 0x70, 0x74, 0, 0x59]);
/// Of no interface, and never heard: a switch sends frames for it to all.
const ABSENT: MacAddr = MacAddr([0x0a, 0x54, 0x70, 0x74, 1, 0x59]);

#[test]
fn no_forged_mark_has_a_frame_delivered_that_the_true_one_would_not() {
    live!();
    let segment = Segment::up("forge", 2);
    let [a_host, b_host] = &segment.lines[..] else {
        panic!("two lines");
    };
    assert!(pings_whole(a_host, B, 1000));
    let (a, mut b) = (End::of(a_host), End::of(b_host));
    let mut forger = Port::open(&segment.plain, "eth1");
    let daemon = status(b_host).pid;

    let (link, direct, mark) = (b.link_address, a.direct_mark(), a.mark());
    let untagged = |seed| typed(NOBODYS_TYPE, seed, 100);
    let in_vlan = |seed| tagged(ether_type::VLAN, 7, &untagged(seed));
    let packtrains = |seed| typed(ether_type::PACKTRAIN, seed, 100);

    // Each is seen at the link, and not at pt0.
    let refused = [
        ("a direct mark of nobody", link, NOBODY, untagged(1)),
        ("… in a VLAN", link, NOBODY, in_vlan(2)),
        ("a peer's, to nobody", ABSENT, direct, untagged(3)),
        ("… in a VLAN", ABSENT, direct, in_vlan(4)),
        ("its other one, to nobody", ABSENT, mark, untagged(5)),
        ("its own direct mark", link, b.direct_mark(), untagged(6)),
        ("… in a VLAN", link, b.direct_mark(), in_vlan(7)),
        ("its own mark", link, b.mark(), untagged(8)),
        ("its pt0", link, b.pt0_address, untagged(9)),
        ("the peer's pt0", link, a.pt0_address, untagged(10)),
        ("no train, by its type", link, direct, packtrains(11)),
        ("no hello", MacAddr::HELLO, direct, packtrains(12)),
    ];
    for (what, to, from, rest) in &refused {
        forger.send(&frame(*to, *from, rest));
        b.link.wait_for(what, |frame| frame[12..] == *rest);
    }
    let came = b.pt0.rest();
    for (what, _, _, rest) in &refused {
        let delivered = came.iter().filter(|frame| frame[12..] == *rest).count();
        assert_eq!(delivered, 0, "{what}");
    }

    // To all: as the frame of the stranger that it is, and never as the peer's.
    let rest = untagged(20);
    let sent = frame(MacAddr::BROADCAST, direct, &rest);
    forger.send(&sent);
    b.link.wait_for("a broadcast", |frame| frame[12..] == rest);
    for came in b.pt0.rest().iter().filter(|frame| frame[12..] == rest) {
        assert!(*came == sent, "{came:02x?}");
    }

    // With the true mark, to the true address: as the peer's, and as it was; else none of this could fail.
    let mut delivered = Vec::new();
    let mut accepted = vec![("plain", untagged(30)), ("tagged", in_vlan(31))];
    accepted.extend((2..6).map(|at| ("short", typed(NOBODYS_TYPE, at, at as usize))));
    for (what, rest) in &accepted {
        forger.send(&frame(link, direct, rest));
        let as_peers = frame(b.pt0_address, a.pt0_address, rest);
        delivered.extend(b.pt0.wait_for(what, |frame| *frame == as_peers));
    }
    delivered.extend(b.pt0.rest());
    for (what, rest) in &accepted {
        let times = delivered
            .iter()
            .filter(|frame| frame[12..] == *rest)
            .count();
        assert_eq!(times, 1, "{what}");
    }
    let inner = untagged(31);
    let is_untagged = |frame: &&Vec<u8>| frame[12..] == inner;
    assert_eq!(
        delivered.iter().filter(is_untagged).count(),
        0,
        "its tag stays"
    );

    // What is no frame: a header alone, of every type that somebody reads; a start of each kind.
    for ether_type in [0x0800, 0x86dd, 0x0806, 0x8100, 0x88a8, 0x88b5, 0, 0xffff] {
        for mark in [direct, mark] {
            for len in 0..48 {
                let rest = typed(ether_type, len as u64, len);
                forger.send(&frame(link, mark, &rest));
            }
        }
    }
    let [from, to] = ["10.9.0.1", "10.9.0.2"].map(|text| text.parse().expect("an address"));
    for (_, rest) in frames::of_every_kind(from, to, 1500) {
        for end in (2..rest.len().min(80)).chain([rest.len()]) {
            forger.send(&frame(link, direct, &rest[..end]));
        }
    }
    b.pt0.rest();

    assert_eq!(status(b_host).pid, daemon, "the same daemon");
    assert!(
        segment
            .lines
            .iter()
            .all(|host| segment.has_direct_peers(host))
    );
    assert!(pings_whole(a_host, B, 1472));
    assert_eq!(transfer(a_host, b_host, B, MEBIBYTE), MEBIBYTE);
}
