//! How many frames trains and aggregates carried, and how full they were.

use crate::stats::{FillBucket, FramesBucket, TrainSizesSnapshot};

/// Counted one by one up to here, and together above.
const FRAMES_MAX: usize = 255;
/// A twentieth of what the link takes each.
const FILLS: usize = 20;

#[derive(Clone, Debug)]
pub struct TrainSizes {
    frames: Box<[u64; FRAMES_MAX + 1]>,
    fills: [u64; FILLS],
}

impl Default for TrainSizes {
    fn default() -> TrainSizes {
        TrainSizes {
            frames: Box::new([0; FRAMES_MAX + 1]),
            fills: [0; FILLS],
        }
    }
}

impl TrainSizes {
    /// One left with so many frames, or last pieces of frames, and so many bytes of those it might have had.
    pub fn record(&mut self, frames: usize, bytes: usize, bytes_max: usize) {
        self.frames[frames.min(FRAMES_MAX)] += 1;
        // What fills it to the last byte is in the last of them.
        let fill = (bytes * FILLS).saturating_sub(1) / bytes_max.max(1);
        self.fills[fill.min(FILLS - 1)] += 1;
    }

    pub fn snapshot(&self) -> TrainSizesSnapshot {
        let met = |counts: &[u64]| {
            let counts = counts.iter().copied().enumerate();
            counts.filter(|&(_, n)| n > 0).collect::<Vec<_>>()
        };
        let frames = met(&self.frames[..]).into_iter();
        let fills = met(&self.fills).into_iter();
        TrainSizesSnapshot {
            frames: frames
                .map(|(frames, trains)| FramesBucket {
                    frames: frames as u16,
                    trains,
                })
                .collect(),
            fill: fills
                .map(|(fill, trains)| FillBucket {
                    percent_max: ((fill + 1) * 100 / FILLS) as u8,
                    trains,
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_size_and_each_twentieth_is_counted_apart() {
        let mut sizes = TrainSizes::default();
        for (frames, bytes) in [
            (1, 0),
            (1, 75),
            (1, 76),
            (14, 1425),
            (14, 1426),
            (15, 1500),
            (700, 9999),
        ] {
            sizes.record(frames, bytes, 1500);
        }
        let seen = sizes.snapshot();
        let frames = seen
            .frames
            .iter()
            .map(|bucket| (bucket.frames, bucket.trains));
        assert_eq!(
            frames.collect::<Vec<_>>(),
            [(1, 3), (14, 2), (15, 1), (255, 1)]
        );
        let fill = seen
            .fill
            .iter()
            .map(|bucket| (bucket.percent_max, bucket.trains));
        assert_eq!(
            fill.collect::<Vec<_>>(),
            [(5, 2), (10, 1), (95, 1), (100, 3)]
        );
        sizes.record(1, 0, 0);
    }
}
