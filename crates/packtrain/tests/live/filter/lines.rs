//! A filter, and the lines that run beside it: it asks them for their links, and waits for none.

use std::time::Duration;

use super::*;
use crate::common::cabled::{now, pause};

/// Longer than the watchdog has patience, and shorter than a line is waited for.
const WATCHED_FOR: Duration = Duration::from_millis(4500);

#[test]
fn a_line_that_is_stopped_does_not_hold_the_filter_up() {
    live!();
    let (a, b) = Host::pair();
    a.sh("ip address add 10.1.0.1/24 dev eth1");
    b.sh("ip address add 10.1.0.2/24 dev eth1");
    b.sh("ip address add 10.1.0.3/24 dev eth1");
    a.sh("ip link add eth2 type veth peer name eth3 && ip link set eth2 up && ip link set eth3 up");
    a.done("up pt0 --link eth2");
    a.done("up pt1 --link eth3");
    a.done("filter on eth1 --mode generic --watchdog 2");
    let line = Pid::from_raw(a.pid("pt0") as i32).expect("a process");
    let stopped = Stopped::stop(line);
    // One ends, and so the other one is asked, which does not answer.
    a.done("down pt1");
    let start = now();
    while start.elapsed() < WATCHED_FOR {
        let asked = now();
        let before = frames(&a, "foreign_arp");
        assert!(
            asked.elapsed() < Duration::from_secs(1),
            "it answers at once"
        );
        asks_for_others(&b);
        let document = document(&a);
        let count = |reason: &str| document["reasons"][reason]["frames"].as_u64();
        assert!(count("foreign_arp") > Some(before), "{document:#}");
        assert_eq!(count("unrefreshed"), Some(0), "{document:#}");
        pause(Duration::from_millis(100));
    }
    drop(stopped);
}

#[test]
fn an_interface_that_is_renamed_is_followed_and_known_to_its_line() {
    live!();
    let (a, _b) = Host::pair();
    a.done("filter on eth1 --mode generic");
    a.sh("ip link set eth1 down && ip link set eth1 name lan0 && ip link set lan0 up");
    wait_for("the new name", SOON, || document(&a)["interface"] == "lan0").unwrap();
    assert_eq!(document(&a)["known_as"], "eth1");
    let seen = a.done("filter status").out;
    assert!(seen.starts_with("filter of lan0\n"), "{seen}");
    assert!(seen.contains("packtrain filter off eth1"), "{seen}");
    a.done("up pt0 --link lan0");
    wait_for("the line to be known", SOON, || {
        document(&a)["line"] == "pt0"
    })
    .unwrap();
    // A line knows its link by a new name, too.
    a.sh("ip link set lan0 down && ip link set lan0 name wan0 && ip link set wan0 up");
    wait_for("the newest name", SOON, || {
        document(&a)["interface"] == "wan0"
    })
    .unwrap();
    assert_eq!(document(&a)["line"], "pt0");
    a.done("down pt0");
    wait_for("no line to be known", SOON, || {
        document(&a)["line"] == Value::Null
    })
    .unwrap();
    a.done("filter off eth1");
}
