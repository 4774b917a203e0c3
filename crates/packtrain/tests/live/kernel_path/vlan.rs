//! Direct frames in a VLAN that both lines name, where a network lets no mark pass and the hosts use their links
//! themselves.

use std::time::Duration;

use packtrain::lab::host::Host;
use packtrain::lab::namespaces::Namespace;
use packtrain::lab::{wait_for, wire};
use packtrain::status::PeerPath;
use packtrain_proto::wire::ethernet::ether_type;

use super::frames::{NOBODYS_TYPE, frame, tagged, typed};
use super::kinds::over_a_bridge;
use super::marks::transfers_are_direct;
use super::port::{End, Port};
use super::port_security::{PT0S, forging_host, lock, marks, words};
use crate::common::cabled::{MEBIBYTE, pause};
use crate::common::direct::{path, wait_for_direct};
use crate::common::{A, A6, B, B6, Pair, pings_whole, transfer};

const A_LINK: &str = "10.8.0.1";
pub const B_LINK: &str = "10.8.0.2";
const VLAN: &str = "100";
/// What is on top of a link is looked for every 2 s, and all kinds are tried again after 5.
const TRIED_AGAIN: Duration = Duration::from_secs(30);

/// Two hosts whose links pass only with their own addresses, and have IP addresses of their own.
pub fn in_a_vlan() -> (Pair, Namespace) {
    let (pair, switch) = over_a_bridge();
    lock(&pair, &switch);
    for (host, address) in [(&pair.a, A_LINK), (&pair.b, B_LINK)] {
        wire::add_address(&host.namespace, "eth1", &format!("{address}/24")).unwrap();
    }
    pair.a_up(&["--mac", PT0S[0], "--direct-vlan", VLAN])
        .unwrap();
    pair.b_up(&["--mac", PT0S[1], "--direct-vlan", VLAN])
        .unwrap();
    pair.wait().unwrap();
    for host in [&pair.a, &pair.b] {
        wait_for_direct(host);
        let refused = words(&[("none", "own_traffic"), ("source", "unanswered")]);
        assert_eq!(marks(host), (Some("vlan".into()), refused));
    }
    (pair, switch)
}

/// What the hosts say to each other by their links' own addresses.
fn links_speak_themselves(pair: &Pair) {
    assert!(pings_whole(&pair.a, B_LINK, 1472) && pings_whole(&pair.b, A_LINK, 56));
    for (from, to, at) in [(&pair.a, &pair.b, B_LINK), (&pair.b, &pair.a, A_LINK)] {
        assert_eq!(transfer(from, to, at, MEBIBYTE), MEBIBYTE, "{at}");
    }
}

/// `None`: they can be made here.
fn no_vlan_interfaces() -> Option<String> {
    let unavailable = packtrain::lab::unavailable();
    let tried = || {
        let namespace = Namespace::create("vlan").unwrap();
        namespace.sh("ip link add link lo name v7 type vlan id 7")
    };
    unavailable.or_else(|| {
        let error = tried().err()?;
        Some(format!(
            "the kernel has no VLAN interfaces (8021q): {error}"
        ))
    })
}

fn carry(host: &Host, vlan: &str, address: &str) {
    let add = format!("ip link add link eth1 name v{vlan} type vlan id {vlan}");
    host.namespace.sh(&add).unwrap();
    let name = format!("v{vlan}");
    wire::add_address(&host.namespace, &name, &format!("{address}/24")).unwrap();
    host.namespace
        .sh(&format!("ip link set {name} up"))
        .unwrap();
}

#[test]
fn between_links_that_are_used_frames_go_directly_in_the_vlan_and_no_frame_of_the_links_is_taken() {
    live!();
    let (pair, _switch) = in_a_vlan();
    for size in [0, 56, 1472] {
        assert!(pings_whole(&pair.a, B, size), "{size} bytes");
        assert!(
            pings_whole(&pair.b, A6, size.min(1452)),
            "{size} bytes back"
        );
    }
    pause(Duration::from_millis(200));
    transfers_are_direct(&pair);
    assert!(pings_whole(&pair.a, B6, 1452) && pings_whole(&pair.b, A, 1472));
    let mut pt0s = [&pair.a, &pair.b].map(|host| Port::open(&host.namespace, "pt0"));
    links_speak_themselves(&pair);
    for pt0 in &mut pt0s {
        let theirs = |frame: &&Vec<u8>| {
            frame[12..14] == ether_type::IPV4.to_be_bytes() && frame[26..29] == [10, 8, 0]
        };
        assert_eq!(pt0.rest().iter().filter(theirs).count(), 0, "at pt0");
    }
    // pt0's frames may have tags of their own: those go by the engine.
    let (a, mut b) = (End::of(&pair.a), End::of(&pair.b));
    let mut a_pt0 = Port::open(&pair.a.namespace, "pt0");
    for rest in [
        tagged(ether_type::VLAN, 7, &typed(NOBODYS_TYPE, 1, 100)),
        typed(NOBODYS_TYPE, 2, 100),
    ] {
        let sent = frame(b.pt0_address, a.pt0_address, &rest);
        a_pt0.send(&sent);
        let came = b.pt0.wait_for("it", |frame| *frame == sent);
        assert_eq!(came.iter().filter(|frame| **frame == sent).count(), 1);
    }
    transfers_are_direct(&pair);
}

