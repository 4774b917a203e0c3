//! Where a link's frames are taken: behind tc, which no direct frame reaches, and before it while a bridge or the
//! like takes frames there.

use std::collections::BTreeSet;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use packtrain::lab::host::Host;
use packtrain::lab::messages::Report;
use packtrain::lab::path_changes::Flows;
use packtrain::lab::wait_for;
use packtrain::status::drop_reason;

use super::SetAtEnd;
use crate::common::cabled::{pause, status};
use crate::common::direct::wait_for_direct;
use crate::common::{A, B, Pair, pings_whole, steady, transfer};

/// EtherTypes that the daemon's sockets on the link are bound to, as the kernel writes them. The one of none sends.
const BEHIND_TC: [&str; 2] = ["0000", "88a8"];
const BEFORE_TC: [&str; 2] = ["0000", "0003"];
const SOON: Duration = Duration::from_secs(5);

fn sockets(host: &Host) -> BTreeSet<String> {
    let sh = |command: &str| host.namespace.sh(command).unwrap();
    let index = sh("cat /sys/class/net/eth1/ifindex");
    let table = sh("cat /proc/net/packet");
    let rows = table.lines().map(|row| row.split_whitespace().collect());
    rows.filter(|columns: &Vec<_>| columns.get(4) == Some(&index.trim()))
        .map(|columns| columns[3].to_owned())
        .collect()
}

fn wait_until_taken(host: &Host, expected: &[&str]) {
    let expected: BTreeSet<_> = expected.iter().map(ToString::to_string).collect();
    wait_for("other sockets", SOON, || sockets(host) == expected).unwrap_or_else(|error| {
        panic!("{error}: {expected:?}, there are {:?}", sockets(host));
    });
}

fn all_passes(pair: &Pair) {
    const BYTES: u64 = 3_000_000;
    assert_eq!(transfer(&pair.a, &pair.b, B, BYTES), BYTES);
    assert_eq!(transfer(&pair.b, &pair.a, A, BYTES), BYTES);
    for host in [&pair.a, &pair.b] {
        host.namespace.sh("ip neigh flush dev pt0").unwrap();
    }
    assert!(pings_whole(&pair.a, B, 1472), "to a neighbour to be found");
}

/// What our guard had no way to give to us.
fn lost_by_guard(host: &Host) -> u64 {
    let drops = &status(host).links[0].drops;
    drops.get(drop_reason::GUARD_LOST).copied().unwrap_or(0)
}

#[test]
fn a_bridge_or_a_macvlan_over_the_link_moves_its_sockets_and_all_goes_on() {
    live!();
    for path in ["auto", "engine"] {
        let pair = Pair::up_with("reception", 1500, &["--path", path]).unwrap();
        if path == "auto" {
            wait_for_direct(&pair.a);
        }
        wait_until_taken(&pair.b, &BEHIND_TC);
        all_passes(&pair);
        pair.b.namespace.sh("ip link add br1 type bridge").unwrap();
        let mut lost = 0;
        for (comes, goes) in [
            ("ip link set eth1 master br1", "ip link set eth1 nomaster"),
            (
                "ip link add mv1 link eth1 type macvlan mode bridge",
                "ip link del mv1",
            ),
        ] {
            assert_eq!(lost_by_guard(&pair.b), lost);
            pair.b.namespace.sh(comes).unwrap();
            wait_until_taken(&pair.b, &BEFORE_TC);
            // Until the daemon had heard of it; a hello or an acknowledgement may have come just then.
            lost = lost_by_guard(&pair.b);
            all_passes(&pair);
            pair.b.namespace.sh(goes).unwrap();
            wait_until_taken(&pair.b, &BEHIND_TC);
            all_passes(&pair);
        }
        // Who looks at the link is no reason.
        pair.b.namespace.sh("ip link set eth1 promisc on").unwrap();
        all_passes(&pair);
        wait_until_taken(&pair.b, &BEHIND_TC);
        assert_eq!(lost_by_guard(&pair.b), lost);
    }
}

