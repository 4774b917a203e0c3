//! One connection after the other over the long line, by each way: what it lost in slow start and after it, how much of the
//! bottleneck's buffer it wanted, and how soon it had carried 100 MB and 1 GB.

use serde::Serialize;

use super::Bench;
use super::again::{Flawed, until_wires_tell};
use super::row::{Of, Row};
use super::slow_start::{SlowStart, carried_after};
use super::stage::{Carried, Run, Setting, Stage};
use super::timeline;
use super::told::Told;
use super::trace::Trace;
use super::way::{CPS_FIRST, CPS_SECOND, CUBIC, Connection, Pace, Way};
use crate::lab::Result;
use crate::lab::figure::{Target, Unit};
use crate::lab::sample::Sample;
use crate::lab::stream::Amount;
use crate::lab::table::{Table, grouped, time};

const SHORT_BYTES: u64 = 100_000_000;
const LONG_BYTES: u64 = 1_000_000_000;
const AMOUNTS: [(&str, u64); 2] = [("100 MB", SHORT_BYTES), ("1 GB", LONG_BYTES)];
/// Where the line itself takes more than the share of CUBIC's time that is promised: what may be added to its time.
const BOUND_SLACK: f64 = 1.05;

#[derive(Clone, Debug)]
struct Measured {
    start: SlowStart,
    /// 100 MB and 1 GB, s.
    carried_after: Vec<f64>,
    carried: Carried,
    /// Of those that are spaced.
    told: Option<Told>,
}

/// All runs of one way with one setting.
#[derive(Clone, Debug)]
pub struct Runs {
    setting: Setting,
    way: Way,
    runs: Vec<Measured>,
}

/// The same in numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    buffer: f64,
    buffer_bytes: u64,
    offload: bool,
    way: Way,
    lost_while_spaced: Sample,
    lost_in_slow_start: Sample,
    lost_after: Sample,
    spaced_s: Sample,
    slow_start_s: Sample,
    ended_by: Vec<super::slow_start::EndedBy>,
    peak_in_slow_start_bytes: Sample,
    peak_bytes: Sample,
    last_round_bytes: Sample,
    /// Off the even row that a spaced round should have been, at the receiver.
    uneven_p50_us: Sample,
    uneven_p99_us: Sample,
    carried_100_mb_s: Sample,
    carried_1_gb_s: Sample,
    /// By the emulator's counters, in each round.
    carried: Vec<Carried>,
    /// By the pacer itself, in each round; null: there was none.
    told: Vec<Option<Told>>,
}

pub fn measure(bench: &mut Bench<'_>) -> Result<()> {
    let mut all: Vec<Runs> = Vec::new();
    let mut ways = bench.ways.clone();
    for round in 0..bench.rounds {
        for setting in bench.settings() {
            for way in &ways {
                bench.tell("connections", round, &setting, way.name);
                for (way, measured) in run(bench, setting, way, round)? {
                    let same = |runs: &&mut Runs| runs.setting == setting && runs.way == way;
                    match all.iter_mut().find(same) {
                        Some(runs) => runs.runs.push(measured),
                        None => all.push(Runs {
                            setting,
                            way,
                            runs: vec![measured],
                        }),
                    }
                }
            }
        }
        ways.rotate_left(1);
    }
    bench.rows.extend(promises(&all));
    bench.connections.extend(all.iter().map(Runs::summary));
    Ok(())
}

/// What one host sends by this way; of those that remember, a second connection follows the first.
fn run(
    bench: &Bench<'_>,
    setting: Setting,
    way: &Way,
    round: usize,
) -> Result<Vec<(Way, Measured)>> {
    until_wires_tell(
        &bench.made_again,
        || run_once(bench, setting, way, round),
        |measured| measured.iter().map(|(_, of)| of.carried).collect(),
    )
}

