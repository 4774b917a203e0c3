//! The receive filter on real interfaces: what comes in is what the host wants, and nothing that it wants is missing.

mod confirm;
mod lines;
mod sample;
mod stay;
mod top;

use packtrain::lab::wait_for;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::cli::host::Host;
use crate::common::undo::SOON;
use crate::common::{B, Pair, packtrain, transfer};

fn document(host: &Host) -> Value {
    serde_json::from_str(&host.done("filter status eth1 --json").out).unwrap()
}

fn frames(host: &Host, reason: &str) -> u64 {
    let document = document(host);
    document["reasons"][reason]["frames"]
        .as_u64()
        .expect("a count")
}

fn has_program(host: &Host) -> bool {
    host.sh("ip -d link show eth1").contains("xdp")
}

fn pid_of(host: &Host) -> Pid {
    let pid = document(host)["pid"].as_u64().expect("a number");
    Pid::from_raw(pid as i32).expect("a process")
}

/// A process that goes on when this is dropped, also after a failure.
struct Stopped(Pid);

impl Stopped {
    fn stop(pid: Pid) -> Stopped {
        kill_process(pid, Signal::STOP).unwrap();
        Stopped(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::CONT);
    }
}

/// How many of so many questions are answered.
fn pings(from: &Host, count: u32, size: u32) -> u32 {
    let line = format!("ping -n -q -c {count} -i 0.01 -W 1 -s {size} 10.1.0.1 || true");
    answered(&from.sh(&line))
}

/// By what `ping` has printed.
fn answered(said: &str) -> u32 {
    let received = said.split(" received").next().unwrap();
    received.rsplit(' ').next().unwrap().parse().unwrap()
}

fn rules(host: &Host) -> Value {
    serde_json::from_str(&host.done("filter rules --json").out).unwrap()
}

/// Two hosts on 10.1.0.0/24, of which the first has a filter.
fn filtered(more: &str) -> (Host, Host) {
    let (a, b) = Host::pair();
    a.sh("ip address add 10.1.0.1/24 dev eth1");
    b.sh("ip address add 10.1.0.2/24 dev eth1");
    b.sh("ip address add 10.1.0.3/24 dev eth1");
    a.done(&format!("filter on eth1 {more}"));
    (a, b)
}

/// From an address that the other host does not know, for one that nobody has.
fn asks_for_others(b: &Host) {
    b.sh("ip neighbour flush dev eth1; ping -n -c 1 -W 1 -I 10.1.0.3 10.1.0.9 || true");
}

#[test]
fn a_filter_stands_when_on_returns_and_is_gone_when_off_does() {
    live!();
    let (a, b) = Host::pair();
    a.sh("ip address add 10.1.0.1/24 dev eth1");
    b.sh("ip address add 10.1.0.2/24 dev eth1");
    b.sh("ip address add 10.1.0.3/24 dev eth1");
    let before = a.dump();
    a.fails(
        "filter off eth1",
        9,
        "error: no receive filter runs on eth1\n",
    );
    assert_eq!(
        a.done("filter status").out,
        "no receive filter runs in this network namespace\n"
    );
    let on = a.done("filter on eth1");
    assert_eq!(
        on.err,
        "note: eth1 is a veth: as long as the filter is in its driver, large segments (TSO) are off at its other end; \
         --mode tc leaves them on\n"
    );
    assert!(has_program(&a));
    let pid = document(&a)["pid"].as_u64().unwrap();
    a.fails(
        "filter on eth1",
        10,
        &format!("error: a filter of eth1 is running already (pid {pid})\n"),
    );

    b.sh("ping -n -c 3 -i 0.05 -W 2 10.1.0.1");
    asks_for_others(&b);
    let document = document(&a);
    let count = |reason: &str| document["reasons"][reason]["frames"].as_u64().unwrap();
    assert!(count("ours") >= 3, "{document:#}");
    assert!(count("arp_ours") >= 1, "{document:#}");
    assert!(count("foreign_arp") >= 1, "{document:#}");
    assert_eq!(document["mode"], "native");
    assert_eq!(document["line"], Value::Null);
    let sum = |what: &str| document[what]["frames"].as_u64().unwrap();
    assert_eq!(sum("handled"), sum("useful") + sum("dropped"));
    let seen = a.done("filter status eth1").out;
    assert!(seen.contains("ARP that concerns others"), "{seen}");

    let off = a.done("filter off");
    assert_eq!((off.out.as_str(), off.err.as_str()), ("", ""));
    assert!(!has_program(&a));
    a.is_as(&before, "after off");
}

