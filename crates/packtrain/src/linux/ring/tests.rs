//! The ring behind a real TAP: what comes by it, whole and in order, and what does not.

use std::net::UdpSocket;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use packtrain_proto::buffer::BufferPool;
use packtrain_proto::wire::ethernet::MacAddr;

use super::*;
use crate::linux::intake::Intake;
use crate::linux::tap::Tap;
use crate::linux::test_namespace::{in_namespace, ip, run};

/// A TAP with an intake and an open ring behind which a neighbour is said to be.
fn with_ring(test: impl FnOnce(Tap, Intake, Ring) + Send + 'static) {
    in_namespace(|| {
        let tap = Tap::create("t0", MacAddr([2, 0, 0, 0, 0, 1])).unwrap();
        let intake = Intake::attach(tap.ifindex()).unwrap();
        let ring = intake.open_ring().unwrap();
        run("sysctl -qw net.ipv6.conf.t0.disable_ipv6=1");
        ip("address add 10.9.0.1/24 dev t0");
        ip("link set t0 up");
        ip("neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev t0");
        ring.set_open(true);
        test(tap, intake, ring);
    });
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
    socket.connect("10.9.0.2:9").unwrap();
    socket
}

fn from_ring(ring: &mut Ring) -> Vec<(Vec<u8>, Offload)> {
    let mut frames = Vec::new();
    while let Some(frame) = ring.next_frame() {
        frames.push((frame.bytes.to_vec(), frame.offload));
    }
    ring.release();
    frames
}

fn from_tap(tap: &mut Tap) -> Vec<(Vec<u8>, Offload)> {
    let mut pool = BufferPool::new();
    let mut frames = Vec::new();
    while let Some((frame, offload)) = tap.receive(&mut pool).unwrap() {
        frames.push((frame.to_vec(), offload));
    }
    frames
}

#[test]
fn numbers_are_those_of_the_header() {
    let header = include_str!("../../bpf/ring.h");
    assert!(header.contains("#define RING_BYTES		(1 << 20)"));
    assert_eq!(RING_BYTES, 1 << 20);
    // Three halves and one that is free, and a word.
    assert_eq!(RECORD_LEN, 4 * 2 + 4);
}

/// The same datagram by both, but for its number in the IP header.
#[test]
fn a_frame_is_the_same_by_the_ring_and_by_the_tap_its_unfinished_checksum_too() {
    with_ring(|mut tap, _intake, mut ring| {
        let socket = socket();
        for payload in [0, 1, 64, 65, 66, 67, 193, 194, 195, 449, 450] {
            let bytes: Vec<u8> = (0..payload).map(|at| at as u8).collect();
            socket.send(&bytes).unwrap();
            let by_ring = from_ring(&mut ring);
            assert!(from_tap(&mut tap).is_empty(), "{payload}");
            ring.set_open(false);
            socket.send(&bytes).unwrap();
            ring.set_open(true);
            let by_tap = from_tap(&mut tap);
            ring.set_read(ring.to_tap());
            let without_number = |mut frame: (Vec<u8>, Offload)| {
                frame.0[18..20].fill(0); // IPv4 identification
                frame.0[24..26].fill(0); // … and what sums it up
                frame
            };
            let [one, other] = [by_ring, by_tap].map(|frames| {
                assert_eq!(frames.len(), 1, "{payload}");
                without_number(frames[0].clone())
            });
            assert!(one.1.checksum.is_some(), "the TAP finishes none");
            assert_eq!(one, other, "{payload}");
        }
    });
}

#[test]
fn large_frames_and_those_of_a_flow_that_stands_in_the_tap_go_by_the_tap() {
    with_ring(|mut tap, _intake, mut ring| {
        let (one, other) = (socket(), socket());
        one.send(&[1; 451]).unwrap();
        assert_eq!(ring.to_tap(), 1);
        // The next one comes after that, and says so.
        one.send(&[2; 20]).unwrap();
        other.send(&[3; 20]).unwrap();
        assert_eq!(ring.next_is_after(), Some(1));
        assert_eq!(ring.next_frame().unwrap().bytes[42], 2);
        assert_eq!(ring.next_is_after(), Some(0));
        assert_eq!(ring.next_frame().unwrap().bytes[42], 3);
        ring.release();
        // Of too many under way no order is known.
        for _ in 0..64 {
            one.send(&[4; 451]).unwrap();
        }
        one.send(&[5; 20]).unwrap();
        other.send(&[6; 20]).unwrap();
        assert_eq!(from_ring(&mut ring).len(), 1, "the other flow's alone");
        let by_tap = from_tap(&mut tap);
        assert_eq!((by_tap.len(), by_tap[65].0[42]), (66, 5));
        ring.set_read(ring.to_tap());
        one.send(&[7; 20]).unwrap();
        assert_eq!((from_ring(&mut ring).len(), ring.to_tap()), (1, 66));
    });
}

