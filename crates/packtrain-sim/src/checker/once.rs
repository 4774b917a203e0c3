//! What each station was given: every segment of every frame at most once.

use core::ops::Range;

use crate::simulator::StationId;
use crate::workload::flow::SEGMENTS_MAX;
use crate::workload::identity::Identity;

/// For each sequence of a flow, a bit for each segment that came to a station.
type Came = Vec<u128>;

#[derive(Debug)]
pub struct Once {
    /// By flow, then station: ever, and since the station started.
    came: Vec<Vec<[Came; 2]>>,
}

const EVER: usize = 0;
const LATELY: usize = 1;

/// Whether a segment had come before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    No,
    /// To whoever was there before the station started anew.
    SinceItsRestart,
    Yes,
}

const _: () = assert!(SEGMENTS_MAX <= 128, "a segment has its bit in a u128");

impl Once {
    pub fn new(flows: usize, stations: usize) -> Once {
        Once {
            came: vec![vec![Default::default(); stations]; flows],
        }
    }

    /// Whether any of the segments had come before.
    pub fn delivered(&mut self, what: Identity, to: StationId, segments: Range<usize>) -> Again {
        let sequence = what.sequence as usize;
        let bits = bits(segments);
        let came = &mut self.came[usize::from(what.flow)][to.0];
        let [ever, lately] = came.each_mut().map(|came| {
            if came.len() <= sequence {
                came.resize(sequence + 1, 0);
            }
            let again = came[sequence] & bits != 0;
            came[sequence] |= bits;
            again
        });
        match (ever, lately) {
            (_, true) => Again::Yes,
            (true, false) => Again::SinceItsRestart,
            (false, false) => Again::No,
        }
    }

    /// A station starts anew, and knows nothing.
    pub fn restarted(&mut self, station: StationId) {
        for stations in &mut self.came {
            stations[station.0][LATELY].clear();
        }
    }

    /// Whether all `count` segments of a frame came.
    pub fn is_whole(&self, flow: usize, sequence: u32, to: StationId, count: usize) -> bool {
        let came = self.came[flow][to.0][EVER]
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
        assert_eq!(once.delivered(what, to, 0..100), Again::No);
        assert!(!once.is_whole(1, 7, to, 128));
        assert_eq!(once.delivered(what, to, 100..128), Again::No);
        assert!(once.is_whole(1, 7, to, 128));
        assert_eq!(once.delivered(what, to, 127..128), Again::Yes);
        let other = once.delivered(what, StationId(1), 0..128);
        assert_eq!(other, Again::No, "another station has its own");
        once.restarted(to);
        assert!(once.is_whole(1, 7, to, 128));
        let since = once.delivered(what, to, 5..6);
        assert_eq!(since, Again::SinceItsRestart);
        assert_eq!(once.delivered(what, to, 4..6), Again::Yes);
        assert_eq!(once.delivered(what, StationId(1), 5..6), Again::Yes);
    }
}
