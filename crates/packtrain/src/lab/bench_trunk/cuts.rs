//! A wire that dies under pings and under a transfer whose every byte is checked.

use std::time::Duration;

use super::bench::Bench;
use super::row::Better;
use super::stage::{Flow, Stage, Way};
use super::wires::WireOf;
use crate::lab::figure::{Target, Unit};
use crate::lab::measure::{self, Echoes};
use crate::lab::{Result, pause};

const PING_INTERVAL: Duration = Duration::from_millis(1);
/// From the beginning until the cut, until it is mended, until the end.
const UNDER_PINGS: [Duration; 3] = [ms(1000), ms(1000), ms(500)];
const UNDER_TRANSFER: [Duration; 3] = [ms(2000), ms(1500), ms(1500)];
/// Links that are back are told of by then.
const SETTLE: Duration = ms(1500);

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// How a wire dies.
#[derive(Clone, Copy, Debug)]
struct Death {
    what: &'static str,
    silent: bool,
    /// Who is not heard any more; nobody is where it is nobody.
    from: Option<&'static str>,
    gap_max_us: f64,
}

const CUT: Death = Death {
    what: "a wire cut",
    silent: false,
    from: None,
    gap_max_us: 10_000.0,
};
const SILENT: [Death; 3] = [
    silent("a wire silent", None),
    silent("a wire silent from A", Some("a")),
    silent("a wire silent from B", Some("b")),
];

const fn silent(what: &'static str, from: Option<&'static str>) -> Death {
    Death {
        what,
        silent: true,
        from,
        gap_max_us: 60_000.0,
    }
}

pub fn cut(bench: &mut Bench<'_>) -> Result<()> {
    under(bench, &[CUT])
}

pub fn silent_deaths(bench: &mut Bench<'_>) -> Result<()> {
    under(bench, &SILENT)
}

fn under(bench: &mut Bench<'_>, deaths: &[Death]) -> Result<()> {
    let stage = bench.stage(&[WireOf::mbit(100); 2])?;
    for death in deaths {
        pings(bench, &stage, death)?;
        transfer(bench, &stage, death)?;
    }
    Ok(())
}

impl Death {
    fn happens(&self, stage: &Stage, wire: usize, plan: [Duration; 3]) -> Result<()> {
        let [before, dead, _] = plan;
        pause(before);
        stage.cut(wire, self.from, self.silent)?;
        pause(dead);
        stage.mend(wire)
    }
}

/// The next round finds what this one found.
fn settle(stage: &Stage) -> Result<()> {
    stage.wait_until_whole()?;
    pause(SETTLE);
    Ok(())
}

fn pings(bench: &mut Bench<'_>, stage: &Stage, death: &Death) -> Result<()> {
    let part = format!("{} under a ping every ms", death.what);
    let a = &stage.a.namespace;
    let to = stage.to(Way::Several).to_string();
    let runs = bench.in_turns((&part, stage), &[Way::Several], |_, round| {
        // The first of all asks for the address, and would be the longest gap.
        measure::ping_count(a, &to, ms(20), 3)?;
        let whole: Duration = UNDER_PINGS.iter().sum();
        let count = (whole.as_millis() / PING_INTERVAL.as_millis()) as u32;
        let echoes = std::thread::scope(|scope| {
            let pings = scope.spawn(|| measure::echoes(a, &to, PING_INTERVAL, count));
            let happened = death.happens(stage, round % stage.wires(), UNDER_PINGS);
            let echoes = pings.join().expect("the pings have no reason to panic");
            happened.and(echoes)
        })?;
        settle(stage)?;
        Ok(echoes)
    })?;
    let never = (Unit::Count, Target::NeverAbove(0.0), Better::Neither);
    bench.promise(format!("{part}: lost"), never, &runs, |echoes: &Echoes| {
        echoes.lost() as f64
    });
    bench.promise("  … out of order, or twice", never, &runs, |echoes| {
        (echoes.reordered + echoes.duplicated) as f64
    });
    let gap = Target::AtMost(death.gap_max_us);
    bench.promise(
        "  … longest time without an answer",
        (Unit::Microseconds, gap, Better::Neither),
        &runs,
        |echoes| echoes.gap_max_us,
    );
    Ok(())
}

fn transfer(bench: &mut Bench<'_>, stage: &Stage, death: &Death) -> Result<()> {
    let part = format!("{} under TCP", death.what);
    let ways = [Way::Several, Way::Mptcp];
    let runs = bench.in_turns((&part, stage), &ways, |way, round| {
        let whole = UNDER_TRANSFER.iter().sum();
        let wire = round % stage.wires();
        let flow = stage.flow_during(way, whole, || death.happens(stage, wire, UNDER_TRANSFER))?;
        settle(stage)?;
        Ok(flow)
    })?;
    bench.note_subflows(&part, runs.get(&Way::Mptcp).into_iter().flatten());
    bench.promise(
        format!("{part}: bytes missing or wrong"),
        (Unit::Count, Target::NeverAbove(0.0), Better::Neither),
        &runs,
        missing,
    );
    bench.promise(
        "  … longest time without a byte",
        (
            Unit::Microseconds,
            Target::AtMost(death.gap_max_us),
            Better::Less,
        ),
        &runs,
        |flow| flow.transfer.arrivals.gap_max().as_secs_f64() * 1e6,
    );
    bench.promise(
        "  … segments sent again",
        (Unit::Count, Target::Shown, Better::Neither),
        &runs,
        |flow| flow.sent_again as f64,
    );
    bench.promise(
        "  … of it all, goodput",
        (Unit::BitPerSecond, Target::Shown, Better::More),
        &runs,
        |flow| flow.transfer.arrivals.rate_bps(),
    );
    Ok(())
}

pub fn missing(flow: &Flow) -> f64 {
    (flow.transfer.sent_bytes - flow.transfer.right_bytes) as f64
}
