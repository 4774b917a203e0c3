//! What a rate for each stream by its path (`pace rule add --auto`) is said to do, over drawn paths: whoever fails says its
//! seed.
//!
//! All streams go to one destination, through one bottleneck that nobody else uses, and always have something to send. A path
//! holds at most 400 packets: what happens goes by packets and round trips.

use packtrain_proto::time::{Duration, Instant};
use packtrain_sim::net::queue::QueueConfig;
use packtrain_sim::net::rate::{RateConfig, RateLevel};
use packtrain_sim::net::wire::WireConfig;
use packtrain_sim::random::Random;
use packtrain_sim::tcp::dumbbell::{Dumbbell, DumbbellConfig, FlowConfig};
use packtrain_sim::tcp::pacer::{RoundTrip, SpacingConfig};
use packtrain_sim::tcp::receiver::ReceiverConfig;
use packtrain_sim::tcp::sender::SenderConfig;

use crate::support::{FRAME_BYTES, MSS, PACKET_BYTES, ms, ns};

const BUFFER_FRAMES_MIN: u64 = 12;

#[derive(Clone, Debug)]
struct Case {
    seed: u64,
    streams: u32,
    rtt: Duration,
    bps: u64,
    /// What the path holds.
    packets: u64,
    buffer_bytes: usize,
}

/// Round trips of 5 to 300 ms, 1 Mbit/s to 1 Gbit/s, so that 100 to 400 packets are under way, 25 at least of each stream; a buffer of
/// a twentieth of that.
fn draw(seed: u64, streams: u32) -> Case {
    let mut random = Random::new(seed);
    let packets_min = u64::from(streams * 25).max(100);
    let (rtt_ns, bps, packets) = loop {
        let rtt_ns = random.magnitude(40_000_000, 300_000_000);
        let bps = random.magnitude(1_000_000, 1_000_000_000);
        let packets = bps / 8 * rtt_ns / 1_000_000_000 / PACKET_BYTES;
        if (packets_min..=400).contains(&packets) {
            break (rtt_ns, bps, packets);
        }
    };
    Case {
        seed,
        streams,
        rtt: ns(rtt_ns),
        bps,
        packets,
        buffer_bytes: (packets / 20).max(BUFFER_FRAMES_MIN) as usize * FRAME_BYTES,
    }
}

impl Case {
    fn wire(&self, bps: u64) -> WireConfig {
        WireConfig {
            rate: Some(RateConfig {
                bps,
                level: RateLevel::Ip,
            }),
            queue: QueueConfig::drop_tail(self.buffer_bytes),
            ..WireConfig::unrated(self.rtt / 2)
        }
    }

    fn flow(&self, starts: Duration) -> FlowConfig {
        FlowConfig {
            sender: SenderConfig {
                auto: true,
                cubic: true,
                spacing: Some(SpacingConfig {
                    precision: ms(1),
                    path: None,
                    round_trip: RoundTrip::Least,
                }),
                ..SenderConfig::default()
            },
            receiver: ReceiverConfig {
                window_bytes: 1 << 30,
                delayed_ack: None,
            },
            interface: WireConfig::perfect(10 * self.bps, ns(0)),
            starts,
            writes: vec![(ms(0), 1 << 40)],
        }
    }

    /// They begin within five round trips.
    fn starts(&self) -> Vec<Duration> {
        let mut random = Random::new(!self.seed);
        let one = |_| random.duration(ns(0), self.rtt * 5);
        (0..self.streams).map(one).collect()
    }

    fn of(&self, starts: &[Duration]) -> Run {
        let config = DumbbellConfig {
            flows: starts.iter().map(|&starts| self.flow(starts)).collect(),
            bottleneck: self.wire(self.bps),
            way_back: WireConfig::unrated(self.rtt / 2),
            seed: self.seed,
        };
        Run {
            rtt: self.rtt,
            dumbbell: Dumbbell::new(&config),
            streams: starts.len(),
            until: Instant::ZERO,
        }
    }

    fn run(&self) -> Run {
        self.of(&self.starts())
    }

    /// Segments that it carries in so many round trips.
    fn carries(&self, bps: u64, round_trips: u32) -> f64 {
        bps as f64 * (self.rtt * round_trips).as_secs_f64() / 8.0 / PACKET_BYTES as f64
    }
}

struct Run {
    rtt: Duration,
    dumbbell: Dumbbell,
    streams: usize,
    until: Instant,
}

/// Some round trips of all streams.
#[derive(Clone, Debug)]
struct Seen {
    /// Segments that each has brought there.
    segments: Vec<u64>,
    dropped: u64,
    queue_min: usize,
    queue_max: usize,
}

