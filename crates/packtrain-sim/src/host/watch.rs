//! What the program at the way out of a link sees of its queue (`direct_watch` of `bpf/direct.bpf.c`): one that was
//! never empty for a while stands, unless so much leaves it that the engine could not carry that.

use packtrain_proto::time::{Duration, Instant};

/// A queue that never was empty for so long stands.
const STANDING: Duration = Duration::from_millis(5);
/// Not looked at for so long, it may have been empty in between.
const UNSEEN: Duration = Duration::from_millis(100);
/// 2 Gbit/s.
const ENGINE_BYTES_PER_US: u64 = 250;

#[derive(Clone, Copy, Debug, Default)]
pub struct Watch {
    standing_since: Option<Instant>,
    standing_bytes: u64,
    seen_at: Instant,
}

impl Watch {
    /// A direct frame of so many bytes comes to a queue in which others stand, or none. Whether the link is to be
    /// closed to them.
    pub fn frame(&mut self, len: usize, stands: bool, now: Instant) -> bool {
        if !stands {
            self.standing_since = None;
            return false;
        }
        let seen_lately = now.since(self.seen_at) <= UNSEEN;
        self.seen_at = now;
        let Some(since) = self.standing_since.filter(|_| seen_lately) else {
            (self.standing_since, self.standing_bytes) = (Some(now), 0);
            return false;
        };
        self.standing_bytes += len as u64;
        let standing = now.since(since);
        if standing < STANDING {
            return false;
        }
        self.standing_since = None;
        let engine_bytes = standing.as_micros() as u64 * ENGINE_BYTES_PER_US;
        self.standing_bytes < engine_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When it closes, if a frame of so many bytes comes each 100 us and the queue is empty now and then.
    fn closes_at_us(len: usize, is_empty_at: impl Fn(u64) -> bool) -> Option<u64> {
        let mut watch = Watch::default();
        let at = |us| Instant::ZERO + Duration::from_micros(us);
        let mut frames = (0..20_000).step_by(100);
        frames.find(|&us| watch.frame(len, !is_empty_at(us), at(us)))
    }

    #[test]
    fn a_queue_stands_that_is_not_seen_empty_for_5_ms() {
        assert_eq!(closes_at_us(1500, |_| false), Some(5_000));
        assert_eq!(closes_at_us(1500, |us| us == 3_000), Some(8_100));
        assert_eq!(closes_at_us(1500, |us| us % 4_000 == 0), None);
    }

    #[test]
    fn what_drains_faster_than_the_engine_could_is_left_alone() {
        assert_eq!(closes_at_us(25_000, |_| false), None);
        assert_eq!(closes_at_us(24_900, |_| false), Some(5_000));
    }

    #[test]
    fn who_was_not_looked_at_for_long_begins_anew() {
        let mut watch = Watch::default();
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        assert!(!watch.frame(100, true, at(0)));
        assert!(!watch.frame(100, true, at(101)));
        assert!(watch.frame(100, true, at(107)));
    }
}
