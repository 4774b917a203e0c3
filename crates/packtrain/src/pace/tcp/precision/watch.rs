//! When T is measured again, and when another T counts.
//!
//! The machine's load is looked at, which costs a line of /proc/stat; only where it is another one than when T was last measured, that is done
//! again. What is measured then counts when a second measurement agrees: T tells all connections how they begin,
//! and one bad moment is no reason.

use packtrain_proto::time::{Duration, Instant};

const LOOK_EACH: Duration = Duration::from_secs(10);
const APART_LEAST: Duration = Duration::from_secs(30);
/// Of all processors' time.
const MOVED: f64 = 0.25;

#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// T as it counts.
    standing: Duration,
    /// What the last measurement said, which was something else.
    other: Option<Duration>,
    measured_at: Instant,
    /// The share of the processors' time that was used up when it was measured; `None`: nobody had looked.
    load: Option<f64>,
    look_at: Instant,
}

impl Watch {
    pub fn new(now: Instant, measured: Duration) -> Watch {
        Watch {
            standing: measured,
            other: None,
            measured_at: now,
            load: None,
            look_at: now + LOOK_EACH,
        }
    }

    pub fn look_at(&self) -> Instant {
        self.look_at
    }

    /// `load`: the share of the processors' time that was used up since this was asked last; `None`: it cannot be told. Whether T
    /// is to be measured now.
    pub fn look(&mut self, now: Instant, load: Option<f64>) -> bool {
        self.look_at = now + LOOK_EACH;
        if now.since(self.measured_at) < APART_LEAST {
            return false;
        }
        let wanted = match (self.load, load) {
            _ if self.other.is_some() => true,
            // The first one was made in the moments when all began.
            (None, Some(_)) => true,
            (Some(then), Some(now)) => (now - then).abs() > MOVED,
            (_, None) => false,
        };
        if wanted {
            self.measured_at = now;
            self.load = load;
        }
        wanted
    }

    /// T as it counts from now on, where that is another one.
    pub fn measured(&mut self, now: Instant, measured: Duration) -> Option<Duration> {
        self.measured_at = now;
        let before = self.other.replace(measured).unwrap_or(self.standing);
        let standing = self.standing;
        // The one that is nearer to what stands, if both are on the same side of it.
        let agreed = if measured > standing && before > standing {
            measured.min(before)
        } else if measured < standing && before < standing {
            measured.max(before)
        } else {
            if measured == standing {
                self.other = None;
            }
            return None;
        };
        self.standing = agreed;
        self.other = None;
        Some(agreed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// Measured at 0, and once more at 30 with this load.
    fn settled(load: f64) -> Watch {
        let mut watch = Watch::new(at(0), MS);
        assert!(watch.look(at(30), Some(load)));
        assert_eq!(watch.measured(at(30), MS), None);
        watch
    }

    #[test]
    fn the_load_is_looked_at_each_ten_seconds() {
        let mut watch = Watch::new(at(0), MS);
        assert_eq!(watch.look_at(), at(10));
        watch.look(at(11), None);
        assert_eq!(watch.look_at(), at(21));
    }

    #[test]
    fn t_is_measured_again_when_the_load_has_moved_by_more_than_a_quarter() {
        let mut watch = settled(0.5);
        for load in [0.5, 0.75, 0.25] {
            assert!(!watch.look(at(100), Some(load)), "{load}");
        }
        assert!(!watch.look(at(100), None));
        let mut less = watch;
        assert!(watch.look(at(100), Some(0.76)));
        assert!(less.look(at(100), Some(0.24)));
        // From there on it is that load that others are compared with.
        assert_eq!(watch.measured(at(100), MS), None);
        assert!(!watch.look(at(200), Some(0.76)));
        assert!(watch.look(at(200), Some(0.5)));
    }

    #[test]
    fn a_load_that_creeps_is_compared_with_that_of_the_last_measurement() {
        let mut watch = settled(0.0);
        let asked = (1..=6).map(|step| watch.look(at(30 + 30 * step), Some(0.1 * step as f64)));
        let asked: Vec<bool> = asked.collect();
        assert_eq!(asked, [false, false, true, false, false, true]);
    }

    #[test]
    fn the_first_measurement_is_made_once_more_and_none_sooner_than_after_half_a_minute() {
        let mut watch = Watch::new(at(0), MS);
        assert!(!watch.look(at(10), Some(0.0)) && !watch.look(at(29), Some(1.0)));
        assert!(!watch.look(at(30), None), "nothing to compare with later");
        assert!(watch.look(at(31), Some(0.0)));
        // It is under way.
        assert!(!watch.look(at(41), Some(1.0)));
        watch.measured(at(42), MS);
        assert!(!watch.look(at(71), Some(1.0)));
        assert!(watch.look(at(72), Some(1.0)));
    }

    #[test]
    fn another_t_counts_when_two_measurements_say_so() {
        let mut watch = settled(0.0);
        assert!(watch.look(at(60), Some(1.0)));
        assert_eq!(watch.measured(at(60), 5 * MS), None);
        // It is asked for the second one whatever the load.
        assert!(!watch.look(at(80), Some(1.0)));
        assert!(watch.look(at(90), Some(1.0)));
        assert_eq!(watch.measured(at(90), 2 * MS), Some(2 * MS));
        assert!(!watch.look(at(120), Some(1.0)));
        assert!(watch.look(at(150), Some(0.0)));
        assert_eq!(watch.measured(at(150), MS), None);
        assert_eq!(watch.measured(at(180), MS), Some(MS));
    }

    #[test]
    fn a_measurement_that_no_other_one_agrees_with_changes_nothing() {
        for sequence in [[5, 1, 5, 1], [5, 1, 1, 5]] {
            let mut watch = settled(0.0);
            for ms in sequence {
                assert_eq!(watch.measured(at(60), ms * MS), None);
            }
        }
        // On either side.
        let mut watch = Watch::new(at(0), 2 * MS);
        assert_eq!(watch.measured(at(60), 5 * MS), None);
        assert_eq!(watch.measured(at(90), MS), None);
        assert_eq!(watch.measured(at(120), MS), Some(MS));
    }
}
