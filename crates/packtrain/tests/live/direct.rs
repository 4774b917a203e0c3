//! The direct path between two hosts: what takes it, what does not, and that nothing is lost or
//! overtaken where a flow changes from one path to the other.

mod far;
mod hidden;
mod ring;
mod shaper;
mod small;

use std::net::SocketAddr;
use std::time::Duration;

use packtrain::lab::host::Host;
use packtrain::lab::messages::{Load, measure};
use packtrain::lab::path_changes::{self, Flows, Pace};
use packtrain::lab::{measure as programs, wait_for, wire};
use packtrain::linux::late::LateFrames;
use packtrain::linux::netlink::Netlink;
use packtrain::status::{PeerPath, StatusDocument};

use crate::common::cabled::{now, pause, status};
use crate::common::direct::{path, wait_for_direct};
use crate::common::{A, A6, B, B6, Pair, pings_whole, steady, transfer};

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
    assert_eq!(transfer(&pair.b, &pair.a, A6, BYTES), BYTES);
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
        assert!(pings_whole(&pair.b, A, 56));
        assert_eq!(status(&pair.a).direct.tx.frames, 0, "{options:?}");
    }
}

/// Thousands of changes while datagrams of many flows pass: each flow's come all, once, in order.
#[test]
fn a_flow_that_changes_its_path_loses_nothing_and_overtakes_nothing() {
    live!();
    assert_changes_lose_nothing(&Pair::up("change", 1500).unwrap());
}

/// Each hundredth frame is kept for 3 ms after it got its ticket, where nobody sees it: another one of its flow must not
/// go directly meanwhile.
#[test]
fn nor_does_one_whose_frames_are_kept_before_they_stand_in_a_queue() {
    live!();
    let pair = Pair::up("kept", 1500).unwrap();
    let late = pair.a.namespace.in_namespace(|| {
        let pt0 = Netlink::open().unwrap().link_by_name("pt0").unwrap();
        LateFrames::at(pt0.expect("it is up").ifindex).unwrap()
    });
    let late = late.unwrap();
    assert_changes_lose_nothing(&pair);
    assert!(late.count() > 100, "{} were late", late.count());
}

/// Each flow goes to one of two queues, all trains to one: what changes to them overtakes what stands in the other.
#[test]
fn nor_does_one_over_a_link_with_several_queues() {
    live!(wire::shaping_unavailable());
    let pair = Pair::cable("queues", 1500).unwrap();
    let queue = "tc qdisc add dev eth1 parent 1:";
    let tbf = "tbf rate 100mbit burst 3000 limit 400000";
    let queues =
        format!("tc qdisc add dev eth1 root handle 1: mq && {queue}1 {tbf} && {queue}2 {tbf}");
    pair.a.namespace.sh(&queues).unwrap();
    for host in [&pair.a, &pair.b] {
        // Two processors that take turns at the cable swap frames by themselves.
        wire::receive_on_cpu(&host.namespace, "eth1", 0).unwrap();
    }
    pair.a_up(&[]).unwrap();
    pair.b_up(&[]).unwrap();
    pair.wait().unwrap();
    assert_changes_lose_nothing(&pair);
    assert_eq!(status(&pair.a).direct.fences, 0, "B changes nothing");
}

fn assert_changes_lose_nothing(pair: &Pair) {
    // It counts only if it was what it is called: on a busy machine flows hardly rest, and stay with the engine, and
    // one that is away lets the queue before it overflow.
    let run = || {
        wait_for_direct(&pair.a);
        let counted = || {
            let (a, b) = (status(&pair.a), status(&pair.b));
            let counts = [
                a.direct.changes,
                a.direct.tx.frames,
                a.host.taken.frames,
                b.direct.fences,
                b.direct.fences_given_up,
            ];
            (counts, a.drops)
        };
        let (before, _) = counted();
        let lost = lost_in_a_run(pair);
        let (after, drops) = counted();
        // Of this run: what was counted in one that is discarded says nothing of it.
        let more: [u64; 5] = std::array::from_fn(|at| after[at] - before[at]);
        (lost, more, drops)
    };
    let what = "datagrams lost; changes, frames each way, fences and those given up; drops";
    steady::judge(what, run, |&(lost, more, _)| {
        let [changes, direct, engine, fences, given_up] = more;
        let is_whole = lost == 0 && given_up == 0;
        is_whole && changes > 1000 && direct > 5000 && engine > 5000 && fences > 500
    });
}

