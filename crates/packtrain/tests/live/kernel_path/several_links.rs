//! Over several links: what may be lost goes past the engines by each of them, and what may not is lost nowhere.

use std::net::SocketAddr;
use std::thread::scope;
use std::time::Duration;

use packtrain::lab::cable::{Cable, Side};
use packtrain::lab::host::Host;
use packtrain::lab::messages::Report;
use packtrain::lab::namespaces::Namespace;
use packtrain::lab::path_changes::{self, Flows, Pace};
use packtrain::lab::stream::{self, Amount, Protocol, Transfer};
use packtrain::lab::{wait_for, wire};
use packtrain::status::StatusDocument;

use crate::common::cabled::{
    Cabled, MEBIBYTE, address, assert_once_in_order, assert_sent, now, pause, status,
};
use crate::common::undo::SOON;
use crate::common::{B, packtrain, steady};

const PORT: u16 = 7000;
const SIZES: [usize; 8] = [64, 64, 200, 200, 500, 500, 1000, 1000];
const FLOWS: Flows<'_> = Flows {
    sizes: &SIZES,
    rate_per_second: 500,
    duration: Duration::from_secs(4),
};

/// Two cables, and a class of datagrams that may be lost with one.
fn two_cables() -> Cabled {
    let cabled = Cabled::up("lossok", &[100, 100]);
    for host in [&cabled.a, &cabled.b] {
        for cable in cabled.names() {
            // Two processors that take turns at a cable swap frames by themselves.
            wire::receive_on_cpu(&host.namespace, cable, 0).unwrap();
        }
        let matches = "udp dport 7000-7007";
        let add = ["class", "add", "pt0", "--match", matches, "--loss-ok"];
        host.packtrain(&add).unwrap();
        wait_until_open(host);
    }
    cabled
}

fn open_to(seen: &StatusDocument) -> Vec<Option<&str>> {
    let links = seen.peers.iter().flat_map(|peer| &peer.links);
    links.map(|link| link.direct.as_deref()).collect()
}

fn wait_until_open(host: &Host) {
    wait_for("both links open to what may be lost", SOON, || {
        open_to(&status(host)) == [Some("loss_ok"); 2]
    })
    .unwrap_or_else(|error| panic!("{error}: {:?}", status(host)));
}

fn send(cabled: &Cabled) -> Vec<Report> {
    let (from, to) = (&cabled.a.namespace, &cabled.b.namespace);
    let at = SocketAddr::new(address(B), PORT);
    FLOWS.send(from, to, at).unwrap()
}

/// Since a moment, by each link: all, and of them directly; and bytes by the engine.
fn direct_frames(cabled: &Cabled) -> u64 {
    status(&cabled.a).direct.tx.frames
}

fn lost(reports: &[Report]) -> u64 {
    reports.iter().map(Report::lost).sum()
}

#[test]
fn what_may_be_lost_goes_past_the_engine_by_each_link_and_all_else_by_the_engine() {
    live!(wire::shaping_unavailable());
    let cabled = two_cables();
    let hosts = [&cabled.a, &cabled.b];
    let of_cables = || -> Vec<u64> {
        let names = cabled.names().into_iter();
        let sent = names.map(|name| wire::sent(&cabled.a.namespace, name).unwrap().0);
        sent.collect()
    };
    let run = || {
        let (direct, by_cable) = (direct_frames(&cabled), of_cables());
        let reports = send(&cabled);
        for report in &reports {
            assert_once_in_order(report, hosts);
        }
        let sent: u64 = reports.iter().map(|report| report.sent).sum();
        let share = (direct_frames(&cabled) - direct) as f64 / sent as f64;
        let by_cable = of_cables().into_iter().zip(by_cable);
        let by_each: Vec<u64> = by_cable.map(|(now, then)| now - then).collect();
        (lost(&reports), share, by_each)
    };
    let what = "datagrams lost, share that went directly, frames by each cable";
    steady::judge(what, run, |(lost, share, by_each)| {
        *lost == 0 && *share > 0.9 && by_each.iter().all(|&frames| frames > 1000)
    });
    let because = |host: &Host| status(host).peers[0].path_because.clone();
    assert_eq!(because(&cabled.a).as_deref(), Some("several_links"));
    let direct = direct_frames(&cabled);
    assert_sent(&cabled.a, &cabled.b, B, 4 * MEBIBYTE);
    assert_eq!(
        direct_frames(&cabled),
        direct,
        "a transfer is not to be lost"
    );
    // Each end has counted, and misses nothing.
    assert_eq!(status(&cabled.a).direct.lost, 0);
}

