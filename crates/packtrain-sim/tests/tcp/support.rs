//! One connection over one bottleneck, and figures of it.

use packtrain_proto::time::{Duration, Instant};
use packtrain_sim::net::loss::LossConfig;
use packtrain_sim::net::queue::QueueConfig;
use packtrain_sim::net::rate::{RateConfig, RateLevel};
use packtrain_sim::net::wire::WireConfig;
use packtrain_sim::tcp::dumbbell::{Dumbbell, DumbbellConfig, FlowConfig};
use packtrain_sim::tcp::receiver::ReceiverConfig;
use packtrain_sim::tcp::sender::SenderConfig;

pub const MSS: u64 = 1460;
/// A whole frame, as queues count it.
pub const FRAME_BYTES: usize = 1514;
/// As IP counts it.
pub const PACKET_BYTES: u64 = 1500;

pub const fn ns(ns: u64) -> Duration {
    Duration::from_nanos(ns)
}

pub const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A path, and what one application sends over it.
#[derive(Clone, Debug)]
pub struct Line {
    /// Propagation, there and back.
    pub rtt: Duration,
    /// Of IP packets.
    pub bottleneck_bps: u64,
    /// Of Ethernet frames.
    pub interface_bps: u64,
    pub buffer_bytes: usize,
    /// Frames that are lost behind the bottleneck, from 1; the first one opens the connection.
    pub lost: Vec<u64>,
    pub sender: SenderConfig,
    pub delayed_ack: Option<Duration>,
    pub window_bytes: u64,
    /// When, after the connection is opened, and how many segments.
    pub writes: Vec<(Duration, u64)>,
}

impl Line {
    /// 100 ms, of which a segment takes 120 µs at the bottleneck and 12.304 µs at the interface, exactly.
    pub fn even() -> Line {
        Line {
            rtt: ms(100),
            bottleneck_bps: 100_000_000,
            interface_bps: 1_000_000_000,
            buffer_bytes: 100_000_000,
            lost: Vec::new(),
            sender: SenderConfig::default(),
            delayed_ack: None,
            window_bytes: 1 << 30,
            writes: Vec::new(),
        }
    }

    pub fn sends(segments: u64) -> Line {
        Line {
            writes: vec![(ms(0), segments)],
            ..Line::even()
        }
    }

    pub fn config(&self) -> DumbbellConfig {
        let lost = self.lost.clone();
        let flow = FlowConfig {
            sender: self.sender,
            receiver: ReceiverConfig {
                window_bytes: self.window_bytes,
                delayed_ack: self.delayed_ack,
                ..ReceiverConfig::default()
            },
            interface: WireConfig::perfect(self.interface_bps, ns(0)),
            starts: ns(0),
            writes: self
                .writes
                .iter()
                .map(|&(at, segments)| (at, segments * MSS))
                .collect(),
        };
        DumbbellConfig {
            flows: vec![flow],
            bottleneck: WireConfig {
                rate: Some(RateConfig {
                    bps: self.bottleneck_bps,
                    level: RateLevel::Ip,
                }),
                queue: QueueConfig::drop_tail(self.buffer_bytes),
                loss: (!lost.is_empty()).then_some(LossConfig::Given { frames: lost }),
                ..WireConfig::unrated(self.rtt / 2)
            },
            way_back: WireConfig::unrated(self.rtt / 2),
            seed: 1,
        }
    }

    pub fn dumbbell(&self) -> Dumbbell {
        Dumbbell::new(&self.config())
    }

    /// Until all is acknowledged.
    pub fn run(&self) -> Dumbbell {
        let mut dumbbell = self.dumbbell();
        dumbbell.run(Duration::from_secs(3600));
        assert!(dumbbell.is_done(), "within an hour");
        dumbbell
    }

    /// How long a segment takes at the bottleneck.
    pub fn service(&self) -> Duration {
        ns((8_000_000_000 * PACKET_BYTES).div_ceil(self.bottleneck_bps))
    }
}

/// The handshake of [`Line::even`]: 84 bytes on the interface's wire, 44 of IP at the bottleneck.
pub const EVEN_OPENED: Duration = ns(100_000_000 + 672 + 3_520);
/// The round trip of a segment there that meets no queue.
pub const EVEN_RTT: Duration = ns(100_000_000 + EVEN_INTERFACE_NS + EVEN_SERVICE_NS);
pub const EVEN_INTERFACE_NS: u64 = 12_304;
pub const EVEN_SERVICE_NS: u64 = 120_000;

pub fn at(time: Duration) -> Instant {
    Instant::ZERO + time
}

/// The window in segments, at a time.
pub fn cwnd_at(dumbbell: &Dumbbell, time: Instant) -> u64 {
    let windows = &dumbbell.sender(0).windows;
    let index = windows.partition_point(|window| window.at <= time);
    windows[index - 1].cwnd_bytes / MSS
}
