//! A line that stays: what goes directly flows on while its daemon is away, and everything is undone when nobody
//! comes.

#![allow(clippy::disallowed_methods)] // live tests run in real time

mod ring;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::common::cabled::status;
use super::common::direct::wait_for_direct;
use super::common::undo::{SOON, assert_undone, dump, kill};
use super::common::{A, B, B6, Pair, pattern, pings_whole};
use packtrain::lab::host::Host;
use packtrain::lab::messages::{self, Load, Report};
use packtrain::lab::wait_for;
use rustix::process::{Pid, Signal, kill_process};

/// Processes of this line that only keep.
fn keepers(host: &Host) -> Vec<u32> {
    let found = host
        .namespace
        .sh("ip netns pids $(ip netns identify $$) 2>/dev/null || true");
    let pids = found.unwrap();
    let pids = pids.lines().filter_map(|pid| pid.trim().parse().ok());
    let keeps = |pid: &u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).nth(1) == Some(b"keep")
    };
    pids.filter(keeps).collect()
}

/// Where the line's files are.
fn state_dir(host: &Host) -> PathBuf {
    let inside = packtrain::instance::state_dir;
    host.namespace.in_namespace(inside).unwrap().unwrap()
}

fn has_pt0(host: &Host) -> bool {
    host.namespace
        .exec(["ip", "link", "show", "dev", "pt0"])
        .is_ok()
}

fn programs_on_eth1(host: &Host) -> String {
    host.namespace
        .sh("bpftool net show dev eth1 2>/dev/null || true")
        .unwrap()
}

/// Both ends stay, and send directly.
fn staying(tag: &str, stay: &str) -> Pair {
    let pair = Pair::up_with(tag, 1500, &[stay]).unwrap();
    wait_for_direct(&pair.a);
    wait_for_direct(&pair.b);
    // After address resolution, which goes by the engine.
    assert!(pings_whole(&pair.a, B, 56) && pings_whole(&pair.a, B6, 56));
    sleep(Duration::from_millis(1200)); // the keepers are told within a second
    pair
}

/// Datagrams in one direction, a thousand a second.
fn datagrams(from: &Host, to: &Host, at: &str, port: u16, seconds: u64) -> Report {
    let load = Load {
        size: 200,
        duration: Duration::from_secs(seconds),
        rate_per_second: Some(1000),
        real_time: false,
    };
    let at = SocketAddr::new(at.parse().unwrap(), port);
    messages::measure(&from.namespace, &to.namespace, at, load).unwrap()
}

/// One connection that lasts: what was sent, and what came right. Paced, for what two processors cannot carry is
/// lost in any case.
fn stream(from: &Host, to: &Host, at: &str, end: Instant) -> (u64, u64) {
    let timeout = Some(Duration::from_secs(10));
    let bind = || TcpListener::bind((at, 0));
    let listener = to.namespace.in_namespace(bind).unwrap().unwrap();
    let at = listener.local_addr().unwrap();
    let connect = || TcpStream::connect(at);
    let mut sender = from.namespace.in_namespace(connect).unwrap().unwrap();
    let (mut receiver, _) = listener.accept().unwrap();
    sender.set_write_timeout(timeout).unwrap();
    receiver.set_read_timeout(timeout).unwrap();
    std::thread::scope(|scope| {
        let sent = scope.spawn(move || {
            let mut sent = 0;
            while Instant::now() < end {
                let chunk: Vec<u8> = (sent..sent + 16_384).map(pattern).collect();
                sender.write_all(&chunk).expect("the connection lasts");
                sent += chunk.len() as u64;
                sleep(Duration::from_millis(1));
            }
            sent
        });
        let mut right = 0;
        let mut buffer = vec![0; 65_536];
        loop {
            let len = receiver.read(&mut buffer).expect("the connection lasts");
            if len == 0 {
                return (sent.join().unwrap(), right);
            }
            for &byte in &buffer[..len] {
                assert_eq!(byte, pattern(right), "at {right}");
                right += 1;
            }
        }
    })
}

/// Transfers and datagrams in both directions, while the daemon of A ends and begins again, again and again.
fn restarts(pair: &Pair, times: usize, mut restart: impl FnMut(&Pair)) -> [Report; 2] {
    let seconds = 3 * times as u64 + 2;
    let end = Instant::now() + Duration::from_secs(seconds);
    std::thread::scope(|scope| {
        let there = scope.spawn(|| datagrams(&pair.a, &pair.b, B, 7000, seconds));
        let back = scope.spawn(|| datagrams(&pair.b, &pair.a, A, 7001, seconds));
        let streams = [(&pair.a, &pair.b, B), (&pair.b, &pair.a, A)]
            .map(|(from, to, at)| scope.spawn(move || stream(from, to, at, end)));
        sleep(Duration::from_secs(1));
        for _ in 0..times {
            let begin = Instant::now();
            restart(pair);
            sleep(Duration::from_secs(3).saturating_sub(begin.elapsed()));
            // One that ends before its frames go directly leaves nothing that would flow.
            wait_for_direct(&pair.a);
            wait_for_direct(&pair.b);
        }
        for stream in streams {
            let (sent, right) = stream.join().unwrap();
            assert_eq!(sent, right, "bytes of a connection that lasts");
            println!("{} MB by one connection", sent / 1_000_000);
        }
        [there, back].map(|flow| flow.join().unwrap())
    })
}

