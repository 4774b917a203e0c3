//! Lines and routes in few words.

use packtrain_proto::time::Duration;
use packtrain_sim::fabric::{
    Backpressure, DatagramsConfig, Ends, FlowConfig, RouteConfig, Source, VisitorsConfig,
};
use packtrain_sim::net::queue::QueueConfig;
use packtrain_sim::net::wire::WireConfig;
use packtrain_sim::workload::{Process, Sizes};

pub const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub const fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

/// One that loses nothing.
pub fn line(bps: u64, delay: Duration) -> WireConfig {
    WireConfig {
        queue: QueueConfig::drop_tail(1 << 30),
        ..WireConfig::perfect(bps, delay)
    }
}

pub fn route(forward: &[u32], back: &[u32]) -> RouteConfig {
    RouteConfig {
        forward: forward.to_vec(),
        back: back.to_vec(),
    }
}

pub fn flow(route: RouteConfig, bytes: u64) -> FlowConfig {
    FlowConfig {
        ends: Ends::default(),
        route,
        group: 0,
        starts: Duration::ZERO,
        writes: vec![(Duration::ZERO, bytes)],
        feeds: None,
    }
}

pub fn visitors(routes: Vec<RouteConfig>, mean_gap: Duration, sizes: Sizes) -> VisitorsConfig {
    VisitorsConfig {
        ends: Ends {
            backpressure: Backpressure::Frames(2),
            ..Ends::default()
        },
        routes,
        group: 0,
        arrivals: Process::Poisson { mean_gap },
        sizes,
        at_once_max: 10_000,
        starts: Duration::ZERO,
    }
}

pub fn datagrams(route: RouteConfig, source: Source) -> DatagramsConfig {
    DatagramsConfig {
        route,
        group: 0,
        source,
        starts: Duration::ZERO,
        reply_bytes: None,
        ecn: false,
    }
}

/// Datagrams at an even pace.
pub fn periodic(gap: Duration, packet_bytes: u64) -> Source {
    Source::Drawn {
        arrivals: Process::Periodic { gap },
        sizes: Sizes::Fixed {
            bytes: packet_bytes,
        },
    }
}