#[test]
fn a_link_that_is_pulled_takes_with_it_what_may_be_lost_and_nothing_else() {
    live!(wire::shaping_unavailable());
    let mut cabled = two_cables();
    let mut pulled = cabled.cables.remove(0);
    let run = || {
        let (reports, transfer) = while_pulled(&cabled, &mut pulled);
        assert!(transfer.is_whole());
        for report in &reports {
            assert_once_in_order(report, [&cabled.a, &cabled.b]);
        }
        wait_until_open(&cabled.a);
        reports
    };
    // What was on its way, and little else.
    let most = |report: &Report| report.delivered * 10 > report.sent * 9;
    let what = "datagrams that arrived";
    steady::judge(what, run, |reports| reports.iter().all(most));
}

/// Sends both kinds, and pulls a cable after a second, for a second.
fn while_pulled(cabled: &Cabled, pulled: &mut Cable) -> (Vec<Report>, Transfer) {
    scope(|scope| {
        let reports = scope.spawn(|| send(cabled));
        let transfer = scope.spawn(|| {
            let amount = Amount::Time(FLOWS.duration);
            let (from, to) = (&cabled.a.namespace, &cabled.b.namespace);
            let at = SocketAddr::new(address(B), 7100);
            stream::transfer(from, to, at, amount, Protocol::Tcp, now()).unwrap()
        });
        pause(Duration::from_secs(1));
        pulled.cut_and_tell(Side::B).unwrap();
        wait_for("one link", SOON, || {
            let seen = status(&cabled.a);
            open_to(&seen).iter().flatten().count() == 1
        })
        .unwrap();
        pause(Duration::from_secs(1));
        pulled.mend(Side::B).unwrap();
        (reports.join().unwrap(), transfer.join().unwrap())
    })
}

/// Each time both links are closed to them, and opened again.
#[test]
fn flows_that_change_their_way_over_several_links_lose_nothing_and_overtake_nothing() {
    live!(wire::shaping_unavailable());
    let cabled = two_cables();
    let (a, b) = (&cabled.a, &cabled.b);
    let run = || {
        let before = status(a).direct;
        let reports = path_changes::during(a, Pace::often(1500), || send(&cabled)).unwrap();
        for report in &reports {
            assert_once_in_order(report, [a, b]);
        }
        let after = status(a).direct;
        let changes = after.changes - before.changes;
        let direct = after.tx.frames - before.tx.frames;
        (lost(&reports), changes, direct, cabled.drops())
    };
    let what = "datagrams lost, changes, frames that went directly, drops";
    steady::judge(what, run, |&(lost, changes, direct, _)| {
        lost == 0 && changes > 500 && direct > 1000
    });
    let seen = status(b).direct;
    assert!(seen.fences > 100, "{seen:?}");
}

