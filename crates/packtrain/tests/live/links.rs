//! A line over several links: all of them carry it, and one that dies takes nothing with it.

mod classes;
mod commands;
mod far;
mod home;
mod join;
mod lag;
mod path_mtu;
mod programs;
mod silent;
mod stopped;
mod uses;

use std::net::{SocketAddr, UdpSocket};
use std::thread::scope;
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt::BindToDevice};
use packtrain::lab::cable::{Cable, Side};
use packtrain::lab::cut::{self, Crossed, Path, Plan, Under};
use packtrain::lab::host::Host;
use packtrain::lab::messages::{self, Load};
use packtrain::lab::namespaces::Namespace;
use packtrain::lab::stream::{self, Amount, Protocol};
use packtrain::lab::{measure, wait_for, wire};
use packtrain::status::{Counts, LinkCondition};
use rustix::process::Signal;

use crate::common::cabled::{
    Cabled, MEBIBYTE, address, assert_all_once_in_order, assert_once_in_order, assert_sent, now,
    pause, send, status,
};
use crate::common::standing::Standing;
use crate::common::undo::{SOON, assert_undone, dump, kill};
use crate::common::{A, B, packtrain, pings_whole, steady};

const PLAN: Plan = Plan {
    before: Duration::from_millis(700),
    cut: Duration::from_millis(800),
    after: Duration::from_millis(700),
};
/// Every cable at either of its ends.
const CUTS: [(usize, Side); 4] = [(0, Side::A), (1, Side::A), (0, Side::B), (1, Side::B)];

#[test]
fn one_flow_uses_two_equal_links_and_arrives_whole() {
    live!(wire::shaping_unavailable());
    let cabled = Cabled::up("equal", &[100, 100]);
    cabled.judge_shares(40, |shares| shares.iter().all(|&share| share > 0.3));
    assert_sent(&cabled.b, &cabled.a, A, 10 * MEBIBYTE);
}

#[test]
fn a_slow_link_takes_its_part_beside_a_fast_one() {
    live!(alone, wire::shaping_unavailable());
    let cabled = Cabled::up("unequal", &[100, 20]);
    // By their rates 0.17.
    cabled.judge_shares(40, |shares| (0.05..0.3).contains(&shares[1]));
}

#[test]
fn links_of_different_mtu_and_rate_carry_one_flow_whole() {
    live!(wire::shaping_unavailable());
    let cabled = Cabled::up("mtus", &[100, 40, 10]);
    for host in [&cabled.a, &cabled.b] {
        for (link, mtu) in [("eth1", 9000), ("eth2", 1500), ("eth3", 700)] {
            wire::set_mtu(&host.namespace, link, mtu).unwrap();
        }
    }
    cabled.judge_shares(24, |shares| shares[0] > 0.3 && shares[1] > 0.1);
    for size in [56, 1000, 1472] {
        assert!(pings_whole(&cabled.a, B, size), "{size} bytes");
    }
}

/// Datagrams of different sizes one after the other: a small one would overtake a large one that left
/// by the other link.
#[test]
fn datagrams_over_two_idle_links_arrive_once_and_in_order() {
    live!(alone, wire::shaping_unavailable());
    let cabled = Cabled::up("idle", &[100, 100]);
    let (from, to) = (&cabled.a.namespace, &cabled.b.namespace);
    for (size, rate) in [(64, 5000), (1400, 1000), (200, 1000)] {
        let load = Load {
            size,
            duration: Duration::from_millis(1500),
            rate_per_second: Some(rate),
            real_time: false,
        };
        let at = SocketAddr::new(address(B), 7101);
        let report = messages::measure(from, to, at, load).unwrap();
        assert_all_once_in_order(&report, [&cabled.a, &cabled.b]);
    }
}

