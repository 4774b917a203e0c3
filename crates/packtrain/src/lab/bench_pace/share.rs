//! What a spaced connection gets beside an ordinary one on the same bottleneck: each from a host of its own, both from the same
//! moment on. Shares are of the second half of the time, when the beginning is over, and of the fair one: half.

use std::time::Duration;

use super::Bench;
use super::row::{Of, Row};
use super::stage::{Carried, GBE_25000, ROUND_TRIP, Setting, Stage};
use super::way::{CPS_FIRST, CUBIC, Way};
use crate::lab::Result;
use crate::lab::figure::{Target, Unit};
use crate::lab::stream::Amount;
use crate::lab::table::{grouped, time};

/// A bottleneck that holds a round trip: CUBIC is fair to CUBIC over it.
const BUFFER: f64 = 1.0;
/// Round trips, and how long the two go on.
const DISTANCES: [(Duration, Duration); 2] = [
    (Duration::from_millis(20), Duration::from_secs(60)),
    (ROUND_TRIP, Duration::from_secs(120)),
];
const LASTS_IN_SHORT: Duration = Duration::from_secs(20);
const SHARE_LEAST: f64 = 0.8;

#[derive(Clone, Copy, Debug)]
struct Shared {
    /// Of what both got, by what would be fair.
    fair: f64,
    both_bps: f64,
    carried: Carried,
}

pub fn measure(bench: &mut Bench<'_>) -> Result<()> {
    let distances = match bench.is_short {
        true => &DISTANCES[..1],
        false => &DISTANCES[..],
    };
    for &(round_trip, lasts) in distances {
        let lasts = if bench.is_short {
            LASTS_IN_SHORT
        } else {
            lasts
        };
        let setting = Setting {
            card: GBE_25000,
            round_trip,
            buffer: Some(BUFFER),
            // Two flows for a long time: what crosses whole costs the wires' process less.
            offload: true,
            two_senders: true,
            ..Setting::PAPER
        };
        let mut ways = bench.ways.clone();
        let mut all: Vec<(Way, Vec<Shared>)> = ways.iter().map(|way| (*way, Vec::new())).collect();
        for round in 0..bench.rounds {
            for way in &ways {
                bench.tell("share", round, &setting, way.name);
                let shared = run(bench, setting, way, lasts)?;
                let runs = all.iter_mut().find(|(of, _)| of == way);
                runs.expect("one of them").1.push(shared);
            }
            ways.rotate_left(1);
        }
        bench.rows.extend(rows(round_trip, &all));
    }
    Ok(())
}

fn run(bench: &Bench<'_>, setting: Setting, way: &Way, lasts: Duration) -> Result<Shared> {
    let stage = Stage::set(bench.packtrain, setting)?;
    stage.prepare(way)?;
    let other = stage.c.as_ref().expect("it has two senders");
    let amount = Amount::Time(lasts);
    let both = || {
        std::thread::scope(|scope| {
            let ordinary = scope.spawn(|| stage.carry_from(other, &CUBIC, amount, 1));
            let looked_at = stage.carry(way, amount)?;
            let ordinary = ordinary.join().expect("it has no reason to panic")?;
            Ok([looked_at, ordinary])
        })
    };
    let (flows, carried) = stage.counted(both)?;
    stage.end(way)?;
    let [own, ordinary] = flows.map(|flow| flow.late_bytes as f64);
    Ok(Shared {
        fair: 2.0 * own / (own + ordinary),
        both_bps: 8.0 * (own + ordinary) / (lasts.as_secs_f64() / 2.0),
        carried,
    })
}

fn rows(round_trip: Duration, all: &[(Way, Vec<Shared>)]) -> Vec<Row> {
    let rows = all.iter().map(|(way, runs)| {
        let target = match *way == CPS_FIRST {
            true => Target::AtLeast(SHARE_LEAST),
            false => Target::Shown,
        };
        let both: f64 = runs.iter().map(|run| run.both_bps).sum();
        let frames: u64 = runs.iter().map(|run| run.carried.frames).sum();
        let late = runs.iter().map(|run| run.carried.lateness.p99_us);
        let carried = format!(
            "{} frames, {:.0} Mbit/s both; late {} (99 %)",
            grouped(frames as f64 / runs.len() as f64),
            both / 1e6 / runs.len() as f64,
            time(late.fold(0.0, f64::max))
        );
        Row::new(
            format!(
                "share beside CUBIC ÷ fair, RTT {} ms",
                round_trip.as_millis()
            ),
            Of(way.name, runs.iter().map(|run| run.fair).collect()),
            None,
            (Unit::Ratio, target),
            carried,
        )
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_of_a_spaced_connection_a_share_is_asked() {
        let shared = |fair| Shared {
            fair,
            both_bps: 5e8,
            carried: Carried::default(),
        };
        let all = [
            (CUBIC, vec![shared(0.5)]),
            (CPS_FIRST, vec![shared(0.7), shared(0.79), shared(1.0)]),
        ];
        let met: Vec<bool> = rows(ROUND_TRIP, &all).iter().map(|row| row.met).collect();
        assert_eq!(met, [true, false]);
        let all = [(CPS_FIRST, vec![shared(0.8)])];
        assert!(rows(ROUND_TRIP, &all)[0].met);
    }
}
