//! The queue before a TAP, with sockets that send into it.

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use packtrain_proto::buffer::BufferPool;
use packtrain_proto::engine::Delivery;
use packtrain_proto::wire::ethernet::MacAddr;

use super::*;
use crate::linux::sys::check;
use crate::linux::tap::Tap;
use crate::linux::test_namespace::{in_namespace, ip, run};

mod sand;

const HERE: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const THERE: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
const MEGABIT: u64 = 1_000_000;

#[allow(clippy::disallowed_methods)] // a test of real rates needs the real clock
fn now() -> Instant {
    Instant::now()
}

#[allow(clippy::disallowed_methods)] // as above
fn pause(time: Duration) {
    thread::sleep(time);
}

/// A TAP with an address and an intake, up, that knows its neighbour.
fn tap(own: MacAddr, own_ip: &str, other: MacAddr, other_ip: &str) -> (Tap, Intake) {
    let tap = Tap::create("t0", own).unwrap();
    let intake = Intake::attach(tap.ifindex()).unwrap();
    run("sysctl -qw net.ipv6.conf.t0.disable_ipv6=1");
    ip(&format!("address add {own_ip}/24 dev t0"));
    ip("link set t0 up");
    ip(&format!("neigh add {other_ip} lladdr {other} dev t0"));
    (tap, intake)
}

/// Nothing waits, and none was dropped.
fn is_empty(intake: &mut Intake) -> bool {
    let queue = intake.queue().unwrap();
    (queue.frames, queue.bytes, queue.dropped) == (0, 0, 0)
}

fn wait_readable(tap: &Tap, timeout_ms: i32) {
    let mut poll = libc::pollfd {
        fd: tap.as_fd().as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one pollfd, which outlives the call.
    let _ = check(unsafe { libc::poll(&raw mut poll, 1, timeout_ms) });
}

/// Something that runs beside the test until it is stopped.
struct Beside<T> {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<T>,
}

impl<T: Send + 'static> Beside<T> {
    fn start(work: impl FnOnce(&AtomicBool) -> T + Send + 'static) -> Beside<T> {
        let stop = Arc::new(AtomicBool::new(false));
        let told = stop.clone();
        Beside {
            stop,
            thread: thread::spawn(move || work(&told)),
        }
    }

    fn stop(self) -> T {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Sends datagrams of `payload` bytes as fast as the socket takes them; how many it took.
fn flood(payload: usize) -> (Beside<u64>, OwnedFd) {
    let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
    socket.connect("10.9.0.2:9").unwrap();
    // Not forever, so that a test that fails ends.
    socket
        .set_write_timeout(Some(Duration::from_secs(1)))
        .unwrap();
    let seen = socket.as_fd().try_clone_to_owned().unwrap();
    let flood = Beside::start(move |stop| {
        let bytes = vec![0; payload];
        let mut sent = 0;
        while !stop.load(Ordering::Relaxed) {
            sent += u64::from(socket.send(&bytes).is_ok());
        }
        sent
    });
    (flood, seen)
}

/// Takes frames off the TAP and counts their bytes.
fn drain(mut tap: Tap) -> (Beside<(Tap, u64)>, Arc<AtomicU64>) {
    let bytes = Arc::new(AtomicU64::new(0));
    let counted = bytes.clone();
    let beside = Beside::start(move |stop| {
        let mut pool = BufferPool::new();
        let mut frames = 0;
        // Once more after the stop: what stands in the ring.
        loop {
            let last = stop.load(Ordering::Relaxed);
            wait_readable(&tap, 20);
            while let Some((frame, _)) = tap.receive(&mut pool).unwrap() {
                counted.fetch_add(frame.len() as u64, Ordering::Relaxed);
                frames += 1;
                pool.give_back(frame);
            }
            if last {
                return (tap, frames);
            }
        }
    });
    (beside, bytes)
}

/// bit/s over `time`.
fn rate_over(bytes: &AtomicU64, time: Duration) -> f64 {
    let (start, before) = (now(), bytes.load(Ordering::Relaxed));
    pause(time);
    let counted = bytes.load(Ordering::Relaxed) - before;
    counted as f64 * 8.0 / start.elapsed().as_secs_f64()
}

/// `work` in a moment, and the share of the processors' time that was away meanwhile: a virtual machine is not
/// always run when it wants to be, and a shaper does not catch up on what it missed.
fn with_time_away<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let (start, before) = (now(), stolen());
    let result = work();
    let all =
        start.elapsed().as_secs_f64() * std::thread::available_parallelism().unwrap().get() as f64;
    (result, (stolen() - before) / all)
}

/// Seconds, of all processors.
fn stolen() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let steal = stat
        .split_whitespace()
        .nth(8)
        .expect("cpu user nice … steal");
    let ticks_per_second = rustix::param::clock_ticks_per_second() as f64;
    steal.parse::<f64>().unwrap() / ticks_per_second
}

