//! One segment, two links to it: hosts without packtrain are told when they are reached by the
//! other one.

use std::time::Duration;

use packtrain::lab::host::Host;
use packtrain::lab::namespaces::Namespace;
use packtrain::lab::{wait_for, wire};

use crate::common::packtrain;

const SOON: Duration = Duration::from_secs(4);
/// Nobody's.
const WRONG: &str = "02:00:00:00:00:99";

/// A switch with two ports for the links of `line`, and one for a host without packtrain.
pub(super) struct Segment {
    pub(super) switch: Namespace,
    pub(super) line: Host,
    pub(super) plain: Namespace,
}

impl Segment {
    pub(super) fn create() -> Segment {
        let segment = Segment {
            switch: Namespace::create("home").unwrap(),
            line: Host::create("home", packtrain()).unwrap(),
            plain: Namespace::create("home").unwrap(),
        };
        let (switch, line) = (&segment.switch, &segment.line.namespace);
        wire::veth((switch, "one"), (line, "eth1")).unwrap();
        wire::veth((switch, "two"), (line, "eth2")).unwrap();
        wire::veth((switch, "three"), (&segment.plain, "eth1")).unwrap();
        wire::bridge(switch, "br0", &["one", "two", "three"]).unwrap();
        wire::add_address(&segment.plain, "eth1", "10.9.0.9/24").unwrap();
        segment
            .plain
            .sh("ip address add fd09::9/64 dev eth1 nodad")
            .unwrap();
        segment
    }

    fn port_of(&self, address: &str) -> Option<String> {
        let table = self.switch.sh("bridge fdb show br br0").unwrap();
        let line = table.lines().find(|line| line.starts_with(address))?;
        let mut words = line.split_whitespace();
        words.find(|word| *word == "dev")?;
        words.next().map(str::to_owned)
    }

    pub(super) fn home(&self) -> Vec<String> {
        let links = self.line.status().unwrap().links;
        links
            .into_iter()
            .filter(|l| l.home)
            .map(|l| l.name)
            .collect()
    }

    /// Until the switch has one of the addresses behind this port.
    fn wait_for_port(&self, address: &str, port: &str) {
        wait_for(&format!("{address} behind {port}"), SOON, || {
            self.port_of(address).as_deref() == Some(port)
        })
        .unwrap_or_else(|error| panic!("{error}: {:?}", self.port_of(address)));
    }
}

#[test]
fn neighbours_and_switch_are_told_when_they_are_reached_by_the_other_link() {
    live!();
    let segment = Segment::create();
    let addresses = ["--address", "10.9.0.1/24", "--address", "fd09::1/64"];
    let more = [&["--link", "eth2"][..], &addresses].concat();
    segment.line.up("eth1", &more).unwrap();
    let address = segment.line.status().unwrap().address;
    wait_for("eth1 as home", SOON, || segment.home() == ["eth1"]).unwrap();
    let pings = |to: &str| {
        let words = ["ping", "-n", "-c", "1", "-W", "1", to];
        let output = segment.plain.try_exec(words);
        output.is_ok_and(|output| output.status.success())
    };
    wait_for("IPv4", SOON, || pings("10.9.0.1")).unwrap();
    wait_for("IPv6", SOON, || pings("fd09::1")).unwrap();
    segment.wait_for_port(&address, "one");

    // What neighbours believe is wrong from now on, and only who speaks up can put it right.
    segment
        .plain
        .sysctl("net/ipv4/neigh/eth1/locktime", "0")
        .unwrap();
    for to in ["10.9.0.1", "fd09::1"] {
        let wrong = format!("ip neigh replace {to} lladdr {WRONG} dev eth1 nud stale");
        segment.plain.sh(&wrong).unwrap();
    }
    segment.switch.sh("ip link set one down").unwrap();
    segment.wait_for_port(&address, "two");
    assert_eq!(segment.home(), ["eth2"]);
    wait_for("the neighbours' tables", SOON, || {
        let known = segment.plain.sh("ip neigh").unwrap();
        known.matches(&address).count() == 2
    })
    .unwrap_or_else(|error| panic!("{error}: {}", segment.plain.sh("ip neigh").unwrap()));
    assert!(pings("10.9.0.1") && pings("fd09::1"));
}

#[test]
fn a_switch_is_told_of_stations_behind_pt0_too() {
    live!();
    let segment = Segment::create();
    let guest = Namespace::create("home").unwrap();
    let line = &segment.line.namespace;
    // Quiet, or it would speak for itself.
    guest
        .sysctl("net/ipv6/conf/default/disable_ipv6", "1")
        .unwrap();
    wire::veth((line, "tap"), (&guest, "eth1")).unwrap();
    wire::add_address(&guest, "eth1", "10.9.0.7/24").unwrap();
    segment.line.up("eth1", &["--link", "eth2"]).unwrap();
    wire::bridge(line, "br1", &["tap", "pt0"]).unwrap();
    let words = ["ping", "-n", "-c", "1", "-W", "1", "10.9.0.9"];
    wait_for("the guest", SOON, || {
        let output = guest.try_exec(words);
        output.is_ok_and(|output| output.status.success())
    })
    .unwrap();
    let address = guest.sh("cat /sys/class/net/eth1/address").unwrap();
    let address = address.trim();
    segment.wait_for_port(address, "one");
    segment.switch.sh("ip link set one down").unwrap();
    segment.wait_for_port(address, "two");
}
