//! Flow queues under deficit round robin: each flow gets the same bytes, new flows go first.
//!
//! M. Shreedhar and G. Varghese, *Efficient fair queuing using deficit round robin* (1996), in the
//! form of FQ-CoDel (RFC 8290): a list of new and one of old flows, CoDel at the head of each.
//! Unlike there, a flow's head may leave in pieces: the deficit is charged for each piece.
//!
//! Flows that may go by different links are divided ([`Band`]): those of one band, and where each flow keeps to a link those
//! of one link, take turns with each other; [`FlowQueues::serve_band`] and [`FlowQueues::serve`] say whose turns come next. Frames
//! of one bucket that keep to different links are different flows, or one of them would wait for the other's
//! link. Of a flow whose frames are of several bands, the head says which it is in: its order is kept.
//!
//! Frames of a class that says *now* go ahead of all flows but their own: a flow whose head is such a
//! frame is [`ahead`](Ahead) besides being on its list. They cannot starve the others: see there.
//!
//! Where short flows are to go first, flows whose head says so have lists of their own, and those take turns with the lists of the others
//! as [`ShortFirst`](super::short_first::ShortFirst) has it. A flow that becomes an elephant changes to these with the first frame
//! that is an elephant's, behind all of its own that came before.
//!
//! Invariants: a flow is on exactly one list while it has frames, and for one turn after (RFC 8290
//! section 4.2: a new flow that empties moves to the old list, else it would always be new); it is in the band of its
//! head; a bucket leads to a flow exactly while that flow is on a list; a flow whose head is urgent is ahead; a flow that is ahead is
//! on a list.

use std::collections::VecDeque;

use crate::queue::band::{Band, BandId, FlowTurns, List};
use crate::queue::codel::{Aqm, Codel};
use crate::queue::company::Company;
use crate::queue::ecn;
use crate::queue::frame::QueuedFrame;
use crate::queue::hold::Hold;
use crate::queue::older::Older;
use crate::queue::pressure::Pressure;
use crate::stats::FlushReason;
use crate::time::Instant;
use crate::trunk::lane::LaneId;
use crate::wire::ethernet;
use crate::wire::{subframe, train};

const BUCKETS: usize = 4096;
const NONE: u16 = u16::MAX;

/// A flow that [`FlowQueues::select`] chose, valid until the next change of the queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowId(u16);

/// How a sender is told that its queue stands.
#[derive(Debug)]
pub enum Signal {
    /// CoDel has given this one up.
    Dropped(QueuedFrame),
    /// … has marked one, which goes on.
    Marked,
}

/// Which turns a flow takes part in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stand {
    band: BandId,
    /// Among those of the band.
    place: usize,
}

#[derive(Debug)]
struct Flow {
    frames: VecDeque<QueuedFrame>,
    bytes: usize,
    deficit: isize,
    codel: Codel,
    bucket: u16,
    /// Another flow of the same bucket, of another share.
    next_in_bucket: u16,
    share: u8,
    stand: Stand,
    list: List,
    /// Its head is to go before those of other flows: it is on a list of such.
    is_short: bool,
    is_ahead: bool,
}

impl Flow {
    /// Frames at the head of which pieces have left: 0 or 1. Their rest has to follow.
    fn begun(&self) -> usize {
        usize::from(self.frames.front().is_some_and(|frame| frame.sent > 0))
    }

    fn is_urgent(&self) -> bool {
        self.frames.front().is_some_and(|frame| frame.urgent)
    }
}

const FIRST: Stand = Stand {
    band: BandId::FIRST,
    place: 0,
};

/// All flows towards one destination.
#[derive(Debug)]
pub struct FlowQueues {
    buckets: Box<[u16]>,
    flows: Vec<Flow>,
    free: Vec<u16>,
    /// By [`BandId::place`], those that had frames, and what lies between.
    bands: Vec<Band>,
    served: Stand,
    hold: Hold,
    company: Company,
    pressure: Pressure,
    quantum: isize,
    frames: usize,
    bytes: usize,
    older: Older,
}

impl FlowQueues {
    /// `quantum`: bytes a flow may send in its turn.
    pub fn new(quantum: usize) -> FlowQueues {
        FlowQueues {
            buckets: vec![NONE; BUCKETS].into_boxed_slice(),
            flows: Vec::new(),
            free: Vec::new(),
            bands: vec![Band::default()],
            served: FIRST,
            hold: Hold::default(),
            company: Company::default(),
            pressure: Pressure::default(),
            quantum: quantum as isize,
            frames: 0,
            bytes: 0,
            older: Older::default(),
        }
    }

