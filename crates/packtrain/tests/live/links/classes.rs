//! Classes that go by some links alone, on lines that run.

use std::time::Duration;

use packtrain::lab::host::Host;
use packtrain::lab::messages::{Load, Report, measure};
use packtrain::lab::wire;

use super::commands::{done, fails, lines_of_one_link};
use crate::common::cabled::pause;
use crate::common::{B, steady};

/// Two hosts and two cables.
fn cabled(more: &[&str]) -> (Host, Host) {
    let (a, b) = lines_of_one_link("byclass", more);
    done(&b, "link add pt0 eth2");
    done(&a, "link add pt0 eth2");
    (a, b)
}

/// Messages of so many bytes, so many a second, to this port.
fn messages(
    a: &Host,
    b: &Host,
    port: u16,
    (size, per_second): (usize, u64),
    milliseconds: u64,
) -> Report {
    let load = Load {
        size,
        duration: Duration::from_millis(milliseconds),
        rate_per_second: Some(per_second),
        real_time: true,
    };
    let at = format!("{B}:{port}").parse().unwrap();
    measure(&a.namespace, &b.namespace, at, load).unwrap()
}

/// A thousand messages a second to this port; how they fared, and how many trains each link took meanwhile.
fn send(a: &Host, b: &Host, port: u16) -> (Report, [u64; 2]) {
    let trains = || {
        let status = a.status().unwrap();
        let of = |name: &str| {
            let link = status.links.iter().find(|link| link.name == name);
            link.map_or(0, |link| link.trains_tx)
        };
        ["eth1", "eth2"].map(of)
    };
    let before = trains();
    let report = messages(a, b, port, (200, 1000), 400);
    let after = trains();
    let what = format!("{report:?}\n{:?}", a.status().unwrap());
    assert_eq!(
        (report.lost(), report.reordered, report.duplicated),
        (0, 0, 0),
        "{what}"
    );
    (report, [after[0] - before[0], after[1] - before[1]])
}

/// Whether one link took the 400 messages: where a processor is busy, a train has up to four. Beside it names are
/// looked for by ARP, and replies go back.
fn by_one(link: u64, beside: u64) -> bool {
    link >= 100 && beside * 6 <= link
}

#[test]
fn frames_of_a_class_go_by_its_links_and_by_others_while_those_are_gone() {
    live!();
    let (a, b) = cabled(&["--path", "engine"]);
    let added = done(
        &a,
        "class add pt0 --name own --match udp --links eth2 --json",
    );
    let class: serde_json::Value = serde_json::from_str(&added.out).unwrap();
    assert_eq!(class["links"], serde_json::json!(["eth2"]));
    let (_, [first, second]) = send(&a, &b, 7000);
    assert!(by_one(second, first), "{first} and {second}");
    fails(
        &a,
        "class add pt0 --match udp --links eth7",
        4,
        "error: eth7 is no link of pt0\n       pt0 has: eth1, eth2\n",
    );

    // Without the link the class stays, and waits for it.
    done(&a, "link remove pt0 eth2");
    let (_, [first, second]) = send(&a, &b, 7000);
    assert!(by_one(first, second), "{first} and {second}");
    assert_eq!(a.status().unwrap().classes[0].links, ["eth2"]);
    done(&a, "link add pt0 eth2");
    let (_, [first, second]) = send(&a, &b, 7000);
    assert!(by_one(second, first), "{first} and {second}");

    // A cable that is pulled.
    a.namespace.sh("ip link set eth2 down").unwrap();
    pause(Duration::from_millis(200));
    let (_, [first, second]) = send(&a, &b, 7000);
    assert!(by_one(first, second), "{first} and {second}");
    a.namespace.sh("ip link set eth2 up").unwrap();
    pause(Duration::from_secs(3));
    let (_, [first, second]) = send(&a, &b, 7000);
    assert!(by_one(second, first), "{first} and {second}");
    done(&a, "class remove pt0 own");
}

/// Trains that the receiver has held for longer than 4 ms because others were missing.
fn held_long(host: &Host) -> u64 {
    let status = host.status().unwrap();
    let buckets = status.peers[0].hold.buckets.iter();
    let long = buckets.filter(|bucket| bucket.below_s > 0.005);
    long.map(|bucket| bucket.trains).sum()
}

/// Else what comes by the quick link waits for what left before it by the slow one, or the host is held back with all that it
/// sends, or the slow one is not used. A process that is not run for some milliseconds is late itself, and so are a few
/// messages: that none is held, and that they do not wait on average, holds all the same.
#[test]
fn a_class_on_a_slow_link_delays_nobody_else() {
    live!(alone, wire::shaping_unavailable());
    let (a, b) = cabled(&["--path", "engine"]);
    for host in [&a, &b] {
        wire::shape(&host.namespace, "eth2", 2).unwrap();
    }
    // More than the slow link carries: it waits there and before, and is dropped from its own queue. All that is sent here is zeros, of which
    // a coded train would have hardly a byte.
    let matches = "udp dport 7100";
    let own = ["--links", "eth2", "--compress", "off"];
    a.packtrain(&[&["class", "add", "pt0", "--match", matches][..], &own].concat())
        .unwrap();
    std::thread::scope(|scope| {
        let bulk = scope.spawn(|| messages(&a, &b, 7100, (1200, 500), 4000));
        pause(Duration::from_millis(1000));
        let what = "messages beside a slow class";
        let measure = || {
            let before = held_long(&b);
            let (report, [_, slow]) = send(&a, &b, 7000);
            (report, slow, held_long(&b) - before)
        };
        let quick = |(report, slow, held): &(Report, u64, u64)| {
            report.delay_mean_us < 5000.0 && *slow > 30 && *held == 0
        };
        steady::judge(what, measure, quick);
        let bulk = bulk.join().unwrap();
        assert!(bulk.delivered > 300 && bulk.reordered == 0, "{bulk:?}");
    });
}

#[test]
fn flows_that_come_to_other_links_while_they_send_keep_their_order() {
    live!(alone, wire::shaping_unavailable());
    let (a, b) = cabled(&["--path", "engine"]);
    // What is given to it stands there for a while.
    wire::shape(&a.namespace, "eth2", 5).unwrap();
    let report = std::thread::scope(|scope| {
        let sending = scope.spawn(|| messages(&a, &b, 7200, (200, 2000), 3200));
        for link in ["eth2", "eth1", "eth2", "eth1", "eth2"] {
            pause(Duration::from_millis(300));
            done(
                &a,
                &format!("class add pt0 --name own --match udp --links {link}"),
            );
            pause(Duration::from_millis(300));
            done(&a, "class remove pt0 own");
        }
        sending.join().unwrap()
    });
    assert_eq!(
        (report.lost(), report.reordered, report.duplicated),
        (0, 0, 0),
        "{report:?}"
    );
}
