//! What is still to happen, in order: by time, and among equals first come, first served.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use packtrain_proto::time::Instant;

#[derive(Debug)]
struct Entry<E> {
    at: Instant,
    sequence: u64,
    event: E,
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.sequence) == (other.at, other.sequence)
    }
}
impl<E> Eq for Entry<E> {}
impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

#[derive(Debug)]
pub struct EventQueue<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    next_sequence: u64,
    now: Instant,
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        EventQueue {
            heap: BinaryHeap::new(),
            next_sequence: 0,
            now: Instant::ZERO,
        }
    }
}

impl<E> EventQueue<E> {
    /// More than any scenario needs: who reaches it has a loop that feeds itself.
    pub const EVENTS_MAX: usize = 4 << 20;

    pub fn push(&mut self, at: Instant, event: E) {
        assert!(
            at >= self.now,
            "an event for {at:?}, and it is {:?}",
            self.now
        );
        assert!(
            self.heap.len() < Self::EVENTS_MAX,
            "{} events wait",
            self.heap.len()
        );
        self.heap.push(Reverse(Entry {
            at,
            sequence: self.next_sequence,
            event,
        }));
        self.next_sequence += 1;
    }

    pub fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    pub fn pop(&mut self) -> Option<(Instant, E)> {
        let Reverse(entry) = self.heap.pop()?;
        debug_assert!(entry.at >= self.now);
        self.now = entry.at;
        Some((entry.at, entry.event))
    }

    pub fn len(&self) -> usize {
        self.heap.len()
    }

    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_equals_in_the_order_of_their_coming() {
        let mut queue = EventQueue::default();
        for (at, name) in [(5, "c"), (1, "a"), (5, "d"), (2, "b"), (5, "e")] {
            queue.push(Instant::from_nanos(at), name);
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop())
            .map(|(_, name)| name)
            .collect();
        assert_eq!(order, ["a", "b", "c", "d", "e"]);
    }

    #[test]
    #[should_panic(expected = "and it is")]
    fn nothing_happens_in_the_past() {
        let mut queue = EventQueue::default();
        queue.push(Instant::from_nanos(5), ());
        queue.pop();
        queue.push(Instant::from_nanos(4), ());
    }
}
