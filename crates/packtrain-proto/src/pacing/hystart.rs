//! HyStart++ (RFC 9406): slow start goes on more slowly when the round trip has grown, and ends if it stays so.
//!
//! ```text
//!               round trip has grown             CSS_ROUNDS later
//!   slow start ──────────────────────▶ CSS ─────────────────────────▶ over
//!       ▲                               │
//!       └───────────────────────────────┘
//!          it was less again: it had not been the queue
//! ```
//!
//! In CSS the window still grows, to three times as much until it is over, and many a connection has carried all of its bytes by then. That the
//! path is full, which is worth remembering, is believed earlier: after one whole round that was in CSS.
//!
//! The names are the RFC's. Linux' own HyStart also takes long trains of acknowledgements for a full path, which spaced segments
//! always bring: it is of no use beside spacing.

/// Round trips that a round must have brought to be judged.
pub const N_RTT_SAMPLE: u32 = 8;
/// Of how much a round trip must have grown, within the two bounds: lastRoundMinRTT ÷ this.
pub const MIN_RTT_DIVISOR: u32 = 8;
/// Growth in CSS: a segment for so many that were acknowledged.
pub const CSS_GROWTH_DIVISOR: u32 = 4;
/// Rounds after which slow start is over.
pub const CSS_ROUNDS: u32 = 5;
/// Rounds, of which the first was in CSS only at its end, after which the path is taken for full.
pub const FULL_ROUNDS: u32 = 2;

/// The bounds of what counts as growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    pub min_us: u32,
    pub max_us: u32,
}

impl Default for Thresholds {
    /// The RFC's MIN_RTT_THRESH and MAX_RTT_THRESH.
    fn default() -> Thresholds {
        Thresholds {
            min_us: 4_000,
            max_us: 16_000,
        }
    }
}

/// What becomes of slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    SlowStart,
    /// The window grows by one segment for [`CSS_GROWTH_DIVISOR`].
    Conservative,
    /// As `Conservative`; and a round ends after which the path is taken for full.
    Full,
    /// ssthresh is the window.
    Over,
}

/// Of one slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Hystart {
    /// 0 in these three: no such round trip.
    last_round_min_us: u32,
    current_round_min_us: u32,
    css_baseline_min_us: u32,
    rtt_sample_count: u32,
    css_rounds: u32,
    round_end: u32,
}

impl Hystart {
    /// Slow start begins, and its first round; `nxt`: the first byte that was never sent.
    pub fn begin(&mut self, nxt: u32) {
        *self = Hystart {
            round_end: nxt,
            ..Hystart::default()
        };
    }

    /// An acknowledgement in slow start; `rtt_us` 0: it tells no round trip.
    pub fn acknowledged(
        &mut self,
        una: u32,
        nxt: u32,
        rtt_us: u32,
        thresholds: &Thresholds,
    ) -> Verdict {
        let ends_round = una.wrapping_sub(self.round_end) as i32 >= 0;
        if ends_round {
            self.round_end = nxt;
            self.last_round_min_us = self.current_round_min_us;
            self.current_round_min_us = 0;
            self.rtt_sample_count = 0;
            if self.css_baseline_min_us > 0 {
                self.css_rounds += 1;
                if self.css_rounds >= CSS_ROUNDS {
                    return Verdict::Over;
                }
            }
        }
        if rtt_us > 0 {
            self.rtt_sample_count += 1;
            if self.current_round_min_us == 0 || rtt_us < self.current_round_min_us {
                self.current_round_min_us = rtt_us;
            }
        }
        self.judge(thresholds);
        match self.css_baseline_min_us {
            0 => Verdict::SlowStart,
            _ if ends_round && self.css_rounds >= FULL_ROUNDS => Verdict::Full,
            _ => Verdict::Conservative,
        }
    }

