//! What an engine says has arrived is not delivered after.

use crate::simulator::StationId;
use crate::workload::identity::Identity;

#[derive(Debug)]
struct Asked {
    station: StationId,
    ticket: u64,
    /// By flow: one behind the newest sequence that the station had handed in.
    ends: Vec<(usize, u32)>,
}

#[derive(Debug)]
pub struct Drained {
    asked: Vec<Asked>,
    /// By flow: one behind the newest sequence that has arrived, or was dropped, as was said.
    arrived: Vec<u32>,
}

impl Drained {
    pub fn new(flows: usize) -> Drained {
        Drained {
            asked: Vec::new(),
            arrived: vec![0; flows],
        }
    }

    /// `ends`: what this station has handed in of its flows.
    pub fn asked(&mut self, station: StationId, ticket: u64, ends: Vec<(usize, u32)>) {
        self.asked.push(Asked {
            station,
            ticket,
            ends,
        });
    }

    /// The engine says so.
    pub fn happened(&mut self, station: StationId, ticket: u64) {
        let is_it = |asked: &Asked| asked.station == station && asked.ticket == ticket;
        let Some(at) = self.asked.iter().position(is_it) else {
            return;
        };
        for (flow, end) in self.asked.swap_remove(at).ends {
            let arrived = &mut self.arrived[flow];
            *arrived = end.max(*arrived);
        }
    }

    /// Somebody begins a new life: what was on its way to the old one is not waited for.
    pub fn forget(&mut self) {
        self.asked.clear();
    }

    /// Whether it was said before that this has arrived.
    pub fn has_arrived(&self, what: Identity) -> bool {
        what.sequence < self.arrived[usize::from(what.flow)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_handed_in_later_may_come_and_what_was_handed_in_before_may_not() {
        let station = StationId(1);
        let mut drained = Drained::new(3);
        let arrived = |drained: &Drained, flow, sequence| {
            drained.has_arrived(Identity {
                flow,
                sequence,
                segment: 0,
            })
        };
        drained.asked(station, 5, vec![(0, 10), (2, 4)]);
        assert!(!arrived(&drained, 0, 9));
        drained.happened(StationId(0), 5);
        drained.happened(station, 4);
        assert!(!arrived(&drained, 0, 9));
        drained.happened(station, 5);
        assert!(arrived(&drained, 0, 9) && arrived(&drained, 2, 0));
        assert!(!arrived(&drained, 0, 10) && !arrived(&drained, 1, 0));
        drained.asked(station, 6, vec![(0, 20)]);
        drained.forget();
        drained.happened(station, 6);
        assert!(!arrived(&drained, 0, 10));
    }
}
