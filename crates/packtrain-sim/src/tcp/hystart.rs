//! HyStart: slow start ends before the queue is full (`tcp_cubic.c`; Ha and Rhee, "Taming the elephants", 2008).
//!
//! By two signs, in each round: acknowledgements that follow each other closely, one train, for half of the least round trip: so much
//! the path carries; or a round trip that has grown, by all of the first eight that were measured in it.
//!
//! As in Linux for a socket that is not paced. What is left out: that samples of the first second after a recovery are not looked
//! at.

use packtrain_proto::time::{Duration, Instant};

/// `hystart_low_window`, in segments.
const WINDOW_MIN: u64 = 16;
/// `hystart_ack_delta_us`: so close they are one train.
const GAP_MAX: Duration = Duration::from_millis(2);
/// `HYSTART_MIN_SAMPLES`.
const SAMPLES: u32 = 8;
/// `HYSTART_DELAY_THRESH`, of an eighth of the least round trip.
const DELAY_MIN: Duration = Duration::from_millis(4);
const DELAY_MAX: Duration = Duration::from_millis(16);
/// `hystart_ack_delay`: what the card and the way back may hold together.
const HELD_MAX: Duration = Duration::from_millis(1);
/// Four times `gso_max_size`.
const HELD_BYTES: u64 = 4 * 65_536;

/// What the connection knows at an acknowledgement that has a round trip, before its window grows by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub acknowledged: u64,
    pub next: u64,
    /// Segments.
    pub cwnd: u64,
    pub cwnd_bytes: u64,
    /// Of the newest of what is acknowledged.
    pub rtt: Duration,
    pub rtt_min: Duration,
    pub rtt_smoothed: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Round {
    began: Instant,
    /// It ends when more than this is acknowledged.
    until: u64,
    last: Instant,
    rtt_min: Duration,
    samples: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HyStart {
    round: Option<Round>,
    has_found: bool,
}

impl HyStart {
    /// Slow start begins, or begins anew.
    pub fn begin(&mut self) {
        *self = HyStart::default();
    }

    /// In slow start. Whether it ends here.
    pub fn ends(&mut self, seen: &Seen, now: Instant) -> bool {
        if self.has_found {
            return false;
        }
        let ended = |round: &mut Round| seen.acknowledged > round.until;
        self.round.take_if(ended);
        let round = self.round.get_or_insert(Round {
            began: now,
            until: seen.next,
            last: now,
            rtt_min: Duration::MAX,
            samples: 0,
        });
        // Its rounds are counted all the same.
        if seen.cwnd < WINDOW_MIN {
            return false;
        }
        self.has_found = round.is_full_by_train(seen, now) | round.is_full_by_delay(seen);
        self.has_found
    }
}

impl Round {
    fn is_full_by_train(&mut self, seen: &Seen, now: Instant) -> bool {
        if now.since(self.last) > GAP_MAX {
            return false;
        }
        self.last = now;
        now.since(self.began) > (seen.rtt_min + held(seen)) / 2
    }

    fn is_full_by_delay(&mut self, seen: &Seen) -> bool {
        self.rtt_min = self.rtt_min.min(seen.rtt);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        self.rtt_min > seen.rtt_min + (seen.rtt_min / 8).clamp(DELAY_MIN, DELAY_MAX)
    }
}

/// At twice the rate of the window, which is what Linux thinks of as the rate of slow start.
fn held(seen: &Seen) -> Duration {
    let rtt_ns = u128::from(HELD_BYTES) * seen.rtt_smoothed.as_nanos();
    let ns = rtt_ns / u128::from(2 * seen.cwnd_bytes.max(1));
    HELD_MAX.min(Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    fn seen(acknowledged: u64, rtt: Duration) -> Seen {
        Seen {
            acknowledged,
            next: 1000,
            cwnd: 16,
            cwnd_bytes: 16_000,
            rtt,
            rtt_min: us(100_000),
            rtt_smoothed: us(100_000),
        }
    }

    /// With acknowledgements so far apart, all of one round: which is the first that ends slow start?
    fn ends_at(gap: Duration, rtt: Duration) -> Option<u32> {
        let mut hystart = HyStart::default();
        let at = |n: u32| Instant::ZERO + gap * n;
        (0..500).find(|&n| hystart.ends(&seen(10, rtt), at(n)))
    }

    #[test]
    fn a_train_of_half_a_round_trip_ends_it_and_what_is_not_close_is_no_train() {
        // More than (100 + 1 ms) ÷ 2.
        assert_eq!(ends_at(us(500), us(100_000)), Some(102));
        assert_eq!(ends_at(us(2000), us(100_000)), Some(26));
        assert_eq!(ends_at(us(2001), us(100_000)), None);
    }

    #[test]
    fn a_round_trip_that_has_grown_by_an_eighth_ends_it_at_the_ninth_sample() {
        assert_eq!(ends_at(us(2001), us(112_500)), None);
        assert_eq!(ends_at(us(2001), us(112_501)), Some(8));
        // One that has not is enough.
        let mut hystart = HyStart::default();
        for n in 0..30 {
            let rtt = if n == 5 { us(110_000) } else { us(150_000) };
            assert!(!hystart.ends(&seen(10, rtt), Instant::ZERO + us(3000) * n));
        }
    }

    #[test]
    fn each_round_is_measured_for_itself_and_small_windows_are_not() {
        let mut hystart = HyStart::default();
        let mut ends = |acknowledged, ms: u64, cwnd| {
            let seen = Seen {
                next: acknowledged + 10,
                cwnd,
                ..seen(acknowledged, us(100_000))
            };
            hystart.ends(&seen, Instant::from_nanos(ms * 1_000_000))
        };
        assert!(!ends(1, 0, 15) && !ends(2, 200, 16));
        for n in 1..40 {
            // Each second one begins a round.
            assert!(!ends(2 + 6 * n, 200 + n, 16));
        }
        // All in one, and more than 50.5 ms after it began.
        assert!((240..290).all(|ms| !ends(250, ms, 16)));
        assert!(ends(250, 291, 16));
        assert!(!ends(250, 292, 16), "once");
    }

    /// Else the first round that is looked at would begin in the middle of a flight, whose later segments have waited for the
    /// earlier ones, and so would all that follow.
    #[test]
    fn a_round_begins_with_its_first_acknowledgement_though_the_window_is_too_small_then() {
        let mut hystart = HyStart::default();
        let mut ends = |ms: u64, cwnd| {
            let seen = Seen {
                cwnd,
                ..seen(10, us(100_000))
            };
            hystart.ends(&seen, Instant::from_nanos(ms * 1_000_000))
        };
        assert!(!ends(0, 10) && !ends(1, 15));
        // More than 50.5 ms after the beginning.
        let first = (1..100).find(|n| ends(2 * n, 16));
        assert_eq!(first, Some(26));
    }

    #[test]
    fn what_is_held_together_is_a_millisecond_at_most() {
        assert_eq!(held(&seen(0, us(0))), us(1000));
        let fast = Seen {
            cwnd_bytes: 100_000_000,
            ..seen(0, us(0))
        };
        assert_eq!(held(&fast), Duration::from_nanos(131_072));
    }
}