    fn judge(&mut self, thresholds: &Thresholds) {
        if self.rtt_sample_count < N_RTT_SAMPLE {
            return;
        }
        if self.css_baseline_min_us > 0 {
            if self.current_round_min_us < self.css_baseline_min_us {
                self.css_baseline_min_us = 0;
            }
            return;
        }
        let eighth = self.last_round_min_us / MIN_RTT_DIVISOR;
        let growth = eighth.min(thresholds.max_us).max(thresholds.min_us);
        if self.last_round_min_us > 0
            && self.current_round_min_us >= self.last_round_min_us.saturating_add(growth)
        {
            self.css_baseline_min_us = self.current_round_min_us;
            self.css_rounds = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Rounds {
        hystart: Hystart,
        una: u32,
    }

    impl Rounds {
        fn begin() -> Rounds {
            let mut hystart = Hystart::default();
            hystart.begin(1000);
            Rounds { hystart, una: 1000 }
        }

        /// Ten acknowledgements of a hundred bytes, which answer what was sent within the round.
        fn round(&mut self, rtt_us: u32) -> Vec<Verdict> {
            let end = self.una + 1000;
            (0..10)
                .map(|_| {
                    let verdict =
                        self.hystart
                            .acknowledged(self.una, end, rtt_us, &Thresholds::default());
                    self.una += 100;
                    verdict
                })
                .collect()
        }
    }

    #[test]
    fn a_round_trip_that_does_not_grow_changes_nothing() {
        let mut rounds = Rounds::begin();
        for _ in 0..20 {
            assert_eq!(rounds.round(100_000), [Verdict::SlowStart; 10]);
        }
    }

    #[test]
    fn one_that_has_grown_by_an_eighth_slows_down_and_five_rounds_later_slow_start_is_over() {
        let mut rounds = Rounds::begin();
        rounds.round(100_000);
        // An eighth is 12.5 ms.
        assert_eq!(rounds.round(112_000), [Verdict::SlowStart; 10]);
        let verdicts = rounds.round(126_000);
        assert_eq!(verdicts[..7], [Verdict::SlowStart; 7]);
        assert_eq!(verdicts[7..], [Verdict::Conservative; 3]);
        assert_eq!(rounds.round(130_000), [Verdict::Conservative; 10]);
        for _ in 0..3 {
            let verdicts = rounds.round(130_000);
            assert_eq!(verdicts[0], Verdict::Full);
            assert_eq!(verdicts[1..], [Verdict::Conservative; 9]);
        }
        assert_eq!(rounds.round(130_000)[0], Verdict::Over);
    }

    #[test]
    fn one_that_is_less_again_was_not_the_queue() {
        let mut rounds = Rounds::begin();
        rounds.round(100_000);
        assert_eq!(rounds.round(120_000)[9], Verdict::Conservative);
        let verdicts = rounds.round(101_000);
        assert_eq!(verdicts[..7], [Verdict::Conservative; 7]);
        assert_eq!(verdicts[7..], [Verdict::SlowStart; 3]);
    }

    #[test]
    fn growth_is_bounded_from_both_sides() {
        // An eighth of 8 ms is 1 ms, which counts as 4.
        let mut short = Rounds::begin();
        short.round(8_000);
        assert_eq!(short.round(11_900), [Verdict::SlowStart; 10]);
        let mut short = Rounds::begin();
        short.round(8_000);
        assert_eq!(short.round(12_000)[9], Verdict::Conservative);
        // An eighth of 400 ms is 50 ms, which counts as 16.
        let mut long = Rounds::begin();
        long.round(400_000);
        assert_eq!(long.round(416_000)[9], Verdict::Conservative);
    }

    #[test]
    fn too_few_round_trips_tell_nothing() {
        let mut rounds = Rounds::begin();
        rounds.round(100_000);
        for una in [2000, 2000, 2000, 2000, 2000, 2000, 2000] {
            let verdict = rounds
                .hystart
                .acknowledged(una, 3000, 200_000, &Thresholds::default());
            assert_eq!(verdict, Verdict::SlowStart);
        }
        let unknown = rounds
            .hystart
            .acknowledged(2000, 3000, 0, &Thresholds::default());
        assert_eq!(unknown, Verdict::SlowStart);
    }
}
