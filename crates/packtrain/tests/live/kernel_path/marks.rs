//! By what direct frames are known where a network lets no address pass but those that it knows.

use std::time::Duration;

use packtrain::lab::host::Host;
use packtrain::lab::namespaces::Namespace;
use packtrain::lab::{wait_for, wire};
use packtrain::status::PeerPath;
use packtrain_proto::wire::ethernet::{MacAddr, ether_type};

use super::frames::{self, NOBODYS_TYPE, frame, tagged, typed};
use super::kinds::over_a_bridge;
use super::port::{End, Port};
use super::port_security::{forging_host, lock, marks, up, words};
use crate::common::cabled::{MEBIBYTE, pause, status};
use crate::common::direct::{path, wait_for_direct};
use crate::common::{A, A6, B, B6, Pair, pings_whole, transfer};

const A_LINK: &str = "10.8.0.1";
const B_LINK: &str = "10.8.0.2";
/// An address is known to be away, and all kinds are tried again.
const TRIED_AGAIN: Duration = Duration::from_secs(20);

/// Two hosts whose links only pass with their own addresses, and are used by nobody else.
fn without_marks() -> (Pair, Namespace) {
    let (pair, switch) = over_a_bridge();
    lock(&pair, &switch);
    up(&pair);
    for host in [&pair.a, &pair.b] {
        wait_for_direct(host);
        let expected = words(&[("source", "unanswered")]);
        assert_eq!(marks(host), (Some("none".into()), expected));
    }
    (pair, switch)
}

pub fn transfers_are_direct(pair: &Pair) {
    let ends = [(&pair.a, &pair.b, B), (&pair.b, &pair.a, A)];
    for (from, to, at) in ends {
        let before = (status(from).direct.tx.bytes, status(to).direct.rx.bytes);
        assert_eq!(transfer(from, to, at, 8 * MEBIBYTE), 8 * MEBIBYTE);
        let after = (status(from).direct.tx.bytes, status(to).direct.rx.bytes);
        assert!(after.0 > before.0 + 8 * MEBIBYTE, "{before:?} {after:?}");
        assert!(after.1 > before.1 + 8 * MEBIBYTE, "{before:?} {after:?}");
    }
}

#[test]
fn between_links_that_nobody_else_uses_frames_go_directly_without_a_mark() {
    live!();
    let (pair, _switch) = without_marks();
    for size in [0, 56, 1472] {
        assert!(pings_whole(&pair.a, B, size), "{size} bytes");
        assert!(
            pings_whole(&pair.b, A6, size.min(1452)),
            "{size} bytes back"
        );
    }
    // What asked who has which address went by the engine, and is delivered.
    pause(Duration::from_millis(200));
    transfers_are_direct(&pair);
    assert!(pings_whole(&pair.a, B6, 1452) && pings_whole(&pair.b, A, 1472));
    // Datagrams that are cut, and what may not go so, goes all the same: by the engine.
    assert!(pings_fragmented(&pair.a, B) && pings_fragmented(&pair.b, A));
    let (a, mut b) = (End::of(&pair.a), End::of(&pair.b));
    let mut a_pt0 = Port::open(&pair.a.namespace, "pt0");
    let dhcp = frames::udp(67, 68, &frames::payload(9, 300));
    let [from, to] = [A, B].map(|text| text.parse().unwrap());
    let by_engine = [
        (
            "tagged",
            tagged(ether_type::VLAN, 7, &typed(NOBODYS_TYPE, 1, 100)),
        ),
        ("of no known type", typed(NOBODYS_TYPE, 2, 100)),
        (
            "an answer of DHCP",
            frames::ipv4(from, to, frames::UDP, &dhcp),
        ),
    ];
    for (what, rest) in by_engine {
        let sent = frame(b.pt0_address, a.pt0_address, &rest);
        a_pt0.send(&sent);
        let came = b.pt0.wait_for(what, |frame| *frame == sent);
        assert_eq!(came.iter().filter(|frame| **frame == sent).count(), 1);
    }
}

fn pings_fragmented(from: &Host, to: &str) -> bool {
    let words = [
        "ping", "-n", "-c", "3", "-i", "0.05", "-W", "2", "-s", "5000", to,
    ];
    let output = from.namespace.try_exec(words);
    output.is_ok_and(|output| output.status.success())
}

