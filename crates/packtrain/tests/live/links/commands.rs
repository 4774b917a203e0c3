//! Links that join a line at work and leave it by command: what a person sees, what is left behind,
//! and what becomes of the traffic meanwhile.

use std::os::unix::process::CommandExt;
use std::process::{Command, Output};
use std::time::Duration;

use packtrain::lab::host::Host;
use packtrain::lab::measure::RoundTrips;
use packtrain::lab::namespaces::Process;
use packtrain::lab::{measure, wait_for, wire};
use packtrain::status::{LinkCondition, PeerPath, StatusDocument};
use serde_json::Value;

use crate::common::{A, B, packtrain};

const SOON: Duration = Duration::from_secs(6);
/// `nobody`.
const OTHER_UID: u32 = 65_534;

/// Two hosts with a cable between their `eth1`s and another one between their `eth2`s.
pub(super) fn cabled_twice(tag: &str) -> (Host, Host) {
    let a = Host::create(tag, packtrain()).unwrap();
    let b = Host::create(tag, packtrain()).unwrap();
    for interface in ["eth1", "eth2"] {
        wire::veth((&a.namespace, interface), (&b.namespace, interface)).unwrap();
    }
    (a, b)
}

/// The same, with a line over `eth1` at each end.
pub(super) fn lines_of_one_link(tag: &str, more: &[&str]) -> (Host, Host) {
    let (a, b) = cabled_twice(tag);
    for (host, address) in [(&a, A), (&b, B)] {
        let address = format!("{address}/24");
        host.up("eth1", &[&["--address", &address], more].concat())
            .unwrap();
    }
    a.wait_for_peers(1).unwrap();
    b.wait_for_peers(1).unwrap();
    (a, b)
}

