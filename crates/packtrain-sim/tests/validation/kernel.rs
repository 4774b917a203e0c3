//! A kernel's TCP on the lab's wires, which are the simulator's own (docs/validation.md), whose results stand here as numbers.
//!
//! Linux 6.18: content that arrived in 13 s after the first 2 s, in Mbit/s, of one connection over a wire of 50 Mbit/s from a port of
//! 1 Gbit/s. Its segments of 1448 bytes have time stamps, which ours have not: 1538 bytes on the wire and not 1526.

use packtrain_proto::time::Duration;
use packtrain_sim::fabric::{Ends, Fabric, FabricConfig};
use packtrain_sim::net::loss::LossConfig;
use packtrain_sim::net::queue::{Discipline, QueueConfig, QueueLimit};
use packtrain_sim::net::wire::WireConfig;

use crate::support::ms;

const BPS: u64 = 50_000_000;
const TIME_STAMPS: f64 = 1526.0 / 1538.0;

fn goodput_mbps(cubic: bool, rtt: Duration, every: Option<u64>, packets: usize) -> f64 {
    let wire = |bps| WireConfig {
        queue: QueueConfig {
            limit: QueueLimit::Frames(packets),
            discipline: Discipline::DropTail,
        },
        ..WireConfig::perfect(bps, rtt / 2)
    };
    let mut there = wire(BPS);
    there.loss = every.map(|every| LossConfig::Periodic { every });
    let port = WireConfig::perfect(1_000_000_000, Duration::ZERO);
    let config = FabricConfig::bulk(vec![port, there], vec![wire(BPS)], Ends::linux(cubic));
    let mut fabric = Fabric::new(&config, ());
    fabric.run_for(Duration::from_secs(2));
    let before = fabric.count(0);
    fabric.run_for(Duration::from_secs(13));
    (fabric.count(0) - before).delivered_bytes as f64 * 8e-6 / 13.0
}

#[track_caller]
fn judge(what: &str, ours: f64, kernel: f64, within: f64) {
    let ratio = ours / kernel;
    println!("{what}: {ours:.3}, a kernel {kernel:.3}, ratio {ratio:.3}");
    assert!((ratio - 1.0).abs() <= within, "{what}: {ours} and {kernel}");
}

#[test]
fn losses_leave_a_kernel_as_much_within_a_twentieth() {
    // At a window of ten segments CUBIC has 1.08 where each acknowledgement tells anew how it grows (`SenderConfig::cubic_holds`).
    for (every, reno, cubic) in [(400, 6.395, 6.27), (1000, 10.74, 10.83), (100, 2.91, 2.74)] {
        for (is_cubic, name, kernel) in [(false, "reno", reno), (true, "cubic", cubic)] {
            let ours = goodput_mbps(is_cubic, ms(40), Some(every), 10_000);
            judge(&format!("{name}, each {every}th"), ours, kernel, 0.05);
        }
    }
}

#[test]
fn small_queues_are_as_full_as_a_kernel_keeps_them_within_a_twentieth() {
    for (rtt, packets, reno, cubic) in [(20, 42, 43.28, 46.86), (40, 84, 44.87, 47.14)] {
        for (is_cubic, name, kernel) in [(false, "reno", reno), (true, "cubic", cubic)] {
            let ours = goodput_mbps(is_cubic, ms(rtt), None, packets) * TIME_STAMPS;
            judge(&format!("{name}, {packets} packets"), ours, kernel, 0.05);
        }
    }
}
