//! CUBIC (RFC 9438), in the integers of Linux' `tcp_cubic.c`, without its HyStart.
//!
//! It says how far a window is cut, and for how many acknowledged segments it grows by one, out of slow start. What is left out:
//! that an epoch waits while nothing is under way.

use packtrain_proto::time::{Duration, Instant};

/// β, in 1024ths.
const BETA: u64 = 717;
/// C = 0.4 segments a second³, in 1024ths.
const C: u64 = 410;
/// Reno would grow by 1 segment in a round trip; from 0.7 of a window, and not the half, as much as it has with 3 (1 − β) ÷ (1 + β).
const FRIENDLY_EIGHTHS: u64 = 15;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cubic {
    /// How long what was found out holds while the window stays the same.
    holds: Option<Duration>,
    /// W_max, in segments; 0: not known.
    max: u64,
    epoch: Option<Epoch>,
}

/// Since the window was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Epoch {
    began: Instant,
    /// The plateau, which is reached after `plateau_after`, in 1024ths of a second.
    origin: u64,
    plateau_after: u64,
    /// As Reno would have it.
    friendly: u64,
    acked: u64,
    told: Option<Told>,
}

/// What was found out last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Told {
    at: Instant,
    window: u64,
    each: u64,
}

impl Cubic {
    /// While the window stays the same, what was found out holds for so long; `None`: each acknowledgement finds it out anew.
    pub fn new(holds: Option<Duration>) -> Cubic {
        Cubic {
            holds,
            ..Cubic::default()
        }
    }

    /// The window of so many segments is cut, to so many.
    pub fn cut(&mut self, window: u64) -> u64 {
        self.epoch = None;
        // Fast convergence.
        self.max = match window < self.max {
            true => window * (1024 + BETA) / 2048,
            false => window,
        };
        (window * BETA / 1024).max(2)
    }

    /// After a timeout nothing is known.
    pub fn reset(&mut self) {
        *self = Cubic::new(self.holds);
    }

    /// Slow start has ended at this window because the path is full there.
    pub fn is_full_at(&mut self, window: u64) {
        if self.max == 0 {
            self.max = window;
        }
    }

    /// So many segments were acknowledged. For how many the window grows by one.
    pub fn each(&mut self, window: u64, acked: u64, rtt_min: Duration, now: Instant) -> u64 {
        let (max, holds) = (self.max, self.holds);
        let epoch = self.epoch.get_or_insert_with(|| {
            let below = max.saturating_sub(window);
            Epoch {
                began: now,
                origin: max.max(window),
                // In 1024ths: (below ÷ C)^⅓ · 1024.
                plateau_after: cube_root((below << 40) / C),
                friendly: window,
                acked: 0,
                told: None,
            }
        });
        epoch.acked += acked;
        let still = |told: &Told| {
            told.window == window && holds.is_some_and(|holds| now.since(told.at) <= holds)
        };
        if let Some(told) = epoch.told.filter(still) {
            return told.each;
        }
        let since = now.since(epoch.began) + rtt_min;
        let since = since.as_micros() as u64 * 1024 / 1_000_000;
        let off = u128::from(since.abs_diff(epoch.plateau_after));
        let delta = (off * off * off * u128::from(C)) >> 40;
        let delta = u64::try_from(delta).unwrap_or(u64::MAX);
        let target = match since < epoch.plateau_after {
            true => epoch.origin.saturating_sub(delta),
            false => epoch.origin.saturating_add(delta),
        };
        let mut each = match target > window {
            true => window / (target - window),
            false => 100 * window,
        };
        if max == 0 {
            each = each.min(20);
        }
        let friendly_each = (window * FRIENDLY_EIGHTHS / 8).max(1);
        // With the one after so many, as Linux has it.
        let more = epoch.acked.saturating_sub(1) / friendly_each;
        epoch.friendly += more;
        epoch.acked -= more * friendly_each;
        if epoch.friendly > window {
            each = each.min(window / (epoch.friendly - window));
        }
        // 1.5 times in a round trip at most.
        let each = each.max(2);
        epoch.told = Some(Told {
            at: now,
            window,
            each,
        });
        each
    }
}