/// bit/s over `time` are those that are set.
fn assert_rate(bytes: &AtomicU64, time: Duration, set_bps: u64) {
    let (measured_bps, away) = with_time_away(|| rate_over(bytes, time));
    let ratio = measured_bps / set_bps as f64;
    // Never above; below by what a busy test machine loses, and by what it was not given.
    let least = 0.8 - 2.0 * away;
    assert!(
        (least..1.05).contains(&ratio),
        "{measured_bps:.0} bit/s where {set_bps} are set; {:.0} % of the time was away",
        away * 100.0
    );
}

/// `SIOCOUTQ`: what the socket is charged for, bytes of memory.
fn charged(socket: &OwnedFd) -> i32 {
    let mut bytes: libc::c_int = 0;
    // SAFETY: TIOCOUTQ (the same number) writes one int.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) }).unwrap();
    bytes
}

#[test]
fn the_numbers_are_those_of_the_header() {
    let header = include_str!("../../bpf/intake.h");
    for (name, number) in [
        ("UNUSED", UNUSED),
        ("SHAPED", SHAPED),
        ("OPEN", OPEN),
        ("MODE", MODE),
        ("IDLE_TIME", IDLE_TIME),
        ("FLOW_SAND", FLOW_SAND),
        ("ALL_SAND", ALL_SAND),
        ("MAJOR", MAJOR),
        ("FIRST_LEAF", FIRST_LEAF),
        ("LEAVES", LEAVES),
    ] {
        let line = header
            .lines()
            .find(|l| l.starts_with(&format!("#define INTAKE_{name}\t")));
        let value = line
            .and_then(|l| l.split_ascii_whitespace().nth(2))
            .expect(name);
        assert_eq!(value, number.to_string(), "{name}");
    }
}

#[test]
fn a_udp_flood_is_held_to_the_rate_and_its_socket_and_not_the_queue_says_so() {
    in_namespace(|| {
        let (tap, mut intake) = tap(HERE, "10.9.0.1", THERE, "10.9.0.2");
        intake.set_rate(Some(50 * MEGABIT), usize::MAX).unwrap();
        let (drain, bytes) = drain(tap);
        let (flood, socket) = flood(1400);
        pause(Duration::from_millis(200));
        assert_rate(&bytes, Duration::from_secs(1), 50 * MEGABIT);
        let (charged, queue) = (charged(&socket), intake.queue().unwrap());
        assert!(
            charged > 50_000,
            "{charged} bytes: the socket is not pushed back"
        );
        assert!(queue.frames > 20, "{queue:?}");
        // Then another rate, with frames waiting.
        intake.set_rate(Some(20 * MEGABIT), usize::MAX).unwrap();
        pause(Duration::from_millis(200));
        assert_rate(&bytes, Duration::from_secs(1), 20 * MEGABIT);
        assert_eq!(intake.queue().unwrap().dropped, 0);
        // Nothing is lost when it opens with frames waiting, either.
        intake.set_rate(None, usize::MAX).unwrap();
        let sent = flood_end(flood, &mut intake);
        let (_tap, received) = drain.stop();
        assert!(is_empty(&mut intake));
        let refused = ring_drops();
        assert_eq!(received + refused, sent, "each datagram that a socket took");
    });
}

