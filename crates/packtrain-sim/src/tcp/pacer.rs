//! When the next segment may leave: Clustered Packet Spacing at work (`packtrain_proto::pacing`).
//!
//! What is decided there, once a round, is an interval; here no segment leaves earlier than that after the one
//! before, data that go again included. Virtual time keeps any interval exactly, so the precision T that the decision
//! goes by is a setting, and not a property of this timer.

use packtrain_proto::pacing::jump::Jump;
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
    jump: Jump,
    last_sent: Option<Instant>,
    records: bool,
    /// Every change, if it is recorded.
    pub log: Vec<Spaced>,
}

impl Pacer {
    /// `records`: changes are kept.
    pub fn new(config: Option<SpacingConfig>, records: bool) -> Pacer {
        Pacer {
            config,
            records,
            ..Pacer::default()
        }
    }

    /// Whether it does anything.
    pub fn is_on(&self) -> bool {
        self.config.is_some()
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

    pub fn is_jump_unproven(&self) -> bool {
        self.jump.is_unproven()
    }

    /// `jumps`: it does not begin because of a loss.
    pub fn slow_start_begins(&mut self, seen: &Seen, now: Instant, jumps: bool) {
        self.jump.end();
        if let Some(config) = self.config {
            let precision_ns = config.precision.as_nanos() as u64;
            let path = config.path.as_ref();
            self.spacing.begin(seen, precision_ns, path, jumps);
            self.note(now);
        }
    }

    /// The window to go on with when this acknowledgement has been taken in, in segments, where it is a larger one, if nobody
    /// else is on the path.
    pub fn jumps_to(&self, seen: &Seen) -> Option<u32> {
        let path = self.path().filter(|_| self.spacing.may_jump(seen))?;
        let window = path.jump(1, 0, seen.mss).min(seen.ssthresh);
        (window > seen.cwnd).then_some(window)
    }

    /// That is what it jumps to. `delivered`: segments, ever.
    pub fn jumps(&mut self, seen: &Seen, window: u32, delivered: u32, now: Instant) {
        if let Some(config) = self.config {
            let precision_ns = config.precision.as_nanos() as u64;
            self.jump.made(seen.una, window, seen.mss, delivered);
            let path = config.path.as_ref();
            self.spacing.jumps_to(seen, window, precision_ns, path);
            self.note(now);
        }
    }

    /// The window before a segment is sent, where it is another one; all in segments.
    pub fn opens(&self, in_flight: u32, cwnd: u32) -> Option<u32> {
        self.spacing.opens(in_flight, cwnd)
    }

    /// Something is lost: the window that is left of a jump, in segments, while that is all that is known.
    pub fn retreats_to(&mut self, delivered: u32) -> Option<u32> {
        self.jump.lost(delivered)
    }

    /// The same, while that is repaired.
    pub fn still_retreats_to(
        &mut self,
        seen: &Seen,
        delivered: u32,
        is_repairing: bool,
    ) -> Option<u32> {
        self.jump.acknowledged(seen.una, delivered, is_repairing)
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
        if !self.records {
            return;
        }
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
