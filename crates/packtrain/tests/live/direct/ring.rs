//! Frames that come to the engine by the ring and by the TAP in turns, flow by flow in order and whole.

use std::net::UdpSocket;
use std::sync::atomic::AtomicBool;
use std::thread::yield_now;
use std::time::Duration;

use packtrain::linux::scheduling::stay_on;
use packtrain::status::HostRing;

use crate::common::cabled::{now, status};
use crate::common::numbered::{Came, SetAtEnd, datagram, receive};
use crate::common::{B, Pair, pings_whole};

const PORT: u16 = 7120;

#[test]
fn flows_of_small_and_large_frames_keep_their_order_between_the_ring_and_the_tap() {
    live!();
    let one = Producer {
        flows: 32,
        datagrams: 60_000,
        // No faster than any machine carries.
        each_takes: Duration::from_micros(25),
        burst: 100,
        cpu: None,
    };
    pass("ring", &[one], many_large);
}

/// The queue before `pt0` has a lock, and who holds it comes from another processor each time.
#[test]
fn so_do_those_of_several_programs_on_all_processors() {
    live!(alone);
    let on = |cpu| Producer {
        flows: 8,
        datagrams: 8_000,
        each_takes: Duration::from_micros(100),
        // More than the daemon takes in one turn.
        burst: 300,
        cpu: Some(cpu),
    };
    pass("producers", &[0, 1, 0, 1].map(on), few_large);
}

/// A program that sends datagrams of several flows.
#[derive(Clone, Copy)]
struct Producer {
    flows: usize,
    datagrams: u32,
    each_takes: Duration,
    /// So many at once, and then a pause in which the daemon goes to sleep.
    burst: u32,
    cpu: Option<usize>,
}

fn pass(tag: &str, producers: &[Producer], len_of: LenOf) {
    let pair = Pair::up_with(tag, 1500, &["--path", "engine"]).unwrap();
    // While nobody has answered where it is, the stack keeps what is sent, and drops the oldest.
    assert!(pings_whole(&pair.a, B, 100));
    let counted = || {
        let document = status(&pair.a);
        let ring = document.intake.expect("an intake").ring;
        ring.map(|ring| (ring, [document.drops, status(&pair.b).drops]))
    };
    let Some((ring_before, dropped_before)) = counted() else {
        return eprintln!("skipped: this kernel has no ring");
    };
    let came = send_and_receive(&pair, producers, len_of);
    assert_eq!((came.overtaken(), came.twice()), (0, 0));
    let (ring, dropped) = counted().unwrap();
    let HostRing {
        frames, tap_frames, ..
    } = ring;
    let by_ring = frames - ring_before.frames;
    let by_tap = tap_frames - ring_before.tap_frames;
    assert!(by_ring > 1000 && by_tap > 500, "{by_ring} {by_tap}");
    // A daemon that is away for long has a TAP that overflows, and counts what is missing. Nothing else drops any.
    let sent: u32 = producers.iter().map(|of| of.datagrams).sum();
    let lost = u64::from(sent) - came.total() as u64;
    let [mut of_a, of_b] = dropped.clone();
    let overrun = of_a.remove("host_overrun").unwrap_or(0);
    let [mut before_of_a, before_of_b] = dropped_before;
    let overrun = overrun - before_of_a.remove("host_overrun").unwrap_or(0);
    assert_eq!((of_a, of_b), (before_of_a, before_of_b));
    assert!(
        lost <= overrun && overrun < u64::from(sent) / 4,
        "{lost} {dropped:?}"
    );
}

fn send_and_receive(pair: &Pair, producers: &[Producer], len_of: LenOf) -> Came {
    let bind = || UdpSocket::bind((B, PORT));
    let receiver = pair.b.namespace.in_namespace(bind).unwrap().unwrap();
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(&receiver, 32 << 20);
    let flows = producers.iter().map(|of| of.flows).sum();
    let are_sent = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| receive(&receiver, flows, &are_sent, len_of));
        let sent = SetAtEnd(&are_sent);
        let mut first = 0;
        let sending = producers.iter().map(|producer| {
            let flow = first;
            first += producer.flows;
            let from = &pair.a.namespace;
            scope.spawn(move || from.in_namespace(|| producer.send(flow, len_of)).unwrap())
        });
        for sender in sending.collect::<Vec<_>>() {
            sender.join().unwrap();
        }
        drop(sent);
        receiving.join().unwrap()
    })
}

/// Of a datagram of a flow, by its number there.
type LenOf = fn(usize, u32) -> usize;

/// A flow changes between the ring and the TAP all the time.
fn many_large(flow: usize, number: u32) -> usize {
    match (number as usize * 7 + flow * 3) % 5 {
        0 => 900,
        1 => 449,
        2 => 460,
        _ => 20 + number as usize % 300,
    }
}

/// Most go by the ring, where many stand when one is read from the TAP.
fn few_large(flow: usize, number: u32) -> usize {
    match (number as usize + flow * 3) % 41 {
        0 => 900,
        _ => 20 + number as usize % 300,
    }
}

impl Producer {
    fn send(&self, first: usize, len_of: LenOf) {
        if let Some(cpu) = self.cpu {
            // Where there is one processor, all are on that.
            let _ = stay_on(cpu);
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
            if sent % self.burst == 0 {
                while begin.elapsed() < self.each_takes * sent {
                    yield_now();
                }
            }
        }
    }
}
