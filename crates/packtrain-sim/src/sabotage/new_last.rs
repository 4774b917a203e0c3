//! New flows do not go first: frames of one are kept from the engine until others have had their turns.

use crate::frame::Frame;

/// Frames of others that go before.
const OTHERS: u64 = 30;
/// A flow that has been silent while so many came is a new one.
const SILENCE: u64 = 50;

#[derive(Debug, Default)]
pub struct NewLast {
    frames: u64,
    /// By flow, when its last frame came.
    came: Vec<Option<u64>>,
    held: Vec<Frame>,
    /// Whose those are, and when the first of them came.
    whose: (u16, u64),
}

impl NewLast {
    pub fn held(&self) -> usize {
        self.held.len()
    }

    pub fn release(&mut self) -> Vec<Frame> {
        core::mem::take(&mut self.held)
    }

    /// A frame of a flow on its way to the engine: what is handed over now, and whether it was held back as the first of a new flow.
    pub fn hand_over(&mut self, frame: Frame, flow: u16, rests: bool) -> (Vec<Frame>, bool) {
        self.frames += 1;
        let at = usize::from(flow);
        if self.came.len() <= at {
            self.came.resize(at + 1, None);
        }
        let came = self.came[at].replace(self.frames);
        let is_new = came.is_none_or(|came| self.frames > came + SILENCE);
        if self.held.is_empty() {
            if !is_new || rests {
                return (vec![frame], false);
            }
            self.whose = (flow, self.frames);
            self.held.push(frame);
            return (Vec::new(), true);
        }
        let (whose, since) = self.whose;
        let is_over = rests || self.frames - since > OTHERS;
        if whose == flow {
            self.held.push(frame);
            let out = if is_over { self.release() } else { Vec::new() };
            return (out, false);
        }
        let mut out = if is_over { self.release() } else { Vec::new() };
        out.push(frame);
        (out, false)
    }
}
