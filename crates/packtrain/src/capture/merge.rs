//! Frames of several sockets, in the order of their times.
//!
//! Each socket is read by itself, so what passed first may be read last. A frame is held for a moment after
//! it was read; whatever passed before it and is read meanwhile goes first. One that is later than that is
//! not lost: it comes after frames of later times, as it does in any capture of several interfaces.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::time::Duration;

use packtrain_proto::time::Instant;

/// How long a frame is held: a busy processor lets what waits for it wait for milliseconds.
const WINDOW: Duration = Duration::from_millis(20);
/// Most bytes that are held; above that, the earliest go at once.
const BYTES_MAX: usize = 64 << 20;

#[derive(Debug)]
pub struct Merge<T> {
    held: BinaryHeap<Held<T>>,
    bytes: usize,
    pushed: u64,
}

#[derive(Debug)]
struct Held<T> {
    unix_nanos: u64,
    /// Of equal times, the one that was read first.
    number: u64,
    read_at: Instant,
    bytes: usize,
    item: T,
}

impl<T> Default for Merge<T> {
    fn default() -> Merge<T> {
        Merge {
            held: BinaryHeap::new(),
            bytes: 0,
            pushed: 0,
        }
    }
}

impl<T> Merge<T> {
    /// `bytes`: how much memory it takes.
    pub fn push(&mut self, unix_nanos: u64, bytes: usize, item: T, now: Instant) {
        self.bytes += bytes;
        self.pushed += 1;
        self.held.push(Held {
            unix_nanos,
            number: self.pushed,
            read_at: now,
            bytes,
            item,
        });
    }

    /// The next one, if it is time for it.
    pub fn pop(&mut self, now: Instant) -> Option<T> {
        match self.due() {
            Some(due) if due <= now || self.bytes > BYTES_MAX => self.pop_any(),
            _ => None,
        }
    }

    /// The next one, whether or not something may still come before it.
    pub fn pop_any(&mut self) -> Option<T> {
        let next = self.held.pop()?;
        self.bytes -= next.bytes;
        Some(next.item)
    }

    pub fn len(&self) -> usize {
        self.held.len()
    }

    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// When [`Merge::pop`] has one.
    pub fn due(&self) -> Option<Instant> {
        self.held.peek().map(|next| next.read_at + WINDOW)
    }
}

/// The earliest is the greatest: that is what a heap gives.
impl<T> Ord for Held<T> {
    fn cmp(&self, other: &Held<T>) -> Ordering {
        let key = |held: &Held<T>| (held.unix_nanos, held.number);
        key(other).cmp(&key(self))
    }
}

impl<T> PartialOrd for Held<T> {
    fn partial_cmp(&self, other: &Held<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Held<T> {
    fn eq(&self, other: &Held<T>) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Held<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn all(merge: &mut Merge<&'static str>, now: Instant) -> Vec<&'static str> {
        std::iter::from_fn(|| merge.pop(now)).collect()
    }

    #[test]
    fn frames_of_several_sockets_come_in_the_order_of_their_times() {
        let mut merge = Merge::default();
        assert_eq!(merge.due(), None);
        for (time, item) in [(30, "c"), (50, "e"), (10, "a"), (30, "d"), (20, "b")] {
            merge.push(time, 60, item, at(100));
        }
        assert_eq!(merge.due(), Some(at(120)));
        assert_eq!(all(&mut merge, at(119)), [""; 0]);
        assert_eq!(all(&mut merge, at(120)), ["a", "b", "c", "d", "e"]);
        assert_eq!(merge.bytes, 0);
    }

    #[test]
    fn what_is_read_within_the_window_goes_before_what_passed_later() {
        let mut merge = Merge::default();
        merge.push(20, 60, "second", at(100));
        merge.push(10, 60, "first", at(115));
        merge.push(30, 60, "third", at(116));
        // The second waits for the first, and that for whatever is before it.
        assert_eq!(all(&mut merge, at(134)), [""; 0]);
        assert_eq!(all(&mut merge, at(135)), ["first", "second"]);
        // Too late for its place, and not lost.
        merge.push(5, 60, "late", at(135));
        assert_eq!(all(&mut merge, at(160)), ["late", "third"]);
    }

    #[test]
    fn what_is_held_is_bounded_and_the_end_gives_all() {
        let mut merge = Merge::default();
        for time in 0..100 {
            merge.push(time, BYTES_MAX / 50, "frame", at(0));
        }
        let early = all(&mut merge, at(0)).len();
        assert!((50..=51).contains(&early), "{early}");
        assert_eq!(std::iter::from_fn(|| merge.pop_any()).count(), 100 - early);
    }
}