/// Rounded down.
fn cube_root(of: u64) -> u64 {
    let (mut low, mut high) = (0u64, 1 << 22);
    while low + 1 < high {
        let middle = low.midpoint(high);
        match u128::from(middle).pow(3) <= u128::from(of) {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    /// A window that is always full, in each round trip after the first cut.
    fn grows(cubic: &mut Cubic, mut window: u64, round_trips: u64, from: Instant) -> Vec<u64> {
        let mut counted = 0;
        let trips = (0..round_trips).map(|trip| {
            let now = from + RTT * trip as u32;
            let in_this_one = window;
            for _ in 0..in_this_one {
                let each = cubic.each(window, 1, RTT, now);
                counted += 1;
                if counted >= each {
                    counted = 0;
                    window += 1;
                }
            }
            window
        });
        trips.collect()
    }

    #[test]
    fn roots_are_rounded_down() {
        assert_eq!(
            [0, 7, 8, 26, 27, u64::MAX].map(cube_root),
            [0, 1, 2, 2, 3, 2_642_245]
        );
    }

    #[test]
    fn a_window_is_cut_to_seven_tenths_and_is_at_its_plateau_after_k() {
        let mut cubic = Cubic::default();
        let window = cubic.cut(1000);
        assert_eq!(window, 700);
        // K = (300 ÷ 0.4)^⅓ = 9.09 s.
        let windows = grows(&mut cubic, window, 150, Instant::ZERO);
        assert!((960..=1000).contains(&windows[60]), "{}", windows[60]);
        assert!((995..=1001).contains(&windows[90]), "{}", windows[90]);
        // 5.9 s later: 1000 + 0.4 · 5.9³ = 1082.
        assert!((1070..=1090).contains(&windows[149]), "{}", windows[149]);
    }

    #[test]
    fn one_that_was_not_full_for_long_grows_by_half_in_a_round_trip() {
        let mut cubic = Cubic::default();
        cubic.is_full_at(500);
        let each = cubic.each(500, 1, RTT, Instant::ZERO);
        assert_eq!(each, 50_000);
        let later = Instant::ZERO + Duration::from_secs(60);
        assert_eq!(cubic.each(500, 1, RTT, later), 2);
    }

    #[test]
    fn what_was_found_out_holds_while_the_window_is_the_same_and_what_arrives_meanwhile_counts() {
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let mut held = Cubic::new(Some(Duration::from_millis(30)));
        let mut anew = Cubic::new(None);
        for cubic in [&mut held, &mut anew] {
            cubic.is_full_at(10);
        }
        let mut each = |window, acked, ms| {
            [&mut held, &mut anew].map(|cubic| cubic.each(window, acked, RTT, at(ms)))
        };
        // As Reno it would have eleven with the nineteenth that arrives.
        assert_eq!(each(10, 18, 0), [1000, 1000]);
        assert_eq!(each(10, 1, 30), [1000, 10]);
        assert_eq!(each(10, 1, 31), [10, 10]);
        // At once with a window of another size; and twelve with twenty more.
        assert_eq!(each(11, 1, 32), [1100, 1100]);
        assert_eq!(each(11, 18, 33), [1100, 11]);
        assert_eq!(each(11, 0, 63), [11, 11]);
        held.cut(10);
        assert_eq!(held.each(11, 1, RTT, at(64)), 1100, "another epoch");
    }

    #[test]
    fn a_small_window_grows_as_renos() {
        let mut cubic = Cubic::default();
        let window = cubic.cut(10);
        let windows = grows(&mut cubic, window, 20, Instant::ZERO);
        assert!((15..=19).contains(&windows[19]), "{windows:?}");
    }
}