    pub fn frames(&self) -> usize {
        self.frames
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.frames == 0
    }

    /// Flows that are on a list.
    pub fn flows(&self) -> usize {
        self.bands.iter().map(Band::flows).sum()
    }

    /// Whether a frame is at the head of its flow whose class says *now*.
    pub fn has_urgent(&self) -> bool {
        let mut bands = self.bands.iter();
        bands.any(|band| self.is_urgent_in(band))
    }

    /// Frames of which a piece has left, and not the last, of those that are served now.
    pub fn begun(&self) -> usize {
        self.served_turns().begun
    }

    fn served_turns(&self) -> &FlowTurns {
        &self.bands[self.served.band.place()].turns[self.served.place]
    }

    fn served_turns_mut(&mut self) -> &mut FlowTurns {
        turns_at(&mut self.bands, self.served)
    }

    /// Whether something may leave that fills a train of so many bytes, or need not wait for one that is full.
    pub fn is_ripe(&self, train_bytes: usize, now: Instant) -> bool {
        // In a train a frame's own Ethernet header becomes a shorter one.
        let saved = ethernet::HEADER_LEN - subframe::HEADER_LEN;
        let around = ethernet::HEADER_LEN + train::HEADER_LEN;
        self.hold.is_over(now) || around + self.bytes >= train_bytes + self.frames * saved
    }

    /// When the first frame has waited for long enough, where all that wait may.
    pub fn ripe_at(&self) -> Option<Instant> {
        self.hold.ends_at()
    }

    /// Time has passed.
    pub fn ripen(&mut self, now: Instant) {
        if self.hold.handle_timeout(now) {
            self.company.on_wait_over(self.frames);
        }
    }

    /// Those that wait need not wait for more.
    pub fn ripen_by_count(&mut self) {
        self.hold.ripen(FlushReason::Count);
        self.company.on_wait_over(self.frames);
    }

    /// Those that may wait do so until then, and no longer.
    pub fn renew_wait(&mut self, at: Instant) {
        self.hold.renew(at);
    }

    /// What ends the wait of those that leave now; `None`: they have not waited for others.
    pub fn wait_ended_by(&self, now: Instant) -> Option<FlushReason> {
        self.hold.ended_by(now)
    }

    /// [`FlowQueues::has_older`] is about those that have come by now.
    pub fn mark(&mut self, now: Instant) {
        self.older = Older::mark(self.frames, now);
    }

    /// Whether some wait that had come when that was marked last.
    pub fn has_older(&self) -> bool {
        self.frames > 0 && self.older.any()
    }

    /// What is known of frames that come one after the other, and of those that left.
    pub fn prospects(&mut self) -> (&mut Company, &mut Pressure) {
        (&mut self.company, &mut self.pressure)
    }

    pub fn pressure(&self) -> &Pressure {
        &self.pressure
    }

    /// A train has left with what was taken, and so many bytes of those that it might have had.
    pub fn note_train(&mut self, bytes: usize, bytes_max: usize, now: Instant) {
        let fill_percent = (bytes * 100 / bytes_max.max(1)) as u32;
        // What waits for others was not left behind for want of room.
        let left_behind = self.frames > 0 && self.hold.is_over(now);
        self.pressure.on_train(fill_percent, left_behind, now);
    }

    /// The flow whose it is: its last frame is this one.
    pub fn push(&mut self, frame: QueuedFrame) -> FlowId {
        if self.bands.len() <= frame.band.place() {
            self.bands
                .resize_with(frame.band.place() + 1, Band::default);
        }
        let bucket = frame.flow_hash as usize % BUCKETS;
        let id = self
            .flow_in(bucket, frame.share)
            .unwrap_or_else(|| self.open_flow(bucket, &frame));
        let flow = &mut self.flows[usize::from(id)];
        self.frames += 1;
        turns_at(&mut self.bands, flow.stand).frames += 1;
        self.bytes += frame.buffer.len();
        self.older.on_pushed(&frame);
        self.hold.on_pushed(frame.hold_until);
        flow.bytes += frame.buffer.len();
        flow.frames.push_back(frame);
        self.note_head(id);
        FlowId(id)
    }

    fn flow_in(&self, bucket: usize, share: u8) -> Option<u16> {
        let mut id = self.buckets[bucket];
        while id != NONE {
            let flow = &self.flows[usize::from(id)];
            if flow.share == share {
                return Some(id);
            }
            id = flow.next_in_bucket;
        }
        None
    }

