//! What gaps between segments say of T, and which interval is to be looked at next.
//!
//! An interval holds where nine gaps of ten are off by no more than half of it. Half is what the kernel makes up for: behind a segment that was
//! late the next one comes sooner, but never by more than half an interval. Beyond that two segments are
//! one cluster, or have lost the place in the round that was theirs.
//!
//! T is longer than every interval that does not hold, and holds itself, as does the next longer one: one interval that
//! holds by good luck is no T.

use std::time::Duration;

/// That are looked at, each twice as long as the one before, about.
pub const INTERVALS: [Duration; 10] = [
    Duration::from_micros(10),
    Duration::from_micros(20),
    Duration::from_micros(50),
    Duration::from_micros(100),
    Duration::from_micros(200),
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_millis(2),
    Duration::from_millis(5),
    LONGEST,
];
const LONGEST: Duration = Duration::from_millis(10);

/// By how much gaps of an interval were off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tried {
    pub interval: Duration,
    pub gaps: usize,
    pub off_p50: Duration,
    pub off_p90: Duration,
}

impl Tried {
    pub fn new(interval: Duration, gaps: &[Duration]) -> Tried {
        let mut off: Vec<Duration> = gaps.iter().map(|gap| gap.abs_diff(interval)).collect();
        off.sort_unstable();
        // The least that so many of ten do not exceed.
        let of_ten = |share: usize| {
            let place = (off.len() * share).div_ceil(10).max(1) - 1;
            off.get(place).copied().unwrap_or(Duration::MAX)
        };
        Tried {
            interval,
            gaps: gaps.len(),
            off_p50: of_ten(5),
            off_p90: of_ten(9),
        }
    }

    pub fn holds(&self) -> bool {
        self.off_p90 <= self.interval / 2
    }
}

/// What a machine can space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The shortest interval that timers hold; the longest that there is, where none is.
    pub timer: Tried,
    /// T: as long, and no shorter than was asked for.
    pub used: Tried,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Try(Duration),
    Found(Found),
}

/// What these say, each interval tried once at most; T is to be no shorter than `least`.
pub fn next(tried: &[Tried], least: Duration) -> Next {
    let of = |interval: Duration| tried.iter().find(|it| it.interval == interval);
    let failed = tried.iter().filter(|it| !it.holds());
    let failed = failed.map(|it| it.interval).max().unwrap_or_default();
    let mut longer = INTERVALS.into_iter().filter(|it| *it > failed);
    let Some(timer) = longer.next() else {
        let longest = *of(LONGEST).expect("it has failed");
        return Next::Found(Found {
            timer: longest,
            used: longest,
        });
    };
    let used = match INTERVALS.into_iter().find(|it| *it >= least) {
        Some(least) => timer.max(least),
        None => LONGEST,
    };
    for interval in [timer, longer.next().unwrap_or(timer), used] {
        if of(interval).is_none() {
            return Next::Try(interval);
        }
    }
    let of = |interval| *of(interval).expect("it was tried");
    Next::Found(Found {
        timer: of(timer),
        used: of(used),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    fn tried(interval: Duration, holds: bool) -> Tried {
        let off = if holds { us(1) } else { interval };
        Tried::new(interval, &[interval + off; 10])
    }

    /// Of a machine where these hold: what was tried, in that order, and what was found.
    fn search(least: Duration, holds: impl Fn(Duration) -> bool) -> (Vec<Tried>, Found) {
        let mut all = Vec::new();
        loop {
            match next(&all, least) {
                Next::Try(interval) => all.push(tried(interval, holds(interval))),
                Next::Found(found) => return (all, found),
            }
        }
    }

    #[test]
    fn gaps_hold_where_nine_of_ten_are_off_by_half_an_interval_at_most() {
        let exact = [us(100); 40];
        let of = |gaps: &[Duration]| Tried::new(us(100), gaps);
        assert!(of(&exact).holds());
        assert_eq!(of(&exact).off_p90, us(0));
        assert!(of(&[us(150); 40]).holds() && of(&[us(50); 40]).holds());
        assert!(!of(&[us(151); 40]).holds() && !of(&[us(49); 40]).holds());
        // Pairs are a rate that is kept, and no spacing.
        let pairs: Vec<Duration> = (0..40).map(|i| us(200 * (i % 2))).collect();
        assert!(!of(&pairs).holds());
        let mut some_late = exact;
        some_late[..4].fill(us(5000));
        assert!(of(&some_late).holds());
        assert_eq!(of(&some_late).off_p50, us(0));
        some_late[4] = us(5000);
        assert!(!of(&some_late).holds());
        assert!(!of(&[]).holds());
    }

    #[test]
    fn the_search_begins_with_the_shortest_and_ends_where_two_hold_and_t_does() {
        let intervals = |of: &[Tried]| of.iter().map(|it| it.interval).collect::<Vec<_>>();
        let (all, found) = search(us(1000), |it| it >= us(20));
        assert_eq!(intervals(&all), [us(10), us(20), us(50), us(1000)]);
        assert_eq!(
            (found.timer.interval, found.used.interval),
            (us(20), us(1000))
        );
        // 20 µs by good luck.
        let (all, found) = search(us(10), |it| it == us(20) || it >= us(100));
        assert_eq!(intervals(&all), [10, 20, 50, 100, 200].map(us));
        assert_eq!(
            (found.timer.interval, found.used.interval),
            (us(100), us(100))
        );
        // What is wanted does not hold, so what is shorter does not count.
        let (_, found) = search(us(1000), |it| it != us(1000));
        assert_eq!(
            (found.timer.interval, found.used.interval),
            (us(2000), us(2000))
        );
    }

    #[test]
    fn where_nothing_holds_t_is_the_longest_and_says_so() {
        let (all, found) = search(us(1000), |_| false);
        assert_eq!(all.len(), INTERVALS.len());
        assert_eq!(found.used.interval, LONGEST);
        assert!(!found.used.holds());
        // Only the last.
        let (_, found) = search(us(1000), |it| it == LONGEST);
        assert_eq!(found.timer.interval, LONGEST);
        assert!(found.timer.holds());
    }

    proptest! {
        /// Whatever holds, T does, and nothing that was seen to fail is as long.
        #[test]
        fn t_is_longer_than_all_that_fails(holds: [bool; 10], least in 0u64..20_000) {
            let at = |interval| INTERVALS.iter().position(|it| *it == interval).unwrap();
            let (all, found) = search(us(least), |it| holds[at(it)]);
            prop_assert!(all.len() <= INTERVALS.len());
            prop_assert!(found.used.interval >= found.timer.interval);
            prop_assert!(found.used.interval >= us(least).min(LONGEST));
            for it in all.iter().filter(|it| !it.holds()) {
                prop_assert!(it.interval < found.timer.interval || !found.timer.holds());
            }
            if !found.timer.holds() {
                prop_assert_eq!(found.timer.interval, LONGEST);
                prop_assert!(!holds[at(LONGEST)]);
            }
        }
    }
}
