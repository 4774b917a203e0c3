//! Connections that come and go, by classes: when the next one comes, what it sends, and how long that took.

use packtrain_proto::time::{Duration, Instant};

use super::config::VisitorsConfig;
use super::connection::{Visit, Way};
use crate::random::Random;
use crate::whatif::histogram::Histogram;

#[derive(Debug)]
pub struct Class {
    pub config: VisitorsConfig,
    ways: Vec<Way>,
    random: Random,
    pub present: u32,
    pub counters: VisitCounters,
    /// From its first SYN to the last byte at the application, of those who have come since it was last emptied.
    pub durations: Histogram,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VisitCounters {
    pub came: u64,
    /// There were too many already.
    pub turned_away: u64,
    pub finished: u64,
    pub finished_bytes: u64,
}

impl Class {
    pub fn new(config: VisitorsConfig, ways: Vec<Way>, random: Random) -> Class {
        Class {
            config,
            ways,
            random,
            present: 0,
            counters: VisitCounters::default(),
            durations: Histogram::default(),
        }
    }

    /// From this arrival to the next.
    pub fn gap(&mut self) -> Duration {
        self.config.arrivals.next_gap(&mut self.random)
    }

    /// Somebody comes: what he sends, and which way; `None`: he is turned away.
    pub fn comes(&mut self, class: u32, now: Instant) -> Option<(Visit, Way)> {
        self.counters.came += 1;
        let bytes = self.config.sizes.draw(&mut self.random);
        let way = *self.random.pick(&self.ways);
        if self.present >= self.config.at_once_max {
            self.counters.turned_away += 1;
            return None;
        }
        self.present += 1;
        let visit = Visit {
            class,
            bytes,
            began: now,
        };
        Some((visit, way))
    }

    /// The last byte has come.
    pub fn completes(&mut self, visit: &Visit, now: Instant) {
        let took = now.since(visit.began).as_nanos();
        self.durations.record(took as u64);
        self.counters.finished += 1;
        self.counters.finished_bytes += visit.bytes;
    }
}
