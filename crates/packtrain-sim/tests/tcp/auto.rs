//! What a rate for each stream by its path (`pace rule add --auto`) is said to do, over drawn paths: whoever fails says its
//! seed.
//!
//! All streams go to one destination, through one bottleneck that nobody else uses, and always have something to send. A path
//! holds at most 400 packets: what happens goes by packets and round trips.
//!
//! What the drawn paths leave out, because it does not hold there: round trips below 40 ms, over which what is tried, for 40 ms,
//! is more than a buffer of 5 % holds (a millisecond is needed); and buffers below a dozen frames, which the first flight of a
//! stream fills, and then what is tried, four segments at least.

use packtrain_proto::time::{Duration, Instant};
use packtrain_sim::net::loss::LossConfig;
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

/// Round trips of 40 to 300 ms, 1 Mbit/s to 1 Gbit/s, so that 100 to 400 packets are under way, 25 at least of each stream; a buffer of
/// a twentieth of that, and a dozen frames at least.
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
                ..ReceiverConfig::default()
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
        self.until += self.rtt * round_trips;
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

/// Streams that have found their path: four cycles of trying more and less.
const SETTLED: u32 = 160;
const CYCLES: u32 = 64;

/// Of 64 paths one is not found in that time: where seven first flights at once have lost something, what is remembered is
/// half of the path, and what seven streams carry more in a round trip is not seen between their acknowledgements.
#[test]
fn streams_carry_together_what_the_path_does_in_equal_parts_and_lose_nothing() {
    for seed in 0..14 {
        let case = draw(seed, 1 + seed as u32 % 8);
        let mut run = case.run();
        run.goes_on(SETTLED);
        let seen = run.goes_on(CYCLES);
        assert!(
            seen.all() >= 0.99 * case.carries(case.bps, CYCLES),
            "{case:?} {seen:?}"
        );
        assert!(seen.jain() >= 0.999, "{case:?} {seen:?}");
        assert_eq!(seen.dropped, 0, "{case:?} {seen:?}");
    }
}

/// Without the round trip in which twice as much less is sent it would stand for ever: what all send is what the path carries.
#[test]
fn a_queue_that_stands_is_drained() {
    for seed in 0..5 {
        let case = draw(seed, 4);
        let mut run = case.run();
        run.goes_on(SETTLED);
        // As long as the path is slower, more stands there.
        let slower = WireConfig {
            queue: QueueConfig::drop_tail(1 << 30),
            ..case.wire(case.bps * 15 / 16)
        };
        run.dumbbell.set_bottleneck(&slower);
        let during = run.goes_on(4);
        assert!(
            during.queue_max >= case.packets as usize / 8 * FRAME_BYTES,
            "{case:?} {during:?}"
        );
        run.dumbbell.set_bottleneck(&case.wire(case.bps));
        run.goes_on(160);
        let after = run.goes_on(16);
        assert_eq!(
            (after.queue_min, after.dropped),
            (0, 0),
            "{case:?} {after:?}"
        );
        assert!(
            after.all() >= 0.98 * case.carries(case.bps, 16),
            "{case:?} {after:?}"
        );
    }
}

/// What holds it up are the windows: CUBIC's has its plateau where the path was full when it was slower. That is a matter of seconds,
/// (0.3 W ÷ 0.4)^⅓, and of more round trips where they are short.
///
/// Up to four streams. What more of them carry more in a round trip may not be seen, if few segments are under way: where six streams share
/// 171 of them (seed 13 with six) acknowledgements come in the same uneven pattern for ever, and a fortieth is less than that.
#[test]
fn a_path_that_has_become_twice_as_fast_is_found() {
    for seed in 0..10 {
        let mut case = draw(seed, 1 + seed as u32 % 4);
        case.buffer_bytes *= 2;
        let mut run = case.run();
        run.goes_on(SETTLED);
        let twice = 2 * case.bps;
        run.dumbbell.set_bottleneck(&case.wire(twice));
        let plateau_s = (0.3 * case.packets as f64 / f64::from(case.streams) / 0.4).cbrt();
        let plateau = (plateau_s / case.rtt.as_secs_f64()) as u32;
        run.goes_on(128 + plateau);
        let seen = run.goes_on(CYCLES);
        assert!(
            seen.all() >= 0.9 * case.carries(twice, CYCLES),
            "{case:?} {plateau} {seen:?}"
        );
        assert!(seen.jain() >= 0.98, "{case:?} {seen:?}");
    }
}

