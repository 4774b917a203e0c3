//! What is still to happen, in order: by time, and among equals first come, first served.
//!
//! A timing wheel in levels (Varghese and Lauck 1987), exact to the nanosecond: a slot of the lowest
//! level is one nanosecond, and a slot of each level above is a whole turn of the one below. An event
//! lies where its time first differs from now, read in digits to the base 64: so the level and the slot
//! follow from its time and from now alone, equals lie in one slot, and a slot is a list in the order of
//! coming. That is what keeps equals in order without a number on each.
//!
//! Now moves only to the time of what is taken. What lies in the same slot then is filed again, in its
//! order, at levels below, which are empty: an event moves at most once a level, and one that is alone
//! in its slot never does. The measurements are those of `examples/event_queues`.

use std::fmt;

use packtrain_proto::time::Instant;

mod heap;

pub use heap::HeapQueue;

/// More than any scenario needs: who reaches it has a loop that feeds itself.
const EVENTS_MAX: usize = 4 << 20;

/// What a queue of events does, for a simulator that is to run on another one for comparison.
pub trait Queue<E> {
    /// Not before the last that was taken.
    fn push(&mut self, at: Instant, event: E);
    fn pop(&mut self) -> Option<(Instant, E)>;
    fn next_at(&self) -> Option<Instant>;
    fn len(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Of a digit.
const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
/// All 64 bits of a time in digits.
const LEVELS: usize = u64::BITS.div_ceil(BITS) as usize;

const NONE: u32 = u32::MAX;

/// A list of events, in the order of their coming. What is in an empty one means nothing.
#[derive(Clone, Copy)]
struct Slot {
    earliest: u64,
    first: u32,
    last: u32,
}

const EMPTY: Slot = Slot {
    earliest: 0,
    first: NONE,
    last: NONE,
};

/// Apart from the event itself, so that filing anew touches little memory.
#[derive(Clone, Copy)]
struct Link {
    at: u64,
    /// In the list of its slot, or of the free places.
    next: u32,
}

pub struct EventQueue<E> {
    slots: Box<[[Slot; SLOTS]; LEVELS]>,
    /// By level, a bit for each slot that has events.
    occupied: [u64; LEVELS],
    /// A bit for each level that has.
    levels: u32,
    links: Vec<Link>,
    /// Each at the place of its link.
    events: Vec<Option<E>>,
    free: u32,
    len: usize,
    now: u64,
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        EventQueue {
            slots: Box::new([[EMPTY; SLOTS]; LEVELS]),
            occupied: [0; LEVELS],
            levels: 0,
            links: Vec::new(),
            events: Vec::new(),
            free: NONE,
            len: 0,
            now: 0,
        }
    }
}

impl<E> EventQueue<E> {
    pub const EVENTS_MAX: usize = EVENTS_MAX;

    pub fn push(&mut self, at: Instant, event: E) {
        let (now, nanos) = (Instant::from_nanos(self.now), at.as_nanos());
        assert!(at >= now, "an event for {at:?}, and it is {now:?}");
        assert!(self.len < EVENTS_MAX, "{} events wait", self.len);
        let place = match self.free {
            NONE => {
                self.links.push(Link { at: 0, next: NONE });
                self.events.push(Some(event));
                self.links.len() as u32 - 1
            }
            place => {
                self.free = self.links[place as usize].next;
                self.events[place as usize] = Some(event);
                place
            }
        };
        self.file(place, nanos);
        self.len += 1;
    }

    /// Puts it at the end of the slot of its time.
    #[inline]
    fn file(&mut self, place: u32, at: u64) {
        let level = ((at ^ self.now) | 1).ilog2() / BITS;
        let digit = (at >> (level * BITS)) as usize % SLOTS;
        let (level, bit) = (level as usize, 1 << digit);
        self.links[place as usize] = Link { at, next: NONE };
        let slot = &mut self.slots[level][digit];
        if self.occupied[level] & bit == 0 {
            self.occupied[level] |= bit;
            self.levels |= 1 << level;
            *slot = Slot {
                earliest: at,
                first: place,
                last: place,
            };
        } else {
            self.links[slot.last as usize].next = place;
            slot.last = place;
            slot.earliest = slot.earliest.min(at);
        }
    }

    /// The level and the digit of the slot that has the next event: the lowest level's first, for above
    /// it times differ from now in a greater digit.
    #[inline]
    fn next_slot(&self) -> Option<(usize, usize)> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros() as usize;
        Some((level, self.occupied[level].trailing_zeros() as usize))
    }

    #[inline]
    pub fn next_at(&self) -> Option<Instant> {
        let (level, digit) = self.next_slot()?;
        Some(Instant::from_nanos(self.slots[level][digit].earliest))
    }

    pub fn pop(&mut self) -> Option<(Instant, E)> {
        let (level, digit) = self.next_slot()?;
        let Slot {
            earliest, first, ..
        } = self.slots[level][digit];
        let second = self.links[first as usize].next;
        self.now = earliest;
        let taken = if level == 0 && second != NONE {
            self.slots[level][digit].first = second;
            first
        } else {
            self.occupied[level] &= self.occupied[level] - 1;
            if self.occupied[level] == 0 {
                self.levels &= self.levels - 1;
            }
            match second {
                NONE => first,
                _ => self.take_earliest(first),
            }
        };
        self.links[taken as usize].next = self.free;
        self.free = taken;
        self.len -= 1;
        let event = self.events[taken as usize].take().expect("it was filed");
        Some((Instant::from_nanos(earliest), event))
    }

