//! When frames that may wait for others leave: one interface for every policy ([`Pack`]).
//!
//! Asked once, as a frame comes. What it answers, the queue's [`Hold`](crate::queue::hold::Hold) keeps; a frame
//! that may not wait takes along all that do, and so does a train that is full.

use crate::class::{Action, Pack};
use crate::dfap::traffic_count::TrafficCount;
use crate::dfap::window::{self, Calculation};
use crate::queue::company::Company;
use crate::queue::pressure::{AutoChoice, Pressure};
use crate::random::Random;
use crate::time::{Duration, Instant};

/// What stands in the queue of a destination, the frame that came with it.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    pub packets: usize,
    /// Without their Ethernet headers.
    pub bytes: usize,
    /// Bytes after the Ethernet header of the largest frame that can leave.
    pub mtu: usize,
    /// A queue stands on a link to there, or more is under way than it carries.
    pub has_backlog: bool,
}

/// What becomes of a frame that may wait, and of those that wait with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It leaves, and takes them along.
    Leave,
    /// They are enough, and leave.
    Enough,
    /// It waits, but not longer than until `at_most`; and all of them until `renewed`, if it says so.
    Wait {
        at_most: Instant,
        renewed: Option<Instant>,
    },
}

/// The state that policies share: the line's.
#[derive(Debug)]
pub struct Waiting {
    tick: Duration,
    random: Random,
    traffic_count: TrafficCount,
    /// Some class goes by the traffic count.
    counts_traffic: bool,
    /// … or waits only while a queue stands.
    asks_for_backlog: bool,
}

impl Waiting {
    /// `tick`: what the DFAP paper's waits and intervals are multiples of.
    pub fn new(tick: Duration, seed: u64, now: Instant) -> Waiting {
        Waiting {
            tick,
            random: Random::new(seed ^ 0x0077_6169_7469_6e67),
            traffic_count: TrafficCount::new(tick, seed, now),
            counts_traffic: false,
            asks_for_backlog: false,
        }
    }

    /// Other classes from now on.
    pub fn set_classes(&mut self, actions: impl Iterator<Item = Action>) {
        (self.counts_traffic, self.asks_for_backlog) = (false, false);
        for action in actions {
            self.counts_traffic |= action.pack.counts_traffic();
            self.asks_for_backlog |= action.on_backlog;
        }
    }

    /// Whether some class waits only while a queue stands.
    pub fn asks_for_backlog(&self) -> bool {
        self.asks_for_backlog
    }

    /// The host sends a frame.
    #[inline]
    pub fn on_host_frame(&mut self) {
        if self.counts_traffic {
            self.traffic_count.on_packet();
        }
    }

    /// Whether frames may be put together at all: the paper's protocol switches that too, by its traffic count.
    pub fn aggregates(&self) -> bool {
        !self.counts_traffic || self.traffic_count.is_on()
    }

    /// The traffic count, where some class goes by it.
    pub fn traffic_count(&self) -> Option<&TrafficCount> {
        self.counts_traffic.then_some(&self.traffic_count)
    }

    /// Time has passed, and it may be the traffic count's. Says whether that has switched something.
    pub fn handle_timeout(&mut self, now: Instant) -> bool {
        self.traffic_count.handle_timeout(now) && self.counts_traffic
    }

    /// While it is on, it has to be switched off in time; a frame that comes later looks for itself.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.aggregates_by_count()
            .then(|| self.traffic_count.poll_timeout())
    }

    fn aggregates_by_count(&self) -> bool {
        self.counts_traffic && self.traffic_count.is_on()
    }

    /// What becomes of a frame of this class that came at `now`.
    pub fn decide(
        &mut self,
        action: &Action,
        standing: Standing,
        (company, pressure): (&mut Company, &mut Pressure),
        now: Instant,
    ) -> Verdict {
        if action.on_backlog && !standing.has_backlog {
            return Verdict::Leave;
        }
        match action.pack {
            Pack::Queued | Pack::Now => Verdict::Leave,
            Pack::Within(budget) => {
                company.on_arrival(now);
                // Those that wait already get it as company, whatever it may expect itself.
                let has_company = standing.packets > 1;
                match company.is_worth(budget) || has_company {
                    true => Verdict::Wait {
                        at_most: now + budget,
                        renewed: None,
                    },
                    false => Verdict::Leave,
                }
            }
            Pack::Scaled(most) => Verdict::Wait {
                at_most: now + most,
                renewed: Some(now + wasted_share(most, standing)),
            },
            Pack::Auto => {
                company.on_arrival(now);
                pressure.choice = auto(standing, company, pressure, now);
                match pressure.choice {
                    AutoChoice::Waits(wait) => Verdict::Wait {
                        at_most: now + wait,
                        renewed: None,
                    },
                    _ => Verdict::Leave,
                }
            }
            Pack::DfapRandom => self.by_window(Calculation::Random, standing, now),
            Pack::DfapStraight => self.by_window(Calculation::Straight, standing, now),
        }
    }

    fn by_window(&mut self, by: Calculation, standing: Standing, now: Instant) -> Verdict {
        if !self.traffic_count.is_on() {
            return Verdict::Leave;
        }
        if window::is_due(standing.packets, standing.bytes, standing.mtu) {
            return Verdict::Enough;
        }
        match window::wait(standing.packets, by, self.tick, &mut self.random) {
            Duration::ZERO => Verdict::Enough,
            wait => Verdict::Wait {
                at_most: now + self.tick * window::TICKS_MAX,
                renewed: Some(now + wait),
            },
        }
    }
}

