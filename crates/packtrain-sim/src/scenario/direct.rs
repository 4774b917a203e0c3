//! Two hosts with kernels that carry frames past their engines, over one link or several.
//!
//! The courses are those of [`pair`] and [`links`]: the same wires, faults, cuts and restarts. What is more
//! happens to the direct path: its links are closed by force and opened again, and classes say which frames
//! may take it.

use packtrain_proto::time::{Duration, Instant};

use super::links::Course;
use super::{Experiment, Order, Report, classes, links, pair};
use crate::host::kernel::{Cards, Kernel};
use crate::net::network::PortId;
use crate::random::Random;
use crate::simulator::{Event, Simulator, Station, StationId};

/// No engine sends by it.
const OWN: u64 = 0x6469_7265_6374;

/// How long a link is closed by force, and how long it is as the engine says: from far less than a round trip of
/// most wires to more than one of any.
const CLOSED_NS: (u64, u64) = (50_000, 20_000_000);
const OPEN_NS: (u64, u64) = (500_000, 300_000_000);

pub fn run(order: Order) -> Report {
    build(order).run()
}

pub fn run_links(order: Order) -> Report {
    build_links(order, Course::Faults).run()
}

pub fn run_carrier_cuts(order: Order) -> Report {
    build_links(order, Course::CarrierCuts).run()
}

pub fn build(order: Order) -> Experiment {
    pair::build_with(own(order), Carriage::Direct)
}

pub fn build_links(order: Order, course: Course) -> Experiment {
    links::build_with(own(order), course, Carriage::Direct)
}

/// Other wires than those over which all goes by engines.
fn own(order: Order) -> Order {
    Order {
        seed: order.seed ^ OWN,
        ..order
    }
}

/// What carries the frames of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carriage {
    Engine,
    /// Its kernel, where the engine lets it.
    Direct,
}

impl Carriage {
    /// Only a line that rests now and then lets flows change.
    pub(super) fn loads(self) -> &'static [f64] {
        match self {
            Carriage::Engine => &[0.2, 0.6, 0.9, 1.5, 3.0],
            Carriage::Direct => &[0.02, 0.05, 0.1, 0.3, 1.5],
        }
    }

    /// The same over several links. Trains that wait for direct frames stand at the receiver, and wait no more when
    /// there are 3072: so many small frames must not come while a direct frame is on its way by a slower link.
    pub(super) fn loads_of_several(self) -> &'static [f64] {
        match self {
            Carriage::Engine => self.loads(),
            Carriage::Direct => &[0.02, 0.05, 0.1, 0.3],
        }
    }

    /// Nothing goes directly that the link does not carry whole.
    pub(super) fn host_mtu(self, drawn: u16, link_mtu: u16) -> u16 {
        match self {
            Carriage::Engine => drawn,
            Carriage::Direct => link_mtu,
        }
    }

    /// Of cables among others, least and most. A train waits 300 ms at most for direct frames that take another
    /// way: what stands in a queue must have left it by then.
    pub(super) fn rates_bps(self) -> (u64, u64) {
        match self {
            Carriage::Engine => (1_000_000, 1_000_000_000),
            Carriage::Direct => (50_000_000, 300_000_000),
        }
    }

    /// Of cables among others: for a round trip more than 20 ms it waits for what is lost.
    pub(super) fn delay_ns_max(self) -> u64 {
        match self {
            Carriage::Engine => u64::MAX,
            Carriage::Direct => 20_000_000,
        }
    }

    /// Gives hosts what they decide by, before the start.
    pub(super) fn equip(self, simulator: &mut Simulator, seed: u64, traffic: Duration) {
        match self {
            Carriage::Engine => classes::give(simulator, seed, traffic),
            Carriage::Direct => {
                classes::give_with_paths(simulator, seed, traffic);
                give_kernels(simulator, seed, traffic);
            }
        }
    }
}

fn give_kernels(simulator: &mut Simulator, seed: u64, traffic: Duration) {
    let mut random = Random::new(seed ^ 0x006b_6572_6e65_6c73);
    for n in 0..simulator.stations.len() {
        let Station::Packtrain(host) = &mut simulator.stations[n] else {
            continue;
        };
        let cards = *random.pick(&[Cards::None, Cards::EverySecond, Cards::All]);
        host.give_kernel(Kernel::new(cards, random.fork()), Instant::ZERO);
        let ports: Vec<PortId> = host.links().iter().map(|link| link.port).collect();
        if !ports.is_empty() && random.chance(0.8) {
            toggle(simulator, StationId(n), &ports, traffic, &mut random);
        }
    }
}

/// Closes a link to direct frames again and again.
fn toggle(
    simulator: &mut Simulator,
    station: StationId,
    ports: &[PortId],
    traffic: Duration,
    random: &mut Random,
) {
    let some = |(min, max): (u64, u64), random: &mut Random| {
        Duration::from_nanos(random.magnitude(min, max))
    };
    let mut at = Duration::ZERO;
    while at < traffic {
        at += some(OPEN_NS, random);
        let port = Some(*random.pick(ports));
        let closes = Event::ToggleDirect { station, port };
        simulator.queue.push(Instant::ZERO + at, closes);
        at += some(CLOSED_NS, random);
        let opens = Event::ToggleDirect {
            station,
            port: None,
        };
        simulator.queue.push(Instant::ZERO + at, opens);
    }
}
