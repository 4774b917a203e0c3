//! Frames that span trains, put together again. Bounded in bytes, count and time.
//!
//! Pieces of one frame arrive in order (the lane is resequenced before), so a frame is one run of
//! bytes that grows. A piece further on means a hole: a GSO frame then gives the complete segments
//! of the run, and begins another run behind the hole; any other frame is dropped. When a train is
//! given up, the complete segments of all GSO frames under way are delivered at once, because what
//! comes next of their flows must not overtake them.

use crate::buffer::{self, Buffer, BufferPool};
use crate::gso;
use crate::offload::{Gso, Offload};
use crate::stats::{DropReason, Drops};
use crate::time::{Duration, Instant};
use crate::wire::ethernet::{self, Header};

const FRAMES_MAX: usize = 64;
/// A frame may wait so many ages for its next piece: on a slow link the turns of others are long.
/// Its complete segments are delivered after one.
const PATIENCE: u32 = 10;

/// A frame that is complete, ready for the host.
#[derive(Debug)]
pub struct Complete {
    pub frame: Buffer,
    pub offload: Offload,
}

/// Where results go.
#[derive(Debug)]
pub struct Output<'a> {
    pub pool: &'a mut BufferPool,
    pub complete: &'a mut std::collections::VecDeque<Complete>,
    pub drops: &'a mut Drops,
}

#[derive(Debug)]
struct Partial {
    id: u16,
    frame: Buffer,
    offload: Offload,
    total_len: usize,
    /// Payload bytes that are here and not yet delivered: from … to.
    run: (usize, usize),
    holed: bool,
    touched: Instant,
    /// No piece came for an age, and what was complete was delivered.
    rests: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReassemblyStats {
    pub bytes_max: usize,
    pub completed: u64,
    /// GSO frames of which only segments were delivered.
    pub partial: u64,
}

/// One lane of one peer.
#[derive(Debug)]
pub struct Reassembly {
    partials: Vec<Partial>,
    bytes: usize,
    bytes_max: usize,
    age_max: Duration,
    /// How long a frame waits for its next piece.
    waits_max: Duration,
    pub stats: ReassemblyStats,
}

impl Reassembly {
    pub fn new(bytes_max: usize, age_max: Duration) -> Reassembly {
        Reassembly {
            partials: Vec::new(),
            bytes: 0,
            bytes_max,
            age_max,
            waits_max: age_max * PATIENCE,
            stats: ReassemblyStats::default(),
        }
    }

