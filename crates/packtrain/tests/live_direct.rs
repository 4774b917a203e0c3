//! The direct path between two hosts: what takes it, what does not, and that nothing is lost or
//! overtaken where a flow changes from one path to the other.

#![allow(clippy::disallowed_methods)] // live tests run in real time

#[macro_use]
mod common;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::cabled::status;
use common::direct::{path, wait_for_direct};
use common::{B, B6, Pair, pings_whole, steady, transfer};
use packtrain::lab::host::Host;
use packtrain::lab::messages::{Load, measure};
use packtrain::lab::{measure as programs, wait_for, wire};
use packtrain::linux::netlink::Netlink;
use packtrain::status::PeerPath;

const LONG: Duration = Duration::from_secs(10);

#[test]
fn what_one_link_carries_goes_past_the_engine_whole() {
    live!();
    let pair = Pair::up("direct", 1500).unwrap();
    wait_for_direct(&pair.a);
    wait_for_direct(&pair.b);
    // After ARP, which went by the engine.
    assert!(pings_whole(&pair.a, B, 56) && pings_whole(&pair.a, B6, 56));
    let (a, b) = (status(&pair.a), status(&pair.b));
    const BYTES: u64 = 20_000_000;
    assert_eq!(transfer(&pair.a, &pair.b, B, BYTES), BYTES);
    assert_eq!(transfer(&pair.b, &pair.a, common::A6, BYTES), BYTES);
    assert!(pings_whole(&pair.a, B, 1472), "as large as the MTU");
    let (a2, b2) = (status(&pair.a), status(&pair.b));
    for (before, after) in [(&a, &a2), (&b, &b2)] {
        let sent = after.direct.tx.bytes - before.direct.tx.bytes;
        let received = after.direct.rx.bytes - before.direct.rx.bytes;
        assert!(sent > BYTES && received > BYTES, "{sent} {received}");
        let engine = after.host.taken.bytes - before.host.taken.bytes;
        assert!(
            engine < BYTES / 100,
            "{engine} bytes by the engine: {after:?}"
        );
        assert!(after.links[0].tx.bytes >= after.direct.tx.bytes);
        assert_eq!(after.drops.values().sum::<u64>(), 0, "{after:?}");
    }
    // What left one came to the other.
    assert_eq!(a2.direct.tx.frames, b2.direct.rx.frames);
    assert_eq!(b2.direct.tx.frames, a2.direct.rx.frames);
}

#[test]
fn who_does_not_want_it_is_sent_nothing_by_it_and_sends_nothing() {
    live!();
    for (options, here, there) in [
        (&["--path", "engine"][..], "settings", "not_offered"),
        (&["--no-marked-frames"][..], "settings", "not_offered"),
        // Larger frames would have to be cut, and would come after smaller ones of later.
        (&["--mtu", "1600"][..], "mtu", ""),
    ] {
        let pair = Pair::cable("engine", 1500).unwrap();
        pair.a_up(options).unwrap();
        pair.b_up(&[]).unwrap();
        pair.wait().unwrap();
        let because = |host: &Host| path(host).1.unwrap_or_default();
        assert_eq!(because(&pair.a), here, "{options:?}");
        assert_eq!(because(&pair.b), there, "{options:?}");
        assert_eq!(transfer(&pair.a, &pair.b, B, 2_000_000), 2_000_000);
        assert!(pings_whole(&pair.b, common::A, 56));
        assert_eq!(status(&pair.a).direct.tx.frames, 0, "{options:?}");
    }
}

/// Thousands of changes while datagrams of many flows pass: each flow's come all, once, in order.
#[test]
fn a_flow_that_changes_its_path_loses_nothing_and_overtakes_nothing() {
    live!();
    let pair = Pair::up("change", 1500).unwrap();
    wait_for_direct(&pair.a);
    let ended = AtomicBool::new(false);
    let flows = [64, 64, 300, 1400];
    let reports: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> = (7000..)
            .zip(flows)
            .map(|(port, size)| {
                let (from, to) = (&pair.a.namespace, &pair.b.namespace);
                let load = Load {
                    size,
                    duration: Duration::from_secs(6),
                    rate_per_second: Some(1000),
                    real_time: false,
                };
                let at = SocketAddr::new(B.parse().unwrap(), port);
                scope.spawn(move || measure(from, to, at, load).unwrap())
            })
            .collect();
        let changing = scope.spawn(|| change_until(&pair.a, &ended));
        let reports = running
            .into_iter()
            .map(|flow| flow.join().unwrap())
            .collect();
        ended.store(true, Ordering::Relaxed);
        changing.join().unwrap();
        reports
    });
    let (a, b) = (status(&pair.a), status(&pair.b));
    for report in &reports {
        assert_eq!(
            (report.lost(), report.reordered, report.duplicated),
            (0, 0, 0),
            "{report:?}\n{a:?}\n{b:?}"
        );
    }
    // A run counts only if it was what it is called.
    assert!(a.direct.changes > 1000, "{} changes", a.direct.changes);
    let (direct, engine) = (a.direct.tx.frames, a.host.taken.frames);
    assert!(
        direct > 5000 && engine > 5000,
        "{direct} direct, {engine} by the engine"
    );
}

