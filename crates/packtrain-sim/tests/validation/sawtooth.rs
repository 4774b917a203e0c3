//! How full one flow keeps a line, by the queue before it, against the geometry of its sawtooth.

use packtrain_proto::time::Duration;
use packtrain_sim::fabric::UNLIMITED_BYTES;
use packtrain_sim::tcp::sender::SenderConfig;
use packtrain_sim::theory::tcp::{CUBIC_BETA, RENO_BETA, aimd_utilisation, cubic_utilisation};

use crate::support::{Path, ms, unrecorded};

const BPS: u64 = 50_000_000;
const RTT: Duration = ms(50);

/// Of the line's time, so much was used, with a queue of so many products.
fn utilisation(sender: SenderConfig, buffer: f64, seconds: u64) -> f64 {
    let product = BPS as f64 / 8.0 * RTT.as_secs_f64();
    let path = Path {
        rtt: RTT,
        bps: BPS,
        queue_bytes: (product * buffer) as usize + 1514,
        loss: None,
        sender: unrecorded(sender),
        delayed_ack: None,
        seed: 1,
    };
    let mut fabric = path.fabric(UNLIMITED_BYTES);
    fabric.run_for(Duration::from_secs(60));
    let before = fabric.wire(1).counters.busy;
    fabric.run_for(Duration::from_secs(seconds));
    let busy = fabric.wire(1).counters.busy - before;
    busy.as_secs_f64() / seconds as f64
}

#[test]
fn reno_keeps_three_quarters_of_a_line_without_a_queue_and_all_of_it_with_a_product() {
    for buffer in [0.05, 0.25, 0.5, 1.0] {
        let used = utilisation(SenderConfig::default(), buffer, 120);
        let told = aimd_utilisation(RENO_BETA, buffer);
        println!("reno, {buffer}: {used:.3}, told {told:.3}");
        assert!(
            (used - told).abs() < 0.03,
            "with {buffer}: {used}, told {told}"
        );
    }
}

#[test]
fn cubic_keeps_more() {
    let cubic = SenderConfig {
        cubic: true,
        ..SenderConfig::default()
    };
    for buffer in [0.05, 0.25] {
        let used = utilisation(cubic, buffer, 120);
        let (straight, told) = (
            aimd_utilisation(CUBIC_BETA, buffer),
            cubic_utilisation(buffer),
        );
        println!("cubic, {buffer}: {used:.3}, told {told:.3}, straight {straight:.3}");
        assert!(
            (used - told).abs() < 0.05,
            "with {buffer}: {used}, told {told}"
        );
    }
}