fn run_once(
    bench: &Bench<'_>,
    setting: Setting,
    way: &Way,
    round: usize,
) -> Result<Flawed<Vec<(Way, Measured)>>> {
    let stage = Stage::set(bench.packtrain, setting)?;
    stage.prepare(way)?;
    let both = [CPS_FIRST, CPS_SECOND];
    let connections = match way.pace {
        Pace::Tcp => &both[..],
        _ => std::slice::from_ref(way),
    };
    let amounts = bench.amounts();
    let last = *amounts.last().expect("at least one amount");
    let mut measured = Vec::new();
    for way in connections {
        let run = stage.traced(|| stage.carry(way, Amount::Bytes(last)))?;
        if let Some(directory) = bench.plots {
            let name = format!("connections {setting}, {} {}", way.name, round + 1);
            timeline::write(directory, &name, &run.trace, setting)?;
        }
        match judge(&run, setting, &amounts) {
            Ok(one) => {
                let told = match way.pace {
                    Pace::Tcp => Some(Told::by(&stage.a)?),
                    _ => None,
                };
                measured.push((*way, Measured { told, ..one }));
            }
            Err(flaw) => return Ok(Err(flaw)),
        }
    }
    stage.end(way)?;
    Ok(Ok(measured))
}

/// What the wires say of it, unless they cannot.
fn judge(run: &Run, setting: Setting, amounts: &[u64]) -> Flawed<Measured> {
    let trace = &run.trace;
    if let Some(flaw) = flaw(trace, &run.carried) {
        return Err(flaw);
    }
    let flow = trace
        .flows()
        .first()
        .copied()
        .ok_or("nothing was carried")?;
    let trace = trace.of(flow);
    let start = SlowStart::of(&trace, setting.path()).ok_or("nothing was carried")?;
    let lost = start.lost.in_slow_start + start.lost.after;
    if lost != trace.dropped.len() as u64 {
        return Err(format!(
            "{lost} segments came to the bottleneck and did not pass, of which {} were seen to be dropped",
            trace.dropped.len()
        ));
    }
    Ok(Measured {
        start,
        carried_after: carried_after(&trace, amounts),
        carried: run.carried,
        told: None,
    })
}

fn flaw(trace: &Trace, carried: &Carried) -> Option<String> {
    let of = |count: u64, what: &str| (count > 0).then(|| format!("{count} frames {what}"));
    of(trace.missed, "are not in the capture")
        .or_else(|| of(carried.emulator_late, "came to a wire that was away"))
        .or_else(|| {
            of(
                carried.dropped_elsewhere,
                "were dropped beside the bottleneck",
            )
        })
}

impl Bench<'_> {
    fn amounts(&self) -> Vec<u64> {
        match self.is_short {
            true => vec![SHORT_BYTES],
            false => vec![SHORT_BYTES, LONG_BYTES],
        }
    }
}

impl Runs {
    fn values(&self, number: impl Fn(&Measured) -> f64) -> Vec<f64> {
        self.runs.iter().map(number).collect()
    }

    fn sample(&self, number: impl Fn(&Measured) -> f64) -> Sample {
        self.runs.iter().map(number).collect()
    }

    fn of(&self, number: impl Fn(&Measured) -> f64) -> Of {
        Of(self.way.name, self.values(number))
    }

    fn summary(&self) -> Summary {
        let buffer = self.setting.buffer.unwrap_or(f64::NAN);
        let after = |number: usize| {
            self.sample(|run| run.carried_after.get(number).copied().unwrap_or(f64::NAN))
        };
        Summary {
            buffer,
            buffer_bytes: (buffer * self.setting.product_bytes()) as u64,
            offload: self.setting.offload,
            way: self.way,
            lost_while_spaced: self.sample(|run| run.start.lost.while_spaced as f64),
            lost_in_slow_start: self.sample(|run| run.start.lost.in_slow_start as f64),
            lost_after: self.sample(|run| run.start.lost.after as f64),
            spaced_s: self.sample(|run| run.start.spaced_s),
            slow_start_s: self.sample(|run| run.start.lasted_s),
            ended_by: self.runs.iter().map(|run| run.start.ended_by).collect(),
            peak_in_slow_start_bytes: self.sample(|run| run.start.peak_in_slow_start_bytes as f64),
            peak_bytes: self.sample(|run| run.start.peak_bytes as f64),
            last_round_bytes: self.sample(|run| run.start.last_round_bytes as f64),
            uneven_p50_us: self.sample(|run| run.start.uneven.map_or(f64::NAN, |of| of.p50_us)),
            uneven_p99_us: self.sample(|run| run.start.uneven.map_or(f64::NAN, |of| of.p99_us)),
            carried_100_mb_s: after(0),
            carried_1_gb_s: after(1),
            carried: self.runs.iter().map(|run| run.carried).collect(),
            told: self.runs.iter().map(|run| run.told).collect(),
        }
    }

