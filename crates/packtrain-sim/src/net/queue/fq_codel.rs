//! FQ-CoDel (RFC 8290): each flow has a queue with a CoDel of its own, and flows that have just begun to send go first.
//!
//! ```text
//!          a frame of a flow that has none here
//!                   │
//!                   ▼
//!                  new ──── credits used up, or empty ───→ old ──→ old's end: credits used up, a quantum more
//!                                                           └────→ out: empty
//! ```
//!
//! As in the RFC, and unlike in DRR, a flow may send as long as it has any credit at all, and goes into debt for the rest.
//!
//! Where the RFC leaves it open: flows are told apart exactly, and not by 1024 buckets. CoDel looks at its flow's queue
//! alone, as in ns-3: one whose frames behind the first are no more than its longest frame is never dropped from (Linux
//! looks at all flows together). With a flow that leaves, its CoDel is forgotten.

use std::collections::VecDeque;

use packtrain_proto::queue::codel::{Codel, CodelParams};
use packtrain_proto::time::Instant;

use super::flows::{Flows, Slot};
use super::order::Waiting;
use crate::net::carried::Carried;

/// Most frames that go at once when there is no room (section 4.1).
const BATCH_FRAMES_MAX: usize = 64;

#[derive(Debug, Default)]
struct State {
    /// The RFC's credits, in bytes.
    credits: i64,
    codel: Codel,
    frame_bytes_max: usize,
}

#[derive(Debug)]
pub(super) struct FqCodel<F> {
    quantum_bytes: i64,
    flows: Flows<F, State>,
    /// Each flow that has a slot is in one of them.
    new: VecDeque<Slot>,
    old: VecDeque<Slot>,
    /// Whose frame was chosen last.
    current: Slot,
}

impl<F: Carried> FqCodel<F> {
    pub fn new(quantum_bytes: usize) -> FqCodel<F> {
        assert!(quantum_bytes > 0, "no round would ever come to an end");
        FqCodel {
            quantum_bytes: quantum_bytes as i64,
            flows: Flows::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            current: 0,
        }
    }

    pub fn push(&mut self, waiting: Waiting<F>) {
        let hash = waiting.frame.flow_hash();
        let slot = match self.flows.slot(hash) {
            Some(slot) => slot,
            None => {
                let begins = State {
                    credits: self.quantum_bytes,
                    ..State::default()
                };
                let slot = self.flows.add(hash, begins);
                self.new.push_back(slot);
                slot
            }
        };
        let longest = &mut self.flows.state(slot).frame_bytes_max;
        *longest = waiting.frame.len_bytes().max(*longest);
        self.flows.push(slot, waiting);
    }

