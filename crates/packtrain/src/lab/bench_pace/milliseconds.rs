//! Packets that came to the receiver in each millisecond: the CPS paper's Fig. 2 and 4.

use serde::Serialize;

use super::trace::Segment;

/// The paper's figures are of two seconds.
pub const SHOWN_MS: usize = 2000;

/// A row of milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(Vec<u32>);

/// Two seconds of it, in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Milliseconds {
    pub packets: u64,
    pub most: u32,
    /// The share of them in which none came.
    pub without: f64,
    /// The share of the time in which the line was carrying.
    pub line_busy: f64,
}

impl Counts {
    /// Of all that carries something, from the first on.
    pub fn of(arrived: &[Segment]) -> Counts {
        let mut data = arrived.iter().filter(|segment| segment.payload > 0);
        let Some(first) = data.next() else {
            return Counts::default();
        };
        let mut counts = vec![1];
        for segment in data {
            let ms = (segment.at.saturating_sub(first.at) / 1_000_000) as usize;
            if ms >= counts.len() {
                counts.resize(ms + 1, 0);
            }
            counts[ms] += 1;
        }
        Counts(counts)
    }

    pub fn all(&self) -> &[u32] {
        &self.0
    }

    /// So many from this one on, or as many as there are.
    pub fn from(&self, ms: usize) -> &[u32] {
        let end = (ms + SHOWN_MS).min(self.0.len());
        self.0.get(ms..end).unwrap_or(&[])
    }

    /// `packet_ns`: how long the line takes for one.
    pub fn summary(&self, from_ms: usize, packet_ns: f64) -> Milliseconds {
        let shown = self.from(from_ms);
        let packets: u64 = shown.iter().map(|&count| u64::from(count)).sum();
        let without = shown.iter().filter(|&&count| count == 0).count();
        let len = shown.len().max(1) as f64;
        Milliseconds {
            packets,
            most: shown.iter().copied().max().unwrap_or(0),
            without: without as f64 / len,
            line_busy: packets as f64 * packet_ns / (len * 1e6),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::trace::tests::full;
    use super::*;

    #[test]
    fn packets_are_counted_by_the_millisecond_from_the_first_on() {
        let mut arrived: Vec<Segment> = [500.0, 1499.0, 1500.0, 1501.0, 4499.9]
            .into_iter()
            .enumerate()
            .map(|(number, at)| full(number as u64, at))
            .collect();
        let counts = Counts::of(&arrived);
        assert_eq!(counts.all(), [2, 2, 0, 1]);
        // What only acknowledges is no packet of the figure.
        arrived.insert(
            0,
            Segment {
                payload: 0,
                ..full(0, 1.0)
            },
        );
        assert_eq!(Counts::of(&arrived), counts);
        let summary = counts.summary(0, 20_000.0);
        assert_eq!((summary.packets, summary.most), (5, 2));
        assert_eq!((summary.without, summary.line_busy), (0.25, 0.025));
        assert_eq!(counts.from(3), [1]);
        assert_eq!(counts.summary(9, 1.0).packets, 0);
        assert!(Counts::of(&[]).all().is_empty());
    }

    #[test]
    fn two_seconds_are_shown_of_a_longer_row() {
        let arrived: Vec<Segment> = (0..5000).map(|i| full(i, 1000.0 * i as f64)).collect();
        let counts = Counts::of(&arrived);
        assert_eq!((counts.all().len(), counts.from(1000).len()), (5000, 2000));
        assert_eq!(counts.summary(1000, 1.0).without, 0.0);
    }
}
