//! The figures of several links once more, over wires of the lab: with 0, 5 and 50 ms of round trip.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::Row;
use crate::lab::cut::{Path as Way, Plan};
use crate::lab::emulator::lateness::LatenessSummary;
use crate::lab::emulator::protocol::{Request, WireChoice};
use crate::lab::figure::{Target, Unit};
use crate::lab::host::Host;
use crate::lab::link_use::{self, LinkUse};
use crate::lab::measure::{self, Echoes};
use crate::lab::sample::Sample;
use crate::lab::standing::HeldLab;
use crate::lab::stream::{self, Amount, Protocol};
use crate::lab::topology::TopologyOptions;
use crate::lab::{Error, Result, now, pause, wire};

const FLOW: Duration = Duration::from_secs(6);
const CUT: Plan = Plan {
    before: Duration::from_millis(1000),
    cut: Duration::from_millis(1000),
    after: Duration::from_millis(500),
};
const PING_INTERVAL: Duration = Duration::from_millis(1);

/// One round trip, and what its rows are called.
struct Distance {
    one_way: Duration,
    names: [&'static str; 6],
    part: &'static str,
}

macro_rules! distance {
    ($ms:literal, $one_way_us:literal) => {
        Distance {
            one_way: Duration::from_micros($one_way_us),
            names: [
                concat!("RTT ", $ms, " ms: one CUBIC flow over 2 × 100 Mbit/s"),
                "  … segments sent again",
                "  … one wire of two cut under a ping every ms: lost",
                "  … out of order, or twice",
                "  … longest time without an answer",
                "  … wires late at the 99th percentile",
            ],
            part: concat!("one flow, 2 × 100 Mbit/s, RTT ", $ms, " ms"),
        }
    };
}

const DISTANCES: [Distance; 3] = [
    distance!("0", 0),
    distance!("5", 2500),
    distance!("50", 25_000),
];

/// The line over two wires, the line over one, and a bare wire.
const TWO: &str = "pt-two";
const ONE: &str = "pt-one";
const WIRES: usize = 4;

/// Two hosts, four wires between them.
struct Stage {
    lab: HeldLab,
    a: Host,
    b: Host,
    plain: IpAddr,
}

/// How late the wires ran in each part.
#[derive(Clone, Debug, Serialize)]
pub struct WireLateness {
    pub part: &'static str,
    #[serde(flatten)]
    pub lateness: LatenessSummary,
}

#[derive(Debug, Default)]
pub struct Measured {
    pub figures: Vec<Row>,
    pub links: Vec<LinkUse>,
    pub lateness: Vec<WireLateness>,
}

pub fn measure(packtrain: &Path, rounds: usize) -> Result<Measured> {
    let stage = Stage::set(packtrain)?;
    let mut measured = Measured::default();
    for distance in &DISTANCES {
        stage.set_delay(distance.one_way)?;
        stage.one(distance, rounds, &mut measured)?;
    }
    Ok(measured)
}

impl Stage {
    fn set(packtrain: &Path) -> Result<Stage> {
        let options = TopologyOptions {
            links: WIRES,
            packtrain: false,
            ..TopologyOptions::default()
        };
        let topology = options.topology().expect("two hosts and their wires");
        let lab = HeldLab::up("links", &topology, packtrain)?;
        let host = |name| Ok::<Host, Error>(Host::new(lab.host(name)?, packtrain));
        let (_, plain) = lab.addresses()[1].links[3];
        let stage = Stage {
            a: host("a")?,
            b: host("b")?,
            plain: plain.into(),
            lab,
        };
        for (line, links, network) in [(TWO, &["eth0", "eth1"][..], 3), (ONE, &["eth2"], 1)] {
            for (number, host) in (1..).zip([&stage.a, &stage.b]) {
                let address = format!("10.19.{network}.{number}/24");
                host.up_over(line, links, &["--address", &address])?;
                let network = format!("10.19.{network}.0/24");
                wire::cubic(&host.namespace, &network, line)?;
            }
        }
        for host in [&stage.a, &stage.b] {
            wire::cubic(&host.namespace, "10.100.3.0/24", "eth3")?;
            for line in [TWO, ONE] {
                host.wait_for_peers_of(line, 1)?;
            }
        }
        Ok(stage)
    }

    fn set_delay(&self, one_way: Duration) -> Result<()> {
        for wire in &mut self.lab.status()?.topology.wires {
            for direction in &mut wire.directions {
                direction.wire.delay_ns = one_way.as_nanos() as u64;
            }
            self.lab.ask(&Request::Set {
                wire: wire.name.clone(),
                directions: Box::new(wire.directions.clone()),
            })?;
        }
        // What the lines have learned of their links is of the distance before.
        pause(Duration::from_secs(3));
        Ok(())
    }

    fn way(&self, address: IpAddr) -> Way<'_> {
        Way {
            from: &self.a.namespace,
            to: &self.b.namespace,
            address,
        }
    }

