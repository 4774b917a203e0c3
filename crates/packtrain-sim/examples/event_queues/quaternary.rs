//! A heap of four children a node: half as deep as a binary one, and the four lie together.

use packtrain_proto::time::Instant;
use packtrain_sim::event_queue::Queue;

/// Only keys move, four of them to a line of the cache; the events stay where they were put.
#[derive(Debug)]
pub struct QuaternaryHeap<E> {
    /// Time, sequence number and place in one: 64, 40 and 24 bits.
    heap: Vec<u128>,
    events: Vec<Option<E>>,
    free: Vec<u32>,
    next_sequence: u128,
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

impl<E> QuaternaryHeap<E> {
    fn rise(&mut self, mut hole: usize, key: u128) {
        while hole > 0 && key < self.heap[(hole - 1) / 4] {
            self.heap[hole] = self.heap[(hole - 1) / 4];
            hole = (hole - 1) / 4;
        }
        self.heap[hole] = key;
    }
}

impl<E> Queue<E> for QuaternaryHeap<E> {
    fn push(&mut self, at: Instant, event: E) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.events.push(None);
            self.events.len() as u32 - 1
        });
        self.events[place as usize] = Some(event);
        let key = u128::from(at.as_nanos()) << 64 | self.next_sequence << 24 | u128::from(place);
        self.next_sequence += 1;
        self.heap.push(key);
        self.rise(self.heap.len() - 1, key);
    }

    fn pop(&mut self) -> Option<(Instant, E)> {
        let last = self.heap.pop()?;
        let first = self.heap.first().copied().unwrap_or(last);
        // Down to a leaf, and up again from there: what was last mostly belongs far below.
        let mut hole = 0;
        while let Some(children) = self.heap.get(4 * hole + 1..4 * hole + 5) {
            let least = |a: usize, b: usize| if children[b] < children[a] { b } else { a };
            let least = least(least(0, 1), least(2, 3));
            self.heap[hole] = children[least];
            hole = 4 * hole + 1 + least;
        }
        let rest = (4 * hole + 1).min(self.heap.len())..self.heap.len();
        if let Some(least) = rest.min_by_key(|&child| self.heap[child]) {
            self.heap[hole] = self.heap[least];
            hole = least;
        }
        if !self.heap.is_empty() {
            self.rise(hole, last);
        }
        let place = first as u32 & 0xff_ffff;
        self.free.push(place);
        let event = self.events[place as usize].take().expect("it waited");
        Some((Instant::from_nanos((first >> 64) as u64), event))
    }

    fn next_at(&self) -> Option<Instant> {
        let &first = self.heap.first()?;
        Some(Instant::from_nanos((first >> 64) as u64))
    }

    fn len(&self) -> usize {
        self.heap.len()
    }
}
