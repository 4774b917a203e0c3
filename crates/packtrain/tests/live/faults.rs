//! What goes wrong on hosts and links, and what is left of it after.

use std::time::Duration;

use packtrain::lab::host::Host;
use packtrain::lab::{measure, wait_for, wire};
use packtrain::status::LinkCondition;
use rustix::process::Signal;

use crate::common::cabled::MEBIBYTE;
use crate::common::undo::{SOON, assert_undone, difference, dump, kill};
use crate::common::{A, B, B6, Pair, packtrain, pings_whole, transfer};

/// A cable whose first end has an address, a qdisc and a filter of its own, to be left alone.
fn lived_in() -> Pair {
    let pair = Pair::cable("undo", 1500).unwrap();
    let a = &pair.a.namespace;
    wire::add_address(a, "eth1", "10.8.0.1/24").unwrap();
    wire::add_address(a, "eth1", "fd08::1/64").unwrap();
    a.exec(["ip", "route", "add", "10.77.0.0/16", "via", "10.8.0.2"])
        .unwrap();
    if wire::shaping_unavailable().is_none() {
        wire::shape(a, "eth1", 500).unwrap();
    }
    // The link-local address of a fresh interface is tentative for a second or two.
    wait_for("no tentative address", SOON, || {
        a.exec(["ip", "address"])
            .is_ok_and(|text| !text.contains("tentative"))
    })
    .unwrap();
    pair
}

#[test]
fn everything_is_undone_by_down_and_by_every_signal_that_can_be_caught() {
    live!();
    let pair = lived_in();
    let before = dump(&pair.a.namespace);
    pair.b_up(&[]).unwrap();
    pair.a_up(&[]).unwrap();
    assert!(
        !difference(&before, &dump(&pair.a.namespace)).is_empty(),
        "up shows in a dump"
    );
    pair.a.wait_for_ping(B.parse().unwrap(), SOON).unwrap();
    pair.a.down().unwrap();
    assert_undone(&before, &pair.a, "down");
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        pair.a_up(&[]).unwrap();
        pair.a.wait_for_ping(B.parse().unwrap(), SOON).unwrap();
        kill(&pair.a, signal);
        assert_undone(&before, &pair.a, &format!("{signal:?}"));
    }
}

#[test]
fn everything_is_undone_after_kill_9_by_the_next_down() {
    live!();
    let pair = lived_in();
    let before = dump(&pair.a.namespace);
    pair.a_up(&[]).unwrap();
    kill(&pair.a, Signal::KILL);
    pair.a.packtrain(&["down", "--all"]).unwrap();
    assert_undone(&before, &pair.a, "kill -9 and down");
}

#[test]
fn after_kill_9_the_next_up_works_and_its_down_undoes_both() {
    live!();
    let pair = lived_in();
    let before = dump(&pair.a.namespace);
    pair.b_up(&[]).unwrap();
    pair.a_up(&[]).unwrap();
    pair.a.wait_for_ping(B.parse().unwrap(), SOON).unwrap();
    kill(&pair.a, Signal::KILL);
    pair.a_up(&[]).unwrap();
    pair.a.wait_for_ping(B.parse().unwrap(), SOON).unwrap();
    pair.wait().unwrap();
    assert!(pings_whole(&pair.a, B6, 1000));
    pair.a.down().unwrap();
    assert_undone(&before, &pair.a, "kill -9, up and down");
}

#[test]
fn what_somebody_else_changed_meanwhile_is_left_as_it_is() {
    live!();
    let pair = lived_in();
    pair.a_up(&[]).unwrap();
    wire::set_mtu(&pair.a.namespace, "eth1", 1400).unwrap();
    wire::add_address(&pair.a.namespace, "eth1", "10.66.0.1/24").unwrap();
    pair.a.down().unwrap();
    let link = pair
        .a
        .namespace
        .exec(["ip", "address", "show", "eth1"])
        .unwrap();
    assert!(
        link.contains("mtu 1400") && link.contains("10.66.0.1/24"),
        "{link}"
    );
}

#[test]
fn carrier_comes_and_goes_and_the_line_with_it() {
    live!();
    let pair = Pair::up("flap", 1500).unwrap();
    assert!(pings_whole(&pair.a, B, 100));
    for _ in 0..3 {
        pair.b
            .namespace
            .exec(["ip", "link", "set", "eth1", "down"])
            .unwrap();
        let condition = |host: &Host| host.status().unwrap().links[0].state;
        wait_for("A to see no carrier", SOON, || {
            condition(&pair.a) == LinkCondition::NoCarrier
        })
        .unwrap();
        wait_for("B to see its link down", SOON, || {
            condition(&pair.b) == LinkCondition::Down
        })
        .unwrap();
        pair.b
            .namespace
            .exec(["ip", "link", "set", "eth1", "up"])
            .unwrap();
        pair.a.wait_for_ping(B.parse().unwrap(), SOON).unwrap();
    }
    assert_eq!(transfer(&pair.a, &pair.b, B, 4 * MEBIBYTE), 4 * MEBIBYTE);
}