/// Cables as fast as the machine: the engine is the bound. What it has is let rest, and what begins then goes past it as well, until
/// little is sent.
#[test]
fn what_exceeds_the_engines_rate_goes_past_it() {
    live!(alone);
    let cabled = Cabled::up_unshaped("surplus", 2);
    let (a, b) = (&cabled.a, &cabled.b);
    wait_for("both links open", SOON, || {
        open_to(&status(a)) == [Some("loss_ok"); 2]
    })
    .unwrap();
    let takes_surplus = || status(a).direct.takes_surplus;
    let transfer = |port| {
        let amount = Amount::Time(Duration::from_secs(3));
        let at = SocketAddr::new(address(B), port);
        let (from, to) = (&a.namespace, &b.namespace);
        stream::transfer(from, to, at, amount, Protocol::Tcp, now()).unwrap()
    };
    let (first, second, directly) = scope(|scope| {
        let transfer = &transfer;
        // Several: one is not enough everywhere to leave the engine something unread whenever it reads.
        let first =
            [7100, 7102, 7103, 7104, 7105, 7106].map(|port| scope.spawn(move || transfer(port)));
        wait_for("a full engine", SOON, takes_surplus).unwrap();
        assert_eq!(open_to(&status(a)), [Some("all"); 2]);
        let before = status(a).direct.tx.bytes;
        let second = transfer(7101);
        let directly = status(a).direct.tx.bytes - before;
        (first.map(|first| first.join().unwrap()), second, directly)
    });
    assert!(first.iter().all(|first| first.is_whole()) && second.is_whole());
    // While the processor is away, little is sent: then the engine is not full, and takes what rests in that moment.
    assert!(
        directly >= second.sent_bytes / 4 * 3,
        "{directly} of {} bytes",
        second.sent_bytes
    );
    let seen = status(a).direct;
    assert!(seen.rests > 0, "{seen:?}");
    wait_for("an engine with little to do", SOON, || !takes_surplus()).unwrap();
    assert_eq!(open_to(&status(a)), [Some("loss_ok"); 2]);
    let before = direct_frames(&cabled);
    // So little is sent before it could be taken for what filled the engine before.
    assert_sent(a, b, B, MEBIBYTE / 8);
    assert_eq!(direct_frames(&cabled), before);
}

/// So fast that no engine would take over.
const FAST_MBIT: u32 = 3000;
/// A frame of 64 KB is on it for 0.4 ms.
const SLOW_MBIT: u32 = 1200;

fn fast_links<const N: usize>(hosts: [&Host; 2], names: [&str; N]) {
    for host in hosts {
        for name in names {
            wire::shape_fast(&host.namespace, name, FAST_MBIT).unwrap();
            wire::receive_on_cpu(&host.namespace, name, 0).unwrap();
        }
    }
}

/// TCP may be lost with a link.
fn tcp_is_loss_ok(hosts: [&Host; 2]) {
    for host in hosts {
        let add = ["class", "add", "pt0", "--match", "tcp", "--loss-ok"];
        host.packtrain(&add).unwrap();
    }
}

fn transfer(a: &Host, b: &Host, duration: Duration) -> Transfer {
    let at = SocketAddr::new(address(B), 7200);
    let (from, to) = (&a.namespace, &b.namespace);
    let amount = Amount::Time(duration);
    stream::transfer(from, to, at, amount, Protocol::Tcp, now()).unwrap()
}

#[test]
fn a_flow_that_may_be_lost_with_a_link_takes_each_large_frame_by_another_one() {
    live!(wire::shaping_unavailable());
    let cabled = Cabled::up_unshaped("spread", 2);
    let (a, b) = (&cabled.a, &cabled.b);
    fast_links([a, b], ["eth1", "eth2"]);
    wait_for("queues to be seen", SOON, || {
        let mut links = status(a).links.into_iter();
        links.all(|link| link.qdisc.as_deref() == Some("htb"))
    })
    .unwrap();
    tcp_is_loss_ok([a, b]);
    wait_until_open(a);
    // What a peer has answered says whether it looks for what is late.
    assert_sent(a, b, B, 8 * MEBIBYTE);
    let run = || {
        let before = status(a);
        let sent = transfer(a, b, Duration::from_secs(2));
        assert!(sent.is_whole());
        let after = status(a);
        let of_each = |seen: &StatusDocument| -> Vec<f64> {
            seen.links.iter().map(|link| link.tx.bytes as f64).collect()
        };
        let of_each = of_each(&after).into_iter().zip(of_each(&before));
        let of_each: Vec<f64> = of_each.map(|(after, before)| after - before).collect();
        let all: f64 = of_each.iter().sum();
        let direct = after.direct.tx.bytes - before.direct.tx.bytes;
        let share = of_each.iter().map(|bytes| bytes / all);
        let striped = after.direct.striped - before.direct.striped;
        let spread = |link: &&packtrain::status::PeerLink| link.direct_stripes;
        let spread = after.peers[0].links.iter().filter(spread).count();
        let share = share.fold(1.0, f64::min);
        (share, direct as f64 / all, striped, spread)
    };
    let what = "least share of a link, share that went directly, frames spread, over how many";
    steady::judge(what, run, |&(least, direct, striped, spread)| {
        least > 0.25 && direct > 0.9 && striped > 100 && spread == 2
    });
}

