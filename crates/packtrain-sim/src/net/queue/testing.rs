//! What the tests of disciplines have in common: units that are nothing but a number, a flow and a length, and a slow model
//! beside the queue, which is to do the same.

use packtrain_proto::time::{Duration, Instant};
use proptest::prelude::*;

use super::{Discipline, Queue, QueueConfig, QueueLimit, Verdict};
use crate::net::carried::Carried;
use crate::net::corruption::{Corrupted, Corruption};
use crate::net::ecn::Marking;
use crate::random::{Random, mix};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    pub number: u32,
    pub flow: u8,
    pub len: usize,
    pub ecn: Option<bool>,
}

impl Carried for Unit {
    fn len_bytes(&self) -> usize {
        self.len
    }

    fn segment_count(&self) -> usize {
        1
    }

    fn wire_bits(&self) -> u64 {
        8 * self.len as u64
    }

    fn ip_bits(&self) -> u64 {
        self.wire_bits()
    }

    fn checked_bits(&self) -> u64 {
        self.wire_bits()
    }

    fn mark(&mut self) -> Marking {
        match self.ecn.replace(true) {
            None => {
                self.ecn = None;
                Marking::NotCapable
            }
            Some(true) => Marking::MarkedBefore,
            Some(false) => Marking::Marked,
        }
    }

    fn strike(&mut self, corruption: &mut Corruption) -> Corrupted {
        corruption.hits()
    }

    fn flow_hash(&self) -> u64 {
        mix(self.flow.into())
    }
}

/// A queue with what it feeds: what leaves it when it is told.
pub(super) struct Fed {
    pub queue: Queue<Unit>,
    pub now: Instant,
    /// Of all that comes from now on.
    pub ecn: Option<bool>,
    next_number: u32,
    sending: bool,
}

/// What came of an arrival or a departure, by the units' numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Came {
    pub dropped: Vec<u32>,
    /// What begins to be sent.
    pub begun: Option<Unit>,
}

impl Fed {
    pub fn new(limit: QueueLimit, discipline: Discipline) -> Fed {
        let config = QueueConfig { limit, discipline };
        Fed {
            queue: Queue::new(config, Random::new(1)),
            now: Instant::ZERO,
            ecn: None,
            next_number: 0,
            sending: false,
        }
    }

    /// A unit with the next number comes.
    pub fn arrive(&mut self, flow: u8, len: usize) -> (Unit, Came) {
        let unit = Unit {
            number: self.next_number,
            flow,
            len,
            ecn: self.ecn,
        };
        self.next_number += 1;
        let mut came = Came::default();
        let taken = self.queue.push(unit, self.now);
        while let Some(other) = self.queue.evicted() {
            came.dropped.push(other.number);
        }
        came.dropped
            .extend(taken.err().map(|(unit, _)| unit.number));
        if !self.sending {
            self.begin(&mut came);
        }
        (unit, came)
    }

    /// What is being sent has left, and the next one begins.
    pub fn leave(&mut self) -> Came {
        let mut came = Came::default();
        if std::mem::take(&mut self.sending) {
            self.queue.pop(self.now);
            self.begin(&mut came);
        }
        came
    }

    fn begin(&mut self, came: &mut Came) {
        while let Some((&unit, _)) = self.queue.first() {
            assert_eq!(self.queue.first().map(|(unit, _)| *unit), Some(unit));
            if self.queue.verdict(self.now) != Verdict::Drop {
                self.sending = true;
                // Perhaps it is marked by now.
                came.begun = self.queue.first().map(|(unit, _)| *unit);
                return;
            }
            came.dropped.push(self.queue.pop(self.now).number);
        }
    }
}

/// The same, slow and obvious.
pub(super) trait Model {
    /// Numbers of what is dropped for it, itself included; nothing begins.
    fn arrive(&mut self, unit: Unit, now: Instant) -> Vec<u32>;
    /// What was being sent is no longer there. What begins then.
    fn leave(&mut self, now: Instant) -> Came;
    fn bytes(&self) -> usize;
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Arrive { flow: u8, len: usize },
    Leave,
    Wait(Duration),
}

/// Units of two kinds of length, mostly more than leave.
pub(super) fn any_steps(flows: u8) -> impl Strategy<Value = Vec<Step>> {
    let len = prop_oneof![3 => Just(1500usize), 1 => Just(60), 1 => Just(9000), 1 => 40usize..2000];
    let step = prop_oneof![
        6 => (0..flows, len).prop_map(|(flow, len)| Step::Arrive { flow, len }),
        4 => Just(Step::Leave),
        1 => (1u64..4_000_000).prop_map(|nanos| Step::Wait(Duration::from_nanos(nanos))),
    ];
    prop::collection::vec(step, 1..400)
}

pub(super) fn any_limit() -> impl Strategy<Value = QueueLimit> {
    prop_oneof![
        (0usize..60_000).prop_map(QueueLimit::Bytes),
        (0usize..40).prop_map(QueueLimit::Frames),
    ]
}

/// Whether one more of so many bytes fits to these. The slow form of [`Queue::has_room`].
pub(super) fn fits(limit: QueueLimit, standing: &[usize], len: usize) -> bool {
    let bytes: usize = standing.iter().sum();
    standing.is_empty()
        || match limit {
            QueueLimit::Bytes(limit) => bytes + len <= limit,
            QueueLimit::Frames(limit) => standing.len() < limit,
        }
}

/// Does all of it to both of them.
pub(super) fn agree(mut fed: Fed, model: &mut impl Model, steps: &[Step]) {
    for step in steps {
        match *step {
            Step::Arrive { flow, len } => {
                let was_idle = fed.queue.is_empty();
                let (unit, came) = fed.arrive(flow, len);
                assert_eq!(came.dropped, model.arrive(unit, fed.now), "{unit:?}");
                if was_idle {
                    assert_eq!(came.begun, model.leave(fed.now).begun);
                }
            }
            Step::Leave => {
                if !fed.queue.is_empty() {
                    assert_eq!(fed.leave(), model.leave(fed.now));
                }
            }
            Step::Wait(time) => fed.now += time,
        }
        assert_eq!(fed.queue.bytes(), model.bytes());
    }
}