#[test]
fn an_interface_of_the_vlan_on_the_link_ends_it_and_has_its_frames() {
    live!(no_vlan_interfaces());
    let (pair, _switch) = in_a_vlan();
    // Another VLAN of the link's is its own.
    carry(&pair.a, "101", "10.6.0.1");
    carry(&pair.b, "101", "10.6.0.2");
    assert!(pings_whole(&pair.a, "10.6.0.2", 1472));
    transfers_are_direct(&pair);
    carry(&pair.a, VLAN, "10.7.0.1");
    let refused = || marks(&pair.a).1.get("vlan").cloned();
    wait_for("the VLAN to be refused", TRIED_AGAIN, || {
        refused().as_deref() == Some("own_traffic")
    })
    .unwrap();
    carry(&pair.b, VLAN, "10.7.0.2");
    wait_for("both to go by the engine", TRIED_AGAIN, || {
        [&pair.a, &pair.b].map(|host| path(host).0) == [PeerPath::Engine; 2]
    })
    .unwrap();
    assert!(pings_whole(&pair.a, "10.7.0.2", 1472) && pings_whole(&pair.b, "10.7.0.1", 56));
    assert_eq!(transfer(&pair.a, &pair.b, B, 4 * MEBIBYTE), 4 * MEBIBYTE);
    for host in [&pair.a, &pair.b] {
        let gone = format!("ip link delete v{VLAN}");
        host.namespace.sh(&gone).unwrap();
    }
    wait_for("the direct path", TRIED_AGAIN, || {
        [&pair.a, &pair.b].map(|host| path(host).0) == [PeerPath::Direct; 2]
    })
    .unwrap();
    pause(Duration::from_millis(200));
    transfers_are_direct(&pair);
}

/// As without a mark: what has the true addresses and the true tag nobody can tell; anything else is not delivered.
#[test]
fn of_forged_frames_only_those_with_the_peers_address_and_the_tag_are_delivered() {
    live!();
    let (pair, switch) = in_a_vlan();
    let third = forging_host(&switch);
    let (a, mut b) = (End::of(&pair.a), End::of(&pair.b));
    let mut forger = Port::open(&third, "eth1");
    let (link, peer) = (b.link_address, a.link_address);
    let vlan = VLAN.parse().unwrap();
    let of = |seed| typed(NOBODYS_TYPE, seed, 100);
    let refused = [
        ("without a tag", link, peer, of(1)),
        (
            "in another VLAN",
            link,
            peer,
            tagged(ether_type::VLAN, vlan + 1, &of(2)),
        ),
        (
            "from its own link",
            link,
            link,
            tagged(ether_type::VLAN, vlan, &of(3)),
        ),
        (
            "from the peer's pt0",
            link,
            a.pt0_address,
            tagged(ether_type::VLAN, vlan, &of(4)),
        ),
        (
            "from its own pt0",
            link,
            PT0S[1].parse().unwrap(),
            tagged(ether_type::VLAN, vlan, &of(5)),
        ),
    ];
    for (_, to, from, rest) in &refused {
        forger.send(&frame(*to, *from, rest));
    }
    // What could not fail would prove nothing. The priority in the tag is a switch's.
    let true_one = of(30);
    forger.send(&frame(
        link,
        peer,
        &tagged(ether_type::VLAN, vlan | 0xa000, &true_one),
    ));
    let as_peers = frame(b.pt0_address, a.pt0_address, &true_one);
    let mut came = b.pt0.wait_for("the true one", |frame| *frame == as_peers);
    came.extend(b.pt0.rest());
    for (what, _, _, rest) in &refused {
        let tail = &rest[rest.len() - 100..];
        let delivered = came.iter().filter(|frame| frame.ends_with(tail)).count();
        assert_eq!(delivered, 0, "{what}");
    }
    assert!(pings_whole(&pair.a, B, 1472));
}
