//! From the kernel's measure of a socket's queue to ours.
//!
//! `SIOCOUTQ` counts the memory of what a packet socket sent and nobody has freed (`truesize`): a
//! 60-byte frame counts as many times its length, a 64 KB one as hardly more. What leaves a queue
//! is mostly what came first, so the frames that still stand are the newest that make up that
//! memory.

use std::collections::VecDeque;

/// Frames in a row, taken together when more are remembered than is useful.
#[derive(Clone, Copy, Debug)]
struct Sent {
    frame_bytes: usize,
    memory: usize,
}

#[derive(Debug)]
pub(super) struct QueueEstimate {
    /// Oldest first; at most [`QueueEstimate::ENTRIES_MAX`].
    sent: VecDeque<Sent>,
    frame_bytes: usize,
    memory: usize,
}

impl QueueEstimate {
    /// What a send buffer of a megabyte holds of the smallest frames.
    const ENTRIES_MAX: usize = 1024;

    pub(super) fn new() -> QueueEstimate {
        QueueEstimate {
            sent: VecDeque::with_capacity(Self::ENTRIES_MAX),
            frame_bytes: 0,
            memory: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    /// A frame went into the queue.
    pub(super) fn sent(&mut self, frame_bytes: usize) {
        let memory = truesize(frame_bytes);
        self.frame_bytes += frame_bytes;
        self.memory += memory;
        let full = self.sent.len() == Self::ENTRIES_MAX;
        match self.sent.back_mut() {
            Some(last) if full => {
                last.frame_bytes += frame_bytes;
                last.memory += memory;
            }
            _ => self.sent.push_back(Sent {
                frame_bytes,
                memory,
            }),
        }
    }

    /// The frame bytes that stand in the queue, when the kernel says that `memory` does.
    pub(super) fn outstanding(&mut self, memory: usize) -> usize {
        if memory == 0 {
            self.sent.clear();
            (self.frame_bytes, self.memory) = (0, 0);
            return 0;
        }
        while let Some(&first) = self.sent.front() {
            // A frame leaves whole. Half of its memory as tolerance, because ours is a model.
            if self.memory - first.memory / 2 <= memory || self.sent.len() == 1 {
                break;
            }
            self.sent.pop_front();
            self.frame_bytes -= first.frame_bytes;
            self.memory -= first.memory;
        }
        // Never 0 while something stands: 0 means that the wire is idle.
        self.frame_bytes.max(1)
    }

    /// The memory that `bytes` of frames like those that stand take; not less than as full-size
    /// frames, which may follow.
    pub(super) fn memory_of(&self, bytes: usize) -> usize {
        const FULL_SIZE: usize = 1514;
        let full_size = bytes.saturating_mul(truesize(FULL_SIZE)) / FULL_SIZE;
        let as_standing = bytes.saturating_mul(self.memory) / self.frame_bytes.max(1);
        full_size.max(as_standing)
    }
}

/// The memory that the kernel books for a frame sent by a packet socket (`packet_alloc_skb`,
/// `__alloc_skb`, `alloc_skb_with_frags`): a power of two that holds the frame, its headroom and
/// `skb_shared_info`, or pages beside the headers; and the `sk_buff` itself.
pub(super) fn truesize(frame_bytes: usize) -> usize {
    const PAGE: usize = 4096;
    const SK_BUFF: usize = 256;
    const SHARED_INFO: usize = 320;
    /// `LL_RESERVED_SPACE` of an Ethernet interface, and what the allocator rounds up.
    const HEADROOM: usize = 32;
    /// `SKB_SMALL_HEAD_CACHE_SIZE`: what small heads are taken from since Linux 6.3.
    const SMALL_HEAD: usize = 704;
    if frame_bytes + HEADROOM < PAGE {
        let head = frame_bytes + HEADROOM + SHARED_INFO;
        SK_BUFF
            + if head <= SMALL_HEAD {
                SMALL_HEAD
            } else {
                head.next_power_of_two()
            }
    } else {
        SK_BUFF + SMALL_HEAD + frame_bytes.next_multiple_of(PAGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_the_kernel_is_exactly_nothing() {
        let mut queue = QueueEstimate::new();
        assert!(queue.is_empty());
        queue.sent(1514);
        assert!(!queue.is_empty());
        assert_eq!(queue.outstanding(0), 0);
        assert!(queue.is_empty());
    }

    #[test]
    fn memory_is_reckoned_for_the_smaller_of_what_stands_and_full_size_frames() {
        let mut queue = QueueEstimate::new();
        let full_size = 10 * truesize(1514);
        assert_eq!(queue.memory_of(15_140), full_size);
        queue.sent(65_226);
        assert_eq!(queue.memory_of(15_140), full_size);
        queue.outstanding(0);
        queue.sent(60);
        assert_eq!(queue.memory_of(600), 10 * truesize(60));
    }

    #[test]
    fn what_stands_is_what_was_sent_last() {
        let mut queue = QueueEstimate::new();
        for len in [60, 60, 1514, 9000, 65_226] {
            queue.sent(len);
        }
        let all: usize = [60, 60, 1514, 9000, 65_226]
            .iter()
            .copied()
            .map(truesize)
            .sum();
        assert_eq!(queue.outstanding(all), 75_860);
        assert_eq!(queue.outstanding(all - 2 * truesize(60)), 75_740);
        assert_eq!(queue.outstanding(truesize(65_226)), 65_226);
        queue.sent(60);
        assert_eq!(queue.outstanding(truesize(60)), 60);
    }

    #[test]
    fn a_model_that_is_wrong_by_a_quarter_misleads_by_about_as_much_and_never_to_zero() {
        for actual_per_mille in [750, 1250] {
            let mut queue = QueueEstimate::new();
            for _ in 0..100 {
                queue.sent(1514);
            }
            for standing in (1..=100usize).rev() {
                let memory = standing * truesize(1514) * actual_per_mille / 1000;
                let estimate = queue.outstanding(memory);
                assert!(estimate > 0);
                let error = estimate.abs_diff(standing * 1514);
                assert!(
                    error <= standing * 1514 * 3 / 10 + 1514,
                    "{standing}: {estimate}"
                );
            }
        }
    }

    #[test]
    fn memory_is_bounded_however_much_is_sent_unread() {
        let mut queue = QueueEstimate::new();
        for _ in 0..100_000 {
            queue.sent(1514);
        }
        assert_eq!(queue.sent.len(), QueueEstimate::ENTRIES_MAX);
        assert_eq!(queue.outstanding(1000 * truesize(1514)), 98_977 * 1514);
        assert_eq!(queue.outstanding(0), 0);
    }
}