#[test]
fn what_is_wrong_is_said_with_its_code() {
    live!();
    let (a, _b) = Host::pair();
    a.fails(
        "filter on nothere",
        4,
        "error: no such interface: nothere\n       ip link lists those there are\n",
    );
    a.fails(
        "filter on lo",
        4,
        "error: lo is not an Ethernet interface\n",
    );
    let wrong = a.packtrain("filter on eth1 --watchdog 1");
    assert_eq!(wrong.code, 2);
    assert!(
        wrong.err.contains("a time in seconds, 2 to 3600, or off"),
        "{}",
        wrong.err
    );
    let other = a.as_other("filter on eth1");
    assert_eq!(other.code, 7, "{}", other.err);
    assert!(!has_program(&a));
}

#[test]
fn a_filter_whose_process_is_killed_is_gone_with_it() {
    live!();
    let (a, b) = filtered("");
    assert!(has_program(&a));
    let pid = document(&a)["pid"].as_u64().unwrap();
    kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL).unwrap();
    wait_for("the program to go", SOON, || !has_program(&a)).unwrap();
    b.sh("ping -n -c 1 -W 2 10.1.0.1");
    a.done("filter on eth1 --mode generic");
    assert_eq!(document(&a)["mode"], "generic");
    // Its interface goes, and the filter says so and ends.
    a.sh("ip link del eth1");
    wait_for("the filter to end", SOON, || {
        a.done("filter status").out.starts_with("no receive filter")
    })
    .unwrap();
}

#[test]
fn a_process_that_hangs_leaves_an_interface_on_which_everything_passes() {
    live!();
    let (a, b) = filtered("--watchdog 2");
    let pid = Pid::from_raw(document(&a)["pid"].as_u64().unwrap() as i32).unwrap();
    asks_for_others(&b);
    assert!(frames(&a, "foreign_arp") > 0);
    assert_eq!(frames(&a, "unrefreshed"), 0);
    kill_process(pid, Signal::STOP).unwrap();
    // It cannot be asked meanwhile, and is told by what it has counted.
    for _ in 0..4 {
        asks_for_others(&b);
    }
    kill_process(pid, Signal::CONT).unwrap();
    wait_for("it to count what passed", SOON, || {
        frames(&a, "unrefreshed") > 0
    })
    .unwrap();
    wait_for("it to drop again", SOON, || {
        let before = frames(&a, "foreign_arp");
        asks_for_others(&b);
        frames(&a, "foreign_arp") > before
    })
    .unwrap();
}

#[test]
fn an_address_that_comes_answers_at_once_and_one_that_goes_is_followed() {
    live!();
    let (a, b) = filtered("");
    let known = || document(&a)["local_prefixes"].as_u64().unwrap();
    let at_first = known();
    for last in 10..30 {
        a.sh(&format!("ip address add 10.1.0.{last}/24 dev eth1"));
        // The very first question is answered: a second one would be asked a second later.
        b.sh(&format!("ping -n -c 1 -W 0.9 10.1.0.{last}"));
    }
    wait_for("all to be known", SOON, || known() == at_first + 20).unwrap();
    a.sh("for n in $(seq 10 29); do ip address del 10.1.0.$n/24 dev eth1; done");
    wait_for("none to be known", SOON, || known() == at_first).unwrap();
    let before = frames(&a, "foreign_arp");
    asks_for_others(&b);
    assert!(frames(&a, "foreign_arp") > before);
}

#[test]
fn a_carrier_that_comes_back_leaves_a_filter_that_drops() {
    live!();
    let (a, b) = filtered("");
    asks_for_others(&b);
    assert!(frames(&a, "foreign_arp") > 0);
    // The kernel counts its routes anew, and tells of none.
    b.sh("ip link set eth1 down; ip link set eth1 up");
    wait_for("it to drop again", SOON, || {
        let before = frames(&a, "foreign_arp");
        asks_for_others(&b);
        frames(&a, "foreign_arp") > before
    })
    .unwrap();
}

#[test]
fn a_gateway_that_moves_is_followed() {
    live!();
    let (a, b) = filtered("");
    a.sh("ping -n -c 1 -W 2 10.1.0.2");
    b.sh("ip link set eth1 address 52:54:00:00:00:77");
    b.sh("arping -U -c 1 -I eth1 10.1.0.2");
    wait_for("the new address", SOON, || {
        a.sh("ip neighbour show 10.1.0.2 dev eth1")
            .contains("52:54:00:00:00:77")
    })
    .unwrap();
    assert!(frames(&a, "arp_neighbour") > 0);
}

#[test]
fn ports_that_nobody_has_are_silent_and_the_others_as_before() {
    live!();
    let (a, b) = filtered("--ports auto");
    // A refusal takes no time, silence as long as somebody waits.
    let connects = |port: u16| {
        let line = format!("timeout 2 bash -c '</dev/tcp/10.1.0.1/{port}' 2>/dev/null; echo $?");
        b.sh(&line).trim().to_owned()
    };
    assert_eq!(connects(7777), "124");
    assert!(frames(&a, "closed_tcp") > 0);
    let mut server =
        a.0.command(["iperf3", "--server", "--port", "7777"])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
    let opened = wait_for("the port to open", SOON, || connects(7777) == "0");
    server.kill().unwrap();
    server.wait().unwrap();
    opened.unwrap();
    a.done("filter off");
    assert_eq!(connects(7778), "1");
}

