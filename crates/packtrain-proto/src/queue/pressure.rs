//! Whether the links to a destination are short of frames a second just now, and could carry more in each: when a
//! wait for others costs nothing, because who does not wait here waits behind.
//!
//! A link is short while something is left behind each time that a train leaves; then the time between two trains is
//! what it takes for one. It could carry more where trains are not half full.

use crate::time::{Duration, Instant};

/// The weight of one more train is an eighth.
const SHIFT: u32 = 3;
/// So many trains after the last that left something behind, the link is short no longer.
const SHORT_FOR_TRAINS: u32 = 16;
/// A train that is as full as this has hardly room for others.
const FULL_PERCENT: u32 = 50;
/// No wait is longer, whatever a link takes for a train.
pub const WAIT_MAX: Duration = Duration::from_millis(1);

/// What a frame does that leaves it to the engine whether it waits ([`crate::class::Pack::Auto`]), and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub enum AutoChoice {
    /// It leaves: the links have room.
    #[default]
    HasRoom,
    /// It leaves: trains are full as it is.
    FullTrains,
    /// It leaves: no other frame is to be expected so soon.
    Alone,
    /// It waits so long at most: a link is short of frames a second, and trains are half empty.
    Waits(Duration),
}

#[derive(Debug, Default)]
pub struct Pressure {
    last_train: Option<Instant>,
    /// The last train left something behind that had no room.
    left_behind: bool,
    /// Between two trains while that was so.
    gap_ns: u64,
    short_at: Option<Instant>,
    fill_percent: Option<u32>,
    pub choice: AutoChoice,
}

fn average(before: u64, next: u64) -> u64 {
    before - (before >> SHIFT) + (next >> SHIFT)
}

impl Pressure {
    /// A train has left, so full, and something is still there that might have left with it.
    pub fn on_train(&mut self, fill_percent: u32, left_behind: bool, now: Instant) {
        if let Some(last) = self.last_train.replace(now)
            && self.left_behind
            && now > last
        {
            let gap = now.since(last).as_nanos() as u64;
            self.gap_ns = match self.short_at {
                None => gap,
                Some(_) => average(self.gap_ns, gap),
            };
            self.short_at = Some(now);
        }
        self.left_behind = left_behind;
        let fill = self.fill_percent.unwrap_or(fill_percent);
        self.fill_percent = Some(fill - (fill >> SHIFT) + (fill_percent >> SHIFT));
    }

    /// What a link takes for a train, where it is short of them.
    fn train_gap(&self, now: Instant) -> Option<Duration> {
        let gap = Duration::from_nanos(self.gap_ns);
        let age = now.since(self.short_at?);
        (age <= SHORT_FOR_TRAINS * gap).then_some(gap)
    }

    /// How long a wait may last that costs nothing, or why it would.
    pub fn affordable_wait(&self, now: Instant) -> Result<Duration, AutoChoice> {
        let gap = self.train_gap(now).ok_or(AutoChoice::HasRoom)?;
        match self.fill_percent {
            Some(fill) if fill >= FULL_PERCENT => Err(AutoChoice::FullTrains),
            _ => Ok(gap.min(WAIT_MAX)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(us)
    }

    /// A train every 200 µs, and whether each leaves something behind.
    fn trains(fill_percent: u32, left_behind: bool) -> Pressure {
        let mut pressure = Pressure::default();
        for n in 0..40 {
            pressure.on_train(fill_percent, left_behind, at(200 * n));
        }
        pressure
    }

    #[test]
    fn a_link_that_leaves_nothing_behind_has_room() {
        let idle = trains(10, false);
        assert_eq!(idle.affordable_wait(at(8000)), Err(AutoChoice::HasRoom));
        assert_eq!(
            Pressure::default().affordable_wait(at(1)),
            Err(AutoChoice::HasRoom)
        );
        // All at one moment: that is no time for a train.
        let mut burst = Pressure::default();
        (0..9).for_each(|_| burst.on_train(10, true, at(5)));
        assert_eq!(burst.affordable_wait(at(5)), Err(AutoChoice::HasRoom));
    }

    #[test]
    fn one_that_does_is_short_for_a_while_and_what_it_takes_for_a_train_may_be_waited() {
        let short = trains(20, true);
        let last = 200 * 39;
        assert_eq!(
            short.affordable_wait(at(last)),
            Ok(Duration::from_micros(200))
        );
        assert!(short.affordable_wait(at(last + 16 * 199)).is_ok());
        assert_eq!(
            short.affordable_wait(at(last + 16 * 201)),
            Err(AutoChoice::HasRoom)
        );
    }

    #[test]
    fn full_trains_are_not_waited_for_and_slow_ones_not_for_long() {
        assert_eq!(
            trains(90, true).affordable_wait(at(7800)),
            Err(AutoChoice::FullTrains)
        );
        let mut slow = Pressure::default();
        (0..9).for_each(|n| slow.on_train(5, true, at(20_000 * n)));
        assert_eq!(slow.affordable_wait(at(160_000)), Ok(WAIT_MAX));
    }
}