    /// The flow may have another head. One that is not urgent any more is still ahead, until it is looked at.
    fn note_head(&mut self, id: u16) {
        let flow = &self.flows[usize::from(id)];
        if let Some(head) = flow.frames.front()
            && (head.band, head.short) != (flow.stand.band, flow.is_short)
        {
            self.change_turns(id, head.band, head.short);
        }
        let flow = &mut self.flows[usize::from(id)];
        if flow.is_urgent() && !flow.is_ahead {
            flow.is_ahead = true;
            turns_at(&mut self.bands, flow.stand).ahead.add(id);
        }
    }

    fn open_flow(&mut self, bucket: usize, first: &QueuedFrame) -> u16 {
        let (share, band) = (first.share, first.band);
        let id = self.free.pop().unwrap_or_else(|| {
            self.flows.push(Flow {
                frames: VecDeque::new(),
                bytes: 0,
                deficit: 0,
                codel: Codel::default(),
                bucket: 0,
                next_in_bucket: NONE,
                share: 0,
                stand: FIRST,
                list: List::New,
                is_short: false,
                is_ahead: false,
            });
            (self.flows.len() - 1) as u16
        });
        let flow = &mut self.flows[usize::from(id)];
        flow.deficit = self.quantum;
        flow.codel = Codel::default();
        flow.bucket = bucket as u16;
        flow.next_in_bucket = std::mem::replace(&mut self.buckets[bucket], id);
        flow.share = share;
        flow.stand = Stand {
            band,
            place: self.bands[band.place()].shares.place_of_share(share),
        };
        flow.list = List::New;
        flow.is_short = first.short;
        let turns = turns_at(&mut self.bands, flow.stand);
        turns.lists(first.short).new.push_back(id);
        id
    }

    /// The flow whose head is to go next, of those that are served. What CoDel does on the way goes to `signal`: heads that it gives
    /// up, and that one has been marked. A head of which a piece has left already is neither, and one is marked once.
    pub fn select(
        &mut self,
        now: Instant,
        aqm: &Aqm,
        mtu: usize,
        signal: &mut impl FnMut(Signal),
    ) -> Option<FlowId> {
        loop {
            let flows = &mut self.flows;
            let turns = turns_at(&mut self.bands, self.served);
            let ahead = turns.ahead.select(|id| {
                let flow = &mut flows[usize::from(id)];
                flow.is_ahead = flow.is_urgent();
                flow.is_ahead
            });
            let id = match ahead {
                Some(id) => id,
                None => self.whose_turn()?,
            };
            let flow = &mut self.flows[usize::from(id)];
            let head = flow
                .frames
                .front_mut()
                .expect("whose turn it is has a head");
            let sojourn = now.since(head.enqueued);
            let left = flow.bytes - head.waiting();
            // A GSO frame is one frame: a flow of them cannot have less waiting than that.
            let frame_max = mtu.max(head.waiting());
            let may_signal = head.sent == 0 && !head.marked;
            let codel = &mut flow.codel;
            if !may_signal || !codel.should_drop(sojourn, left, frame_max, now, &aqm.codel) {
                return Some(FlowId(id));
            }
            // Copies of a frame are known by being alike.
            if aqm.ecn && head.copy.is_none() && ecn::mark(&mut head.buffer) {
                head.marked = true;
                signal(Signal::Marked);
                return Some(FlowId(id));
            }
            signal(Signal::Dropped(self.pop(FlowId(id))));
        }
    }

    /// The flow whose turn it is by deficit round robin.
    fn whose_turn(&mut self) -> Option<u16> {
        let turns = self.served_turns();
        if turns.short.len() == 0 {
            self.served_turns_mut().short_first.choose(false, true);
            return self.whose_turn_of(false);
        }
        let has_frames = |id: u16| !self.flows[usize::from(id)].frames.is_empty();
        let short_wait = turns.short.iter().any(has_frames);
        let others_wait = turns.long.iter().any(has_frames);
        let first = &mut self.served_turns_mut().short_first;
        if first.choose(short_wait, others_wait) {
            return self.whose_turn_of(true);
        }
        if !short_wait {
            // None of them has a frame: they are forgotten on the way.
            let none = self.whose_turn_of(true);
            debug_assert_eq!(none, None);
        }
        self.whose_turn_of(false)
    }

