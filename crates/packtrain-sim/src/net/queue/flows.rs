//! What stands there flow by flow: the ground of disciplines that give each flow its share.
//!
//! Flows are told apart exactly, by [`Carried::flow_hash`]: no two of them share a queue. A flow has a slot from its
//! first frame until the discipline lets go of it, and then the slot is another one's: as many as were ever needed at
//! once, and nothing is allocated any more when there are enough.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use super::order::Waiting;
use crate::net::carried::Carried;

/// Hashes are mixed already.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("a flow's hash is one number")
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

pub(super) type FlowMap<V> = HashMap<u64, V, BuildHasherDefault<Mixed>>;

/// Which slot.
pub(super) type Slot = u32;

/// `S` is what a discipline knows of a flow.
#[derive(Debug)]
struct Flow<F, S> {
    hash: u64,
    waiting: VecDeque<Waiting<F>>,
    state: S,
}

/// Of a slot, and apart from the rest: when the longest is looked for, all are looked at.
#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    bytes: usize,
    /// Number among all that came of what came to it last, whether that is still there or not.
    newest: u64,
}

#[derive(Debug)]
pub(super) struct Flows<F, S> {
    flows: Vec<Flow<F, S>>,
    standing: Vec<Standing>,
    slots: FlowMap<Slot>,
    free: Vec<Slot>,
    frames_ever: u64,
}

impl<F: Carried, S> Flows<F, S> {
    pub fn new() -> Flows<F, S> {
        Flows {
            flows: Vec::new(),
            standing: Vec::new(),
            slots: FlowMap::default(),
            free: Vec::new(),
            frames_ever: 0,
        }
    }

    pub fn slot(&self, hash: u64) -> Option<Slot> {
        self.slots.get(&hash).copied()
    }

    /// A slot for a flow that has none.
    pub fn add(&mut self, hash: u64, state: S) -> Slot {
        let slot = match self.free.pop() {
            Some(slot) => {
                let flow = &mut self.flows[slot as usize];
                debug_assert!(flow.waiting.is_empty());
                (flow.hash, flow.state) = (hash, state);
                slot
            }
            None => {
                self.flows.push(Flow {
                    hash,
                    waiting: VecDeque::new(),
                    state,
                });
                self.standing.push(Standing::default());
                self.flows.len() as Slot - 1
            }
        };
        let before = self.slots.insert(hash, slot);
        debug_assert!(before.is_none());
        slot
    }

    /// Lets go of a flow of which nothing stands there.
    pub fn remove(&mut self, slot: Slot) {
        debug_assert!(self.is_empty(slot));
        self.slots.remove(&self.flows[slot as usize].hash);
        self.free.push(slot);
    }

    pub fn state(&mut self, slot: Slot) -> &mut S {
        &mut self.flows[slot as usize].state
    }

    pub fn is_empty(&self, slot: Slot) -> bool {
        self.flows[slot as usize].waiting.is_empty()
    }

    pub fn frames(&self, slot: Slot) -> usize {
        self.flows[slot as usize].waiting.len()
    }

    pub fn bytes(&self, slot: Slot) -> usize {
        self.standing[slot as usize].bytes
    }

    pub fn first(&self, slot: Slot) -> Option<&Waiting<F>> {
        self.flows[slot as usize].waiting.front()
    }

    pub fn push(&mut self, slot: Slot, waiting: Waiting<F>) {
        self.frames_ever += 1;
        let standing = &mut self.standing[slot as usize];
        standing.bytes += waiting.frame.len_bytes();
        standing.newest = self.frames_ever;
        self.flows[slot as usize].waiting.push_back(waiting);
    }

    pub fn pop_first(&mut self, slot: Slot) -> Option<Waiting<F>> {
        let gone = self.flows[slot as usize].waiting.pop_front()?;
        self.standing[slot as usize].bytes -= gone.frame.len_bytes();
        Some(gone)
    }

    pub fn pop_last(&mut self, slot: Slot) -> Option<Waiting<F>> {
        let gone = self.flows[slot as usize].waiting.pop_back()?;
        self.standing[slot as usize].bytes -= gone.frame.len_bytes();
        Some(gone)
    }

    /// Of which flow most bytes stand there; of equals, the one to which something came last. One that has none is none.
    pub fn longest(&self) -> Option<Slot> {
        let by_length = |(_, standing): &(Slot, &Standing)| (standing.bytes, standing.newest);
        let (slot, standing) = (0..).zip(&self.standing).max_by_key(by_length)?;
        (standing.bytes > 0).then_some(slot)
    }

    #[cfg(test)]
    pub fn slots_ever(&self) -> usize {
        self.flows.len()
    }

    /// Everything, flow by flow.
    pub fn drain(&mut self) -> Vec<Waiting<F>> {
        let flows = self.flows.iter_mut();
        flows.flat_map(|flow| flow.waiting.drain(..)).collect()
    }
}
