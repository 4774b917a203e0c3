//! An end that is killed, or stands still, while frames go directly.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use packtrain::lab::messages::{Load, measure};
use packtrain::lab::{wait_for, wire};
use packtrain_proto::wire::ethernet::MacAddr;
use rustix::process::{Pid, Signal, kill_process};

use super::SetAtEnd;
use super::frames::{self, frame};
use super::own_traffic::{received, socket_on_link};
use super::port::{End, Port};
use crate::common::cabled::{MEBIBYTE, pause, status};
use crate::common::direct::wait_for_direct;
use crate::common::undo::{assert_undone, dump, kill};
use crate::common::{A, B, Pair, pings_whole, transfer};

/// A peer that says nothing for 3.5 s is forgotten (docs/wire-format.md).
const FORGOTTEN: Duration = Duration::from_secs(6);
const SOON: Duration = Duration::from_secs(10);

#[test]
fn an_end_killed_under_direct_traffic_leaves_nothing_and_is_sent_nothing_and_comes_back() {
    live!();
    let pair = Pair::cable("killed", 1500).unwrap();
    for (host, address) in [(&pair.a, "10.8.0.1/24"), (&pair.b, "10.8.0.2/24")] {
        wire::add_address(&host.namespace, "eth1", address).unwrap();
    }
    wait_for("no tentative address", SOON, || {
        let addresses = pair.b.namespace.exec(["ip", "address"]);
        addresses.is_ok_and(|text| !text.contains("tentative"))
    })
    .unwrap();
    let before = dump(&pair.b.namespace);
    pair.a_up(&[]).unwrap();
    pair.b_up(&[]).unwrap();
    pair.wait().unwrap();
    wait_for_direct(&pair.a);
    wait_for_direct(&pair.b);
    let end = End::of(&pair.b);
    let (mark, b_link) = (End::of(&pair.a).direct_mark(), end.link_address);
    let (ended, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| datagrams_until(&pair, &ended, &sent));
        let stop = SetAtEnd(&ended);
        let direct = || status(&pair.a).direct.tx.frames;
        wait_for("direct datagrams", SOON, || {
            sent.load(Ordering::Relaxed) > 200 && direct() > 100
        })
        .unwrap();

        kill(&pair.b, Signal::KILL);
        assert!(end_has_no_pt0(&pair), "pt0 goes with its daemon");
        // A program that was left at the link would take this for pt0's, or withhold it.
        own_stack_gets_what_has_a_mark(&pair, mark, b_link);

        wait_for("the peer to be forgotten", FORGOTTEN, || {
            status(&pair.a).peers.iter().all(|peer| !peer.up)
        })
        .unwrap();
        let then = (direct(), sent.load(Ordering::Relaxed));
        wait_for("more datagrams", SOON, || {
            sent.load(Ordering::Relaxed) > then.1 + 100
        })
        .unwrap();
        assert_eq!(direct(), then.0, "nothing more goes directly");

        pair.b_up(&[]).unwrap();
        pair.wait().unwrap();
        wait_for_direct(&pair.a);
        wait_for_direct(&pair.b);
        let then = direct();
        wait_for("direct datagrams again", SOON, || direct() > then + 100).unwrap();
        drop(stop);
    });
    assert!(pings_whole(&pair.a, B, 1472));
    for (from, to, at) in [(&pair.a, &pair.b, B), (&pair.b, &pair.a, A)] {
        let before = status(from).direct.tx.bytes;
        assert_eq!(transfer(from, to, at, 4 * MEBIBYTE), 4 * MEBIBYTE, "{at}");
        assert!(status(from).direct.tx.bytes > before + 4 * MEBIBYTE, "{at}");
    }
    pair.b.down().unwrap();
    assert_undone(&before, &pair.b, "kill -9, up and down");
    own_stack_gets_what_has_a_mark(&pair, mark, b_link);
}

/// The kernel goes on without it. What is then given to the engine waits for it, and overtakes nothing.
#[test]
fn an_end_that_stands_still_disorders_nothing_and_is_direct_again_when_it_goes_on() {
    live!(alone);
    let pair = Pair::up("still", 1500).unwrap();
    wait_for_direct(&pair.a);
    wait_for_direct(&pair.b);
    assert!(pings_whole(&pair.a, B, 56));
    let load = Load {
        size: 500,
        duration: Duration::from_secs(3),
        rate_per_second: Some(1000),
        real_time: false,
    };
    let daemon = Pid::from_raw(status(&pair.b).pid as i32).expect("a process");
    let before = status(&pair.a);
    let to = SocketAddr::new(B.parse().unwrap(), 7000);
    let report = std::thread::scope(|scope| {
        let report = scope.spawn(|| measure(&pair.a.namespace, &pair.b.namespace, to, load));
        pause(Duration::from_millis(500));
        // No longer than a peer may be silent, nor than the receiver waits.
        kill_process(daemon, Signal::STOP).unwrap();
        pause(Duration::from_millis(800));
        kill_process(daemon, Signal::CONT).unwrap();
        report.join().unwrap().unwrap()
    });
    let after = [&pair.a, &pair.b].map(status);
    assert_eq!(
        (report.lost(), report.reordered, report.duplicated),
        (0, 0, 0),
        "{report:?}\n{after:#?}"
    );
    // A run counts only if it was what it is called: both ways were taken.
    let direct = after[0].direct.tx.frames - before.direct.tx.frames;
    let engine = after[0].host.taken.frames - before.host.taken.frames;
    assert!(direct > 300 && engine > 300, "{direct} and {engine}");
    assert_eq!(after[1].pid as i32, daemon.as_raw_nonzero().get());
    wait_for_direct(&pair.a);
    wait_for_direct(&pair.b);
    assert_eq!(transfer(&pair.a, &pair.b, B, 4 * MEBIBYTE), 4 * MEBIBYTE);
}

/// A thousand a second, from the end that lives on.
fn datagrams_until(pair: &Pair, ended: &AtomicBool, sent: &AtomicU64) {
    let bind = || UdpSocket::bind((A, 0)).expect("the address is there");
    let socket = pair.a.namespace.in_namespace(bind).unwrap();
    let datagram = frames::payload(1, 500);
    while !ended.load(Ordering::Relaxed) {
        // Without a neighbour, or with one that refuses, some are not sent.
        let _ = socket.send_to(&datagram, (B, 7000));
        sent.fetch_add(1, Ordering::Relaxed);
        pause(Duration::from_millis(1));
    }
}

fn end_has_no_pt0(pair: &Pair) -> bool {
    let shown = pair.b.namespace.try_exec(["ip", "link", "show", "pt0"]);
    !shown.unwrap().status.success()
}

/// What comes with the other end's direct mark, for an address of the link.
fn own_stack_gets_what_has_a_mark(pair: &Pair, mark: MacAddr, link: MacAddr) {
    const PORT: u16 = 7001;
    let socket = socket_on_link(&pair.b.namespace, PORT);
    let message = frames::payload(2, 100);
    let [from, to] = ["10.8.0.1", "10.8.0.2"].map(|text| text.parse().unwrap());
    let packet = frames::udp(PORT, PORT, &message);
    let packet = frames::ipv4(from, to, frames::UDP, &packet);
    let mut wire = Port::open(&pair.a.namespace, "eth1");
    wire.send(&frame(link, mark, &packet));
    assert_eq!(
        received(&socket),
        [message],
        "nobody keeps it from the link"
    );
}
