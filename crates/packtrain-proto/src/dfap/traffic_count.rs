//! Whether there is traffic enough for waits to pay: section 2.3 of the paper, the *Traffic Count*.
//!
//! Packets of the whole host are counted over intervals of random length, 1 to 100 ticks. After each fifteen of
//! them the average is taken anew: packets a tick. Our reading, because the paper compares a count with a rate:
//! waits are on exactly while the last interval's count is more than the average times its ticks, and more than
//! ten; and off until there is an average.

use crate::random::Random;
use crate::time::{Duration, Instant};

/// Intervals of which the average is taken.
const INTERVALS: u32 = 15;
/// The longest interval.
const TICKS_MAX: u64 = 100;
/// Fewer packets in an interval are light traffic, whatever the average.
const PACKETS_MIN: u64 = 10;

/// Packets that went out in so many ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    packets: u64,
    ticks: u64,
}

impl Count {
    /// Whether it is more than that average would have brought, and more than light traffic.
    fn beats(self, average: Count) -> bool {
        let here = u128::from(self.packets) * u128::from(average.ticks);
        let there = u128::from(average.packets) * u128::from(self.ticks);
        here > there && self.packets > PACKETS_MIN
    }
}

#[derive(Debug)]
pub struct TrafficCount {
    tick: Duration,
    random: Random,
    /// The interval that is under way, and when it ends.
    current: Count,
    ends_at: Instant,
    /// Of the fifteen that are under way: those that are over, and how many these are.
    recent: Count,
    intervals: u32,
    average: Option<Count>,
    is_on: bool,
}

impl TrafficCount {
    pub fn new(tick: Duration, seed: u64, now: Instant) -> TrafficCount {
        let mut count = TrafficCount {
            tick,
            random: Random::new(seed ^ 0x7472_6166_6669_6363),
            current: Count::default(),
            ends_at: now,
            recent: Count::default(),
            intervals: 0,
            average: None,
            is_on: false,
        };
        count.begin_interval();
        count
    }

    /// Behind the one before, however late we look.
    fn begin_interval(&mut self) {
        let ticks = 1 + self.random.up_to(TICKS_MAX - 1);
        self.current = Count { packets: 0, ticks };
        self.ends_at += self.tick * ticks as u32;
    }

    /// A packet goes out. Time has passed up to now ([`TrafficCount::handle_timeout`]).
    pub fn on_packet(&mut self) {
        self.current.packets += 1;
    }

    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Packets a second, of the last fifteen intervals that are over.
    pub fn average_per_second(&self) -> Option<f64> {
        let average = self.average?;
        let seconds = self.tick.as_secs_f64() * average.ticks as f64;
        Some(average.packets as f64 / seconds)
    }

    /// When it may be another.
    pub fn poll_timeout(&self) -> Instant {
        self.ends_at
    }

    /// Ends the intervals that are over. Says whether it was switched on or off by that.
    pub fn handle_timeout(&mut self, now: Instant) -> bool {
        let before = self.is_on;
        while self.ends_at <= now {
            self.end_interval();
        }
        self.is_on != before
    }

