//! How long trains waited for their turn, by the counters of the line: what the order of several links
//! adds to a frame's way, without the noise of the programs and daemons that measure ping times.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::lab::table::{Table, grouped, time};
use crate::status::StatusDocument;

/// What both hosts of a line had counted at one time, or between two.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Held {
    /// Trains by the end of their bucket, nanoseconds; what was not held is in the first.
    trains: BTreeMap<u64, u64>,
}

/// A microsecond, nearly: what was held shorter was not held.
const NOT_HELD_NS: u64 = 1024;

impl Held {
    pub fn of(documents: &[StatusDocument]) -> Held {
        let mut held = Held::default();
        let peers = documents.iter().flat_map(|document| &document.peers);
        for bucket in peers.flat_map(|peer| &peer.hold.buckets) {
            let end_ns = (bucket.below_s * 1e9).round() as u64;
            *held.trains.entry(end_ns).or_default() += bucket.trains;
        }
        held
    }

    pub fn since(&self, before: &Held) -> Held {
        let mut held = self.clone();
        for (end_ns, trains) in &before.trains {
            let now = held.trains.entry(*end_ns).or_default();
            *now = now.saturating_sub(*trains);
        }
        held.trains.retain(|_, trains| *trains > 0);
        held
    }

    pub fn trains(&self) -> u64 {
        self.trains.values().sum()
    }

    fn held_trains(&self) -> u64 {
        let held = self.trains.range(NOT_HELD_NS + 1..);
        held.map(|(_, trains)| trains).sum()
    }

    /// So many thousandths of all trains were held no longer, to an eighth; NaN where there were none.
    pub fn per_mille_us(&self, per_mille: u64) -> f64 {
        let rank = (self.trains() * per_mille).div_ceil(1000);
        let mut up_to = 0;
        let bucket = self.trains.iter().find(|(_, trains)| {
            up_to += **trains;
            up_to >= rank
        });
        match bucket {
            None => f64::NAN,
            Some((&NOT_HELD_NS, _)) => 0.0,
            Some((&end_ns, _)) => end_ns as f64 / 1e3,
        }
    }
}

/// Of one line in one part, all rounds together.
#[derive(Clone, Debug, Serialize)]
pub struct HoldOfPart {
    part: &'static str,
    line: &'static str,
    trains: u64,
    held_trains: u64,
    p50_us: f64,
    p99_us: f64,
    p999_us: f64,
    max_us: f64,
}

impl HoldOfPart {
    pub fn new(part: &'static str, line: &'static str, held: &Held) -> HoldOfPart {
        HoldOfPart {
            part,
            line,
            trains: held.trains(),
            held_trains: held.held_trains(),
            p50_us: held.per_mille_us(500),
            p99_us: held.per_mille_us(990),
            p999_us: held.per_mille_us(999),
            max_us: held.per_mille_us(1000),
        }
    }
}

pub fn holds_table(holds: &[HoldOfPart]) -> Table {
    let mut table = Table::new(&[
        "held for their turn, at both ends",
        "line",
        "trains",
        "held",
        "p50",
        "p99",
        "p99.9",
        "longest",
    ]);
    for hold in holds {
        let [p50, p99, p999, max] =
            [hold.p50_us, hold.p99_us, hold.p999_us, hold.max_us].map(|us| match us {
                us if us.is_nan() => "-".to_owned(),
                us => time(us),
            });
        table.row([
            hold.part.to_owned(),
            hold.line.to_owned(),
            grouped(hold.trains as f64),
            grouped(hold.held_trains as f64),
            p50,
            p99,
            p999,
            max,
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(buckets: &[(u64, u64)]) -> Held {
        Held {
            trains: buckets.iter().copied().collect(),
        }
    }

    #[test]
    fn what_happened_between_two_readings_is_told_by_the_difference() {
        let before = held(&[(1024, 1000), (1 << 20, 50)]);
        let after = held(&[(1024, 1985), (2048, 14), (1 << 20, 51)]);
        let between = after.since(&before);
        assert_eq!(between, held(&[(1024, 985), (2048, 14), (1 << 20, 1)]));
        assert_eq!((between.trains(), between.held_trains()), (1000, 15));
        assert_eq!(between.per_mille_us(500), 0.0);
        assert_eq!(between.per_mille_us(990), 2.048);
        assert_eq!(between.per_mille_us(1000), 1048.576);
        assert!(after.since(&after).per_mille_us(990).is_nan());
    }
}
