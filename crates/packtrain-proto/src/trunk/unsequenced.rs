//! Frames without a sequence that came while trains of their peer were held: they wait for those, for
//! they may be later frames of the same flows. Bounded; with more, the oldest goes before its turn, and
//! nothing is lost for it.

use std::collections::VecDeque;

use arrayvec::ArrayVec;

use crate::buffer::Buffer;
use crate::offload::Offload;
use crate::time::Instant;
use crate::trunk::lane::{LANES_MAX, LaneId};
use crate::wire::sequence::Sequence;

/// A frame that waits behind trains.
#[derive(Debug)]
pub struct Unsequenced {
    /// The last of these in each lane.
    pub behind: ArrayVec<(LaneId, Sequence), LANES_MAX>,
    /// It left by the only link that its sender had.
    pub is_marked: bool,
    pub frame: Buffer,
    pub offload: Offload,
    pub arrived: Instant,
}

/// Those of one peer, in the order in which they came.
#[derive(Debug, Default)]
pub struct UnsequencedFrames {
    waiting: VecDeque<Unsequenced>,
    bytes: usize,
}

impl UnsequencedFrames {
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn push(&mut self, frame: Unsequenced) {
        self.bytes += frame.frame.capacity();
        self.waiting.push_back(frame);
    }

    /// The next frame that waits for nothing any more. `stands_behind`: whether this train of a lane, or one before it, may still
    /// have its turn.
    pub fn pop(
        &mut self,
        stands_behind: impl Fn(LaneId, Sequence) -> bool,
        bytes_max: usize,
    ) -> Option<Unsequenced> {
        let first = self.waiting.front()?;
        let mut behind = first.behind.iter();
        let waits = behind.any(|&(lane, last)| stands_behind(lane, last));
        if waits && self.bytes <= bytes_max {
            return None;
        }
        let first = self.waiting.pop_front()?;
        self.bytes -= first.frame.capacity();
        Some(first)
    }

    pub fn clear(&mut self) {
        self.waiting.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LANE: LaneId = LaneId(1);

    fn push(frames: &mut UnsequencedFrames, behind: u32, bytes: usize) {
        push_behind(frames, &[(LANE, Sequence(behind))], bytes);
    }

    fn push_behind(frames: &mut UnsequencedFrames, behind: &[(LaneId, Sequence)], bytes: usize) {
        frames.push(Unsequenced {
            behind: behind.iter().copied().collect(),
            is_marked: false,
            frame: Buffer::with_capacity(bytes),
            offload: Offload::NONE,
            arrived: Instant::ZERO,
        });
    }

    fn pop(frames: &mut UnsequencedFrames, expected: u32) -> Option<u32> {
        let popped = frames.pop(|_, last| !Sequence(expected).is_newer_than(last), 3000);
        popped.map(|frame| frame.behind[0].1.0)
    }

    #[test]
    fn a_frame_goes_when_the_last_train_before_it_has_gone() {
        let mut frames = UnsequencedFrames::default();
        for behind in [5, 5, 7] {
            push(&mut frames, behind, 1000);
        }
        assert_eq!(pop(&mut frames, 5), None);
        assert_eq!(pop(&mut frames, 6), Some(5));
        assert_eq!(pop(&mut frames, 6), Some(5));
        assert_eq!(pop(&mut frames, 6), None);
        assert_eq!(pop(&mut frames, 8), Some(7));
        assert!(frames.is_empty());
    }

    #[test]
    fn it_waits_for_each_lane() {
        let mut frames = UnsequencedFrames::default();
        let behind = [(LaneId::FIRST, Sequence(5)), (LANE, Sequence(9))];
        push_behind(&mut frames, &behind, 1000);
        let mut pop = |first: u32, other: u32| {
            let stands_behind = |lane, last| match lane == LANE {
                true => !Sequence(other).is_newer_than(last),
                false => !Sequence(first).is_newer_than(last),
            };
            frames.pop(stands_behind, 3000).is_some()
        };
        assert!(!pop(6, 9) && !pop(5, 10) && pop(6, 10));
    }

    #[test]
    fn with_too_many_the_oldest_goes_before_its_turn() {
        let mut frames = UnsequencedFrames::default();
        for behind in 5..9 {
            push(&mut frames, behind, 1000);
        }
        assert_eq!(pop(&mut frames, 1), Some(5));
        assert_eq!(pop(&mut frames, 1), None);
        assert_eq!(frames.len(), 3);
        frames.clear();
        push(&mut frames, 5, 3000);
        assert_eq!(pop(&mut frames, 1), None, "the bytes of all were forgotten");
    }
}
