//! What links are used for, told and changed on a line that runs, and a line of which all links are taken.

use std::time::Duration;

use packtrain::lab::measure;
use packtrain::status::{LinkCondition, StatusDocument};
use serde_json::Value;

use super::commands::{cabled_twice, done, dump, fails, json, lines_of_one_link, link_names, wait};
use crate::common::{A, B};

fn trains(status: &StatusDocument, link: &str) -> u64 {
    let mut links = status.links.iter();
    links
        .find(|it| it.name == link)
        .map_or(0, |it| it.trains_tx)
}

#[test]
fn a_link_of_a_higher_tier_carries_nothing_until_it_is_said_otherwise() {
    live!();
    let (a, b) = lines_of_one_link("links", &["--path", "engine"]);
    let added = done(&b, "link add pt0 eth2 --tier 2");
    assert!(
        added.out.contains("no peer was heard on eth2"),
        "{}",
        added.out
    );
    let added = done(&a, "link add pt0 eth2 --tier 2 --weight 3 --rate 20mbit");
    let peer = b.status().unwrap().address;
    let told = format!("peer {peer} answers over it\n");
    assert!(added.out.ends_with(&told), "{}", added.out);
    let document = a.status().unwrap();
    let used = |at: usize| {
        let link = &document.links[at];
        (link.tier, link.weight, link.rate_max_bps)
    };
    assert_eq!((used(0), used(1)), ((1, 1, None), (2, 3, Some(20_000_000))));
    let list = done(&a, "link list pt0").out;
    assert!(
        list.contains("LINK  TIER  WEIGHT  RATE AT MOST\n"),
        "{list}"
    );
    assert!(list.contains("eth2  2     3       20 Mbit/s"), "{list}");

    let many = |from: &StatusDocument| {
        let interval = Duration::from_millis(2);
        let pings = measure::ping_count(&a.namespace, B, interval, 200).unwrap();
        assert_eq!(pings.received, 200);
        let now = a.status().unwrap();
        ["eth1", "eth2"].map(|link| trains(&now, link) - trains(from, link))
    };
    let [first, second] = many(&a.status().unwrap());
    // Two that meet go in one train.
    assert!(first > 150 && second == 0, "{first} and {second}");
    assert_eq!(a.status().unwrap().peers[0].tier, Some(1));

    let set = done(&a, "link set pt0 eth1 --tier 3");
    assert_eq!(
        (set.out.as_str(), set.err.as_str()),
        ("eth1 has tier 3, weight 1\n", "")
    );
    let [first, second] = many(&a.status().unwrap());
    assert!(second > 150 && first == 0, "{first} and {second}");
    assert_eq!(a.status().unwrap().peers[0].tier, Some(2));
    let set = json(&done(&a, "link set pt0 eth2 --weight 5 --rate none --json").out);
    assert_eq!(
        (&set["tier"], &set["weight"], &set["rate_max_bps"]),
        (&2.into(), &5.into(), &Value::Null)
    );
    for (arguments, code, error) in [
        (
            "link set pt0 eth7 --tier 2",
            4,
            "eth7 is no link of pt0\n       pt0 has: eth1, eth2",
        ),
        (
            "link set pt1 eth1 --tier 2",
            9,
            "pt1 is not running\n       running in this network namespace: pt0",
        ),
    ] {
        fails(&a, arguments, code, &format!("error: {error}\n"));
    }
}

#[test]
fn a_line_without_links_has_no_carrier_and_its_interfaces_are_as_before_until_it_is_given_one() {
    live!();
    let (a, b) = cabled_twice("links");
    let before = ["eth1", "eth2"].map(|link| dump(&a, link));
    for (host, address) in [(&a, A), (&b, B)] {
        host.up("eth1", &["--address", &format!("{address}/24")])
            .unwrap();
    }
    a.wait_for_peers(1).unwrap();
    done(&b, "link add pt0 eth2");
    done(&a, "link add pt0 eth2 --tier 2");
    let flags = || {
        let shown = json(&a.namespace.sh("ip -j link show pt0").unwrap());
        shown[0]["flags"].to_string()
    };
    assert!(!flags().contains("NO-CARRIER"), "{}", flags());

    let cleared = done(&a, "link clear pt0");
    assert_eq!(
        cleared.out,
        "eth1, eth2 have left pt0, which has no carrier until it is given a link\n"
    );
    assert_eq!(["eth1", "eth2"].map(|link| dump(&a, link)), before);
    assert!(flags().contains("NO-CARRIER"), "{}", flags());
    assert_eq!(link_names(&a), Vec::<String>::new());
    let status = a.status().unwrap();
    assert!(
        status.addresses.contains(&format!("{A}/24")),
        "{:?}",
        status.addresses
    );
    let no_links = "pt0 has no links: packtrain link add pt0 gives it one";
    assert!(
        status.warnings.contains(&no_links.to_owned()),
        "{:?}",
        status.warnings
    );
    // Each works by itself.
    for (namespace, address) in [(&a.namespace, "10.7.0.1"), (&b.namespace, "10.7.0.2")] {
        namespace
            .sh(&format!("ip addr add {address}/24 dev eth1"))
            .unwrap();
    }
    let loss =
        measure::ping_count(&a.namespace, "10.7.0.2", Duration::from_millis(10), 20).unwrap();
    assert_eq!(loss.received, loss.sent);
    for (arguments, code, error) in [
        ("link clear pt0", 1, "pt0 has no links"),
        (
            "link remove pt0 eth1",
            4,
            "eth1 is no link of pt0\n       pt0 has no links",
        ),
    ] {
        fails(&a, arguments, code, &format!("error: {error}\n"));
    }

    let added = done(&a, "link add pt0 eth2 --json");
    assert_eq!(json(&added.out)["tier"], 1, "as if it had never been one");
    assert!(!flags().contains("NO-CARRIER"), "{}", flags());
    wait(&a, "the peer", |status| {
        status.peers.iter().any(|peer| peer.up) && status.links[0].state == LinkCondition::Up
    });
    a.wait_for_ping(B.parse().unwrap(), Duration::from_secs(6))
        .unwrap();
}

#[test]
fn a_line_is_balanced_by_every_policy_that_it_is_told() {
    live!();
    for policy in ["weighted", "duplicate", "hash-mac", "hash-ip", "hash-port"] {
        let (a, _b) = lines_of_one_link("links", &["--balance", policy, "--path", "engine"]);
        assert_eq!(a.status().unwrap().balance, policy);
        let loss = measure::ping_count(&a.namespace, B, Duration::from_millis(5), 50).unwrap();
        assert_eq!(loss.received, loss.sent, "{policy}");
    }
}
