//! Rules of an interface: what they match leaves at their rate, all of it together, and nothing else is held.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use packtrain::lab::wait_for;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{document, pair};
use crate::cli::host::{Host, Outcome};
use crate::common::cabled::pause;
use crate::common::undo::SOON;

const PAYLOAD_LEN: usize = 1000;
/// Of the IP packet, as rates are said.
const PACKET_BITS: f64 = 8.0 * 1028.0;
const PACE_STEP: Duration = Duration::from_millis(5);

#[allow(clippy::disallowed_methods)] // a test of real rates needs the real clock
fn now() -> Instant {
    Instant::now()
}

fn add(host: &Host, matches: &str, more: &str) -> Outcome {
    let words = ["pace", "rule", "add", "--match", matches];
    let more: Vec<&str> = more.split_whitespace().collect();
    let outcome = host.words(&[&words[..], &more].concat());
    assert_eq!(outcome.code, 0, "{}", outcome.err);
    outcome
}

fn rules(host: &Host) -> Value {
    serde_json::from_str(&host.done("pace rule list --json").out).unwrap()
}

/// Datagrams to a port of b, so many every 5 ms.
struct Flow {
    sent: Arc<AtomicUsize>,
    arrived: Arc<AtomicUsize>,
    stops: Arc<AtomicBool>,
    sender: thread::JoinHandle<()>,
}

impl Flow {
    fn start(from: &Host, to: &Host, port: u16, every_step: usize) -> Flow {
        let bind = |host: &Host, address: &'static str, port: u16| {
            let bound = host
                .0
                .in_namespace(move || UdpSocket::bind((address, port)));
            bound.unwrap().unwrap()
        };
        let (receiver, socket) = (bind(to, "10.1.0.2", port), bind(from, "10.1.0.1", 0));
        socket.connect(("10.1.0.2", port)).unwrap();
        receiver
            .set_read_timeout(Some(Duration::from_secs(1)))
            .unwrap();
        let [sent, arrived] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
        let stops = Arc::new(AtomicBool::new(false));
        let counted = Arc::clone(&arrived);
        thread::spawn(move || {
            while receiver.recv(&mut [0; PAYLOAD_LEN]).is_ok() {
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        let (counted, stop) = (Arc::clone(&sent), Arc::clone(&stops));
        let sender = thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                for _ in 0..every_step {
                    socket.send(&[0; PAYLOAD_LEN]).unwrap();
                    counted.fetch_add(1, Ordering::Relaxed);
                }
                pause(PACE_STEP);
            }
        });
        Flow {
            sent,
            arrived,
            stops,
            sender,
        }
    }

    fn arrived(&self) -> usize {
        self.arrived.load(Ordering::Relaxed)
    }

    /// How many it sent in all.
    fn stop(self) -> (usize, Arc<AtomicUsize>) {
        self.stops.store(true, Ordering::Relaxed);
        self.sender.join().unwrap();
        (self.sent.load(Ordering::Relaxed), self.arrived)
    }
}

