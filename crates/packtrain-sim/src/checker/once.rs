//! What each station was given: every segment of every frame at most once.

use core::ops::Range;

use crate::simulator::StationId;
use crate::workload::flow::{Identity, SEGMENTS_MAX};

#[derive(Debug)]
pub struct Once {
    /// By flow, then station: for each sequence, a bit for each segment that came.
    came: Vec<Vec<Vec<u128>>>,
}

const _: () = assert!(SEGMENTS_MAX <= 128, "a segment has its bit in a u128");

impl Once {
    pub fn new(flows: usize, stations: usize) -> Once {
        Once {
            came: vec![vec![Vec::new(); stations]; flows],
        }
    }

    /// Whether any of the segments had come before.
    pub fn delivered(&mut self, what: Identity, to: StationId, segments: Range<usize>) -> bool {
        let came = &mut self.came[usize::from(what.flow)][to.0];
        let sequence = what.sequence as usize;
        if came.len() <= sequence {
            came.resize(sequence + 1, 0);
        }
        let bits = bits(segments);
        let again = came[sequence] & bits != 0;
        came[sequence] |= bits;
        again
    }

    /// Whether all `count` segments of a frame came.
    pub fn is_whole(&self, flow: usize, sequence: u32, to: StationId, count: usize) -> bool {
        let came = self.came[flow][to.0]
            .get(sequence as usize)
            .copied()
            .unwrap_or(0);
        came == bits(0..count)
    }
}

fn bits(segments: Range<usize>) -> u128 {
    let ones = u128::MAX >> (128 - segments.len());
    ones << segments.start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_is_whole_when_every_segment_came_and_known_when_it_comes_again() {
        let mut once = Once::new(2, 3);
        let what = Identity {
            flow: 1,
            sequence: 7,
            segment: 0,
        };
        let to = StationId(2);
        assert!(!once.delivered(what, to, 0..100));
        assert!(!once.is_whole(1, 7, to, 128));
        assert!(!once.delivered(what, to, 100..128));
        assert!(once.is_whole(1, 7, to, 128));
        assert!(once.delivered(what, to, 127..128));
        assert!(
            !once.delivered(what, StationId(1), 0..128),
            "another station has its own"
        );
    }
}