    /// … among short flows, or among the others.
    fn whose_turn_of(&mut self, is_short: bool) -> Option<u16> {
        loop {
            let lists = self.served_turns_mut().lists(is_short);
            let (id, list) = match (lists.new.front(), lists.old.front()) {
                (Some(&id), _) => (id, List::New),
                (None, Some(&id)) => (id, List::Old),
                (None, None) => return None,
            };
            let flow = &mut self.flows[usize::from(id)];
            if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                self.rotate(id, list);
            } else if flow.frames.is_empty() {
                self.retire(id, list);
            } else {
                return Some(id);
            }
        }
    }

    /// To the end of the old list, from the front of `list`.
    fn rotate(&mut self, id: u16, list: List) {
        let flow = &mut self.flows[usize::from(id)];
        flow.list = List::Old;
        let lists = turns_at(&mut self.bands, flow.stand).lists(flow.is_short);
        lists.list(list).pop_front();
        lists.old.push_back(id);
    }

    /// An empty flow at the front of `list`: one more turn if it was new and others wait, else out.
    fn retire(&mut self, id: u16, list: List) {
        let is_short = self.flows[usize::from(id)].is_short;
        let turns = turns_at(&mut self.bands, self.served);
        let lists = turns.lists(is_short);
        if list == List::New && !lists.old.is_empty() {
            self.rotate(id, list);
            return;
        }
        lists.list(list).pop_front();
        let flow = &mut self.flows[usize::from(id)];
        if std::mem::take(&mut flow.is_ahead) {
            // It may come again as one of another link.
            turns.ahead.forget(id);
        }
        let (bucket, next) = (usize::from(flow.bucket), flow.next_in_bucket);
        self.unlink(bucket, id, next);
        self.free.push(id);
    }

    /// The bucket leads to this flow no more. `next`: the one behind it there.
    fn unlink(&mut self, bucket: usize, id: u16, next: u16) {
        if self.buckets[bucket] == id {
            self.buckets[bucket] = next;
            return;
        }
        let mut before = self.buckets[bucket];
        while self.flows[usize::from(before)].next_in_bucket != id {
            before = self.flows[usize::from(before)].next_in_bucket;
        }
        self.flows[usize::from(before)].next_in_bucket = next;
    }

    pub fn head(&mut self, flow: FlowId) -> &mut QueuedFrame {
        self.flows[usize::from(flow.0)]
            .frames
            .front_mut()
            .expect("a selected flow has a head")
    }

    /// The flow cannot use its turn: to the end, with the deficit that it has.
    pub fn pass(&mut self, flow: FlowId) {
        let turns = self.served_turns_mut();
        let was_ahead = turns.ahead.pass();
        if !was_ahead {
            turns.short_first.pass();
        }
        self.owe(flow, self.quantum, was_ahead);
    }

    /// Bytes of this flow that left.
    pub fn charge(&mut self, flow: FlowId, bytes: usize) {
        let turns = self.served_turns_mut();
        let went_ahead = turns.ahead.charge(bytes);
        if !went_ahead {
            turns.short_first.charge(bytes);
        }
        if self.has_bands() {
            self.bands[self.served.band.place()].charge(bytes);
        }
        self.owe(flow, bytes as isize, went_ahead);
    }

    fn owe(&mut self, flow: FlowId, bytes: isize, was_ahead: bool) {
        let flow = &mut self.flows[usize::from(flow.0)];
        let deficit = flow.deficit - bytes;
        flow.deficit = match was_ahead {
            // Its own turns are no longer away than one of these: there may be nobody else for long.
            true => deficit.max(flow.deficit.min(-self.quantum)),
            false => deficit,
        };
    }

    /// Takes the head out.
    pub fn pop(&mut self, flow: FlowId) -> QueuedFrame {
        let id = flow.0;
        let flow = &mut self.flows[usize::from(id)];
        let turns = turns_at(&mut self.bands, flow.stand);
        turns.frames -= 1;
        turns.begun -= flow.begun();
        let frame = flow.frames.pop_front().expect("a selected flow has a head");
        flow.bytes -= frame.waiting();
        self.bytes -= frame.waiting();
        self.frames -= 1;
        self.older.on_popped(&frame);
        self.hold.on_popped(frame.hold_until, self.frames);
        self.note_head(id);
        frame
    }

    /// A piece of the head left: `payload_len` bytes of it wait no more.
    pub fn take_piece(&mut self, flow: FlowId, payload_len: usize) {
        let flow = &mut self.flows[usize::from(flow.0)];
        let head = flow.frames.front_mut().expect("a selected flow has a head");
        turns_at(&mut self.bands, flow.stand).begun +=
            usize::from(head.sent == 0 && payload_len > 0);
        head.sent += payload_len;
        // The rest of it has to follow.
        self.hold.on_begun(head.hold_until.take());
        flow.bytes -= payload_len;
        self.bytes -= payload_len;
    }

    /// The flow that holds the most bytes, of those of these lanes with a frame of which no piece has left.
    fn fattest(&self, of: impl Fn(LaneId) -> bool) -> Option<usize> {
        let turns = self.bands.iter().flat_map(|band| &band.turns);
        let ids = turns.flat_map(FlowTurns::iter).map(usize::from);
        ids.filter(|&id| self.flows[id].frames.len() > self.flows[id].begun())
            .filter(|&id| of(self.flows[id].stand.band.lane))
            .max_by_key(|&id| self.flows[id].bytes)
    }

    /// Bytes of the flow that [`FlowQueues::shed`] would take from.
    pub fn fattest_bytes(&self, of: impl Fn(LaneId) -> bool) -> Option<usize> {
        self.fattest(of).map(|id| self.flows[id].bytes)
    }

    /// Takes the oldest frames out of the flow of these lanes that holds the most bytes: half of these, at most
    /// `frames_max` and at least one. None of which a piece has left, so perhaps none. Several at a
    /// time, because finding the flow is a look at all of them.
    pub fn shed(
        &mut self,
        of: impl Fn(LaneId) -> bool,
        frames_max: usize,
        mut give: impl FnMut(QueuedFrame),
    ) {
        let Some(id) = self.fattest(of) else {
            return;
        };
        let keep = self.flows[id].bytes / 2;
        for _ in 0..frames_max {
            let Some(frame) = self.remove_oldest(id) else {
                break;
            };
            give(frame);
            if self.flows[id].bytes <= keep {
                break;
            }
        }
        self.note_head(id as u16);
    }

    /// Takes the oldest frames out of a flow until it holds no more bytes than that: none of which a piece has left, and not the
    /// one that came last. The oldest, as in [`FlowQueues::shed`]: who sends too fast learns it as soon as may be, and what
    /// is newer is worth more to who does not care.
    pub fn bound(&mut self, flow: FlowId, bytes_max: usize, mut give: impl FnMut(QueuedFrame)) {
        let id = usize::from(flow.0);
        let is_beyond =
            |flow: &Flow| flow.bytes > bytes_max && flow.frames.len() > flow.begun() + 1;
        while is_beyond(&self.flows[id]) {
            give(self.remove_oldest(id).expect("there are two"));
        }
        self.note_head(flow.0);
    }

    /// The oldest frame of which no piece has left.
    fn remove_oldest(&mut self, id: usize) -> Option<QueuedFrame> {
        let flow = &mut self.flows[id];
        let frame = flow.frames.remove(flow.begun())?;
        flow.bytes -= frame.buffer.len();
        self.bytes -= frame.buffer.len();
        self.frames -= 1;
        self.older.on_popped(&frame);
        turns_at(&mut self.bands, flow.stand).frames -= 1;
        self.hold.on_popped(frame.hold_until, self.frames);
        Some(frame)
    }

    /// Takes everything out, flow by flow, each in its order.
    pub fn drain(&mut self) -> impl Iterator<Item = QueuedFrame> + '_ {
        self.buckets.fill(NONE);
        self.frames = 0;
        self.bytes = 0;
        self.older = Older::default();
        self.hold = Hold::default();
        let turns = self.bands.iter_mut().flat_map(|band| &mut band.turns);
        let turns: Vec<FlowTurns> = turns.map(std::mem::take).collect();
        let ids = turns.iter().flat_map(FlowTurns::iter);
        let flows = &mut self.flows;
        let free = &mut self.free;
        let mut all = Vec::new();
        for id in ids {
            let flow = &mut flows[usize::from(id)];
            flow.bytes = 0;
            flow.is_ahead = false;
            all.extend(flow.frames.drain(..));
            free.push(id);
        }
        all.into_iter()
    }
}

fn turns_at(bands: &mut [Band], stand: Stand) -> &mut FlowTurns {
    &mut bands[stand.band.place()].turns[stand.place]
}

mod bands;
#[cfg(test)]
mod bound;
#[cfg(test)]
mod marks;
#[cfg(test)]
mod tests;
