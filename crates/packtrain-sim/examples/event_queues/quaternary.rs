//! A heap of four children a node: half as deep as a binary one, and the four lie together.

use packtrain_proto::time::Instant;
use packtrain_sim::event_queue::Queue;

/// Times and sequence numbers by rank; the events stay where they were put, but for the keys' sake.
#[derive(Debug)]
pub struct QuaternaryHeap<E> {
    heap: Vec<(u64, u64, u32)>,
    events: Vec<Option<E>>,
    free: Vec<u32>,
    next_sequence: u64,
}

impl<E> Default for QuaternaryHeap<E> {
    fn default() -> Self {
        QuaternaryHeap {
            heap: Vec::new(),
            events: Vec::new(),
            free: Vec::new(),
            next_sequence: 0,
        }
    }
}

impl<E> Queue<E> for QuaternaryHeap<E> {
    fn push(&mut self, at: Instant, event: E) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.events.push(None);
            self.events.len() as u32 - 1
        });
        self.events[place as usize] = Some(event);
        let key = (at.as_nanos(), self.next_sequence, place);
        self.next_sequence += 1;
        let mut hole = self.heap.len();
        self.heap.push(key);
        while hole > 0 && key < self.heap[(hole - 1) / 4] {
            self.heap[hole] = self.heap[(hole - 1) / 4];
            hole = (hole - 1) / 4;
        }
        self.heap[hole] = key;
    }

    fn pop(&mut self) -> Option<(Instant, E)> {
        let last = self.heap.pop()?;
        let (at, _, place) = self.heap.first().copied().unwrap_or(last);
        let mut hole = 0;
        loop {
            let below = 4 * hole + 1;
            let end = self.heap.len().min(below + 4);
            let Some(least) = (below..end).min_by_key(|&child| self.heap[child]) else {
                break;
            };
            if last < self.heap[least] {
                break;
            }
            self.heap[hole] = self.heap[least];
            hole = least;
        }
        if let Some(slot) = self.heap.get_mut(hole) {
            *slot = last;
        }
        self.free.push(place);
        let event = self.events[place as usize].take().expect("it waited");
        Some((Instant::from_nanos(at), event))
    }

    fn next_at(&self) -> Option<Instant> {
        let &(at, ..) = self.heap.first()?;
        Some(Instant::from_nanos(at))
    }

    fn len(&self) -> usize {
        self.heap.len()
    }
}
