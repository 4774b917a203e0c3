//! How long flows of 50 kB take beside elephants: each opens at a moment of its own, and is over when the other end has said that
//! the last byte is there. Once where the queue is the host's own, as that of a card, and once where it is a router's, which no host sees.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use packtrain_sim::random::Random;

use super::cables::{Cable, Cables, Plan};
use super::wait::Waits;
use super::{in_turns, in_turns_of, wires};
use crate::lab::figure::{Target, Unit};
use crate::lab::host::Host;
use crate::lab::namespaces::{Namespace, Process};
use crate::lab::one_link::path_use::PathCounts;
use crate::lab::one_link::way::Way;
use crate::lab::one_link::{Bench, Row};
use crate::lab::standing::HeldLab;
use crate::lab::topology::{Topology, TopologyOptions};
use crate::lab::{Result, measure, pause, short_flows, wire};

const RATE_MBIT: u32 = 100;
/// What ends with less is a mouse in the paper.
const MOUSE_BYTES: usize = 50_000;
/// Together they bring a tenth of what the line carries, as in the scenario `xlf-mice`.
const GAP_MEAN: Duration = Duration::from_millis(40);
/// As iperf3 has it.
const ELEPHANTS: &str = "2";
/// 400 flows beside elephants: four of them are the slowest hundredth.
const LASTS: Duration = Duration::from_secs(16);
const ALONE_LASTS: Duration = Duration::from_secs(3);
/// The elephants' windows have grown by then; and they are there until the last mouse has ended.
const SETTLES: Duration = Duration::from_secs(2);
const PORT: u16 = 7341;

const WAYS: [Way; 3] = [Way::Bare, Way::Pt0, Way::ShortFirst];
const BY_THE_LINK: &str = "flows of 50 kB beside 2 elephants, a link of 100 Mbit/s";
const BY_A_ROUTER: &str =
    "the same by a router of 100 Mbit/s, 100 ms of queue, round trips of 10 ms";
const ONE_WAY: Duration = Duration::from_millis(5);
const QUEUE_BYTES: u64 = 1_250_000;

/// One run of one way.
#[derive(Clone, Debug)]
struct Run {
    beside: Waits,
    alone: Waits,
    elephants_bps: f64,
}

const ROWS: [Row<Run>; 5] = [
    (
        "p50 of their time",
        (Unit::Microseconds, Target::RatioAtMost(1.0)),
        |run| run.beside.at(0.5),
    ),
    (
        "p99",
        (Unit::Microseconds, Target::RatioAtMost(0.7)),
        |run| run.beside.at(0.99),
    ),
    (
        "p50 without elephants",
        (Unit::Microseconds, Target::RatioShown),
        |run| run.alone.at(0.5),
    ),
    (
        "the elephants' goodput",
        (Unit::BitPerSecond, Target::RatioShown),
        |run| run.elephants_bps,
    ),
    (
        "flows that broke",
        (Unit::Count, Target::NeverAbove(0.0)),
        |run| (run.beside.lost + run.alone.lost) as f64,
    ),
];

pub fn measure(bench: &mut Bench, packtrain: &Path) -> Result<()> {
    by_the_link(bench, packtrain)?;
    by_a_router(bench, packtrain)
}

fn by_the_link(bench: &mut Bench, packtrain: &Path) -> Result<()> {
    let cable = Cable {
        mtu: 1500,
        whole: true,
        rate_mbit: Some(RATE_MBIT),
    };
    let plan = Plan {
        bare: cable,
        under_pt0: cable,
        up: &[],
    };
    let cables = Cables::set(packtrain, plan)?;
    cables.add(Way::ShortFirst, cable, &["--short-flows-first"])?;
    let hosts = [&cables.a.namespace, &cables.b.namespace];
    forget_windows(hosts)?;
    let mut turn = 0;
    let runs = in_turns_of(WAYS, bench, BY_THE_LINK, |bench, way| {
        let seed = turn / WAYS.len() as u64;
        turn += 1;
        let run = || run(hosts, way.at().ip(), seed);
        match way.line() {
            Some(line) => cables.counted_by(line, bench, BY_THE_LINK, run),
            None => run(),
        }
    })?;
    bench.compare_rows(BY_THE_LINK, &ROWS, &runs);
    Ok(())
}

fn by_a_router(bench: &mut Bench, packtrain: &Path) -> Result<()> {
    let plain = Router::set(packtrain, "micebare", false)?;
    let through = Router::set(packtrain, "micept", true)?;
    let mut turn = 0;
    let runs = in_turns(bench, BY_A_ROUTER, |bench, way| {
        let seed = turn / 2;
        turn += 1;
        if way == Way::Bare {
            return plain.run(seed);
        }
        let before = through.a.status()?;
        let run = through.run(seed)?;
        let after = through.a.status()?;
        let line = way.interface();
        bench.note_path(PathCounts::between(BY_A_ROUTER, line, &before, &after));
        Ok(run)
    })?;
    bench.compare_rows(BY_A_ROUTER, &ROWS, &runs);
    Ok(())
}