#[test]
fn how_long_trains_in_turns_wait_for_each_other_is_told() {
    live!(alone, wire::shaping_unavailable());
    let cabled = Cabled::up_with("turns", &[100, 100], &["--balance", "round-robin"]);
    let (from, to) = (&cabled.a.namespace, &cabled.b.namespace);
    let load = Load {
        size: 64,
        duration: Duration::from_millis(1500),
        rate_per_second: Some(1000),
        real_time: false,
    };
    let at = SocketAddr::new(address(B), 7106);
    let report = messages::measure(from, to, at, load).unwrap();
    assert_all_once_in_order(&report, [&cabled.a, &cabled.b]);
    let status = status(&cabled.b);
    let by_link: Vec<u64> = status.links.iter().map(|link| link.trains_rx).collect();
    let all: u64 = by_link.iter().sum();
    // A busy machine sends late, many messages in one train, and the second link may join late.
    assert!(by_link.iter().all(|&n| n > all / 10), "{status:#?}");
    let hold = &status.peers[0].hold;
    let held_now = status.resequencer.held_trains;
    assert!(all > 20 && hold.trains + held_now >= all, "{status:#?}");
    let in_buckets: u64 = hold.buckets.iter().map(|bucket| bucket.trains).sum();
    assert_eq!(in_buckets, hold.trains);
    assert!(
        hold.p50_s <= hold.p99_s && hold.p99_s <= hold.p999_s && hold.p999_s <= hold.max_s,
        "{hold:?}"
    );
}

#[test]
fn a_cable_cut_under_a_thousand_pings_a_second_loses_none() {
    live!(wire::shaping_unavailable());
    let mut cabled = Cabled::up("pings", &[100, 100]);
    for (cable, side) in CUTS {
        let Cabled { cables, a, b, .. } = &mut cabled;
        let path = Path {
            from: &a.namespace,
            to: &b.namespace,
            address: address(B),
        };
        let pinged = cut::under_pings(path, &mut cables[cable], side, PLAN).unwrap();
        let echoes = pinged.echoes;
        let wrong = (echoes.lost(), echoes.reordered, echoes.duplicated);
        assert!(
            wrong == (0, 0, 0) && echoes.sent > 1000,
            "cable {cable} cut at {side:?}: {echoes:?}\n{:#?}\n{:#?}",
            status(a),
            status(b),
        );
        cabled.assert_all_used_again();
    }
}

#[test]
fn a_cable_cut_under_a_transfer_and_datagrams_loses_nothing_and_disorders_nothing() {
    live!(wire::shaping_unavailable());
    let mut cabled = Cabled::up("cut", &[100, 100]);
    for (cable, side) in CUTS {
        let what = format!(
            "bytes with cable {cable} cut at {side:?}, when the rest went on, and datagrams lost"
        );
        let under_both = || {
            let crossed = cross(&mut cabled, cable, side);
            let transfer = &crossed.transfer;
            let (right, sent) = (transfer.right_bytes, transfer.sent_bytes);
            assert!(
                transfer.is_whole(),
                "cable {cable} cut at {side:?}: {right} of {sent} bytes right"
            );
            let report = crossed.messages.expect("asked for");
            assert_once_in_order(&report, [&cabled.a, &cabled.b]);
            cabled.assert_all_used_again();
            (sent, crossed.rest_after, report.lost(), cabled.drops())
        };
        steady::judge(&what, under_both, |&(sent, rest_after, lost, _)| {
            sent > 10 * MEBIBYTE && rest_after.is_some() && lost == 0
        });
    }
}

fn cross(cabled: &mut Cabled, cable: usize, side: Side) -> Crossed {
    let Cabled { cables, a, b, .. } = cabled;
    let path = Path {
        from: &a.namespace,
        to: &b.namespace,
        address: address(B),
    };
    let under = Under {
        protocol: Protocol::Tcp,
        messages: true,
        rest_bps: 20e6,
        all_bps: 20e6,
    };
    cut::under_transfer(path, &mut cables[cable], side, PLAN, under).unwrap()
}

