//! When the next segment may leave: Clustered Packet Spacing at work (`packtrain_proto::pacing`).
//!
//! What is decided there, once a round, is an interval; here no segment leaves earlier than that after the one
//! before, data that go again included. Virtual time keeps any interval exactly, so the precision T that the decision
//! goes by is a setting, and not a property of this timer.

use packtrain_proto::pacing::path::Path;
use packtrain_proto::pacing::spacing::{Phase, Seen, Spacing};
use packtrain_proto::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpacingConfig {
    /// T.
    pub precision: Duration,
    /// What is remembered.
    pub path: Option<Path>,
    pub round_trip: RoundTrip,
}

/// Over which round trip a round is spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundTrip {
    /// The smoothed one. With delayed acknowledgements it has the time in it that the first of two segments
    /// waits for the second: rounds are spread over more than a round, and what is left behind in each
    /// leaves at once when spacing ends.
    Smoothed,
    /// The least one.
    Least,
}

/// An interval, and since when it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spaced {
    pub at: Instant,
    /// `None`: from here on segments leave as fast as the interface takes them.
    pub interval: Option<Duration>,
}

#[derive(Debug, Default)]
pub struct Pacer {
    config: Option<SpacingConfig>,
    spacing: Spacing,
    last_sent: Option<Instant>,
    /// Every change.
    pub log: Vec<Spaced>,
}

impl Pacer {
    pub fn new(config: Option<SpacingConfig>) -> Pacer {
        Pacer {
            config,
            ..Pacer::default()
        }
    }

    pub fn path(&self) -> Option<&Path> {
        self.config.as_ref()?.path.as_ref()
    }

    /// What is remembered is something else now.
    pub fn remember(&mut self, path: Option<Path>) {
        if let Some(config) = &mut self.config {
            config.path = path;
        }
    }

    pub fn round_trip(&self) -> RoundTrip {
        self.config
            .map_or(RoundTrip::Smoothed, |config| config.round_trip)
    }

    pub fn phase(&self) -> Phase {
        self.spacing.phase()
    }

    /// Between two segments, while they are spaced.
    pub fn interval(&self) -> Option<Duration> {
        self.spacing.interval_ns().map(Duration::from_nanos)
    }

    pub fn slow_start_begins(&mut self, seen: &Seen, now: Instant) {
        if let Some(config) = self.config {
            let precision_ns = config.precision.as_nanos() as u64;
            self.spacing.begin(seen, precision_ns, config.path.as_ref());
            self.note(now);
        }
    }

    pub fn acknowledged(&mut self, seen: &Seen, now: Instant) {
        if let Some(config) = self.config {
            let precision_ns = config.precision.as_nanos() as u64;
            self.spacing
                .acknowledged(seen, precision_ns, config.path.as_ref());
            self.note(now);
        }
    }

    /// By a loss.
    pub fn slow_start_ends(&mut self, now: Instant) {
        self.spacing.end();
        self.note(now);
    }

    fn note(&mut self, at: Instant) {
        let interval = self.interval();
        if self.log.last().and_then(|last| last.interval) != interval {
            self.log.push(Spaced { at, interval });
        }
    }

    /// The earliest time for the next segment.
    pub fn ready(&self) -> Instant {
        match (self.spacing.interval_ns(), self.last_sent) {
            (Some(interval), Some(last)) => last + Duration::from_nanos(interval),
            _ => Instant::ZERO,
        }
    }

    pub fn sent(&mut self, now: Instant) {
        self.last_sent = Some(now);
    }
}