#[test]
fn all_that_a_rule_is_about_leaves_at_its_rate_together_and_what_it_is_not_about_is_not_held() {
    live!(alone);
    let (a, b) = pair();
    let before = a.dump();
    let added = add(
        &a,
        "udp dport 7001-7003",
        "--rate 20mbit --link eth1 --name calls",
    );
    assert_eq!(
        (added.out.as_str(), added.err.as_str()),
        (
            "rule calls: udp dport 7001-7003 leaves at 20 Mbit/s for all of them together\n",
            ""
        )
    );
    // 33 Mbit/s each, and 66.
    let held: Vec<Flow> = (7001..=7003)
        .map(|port| Flow::start(&a, &b, port, 20))
        .collect();
    let free = Flow::start(&a, &b, 7004, 40);
    // The rule's queue is full then.
    pause(Duration::from_millis(300));
    let all = || held.iter().map(Flow::arrived).sum::<usize>();
    let (start, first) = (now(), all());
    pause(Duration::from_millis(1500));
    let frames = all() - first;
    let seen = rules(&a)[0].clone();
    let rate = frames as f64 * PACKET_BITS / start.elapsed().as_secs_f64();
    let each: Vec<usize> = held.iter().map(Flow::arrived).collect();
    drop(held.into_iter().map(Flow::stop).collect::<Vec<_>>());
    let (sent, arrived) = free.stop();
    let arrived = || arrived.load(Ordering::Relaxed);
    wait_for("all else to arrive", SOON, || arrived() == sent)
        .unwrap_or_else(|error| panic!("{error}: {} of {sent}", arrived()));
    assert!((18e6..20.5e6).contains(&rate), "{rate}: {seen:#}");
    assert!(each.iter().all(|&frames| frames > 300), "{each:?}");
    assert!(
        sent as f64 * PACKET_BITS > 1.8 * 20e6,
        "{sent}: it was not held"
    );
    assert!(seen["queue_frames"].as_u64() > Some(150), "{seen:#}");
    assert!(seen["queue_frames"].as_u64() <= Some(200), "{seen:#}");
    assert!(seen["dropped_frames"].as_u64() > Some(100), "{seen:#}");

    // With its last rule the pacer goes.
    let removed = a.done("pace rule remove calls --link eth1");
    assert_eq!(removed.out, "there is no rule calls any more\n");
    a.is_as(&before, "after the last rule");
    a.fails(
        "pace status eth1",
        9,
        "error: the pacer of eth1 does not run\n",
    );
}

#[test]
fn rules_stay_while_the_gap_changes_and_are_undone_with_their_pacer_however_it_ends() {
    live!();
    let (a, b) = pair();
    let before = a.dump();
    let classes = || a.sh("tc class show dev eth1");
    add(&a, "port 53", "--rate 1mbit --link eth1");
    let alone = document(&a);
    assert_eq!(alone["spacing"], Value::Null);
    assert!(a.done("pace status eth1").out.contains("Ethernet's own"));

    // A gap comes, and another one, and the rule stays; and so it does when a second one comes before it.
    a.done("pace link eth1 --gap 5000B --line-rate 1gbit");
    a.done("pace link eth1 --gap 1000B");
    add(
        &a,
        "udp dst 10.1.0.2",
        "--rate 30mbit --link eth1 --name b --before rule1 --queue 9",
    );
    assert!(classes().contains("ceil 1009Kbit"), "{}", classes());
    assert!(classes().contains("ceil 30280Kbit"), "{}", classes());
    let names = |rules: &Value| -> Vec<String> {
        let rules = rules.as_array().unwrap().iter();
        rules
            .map(|rule| rule["name"].as_str().unwrap().into())
            .collect()
    };
    assert_eq!(names(&rules(&a)), ["b", "rule1"]);
    a.sh("ip link set eth1 mtu 1300");
    let follows = || classes().contains("ceil 30323Kbit");
    wait_for("rates of packets of 1300 bytes", SOON, follows).unwrap();
    a.sh("ip link set eth1 mtu 1500");
    assert_eq!(a.packtrain("pace rule remove rule1 --link eth1").code, 0);
    a.fails(
        "pace rule remove rule1 --link eth1",
        1,
        "error: there is no rule rule1, only b\n",
    );
    assert_eq!(document(&a)["spacing"]["gap_bytes"], 1000);
    a.done("pace off");
    a.is_as(&before, "after off");

    add(&a, "port 53", "--rate 1mbit --link eth1");
    let kill = || {
        let pid = document(&a)["pid"].as_u64().unwrap() as i32;
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
        let is_gone = || document(&a)["pid"].is_null();
        wait_for("its process to be gone", SOON, is_gone).unwrap();
    };
    kill();
    assert!(classes().contains("ceil 1009Kbit"), "it goes on");
    let undone =
        "note: undone after an earlier run: the root qdisc of eth1 (the kernel's own → 7063:)\n";
    assert_eq!(
        add(&a, "udp", "--rate 1mbit --link eth1 --name other").err,
        undone
    );
    assert_eq!(names(&rules(&a)), ["other"]);
    kill();
    assert_eq!(a.done("pace off").err, undone);
    assert_eq!(a.done("pace rule list").out, "no rule paces anything\n");
    a.is_as(&before, "after off");
    drop(b);
}