#[test]
fn a_transfer_and_datagrams_survive_a_hundred_flaps_of_carrier() {
    live!(wire::shaping_unavailable());
    let mut cabled = Cabled::up("flaps", &[100, 100]);
    let flaps = || a_hundred_flaps(&mut cabled);
    let what = "bytes sent meanwhile, and datagrams lost";
    steady::judge(what, flaps, |&(sent, lost, _)| {
        sent > 20 * MEBIBYTE && lost == 0
    });
}

/// Gives how many bytes were sent meanwhile, how many datagrams were lost, and what was dropped on each host.
fn a_hundred_flaps(cabled: &mut Cabled) -> (u64, u64, [Counts; 2]) {
    let Cabled { cables, a, b, .. } = &mut *cabled;
    let duration = Duration::from_secs(14);
    let load = Load {
        size: 500,
        duration,
        rate_per_second: Some(1000),
        real_time: false,
    };
    let (from, to) = (&a.namespace, &b.namespace);
    let at = |port| SocketAddr::new(address(B), port);
    let (transfer, report) = scope(|scope| {
        let transfer = scope.spawn(|| {
            let amount = Amount::Time(duration);
            stream::transfer(from, to, at(7102), amount, Protocol::Tcp, now()).unwrap()
        });
        let messages = scope.spawn(|| messages::measure(from, to, at(7103), load).unwrap());
        // One of the two at a time, and of different lengths: between two hellos, and over them.
        for flap in 0..100u64 {
            let (cable, side) = CUTS[flap as usize % CUTS.len()];
            let down = Duration::from_millis([20, 50, 5, 110][(flap / 4) as usize % 4]);
            cables[cable].cut_for(side, down).unwrap();
            pause(Duration::from_millis(80));
        }
        (transfer.join().unwrap(), messages.join().unwrap())
    });
    let (right, sent) = (transfer.right_bytes, transfer.sent_bytes);
    assert!(transfer.is_whole(), "{right} of {sent} bytes right");
    assert_once_in_order(&report, [a, b]);
    cabled.assert_all_used_again();
    (sent, report.lost(), cabled.drops())
}

#[test]
fn after_kill_9_in_the_middle_the_line_comes_back_over_all_links_and_leaves_nothing() {
    live!(wire::shaping_unavailable());
    let cabled = Cabled::up("killed", &[100, 100]);
    // What hosts look like that never had a line: their cables, and nothing else of ours.
    cabled.b.down().unwrap();
    wait_for("no tentative address", SOON, || {
        let addresses = cabled.b.namespace.exec(["ip", "address"]);
        addresses.is_ok_and(|text| !text.contains("tentative"))
    })
    .unwrap();
    let before = dump(&cabled.b.namespace);
    cabled.b_up();
    cabled.wait();
    scope(|scope| {
        // It may break, or go on once the address is there again.
        let broken = scope.spawn(|| send(&cabled.a, &cabled.b, B, 60 * MEBIBYTE));
        pause(Duration::from_millis(1000));
        kill(&cabled.b, Signal::KILL);
        cabled.b_up();
        let transfer = broken.join().unwrap();
        let (right, arrived) = (transfer.right_bytes, transfer.arrivals.bytes());
        assert_eq!(right, arrived, "what arrived is right");
    });
    cabled.a.wait_for_ping(address(B), SOON).unwrap();
    cabled.wait();
    cabled.assert_all_used_again();
    assert_sent(&cabled.b, &cabled.a, A, 4 * MEBIBYTE);
    cabled.b.down().unwrap();
    assert_undone(&before, &cabled.b, "kill -9, up and down");
}

fn switch(tag: &str) -> Namespace {
    let switch = Namespace::create(tag).unwrap();
    wire::bridge(&switch, "br0", &[]).unwrap();
    switch
}

fn plug(host: &Namespace, interface: &str, switch: &Namespace, port: &str) {
    wire::veth((host, interface), (switch, port)).unwrap();
    switch
        .exec(["ip", "link", "set", port, "master", "br0"])
        .unwrap();
}

