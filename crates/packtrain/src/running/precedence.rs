//! How the line goes before other programs: in the scheduler's real-time class while it takes little of a processor, and by its
//! weight alone while it takes much.
//!
//! A frame that waits for a processor waits whichever link is idle, and weight does not help whoever sleeps most of the time: on a
//! processor that something else keeps busy, a line was late by 3 ms at each turn, and two links brought what one and a half can.
//! But a line that is full never sleeps, and would leave nothing to the programs whose frames it carries. So what it took of
//! a processor is looked at; who took much goes back into the ordinary class, for longer each time.

use std::io;

use packtrain_proto::time::{Duration, Instant};

use crate::linux::scheduling;

/// How often it is looked at.
const WINDOW: Duration = Duration::from_millis(100);
/// Of a processor, in percent: who takes more leaves the real-time class …
const MUCH_PERCENT: u64 = 80;
/// … and who takes less comes back.
const LITTLE_PERCENT: u64 = 50;
/// So long it stays out, at first and at last: where others take as much, half of a processor is all there is, and shows nothing.
const REST_MIN: Duration = Duration::from_secs(1);
const REST_MAX: Duration = Duration::from_secs(64);
/// Who has been in for so long starts anew.
const CALM: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    RealTime,
    Ordinary,
}

#[derive(Debug)]
struct Governor {
    class: Class,
    since: Instant,
    rest: Duration,
    looked_at: Instant,
    cpu_time: Duration,
}

impl Governor {
    fn new(cpu_time: Duration, now: Instant) -> Governor {
        Governor {
            class: Class::RealTime,
            since: now,
            rest: REST_MIN,
            looked_at: now,
            cpu_time,
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        now.since(self.looked_at) >= WINDOW
    }

    /// `cpu_time`: what the thread has taken of processors, ever. The class that it is in from now on, where that is another.
    fn look(&mut self, cpu_time: Duration, now: Instant) -> Option<Class> {
        let window = now.since(self.looked_at).as_nanos() as u64;
        let took = cpu_time.saturating_sub(self.cpu_time).as_nanos() as u64;
        (self.looked_at, self.cpu_time) = (now, cpu_time);
        let percent = took * 100 / window.max(1);
        let lasted = now.since(self.since);
        let class = match self.class {
            Class::RealTime => {
                if lasted >= CALM {
                    self.rest = REST_MIN;
                }
                (percent > MUCH_PERCENT).then_some(Class::Ordinary)?
            }
            Class::Ordinary => {
                let may_return = lasted >= self.rest && percent < LITTLE_PERCENT;
                may_return.then_some(Class::RealTime)?
            }
        };
        if class == Class::RealTime {
            self.rest = (self.rest * 2).min(REST_MAX);
        }
        (self.class, self.since) = (class, now);
        Some(class)
    }
}

/// Of the thread that has taken it.
#[derive(Debug)]
pub(super) struct Precedence(Option<Governor>);

impl Precedence {
    /// Not where who started the process has chosen how it is scheduled: that stays.
    pub(super) fn take(now: Instant) -> Precedence {
        let taken = Precedence::try_take(now);
        if let Err(error) = &taken {
            tracing::debug!("the line waits for its processor as other programs do: {error}");
        }
        Precedence(taken.ok().flatten())
    }

    fn try_take(now: Instant) -> io::Result<Option<Governor>> {
        if !scheduling::is_as_usual()? {
            return Ok(None);
        }
        scheduling::weigh_more()?;
        scheduling::run_in_real_time()?;
        Ok(Some(Governor::new(scheduling::cpu_time(), now)))
    }

    /// After each turn of the line.
    pub(super) fn step(&mut self, now: Instant) {
        let Some(governor) = self.0.as_mut().filter(|governor| governor.is_due(now)) else {
            return;
        };
        let outcome = match governor.look(scheduling::cpu_time(), now) {
            None => return,
            Some(Class::RealTime) => scheduling::run_in_real_time(),
            Some(Class::Ordinary) => scheduling::run_as_others_do(),
        };
        tracing::debug!("scheduled in another class: {:?}", governor.class);
        if let Err(error) = outcome {
            tracing::debug!("as scheduled before, from now on: {error}");
            self.0 = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that takes so many percent of a processor, looked at as often as is due. How long it was in each class until it changed.
    fn changes(percent: impl Fn(Class) -> u64, seconds: u64) -> Vec<(Class, u64)> {
        let mut governor = Governor::new(Duration::ZERO, Instant::ZERO);
        let (mut now, mut cpu_time) = (Instant::ZERO, Duration::ZERO);
        let mut changes = Vec::new();
        let mut since = now;
        while now < Instant::ZERO + Duration::from_secs(seconds) {
            let before = governor.class;
            now += WINDOW;
            cpu_time += WINDOW * percent(before) as u32 / 100;
            assert!(governor.is_due(now));
            if let Some(after) = governor.look(cpu_time, now) {
                assert_ne!(before, after);
                changes.push((before, now.since(since).as_millis() as u64));
                since = now;
            }
            assert!(!governor.is_due(now + WINDOW / 2));
        }
        changes
    }

    #[test]
    fn who_takes_up_to_four_fifths_of_a_processor_stays_in_the_real_time_class() {
        assert_eq!(changes(|_| 0, 100), []);
        assert_eq!(changes(|_| 80, 100), []);
        assert_eq!(changes(|_| 81, 100), [(Class::RealTime, 100)]);
        assert_eq!(changes(|_| 100, 1000), [(Class::RealTime, 100)]);
    }

    #[test]
    fn who_shares_a_processor_when_it_is_out_is_out_for_longer_and_longer() {
        let shares = |class| match class {
            Class::RealTime => 95,
            Class::Ordinary => 45,
        };
        let out: Vec<u64> = changes(shares, 400)
            .into_iter()
            .filter_map(|(class, millis)| (class == Class::Ordinary).then_some(millis / 1000))
            .collect();
        assert_eq!(out, [1, 2, 4, 8, 16, 32, 64, 64, 64, 64]);
    }

    #[test]
    fn who_was_calm_for_long_comes_back_as_soon_as_at_first() {
        let mut governor = Governor::new(Duration::ZERO, Instant::ZERO);
        let (mut now, mut cpu_time) = (Instant::ZERO, Duration::ZERO);
        let mut run = |percent: u32, wanted: Class| {
            let begin = now;
            loop {
                now += WINDOW;
                cpu_time += WINDOW * percent / 100;
                if let Some(class) = governor.look(cpu_time, now) {
                    assert_eq!(class, wanted);
                    return now.since(begin).as_millis();
                }
                if now.since(begin) > CALM {
                    return 0;
                }
            }
        };
        for rest in [1000, 2000, 4000] {
            assert_eq!(run(100, Class::Ordinary), 100);
            assert_eq!(run(10, Class::RealTime), rest);
        }
        assert_eq!(run(10, Class::RealTime), 0, "it stays");
        assert_eq!(run(100, Class::Ordinary), 100);
        assert_eq!(run(10, Class::RealTime), 1000);
    }
}
