//! How the line goes before other programs: in the scheduler's real-time class while it sleeps now and then, and by its
//! weight alone while it hardly does.
//!
//! A frame that waits for a processor waits whichever link is idle, and weight does not help whoever sleeps most of the time: on a
//! processor that something else keeps busy, a line was late by 3 ms at each turn, and three links brought what two and a half can.
//! But a line that is full never sleeps, and would leave nothing to the programs whose frames it carries. So who was awake for most
//! of a while goes back into the ordinary class, for longer each time. It is sleep that counts, and not the processor that was taken: of
//! that, interrupts and others in the same class may leave little to one that never sleeps.

use packtrain_proto::time::{Duration, Instant};

use crate::linux::scheduling;

/// How often it is looked at. What a machine that stood still for a moment has left to be made good is done by then.
const WINDOW: Duration = Duration::from_millis(500);
/// Who is awake for more of the time, in percent, leaves the real-time class …
const MUCH_PERCENT: u64 = 80;
/// … and who is for less comes back.
const LITTLE_PERCENT: u64 = 50;
/// So long it stays out, at first and at last: who waits for a processor then seems to sleep.
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
    slept: Duration,
}

impl Governor {
    fn new(slept: Duration, now: Instant) -> Governor {
        Governor {
            class: Class::RealTime,
            since: now,
            rest: REST_MIN,
            looked_at: now,
            slept,
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        now.since(self.looked_at) >= WINDOW
    }

    /// `slept`: for how long, ever. The class that the line is in from now on, where that is another.
    fn look(&mut self, slept: Duration, now: Instant) -> Option<Class> {
        let window = now.since(self.looked_at);
        let awake = window.saturating_sub(slept.saturating_sub(self.slept));
        (self.looked_at, self.slept) = (now, slept);
        let percent = (awake.as_nanos() * 100 / window.as_nanos().max(1)) as u64;
        let lasted = now.since(self.since);
        match self.class {
            Class::RealTime if lasted >= CALM => self.rest = REST_MIN,
            Class::RealTime | Class::Ordinary => {}
        }
        let class = match self.class {
            Class::RealTime => (percent > MUCH_PERCENT).then_some(Class::Ordinary)?,
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

/// Of the thread that turns the line.
#[derive(Debug)]
pub(super) struct Precedence {
    /// Who started the process has not chosen how it is scheduled: that would stay.
    may_take: bool,
    governor: Option<Governor>,
}

impl Precedence {
    /// Of a process that has not begun anything yet.
    pub(super) fn begin() -> Precedence {
        let may_take = scheduling::is_as_usual().unwrap_or(false);
        if may_take {
            for outcome in [scheduling::weigh_more(), scheduling::weigh_session_more()] {
                if let Err(error) = outcome {
                    tracing::debug!("the line weighs no more than other programs: {error}");
                }
            }
        }
        Precedence {
            may_take,
            governor: None,
        }
    }

    /// The line stands. `slept`: for how long it has, ever.
    pub(super) fn take(&mut self, slept: Duration, now: Instant) {
        if !self.may_take {
            return;
        }
        match scheduling::run_in_real_time() {
            Ok(()) => self.governor = Some(Governor::new(slept, now)),
            Err(error) => tracing::debug!("the line is not in the real-time class: {error}"),
        }
    }

    /// After each turn of the line.
    pub(super) fn step(&mut self, slept: Duration, now: Instant) {
        let Some(governor) = self.governor.as_mut().filter(|g| g.is_due(now)) else {
            return;
        };
        let outcome = match governor.look(slept, now) {
            None => return,
            Some(Class::RealTime) => scheduling::run_in_real_time(),
            Some(Class::Ordinary) => scheduling::run_as_others_do(),
        };
        tracing::debug!("scheduled in another class: {:?}", governor.class);
        if let Err(error) = outcome {
            tracing::debug!("as scheduled before, from now on: {error}");
            self.governor = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line that is awake for so many percent of the time, looked at as often as is due. How long it was in each class until it changed.
    fn changes(percent: impl Fn(Class) -> u64, seconds: u64) -> Vec<(Class, u64)> {
        let mut governor = Governor::new(Duration::ZERO, Instant::ZERO);
        let (mut now, mut slept) = (Instant::ZERO, Duration::ZERO);
        let mut changes = Vec::new();
        let mut since = now;
        while now < Instant::ZERO + Duration::from_secs(seconds) {
            let before = governor.class;
            now += WINDOW;
            slept += WINDOW * (100 - percent(before) as u32) / 100;
            assert!(governor.is_due(now));
            if let Some(after) = governor.look(slept, now) {
                assert_ne!(before, after);
                changes.push((before, now.since(since).as_millis() as u64));
                since = now;
            }
            assert!(!governor.is_due(now + WINDOW / 2));
        }
        changes
    }

    #[test]
    fn who_sleeps_a_fifth_of_the_time_stays_in_the_real_time_class() {
        assert_eq!(changes(|_| 0, 100), []);
        assert_eq!(changes(|_| 80, 100), []);
        assert_eq!(changes(|_| 81, 100), [(Class::RealTime, 500)]);
        assert_eq!(changes(|_| 100, 1000), [(Class::RealTime, 500)]);
    }

    #[test]
    fn who_waits_for_a_processor_when_it_is_out_is_out_for_longer_and_longer() {
        let shares = |class| match class {
            Class::RealTime => 95,
            Class::Ordinary => 45,
        };
        // One, two, four … seconds, and a half between them.
        let out: Vec<u64> = changes(shares, 350)
            .into_iter()
            .filter_map(|(class, millis)| (class == Class::Ordinary).then_some(millis / 1000))
            .collect();
        assert_eq!(out, [1, 2, 4, 8, 16, 32, 64, 64, 64, 64]);
    }

    #[test]
    fn who_was_calm_for_long_comes_back_as_soon_as_at_first() {
        let mut governor = Governor::new(Duration::ZERO, Instant::ZERO);
        let (mut now, mut slept) = (Instant::ZERO, Duration::ZERO);
        let mut run = |percent: u32, wanted: Class| {
            let begin = now;
            loop {
                now += WINDOW;
                slept += WINDOW * (100 - percent) / 100;
                if let Some(class) = governor.look(slept, now) {
                    assert_eq!(class, wanted);
                    return now.since(begin).as_millis();
                }
                if now.since(begin) > CALM {
                    return 0;
                }
            }
        };
        for rest in [1000, 2000, 4000] {
            assert_eq!(run(100, Class::Ordinary), 500);
            assert_eq!(run(10, Class::RealTime), rest);
        }
        assert_eq!(run(10, Class::RealTime), 0, "it stays");
        assert_eq!(run(100, Class::Ordinary), 500);
        assert_eq!(run(10, Class::RealTime), 1000);
    }
}
