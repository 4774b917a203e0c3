//! The DFAP paper's protocol between real hosts: `--mode dfap`, beside lines that speak trains, and beside a host that
//! speaks neither.

mod policies;

use std::net::SocketAddr;
use std::time::Duration;

use packtrain::lab::host::Host;
use packtrain::lab::messages::{Load, Report, measure};
use packtrain::lab::{wait_for, wire};
use packtrain::linux::packet_socket::PacketSocket;
use packtrain::status::StatusDocument;
use packtrain_proto::buffer::BufferPool;

use crate::common::cabled::MEBIBYTE;
use crate::common::{B, Pair, pings_whole, transfer};
use crate::segment::{Segment, mac_of};
use crate::traffic::odd_frames_arrive_unchanged;

/// Frames wait so that they meet: on an unshaped cable no queue stands.
const DFAP: [&str; 4] = ["--mode", "dfap", "--pack", "scaled 2ms"];
const LOAD: Load = Load {
    size: 64,
    duration: Duration::from_secs(1),
    rate_per_second: Some(20_000),
    real_time: false,
};

fn wait_for_stations(host: &Host, count: usize) {
    wait_for("hosts that take aggregates", Duration::from_secs(5), || {
        let status = host.status();
        status.is_ok_and(|status| status.dfap.stations.len() == count)
    })
    .unwrap();
}

/// Every message arrives once and in order, or its loss is counted; and what was in aggregates is told by both ends.
fn packed_messages(from: &Host, to: &Host, at: &str) -> Report {
    let aggregated = |host: &Host| -> (u64, u64) {
        let StatusDocument { trains, .. } = host.status().unwrap();
        (trains.tx.aggregated, trains.rx.aggregated)
    };
    let before = (aggregated(from).0, aggregated(to).1);
    let at = SocketAddr::new(at.parse().unwrap(), 7777);
    let report = measure(&from.namespace, &to.namespace, at, LOAD).unwrap();
    assert_eq!((report.reordered, report.duplicated), (0, 0), "{report:?}");
    assert!(report.delivered > report.sent * 9 / 10, "{report:?}");
    let (sent, came) = (aggregated(from).0 - before.0, aggregated(to).1 - before.1);
    assert!(sent > report.sent / 2, "{sent} in aggregates of {report:?}");
    assert!(
        came <= sent && came > sent * 9 / 10,
        "{came} of {sent} came"
    );
    report
}

#[test]
fn aggregates_go_to_hosts_that_take_them_and_to_no_other() {
    live!(alone);
    let segment = Segment::of(4);
    let [one, two, trains, plain] = &segment.hosts[..] else {
        unreachable!("four hosts");
    };
    for (n, host) in [one, two].into_iter().enumerate() {
        let address = format!("10.9.0.{}/24", n + 1);
        host.up("eth1", &[&["--address", &address][..], &DFAP].concat())
            .unwrap();
    }
    trains
        .up(
            "eth1",
            &["--address", "10.9.0.3/24", "--pack", "scaled 2ms"],
        )
        .unwrap();
    wire::add_address(&plain.namespace, "eth1", "10.9.0.4/24").unwrap();
    for host in [one, two, trains] {
        wait_for_stations(host, 2);
    }
    assert!(trains.status().unwrap().peers.is_empty());
    let ifindex = plain
        .namespace
        .sh("cat /sys/class/net/eth1/ifindex")
        .unwrap();
    let mut ear = plain
        .namespace
        .in_namespace(|| PacketSocket::open(ifindex.trim().parse().unwrap()))
        .unwrap()
        .unwrap();

    packed_messages(one, two, "10.9.0.2");
    packed_messages(one, trains, "10.9.0.3");
    packed_messages(trains, two, "10.9.0.2");
    for (from, to) in [(one, "10.9.0.3"), (two, "10.9.0.1"), (trains, "10.9.0.1")] {
        assert!(pings_whole(from, to, 1472), "to {to}");
    }
    assert_eq!(transfer(one, two, "10.9.0.2", 4 * MEBIBYTE), 4 * MEBIBYTE);
    assert_eq!(
        transfer(trains, one, "10.9.0.1", 4 * MEBIBYTE),
        4 * MEBIBYTE
    );

    // To the plain one the same messages go one by one.
    let at = SocketAddr::new("10.9.0.4".parse().unwrap(), 7777);
    let before = one.status().unwrap().trains.tx;
    let report = measure(&one.namespace, &plain.namespace, at, LOAD).unwrap();
    assert_eq!(report.lost(), 0, "{report:?}");
    let after = one.status().unwrap().trains.tx;
    assert!(after.plain - before.plain >= report.sent);
    let own = mac_of(&plain.namespace, "eth1");
    let mut pool = BufferPool::new();
    let (mut messages, mut aggregates) = (0, 0);
    while let Ok(Some((frame, _))) = ear.receive(&mut pool) {
        let to: Vec<String> = frame[..6]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let is_for_it = to.join(":") == own;
        messages += u64::from(is_for_it && frame[12..14] == [8, 0]);
        aggregates +=
            u64::from(is_for_it && [[0xbb, 0xbb], [0xaa, 0xaa]].contains(&[frame[12], frame[13]]));
        pool.give_back(frame);
    }
    assert!(messages > 100, "the ear has heard {messages}");
    assert_eq!(aggregates, 0);
}

