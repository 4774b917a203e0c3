//! The run that is measured: a dumbbell, as `peers/ns3_dumbbell.py` has it.
//!
//! Six lines for each flow's packets, there and back. A sender is not held back by its interface, whose queue drops; queues hold
//! 100 ms of their line. Segments, recovery and acknowledgements are those of ns-3, too.

use std::alloc::System;
use std::fmt;
use std::process::Command;

use packtrain_proto::time::Duration;
use packtrain_sim::event_queue::{EventQueue, HeapQueue, Queue};
use packtrain_sim::fabric::{
    Backpressure, Ends, Event, Fabric, FabricConfig, FlowConfig, LineId, RouteConfig,
    UNLIMITED_BYTES,
};
use packtrain_sim::net::queue::QueueConfig;
use packtrain_sim::net::wire::WireConfig;
use packtrain_sim::random::Random;
use packtrain_sim::tcp::receiver::ReceiverConfig;
use packtrain_sim::tcp::sender::{Reduction, SenderConfig};
use serde_json::{Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

use crate::process::{Spent, now, rss_kib};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const MS: Duration = Duration::from_millis(1);
/// Of each line, and of the bottleneck the rest of the way.
const ACCESS_DELAY: Duration = MS;
const BOTTLENECK_DELAY: Duration = Duration::from_millis(48);
/// Queues are full, and have lost, by then: what grows later does not end.
const BEGINNING_SECONDS: u64 = 10;

/// Which queue of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Core {
    Wheel,
    Heap,
}

impl Core {
    pub const ALL: [Core; 2] = [Core::Wheel, Core::Heap];

    pub fn name(self) -> &'static str {
        match self {
            Core::Wheel => "wheel",
            Core::Heap => "heap",
        }
    }

    pub fn named(name: &str) -> Result<Core, String> {
        let named = |core: &Core| core.name() == name;
        Core::ALL
            .into_iter()
            .find(named)
            .ok_or(format!("no core is called {name}"))
    }
}

#[derive(Clone, Copy, Debug)]
pub struct FixedRun {
    pub flows: u32,
    pub seconds: u64,
    pub bps: u64,
}

impl Default for FixedRun {
    fn default() -> FixedRun {
        FixedRun {
            flows: 100,
            seconds: 60,
            bps: 1_000_000_000,
        }
    }
}

impl fmt::Display for FixedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "dumbbell, {} TCP flows, {} Mbit/s, round trip 100 ms, {} s of virtual time",
            self.flows,
            self.bps / 1_000_000,
            self.seconds
        )
    }
}

impl FixedRun {
    pub fn document(&self) -> Value {
        json!({ "flows": self.flows, "seconds": self.seconds, "bottleneck_bps": self.bps, "rtt_ms": 100 })
    }

    pub fn access_bps(&self) -> u64 {
        self.bps * 12 / 10 / u64::from(self.flows)
    }

    /// At a source.
    pub fn source_queue_bytes(&self) -> u64 {
        queue_bytes(self.access_bps()) * 12 / 10
    }

    fn config(&self) -> FabricConfig {
        let line = |bps: u64, delay: Duration, queue: u64| WireConfig {
            queue: QueueConfig::drop_tail(queue as usize),
            ..WireConfig::perfect(bps, delay)
        };
        let (access, fast) = (self.access_bps(), 10 * self.access_bps());
        let large = queue_bytes(self.bps);
        let mut lines = vec![line(self.bps, BOTTLENECK_DELAY, large); 2];
        let mut random = Random::new(1);
        let flows = (0..self.flows).map(|_| {
            let first = lines.len() as LineId;
            lines.push(line(access, ACCESS_DELAY, self.source_queue_bytes()));
            lines.push(line(fast, ACCESS_DELAY, large));
            lines.push(line(fast, ACCESS_DELAY, large));
            lines.push(line(access, ACCESS_DELAY, large));
            FlowConfig {
                ends: Ends {
                    sender: SenderConfig {
                        mss: 1448,
                        recovery: Reduction::Prr,
                        record: false,
                        ..SenderConfig::default()
                    },
                    receiver: ReceiverConfig::default(),
                    backpressure: Backpressure::None,
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
            seed: 1,
            ..FabricConfig::default()
        }
    }

    pub fn measure(&self, core: Core) -> Value {
        match core {
            Core::Wheel => self.measure_on(core, EventQueue::default()),
            Core::Heap => self.measure_on(core, HeapQueue::default()),
        }
    }

    fn measure_on(&self, core: Core, events: impl Queue<Event>) -> Value {
        let mut fabric = Fabric::on(events, &self.config(), ());
        let beginning = self.seconds.min(BEGINNING_SECONDS);
        let (began, spent_before) = (now(), Spent::here());
        fabric.run_for(Duration::from_secs(beginning));
        let (rss_10s, count_10s) = (rss_kib(), fabric.group(0));
        let region = Region::new(ALLOCATOR);
        fabric.run_for(Duration::from_secs(self.seconds - beginning));
        let change = region.change();
        let (wall, spent) = (
            began.elapsed().as_secs_f64(),
            Spent::here().since(spent_before),
        );
        let (events, hops) = (fabric.events_done() as f64, fabric.hops_done() as f64);
        let counted = fabric.group(0) - count_10s;
        // The kernel counts in ticks: a short run may have had none.
        let user = spent.user.max(0.01);
        json!({
            "simulator": "packtrain",
            "core": core.name(),
            "wall_s": wall,
            "user_s": spent.user,
            "system_s": spent.system,
            "events": events,
            "events_per_s": events / wall,
            "events_per_user_s": events / user,
            "packet_hops": hops,
            "packet_hops_per_s": hops / wall,
            "packet_hops_per_user_s": hops / user,
            "rss_10s_kib": rss_10s,
            "rss_end_kib": rss_kib(),
            "allocations_after_10s": change.allocations + change.reallocations,
            "goodput_bps": 8.0 * counted.delivered_bytes as f64 / self.seconds.saturating_sub(beginning).max(1) as f64,
            "loss_rate": counted.drop_rate(),
        })
    }

    /// In a process of its own.
    pub fn measure_apart(&self, core: Core) -> Value {
        let this = std::env::current_exe().expect("it runs");
        let output = Command::new(this)
            .args(["--core", core.name()])
            .args(["--seconds", &self.seconds.to_string()])
            .args(["--flows", &self.flows.to_string()])
            .output()
            .expect("it ran before");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).expect("what measure says")
    }
}

/// 100 ms of a line.
fn queue_bytes(bps: u64) -> u64 {
    bps / 80
}
