//! The gap behind each frame of an interface, on the wire: read from a capture at the receiver, never from the sender's counters.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use packtrain::lab::wait_for;
use packtrain::status::LinkCondition;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::cli::host::Host;
use crate::common::undo::SOON;
use crate::common::{B, Pair, transfer};

mod rules;

const PAYLOAD_LEN: usize = 1000;
/// With IPv4's and UDP's headers and Ethernet's.
const FRAME_LEN: u64 = 1042;

fn document(host: &Host) -> Value {
    serde_json::from_str(&host.done("pace status eth1 --json").out).unwrap()
}

fn spacing(host: &Host) -> Value {
    document(host)["spacing"].clone()
}

/// Two hosts on 10.1.0.0/24 that know each other.
fn pair() -> (Host, Host) {
    let (a, b) = Host::pair();
    a.sh("ip address add 10.1.0.1/24 dev eth1");
    b.sh("ip address add 10.1.0.2/24 dev eth1");
    a.sh("ping -n -c 1 -W 2 10.1.0.2");
    (a, b)
}

/// Datagrams, and how many of them have arrived: read as they come, for a receiver's socket holds a hundred.
struct Flow {
    sender: UdpSocket,
    arrived: Arc<AtomicUsize>,
}

impl Flow {
    fn new(from: &Host, to: &Host) -> Flow {
        let bind = |host: &Host, address: &'static str| {
            let bound = host.0.in_namespace(move || UdpSocket::bind(address));
            bound.unwrap().unwrap()
        };
        let receiver = bind(to, "10.1.0.2:0");
        let sender = bind(from, "10.1.0.1:0");
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        receiver.set_read_timeout(Some(SOON)).unwrap();
        let arrived = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&arrived);
        std::thread::spawn(move || {
            while receiver.recv(&mut [0; PAYLOAD_LEN]).is_ok() {
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        Flow { sender, arrived }
    }

    fn send(&self, count: usize) {
        for _ in 0..count {
            self.sender.send(&[0; PAYLOAD_LEN]).unwrap();
        }
    }

    /// All that were sent so far have arrived.
    fn has_brought(&self, count: usize) {
        let arrived = || self.arrived.load(Ordering::Relaxed);
        wait_for("all to arrive", SOON, || arrived() == count)
            .unwrap_or_else(|error| panic!("{error}: {} of {count}", arrived()));
    }
}

/// What a receiver measures meanwhile.
fn measured(host: &Host, line_rate: &str, meanwhile: impl FnOnce()) -> Value {
    let command =
        format!("pace measure eth1 --incoming --seconds 1 --json --line-rate {line_rate}");
    std::thread::scope(|scope| {
        let measure = scope.spawn(|| host.done(&command).out);
        // Its socket stands when somebody in the namespace has one for every frame.
        wait_for("the measurement to begin", SOON, || {
            host.sh("cat /proc/net/packet")
                .lines()
                .any(|line| line.contains(" 0003 "))
        })
        .unwrap();
        meanwhile();
        serde_json::from_str(&measure.join().unwrap()).unwrap()
    })
}

#[test]
fn frames_are_spaced_as_was_said_and_what_waits_stays_when_that_changes() {
    live!(alone);
    let (a, b) = pair();
    let before = a.dump();
    // 1042 + 12 bytes and the gap are 1 ms of 100 Mbit/s.
    a.done("pace link eth1 --gap 11446B --line-rate 100mbit");
    let flow = Flow::new(&a, &b);
    let seen = measured(&b, "100mbit", || flow.send(600));
    let gap = seen["gap_bytes"]["p50"].as_u64().unwrap();
    // A late timer is made up for, so the median is the gap, however busy the machine.
    assert!(gap.abs_diff(11_446) < 600, "{seen:#}");
    let frames = seen["frames"].as_u64().unwrap();
    assert!((300..=1002).contains(&frames), "{seen:#}");
    assert_eq!(seen["gso_frames"], 0, "{seen:#}");
    let queue_frames = spacing(&a)["queue_frames"].as_u64().unwrap();

    // Whatever of it still waits leaves at the new pace.
    flow.send(100);
    a.done("pace link eth1 --gap 12B --burst 1ms");
    let changed = spacing(&a);
    assert_eq!(
        (&changed["gap_bytes"], &changed["burst_ns"]),
        (&12.into(), &1_000_000.into())
    );
    // That was not said again.
    assert_eq!(changed["line_rate_bps"], 100_000_000);
    flow.has_brought(700);
    assert_eq!(spacing(&a)["dropped_frames"], 0, "{queue_frames} waited");

    // And what waits in the end leaves, and is not dropped with the queue.
    a.done("pace link eth1 --gap 1ms");
    flow.send(50);
    let off = a.done("pace link eth1 off");
    assert_eq!((off.out.as_str(), off.err.as_str()), ("", ""));
    flow.has_brought(750);
    a.is_as(&before, "after off");
    // And perhaps a frame or two of the neighbours' own.
    let sent = FRAME_LEN * 600 + 500;
    assert!(seen["bytes"].as_u64().unwrap() <= sent, "{seen:#}");
}

#[test]
fn large_segments_are_cut_and_spaced_or_leave_whole_at_the_same_rate() {
    live!(alone);
    let (a, b) = pair();
    // 1526 bytes and the gap are 500 µs of a gigabit: a GSO frame of 20 segments takes 10 ms.
    a.done("pace link eth1 --gap 60974B --line-rate 1gbit");
    let listens = "iperf3 -s -1 -D -p 5201 >/dev/null; sleep 0.3";
    let send = || a.sh("iperf3 -c 10.1.0.2 -p 5201 -C cubic -t 1 >/dev/null");
    b.sh(listens);
    let seen = measured(&b, "1gbit", || drop(send()));
    assert_eq!(seen["gso_frames"], 0, "{seen:#}");
    let gap = seen["gap_bytes"]["p50"].as_u64().unwrap();
    assert!(gap.abs_diff(60_974) < 6_000, "{seen:#}");

    // 6000 bytes a segment: faster, for there are no large frames where there is little to send.
    a.done("pace link eth1 --gap 4474B --gso whole");
    b.sh(listens);
    let seen = measured(&b, "1gbit", || drop(send()));
    assert!(seen["gso_frames"].as_u64() > Some(30), "{seen:#}");
    let gap = seen["segment_gap_bytes"]["p50"].as_u64().unwrap();
    assert!(gap.abs_diff(4_474) < 500, "{seen:#}");
    // 250 Mbit/s of frames and their headers, and what may be saved up.
    let rate = seen["rate_bps"].as_u64().unwrap();
    assert!((100_000_000..257_000_000).contains(&rate), "{seen:#}");
    a.done("pace off");
}

#[test]
fn what_a_killed_pacer_left_is_told_and_undone_and_a_queue_of_somebody_elses_is_never_replaced() {
    live!();
    let (a, _b) = Host::pair();
    let before = a.dump();
    a.fails(
        "pace off eth1",
        9,
        "error: the pacer of eth1 does not run\n",
    );
    let none = "no pacer runs in this network namespace\n";
    assert_eq!(a.done("pace status").out, none);
    a.done("pace off");

    a.sh("tc qdisc add dev eth1 root handle 5: pfifo");
    a.fails(
        "pace link eth1 --gap 512B",
        1,
        "error: eth1 has a root qdisc that somebody has set up (pfifo 5:), and it is not replaced\n       \
         who no longer needs it: tc qdisc del dev eth1 root\n",
    );
    a.sh("tc qdisc del dev eth1 root");

    let veth = "note: eth1 is a veth, which says 10 Gbit/s whatever carries it: --line-rate says how fast it is\n";
    let on = a.done("pace link eth1 --register 1023");
    assert_eq!((on.out.as_str(), on.err.as_str()), ("", veth));
    let first = document(&a);
    assert_eq!(first["spacing"]["gap_bytes"], 1027);
    assert_eq!(
        first["undo"][0],
        "the root qdisc of eth1 (the kernel's own → 7063:)"
    );
    let seen = a.done("pace status").out;
    for part in [
        "1,027 byte times, 0.82 µs",
        "10gbit, as every veth says",
        "whole (segments would follow each other faster than the timer can tell them apart)",
    ] {
        assert!(seen.contains(part), "no {part:?} in {seen}");
    }
    a.fails(
        "pace link eth1 --rate 20gbit",
        2,
        "error: full-size frames carry 9752925877 bit/s of IP packets at most on a line of 10000000000 bit/s, which is less than 20000000000\n",
    );
    assert_eq!(document(&a)["spacing"]["gap_bytes"], 1027);
    assert_eq!(a.as_other("pace link eth1 --gap 12B").code, 7);

    let kill = |document: &Value| {
        let pid = Pid::from_raw(document["pid"].as_u64().unwrap() as i32).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
        wait_for("its process to be gone", SOON, || {
            a.packtrain("pace status eth1 --json")
                .out
                .contains("\"pid\": null")
        })
        .unwrap();
    };
    kill(&first);
    let seen = a.done("pace status").out;
    assert!(seen.contains("its process was killed"), "{seen}");
    // The next one begins afresh …
    let undone =
        "note: undone after an earlier run: the root qdisc of eth1 (the kernel's own → 7063:)\n";
    let on = a.done("pace link eth1 --gap 512B --line-rate 1gbit");
    assert_eq!(on.err, undone);
    // … and so does who ends it.
    kill(&document(&a));
    assert_eq!(a.done("pace off").err, undone);
    assert_eq!(a.done("pace status").out, none);
    a.is_as(&before, "after off");
}

#[test]
fn a_line_goes_on_over_a_link_that_is_spaced_and_one_that_becomes_so() {
    live!();
    let pair = Pair::cable("pace", 1500).unwrap();
    let pace = |on: &[&str]| pair.a.packtrain(&[&["pace"], on].concat()).unwrap();
    let gap = ["link", "eth1", "--gap", "12000B", "--line-rate", "1gbit"];
    pace(&gap);
    pair.a_up(&[]).unwrap();
    pair.b_up(&[]).unwrap();
    pair.wait().unwrap();
    pair.b.packtrain(&[&["pace"], &gap[..]].concat()).unwrap();
    assert_eq!(transfer(&pair.a, &pair.b, B, 1 << 20), 1 << 20);
    for host in [&pair.a, &pair.b] {
        let document = host
            .packtrain(&["pace", "status", "eth1", "--json"])
            .unwrap();
        let document: Value = serde_json::from_str(&document).unwrap();
        assert_eq!(document["spacing"]["dropped_frames"], 0, "{document:#}");
        let status = host.status().unwrap();
        assert_eq!(status.links[0].state, LinkCondition::Up, "{status:#?}");
        // The line has not taken it for its own.
        host.packtrain(&["pace", "off"]).unwrap();
    }
    assert_eq!(
        transfer(&pair.b, &pair.a, crate::common::A, 1 << 20),
        1 << 20
    );
}
