//! Which flows are elephants, and which are mice: by what each has sent.
//!
//! A flow is an elephant once it has sent more than a number of bytes (50 kB, as the XLF paper divides them), counted from
//! its first frame on as the host sends it. A GSO frame of more than half of that is an early sign: Linux puts into one what a
//! socket may send at once, by its window and a millisecond of its rate, and who may send that much has more. An answer of 20 kB
//! in one frame is none. A flow that was idle for [`IDLE_MAX`] is forgotten, and begins anew.
//!
//! What is known is bounded: sets of a few flows each, as in a processor's cache. Where a set is full of flows that
//! are not idle, the mouse goes that was idle for the longest, or, where there is none, such an elephant; that is counted, and it begins
//! anew when it comes again. So an elephant may be taken for a mouse for its next bytes. A mouse is never taken for an elephant, but
//! where two flows have the same number of 32 bits: they are one flow for the engine's queues, too.
//!
//! Only what the engine is given is seen: frames that go past it are not counted.

use crate::stats::{ElephantsSnapshot, Traffic};
use crate::time::{Duration, Instant};

/// By default: bytes that a mouse may send.
pub const ELEPHANT_BYTES: u32 = 50_000;
/// Longer than TCP waits between two trains of what it has to send, shorter than people do between two pages.
pub const IDLE_MAX: Duration = Duration::from_secs(5);

/// 4096 flows, as many as there are buckets of queues towards one destination.
const SETS: usize = 1024;
const WAYS: usize = 4;
/// Bytes of an elephant: how many, nobody asks.
const ELEPHANT: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Flow {
    number: u32,
    /// 0: nobody is here.
    bytes: u32,
    last: Instant,
}

const NOBODY: Flow = Flow {
    number: 0,
    bytes: 0,
    last: Instant::ZERO,
};

impl Flow {
    fn is_active(&self, now: Instant) -> bool {
        self.bytes > 0 && now.since(self.last) < IDLE_MAX
    }

    fn is_elephant(&self) -> bool {
        self.bytes == ELEPHANT
    }
}

#[derive(Debug)]
pub struct Elephants {
    bytes_max: u32,
    sets: Box<[[Flow; WAYS]]>,
    /// Sets in which somebody has ever been: mostly few.
    used: Vec<u16>,
    of_elephants: Traffic,
    of_mice: Traffic,
    evicted: u64,
}

impl Elephants {
    /// `bytes_max`: that a mouse may send.
    pub fn new(bytes_max: u32) -> Elephants {
        Elephants {
            // As many as are counted.
            bytes_max: bytes_max.min(ELEPHANT - 1),
            sets: vec![[NOBODY; WAYS]; SETS].into_boxed_slice(),
            used: Vec::new(),
            of_elephants: Traffic::default(),
            of_mice: Traffic::default(),
            evicted: 0,
        }
    }

    /// A frame of this flow comes, by [`Classifier::flow_hash`](crate::classifier::Classifier::flow_hash); says whether it is an
    /// elephant's.
    pub fn on_frame(&mut self, flow: u32, len: usize, is_gso: bool, now: Instant) -> bool {
        let is_sign = is_gso && len > self.bytes_max as usize / 2;
        let bytes_max = self.bytes_max;
        let known = self.flow(flow, now);
        let bytes = (u64::from(known.bytes)).saturating_add(len.max(1) as u64);
        known.bytes = match is_sign || bytes > bytes_max.into() {
            true => ELEPHANT,
            false => bytes as u32,
        };
        known.last = now;
        let is_elephant = known.is_elephant();
        match is_elephant {
            true => self.of_elephants.count(len),
            false => self.of_mice.count(len),
        }
        is_elephant
    }

    /// Where it is, or begins.
    fn flow(&mut self, number: u32, now: Instant) -> &mut Flow {
        let at = number as usize % SETS;
        let set = &mut self.sets[at];
        let known = set.iter().position(|f| f.bytes > 0 && f.number == number);
        let way = known.unwrap_or_else(|| {
            let least = |way: &usize| {
                let flow = &set[*way];
                (flow.is_active(now), flow.is_elephant(), flow.last)
            };
            (0..WAYS).min_by_key(least).expect("there are some")
        });
        let is_active = set[way].is_active(now);
        if known.is_none() || !is_active {
            self.evicted += u64::from(is_active);
            if set.iter().all(|flow| flow.bytes == 0) {
                self.used.push(at as u16);
            }
            set[way] = Flow { number, ..NOBODY };
        }
        &mut set[way]
    }

