//! What closes the path: small frames that come too fast, and queues that stand.

use std::time::{Duration, Instant};

use libbpf_rs::ProgramInput;
use packtrain_proto::offload::Offload;

use super::tests::{
    GO_ON, IPV4, PEER, PT0, REDIRECT, destination, frame, index_of, leave, segment, with_path,
};
use super::*;
use crate::clock::Clock;
use crate::linux::packet_socket::{Frames, PacketSocket, SendError};
use crate::linux::test_namespace::{in_namespace, ip, run};

#[test]
fn what_was_closed_stays_closed_until_destinations_are_set_anew() {
    with_path(|path| {
        path.set_destinations(&[destination()]).unwrap();
        assert!(path.closed_links().unwrap().is_empty());
        close(path, 3);
        assert_eq!(path.closed_links().unwrap(), [3]);
        assert_eq!(leave(path, &frame(PEER, PT0, IPV4, 1, 100)).0, GO_ON);
        path.set_drained(100).unwrap();
        assert_eq!(leave(path, &frame(PEER, PT0, IPV4, 2, 100)).0, GO_ON);
        path.set_destinations(&[destination()]).unwrap();
        assert!(path.closed_links().unwrap().is_empty());
        assert_eq!(leave(path, &frame(PEER, PT0, IPV4, 3, 100)).0, REDIRECT);
    });
}

/// As `direct_watch` does when a queue stands.
pub(super) fn close(path: &DirectPath, link: u8) {
    let key = u32::from(link).to_ne_bytes();
    let opening = path.orders.opening.to_ne_bytes();
    path.closed.update(&key, &opening, MapFlags::ANY).unwrap();
}

/// Whether this frame closes the link when it goes there a million times, one after the other.
fn closes(path: &mut DirectPath, bytes: &[u8]) -> bool {
    // A frame that stays as it is may be sent again and again.
    let to_itself = Destination {
        outer_destination: PEER,
        outer_source: PT0,
        ..destination()
    };
    path.set_destinations(&[to_itself]).unwrap();
    let mut programs = path.object.progs_mut();
    let program = programs.find(|p| p.name() == "direct_leave");
    let input = ProgramInput {
        data_in: Some(bytes),
        repeat: 1_000_000,
        ..ProgramInput::default()
    };
    let program = program.expect("the program");
    program.test_run(input).expect("a test run");
    path.closed_links().unwrap() == [3]
}

#[test]
fn many_small_frames_close_the_path_and_as_many_large_ones_do_not() {
    with_path(|path| {
        // Now and then one is not many.
        path.set_destinations(&[destination()]).unwrap();
        for _ in 0..1000 {
            assert_eq!(leave(path, &frame(PEER, PT0, IPV4, 1, 100)).0, REDIRECT);
        }
        let datagram = |payload| frame(PEER, PT0, IPV4, 1, payload);
        assert!(!closes(path, &datagram(400)));
        let before = path.state().unwrap().small_frames;
        path.leave_small_frames(true).unwrap();
        assert!(
            !closes(path, &datagram(100)),
            "the engine does not want them"
        );
        path.leave_small_frames(false).unwrap();
        assert!(closes(path, &datagram(100)));
        let small = path.state().unwrap().small_frames;
        assert!(small.windows > before.windows + 1);
    });
}

#[test]
#[allow(clippy::disallowed_methods)] // they are counted in real time
fn how_many_small_frames_go_a_second_is_counted_whether_or_not_they_close_the_path() {
    with_path(|path| {
        path.set_destinations(&[destination()]).unwrap();
        // Until another window is over: how many frames that took, and how long.
        let window = |path: &DirectPath| {
            let before = path.state().unwrap().small_frames.windows;
            let (start, mut frames) = (Instant::now(), 0);
            while path.state().unwrap().small_frames.windows == before {
                assert_eq!(leave(path, &frame(PEER, PT0, IPV4, 1, 100)).0, REDIRECT);
                frames += 1;
                // Not so many that they close it.
                std::thread::sleep(Duration::from_micros(100));
            }
            (f64::from(frames), start.elapsed().as_secs_f64())
        };
        for leaves_small in [false, true] {
            path.leave_small_frames(leaves_small).unwrap();
            window(path);
            let (frames, elapsed_s) = window(path);
            // The clock that they are counted by has ticks of some milliseconds.
            assert!(elapsed_s > 0.01, "{elapsed_s}");
            let per_second = f64::from(path.state().unwrap().small_frames.per_second);
            let ratio = per_second / (frames / elapsed_s);
            assert!((0.5..2.0).contains(&ratio), "{ratio} of {frames}");
        }
    });
}

#[test]
fn acknowledgements_of_a_fast_flow_do_not_close_the_path_and_small_segments_do() {
    for ipv6 in [false, true] {
        with_path(move |path| {
            assert!(!closes(path, &segment(ipv6, 0)), "IPv6: {ipv6}");
            assert!(closes(path, &segment(ipv6, 1)), "IPv6: {ipv6}");
        });
    }
}

const SLOW: &str = "tbf rate 20mbit burst 20000 limit 4000000";

#[test]
fn a_queue_that_stands_closes_the_path_and_a_burst_does_not() {
    is_closed_by_what_stands(destination(), || {
        ip("link add a0 type veth peer name b0");
        run(&format!("tc qdisc add dev a0 root {SLOW}"));
    });
}

