//! Whether a link is worth being waited for.
//!
//! What comes by a link that is later than the others holds up what they bring, for as long as it is later: the receiver
//! puts all in one order. In return it carries something. So it may be later by as much of the most that the others wait as it
//! adds to their rate: one that is as fast as all of them together by all of it, one of a tenth of that by a tenth. A
//! link of 10 Mbit/s and 100 ms beside one of 100 Mbit/s and none would bring six hundredths more, and hold everything for 100 ms.
//!
//! ```text
//!             later by half as much again as it may
//!   ADMITTED ────────────────────────────────────────▶ OUT(until)
//!      ▲ ▲                                            │ ▲
//!      │ │  no later than it may                      │ │ measured anew, and later still:
//!      │ └────────────────────────────────────────────┤ │ twice as long
//!      │    measured anew, and no later than it may   │ │
//!      └──────────────────────────── TRIAL(since) ◀───┘ │
//!                                        │   its time is over
//!                                        └──────────────┘
//! ```
//!
//! Between the two bounds it stays what it is, so that estimates that move do not have a link flap. A link that carries nothing is not
//! measured: what was found of it counts for a while, and then it is tried, until an acknowledgement tells more.
//!
//! Asked is when a train would arrive by a link that stands empty. What stands before it now is a matter of which train it
//! takes, and not of whether it takes any.

use super::{Candidate, SKEW_MAX};
use crate::time::{Duration, Instant};

/// How long what was found of a link counts at first, and at most.
const OUT_MIN: Duration = Duration::from_secs(10);
const OUT_MAX: Duration = Duration::from_secs(160);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admission {
    #[default]
    Admitted,
    Out {
        until: Instant,
        /// How long it is out this time.
        time: Duration,
    },
    Trial {
        since: Instant,
        /// How long it was out before.
        time: Duration,
    },
}

/// How late a link is beside others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lateness {
    /// Behind the first.
    pub late: Duration,
    pub late_max: Duration,
}

impl Lateness {
    /// Of a candidate among all that could carry the same train, of `bytes`. What nobody has measured is not known to be late.
    pub fn of(one: &Candidate, all: &[Candidate], bytes: usize) -> Lateness {
        let arrival = one.arrival(bytes);
        let sooner = all.iter().filter(|other| other.arrival(bytes) < arrival);
        let first = sooner.clone().map(|other| other.arrival(bytes)).min();
        let theirs: u64 = sooner.filter_map(|other| other.rate.measured_bps()).sum();
        let late_max = match one.rate.measured_bps() {
            Some(own) if own < theirs => {
                let nanos = SKEW_MAX.as_nanos() * u128::from(own) / u128::from(theirs);
                Duration::from_nanos(nanos as u64)
            }
            _ => SKEW_MAX,
        };
        Lateness {
            late: arrival.saturating_sub(first.unwrap_or(arrival)),
            late_max,
        }
    }

    fn is_too_late(&self) -> bool {
        self.late > self.late_max
    }

    fn is_far_too_late(&self) -> bool {
        self.late > self.late_max * 3 / 2
    }
}

impl Admission {
    pub fn takes_part(self) -> bool {
        !matches!(self, Admission::Out { .. })
    }