/// Everyone reaches everyone, by ARP and TCP, and hears a group frame of everyone once.
fn assert_all_talk(hosts: &[Host]) {
    for host in hosts {
        host.wait_for_peers(hosts.len() - 1).unwrap();
    }
    let mut wrong = Vec::new();
    for (n, from) in (1..).zip(hosts) {
        for (m, to) in (1..).zip(hosts).filter(|&(m, _)| n != m) {
            let at = format!("10.9.0.{m}");
            if from.wait_for_ping(address(&at), SOON).is_err() {
                wrong.push(format!("{n} has no answer of {m}"));
            } else if !send(from, to, &at, 2 * MEBIBYTE).is_whole() {
                wrong.push(format!("not all of {n}'s transfer to {m} arrived"));
            }
        }
    }
    for (n, from) in (1..).zip(hosts) {
        for (m, counts) in group_counts(n, from, hosts) {
            if counts.iter().any(|&count| count != 1) {
                wrong.push(format!("{n}'s broadcasts came so often to {m}: {counts:?}"));
            }
        }
    }
    let states = || hosts.iter().map(status).collect::<Vec<_>>();
    assert!(wrong.is_empty(), "{wrong:#?}\n{:#?}", states());
}

/// How often each of a few broadcasts of a host came to each other's `pt0`.
fn group_counts(number: usize, from: &Host, hosts: &[Host]) -> Vec<(usize, [u32; 10])> {
    const PORT: u16 = 7105;
    let socket = |host: &Host, port: u16| -> UdpSocket {
        let open = || -> UdpSocket {
            let socket = UdpSocket::bind(("0.0.0.0", port)).unwrap();
            // The link's own stack may hear it as well: that is another matter.
            setsockopt(&socket, BindToDevice, &"pt0".into()).unwrap();
            socket.set_broadcast(true).unwrap();
            socket
        };
        host.namespace.in_namespace(open).unwrap()
    };
    let others = (1..).zip(hosts).filter(|&(other, _)| other != number);
    let receivers: Vec<_> = others.map(|(m, host)| (m, socket(host, PORT))).collect();
    let sender = socket(from, 0);
    for n in 0..10u8 {
        sender.send_to(&[n], ("10.9.0.255", PORT)).unwrap();
        pause(Duration::from_millis(10));
    }
    let count = |(m, receiver): (usize, UdpSocket)| {
        let mut counts = [0; 10];
        let mut buffer = [0; 16];
        let silence = Some(Duration::from_millis(300));
        receiver.set_read_timeout(silence).unwrap();
        while let Ok(len) = receiver.recv(&mut buffer) {
            assert_eq!(len, 1, "a broadcast of ours");
            counts[usize::from(buffer[0])] += 1;
        }
        (m, counts)
    };
    receivers.into_iter().map(count).collect()
}

#[test]
fn three_hosts_with_different_sets_of_links_all_talk() {
    live!();
    let standing = Standing::wired("sets", "a-s1 a-s2 a-s3 b-s1 b-s2 c-s2 c-s3");
    assert_all_talk(&standing.hosts);
}

#[test]
fn hosts_whose_sets_have_one_link_in_common_each_all_talk() {
    live!();
    let standing = Standing::wired("rings", "a-s1 a-s2 b-s2 b-s3 c-s3 c-s1");
    assert_all_talk(&standing.hosts);
}

#[test]
fn three_hosts_in_a_triangle_without_a_switch_all_talk() {
    live!();
    let standing = Standing::wired("triangle", "a-b b-c c-a");
    assert_all_talk(&standing.hosts);
}

/// What the table of a switch said of each address: the ports, one after the other.
fn moves(monitored: &str) -> Vec<String> {
    let mut ports: Vec<(String, String)> = Vec::new();
    let mut moves = Vec::new();
    for line in monitored.lines().filter(|l| !l.contains("Deleted")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        // "02:70:… dev h1eth0 master br0": what belongs to the switch itself is permanent.
        let [address, "dev", port, ..] = words[..] else {
            continue;
        };
        if words.contains(&"permanent") {
            continue;
        }
        match ports.iter_mut().find(|(of, _)| of == address) {
            Some((_, last)) if last != port => {
                moves.push(format!("{address} from {last} to {port}"));
                *last = port.to_owned();
            }
            Some(_) => {}
            None => ports.push((address.to_owned(), port.to_owned())),
        }
    }
    moves
}

