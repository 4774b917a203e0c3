//! Frames of one train that later ones of it are told apart from. Both ends keep the same, by the same rules.

use crate::wire::delta::{SLOTS_MAX, Slot};
use crate::wire::layout::Layout;

/// A frame in the subframes as they were.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// Where its subframe begins, and what follows its EtherType.
    pub at: usize,
    pub payload_at: usize,
    pub payload_len: usize,
    pub layout: Layout,
}

/// The slots of a train.
#[derive(Debug)]
pub struct References {
    slots: Vec<Kept>,
    /// Which is taken next, when all are in use: the oldest.
    next: usize,
    /// That of the frame before.
    last: usize,
}

impl Default for References {
    fn default() -> References {
        References {
            slots: Vec::with_capacity(SLOTS_MAX),
            next: 0,
            last: 0,
        }
    }
}

impl References {
    pub fn clear(&mut self) {
        self.slots.clear();
        (self.next, self.last) = (0, 0);
    }

    pub fn last(&self) -> usize {
        self.last
    }

    pub fn get(&self, slot: usize) -> Option<&Kept> {
        self.slots.get(slot)
    }

    /// A frame that gets a slot of its own; says which.
    pub fn open(&mut self, frame: Kept) -> usize {
        let slot = self.next;
        match self.slots.get_mut(slot) {
            Some(oldest) => *oldest = frame,
            None => self.slots.push(frame),
        }
        self.next = (slot + 1) % SLOTS_MAX;
        self.last = slot;
        slot
    }

    /// A frame that takes the place of the one that it was told apart from.
    pub fn replace(&mut self, slot: usize, frame: Kept) -> usize {
        self.slots[slot] = frame;
        self.last = slot;
        slot
    }

    /// After a DELTA whose head said so.
    pub fn follow(&mut self, slot: Slot, frame: Kept) {
        match slot.opens_new {
            true => self.open(frame),
            false => self.replace(usize::from(slot.number), frame),
        };
    }
}
