//! A wire that dies under pings and under a transfer whose every byte is checked.
//!
//! How long nothing comes for a quarter of a second after the death, and after the wire is mended, says of the line only what the
//! machine itself did not do: a transfer in which a processor stood still then, for a fifth of what is promised, is made again, up to
//! four times. What was lost counts of each.

use std::time::{Duration, Instant};

use super::bench::Bench;
use super::row::Better;
use super::stage::{Flow, Stage, Way};
use super::wires::WireOf;
use crate::lab::figure::{Target, Unit};
use crate::lab::measure::{self, Echoes};
use crate::lab::standstill::Watch;
use crate::lab::{Result, now, pause};

const PING_INTERVAL: Duration = Duration::from_millis(1);
/// From the beginning until the cut, until it is mended, until the end.
const UNDER_PINGS: [Duration; 3] = [ms(1000), ms(1000), ms(500)];
const UNDER_TRANSFER: [Duration; 3] = [ms(2000), ms(1500), ms(1500)];
/// Links that are back are told of by then.
const SETTLE: Duration = ms(1500);
/// What a death holds up, or a mending, has come so long after it.
const FELT: Duration = ms(250);
/// So often a transfer is made at most, for one in which the machine ran.
const TRIES: usize = 5;
/// A standstill is short that is so much less than the gap that is promised.
const STANDSTILL_PART: f64 = 5.0;

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
    /// When it did, and when the wire was mended.
    fn happens(&self, stage: &Stage, wire: usize, plan: [Duration; 3]) -> Result<[Instant; 2]> {
        let [before, dead, _] = plan;
        pause(before);
        let died = now();
        stage.cut(wire, self.from, self.silent)?;
        pause(dead);
        let mended = now();
        stage.mend(wire)?;
        Ok([died, mended])
    }

    fn standstill_max(&self) -> Duration {
        Duration::from_secs_f64(self.gap_max_us / STANDSTILL_PART / 1e6)
    }
}

/// A transfer; the longest time without a byte after the death and after the mending, and for how long a processor was not seen to run then.
#[derive(Clone, Debug)]
struct Survived {
    flow: Flow,
    gap: Duration,
    standstill: Duration,
    /// Of all that were made, also those that do not count because a processor stood still.
    missing: f64,
    made: usize,
}

fn survive(stage: &Stage, way: Way, death: &Death, wire: usize) -> Result<Survived> {
    let whole = UNDER_TRANSFER.iter().sum();
    let watch = Watch::begin();
    let mut changes = [now(); 2];
    let flow = stage.flow_during(way, whole, || {
        changes = death.happens(stage, wire, UNDER_TRANSFER)?;
        Ok(())
    })?;
    let seen = watch.end();
    let longest = |of: &dyn Fn(Instant, Instant) -> Duration| {
        let after = changes.map(|at| of(at, at + FELT));
        after[0].max(after[1])
    };
    let standstill = longest(&|from, until| seen.longest(from, until));
    let gap = longest(&|from, until| flow.transfer.arrivals.gap_max_within(from, until));
    settle(stage)?;
    Ok(Survived {
        missing: missing(&flow),
        made: 1,
        flow,
        gap,
        standstill,
    })
}

/// … of which the machine kept nothing back, where there is one among so many; else the last.
fn survive_where_it_ran(stage: &Stage, way: Way, death: &Death, wire: usize) -> Result<Survived> {
    let mut survived = survive(stage, way, death, wire)?;
    while survived.standstill > death.standstill_max() && survived.made < TRIES {
        let stood_ms = survived.standstill.as_secs_f64() * 1e3;
        eprintln!("once more: a processor stood still for {stood_ms:.1} ms");
        let before = survived;
        survived = survive(stage, way, death, wire)?;
        survived.missing += before.missing;
        survived.made += before.made;
    }
    Ok(survived)
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
        survive_where_it_ran(stage, way, death, round % stage.wires())
    })?;
    let flows = runs.get(&Way::Mptcp).into_iter().flatten();
    let flows: Vec<Flow> = flows.map(|survived| survived.flow.clone()).collect();
    bench.note_subflows(&part, flows.iter());
    bench.promise(
        format!("{part}: bytes missing or wrong"),
        (Unit::Count, Target::NeverAbove(0.0), Better::Neither),
        &runs,
        |survived| survived.missing,
    );
    let us = |duration: Duration| duration.as_secs_f64() * 1e6;
    bench.promise(
        "  … longest time without a byte, then",
        (
            Unit::Microseconds,
            Target::AtMost(death.gap_max_us),
            Better::Less,
        ),
        &runs,
        |survived| us(survived.gap),
    );
    let shown = |unit| (unit, Target::Shown, Better::Neither);
    bench.promise(
        "  … longest time a processor was not seen to run, then",
        shown(Unit::Microseconds),
        &runs,
        |survived| us(survived.standstill),
    );
    bench.promise(
        "  … transfers made for each that counts",
        shown(Unit::Count),
        &runs,
        |survived| survived.made as f64,
    );
    bench.promise(
        "  … longest time without a byte, ever",
        shown(Unit::Microseconds),
        &runs,
        |survived| us(survived.flow.transfer.arrivals.gap_max()),
    );
    bench.promise(
        "  … segments sent again",
        shown(Unit::Count),
        &runs,
        |survived| survived.flow.sent_again as f64,
    );
    bench.promise(
        "  … of it all, goodput",
        (Unit::BitPerSecond, Target::Shown, Better::More),
        &runs,
        |survived| survived.flow.transfer.arrivals.rate_bps(),
    );
    Ok(())
}

pub fn missing(flow: &Flow) -> f64 {
    (flow.transfer.sent_bytes - flow.transfer.right_bytes) as f64
}
