//! One TCP flow through `pt0` over a wire whose bits are wrong: with trains as long as the line finds best, without being told how many
//! bits are, against each of some fixed sizes (XLF paper, Fig. 8, where TCP chooses its own segments).
//!
//! All sizes have the same line but for that: what the wire loses goes again where it is seen to lose, whatever the size.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use super::flows::{self, Times};
use super::wires::as_of_a_router;
use crate::lab::figure::{Target, Unit};
use crate::lab::host::Host;
use crate::lab::one_link::Bench;
use crate::lab::one_link::figure::Runs;
use crate::lab::one_link::stage::SETTLE;
use crate::lab::one_link::way::Way;
use crate::lab::sample::Sample;
use crate::lab::standing::HeldLab;
use crate::lab::topology::{Topology, TopologyOptions};
use crate::lab::{Result, pause};

/// What is measured in turns; the first follows.
const SIZES: [&str; 5] = ["tcp", "1500", "9000", "19500", "65000"];
const FIXED: std::ops::Range<usize> = 1..SIZES.len();
const ERROR_RATES: [(f64, &str); 3] = [(1e-7, "1e-7"), (1e-6, "1e-6"), (1e-5, "1e-5")];
const MTU: u16 = 65_000;
const ONE_WAY: Duration = Duration::from_millis(5);
/// 100 ms of the rate.
const QUEUE_BYTES: u64 = 1_250_000;
/// What is wrong has to be found first, and windows have to grow.
const TIMES: Times = Times {
    ignored: Duration::from_secs(8),
    counted: Duration::from_secs(8),
};
const PORT: u16 = 7321;

pub fn measure(bench: &mut Bench, packtrain: &Path) -> Result<()> {
    for (rate, text) in ERROR_RATES {
        at(bench, packtrain, (rate, text))?;
    }
    Ok(())
}

/// Two hosts whose lines make trains by this law.
#[derive(Debug)]
struct Wire {
    lab: HeldLab,
}

impl Wire {
    fn set(packtrain: &Path, error_rate: f64, size: &str) -> Result<Wire> {
        // They stand side by side.
        let tag = format!("ber-{size}-");
        let lab = HeldLab::up(&tag, &topology(error_rate, size), packtrain)?;
        Ok(Wire { lab })
    }

    fn goodput_bps(&self) -> Result<f64> {
        let (a, b) = (self.lab.host("a")?, self.lab.host("b")?);
        let at = SocketAddr::new(IpAddr::from(self.lab.addresses()[1].main), PORT);
        let flows = flows::carry([&a, &b], at, &[None], TIMES)?;
        Ok(flows.iter().sum())
    }

    /// Payload bytes of the longest train, and of a bit to be wrong, as A has it.
    fn found(&self, packtrain: &Path) -> Result<(u16, f64)> {
        let status = Host::new(self.lab.host("a")?, packtrain).status()?;
        let mut paths = status.peers.iter().flat_map(|peer| &peer.links);
        let path = paths.next();
        let rate = path.and_then(|path| path.bit_error_rate);
        Ok((
            path.map_or(0, |path| path.size_bytes),
            rate.unwrap_or_default(),
        ))
    }
}

fn at(bench: &mut Bench, packtrain: &Path, (rate, text): (f64, &str)) -> Result<()> {
    let part = format!("one flow through pt0 of {MTU}, 100 Mbit/s, 10 ms, bit errors of {text}");
    let wires = SIZES.map(|size| Wire::set(packtrain, rate, size));
    let wires = wires.into_iter().collect::<Result<Vec<Wire>>>()?;
    let mut goodput = SIZES.map(|_| Vec::new());
    let mut found = Vec::new();
    for round in 0..bench.rounds {
        eprintln!("{part}: round {} of {}", round + 1, bench.rounds);
        for turn in 0..SIZES.len() {
            let number = (round + turn) % SIZES.len();
            pause(SETTLE);
            goodput[number].push(wires[number].goodput_bps()?);
            if number == 0 {
                found.push(wires[number].found(packtrain)?);
            }
        }
    }
    tell(bench, &part, &goodput, &found);
    Ok(())
}

fn tell(bench: &mut Bench, part: &str, goodput: &[Vec<f64>; SIZES.len()], found: &[(u16, f64)]) {
    let against = |number: usize| {
        let mut runs = Runs::of_ways(&[Way::Bare, Way::Pt0]);
        let pairs = goodput[number].iter().zip(&goodput[0]);
        for (&fixed, &following) in pairs {
            runs.push(Way::Bare, fixed);
            runs.push(Way::Pt0, following);
        }
        runs
    };
    let best = best_of(goodput);
    bench.compare(
        format!(
            "{part}: the size that follows (pt0) against the best fixed one, {} (bare)",
            SIZES[best]
        ),
        Unit::BitPerSecond,
        Target::RatioAtLeast(0.95),
        against(best),
    );
    for number in FIXED.filter(|&number| number != best) {
        bench.compare(
            format!("  … against {}", SIZES[number]),
            Unit::BitPerSecond,
            Target::RatioShown,
            against(number),
        );
    }
    bench.compare(
        "  … bytes of its trains",
        Unit::Count,
        Target::Shown,
        Runs::of_pt0(found.iter().map(|(bytes, _)| f64::from(*bytes))),
    );
    bench.compare(
        "  … bit errors found, of 10⁹ bits",
        Unit::Count,
        Target::Shown,
        Runs::of_pt0(found.iter().map(|(_, rate)| rate * 1e9)),
    );
}

/// Of the fixed ones, by the median.
fn best_of(goodput: &[Vec<f64>; SIZES.len()]) -> usize {
    let median = |number: usize| goodput[number].iter().copied().collect::<Sample>().median();
    let best = FIXED.max_by(|&a, &b| median(a).total_cmp(&median(b)));
    best.expect("there are some")
}

fn topology(error_rate: f64, size: &str) -> Topology {
    let options = TopologyOptions {
        links: 1,
        mtu: MTU,
        ..TopologyOptions::default()
    };
    let mut topology = options.topology().expect("two hosts and their wire");
    let up = [
        "--mtu".to_owned(),
        MTU.to_string(),
        "--size".to_owned(),
        size.to_owned(),
        // Else trains at this rate are as short as packets, whatever the bits are.
        "--max-sand-delay".to_owned(),
        "off".to_owned(),
    ];
    for host in &mut topology.hosts {
        host.up = up.to_vec();
    }
    for direction in &mut topology.wires[0].directions {
        as_of_a_router(direction, ONE_WAY, QUEUE_BYTES);
        direction.wire.bit_error_rate = Some(error_rate);
    }
    topology
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wires_have_errors_both_ways_and_hosts_the_size_that_is_asked_for() {
        let topology = topology(1e-6, "9000");
        assert!(topology.check().is_empty());
        assert!(topology.hosts.iter().all(|host| host.packtrain));
        let up = "--mtu 65000 --size 9000 --max-sand-delay off";
        assert_eq!(topology.hosts[0].up.join(" "), up);
        let [wire] = &topology.wires[..] else {
            panic!("one wire");
        };
        for direction in &wire.directions {
            assert_eq!(direction.wire.bit_error_rate, Some(1e-6));
        }
    }

    #[test]
    fn the_best_is_one_of_the_fixed_however_good_the_other_is() {
        let goodput = [
            vec![9.0],
            vec![1.0],
            vec![3.0, 2.0, 8.0],
            vec![4.0, 1.0],
            vec![2.0],
        ];
        assert_eq!(best_of(&goodput), 2);
    }
}