    /// Takes out what may be sent next. It is paid for when CoDel lets it live.
    pub fn choose(&mut self) -> Option<Waiting<F>> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new {
                &mut self.new
            } else {
                &mut self.old
            };
            let slot = *list.front()?;
            let state = self.flows.state(slot);
            if state.credits <= 0 {
                state.credits += self.quantum_bytes;
                list.pop_front();
                self.old.push_back(slot);
                continue;
            }
            if let Some(first) = self.flows.pop_first(slot) {
                self.current = slot;
                return Some(first);
            }
            list.pop_front();
            match from_new {
                // Otherwise who sends a frame as soon as one has left would be new all the time, and the old ones starve.
                true => self.old.push_back(slot),
                false => self.flows.remove(slot),
            }
        }
    }

    /// Whether CoDel drops what was chosen last.
    pub fn drops(&mut self, chosen: &Waiting<F>, now: Instant, params: &CodelParams) -> bool {
        let behind = self.flows.bytes(self.current);
        let State {
            codel,
            frame_bytes_max,
            ..
        } = self.flows.state(self.current);
        let sojourn = now.since(chosen.entered);
        codel.should_drop(sojourn, behind, *frame_bytes_max, now, params)
    }

    /// What was chosen last is sent.
    pub fn pay(&mut self, len: usize) {
        self.flows.state(self.current).credits -= len as i64;
    }

    /// Makes room for a frame (section 4.1): half of the fattest flow's frames go, from the head, whose senders hear of it
    /// soonest. What came is counted there. Whether anything went: of a flow that has nothing else here, nothing does.
    pub fn shed(&mut self, hash: u64, len: usize, mut gone: impl FnMut(Waiting<F>)) -> bool {
        let own = self.flows.slot(hash);
        let own_bytes = own.map_or(0, |slot| self.flows.bytes(slot)) + len;
        let Some(longest) = self.flows.longest() else {
            return false;
        };
        // Of equals it is the one to which something came last.
        let (slot, coming) = match (self.flows.bytes(longest) > own_bytes, own) {
            (true, _) => (longest, 0),
            (false, Some(own)) => (own, 1),
            (false, None) => return false,
        };
        let frames = self.flows.frames(slot) + coming;
        let batch = (frames / 2).clamp(1, BATCH_FRAMES_MAX);
        let mut any = false;
        for _ in 0..batch {
            let Some(frame) = self.flows.pop_first(slot) else {
                break;
            };
            gone(frame);
            any = true;
        }
        any
    }

    pub fn drain(&mut self) -> Vec<Waiting<F>> {
        self.flows.drain()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::queue::testing::{Came, Fed, Model, Unit, agree, any_limit, any_steps, fits};
    use crate::net::queue::{Discipline, QueueLimit};
    use packtrain_proto::time::Duration;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const PARAMS: CodelParams = CodelParams {
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
    };

    fn fq(quantum_bytes: usize) -> Discipline {
        Discipline::FqCodel {
            quantum_bytes,
            params: PARAMS,
            ecn: false,
        }
    }

    #[derive(Default)]
    struct SlowFlow {
        queue: Vec<(Unit, Instant)>,
        credits: i64,
        codel: Codel,
        longest: usize,
    }

    /// RFC 8290, section 4, and a search for everything.
    struct Slow {
        limit: QueueLimit,
        quantum: i64,
        flows: BTreeMap<u8, SlowFlow>,
        new: Vec<u8>,
        old: Vec<u8>,
        sending: Option<Unit>,
    }

    impl Slow {
        fn lens(&self) -> Vec<usize> {
            let waiting = self.flows.values().flat_map(|flow| &flow.queue);
            waiting
                .map(|(unit, _)| unit)
                .chain(&self.sending)
                .map(|unit| unit.len)
                .collect()
        }
    }

    impl Model for Slow {
        fn arrive(&mut self, unit: Unit, now: Instant) -> Vec<u32> {
            let mut dropped = Vec::new();
            while !fits(self.limit, &self.lens(), unit.len) {
                // As if it stood there already.
                let mut queues: BTreeMap<u8, Vec<Unit>> = BTreeMap::new();
                let waiting = self.flows.values().flat_map(|flow| &flow.queue);
                for unit in waiting.map(|(unit, _)| *unit).chain([unit]) {
                    queues.entry(unit.flow).or_default().push(unit);
                }
                let length = |units: &Vec<Unit>| {
                    let bytes: usize = units.iter().map(|unit| unit.len).sum();
                    (bytes, units.last().map(|unit| unit.number))
                };
                let fattest = queues
                    .values()
                    .max_by_key(|units| length(units))
                    .expect("one");
                let batch = (fattest.len() / 2).clamp(1, 64);
                for gone in &fattest[..batch] {
                    dropped.push(gone.number);
                    if gone.number == unit.number {
                        return dropped;
                    }
                    let flow = self.flows.get_mut(&gone.flow).expect("it stands there");
                    flow.queue
                        .retain(|(standing, _)| standing.number != gone.number);
                }
            }
            if !self.flows.contains_key(&unit.flow) {
                self.new.push(unit.flow);
                let begins = SlowFlow {
                    credits: self.quantum,
                    ..SlowFlow::default()
                };
                self.flows.insert(unit.flow, begins);
            }
            let flow = self.flows.get_mut(&unit.flow).expect("it has one now");
            flow.longest = flow.longest.max(unit.len);
            flow.queue.push((unit, now));
            dropped
        }

        fn leave(&mut self, now: Instant) -> Came {
            self.sending = None;
            let mut came = Came::default();
            loop {
                let is_new = !self.new.is_empty();
                let list = if is_new { &mut self.new } else { &mut self.old };
                let Some(&number) = list.first() else {
                    return came;
                };
                let flow = self.flows.get_mut(&number).expect("it is in a list");
                if flow.credits <= 0 {
                    flow.credits += self.quantum;
                    list.remove(0);
                    self.old.push(number);
                } else if flow.queue.is_empty() {
                    list.remove(0);
                    if is_new {
                        self.old.push(number);
                    } else {
                        self.flows.remove(&number);
                    }
                } else {
                    let (unit, entered) = flow.queue.remove(0);
                    let behind = flow.queue.iter().map(|(unit, _)| unit.len).sum();
                    let sojourn = now.since(entered);
                    if flow
                        .codel
                        .should_drop(sojourn, behind, flow.longest, now, &PARAMS)
                    {
                        came.dropped.push(unit.number);
                    } else {
                        flow.credits -= unit.len as i64;
                        self.sending = Some(unit);
                        came.begun = Some(unit);
                        return came;
                    }
                }
            }
        }

        fn bytes(&self) -> usize {
            self.lens().iter().sum()
        }
    }

    fn slow(limit: QueueLimit, quantum: usize) -> Slow {
        Slow {
            limit,
            quantum: quantum as i64,
            flows: BTreeMap::new(),
            new: Vec::new(),
            old: Vec::new(),
            sending: None,
        }
    }

    proptest! {
        #[test]
        fn it_sends_and_drops_what_the_slow_one_does(
            limit in any_limit(),
            quantum in prop_oneof![Just(1514usize), 100usize..20_000],
            steps in any_steps(6),
        ) {
            agree(Fed::new(limit, fq(quantum)), &mut slow(limit, quantum), &steps);
        }

        /// Ten milliseconds for each departure: CoDel has much to do.
        #[test]
        fn what_codel_drops_is_what_the_slow_one_does(
            quantum in 300usize..3000,
            arrivals in prop::collection::vec((0u8..4, 40usize..1500), 200..600),
        ) {
            let limit = QueueLimit::Bytes(usize::MAX);
            let (mut fed, mut slow) = (Fed::new(limit, fq(quantum)), slow(limit, quantum));
            let mut dropped = 0;
            for (i, (flow, len)) in arrivals.into_iter().enumerate() {
                let was_idle = fed.queue.is_empty();
                let (unit, _) = fed.arrive(flow, len);
                slow.arrive(unit, fed.now);
                if was_idle {
                    slow.leave(fed.now);
                }
                if i % 2 == 0 {
                    fed.now += Duration::from_millis(10);
                    let came = fed.leave();
                    prop_assert_eq!(&came, &slow.leave(fed.now));
                    dropped += came.dropped.len();
                }
            }
            prop_assert!(dropped > 0);
        }
    }

    #[test]
    fn a_sparse_flow_waits_for_what_is_being_sent_and_no_longer() {
        let mut fed = Fed::new(QueueLimit::Bytes(usize::MAX), fq(1514));
        (0..4).for_each(|flow| {
            (0..200).for_each(|_| {
                fed.arrive(flow, 1500);
            })
        });
        // Until nobody is new any more.
        (0..20).for_each(|_| {
            fed.leave();
        });
        for sparse in 10..30 {
            let (unit, _) = fed.arrive(sparse, 100);
            assert_eq!(fed.leave().begun, Some(unit));
            (0..7).for_each(|_| {
                fed.leave();
            });
        }
    }

    #[test]
    fn of_new_flows_each_sends_a_quantum_before_the_last_of_them_does() {
        let mut fed = Fed::new(QueueLimit::Bytes(usize::MAX), fq(3000));
        (0..50).for_each(|_| {
            fed.arrive(0, 1500);
        });
        (0..5).for_each(|_| {
            fed.leave();
        });
        for flow in 1..6 {
            (0..10).for_each(|_| {
                fed.arrive(flow, 1000);
            });
        }
        let order: Vec<u8> = (0..15).map(|_| fed.leave().begun.unwrap().flow).collect();
        assert_eq!(order, [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5]);
    }

    #[test]
    fn codel_drops_of_the_flow_that_stands_and_of_no_other() {
        let mut fed = Fed::new(QueueLimit::Bytes(usize::MAX), fq(1514));
        let (mut dropped, mut mice, mut first_drop) = (Vec::new(), Vec::new(), None);
        for ms in 0..1000 {
            // 3 come in the time in which 2 leave, and a mouse comes seldom.
            (0..1 + ms % 2).for_each(|_| {
                fed.arrive(0, 1500);
            });
            if ms % 50 == 0 {
                mice.push(fed.arrive(1, 100).0.number);
            }
            fed.now += Duration::from_millis(1);
            dropped.extend(fed.leave().dropped);
            if !dropped.is_empty() {
                first_drop = first_drop.or(Some(ms));
            }
        }
        assert!(dropped.len() > 10, "{dropped:?}");
        assert!(mice.iter().all(|mouse| !dropped.contains(mouse)));
        // Above the target after some 15 ms, and then for an interval.
        assert!((105..130).contains(&first_drop.unwrap()), "{first_drop:?}");
    }

    #[test]
    fn what_is_capable_of_it_is_marked() {
        let discipline = Discipline::FqCodel {
            quantum_bytes: 1514,
            params: PARAMS,
            ecn: true,
        };
        for ecn in [None, Some(false), Some(true)] {
            let mut fed = Fed::new(QueueLimit::Bytes(usize::MAX), discipline);
            fed.ecn = ecn;
            (0..400).for_each(|_| {
                fed.arrive(0, 1500);
            });
            let (mut dropped, mut marked) = (0, 0);
            for _ in 0..300 {
                fed.now += Duration::from_millis(1);
                let came = fed.leave();
                dropped += came.dropped.len();
                marked += came
                    .begun
                    .map_or(0, |unit| usize::from(unit.ecn == Some(true)));
            }
            match ecn {
                None => assert!((3..=4).contains(&dropped) && marked == 0),
                Some(false) => assert!(dropped == 0 && (3..=4).contains(&marked), "{marked}"),
                Some(true) => assert!(dropped == 0 && marked == 300),
            }
        }
    }
}
