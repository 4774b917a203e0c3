//! Frames that come to the engine by the ring and by the TAP in turns, flow by flow in order and whole.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::yield_now;
use std::time::Duration;

use packtrain::linux::real_time::stay_on;
use packtrain::status::HostRing;

use crate::common::cabled::{now, status};
use crate::common::numbered::{Came, datagram, receive};
use crate::common::{B, Pair, pings_whole, steady};

const PORT: u16 = 7120;
/// So many at once, and then a pause in which the daemon goes to sleep.
const BURST: u32 = 100;

#[test]
fn flows_of_small_and_large_frames_keep_their_order_between_the_ring_and_the_tap() {
    live!();
    let one = Producer {
        flows: 32,
        datagrams: 60_000,
        // No faster than any machine carries.
        each_takes: Duration::from_micros(25),
        cpu: None,
    };
    pass("ring", &[one]);
}

/// The queue before `pt0` has a lock, and who holds it comes from another processor each time.
#[test]
fn so_do_those_of_several_programs_on_all_processors() {
    live!();
    let on = |cpu| Producer {
        flows: 8,
        datagrams: 8_000,
        each_takes: Duration::from_micros(100),
        cpu: Some(cpu),
    };
    pass("producers", &[0, 1, 0, 1].map(on));
}

/// A program that sends datagrams of several flows.
#[derive(Clone, Copy)]
struct Producer {
    flows: usize,
    datagrams: u32,
    each_takes: Duration,
    cpu: Option<usize>,
}

fn pass(tag: &str, producers: &[Producer]) {
    let pair = Pair::up_with(tag, 1500, &["--path", "engine"]).unwrap();
    // While nobody has answered where it is, the stack keeps what is sent, and drops the oldest.
    assert!(pings_whole(&pair.a, B, 100));
    let counted = || status(&pair.a).intake.expect("an intake").ring;
    if counted().is_none() {
        return eprintln!("skipped: this kernel has no ring");
    }
    let sent: u32 = producers.iter().map(|of| of.datagrams).sum();
    let run = || {
        let before = counted().unwrap();
        let came = send_and_receive(&pair, producers);
        assert_eq!((came.overtaken(), came.twice()), (0, 0));
        let after = counted().unwrap();
        let counted = HostRing {
            frames: after.frames - before.frames,
            tap_frames: after.tap_frames - before.tap_frames,
            full: after.full - before.full,
        };
        (sent as usize - came.total(), counted)
    };
    // A daemon that is away for long has a TAP that overflows.
    steady::judge("lost, and how they came", run, |(lost, counted)| {
        *lost == 0 && counted.frames > 1000 && counted.tap_frames > 1000
    });
}

fn send_and_receive(pair: &Pair, producers: &[Producer]) -> Came {
    let bind = || UdpSocket::bind((B, PORT));
    let receiver = pair.b.namespace.in_namespace(bind).unwrap().unwrap();
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(&receiver, 32 << 20);
    let flows = producers.iter().map(|of| of.flows).sum();
    let are_sent = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| receive(&receiver, flows, &are_sent, len_of));
        let mut first = 0;
        let sending = producers.iter().map(|producer| {
            let flow = first;
            first += producer.flows;
            let from = &pair.a.namespace;
            scope.spawn(move || from.in_namespace(|| producer.send(flow)).unwrap())
        });
        for sender in sending.collect::<Vec<_>>() {
            sender.join().unwrap();
        }
        are_sent.store(true, Ordering::Release);
        receiving.join().unwrap()
    })
}

fn len_of(flow: usize, number: u32) -> usize {
    match (number as usize * 7 + flow * 3) % 5 {
        0 => 900,
        1 => 449,
        2 => 460,
        _ => 20 + number as usize % 300,
    }
}

impl Producer {
    fn send(&self, first: usize) {
        if let Some(cpu) = self.cpu {
            stay_on(cpu).unwrap();
        }
        let connect = |_| {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            socket.connect((B, PORT)).unwrap();
            socket
        };
        let sockets: Vec<UdpSocket> = (0..self.flows).map(connect).collect();
        let mut numbers = vec![0; self.flows];
        let begin = now();
        for sent in 0..self.datagrams {
            // Runs of one flow, which a frame that is late by a few would show.
            let at = (sent / 3) as usize % self.flows;
            let (flow, number) = (first + at, numbers[at]);
            let datagram = datagram(flow, number, len_of(flow, number));
            sockets[at].send(&datagram).unwrap();
            numbers[at] += 1;
            if sent % BURST == 0 {
                while begin.elapsed() < self.each_takes * sent {
                    yield_now();
                }
            }
        }
    }
}