pub(super) struct Outcome {
    pub(super) code: i32,
    pub(super) out: String,
    pub(super) err: String,
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Outcome {
        Outcome {
            code: output.status.code().expect("it was not killed"),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

fn outcome(host: &Host, arguments: &str) -> Outcome {
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    host.namespace
        .try_exec(host.words(&arguments))
        .unwrap()
        .into()
}

pub(super) fn done(host: &Host, arguments: &str) -> Outcome {
    let outcome = outcome(host, arguments);
    assert_eq!(outcome.code, 0, "{arguments}: {}", outcome.err);
    outcome
}

pub(super) fn fails(host: &Host, arguments: &str, code: i32, error: &str) {
    let outcome = outcome(host, arguments);
    let told = (outcome.code, outcome.err.as_str(), outcome.out.as_str());
    assert_eq!(told, (code, error, ""), "{arguments}");
}

fn as_other(host: &Host, arguments: &str) -> Outcome {
    let mut command = Command::new("nsenter");
    command
        .arg(format!("--net=/run/netns/{}", host.namespace.name()))
        .args(["setpriv", "--reuid", &OTHER_UID.to_string()])
        .args(["--clear-groups", "--"])
        .arg(packtrain())
        .args(arguments.split_whitespace());
    command.arg0("nsenter").output().unwrap().into()
}

pub(super) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

pub(super) fn link_names(host: &Host) -> Vec<String> {
    let list = json(&done(host, "link list pt0 --json").out);
    let names = list.as_array().unwrap().iter();
    names
        .map(|l| l["name"].as_str().unwrap().to_owned())
        .collect()
}

/// All of an interface that a line could have changed, in words that do not change by themselves.
pub(super) fn dump(host: &Host, interface: &str) -> String {
    host.namespace
        .sh(&format!(
            "ip -d link show {interface}; ip maddress show dev {interface}; tc qdisc show dev {interface}; \
             tc filter show dev {interface} ingress; tc filter show dev {interface} egress; \
             ethtool -k {interface} 2>/dev/null; grep -r . /proc/sys/net/ipv4/conf/{interface}; cat \
             /proc/net/packet | wc -l"
        ))
        .unwrap()
}

/// What a daemon holds and has written down.
#[derive(Debug, PartialEq)]
struct Held {
    descriptors: Vec<String>,
    journal: Vec<String>,
    packet_sockets: usize,
}

fn held(host: &Host, pid: u32) -> Held {
    let directory = format!("/proc/{pid}/fd");
    let mut descriptors: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok())
        .map(|target| target.display().to_string())
        // A socket's number is another one each time.
        .map(|target| target.split(':').next().unwrap_or_default().to_owned() + &kind(&target))
        .collect();
    descriptors.sort();
    let namespace = host.namespace.sh("stat -Lc %i /proc/self/ns/net").unwrap();
    let journal = format!("/run/packtrain/{}/pt0.json", namespace.trim());
    let journal = json(&std::fs::read_to_string(journal).unwrap());
    let changes = journal["changes"].as_array().unwrap();
    let packet = host.namespace.sh("cat /proc/net/packet").unwrap();
    Held {
        descriptors,
        journal: changes.iter().map(|c| c["interface"].to_string()).collect(),
        packet_sockets: packet.lines().count() - 1,
    }
}

fn kind(target: &str) -> String {
    match target.strip_prefix("anon_inode") {
        Some(kind) => kind.to_owned(),
        None => String::new(),
    }
}

pub(super) fn wait(host: &Host, what: &str, ready: impl Fn(&StatusDocument) -> bool) {
    wait_for(what, SOON, || ready(&host.status().unwrap()))
        .unwrap_or_else(|error| panic!("{error}: {:#?}", host.status().unwrap()));
}

/// Ends it when the answer of what it sent last has had time to come.
fn stop(ping: Process, from: &Host) -> RoundTrips {
    measure::ping_count(&from.namespace, B, Duration::from_millis(10), 20).unwrap();
    measure::round_trips(&ping.interrupt().unwrap()).unwrap()
}

fn has_path_over(status: &StatusDocument, link: &str) -> bool {
    let mut paths = status.peers.iter().flat_map(|peer| &peer.links);
    paths.any(|path| path.link == link && path.round_trip_s.is_some())
}

#[test]
fn a_link_joins_a_line_at_work_and_leaves_it_as_it_was() {
    live!();
    let (a, b) = lines_of_one_link("links", &["--path", "engine"]);
    let before = dump(&a, "eth2");
    let address = json(&a.namespace.sh("ip -j link show eth2").unwrap())[0]["address"].clone();
    let address = address.as_str().unwrap().to_owned();

    let added = done(&a, "link add pt0 eth2");
    assert_eq!(
        (added.out.as_str(), added.err.as_str()),
        (
            format!(
                "eth2 has joined pt0 (MTU 1500, {address})\n\
                 no peer was heard on eth2 within 3 s: it carries trains when one is\n"
            )
            .as_str(),
            ""
        )
    );
    let joined: Value = json(&done(&b, "link add pt0 eth2 --json").out);
    assert_eq!(
        (&joined["name"], &joined["id"]),
        (&"eth2".into(), &1.into())
    );
    assert_eq!(joined["state"], "up");
    assert_eq!(link_names(&a), ["eth1", "eth2"]);
    assert!(
        done(&a, "link list pt0").out.starts_with("LINK  STATE"),
        "a table"
    );
    assert_eq!(
        done(&a, "status pt0")
            .out
            .matches("earliest-finish")
            .count(),
        1
    );
    let loss = measure::ping_count(&a.namespace, B, Duration::from_millis(10), 100).unwrap();
    assert_eq!(loss.received, loss.sent);
    wait(&a, "a path over each link", |status| {
        ["eth1", "eth2"].iter().all(|link| {
            let mut paths = status.peers.iter().flat_map(|peer| &peer.links);
            paths.any(|path| path.link == *link)
        })
    });

    let removed = done(&a, "link remove pt0 eth2");
    assert_eq!(
        (removed.out.as_str(), removed.err.as_str()),
        ("eth2 has left pt0\n", "")
    );
    assert_eq!(dump(&a, "eth2"), before);
    assert_eq!(link_names(&a), ["eth1"]);
    let last: Value = json(&done(&b, "link remove pt0 eth2 --json").out);
    assert_eq!((&last["name"], &last["id"]), (&"eth2".into(), &1.into()));
    assert!(last["rx"]["frames"].as_u64() > Some(0), "{last:#}");

    // A number is never given to a second link.
    let again: Value = json(&done(&b, "link add pt0 eth2 --json").out);
    assert_eq!(again["id"], 2);
    // The first link may go as well, and the line goes on over what is left.
    done(&a, "link add pt0 eth2");
    measure::ping_count(&a.namespace, B, Duration::from_millis(10), 20).unwrap();
    wait(&a, "the peer over eth2", |status| {
        has_path_over(status, "eth2")
    });
    done(&a, "link remove pt0 eth1");
    assert_eq!(link_names(&a), ["eth2"]);
    let loss = measure::ping_count(&a.namespace, B, Duration::from_millis(10), 50).unwrap();
    assert_eq!(loss.received, loss.sent);
}

#[test]
fn each_wrong_use_of_link_has_its_words_and_its_code() {
    live!();
    let (a, _b) = cabled_twice("links");
    fails(
        &a,
        "link add pt0 eth1",
        9,
        "error: pt0 is not running\n       no line runs in this network namespace\n",
    );
    fails(
        &a,
        "link remove pt0 eth1",
        9,
        "error: pt0 is not running\n       no line runs in this network namespace\n",
    );
    a.up("eth1", &[]).unwrap();
    a.namespace
        .sh("ip link add eth8 type veth peer name eth9; ip link set eth9 mtu 575")
        .unwrap();
    a.packtrain(&["up", "pt1", "--link", "eth8"]).unwrap();
    for (arguments, code, error) in [
        (
            "link add pt0 eth7",
            4,
            "no such interface: eth7\n       with --wait-links it is added and joins when it appears",
        ),
        ("link add pt0 lo", 4, "lo is not an Ethernet interface"),
        ("link add pt0 eth1", 5, "eth1 is a link of pt0 already"),
        (
            "link add pt0 eth8",
            5,
            "eth8 is in line pt1 already: an interface belongs to one line",
        ),
        (
            "link add pt0 pt1",
            5,
            "pt1 is in line pt1 already: an interface belongs to one line",
        ),
        ("link add pt0 pt0", 2, "pt0 cannot be a link of itself"),
        (
            "link add pt0 eth9",
            6,
            "eth9 has an MTU of 575: a link needs at least 576",
        ),
        (
            "link remove pt0 eth2",
            4,
            "eth2 is no link of pt0\n       pt0 has: eth1",
        ),
        (
            "link remove pt0 eth1",
            2,
            "eth1 is the only link of pt0: packtrain down pt0 ends the line",
        ),
    ] {
        fails(&a, arguments, code, &format!("error: {error}\n"));
    }
    for arguments in ["link add pt0 eth2", "link remove pt0 eth1"] {
        let outcome = as_other(&a, arguments);
        assert_eq!(
            (outcome.code, outcome.err.as_str()),
            (7, "error: not allowed: only root may change pt0\n")
        );
    }
    assert_eq!(as_other(&a, "link list pt0").code, 0);
    assert_eq!(link_names(&a), ["eth1"]);
    let next: Value = json(&done(&a, "link add pt0 eth2 --json").out);
    assert_eq!(next["id"], 1, "what was refused used up no number");

    for number in 2..16 {
        done(&a, &format!("link add pt0 later{number} --wait-links"));
    }
    fails(
        &a,
        "link add pt0 eth7 --wait-links",
        2,
        "error: pt0 has 16 links, and no line has more: packtrain link remove pt0 takes one away\n",
    );
}

#[test]
fn a_link_may_be_absent_when_it_is_added_and_gone_when_it_is_removed() {
    live!();
    let (a, b) = lines_of_one_link("links", &[]);
    for host in [&a, &b] {
        host.namespace
            .sh("ip link set eth2 down name spare")
            .unwrap();
        let added = done(host, "link add pt0 eth2 --wait-links");
        assert_eq!(
            (added.out.as_str(), added.err.as_str()),
            (
                "pt0 waits for eth2\n",
                "note: eth2 does not exist yet: it joins when it appears\n"
            )
        );
        host.namespace.sh("ip link set spare name eth2").unwrap();
        let is_down = |s: &StatusDocument| s.links[1].state == LinkCondition::Down;
        wait(host, "that it has joined", is_down);
        host.namespace.sh("ip link set eth2 up").unwrap();
    }
    wait(&a, "both links", |status| {
        status.links.iter().all(|l| l.state == LinkCondition::Up)
    });

    a.namespace.sh("ip link delete eth2").unwrap();
    wait(&a, "that it is gone", |s| {
        s.links[1].state == LinkCondition::Absent
    });
    done(&a, "link remove pt0 eth2");
    assert_eq!(link_names(&a), ["eth1"]);
    a.wait_for_ping(B.parse().unwrap(), SOON).unwrap();
    // Nobody waits for it any more.
    wire::veth((&a.namespace, "eth2"), (&b.namespace, "eth2")).unwrap();
    wait(&b, "its other end", |s| {
        s.links[1].state == LinkCondition::Up
    });
    assert_eq!(link_names(&a), ["eth1"]);
    done(&a, "link add pt0 eth2");
    assert_eq!(link_names(&a), ["eth1", "eth2"]);
}

#[test]
fn a_link_added_and_removed_a_hundred_times_under_ping_leaves_nothing_behind_and_loses_nothing() {
    live!();
    let (a, b) = lines_of_one_link("links", &[]);
    done(&b, "link add pt0 eth2");
    let pid = a.status().unwrap().pid;
    let interface = dump(&a, "eth2");
    done(&a, "link add pt0 eth2");
    done(&a, "link remove pt0 eth2");
    let before = held(&a, pid);

    let ping = measure::ping(&a.namespace, B, Duration::from_millis(5)).unwrap();
    for _ in 0..100 {
        done(&a, "link add pt0 eth2");
        done(&a, "link remove pt0 eth2");
    }
    let pings = stop(ping, &a);

    assert_eq!(held(&a, pid), before);
    assert_eq!(dump(&a, "eth2"), interface);
    assert_eq!(link_names(&a), ["eth1"]);
    assert!(pings.sent > 100, "{pings:?}");
    assert_eq!(pings.received, pings.sent);
}

#[test]
fn a_line_moves_from_one_link_to_another_under_ping_and_loses_nothing() {
    live!();
    let (a, b) = lines_of_one_link("links", &[]);
    let ping = measure::ping(&a.namespace, B, Duration::from_millis(5)).unwrap();
    for (old, new) in [("eth1", "eth2"), ("eth2", "eth1")] {
        done(&b, &format!("link add pt0 {new}"));
        done(&a, &format!("link add pt0 {new}"));
        // At once: nobody has been heard on the new one yet.
        done(&a, &format!("link remove pt0 {old}"));
        let peers = a.status().unwrap().peers;
        assert!(peers[0].up && peers[0].links[0].link == new, "{peers:#?}");
        done(&b, &format!("link remove pt0 {old}"));
    }
    let pings = stop(ping, &a);
    assert_eq!(pings.received, pings.sent);
}

#[test]
fn a_line_that_comes_down_to_one_link_has_the_direct_path_again() {
    live!();
    let (a, b) = lines_of_one_link("links", &[]);
    let goes_direct = |s: &StatusDocument| s.peers[0].path == PeerPath::Direct;
    let shares = |s: &StatusDocument| s.peers[0].path_because.as_deref() == Some("several_links");
    wait(&a, "the direct path over one link", goes_direct);
    for host in [&a, &b] {
        done(host, "link add pt0 eth2");
    }
    wait(&a, "that two links share the frames", shares);
    for host in [&a, &b] {
        done(host, "link remove pt0 eth1");
    }
    wait(&a, "the direct path over the other link", goes_direct);
    let pings = measure::ping_count(&a.namespace, B, Duration::from_millis(5), 100).unwrap();
    assert_eq!(pings.received, pings.sent);
    let status = a.status().unwrap();
    assert_eq!(status.links.len(), 1);
    wait(&a, "frames past the engine", |s| {
        s.links[0].name == "eth2" && s.direct.tx.frames > 0
    });

    // What goes directly must have left the link before it is taken away too.
    done(&a, "link add pt0 eth1");
    done(&a, "link remove pt0 eth2");
    done(&b, "link add pt0 eth1");
    a.wait_for_ping(B.parse().unwrap(), SOON).unwrap();
}

#[test]
fn the_balance_is_that_of_the_command_line() {
    live!();
    let (a, _b) = lines_of_one_link("links", &["--balance", "active-backup"]);
    assert_eq!(a.status().unwrap().balance, "active-backup");
}
