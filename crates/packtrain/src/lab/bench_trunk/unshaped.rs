//! Two veths without a rate, where nothing is short but the processors.

use std::time::Duration;

use super::bench::Bench;
use super::row::{Better, Runs};
use super::stage::Way as Compared;
use crate::lab::figure::{Target, Unit};
use crate::lab::host::Host;
use crate::lab::namespaces::Process;
use crate::lab::one_link::stage::{SETTLE, cpu_of_host};
use crate::lab::one_link::work::{self, Worked};
use crate::lab::{Result, measure, pause, wire};

const BULK: Duration = Duration::from_secs(3);

/// A line over some veths, or one of these bare.
struct WayOf {
    name: &'static str,
    links: &'static [&'static str],
    network: u8,
    /// Of a line alone.
    more: Option<&'static [&'static str]>,
}

const BARE: WayOf = WayOf {
    name: "bare0",
    links: &["bare0"],
    network: 0,
    more: None,
};
const ONE: WayOf = WayOf {
    name: "pt-one",
    links: &["one0"],
    network: 1,
    more: Some(&["--path", "engine"]),
};
const TWO: WayOf = WayOf {
    name: "pt-two",
    links: &["two0", "two1"],
    network: 2,
    more: Some(&["--path", "engine"]),
};
const AUTO: WayOf = WayOf {
    name: "pt-auto",
    links: &["auto0", "auto1"],
    network: 3,
    more: Some(&[]),
};
const ALL: [&WayOf; 4] = [&BARE, &ONE, &TWO, &AUTO];

struct Stage {
    _server: Process,
    a: Host,
    _b: Host,
}

impl Stage {
    fn set(bench: &Bench<'_>) -> Result<Stage> {
        let a = Host::create("trunk", bench.packtrain)?;
        let b = Host::create("trunk", bench.packtrain)?;
        for way in ALL {
            for link in way.links {
                wire::veth((&a.namespace, link), (&b.namespace, link))?;
                for (number, host) in [&a, &b].into_iter().enumerate() {
                    wire::receive_on_cpu(&host.namespace, link, cpu_of_host(number))?;
                }
            }
            for (number, host) in (1..).zip([&a, &b]) {
                let address = format!("10.29.{}.{number}/24", way.network);
                match way.more {
                    None => wire::add_address(&host.namespace, way.name, &address)?,
                    Some(more) => {
                        let more = [&["--address", &address], more].concat();
                        host.up_over(way.name, way.links, &more)?;
                    }
                }
                let network = format!("10.29.{}.0/24", way.network);
                wire::cubic(&host.namespace, &network, way.name)?;
            }
        }
        for way in ALL.into_iter().filter(|way| way.more.is_some()) {
            for host in [&a, &b] {
                host.wait_for_peers_of(way.name, 1)?;
            }
        }
        Ok(Stage {
            _server: measure::iperf3_server(&b.namespace)?,
            a,
            _b: b,
        })
    }

    fn bulk(&self, way: &WayOf) -> Result<Worked> {
        pause(SETTLE);
        let to = format!("10.29.{}.2", way.network);
        work::pinned_between(&self.a.namespace, &to, BULK)
    }
}

pub fn unshaped(bench: &mut Bench<'_>) -> Result<()> {
    let part = "one CUBIC flow, unshaped veths";
    let stage = Stage::set(bench)?;
    let mut runs: [Vec<Worked>; 4] = Default::default();
    for round in 0..bench.rounds {
        eprintln!("{part}: round {} of {}", round + 1, bench.rounds);
        for turn in 0..ALL.len() {
            let at = (turn + round) % ALL.len();
            let way = ALL[at];
            let document = || way.more.map(|_| stage.a.status_of(way.name)).transpose();
            let before = document()?;
            runs[at].push(stage.bulk(way)?);
            if let (Some(before), Some(after)) = (before, document()?) {
                bench.note_use(part, way.name, (&before, &after));
            }
        }
    }
    let [bare, one, two, auto] = runs;
    let against = |one: &[Worked], several: Vec<Worked>| -> Runs<Worked> {
        [(Compared::One, one.to_vec()), (Compared::Several, several)].into()
    };
    let neither = Better::Neither;
    let of_auto = against(&bare, auto);
    bench.promise(
        "two unshaped veths, auto; against one bare",
        (Unit::BitPerSecond, Target::RatioAtLeast(0.85), neither),
        &of_auto,
        |worked| worked.goodput_bps,
    );
    bench.promise(
        "  … segments sent again: more than bare",
        (Unit::Count, Target::DifferenceAtMost(0.0), neither),
        &of_auto,
        |worked| worked.sent_again as f64,
    );
    let by_engine = against(&one, two);
    bench.promise(
        "two unshaped veths, by the engine; against one",
        (Unit::BitPerSecond, Target::RatioShown, neither),
        &by_engine,
        |worked| worked.goodput_bps,
    );
    bench.promise(
        "  … CPU seconds per GB, whole machine",
        (Unit::Ratio, Target::RatioAtMost(1.1), neither),
        &by_engine,
        |worked| worked.seconds_per_gigabyte,
    );
    bench.promise(
        "  … segments sent again",
        (Unit::Count, Target::DifferenceShown, neither),
        &by_engine,
        |worked| worked.sent_again as f64,
    );
    Ok(())
}
