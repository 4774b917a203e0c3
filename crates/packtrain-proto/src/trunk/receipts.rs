//! What arrived over one link of a peer, and when to say so.
//!
//! An acknowledgement rides on whatever train goes the other way; it goes alone when none does
//! within [`ACK_DELAY_MAX`], after [`ACK_TRAINS_MAX`] trains, or when the sender asks.

use crate::time::{Duration, Instant};
use crate::trunk::recent::Recent;
use crate::wire::sequence::Sequence;
use crate::wire::train::Ack;

pub const ACK_DELAY_MAX: Duration = Duration::from_millis(1);
pub const ACK_TRAINS_MAX: u32 = 16;
/// Further from the newest than this, a sequence is believed when the next one follows it
/// (RFC 3550 appendix A.1 does the same): one forged train must not lead what we acknowledge astray.
const JUMP: i32 = 4096;

/// Link sequences received, the last 65 of them by name.
#[derive(Clone, Debug)]
pub struct Receipts {
    /// The peer's number of its link.
    pub link: u8,
    newest: Option<Sequence>,
    newest_at: Instant,
    bitmap: u64,
    /// What would confirm the last jump.
    jumped_to: Option<Sequence>,
    unacknowledged: u32,
    /// When the first of those arrived.
    since: Instant,
    asked: bool,
    /// Of the sequences up to the newest that came lately, those that are missing.
    loss: Recent,
    /// How much later than newer trains by other links these came, nanoseconds, of how many.
    lateness: Recent,
}

impl Receipts {
    pub fn new(link: u8) -> Receipts {
        Receipts {
            link,
            newest: None,
            newest_at: Instant::ZERO,
            bitmap: 0,
            jumped_to: None,
            unacknowledged: 0,
            since: Instant::ZERO,
            asked: false,
            loss: Recent::default(),
            lateness: Recent::default(),
        }
    }

    pub fn on_train(&mut self, sequence: Sequence, ack_now: bool, now: Instant) {
        let far = |newest: Sequence| !(-JUMP..JUMP).contains(&sequence.distance_from(newest));
        if self.newest.is_some_and(far) {
            if self.jumped_to != Some(sequence) {
                self.jumped_to = Some(sequence.next());
                return;
            }
            self.newest = None;
        }
        self.jumped_to = None;
        match self.newest {
            Some(newest) if !sequence.is_newer_than(newest) => {
                let behind = newest.distance_from(sequence);
                if (1..=64).contains(&behind) {
                    let bit = 1 << (behind - 1);
                    // It counted as missing until now.
                    self.loss.add(-i64::from(self.bitmap & bit == 0), 0, now);
                    self.bitmap |= bit;
                }
            }
            newest => {
                let ahead = newest
                    .map_or(65, |n| sequence.distance_from(n))
                    .unsigned_abs();
                // The old newest becomes one of the older ones.
                self.bitmap = match ahead {
                    1..=63 => self.bitmap << ahead | 1 << (ahead - 1),
                    64 => 1 << 63,
                    _ => 0,
                };
                let passed = newest.map_or(0, |_| i64::from(ahead) - 1);
                self.loss.add(passed, 1 + passed as u64, now);
                self.newest = Some(sequence);
                self.newest_at = now;
            }
        }
        if self.unacknowledged == 0 {
            self.since = now;
        }
        self.unacknowledged += 1;
        self.asked |= ack_now;
    }

    /// What the sender says is the newest that it has sent on this link. Ours is far ahead of it
    /// only when a train was forged, and acknowledgements of that are worth nothing.
    pub fn on_newest_sent(&mut self, newest: Sequence) {
        if self.newest.is_some_and(|n| n.distance_from(newest) > 64) {
            self.newest = Some(newest);
            self.bitmap = 0;
        }
    }

    /// A train has come by this link so much later than the first newer one by another; zero: none had come.
    pub fn on_later(&mut self, later: Duration, now: Instant) {
        let nanos = i64::try_from(later.as_nanos()).unwrap_or(i64::MAX);
        self.lateness.add(nanos, 1, now);
    }

    /// Millionths of the trains of the last seconds that did not come; `None`: none came.
    pub fn loss_ppm(&self, now: Instant) -> Option<u32> {
        self.loss.ppm(now)
    }

    /// How much later than the first newer one by another link a train came, on average; `None`: none came.
    pub fn later(&self, now: Instant) -> Option<Duration> {
        self.lateness.mean(now).map(Duration::from_nanos)
    }

    pub fn has_news(&self) -> bool {
        self.unacknowledged > 0
    }

    /// When an acknowledgement is to go alone at the latest.
    pub fn due(&self) -> Option<Instant> {
        match self.unacknowledged {
            0 => None,
            n if n >= ACK_TRAINS_MAX || self.asked => Some(Instant::ZERO),
            _ => Some(self.since + ACK_DELAY_MAX),
        }
    }

    /// The acknowledgement was not sent after all: it is owed at once.
    pub fn take_back(&mut self) {
        if self.newest.is_some() {
            self.unacknowledged = self.unacknowledged.max(1);
            self.asked = true;
        }
    }