#[test]
fn a_switch_with_two_ports_of_each_host_never_sees_an_address_move() {
    live!();
    let switch = switch("flap");
    let monitor = switch
        .spawn(["stdbuf", "-oL", "bridge", "monitor", "fdb"])
        .unwrap();
    let mut hosts = Vec::new();
    for number in 1..=2 {
        let host = Host::create("flap", packtrain()).unwrap();
        for name in ["eth0", "eth1"] {
            plug(&host.namespace, name, &switch, &format!("h{number}{name}"));
        }
        let address = format!("10.9.0.{number}/24");
        let links = ["eth0", "eth1"];
        host.up_over("pt0", &links, &["--address", &address])
            .unwrap();
        hosts.push(host);
    }
    // Without packtrain: frames to and from it have pt0's address.
    let plain = Host::create("flap", packtrain()).unwrap();
    plug(&plain.namespace, "eth0", &switch, "plain");
    wire::add_address(&plain.namespace, "eth0", "10.9.0.3/24").unwrap();
    assert_all_talk(&hosts);
    for (host, at) in [(&hosts[0], "10.9.0.1"), (&hosts[1], B)] {
        plain.wait_for_ping(address(at), SOON).unwrap();
        assert_sent(&plain, host, at, 4 * MEBIBYTE);
        assert_sent(host, &plain, "10.9.0.3", 4 * MEBIBYTE);
    }
    assert_sent(&hosts[0], &hosts[1], B, 20 * MEBIBYTE);
    let monitored = monitor.terminate().unwrap();
    let pt0 = status(&hosts[0]).address;
    assert!(monitored.contains(&pt0), "{pt0} was learned: {monitored}");
    let moves = moves(&monitored);
    assert!(moves.is_empty(), "{moves:#?}\n{monitored}");
}

#[test]
fn a_host_without_packtrain_goes_on_when_the_link_that_it_is_spoken_to_by_is_cut() {
    live!();
    let switch = switch("home");
    let ours = Host::create("home", packtrain()).unwrap();
    let plain = Host::create("home", packtrain()).unwrap();
    let mut cables = Vec::new();
    for name in ["eth0", "eth1"] {
        let port = format!("p{name}");
        plug(&ours.namespace, name, &switch, &port);
        cables.push(Cable::find((&ours.namespace, name), (&switch, &port)).unwrap());
    }
    plug(&plain.namespace, "eth0", &switch, "plain");
    ours.up_over("pt0", &["eth0", "eth1"], &["--address", "10.9.0.1/24"])
        .unwrap();
    wire::add_address(&plain.namespace, "eth0", "10.9.0.3/24").unwrap();
    for (cable, side) in CUTS {
        plain.wait_for_ping(address("10.9.0.1"), SOON).unwrap();
        cables[cable].cut(side).unwrap();
        plain
            .wait_for_ping(address("10.9.0.1"), SOON)
            .unwrap_or_else(|error| {
                panic!("cable {cable} at {side:?}: {error}\n{:#?}", status(&ours))
            });
        assert_sent(&plain, &ours, "10.9.0.1", MEBIBYTE);
        assert_sent(&ours, &plain, "10.9.0.3", MEBIBYTE);
        cables[cable].mend(side).unwrap();
        wait_for("the link", SOON, || {
            let mut links = status(&ours).links.into_iter();
            links.all(|link| link.state == LinkCondition::Up)
        })
        .unwrap();
    }
    let trips = measure::ping_count(&plain.namespace, "10.9.0.1", Duration::from_millis(20), 20);
    let trips = trips.unwrap();
    assert_eq!(trips.received, trips.sent);
}
