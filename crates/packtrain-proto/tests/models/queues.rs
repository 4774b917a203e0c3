//! Flow queues against a slow, obvious model of them, and what that promises to each frame at the head of
//! its flow.
//!
//! Who overtakes whom is decided here and nowhere else, and from outside a host it can hardly be seen: which frames
//! shared a queue when one of them left, and whether it was its turn, no wire tells.

use std::collections::{BTreeMap, VecDeque};

use packtrain_proto::buffer::Buffer;
use packtrain_proto::class::ClassId;
use packtrain_proto::offload::Offload;
use packtrain_proto::queue::ahead::AHEAD_BYTES_MAX;
use packtrain_proto::queue::codel::{Aqm, CodelParams};
use packtrain_proto::queue::drr::{FlowId, FlowQueues};
use packtrain_proto::queue::frame::QueuedFrame;
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::ethernet::{HEADER_LEN, Header, MacAddr};
use proptest::prelude::*;

const FLOWS: u32 = 5;
const FRAME_MAX: usize = 3000;
/// Nothing waits for longer than no time at all: CoDel has no reason to drop.
const CODEL: Aqm = Aqm {
    codel: CodelParams {
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
    },
    ecn: true,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Frame {
    id: u32,
    waiting: usize,
    urgent: bool,
    short: bool,
}

#[derive(Debug, Default)]
struct Flow {
    frames: VecDeque<Frame>,
    /// As its head, or the last one that it had.
    is_short: bool,
    deficit: isize,
    /// Bytes of others that left since its head is its head: in their turns, those of its own kind and of the other, and ahead
    /// of theirs.
    in_turn: usize,
    in_turn_of_other_kind: usize,
    ahead: usize,
    /// Of its head itself, in its turns: pieces.
    own_in_turn: usize,
    /// How often meanwhile somebody could not use his turn.
    passes: usize,
}

impl Flow {
    /// Its head is another one.
    fn forget_others(&mut self) {
        (self.in_turn, self.in_turn_of_other_kind) = (0, 0);
        (self.ahead, self.own_in_turn, self.passes) = (0, 0, 0);
    }

    fn is_urgent(&self) -> bool {
        self.frames.front().is_some_and(|frame| frame.urgent)
    }
}

#[derive(Debug, Default)]
struct Lists {
    new: Vec<u32>,
    old: Vec<u32>,
}

impl Lists {
    /// Where it stands, and in which list.
    fn remove(&mut self, flow: u32) -> Option<bool> {
        for (is_new, list) in [(true, &mut self.new), (false, &mut self.old)] {
            if let Some(at) = list.iter().position(|&other| other == flow) {
                list.remove(at);
                return Some(is_new);
            }
        }
        None
    }
}

/// Deficit round robin with a list of new and one of old flows (RFC 8290), and urgent heads before it.
#[derive(Debug)]
struct Slow {
    quantum: isize,
    flows: BTreeMap<u32, Flow>,
    /// Of flows whose head is a short one's, and of others.
    short: Lists,
    long: Lists,
    /// Bytes of short flows that left in turn while others waited, less those of these since; never below 0.
    short_account: usize,
    /// Flows of both kinds wait, or only short ones, or not.
    kinds: (bool, bool),
    /// Bytes that left ahead of their turn, less those that left in theirs since; never below 0.
    account: usize,
    /// The most of the same difference since any moment.
    excess: isize,
}

impl Slow {
    fn new(quantum: usize) -> Slow {
        Slow {
            quantum: quantum as isize,
            flows: (0..FLOWS).map(|flow| (flow, Flow::default())).collect(),
            short: Lists::default(),
            long: Lists::default(),
            short_account: 0,
            kinds: (false, false),
            account: 0,
            excess: 0,
        }
    }

    fn of(&mut self, flow: u32) -> &mut Flow {
        self.flows.get_mut(&flow).expect("one of them")
    }

    fn lists(&mut self, is_short: bool) -> &mut Lists {
        if is_short {
            &mut self.short
        } else {
            &mut self.long
        }
    }

    fn push(&mut self, flow: u32, frame: Frame) {
        let has = |lists: &Lists| lists.new.contains(&flow) || lists.old.contains(&flow);
        if !has(&self.short) && !has(&self.long) {
            self.of(flow).deficit = self.quantum;
            self.of(flow).is_short = frame.short;
            self.lists(frame.short).new.push(flow);
        }
        self.of(flow).frames.push_back(frame);
        if self.of(flow).frames.len() == 1 {
            self.begin_to_wait(flow);
        }
    }

    /// Another frame is its head.
    fn begin_to_wait(&mut self, flow: u32) {
        let state = self.of(flow);
        state.forget_others();
        self.change_lists(flow);
    }

    /// It is to stand in the lists of its head's kind, as it did in others.
    fn change_lists(&mut self, flow: u32) {
        let state = self.of(flow);
        let was_short = state.is_short;
        let Some(head) = state.frames.front() else {
            return;
        };
        let is_short = head.short;
        state.is_short = is_short;
        if is_short != was_short {
            let is_new = self.lists(was_short).remove(flow);
            let lists = self.lists(is_short);
            match is_new.expect("it is on a list") {
                true => lists.new.push(flow),
                false => lists.old.push(flow),
            }
        }
    }

    /// Whose head goes next, and whether ahead of its turn. Of several that may go ahead, any may be `chosen`.
    fn next(&mut self, chosen: Option<u32>) -> Option<(u32, bool)> {
        let may = self.account < AHEAD_BYTES_MAX;
        let mut urgent = self
            .flows
            .iter()
            .filter(|(_, flow)| may && flow.is_urgent());
        match urgent.next() {
            None => self.whose_turn().map(|flow| (flow, false)),
            Some((&first, _)) => {
                let is_one = |flow: &u32| self.flows[flow].is_urgent();
                Some((chosen.filter(is_one).unwrap_or(first), true))
            }
        }
    }

    fn whose_turn(&mut self) -> Option<u32> {
        let waits = |is_short| {
            let mut waiting = self.flows.values().filter(|flow| !flow.frames.is_empty());
            waiting.any(|flow| flow.is_short == is_short)
        };
        self.kinds = (waits(true), waits(false));
        let short = self.kinds.0 && (!self.kinds.1 || self.short_account < AHEAD_BYTES_MAX);
        if !self.kinds.0 {
            assert_eq!(self.whose_turn_of(true), None);
        }
        self.whose_turn_of(short)
    }

    fn whose_turn_of(&mut self, is_short: bool) -> Option<u32> {
        loop {
            let lists = if is_short {
                &mut self.short
            } else {
                &mut self.long
            };
            let is_new = !lists.new.is_empty();
            let list = if is_new {
                &mut lists.new
            } else {
                &mut lists.old
            };
            let flow = *list.first()?;
            let state = self.flows.get_mut(&flow).expect("one of them");
            let over = state.deficit <= 0;
            if !over && !state.frames.is_empty() {
                return Some(flow);
            }
            list.remove(0);
            if over {
                state.deficit += self.quantum;
                lists.old.push(flow);
            } else if is_new && !lists.old.is_empty() {
                lists.old.push(flow);
            }
        }
    }

    /// So many bytes of its head leave; all of it, or it waits on.
    fn leave(&mut self, (flow, is_ahead): (u32, bool), bytes: usize, whole: bool) {
        let all = bytes as isize;
        let owed = self.of(flow).deficit - all;
        let least = self.of(flow).deficit.min(-self.quantum);
        self.of(flow).deficit = if is_ahead { owed.max(least) } else { owed };
        self.excess = (self.excess + if is_ahead { all } else { -all }).max(0);
        self.account = match is_ahead {
            true => self.account + bytes,
            false => self.account.saturating_sub(bytes),
        };
        let is_short = self.of(flow).is_short;
        if !is_ahead {
            self.short_account = match (is_short, self.kinds.1) {
                (true, true) => self.short_account + bytes,
                (true, false) => self.short_account,
                (false, _) => self.short_account.saturating_sub(bytes),
            };
        }
        for (other, state) in &mut self.flows {
            if *other != flow && is_ahead {
                state.ahead += bytes;
            } else if *other != flow && state.is_short == is_short {
                state.in_turn += bytes;
            } else if *other != flow {
                state.in_turn_of_other_kind += bytes;
            } else if !is_ahead {
                state.own_in_turn += bytes;
            }
        }
        let head = &mut self.of(flow).frames[0];
        head.waiting -= bytes;
        if whole {
            assert_eq!(head.waiting, 0);
            self.of(flow).frames.pop_front();
            self.begin_to_wait(flow);
        }
    }

    fn pass(&mut self, (flow, is_ahead): (u32, bool)) {
        let deficit = self.of(flow).deficit;
        let owed = deficit - self.quantum;
        self.of(flow).deficit = match is_ahead {
            true => owed.max(deficit.min(-self.quantum)),
            false => owed,
        };
        for state in self.flows.values_mut() {
            state.passes += 1;
        }
        if is_ahead {
            self.account = AHEAD_BYTES_MAX;
            return;
        }
        self.short_account = match (self.of(flow).is_short, self.kinds) {
            (true, (_, true)) => AHEAD_BYTES_MAX,
            (false, (true, _)) => self.short_account.min(AHEAD_BYTES_MAX - 1),
            _ => self.short_account,
        };
    }

    /// Frames were dropped for room.
    fn drop_frame(&mut self, flow: u32, id: u32) {
        let frames = &mut self.of(flow).frames;
        let at = frames.iter().position(|frame| frame.id == id);
        let at = at.expect("it waited");
        frames.remove(at);
        if at == 0 {
            let state = self.of(flow);
            state.forget_others();
        }
    }

    /// What holds for all that wait, at any time.
    fn check_promises(&self) -> Result<(), TestCaseError> {
        let frame = FRAME_MAX as isize;
        // Whatever waits meanwhile: ahead of it go no more than the bound, a frame, and as much as left in turn.
        prop_assert!(self.excess <= AHEAD_BYTES_MAX as isize + frame);
        let turns = 1 + (self.quantum.max(frame) as usize).div_ceil(self.quantum as usize);
        let turn = self.quantum as usize + FRAME_MAX;
        // Each of the others may once be new besides.
        let in_turn_max = (turns + 1) * (FLOWS as usize - 1) * turn;
        for (number, flow) in &self.flows {
            // Its own turn is never further away than one of the most that may leave at once.
            prop_assert!(
                flow.deficit >= -self.quantum.max(frame),
                "{number}: {flow:?}"
            );
            if !flow.frames.is_empty() {
                prop_assert!(flow.in_turn <= in_turn_max, "{number}: {flow:?}");
                let in_turn = flow.in_turn + flow.own_in_turn;
                // The other kind has no more than its own, beside the bound for short ones, and where somebody passed.
                let more = match flow.is_short {
                    true => FRAME_MAX,
                    false => AHEAD_BYTES_MAX,
                };
                let others_max = in_turn + more + (1 + flow.passes) * FRAME_MAX;
                prop_assert!(
                    flow.in_turn_of_other_kind <= others_max,
                    "{number}: {flow:?}"
                );
                let in_turn = in_turn + flow.in_turn_of_other_kind;
                prop_assert!(flow.ahead <= AHEAD_BYTES_MAX + FRAME_MAX + in_turn);
            }
        }
        Ok(())
    }
}

fn queued(flow: u32, frame: Frame) -> QueuedFrame {
    let mut buffer = Buffer::with_capacity(frame.waiting);
    buffer.set_len(frame.waiting);
    buffer[HEADER_LEN..HEADER_LEN + 4].copy_from_slice(&frame.id.to_be_bytes());
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
        class: ClassId(0),
        lane: packtrain_proto::trunk::lane::LaneId::FIRST,
        band: packtrain_proto::queue::band::BandId::FIRST,
        changes_lane: false,
        of_elephant: false,
        short: frame.short,
        marked: false,
        flow_hash: flow,
        share: 0,
        urgent: frame.urgent,
        hold_until: None,
        random: Default::default(),
    }
}