    /// Payload a second of one flow, and how many segments were sent again.
    fn flow(&self, address: IpAddr) -> Result<[f64; 2]> {
        let before = wire::tcp_sent_again(&self.a.namespace)?;
        let Way { from, to, address } = self.way(address);
        let at = SocketAddr::new(address, 7000);
        let amount = Amount::Time(FLOW);
        let transfer = stream::transfer(from, to, at, amount, Protocol::Tcp, now())?;
        let sent_again = wire::tcp_sent_again(&self.a.namespace)? - before;
        Ok([transfer.arrivals.rate_bps(), sent_again as f64])
    }

    /// Pings over two wires, of which one is cut meanwhile.
    fn pings(&self, address: IpAddr, round: usize) -> Result<Echoes> {
        let of = WireChoice {
            wire: format!("a-b.{}", round % 2),
            from: None,
        };
        let address = address.to_string();
        let from = &self.a.namespace;
        // The first of all asks for the address, and would be the longest gap.
        measure::ping_count(from, &address, Duration::from_millis(20), 3)?;
        let count = CUT.whole().as_millis() / PING_INTERVAL.as_millis();
        std::thread::scope(|scope| {
            let pings =
                scope.spawn(|| measure::echoes(from, &address, PING_INTERVAL, count as u32));
            pause(CUT.before);
            self.lab.cut_for(of, false, CUT.cut)?;
            let echoes = pings.join().expect("the pings have no reason to panic")?;
            // A peer is told of a link that is back with the next hello.
            pause(Duration::from_secs(3));
            Ok(echoes)
        })
    }

    fn one(&self, distance: &Distance, rounds: usize, into: &mut Measured) -> Result<()> {
        let (two, one) = (IpAddr::from([10, 19, 3, 2]), IpAddr::from([10, 19, 1, 2]));
        self.lab.lateness()?;
        let before = link_use::counters(&self.a.status_of(TWO)?);
        let mut flows: [Vec<[f64; 2]>; 3] = Default::default();
        for round in 0..rounds {
            eprintln!("{}: round {} of {rounds}", distance.part, round + 1);
            let mut ways = [(0, self.plain), (1, one), (2, two)];
            ways.rotate_left(round % 3);
            for (way, address) in ways {
                flows[way].push(self.flow(address)?);
            }
        }
        let after = link_use::counters(&self.a.status_of(TWO)?);
        into.links
            .extend(link_use::uses(distance.part, TWO, &before, &after));
        let pings = (0..rounds).map(|round| self.pings(two, round));
        let pings = pings.collect::<Result<Vec<Echoes>>>()?;
        let lateness = self.lab.lateness()?;
        let part = distance.part;
        into.lateness.push(WireLateness { part, lateness });

        let flow = |way: usize, number: usize| -> Vec<f64> {
            flows[way].iter().map(|flow| flow[number]).collect()
        };
        let of_pings =
            |number: fn(&Echoes) -> f64| -> Vec<f64> { pings.iter().map(number).collect() };
        let never = (Unit::Count, Target::NeverAbove(0.0));
        // At 0 ms the figure is a promise of the line; further away nobody has made one.
        let ratio = match distance.one_way.is_zero() {
            true => Target::RatioAtLeast(1.9),
            false => Target::RatioShown,
        };
        let nothing = Vec::new;
        let [goodput, again, lost, order, gap, late] = distance.names;
        let numbers = |number| [flow(0, number), flow(1, number), flow(2, number)];
        let of_one = |values| [nothing(), nothing(), values];
        let rows = [
            row(goodput, (Unit::BitPerSecond, ratio), numbers(0)),
            row(again, (Unit::Count, Target::DifferenceShown), numbers(1)),
            row(lost, never, of_one(of_pings(|echoes| echoes.lost() as f64))),
            row(
                order,
                never,
                of_one(of_pings(|echoes| {
                    (echoes.reordered + echoes.duplicated) as f64
                })),
            ),
            row(
                gap,
                (Unit::Microseconds, Target::Shown),
                of_one(of_pings(|echoes| echoes.gap_max_us)),
            ),
            row(
                late,
                (Unit::Microseconds, Target::Shown),
                of_one(vec![lateness.p99_us]),
            ),
        ];
        into.figures.extend(rows);
        Ok(())
    }
}

fn row(
    name: &'static str,
    (unit, target): (Unit, Target),
    [plain, one, several]: [Vec<f64>; 3],
) -> Row {
    let compared = target.compare(&one, &several);
    let sample = |values: Vec<f64>| -> Sample { values.into_iter().collect() };
    Row {
        name,
        plain: sample(plain),
        mptcp: Sample::default(),
        one: sample(one),
        several: sample(several),
        met: target.is_met(&compared),
        compared,
        unit,
        target,
    }
}