fn flood_end(flood: Beside<u64>, intake: &mut Intake) -> u64 {
    let sent = flood.stop();
    for _ in 0..100 {
        if intake.queue().unwrap().frames == 0 {
            break;
        }
        pause(Duration::from_millis(10));
    }
    sent
}

/// What the TAP itself refused because nobody read it fast enough.
fn ring_drops() -> u64 {
    let path = "/proc/thread-self/net/dev";
    let text = std::fs::read_to_string(path).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("t0:"))
        .unwrap();
    line.split_ascii_whitespace()
        .nth(11)
        .unwrap()
        .parse()
        .unwrap()
}

#[test]
fn open_it_holds_nothing_back() {
    in_namespace(|| {
        let (tap, mut intake) = tap(HERE, "10.9.0.1", THERE, "10.9.0.2");
        let (drain, bytes) = drain(tap);
        let (flood, _) = flood(1400);
        let never_shaped = rate_over(&bytes, Duration::from_millis(500));
        intake.set_rate(Some(2 * MEGABIT), usize::MAX).unwrap();
        intake.set_rate(None, usize::MAX).unwrap();
        pause(Duration::from_millis(500));
        let again_open = rate_over(&bytes, Duration::from_millis(500));
        let sent = flood_end(flood, &mut intake);
        let _tap = drain.stop();
        assert!(sent > 0);
        for rate in [never_shaped, again_open] {
            assert!(rate > 100e6, "{rate:.0} bit/s");
        }
        assert!(is_empty(&mut intake));
        let direct = run("tc -s -d qdisc show dev t0");
        assert!(
            !direct.contains("direct_packets_stat 0 "),
            "none passed by: {direct}"
        );
    });
}

#[test]
fn flows_keep_their_order_while_it_opens_and_closes_under_them() {
    in_namespace(|| {
        let (mut tap, mut intake) = tap(HERE, "10.9.0.1", THERE, "10.9.0.2");
        // Four flows that number their datagrams.
        let flows: Vec<_> = (0..4u16)
            .map(|flow| {
                let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
                socket.connect(("10.9.0.2", 1000 + flow)).unwrap();
                socket
                    .set_write_timeout(Some(Duration::from_secs(1)))
                    .unwrap();
                Beside::start(move |stop| {
                    let mut number = 0u64;
                    while !stop.load(Ordering::Relaxed) {
                        let mut bytes = [0; 600];
                        bytes[..8].copy_from_slice(&number.to_be_bytes());
                        number += u64::from(socket.send(&bytes).is_ok());
                    }
                    number
                })
            })
            .collect();
        let reader = Beside::start(move |stop| {
            let mut pool = BufferPool::new();
            let mut next = [0u64; 4];
            let mut gaps = 0;
            loop {
                let last = stop.load(Ordering::Relaxed);
                wait_readable(&tap, 20);
                while let Some((frame, _)) = tap.receive(&mut pool).unwrap() {
                    let port = u16::from_be_bytes([frame[36], frame[37]]);
                    let number = u64::from_be_bytes(frame[42..50].try_into().unwrap());
                    let next = &mut next[usize::from(port - 1000)];
                    assert!(number >= *next, "{number} after {next} on port {port}");
                    gaps += number - *next;
                    *next = number + 1;
                    pool.give_back(frame);
                }
                if last {
                    return (tap, next, gaps);
                }
            }
        });
        for round in 0..60 {
            intake
                .set_rate(Some((10 + round) * MEGABIT), usize::MAX)
                .unwrap();
            pause(Duration::from_millis(8));
            intake.set_rate(None, usize::MAX).unwrap();
            pause(Duration::from_millis(2));
        }
        let sent: Vec<_> = flows.into_iter().map(Beside::stop).collect();
        pause(Duration::from_millis(100));
        let (_tap, next, gaps) = reader.stop();
        assert!(is_empty(&mut intake));
        // What is missing at the end was refused by the ring as well.
        let tails: u64 = sent.iter().zip(next).map(|(sent, next)| sent - next).sum();
        assert_eq!(gaps + tails, ring_drops());
        assert!(sent.iter().all(|sent| *sent > 100), "{sent:?}");
    });
}

