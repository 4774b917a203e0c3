//! Wires are set, cut and mended while traffic runs over them.

use std::ops::Range;
use std::process::Stdio;

use serde_json::Value;

use super::world::{World, round_trips_ms, soon};
use crate::common::steady;

/// A lab of two plain hosts and one wire without a rate.
fn bare(world: &World, lab: &str) {
    world.done(&format!(
        "up --lab {lab} --links 1 --rate none --no-packtrain"
    ));
}

fn shortest_ms(world: &World, lab: &str) -> f64 {
    let ping = world.on(lab, "a", "ping -c20 -i0.01 -q b");
    round_trips_ms(&ping)[0]
}

fn judge_shortest_ms(world: &World, lab: &str, right: Range<f64>) {
    let measure = || shortest_ms(world, lab);
    steady::judge("the shortest round trip, ms", measure, |ms| {
        right.contains(ms)
    });
}

/// What iperf3's receiver counted in a second, in Mbit/s. Its server may be busy with the end of the
/// run before.
fn mbit_per_second(world: &World, lab: &str, more: &str) -> f64 {
    let mut rate = None;
    soon("iperf3's server to be free", || {
        let run = world.try_on(lab, "a", &format!("iperf3 -c b -t 1 -J {more}"));
        let report: Value = serde_json::from_str(&run.out).unwrap();
        rate = report["end"]["sum_received"]["bits_per_second"].as_f64();
        assert!(rate.is_some() || report["error"].is_string(), "{report}");
        rate.is_some()
    });
    rate.unwrap() / 1e6
}

fn judge_mbit_per_second(world: &World, lab: &str, more: &str, right: Range<f64>) {
    let measure = || mbit_per_second(world, lab, more);
    steady::judge("Mbit/s of TCP", measure, |is| right.contains(is));
}

fn carriers(world: &World, lab: &str) -> [String; 2] {
    ["a", "b"].map(|host| {
        let carrier = world.on(lab, host, "cat /sys/class/net/eth0/carrier");
        carrier.trim().to_owned()
    })
}

fn arrived(world: &World, lab: &str, from: &str) -> u64 {
    let direction = world.direction(lab, "a-b.0", from);
    direction["arrived_frames"].as_u64().unwrap()
}

fn dropped(world: &World, lab: &str, from: &str, why: &str) -> u64 {
    let direction = world.direction(lab, "a-b.0", from);
    direction["dropped"][why].as_u64().unwrap()
}

#[test]
fn a_delay_that_is_set_while_traffic_runs_is_there_when_the_command_returns() {
    live!();
    let world = World::new();
    bare(&world, "delay");
    let mut traffic = world
        .on_command("delay", "a", "ping -i0.002 -q b")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    judge_shortest_ms(&world, "delay", 0.0..5.0);
    world.done("set --lab delay a-b.0 --delay 15ms");
    // The very first one after the command, and not one that was on its way.
    let first = round_trips_ms(&world.on("delay", "a", "ping -c1 -q b"))[0];
    assert!(first >= 30.0, "{first} ms");
    judge_shortest_ms(&world, "delay", 30.0..38.0);

    world.done("set --lab delay a-b.0 --from b --delay 5ms");
    judge_shortest_ms(&world, "delay", 20.0..28.0);
    world.done("set --lab delay a-b.0 --delay 0ms");
    // Those that are on their way arrive later than those that are sent now.
    soon("the old delay to be over", || {
        shortest_ms(&world, "delay") < 5.0
    });
    assert!(
        matches!(traffic.try_wait(), Ok(None)),
        "traffic ran all the time"
    );
    world.done("down");
    traffic.wait().unwrap();
}

#[test]
fn loss_of_all_stops_everything_and_none_lets_it_through_again() {
    live!();
    let world = World::new();
    bare(&world, "loss");
    assert!(world.pings("loss", "a", "b"));
    world.done("set a-b.0 --loss 100%");
    assert!(!world.pings("loss", "a", "b"));
    assert!(dropped(&world, "loss", "a", "loss") > 0);
    assert!(world.done("list").contains(" lost\n"));
    world.done("set a-b.0 --loss none");
    assert!(world.pings("loss", "a", "b"));
}

#[test]
fn loss_in_one_direction_leaves_the_other_alone() {
    live!();
    let world = World::new();
    bare(&world, "oneway");
    assert!(world.pings("oneway", "a", "b"));
    world.done("set a-b.0 --from b --loss 100%");
    let before = arrived(&world, "oneway", "a");
    assert!(!world.pings("oneway", "a", "b"));
    assert!(arrived(&world, "oneway", "a") >= before + 3);
    assert_eq!(dropped(&world, "oneway", "a", "loss"), 0);
    assert!(dropped(&world, "oneway", "b", "loss") >= 3);
}

#[test]
fn tcp_gets_the_rate_that_is_set_and_each_direction_its_own() {
    live!(alone);
    let world = World::new();
    world.done("up --lab rate --links 1 --rate 50mbit --port-queue 50 --no-packtrain");
    world.on("rate", "b", "iperf3 -s -D");
    soon("iperf3 to listen", || {
        world.try_on("rate", "b", "ss -Hltn | grep -q :5201").code == 0
    });
    judge_mbit_per_second(&world, "rate", "", 15.0..50.0);
    world.done("set a-b.0 --from a --rate 10mbit");
    judge_mbit_per_second(&world, "rate", "", 4.0..10.0);
    judge_mbit_per_second(&world, "rate", "-R", 15.0..50.0);
}

