//! Where a link's frames are taken: behind tc, which no direct frame reaches, and before it while a bridge or the
//! like takes frames there.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use packtrain::lab::host::Host;
use packtrain::lab::messages::Report;
use packtrain::lab::path_changes::Flows;
use packtrain::lab::wait_for;

use super::SetAtEnd;
use crate::common::cabled::{pause, status};
use crate::common::direct::wait_for_direct;
use crate::common::{A, B, Pair, pings_whole, steady, transfer};

/// EtherTypes that the daemon's sockets on the link are bound to, as the kernel writes them. The one of none sends.
const BEHIND_TC: [&str; 3] = ["0000", "88a8", "88b5"];
const BEFORE_TC: [&str; 2] = ["0000", "0003"];
const SOON: Duration = Duration::from_secs(5);

fn sockets(host: &Host) -> BTreeSet<String> {
    let sh = |command: &str| host.namespace.sh(command).unwrap();
    let index = sh("cat /sys/class/net/eth1/ifindex");
    let table = sh("cat /proc/net/packet");
    let rows = table.lines().map(|row| row.split_whitespace().collect());
    rows.filter(|columns: &Vec<_>| columns.get(4) == Some(&index.trim()))
        .map(|columns| columns[3].to_owned())
        .collect()
}

fn wait_until_taken(host: &Host, expected: &[&str]) {
    let expected: BTreeSet<_> = expected.iter().map(ToString::to_string).collect();
    wait_for("other sockets", SOON, || sockets(host) == expected).unwrap_or_else(|error| {
        panic!("{error}: {expected:?}, there are {:?}", sockets(host));
    });
}

fn all_passes(pair: &Pair) {
    const BYTES: u64 = 3_000_000;
    assert_eq!(transfer(&pair.a, &pair.b, B, BYTES), BYTES);
    assert_eq!(transfer(&pair.b, &pair.a, A, BYTES), BYTES);
    for host in [&pair.a, &pair.b] {
        host.namespace.sh("ip neigh flush dev pt0").unwrap();
    }
    assert!(pings_whole(&pair.a, B, 1472), "to a neighbour to be found");
}

#[test]
fn a_bridge_or_a_macvlan_over_the_link_moves_its_sockets_and_all_goes_on() {
    live!();
    for path in ["auto", "engine"] {
        let pair = Pair::up_with("reception", 1500, &["--path", path]).unwrap();
        if path == "auto" {
            wait_for_direct(&pair.a);
        }
        wait_until_taken(&pair.b, &BEHIND_TC);
        all_passes(&pair);
        pair.b.namespace.sh("ip link add br1 type bridge").unwrap();
        for (comes, goes) in [
            ("ip link set eth1 master br1", "ip link set eth1 nomaster"),
            (
                "ip link add mv1 link eth1 type macvlan mode bridge",
                "ip link del mv1",
            ),
        ] {
            pair.b.namespace.sh(comes).unwrap();
            wait_until_taken(&pair.b, &BEFORE_TC);
            all_passes(&pair);
            pair.b.namespace.sh(goes).unwrap();
            wait_until_taken(&pair.b, &BEHIND_TC);
            all_passes(&pair);
        }
        // Who looks at the link is no reason.
        pair.b.namespace.sh("ip link set eth1 promisc on").unwrap();
        all_passes(&pair);
        wait_until_taken(&pair.b, &BEHIND_TC);
        let drops = status(&pair.b).links[0].drops.clone();
        assert_eq!(drops.get("guard_lost"), None, "{drops:?}");
    }
}

/// It takes all that comes by the link for as long as its host wants frames for others, and trains pass meanwhile.
#[test]
fn trains_are_neither_lost_nor_swapped_while_the_sockets_move() {
    live!();
    let pair = Pair::up_with("moves", 1500, &["--path", "engine"]).unwrap();
    wait_until_taken(&pair.b, &BEHIND_TC);
    let flows = Flows {
        sizes: &[64, 300, 1400],
        rate_per_second: 3000,
        duration: Duration::from_secs(3),
    };
    let run = || -> (Vec<Report>, u64) {
        let (ended, moves) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let _end = SetAtEnd(&ended);
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    for (state, expected) in [("on", &BEFORE_TC[..]), ("off", &BEHIND_TC)] {
                        let command = format!("ip link set pt0 promisc {state}");
                        pair.b.namespace.sh(&command).unwrap();
                        wait_until_taken(&pair.b, expected);
                        moves.fetch_add(1, Ordering::Relaxed);
                        pause(Duration::from_millis(5));
                    }
                }
            });
            let (from, to) = (&pair.a.namespace, &pair.b.namespace);
            let at = SocketAddr::new(B.parse().unwrap(), 7000);
            let reports = flows.send(from, to, at).unwrap();
            ended.store(true, Ordering::Relaxed);
            (reports, moves.load(Ordering::Relaxed))
        })
    };
    let what = "datagrams of each flow; moves";
    let (reports, _) = steady::judge(what, run, |(reports, moves)| {
        *moves > 50 && reports.iter().all(|report| report.lost() == 0)
    });
    for report in reports {
        assert_eq!((report.reordered, report.duplicated), (0, 0), "{report:?}");
    }
}
