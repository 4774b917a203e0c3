//! Flow queues under deficit round robin: each flow gets the same bytes, new flows go first.
//!
//! M. Shreedhar and G. Varghese, *Efficient fair queuing using deficit round robin* (1996), in the
//! form of FQ-CoDel (RFC 8290): a list of new and one of old flows, CoDel at the head of each.
//! Unlike there, a flow's head may leave in pieces: the deficit is charged for each piece.
//!
//! Frames of a class that says *now* go ahead of all flows but their own: a flow whose head is such a
//! frame is [`ahead`](Ahead) besides being on its list. They cannot starve the others: see there.
//!
//! Invariants: a flow is on exactly one list while it has frames, and for one turn after (RFC 8290
//! section 4.2: a new flow that empties moves to the old list, else it would always be new); a
//! bucket names a flow exactly while that flow is on a list; a flow whose head is urgent is ahead.

use std::collections::VecDeque;

use crate::queue::ahead::Ahead;
use crate::queue::codel::{Codel, CodelParams};
use crate::queue::company::Company;
use crate::queue::frame::QueuedFrame;
use crate::queue::hold::Hold;
use crate::queue::pressure::Pressure;
use crate::stats::FlushReason;
use crate::time::Instant;
use crate::wire::ethernet;
use crate::wire::{subframe, train};

const BUCKETS: usize = 4096;
const NONE: u16 = u16::MAX;

/// A flow that [`FlowQueues::select`] chose, valid until the next change of the queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowId(u16);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    New,
    Old,
}