#[test]
fn rules_come_and_go_while_traffic_does_and_each_is_counted() {
    live!();
    let (a, b) = filtered("");
    let pings = |count, size| pings(&b, count, size);
    let rules = || rules(&a);
    assert_eq!(pings(5, 56), 5);
    let added = a.words(&["filter", "deny", "eth1", "icmp size 500-"]);
    assert_eq!(added.out, "eth1 has rule rule1: deny icmp size 500-\n");
    assert_eq!((pings(5, 56), pings(5, 600)), (5, 0));
    a.words(&[
        "filter",
        "limit",
        "eth1",
        "1/s burst 3",
        "icmp",
        "--name",
        "few",
    ]);
    // Two more, should it take so long.
    let passed = pings(10, 56);
    assert!((3..=5).contains(&passed), "{passed}");
    let refused = u64::from(10 - passed);
    assert_eq!(rules()[0]["frames"], 5);
    assert_eq!(rules()[1]["frames"], refused);
    assert_eq!(rules()[1]["limit"], "1/s burst 3");
    // Before the others; what these had counted is not forgotten.
    a.words(&[
        "filter",
        "allow",
        "eth1",
        "src 10.1.0.2 icmp",
        "--name",
        "all",
        "--before",
        "rule1",
    ]);
    assert_eq!((pings(5, 56), pings(5, 600)), (5, 5));
    let document = rules();
    let names: Vec<&Value> = (0..3).map(|n| &document[n]["name"]).collect();
    assert_eq!(names, ["all", "rule1", "few"]);
    assert_eq!(document[1]["frames"], 5);
    assert_eq!(document[2]["frames"], refused);
    for rule in ["all", "few", "rule1"] {
        let last = a.done(&format!("filter remove eth1 {rule} --json"));
        let last: Value = serde_json::from_str(&last.out).unwrap();
        assert!(last["frames"].as_u64() > Some(0), "{last}");
    }
    assert_eq!(pings(10, 600), 10);
    a.fails(
        "filter remove eth1 all",
        4,
        "error: there is no rule all\n       the filter has no rules\n",
    );
    let other = a.as_other("filter deny eth1 any");
    assert_eq!(other.code, 7, "{}", other.err);
}

#[test]
fn a_line_over_links_with_filters_carries_what_it_carried() {
    live!();
    let pair = Pair::cable("filter", 1500).unwrap();
    let program = packtrain().to_str().unwrap();
    let filter = |host: &packtrain::lab::host::Host, words: &[&str]| {
        let words = [&[program, "filter"], words].concat();
        host.namespace.exec(words).unwrap()
    };
    // One before the line, one when it stands.
    filter(&pair.a, &["on", "eth1"]);
    pair.a_up(&[]).unwrap();
    pair.b_up(&[]).unwrap();
    pair.wait().unwrap();
    filter(&pair.b, &["on", "eth1", "--mode", "tc"]);
    for host in [&pair.a, &pair.b] {
        wait_for("the line to be known", SOON, || {
            let text = filter(host, &["status", "eth1", "--json"]);
            let document: Value = serde_json::from_str(&text).unwrap();
            document["line"] == "pt0"
        })
        .unwrap();
    }
    pair.a
        .namespace
        .sh("ping -n -c 5 -i 0.05 -W 2 10.9.0.2 && ping -n -6 -c 5 -i 0.05 -W 2 fd09::2")
        .unwrap();
    assert_eq!(transfer(&pair.a, &pair.b, B, 8 << 20), 8 << 20);
    assert_eq!(transfer(&pair.b, &pair.a, "10.9.0.1", 8 << 20), 8 << 20);
    // What was known is forgotten, and asked for again.
    for host in [&pair.a, &pair.b] {
        host.namespace.sh("ip neighbour flush dev pt0").unwrap();
    }
    pair.b
        .namespace
        .sh("ping -n -c 3 -i 0.05 -W 2 10.9.0.1")
        .unwrap();
    for host in [&pair.a, &pair.b] {
        let text = filter(host, &["status", "eth1", "--json"]);
        let document: Value = serde_json::from_str(&text).unwrap();
        for reason in [
            "foreign_unicast",
            "capture",
            "ingress",
            "unseen",
            "foreign_arp",
        ] {
            let count = &document["reasons"][reason]["frames"];
            // Before the line was known its sockets were captures like others.
            let is_known_late = matches!(reason, "capture" | "ingress");
            assert!(is_known_late || count == 0, "{reason}: {document:#}");
        }
    }
}
