//! Whether there is room for a frame, and who goes for it.

use super::Queue;
use super::config::{Discipline, QueueLimit};
use super::order::Order;
use crate::net::carried::Carried;

impl<F: Carried> Queue<F> {
    /// Whether so much more, in so many frames, may be taken. A queue that makes room decides when it comes, by whose it is.
    pub fn has_room(&self, bytes: usize, frames: usize) -> bool {
        let makes_room = match self.config.discipline {
            Discipline::Drr {
                flow_limit_bytes, ..
            } => flow_limit_bytes.is_none(),
            Discipline::FqCodel { .. } | Discipline::ShortFirst { .. } => true,
            _ => false,
        };
        makes_room || self.fits(bytes, frames)
    }

    pub(super) fn fits(&self, bytes: usize, frames: usize) -> bool {
        let within = match self.config.limit {
            QueueLimit::Bytes(limit) => self.bytes + bytes <= limit,
            QueueLimit::Frames(limit) => self.segments + frames <= limit,
        };
        within || self.is_empty()
    }

    /// Whether there is room for a frame of this flow, perhaps since others have gone.
    pub(super) fn make_room(&mut self, hash: u64, bytes: usize, segments: usize) -> bool {
        if let (
            Discipline::Drr {
                flow_limit_bytes: Some(limit),
                ..
            },
            Order::Drr(drr),
        ) = (&self.config.discipline, &self.order)
        {
            let flow_bytes = drr.flow_bytes(hash);
            let within = flow_bytes == 0 || flow_bytes + bytes <= *limit;
            return within && self.fits(bytes, segments);
        }
        if matches!(&self.order, Order::ShortFirst(_)) && !self.may_push_out(hash, bytes, segments)
        {
            return false;
        }
        while !self.fits(bytes, segments) {
            let before = self.evicted.len();
            match &mut self.order {
                Order::Fifo(_) => {}
                Order::Drr(drr) => {
                    self.evicted
                        .extend(drr.steal(hash, bytes).map(|gone| gone.frame));
                }
                Order::FqCodel(fq) => {
                    fq.shed(hash, bytes, |gone| self.evicted.push_back(gone.frame));
                }
                Order::ShortFirst(short_first) => {
                    self.evicted
                        .extend(short_first.push_out().map(|gone| gone.frame));
                }
            }
            if self.evicted.len() == before {
                return false;
            }
            for gone in before..self.evicted.len() {
                self.bytes -= self.evicted[gone].len_bytes();
                self.segments -= self.evicted[gone].segment_count();
                self.frames -= 1;
            }
        }
        true
    }

    /// Whether it is within the limit, or would be without frames that may be pushed out for it.
    fn may_push_out(&self, hash: u64, bytes: usize, segments: usize) -> bool {
        let Order::ShortFirst(short_first) = &self.order else {
            return false;
        };
        if self.fits(bytes, segments) || !short_first.is_short(hash) {
            return self.fits(bytes, segments);
        }
        let (mut freed_bytes, mut freed_segments) = (0, 0);
        short_first.expendable().any(|frame| {
            freed_bytes += frame.len_bytes();
            freed_segments += frame.segment_count();
            match self.config.limit {
                QueueLimit::Bytes(limit) => self.bytes + bytes <= limit + freed_bytes,
                QueueLimit::Frames(limit) => self.segments + segments <= limit + freed_segments,
            }
        })
    }
}