#[test]
fn a_path_that_has_become_half_as_fast_is_found_in_two_cycles_and_nothing_is_lost_after_that() {
    for seed in 0..14 {
        let case = draw(seed, 1 + seed as u32 % 8);
        let mut run = case.run();
        run.goes_on(SETTLED);
        let half = case.bps / 2;
        run.dumbbell.set_bottleneck(&case.wire(half));
        let noticed = run.goes_on(32);
        assert!(noticed.dropped > 0, "{case:?} {noticed:?}");
        // No more than what was sent before anybody could know, and while that was repaired.
        assert!(
            noticed.dropped <= 5 * case.packets / 4,
            "{case:?} {noticed:?}"
        );
        let seen = run.goes_on(CYCLES);
        assert!(
            seen.all() >= 0.97 * case.carries(half, CYCLES),
            "{case:?} {seen:?}"
        );
        assert!(seen.jain() >= 0.98, "{case:?} {seen:?}");
        assert_eq!(seen.dropped, 0, "{case:?} {seen:?}");
    }
}

/// If there is room for its first flight, which is a burst of ten.
#[test]
fn a_newcomer_has_its_part_after_twelve_round_trips_and_nobody_loses() {
    for seed in 0..14 {
        let mut case = draw(seed, 1 + seed as u32 % 7);
        case.buffer_bytes += 12 * FRAME_BYTES;
        let mut starts = case.starts();
        let settled = case.rtt * SETTLED;
        starts.push(settled);
        let mut run = case.of(&starts);
        run.goes_on(SETTLED);
        let begins = run.goes_on(12);
        let seen = run.goes_on(8);
        let part = case.carries(case.bps, 8) / starts.len() as f64;
        let new = seen.segments[starts.len() - 1] as f64;
        assert!((0.9 * part..1.1 * part).contains(&new), "{case:?} {seen:?}");
        assert!(
            seen.all() >= 0.95 * case.carries(case.bps, 8),
            "{case:?} {seen:?}"
        );
        assert_eq!(
            begins.dropped + seen.dropped,
            0,
            "{case:?} {begins:?} {seen:?}"
        );
    }
}

/// The other leaves it its part from its first segment on, so that both carry less for a while: that is not what the path carries.
/// Where the burst that a first flight is makes the other one lose something, too, half is taken at most, as by any loss.
#[test]
fn what_a_newcomer_alone_loses_of_its_first_flight_takes_nothing_from_what_is_remembered() {
    let mut alone = 0;
    for seed in 0..40 {
        let mut case = draw(seed, 1);
        case.buffer_bytes = 8 * FRAME_BYTES;
        let mut run = case.of(&[ns(0), case.rtt * SETTLED]);
        run.goes_on(SETTLED);
        let of_other = |run: &Run| run.dumbbell.sender(0).counters.fast_recoveries;
        let rate = |run: &Run| run.dumbbell.destination().memory.rate_bytes_per_s;
        let before = (rate(&run), of_other(&run));
        let begins = run.goes_on(12);
        assert!(begins.dropped > 0, "{case:?} {begins:?}");
        if of_other(&run) == before.1 {
            alone += 1;
            assert!(rate(&run) >= before.0 * 19 / 20, "{case:?} {before:?}");
        }
    }
    assert!(alone >= 5, "{alone}");
}

/// One frame, which nobody had to drop.
#[test]
fn a_loss_by_chance_takes_half_at_most_and_is_made_good() {
    for seed in 0..10 {
        let case = draw(seed, 1 + seed as u32 % 4);
        let mut run = case.run();
        run.goes_on(SETTLED);
        let rate = |run: &Run| run.dumbbell.destination().memory.rate_bytes_per_s;
        let before = rate(&run);
        let lossy = WireConfig {
            loss: Some(LossConfig::Given {
                frames: vec![1 + seed],
            }),
            ..case.wire(case.bps)
        };
        run.dumbbell.set_bottleneck(&lossy);
        run.goes_on(4);
        assert_eq!(run.dumbbell.bottleneck().counters.lost, 1);
        let since = run.dumbbell.destination().log.clone();
        let since = since
            .iter()
            .filter(|change| change.at > Instant::ZERO + case.rtt * SETTLED);
        let least = since.map(|change| change.rate_bytes_per_s).min();
        assert!(
            least.is_none_or(|least| least >= before / 2),
            "{case:?} {least:?}"
        );
        run.goes_on(96);
        let seen = run.goes_on(16);
        assert!(
            seen.all() >= 0.9 * case.carries(case.bps, 16),
            "{case:?} {seen:?}"
        );
    }
}
