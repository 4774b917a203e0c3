//! What is measured, and what each number has to be.

use std::time::Duration;

use crate::lab::Result;
use crate::lab::figure::{Target, Unit};
use crate::lab::one_link::Bench;
use crate::lab::one_link::figure::Runs;
use crate::lab::one_link::parts::ping_under_load;
use crate::lab::one_link::stage::Line;

const BULK_SHAPED: Duration = Duration::from_secs(5);
/// What two runs of the same differ by.
const NOT_WORSE: Target = Target::RatioAtMost(1.05);

/// TCP flows from A to B.
pub struct TcpLoad {
    part: &'static str,
    name: &'static str,
    flows: u32,
    /// More than bare, all flows together.
    sent_again_max: f64,
}

pub const ONE_FLOW: TcpLoad = TcpLoad {
    part: "CUBIC, 100 Mbit/s",
    name: "one CUBIC flow over 100 Mbit/s",
    flows: 1,
    sent_again_max: 0.0,
};

/// A probe for a lost tail now and then: one a flow at most.
pub const MANY_FLOWS: TcpLoad = TcpLoad {
    part: "20 × CUBIC, 100 Mbit/s",
    name: "20 CUBIC flows over 100 Mbit/s",
    flows: 20,
    sent_again_max: 20.0,
};

pub fn bulk(bench: &mut Bench, line: &Line) -> Result<()> {
    let runs = bench.in_turns("bulk TCP, unshaped", line, |way| line.bulk(way, &[]))?;
    bench.compare(
        "bulk TCP, one unshaped veth",
        Unit::BitPerSecond,
        Target::RatioAtLeast(0.45),
        runs.map(|bulk| bulk.goodput_bps),
    );
    Ok(())
}

pub fn bulk_shaped(bench: &mut Bench, line: &Line, load: &'static TcpLoad) -> Result<()> {
    let flows = load.flows.to_string();
    let runs = bench.in_turns(load.part, line, |way| {
        line.bulk_and_ping(way, BULK_SHAPED, &["-P", &flows])
    })?;
    bench.compare(
        load.name,
        Unit::BitPerSecond,
        Target::RatioAtLeast(0.97),
        runs.map(|(bulk, _)| bulk.goodput_bps),
    );
    bench.compare(
        "  … segments sent again",
        Unit::Count,
        Target::DifferenceAtMost(load.sent_again_max),
        runs.map(|(bulk, _)| bulk.retransmits as f64),
    );
    ping_under_load(bench, NOT_WORSE, &runs);
    Ok(())
}

pub fn idle(bench: &mut Bench, line: &Line) -> Result<()> {
    line.move_to_one_cpu()?;
    let part = "UDP exchange, one CPU";
    let runs = bench.in_turns(part, line, |way| line.exchange(way))?;
    bench.compare(
        "RTT of a UDP exchange on an idle line, both ends on one CPU, p50: added",
        Unit::Microseconds,
        Target::DifferenceAtMost(40.0),
        runs.map(|trips| trips.p50_us),
    );
    let part = "idle ping, one CPU";
    let runs = bench.in_turns(part, line, |way| line.idle_ping(way))?;
    bench.compare(
        "  … of a ping every 5 ms, between which the CPU sleeps, p50: added",
        Unit::Microseconds,
        Target::DifferenceShown,
        runs.map(|trips| trips.p50_us),
    );
    Ok(())
}

/// After the load of the parts before.
pub fn memory(bench: &mut Bench, line: &Line) -> Result<()> {
    let mut most = 0.0_f64;
    for name in line.names() {
        for host in [&line.a, &line.b] {
            most = most.max(host.daemon_memory_max_kib(name)? as f64);
        }
    }
    // A daemon that cannot be found has no memory, and keeps no promise.
    let most = if most > 0.0 { most } else { f64::NAN };
    bench.compare(
        "memory of the daemon after load (VmHWM)",
        Unit::Kibibytes,
        Target::AtMost(64.0 * 1024.0),
        Runs::of_pt0([most]),
    );
    Ok(())
}

pub fn start(bench: &mut Bench, line: &Line) -> Result<()> {
    let mut times = Vec::new();
    for round in 0..bench.rounds {
        eprintln!("up to first ping: round {} of {}", round + 1, bench.rounds);
        times.push(line.start()? * 1e3);
    }
    bench.compare(
        "`up` to the first ping answered",
        Unit::Microseconds,
        Target::AtMost(1e6),
        Runs::of_pt0(times),
    );
    Ok(())
}
