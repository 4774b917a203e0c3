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
}

#[derive(Debug, Default)]
struct Flow {
    frames: VecDeque<Frame>,
    deficit: isize,
    /// Bytes of others that left since its head is its head: in their turns, and ahead of theirs.
    in_turn: usize,
    ahead: usize,
    /// Of its head itself, in its turns: pieces.
    own_in_turn: usize,
}

impl Flow {
    fn is_urgent(&self) -> bool {
        self.frames.front().is_some_and(|frame| frame.urgent)
    }
}

/// Deficit round robin with a list of new and one of old flows (RFC 8290), and urgent heads before it.
#[derive(Debug)]
struct Slow {
    quantum: isize,
    flows: BTreeMap<u32, Flow>,
    new: Vec<u32>,
    old: Vec<u32>,
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
            new: Vec::new(),
            old: Vec::new(),
            account: 0,
            excess: 0,
        }
    }

    fn of(&mut self, flow: u32) -> &mut Flow {
        self.flows.get_mut(&flow).expect("one of them")
    }

    fn push(&mut self, flow: u32, frame: Frame) {
        if !self.new.contains(&flow) && !self.old.contains(&flow) {
            self.of(flow).deficit = self.quantum;
            self.new.push(flow);
        }
        self.of(flow).frames.push_back(frame);
        if self.of(flow).frames.len() == 1 {
            self.begin_to_wait(flow);
        }
    }

    fn begin_to_wait(&mut self, flow: u32) {
        let flow = self.of(flow);
        (flow.in_turn, flow.ahead, flow.own_in_turn) = (0, 0, 0);
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
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let flow = *list.first()?;
            let state = self.flows.get_mut(&flow).expect("one of them");
            let over = state.deficit <= 0;
            if !over && !state.frames.is_empty() {
                return Some(flow);
            }
            list.remove(0);
            if over {
                state.deficit += self.quantum;
                self.old.push(flow);
            } else if is_new && !self.old.is_empty() {
                self.old.push(flow);
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
        for (other, state) in &mut self.flows {
            if *other != flow && is_ahead {
                state.ahead += bytes;
            } else if *other != flow {
                state.in_turn += bytes;
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
        if is_ahead {
            self.account = AHEAD_BYTES_MAX;
        }
    }

    /// Frames were dropped for room.
    fn drop_frame(&mut self, flow: u32, id: u32) {
        let frames = &mut self.of(flow).frames;
        let at = frames.iter().position(|frame| frame.id == id);
        let at = at.expect("it waited");
        frames.remove(at);
        if at == 0 {
            self.begin_to_wait(flow);
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
    let push = (0..FLOWS).prop_flat_map(move |flow| (Just(flow), bytes(flow), any::<bool>()));
    let push = push.prop_map(|(flow, bytes, coin)| Step::Push {
        flow,
        bytes,
        urgent: flow == 0 || coin && flow >= 3,
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
        steps in proptest::collection::vec(step(), 1..1500),
    ) {
        let mut both = Both::new(quantum);
        for (id, step) in (0..).zip(steps) {
            match step {
                Step::Push { flow, bytes, urgent } => {
                    both.push(flow, Frame { id, waiting: bytes, urgent });
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
            },
        );
        both.push(
            1,
            Frame {
                id,
                waiting: 64,
                urgent: false,
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