    /// Of a list that begins with `place`, the first that is due now; files the others.
    fn take_earliest(&mut self, mut place: u32) -> u32 {
        let mut taken = NONE;
        while place != NONE {
            let Link { at, next } = self.links[place as usize];
            if taken == NONE && at == self.now {
                taken = place;
            } else {
                self.file(place, at);
            }
            place = next;
        }
        taken
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<E> Queue<E> for EventQueue<E> {
    fn push(&mut self, at: Instant, event: E) {
        EventQueue::push(self, at, event);
    }

    fn pop(&mut self) -> Option<(Instant, E)> {
        EventQueue::pop(self)
    }

    fn next_at(&self) -> Option<Instant> {
        EventQueue::next_at(self)
    }

    fn len(&self) -> usize {
        EventQueue::len(self)
    }
}

/// Not the slots: what is in most of them means nothing.
impl<E> fmt::Debug for EventQueue<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventQueue")
            .field("now", &Instant::from_nanos(self.now))
            .field("len", &self.len)
            .field("next_at", &self.next_at())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn events_come_by_time_and_equals_in_the_order_of_their_coming() {
        let mut queue = EventQueue::default();
        for (at, name) in [(5, "c"), (1, "a"), (5, "d"), (2, "b"), (5, "e")] {
            queue.push(Instant::from_nanos(at), name);
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop())
            .map(|(_, name)| name)
            .collect();
        assert_eq!(order, ["a", "b", "c", "d", "e"]);
    }

    #[test]
    #[should_panic(expected = "and it is")]
    fn nothing_happens_in_the_past() {
        let mut queue = EventQueue::default();
        queue.push(Instant::from_nanos(5), ());
        queue.pop();
        queue.push(Instant::from_nanos(4), ());
    }

    #[test]
    fn the_end_of_time_is_a_time_as_any_other() {
        let mut queue = EventQueue::default();
        for at in [u64::MAX, 0, u64::MAX, u64::MAX - 1] {
            queue.push(Instant::from_nanos(at), at);
        }
        let order: Vec<u64> = std::iter::from_fn(|| queue.pop())
            .map(|(_, at)| at)
            .collect();
        assert_eq!(order, [0, u64::MAX - 1, u64::MAX, u64::MAX]);
    }

    /// A place is taken again as soon as it is free, however far time goes on.
    #[test]
    fn memory_follows_what_waits_at_once_and_not_what_ever_did() {
        let mut queue = EventQueue::default();
        for n in 0..100u64 {
            queue.push(Instant::from_nanos(n * n), n);
        }
        let room = (queue.links.capacity(), queue.events.capacity());
        for n in 0..20_000u64 {
            let (now, _) = queue.pop().expect("a hundred wait");
            let ahead = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (24 + n % 40);
            queue.push(Instant::from_nanos(now.as_nanos() + ahead), n);
        }
        assert_eq!(queue.links.len(), 100);
        assert_eq!((queue.links.capacity(), queue.events.capacity()), room);
    }

    #[derive(Clone, Debug)]
    enum Step {
        /// So many at one time, so far ahead.
        Push {
            ahead: u64,
            events: u8,
        },
        /// For the very time of what was pushed last, if that is not past.
        PushAgain,
        Pop {
            events: u8,
        },
        Empty,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let ahead = prop_oneof![
            Just(0),
            0u64..4,
            0u64..200,
            1_000u64..12_000,
            (0u32..38, any::<u64>()).prop_map(|(bits, n)| n & ((1 << bits) - 1)),
            // What ends with the digit's last.
            (0u32..38).prop_map(|bits| (1 << bits) - 1),
        ];
        let step = prop_oneof![
            8 => (ahead, 1u8..4).prop_map(|(ahead, events)| Step::Push { ahead, events }),
            2 => Just(Step::PushAgain),
            6 => (1u8..5).prop_map(|events| Step::Pop { events }),
            1 => Just(Step::Empty),
        ];
        prop::collection::vec(step, 1..120)
    }

    proptest! {
        #[test]
        fn the_wheel_gives_what_the_heap_gives(steps in steps()) {
            let (mut wheel, mut heap) = (EventQueue::default(), HeapQueue::default());
            let (mut now, mut last, mut number) = (0, 0, 0u32);
            for step in steps {
                let (pushed, popped) = match step {
                    Step::Push { ahead, events } => {
                        last = now + ahead;
                        (events, 0)
                    }
                    Step::PushAgain => {
                        last = last.max(now);
                        (1, 0)
                    }
                    Step::Pop { events } => (0, usize::from(events)),
                    // And once from nothing.
                    Step::Empty => (0, heap.len() + 1),
                };
                for _ in 0..pushed {
                    wheel.push(Instant::from_nanos(last), number);
                    heap.push(Instant::from_nanos(last), number);
                    number += 1;
                }
                for _ in 0..popped {
                    prop_assert_eq!(wheel.next_at(), heap.next_at());
                    let event = wheel.pop();
                    prop_assert_eq!(event, heap.pop());
                    now = event.map_or(now, |(at, _)| at.as_nanos());
                }
                prop_assert_eq!(wheel.next_at(), heap.next_at());
                prop_assert_eq!((wheel.len(), wheel.is_empty()), (heap.len(), heap.is_empty()));
            }
        }
    }
}
