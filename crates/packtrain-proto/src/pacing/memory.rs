//! How it is found out what a path carries, from the acknowledgements of all streams of a destination together.
//!
//! Deliveries are measured in windows of a quarter of a round trip, of which three in a row count as the least: acknowledgements
//! that were held up come in a bunch behind a pause, and a bunch, which may take two windows, is no rate.
//! Of streams that are paced two are enough: in one round trip more is tried, of which three whole windows are seen seldom, and too
//! much of it is found out by the next loss. What was sustained so when a window was cut
//! is what the path carries. More than that is more; less is less only where something was lost though that much was known.
//!
//! ```text
//!           cut: what was sustained             more is sustained: that
//!  unknown ─────────────────────────▶ rate r ◀──────────────────────────┐
//!                                       │  └────────────────────────────┘
//!                                       │ cut of one that is paced by r: what was sustained, and what is in
//!                                       └ the round trip that follows if that is less; and r ÷ 2 at least
//! ```
//!
//! Why also the round trip that follows: a loss is known about a round trip after the path has become slower, and the windows that
//! are complete by then may have been before that. What is acknowledged in the next one was sent before anybody knew, so the
//! path was full of it. Later the windows that were cut are what holds back, and nothing is measured by them.

use super::path::Path;
use super::rate;

const SECOND_NS: u64 = 1_000_000_000;
/// Shorter windows would measure how acknowledgements were bunched.
pub const WINDOW_NS_MIN: u64 = 10_000_000;
/// A rate that has grown by less than this part of it has not grown: half of what is tried.
pub const RAISED_DIVISOR: u64 = 2 * rate::PROBE_DIVISOR;

/// For so long after a loss others are its consequences.
pub const REPAIR_ROUND_TRIPS: u64 = 4;

/// Of one destination. Times are nanoseconds of whatever clock the caller has, and do not go back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Memory {
    /// Bytes of segments without their headers; 0: the path was never full.
    pub rate_bytes_per_s: u64,
    /// When it was last full, or carried about as much, or more.
    pub full_at_ns: u64,
    pub window_began_ns: u64,
    pub window_bytes: u64,
    /// Of the last window that is complete, and of the one before it.
    pub window_rate: u64,
    pub former_rate: u64,
    /// The least of the last three, or two.
    pub sustained_rate: u64,
    /// Of trying more and less ([`rate::probing`]).
    pub cycle_began_ns: u64,
    /// The first of the cuts of one round trip; 0: none.
    pub cut_at_ns: u64,
    /// These leave so much.
    pub cut_rate_min: u64,
    /// When it was last counted that more is carried, and how much that was;
    pub raised_at_ns: u64,
    pub raised_rate: u64,
    /// and how often in a row it was counted.
    pub raised: u32,
    /// 0: not known.
    pub rtt_min_us: u32,
}

impl Memory {
    /// So many bytes have arrived there, of a stream with this least round trip (0: not known). `is_paced`: by the rate that is
    /// remembered ([`rate::probing`]).
    pub fn delivered(&mut self, bytes: u64, rtt_us: u32, is_paced: bool, now_ns: u64) {
        let length = now_ns.wrapping_sub(self.window_began_ns);
        // By the round trip that was known when the window began.
        let window_ns = (u64::from(self.rtt_min_us) * 1000 / 4).max(WINDOW_NS_MIN);
        if rtt_us > 0 && (self.rtt_min_us == 0 || rtt_us < self.rtt_min_us) {
            self.rtt_min_us = rtt_us;
        }
        self.window_bytes += bytes;
        if length < window_ns {
            return;
        }
        self.window_began_ns = now_ns;
        let bytes = core::mem::take(&mut self.window_bytes);
        // A pause is not a measure: what comes after one begins a window.
        if length > 4 * window_ns {
            self.window_rate = 0;
            self.former_rate = 0;
            self.sustained_rate = 0;
            return;
        }
        let rate = per_second(bytes, length);
        let former = if is_paced { u64::MAX } else { self.former_rate };
        self.sustained_rate = rate.min(self.window_rate).min(former);
        self.former_rate = self.window_rate;
        self.window_rate = rate;
        self.sustains(now_ns);
    }

