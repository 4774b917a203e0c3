//! What stood in the bottleneck's queue, by what came to it and what left it.

use super::trace::{Segment, Trace};

/// The bottleneck as it is set.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// From the moment on which a frame has left the queue until it is seen behind it, ns.
    pub delay: u64,
}

/// Bytes that stood there from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    pub at: u64,
    pub bytes: u64,
}

/// The queue over time: a level for each frame that came, in the order of their times.
///
/// A queue keeps the order, so what passed is found again among what entered, one after the other, and what
/// is left out between two of them was dropped. The frame that is being sent counts until it has left, as in the
/// emulator's own bound.
#[derive(Clone, Debug, Default)]
pub struct Occupancy {
    pub levels: Vec<Level>,
    /// What entered and did not pass, by the time at which it came.
    pub dropped: Vec<Segment>,
}

impl Occupancy {
    pub fn of(trace: &Trace, line: Line) -> Occupancy {
        let mut occupancy = Occupancy::default();
        let mut entered = trace.entered.iter();
        // When each that has been let in leaves, and with how many bytes.
        let mut stays: Vec<(u64, u64, u64)> = Vec::new();
        for passed in &trace.passed {
            let leaves = passed.at.saturating_sub(line.delay);
            for came in entered.by_ref() {
                let is_it = (came.flow, came.sequence, came.payload)
                    == (passed.flow, passed.sequence, passed.payload);
                if is_it {
                    stays.push((came.at, leaves, u64::from(came.frame_bytes)));
                    break;
                }
                occupancy.dropped.push(*came);
            }
        }
        // Behind the last that passed there is nothing to tell it by but that it was seen to be dropped.
        let last = stays.last().map_or(0, |&(came, ..)| came);
        let dropped_later = trace.dropped.iter().filter(|dropped| dropped.at > last);
        occupancy.dropped.extend(dropped_later);
        let mut gone = 0;
        let mut bytes = 0;
        for &(came, _, frame_bytes) in &stays {
            while stays[gone].1 <= came {
                bytes -= stays[gone].2;
                gone += 1;
            }
            bytes += frame_bytes;
            occupancy.levels.push(Level { at: came, bytes });
        }
        occupancy
    }

    /// The most that stood there until then.
    pub fn peak_until(&self, until: u64) -> u64 {
        let levels = self.levels.iter().take_while(|level| level.at < until);
        levels.map(|level| level.bytes).max().unwrap_or(0)
    }

    /// The mean of what stood there with each that came from then on.
    pub fn mean_from(&self, from: u64) -> f64 {
        let levels = self.levels.iter().skip_while(|level| level.at < from);
        let (mut bytes, mut count) = (0, 0u32);
        for level in levels {
            bytes += level.bytes;
            count += 1;
        }
        bytes as f64 / f64::from(count.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::super::trace::tests::full;
    use super::*;

    const LINE: Line = Line { delay: 1_000_000 };

    /// A frame comes each 12 µs and takes 20 to leave; those of `dropped` find no room.
    fn trace(frames: u64, dropped: &[u64]) -> Trace {
        let mut trace = Trace::default();
        let mut free = 0.0;
        for number in 0..frames {
            let at = 12.0 * number as f64;
            trace.entered.push(full(number, at));
            if dropped.contains(&number) {
                trace.dropped.push(full(number, at));
                continue;
            }
            free = f64::max(free, at) + 20.0;
            trace.passed.push(full(number, free + 1000.0));
        }
        trace
    }

    #[test]
    fn what_comes_faster_than_it_leaves_stands_there() {
        let occupancy = Occupancy::of(&trace(6, &[]), LINE);
        let frames: Vec<u64> = occupancy.levels.iter().map(|l| l.bytes / 1514).collect();
        // At 0, 12, 24, 36, 48, 60 µs; they leave at 20, 40, 60, and what leaves then is gone then.
        assert_eq!(frames, [1, 2, 2, 3, 3, 3]);
        assert!(occupancy.dropped.is_empty());
        assert_eq!(occupancy.peak_until(36_000), 2 * 1514);
        assert_eq!(occupancy.peak_until(u64::MAX), 3 * 1514);
        assert_eq!(
            occupancy.mean_from(24_000),
            (2.0 + 3.0 * 3.0) / 4.0 * 1514.0
        );
    }

    #[test]
    fn what_entered_and_did_not_pass_was_dropped_also_at_the_end() {
        let occupancy = Occupancy::of(&trace(8, &[2, 3, 5, 7]), LINE);
        let dropped: Vec<u32> = occupancy
            .dropped
            .iter()
            .map(|s| s.sequence / 1448)
            .collect();
        assert_eq!(dropped, [2, 3, 5, 7]);
        let frames: Vec<u64> = occupancy.levels.iter().map(|l| l.bytes / 1514).collect();
        // At 0, 12, 48 and 72 µs; they leave at 20, 40, 68 and 92.
        assert_eq!(frames, [1, 2, 1, 1]);
    }

    #[test]
    fn one_that_is_sent_again_is_not_taken_for_the_one_that_was_dropped() {
        let mut trace = trace(4, &[1]);
        trace.entered.push(full(1, 100.0));
        trace.passed.push(full(1, 1120.0));
        let occupancy = Occupancy::of(&trace, LINE);
        assert_eq!(occupancy.dropped, [full(1, 12.0)]);
        assert_eq!(occupancy.levels.last().unwrap().bytes, 1514);
    }

    #[test]
    fn a_queue_to_which_nothing_came_was_empty() {
        let occupancy = Occupancy::of(&Trace::default(), LINE);
        assert_eq!(occupancy.peak_until(u64::MAX), 0);
        assert_eq!(occupancy.mean_from(0), 0.0);
    }
}
