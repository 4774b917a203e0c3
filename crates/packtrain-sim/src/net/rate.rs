//! Serialisation, and the queue before it: what a NIC or a port of a switch has, drop-tail and
//! bounded in bytes.

use std::collections::VecDeque;

use packtrain_proto::time::{Duration, Instant};

use crate::frame::Frame;

#[derive(Debug)]
pub struct Rate {
    rate_bps: u64,
    queue_bytes_max: usize,
    /// The first one is on the wire already; it counts until its last bit has left.
    queue: VecDeque<Frame>,
    queued_bytes: usize,
    pub queued_bytes_max_seen: usize,
}

/// What became of a frame that was offered.
#[derive(Debug)]
pub enum Offered {
    /// It waits behind others.
    Queued,
    /// Its last bit leaves then: call [`Rate::sent`].
    Sending(Instant),
    Refused(Frame),
}

impl Rate {
    pub fn new(rate_bps: u64, queue_bytes_max: usize) -> Rate {
        assert!(rate_bps > 0);
        Rate {
            rate_bps,
            queue_bytes_max,
            queue: VecDeque::new(),
            queued_bytes: 0,
            queued_bytes_max_seen: 0,
        }
    }

    pub fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }

    pub fn has_room(&self, bytes: usize) -> bool {
        // An empty queue takes any frame, as a NIC's ring does.
        self.queue.is_empty() || self.queued_bytes + bytes <= self.queue_bytes_max
    }

    pub fn offer(&mut self, frame: Frame, now: Instant) -> Offered {
        if !self.has_room(frame.bytes.len()) {
            return Offered::Refused(frame);
        }
        self.queued_bytes += frame.bytes.len();
        self.queued_bytes_max_seen = self.queued_bytes_max_seen.max(self.queued_bytes);
        let end = now + self.duration_of(&frame);
        self.queue.push_back(frame);
        if self.queue.len() == 1 {
            Offered::Sending(end)
        } else {
            Offered::Queued
        }
    }

    /// The first frame has left: it, and when the next will have.
    pub fn sent(&mut self, now: Instant) -> (Frame, Option<Instant>) {
        let frame = self.queue.pop_front().expect("something was being sent");
        self.queued_bytes -= frame.bytes.len();
        let next = self
            .queue
            .front()
            .map(|frame| now + self.duration_of(frame));
        (frame, next)
    }

    /// Everything that waits; what was being sent is cut off as well.
    pub fn clear(&mut self) -> Vec<Frame> {
        self.queued_bytes = 0;
        self.queue.drain(..).collect()
    }

    /// Never zero: two frames do not leave one port at once.
    fn duration_of(&self, frame: &Frame) -> Duration {
        let nanos = u128::from(frame.wire_bits()) * 1_000_000_000 / u128::from(self.rate_bps);
        Duration::from_nanos((nanos as u64).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packtrain_proto::offload::Offload;

    fn frame(len: usize) -> Frame {
        Frame::new(vec![0; len], Offload::NONE)
    }

    #[test]
    fn frames_leave_one_after_the_other_at_the_rate_with_all_that_a_wire_costs() {
        let mut rate = Rate::new(1_000_000_000, 10_000);
        // 1514 + 24 bytes at 1 Gbit/s.
        let Offered::Sending(end) = rate.offer(frame(1514), Instant::ZERO) else {
            panic!()
        };
        assert_eq!(end, Instant::from_nanos(12_304));
        assert!(matches!(
            rate.offer(frame(15), Instant::ZERO),
            Offered::Queued
        ));
        let (first, next) = rate.sent(end);
        assert_eq!(first.bytes.len(), 1514);
        // A frame of 15 bytes is padded to 60: 672 bits.
        assert_eq!(next, Some(end + Duration::from_nanos(672)));
        assert_eq!(rate.sent(next.unwrap()).1, None);
        assert_eq!(rate.queued_bytes(), 0);
    }

    #[test]
    fn a_full_queue_refuses_and_an_empty_one_takes_anything() {
        let mut rate = Rate::new(1_000_000, 1000);
        assert!(matches!(
            rate.offer(frame(5000), Instant::ZERO),
            Offered::Sending(_)
        ));
        assert!(matches!(
            rate.offer(frame(15), Instant::ZERO),
            Offered::Refused(_)
        ));
        assert_eq!(rate.queued_bytes(), 5000);
    }
}