    fn sustains(&mut self, now_ns: u64) {
        let (known, sustained) = (self.rate_bytes_per_s, self.sustained_rate);
        if sustained > 0 && sustained < known && self.is_within(1, now_ns) {
            self.rate_bytes_per_s = known.min(sustained.max(self.cut_rate_min));
            return;
        }
        if known == 0 || sustained < known - known / 8 {
            return;
        }
        self.full_at_ns = now_ns;
        if sustained > known {
            self.rate_bytes_per_s = sustained;
            self.raise(now_ns);
        }
    }

    /// More is carried: there may be still more. Twice as much more, if what was tried is carried and not a little more by chance.
    fn raise(&mut self, now_ns: u64) {
        let (before, rate) = (self.raised_rate, self.rate_bytes_per_s);
        self.cycle_began_ns = now_ns;
        let since_ns = now_ns.wrapping_sub(self.raised_at_ns);
        let unit_ns = rate::unit_ns(self.rtt_min_us);
        if since_ns < unit_ns || rate < before + before / RAISED_DIVISOR {
            return;
        }
        let in_a_row = since_ns < 4 * unit_ns;
        self.raised = if in_a_row {
            (self.raised + 1).min(rate::RAISED_MAX)
        } else {
            1
        };
        self.raised_at_ns = now_ns;
        self.raised_rate = rate;
    }

    /// The path was full: a window was cut, or the round trip had grown. `is_less`: what is remembered was too much, because
    /// whoever was cut went by it.
    ///
    /// A loss may have been by chance, and what was sustained then be what a slow start had reached. So it takes half at most,
    /// and what all streams lose in one round trip is one loss. In the next ones it is repaired, by windows that were cut and by
    /// timers: what is lost then is no reason to believe what they let through. A path that carries less loses again.
    pub fn full(&mut self, is_less: bool, now_ns: u64) {
        let (known, sustained) = (self.rate_bytes_per_s, self.sustained_rate);
        let is_new = !self.is_within(REPAIR_ROUND_TRIPS, now_ns);
        if is_less && is_new {
            self.cut_at_ns = now_ns;
            self.cut_rate_min = known / 2;
        }
        if is_less && sustained > 0 && (is_new || self.is_within(1, now_ns)) {
            self.rate_bytes_per_s = sustained.max(self.cut_rate_min);
        } else if sustained > known {
            self.rate_bytes_per_s = sustained;
        }
        self.full_at_ns = now_ns;
        self.raised = 0;
        self.raised_rate = self.rate_bytes_per_s;
        // Not more of it at once.
        let unit_ns = rate::unit_ns(self.rtt_min_us);
        self.cycle_began_ns = now_ns.wrapping_sub(2 * unit_ns);
    }

    /// So many round trips of the last cut that counted.
    fn is_within(&self, round_trips: u64, now_ns: u64) -> bool {
        let since_ns = now_ns.wrapping_sub(self.cut_at_ns);
        self.cut_at_ns > 0 && since_ns < round_trips * u64::from(self.rtt_min_us) * 1000
    }

    /// What a stream with this round trip is told, if it goes by this path and the memory is not too old.
    pub fn path(&self, rtt_us: u32, age_max_ns: u64, now_ns: u64) -> Option<Path> {
        let path = Path {
            rate_bytes_per_s: self.rate_bytes_per_s,
            rtt_min_us: self.rtt_min_us,
        };
        let is_old = now_ns.wrapping_sub(self.full_at_ns) > age_max_ns;
        (path.rate_bytes_per_s > 0 && !is_old && path.holds(rtt_us)).then_some(path)
    }

