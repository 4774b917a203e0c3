//! When frames of a line that speaks only aggregates wait, and in which order they leave: none is lost, cut or sent twice
//! whatever is set, and only the paper's own order turns round what is of one flow.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use packtrain::lab::host::Host;
use packtrain::lab::messages::{Load, measure};
use packtrain::lab::{wait_for, wire};
use packtrain::status::{StatusDocument, TrainCounts};

use super::wait_for_stations;
use crate::classes::add;
use crate::common::cabled::{pause, status};
use crate::common::numbered::{Came, SetAtEnd, datagram, receive};
use crate::common::waits::Waits;
use crate::common::{A, B, Pair, pings_whole, steady};

/// What a daemon that was away for long found dropped before it. Nobody else drops anything.
fn overrun(status: &StatusDocument) -> u64 {
    status.drops.get("host_overrun").copied().unwrap_or(0)
}

/// A cable whose frames arrive as they were sent: nothing restores the order of aggregates.
fn cable(tag: &str) -> Pair {
    let pair = Pair::cable(tag, 1500).unwrap();
    for host in [&pair.a, &pair.b] {
        wire::receive_on_cpu(&host.namespace, "eth1", 0).unwrap();
    }
    pair
}

fn wait_for_each_other(pair: &Pair) {
    for host in [&pair.a, &pair.b] {
        wait_for_stations(host, 1);
    }
    assert!(pings_whole(&pair.a, B, 56));
}

/// What is sent from flows to ports of their own, so many datagrams each, in bursts with pauses between them.
struct Bursts {
    ports: &'static [u16],
    count: u32,
    burst: u32,
    pause: Duration,
    len_of: fn(usize, u32) -> usize,
}

impl Bursts {
    fn pass(&self, from: &Host, to: &Host, at: &str) -> Vec<Came> {
        let bind = |port: &u16| {
            let bind = || UdpSocket::bind((at, *port));
            let socket = to.namespace.in_namespace(bind).unwrap().unwrap();
            let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, 32 << 20);
            socket
        };
        let receivers: Vec<UdpSocket> = self.ports.iter().map(bind).collect();
        let are_sent = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let are_sent = &are_sent;
            let sent = SetAtEnd(are_sent);
            let flows = self.ports.len();
            let receiving = receivers
                .iter()
                .map(|socket| scope.spawn(move || receive(socket, flows, are_sent, self.len_of)));
            let receiving: Vec<_> = receiving.collect();
            from.namespace.in_namespace(|| self.send(at)).unwrap();
            drop(sent);
            receiving.into_iter().map(|of| of.join().unwrap()).collect()
        })
    }

    fn send(&self, at: &str) {
        let connect = |port: &u16| {
            let any = UdpSocket::bind("0.0.0.0:0").unwrap();
            any.connect((at, *port)).unwrap();
            any
        };
        let sockets: Vec<UdpSocket> = self.ports.iter().map(connect).collect();
        for number in 0..self.count {
            for (flow, socket) in sockets.iter().enumerate() {
                let len = (self.len_of)(flow, number);
                socket.send(&datagram(flow, number, len)).unwrap();
            }
            if (number + 1).is_multiple_of(self.burst) {
                pause(self.pause);
            }
        }
    }
}

#[test]
fn of_two_that_share_no_frame_the_larger_goes_first_only_where_the_paper_is_taken_by_its_word() {
    live!();
    let pair = cable("strict");
    let dfap = ["--mode", "dfap", "--pack", "scaled 2ms"];
    pair.a_up(&[&dfap[..], &["--dfap-strict"]].concat())
        .unwrap();
    pair.b_up(&dfap).unwrap();
    wait_for_each_other(&pair);
    // The first is still waiting when the second comes, which has no room beside it.
    let pairs = Bursts {
        ports: &[7300],
        count: 300,
        burst: 2,
        pause: Duration::from_millis(3),
        len_of: |_, number| if number % 2 == 0 { 300 } else { 1400 },
    };
    let strict = || {
        let came = pairs.pass(&pair.a, &pair.b, B).remove(0);
        assert_eq!((came.total(), came.twice()), (300, 0));
        came.overtaken()
    };
    // A sender that is away between the two has sent them one by one.
    steady::judge("overtaken of 300", strict, |overtaken| *overtaken > 100);
    let came = pairs.pass(&pair.b, &pair.a, A).remove(0);
    assert_eq!((came.total(), came.twice(), came.overtaken()), (300, 0, 0));
}