    fn carried(&self) -> String {
        let frames: u64 = self.runs.iter().map(|run| run.carried.frames).sum();
        let bytes: u64 = self.runs.iter().map(|run| run.carried.bytes).sum();
        format!(
            "{} frames of {} bytes",
            grouped(frames as f64 / self.runs.len() as f64),
            grouped(bytes as f64 / frames.max(1) as f64)
        )
    }
}

/// What the issue asks of the second connection, and of both while they are spaced.
fn promises(all: &[Runs]) -> Vec<Row> {
    let mut rows = Vec::new();
    for spaced in all.iter().filter(|runs| runs.way.pace == Pace::Tcp) {
        let of = |way: Way| {
            let same = |runs: &&Runs| runs.setting == spaced.setting && runs.way == way;
            all.iter().find(same)
        };
        let setting = &spaced.setting;
        let buffer = setting.buffer.unwrap_or(f64::NAN);
        let mut row = |name: &str, number: &dyn Fn(&Measured) -> f64, against, kind| {
            let against: Option<&Runs> = against;
            rows.push(Row::new(
                format!("{name}, {setting}"),
                spaced.of(number),
                against.map(|runs| runs.of(number)),
                kind,
                spaced.carried(),
            ));
        };
        let never = (Unit::Count, Target::NeverAbove(0.0));
        let lost_spaced = |run: &Measured| run.start.lost.while_spaced as f64;
        row("lost while spaced", &lost_spaced, None, never);
        let second = spaced.way.connection == Connection::Second;
        let lost = |run: &Measured| run.start.lost.in_slow_start as f64;
        let of_lost = match second && buffer <= 0.05 {
            true => never,
            false => (Unit::Count, Target::Shown),
        };
        row("lost in slow start", &lost, None, of_lost);
        let Some(cubic) = of(CUBIC) else {
            continue;
        };
        let overshoots = cubic.sample(lost).median() > 0.0;
        let kind = |unit, most| match second {
            true => (unit, Target::RatioAtMost(most)),
            false => (unit, Target::RatioShown),
        };
        let peak = |run: &Measured| run.start.peak_in_slow_start_bytes as f64 / 1024.0;
        let of_peak = kind(Unit::Kibibytes, 0.2);
        row("peak queue in slow start", &peak, Some(cubic), of_peak);
        for (number, (name, bytes)) in AMOUNTS.into_iter().enumerate() {
            let us =
                move |run: &Measured| run.carried_after.get(number).map_or(f64::NAN, |s| s * 1e6);
            if spaced.sample(us).median().is_nan() {
                continue;
            }
            // Nobody carries as much in less time than the line takes for it.
            let least = BOUND_SLACK * setting.least_time(bytes).as_secs_f64() * 1e6;
            let most = match overshoots {
                true => f64::max(0.6, least / cubic.sample(us).median()),
                false => 1.02,
            };
            row(name, &us, Some(cubic), kind(Unit::Microseconds, most));
            if let Some(bbr) = of(super::way::BBR) {
                row(
                    name,
                    &us,
                    Some(bbr),
                    (Unit::Microseconds, Target::RatioShown),
                );
            }
        }
    }
    rows
}

