//! What was seen of a run, from outside of the ends: at the router, and where the data come out.

use core::ops::Range;

use packtrain_proto::time::{Duration, Instant};

use super::segment::Phase;

/// Frames of data at the queue of the bottleneck, of senders that were in one phase when they sent them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queued {
    pub frames: u64,
    pub dropped: u64,
    /// The most that stood there when one of them had come, itself included.
    pub bytes_max: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Router {
    pub first_slow_start: Queued,
    pub later_slow_start: Queued,
    pub steady: Queued,
}

impl Router {
    pub fn of(&mut self, phase: Phase) -> &mut Queued {
        match phase {
            Phase::FirstSlowStart => &mut self.first_slow_start,
            Phase::LaterSlowStart => &mut self.later_slow_start,
            Phase::Steady => &mut self.steady,
        }
    }

    fn all(&self) -> [Queued; 3] {
        [self.first_slow_start, self.later_slow_start, self.steady]
    }

    pub fn dropped(&self) -> u64 {
        self.all().iter().map(|queued| queued.dropped).sum()
    }

    pub fn bytes_max(&self) -> usize {
        self.all()
            .iter()
            .map(|queued| queued.bytes_max)
            .max()
            .unwrap_or(0)
    }
}

/// A flow, at the receiver's wire and behind it.
#[derive(Clone, Debug, Default)]
pub struct Arrived {
    /// When each segment of data came, those that nobody wanted included.
    pub segments: Vec<Instant>,
    /// What the application read, and when.
    pub delivered: Vec<(Instant, Range<u64>)>,
}

impl Arrived {
    /// When the application had so many bytes.
    pub fn had(&self, bytes: u64) -> Option<Instant> {
        let index = self
            .delivered
            .partition_point(|(_, range)| range.end < bytes);
        self.delivered.get(index).map(|(at, _)| *at)
    }

    /// The most segments that came within so long: over a round trip, what the path carries when it is full.
    pub fn most_within(&self, time: Duration) -> usize {
        let mut first = 0;
        let ends = self.segments.iter().enumerate().map(|(last, at)| {
            while at.since(self.segments[first]) >= time {
                first += 1;
            }
            last + 1 - first
        });
        ends.max().unwrap_or(0)
    }

    /// How many segments came in each such interval, from `from` on (the paper's figures 2 and 4: in each
    /// millisecond).
    pub fn per(&self, interval: Duration, from: Instant) -> Vec<u32> {
        let mut counts = Vec::new();
        for at in self.segments.iter().filter(|&&at| at >= from) {
            let index = (at.since(from).as_nanos() / interval.as_nanos()) as usize;
            if counts.len() <= index {
                counts.resize(index + 1, 0);
            }
            counts[index] += 1;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_counted_by_intervals_and_found_by_bytes() {
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let arrived = Arrived {
            segments: [1, 3, 3, 4, 9].map(at).to_vec(),
            delivered: vec![(at(3), 0..100), (at(4), 100..400)],
        };
        assert_eq!(
            arrived.per(Duration::from_millis(2), at(1)),
            [1, 3, 0, 0, 1]
        );
        assert_eq!(arrived.per(Duration::from_millis(2), at(4)), [1, 0, 1]);
        let most = [1, 2, 4, 9].map(|ms| arrived.most_within(Duration::from_millis(ms)));
        assert_eq!(most, [2, 3, 4, 5]);
        let had = [1, 100, 101, 400, 401].map(|bytes| arrived.had(bytes));
        assert_eq!(
            had,
            [Some(at(3)), Some(at(3)), Some(at(4)), Some(at(4)), None]
        );
    }
}