#[test]
fn frames_are_smaller_while_flows_are_spread_over_a_link_that_is_slow() {
    live!(wire::shaping_unavailable());
    let cabled = Cabled::up_unshaped("sized", 2);
    let (a, b) = (&cabled.a, &cabled.b);
    fast_links([a, b], ["eth1"]);
    for host in [a, b] {
        wire::shape_fast(&host.namespace, "eth2", SLOW_MBIT).unwrap();
        wire::receive_on_cpu(&host.namespace, "eth2", 0).unwrap();
    }
    tcp_is_loss_ok([a, b]);
    wait_until_open(a);
    assert_sent(a, b, B, 8 * MEBIBYTE);
    let largest = || {
        let before = status(a).direct.striped;
        assert!(transfer(a, b, Duration::from_secs(2)).is_whole());
        (status(a).direct.striped - before, frame_max(a))
    };
    // What the slow one takes in 132 µs, as far as it was measured well.
    steady::judge("frames spread, the largest", largest, |&(spread, bytes)| {
        spread > 100 && (12_000..30_000).contains(&bytes)
    });
    wait_for("frames as large as ever", SOON * 2, || {
        frame_max(a) == 65_536
    })
    .unwrap();
}

/// The largest frame that the host makes for `pt0`.
fn frame_max(host: &Host) -> u32 {
    let text = host.namespace.sh("ip -d link show pt0").unwrap();
    let (_, rest) = text.split_once(" gso_max_size ").unwrap();
    rest.split(' ').next().unwrap().parse().unwrap()
}

/// ```text
///  a ── eth1 ─────────────────────── eth1 ── b
///    ── eth2 ── a bridge: 400 Mbit/s ── eth2 ──
/// ```
#[test]
fn what_a_queue_behind_a_link_delays_is_found_by_what_it_disorders_and_handed_back() {
    live!(wire::shaping_unavailable());
    let [a, b] = [(); 2].map(|()| Host::create("hidden", packtrain()).unwrap());
    let switch = Namespace::create("hidden").unwrap();
    wire::veth((&a.namespace, "eth1"), (&b.namespace, "eth1")).unwrap();
    for (host, port) in [(&a, "to-a"), (&b, "to-b")] {
        wire::veth((&host.namespace, "eth2"), (&switch, port)).unwrap();
    }
    wire::bridge(&switch, "br0", &["to-a", "to-b"]).unwrap();
    wire::shape_fast(&switch, "to-b", 400).unwrap();
    let short = "tc qdisc add dev to-b parent 1:1 pfifo limit 20";
    switch.sh(short).unwrap();
    fast_links([&a, &b], ["eth1", "eth2"]);
    for (number, host) in (1..).zip([&a, &b]) {
        let to = format!("10.9.0.{number}/24");
        host.up_over("pt0", &["eth1", "eth2"], &["--address", &to])
            .unwrap();
    }
    tcp_is_loss_ok([&a, &b]);
    wait_until_open(&a);
    let handed_back = || {
        let seen = status(&a).direct;
        seen.closures_because.disorder + seen.striping_given_up
    };
    for _ in 0..5 {
        assert!(transfer(&a, &b, Duration::from_secs(2)).is_whole());
        if handed_back() > 0 {
            break;
        }
    }
    let seen = status(&a);
    assert!(handed_back() > 0, "{:#?} {:#?}", seen.direct, seen.peers);
    assert!(seen.peers[0].links[1].direct_late > 0, "{seen:#?}");
}
