//! What a drop costs, beside xdp-filter in turns: by a flood through the driver of a veth, where it is the driver's thread
//! that is timed (its ring, the program, the page that goes back); and by `BPF_PROG_TEST_RUN`, which is the program alone.

use std::time::Duration;

use super::flooding::{Flooded, Load, flood};
use super::mix::{Kind, only, whole_frame};
use super::row::{Compared, Row, Runs};
use super::stage::{Layout, Stage};
use super::way::Way;
use super::{Bench, carried};
use crate::lab::figure::{Target, Unit};
use crate::lab::{Error, Result};
use crate::linux::driver_program::{DROP, DriverProgram};

const FLOOD: Duration = Duration::from_millis(400);
const SIZE: usize = 64;
const JUDGED_TIMES: u32 = 1_000_000;
const NOT_WORSE: Target = Target::RatioAtMost(1.1);
/// Frames that were no flood's pass.
const PASSED_MAX: u64 = 50;

/// Which drop, by whom, against whom; and who else.
struct Decision {
    name: &'static str,
    kind: Kind,
    ways: &'static [Way],
    compared: &'static [Compared],
}

const ADDRESSES: &[Way] = &[
    Way::Filter,
    Way::XdpFilter,
    Way::FilterAgain,
    Way::XdpFilterEthernet,
    Way::DropAll,
];
const PORTS: &[Way] = &[
    Way::FilterPorts,
    Way::XdpFilterPort,
    Way::FilterRule,
    Way::XdpFilterUdp,
    Way::DropAll,
];
const ALL: [Way; 9] = [
    Way::Filter,
    Way::XdpFilter,
    Way::FilterPorts,
    Way::XdpFilterPort,
    Way::FilterRule,
    Way::XdpFilterUdp,
    Way::FilterAgain,
    Way::XdpFilterEthernet,
    Way::DropAll,
];
const OF_ADDRESSES: &[Compared] = &[Compared(Way::Filter, Way::XdpFilter)];
const DECISIONS: [Decision; 4] = [
    Decision {
        name: "foreign unicast",
        kind: Kind::Promiscuous,
        ways: ADDRESSES,
        compared: OF_ADDRESSES,
    },
    Decision {
        name: "foreign group",
        kind: Kind::ForeignGroup,
        ways: ADDRESSES,
        compared: OF_ADDRESSES,
    },
    Decision {
        name: "foreign ARP (xdp-filter drops it unread)",
        kind: Kind::Arp,
        ways: ADDRESSES,
        compared: OF_ADDRESSES,
    },
    Decision {
        name: "UDP to a closed port",
        kind: Kind::ClosedPort,
        ways: PORTS,
        compared: &[
            Compared(Way::FilterPorts, Way::XdpFilterPort),
            Compared(Way::FilterRule, Way::XdpFilterPort),
        ],
    },
];

/// One decision of one way in one round.
struct Cost {
    flooded: Flooded,
    alone_ns: f64,
}

pub fn measure(bench: &mut Bench<'_>) -> Result<()> {
    let stage = Stage::set(Layout::OneProcessor)?;
    let mut runs: Vec<Runs<Cost>> = DECISIONS.iter().map(|_| Runs::default()).collect();
    bench.in_turns("a drop", &stage, &ALL, |standing| {
        for (decision, runs) in DECISIONS.iter().zip(&mut runs) {
            if !decision.ways.contains(&standing.way()) {
                continue;
            }
            let load = Load {
                mix: &only(decision.kind, SIZE),
                size: SIZE,
                per_second: None,
                duration: FLOOD,
            };
            let flooded = flood(&stage, standing, load)?;
            all_were_dropped(&flooded, standing.way(), decision.name)?;
            let alone_ns = judged(&stage, &whole_frame(decision.kind, SIZE), DROP)?;
            runs.push(standing.way(), Cost { flooded, alone_ns });
        }
        Ok(())
    })?;
    for (decision, runs) in DECISIONS.iter().zip(&runs) {
        for &compared in decision.compared {
            let carried = carried(runs.of(compared.0).iter().map(|cost| &cost.flooded));
            let name = format!("a drop of {}, in the driver of a veth", decision.name);
            let live = runs.map(|cost| cost.flooded.driver_ns_each());
            let kind = (Unit::Nanoseconds, NOT_WORSE);
            bench.push(Row::new(name, compared, kind, &live, &carried));
            let alone = runs.map(|cost| cost.alone_ns);
            let name = "  … the program alone (BPF_PROG_TEST_RUN)";
            bench.push(Row::new(name, compared, kind, &alone, &carried));
        }
        if decision.ways.contains(&Way::FilterAgain) {
            let same = Compared(Way::FilterAgain, Way::Filter);
            let live = runs.map(|cost| cost.flooded.driver_ns_each());
            let kind = (Unit::Nanoseconds, Target::RatioShown);
            let name = "  … A/A: the same against itself, in the driver";
            bench.push(Row::new(name, same, kind, &live, ""));
        }
    }
    Ok(())
}

fn all_were_dropped(flooded: &Flooded, way: Way, what: &str) -> Result<()> {
    if flooded.given() <= PASSED_MAX {
        return Ok(());
    }
    Err(Error::Unexpected {
        program: way.name().into(),
        text: format!(
            "{} of {} frames passed, which were to be dropped: {what}",
            flooded.given(),
            flooded.counts.driver
        ),
    })
}

/// What the program in the host's driver needs for this frame, ns; an error where it says something else of it.
pub fn judged(stage: &Stage, frame: &[u8], verdict: u32) -> Result<f64> {
    let failed = |text: String| Error::Unexpected {
        program: "the program in the driver".into(),
        text,
    };
    let judge = || match DriverProgram::on(stage.host_ifindex)? {
        Some(program) => program.judge(frame, JUDGED_TIMES),
        None => Err(std::io::ErrorKind::NotFound.into()),
    };
    let judged = stage.host.in_namespace(judge)?;
    let judged = judged.map_err(|error| failed(format!("could not be run: {error}")))?;
    match judged.verdict == verdict {
        true => Ok(judged.each_ns.into()),
        false => Err(failed(format!(
            "says {} of a frame of which {verdict} was expected",
            judged.verdict
        ))),
    }
}