#[test]
fn nor_need_the_frames_that_stand_have_a_mark() {
    let unmarked = Destination {
        outer_source: MacAddr([0x52, 0x54, 0, 0, 0, 1]),
        kind: DirectKind::None,
        ..destination()
    };
    is_closed_by_what_stands(unmarked, || {
        ip("link add a0 type veth peer name b0");
        run(&format!("tc qdisc add dev a0 root {SLOW}"));
    });
}

/// All frames of the flow go to one of them.
#[test]
fn one_that_stands_of_a_links_many_queues_closes_the_path() {
    is_closed_by_what_stands(destination(), || {
        ip("link add a0 numtxqueues 24 numrxqueues 24 type veth peer name b0");
        run("tc qdisc add dev a0 root handle 1: mq");
        for queue in 1..=24 {
            run(&format!("tc qdisc add dev a0 parent 1:{queue:x} {SLOW}"));
        }
    });
}

/// Where in `struct direct_watch` stands when it was fast last.
const WATCH_FAST_AT: usize = 48;

/// Through real interfaces: out by `a0`, whose queue is a token bucket filter's, and counted at its
/// other end.
#[allow(clippy::disallowed_methods)] // a queue stands in real time
fn is_closed_by_what_stands(to: Destination, add_a0: impl FnOnce() + Send + 'static) {
    in_namespace(move || {
        add_a0();
        ip("link set a0 up");
        ip("link set b0 up");
        ip("link add pt0 type veth peer name other");
        ip(&format!("link set pt0 address {PT0} addrgenmode none"));
        ip("link set pt0 up");
        let (a0, pt0) = (index_of("a0"), index_of("pt0"));
        let mut path = DirectPath::attach(pt0, PT0, false).unwrap();
        let over_a0 = Destination { ifindex: a0, ..to };
        path.set_destinations(&[over_a0]).unwrap();
        let mut socket = PacketSocket::create().unwrap();
        socket.bind(pt0, Frames::All).unwrap();
        let mut send = |frames: usize| {
            for _ in 0..frames {
                let bytes = frame(PEER, PT0, IPV4, 1, 1000);
                match socket.send(&bytes, Offload::NONE) {
                    // It was not sent, for as much as may stands there already.
                    Ok(()) | Err(SendError::WouldBlock) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        };
        // Within the bucket, then 50 frames: 20 ms of queue, and seen only while it is made.
        send(5);
        send(50);
        assert_eq!(path.state().unwrap(), State::default());
        assert_eq!(path.traffic(3).unwrap().frames, 55);
        // A sender that keeps it filled.
        let begin = std::time::Instant::now();
        while path.closed_links().unwrap().is_empty() {
            assert!(
                begin.elapsed().as_secs() < 10,
                "it stands, and nobody sees it"
            );
            send(10);
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        assert_eq!(path.closed_links().unwrap(), [3]);
        let direct = path.traffic(3).unwrap().frames;
        let tickets = path.state().unwrap().tickets;
        send(7);
        let now = path.state().unwrap();
        assert_eq!(
            (path.traffic(3).unwrap().frames, now.tickets),
            (direct, tickets + 7)
        );
        // Open again, they still go to the engine, until they are known to have come.
        path.set_destinations(&[over_a0]).unwrap();
        send(1);
        path.set_drained(tickets + 8).unwrap();
        send(1);
        let now = path.state().unwrap();
        assert_eq!(
            (path.traffic(3).unwrap().frames, now.tickets),
            (direct + 1, tickets + 8)
        );
        // Where there is said to be no queue nobody looks, until one is there.
        let unseen = Destination {
            has_queue: false,
            ..over_a0
        };
        path.set_destinations(&[unseen]).unwrap();
        assert!(
            path.ways[&a0].watch.is_none(),
            "it would cost each frame something"
        );
        let mut is_closed_after = |path: &DirectPath, ms| {
            let begin = std::time::Instant::now();
            while begin.elapsed().as_millis() < ms && path.closed_links().unwrap().is_empty() {
                send(10);
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            path.closed_links().unwrap() == [3]
        };
        assert!(!is_closed_after(&path, 100));
        path.set_destinations(&[over_a0]).unwrap();
        assert!(is_closed_after(&path, 10_000));
        // What was faster than any engine a moment ago is not closed for a moment in which it is not.
        let (now, second_ns) = (Clock::start().monotonic_nanos(), 1_000_000_000);
        for (fast_at, is_closed) in [(now + 20 * second_ns, false), (now - second_ns, true)] {
            // What went to the engine meanwhile has come.
            path.set_drained(path.state().unwrap().tickets).unwrap();
            path.set_destinations(&[over_a0]).unwrap();
            let mut watch = [0; WATCH_LEN];
            watch[WATCH_FAST_AT..][..8].copy_from_slice(&fast_at.to_ne_bytes());
            let (link, flags) = (3u32.to_ne_bytes(), MapFlags::ANY);
            path.watches.update(&link, &watch, flags).unwrap();
            let ms = if is_closed { 10_000 } else { 100 };
            assert_eq!(is_closed_after(&path, ms), is_closed);
        }
    });
}
