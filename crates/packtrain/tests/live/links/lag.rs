//! Two links that a switch has in a static link aggregation, and a host without packtrain behind it.

use std::time::Duration;

use packtrain::lab::{measure, wait_for, wire};
use packtrain::status::LagUse;

use super::home::Segment;

const SOON: Duration = Duration::from_secs(4);
const PLAIN: &str = "10.9.0.9";
const FLOWS: u32 = 64;

/// The line over both links, each of which is said to be in an aggregation.
fn up(segment: &Segment, balance: &str) {
    let line = &segment.line;
    let more = [
        "--link",
        "eth2,lag",
        "--address",
        "10.9.0.1/24",
        "--balance",
        balance,
    ];
    line.up("eth1,lag", &more).unwrap();
}

/// Makes the switch one that takes its first two ports for one, as far as a bridge can be: it sends nothing from the one to the other, and by
/// the second it sends nothing.
fn aggregate(segment: &Segment) {
    let address = segment.line.status().unwrap().address;
    let switch = |command: &str| segment.switch.sh(command).unwrap();
    for port in ["one", "two"] {
        switch(&format!(
            "bridge link set dev {port} isolated on learning off"
        ));
    }
    switch("bridge link set dev two flood off mcast_flood off bcast_flood off");
    switch("bridge fdb flush dev br0 dynamic || true");
    switch(&format!(
        "bridge fdb replace {address} dev one master static"
    ));
}

fn uses(segment: &Segment) -> Vec<Option<LagUse>> {
    let links = segment.line.status().unwrap().links;
    links.into_iter().map(|link| link.lag).collect()
}

fn pings(segment: &Segment) -> bool {
    let words = ["ping", "-n", "-c", "1", "-W", "1", PLAIN];
    let output = segment.line.namespace.try_exec(words);
    output.is_ok_and(|output| output.status.success())
}

/// Datagrams of many flows; how many frames each link has sent meanwhile.
fn spread(segment: &Segment) -> [u64; 2] {
    let line = &segment.line.namespace;
    let sent = || ["eth1", "eth2"].map(|link| wire::sent(line, link).unwrap().0);
    let before = sent();
    line.exec([
        "bash",
        "-c",
        &format!(
            "for port in $(seq 2001 {}); do echo x >/dev/udp/{PLAIN}/$port; done",
            2000 + FLOWS
        ),
    ])
    .unwrap();
    let after = sent();
    [after[0] - before[0], after[1] - before[1]]
}

#[test]
fn frames_for_a_plain_host_go_by_both_links_and_a_transfer_comes_whole() {
    live!();
    let segment = Segment::create();
    up(&segment, "hash-port");
    aggregate(&segment);
    wait_for("the aggregation", SOON, || {
        uses(&segment) == [Some(LagUse::Used); 2]
    })
    .unwrap();
    wait_for("the plain host", SOON, || pings(&segment)).unwrap();
    let quarter = u64::from(FLOWS) / 4;
    let sent = spread(&segment);
    assert!(sent.iter().all(|&frames| frames >= quarter), "{sent:?}");
    let _server = measure::iperf3_server(&segment.plain).unwrap();
    let bulk = measure::bulk(
        &segment.line.namespace,
        PLAIN,
        Duration::from_secs(1),
        &["-P", "4"],
    );
    assert!(bulk.unwrap().goodput_bps > 1e6);
    // One of the cables is pulled: all goes by the other.
    segment.switch.sh("ip link set two down").unwrap();
    wait_for("the other link", SOON, || {
        let links = segment.line.status().unwrap().links;
        !links[1].carrier
    })
    .unwrap();
    assert!(pings(&segment));
    let sent = spread(&segment);
    assert!(sent[0] >= u64::from(FLOWS) && sent[1] == 0, "{sent:?}");
}

/// Nothing is spread that such a switch would learn on two ports, and a person is told.
#[test]
fn a_switch_without_an_aggregation_is_found_out() {
    live!();
    let segment = Segment::create();
    up(&segment, "round-robin");
    wait_for("our own hellos", SOON, || {
        uses(&segment) == [Some(LagUse::Refused); 2]
    })
    .unwrap();
    assert_eq!(segment.home(), ["eth1"]);
    wait_for("the plain host", SOON, || pings(&segment)).unwrap();
    let sent = spread(&segment);
    assert!(sent[0] >= u64::from(FLOWS) && sent[1] < 8, "{sent:?}");
    let warnings = segment.line.status().unwrap().warnings;
    let found = "the switch does not have eth1 and eth2 in one link aggregation: frames for hosts without packtrain go by the home link alone";
    assert!(
        warnings.iter().any(|warning| warning == found),
        "{warnings:?}"
    );
    let set = packtrain_on(&segment, &["link", "set", "pt0", "eth2", "--lag", "off"]);
    assert_eq!(set, "eth2 has tier 1, weight 1\n");
    assert_eq!(uses(&segment), [Some(LagUse::Used), None]);
}

fn packtrain_on(segment: &Segment, words: &[&str]) -> String {
    let program = crate::common::packtrain()
        .to_str()
        .expect("a path in plain letters");
    let words = [&[program][..], words].concat();
    segment.line.namespace.exec(words).unwrap()
}
