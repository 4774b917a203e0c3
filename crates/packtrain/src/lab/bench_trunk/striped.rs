//! Two links of some Gbit/s each, more than an engine carries: one flow that may be lost with a link.
//!
//! Each way has veths of its own, all shaped to the same rates. The lines are as anybody starts them; only a class says of
//! one what may be lost. What a frame costs here is the processors': both ends and all wires share them.

use std::net::SocketAddr;
use std::time::Duration;

use super::bench::Bench;
use super::row::{Better, Runs};
use super::stage::Way;
use super::subflows;
use crate::lab::figure::{Target, Unit};
use crate::lab::host::Host;
use crate::lab::namespaces::Process;
use crate::lab::one_link::stage::{SETTLE, cpu_of_host};
use crate::lab::one_link::work::{self, Worked};
use crate::lab::stream::{self, Amount, Protocol};
use crate::lab::{Result, measure, now, pause, wire};

const BULK: Duration = Duration::from_secs(3);
const STREAM_PORT: u16 = 7000;

/// What is compared, each over links of its own.
struct WayOf {
    name: &'static str,
    links: &'static [&'static str],
    network: u8,
    /// What may be lost with a link, in a class's words; `None`: it is no line.
    class: Option<Option<&'static str>>,
}

const BARE: WayOf = WayOf {
    name: "bare0",
    links: &["bare0"],
    network: 0,
    class: None,
};
const ONE: WayOf = WayOf {
    name: "pt-one",
    links: &["one0"],
    network: 1,
    class: Some(Some("tcp")),
};
const SPREAD: WayOf = WayOf {
    name: "pt-spread",
    links: &["spread0", "spread1"],
    network: 2,
    class: Some(Some("tcp")),
};
const AUTO: WayOf = WayOf {
    name: "pt-auto",
    links: &["auto0", "auto1"],
    network: 3,
    class: Some(None),
};
const LINES: [&WayOf; 3] = [&ONE, &SPREAD, &AUTO];
/// Bare, for MPTCP.
const SUBFLOWS: [(&str, u8); 2] = [("mptcp0", 4), ("mptcp1", 5)];

struct Stage {
    _server: Process,
    a: Host,
    b: Host,
    mptcp_unavailable: Option<String>,
}

impl Stage {
    fn set(bench: &Bench<'_>, rates_mbit: [u32; 2]) -> Result<Stage> {
        let a = Host::create("trunk", bench.packtrain)?;
        let b = Host::create("trunk", bench.packtrain)?;
        let lay = |link: &str, rate_mbit: u32| -> Result<()> {
            wire::veth((&a.namespace, link), (&b.namespace, link))?;
            for (number, host) in [&a, &b].into_iter().enumerate() {
                wire::shape_fast(&host.namespace, link, rate_mbit)?;
                wire::receive_on_cpu(&host.namespace, link, cpu_of_host(number))?;
            }
            Ok(())
        };
        for way in [&BARE].into_iter().chain(LINES) {
            for (link, rate_mbit) in way.links.iter().zip(rates_mbit) {
                lay(link, rate_mbit)?;
            }
        }
        for ((link, _), rate_mbit) in SUBFLOWS.into_iter().zip(rates_mbit) {
            lay(link, rate_mbit)?;
        }
        let bare = SUBFLOWS.into_iter().chain([(BARE.name, BARE.network)]);
        for (number, host) in (1..).zip([&a, &b]) {
            for (link, network) in bare.clone() {
                let address = format!("10.29.{network}.{number}/24");
                wire::add_address(&host.namespace, link, &address)?;
                cubic(host, link, network)?;
            }
            for way in LINES {
                let address = format!("10.29.{}.{number}/24", way.network);
                host.up_over(way.name, way.links, &["--address", &address])?;
                if let Some(Some(what)) = way.class {
                    host.packtrain(&["class", "add", way.name, "--match", what, "--loss-ok"])?;
                }
                cubic(host, way.name, way.network)?;
            }
        }
        for way in LINES {
            for host in [&a, &b] {
                host.wait_for_peers_of(way.name, 1)?;
            }
        }
        let (link, network) = SUBFLOWS[1];
        let offered = [(link.to_owned(), format!("10.29.{network}.2"))];
        let mptcp = subflows::use_all(&a, &b, &offered);
        Ok(Stage {
            _server: measure::iperf3_server(&b.namespace)?,
            a,
            b,
            mptcp_unavailable: mptcp.err().map(|error| error.to_string()),
        })
    }