    /// What it is from now on. `measured_at`: when the link's rate was measured last.
    pub fn next(self, lateness: Lateness, measured_at: Option<Instant>, now: Instant) -> Admission {
        let out_for = |time| Admission::Out {
            until: now + time,
            time,
        };
        match self {
            Admission::Admitted if lateness.is_far_too_late() => out_for(OUT_MIN),
            Admission::Admitted => Admission::Admitted,
            Admission::Out { .. } if !lateness.is_too_late() => Admission::Admitted,
            Admission::Out { until, time } if until <= now => Admission::Trial { since: now, time },
            Admission::Out { .. } => self,
            Admission::Trial { since, time } => match measured_at.is_some_and(|at| at > since) {
                false => self,
                true if lateness.is_too_late() => out_for((time * 2).min(OUT_MAX)),
                true => Admission::Admitted,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Rate, Standing, weighted::Served};
    use super::*;
    use crate::config::{LinkId, LinkSettings};

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn candidate(mbit: u64, delay_ms: u64) -> Candidate {
        Candidate {
            at: 0,
            link: LinkId(0),
            settings: LinkSettings::default(),
            served: Served::default(),
            admission: Admission::Admitted,
            standing: Standing::Open,
            in_doubt: None,
            has_room: true,
            rate: Rate::Measured(mbit * 1_000_000),
            ahead_bytes: 0,
            delay: Duration::from_millis(delay_ms),
        }
    }

    fn is_out(all: &[Candidate], at: usize) -> bool {
        let lateness = Lateness::of(&all[at], all, 1500);
        !Admission::Admitted
            .next(lateness, None, Instant::ZERO)
            .takes_part()
    }

    #[test]
    fn a_link_may_be_later_by_as_much_as_it_adds() {
        let near = candidate(100, 0);
        for (far, out) in [
            (candidate(1, 150), true),
            (candidate(10, 100), true),
            (candidate(10, 31), true),
            (candidate(10, 0), false),
            (candidate(10, 18), false),
            (candidate(20, 0), false),
            (candidate(50, 40), false),
            (candidate(100, 20), false),
            (candidate(100, 150), false),
            (candidate(1000, 0), false),
        ] {
            assert_eq!(is_out(&[near, far], 1), out, "{far:?}");
            assert!(!is_out(&[far, near], 1), "the first is never late");
            assert!(!is_out(&[far], 0));
        }
        // The same beside a slower one.
        assert!(!is_out(&[candidate(10, 0), candidate(10, 100)], 1));
        // What nobody has measured is tried, and what the others add up to counts.
        let new = Candidate {
            rate: Rate::Expected(1_000_000),
            ..candidate(1, 100)
        };
        assert!(!is_out(&[near, new], 1));
        assert!(!is_out(&[near, candidate(40, 100)], 1));
        assert!(is_out(&[near, near, candidate(40, 100)], 2));
    }

    #[test]
    fn every_step_is_as_it_is_drawn() {
        use Admission::{Admitted, Out, Trial};
        let late = |ms| Lateness {
            late: Duration::from_millis(ms),
            late_max: Duration::from_millis(20),
        };
        let [first, second] = [10, 20].map(Duration::from_secs);
        let out = Out {
            until: at(11),
            time: first,
        };
        let trial = Trial {
            since: at(11),
            time: first,
        };
        let again = Out {
            until: at(32),
            time: second,
        };
        let last = Trial {
            since: at(11),
            time: OUT_MAX,
        };
        let for_long = Out {
            until: at(12) + OUT_MAX,
            time: OUT_MAX,
        };
        for (from, lateness, measured, now, to) in [
            (Admitted, late(20), None, 1, Admitted),
            (Admitted, late(30), None, 1, Admitted),
            (Admitted, late(31), None, 1, out),
            (out, late(31), None, 10, out),
            (out, late(21), None, 10, out),
            (out, late(20), None, 10, Admitted),
            (out, late(31), None, 11, trial),
            (trial, late(31), Some(11), 12, trial),
            (trial, late(31), None, 99, trial),
            (trial, late(21), Some(12), 12, again),
            (trial, late(20), Some(12), 12, Admitted),
            (last, late(31), Some(12), 12, for_long),
        ] {
            let next = from.next(lateness, measured.map(at), at(now));
            assert_eq!(next, to, "{from:?} {lateness:?} {measured:?} {now}");
        }
    }

    #[test]
    fn estimates_that_move_between_the_two_bounds_change_nothing() {
        let late = |ms| Lateness {
            late: Duration::from_millis(ms),
            late_max: Duration::from_millis(20),
        };
        let mut admission = Admission::Admitted;
        let mut changes = 0;
        for step in 0..1000u64 {
            let next = admission.next(late(21 + step % 9), None, at(0));
            changes += u32::from(next != admission);
            admission = next;
        }
        assert_eq!((changes, admission), (0, Admission::Admitted));
    }
}
