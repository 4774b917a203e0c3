//! The frames of one host that are under way: which one it is that comes out at the other side.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;

use packtrain_proto::time::{Duration, Instant};

use super::conversations::Slot;
use super::fingerprints::AsItIs;
use super::journal::Number;
use super::wire::Cost;

/// No queue holds a frame for longer.
const AGE_MAX: Duration = Duration::from_secs(120);
/// Of one host, lost ones that are not known to be so included.
const ENTRIES_MAX: usize = 1 << 18;

#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub sent_at: Instant,
    /// How long it takes plainly; `None`: it was dropped there.
    pub plain_delay: Option<Duration>,
    pub cost: Cost,
    pub class: u8,
    pub conversation: Slot,
    /// `None`: who carries it knows which one it is.
    pub fingerprint: Option<u64>,
    pub is_done: bool,
}

#[derive(Debug, Default)]
pub struct Flight {
    /// In the order in which they left.
    entries: VecDeque<Entry>,
    /// How many have left the list.
    gone: Number,
    by_fingerprint: HashMap<u64, Number, BuildHasherDefault<AsItIs>>,
}

impl Flight {
    /// A frame leaves. `lost` hears of those that can no longer come.
    pub fn add(&mut self, entry: Entry, mut lost: impl FnMut(&Entry)) {
        let is_old = |first: &Entry| entry.sent_at.since(first.sent_at) > AGE_MAX;
        while self.entries.len() >= ENTRIES_MAX || self.entries.front().is_some_and(is_old) {
            self.forget_first(&mut lost);
        }
        let number = self.gone + self.entries.len() as Number;
        if let Some(fingerprint) = entry.fingerprint {
            self.by_fingerprint.insert(fingerprint, number);
        }
        self.entries.push_back(entry);
    }

    /// One with this fingerprint has come. `None`: none that is under way still; it may have come before, as one does that
    /// goes out by two cables.
    pub fn take(&mut self, fingerprint: u64) -> Option<Entry> {
        let number = *self.by_fingerprint.get(&fingerprint)?;
        self.take_numbered(number)
    }

    pub fn take_numbered(&mut self, number: Number) -> Option<Entry> {
        let at = usize::try_from(number.checked_sub(self.gone)?).ok()?;
        let entry = self.entries.get_mut(at).filter(|entry| !entry.is_done)?;
        entry.is_done = true;
        let entry = *entry;
        self.forget_fingerprint(&entry);
        while self.entries.front().is_some_and(|first| first.is_done) {
            self.entries.pop_front();
            self.gone += 1;
        }
        Some(entry)
    }

    fn forget_first(&mut self, mut lost: impl FnMut(&Entry)) {
        let Some(first) = self.entries.pop_front() else {
            return;
        };
        self.gone += 1;
        if !first.is_done {
            self.forget_fingerprint(&first);
            lost(&first);
        }
    }

    fn forget_fingerprint(&mut self, entry: &Entry) {
        if let Some(fingerprint) = &entry.fingerprint {
            self.by_fingerprint.remove(fingerprint);
        }
    }

    /// Nothing comes any more.
    pub fn end(&mut self, mut lost: impl FnMut(&Entry)) {
        while !self.entries.is_empty() {
            self.forget_first(&mut lost);
        }
    }
}