/// An MTU that the link does not carry closes the path, and the link's opens it again.
fn change_until(host: &Host, ended: &AtomicBool) {
    let change = || {
        let mut netlink = Netlink::open().unwrap();
        let pt0 = netlink.link_by_name("pt0").unwrap().expect("pt0").ifindex;
        while !ended.load(Ordering::Relaxed) {
            for mtu in [1501, 1500] {
                netlink.set_mtu(pt0, mtu).unwrap();
                sleep(Duration::from_micros(2500));
            }
        }
    };
    host.namespace.in_namespace(change).unwrap();
}

#[test]
fn a_queue_on_the_link_brings_the_engine_in_and_its_end_lets_it_go() {
    live!(wire::shaping_unavailable());
    let pair = Pair::cable("queue", 1500).unwrap();
    for host in [&pair.a, &pair.b] {
        wire::shape(&host.namespace, "eth1", 50).unwrap();
        // Trains that overtake each other would be another reason.
        wire::receive_on_cpu(&host.namespace, "eth1", 0).unwrap();
    }
    pair.a_up(&[]).unwrap();
    pair.b_up(&[]).unwrap();
    pair.wait().unwrap();
    const BYTES: u64 = 10_000_000;
    let fill = || {
        wait_for_direct(&pair.a);
        let begin = Instant::now();
        assert_eq!(transfer(&pair.a, &pair.b, B, BYTES), BYTES);
        begin.elapsed()
    };
    steady::judge("time for a transfer", fill, |&time| time < LONG);
    let after = status(&pair.a);
    assert!(after.direct.closures >= 1, "{after:?}");
    assert!(after.host.taken.bytes > BYTES / 2, "{after:?}");
    assert_eq!(after.drops.values().sum::<u64>(), 0, "{after:?}");
    assert_eq!(path(&pair.a), (PeerPath::Engine, Some("congestion".into())));
    wait_for_direct(&pair.a);
    let before = status(&pair.a).direct.tx.frames;
    // The first may find its slot taken by the transfer's last frames.
    sleep(Duration::from_millis(200));
    assert!(pings_whole(&pair.a, B, 56));
    let sent = status(&pair.a).direct.tx.frames - before;
    assert!((3..20).contains(&sent), "{sent} of 3 pings went direct");
}

#[test]
fn a_link_without_carrier_is_out_of_the_way_at_once_and_comes_back() {
    live!();
    let pair = Pair::up("carrier", 1500).unwrap();
    wait_for_direct(&pair.a);
    pair.b.namespace.sh("ip link set eth1 down").unwrap();
    wait_for("the engine", LONG, || {
        status(&pair.a)
            .peers
            .iter()
            .all(|peer| peer.path == PeerPath::Engine)
    })
    .unwrap();
    let before = status(&pair.a).direct.tx.frames;
    assert!(!pings_whole(&pair.a, B, 56));
    assert_eq!(status(&pair.a).direct.tx.frames, before);
    pair.b.namespace.sh("ip link set eth1 up").unwrap();
    wait_for("direct again", LONG, || {
        let peers = status(&pair.a).peers;
        peers.iter().any(|peer| peer.path == PeerPath::Direct) && pings_whole(&pair.a, B, 56)
    })
    .unwrap();
}