fn judge(reports: &[Report; 2], pair: &Pair) {
    for report in reports {
        println!(
            "sent {} lost {} reordered {} duplicated {} gap {:.1} ms",
            report.sent,
            report.lost(),
            report.reordered,
            report.duplicated,
            report.gap_max_us / 1000.0
        );
    }
    for report in reports {
        let wrong = (report.lost(), report.reordered, report.duplicated);
        assert_eq!(
            wrong,
            (0, 0, 0),
            "{report:?}\n{:#?}\n{:#?}",
            status(&pair.a),
            status(&pair.b)
        );
    }
}

#[test]
fn a_daemon_that_is_killed_and_started_again_after_a_second_takes_nothing_with_it() {
    live!(alone);
    let pair = staying("kill", "--stay");
    let reports = restarts(&pair, 1, |pair| {
        kill(&pair.a, Signal::KILL);
        sleep(Duration::from_secs(1));
        pair.a_up(&["--stay"]).unwrap();
    });
    judge(&reports, &pair);
}

#[test]
fn nor_does_one_that_is_stopped_and_started_five_times() {
    live!(alone);
    let pair = staying("stop", "--stay");
    let reports = restarts(&pair, 5, |pair| {
        kill(&pair.a, Signal::TERM);
        pair.a_up(&["--stay"]).unwrap();
    });
    judge(&reports, &pair);
    assert_eq!(keepers(&pair.a).len(), 1);
}

#[test]
fn when_nobody_starts_it_again_in_time_everything_is_undone() {
    live!();
    let pair = Pair::cable("time", 1500).unwrap();
    sleep(Duration::from_secs(3)); // until no address is tentative any more
    let before = dump(&pair.a.namespace);
    pair.a_up(&["--stay=4"]).unwrap();
    pair.b_up(&["--stay=4"]).unwrap();
    pair.wait().unwrap();
    wait_for_direct(&pair.a);
    assert!(pings_whole(&pair.a, B, 56));
    sleep(Duration::from_millis(1200));
    let directory = state_dir(&pair.a);
    kill(&pair.a, Signal::TERM);
    let begin = Instant::now();
    sleep(Duration::from_millis(500));
    assert!(pings_whole(&pair.a, B, 56) && pings_whole(&pair.b, A, 1400));
    assert!(status(&pair.b).peers.iter().any(|peer| peer.away));
    wait_for("the keeper's end", 2 * SOON, || keepers(&pair.a).is_empty()).unwrap();
    let took = begin.elapsed();
    assert!((3.0..6.0).contains(&took.as_secs_f64()), "{took:?}");
    assert!(!has_pt0(&pair.a));
    assert_undone(&before, &pair.a, "the time");
    assert!(!directory.exists(), "{:?}", fs::read_dir(&directory));
    assert!(
        !programs_on_eth1(&pair.a).contains("guard"),
        "{}",
        programs_on_eth1(&pair.a)
    );
    // It was said goodbye for.
    wait_for("the peer to know", SOON, || {
        status(&pair.b).peers.is_empty()
    })
    .unwrap();
}

#[test]
fn down_ends_what_only_a_keeper_holds() {
    live!();
    let pair = staying("down", "--stay");
    let directory = state_dir(&pair.a);
    kill(&pair.a, Signal::KILL);
    wait_for("the keeper", SOON, || pings_whole(&pair.a, B, 56)).unwrap();
    assert_eq!(keepers(&pair.a).len(), 1);
    pair.a.down().unwrap();
    assert!(!has_pt0(&pair.a));
    assert!(!directory.exists());
    wait_for("the keeper's end", SOON, || keepers(&pair.a).is_empty()).unwrap();
    assert!(pair.a.down().is_err(), "there is nothing any more");
    // And with a daemon, both.
    pair.a_up(&["--stay"]).unwrap();
    pair.a.down().unwrap();
    assert!(!has_pt0(&pair.a) && !directory.exists() && keepers(&pair.a).is_empty());
}

#[test]
fn a_keeper_that_is_killed_leaves_what_the_next_start_cleans() {
    live!();
    let pair = staying("keeper", "--stay");
    // While the daemon lives: there is another one soon.
    let [first] = keepers(&pair.a)[..] else {
        panic!("one keeper")
    };
    kill_process(Pid::from_raw(first as i32).unwrap(), Signal::KILL).unwrap();
    wait_for("another keeper", 3 * SOON, || {
        keepers(&pair.a).iter().any(|keeper| *keeper != first)
    })
    .unwrap();
    sleep(Duration::from_millis(500));
    kill(&pair.a, Signal::KILL);
    wait_for("the keeper", SOON, || pings_whole(&pair.a, B, 56)).unwrap();
    for keeper in keepers(&pair.a) {
        kill_process(Pid::from_raw(keeper as i32).unwrap(), Signal::KILL).unwrap();
    }
    wait_for("pt0 to go", SOON, || !has_pt0(&pair.a)).unwrap();
    pair.a_up(&["--stay"]).unwrap();
    wait_for("the line", 2 * SOON, || pings_whole(&pair.a, B, 56)).unwrap();
    pair.a.down().unwrap();
    assert!(!has_pt0(&pair.a) && !state_dir(&pair.a).exists());
}

#[test]
fn what_goes_by_the_engine_alone_does_not_stay() {
    live!();
    let pair = Pair::cable("engine", 1500).unwrap();
    pair.a_up(&["--stay", "--path", "engine"]).unwrap();
    assert_eq!(status(&pair.a).stay, None);
    assert!(keepers(&pair.a).is_empty());
    kill(&pair.a, Signal::TERM);
    wait_for("pt0 to go", SOON, || !has_pt0(&pair.a)).unwrap();
}
