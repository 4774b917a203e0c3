//! Streams that share a path, each at its part of what it carries (`pace rule add --auto`, section 5 of the paper), and the
//! same with nothing done about it. A line that the lab's processors carry with ease: what is lost there is lost for want of
//! room. The first half of the time is the beginning, in which the path is found out.

use std::time::Duration;

use super::Bench;
use super::again::{Flawed, until_wires_tell};
use super::queue::Occupancy;
use super::row::{Of, Row};
use super::stage::{Carried, Run, Setting, Stage};
use super::timeline;
use super::way::{AUTO, CUBIC, Way};
use crate::lab::Result;
use crate::lab::figure::{Target, Unit};
use crate::lab::stream::Amount;
use crate::lab::table::{grouped, time};

const LINE_BPS: u64 = 100_000_000;
const ROUND_TRIP: Duration = Duration::from_millis(50);
const LASTS: Duration = Duration::from_secs(40);
const LASTS_IN_SHORT: Duration = Duration::from_secs(20);
const STREAMS: [u16; 2] = [1, 4];
const FRAME_BYTES: f64 = 1514.0;

#[derive(Clone, Debug)]
struct Measured {
    /// All streams together, in the two halves.
    early_bps: f64,
    late_bps: f64,
    /// Of the fair part, the least that a stream got in the second half.
    least: f64,
    /// Frames, in the two halves.
    lost_early: f64,
    lost_late: f64,
    /// What stood at the bottleneck in the second half.
    queue_frames: f64,
    carried: Carried,
}

#[derive(Clone, Debug)]
struct Runs {
    setting: Setting,
    streams: u16,
    way: Way,
    runs: Vec<Measured>,
}

pub fn measure(bench: &mut Bench<'_>) -> Result<()> {
    let lasts = match bench.is_short {
        true => LASTS_IN_SHORT,
        false => LASTS,
    };
    let mut ways = [CUBIC, AUTO];
    let mut all: Vec<Runs> = Vec::new();
    for round in 0..bench.rounds {
        for setting in settings(bench) {
            for streams in STREAMS {
                for way in ways {
                    let name = format!("{}, {}", together(streams), way.name);
                    bench.tell("auto", round, &setting, &name);
                    let measured = until_wires_tell(
                        &bench.made_again,
                        || run(bench, setting, streams, way, (lasts, round)),
                        |measured| vec![measured.carried],
                    )?;
                    let same = |runs: &&mut Runs| {
                        (runs.setting, runs.streams, runs.way) == (setting, streams, way)
                    };
                    match all.iter_mut().find(same) {
                        Some(runs) => runs.runs.push(measured),
                        None => all.push(Runs {
                            setting,
                            streams,
                            way,
                            runs: vec![measured],
                        }),
                    }
                }
            }
        }
        ways.rotate_left(1);
    }
    bench.rows.extend(rows(&all));
    Ok(())
}

/// Segments cross one by one: what enters the bottleneck is what streams have spaced. And they leave TCP one by one: where the
/// kernel does not come to ask the congestion control how large a piece may be, it takes a whole window for one
/// ([design 22](../../../../../docs/design/0022-rate-per-stream.md)).
fn settings(bench: &Bench<'_>) -> Vec<Setting> {
    let buffers = bench.buffers.iter();
    let of = |&percent: &u16| Setting {
        round_trip: ROUND_TRIP,
        line_bps: LINE_BPS,
        buffer: Some(f64::from(percent) / 100.0),
        one_by_one: true,
        ..Setting::PAPER
    };
    buffers.map(of).collect()
}

fn run(
    bench: &Bench<'_>,
    setting: Setting,
    streams: u16,
    way: Way,
    (lasts, round): (Duration, usize),
) -> Result<Flawed<Measured>> {
    let stage = Stage::set(bench.packtrain, setting)?;
    stage.prepare(&way)?;
    let amount = Amount::Time(lasts);
    let mut flows = Vec::new();
    let run = stage.traced(|| {
        flows = std::thread::scope(|scope| {
            let begin = |number| {
                let stage = &stage;
                scope.spawn(move || stage.carry_from(&stage.a, &way, amount, number))
            };
            let streams: Vec<_> = (0..streams).map(begin).collect();
            let ended = streams.into_iter().map(|stream| stream.join());
            ended
                .map(|flow| flow.expect("it has no reason to panic"))
                .collect::<Result<Vec<_>>>()
        })?;
        Ok(())
    })?;
    stage.end(&way)?;
    if let Some(directory) = bench.plots {
        let name = format!(
            "auto {setting}, {}, {} {}",
            together(streams),
            way.name,
            round + 1
        );
        timeline::write(directory, &name, &run.trace, setting)?;
    }
    let late: Vec<f64> = flows.iter().map(|flow| flow.late_bytes as f64).collect();
    let all: f64 = flows.iter().map(|flow| flow.bytes as f64).sum();
    Ok(judge(&run, setting, all, &late, lasts))
}

