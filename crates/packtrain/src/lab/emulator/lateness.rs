//! How late a lab's wires ran: what makes the difference between a wire and a busy machine.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// By how much frames arrived later than their wires would have had it, and for how long the machine
/// kept this process from looking: what hosts sent meanwhile has come to its wire late, which no
/// wire can know.
#[derive(Debug)]
pub struct Lateness {
    nanos: Histogram<u64>,
    away: Duration,
    away_max: Duration,
}

/// The same, in a few numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatenessSummary {
    pub frames: u64,
    pub mean_us: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub max_us: f64,
    /// Time in which nobody looked at the wires though something was going on, in all and at once:
    /// only what is longer than [`AWAY_MIN`].
    pub away_ms: f64,
    pub away_max_ms: f64,
}

/// Between two looks at the clock while there is traffic.
pub const TICK: Duration = Duration::from_millis(1);
/// Shorter than this nobody was away.
pub const AWAY_MIN: Duration = Duration::from_micros(300);

/// What is later than this counts as this.
const LONGEST: Duration = Duration::from_secs(60);

impl Default for Lateness {
    fn default() -> Lateness {
        let nanos = Histogram::new_with_bounds(1, LONGEST.as_nanos() as u64, 2);
        Lateness {
            nanos: nanos.expect("bounds that a histogram can have"),
            away: Duration::ZERO,
            away_max: Duration::ZERO,
        }
    }
}

impl Lateness {
    pub fn record(&mut self, late: Duration) {
        self.nanos.saturating_record(late.as_nanos() as u64);
    }

    /// A look at the clock came so late.
    pub fn record_look(&mut self, late: Duration) {
        if late > AWAY_MIN {
            self.away += late;
            self.away_max = self.away_max.max(late);
        }
    }

    /// Begins anew.
    pub fn reset(&mut self) {
        self.nanos.reset();
        self.away = Duration::ZERO;
        self.away_max = Duration::ZERO;
    }

    pub fn summary(&self) -> LatenessSummary {
        let micros = |nanos: u64| nanos as f64 / 1e3;
        LatenessSummary {
            frames: self.nanos.len(),
            mean_us: self.nanos.mean() / 1e3,
            p50_us: micros(self.nanos.value_at_quantile(0.5)),
            p99_us: micros(self.nanos.value_at_quantile(0.99)),
            max_us: micros(self.nanos.max()),
            away_ms: self.away.as_secs_f64() * 1e3,
            away_max_ms: self.away_max.as_secs_f64() * 1e3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_has_the_middle_the_tail_and_the_worst_within_a_percent() {
        let mut lateness = Lateness::default();
        (1..=1000).for_each(|us| lateness.record(Duration::from_micros(us)));
        let summary = lateness.summary();
        let near = |is: f64, wanted: f64| (is / wanted - 1.0).abs() < 0.01;
        assert_eq!(summary.frames, 1000);
        assert!(
            near(summary.mean_us, 500.5) && near(summary.p50_us, 500.0),
            "{summary:?}"
        );
        assert!(
            near(summary.p99_us, 990.0) && near(summary.max_us, 1000.0),
            "{summary:?}"
        );
        lateness.reset();
        assert_eq!(lateness.summary().frames, 0);
    }

    #[test]
    fn only_long_absences_count_and_they_add_up() {
        let mut lateness = Lateness::default();
        for us in [299, 300, 500, 2000] {
            lateness.record_look(Duration::from_micros(us));
        }
        let summary = lateness.summary();
        assert_eq!((summary.away_ms, summary.away_max_ms), (2.5, 2.0));
    }
}
