//! What pacing costs: processor time for a gigabyte over a bare veth, where it is not the emulator that is measured.

use std::net::SocketAddr;
use std::time::Duration;

use super::Bench;
use super::flow::{self, Sender};
use super::row::{Of, Row};
use super::way::{CPS_FIRST, CUBIC, Pace, Way};
use crate::lab::figure::{Target, Unit};
use crate::lab::host::Host;
use crate::lab::one_link::stage::cpu_of_host;
use crate::lab::one_link::work::{Carried, Worked};
use crate::lab::stream::Amount;
use crate::lab::{Result, wire};

const LASTS: Duration = Duration::from_secs(4);
const PORT: u16 = 5005;
const NETWORK: &str = "10.32.0";
/// What the issue allows.
const WORK_MOST: f64 = 1.05;

pub fn measure(bench: &mut Bench<'_>) -> Result<()> {
    let mut ways = bench.ways.clone();
    let mut all: Vec<(Way, Vec<Worked>)> = ways.iter().map(|way| (*way, Vec::new())).collect();
    for round in 0..bench.rounds {
        for way in &ways {
            eprintln!(
                "work: round {} of {}, {}",
                round + 1,
                bench.rounds,
                way.name
            );
            let worked = run(bench, way)?;
            let runs = all.iter_mut().find(|(of, _)| of == way);
            runs.expect("one of them").1.push(worked);
        }
        ways.rotate_left(1);
    }
    let of = |way: Way, number: fn(&Worked) -> f64| -> Option<Of> {
        let (_, runs) = all.iter().find(|(of, _)| *of == way)?;
        Some(Of(way.name, runs.iter().map(number).collect()))
    };
    for &(way, _) in all.iter().filter(|(way, _)| *way != CUBIC) {
        let promised = way == CPS_FIRST;
        let mut push = |name, number, unit, target| {
            if let Some(values) = of(way, number) {
                let against = of(CUBIC, number);
                bench
                    .rows
                    .push(Row::new(name, values, against, (unit, target), ""));
            }
        };
        let target = match promised {
            true => Target::RatioAtMost(WORK_MOST),
            false => Target::RatioShown,
        };
        let name = "CPU seconds per GB, whole machine, bare veth";
        push(
            name,
            |worked| worked.seconds_per_gigabyte,
            Unit::Ratio,
            target,
        );
        push(
            "  … goodput of it",
            |worked| worked.goodput_bps,
            Unit::BitPerSecond,
            Target::RatioShown,
        );
    }
    Ok(())
}

fn run(bench: &Bench<'_>, way: &Way) -> Result<Worked> {
    let host = || Host::create("pacework", bench.packtrain);
    let (a, b) = (host()?, host()?);
    wire::veth((&a.namespace, "eth0"), (&b.namespace, "eth0"))?;
    for (number, host) in [&a, &b].into_iter().enumerate() {
        wire::receive_on_cpu(&host.namespace, "eth0", cpu_of_host(number))?;
        let address = format!("{NETWORK}.{}/24", number + 1);
        wire::add_address(&host.namespace, "eth0", &address)?;
    }
    if way.pace == Pace::Tcp {
        a.packtrain(&["pace", "tcp", "on", "--precision", "1ms"])?;
    }
    let sender = Sender {
        host: &a.namespace,
        congestion: way.congestion,
        bytes_per_second: None,
    };
    let at = SocketAddr::new(format!("{NETWORK}.2").parse().expect("an address"), PORT);
    let sent_before = wire::tcp_sent_again(&a.namespace)?;
    let worked = Worked::during(|| {
        let cpus = [0, 1].map(cpu_of_host);
        let flow = flow::carry(sender, &b.namespace, at, Amount::Time(LASTS), cpus)?;
        Ok(Carried {
            goodput_bps: flow.goodput_bps(),
            seconds: flow.seconds,
            sent_again: wire::tcp_sent_again(&a.namespace)? - sent_before,
        })
    });
    if way.pace == Pace::Tcp {
        a.packtrain(&["pace", "off"])?;
    }
    worked
}
