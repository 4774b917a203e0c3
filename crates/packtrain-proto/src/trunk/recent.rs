//! A share of what happened lately: so many of so many, over the last five to ten seconds.
//!
//! Two periods, of which the older goes as a whole: an addition for each event, and no list.

use crate::time::{Duration, Instant};

pub const PERIOD: Duration = Duration::from_secs(5);

/// Of one path, in one direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recent {
    current: Sums,
    previous: Sums,
    since: Instant,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    /// May be below zero: what was counted in the period before is taken back in this one.
    part: i64,
    all: u64,
}

impl Recent {
    /// `part` of `all` more.
    #[inline]
    pub fn add(&mut self, part: i64, all: u64, now: Instant) {
        if now.since(self.since) >= PERIOD {
            self.turn(now);
        }
        self.current.part += part;
        self.current.all += all;
    }

    fn turn(&mut self, now: Instant) {
        let is_next = now.since(self.since) < PERIOD * 2;
        (self.previous, self.since) = match is_next {
            true => (self.current, self.since + PERIOD),
            false => (Sums::default(), now),
        };
        self.current = Sums::default();
    }

    /// What was added lately, and of how many; `None`: of none.
    pub fn get(mut self, now: Instant) -> Option<(u64, u64)> {
        self.add(0, 0, now);
        let part = self.current.part + self.previous.part;
        let all = self.current.all + self.previous.all;
        (all > 0).then_some((part.max(0) as u64, all))
    }

    /// Millionths.
    pub fn ppm(self, now: Instant) -> Option<u32> {
        let (part, all) = self.get(now)?;
        let ppm = u128::from(part) * 1_000_000 / u128::from(all);
        Some(ppm.min(1_000_000) as u32)
    }

    /// Of each, on average.
    pub fn mean(self, now: Instant) -> Option<u64> {
        self.get(now).map(|(sum, of)| sum / of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn it_is_a_share_of_what_was_added_and_nothing_is_known_of_nothing() {
        let mut recent = Recent::default();
        assert_eq!(recent.ppm(at(100)), None);
        recent.add(0, 999, at(6000));
        recent.add(1, 1, at(6001));
        assert_eq!(recent.get(at(6002)), Some((1, 1000)));
        assert_eq!(
            (recent.ppm(at(6002)), recent.mean(at(6002))),
            (Some(1000), Some(0))
        );
        assert_eq!(recent.ppm(at(6001 + 10_000)), None, "it is long past");
    }

    #[test]
    fn what_is_taken_back_is_taken_back_and_there_is_no_less_than_nothing() {
        let mut recent = Recent::default();
        recent.add(2, 10, at(5000));
        recent.add(-2, 0, at(11_000));
        assert_eq!(recent.get(at(11_000)), Some((0, 10)));
        recent.add(-2, 5, at(11_000));
        assert_eq!(recent.get(at(11_000)), Some((0, 15)));
    }

    proptest! {
        /// Against the list of all: nothing younger than a period is missing, nothing older than two is in it.
        #[test]
        fn it_covers_one_to_two_periods(
            steps in prop::collection::vec((0u64..2500, 0i64..3), 1..200), after in 0u64..12_000
        ) {
            let mut recent = Recent::default();
            let mut list = Vec::new();
            let mut millis = 5000;
            for (step, part) in steps {
                millis += step;
                recent.add(part, 3, at(millis));
                list.push((millis, part as u64));
            }
            let now = millis + after;
            let (part, all) = recent.get(at(now)).unwrap_or_default();
            let within = |age: u64| {
                let young = list.iter().filter(|(at, _)| now - at < age);
                young.fold((0, 0), |(part, all), (_, more)| (part + more, all + 3))
            };
            let (least, most) = (within(5000), within(10_000));
            prop_assert!(least.0 <= part && part <= most.0, "{} in {:?} to {:?}", part, least, most);
            prop_assert!(least.1 <= all && all <= most.1, "{} in {:?} to {:?}", all, least, most);
        }
    }
}