pub fn connections_table(rows: &[Summary]) -> Table {
    let mut table = Table::new(&[
        "buffer",
        "TSO",
        "way",
        "lost spaced",
        "in slow start",
        "after",
        "spaced",
        "off by (50, 99 %)",
        "slow start",
        "peak queue in it",
        "of buffer",
        "peak",
        "100 MB",
        "1 GB",
        "bytes a frame",
        "late (99 %)",
    ]);
    let seconds = |sample: &Sample| match sample.median() {
        median if median.is_nan() => "-".into(),
        _ => sample.show(|s| format!("{s:.2}")),
    };
    for row in rows {
        let peak = row.peak_in_slow_start_bytes.median();
        let frames: Sample = row.carried.iter().map(Carried::frame_bytes).collect();
        let late: Sample = row.carried.iter().map(|of| of.lateness.p99_us).collect();
        table.row([
            format!("{:.0} %", 100.0 * row.buffer),
            if row.offload { "on" } else { "off" }.to_owned(),
            row.way.name.to_owned(),
            grouped(row.lost_while_spaced.median()),
            row.lost_in_slow_start.show(grouped),
            grouped(row.lost_after.median()),
            format!("{:.2} s", row.spaced_s.median()),
            match row.uneven_p50_us.median() {
                median if median.is_nan() => String::new(),
                median => format!("{}, {}", time(median), time(row.uneven_p99_us.median())),
            },
            format!("{:.2} s", row.slow_start_s.median()),
            format!("{} kB", grouped(peak / 1e3)),
            format!("{:.2}", peak / row.buffer_bytes as f64),
            format!("{} kB", grouped(row.peak_bytes.median() / 1e3)),
            seconds(&row.carried_100_mb_s),
            seconds(&row.carried_1_gb_s),
            grouped(frames.median()),
            time(late.max()),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::queue::Line;
    use super::super::trace::tests::full;
    use super::*;

    const SETTING: Setting = Setting {
        buffer: Some(0.05),
        ..Setting::PAPER
    };

    fn run_of(trace: Trace) -> Run {
        Run {
            trace,
            carried: Carried::default(),
        }
    }

    #[test]
    fn a_run_that_the_wires_cannot_tell_of_is_none() {
        let Line { delay } = SETTING.path().line;
        let mut trace = Trace {
            entered: vec![full(0, 0.0), full(1, 13.0)],
            passed: vec![full(0, delay as f64 / 1e3 + 20.0)],
            dropped: vec![full(1, 13.0)],
            arrived: vec![full(0, delay as f64 / 1e3 + 33.0)],
            ..Trace::default()
        };
        let measured = judge(&run_of(trace.clone()), SETTING, &[1448, 1449]).unwrap();
        assert_eq!(measured.start.lost.in_slow_start, 1);
        assert!((measured.carried_after[0] - 0.099033).abs() < 1e-9);
        assert!(measured.carried_after[1].is_nan());
        trace.missed = 1;
        let flaw = judge(&run_of(trace.clone()), SETTING, &[1]).unwrap_err();
        assert_eq!(flaw, "1 frames are not in the capture");
        trace.missed = 0;
        trace.passed.clear();
        trace.dropped.clear();
        let flaw = judge(&run_of(trace), SETTING, &[1]);
        assert!(flaw.is_ok_and(|measured| measured.start.peak_bytes == 0));
        assert!(judge(&run_of(Trace::default()), SETTING, &[1]).is_err());
    }

    fn runs(way: Way, lost: u64, peak: u64, seconds: f64) -> Runs {
        let start = SlowStart {
            spaced_s: 1.0,
            lasted_s: 2.0,
            ended_by: super::super::slow_start::EndedBy::SentAgain,
            lost: super::super::slow_start::Lost {
                while_spaced: 0,
                in_slow_start: lost,
                after: 0,
            },
            peak_in_slow_start_bytes: peak,
            peak_bytes: peak,
            last_round_bytes: 0,
            rounds: 9,
            uneven: None,
        };
        let measured = Measured {
            start,
            carried_after: vec![seconds],
            carried: Carried::default(),
            told: None,
        };
        Runs {
            setting: SETTING,
            way,
            runs: vec![measured],
        }
    }

    #[test]
    fn the_second_connection_has_to_be_much_faster_only_where_cubic_overshoots() {
        let met = |cubic: Runs, second: Runs| -> Vec<bool> {
            promises(&[cubic, second])
                .iter()
                .map(|row| row.met)
                .collect()
        };
        let second = |seconds| runs(CPS_SECOND, 0, 100, seconds);
        assert_eq!(met(runs(CUBIC, 900, 700, 10.0), second(5.9)), [true; 4]);
        let slow = met(runs(CUBIC, 900, 700, 10.0), second(6.1));
        assert_eq!(slow, [true, true, true, false]);
        assert_eq!(met(runs(CUBIC, 0, 700, 10.0), second(10.1)), [true; 4]);
        let loses = met(runs(CUBIC, 0, 400, 10.0), runs(CPS_SECOND, 1, 100, 10.3));
        assert_eq!(loses, [true, false, false, false]);
        // Of the first, all but what is lost while it is spaced is only shown.
        let first = met(runs(CUBIC, 0, 400, 10.0), runs(CPS_FIRST, 1, 400, 10.3));
        assert_eq!(first, [true; 4]);
    }
}