impl Run {
    fn goes_on(&mut self, round_trips: u32) -> Seen {
        self.until = self.until + self.rtt * round_trips;
        let until = self.until;
        let (before, dropped) = (self.had(), self.dumbbell.router().dropped());
        let (mut queue_min, mut queue_max) = (usize::MAX, 0);
        self.dumbbell.run_while(|dumbbell| {
            let queued = dumbbell.bottleneck().queued_bytes();
            queue_min = queue_min.min(queued);
            queue_max = queue_max.max(queued);
            dumbbell.now() < until
        });
        Seen {
            segments: self
                .had()
                .iter()
                .zip(before)
                .map(|(now, before)| now - before)
                .collect(),
            dropped: self.dumbbell.router().dropped() - dropped,
            queue_min,
            queue_max,
        }
    }

    fn had(&self) -> Vec<u64> {
        (0..self.streams)
            .map(|flow| self.dumbbell.sender(flow).acknowledged() / MSS)
            .collect()
    }
}

impl Seen {
    fn all(&self) -> f64 {
        self.segments.iter().sum::<u64>() as f64
    }

    /// (Σx)² ÷ (n · Σx²).
    fn jain(&self) -> f64 {
        let squares: f64 = self.segments.iter().map(|&x| (x * x) as f64).sum();
        self.all() * self.all() / (self.segments.len() as f64 * squares)
    }
}

#[test]
fn explore_steady() {
    for seed in 0..64 {
        let case = draw(seed, 1 + seed as u32 % 8);
        let mut run = case.run();
        let mut line = String::new();
        for _ in 0..8 {
            let seen = run.goes_on(32);
            line += &format!(
                " {:.3}/{:.3}/{}/{}-{}",
                seen.all() / case.carries(case.bps, 32),
                seen.jain(),
                seen.dropped,
                seen.queue_min / FRAME_BYTES,
                seen.queue_max / FRAME_BYTES
            );
        }
        println!(
            "{seed} n {} rtt {:?} {} Mbit {} packets{line}",
            case.streams,
            case.rtt,
            case.bps / 1_000_000,
            case.packets
        );
    }
}

#[test]
fn explore_double() {
    for seed in 0..64 {
        let mut case = draw(seed, 1 + seed as u32 % 8);
        case.buffer_bytes *= 2;
        let mut run = case.run();
        run.goes_on(64);
        run.dumbbell.set_bottleneck(&case.wire(2 * case.bps));
        let mut line = String::new();
        for _ in 0..12 {
            let seen = run.goes_on(32);
            line += &format!(
                " {:.2}/{:.2}/{}",
                seen.all() / case.carries(2 * case.bps, 32),
                seen.jain(),
                seen.dropped
            );
        }
        println!(
            "{seed} n {} rtt {:?} {} Mbit {} packets{line}",
            case.streams,
            case.rtt,
            case.bps / 1_000_000,
            case.packets
        );
    }
}

#[test]
fn explore_half() {
    for seed in 0..64 {
        let case = draw(seed, 1 + seed as u32 % 8);
        let mut run = case.run();
        run.goes_on(128);
        run.dumbbell.set_bottleneck(&case.wire(case.bps / 2));
        let mut line = String::new();
        for _ in 0..12 {
            let seen = run.goes_on(16);
            line += &format!(
                " {:.2}/{:.2}/{}/{}-{}",
                seen.all() / case.carries(case.bps / 2, 16),
                seen.jain(),
                seen.dropped,
                seen.queue_min / FRAME_BYTES,
                seen.queue_max / FRAME_BYTES
            );
        }
        println!(
            "{seed} n {} rtt {:?} {} Mbit {} packets{line}",
            case.streams,
            case.rtt,
            case.bps / 1_000_000,
            case.packets
        );
    }
}

#[test]
fn explore_newcomer() {
    for seed in 0..64 {
        let case = draw(seed, 1 + seed as u32 % 8);
        let mut starts = case.starts();
        starts.push(case.rtt * 128);
        let mut run = case.of(&starts);
        run.goes_on(128);
        let mut line = String::new();
        for _ in 0..12 {
            let seen = run.goes_on(4);
            let new = *seen.segments.last().unwrap() as f64;
            line += &format!(
                " {:.2} {:.2}/{}/{}-{}",
                new * starts.len() as f64 / case.carries(case.bps, 4),
                seen.all() / case.carries(case.bps, 4),
                seen.dropped,
                seen.queue_min / FRAME_BYTES,
                seen.queue_max / FRAME_BYTES
            );
        }
        println!(
            "{seed} n {} rtt {:?} {} Mbit {} packets{line}",
            case.streams,
            case.rtt,
            case.bps / 1_000_000,
            case.packets
        );
    }
}