#[test]
fn an_address_on_the_links_ends_it_and_no_frame_of_theirs_is_taken() {
    live!();
    let (pair, _switch) = without_marks();
    let ends = [(&pair.a, A_LINK), (&pair.b, B_LINK)];
    let mut pt0s = [&pair.a, &pair.b].map(|host| Port::open(&host.namespace, "pt0"));
    for (host, address) in ends {
        wire::add_address(&host.namespace, "eth1", &format!("{address}/24")).unwrap();
    }
    // At once, before anybody else can have done anything.
    for size in [56, 0, 1472] {
        assert!(pings_whole(&pair.a, B_LINK, size), "{size} bytes");
        assert!(pings_whole(&pair.b, A_LINK, size), "{size} bytes back");
    }
    for (from, to, at) in [(&pair.a, &pair.b, B_LINK), (&pair.b, &pair.a, A_LINK)] {
        assert_eq!(transfer(from, to, at, MEBIBYTE), MEBIBYTE, "{at}");
    }
    for pt0 in &mut pt0s {
        let theirs = |frame: &&Vec<u8>| {
            frame[12..14] == ether_type::IPV4.to_be_bytes() && frame[26..29] == [10, 8, 0]
        };
        assert_eq!(pt0.rest().iter().filter(theirs).count(), 0, "at pt0");
    }
    for host in [&pair.a, &pair.b] {
        let because = Some("unanswered".to_owned());
        assert_eq!(path(host), (PeerPath::Engine, because));
        let (mark, refused) = marks(host);
        assert_eq!((mark, refused["none"].as_str()), (None, "own_traffic"));
    }
    let before = status(&pair.a).direct.tx.frames;
    assert!(pings_whole(&pair.a, B, 1472));
    assert_eq!(transfer(&pair.a, &pair.b, B, 4 * MEBIBYTE), 4 * MEBIBYTE);
    assert_eq!(status(&pair.a).direct.tx.frames, before, "by the engine");

    for (host, address) in ends {
        let delete = format!("ip address delete {address}/24 dev eth1");
        host.namespace.sh(&delete).unwrap();
    }
    for host in [&pair.a, &pair.b] {
        wait_for("all to be tried again", TRIED_AGAIN, || {
            path(host).0 == PeerPath::Direct
        })
        .unwrap();
    }
    assert!(pings_whole(&pair.a, B, 1472));
    pause(Duration::from_millis(200));
    transfers_are_direct(&pair);
}

/// As in `forged`: with the true addresses nobody can tell. With any other nothing is delivered, and of what has
/// them, nothing that the links' own hosts would say.
#[test]
fn of_frames_that_a_third_host_forges_none_but_the_true_ones_are_delivered() {
    live!();
    let (pair, switch) = without_marks();
    let third = forging_host(&switch);
    let (a, mut b) = (End::of(&pair.a), End::of(&pair.b));
    let mut forger = Port::open(&third, "eth1");
    let [from, to] = [A, B].map(|text| text.parse().unwrap());
    let datagram = |seed, port| {
        let udp = frames::udp(4000, port, &frames::payload(seed, 100));
        frames::ipv4(from, to, frames::UDP, &udp)
    };
    let (link, peer) = (b.link_address, a.link_address);
    let nobody = MacAddr([0x0a, 0x54, 0x70, 0x74, 0, 0x59]);
    let refused = [
        ("from nobody", link, nobody, datagram(1, 9)),
        ("from its own link", link, link, datagram(2, 9)),
        ("from its pt0", link, b.pt0_address, datagram(3, 9)),
        ("from the peer's pt0", link, a.pt0_address, datagram(4, 9)),
        ("an answer of DHCP", link, peer, datagram(5, 68)),
        ("of another type", link, peer, typed(NOBODYS_TYPE, 6, 100)),
        (
            "tagged",
            link,
            peer,
            tagged(ether_type::VLAN, 7, &datagram(7, 9)),
        ),
    ];
    for (_, to, from, rest) in &refused {
        forger.send(&frame(*to, *from, rest));
    }
    // What could not fail would prove nothing.
    let true_one = datagram(30, 9);
    forger.send(&frame(link, peer, &true_one));
    let as_peers = frame(b.pt0_address, a.pt0_address, &true_one);
    let mut came = b.pt0.wait_for("the true one", |frame| *frame == as_peers);
    came.extend(b.pt0.rest());
    for (what, _, _, rest) in &refused {
        let delivered = came.iter().filter(|frame| frame.ends_with(rest)).count();
        assert_eq!(delivered, 0, "{what}");
    }
    assert!(pings_whole(&pair.a, B, 1472));
}
