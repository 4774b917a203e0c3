//! Frames that come to the engine by the ring and by the TAP in turns, flow by flow in order and whole.

use std::net::UdpSocket;
use std::time::Duration;

use packtrain::status::HostRing;

use crate::common::cabled::{now, status};
use crate::common::{B, Pair, pings_whole};

const FLOWS: usize = 32;
const DATAGRAMS: u32 = 60_000;
/// So many at once, and then a pause in which the daemon goes to sleep.
const BURST: u32 = 100;

#[test]
fn flows_of_small_and_large_frames_keep_their_order_between_the_ring_and_the_tap() {
    live!();
    let pair = Pair::up_with("ring", 1500, &["--path", "engine"]).unwrap();
    // While nobody has answered where it is, the stack keeps what is sent, and drops the oldest.
    assert!(pings_whole(&pair.a, B, 100));
    let to = &pair.b.namespace;
    let receiver = to
        .in_namespace(|| UdpSocket::bind((B, 7120)))
        .unwrap()
        .unwrap();
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(&receiver, 32 << 20);
    receiver
        .set_read_timeout(Some(Duration::from_secs(1)))
        .unwrap();
    let received = std::thread::scope(|scope| {
        let receiving = scope.spawn(|| receive(&receiver));
        pair.a.namespace.in_namespace(send).unwrap();
        receiving.join().unwrap()
    });
    let ring = status(&pair.a).intake.expect("an intake").ring;
    let Some(HostRing {
        frames,
        tap_frames,
        full,
    }) = ring
    else {
        return eprintln!("skipped: this kernel has no ring");
    };
    assert!(
        frames > 1000 && tap_frames > 1000,
        "{frames} {tap_frames} {full}"
    );
    assert_eq!(received, DATAGRAMS, "{:?}", status(&pair.a).drops);
}

/// Flow, number in it, and bytes that follow from both.
fn datagram(flow: usize, number: u32) -> Vec<u8> {
    let len = match (number as usize * 7 + flow * 3) % 5 {
        0 => 900,
        1 => 449,
        2 => 460,
        _ => 20 + number as usize % 300,
    };
    let mut bytes = vec![number as u8 ^ flow as u8; len];
    bytes[..4].copy_from_slice(&(flow as u32).to_be_bytes());
    bytes[4..8].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn send() {
    let sockets: Vec<UdpSocket> = (0..FLOWS)
        .map(|_| {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            socket.connect((B, 7120)).unwrap();
            socket
        })
        .collect();
    let mut numbers = [0; FLOWS];
    let begin = now();
    for sent in 0..DATAGRAMS {
        // Runs of one flow, which a frame that is late by a few would show.
        let flow = (sent / 3) as usize % FLOWS;
        sockets[flow].send(&datagram(flow, numbers[flow])).unwrap();
        numbers[flow] += 1;
        if sent % BURST == 0 {
            // No faster than any machine carries.
            while begin.elapsed() < Duration::from_micros(u64::from(sent) * 25) {
                std::thread::yield_now();
            }
        }
    }
}

/// How many have come, each whole and in its turn.
fn receive(socket: &UdpSocket) -> u32 {
    let mut next = [0; FLOWS];
    let mut bytes = [0; 2000];
    while let Ok(len) = socket.recv(&mut bytes) {
        let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        let (flow, number) = (word(0) as usize, word(4));
        assert_eq!(number, next[flow], "of flow {flow}");
        assert!(
            bytes[..len] == datagram(flow, number)[..],
            "{flow} {number}"
        );
        next[flow] += 1;
    }
    next.iter().sum()
}