/// How many leaves have seen a frame.
fn leaves_used() -> usize {
    let text = run("tc -s class show dev t0");
    let leaf = |lines: &str| lines.contains("leaf") || lines.contains("parent 7074:1 ");
    text.split("\n\n")
        .filter(|class| leaf(class) && !class.contains("Sent 0 bytes"))
        .count()
}

#[test]
fn each_of_forty_flows_has_a_leaf_of_its_own_and_keeps_it() {
    in_namespace(|| {
        let (_tap, mut intake) = tap(HERE, "10.9.0.1", THERE, "10.9.0.2");
        intake.set_rate(Some(100 * MEGABIT), usize::MAX).unwrap();
        assert_eq!(leaves_used(), 0);
        // By hash alone, 40 of 256 would be all different once in thirty runs.
        let flows: Vec<_> = (0..40u16)
            .map(|flow| {
                let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
                socket.connect(("10.9.0.2", 1000 + flow)).unwrap();
                socket
            })
            .collect();
        for _ in 0..3 {
            for flow in &flows {
                flow.send(&[0; 300]).unwrap();
            }
        }
        pause(Duration::from_millis(100));
        assert_eq!(leaves_used(), flows.len());
    });
}

#[test]
fn frames_are_no_longer_than_a_millisecond_of_the_line() {
    in_namespace(|| {
        let (_tap, mut intake) = tap(HERE, "10.9.0.1", THERE, "10.9.0.2");
        for (rate_bps, bytes) in [
            (Some(MEGABIT), FRAME_BYTES_MIN),
            (Some(100 * MEGABIT), 12_500),
            (Some(130 * MEGABIT), 12_500),
            (Some(10_000 * MEGABIT), 65_536),
            (Some(100 * MEGABIT), 12_500),
            (None, 65_536),
            (Some(100 * MEGABIT), 12_500),
            (Some(300 * MEGABIT), 37_500),
            (None, 65_536),
            (Some(300 * MEGABIT), 37_500),
        ] {
            intake.set_rate(rate_bps, usize::MAX).unwrap();
            let text = run("ip -d link show t0");
            let shown = format!(" gso_max_size {bytes} ");
            assert!(text.contains(&shown), "{rate_bps:?}: {text}");
        }
    });
}

/// Otherwise flows of long segments had three times the share of others: a turn is one frame at least.
#[test]
fn two_segments_have_room_in_a_turn_of_their_leaf_however_long_they_are() {
    in_namespace(|| {
        let (_tap, mut intake) = tap(HERE, "10.9.0.1", THERE, "10.9.0.2");
        for (mtu, bytes) in [
            (1500, 12_500),
            (9000, 18_000),
            (19_500, 39_000),
            (65_521, 65_536),
        ] {
            ip(&format!("link set t0 mtu {mtu}"));
            // Leaves follow a rate that is another one.
            intake.set_rate(Some(MEGABIT), usize::MAX).unwrap();
            intake.set_rate(Some(100 * MEGABIT), usize::MAX).unwrap();
            let classes = run("tc -d class show dev t0 classid 7074:10");
            let (_, rest) = classes.split_once(" quantum ").unwrap();
            let quantum = rest.split(' ').next().unwrap();
            assert_eq!(quantum, quantum_text(bytes), "{mtu}: {classes}");
        }
    });
}

/// As tc writes it.
fn quantum_text(frame_bytes: u32) -> String {
    quantum(frame_bytes).to_string()
}

