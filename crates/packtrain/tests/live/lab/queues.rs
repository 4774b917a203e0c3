//! Disciplines of a wire's queue, with real frames of a real kernel.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use packtrain::lab::emulator::counters::DirectionStatus;
use packtrain::lab::messages::{self, Load, Report};
use packtrain::lab::namespaces::Namespace;
use packtrain::lab::stream::{self, Amount, Protocol};
use packtrain::lab::topology::direction::Port;
use packtrain::lab::topology::{Change, TopologyOptions};
use packtrain::lab::wire;

use crate::common::cabled::now;
use crate::common::standing::Standing;
use crate::common::steady;

/// Two plain hosts, and a wire for each discipline; no port holds back what is to meet in the wire's queue. What the kernel
/// says by itself in IPv6, which no mark protects, is not said.
fn wires(tag: &str, all: &str, disciplines: &[&str]) -> Standing {
    let words = all.split_whitespace().collect::<Vec<_>>();
    let [rate, queue, delay] = words[..] else {
        panic!("rate, queue and delay: {all}");
    };
    let options = TopologyOptions {
        links: disciplines.len(),
        packtrain: false,
        wires: Change {
            rate: Some(rate.parse().unwrap()),
            queue: Some(queue.parse().unwrap()),
            delay: Some(delay.parse().unwrap()),
            ..Change::default()
        },
        ..TopologyOptions::default()
    };
    let mut topology = options.topology().unwrap();
    for (wire, discipline) in topology.wires.iter_mut().zip(disciplines) {
        for direction in &mut wire.directions {
            direction.port = Port::default();
            direction.wire.queue.discipline = discipline.parse().unwrap();
        }
    }
    let standing = Standing::up(tag, &topology);
    for host in &standing.hosts {
        let all = "net/ipv6/conf/all/disable_ipv6";
        host.namespace.sysctl(all, "1").unwrap();
    }
    standing
}

/// The two hosts, and the second one's address on a wire.
fn ends(standing: &Standing, wire: usize, port: u16) -> ([&Namespace; 2], SocketAddr) {
    let (_, address) = standing.lab.addresses()[1].links[wire];
    let hosts = [&standing.hosts[0].namespace, &standing.hosts[1].namespace];
    (hosts, SocketAddr::new(address.into(), port))
}

fn counters(standing: &Standing, wire: usize) -> DirectionStatus {
    let status = standing.lab.status().unwrap();
    status.wires[wire].directions[0].clone()
}

/// What long messages had of what short ones had, in bytes, where they offer 30 Mbit/s and 6 to a wire of 10.
fn long_to_short(standing: &Standing, wire: usize) -> f64 {
    const SIZES: [usize; 2] = [1400, 200];
    const OFFERED_BPS: [u64; 2] = [30_000_000, 6_000_000];
    let send = |which: usize| -> Report {
        let (hosts, at) = ends(standing, wire, 7400 + which as u16);
        let load = Load {
            size: SIZES[which],
            duration: Duration::from_millis(900),
            rate_per_second: Some(OFFERED_BPS[which] / (8 * SIZES[which] as u64)),
            real_time: false,
        };
        messages::measure(hosts[0], hosts[1], at, load).unwrap()
    };
    let [long, short] = thread::scope(|scope| {
        let both = [0, 1].map(|which| scope.spawn(move || send(which)));
        both.map(|one| one.join().unwrap())
    });
    let bytes = |report: &Report, which: usize| (report.delivered as usize * SIZES[which]) as f64;
    bytes(&long, 0) / bytes(&short, 1)
}

#[test]
fn a_wire_with_drr_shares_by_bytes_between_two_sizes_of_frames_and_drop_tail_does_not() {
    live!();
    // Bounded in packets: a queue that is full by bytes has room for a short frame more often than for a long one.
    let standing = wires("drr", "10mbit 60p 0ms", &["drr:1514b", "drop-tail"]);
    // Headers count too: of short ones they are a fifth, so that these have 0.83 of the payload.
    steady::judge(
        "long messages ÷ short ones, drr",
        || long_to_short(&standing, 0),
        |ratio| (0.9..1.5).contains(ratio),
    );
    steady::judge(
        "long messages ÷ short ones, drop tail",
        || long_to_short(&standing, 1),
        |ratio| *ratio > 2.5,
    );
    for wire in [0, 1] {
        assert!(counters(&standing, wire).dropped.queue_full > 1000);
    }
}

#[test]
fn codel_and_fq_codel_with_ecn_mark_what_they_would_drop_and_its_checksum_is_right() {
    live!();
    let disciplines = ["codel:ecn", "fq-codel:ecn", "codel"];
    let standing = wires("ecn", "20mbit 8mb 5ms", &disciplines);
    for host in &standing.hosts {
        host.namespace.sysctl("net/ipv4/tcp_ecn", "1").unwrap();
    }
    let b = &standing.hosts[1].namespace;
    let before = wire::congestion_experienced(b).unwrap();
    thread::scope(|scope| {
        for (wire, discipline) in disciplines.iter().enumerate() {
            let standing = &standing;
            scope.spawn(move || {
                let (hosts, at) = ends(standing, wire, 7410 + wire as u16);
                let amount = Amount::Time(Duration::from_millis(1500));
                let transfer =
                    stream::transfer(hosts[0], hosts[1], at, amount, Protocol::Tcp, now()).unwrap();
                assert!(transfer.is_whole(), "{discipline}");
            });
        }
    });
    let [codel, fq_codel, dropping] = [0, 1, 2].map(|wire| counters(&standing, wire));
    for marking in [&codel, &fq_codel] {
        assert!(marking.marked_frames > 0, "{marking:?}");
        assert_eq!(marking.dropped.total(), 0, "{marking:?}");
    }
    assert!(dropping.dropped.codel > 0, "{dropping:?}");
    assert_eq!(dropping.marked_frames, 0, "{dropping:?}");
    // A kernel that finds a wrong checksum counts no mark.
    let seen = wire::congestion_experienced(b).unwrap() - before;
    assert_eq!(seen, codel.marked_frames + fq_codel.marked_frames);
}
