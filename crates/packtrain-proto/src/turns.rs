//! Whose turn it is among the destinations that have frames waiting: deficit round robin by bytes.

use std::collections::VecDeque;

use crate::config::LinkId;

/// Queues of their own: a peer's, or those of the plain frames of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The peer's slot in the peer table.
    Peer(usize),
    Plain(LinkId),
    /// The slot of a station that takes aggregates.
    Station(usize),
}

#[derive(Debug)]
pub struct Turns {
    waiting: VecDeque<(Destination, isize)>,
    quantum: isize,
}

impl Turns {
    pub fn new(quantum: usize) -> Turns {
        Turns {
            waiting: VecDeque::new(),
            quantum: quantum as isize,
        }
    }

    /// The destination has frames waiting now.
    pub fn join(&mut self, destination: Destination) {
        if !self.waiting.iter().any(|(d, _)| *d == destination) {
            self.waiting.push_back((destination, self.quantum));
        }
    }

    pub fn leave(&mut self, destination: Destination) {
        self.waiting.retain(|(d, _)| *d != destination);
    }

    /// The first for which `ready` holds, of those that have overdrawn their credit by less than a turn. Who goes
    /// ahead pays with its own turns.
    pub fn next_urgent(&self, mut ready: impl FnMut(Destination) -> bool) -> Option<Destination> {
        let mut may = self
            .waiting
            .iter()
            .filter(|(_, credit)| *credit > -self.quantum);
        may.find(|(destination, _)| ready(*destination))
            .map(|(destination, _)| *destination)
    }

    /// The first in turn for which `ready` holds. Who is not ready keeps its place and credit.
    pub fn next(&mut self, mut ready: impl FnMut(Destination) -> bool) -> Option<Destination> {
        let mut looked = 0;
        while looked < self.waiting.len() {
            let (destination, credit) = self.waiting[looked];
            if !ready(destination) {
                looked += 1;
                continue;
            }
            if credit > 0 {
                return Some(destination);
            }
            // Its turn is over: to the back, with new credit.
            self.waiting.remove(looked);
            self.waiting.push_back((destination, credit + self.quantum));
        }
        None
    }

    pub fn charge(&mut self, destination: Destination, bytes: usize) {
        if let Some((_, credit)) = self.waiting.iter_mut().find(|(d, _)| *d == destination) {
            *credit -= bytes as isize;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_share_by_bytes_and_who_is_not_ready_is_passed_over() {
        let mut turns = Turns::new(1500);
        let (a, b, c) = (
            Destination::Peer(0),
            Destination::Peer(1),
            Destination::Plain(LinkId(0)),
        );
        for destination in [a, b, c] {
            turns.join(destination);
        }
        let mut bytes = [0usize; 2];
        for _ in 0..1000 {
            let next = turns.next(|d| d != c).unwrap();
            let (slot, size) = if next == a { (0, 60_000) } else { (1, 100) };
            turns.charge(next, size);
            bytes[slot] += size;
        }
        let ratio = bytes[0] as f64 / bytes[1] as f64;
        assert!((0.5..2.0).contains(&ratio), "{bytes:?}");
        assert_eq!(turns.next(|d| d == c), Some(c));
        turns.leave(c);
        assert_eq!(turns.next(|d| d == c), None);
    }

    #[test]
    fn who_is_urgent_goes_ahead_and_pays_with_its_turns() {
        let mut turns = Turns::new(1500);
        let (a, b) = (Destination::Peer(0), Destination::Peer(1));
        turns.join(a);
        turns.join(b);
        let mut bytes = [0usize; 2];
        let mut first = Vec::new();
        for _ in 0..1000 {
            let next = turns
                .next_urgent(|d| d == b)
                .or_else(|| turns.next(|_| true));
            let next = next.unwrap();
            turns.charge(next, 500);
            bytes[usize::from(next == b)] += 500;
            first.push(next);
        }
        assert_eq!(first[..6], [b; 6]);
        let ratio = bytes[0] as f64 / bytes[1] as f64;
        assert!((0.98..1.02).contains(&ratio), "{bytes:?}");
    }
}