fn id_of(frame: &QueuedFrame) -> u32 {
    let id = frame.buffer[HEADER_LEN..HEADER_LEN + 4].try_into();
    u32::from_be_bytes(id.expect("four bytes"))
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Push {
        flow: u32,
        bytes: usize,
        urgent: bool,
        short: bool,
    },
    /// The next head leaves.
    Whole,
    /// … or so many bytes of it.
    Piece {
        bytes: usize,
    },
    /// … or cannot use its turn.
    Pass,
    Shed {
        frames: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    // Some flows send small frames and some large ones; one is urgent always, and two sometimes.
    let bytes = |flow| match flow % 2 {
        0 => 64usize..=FRAME_MAX,
        _ => 64usize..=200,
    };
    let push =
        (0..FLOWS).prop_flat_map(move |flow| (Just(flow), bytes(flow), any::<bool>(), any::<u8>()));
    let push = push.prop_map(|(flow, bytes, coin, short)| Step::Push {
        flow,
        bytes,
        urgent: flow == 0 || coin && flow >= 3,
        // One is always short, one never, and the others change.
        short: flow == 1 || flow != 2 && short < 100,
    });
    prop_oneof![
        50 => push,
        35 => Just(Step::Whole),
        10 => (64usize..=1500).prop_map(|bytes| Step::Piece { bytes }),
        3 => Just(Step::Pass),
        1 => (1usize..8).prop_map(|frames| Step::Shed { frames }),
    ]
}

struct Both {
    queues: FlowQueues,
    slow: Slow,
}

impl Both {
    fn new(quantum: usize) -> Both {
        Both {
            queues: FlowQueues::new(quantum),
            slow: Slow::new(quantum),
        }
    }

    fn push(&mut self, flow: u32, frame: Frame) {
        self.queues.push(queued(flow, frame));
        self.slow.push(flow, frame);
    }

    /// Both must choose the same.
    #[allow(clippy::type_complexity)]
    fn next(&mut self) -> Result<Option<(FlowId, (u32, bool))>, TestCaseError> {
        let no_drop = &mut |_| panic!("no drop");
        let chosen = self.queues.select(Instant::ZERO, &CODEL, 1514, no_drop);
        let flow = chosen.map(|flow| self.queues.head(flow).flow_hash);
        let expected = self.slow.next(flow);
        prop_assert_eq!(chosen.is_some(), expected.is_some());
        let (Some(chosen), Some(expected)) = (chosen, expected) else {
            return Ok(None);
        };
        let head = self.queues.head(chosen);
        prop_assert_eq!(head.flow_hash, expected.0);
        prop_assert_eq!(id_of(head), self.slow.flows[&expected.0].frames[0].id);
        Ok(Some((chosen, expected)))
    }

    fn take(&mut self, step: Step) -> Result<(), TestCaseError> {
        if let Step::Shed { frames } = step {
            let slow = &mut self.slow;
            self.queues.shed(
                |_| true,
                frames,
                |frame| slow.drop_frame(frame.flow_hash, id_of(&frame)),
            );
            // Several may go at once: what counts is which one is the head then.
            (0..FLOWS).for_each(|flow| self.slow.change_lists(flow));
            return Ok(());
        }
        let Some((flow, expected)) = self.next()? else {
            return Ok(());
        };
        let head = self.queues.head(flow);
        let waiting = head.waiting();
        match step {
            Step::Pass => {
                self.queues.pass(flow);
                self.slow.pass(expected);
            }
            // The headers go with the last piece.
            Step::Piece { bytes } if waiting > bytes + HEADER_LEN => {
                self.queues.take_piece(flow, bytes);
                self.queues.charge(flow, bytes);
                self.slow.leave(expected, bytes, false);
            }
            _ => {
                self.queues.pop(flow);
                self.queues.charge(flow, waiting);
                self.slow.leave(expected, waiting, true);
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn who_is_next_is_whom_the_model_chooses_and_nobody_waits_for_too_much(
        quantum in prop_oneof![Just(1514usize), 300usize..4000],
        has_short: bool,
        steps in proptest::collection::vec(step(), 1..1500),
    ) {
        let mut both = Both::new(quantum);
        for (id, step) in (0..).zip(steps) {
            match step {
                Step::Push { flow, bytes, urgent, short } => {
                    both.push(flow, Frame { id, waiting: bytes, urgent, short: short && has_short });
                }
                step => both.take(step)?,
            }
            both.slow.check_promises()?;
        }
        while !both.queues.is_empty() {
            both.take(Step::Whole)?;
            both.slow.check_promises()?;
        }
        prop_assert!(both.slow.flows.values().all(|flow| flow.frames.is_empty()));
    }
}

/// Bytes of an urgent flow of large frames, and of another of small ones, of so many frames that left.
fn shares(frames: u32) -> [usize; 2] {
    let mut both = Both::new(1514);
    for id in 0..frames {
        both.push(
            0,
            Frame {
                id,
                waiting: 1514,
                urgent: true,
                short: false,
            },
        );
        both.push(
            1,
            Frame {
                id,
                waiting: 64,
                urgent: false,
                short: false,
            },
        );
    }
    let mut bytes = [0; 2];
    for _ in 0..frames {
        let (flow, expected) = both.next().unwrap().expect("there are more");
        let waiting = both.queues.head(flow).waiting();
        bytes[expected.0 as usize] += waiting;
        both.queues.pop(flow);
        both.queues.charge(flow, waiting);
        both.slow.leave(expected, waiting, true);
    }
    bytes
}

#[test]
fn large_urgent_frames_get_no_more_than_half_beside_small_ones() {
    let [urgent, other] = shares(2000);
    assert!(
        urgent <= other + other / 8 + AHEAD_BYTES_MAX + 2 * 1514,
        "{urgent} and {other} bytes"
    );
}

#[test]
fn a_short_flow_leaves_at_once_beside_elephants_and_many_of_them_have_half() {
    let frame = |id, short| Frame {
        id,
        waiting: 1000,
        urgent: false,
        short,
    };
    let mut both = Both::new(1514);
    for id in 0..400 {
        (0..3).for_each(|flow| both.push(flow, frame(id, false)));
    }
    let mut left = Vec::new();
    for id in 400..600 {
        if !(410..500).contains(&id) {
            both.push(3, frame(id, true));
            both.push(4, frame(id, true));
        }
        let (flow, expected) = both.next().unwrap().expect("there are more");
        both.queues.pop(flow);
        both.queues.charge(flow, 1000);
        both.slow.leave(expected, 1000, true);
        left.push(expected.0);
    }
    assert!(left[..17].iter().all(|flow| *flow > 2), "{left:?}");
    let short = left[110..].iter().filter(|flow| **flow > 2).count();
    assert!((46..=52).contains(&short), "{short} of 90: {left:?}");
}
