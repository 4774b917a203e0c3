//! Fifty telephone calls over 10 Mbit/s, of which they are half, and a TCP flow that takes what it can get.

use std::net::SocketAddr;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::BESIDE;
use super::emodel::call_score;
use super::rtp::{Calls, Heard};
use crate::lab::figure::{Target, Unit};
use crate::lab::measure;
use crate::lab::one_link::stage::Line;
use crate::lab::one_link::way::Way;
use crate::lab::one_link::{Bench, Row};
use crate::lab::sample::Sample;
use crate::lab::{Result, pause};

const CALLS: usize = 50;
const DURATION: Duration = Duration::from_secs(8);
/// The flow has filled the link by then.
const BULK_BEFORE: Duration = Duration::from_secs(1);
const PORT: u16 = 7790;
/// Expedited forwarding, with which telephones mark what they send.
const EF: u8 = 46;

/// What was heard at some ends of calls in a run.
#[derive(Clone, Copy, Debug)]
struct Spoken {
    delay_p99_us: f64,
    /// Share of the packets.
    loss: f64,
    score_median: f64,
    score_worst: f64,
}

impl Spoken {
    fn of<'a>(calls: impl Iterator<Item = &'a Heard> + Clone) -> Spoken {
        let mut delays = Histogram::<u64>::new_with_max(60_000_000, 4).expect("bounds in order");
        for delay_ms in calls.clone().flat_map(|call| &call.delays_ms) {
            delays.saturating_record((delay_ms * 1e3) as u64);
        }
        let sent: usize = calls.clone().map(|call| call.sent).sum();
        let scores = calls.map(|call| call_score(&call.delays_ms, call.sent));
        let scores: Sample = scores.collect();
        Spoken {
            delay_p99_us: delays.value_at_quantile(0.99) as f64,
            loss: 1.0 - delays.len() as f64 / sent.max(1) as f64,
            score_median: scores.median(),
            score_worst: scores.min(),
        }
    }
}

/// At both ends, and at each; and what the flow got meanwhile.
struct Run {
    both: Spoken,
    with_the_flow: Spoken,
    against_it: Spoken,
    bulk_bps: f64,
}

/// First as they are, then as telephones mark them.
pub fn measure(bench: &mut Bench, line: &Line) -> Result<()> {
    for (marked, dscp) in [("", None), (", marked EF", Some(EF))] {
        let part = format!("{CALLS} calls beside bulk, 10 Mbit/s{marked}");
        let calls = Calls {
            count: CALLS,
            duration: DURATION,
            dscp,
        };
        let runs = bench.in_turns_of(&BESIDE, &part, line, |way| call(line, way, calls))?;
        let delay = (Unit::Microseconds, Target::RatioAtMost(1.0));
        let loss = (Unit::Ratio, Target::DifferenceAtMost(0.0));
        let good = (Unit::Ratio, Target::AtLeast(4.0));
        let better = (Unit::Ratio, Target::RatioAtLeast(1.0));
        let (score, added) = ((Unit::Ratio, Target::Shown), Target::DifferenceShown);
        let rows: [Row<Run>; 8] = [
            ("p99 delay, both ways", delay, |run| run.both.delay_p99_us),
            ("share lost", loss, |run| run.both.loss),
            ("MOS of the worst call", good, |run| run.both.score_worst),
            ("MOS of the worst call, against bare", better, |run| {
                run.both.score_worst
            }),
            ("MOS of the middle call", score, |run| run.both.score_median),
            ("p99 delay with the flow", delay, |run| {
                run.with_the_flow.delay_p99_us
            }),
            (
                "p99 delay against the flow, added",
                (Unit::Microseconds, added),
                |run| run.against_it.delay_p99_us,
            ),
            (
                "the flow meanwhile",
                (Unit::BitPerSecond, Target::RatioShown),
                |run| run.bulk_bps,
            ),
        ];
        bench.compare_rows(&part, &rows, &runs);
    }
    Ok(())
}

fn call(line: &Line, way: Way, calls: Calls) -> Result<Run> {
    let (a, b) = (&line.a.namespace, &line.b.namespace);
    let [at_a, at_b] = way.ends().map(|address| SocketAddr::new(address, PORT));
    std::thread::scope(|scope| {
        let to = way.to();
        let duration = BULK_BEFORE + DURATION + Duration::from_secs(1);
        let bulk = scope.spawn(move || measure::bulk(a, &to, duration, &[]));
        pause(BULK_BEFORE);
        let back = scope.spawn(move || calls.one_way(b, a, at_a));
        let there = calls.one_way(a, b, at_b);
        let back = back.join().expect("a call has no reason to panic")?;
        let bulk = bulk.join().expect("the flow has no reason to panic")?;
        let there = there?;
        Ok(Run {
            both: Spoken::of(there.iter().chain(&back)),
            with_the_flow: Spoken::of(there.iter()),
            against_it: Spoken::of(back.iter()),
            bulk_bps: bulk.goodput_bps,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_together_and_the_worst_by_itself() {
        let call = |delay_ms, came| Heard::evenly(100, came, delay_ms);
        let calls = [call(5.0, 100), call(5.0, 100), call(400.0, 50)];
        let spoken = Spoken::of(calls.iter());
        assert!((spoken.loss - 50.0 / 300.0).abs() < 1e-9);
        assert!((spoken.delay_p99_us - 400e3).abs() < 100.0, "{spoken:?}");
        assert!(spoken.score_median > 4.3 && spoken.score_worst < 1.5);
    }
}
