//! Frames for hosts without packtrain, and for everybody: flow queues for each link.

use std::collections::HashMap;

use crate::config::LinkId;
use crate::duplicates::COPIES_APART_MAX;
use crate::queue::drr::FlowQueues;
use crate::queue::frame::{CopyOf, QueuedFrame};
use crate::stats::DropReason;
use crate::time::Instant;

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

    /// Whether a frame of a class that says *now* waits for the link.
    pub fn has_urgent(&self, link: LinkId) -> bool {
        let mut queues = self.queues.iter();
        queues.any(|(of, queues)| *of == link && queues.has_urgent())
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
    /// Those of which copies wait.
    waiting: HashMap<u64, Waiting>,
}

#[derive(Debug)]
struct Waiting {
    copies: u16,
    /// When the first has left.
    left: Option<Instant>,
}

impl Spread {
    pub fn begin(&mut self, copies: u16) -> CopyOf {
        self.frames += 1;
        let waiting = Waiting { copies, left: None };
        self.waiting.insert(self.frames, waiting);
        CopyOf {
            frame: self.frames,
            copies,
        }
    }

    /// It leaves, or goes another way as the only one.
    pub fn on_left(&mut self, frame: &QueuedFrame, now: Instant) {
        if let Some(waiting) = self.waiting_with(frame) {
            waiting.left.get_or_insert(now);
        }
        self.on_gone(frame);
    }

    /// Whether another copy has left so long before that who got it would not know this one as a copy.
    pub fn is_late(&mut self, frame: &QueuedFrame, now: Instant) -> bool {
        let left = self.waiting_with(frame).and_then(|waiting| waiting.left);
        left.is_some_and(|at| now.since(at) > COPIES_APART_MAX)
    }

    /// It is dropped: the reason to count. Where another copy goes on or has left, the frame is not lost,
    /// but for those on this segment.
    pub fn on_dropped(&mut self, frame: &QueuedFrame, reason: DropReason) -> DropReason {
        let is_last = match self.waiting_with(frame) {
            Some(waiting) => waiting.copies == 1 && waiting.left.is_none(),
            None => true,
        };
        self.on_gone(frame);
        match is_last {
            true => reason,
            false => DropReason::SegmentCopy,
        }
    }

    fn waiting_with(&mut self, frame: &QueuedFrame) -> Option<&mut Waiting> {
        let copy = frame.copy?;
        Some(self.waiting.get_mut(&copy.frame).expect("it has waited"))
    }

    fn on_gone(&mut self, frame: &QueuedFrame) {
        let Some(waiting) = self.waiting_with(frame) else {
            return;
        };
        waiting.copies -= 1;
        if let (0, Some(copy)) = (waiting.copies, frame.copy) {
            self.waiting.remove(&copy.frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Buffer;
    use crate::class::ClassId;
    use crate::offload::Offload;
    use crate::time::Duration;
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
            flow_hash: 0,
            share: 0,
            class: ClassId(0),
            lane: crate::trunk::lane::LaneId::FIRST,
            band: crate::queue::band::BandId::FIRST,
            changes_lane: false,
            of_elephant: false,
            short: false,
            marked: false,
            urgent: false,
            hold_until: None,
            random: Default::default(),
        }
    }

    #[test]
    fn a_frame_is_lost_with_the_last_of_its_copies_if_none_has_left() {
        use DropReason::{Codel, QueueFull, SegmentCopy};
        let mut spread = Spread::default();
        let [one, two] = [spread.begin(3), spread.begin(3)].map(|of| copy(Some(of)));
        assert_eq!(spread.on_dropped(&one, Codel), SegmentCopy);
        assert_eq!(spread.on_dropped(&two, Codel), SegmentCopy);
        spread.on_left(&two, Instant::ZERO);
        assert_eq!(spread.on_dropped(&one, Codel), SegmentCopy);
        assert_eq!(spread.on_dropped(&one, QueueFull), QueueFull);
        assert_eq!(spread.on_dropped(&two, Codel), SegmentCopy);
        assert_eq!(spread.on_dropped(&copy(None), Codel), Codel);
        assert!(spread.waiting.is_empty());
    }

    #[test]
    fn a_copy_is_late_when_another_left_long_before_however_long_they_waited() {
        let mut spread = Spread::default();
        let one = copy(Some(spread.begin(3)));
        let first = Instant::ZERO + COPIES_APART_MAX * 10;
        assert!(!spread.is_late(&one, first) && !spread.is_late(&copy(None), first));
        spread.on_left(&one, first);
        let last = first + COPIES_APART_MAX;
        assert!(!spread.is_late(&one, last));
        spread.on_left(&one, last);
        assert!(spread.is_late(&one, last + Duration::from_nanos(1)));
        spread.on_dropped(&one, DropReason::Codel);
        assert!(spread.waiting.is_empty());
    }
}
