//! A switch that lets only the addresses pass that it knows, as port security does, and many a host of virtual machines.

use std::collections::BTreeMap;

use packtrain::lab::host::Host;
use packtrain::lab::namespaces::Namespace;
use packtrain::lab::wire;
use packtrain::status::PeerPath;

use super::kinds::over_a_bridge;
use super::port::address_of;
use crate::common::cabled::{MEBIBYTE, status};
use crate::common::direct::{path, wait_for_direct};
use crate::common::{A, B, Pair, pings_whole, transfer};

const PORTS: [&str; 2] = ["one", "two"];
pub const PT0S: [&str; 2] = ["02:70:74:00:0a:01", "02:70:74:00:0b:01"];

/// Both ports let only the addresses of their hosts' links and `pt0`s pass.
pub fn lock(pair: &Pair, switch: &Namespace) {
    for (at, host) in [&pair.a, &pair.b].into_iter().enumerate() {
        let port = PORTS[at];
        for address in [&address_of(&host.namespace, "eth1").to_string(), PT0S[at]] {
            let known = format!("bridge fdb replace {address} dev {port} master static");
            switch.sh(&known).unwrap();
        }
        let locked = format!("bridge link set dev {port} learning off locked on");
        switch.sh(&locked).unwrap();
    }
}

/// A third host at the switch, by whose port any address passes. It does not learn: it would take a forger for the
/// host that has moved.
pub fn forging_host(switch: &Namespace) -> Namespace {
    let third = Namespace::create("forger").unwrap();
    wire::veth((&third, "eth1"), (switch, "three")).unwrap();
    let port = "ip link set three master br0 up && bridge link set dev three learning off";
    switch.sh(port).unwrap();
    third.sh("ip link set eth1 up").unwrap();
    third
}

pub fn up(pair: &Pair) {
    pair.a_up(&["--mac", PT0S[0]]).unwrap();
    pair.b_up(&["--mac", PT0S[1]]).unwrap();
    pair.wait().unwrap();
}

/// By what direct frames to the only peer are known, and why not by others.
pub fn marks(host: &Host) -> (Option<String>, BTreeMap<String, String>) {
    let peer = status(host).peers.into_iter().next().expect("a peer");
    let link = peer.links.into_iter().next().expect("a link to it");
    (link.direct_mark, link.direct_marks_refused)
}

pub fn words(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(a, b): &(&str, &str)| ((*a).to_owned(), (*b).to_owned());
    pairs.iter().map(owned).collect()
}

#[test]
fn where_marks_do_not_pass_frames_go_in_trains_and_directly_once_they_do() {
    live!();
    let (pair, switch) = over_a_bridge();
    lock(&pair, &switch);
    // Links that their hosts use: without a mark frames may not go either.
    for (host, address) in [(&pair.a, "10.8.0.1/24"), (&pair.b, "10.8.0.2/24")] {
        wire::add_address(&host.namespace, "eth1", address).unwrap();
    }
    up(&pair);
    let goes_by_engine = |host: &Host| {
        let because = Some("unanswered".to_owned());
        assert_eq!(path(host), (PeerPath::Engine, because));
        let refused = [("none", "own_traffic"), ("source", "unanswered")];
        assert_eq!(marks(host), (None, words(&refused)));
        let seen = status(host);
        assert_eq!((seen.direct.tx.frames, seen.trains.tx.marked), (0, 0));
    };
    assert!(pings_whole(&pair.a, B, 1472));
    assert_eq!(transfer(&pair.a, &pair.b, B, 4 * MEBIBYTE), 4 * MEBIBYTE);
    assert_eq!(transfer(&pair.b, &pair.a, A, 4 * MEBIBYTE), 4 * MEBIBYTE);
    goes_by_engine(&pair.a);
    goes_by_engine(&pair.b);
    for port in PORTS {
        let open = format!("bridge link set dev {port} learning on locked off");
        switch.sh(&open).unwrap();
    }
    wait_for_direct(&pair.a);
    wait_for_direct(&pair.b);
    let before = status(&pair.a).direct.tx.bytes;
    assert_eq!(transfer(&pair.a, &pair.b, B, 4 * MEBIBYTE), 4 * MEBIBYTE);
    assert!(status(&pair.a).direct.tx.bytes > before + 4 * MEBIBYTE);
}