#[test]
fn frames_that_are_kept_small_are_so_at_any_rate() {
    in_namespace(|| {
        let (_tap, mut intake) = tap(HERE, "10.9.0.1", THERE, "10.9.0.2");
        let largest = || {
            let text = run("ip -d link show t0");
            let (_, rest) = text.split_once(" gso_max_size ").unwrap();
            rest.split(' ').next().unwrap().parse::<u32>().unwrap()
        };
        intake.keep_frames_below(16_500);
        assert_eq!(largest(), 16_500);
        for (rate_bps, bytes) in [
            (Some(300 * MEGABIT), 16_500),
            (Some(100 * MEGABIT), 12_500),
            (None, 16_500),
        ] {
            intake.set_rate(rate_bps, usize::MAX).unwrap();
            assert_eq!(largest(), bytes, "{rate_bps:?}");
        }
        intake.set_rate(Some(300 * MEGABIT), usize::MAX).unwrap();
        intake.keep_frames_below(FRAME_BYTES_MAX);
        assert_eq!(largest(), 37_500);
        intake.set_rate(None, usize::MAX).unwrap();
        assert_eq!(largest(), FRAME_BYTES_MAX);
    });
}

#[test]
fn small_flows_do_not_wait_behind_large_ones() {
    in_namespace(|| {
        let (mut tap, mut intake) = tap(HERE, "10.9.0.1", THERE, "10.9.0.2");
        intake.set_rate(Some(10 * MEGABIT), usize::MAX).unwrap();
        let floods: Vec<_> = (0..3).map(|_| flood(1400).0).collect();
        pause(Duration::from_millis(200));
        let backlog = intake.queue().unwrap();
        // 10 Mbit/s take 1.2 ms for a frame of this backlog.
        assert!(backlog.frames > 60, "{backlog:?}");
        let mut pool = BufferPool::new();
        let mut waits = Vec::new();
        for _ in 0..9 {
            // A flow of its own each time: now and then one shares its leaf with a flood.
            let probe = UdpSocket::bind("10.9.0.1:0").unwrap();
            probe.connect("10.9.0.2:7").unwrap();
            while tap.receive(&mut pool).unwrap().is_some() {}
            let start = now();
            probe.send(b"probe").unwrap();
            'arrived: loop {
                wait_readable(&tap, 20);
                while let Some((frame, _)) = tap.receive(&mut pool).unwrap() {
                    if frame[36..38] == 7u16.to_be_bytes() {
                        break 'arrived;
                    }
                }
                assert!(
                    start.elapsed() < Duration::from_secs(5),
                    "the probe is lost"
                );
            }
            waits.push(start.elapsed());
            pause(Duration::from_millis(100));
        }
        waits.sort();
        assert!(
            waits[4] < Duration::from_millis(20),
            "{waits:?} behind {backlog:?}"
        );
        for flood in floods {
            flood.stop();
        }
    });
}

/// Another namespace with a TAP of its own, on a thread that serves one TCP connection.
fn tcp_sink() -> (Tap, JoinHandle<u64>) {
    let (give, take) = std::sync::mpsc::channel();
    let server = thread::spawn(move || {
        // SAFETY: no pointers; the namespace changes for this thread alone.
        check(unsafe { libc::unshare(libc::CLONE_NEWNET) }).unwrap();
        let (tap, _intake) = tap(THERE, "10.9.0.2", HERE, "10.9.0.1");
        let listener = TcpListener::bind("10.9.0.2:7").unwrap();
        give.send(tap).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        std::io::copy(&mut stream, &mut std::io::sink()).unwrap()
    });
    (take.recv().unwrap(), server)
}

/// Carries frames between two TAPs, both ways; counts the bytes of the one, and gives the largest
/// frame of its second half.
fn forward(mut from: Tap, mut to: Tap, bytes: Arc<AtomicU64>) -> Beside<usize> {
    Beside::start(move |stop| {
        let mut lengths = Vec::new();
        let mut pool = BufferPool::new();
        while !stop.load(Ordering::Relaxed) {
            wait_readable(&from, 1);
            for back in [false, true] {
                let (source, sink) = if back {
                    (&mut to, &from)
                } else {
                    (&mut from, &to)
                };
                while let Some((frame, offload)) = source.receive(&mut pool).unwrap() {
                    let (head, body) = frame.split_at(14);
                    sink.send(&Delivery {
                        head,
                        body,
                        offload,
                    })
                    .unwrap();
                    if !back {
                        bytes.fetch_add(frame.len() as u64, Ordering::Relaxed);
                        lengths.push(frame.len());
                    }
                    pool.give_back(frame);
                }
            }
        }
        lengths[lengths.len() / 2..]
            .iter()
            .copied()
            .max()
            .unwrap_or(0)
    })
}

