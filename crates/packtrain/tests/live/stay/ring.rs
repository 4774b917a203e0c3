//! Small frames that come by the ring, while the daemon that reads it is killed and another one is started.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use packtrain::lab::wait_for;
use rustix::process::Signal;

use super::staying;
use crate::classes::add;
use crate::common::cabled::{now, pause, status};
use crate::common::numbered::{SetAtEnd, datagram, receive};
use crate::common::undo::{SOON, kill};
use crate::common::{B, Pair};

const PORT: u16 = 7500;
const RATE_PER_SECOND: u32 = 4000;
/// What is sent in 100 ms: what the daemon has read and not sent on yet, or the next one reads as the first.
const AT_THE_EDGES: u32 = RATE_PER_SECOND / 10;

fn len_of(_flow: usize, number: u32) -> usize {
    20 + number as usize % 200
}

/// … has read out of it so far.
fn by_ring(pair: &Pair) -> u64 {
    let ring = status(&pair.a).intake.and_then(|intake| intake.ring);
    ring.map_or(0, |ring| ring.frames)
}

fn wait_until_they_come_by_it(pair: &Pair) {
    let begin = by_ring(pair);
    wait_for("frames by the ring", SOON, || by_ring(pair) > begin + 300).unwrap();
}

/// They are to go by the engine, and so they stop while there is none.
fn keep_from_the_direct_path(pair: &Pair) {
    let small = ["udp dport 7500", "--path", "engine"];
    add(&pair.a, "small", &small);
}

/// One after the other, as long as it is asked to; `next` is told.
fn send(next: &AtomicU32, are_enough: &AtomicBool) {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect((B, PORT)).unwrap();
    let begin = now();
    while !are_enough.load(Ordering::Relaxed) {
        let number = next.load(Ordering::Relaxed);
        // An error says that one was dropped: it is missing then.
        let _ = socket.send(&datagram(0, number, len_of(0, number)));
        next.store(number + 1, Ordering::Relaxed);
        while begin.elapsed() < Duration::from_secs(1) * number / RATE_PER_SECOND {
            pause(Duration::from_micros(500));
        }
    }
}

#[test]
fn of_frames_by_a_ring_whose_reader_is_killed_only_those_are_missing_that_nobody_was_there_for() {
    live!();
    let pair = staying("stayring", "--stay");
    if status(&pair.a)
        .intake
        .is_none_or(|intake| intake.ring.is_none())
    {
        return eprintln!("skipped: this kernel has no ring");
    }
    keep_from_the_direct_path(&pair);
    let bind = || UdpSocket::bind((B, PORT));
    let receiver = pair.b.namespace.in_namespace(bind).unwrap().unwrap();
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(&receiver, 32 << 20);
    let next = AtomicU32::new(0);
    let (are_enough, are_sent) = (AtomicBool::new(false), AtomicBool::new(false));
    let sent = || next.load(Ordering::Relaxed);
    let (killed, back, came) = std::thread::scope(|scope| {
        let receiving = scope.spawn(|| receive(&receiver, 1, &are_sent, len_of));
        let (enough, all_sent) = (SetAtEnd(&are_enough), SetAtEnd(&are_sent));
        let from = &pair.a.namespace;
        let sending = scope.spawn(|| from.in_namespace(|| send(&next, &are_enough)).unwrap());
        wait_until_they_come_by_it(&pair);
        let killed = sent();
        kill(&pair.a, Signal::KILL);
        pause(Duration::from_millis(200));
        pair.a_up(&["--stay"]).unwrap();
        keep_from_the_direct_path(&pair);
        let back = sent();
        wait_until_they_come_by_it(&pair);
        drop(enough);
        sending.join().unwrap();
        drop(all_sent);
        (killed, back, receiving.join().unwrap())
    });
    assert_eq!((came.overtaken(), came.twice()), (0, 0));
    let numbers = &came.0[0];
    let mut missing = (0..sent()).filter(|number| numbers.binary_search(number).is_err());
    let may_be_missing = killed.saturating_sub(AT_THE_EDGES)..back + AT_THE_EDGES;
    let wrong = missing.find(|number| !may_be_missing.contains(number));
    assert_eq!(wrong, None, "killed at {killed}, back at {back}");
    assert!(
        came.total() < sent() as usize,
        "nobody was there for a while"
    );
}