#[test]
fn iperf3_and_the_links_own_traffic_pass_side_by_side() {
    live!();
    let pair = Pair::up("beside", 1500).unwrap();
    wire::add_address(&pair.a.namespace, "eth1", "10.8.0.1/24").unwrap();
    wire::add_address(&pair.b.namespace, "eth1", "10.8.0.2/24").unwrap();
    wait_for_direct(&pair.a);
    let _server = programs::iperf3_server(&pair.b.namespace).unwrap();
    let second = Duration::from_secs(1);
    for more in [&[][..], &["-R"], &["--bidir"], &["-P", "8"]] {
        let bulk = || programs::bulk(&pair.a.namespace, B, second, more).unwrap();
        steady::judge(&format!("iperf3 {more:?}"), bulk, |bulk| {
            bulk.goodput_bps > 1e8
        });
        assert!(pings_whole(&pair.a, "10.8.0.2", 1472));
    }
    // Eight flows may have had acknowledgements enough to close the path for a moment.
    wait_for_direct(&pair.a);
    let (a, b) = (status(&pair.a), status(&pair.b));
    assert!(a.direct.rx.bytes > 10_000_000 && b.direct.rx.bytes > 10_000_000);
}

#[test]
fn who_puts_a_qdisc_before_pt0_has_all_frames_go_through_it() {
    live!(wire::shaping_unavailable());
    let pair = Pair::up("qdisc", 1500).unwrap();
    wait_for_direct(&pair.a);
    assert!(pings_whole(&pair.a, B, 56));
    let tbf = "tc qdisc replace dev pt0 root tbf rate 20mbit burst 70000 limit 400000";
    pair.a.namespace.sh(tbf).unwrap();
    let before = status(&pair.a).direct.tx.frames;
    let begin = Instant::now();
    assert_eq!(transfer(&pair.a, &pair.b, B, 4_000_000), 4_000_000);
    assert!(begin.elapsed().as_secs_f64() > 1.0, "{:?}", begin.elapsed());
    assert_eq!(status(&pair.a).direct.tx.frames, before);
    assert_eq!(path(&pair.a), (PeerPath::Engine, Some("pt0_qdisc".into())));
}

/// Back to the engine, a train would overtake what stands in another of the link's queues.
#[test]
fn over_a_link_with_several_queues_nothing_goes_directly() {
    live!(wire::shaping_unavailable());
    let pair = Pair::cable("queues", 1500).unwrap();
    let class = "tc class add dev eth1 parent 1: classid";
    let two = format!(
        "tc qdisc add dev eth1 root handle 1: htb default 1 && {class} 1:1 htb rate 50mbit && \
         {class} 1:2 htb rate 2mbit"
    );
    pair.a.namespace.sh(&two).unwrap();
    pair.a_up(&[]).unwrap();
    pair.b_up(&[]).unwrap();
    pair.wait().unwrap();
    assert_eq!(path(&pair.a), (PeerPath::Engine, Some("unordered".into())));
    wait_for_direct(&pair.b);
    assert!(pings_whole(&pair.a, B, 56));
    assert_eq!(status(&pair.a).direct.tx.frames, 0);
    // One class is one queue, and that is seen soon.
    pair.a
        .namespace
        .sh("tc class del dev eth1 classid 1:2")
        .unwrap();
    wait_for_direct(&pair.a);
    pair.a
        .namespace
        .sh("tc qdisc replace dev eth1 root pfifo_fast")
        .unwrap();
    wait_for("the engine", LONG, || path(&pair.a).0 == PeerPath::Engine).unwrap();
}

#[test]
fn what_the_links_queue_drops_of_direct_frames_is_counted() {
    live!(wire::shaping_unavailable());
    let pair = Pair::cable("drops", 1500).unwrap();
    let tbf = "tc qdisc add dev eth1 root tbf rate 20mbit burst 5000 limit 5000";
    pair.a.namespace.sh(tbf).unwrap();
    pair.a_up(&[]).unwrap();
    pair.b_up(&[]).unwrap();
    pair.wait().unwrap();
    wait_for_direct(&pair.a);
    let load = Load {
        size: 1000,
        duration: Duration::from_secs(1),
        rate_per_second: Some(2000),
        real_time: false,
    };
    let to = SocketAddr::new(B.parse().unwrap(), 7000);
    let report = measure(&pair.a.namespace, &pair.b.namespace, to, load).unwrap();
    let after = status(&pair.a);
    let drops = |reason: &str| after.links[0].drops.get(reason).copied().unwrap_or(0);
    // A train that is refused has parts of three such messages at most: the engine may have come in.
    let (counted, trains) = (drops("link_qdisc"), drops("link_refused"));
    let lost_max = counted.saturating_sub(trains) + 3 * trains;
    assert!(report.lost() <= lost_max, "{report:?}: {after:?}");
    assert!(after.direct.tx.frames > 0);
}