#[test]
fn a_tcp_flow_is_held_to_the_rate_without_a_drop_and_with_little_waiting() {
    in_namespace(|| {
        let (there, server) = tcp_sink();
        let (here, mut intake) = tap(HERE, "10.9.0.1", THERE, "10.9.0.2");
        intake.set_rate(Some(50 * MEGABIT), usize::MAX).unwrap();
        let bytes = Arc::new(AtomicU64::new(0));
        let forward = forward(here, there, bytes.clone());
        let address = SocketAddr::new(IpAddr::from([10, 9, 0, 2]), 7);
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5)).unwrap();
        let sender = Beside::start(move |stop| {
            let block = vec![7; 64 * 1024];
            let mut sent = 0;
            while !stop.load(Ordering::Relaxed) {
                std::io::Write::write_all(&mut stream, &block).unwrap();
                sent += block.len() as u64;
            }
            sent
        });
        pause(Duration::from_millis(500));
        assert_rate(&bytes, Duration::from_secs(2), 50 * MEGABIT);
        // One look may fall on a moment in which the processor was away.
        let mut looks: Vec<_> = (0..9)
            .map(|_| {
                pause(Duration::from_millis(20));
                intake.queue().unwrap()
            })
            .collect();
        looks.sort_by_key(|queue| queue.bytes);
        let sent = sender.stop();
        assert_eq!(server.join().unwrap(), sent);
        let largest = forward.stop();
        // A millisecond of 50 Mbit/s, and several segments still.
        assert!((2 * 1448..6400).contains(&largest), "{largest}");
        assert!(looks.iter().all(|queue| queue.dropped == 0), "{looks:?}");
        // TCP small queues: a few GSO frames, not the 4 MB to which the socket's buffer grows. Where the processor is
        // shared, BBR takes the shortest wait for the round trip, and keeps twice as much out.
        assert!(looks[4].bytes < 200_000, "{looks:?}");
        assert!(looks[8].bytes < 400_000, "{looks:?}");
    });
}

#[test]
fn it_is_put_in_at_once_and_a_rate_is_set_in_microseconds() {
    in_namespace(|| {
        let tap = Tap::create("t0", HERE).unwrap();
        let start = now();
        let mut intake = Intake::attach(tap.ifindex()).unwrap();
        eprintln!("attach: {:?}", start.elapsed());
        // A line is up in less than a second, and this is a small part of it.
        assert!(
            start.elapsed() < Duration::from_millis(500),
            "{:?}",
            start.elapsed()
        );
        let start = now();
        for step in 0..500 {
            intake
                .set_rate(Some((10 + step) * MEGABIT), usize::MAX)
                .unwrap();
        }
        let each = start.elapsed() / 500;
        eprintln!("set_rate: {each:?}");
        // 50 times a second is then below 2.5 % of a core, on a starved machine too.
        assert!(each < Duration::from_micros(500), "{each:?}");
    });
}

#[test]
fn it_goes_with_its_interface_and_says_so_when_asked_after() {
    in_namespace(|| {
        let (tap, mut intake) = tap(HERE, "10.9.0.1", THERE, "10.9.0.2");
        let ifindex = tap.ifindex();
        drop(tap);
        // A process that another test is about to start holds it until it runs its program.
        let error = (0..1000)
            .find_map(|_| {
                pause(Duration::from_millis(5));
                intake.set_rate(Some(MEGABIT), usize::MAX).err()
            })
            .expect("the interface is gone");
        let text = error.to_string();
        let start = format!("cannot set an HTB class of interface {ifindex} to 1000000 bit/s: ");
        assert!(text.starts_with(&start), "{text}");
    });
}