#[test]
fn by_both_of_the_papers_windows_frames_share_aggregates_and_arrive_whole_once_and_in_order() {
    live!();
    let pair = cable("windows");
    let paper = ["--mode", "dfap", "--dfap-tick", "1ms"];
    pair.a_up(&[&paper[..], &["--pack", "dfap-random"]].concat())
        .unwrap();
    pair.b_up(&paper).unwrap();
    wait_for_each_other(&pair);
    add(
        &pair.a,
        "straight",
        &["udp dport 7301", "--pack", "dfap-straight"],
    );
    wait_for("an average", Duration::from_secs(5), || {
        status(&pair.a).dfap.frames_per_second.is_some()
    })
    .unwrap();
    let flows = Bursts {
        ports: &[7300, 7301],
        count: 1500,
        burst: 2,
        pause: Duration::from_micros(700),
        len_of: |flow, number| 20 + (number as usize * 37 + flow * 11) % 400,
    };
    let both = || {
        let before = status(&pair.a);
        let came = flows.pass(&pair.a, &pair.b, B);
        let after = status(&pair.a);
        for of_port in &came {
            let counts = (of_port.total(), of_port.twice(), of_port.overtaken());
            assert_eq!(counts, (1500, 0, 0));
        }
        let aggregated = after.trains.tx.aggregated - before.trains.tx.aggregated;
        let waited = ["rest", "straight"].map(|class| {
            let waits = Waits::between(&before, &after, class);
            // By windows of ten, five, two and one tick.
            (
                waits.share_longer_than(0.000_5),
                waits.share_longer_than(0.012),
            )
        });
        (aggregated, waited)
    };
    // The paper's traffic count switches waits off again when there is always as much traffic.
    let what = "in aggregates of 3000, and shares that waited, and too long";
    steady::judge(what, both, |(aggregated, waited)| {
        let is_right = |&(waited, too_long): &(f64, f64)| waited > 0.1 && too_long < 0.1;
        *aggregated > 750 && waited.iter().all(is_right)
    });
}

#[test]
fn on_backlog_frames_wait_while_a_queue_stands_on_the_link_and_not_before() {
    live!(alone, wire::shaping_unavailable());
    for mode in ["trains", "dfap"] {
        let pair = cable("onbacklog");
        // Of packets, not of bytes, and what stands of them stands for as long as a frame may wait.
        wire::cap_packets(&pair.a.namespace, "eth1", 500).unwrap();
        let pack = [
            "--mode",
            mode,
            "--path",
            "engine",
            "--pack",
            "scaled 2ms on-backlog",
        ];
        pair.a_up(&pack).unwrap();
        pair.b_up(&pack).unwrap();
        for host in [&pair.a, &pair.b] {
            host.wait_for_peers(1).unwrap();
        }
        assert!(pings_whole(&pair.a, B, 56));
        let run = |rate_per_second: u64| {
            let before = status(&pair.a);
            let load = Load {
                size: 64,
                duration: Duration::from_millis(400),
                rate_per_second: Some(rate_per_second),
                real_time: false,
            };
            let at = SocketAddr::new(B.parse().unwrap(), 7302);
            let report = measure(&pair.a.namespace, &pair.b.namespace, at, load).unwrap();
            assert_eq!((report.reordered, report.duplicated), (0, 0), "{report:?}");
            let after = status(&pair.a);
            assert!(
                report.lost() <= overrun(&after) - overrun(&before),
                "{report:?}"
            );
            let timer = |status: &StatusDocument| {
                let flush = &status.trains.flush;
                flush.get("timer").copied().unwrap_or(0)
            };
            let waits = Waits::between(&before, &after, "rest");
            let frames = |tx: &TrainCounts| tx.frames + tx.aggregated + tx.plain;
            let trains = |tx: &TrainCounts| tx.trains + tx.aggregates + tx.plain;
            let (now, then) = (&after.trains.tx, &before.trains.tx);
            Run {
                frames_per_train: (frames(now) - frames(then)) as f64
                    / (trains(now) - trains(then)) as f64,
                ended_by_timer: timer(&after) - timer(&before),
                waited: waits.share_longer_than(0.001),
            }
        };
        let what = format!("{mode}: few");
        steady::judge(&what, || run(200), |few| few.waited < 0.2);
        let what = format!("{mode}: more than the link takes one by one");
        steady::judge(
            &what,
            || run(5000),
            |many| many.frames_per_train > 4.0 && many.ended_by_timer > 0,
        );
    }
}

/// What came of messages at one rate.
#[derive(Debug)]
struct Run {
    frames_per_train: f64,
    ended_by_timer: u64,
    /// The share that waited for most of what it may.
    waited: f64,
}