#[test]
fn who_sleeps_is_woken_by_the_tap_and_what_follows_comes_by_the_ring() {
    with_ring(|mut tap, _intake, mut ring| {
        let socket = socket();
        assert!(ring.may_sleep());
        for number in 1..=3 {
            socket.send(&[number; 20]).unwrap();
        }
        assert_eq!(from_tap(&mut tap).len(), 1);
        assert!(!ring.may_sleep(), "two are in the ring");
        ring.is_awake();
        let frames = from_ring(&mut ring);
        let numbers: Vec<u8> = frames.iter().map(|(bytes, _)| bytes[42]).collect();
        assert_eq!(numbers, [2, 3]);
        assert!(ring.may_sleep());
    });
}

#[test]
fn what_a_full_ring_has_no_room_for_goes_by_the_tap_and_nothing_is_lost() {
    with_ring(|mut tap, _intake, mut ring| {
        let socket = socket();
        let mut sent = 0u32;
        while ring.counts().full < 3 {
            socket
                .send(&[&sent.to_be_bytes()[..], &[0; 440]].concat())
                .unwrap();
            sent += 1;
        }
        let frames = [from_ring(&mut ring), from_tap(&mut tap)].concat();
        let number = |bytes: &[u8]| u32::from_be_bytes(bytes[42..46].try_into().unwrap());
        let numbers: Vec<u32> = frames.iter().map(|(bytes, _)| number(bytes)).collect();
        assert_eq!(numbers, (0..sent).collect::<Vec<_>>());
        assert_eq!(
            ring.counts(),
            RingCounts {
                to_tap: 3,
                by_ring: u64::from(sent) - 3,
                full: 3
            }
        );
        // Round and round: records that go past the end are whole.
        ring.set_read(3);
        for number in 0..20_000u32 {
            let payload = number as usize % 400;
            let bytes = [&number.to_be_bytes()[..], &vec![number as u8; payload]].concat();
            socket.send(&bytes).unwrap();
            let frames = from_ring(&mut ring);
            assert_eq!(
                (frames.len(), &frames[0].0[42..]),
                (1, &bytes[..]),
                "{number}"
            );
        }
    });
}

#[test]
fn who_watches_the_interface_sees_all_and_all_go_by_the_tap() {
    with_ring(|mut tap, _intake, mut ring| {
        let socket = socket();
        // SAFETY: calls without pointers, and one of which the address lives across it.
        let watch = |ifindex: u32| unsafe {
            let all = (libc::ETH_P_ALL as u16).to_be();
            let fd = libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0);
            let mut to: libc::sockaddr_ll = std::mem::zeroed();
            to.sll_family = libc::AF_PACKET as u16;
            to.sll_protocol = all;
            to.sll_ifindex = ifindex as i32;
            let len = size_of::<libc::sockaddr_ll>() as u32;
            assert_eq!(libc::bind(fd, (&raw const to).cast(), len), 0);
            <OwnedFd as FromRawFd>::from_raw_fd(fd)
        };
        for ifindex in [tap.ifindex(), 0] {
            let watching = watch(ifindex);
            socket.send(&[1; 20]).unwrap();
            assert_eq!(
                (from_ring(&mut ring).len(), from_tap(&mut tap).len()),
                (0, 1)
            );
            let mut seen = [0; 100];
            // SAFETY: into an array of that length.
            let len = unsafe {
                libc::recv(
                    watching.as_raw_fd(),
                    seen.as_mut_ptr().cast(),
                    100,
                    libc::MSG_DONTWAIT,
                )
            };
            assert_eq!(len, 62, "of interface {ifindex}");
            drop(watching);
            ring.set_read(ring.to_tap());
            // Its end takes the kernel a moment.
            let went = (0..500).any(|_| {
                std::thread::yield_now();
                socket.send(&[2; 20]).unwrap();
                let by_ring = from_ring(&mut ring).len();
                from_tap(&mut tap);
                ring.set_read(ring.to_tap());
                by_ring == 1
            });
            assert!(went);
        }
    });
}

#[test]
fn when_the_last_process_that_held_the_intake_is_gone_nothing_goes_into_the_ring() {
    with_ring(|mut tap, intake, mut ring| {
        let socket = socket();
        socket.send(&[1; 20]).unwrap();
        assert_eq!(from_ring(&mut ring).len(), 1);
        // The filter and its program stay with the interface, and the ring is open.
        drop(intake);
        let by_tap = (0..500).any(|_| {
            std::thread::yield_now();
            socket.send(&[2; 20]).unwrap();
            from_ring(&mut ring);
            from_tap(&mut tap).len() == 1
        });
        assert!(by_tap);
        for _ in 0..10 {
            socket.send(&[3; 20]).unwrap();
        }
        assert_eq!(
            (from_ring(&mut ring).len(), from_tap(&mut tap).len()),
            (0, 10)
        );
    });
}
