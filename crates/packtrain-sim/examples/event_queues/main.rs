//! What a queue of events takes for an event, by kind and by what is asked of it:
//! `cargo run --release -p packtrain-sim --example event_queues`
//!
//! The hold model (Jones 1986; Rönngren and Ayani 1997): so many events wait, and whenever the next is
//! taken, one is put that is ahead of it by a draw. The draws are made before, so that only the queue is
//! measured. Kinds take turns, and the middle of the rounds is told.

use std::hint::black_box;

use packtrain_proto::time::{Duration, Instant};
use packtrain_sim::event_queue::{EventQueue, HeapQueue, Queue};
use packtrain_sim::random::Random;

mod quaternary;

use quaternary::QuaternaryHeap;

const ROUNDS: usize = 7;
const EVENTS_PER_ROUND: usize = 400_000;
const DRAWS: usize = 1 << 16;

struct Workload {
    name: &'static str,
    pending: usize,
    /// How far ahead of now an event is put, in nanoseconds.
    ahead: fn(&mut Random, pending: u64) -> u64,
}

const WORKLOADS: &[Workload] = &[
    Workload {
        name: "exponential, one each µs",
        pending: 10,
        ahead: one_each_microsecond,
    },
    Workload {
        name: "exponential, one each µs",
        pending: 1000,
        ahead: one_each_microsecond,
    },
    Workload {
        name: "exponential, one each µs",
        pending: 100_000,
        ahead: one_each_microsecond,
    },
    Workload {
        name: "uniform to 20 µs",
        pending: 1000,
        ahead: |random, _| random.below(20_000),
    },
    Workload {
        name: "uniform to 20 µs",
        pending: 100_000,
        ahead: |random, _| random.below(20_000),
    },
    Workload {
        name: "1, 2 … 12 µs exactly",
        pending: 1000,
        ahead: |random, _| random.between(1, 12) * 1000,
    },
    Workload {
        name: "1, 2 … 12 µs exactly",
        pending: 100_000,
        ahead: |random, _| random.between(1, 12) * 1000,
    },
    Workload {
        name: "1 ns to 200 s, by magnitude",
        pending: 1000,
        ahead: |random, _| random.magnitude(1, 200_000_000_000),
    },
    Workload {
        name: "network",
        pending: 500,
        ahead: network,
    },
    Workload {
        name: "network",
        pending: 20_000,
        ahead: network,
    },
];

fn one_each_microsecond(random: &mut Random, pending: u64) -> u64 {
    random
        .exponential(Duration::from_micros(pending))
        .as_nanos() as u64
}

/// Frames that are sent, some of them over a long line, and a few timers.
fn network(random: &mut Random, _: u64) -> u64 {
    match random.below(1000) {
        0..930 => random.between(1_000, 12_000),
        930..998 => 50_000_000 + random.between(0, 12_000),
        _ => random.between(200_000_000, 1_000_000_000),
    }
}

fn main() {
    println!("ns per event, put and taken; the middle of {ROUNDS} rounds\n");
    println!("event  workload                      waiting   binary  4-ary  wheel");
    for workload in WORKLOADS {
        tell::<[u64; 1]>(workload, [7]);
        tell::<[u64; 10]>(workload, [7; 10]);
    }
}

fn tell<E: Copy + 'static>(workload: &Workload, event: E) {
    let mut kinds = [
        held::<HeapQueue<E>, E>(workload, event),
        held::<QuaternaryHeap<E>, E>(workload, event),
        held::<EventQueue<E>, E>(workload, event),
    ];
    let mut rounds = vec![Vec::new(); kinds.len()];
    for _ in 0..ROUNDS {
        for (kind, nanos) in kinds.iter_mut().zip(&mut rounds) {
            nanos.push(kind());
        }
    }
    let middle = |mut nanos: Vec<f64>| {
        nanos.sort_by(f64::total_cmp);
        nanos[ROUNDS / 2]
    };
    print!(
        "{:3} B  {:28} {:8}  ",
        size_of::<E>(),
        workload.name,
        workload.pending
    );
    for nanos in rounds {
        print!(" {:6.1}", middle(nanos));
    }
    println!();
}

/// A queue that has run for a while; each call is a round, and gives the time of an event in it.
fn held<Q, E>(workload: &Workload, event: E) -> Box<dyn FnMut() -> f64>
where
    Q: Queue<E> + Default + 'static,
    E: Copy + 'static,
{
    let mut random = Random::new(1);
    let pending = workload.pending as u64;
    let draws: Vec<u64> = (0..DRAWS)
        .map(|_| (workload.ahead)(&mut random, pending))
        .collect();
    let mut queue = Q::default();
    for n in 0..workload.pending {
        queue.push(Instant::from_nanos(draws[n % DRAWS]), event);
    }
    let mut drawn = 0;
    let mut run = move |events: usize| {
        for _ in 0..events {
            let (now, event) = queue.pop().expect("as many wait as ever");
            let ahead = draws[drawn % DRAWS];
            drawn += 1;
            queue.push(
                Instant::from_nanos(now.as_nanos() + ahead),
                black_box(event),
            );
        }
    };
    run(20 * workload.pending + EVENTS_PER_ROUND);
    Box::new(move || {
        #[allow(clippy::disallowed_methods)] // what is measured is real time
        let begun = std::time::Instant::now();
        run(EVENTS_PER_ROUND);
        begun.elapsed().as_nanos() as f64 / EVENTS_PER_ROUND as f64
    })
}