#[test]
fn frames_of_every_kind_pass_a_line_that_speaks_only_aggregates() {
    live!();
    let pair = Pair::cable("dfap", 1500).unwrap();
    pair.a_up(&[&DFAP[..], &["--dfap-ether-type", "0xaaaa"]].concat())
        .unwrap();
    pair.b_up(&DFAP).unwrap();
    for host in [&pair.a, &pair.b] {
        wait_for_stations(host, 1);
    }
    odd_frames_arrive_unchanged(&pair);
    packed_messages(&pair.a, &pair.b, B);
    let status = pair.a.status().unwrap();
    assert_eq!((status.mode.as_str(), status.dfap.waits), ("dfap", None));
    let shown = pair.a.packtrain(&["status", "pt0"]).unwrap();
    for part in ["  aggregates ", " frames each", "  sent to    "] {
        assert!(shown.contains(part), "{shown}");
    }
    // A host that leaves is sent none any more, and the other forgets it at once.
    pair.b.down().unwrap();
    wait_for_stations(&pair.a, 0);
}

#[test]
fn by_the_traffic_count_waits_begin_when_traffic_does_and_end_with_it() {
    live!(alone);
    let pair = Pair::cable("count", 1500).unwrap();
    // As the paper has it, but for the tick.
    let paper = ["--mode", "dfap", "--dfap-tick", "1ms"];
    pair.a_up(&paper).unwrap();
    pair.b_up(&paper).unwrap();
    wait_for_stations(&pair.a, 1);
    assert_eq!(pair.a.status().unwrap().dfap.waits, Some(false));
    let waits = |on: bool| {
        let status = pair.a.status();
        status.is_ok_and(|status| status.dfap.waits == Some(on))
    };
    let to = SocketAddr::new(B.parse().unwrap(), 7777);
    // Fifteen intervals of 50 ms on average, of silence: after them, what comes is more than that.
    wait_for("an average", Duration::from_secs(5), || {
        let status = pair.a.status();
        status.is_ok_and(|status| status.dfap.frames_per_second.is_some())
    })
    .unwrap();
    let report = std::thread::scope(|scope| {
        let sender = scope.spawn(|| measure(&pair.a.namespace, &pair.b.namespace, to, LOAD));
        wait_for("waits to begin", Duration::from_secs(3), || waits(true)).unwrap();
        sender.join().unwrap().unwrap()
    });
    assert_eq!((report.lost(), report.reordered), (0, 0), "{report:?}");
    wait_for("waits to end", Duration::from_secs(3), || waits(false)).unwrap();
    let trains = pair.a.status().unwrap().trains;
    assert!(trains.tx.aggregated > 100, "{trains:?}");
    assert!(
        trains.flush["timer"] + trains.flush["count"] > 0,
        "{trains:?}"
    );
}