    fn end_interval(&mut self) {
        self.recent.packets += self.current.packets;
        self.recent.ticks += self.current.ticks;
        self.intervals += 1;
        if self.intervals == INTERVALS {
            self.average = Some(std::mem::take(&mut self.recent));
            self.intervals = 0;
        }
        self.is_on = self
            .average
            .is_some_and(|average| self.current.beats(average));
        self.begin_interval();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::{Config, TestRunner};

    const TICK: Duration = Duration::from_millis(10);

    fn at(ticks: u64) -> Instant {
        Instant::ZERO + TICK * ticks as u32
    }

    /// The reading, word by word, of packets that went out at these ticks, with intervals of these lengths.
    fn by_the_text(packets: &[u64], lengths: &[u64]) -> Vec<bool> {
        let mut begin = 0;
        let mut counts = Vec::new();
        for &length in lengths {
            let within = packets
                .iter()
                .filter(|&&at| (begin..begin + length).contains(&at));
            counts.push(within.count() as u64);
            begin += length;
        }
        let on = |last: usize| {
            let whole = (last + 1) / 15 * 15;
            if whole == 0 {
                return false;
            }
            let packets: u64 = counts[whole - 15..whole].iter().sum();
            let ticks: u64 = lengths[whole - 15..whole].iter().sum();
            // More than the average, packets by ticks, times these ticks; as a fraction, for it may be just as many.
            counts[last] * ticks > packets * lengths[last] && counts[last] > 10
        };
        (0..lengths.len()).map(on).collect()
    }

    /// The lengths that are drawn, seen from outside.
    fn lengths(seed: u64, intervals: usize) -> Vec<u64> {
        let mut count = TrafficCount::new(TICK, seed, Instant::ZERO);
        let mut before = Instant::ZERO;
        let next = |_| {
            let end = count.poll_timeout();
            let ticks = (end.since(before).as_nanos() / TICK.as_nanos()) as u64;
            before = end;
            count.handle_timeout(end);
            ticks
        };
        (0..intervals).map(next).collect()
    }

    #[test]
    fn intervals_are_of_one_to_a_hundred_ticks() {
        let mut seen = [false; 101];
        for ticks in lengths(3, 5000) {
            seen[ticks as usize] = true;
        }
        assert!(!seen[0] && seen[1..].iter().all(|&seen| seen));
    }

    #[test]
    fn it_is_off_until_there_is_an_average_and_under_light_traffic() {
        let lengths = lengths(9, 60);
        let mut count = TrafficCount::new(TICK, 9, Instant::ZERO);
        for (n, length) in lengths.iter().enumerate() {
            let packets = match n {
                0..15 => 1000, // a burst before, and nobody knows the average
                15..30 => 10,  // light
                // The average is ten in some fifty ticks.
                _ => 11 + 100 * length,
            };
            for _ in 0..packets {
                count.on_packet();
            }
            count.handle_timeout(count.poll_timeout());
            match n {
                0..14 => assert!(
                    !count.is_on() && count.average_per_second().is_none(),
                    "{n}"
                ),
                14..30 => assert!(!count.is_on() || n == 14, "{n}"),
                30..44 => assert!(count.is_on(), "{n}"),
                _ => {}
            }
        }
        assert!(count.average_per_second().unwrap() > 1000.0);
    }

    #[test]
    fn it_is_what_the_text_says_on_ten_thousand_schedules() {
        let mut runner = TestRunner::new(Config {
            cases: 10_000,
            failure_persistence: None,
            ..Config::default()
        });
        // How often packets come, in turns: bursts and silence.
        let phases = prop::collection::vec((1u64..400, 0u64..40), 1..8);
        let run = |(seed, phases): (u64, Vec<(u64, u64)>)| {
            let mut packets = Vec::new();
            let mut begin = 0;
            for (ticks, in_ten) in phases {
                for tick in begin..begin + ticks {
                    let many =
                        (tick * in_ten).div_ceil(10) - ((tick.max(1) - 1) * in_ten).div_ceil(10);
                    packets.extend((0..many).map(|_| tick));
                }
                begin += ticks;
            }
            let lengths = lengths(seed, 40);
            let expected = by_the_text(&packets, &lengths);
            let mut count = TrafficCount::new(TICK, seed, Instant::ZERO);
            let mut seen = Vec::new();
            let (mut next, mut end) = (0, 0);
            for length in &lengths {
                end += length;
                while packets.get(next).is_some_and(|&tick| tick < end) {
                    assert!(!count.handle_timeout(at(packets[next])));
                    count.on_packet();
                    next += 1;
                }
                let before = count.is_on();
                let switched = count.handle_timeout(at(end));
                assert_eq!(switched, count.is_on() != before);
                seen.push(count.is_on());
            }
            prop_assert_eq!(seen, expected);
            Ok(())
        };
        runner.run(&(any::<u64>(), phases), run).unwrap();
    }
}
