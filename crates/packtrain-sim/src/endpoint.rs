//! An end point whose wire is faster than its processor: what it makes of the frames that come, with a filter in the driver
//! and without one (NIMA: Maupin and Sandén 2005).
//!
//! ```text
//!  wire ──▶ ring of the card ──▶ driver [filter] ──▶ backlog queue ──▶ stack ──▶ sockets
//!           full: dropped         in an interrupt     full: dropped     when there is no interrupt
//! ```
//!
//! There is one processor, and the driver goes before the stack. So what comes too fast takes the time in which it would be
//! handled, and beyond the peak less is useful the more comes: receive livelock (Mogul and Ramakrishnan 1997). Their cure is
//! here as well: a driver that takes a frame when the one before it is done with, and leaves the others to the ring.
//!
//! It is a loop over frames with no queue of events: between two arrivals either the driver or the stack runs, and when it is
//! done is known. Times are whole picoseconds, in which all costs and the bits of usual wires are whole.

use packtrain_proto::time::Duration;

pub use self::backlog::{BacklogConfig, Level};
pub use self::machine::{Counts, Endpoint, ProcessorTime};
pub use self::traffic::{Kind, Mix, Pace, TrafficConfig};

mod backlog;
mod machine;
mod traffic;

#[derive(Clone, Debug, PartialEq)]
pub struct EndpointConfig {
    pub traffic: TrafficConfig,
    /// Slots of the card's ring: a frame has one until the driver has done with it.
    pub ring_slots: usize,
    pub intake: Intake,
    /// The driver rejects what is not for this host.
    pub filter: bool,
    pub backlog: BacklogConfig,
    pub costs: Costs,
    /// What it is not counted for, so that queues are as full as they will be.
    pub warm_up: Duration,
    pub duration: Duration,
}

impl Default for EndpointConfig {
    fn default() -> EndpointConfig {
        EndpointConfig {
            traffic: TrafficConfig::default(),
            ring_slots: 64,
            intake: Intake::Interrupts,
            filter: false,
            backlog: BacklogConfig::default(),
            costs: Costs::default(),
            warm_up: Duration::from_secs(1),
            duration: Duration::from_secs(5),
        }
    }
}

/// Who is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intake {
    /// The driver, at once, until the ring is empty: then the stack goes on with the backlog queue.
    Interrupts,
    /// One after the other, each through driver and stack, as a NAPI driver on the stack's own processor does. There is no
    /// backlog queue then; an interrupt is only for a frame that comes to an idle processor.
    Polling,
}

/// Of a frame, to the processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    pub per_frame_ns: u64,
    pub per_byte_ps: u64,
}

impl Cost {
    fn picos(self, frame_bytes: u32) -> u64 {
        PICOS_PER_NANO * self.per_frame_ns + self.per_byte_ps * u64::from(frame_bytes)
    }
}

const PICOS_PER_NANO: u64 = 1000;
const PICOS_PER_SECOND: u64 = 1_000_000_000_000;

/// The defaults are those of a machine that does as the paper's hand-held one of 2005: frames a second at saturation of the
/// mix of its Fig. 3, in thousands.
///
/// ```text
///                     64 B    300 B   1518 B
///  without, paper     12      11      6.5        78.6 µs + 48.8 ns a byte for each frame
///           here      12.2    10.7    6.5
///  with,    paper     48      41      18.57      18.8 µs + 22.6 ns a byte
///           here      49.5    39.2    18.9
/// ```
///
/// Each of the two lines is fitted to its three numbers by least squares of the logarithm: within 2.6 and 4.5 %, for two
/// straight lines do not go through six points. They have four numbers, and the costs follow from what the filter saves: the stack's
/// share of the 85.8 % of frames that it rejects. So throwing away a frame late costs 71 µs and 30.6 ns a byte, and the driver spends
/// the rest (18.2 ns a byte are spent on rejected frames too, or the filter would have brought more with long ones). What six
/// numbers cannot tell is assumed: an interrupt of 2 µs and a filter of 1 µs, which are the driver's in the sum, and a frame
/// that goes to a socket costs the stack half as much again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Costs {
    /// To get into the driver and out again.
    pub interrupt_ns: u64,
    pub driver: Cost,
    pub filter: Cost,
    /// By what it is, in the order of [`Kind::ALL`].
    pub stack_per_frame_ns: [u64; Kind::ALL.len()],
    pub stack_per_byte_ps: u64,
}