/// `all`: bytes of all streams; `late`: of each in the second half.
fn judge(run: &Run, setting: Setting, all: f64, late: &[f64], lasts: Duration) -> Flawed<Measured> {
    let trace = &run.trace;
    if trace.missed > 0 {
        return Err(format!("{} frames are not in the capture", trace.missed));
    }
    let begins = trace.entered.first().map_or(0, |segment| segment.at);
    let middle = begins + lasts.as_nanos() as u64 / 2;
    let occupancy = Occupancy::of(trace, setting.path().line);
    let lost = occupancy.dropped.iter();
    let lost_early = lost.filter(|segment| segment.at < middle).count();
    let sum: f64 = late.iter().sum();
    let least = late.iter().copied().fold(f64::INFINITY, f64::min);
    let half_s = lasts.as_secs_f64() / 2.0;
    Ok(Measured {
        early_bps: 8.0 * (all - sum) / half_s,
        late_bps: 8.0 * sum / half_s,
        least: least * late.len() as f64 / sum,
        lost_early: lost_early as f64,
        lost_late: (occupancy.dropped.len() - lost_early) as f64,
        queue_frames: occupancy.mean_from(middle) / FRAME_BYTES,
        carried: run.carried,
    })
}

fn together(streams: u16) -> String {
    match streams {
        1 => "1 stream".into(),
        several => format!("{several} streams"),
    }
}

fn rows(all: &[Runs]) -> Vec<Row> {
    let mut rows = Vec::new();
    for auto in all.iter().filter(|runs| runs.way == AUTO) {
        let same = |runs: &&Runs| (runs.setting, runs.streams) == (auto.setting, auto.streams);
        let cubic = all.iter().filter(|runs| runs.way == CUBIC).find(same);
        let mut row = |name: &str, number: fn(&Measured) -> f64, kind| {
            let of = |runs: &Runs| Of(runs.way.name, runs.runs.iter().map(number).collect());
            let name = format!("{name}, {}, {}", together(auto.streams), auto.setting);
            rows.push(Row::new(
                name,
                of(auto),
                cubic.map(of),
                kind,
                auto.carried(),
            ));
        };
        let ratio = (Unit::BitPerSecond, Target::RatioShown);
        let count = (Unit::Count, Target::Shown);
        row("goodput, first half", |run| run.early_bps, ratio);
        row("  … second half", |run| run.late_bps, ratio);
        row("lost, first half", |run| run.lost_early, count);
        row("  … second half", |run| run.lost_late, count);
        row("queue in it, mean, frames", |run| run.queue_frames, count);
        row(
            "least part ÷ fair",
            |run| run.least,
            (Unit::Ratio, Target::Shown),
        );
    }
    rows
}

impl Runs {
    fn carried(&self) -> String {
        let of =
            |number: fn(&Carried) -> f64| self.runs.iter().map(move |run| number(&run.carried));
        let frames: f64 = of(|carried| carried.frames as f64).sum();
        format!(
            "{} frames, late {} (99 %)",
            grouped(frames / self.runs.len() as f64),
            time(of(|carried| carried.lateness.p99_us).fold(0.0, f64::max))
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::trace::Trace;
    use super::super::trace::tests::full;
    use super::*;

    #[test]
    fn the_second_half_is_told_apart_and_the_least_part_is_of_the_fair_one() {
        let setting = Setting {
            round_trip: Duration::from_millis(2),
            ..Setting::PAPER
        };
        // A frame each 100 µs for 2 ms, of which the third and the fifteenth find no room, and each of the others takes 20 µs.
        let dropped = [2, 14];
        let at = |number: u64| 100.0 * number as f64;
        let passes = (0..20).filter(|number| !dropped.contains(number));
        let run = Run {
            trace: Trace {
                entered: (0..20).map(|number| full(number, at(number))).collect(),
                passed: passes
                    .map(|number| full(number, at(number) + 1020.0))
                    .collect(),
                ..Trace::default()
            },
            carried: Carried::default(),
        };
        let lasts = Duration::from_millis(2);
        let measured = judge(&run, setting, 2000.0, &[700.0, 300.0], lasts).unwrap();
        assert_eq!((measured.lost_early, measured.lost_late), (1.0, 1.0));
        assert_eq!((measured.early_bps, measured.late_bps), (8e6, 8e6));
        assert!((measured.least - 0.6).abs() < 1e-9);
        assert!((measured.queue_frames - 1.0).abs() < 1e-9);
    }
}
