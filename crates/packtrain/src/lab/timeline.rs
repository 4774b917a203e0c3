//! How much arrived when: for how long nothing came, and from when on it was as much as it should be.

use std::time::{Duration, Instant};

/// Short against what is asked of a line that loses a link, long against the gaps between packets.
const BIN: Duration = Duration::from_millis(10);
/// A speed is reached when it lasts: what was held back and comes in one go is no speed.
const WINDOW_BINS: usize = 10;
/// Shorter ones are not kept.
const GAP: Duration = Duration::from_millis(1);

/// Bytes in bins of 10 ms, from a beginning that several of them may share.
#[derive(Clone, Debug)]
pub struct Timeline {
    start: Instant,
    bins: Vec<u64>,
    first: Option<Instant>,
    last: Option<Instant>,
    gap_max: Duration,
    /// When those of a millisecond and more began, and how long they were.
    gaps: Vec<(Instant, Duration)>,
}

impl Timeline {
    pub fn from(start: Instant) -> Timeline {
        Timeline {
            start,
            bins: Vec::new(),
            first: None,
            last: None,
            gap_max: Duration::ZERO,
            gaps: Vec::new(),
        }
    }

    /// Arrivals are told of in the order of their times.
    pub fn record(&mut self, at: Instant, bytes: u64) {
        let bin = self.bin_of(at);
        if bin >= self.bins.len() {
            self.bins.resize(bin + 1, 0);
        }
        self.bins[bin] += bytes;
        if let Some(last) = self.last {
            let gap = at.saturating_duration_since(last);
            self.gap_max = self.gap_max.max(gap);
            if gap >= GAP {
                self.gaps.push((last, gap));
            }
        }
        self.first.get_or_insert(at);
        self.last = Some(at);
    }

    /// The longest time between two arrivals.
    pub fn gap_max(&self) -> Duration {
        self.gap_max
    }

    /// The longest of those that lasted into this time, or began in it: of a millisecond at least, or zero.
    pub fn gap_max_within(&self, from: Instant, until: Instant) -> Duration {
        let touches =
            |(begun, gap): &&(Instant, Duration)| *begun <= until && *begun + *gap >= from;
        let gaps = self.gaps.iter().filter(touches);
        gaps.map(|(_, gap)| *gap).max().unwrap_or_default()
    }

    pub fn bytes(&self) -> u64 {
        self.bins.iter().sum()
    }

    /// From the first arrival to the last, bit/s; 0 when there are no two.
    pub fn rate_bps(&self) -> f64 {
        let (Some(first), Some(last)) = (self.first, self.last) else {
            return 0.0;
        };
        let seconds = last.saturating_duration_since(first).as_secs_f64();
        if seconds > 0.0 {
            self.bytes() as f64 * 8.0 / seconds
        } else {
            0.0
        }
    }

    /// Both together: their speeds, not their gaps.
    pub fn with(&self, other: &Timeline) -> Timeline {
        assert!(self.start == other.start, "bins of different beginnings");
        let count = self.bins.len().max(other.bins.len());
        let at = |bins: &[u64], i: usize| bins.get(i).copied().unwrap_or(0);
        Timeline {
            start: self.start,
            bins: (0..count)
                .map(|i| at(&self.bins, i) + at(&other.bins, i))
                .collect(),
            first: self.first.into_iter().chain(other.first).min(),
            last: self.last.max(other.last),
            gap_max: self.gap_max.min(other.gap_max),
            gaps: Vec::new(),
        }
    }

    /// How long after `from` a tenth of a second begins in which `rate_bps` is reached on average;
    /// `None` when none does before `until`.
    pub fn reaches(&self, rate_bps: f64, from: Instant, until: Instant) -> Option<Duration> {
        let window_seconds = (BIN * WINDOW_BINS as u32).as_secs_f64();
        let bytes_least = rate_bps / 8.0 * window_seconds;
        // Bins that begin after it alone: the one that it falls into holds some of before.
        let (first, end) = (self.bin_of(from) + 1, self.bin_of(until));
        let bins = self.bins.get(first..end.min(self.bins.len()))?;
        let windows = bins.windows(WINDOW_BINS);
        let reached = windows
            .map(|window| window.iter().sum::<u64>() as f64)
            .position(|bytes| bytes >= bytes_least)?;
        let begins = self.start + BIN * (first + reached) as u32;
        Some(begins.saturating_duration_since(from))
    }

    fn bin_of(&self, at: Instant) -> usize {
        let since = at.saturating_duration_since(self.start);
        (since.as_nanos() / BIN.as_nanos()) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::now;

    const MS: Duration = Duration::from_millis(1);

    /// `bytes` a millisecond, for each of the steps so many milliseconds.
    fn timeline(steps: &[(u64, u32)]) -> Timeline {
        let start = now();
        let mut timeline = Timeline::from(start);
        let mut ms = 0;
        for &(bytes, duration_ms) in steps {
            for _ in 0..duration_ms {
                if bytes > 0 {
                    timeline.record(start + MS * ms, bytes);
                }
                ms += 1;
            }
        }
        timeline
    }

    #[test]
    fn a_speed_is_reached_where_it_lasts_a_tenth_of_a_second() {
        // 1000 bytes a millisecond are 8 Mbit/s. After the silence all of it comes in one go.
        let it = timeline(&[(2000, 200), (0, 35), (35_000, 1), (500, 100), (1000, 500)]);
        let cut = it.start + MS * 200;
        let end = it.start + MS * 836;
        let after = it.reaches(8e6, cut, end).unwrap();
        assert_eq!(after, MS * 140, "{it:?}");
        assert_eq!(it.reaches(9e6, cut, end), None);
        assert_eq!(it.reaches(8e6, cut, cut + MS * 100), None, "not before");
        assert_eq!(it.reaches(1.0, end, end + MS), None);
    }

    #[test]
    fn the_longest_gap_is_between_two_arrivals() {
        let it = timeline(&[(0, 50), (1, 10), (0, 24), (1, 10), (0, 90)]);
        assert_eq!(it.gap_max(), MS * 25);
        let within = |from, until| it.gap_max_within(it.start + MS * from, it.start + MS * until);
        assert_eq!(within(0, 100), MS * 25);
        assert_eq!(within(70, 71), MS * 25);
        assert_eq!(
            within(50, 58),
            MS,
            "those between two that follow each other"
        );
        assert_eq!(within(100, 200), Duration::ZERO);
        assert_eq!(it.bytes(), 20);
    }

    #[test]
    fn two_are_added_bin_by_bin() {
        let one = timeline(&[(1000, 100)]);
        let mut other = Timeline::from(one.start);
        other.record(one.start + MS * 150, 7);
        let both = one.with(&other);
        assert_eq!(both.bytes(), 100_007);
        assert_eq!(both.bins.len(), 16);
        assert!((one.rate_bps() - 8e6 * 100.0 / 99.0).abs() < 1.0);
    }
}
