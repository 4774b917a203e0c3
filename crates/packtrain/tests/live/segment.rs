//! More than two hosts: several with packtrain, some without, and some behind a bridge.

use std::path::Path;
use std::time::Duration;

use packtrain::lab::host::Host;
use packtrain::lab::namespaces::Namespace;
use packtrain::lab::{measure, wait_for, wire};

use crate::common::cabled::MEBIBYTE;
use crate::common::{B, Pair, packtrain, pings_whole, transfer};

pub fn mac_of(host: &Namespace, interface: &str) -> String {
    let path = format!("/sys/class/net/{interface}/address");
    host.exec(["cat", &path]).unwrap().trim().to_owned()
}

/// Hosts with their `eth1`s on one switch, which is the last field.
pub struct Segment {
    pub hosts: Vec<Host>,
    _switch: Namespace,
}

impl Segment {
    pub fn of(count: usize) -> Segment {
        let switch = Namespace::create("seg").unwrap();
        let mut hosts = Vec::new();
        let mut ports = Vec::new();
        for n in 0..count {
            let host = Host::create("seg", packtrain()).unwrap();
            let port = format!("p{n}");
            wire::veth((&host.namespace, "eth1"), (&switch, &port)).unwrap();
            hosts.push(host);
            ports.push(port);
        }
        let ports: Vec<&str> = ports.iter().map(String::as_str).collect();
        wire::bridge(&switch, "br0", &ports).unwrap();
        Segment {
            hosts,
            _switch: switch,
        }
    }
}

#[test]
fn three_hosts_with_packtrain_and_one_without_all_talk_to_each_other() {
    live!();
    let segment = Segment::of(4);
    let (line, plain) = segment.hosts.split_at(3);
    let plain = &plain[0];
    for (n, host) in line.iter().enumerate() {
        host.up("eth1", &["--address", &format!("10.9.0.{}/24", n + 1)])
            .unwrap();
    }
    wire::add_address(&plain.namespace, "eth1", "10.9.0.4/24").unwrap();
    for host in line {
        host.wait_for_peers(2).unwrap();
    }
    for (n, from) in segment.hosts.iter().enumerate() {
        for (m, to) in segment.hosts.iter().enumerate() {
            if n == m {
                continue;
            }
            let address = format!("10.9.0.{}", m + 1);
            assert!(pings_whole(from, &address, 1472), "{} to {address}", n + 1);
            assert_eq!(
                transfer(from, to, &address, 2 * MEBIBYTE),
                2 * MEBIBYTE,
                "{} to {address}",
                n + 1
            );
        }
    }
    for host in line {
        let status = host.status().unwrap();
        assert_eq!(status.peers.len(), 2, "{status:?}");
        let address = mac_of(&plain.namespace, "eth1");
        assert!(
            status.hosts.iter().any(|h| h.address == address),
            "{address} not in {:?}",
            status.hosts
        );
    }
    // The plain host got nothing that it did not know what to do with.
    let unknown = plain
        .namespace
        .sh("cat /sys/class/net/eth1/statistics/rx_nohandler")
        .unwrap();
    assert_eq!(unknown.trim(), "0");
}

#[test]
fn a_plain_host_sees_one_address_of_pt0_and_never_the_links() {
    live!();
    let segment = Segment::of(2);
    let (ours, plain) = (&segment.hosts[0], &segment.hosts[1].namespace);
    ours.up("eth1", &["--address", "10.9.0.1/24"]).unwrap();
    wire::add_address(plain, "eth1", "10.9.0.4/24").unwrap();
    measure::ping_count(plain, "10.9.0.1", Duration::from_millis(50), 5).unwrap();
    let neighbour = plain.exec(["ip", "neigh", "show", "10.9.0.1"]).unwrap();
    assert!(
        neighbour.contains(&mac_of(&ours.namespace, "pt0")),
        "{neighbour}"
    );
    assert!(
        !neighbour.contains(&mac_of(&ours.namespace, "eth1")),
        "{neighbour}"
    );
}

