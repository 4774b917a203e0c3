//! Whether every frame that has a ticket was read: one takes its ticket a moment before it stands in the queue
//! before `pt0`, and a processor that is taken away from the host in that moment keeps it for milliseconds.
//!
//! Nobody sees such a frame, but both ends of its way are counted: as many were read as have tickets, or some are
//! still to come. Those that are dropped before `pt0` never come. So when some are missing for a while, as many as
//! were missing all the time are taken for dropped; and where more are read than have tickets (the kernel may cut
//! one large frame into several) it is found out as soon as nothing else is missing.

use packtrain_proto::time::{Duration, Instant};

/// So long is no frame on its way into a queue, and so often it is looked for.
const ON_ITS_WAY_MAX: Duration = Duration::from_millis(100);
const LOOKS_MIN: u32 = 4;

#[derive(Debug)]
pub(super) struct Tickets {
    /// Tickets that no frame will be read for, less frames that had none; wraps.
    without_frame: u64,
    missing: Option<Missing>,
}

#[derive(Debug)]
struct Missing {
    since: Instant,
    looks: u32,
    /// At each look so many, or more.
    least: u64,
}

impl Tickets {
    /// At the begin of counting.
    pub(super) fn new(tickets: u64, read: u64) -> Tickets {
        Tickets {
            without_frame: tickets.wrapping_sub(read),
            missing: None,
        }
    }

    /// The ticket of the last one that was read, where they are read in the order of their tickets.
    pub(super) fn last_read(&self, read: u64) -> u64 {
        read.wrapping_add(self.without_frame)
    }

    /// Whether as many were read as are to come, as far as is known. May be asked at any time.
    pub(super) fn none_is_missing(&mut self, tickets: u64, read: u64) -> bool {
        let is_missing = tickets != self.last_read(read);
        if !is_missing {
            // What is missing from now on is others.
            self.missing = None;
        }
        !is_missing
    }

    /// Whether all were read. `tickets`: given so far, asked after `read` frames had been read. Asked only while
    /// nothing waits in a queue before `pt0`.
    pub(super) fn are_read(&mut self, tickets: u64, read: u64, now: Instant) -> bool {
        let ahead = tickets.wrapping_sub(read).wrapping_sub(self.without_frame);
        let Ok(missing) = u64::try_from(ahead.cast_signed()) else {
            // More were read than were to come.
            (self.without_frame, self.missing) = (tickets.wrapping_sub(read), None);
            return true;
        };
        if missing == 0 {
            self.missing = None;
            return true;
        }
        let known = self.missing.get_or_insert(Missing {
            since: now,
            looks: 0,
            least: missing,
        });
        known.looks += 1;
        known.least = known.least.min(missing);
        if known.looks < LOOKS_MIN || now.since(known.since) < ON_ITS_WAY_MAX {
            return false;
        }
        let dropped = known.least;
        self.without_frame = self.without_frame.wrapping_add(dropped);
        self.missing = None;
        missing == dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn a_frame_that_has_its_ticket_and_is_in_no_queue_yet_is_waited_for() {
        let mut tickets = Tickets::new(7, 0);
        assert!(tickets.are_read(7, 0, at(0)));
        assert!(!tickets.are_read(9, 1, at(1)));
        // Another one may overtake it: as many were read then, but not all.
        assert!(!tickets.are_read(10, 2, at(2)));
        assert!(tickets.are_read(10, 3, at(3)));
    }

    #[test]
    fn what_was_missing_all_the_time_was_dropped() {
        let mut tickets = Tickets::new(0, 0);
        // Two are dropped; others pass meanwhile, and are late by one to three.
        for (ms, tickets_now, read) in [(0, 10, 5), (50, 20, 17), (99, 30, 28), (100, 40, 37)] {
            assert!(!tickets.are_read(tickets_now, read, at(ms)), "at {ms} ms");
        }
        assert!(!tickets.are_read(41, 38, at(101)), "one is on its way");
        assert!(tickets.are_read(41, 39, at(102)));
        assert!(!tickets.are_read(42, 39, at(103)), "and counted as before");
    }

    #[test]
    fn those_that_are_missing_now_and_then_are_not_taken_for_one_that_is_all_the_time() {
        let mut tickets = Tickets::new(0, 0);
        for (read, ms) in (0..20).zip((0..).step_by(40)) {
            assert!(!tickets.are_read(read + 1, read, at(ms)), "at {ms} ms");
            assert!(tickets.none_is_missing(read + 1, read + 1));
            assert_eq!(tickets.last_read(read + 1), read + 1);
        }
    }

    #[test]
    fn who_looks_once_in_a_long_while_takes_nothing_for_dropped() {
        let mut tickets = Tickets::new(0, 0);
        for (look, ms) in [0, 500, 1000].into_iter().enumerate() {
            assert!(!tickets.are_read(1, 0, at(ms)), "look {look}");
        }
        assert!(tickets.are_read(1, 0, at(1500)));
    }

    #[test]
    fn frames_without_a_ticket_of_their_own_do_not_stand_for_others() {
        let mut tickets = Tickets::new(0, 0);
        // One large frame became four.
        assert!(tickets.are_read(1, 4, at(0)));
        assert!(!tickets.are_read(2, 4, at(1)));
        assert!(tickets.are_read(2, 5, at(2)));
    }

    #[test]
    fn the_counts_wrap() {
        let mut tickets = Tickets::new(u64::MAX, 3);
        assert!(!tickets.are_read(1, 4, at(0)));
        assert!(tickets.are_read(1, 5, at(1)));
    }

    use proptest::prelude::*;

    proptest! {
        /// Of a model that knows where each frame is: while none is dropped, it is said that all were read exactly
        /// when they were.
        #[test]
        fn nobody_is_told_that_all_were_read_while_one_is_on_its_way(
            steps in proptest::collection::vec((any::<bool>(), 0u64..30), 1..200)
        ) {
            let (mut given, mut read, mut ms) = (0, 0, 0);
            let mut tickets = Tickets::new(0, 0);
            let mut on_its_way_since: Option<u64> = None;
            for (gives, later) in steps {
                // There are moments in which nothing is on its way, as far apart as is said above.
                if on_its_way_since.is_some_and(|since| ms + later - since >= 100) {
                    (read, on_its_way_since) = (given, None);
                    prop_assert!(tickets.are_read(given, read, at(ms)));
                }
                ms += later;
                match (gives, given > read) {
                    (false, true) => read += 1,
                    _ => given += 1,
                }
                on_its_way_since = (given > read).then(|| on_its_way_since.unwrap_or(ms));
                prop_assert_eq!(tickets.are_read(given, read, at(ms)), given == read);
            }
        }
    }
}
