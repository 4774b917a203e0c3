//! The same order from a binary heap: what the wheel is held against, in tests and in time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use packtrain_proto::time::Instant;

use super::{EVENTS_MAX, Queue};

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
pub struct HeapQueue<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    next_sequence: u64,
    now: Instant,
}

impl<E> Default for HeapQueue<E> {
    fn default() -> Self {
        HeapQueue {
            heap: BinaryHeap::new(),
            next_sequence: 0,
            now: Instant::ZERO,
        }
    }
}

impl<E> Queue<E> for HeapQueue<E> {
    fn push(&mut self, at: Instant, event: E) {
        assert!(
            at >= self.now,
            "an event for {at:?}, and it is {:?}",
            self.now
        );
        assert!(
            self.heap.len() < EVENTS_MAX,
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

    fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    fn pop(&mut self) -> Option<(Instant, E)> {
        let Reverse(entry) = self.heap.pop()?;
        debug_assert!(entry.at >= self.now);
        self.now = entry.at;
        Some((entry.at, entry.event))
    }

    fn len(&self) -> usize {
        self.heap.len()
    }
}