impl Default for Costs {
    fn default() -> Costs {
        Costs {
            interrupt_ns: 2000,
            driver: Cost {
                per_frame_ns: 3600,
                per_byte_ps: 18_200,
            },
            filter: Cost {
                per_frame_ns: 1000,
                per_byte_ps: 0,
            },
            stack_per_frame_ns: Kind::ALL.map(|kind| match kind {
                Kind::Unicast | Kind::JoinedGroup => 106_000,
                _ => 71_000,
            }),
            stack_per_byte_ps: 30_600,
        }
    }
}

impl Costs {
    fn driver_picos(&self, frame_bytes: u32, filter: bool) -> u64 {
        let filter = if filter { self.filter } else { Cost::default() };
        self.driver.picos(frame_bytes) + filter.picos(frame_bytes)
    }

    fn stack_picos(&self, kind: Kind, frame_bytes: u32) -> u64 {
        let cost = Cost {
            per_frame_ns: self.stack_per_frame_ns[kind as usize],
            per_byte_ps: self.stack_per_byte_ps,
        };
        cost.picos(frame_bytes)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct EndpointResult {
    /// That was counted.
    pub seconds: f64,
    /// What the wire carries of such frames.
    pub wire_per_second: f64,
    pub offered_per_second: f64,
    /// Those of which it was decided what becomes of them, by the filter or by the stack: what the paper counts as received.
    pub handled_per_second: f64,
    /// Those that somebody on this host wanted and had.
    pub useful_per_second: f64,
    pub counts: Counts,
}

impl EndpointResult {
    /// Of a second.
    pub fn share(&self, picos: u64) -> f64 {
        picos as f64 / PICOS_PER_SECOND as f64 / self.seconds
    }

    pub fn per_second(&self, frames: u64) -> f64 {
        frames as f64 / self.seconds
    }
}

pub fn run(config: &EndpointConfig) -> EndpointResult {
    let mut endpoint = Endpoint::new(config);
    endpoint.run_for(config.warm_up);
    endpoint.forget();
    endpoint.run_for(config.duration);
    let counts = endpoint.counts().clone();
    let seconds = config.duration.as_secs_f64();
    EndpointResult {
        seconds,
        wire_per_second: config.traffic.wire_per_second(),
        offered_per_second: counts.offered as f64 / seconds,
        handled_per_second: counts.handled() as f64 / seconds,
        useful_per_second: counts.useful() as f64 / seconds,
        counts,
    }
}

/// The paper's measure of an end point.
#[derive(Clone, Debug, PartialEq)]
pub struct Saturation {
    /// At which the backlog queue first tells the driver that it is full.
    pub offered_bps: u64,
    pub result: EndpointResult,
}

/// Looked for between nothing and the whole wire to 1/500 of it. None if the queue never is full. A load that is just too high
/// fills the queue in a time of its own, so what is found is too high by the queue's length over the frames of warm-up and run:
/// 0.4 % of 12,000 frames a second for six seconds.
pub fn first_full(config: &EndpointConfig) -> Option<Saturation> {
    let at = |offered_bps| {
        let traffic = TrafficConfig {
            offered_bps,
            ..config.traffic.clone()
        };
        EndpointConfig {
            traffic,
            ..config.clone()
        }
    };
    let fills = |offered_bps| {
        let mut endpoint = Endpoint::new(&at(offered_bps));
        endpoint.fills_within(config.warm_up + config.duration)
    };
    let (mut fits, mut full) = (0, config.traffic.wire_bps);
    if !fills(full) {
        return None;
    }
    while full - fits > (full / 500).max(1) {
        let middle = fits + (full - fits) / 2;
        match fills(middle) {
            true => full = middle,
            false => fits = middle,
        }
    }
    Some(Saturation {
        offered_bps: full,
        result: run(&at(full)),
    })
}

/// Frames a second that take all of the processor's time, each with an interrupt of its own: beside a simulation, not in it.
pub fn capacity_per_second(config: &EndpointConfig) -> f64 {
    let (costs, bytes) = (&config.costs, config.traffic.frame_bytes);
    let interrupt = PICOS_PER_NANO * costs.interrupt_ns;
    let driver = interrupt + costs.driver_picos(bytes, config.filter);
    let stack = |kind: Kind| match !config.filter || kind.passes() {
        true => costs.stack_picos(kind, bytes) as f64 * config.traffic.mix.share(kind),
        false => 0.0,
    };
    let mean = driver as f64 + Kind::ALL.into_iter().map(stack).sum::<f64>();
    PICOS_PER_SECOND as f64 / mean
}

#[cfg(test)]
mod tests;
