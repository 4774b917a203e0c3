//! The frames of one host that are under way: which one it is that comes out at the other side.
//!
//! Frames carry no number of ours: they travel as they were captured, for what is in them decides how they are
//! treated. So they are known by a fingerprint. One that is the same as another that is under way is changed in
//! its last four bytes: real captures hardly have such, and generated ones have little else.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::ethernet::HEADER_LEN;

use super::conversations::Slot;
use super::frame::fingerprint;
use super::wire::Cost;

/// No queue holds a frame for longer.
const AGE_MAX: Duration = Duration::from_secs(120);
/// Of one host, lost ones that are not known to be so included.
const ENTRIES_MAX: usize = 1 << 18;
const TAG_LEN: usize = 4;

#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub sent_at: Instant,
    /// How long it takes plainly; `None`: it was dropped there.
    pub plain_delay: Option<Duration>,
    pub cost: Cost,
    pub class: u8,
    pub conversation: Slot,
    fingerprint: u64,
    is_done: bool,
}

impl Entry {
    pub fn new(
        sent_at: Instant,
        plain_delay: Option<Duration>,
        cost: Cost,
        class: u8,
        conversation: Slot,
    ) -> Entry {
        Entry {
            sent_at,
            plain_delay,
            cost,
            class,
            conversation,
            fingerprint: 0,
            is_done: false,
        }
    }
}

/// A frame that is under way, for its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryId(u64);

#[derive(Debug, Default)]
pub struct Flight {
    /// In the order in which they left.
    entries: VecDeque<Entry>,
    /// How many have left the list.
    gone: u64,
    by_fingerprint: HashMap<u64, u64, BuildHasherDefault<AsItIs>>,
    next_tag: u32,
    pub tagged: u64,
    pub under_way: usize,
}

impl Flight {
    /// A frame leaves. Its bytes are changed where it could not be told from another. `lost` hears of those that
    /// can no longer come.
    pub fn add(
        &mut self,
        mut entry: Entry,
        mut print: u64,
        frame: &mut [u8],
        lost: impl FnMut(&Entry),
    ) -> EntryId {
        self.forget_old(entry.sent_at, lost);
        while self.by_fingerprint.contains_key(&print) {
            let at = frame.len() - TAG_LEN;
            self.next_tag = self.next_tag.wrapping_add(1);
            // Not small numbers one after the other: those it may have held before.
            let tag = self.next_tag.wrapping_mul(0x9e37_79b1);
            frame[at..].copy_from_slice(&tag.to_be_bytes());
            let ether_type = u16::from_be_bytes([frame[12], frame[13]]);
            print = fingerprint(ether_type, &frame[HEADER_LEN..]);
            self.tagged += 1;
        }
        let id = self.gone + self.entries.len() as u64;
        entry.fingerprint = print;
        self.by_fingerprint.insert(print, id);
        self.entries.push_back(entry);
        self.under_way += 1;
        EntryId(id)
    }

    /// Which one it is; `None`: none that is under way still.
    pub fn find(&self, print: u64) -> Option<EntryId> {
        self.by_fingerprint.get(&print).copied().map(EntryId)
    }

    /// It has come. `None`: it had done so before, as a frame that goes out by two cables does.
    pub fn take(&mut self, id: EntryId) -> Option<Entry> {
        let at = usize::try_from(id.0.checked_sub(self.gone)?).ok()?;
        let entry = self.entries.get_mut(at).filter(|entry| !entry.is_done)?;
        entry.is_done = true;
        let entry = *entry;
        self.by_fingerprint.remove(&entry.fingerprint);
        self.under_way -= 1;
        while self.entries.front().is_some_and(|first| first.is_done) {
            self.entries.pop_front();
            self.gone += 1;
        }
        Some(entry)
    }

    fn forget_old(&mut self, now: Instant, mut lost: impl FnMut(&Entry)) {
        let is_old = |first: &Entry| now.since(first.sent_at) > AGE_MAX;
        while self.entries.len() >= ENTRIES_MAX || self.entries.front().is_some_and(is_old) {
            self.forget_first(&mut lost);
        }
    }

    fn forget_first(&mut self, mut lost: impl FnMut(&Entry)) {
        let Some(first) = self.entries.pop_front() else {
            return;
        };
        self.gone += 1;
        if !first.is_done {
            self.by_fingerprint.remove(&first.fingerprint);
            self.under_way -= 1;
            lost(&first);
        }
    }

    /// Nothing comes any more.
    pub fn end(&mut self, mut lost: impl FnMut(&Entry)) {
        while !self.entries.is_empty() {
            self.forget_first(&mut lost);
        }
    }
}

/// A fingerprint is a hash already.
#[derive(Debug, Default)]
pub struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}
