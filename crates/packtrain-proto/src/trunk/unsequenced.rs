//! Frames without a sequence that came while trains of their peer were held: they wait for those, for
//! they may be later frames of the same flows. Bounded; with more, the oldest goes before its turn, and
//! nothing is lost for it.

use std::collections::VecDeque;

use crate::buffer::Buffer;
use crate::offload::Offload;
use crate::time::Instant;
use crate::wire::sequence::Sequence;

/// A frame that waits behind trains.
#[derive(Debug)]
pub struct Unsequenced {
    /// The last of these.
    pub behind: Sequence,
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

    /// The next frame that waits for nothing any more, `expected` being the train that is due, or that
    /// stands above what may wait.
    pub fn pop(&mut self, expected: Sequence, bytes_max: usize) -> Option<Unsequenced> {
        let first = self.waiting.front()?;
        if !expected.is_newer_than(first.behind) && self.bytes <= bytes_max {
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

    fn push(frames: &mut UnsequencedFrames, behind: u32, bytes: usize) {
        frames.push(Unsequenced {
            behind: Sequence(behind),
            is_marked: false,
            frame: Buffer::with_capacity(bytes),
            offload: Offload::NONE,
            arrived: Instant::ZERO,
        });
    }

    fn pop(frames: &mut UnsequencedFrames, expected: u32) -> Option<u32> {
        let popped = frames.pop(Sequence(expected), 3000);
        popped.map(|frame| frame.behind.0)
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