    pub fn snapshot(&self, now: Instant) -> ElephantsSnapshot {
        let used = self.used.iter().flat_map(|&at| &self.sets[usize::from(at)]);
        let active = used.filter(|flow| flow.is_active(now));
        let (mut elephants, mut mice) = (0, 0);
        for flow in active {
            match flow.is_elephant() {
                true => elephants += 1,
                false => mice += 1,
            }
        }
        ElephantsSnapshot {
            bytes_max: self.bytes_max,
            elephants,
            mice,
            of_elephants: self.of_elephants,
            of_mice: self.of_mice,
            evicted: self.evicted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn a_flow_is_an_elephant_from_the_frame_on_with_which_it_has_sent_too_much() {
        let mut elephants = Elephants::new(50_000);
        for n in 1..=33 {
            assert!(!elephants.on_frame(7, 1514, false, at(n)), "frame {n}");
        }
        assert!(!elephants.on_frame(7, 50_000 - 33 * 1514, false, at(40)));
        assert!(elephants.on_frame(7, 60, false, at(41)));
        assert!(elephants.on_frame(7, 60, false, at(42)));
        assert!(!elephants.on_frame(8, 60, false, at(42)), "another one");
        let seen = elephants.snapshot(at(42));
        assert_eq!((seen.elephants, seen.mice, seen.evicted), (1, 1, 0));
        assert_eq!(seen.of_elephants.frames, 2);
        assert_eq!((seen.of_mice.frames, seen.of_mice.bytes), (35, 50_060));
    }

    #[test]
    fn who_sends_half_of_it_in_one_frame_is_one_and_an_answer_in_one_frame_is_none() {
        let mut elephants = Elephants::new(50_000);
        assert!(!elephants.on_frame(1, 20_066, true, at(0)));
        assert!(!elephants.on_frame(2, 25_000, true, at(0)));
        assert!(elephants.on_frame(3, 25_001, true, at(0)));
        assert!(elephants.on_frame(3, 60, false, at(1)), "it stays one");
        assert!(!elephants.on_frame(4, 25_001, false, at(1)), "no GSO frame");
    }

    #[test]
    fn who_was_idle_begins_anew() {
        let mut elephants = Elephants::new(50_000);
        assert!(elephants.on_frame(1, 65_000, true, at(0)));
        assert!(elephants.on_frame(1, 60, false, at(4999)));
        assert_eq!(elephants.snapshot(at(9998)).elephants, 1);
        assert_eq!(elephants.snapshot(at(9999)).elephants, 0);
        assert!(!elephants.on_frame(1, 60, false, at(9999)));
        assert_eq!(elephants.snapshot(at(9999)).evicted, 0);
    }

    #[test]
    fn where_there_is_no_room_the_mouse_goes_that_was_idle_longest() {
        let mut elephants = Elephants::new(50_000);
        let of_set = |n: u32| n * SETS as u32 + 5;
        elephants.on_frame(of_set(0), 60_000, false, at(0));
        for n in 1..4 {
            elephants.on_frame(of_set(n), 40_000, false, at(n.into()));
        }
        elephants.on_frame(of_set(4), 60, false, at(10));
        assert_eq!(elephants.snapshot(at(10)).evicted, 1);
        assert!(elephants.on_frame(of_set(0), 60, false, at(11)));
        assert!(elephants.on_frame(of_set(2), 10_001, false, at(11)));
        assert!(
            !elephants.on_frame(of_set(1), 10_001, false, at(11)),
            "it was forgotten"
        );
    }

    #[derive(Debug, Default)]
    struct Slow {
        flows: HashMap<u32, (usize, bool, Instant)>,
    }

    impl Slow {
        fn on_frame(&mut self, flow: u32, len: usize, is_gso: bool, now: Instant) -> bool {
            let known = self.flows.entry(flow).or_insert((0, false, now));
            if now.since(known.2) >= IDLE_MAX {
                *known = (0, false, now);
            }
            let (bytes, is_elephant, last) = known;
            *bytes += len;
            *last = now;
            *is_elephant |= *bytes > 50_000 || is_gso && len > 25_000;
            *is_elephant
        }

        fn active(&self, now: Instant) -> (u64, u64) {
            let active = self
                .flows
                .values()
                .filter(|flow| now.since(flow.2) < IDLE_MAX);
            let active: Vec<bool> = active.map(|flow| flow.1).collect();
            let elephants = active.iter().filter(|is| **is).count();
            (elephants as u64, (active.len() - elephants) as u64)
        }
    }

    fn frames(flows: u32) -> impl Strategy<Value = Vec<(u32, usize, bool, u64)>> {
        let pause = prop_oneof![20 => 0u64..200, 1 => 3000u64..6000];
        let len = prop_oneof![4 => 60usize..1600, 1 => 1600usize..65_000];
        prop::collection::vec((0..flows, len, any::<bool>(), pause), 1..300)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn with_room_for_all_it_is_what_a_map_of_all_flows_says(steps in frames(12)) {
            let (mut elephants, mut slow) = (Elephants::new(50_000), Slow::default());
            let mut now = at(0);
            for (flow, len, is_gso, pause) in steps {
                now += Duration::from_millis(pause);
                // Three sets, four flows in each.
                let number = (flow / 3) * SETS as u32 + flow % 3;
                let is = elephants.on_frame(number, len, is_gso, now);
                prop_assert_eq!(is, slow.on_frame(number, len, is_gso, now));
                let seen = elephants.snapshot(now);
                prop_assert_eq!((seen.elephants, seen.mice), slow.active(now));
                prop_assert_eq!(seen.evicted, 0);
            }
        }

        #[test]
        fn without_room_no_mouse_is_taken_for_an_elephant_and_who_is_forgotten_is_counted(
            steps in frames(9),
        ) {
            let (mut elephants, mut slow) = (Elephants::new(50_000), Slow::default());
            let mut now = at(0);
            for (flow, len, is_gso, pause) in steps {
                now += Duration::from_millis(pause);
                let number = flow * SETS as u32 + 9;
                let is = elephants.on_frame(number, len, is_gso, now);
                let was = slow.on_frame(number, len, is_gso, now);
                prop_assert!(was || !is);
                prop_assert!(is == was || elephants.snapshot(now).evicted > 0);
            }
        }
    }
}