#[derive(Debug)]
struct Flow {
    frames: VecDeque<QueuedFrame>,
    bytes: usize,
    deficit: isize,
    codel: Codel,
    bucket: u16,
    list: List,
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

/// All flows towards one destination.
#[derive(Debug)]
pub struct FlowQueues {
    buckets: Box<[u16]>,
    flows: Vec<Flow>,
    free: Vec<u16>,
    new: VecDeque<u16>,
    old: VecDeque<u16>,
    ahead: Ahead,
    hold: Hold,
    company: Company,
    pressure: Pressure,
    quantum: isize,
    frames: usize,
    bytes: usize,
}

impl FlowQueues {
    /// `quantum`: bytes a flow may send in its turn.
    pub fn new(quantum: usize) -> FlowQueues {
        FlowQueues {
            buckets: vec![NONE; BUCKETS].into_boxed_slice(),
            flows: Vec::new(),
            free: Vec::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            ahead: Ahead::default(),
            hold: Hold::default(),
            company: Company::default(),
            pressure: Pressure::default(),
            quantum: quantum as isize,
            frames: 0,
            bytes: 0,
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
        self.new.len() + self.old.len()
    }

    /// Whether a frame is at the head of its flow whose class says *now*.
    pub fn has_urgent(&self) -> bool {
        let flows = &self.flows;
        self.ahead
            .iter()
            .any(|id| flows[usize::from(id)].is_urgent())
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

    pub fn push(&mut self, frame: QueuedFrame) {
        let bucket = frame.flow_hash as usize % BUCKETS;
        let id = match self.buckets[bucket] {
            NONE => self.open_flow(bucket),
            id => id,
        };
        let flow = &mut self.flows[usize::from(id)];
        self.frames += 1;
        self.bytes += frame.buffer.len();
        self.hold.on_pushed(frame.hold_until);
        flow.bytes += frame.buffer.len();
        flow.frames.push_back(frame);
        self.note_head(id);
    }

    /// The flow may have another head. One that is over is still ahead by its number, until it is looked at.
    fn note_head(&mut self, id: u16) {
        let flow = &mut self.flows[usize::from(id)];
        if flow.is_urgent() && !flow.is_ahead {
            flow.is_ahead = true;
            self.ahead.add(id);
        }
    }

    fn open_flow(&mut self, bucket: usize) -> u16 {
        let id = self.free.pop().unwrap_or_else(|| {
            self.flows.push(Flow {
                frames: VecDeque::new(),
                bytes: 0,
                deficit: 0,
                codel: Codel::default(),
                bucket: 0,
                list: List::New,
                is_ahead: false,
            });
            (self.flows.len() - 1) as u16
        });
        let flow = &mut self.flows[usize::from(id)];
        flow.deficit = self.quantum;
        flow.codel = Codel::default();
        flow.bucket = bucket as u16;
        flow.list = List::New;
        self.buckets[bucket] = id;
        self.new.push_back(id);
        id
    }

    /// The flow whose head is to go next. Heads that CoDel gives up on the way go to `dropped`;
    /// a head of which a piece has left already is never dropped.
    pub fn select(
        &mut self,
        now: Instant,
        params: &CodelParams,
        mtu: usize,
        dropped: &mut impl FnMut(QueuedFrame),
    ) -> Option<FlowId> {
        loop {
            let flows = &mut self.flows;
            let ahead = self.ahead.select(|id| {
                let flow = &mut flows[usize::from(id)];
                flow.is_ahead = flow.is_urgent();
                flow.is_ahead
            });
            let id = match ahead {
                Some(id) => id,
                None => self.whose_turn()?,
            };
            let flow = &mut self.flows[usize::from(id)];
            let head = flow.frames.front().expect("whose turn it is has a head");
            let sojourn = now.since(head.enqueued);
            let left = flow.bytes - head.waiting();
            // A GSO frame is one frame: a flow of them cannot have less waiting than that.
            let frame_max = mtu.max(head.waiting());
            if head.sent == 0
                && flow
                    .codel
                    .should_drop(sojourn, left, frame_max, now, params)
            {
                dropped(self.pop(FlowId(id)));
                continue;
            }
            return Some(FlowId(id));
        }
    }

    /// The flow whose turn it is by deficit round robin.
    fn whose_turn(&mut self) -> Option<u16> {
        loop {
            let (id, list) = match (self.new.front(), self.old.front()) {
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
        match list {
            List::New => self.new.pop_front(),
            List::Old => self.old.pop_front(),
        };
        self.flows[usize::from(id)].list = List::Old;
        self.old.push_back(id);
    }

    /// An empty flow at the front of `list`: one more turn if it was new and others wait, else out.
    fn retire(&mut self, id: u16, list: List) {
        if list == List::New && !self.old.is_empty() {
            self.rotate(id, list);
            return;
        }
        match list {
            List::New => self.new.pop_front(),
            List::Old => self.old.pop_front(),
        };
        self.buckets[usize::from(self.flows[usize::from(id)].bucket)] = NONE;
        self.free.push(id);
    }

    pub fn head(&mut self, flow: FlowId) -> &mut QueuedFrame {
        self.flows[usize::from(flow.0)]
            .frames
            .front_mut()
            .expect("a selected flow has a head")
    }

    /// The flow cannot use its turn: to the end, with the deficit that it has.
    pub fn pass(&mut self, flow: FlowId) {
        let was_ahead = self.ahead.pass();
        self.owe(flow, self.quantum, was_ahead);
    }

    /// Bytes of this flow that left.
    pub fn charge(&mut self, flow: FlowId, bytes: usize) {
        let went_ahead = self.ahead.charge(bytes);
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
        let frame = flow.frames.pop_front().expect("a selected flow has a head");
        flow.bytes -= frame.waiting();
        self.bytes -= frame.waiting();
        self.frames -= 1;
        self.hold.on_popped(frame.hold_until, self.frames);
        self.note_head(id);
        frame
    }

    /// A piece of the head left: `payload_len` bytes of it wait no more.
    pub fn take_piece(&mut self, flow: FlowId, payload_len: usize) {
        let flow = &mut self.flows[usize::from(flow.0)];
        let head = flow.frames.front_mut().expect("a selected flow has a head");
        head.sent += payload_len;
        // The rest of it has to follow.
        self.hold.on_begun(head.hold_until.take());
        flow.bytes -= payload_len;
        self.bytes -= payload_len;
    }

    /// The flow that holds the most bytes, of those with a frame of which no piece has left.
    fn fattest(&self) -> Option<usize> {
        let ids = self.new.iter().chain(&self.old).map(|&id| usize::from(id));
        ids.filter(|&id| self.flows[id].frames.len() > self.flows[id].begun())
            .max_by_key(|&id| self.flows[id].bytes)
    }

    /// Bytes of the flow that [`FlowQueues::shed`] would take from.
    pub fn fattest_bytes(&self) -> Option<usize> {
        self.fattest().map(|id| self.flows[id].bytes)
    }

    /// Takes the oldest frames out of the flow that holds the most bytes: half of these, at most
    /// `frames_max` and at least one. None of which a piece has left, so perhaps none. Several at a
    /// time, because finding the flow is a look at all of them.
    pub fn shed(&mut self, frames_max: usize, mut give: impl FnMut(QueuedFrame)) {
        let Some(id) = self.fattest() else {
            return;
        };
        let flow = &mut self.flows[id];
        let keep = flow.bytes / 2;
        for _ in 0..frames_max {
            let Some(frame) = flow.frames.remove(flow.begun()) else {
                break;
            };
            flow.bytes -= frame.buffer.len();
            self.bytes -= frame.buffer.len();
            self.frames -= 1;
            self.hold.on_popped(frame.hold_until, self.frames);
            give(frame);
            if flow.bytes <= keep {
                break;
            }
        }
        self.note_head(id as u16);
    }

    /// Takes everything out, flow by flow, each in its order.
    pub fn drain(&mut self) -> impl Iterator<Item = QueuedFrame> + '_ {
        self.buckets.fill(NONE);
        self.frames = 0;
        self.bytes = 0;
        self.ahead = Ahead::default();
        self.hold = Hold::default();
        let ids = self.new.drain(..).chain(self.old.drain(..));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Buffer;
    use crate::class::ClassId;
    use crate::offload::Offload;
    use crate::time::Duration;
    use crate::wire::ethernet::Header;
    use crate::wire::ethernet::MacAddr;
    use proptest::prelude::*;
    use std::collections::HashMap;

    const PARAMS: CodelParams = CodelParams {
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
    };

    /// Of a flow, which its last byte tells too.
    fn of(flow: u32, len: usize) -> QueuedFrame {
        QueuedFrame {
            flow_hash: flow,
            ..frame(len, flow as u8)
        }
    }

    fn frame(len: usize, mark: u8) -> QueuedFrame {
        let mut buffer = Buffer::with_capacity(len);
        buffer.set_len(len);
        buffer[len - 1] = mark;
        QueuedFrame {
            buffer,
            header: Header {
                destination: MacAddr::BROADCAST,
                source: MacAddr::BROADCAST,
                ether_type: 0x800,
            },
            offload: Offload::NONE,
            enqueued: Instant::ZERO,
            sent: 0,
            piece_id: 0,
            copy: None,
            flow_hash: 0,
            class: ClassId(0),
            urgent: false,
            hold_until: None,
            random: Default::default(),
        }
    }

    fn next(queues: &mut FlowQueues) -> Option<QueuedFrame> {
        let flow = queues.select(Instant::ZERO, &PARAMS, 1514, &mut |_| panic!("no drop"))?;
        let frame = queues.pop(flow);
        queues.charge(flow, frame.buffer.len());
        Some(frame)
    }

    #[test]
    fn two_busy_flows_share_by_bytes_whatever_their_frame_sizes() {
        let mut queues = FlowQueues::new(1514);
        for _ in 0..1000 {
            queues.push(of(1, 1514));
            queues.push(of(2, 100));
        }
        let mut bytes = HashMap::new();
        for _ in 0..600 {
            let frame = next(&mut queues).unwrap();
            *bytes.entry(*frame.buffer.last().unwrap()).or_insert(0usize) += frame.buffer.len();
        }
        let (large, small) = (bytes[&1] as f64, bytes[&2] as f64);
        assert!((large / small - 1.0).abs() < 0.06, "{bytes:?}");
    }

    #[test]
    fn a_new_flow_does_not_wait_behind_a_standing_one() {
        let mut queues = FlowQueues::new(1514);
        for _ in 0..100 {
            queues.push(of(1, 1514));
        }
        for _ in 0..10 {
            next(&mut queues);
        }
        queues.push(of(2, 64));
        assert_eq!(*next(&mut queues).unwrap().buffer.last().unwrap(), 2);
    }

    #[test]
    fn a_flow_that_pops_up_again_and_again_cannot_starve_the_old_ones() {
        let mut queues = FlowQueues::new(300);
        for _ in 0..1000 {
            queues.push(of(1, 100));
        }
        let mut served = 0;
        for _ in 0..1000 {
            queues.push(of(2, 300));
            served += usize::from(*next(&mut queues).unwrap().buffer.last().unwrap() == 1);
        }
        assert!(served >= 300, "the old flow got {served} of 1000 turns");
    }

    #[test]
    fn what_is_dropped_for_room_comes_from_the_fattest_flow_and_never_from_begun_frames() {
        let mut queues = FlowQueues::new(1514);
        queues.push(of(1, 60_000));
        queues.push(of(2, 1000));
        let flow = queues
            .select(Instant::ZERO, &PARAMS, 1514, &mut |_| {})
            .unwrap();
        queues.take_piece(flow, 100);
        let mut shed = Vec::new();
        queues.shed(64, |frame| shed.push(*frame.buffer.last().unwrap()));
        assert_eq!(shed, [2]);
        queues.shed(64, |_| panic!("a piece has left of all that is there"));
        assert_eq!((queues.frames(), queues.bytes()), (1, 59_900));
        for number in 0..100u8 {
            queues.push(QueuedFrame {
                flow_hash: 3,
                ..frame(1000, number)
            });
        }
        shed.clear();
        queues.shed(64, |frame| shed.push(*frame.buffer.last().unwrap()));
        assert_eq!(shed, (0..50).collect::<Vec<u8>>(), "half, the oldest first");
        assert_eq!((queues.frames(), queues.bytes()), (51, 109_900));
    }

    fn urgent(flow: u32, len: usize) -> QueuedFrame {
        QueuedFrame {
            urgent: true,
            ..of(flow, len)
        }
    }

    fn next_flows(queues: &mut FlowQueues, count: usize) -> Vec<u8> {
        let mut flow = || *next(queues).unwrap().buffer.last().unwrap();
        (0..count).map(|_| flow()).collect()
    }

    #[test]
    fn an_urgent_frame_goes_ahead_of_all_flows_and_behind_its_own() {
        let mut queues = FlowQueues::new(1514);
        for flow in [1, 2, 3] {
            (0..5).for_each(|_| queues.push(of(flow, 1514)));
        }
        assert_eq!(next_flows(&mut queues, 4), [1, 2, 3, 1]);
        queues.push(urgent(9, 60));
        queues.push(urgent(2, 60));
        assert!(queues.has_urgent());
        assert_eq!(next_flows(&mut queues, 1), [9]);
        assert!(
            !queues.has_urgent(),
            "the other one has frames of its flow before it"
        );
        // Four of flow 2 are before it: it leaves as the fifth, as soon as it is at their head.
        let flows = next_flows(&mut queues, 12);
        let before = flows.iter().filter(|&&flow| flow == 2).count();
        assert_eq!((before, queues.frames()), (5, 0));
        assert!(!queues.has_urgent());
    }

    #[test]
    fn who_marks_all_as_urgent_gets_no_more_than_all_others_together() {
        let mut queues = FlowQueues::new(1514);
        for _ in 0..1000 {
            queues.push(of(1, 1000));
            queues.push(of(2, 1000));
            queues.push(urgent(9, 1000));
        }
        let flows = next_flows(&mut queues, 1000);
        let share = flows.iter().filter(|&&flow| flow == 9).count();
        assert_eq!(flows[..17], [9; 17]);
        assert!((490..=530).contains(&share), "{share} of 1000");
        // And with nobody else it is not held back.
        let mut queues = FlowQueues::new(1514);
        (0..100).for_each(|_| queues.push(urgent(9, 1000)));
        assert_eq!(next_flows(&mut queues, 100), [9; 100]);
    }

    #[test]
    fn frames_that_may_wait_are_ripe_when_a_train_is_full_or_their_time_is_over() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let patient = |flow, ms| QueuedFrame {
            hold_until: Some(at(ms)),
            ..of(flow, 100)
        };
        let mut queues = FlowQueues::new(1514);
        queues.push(patient(1, 5));
        queues.push(patient(2, 3));
        assert_eq!(queues.ripe_at(), Some(at(3)));
        assert!(!queues.is_ripe(300, at(2)));
        assert!(!queues.is_ripe(209, at(2)));
        assert!(queues.is_ripe(208, at(2)), "it is full");
        queues.push(of(3, 60));
        assert!(queues.is_ripe(300, at(2)), "one may not wait");
        queues.shed(1, |_| {});
        assert!(queues.is_ripe(300, at(3)));
        queues.drain().for_each(drop);
        assert_eq!(queues.ripe_at(), None);
    }

    proptest! {
        /// Against the obvious: a queue a flow; the order inside each flow is what counts.
        #[test]
        fn each_flow_keeps_its_order_and_nothing_is_lost(
            steps in proptest::collection::vec(
                (0u32..6, 60usize..3000, any::<bool>(), any::<bool>()),
                1..400,
            )
        ) {
            let mut queues = FlowQueues::new(1514);
            let mut model: HashMap<u32, VecDeque<usize>> = HashMap::new();
            let mut waiting = 0;
            let check = |frame: QueuedFrame, model: &mut HashMap<u32, VecDeque<usize>>| {
                let flow = u32::from(*frame.buffer.last().unwrap());
                model.get_mut(&flow).unwrap().pop_front() == Some(frame.buffer.len())
            };
            for (flow, len, urgent, take) in steps {
                queues.push(QueuedFrame { urgent, ..of(flow, len) });
                model.entry(flow).or_default().push_back(len);
                waiting += 1;
                if take {
                    prop_assert!(check(next(&mut queues).unwrap(), &mut model));
                    waiting -= 1;
                }
                prop_assert_eq!(queues.frames(), waiting);
                prop_assert_eq!(queues.bytes(), model.values().flatten().sum::<usize>());
            }
            while let Some(frame) = next(&mut queues) {
                prop_assert!(check(frame, &mut model));
            }
            prop_assert!(model.values().all(VecDeque::is_empty));
            prop_assert_eq!(queues.flows(), 0);
        }
    }
}
