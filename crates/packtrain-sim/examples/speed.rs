//! How fast the network simulator is: a dumbbell of many TCP flows, in wall time, events and packet-hops a second.
//! `cargo run --release -p packtrain-sim --example speed -- [FLOWS [SECONDS [BPS]]]`

use packtrain_proto::time::Duration;
use packtrain_sim::fabric::{
    Backpressure, Ends, Fabric, FabricConfig, FlowConfig, LineId, RouteConfig, UNLIMITED_BYTES,
};
use packtrain_sim::net::queue::QueueConfig;
use packtrain_sim::net::wire::WireConfig;
use packtrain_sim::random::Random;
use packtrain_sim::tcp::receiver::ReceiverConfig;
use packtrain_sim::tcp::sender::SenderConfig;

const MS: Duration = Duration::from_millis(1);

/// Six lines for each flow's packets, there and back, as other simulators have them.
fn dumbbell(flows: u32, bps: u64, seed: u64) -> FabricConfig {
    let buffer = (bps / 8 / 10) as usize;
    let line = |bps: u64, delay: Duration, queue: usize| WireConfig {
        queue: QueueConfig::drop_tail(queue),
        ..WireConfig::perfect(bps, delay)
    };
    let access_bps = bps * 12 / 10 / u64::from(flows);
    let mut lines = vec![line(bps, 48 * MS, buffer), line(bps, 48 * MS, buffer)];
    let mut random = Random::new(seed);
    let flows = (0..flows).map(|_| {
        let first = lines.len() as LineId;
        lines.push(line(access_bps, MS, buffer * 12 / 10));
        lines.push(line(10 * access_bps, MS, buffer));
        lines.push(line(10 * access_bps, MS, buffer));
        lines.push(line(access_bps, MS, buffer));
        FlowConfig {
            ends: Ends {
                sender: SenderConfig::default(),
                receiver: ReceiverConfig::default(),
                backpressure: Backpressure::Frames(2),
            },
            route: RouteConfig {
                forward: vec![first, 0, first + 1],
                back: vec![first + 2, 1, first + 3],
            },
            group: 0,
            starts: random.duration(Duration::ZERO, Duration::from_secs(1)),
            writes: vec![(Duration::ZERO, UNLIMITED_BYTES)],
            feeds: None,
        }
    });
    FabricConfig {
        flows: flows.collect(),
        lines,
        seed,
        ..FabricConfig::default()
    }
}

#[allow(clippy::disallowed_methods)] // what is measured is the wall's time
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| {
        let given = arguments.next();
        given.map_or(default, |text| text.parse().expect("a number"))
    };
    let (flows, seconds, bps) = (number(100), number(60), number(1_000_000_000));
    let mut fabric = Fabric::new(&dumbbell(flows as u32, bps, 1), ());
    let began = now();
    fabric.run_for(Duration::from_secs(seconds));
    let took = began.elapsed().as_secs_f64();
    let (events, hops) = (fabric.events_done() as f64, fabric.hops_done() as f64);
    let all = fabric.group(0);
    println!(
        "{flows} flows, {seconds} s at {} Mbit/s: {took:.3} s; {:.2} M events/s, {:.2} M packet-hops/s; \
         {:.1} M events, {:.1} M hops, goodput {:.1} Mbit/s, {} dropped",
        bps / 1_000_000,
        events / took / 1e6,
        hops / took / 1e6,
        events / 1e6,
        hops / 1e6,
        all.delivered_bytes as f64 * 8e-6 / seconds as f64,
        all.dropped,
    );
}
