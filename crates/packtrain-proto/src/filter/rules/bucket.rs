//! The token buckets of limits, in whatever time who asks has: as the program in the driver keeps them in its maps.
//!
//! A bucket is the time at which it is full again if nothing takes from it (the generic cell rate algorithm: ITU-T I.371,
//! annex A), in sixteenths of a nanosecond. One that nobody remembers is full. One that is full gives also more than it holds,
//! and is in debt then: what others have put together may be longer than any burst.

use std::collections::HashMap;

use super::RULES_MAX;
use super::facts::RuleFacts;
use super::limit::{Limit, Per, Unit};
use crate::time::Instant;
use crate::wire::packet::IpVersion;

/// Sources whose buckets are remembered. The program forgets the one that was seen longest ago, this one first those whose
/// buckets are full.
pub const SOURCES_MAX: usize = 65_536;

const NANOS_PER_SECOND: u128 = 1_000_000_000;
const SIXTEENTHS: u128 = 16;

/// Of all limits of some rules.
#[derive(Clone, Debug, Default)]
pub struct Buckets {
    full_at: HashMap<Bucket, u128>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Bucket {
    /// The place of the rule.
    rule: usize,
    /// Who has it, where each source has its own: an address and its version, `None` of what is not IP.
    source: Option<(Option<IpVersion>, u128)>,
}

impl Buckets {
    /// Whether the limit of the rule at this place has room for a frame, which takes it.
    pub fn give(&mut self, rule: usize, limit: &Limit, facts: &RuleFacts, now: Instant) -> bool {
        let flow = &facts.class.flow;
        let source = match limit.per() {
            Per::Rule => None,
            Per::Source => Some((flow.ip.map(|ip| ip.version), flow.source)),
        };
        let tokens = match limit.unit() {
            Unit::Packets => 1,
            Unit::Bytes => u64::from(facts.class.size),
        };
        let bucket = Bucket { rule, source };
        let now = u128::from(now.as_nanos()) * SIXTEENTHS;
        let full_at = self.full_at.get(&bucket).copied().unwrap_or(0);
        let then = full_at.max(now) + fill_time(tokens, limit);
        if then > now + fill_time(limit.burst(), limit) && full_at > now {
            return false;
        }
        self.full_at.insert(bucket, then);
        if self.full_at.len() > SOURCES_MAX + RULES_MAX {
            self.forget(now);
        }
        true
    }

    /// Those that are full, which changes nothing; and if there are too many others, those that are the fullest.
    fn forget(&mut self, now: u128) {
        self.full_at.retain(|_, full_at| *full_at > now);
        if self.full_at.len() > SOURCES_MAX {
            let mut times: Vec<u128> = self.full_at.values().copied().collect();
            let (_, middle, _) = times.select_nth_unstable(SOURCES_MAX / 2);
            let middle = *middle;
            self.full_at.retain(|_, full_at| *full_at > middle);
        }
    }
}

fn fill_time(tokens: u64, limit: &Limit) -> u128 {
    u128::from(tokens) * NANOS_PER_SECOND * SIXTEENTHS / u128::from(limit.per_second())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::rules::generate::{FrameShape, Network};

    fn from(source: u32) -> RuleFacts {
        let frame = FrameShape {
            network: Network::V4([source, 1]),
            ..FrameShape::default()
        };
        RuleFacts::of(&frame.bytes())
    }

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// How many of so many frames in one moment.
    fn given(buckets: &mut Buckets, limit: &Limit, source: u32, frames: usize, ms: u64) -> usize {
        (0..frames)
            .filter(|_| buckets.give(0, limit, &from(source), at(ms)))
            .count()
    }

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let limit = "10/s burst 4".parse().unwrap();
        let mut buckets = Buckets::default();
        assert_eq!(given(&mut buckets, &limit, 7, 9, 0), 4);
        assert_eq!(given(&mut buckets, &limit, 7, 9, 99), 0);
        assert_eq!(given(&mut buckets, &limit, 7, 9, 100), 1);
        assert_eq!(given(&mut buckets, &limit, 8, 9, 350), 2);
        // It holds no more than a burst, however long nobody comes.
        assert_eq!(given(&mut buckets, &limit, 7, 9, 60_000), 4);
    }

    #[test]
    fn each_source_has_its_own_and_what_is_not_ip_has_one_together() {
        let limit = "1/s burst 3 per source".parse().unwrap();
        let mut buckets = Buckets::default();
        assert_eq!(given(&mut buckets, &limit, 7, 9, 0), 3);
        assert_eq!(given(&mut buckets, &limit, 8, 9, 0), 3);
        let others = |type_| {
            let frame = FrameShape {
                network: Network::Other(type_),
                ..FrameShape::default()
            };
            RuleFacts::of(&frame.bytes())
        };
        let mut given = |type_| buckets.give(0, &limit, &others(type_), at(0));
        assert_eq!(
            [given(0x0806), given(0x0806), given(0x88cc), given(0x88cc)],
            [true, true, true, false]
        );
    }

    #[test]
    fn bytes_are_those_of_the_frame_and_who_gets_none_takes_none() {
        let limit = "1000B/s burst 1514B".parse().unwrap();
        let mut buckets = Buckets::default();
        let sized = |size| {
            let mut facts = from(7);
            facts.class.size = size;
            facts
        };
        let mut give = |size, ms| buckets.give(0, &limit, &sized(size), at(ms));
        assert!(give(1000, 0));
        assert!(!give(600, 0));
        assert!(give(514, 0));
        assert!(!give(1, 0));
        assert!(give(60, 60));
    }

    #[test]
    fn a_full_bucket_gives_more_than_it_holds_and_is_in_debt_then() {
        let limit = "1000B/s burst 1514B".parse().unwrap();
        let mut buckets = Buckets::default();
        let mut facts = from(7);
        facts.class.size = 9000;
        assert!(buckets.give(0, &limit, &facts, at(0)));
        facts.class.size = 60;
        assert!(!buckets.give(0, &limit, &facts, at(7000)));
        assert!(buckets.give(0, &limit, &facts, at(7600)));
    }

    #[test]
    fn rules_do_not_share_a_bucket() {
        let limit = "1/s burst 1".parse().unwrap();
        let mut buckets = Buckets::default();
        assert!(buckets.give(0, &limit, &from(7), at(0)));
        assert!(buckets.give(1, &limit, &from(7), at(0)));
        assert!(!buckets.give(1, &limit, &from(7), at(0)));
    }

    #[test]
    fn however_many_sources_come_only_so_many_are_remembered() {
        let limit: Limit = "1/s burst 2 per source".parse().unwrap();
        let mut buckets = Buckets::default();
        for source in 0..200_000u32 {
            // A thousand a second: two seconds later a bucket is full again.
            let facts = from(source);
            assert!(buckets.give(0, &limit, &facts, at(source.into())));
            assert!(buckets.full_at.len() <= SOURCES_MAX + RULES_MAX + 1);
        }
        // All in one moment: the last are remembered.
        let mut buckets = Buckets::default();
        let slow: Limit = "1/s burst 1 per source".parse().unwrap();
        for source in 0..100_000u64 {
            let at = Instant::from_nanos(source);
            assert!(buckets.give(0, &slow, &from(source as u32), at));
        }
        assert!(buckets.full_at.len() <= SOURCES_MAX + RULES_MAX);
        let last = Instant::from_nanos(100_000);
        assert!(!buckets.give(0, &slow, &from(99_999), last));
    }
}