#[test]
fn the_links_own_address_goes_on_working_beside_the_line() {
    live!();
    let pair = Pair::cable("own", 1500).unwrap();
    wire::add_address(&pair.a.namespace, "eth1", "10.8.0.1/24").unwrap();
    wire::add_address(&pair.b.namespace, "eth1", "10.8.0.2/24").unwrap();
    assert!(pings_whole(&pair.a, "10.8.0.2", 1000));
    pair.a_up(&[]).unwrap();
    pair.b_up(&[]).unwrap();
    pair.a.wait_for_peers(1).unwrap();
    assert!(pings_whole(&pair.a, B, 1000));
    assert!(pings_whole(&pair.a, "10.8.0.2", 1000));
    assert_eq!(
        transfer(&pair.a, &pair.b, "10.8.0.2", 2 * MEBIBYTE),
        2 * MEBIBYTE
    );
    assert_eq!(transfer(&pair.a, &pair.b, B, 2 * MEBIBYTE), 2 * MEBIBYTE);
}

#[test]
fn a_host_behind_a_bridge_with_pt0_in_it_is_reached_both_ways() {
    live!();
    let pair = Pair::cable("brdg", 1500).unwrap();
    pair.a.up("eth1", &[]).unwrap();
    pair.b_up(&[]).unwrap();
    let guest = Host::create("brdg", packtrain()).unwrap();
    wire::veth((&guest.namespace, "eth0"), (&pair.a.namespace, "guest")).unwrap();
    wire::add_address(&guest.namespace, "eth0", "10.9.0.11/24").unwrap();
    wire::bridge(&pair.a.namespace, "br0", &["pt0", "guest"]).unwrap();
    wire::add_address(&pair.a.namespace, "br0", "10.9.0.1/24").unwrap();
    pair.a.wait_for_peers(1).unwrap();
    wait_for("the bridge to be noticed", Duration::from_secs(3), || {
        pair.a.status().is_ok_and(|status| status.promiscuous)
    })
    .unwrap();
    guest
        .wait_for_ping(B.parse().unwrap(), Duration::from_secs(3))
        .unwrap();
    assert!(pings_whole(&guest, B, 1472));
    assert!(pings_whole(&pair.b, "10.9.0.11", 1472));
    assert_eq!(transfer(&guest, &pair.b, B, 4 * MEBIBYTE), 4 * MEBIBYTE);
    assert_eq!(
        transfer(&pair.b, &guest, "10.9.0.11", 4 * MEBIBYTE),
        4 * MEBIBYTE
    );
    assert!(pings_whole(&pair.b, "10.9.0.1", 1472), "the bridge itself");
}

#[test]
fn lines_of_the_same_name_in_two_namespaces_know_nothing_of_each_other() {
    live!();
    let pair = Pair::up("apart", 1500).unwrap();
    pair.a.down().unwrap();
    assert!(pair.a.status().is_err());
    assert_eq!(pair.b.status().unwrap().name, "pt0");
    assert!(
        !Path::new("/sys/class/net/pt0").exists(),
        "nothing in the host's own namespace"
    );
}

#[test]
fn two_lines_in_one_namespace_carry_their_own_traffic() {
    live!();
    let pair = Pair::up("two", 1500).unwrap();
    wire::veth((&pair.a.namespace, "eth2"), (&pair.b.namespace, "eth2")).unwrap();
    for (host, address) in [(&pair.a, "10.7.0.1/24"), (&pair.b, "10.7.0.2/24")] {
        host.packtrain(&["up", "pt1", "--link", "eth2", "--address", address])
            .unwrap();
    }
    pair.a
        .wait_for_ping("10.7.0.2".parse().unwrap(), Duration::from_secs(5))
        .unwrap();
    assert!(pings_whole(&pair.a, B, 1000));
    pair.a.packtrain(&["down", "--all"]).unwrap();
    assert!(
        pair.a
            .namespace
            .exec(["ip", "link", "show", "pt0"])
            .is_err()
    );
    assert!(
        pair.a
            .namespace
            .exec(["ip", "link", "show", "pt1"])
            .is_err()
    );
}
