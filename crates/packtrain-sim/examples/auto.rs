//! Streams that share a path, each at its part of what the path carries (`pace rule add --auto`), and the same without:
//! `cargo run --release -p packtrain-sim --example auto`

use packtrain_proto::time::{Duration, Instant};
use packtrain_sim::net::queue::QueueConfig;
use packtrain_sim::net::rate::{RateConfig, RateLevel};
use packtrain_sim::net::wire::WireConfig;
use packtrain_sim::tcp::dumbbell::{Dumbbell, DumbbellConfig, FlowConfig};
use packtrain_sim::tcp::pacer::{RoundTrip, SpacingConfig};
use packtrain_sim::tcp::receiver::ReceiverConfig;
use packtrain_sim::tcp::sender::SenderConfig;

const RTT: Duration = Duration::from_millis(50);
/// Of IP packets.
const BOTTLENECK_BPS: u64 = 100_000_000;
const INTERFACE_BPS: u64 = 1_000_000_000;
const FRAME_BYTES: usize = 1514;
/// What is looked at: the beginning, and after it.
const BEGINNING: Duration = Duration::from_secs(10);
const LATER: Duration = Duration::from_secs(50);

fn main() {
    println!(
        "{RTT:?}, 100 Mbit/s, CUBIC, streams that begin 100 ms after each other; queues in frames of 1514 bytes\n\n\
         streams  buffer  paced   goodput, first 10 s   lost    then  lost  queue, mean  most  least part"
    );
    for streams in [1, 4] {
        for percent in [5, 25, 100] {
            for auto in [false, true] {
                print(streams, percent, auto);
            }
        }
    }
}

fn print(streams: usize, percent: u64, auto: bool) {
    let mut dumbbell = dumbbell(streams, percent, auto);
    let (beginning, lost, _, _) = goes_on(&mut dumbbell, streams, BEGINNING);
    let (later, lost_later, mean, most) = goes_on(&mut dumbbell, streams, LATER);
    let all: f64 = later.iter().sum();
    let least = later.iter().copied().fold(f64::INFINITY, f64::min);
    println!(
        "{streams:7} {percent:5} %  {:5} {:14.1} Mbit/s {lost:6} {all:7.1} {lost_later:5} {mean:12.1} {most:5} {:11.2}",
        if auto { "auto" } else { "none" },
        beginning.iter().sum::<f64>(),
        least * streams as f64 / all,
    );
}

fn dumbbell(streams: usize, percent: u64, auto: bool) -> Dumbbell {
    let product_bytes = BOTTLENECK_BPS / 8 * RTT.as_millis() as u64 / 1000;
    let spacing = SpacingConfig {
        precision: Duration::from_millis(1),
        path: None,
        round_trip: RoundTrip::Least,
    };
    let flow = |place: u32| FlowConfig {
        sender: SenderConfig {
            spacing: auto.then_some(spacing),
            auto,
            cubic: true,
            ..SenderConfig::default()
        },
        receiver: ReceiverConfig::default(),
        interface: WireConfig::perfect(INTERFACE_BPS, Duration::ZERO),
        starts: Duration::from_millis(100) * place,
        writes: vec![(Duration::ZERO, 1 << 40)],
    };
    Dumbbell::new(&DumbbellConfig {
        flows: (0..streams as u32).map(flow).collect(),
        bottleneck: WireConfig {
            rate: Some(RateConfig {
                bps: BOTTLENECK_BPS,
                level: RateLevel::Ip,
            }),
            queue: QueueConfig::drop_tail((product_bytes * percent / 100) as usize),
            ..WireConfig::unrated(RTT / 2)
        },
        way_back: WireConfig::unrated(RTT / 2),
        seed: 1,
    })
}

/// For so long: Mbit/s of each, frames that were lost, and the queue's mean and longest.
fn goes_on(dumbbell: &mut Dumbbell, streams: usize, time: Duration) -> (Vec<f64>, u64, f64, usize) {
    let until = dumbbell.now() + time;
    let had = |dumbbell: &Dumbbell| -> Vec<u64> {
        (0..streams)
            .map(|flow| dumbbell.sender(flow).acknowledged())
            .collect()
    };
    let (before, dropped) = (had(dumbbell), dumbbell.router().dropped());
    let (mut most, mut area, mut last) = (0, 0.0, (dumbbell.now(), 0));
    dumbbell.run_while(|dumbbell| {
        let (now, queued) = (dumbbell.now(), dumbbell.bottleneck().queued_bytes());
        area += last.1 as f64 * since(now, last.0);
        last = (now, queued);
        most = most.max(queued);
        now < until
    });
    let after = had(dumbbell);
    let rates = after
        .iter()
        .zip(before)
        .map(|(now, before)| (now - before) as f64 * 8.0 / 1e6 / time.as_secs_f64());
    (
        rates.collect(),
        dumbbell.router().dropped() - dropped,
        area / time.as_secs_f64() / FRAME_BYTES as f64,
        most / FRAME_BYTES,
    )
}

fn since(now: Instant, before: Instant) -> f64 {
    now.since(before).as_secs_f64()
}