    /// The acknowledgement to send now; what it says counts as said.
    pub fn take(&mut self, incarnation: u16, now: Instant) -> Option<Ack> {
        let newest = self.newest?;
        self.unacknowledged = 0;
        self.asked = false;
        let delay = now.since(self.newest_at).as_nanos();
        Some(Ack {
            link: self.link,
            incarnation,
            delay_nanos: u32::try_from(delay).unwrap_or(u32::MAX),
            newest,
            bitmap: self.bitmap,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    proptest! {
        #[test]
        fn the_bitmap_says_what_a_set_of_all_arrivals_says(
            start in any::<u32>(),
            steps in proptest::collection::vec(-70i32..80, 1..200)
        ) {
            let mut receipts = Receipts::new(0);
            let mut seen = HashSet::new();
            let mut newest = Sequence(start);
            let first = newest;
            let mut came = HashSet::from([first]);
            receipts.on_train(newest, false, Instant::ZERO);
            seen.insert(newest);
            for step in steps {
                let sequence = Sequence(newest.0.wrapping_add_signed(step));
                receipts.on_train(sequence, false, Instant::ZERO);
                seen.insert(sequence);
                if sequence.is_newer_than(newest) {
                    newest = sequence;
                }
                // What comes later than the bitmap goes counts as lost still.
                if newest.distance_from(sequence) <= 64 {
                    came.insert(sequence);
                }
                let all = newest.distance_from(first) as u64 + 1;
                let lost = all.saturating_sub(came.len() as u64);
                let ppm = u64::from(receipts.loss_ppm(Instant::ZERO).unwrap());
                prop_assert_eq!(ppm, lost * 1_000_000 / all);
                let ack = receipts.clone().take(0, Instant::ZERO).unwrap();
                prop_assert_eq!(ack.newest, newest);
                for i in 0..64 {
                    prop_assert_eq!(
                        ack.bitmap >> i & 1 == 1,
                        seen.contains(&newest.minus(1 + i)),
                        "{} before {:?}", 1 + i, newest
                    );
                }
            }
        }
    }

    #[test]
    fn what_comes_late_is_not_lost_and_what_comes_twice_makes_up_for_nothing() {
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        let mut receipts = Receipts::new(0);
        let ppm = |receipts: &mut Receipts, sequence: u32, secs| {
            receipts.on_train(Sequence(sequence), false, at(secs));
            receipts.loss_ppm(at(secs)).unwrap()
        };
        assert_eq!(ppm(&mut receipts, 1, 10), 0);
        assert_eq!(ppm(&mut receipts, 4, 10), 500_000);
        assert_eq!(ppm(&mut receipts, 4, 10), 500_000);
        assert_eq!(ppm(&mut receipts, 2, 10), 250_000);
        assert_eq!(ppm(&mut receipts, 2, 10), 250_000);
        assert_eq!(ppm(&mut receipts, 3, 12), 0);
        assert_eq!(receipts.loss_ppm(at(30)), None);
    }

    #[test]
    fn how_much_later_trains_come_is_the_mean_of_all_that_came_lately() {
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        let mut receipts = Receipts::new(0);
        assert_eq!(receipts.later(at(10)), None);
        for millis in [0, 20, 40, 20] {
            receipts.on_later(Duration::from_millis(millis), at(10));
        }
        assert_eq!(receipts.later(at(11)), Some(Duration::from_millis(20)));
        assert_eq!(receipts.later(at(31)), None);
    }

    #[test]
    fn a_jump_is_believed_when_the_next_one_follows() {
        let mut receipts = Receipts::new(0);
        let mut newest = |sequence: u32| {
            receipts.on_train(Sequence(sequence), false, Instant::ZERO);
            receipts.take(0, Instant::ZERO).unwrap().newest.0
        };
        assert_eq!(newest(1), 1);
        assert_eq!(newest(1_000_000), 1);
        assert_eq!(newest(2), 2);
        assert_eq!(newest(1_000_001), 2);
        assert_eq!(newest(1_000_002), 1_000_002);
        assert_eq!(newest(3), 1_000_002);
        assert_eq!(newest(4), 4);
    }

    #[test]
    fn it_goes_alone_after_a_millisecond_sixteen_trains_or_when_asked() {
        let at = |micros| Instant::ZERO + Duration::from_micros(micros);
        let mut receipts = Receipts::new(0);
        assert_eq!(receipts.due(), None);
        receipts.on_train(Sequence(1), false, at(10));
        receipts.on_train(Sequence(2), false, at(500));
        assert_eq!(receipts.due(), Some(at(1010)));
        receipts.on_train(Sequence(3), true, at(600));
        assert_eq!(receipts.due(), Some(Instant::ZERO));
        assert_eq!(receipts.take(0, at(700)).unwrap().delay_nanos, 100_000);
        assert_eq!(receipts.due(), None);
        for i in 4..20 {
            assert_ne!(receipts.due(), Some(Instant::ZERO));
            receipts.on_train(Sequence(i), false, at(800));
        }
        assert_eq!(receipts.due(), Some(Instant::ZERO));
    }
}