fn lost_in_a_run(pair: &Pair) -> u64 {
    let flows = Flows {
        sizes: &[64, 64, 300, 1400],
        rate_per_second: 1000,
        duration: Duration::from_secs(6),
    };
    let reports = path_changes::during(&pair.a, Pace::often(1500), || {
        let (from, to) = (&pair.a.namespace, &pair.b.namespace);
        flows.send(from, to, SocketAddr::new(B.parse().unwrap(), 7000))
    });
    let reports = reports.unwrap().unwrap();
    for report in &reports {
        assert_eq!(
            (report.reordered, report.duplicated),
            (0, 0),
            "{report:?}\n{:?}\n{:?}",
            status(&pair.a),
            status(&pair.b)
        );
    }
    reports.iter().map(|report| report.lost()).sum()
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
    // A machine that is away lets frames grow old in the engine, and the queue be over before it is looked at.
    let fill = || {
        wait_for_direct(&pair.a);
        let old = |seen: &StatusDocument| seen.drops.get("codel").copied().unwrap_or(0);
        let old_before = old(&status(&pair.a));
        let begin = now();
        assert_eq!(transfer(&pair.a, &pair.b, B, BYTES), BYTES);
        let time = begin.elapsed();
        (time, path(&pair.a), old(&status(&pair.a)) - old_before)
    };
    let congestion = (PeerPath::Engine, Some("congestion".into()));
    let what = "time for a transfer, the path, dropped";
    steady::judge(what, fill, |(time, path, dropped)| {
        *time < LONG && *path == congestion && *dropped == 0
    });
    let after = status(&pair.a);
    assert!(after.direct.closures >= 1, "{after:?}");
    assert!(after.host.taken.bytes > BYTES / 2, "{after:?}");
    let others = after.drops.keys().filter(|&reason| reason != "codel");
    assert_eq!(others.count(), 0, "{after:?}");
    wait_for_direct(&pair.a);
    let before = status(&pair.a).direct.tx.frames;
    // The first may find its slot taken by the transfer's last frames.
    pause(Duration::from_millis(200));
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
    let begin = now();
    assert_eq!(transfer(&pair.a, &pair.b, B, 4_000_000), 4_000_000);
    assert!(begin.elapsed().as_secs_f64() > 1.0, "{:?}", begin.elapsed());
    assert_eq!(status(&pair.a).direct.tx.frames, before);
    assert_eq!(path(&pair.a), (PeerPath::Engine, Some("pt0_qdisc".into())));
}

/// Back to the engine, a train would overtake what stands in another of the link's queues: it waits for it at the
/// other end.
#[test]
fn over_a_link_with_several_queues_frames_go_directly_too() {
    live!(wire::shaping_unavailable());
    let pair = Pair::cable("queues", 1500).unwrap();
    pair.a
        .namespace
        .sh("tc qdisc replace dev eth1 root pfifo_fast")
        .unwrap();
    pair.a_up(&[]).unwrap();
    pair.b_up(&[]).unwrap();
    pair.wait().unwrap();
    wait_for_direct(&pair.a);
    assert!(pings_whole(&pair.a, B, 56));
    let (a, b) = (status(&pair.a), status(&pair.b));
    assert!(a.direct.tx.frames > 0);
    let watched = |seen: &StatusDocument| {
        let link = &seen.links[0];
        let signals = link.congestion_signals.join(" ");
        (link.qdisc.clone().unwrap_or_default(), signals)
    };
    let expected = ("pfifo_fast", "backlog direct_counts acknowledgements");
    assert_eq!(watched(&a), (expected.0.into(), expected.1.into()));
    let expected = ("noqueue", "direct_counts acknowledgements");
    assert_eq!(watched(&b), (expected.0.into(), expected.1.into()));
}

#[test]
fn what_the_links_queue_drops_of_direct_frames_is_counted() {
    live!(alone, wire::shaping_unavailable());
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