#[test]
fn a_transfer_survives_a_cable_that_is_pulled_for_a_moment() {
    live!();
    let pair = Pair::cable("pull", 1500).unwrap();
    if wire::shaping_unavailable().is_none() {
        wire::shape(&pair.a.namespace, "eth1", 100).unwrap();
    }
    pair.a_up(&[]).unwrap();
    pair.b_up(&[]).unwrap();
    pair.a.wait_for_peers(1).unwrap();
    std::thread::scope(|scope| {
        let arrived = scope.spawn(|| transfer(&pair.a, &pair.b, B, 24 * MEBIBYTE));
        let before = pair.b.status().unwrap().host.given.bytes;
        wait_for("the transfer to be on its way", SOON, || {
            pair.b
                .status()
                .is_ok_and(|s| s.host.given.bytes > before + MEBIBYTE)
        })
        .unwrap();
        pair.b
            .namespace
            .sh("ip link set eth1 down; sleep 0.3; ip link set eth1 up")
            .unwrap();
        assert_eq!(arrived.join().unwrap(), 24 * MEBIBYTE);
    });
}

#[test]
fn a_restarted_side_is_a_new_node_and_is_talked_to_again() {
    live!();
    let pair = Pair::up("again", 1500).unwrap();
    let old = pair.a.status().unwrap().peers[0].node_id.clone();
    for round in ["down", "kill -9"] {
        if round == "down" {
            pair.b.down().unwrap();
        } else {
            kill(&pair.b, Signal::KILL);
        }
        pair.b_up(&[]).unwrap();
        pair.a.wait_for_ping(B.parse().unwrap(), SOON).unwrap();
        pair.b.wait_for_peers(1).unwrap();
        assert_eq!(
            transfer(&pair.a, &pair.b, B, 2 * MEBIBYTE),
            2 * MEBIBYTE,
            "{round}"
        );
        assert_eq!(
            transfer(&pair.b, &pair.a, A, 2 * MEBIBYTE),
            2 * MEBIBYTE,
            "{round}"
        );
        let status = pair.a.status().unwrap();
        let up: Vec<_> = status.peers.iter().filter(|peer| peer.up).collect();
        assert_eq!(up.len(), 1, "{status:?}");
        assert_ne!(up[0].node_id, old);
    }
}

#[test]
fn a_link_that_appears_later_joins() {
    live!();
    let a = Host::create("late", packtrain()).unwrap();
    let b = Host::create("late", packtrain()).unwrap();
    // Without a link to derive it from, pt0's MAC address comes from the machine: the same for both.
    for (host, address, mac) in [
        (&a, "10.9.0.1/24", "02:00:00:00:09:01"),
        (&b, "10.9.0.2/24", "02:00:00:00:09:02"),
    ] {
        let more = ["--wait-links", "--mac", mac, "--address", address];
        host.up("eth1", &more).unwrap();
        assert_eq!(host.status().unwrap().links[0].state, LinkCondition::Absent);
    }
    wire::veth((&a.namespace, "eth1"), (&b.namespace, "eth1")).unwrap();
    a.wait_for_ping(B.parse().unwrap(), SOON).unwrap();
    a.namespace.exec(["ip", "link", "del", "eth1"]).unwrap();
    wait_for("the link to be gone", SOON, || {
        a.status().unwrap().links[0].state == LinkCondition::Absent
    })
    .unwrap();
    wire::veth((&a.namespace, "eth1"), (&b.namespace, "eth1")).unwrap();
    a.wait_for_ping(B.parse().unwrap(), SOON).unwrap();
}

#[test]
fn a_link_that_is_renamed_stays_in_the_line_and_another_of_its_name_does_not_join() {
    live!();
    let pair = Pair::cable("rename", 1500).unwrap();
    let a = &pair.a.namespace;
    // Down for it: before Linux 6.2 nobody renames an interface that is up.
    let rename = |from: &str, to: &str| {
        a.sh(&format!(
            "ip link set {from} down && ip link set {from} name {to} && ip link set {to} up"
        ))
        .unwrap();
    };
    rename("eth1", "wan0");
    wait_for("wan0 and its address", SOON, || {
        a.exec(["ip", "address", "show", "wan0"])
            .is_ok_and(|text| text.contains("inet6 fe80") && !text.contains("tentative"))
    })
    .unwrap();
    let before = dump(a);
    rename("wan0", "eth1");
    pair.a_up(&[]).unwrap();
    pair.b_up(&[]).unwrap();
    pair.a.wait_for_ping(B.parse().unwrap(), SOON).unwrap();
    let ifindex = pair.a.status().unwrap().links[0].ifindex;
    assert!(ifindex.is_some());

    rename("eth1", "wan0");
    pair.a.wait_for_ping(B.parse().unwrap(), SOON).unwrap();
    a.sh("ip link add eth1 type veth peer name other0 && ip link set eth1 up")
        .unwrap();
    assert_eq!(transfer(&pair.a, &pair.b, B, MEBIBYTE), MEBIBYTE);
    let links = pair.a.status().unwrap().links;
    assert_eq!((links.len(), links[0].ifindex), (1, ifindex));
    a.exec(["ip", "link", "del", "eth1"]).unwrap();
    pair.a.wait_for_ping(B.parse().unwrap(), SOON).unwrap();
    pair.a.down().unwrap();
    assert_undone(&before, &pair.a, "down under another name");
}

#[test]
fn pt0_set_down_and_up_by_hand_works_again() {
    live!();
    let pair = Pair::up("hand", 1500).unwrap();
    pair.a
        .namespace
        .exec(["ip", "link", "set", "pt0", "down"])
        .unwrap();
    assert!(
        measure::ping_count(&pair.b.namespace, A, Duration::from_millis(100), 2)
            .unwrap()
            .received
            == 0
    );
    pair.a
        .namespace
        .exec(["ip", "link", "set", "pt0", "up"])
        .unwrap();
    pair.b.wait_for_ping(A.parse().unwrap(), SOON).unwrap();
    assert_eq!(transfer(&pair.a, &pair.b, B, MEBIBYTE), MEBIBYTE);
}
