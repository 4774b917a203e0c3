//! What had been handed in when an engine was asked whether all has arrived, and what it said.

use std::collections::HashMap;

use super::datagram::Id;

/// By flow of a side: the number that its next datagram has.
type Ends = HashMap<(usize, u16), u64>;

#[derive(Default)]
pub struct Drains {
    asked: HashMap<u64, Ends>,
    next_ticket: u64,
    arrived: Ends,
    pub happened: u64,
}

impl Drains {
    /// The ticket for all that this side has handed in.
    pub fn ask(&mut self, side: usize, next_number: &Ends) -> u64 {
        let of_side = next_number.iter().filter(|((of, _), _)| *of == side);
        let ends = of_side.map(|(&flow, &end)| (flow, end)).collect();
        self.next_ticket += 1;
        self.asked.insert(self.next_ticket, ends);
        self.next_ticket
    }

    pub fn happened(&mut self, ticket: u64) {
        let Some(ends) = self.asked.remove(&ticket) else {
            return;
        };
        self.happened += 1;
        for (flow, end) in ends {
            let arrived = self.arrived.entry(flow).or_default();
            *arrived = end.max(*arrived);
        }
    }

    /// Somebody begins a new life: what was on its way to the old one is not waited for.
    pub fn forget(&mut self) {
        self.asked.clear();
    }

    /// Whether it was said that this one had arrived, or was dropped.
    pub fn has_arrived(&self, id: Id) -> bool {
        let flow = (usize::from(id.side), id.flow);
        let end = self.arrived.get(&flow).copied().unwrap_or(0);
        id.number < end
    }
}