    /// The rate that all streams of the destination have together now: a little more or less is tried.
    pub fn probing(&self, mss: u32, now_ns: u64) -> u64 {
        let since_ns = now_ns.wrapping_sub(self.cycle_began_ns);
        rate::probing(
            self.rate_bytes_per_s,
            since_ns,
            self.rtt_min_us,
            mss,
            self.raised,
        )
    }
}

/// In integers that do not overflow: to the byte below 2³³ bytes, which is what a window of one second has at 68 Gbit/s.
fn per_second(bytes: u64, length_ns: u64) -> u64 {
    match bytes < 1 << 33 {
        true => bytes * SECOND_NS / length_ns,
        false => bytes / (length_ns / SECOND_NS + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT_US: u32 = 100_000;
    const MS: u64 = 1_000_000;

    /// An acknowledgement each millisecond from `from_ms` on, of so many bytes.
    fn delivers(memory: &mut Memory, from_ms: u64, for_ms: u64, bytes: u64) {
        for ms in from_ms..from_ms + for_ms {
            memory.delivered(bytes, RTT_US, false, ms * MS);
        }
    }

    #[test]
    fn what_was_sustained_when_a_window_was_cut_is_what_the_path_carries_and_more_than_that_is_more()
     {
        let mut memory = Memory::default();
        delivers(&mut memory, 1000, 200, 5000);
        assert_eq!(memory.rate_bytes_per_s, 0, "it was not full");
        memory.full(true, 1200 * MS);
        assert_eq!(memory.rate_bytes_per_s, 5_000_000);
        delivers(&mut memory, 1200, 200, 5000);
        delivers(&mut memory, 1400, 100, 4000);
        assert_eq!(
            (memory.rate_bytes_per_s, memory.full_at_ns),
            (5_000_000, 1400 * MS)
        );
        // About as much keeps it young, and more begins the cycle in which still more is tried.
        delivers(&mut memory, 1500, 100, 4500);
        assert_eq!(memory.full_at_ns, 1575 * MS);
        delivers(&mut memory, 1600, 101, 6000);
        assert_eq!(memory.rate_bytes_per_s, 6_000_000);
        assert_eq!(memory.cycle_began_ns, 1675 * MS);
        assert_eq!(memory.probing(1448, 1676 * MS), 6_300_000);
    }

    #[test]
    fn more_is_tried_each_time_that_it_is_carried_and_as_little_as_ever_after_a_loss() {
        let mut memory = Memory::default();
        delivers(&mut memory, 1000, 200, 5000);
        memory.full(true, 1200 * MS);
        let mut tried = Vec::new();
        let mut ms = 1200;
        for bytes in [5020, 5100, 5400, 6000, 7000, 8000] {
            delivers(&mut memory, ms, 150, bytes);
            ms += 150;
            let rate = memory.rate_bytes_per_s;
            tried.push((
                rate,
                (memory.probing(1448, memory.cycle_began_ns) - rate) * 40 / rate,
            ));
        }
        let rates = [
            5_020_000, 5_100_000, 5_400_000, 6_000_000, 7_000_000, 8_000_000,
        ];
        assert_eq!(
            tried,
            rates
                .into_iter()
                .zip([1, 2, 4, 8, 8, 8])
                .collect::<Vec<_>>()
        );
        memory.full(true, ms * MS);
        assert_eq!((memory.raised, memory.rate_bytes_per_s), (0, 8_000_000));
    }

    #[test]
    fn one_bunch_behind_a_pause_is_no_rate_and_what_comes_after_a_long_one_begins_anew() {
        let mut memory = Memory::default();
        delivers(&mut memory, 1000, 200, 5000);
        memory.full(true, 1200 * MS);
        // Held up for 20 ms, of which each window is 25 long.
        memory.delivered(100_000, RTT_US, false, 1220 * MS);
        delivers(&mut memory, 1221, 100, 5000);
        assert_eq!(memory.rate_bytes_per_s, 5_000_000);
        delivers(&mut memory, 1421, 1, 900_000);
        assert_eq!(memory.sustained_rate, 0);
    }

    #[test]
    fn a_loss_takes_half_at_most_and_only_from_whom_it_was_too_much() {
        let full = |sustained, is_less| {
            let mut memory = Memory {
                rate_bytes_per_s: 8000,
                sustained_rate: sustained,
                rtt_min_us: RTT_US,
                ..Memory::default()
            };
            memory.full(is_less, 1000 * MS);
            memory.rate_bytes_per_s
        };
        assert_eq!(
            [7000, 4000, 3999, 1].map(|rate| full(rate, true)),
            [7000, 4000, 4000, 4000]
        );
        assert_eq!(full(7000, false), 8000);
        assert_eq!(
            [true, false].map(|is_less| full(9000, is_less)),
            [9000, 9000]
        );
        assert_eq!(full(0, true), 8000, "after a pause nothing is known of it");
    }

    #[test]
    fn what_the_round_trip_after_a_loss_carries_counts_if_it_is_less_and_its_losses_are_one() {
        let mut memory = Memory::default();
        delivers(&mut memory, 1000, 200, 5000);
        memory.full(true, 1200 * MS);
        assert_eq!(memory.rate_bytes_per_s, 5_000_000);
        let slower = |bytes, cuts: &[u64], for_ms: u64| {
            let mut memory = memory;
            for ms in 2000..2000 + for_ms {
                memory.delivered(bytes, RTT_US, false, ms * MS);
                if cuts.contains(&ms) {
                    memory.full(true, ms * MS);
                }
            }
            memory.rate_bytes_per_s
        };
        // A pause; the first window is complete at 2025, three are at 2075.
        assert_eq!(slower(3000, &[2030], 74), 5_000_000);
        assert_eq!(slower(3000, &[2030], 85), 3_000_000);
        assert_eq!(slower(1000, &[2030, 2060, 2090], 200), 2_500_000);
        assert_eq!(slower(1000, &[2030, 2131, 2429], 500), 2_500_000);
        assert_eq!(slower(1000, &[2030, 2430], 500), 1_250_000);
        assert_eq!(slower(3000, &[], 400), 5_000_000);
    }

    #[test]
    fn a_bunch_of_two_windows_is_more_only_for_who_is_paced() {
        let more = |is_paced| {
            let mut memory = Memory::default();
            delivers(&mut memory, 1000, 200, 5000);
            memory.full(true, 1200 * MS);
            for ms in 1200..1600 {
                let bytes = if (1401..=1450).contains(&ms) {
                    6000
                } else {
                    5000
                };
                memory.delivered(bytes, RTT_US, is_paced, ms * MS);
            }
            memory.rate_bytes_per_s
        };
        assert_eq!([more(false), more(true)], [5_000_000, 6_000_000]);
    }

    #[test]
    fn nobody_is_told_of_what_is_old_or_of_another_path() {
        let mut memory = Memory::default();
        assert_eq!(memory.path(RTT_US, u64::MAX, 0), None);
        delivers(&mut memory, 1000, 200, 5000);
        memory.full(true, 1200 * MS);
        let told = |rtt_us, ms: u64| memory.path(rtt_us, 1000 * MS, ms * MS).is_some();
        assert!(told(RTT_US, 2200) && !told(RTT_US, 2201));
        assert!(!told(RTT_US / 3, 1200) && told(3 * RTT_US, 1200) && !told(5 * RTT_US, 1200));
        // The cycle goes on where nothing more is tried at once.
        let tried = [1200, 1300, 2599, 2600].map(|ms| memory.probing(1448, ms * MS));
        assert_eq!(tried, [5_000_000, 5_000_000, 5_000_000, 5_125_000]);
    }
}