    pub fn frames(&self) -> usize {
        self.partials.len()
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes that a frame counts for, from its first piece on: those of the buffer that it takes.
    pub fn cost(total_len: u16) -> usize {
        if ethernet::HEADER_LEN + usize::from(total_len) <= buffer::SMALL_CAPACITY {
            buffer::SMALL_CAPACITY
        } else {
            buffer::LARGE_CAPACITY
        }
    }

    /// The first piece of a frame.
    #[allow(clippy::too_many_arguments)] // the fields of a FIRST, and the surroundings
    pub fn first(
        &mut self,
        id: u16,
        header: Header,
        offload: Offload,
        total_len: u16,
        payload: &[u8],
        now: Instant,
        out: &mut Output<'_>,
    ) {
        if let Some(at) = self.partials.iter().position(|p| p.id == id) {
            self.partials[at].deliver_segments(out);
            self.give_up(at, DropReason::ReassemblyHole, out);
        }
        let total_len = usize::from(total_len);
        if let Some(gso) = offload.gso
            && usize::from(gso.header_len) > ethernet::HEADER_LEN + payload.len()
        {
            // Segments cannot be cut without the headers.
            out.drops.count(DropReason::BadGso);
            return;
        }
        if self.partials.len() >= FRAMES_MAX {
            // No honest sender has so many under way: the rest of the stalest is lost.
            self.give_up_stalest(out);
        }
        let mut frame = out.pool.take(ethernet::HEADER_LEN + total_len);
        if self.bytes + frame.capacity() > self.bytes_max {
            out.pool.give_back(frame);
            out.drops.count(DropReason::ReassemblyFull);
            return;
        }
        let fits = frame.push(&header.to_bytes()) && frame.push(payload);
        assert!(fits, "taken for this size");
        self.bytes += frame.capacity();
        self.stats.bytes_max = self.stats.bytes_max.max(self.bytes);
        frame.set_len(ethernet::HEADER_LEN + total_len);
        self.partials.push(Partial {
            id,
            frame,
            offload,
            total_len,
            run: (0, payload.len()),
            holed: false,
            touched: now,
            rests: false,
        });
    }

    /// A later piece.
    pub fn next(
        &mut self,
        id: u16,
        offset: u16,
        payload: &[u8],
        now: Instant,
        out: &mut Output<'_>,
    ) {
        let Some(at) = self.partials.iter().position(|p| p.id == id) else {
            out.drops.count(DropReason::StrayPiece);
            return;
        };
        let partial = &mut self.partials[at];
        let offset = usize::from(offset);
        let end = offset + payload.len();
        if offset < partial.run.1 || end > partial.total_len {
            self.give_up(at, DropReason::ReassemblyBadPiece, out);
            return;
        }
        if offset > partial.run.1 {
            if partial.offload.gso.is_none() {
                self.give_up(at, DropReason::ReassemblyHole, out);
                return;
            }
            if !partial.deliver_segments(out) {
                self.give_up(at, DropReason::BadGso, out);
                return;
            }
            partial.holed = true;
            partial.run = (offset, offset);
        }
        let start = ethernet::HEADER_LEN + offset;
        partial.frame[start..start + payload.len()].copy_from_slice(payload);
        partial.run.1 = end;
        partial.touched = now;
        partial.rests = false;
        if end == partial.total_len {
            self.finish(at, out);
        }
    }

    /// The last piece is here.
    fn finish(&mut self, at: usize, out: &mut Output<'_>) {
        if self.partials[at].holed || self.partials[at].run.0 > 0 {
            if self.partials[at].deliver_segments(out) {
                self.stats.partial += 1;
                let partial = self.remove(at);
                out.pool.give_back(partial.frame);
            } else {
                self.give_up(at, DropReason::BadGso, out);
            }
            return;
        }
        let Partial { frame, offload, .. } = self.remove(at);
        if offload.gso.is_some() && gso::check(&frame, &offload).is_err() {
            out.drops.count(DropReason::BadGso);
            out.pool.give_back(frame);
            return;
        }
        self.stats.completed += 1;
        out.complete.push_back(Complete { frame, offload });
    }

    fn remove(&mut self, at: usize) -> Partial {
        let partial = self.partials.remove(at);
        self.bytes -= partial.frame.capacity();
        partial
    }

    /// Drops a frame, or what is left of it.
    fn give_up(&mut self, at: usize, reason: DropReason, out: &mut Output<'_>) {
        let partial = self.remove(at);
        out.drops.count(reason);
        out.pool.give_back(partial.frame);
    }

    /// A train was given up: what is complete goes out now.
    pub fn on_gap(&mut self, out: &mut Output<'_>) {
        let mut at = 0;
        while at < self.partials.len() {
            if self.partials[at].offload.gso.is_some() && !self.partials[at].deliver_segments(out) {
                self.give_up(at, DropReason::BadGso, out);
            } else {
                at += 1;
            }
        }
    }

    /// The frames of a flow that are under way get no more pieces: what is complete of them goes
    /// out now.
    pub fn on_end_of(&mut self, of_flow: impl Fn(&[u8]) -> bool, out: &mut Output<'_>) {
        let mut at = 0;
        while at < self.partials.len() {
            if of_flow(&self.partials[at].frame) {
                self.partials[at].deliver_segments(out);
                self.give_up(at, DropReason::ReassemblyHole, out);
            } else {
                at += 1;
            }
        }
    }

    /// Makes room at the cost of the frame that got no piece for longest.
    pub fn give_up_stalest(&mut self, out: &mut Output<'_>) {
        let stalest = self
            .partials
            .iter()
            .enumerate()
            .min_by_key(|(_, p)| p.touched);
        if let Some((at, _)) = stalest {
            self.partials[at].deliver_segments(out);
            self.give_up(at, DropReason::ReassemblyFull, out);
        }
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        let ages = (self.age_max, self.waits_max);
        let due = self.partials.iter().map(|p| p.due(ages));
        due.min()
    }

    /// For so long the next piece may go again: a frame that is given up before is lost, though nothing was to be.
    pub fn wait_for_pieces(&mut self, at_least: Duration) {
        self.waits_max = (self.age_max * PATIENCE).max(at_least);
    }

    /// `order_waits`: trains are held for one before them, and with them perhaps the next pieces.
    pub fn handle_timeout(&mut self, now: Instant, order_waits: bool, out: &mut Output<'_>) {
        let ages = (self.age_max, self.waits_max);
        while let Some(at) = self.partials.iter().position(|p| p.due(ages) <= now) {
            let partial = &mut self.partials[at];
            if now < partial.touched + self.waits_max {
                partial.rests = true;
                if !partial.deliver_segments(out) {
                    self.give_up(at, DropReason::BadGso, out);
                }
            } else if order_waits {
                partial.touched = now;
            } else {
                partial.deliver_segments(out);
                self.give_up(at, DropReason::ReassemblyTimeout, out);
            }
        }
    }
}

impl Partial {
    /// When it has waited too long for what comes next.
    fn due(&self, (age_max, waits_max): (Duration, Duration)) -> Instant {
        let first = self.offload.gso.is_some() && !self.rests;
        self.touched + if first { age_max } else { waits_max }
    }

    /// Delivers the complete segments of the run, and cuts them off it. `false`: the headers do
    /// not agree with the metadata.
    fn deliver_segments(&mut self, out: &mut Output<'_>) -> bool {
        let Some(gso) = self.offload.gso else {
            return true;
        };
        if gso.segment_len == 0 || gso::check(&self.frame, &self.offload).is_err() {
            return false;
        }
        let (first, past) = self.segments_of_run(&gso);
        if first < past {
            let mut frame = out.pool.take(self.frame.len());
            match gso::slice(&self.frame, &self.offload, first, past - first, &mut frame) {
                Ok(offload) => out.complete.push_back(Complete { frame, offload }),
                Err(_) => {
                    out.pool.give_back(frame);
                    return false;
                }
            }
            let headers = usize::from(gso.header_len) - ethernet::HEADER_LEN;
            let delivered = headers + past * usize::from(gso.segment_len);
            self.run.0 = delivered.min(self.run.1);
        }
        true
    }

    /// The segments that lie whole inside the run: first … past the last.
    fn segments_of_run(&self, gso: &Gso) -> (usize, usize) {
        let headers = usize::from(gso.header_len) - ethernet::HEADER_LEN;
        let segment = usize::from(gso.segment_len);
        let first = self.run.0.saturating_sub(headers).div_ceil(segment);
        let past = if self.run.1 == self.total_len {
            gso::segment_count(self.frame.len(), gso)
        } else {
            self.run.1.saturating_sub(headers) / segment
        };
        (first, past)
    }
}