#[test]
fn a_ports_queue_is_a_qdisc_of_the_host_and_a_rate_of_ip_packets_is_not() {
    live!();
    let world = World::new();
    world.done("up --lab port --links 1 --rate 20mbit --port-queue 70 --no-packtrain");
    let qdiscs = |host| world.on("port", host, "tc -s qdisc show dev eth0");
    assert!(
        qdiscs("a").contains("pfifo 2: parent 1:1 limit 70p"),
        "{}",
        qdiscs("a")
    );
    assert!(qdiscs("a").contains("htb 1: root"), "{}", qdiscs("a"));
    world.done("set a-b.0 --from a --port-queue 30");
    assert!(qdiscs("a").contains("limit 30p"), "{}", qdiscs("a"));
    assert!(qdiscs("b").contains("limit 70p"), "{}", qdiscs("b"));
    world.done("set a-b.0 --from a --port-rate 5mbit");
    let classes = world.on("port", "a", "tc class show dev eth0");
    assert!(classes.contains("rate 4995Kbit"), "{classes}");

    world.done("set a-b.0 --rate 599mbit:ip");
    for host in ["a", "b"] {
        assert!(!qdiscs(host).contains("htb"), "{}", qdiscs(host));
    }
    assert!(world.pings("port", "a", "b"));
    world.done("down");

    world.done("up --lab port --links 1 --rate 599mbit:ip --no-packtrain");
    for host in ["a", "b"] {
        assert!(!qdiscs(host).contains("htb"), "{}", qdiscs(host));
    }
    assert!(world.pings("port", "a", "b"));
}

#[test]
fn a_wire_that_is_cut_takes_the_carrier_of_both_ends_and_mending_brings_it_back() {
    live!();
    let world = World::new();
    bare(&world, "cut");
    assert_eq!(carriers(&world, "cut"), ["1", "1"]);
    world.done("cut a-b.0");
    assert_eq!(carriers(&world, "cut"), ["0", "0"]);
    assert!(
        world
            .on("cut", "a", "ip link show eth0")
            .contains("NO-CARRIER")
    );
    assert!(!world.pings("cut", "a", "b"));
    assert!(world.done("list").contains("a-b.0  b > a  cut"));
    assert_eq!(world.document("cut")["wires"][0]["carrier"], false);
    assert!(
        world.done("graph").contains("a-b.0 CUT"),
        "{}",
        world.done("graph")
    );

    world.fails(
        "mend --from a a-b.0",
        1,
        "error: a-b.0 has lost its carrier, and a cable has one: mend it whole, without --from\n",
    );
    assert_eq!(carriers(&world, "cut"), ["0", "0"]);
    world.done("mend a-b.0");
    assert_eq!(carriers(&world, "cut"), ["1", "1"]);
    soon("an answer", || world.pings("cut", "a", "b"));
    // Twice is no mistake.
    world.done("mend a-b.0");
    world.done("cut a-b.0");
    world.done("cut a-b.0");
    assert_eq!(carriers(&world, "cut"), ["0", "0"]);
}

#[test]
fn at_a_switch_only_the_host_behind_the_wire_loses_its_carrier() {
    live!();
    let world = World::new();
    world.done("up --lab switch --hosts 3 --links 1 --no-packtrain");
    assert!(world.pings("switch", "a", "c"));
    world.done("cut a-s1.0");
    assert_eq!(carriers(&world, "switch"), ["0", "1"]);
    assert!(!world.pings("switch", "b", "a"));
    assert!(world.pings("switch", "b", "c"));
    world.done("mend a-s1.0");
    soon("an answer", || world.pings("switch", "b", "a"));
}

#[test]
fn a_silent_cut_swallows_frames_and_leaves_the_carrier() {
    live!();
    let world = World::new();
    bare(&world, "silent");
    assert!(world.pings("silent", "a", "b"));
    world.done("cut --silent a-b.0");
    assert_eq!(carriers(&world, "silent"), ["1", "1"]);
    assert!(!world.pings("silent", "a", "b"));
    let list = world.done("list");
    assert!(
        list.contains("a > b  silent") && list.contains("b > a  silent"),
        "{list}"
    );

    // One direction is mended, and frames arrive there again.
    world.done("mend --from a a-b.0");
    let before = arrived(&world, "silent", "a");
    assert!(!world.pings("silent", "a", "b"));
    assert!(arrived(&world, "silent", "a") > before);
    world.done("mend a-b.0");
    assert!(world.pings("silent", "a", "b"));
}

#[test]
fn a_silent_cut_of_one_direction_lets_the_frames_of_the_other_arrive() {
    live!();
    let world = World::new();
    bare(&world, "half");
    assert!(world.pings("half", "a", "b"));
    world.done("cut --silent --from b a-b.0");
    let before = arrived(&world, "half", "a");
    assert!(!world.pings("half", "a", "b"));
    assert!(arrived(&world, "half", "a") >= before + 3);
    assert_eq!(dropped(&world, "half", "a", "cut"), 0);
    assert!(dropped(&world, "half", "b", "cut") >= 3);
    let list = world.done("list");
    assert!(
        list.contains("a > b  up") && list.contains("b > a  silent"),
        "{list}"
    );
}
