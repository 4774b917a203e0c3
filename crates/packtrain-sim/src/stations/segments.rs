//! Segments as scenarios have them: perfect, but for what is asked of them.

use packtrain_proto::time::Duration;

use crate::net::cut::Cut;
use crate::net::network::{SegmentConfig, SegmentKind};
use crate::net::queue::QueueConfig;
use crate::net::wire::WireConfig;

const MTU: u16 = 1500;
/// Of a switch's port: 340 full frames.
const SWITCH_QUEUE_BYTES: usize = 512 * 1024;

fn segment(kind: SegmentKind, up: Vec<WireConfig>, down: Vec<WireConfig>) -> SegmentConfig {
    SegmentConfig {
        kind,
        mtu: MTU,
        carries_offload: false,
        up,
        down,
        cut: Cut::default(),
    }
}

pub fn cable(rate_bps: u64, delay: Duration) -> SegmentConfig {
    let wire = WireConfig::perfect(rate_bps, delay);
    segment(SegmentKind::Cable, vec![wire.clone(), wire], Vec::new())
}

/// A port for each rate. `delay`: of each cable. It stores each frame, and forwards it.
pub fn switch(rates_bps: &[u64], delay: Duration) -> SegmentConfig {
    let up = rates_bps.iter().map(|&bps| WireConfig::perfect(bps, delay));
    let down = up.clone().map(|wire| WireConfig {
        queue: QueueConfig::drop_tail(SWITCH_QUEUE_BYTES),
        ..wire
    });
    let (up, down) = (up.collect(), down.collect());
    segment(SegmentKind::Switch, up, down)
}

/// Shared Ethernet. How long a signal takes is the medium's business.
pub fn hub(rate_bps: u64, ports: usize) -> SegmentConfig {
    let wires = vec![WireConfig::unrated(Duration::ZERO); ports];
    segment(SegmentKind::Hub { rate_bps }, wires.clone(), wires)
}
