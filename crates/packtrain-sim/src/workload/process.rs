//! When something comes again, for ever: a flow, a request, a frame.
//!
//! [`Arrivals`](super::Arrivals) are those of the checkers' flows, which are counted frame by frame; these need no count.

use std::fmt;
use std::str::FromStr;

use packtrain_proto::time::Duration;

use super::spelling::{self, Problem, SpellingError};
use crate::random::{Random, exp};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    Periodic {
        gap: Duration,
    },
    /// Independent of each other. The mean is a whole number of nanoseconds.
    Poisson {
        mean_gap: Duration,
    },
    /// At an even pace for a while, then nothing for a while; each while is exponential.
    OnOff {
        on_mean: Duration,
        off_mean: Duration,
        gap: Duration,
    },
}

impl Process {
    pub fn next_gap(&self, random: &mut Random) -> Duration {
        match *self {
            Process::Periodic { gap } => gap,
            Process::Poisson { mean_gap } => {
                Duration::from_nanos(random.exponential_nanos(mean_gap).round() as u64)
            }
            // What is left of an exponential time is as long as all of it: nothing need be kept.
            Process::OnOff {
                on_mean,
                off_mean,
                gap,
            } => match random.exponential(on_mean) {
                left if left < gap => left + random.exponential(off_mean),
                _ => gap,
            },
        }
    }

    /// Over a long time.
    pub fn mean_gap(&self) -> Duration {
        match *self {
            Process::Periodic { gap } => gap,
            Process::Poisson { mean_gap } => mean_gap,
            Process::OnOff {
                on_mean,
                off_mean,
                gap,
            } => {
                let ends = 1.0 - exp(-(gap.as_nanos() as f64) / on_mean.as_nanos() as f64);
                Duration::from_nanos((ends * (on_mean + off_mean).as_nanos() as f64) as u64)
            }
        }
    }
}

const SECOND_NANOS: u64 = 1_000_000_000;

fn gap_or_rate(text: &str) -> Result<Duration, Problem> {
    let Some(rate) = text.strip_suffix("/s") else {
        return spelling::duration(text);
    };
    let per_second = spelling::number(rate, "rate")?;
    if !(1e-6..=1e9).contains(&per_second) {
        return Err(format!(
            "a rate of {text} is not between 0.000001/s and 1000000000/s"
        ));
    }
    let nanos = (SECOND_NANOS as f64 / per_second).round();
    Ok(Duration::from_nanos(nanos as u64))
}

impl FromStr for Process {
    type Err = SpellingError;

    fn from_str(text: &str) -> Result<Process, SpellingError> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let (process, like) = match kind {
            "periodic" => (
                gap_or_rate(rest).map(|gap| Process::Periodic { gap }),
                "periodic:1ms",
            ),
            "poisson" => (
                gap_or_rate(rest).map(|mean_gap| Process::Poisson { mean_gap }),
                "poisson:100/s or poisson:10ms",
            ),
            "onoff" => (on_off(rest), "onoff:100ms,400ms,1ms"),
            _ => (
                Err(format!("{kind:?} is none of periodic, poisson and onoff")),
                "poisson:100/s",
            ),
        };
        process.map_err(|problem| SpellingError {
            text: text.into(),
            problem,
            like,
        })
    }
}

fn on_off(text: &str) -> Result<Process, Problem> {
    let [on, off, gap] = spelling::parts(text, ["mean time on", "mean time off", "gap"])?;
    Ok(Process::OnOff {
        on_mean: spelling::duration(on)?,
        off_mean: spelling::duration(off)?,
        gap: gap_or_rate(gap)?,
    })
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let print = spelling::print_duration;
        match *self {
            Process::Periodic { gap } => write!(f, "periodic:{}", print(gap)),
            Process::Poisson { mean_gap } => {
                let nanos = mean_gap.as_nanos() as u64;
                match nanos > 0 && SECOND_NANOS.is_multiple_of(nanos) {
                    true => write!(f, "poisson:{}/s", SECOND_NANOS / nanos),
                    false => write!(f, "poisson:{}", print(mean_gap)),
                }
            }
            Process::OnOff {
                on_mean,
                off_mean,
                gap,
            } => {
                let [on, off, gap] = [on_mean, off_mean, gap].map(print);
                write!(f, "onoff:{on},{off},{gap}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_process_keeps_its_mean() {
        for text in [
            "periodic:3ms",
            "poisson:2000/s",
            "poisson:100000000/s",
            "onoff:20ms,5ms,1ms",
            "onoff:1ms,9ms,2ms",
        ] {
            let process: Process = text.parse().expect(text);
            let mut random = Random::new(1);
            let total: Duration = (0..50_000).map(|_| process.next_gap(&mut random)).sum();
            let ratio = total.as_secs_f64() / 50_000.0 / process.mean_gap().as_secs_f64();
            assert!((0.98..1.02).contains(&ratio), "{process}: {ratio}");
        }
    }

    /// A while of 20 ms has 1/(1 − e^(−1/20)) = 20.5 of a millisecond's pace in the mean.
    #[test]
    fn on_and_off_come_in_whiles() {
        let process: Process = "onoff:20ms,5ms,1ms".parse().expect("right");
        let mut random = Random::new(2);
        let gaps: Vec<Duration> = (0..50_000).map(|_| process.next_gap(&mut random)).collect();
        let even = gaps
            .iter()
            .filter(|gap| **gap == Duration::from_millis(1))
            .count();
        let run = 50_000.0 / (50_000 - even) as f64;
        assert!((20.0..21.0).contains(&run), "{run}");
    }

    #[test]
    fn processes_are_printed_as_they_are_read() {
        for text in [
            "periodic:1ms",
            "poisson:100/s",
            "poisson:3ms",
            "onoff:100ms,400ms,1.5ms",
        ] {
            assert_eq!(text.parse::<Process>().expect(text).to_string(), text);
        }
        let third: Process = "poisson:3/s".parse().expect("right");
        assert_eq!(third.to_string().parse(), Ok(third));
    }

    #[test]
    fn what_is_no_process_is_told_with_its_reason_and_a_right_one() {
        for (text, told) in [
            (
                "random:1ms",
                "\"random:1ms\": \"random\" is none of periodic, poisson and onoff; write it as in poisson:100/s",
            ),
            (
                "periodic:0ms",
                "\"periodic:0ms\": a time of 0ms is not a whole number of ns above 0; write it as in periodic:1ms",
            ),
            (
                "poisson:0/s",
                "\"poisson:0/s\": a rate of 0/s is not between 0.000001/s and 1000000000/s; \
                 write it as in poisson:100/s or poisson:10ms",
            ),
            (
                "onoff:1s,1s",
                "\"onoff:1s,1s\": 2 in place of 3 values (mean time on, mean time off, gap); \
                 write it as in onoff:100ms,400ms,1ms",
            ),
        ] {
            assert_eq!(text.parse::<Process>().unwrap_err().to_string(), told);
        }
    }
}