/// It takes all that comes by the link for as long as its host wants frames for others, and trains pass meanwhile.
#[test]
fn trains_are_neither_lost_nor_swapped_while_the_sockets_move() {
    live!(alone);
    let pair = Pair::up_with("moves", 1500, &["--path", "engine"]).unwrap();
    wait_until_taken(&pair.b, &BEHIND_TC);
    let flows = Flows {
        sizes: &[64, 300, 1400],
        rate_per_second: 3000,
        duration: Duration::from_secs(6),
    };
    let run = || -> (Vec<Report>, u64) {
        let (ended, moves) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let _end = SetAtEnd(&ended);
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    for (state, expected) in [("on", &BEFORE_TC[..]), ("off", &BEHIND_TC)] {
                        let command = format!("ip link set pt0 promisc {state}");
                        pair.b.namespace.sh(&command).unwrap();
                        wait_until_taken(&pair.b, expected);
                        moves.fetch_add(1, Ordering::Relaxed);
                        pause(Duration::from_millis(5));
                    }
                }
            });
            let (from, to) = (&pair.a.namespace, &pair.b.namespace);
            let at = SocketAddr::new(B.parse().unwrap(), 7000);
            let reports = flows.send(from, to, at).unwrap();
            ended.store(true, Ordering::Relaxed);
            (reports, moves.load(Ordering::Relaxed))
        })
    };
    let what = "datagrams of each flow; moves";
    let (reports, _) = steady::judge(what, run, |(reports, moves)| {
        *moves >= 8 && reports.iter().all(|report| report.lost() == 0)
    });
    for report in reports {
        assert_eq!((report.reordered, report.duplicated), (0, 0), "{report:?}");
    }
}

/// Full-size ones, which have no sequence: their order among trains is the order in which they come.
#[test]
fn frames_that_go_as_they_are_keep_their_turn_among_trains() {
    const FULL: usize = 1472;
    const BURSTS: u32 = 2000;
    const LENGTHS: [usize; 8] = [FULL, 64, 64, FULL, FULL, 64, FULL, 64];
    live!();
    let pair = Pair::up_with("turns", 1500, &["--path", "engine"]).unwrap();
    wait_until_taken(&pair.b, &BEHIND_TC);
    assert!(pings_whole(&pair.a, B, FULL));
    let open = |host: &Host, address: &str| {
        let bind = || UdpSocket::bind((address, 0)).expect("the address is there");
        host.namespace.in_namespace(bind).unwrap()
    };
    let (sender, receiver) = (open(&pair.a, A), open(&pair.b, B));
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    let silence = Some(Duration::from_millis(500));
    receiver.set_read_timeout(silence).unwrap();
    let numbers = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut numbers = 0_u32..;
            for _ in 0..BURSTS {
                for (len, number) in LENGTHS.into_iter().zip(&mut numbers) {
                    let mut datagram = [0; FULL];
                    datagram[..4].copy_from_slice(&number.to_be_bytes());
                    sender.send(&datagram[..len]).unwrap();
                }
                pause(Duration::from_micros(200));
            }
        });
        let mut numbers = Vec::new();
        let mut datagram = [0; FULL];
        while receiver.recv(&mut datagram).is_ok() {
            numbers.push(u32::from_be_bytes(datagram[..4].try_into().unwrap()));
        }
        numbers
    });
    let overtaken = numbers.windows(2).filter(|two| two[0] >= two[1]).count();
    assert_eq!(overtaken, 0, "of {}", numbers.len());
    // The receiving socket may have no room for all.
    let sent = BURSTS as usize * LENGTHS.len();
    assert!(numbers.len() > sent / 2, "{} of {sent}", numbers.len());
    let trains = status(&pair.a).trains.tx;
    assert!(trains.marked > 1000, "{trains:?}");
    assert!(trains.trains > 1000, "{trains:?}");
}
