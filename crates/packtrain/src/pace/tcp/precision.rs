//! T: the precision with which this machine spaces segments. It was told, or it is measured when the pacer begins and when the machine's
//! load has become another one.

pub mod gaps;
mod measure;
mod watch;

use std::time::Duration;

use packtrain_proto::time::Instant;
use serde::{Deserialize, Serialize};

use self::gaps::Found;
use self::measure::Measuring;
use self::watch::Watch;
use crate::lab::processors::Ticks;

/// The kernel sends as one frame what a paced connection's rate carries in 1/1024 s (`sk_pacing_shift`): two segments, once they are less than
/// 0.49 ms apart. However exact timers are, single segments are not closer than this.
const SINGLE_LEAST: Duration = Duration::from_micros(500);
/// Where it was not told and cannot be measured.
const UNKNOWN: Duration = Duration::from_millis(1);
/// So often it is looked whether a measurement is over.
const IS_IT_OVER: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub struct Precision(Source);

#[derive(Debug)]
enum Source {
    Told(Duration),
    /// And why.
    Unknown(String),
    Measured(Box<Measured>),
}

#[derive(Debug)]
struct Measured {
    used: Duration,
    /// By the last measurement.
    found: Found,
    at: Instant,
    times: u64,
    watch: Watch,
    /// When the load was last looked at.
    ticks: Option<Ticks>,
    under_way: Option<Measuring>,
}

impl Precision {
    /// `None`: it is measured, which takes up to half a second.
    pub fn start(
        told: Option<Duration>,
        now: impl Fn() -> Instant,
        note: &mut dyn FnMut(&str),
    ) -> Precision {
        if let Some(precision) = told {
            return Precision(Source::Told(precision));
        }
        match Measuring::begin(SINGLE_LEAST).and_then(Measuring::found) {
            Ok(found) => Precision(Source::Measured(Box::new(Measured::new(found, now())))),
            Err(error) => {
                note(&format!(
                    "how exactly this machine spaces segments cannot be measured ({error}): T is taken for {UNKNOWN:?}; \
                     --precision says another one"
                ));
                Precision(Source::Unknown(error.to_string()))
            }
        }
    }

    /// T.
    pub fn used(&self) -> Duration {
        match &self.0 {
            Source::Told(precision) => *precision,
            Source::Unknown(_) => UNKNOWN,
            Source::Measured(measured) => measured.used,
        }
    }

    /// When [`Precision::turn`] has something to do; `None`: never.
    pub fn timeout(&self, now: Instant) -> Option<Duration> {
        match &self.0 {
            Source::Told(_) | Source::Unknown(_) => None,
            Source::Measured(measured) => Some(match measured.under_way {
                Some(_) => IS_IT_OVER,
                None => measured.watch.look_at().since(now),
            }),
        }
    }

    /// Called at any time; T, where it has become another one.
    pub fn turn(&mut self, now: Instant) -> Option<Duration> {
        match &mut self.0 {
            Source::Told(_) | Source::Unknown(_) => None,
            Source::Measured(measured) => measured.turn(now),
        }
    }

    pub fn document(&self, now: Instant) -> PrecisionDocument {
        let mut document = PrecisionDocument {
            source: "told".into(),
            why_unknown: None,
            timer_precision_ns: None,
            measured_seconds_ago: None,
            measurements: 0,
            holds: None,
            off_p50_us: None,
            off_p90_us: None,
        };
        match &self.0 {
            Source::Told(_) => {}
            Source::Unknown(why) => {
                document.source = "unknown".into();
                document.why_unknown = Some(why.clone());
            }
            Source::Measured(measured) => {
                let Found { timer, used } = measured.found;
                let us = |time: Duration| Some(time.as_nanos() as f64 / 1e3);
                document.source = "measured".into();
                document.timer_precision_ns = Some(timer.interval.as_nanos() as u64);
                document.measured_seconds_ago = Some(now.since(measured.at).as_secs_f64());
                document.measurements = measured.times;
                document.holds = Some(used.holds());
                document.off_p50_us = us(used.off_p50);
                document.off_p90_us = us(used.off_p90);
            }
        }
        document
    }
}

impl Measured {
    fn new(found: Found, now: Instant) -> Measured {
        let measured = Measured {
            used: found.used.interval,
            found,
            at: now,
            times: 1,
            watch: Watch::new(now, found.used.interval),
            ticks: Ticks::now().ok(),
            under_way: None,
        };
        measured.tell();
        measured
    }

    fn tell(&self) {
        let Found { timer, used } = self.found;
        tracing::info!(
            "timers space segments {:?} apart (gaps are off by {:?}, p90); T is {:?} (off by {:?})",
            timer.interval,
            timer.off_p90,
            self.used,
            used.off_p90
        );
    }

    fn turn(&mut self, now: Instant) -> Option<Duration> {
        if self.under_way.as_ref().is_some_and(Measuring::is_over) {
            let measuring = self.under_way.take()?;
            match measuring.found() {
                Ok(found) => return self.take(found, now),
                // It was possible before: what was found then stands.
                Err(error) => tracing::warn!("T cannot be measured again: {error}"),
            }
        }
        if now < self.watch.look_at() {
            return None;
        }
        let ticks = Ticks::now().ok();
        let load = ticks
            .zip(self.ticks)
            .map(|(now, before)| now.used_since(before));
        self.ticks = ticks;
        if self.watch.look(now, load) && self.under_way.is_none() {
            match Measuring::begin(SINGLE_LEAST) {
                Ok(measuring) => self.under_way = Some(measuring),
                Err(error) => tracing::warn!("T cannot be measured again: {error}"),
            }
        }
        None
    }

    fn take(&mut self, found: Found, now: Instant) -> Option<Duration> {
        (self.found, self.at) = (found, now);
        self.times += 1;
        let changed = self.watch.measured(now, found.used.interval);
        self.used = changed.unwrap_or(self.used);
        self.tell();
        changed
    }
}

/// How T is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrecisionDocument {
    /// `told`, `measured`, or `unknown`.
    pub source: String,
    /// Why it could not be measured.
    pub why_unknown: Option<String>,
    /// The shortest interval that timers hold. All that follows is null where nothing was measured.
    pub timer_precision_ns: Option<u64>,
    /// When that was last.
    pub measured_seconds_ago: Option<f64>,
    /// How often, since the pacer began.
    pub measurements: u64,
    /// By the last measurement: whether nine gaps of ten were off by no more than half of T, and by how much half of them and
    /// nine of ten were off at most.
    pub holds: Option<bool>,
    pub off_p50_us: Option<f64>,
    pub off_p90_us: Option<f64>,
}