fn auto(
    standing: Standing,
    company: &mut Company,
    pressure: &Pressure,
    now: Instant,
) -> AutoChoice {
    match pressure.affordable_wait(now) {
        Err(choice) => choice,
        Ok(wait) if standing.packets > 1 || company.is_worth(wait) => AutoChoice::Waits(wait),
        Ok(_) => AutoChoice::Alone,
    }
}

/// Section 2.1 of the paper: the wait is scaled by the share of the frame that would be wasted if it left now.
fn wasted_share(most: Duration, standing: Standing) -> Duration {
    let unused = standing.mtu.saturating_sub(standing.bytes);
    let ns = most.as_nanos() * unused as u128 / standing.mtu.max(1) as u128;
    Duration::from_nanos(ns as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::hold::Hold;
    use crate::stats::FlushReason;
    use proptest::prelude::*;
    use proptest::test_runner::{Config, TestRunner};

    const TICK: Duration = Duration::from_millis(10);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn of(pack: Pack) -> Action {
        Action {
            pack,
            ..Action::default()
        }
    }

    fn standing(packets: usize, bytes: usize) -> Standing {
        Standing {
            packets,
            bytes,
            mtu: 1500,
            has_backlog: false,
        }
    }

    /// With the traffic count on, from now until the end of its interval.
    fn busy(pack: Pack) -> (Waiting, Instant) {
        let mut waiting = Waiting::new(TICK, 1, Instant::ZERO);
        waiting.set_classes([of(pack)].into_iter());
        let mut now = Instant::ZERO;
        for n in 0..16 {
            for _ in 0..n * n {
                (0..1000).for_each(|_| waiting.on_host_frame());
            }
            now = waiting.traffic_count.poll_timeout();
            waiting.handle_timeout(now);
        }
        assert!(waiting.aggregates());
        (waiting, now)
    }

    #[test]
    fn a_straight_wait_is_the_window_from_the_last_arrival_and_ten_ticks_from_its_own() {
        let (mut waiting, now) = busy(Pack::DfapStraight);
        let mut decide = |packets, bytes| {
            let action = of(Pack::DfapStraight);
            waiting.decide(
                &action,
                standing(packets, bytes),
                (&mut Company::default(), &mut Pressure::default()),
                now,
            )
        };
        let wait = |ticks| Verdict::Wait {
            at_most: now + TICK * 10,
            renewed: Some(now + TICK * ticks),
        };
        assert_eq!(decide(1, 20), wait(10));
        assert_eq!(decide(9, 1465), wait(10));
        assert_eq!(decide(10, 1465), wait(5));
        assert_eq!(decide(12, 1465), wait(1));
        assert_eq!(decide(13, 1465), Verdict::Enough);
        assert_eq!(decide(2, 1466), Verdict::Enough);
    }

    #[test]
    fn a_random_wait_is_a_number_of_ticks_within_the_window() {
        let (mut waiting, now) = busy(Pack::DfapRandom);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..500 {
            let action = of(Pack::DfapRandom);
            let verdict = waiting.decide(
                &action,
                standing(11, 500),
                (&mut Company::default(), &mut Pressure::default()),
                now,
            );
            seen.insert(match verdict {
                Verdict::Wait { renewed, at_most } => {
                    assert_eq!(at_most, now + TICK * 10);
                    renewed.unwrap().since(now).as_millis()
                }
                Verdict::Enough => 0,
                Verdict::Leave => unreachable!("the count is on"),
            });
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [0, 10, 20]);
    }

    #[test]
    fn under_light_traffic_nothing_waits_and_nothing_is_put_together() {
        let mut waiting = Waiting::new(TICK, 1, Instant::ZERO);
        assert!(waiting.aggregates(), "nobody asks for the traffic count");
        assert!(waiting.poll_timeout().is_none());
        let action = of(Pack::DfapStraight);
        waiting.set_classes([Action::default(), action].into_iter());
        assert!(!waiting.aggregates());
        let verdict = waiting.decide(
            &action,
            standing(2, 100),
            (&mut Company::default(), &mut Pressure::default()),
            at(1),
        );
        assert_eq!(verdict, Verdict::Leave);
        let (waiting, _) = busy(Pack::DfapStraight);
        assert!(waiting.poll_timeout().is_some(), "it ends some time");
    }

    #[test]
    fn a_scaled_wait_is_the_shorter_the_more_of_the_frame_is_used() {
        let mut waiting = Waiting::new(TICK, 1, Instant::ZERO);
        let mut decide = |bytes| {
            let action = of(Pack::Scaled(Duration::from_millis(6)));
            waiting.decide(
                &action,
                standing(2, bytes),
                (&mut Company::default(), &mut Pressure::default()),
                at(10),
            )
        };
        for (bytes, until) in [(0, 16), (500, 14), (750, 13), (1500, 10), (2000, 10)] {
            let expected = Verdict::Wait {
                at_most: at(16),
                renewed: Some(at(until)),
            };
            assert_eq!(decide(bytes), expected);
        }
    }

    #[test]
    fn a_budget_is_used_where_others_are_to_be_expected() {
        let mut waiting = Waiting::new(TICK, 1, Instant::ZERO);
        let budget = Duration::from_millis(4);
        let mut company = Company::default();
        let mut decide = |packets, ms| {
            let action = of(Pack::Within(budget));
            waiting.decide(
                &action,
                standing(packets, 100),
                (&mut company, &mut Pressure::default()),
                at(ms),
            )
        };
        assert_eq!(decide(1, 1), Verdict::Leave, "nothing is known of others");
        assert_eq!(decide(1, 9), Verdict::Leave, "they come every 8 ms");
        let waits = |verdict| matches!(verdict, Verdict::Wait { renewed: None, .. });
        assert!((10..40).any(|ms| waits(decide(1, ms))), "every millisecond");
        assert!(
            waits(decide(2, 1000)),
            "it is the company of the one before"
        );
    }

    #[test]
    fn left_to_the_engine_a_frame_waits_where_that_costs_nothing_and_others_come() {
        let mut waiting = Waiting::new(TICK, 1, Instant::ZERO);
        let (mut company, mut pressure) = (Company::default(), Pressure::default());
        let us = |us| Instant::ZERO + Duration::from_micros(us);
        // A frame every 50 µs to a link that takes a train in 200 µs and leaves nothing behind; then one that does.
        for n in 0..400 {
            let both = (&mut company, &mut pressure);
            let verdict = waiting.decide(&of(Pack::Auto), standing(1, 60), both, us(50 * n));
            let waits = matches!(verdict, Verdict::Wait { renewed: None, .. });
            match n {
                0..200 => assert_eq!(verdict, Verdict::Leave, "{n}"),
                210.. => assert!(waits, "{n}: {:?}", pressure.choice),
                _ => {}
            }
            if n % 4 == 0 {
                pressure.on_train(20, n >= 200, us(50 * n));
            }
        }
        // Nobody else is to be expected any more.
        let both = (&mut company, &mut pressure);
        waiting.decide(&of(Pack::Auto), standing(1, 60), both, us(22_000));
        let both = (&mut company, &mut pressure);
        waiting.decide(&of(Pack::Auto), standing(1, 60), both, us(22_500));
        assert_eq!(pressure.choice, AutoChoice::Alone);
    }

    #[test]
    fn a_class_may_wait_only_where_a_queue_stands() {
        let mut waiting = Waiting::new(TICK, 1, Instant::ZERO);
        let action = Action {
            on_backlog: true,
            ..of(Pack::Scaled(Duration::from_millis(6)))
        };
        assert!(!waiting.asks_for_backlog());
        waiting.set_classes([action, of(Pack::Queued)].into_iter());
        assert!(waiting.asks_for_backlog());
        waiting.set_classes([of(Pack::Queued)].into_iter());
        assert!(!waiting.asks_for_backlog());
        let mut decide = |has_backlog| {
            let standing = Standing {
                has_backlog,
                ..standing(1, 0)
            };
            let both = (&mut Company::default(), &mut Pressure::default());
            waiting.decide(&action, standing, both, at(0))
        };
        assert_eq!(decide(false), Verdict::Leave);
        assert_ne!(decide(true), Verdict::Leave);
    }

    /// A queue with its hold, as it is kept for a destination; says which packets left when.
    #[derive(Default)]
    struct Queue {
        packets: Vec<(usize, usize)>,
        hold: Hold,
        company: Company,
        left: Vec<(u64, Vec<usize>)>,
    }

    impl Queue {
        fn leave(&mut self, at: Instant) {
            let packets = self.packets.drain(..).map(|(number, _)| number);
            self.left.push((at.as_nanos(), packets.collect()));
            self.hold = Hold::default();
        }

        /// Time passes up to the next arrival.
        fn run(&mut self, until: Instant) {
            if let Some(at) = self.hold.ends_at().filter(|at| *at <= until) {
                assert!(self.hold.handle_timeout(at));
                self.leave(at);
            }
        }

        fn come(
            &mut self,
            waiting: &mut Waiting,
            pack: Pack,
            (number, bytes): (usize, usize),
            now: Instant,
        ) {
            self.packets.push((number, bytes));
            let all = self.packets.iter().map(|(_, bytes)| bytes).sum();
            let standing = standing(self.packets.len(), all);
            let verdict = waiting.decide(
                &of(pack),
                standing,
                (&mut self.company, &mut Pressure::default()),
                now,
            );
            match verdict {
                Verdict::Wait { at_most, renewed } => {
                    self.hold.on_pushed(Some(at_most));
                    self.hold.renew(renewed.unwrap());
                }
                Verdict::Enough => {
                    self.hold.on_pushed(None);
                    self.hold.ripen(FlushReason::Count);
                }
                Verdict::Leave => unreachable!("the count is on"),
            }
            if self.hold.is_over(now) {
                self.leave(now);
            }
        }
    }

    /// Our reading of section 2.2, word by word: packets that come at these times, and when they leave.
    fn by_the_text(
        packets: &[(Instant, usize)],
        calculation: Calculation,
        mut random: Random,
    ) -> Vec<(u64, Vec<usize>)> {
        let mut left = Vec::new();
        let mut queue: Vec<usize> = Vec::new();
        let mut deadline: Option<Instant> = None;
        for (number, &(now, _)) in packets.iter().enumerate() {
            if let Some(at) = deadline.filter(|at| *at <= now) {
                left.push((at.as_nanos(), std::mem::take(&mut queue)));
            }
            queue.push(number);
            let n = queue.len();
            let bytes: usize = queue.iter().map(|&number| packets[number].1).sum();
            let at_once = bytes >= 1500 - 34 || n >= 16;
            let window = match n {
                1..=9 => 10,
                _ => (52.0 / (10.0 * 2f64.powi(n as i32 - 10))).floor() as u64,
            };
            let k = match calculation {
                _ if at_once => 0,
                Calculation::Random => random.up_to(window),
                Calculation::Straight => window,
            };
            let first: Instant = packets[queue[0]].0;
            let wait_ends = (now + TICK * k as u32).min(first + TICK * 10);
            deadline = Some(wait_ends);
            if wait_ends <= now {
                left.push((now.as_nanos(), std::mem::take(&mut queue)));
                deadline = None;
            }
        }
        if let Some(at) = deadline {
            left.push((at.as_nanos(), queue));
        }
        left
    }

    #[test]
    fn waits_are_what_the_text_says_on_ten_thousand_schedules() {
        let mut runner = TestRunner::new(Config {
            cases: 10_000,
            failure_persistence: None,
            ..Config::default()
        });
        // Gaps in tenths of a tick: bursts, and now and then a pause.
        let gap = prop_oneof![8 => 0u64..4, 4 => 0u64..20, 1 => 0u64..300];
        let packets = prop::collection::vec((gap, 1usize..400), 1..80);
        let run = |(seed, straight, packets): (u64, bool, Vec<(u64, usize)>)| {
            let (pack, calculation) = match straight {
                true => (Pack::DfapStraight, Calculation::Straight),
                false => (Pack::DfapRandom, Calculation::Random),
            };
            let (mut waiting, mut now) = busy(pack);
            waiting.random = Random::new(seed);
            let mut queue = Queue::default();
            let mut came = Vec::new();
            for (number, (gap, bytes)) in packets.into_iter().enumerate() {
                now += TICK / 10 * gap as u32;
                came.push((now, bytes));
                queue.run(now);
                queue.come(&mut waiting, pack, (number, bytes), now);
            }
            queue.run(now + TICK * 11);
            let expected = by_the_text(&came, calculation, Random::new(seed));
            prop_assert_eq!(queue.left, expected);
            Ok(())
        };
        let schedules = (any::<u64>(), any::<bool>(), packets);
        runner.run(&schedules, run).unwrap();
    }
}