/// Two hosts at a wire whose queue neither sees.
#[derive(Debug)]
struct Router {
    /// iperf3's other end.
    _server: Process,
    a: Host,
    b: Host,
    to: IpAddr,
    _lab: HeldLab,
}

impl Router {
    fn set(packtrain: &Path, tag: &str, has_line: bool) -> Result<Router> {
        let lab = HeldLab::up(tag, &topology(has_line), packtrain)?;
        let [a, b] = [lab.host("a")?, lab.host("b")?].map(|of| Host::new(of, packtrain));
        let addresses = lab.addresses();
        for (host, known) in [&a, &b].into_iter().zip(addresses) {
            let network = Way::Pt0.subnet();
            wire::cubic(&host.namespace, &network, &known.main_interface)?;
        }
        forget_windows([&a.namespace, &b.namespace])?;
        Ok(Router {
            _server: measure::iperf3_server(&b.namespace)?,
            to: addresses[1].main.into(),
            a,
            b,
            _lab: lab,
        })
    }

    fn run(&self, seed: u64) -> Result<Run> {
        run([&self.a.namespace, &self.b.namespace], self.to, seed)
    }
}

fn topology(has_line: bool) -> Topology {
    let options = TopologyOptions {
        links: 1,
        packtrain: has_line,
        ..TopologyOptions::default()
    };
    let mut topology = options.topology().expect("two hosts and their wire");
    for direction in &mut topology.wires[0].directions {
        wires::as_of_a_router(direction, ONE_WAY, QUEUE_BYTES);
    }
    topology
}

/// Each mouse is the first that its host sends there, and not the heir of an elephant's window.
fn forget_windows(hosts: [&Namespace; 2]) -> Result<()> {
    let forget = |host: &Namespace| host.sysctl("net/ipv4/tcp_no_metrics_save", "1");
    hosts.into_iter().try_for_each(forget)
}

/// `seed`: the same moments for all ways of a round.
fn run(hosts: [&Namespace; 2], to: IpAddr, seed: u64) -> Result<Run> {
    let at = SocketAddr::new(to, PORT);
    let alone = mice(hosts, at, &moments(seed, ALONE_LASTS))?;
    let elephants = || {
        let lasts = LASTS + 2 * SETTLES;
        measure::bulk(hosts[0], &to.to_string(), lasts, &["-P", ELEPHANTS])
    };
    let (beside, elephants) = std::thread::scope(|scope| {
        let elephants = scope.spawn(elephants);
        pause(SETTLES);
        let beside = mice(hosts, at, &moments(seed, LASTS));
        let elephants = elephants.join();
        (beside, elephants.expect("they have no reason to panic"))
    });
    Ok(Run {
        beside: beside?,
        alone,
        elephants_bps: elephants?.goodput_bps,
    })
}

/// When flows open: a Poisson process.
fn moments(seed: u64, lasts: Duration) -> Vec<Duration> {
    let mut random = Random::new(seed);
    let next = |&at: &Duration| Some(at + random.exponential(GAP_MEAN));
    let moments = std::iter::successors(Some(Duration::ZERO), next);
    moments.take_while(|&at| at < lasts).collect()
}

/// How long each took that opened at these moments, µs.
fn mice(hosts: [&Namespace; 2], at: SocketAddr, moments: &[Duration]) -> Result<Waits> {
    let took = short_flows::carry(hosts, at, MOUSE_BYTES, moments)?;
    let micros = took.iter().map(|took| took.as_secs_f64() * 1e6);
    Ok(Waits::of(micros.collect(), moments.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_as_many_as_a_tenth_of_the_line_and_the_same_for_a_seed() {
        let all = moments(7, LASTS);
        assert_eq!(all, moments(7, LASTS));
        assert_ne!(all, moments(8, LASTS));
        assert!(all.is_sorted() && all[all.len() - 1] < LASTS);
        let bps = (all.len() * MOUSE_BYTES * 8) as f64 / LASTS.as_secs_f64();
        let share = bps / (f64::from(RATE_MBIT) * 1e6);
        assert!((0.08..0.12).contains(&share), "{share}");
    }

    #[test]
    fn a_routers_wire_is_the_same_with_a_line_and_without() {
        let [bare, through] = [false, true].map(topology);
        assert!(bare.check().is_empty() && through.check().is_empty());
        assert_eq!(bare.wires, through.wires);
        assert!(through.hosts.iter().all(|host| host.packtrain));
        assert!(bare.hosts.iter().all(|host| !host.packtrain));
        for direction in &bare.wires[0].directions {
            assert_eq!(direction.wire.queue.limit.to_string(), "1250000b");
            assert_eq!(direction.port.rate_bps, None);
        }
    }
}
