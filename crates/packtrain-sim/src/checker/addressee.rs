//! Frames come out where they were meant to, and nowhere else.

use super::StationFacts;
use crate::simulator::StationId;
use crate::workload::flow::{Flow, Recipient};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Meant,
    /// Not for it, but it takes everything that passes.
    Flooded,
    Wrong,
}

pub fn check(flow: &Flow, station: StationId, stations: &[StationFacts]) -> Verdict {
    let meant = match flow.to {
        Recipient::Station(to) => to == station,
        Recipient::All => flow.from != station,
    };
    if meant {
        Verdict::Meant
    } else if stations[station.0].promiscuous && station != flow.from {
        Verdict::Flooded
    } else {
        Verdict::Wrong
    }
}
