//! Short flows first: what belongs to a flow that has brought few bytes so far goes before everything else, and each of
//! the two classes is first in, first out.
//!
//! Nobody says how long a flow will be; what it has brought is what a router can know, and a long one is taken for a short
//! one at its beginning. Since a flow changes its class once, and to the later one, its frames keep their order.
//!
//! A short one's frame that finds no room pushes out the last frames of the long class, so that mice do not die of a buffer
//! that is full of elephants. Without such frames, and for the long class, the tail is dropped.
//!
//! What is known of flows is bounded, in two generations: who brings a frame is in the young one; when that is full the old
//! one is forgotten and the young one grows old. Forgotten is, and a short flow again, who has been silent while at least
//! [`FLOWS_REMEMBERED`] others brought something, and certainly after twice as many.

use std::collections::VecDeque;

use super::flows::FlowMap;
use super::order::Waiting;
use crate::net::carried::Carried;

const FLOWS_REMEMBERED: usize = 16_384;

#[derive(Debug)]
pub(super) struct ShortFirst<F> {
    threshold_bytes: u64,
    short: VecDeque<Waiting<F>>,
    long: VecDeque<Waiting<F>>,
    brought: Brought,
}

impl<F: Carried> ShortFirst<F> {
    pub fn new(threshold_bytes: u64) -> ShortFirst<F> {
        ShortFirst {
            threshold_bytes,
            short: VecDeque::new(),
            long: VecDeque::new(),
            brought: Brought::new(FLOWS_REMEMBERED),
        }
    }

    /// Whether a frame of this flow would be of the first class.
    pub fn is_short(&self, hash: u64) -> bool {
        self.brought.bytes(hash) < self.threshold_bytes
    }

    pub fn push(&mut self, waiting: Waiting<F>) {
        let hash = waiting.frame.flow_hash();
        let before = self.brought.add(hash, waiting.frame.len_bytes() as u64);
        match before < self.threshold_bytes {
            true => self.short.push_back(waiting),
            false => self.long.push_back(waiting),
        }
    }

    /// Takes out what is to be sent next.
    pub fn choose(&mut self) -> Option<Waiting<F>> {
        self.short.pop_front().or_else(|| self.long.pop_front())
    }

    /// What would go first for a short flow's frame, then second, and so on.
    pub fn expendable(&self) -> impl Iterator<Item = &F> {
        self.long.iter().rev().map(|waiting| &waiting.frame)
    }

    pub fn push_out(&mut self) -> Option<Waiting<F>> {
        self.long.pop_back()
    }

    pub fn drain(&mut self) -> Vec<Waiting<F>> {
        self.short.drain(..).chain(self.long.drain(..)).collect()
    }
}

/// Bytes by flow, of those that were heard of lately.
#[derive(Debug)]
struct Brought {
    young: FlowMap<u64>,
    old: FlowMap<u64>,
    generation: usize,
}

impl Brought {
    fn new(generation: usize) -> Brought {
        Brought {
            young: FlowMap::default(),
            old: FlowMap::default(),
            generation,
        }
    }

    fn bytes(&self, hash: u64) -> u64 {
        let known = self.young.get(&hash).or_else(|| self.old.get(&hash));
        known.copied().unwrap_or(0)
    }

    /// Counts so many more; how many there were before.
    fn add(&mut self, hash: u64, bytes: u64) -> u64 {
        if let Some(brought) = self.young.get_mut(&hash) {
            let before = *brought;
            *brought += bytes;
            return before;
        }
        let before = self.old.remove(&hash).unwrap_or(0);
        if self.young.len() == self.generation {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
        self.young.insert(hash, before + bytes);
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::queue::testing::{Came, Fed, Model, Unit, agree, any_limit, any_steps, fits};
    use crate::net::queue::{Discipline, QueueLimit};
    use packtrain_proto::time::Instant;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// One list of all that waits, each with its class.
    struct Slow {
        limit: QueueLimit,
        threshold: u64,
        brought: BTreeMap<u8, u64>,
        waiting: Vec<(bool, Unit)>,
        sending: Option<Unit>,
    }

    impl Slow {
        fn lens(&self) -> Vec<usize> {
            let waiting = self.waiting.iter().map(|(_, unit)| unit);
            waiting.chain(&self.sending).map(|unit| unit.len).collect()
        }
    }

    impl Model for Slow {
        fn arrive(&mut self, unit: Unit, _: Instant) -> Vec<u32> {
            let is_short = self.brought.get(&unit.flow).copied().unwrap_or(0) < self.threshold;
            let before = self.waiting.clone();
            let mut dropped = Vec::new();
            while !fits(self.limit, &self.lens(), unit.len) {
                match self.waiting.iter().rposition(|(is_short, _)| !is_short) {
                    Some(last) if is_short => dropped.push(self.waiting.remove(last).1.number),
                    _ => {
                        self.waiting = before;
                        return vec![unit.number];
                    }
                }
            }
            *self.brought.entry(unit.flow).or_default() += unit.len as u64;
            self.waiting.push((is_short, unit));
            dropped
        }

        fn leave(&mut self, _: Instant) -> Came {
            let first_short = self.waiting.iter().position(|(is_short, _)| *is_short);
            let first = first_short.or((!self.waiting.is_empty()).then_some(0));
            self.sending = first.map(|first| self.waiting.remove(first).1);
            Came {
                dropped: Vec::new(),
                begun: self.sending,
            }
        }

        fn bytes(&self) -> usize {
            self.lens().iter().sum()
        }
    }

    proptest! {
        #[test]
        fn it_sends_and_drops_what_the_slow_one_does(
            limit in any_limit(),
            threshold in prop_oneof![Just(0u64), 1u64..60_000],
            steps in any_steps(20),
        ) {
            let mut slow = Slow {
                limit,
                threshold,
                brought: BTreeMap::new(),
                waiting: Vec::new(),
                sending: None,
            };
            let discipline = Discipline::ShortFirst { threshold_bytes: threshold };
            agree(Fed::new(limit, discipline), &mut slow, &steps);
        }
    }

    #[test]
    fn a_mouse_overtakes_elephants_and_each_of_them_keeps_its_order() {
        let discipline = Discipline::ShortFirst {
            threshold_bytes: 3000,
        };
        let mut fed = Fed::new(QueueLimit::Bytes(12_000), discipline);
        for _ in 0..6 {
            fed.arrive(1, 1500);
        }
        fed.arrive(2, 1500);
        fed.arrive(2, 1500);
        // Full; the elephant's last one goes for a mouse, and its next one has no such right.
        assert_eq!(fed.arrive(3, 1500).1.dropped, [5]);
        assert_eq!(fed.arrive(1, 1500).1.dropped, [9]);
        let order: Vec<u32> =
            std::iter::from_fn(|| fed.leave().begun.map(|unit| unit.number)).collect();
        assert_eq!(order, [1, 6, 7, 8, 2, 3, 4]);
    }

    #[test]
    fn who_was_silent_while_many_others_came_is_forgotten_and_nobody_else() {
        let mut brought = Brought::new(100);
        for others in 0..1000u64 {
            // Always there, and therefore always known.
            assert_eq!(brought.add(7, 1), others);
            assert_eq!(brought.add(1_000_000 + others, 5), 0);
            assert!(brought.young.len() + brought.old.len() <= 200);
            if others >= 99 {
                assert_eq!(brought.bytes(1_000_000 + others - 99), 5);
            }
            if others >= 200 {
                assert_eq!(brought.bytes(1_000_000 + others - 200), 0);
            }
        }
    }
}
