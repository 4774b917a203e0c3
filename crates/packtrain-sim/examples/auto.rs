use packtrain_proto::time::{Duration, Instant};
use packtrain_sim::net::queue::QueueConfig;
use packtrain_sim::net::rate::{RateConfig, RateLevel};
use packtrain_sim::net::wire::WireConfig;
use packtrain_sim::tcp::dumbbell::{Dumbbell, DumbbellConfig, FlowConfig};
use packtrain_sim::tcp::pacer::{RoundTrip, SpacingConfig};
use packtrain_sim::tcp::receiver::ReceiverConfig;
use packtrain_sim::tcp::sender::SenderConfig;

fn arg(n: usize, d: u64) -> u64 {
    std::env::args().nth(n).map_or(d, |a| a.parse().unwrap())
}
fn main() {
    let (n, rtt_ms, mbit, percent, auto, secs, change) = (
        arg(1, 1),
        arg(2, 50),
        arg(3, 100),
        arg(4, 5),
        arg(5, 1),
        arg(6, 20),
        arg(7, 100),
    );
    let rtt = Duration::from_millis(rtt_ms);
    let product = mbit * 125 * rtt_ms;
    let flow = FlowConfig {
        sender: SenderConfig {
            spacing: (auto > 0).then_some(SpacingConfig {
                precision: Duration::from_millis(1),
                path: None,
                round_trip: RoundTrip::Least,
            }),
            auto: auto > 0,
            cubic: arg(8, 1) > 0,
            ..SenderConfig::default()
        },
        receiver: ReceiverConfig::default(),
        interface: WireConfig::perfect(1_000_000_000, Duration::ZERO),
        starts: Duration::ZERO,
        writes: vec![(Duration::ZERO, 100_000_000_000)],
    };
    let flows = (0..n)
        .map(|i| FlowConfig {
            starts: Duration::from_micros(i * 1370 * rtt_ms / 10),
            ..flow.clone()
        })
        .collect();
    let bottleneck = WireConfig {
        rate: Some(RateConfig {
            bps: mbit * 1_000_000,
            level: RateLevel::Ip,
        }),
        queue: QueueConfig::drop_tail((product * percent / 100).max(6056) as usize),
        ..WireConfig::unrated(rtt / 2)
    };
    let mut d = Dumbbell::new(&DumbbellConfig {
        flows,
        bottleneck: bottleneck.clone(),
        way_back: WireConfig::unrated(rtt / 2),
        seed: 1,
    });
    let mut last = vec![0; n as usize];
    let mut drops = 0;
    for s in 1..=secs {
        let until = Instant::ZERO + rtt * (10 * s as u32);
        if s == secs / 2 && change != 100 {
            d.set_bottleneck(&WireConfig {
                rate: Some(RateConfig {
                    bps: mbit * 10_000 * change,
                    level: RateLevel::Ip,
                }),
                ..bottleneck.clone()
            });
        }
        let mut q = 0;
        let mut qmin = usize::MAX;
        d.run_while(|d| {
            let b = d.bottleneck().queued_bytes();
            q = q.max(b);
            qmin = qmin.min(b);
            d.now() < until
        });
        let got: Vec<f64> = (0..n as usize)
            .map(|i| {
                let a = d.sender(i).acknowledged();
                let r = (a - last[i]) as f64 * 8.0 / 1e6 / (rtt.as_secs_f64() * 10.0);
                last[i] = a;
                r
            })
            .collect();
        let w: Vec<u64> = (0..n as usize)
            .map(|i| d.sender(i).window().cwnd_segments())
            .collect();
        let dr = d.router().dropped();
        println!(
            "{:4} rtt  sum {:8.2} of {:.2}  mem {:8.2} sending {} drops {:5} q {:5}..{:5} frames  each {:.1?} w {:?}",
            s * 10,
            got.iter().sum::<f64>(),
            mbit as f64 * 1460.0 / 1500.0,
            d.destination().memory.rate_bytes_per_s as f64 * 8.0 / 1e6,
            d.destination().sending,
            dr - drops,
            qmin / 1514,
            q / 1514,
            got,
            w
        );
        drops = dr;
    }
}
