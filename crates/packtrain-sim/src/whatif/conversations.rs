//! Who talks with whom: counted one by one for those that say most, together for the rest.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use packtrain_proto::class::facts::FlowFacts;

use super::fingerprints::AsItIs;
use super::frame::Captured;
use super::results::{Share, WireLoad};

/// Most that are counted one by one. Where more come, the half that said least goes to the rest, so that one that
/// begins late is seen all the same.
pub const CONVERSATIONS_MAX: usize = 8192;

/// Where a conversation is counted, as long as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    at: u32,
    /// Anew each time when the list was halved.
    age: u32,
}

#[derive(Clone, Debug)]
pub struct Conversation {
    key: u64,
    /// Of its first frame.
    pub flow: FlowFacts,
    pub share: Share,
}

#[derive(Debug, Default)]
pub struct Conversations {
    list: Vec<Conversation>,
    by_key: HashMap<u64, u32, BuildHasherDefault<AsItIs>>,
    age: u32,
    /// Of those that are not in the list any more.
    pub rest: Share,
    /// How often one was moved to the rest.
    pub moved_to_rest: u64,
}

impl Conversations {
    /// A frame was sent.
    pub fn on_sent(&mut self, frame: &Captured) -> Slot {
        let at = match self.by_key.get(&frame.conversation) {
            Some(&at) => at,
            None => self.begin(frame),
        };
        self.list[at as usize].share.on_sent(frame);
        Slot { at, age: self.age }
    }

    pub fn share(&mut self, slot: Slot) -> &mut Share {
        match slot.age == self.age {
            true => &mut self.list[slot.at as usize].share,
            false => &mut self.rest,
        }
    }

    fn begin(&mut self, frame: &Captured) -> u32 {
        if self.list.len() >= CONVERSATIONS_MAX {
            self.halve();
        }
        let at = self.list.len() as u32;
        self.by_key.insert(frame.conversation, at);
        self.list.push(Conversation {
            key: frame.conversation,
            flow: frame.flow,
            share: Share::default(),
        });
        at
    }

    fn halve(&mut self) {
        self.sort();
        for conversation in self.list.drain(CONVERSATIONS_MAX / 2..) {
            self.rest.add(&conversation.share);
            self.moved_to_rest += 1;
        }
        self.by_key.clear();
        let places = self.list.iter().zip(0..);
        self.by_key
            .extend(places.map(|(conversation, at)| (conversation.key, at)));
        self.age += 1;
    }

    fn sort(&mut self) {
        let said = |one: &Conversation| std::cmp::Reverse(one.share.plain.bytes as u64);
        self.list.sort_by_key(said);
    }

    /// Those that say most, and all others together.
    pub fn top(mut self, count: usize) -> (Vec<Conversation>, Others) {
        self.sort();
        let mut others = Others {
            share: self.rest,
            conversations: self.list.len().saturating_sub(count) as u64 + self.moved_to_rest,
            is_at_most: self.moved_to_rest > 0,
        };
        for one in self.list.drain(count.min(self.list.len())..) {
            others.share.add(&one.share);
        }
        (self.list, others)
    }

    /// What is counted, of all of them.
    pub fn total_plain(&self) -> WireLoad {
        let all = self.list.iter().map(|one| one.share.plain);
        all.fold(self.rest.plain, |sum, one| sum + one)
    }
}

#[derive(Clone, Debug, Default)]
pub struct Others {
    pub share: Share,
    pub conversations: u64,
    /// One that was moved to the rest and came again counts twice.
    pub is_at_most: bool,
}
