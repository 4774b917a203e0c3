//! The bound of a flow against the obvious: a list of what each has waiting.

use std::collections::HashMap;

use proptest::prelude::*;

use super::FlowQueues;
use super::tests::{PARAMS, frame};
use crate::queue::frame::QueuedFrame;
use crate::time::Instant;

const BYTES_MAX: usize = 5000;

proptest! {
    #[test]
    fn a_flow_beyond_its_bound_loses_its_oldest_frames_but_what_has_begun_and_the_last(
        steps in prop::collection::vec(
            (0u32..3, prop_oneof![3 => 60usize..1500, 1 => 1500usize..9000], 0u8..4),
            1..200,
        ),
    ) {
        let mut queues = FlowQueues::new(1514);
        // By flow: what each frame still has waiting, and whether some of it has left; by number.
        let mut model: HashMap<u32, Vec<(u8, usize, bool)>> = HashMap::new();
        for (number, (hash, len, step)) in (0u8..).zip(steps) {
            let flow = queues.push(QueuedFrame {
                flow_hash: hash,
                ..frame(len, number)
            });
            let known = model.entry(hash).or_default();
            known.push((number, len, false));
            let mut gone = Vec::new();
            queues.bound(flow, BYTES_MAX, |frame| gone.push(*frame.buffer.last().unwrap()));
            let mut expected = Vec::new();
            while known.iter().map(|frame| frame.1).sum::<usize>() > BYTES_MAX {
                let first = known.iter().position(|(_, _, has_begun)| !has_begun);
                match first {
                    Some(at) if at + 1 < known.len() => expected.push(known.remove(at).0),
                    _ => break,
                }
            }
            prop_assert_eq!(gone, expected);
            let next = queues.select(Instant::ZERO, &PARAMS, 1514, &mut |_| panic!("no signal"));
            let next = next.expect("one was pushed");
            let of = queues.head(next).flow_hash;
            let head = &mut model.get_mut(&of).unwrap()[0];
            if step == 0 && head.1 > 200 {
                queues.take_piece(next, 100);
                queues.charge(next, 100);
                head.1 -= 100;
                head.2 = true;
            } else if step == 1 {
                let frame = queues.pop(next);
                queues.charge(next, frame.waiting());
                let expected = model.get_mut(&of).unwrap().remove(0);
                prop_assert_eq!((*frame.buffer.last().unwrap(), frame.waiting()), (expected.0, expected.1));
            }
            let waiting = model.values().flatten();
            prop_assert_eq!(queues.bytes(), waiting.clone().map(|frame| frame.1).sum::<usize>());
            prop_assert_eq!(queues.frames(), waiting.count());
        }
    }
}
