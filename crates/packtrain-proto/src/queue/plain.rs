//! Frames for hosts without packtrain, and for everybody: flow queues for each link.

use std::collections::HashMap;

use crate::config::LinkId;
use crate::queue::drr::{CopyOf, FlowQueues, QueuedFrame};
use crate::stats::DropReason;

#[derive(Debug)]
pub struct PlainQueues {
    queues: Vec<(LinkId, FlowQueues)>,
    quantum: usize,
}

impl PlainQueues {
    pub fn new(quantum: usize) -> PlainQueues {
        PlainQueues {
            queues: Vec::new(),
            quantum,
        }
    }

    /// A link has joined.
    pub fn add(&mut self, link: LinkId) {
        self.queues.push((link, FlowQueues::new(self.quantum)));
    }

    /// A link has left: what waited for it.
    pub fn remove(&mut self, link: LinkId) -> Option<FlowQueues> {
        let at = self.queues.iter().position(|(of, _)| *of == link)?;
        Some(self.queues.remove(at).1)
    }

    pub fn of(&mut self, link: LinkId) -> Option<&mut FlowQueues> {
        let mut queues = self.queues.iter_mut();
        queues.find_map(|(of, queues)| (*of == link).then_some(queues))
    }

    pub fn iter(&self) -> impl Iterator<Item = (LinkId, &FlowQueues)> + '_ {
        self.queues.iter().map(|(link, queues)| (*link, queues))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (LinkId, &mut FlowQueues)> + '_ {
        self.queues.iter_mut().map(|(link, queues)| (*link, queues))
    }

    /// Takes everything out, with the link that it waited for; of each flow in its order.
    pub fn drain(&mut self) -> Vec<(LinkId, QueuedFrame)> {
        let mut all = Vec::new();
        for (link, queues) in &mut self.queues {
            all.extend(queues.drain().map(|frame| (*link, frame)));
        }
        all
    }
}

/// Frames of which each segment gets a copy.
#[derive(Debug, Default)]
pub struct Spread {
    /// Ever.
    frames: u64,
    /// Of those of which no copy has left: how many wait.
    waiting: HashMap<u64, u16>,
}

impl Spread {
    pub fn begin(&mut self, copies: u16) -> CopyOf {
        self.frames += 1;
        self.waiting.insert(self.frames, copies);
        CopyOf {
            frame: self.frames,
            copies,
        }
    }

    /// It leaves, or goes another way as the only one.
    pub fn on_left(&mut self, frame: &QueuedFrame) {
        if let Some(copy) = frame.copy {
            self.waiting.remove(&copy.frame);
        }
    }

    /// It is dropped: the reason to count. Where another copy goes on or has left, the frame is not lost.
    pub fn on_dropped(&mut self, frame: &QueuedFrame, reason: DropReason) -> DropReason {
        let Some(copy) = frame.copy else {
            return reason;
        };
        let Some(left) = self.waiting.get_mut(&copy.frame) else {
            return DropReason::Duplicate;
        };
        *left -= 1;
        if *left > 0 {
            return DropReason::Duplicate;
        }
        self.waiting.remove(&copy.frame);
        reason
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Buffer;
    use crate::offload::Offload;
    use crate::time::Instant;
    use crate::wire::ethernet::{Header, MacAddr};

    fn copy(copy: Option<CopyOf>) -> QueuedFrame {
        let header = Header {
            destination: MacAddr::BROADCAST,
            source: MacAddr::BROADCAST,
            ether_type: 0x800,
        };
        QueuedFrame {
            buffer: Buffer::with_capacity(64),
            header,
            offload: Offload::NONE,
            enqueued: Instant::ZERO,
            sent: 0,
            piece_id: 0,
            copy,
        }
    }

    #[test]
    fn a_frame_is_lost_with_the_last_of_its_copies_if_none_has_left() {
        use DropReason::{Codel, Duplicate, QueueFull};
        let mut spread = Spread::default();
        let [one, two] = [spread.begin(3), spread.begin(2)].map(|of| copy(Some(of)));
        assert_eq!(spread.on_dropped(&one, Codel), Duplicate);
        assert_eq!(spread.on_dropped(&two, Codel), Duplicate);
        spread.on_left(&two);
        assert_eq!(spread.on_dropped(&one, Codel), Duplicate);
        assert_eq!(spread.on_dropped(&one, QueueFull), QueueFull);
        assert_eq!(spread.on_dropped(&two, Codel), Duplicate);
        assert_eq!(spread.on_dropped(&copy(None), Codel), Codel);
        assert!(spread.waiting.is_empty());
    }
}