    fn bulk(&self, way: &WayOf) -> Result<Worked> {
        pause(SETTLE);
        let to = format!("10.29.{}.2", way.network);
        work::pinned_between(&self.a.namespace, &to, BULK)
    }

    /// By the same program, whatever the protocol: iperf3 knows no MPTCP.
    fn stream(&self, network: u8, protocol: Protocol) -> Result<f64> {
        pause(SETTLE);
        let at = SocketAddr::new([10, 29, network, 2].into(), STREAM_PORT);
        let (a, b) = (&self.a.namespace, &self.b.namespace);
        let sent = stream::transfer(a, b, at, Amount::Time(BULK), protocol, now())?;
        Ok(sent.arrivals.rate_bps())
    }
}

fn cubic(host: &Host, interface: &str, network: u8) -> Result<()> {
    let network = format!("10.29.{network}.0/24");
    wire::cubic(&host.namespace, &network, interface)
}

pub fn striped(bench: &mut Bench<'_>) -> Result<()> {
    // Where one is much slower, frames are smaller, and a part of what it brings is the processors'.
    let rates = [
        ([4000, 4000], 1.85),
        ([4000, 2500], 1.45),
        ([8000, 2200], 1.05),
        ([4000, 1000], 1.12),
    ];
    for (rates_mbit, least) in rates {
        over(bench, rates_mbit, least)?;
    }
    Ok(())
}

fn over(bench: &mut Bench<'_>, rates_mbit: [u32; 2], least: f64) -> Result<()> {
    let [first, second] = rates_mbit.map(|rate| f64::from(rate) / 1000.0);
    let part = format!("{first} + {second} Gbit/s, may be lost with a link");
    let stage = Stage::set(bench, rates_mbit)?;
    bench.mptcp_unavailable = stage.mptcp_unavailable.clone();
    let ways = [&BARE, &ONE, &SPREAD, &AUTO];
    let mut runs: [Vec<Worked>; 4] = Default::default();
    let mut streams: Runs<f64> = Runs::new();
    for round in 0..bench.rounds {
        eprintln!("{part}: round {} of {}", round + 1, bench.rounds);
        for turn in 0..ways.len() {
            let at = (turn + round) % ways.len();
            let way = ways[at];
            let document = || way.class.map(|_| stage.a.status_of(way.name)).transpose();
            let before = document()?;
            runs[at].push(stage.bulk(way)?);
            if let (Some(before), Some(after)) = (before, document()?) {
                bench.note_use(&part, way.name, (&before, &after));
            }
        }
        let ours = stage.stream(SPREAD.network, Protocol::Tcp)?;
        streams.entry(Way::Several).or_default().push(ours);
        if stage.mptcp_unavailable.is_none() {
            let theirs = stage.stream(SUBFLOWS[0].1, Protocol::Mptcp)?;
            streams.entry(Way::Mptcp).or_default().push(theirs);
        }
    }
    let [bare, one, spread, auto] = runs;
    let rate = (
        Unit::BitPerSecond,
        Target::RatioAtLeast(least),
        Better::Neither,
    );
    let all: Runs<Worked> = [
        (Way::Plain, bare),
        (Way::One, one),
        (Way::Several, spread.clone()),
    ]
    .into();
    bench.promise(part.clone(), rate, &all, |worked| worked.goodput_bps);
    bench.promise(
        "  … a stream that is checked, beside MPTCP's",
        (Unit::BitPerSecond, Target::RatioShown, Better::More),
        &streams,
        |rate_bps| *rate_bps,
    );
    let engine: Runs<Worked> = [(Way::One, auto), (Way::Several, spread)].into();
    bench.promise(
        "  … against what no class says it of",
        (Unit::BitPerSecond, Target::RatioShown, Better::Neither),
        &engine,
        |worked| worked.goodput_bps,
    );
    bench.promise(
        "  … segments sent again",
        (Unit::Count, Target::DifferenceShown, Better::Neither),
        &all,
        |worked| worked.sent_again as f64,
    );
    bench.promise(
        "  … CPU seconds per GB, whole machine",
        (Unit::Ratio, Target::RatioShown, Better::Neither),
        &all,
        |worked| worked.seconds_per_gigabyte,
    );
    Ok(())
}
