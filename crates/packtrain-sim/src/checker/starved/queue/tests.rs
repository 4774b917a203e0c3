use super::*;
use packtrain_proto::buffer::BufferPool;
use packtrain_proto::class::ClassId;
use packtrain_proto::offload::Offload;
use packtrain_proto::queue::band::BandId;
use packtrain_proto::queue::codel::{Aqm, CodelParams};
use packtrain_proto::queue::drr::FlowQueues;
use packtrain_proto::queue::frame::QueuedFrame;
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::trunk::lane::LaneId;
use packtrain_proto::wire::ethernet::{Header, MacAddr};

use crate::random::Random;

const RULES: Rules = Rules {
    quantum: 1514,
    short_first: false,
};

fn frame(flow: u16, sequence: u32) -> Identity {
    Identity {
        flow,
        sequence,
        segment: 0,
    }
}

fn waiting(what: Identity, urgent: bool) -> Waiting {
    Waiting {
        what,
        band: Band {
            via: Via::default(),
            twice: false,
        },
        urgent,
        to_it_alone: true,
    }
}

fn whole(what: Identity, len: usize) -> Leaving {
    Leaving {
        what,
        len,
        done: true,
        passes: false,
    }
}

/// With frames of some flows, `(flow, frames)`.
fn queue(flows: &[(u16, u32)]) -> Queue {
    let mut queue = Queue::default();
    add(&mut queue, flows);
    queue
}

fn add(queue: &mut Queue, flows: &[(u16, u32)]) {
    for &(flow, frames) in flows {
        let mut frames = (0..frames).map(|n| waiting(frame(flow, n), false));
        frames.by_ref().for_each(|one| queue.push(flow.into(), one));
    }
    let all = queue.flows.iter().map(|flow| flow.waiting.len()).sum();
    queue.look(all);
}

fn take(queue: &mut Queue, what: Identity, len: usize) -> Result<(), String> {
    let flow = queue.find(what).expect("it waits");
    queue.take(flow, whole(what, len), RULES)
}

#[test]
fn nothing_of_a_flow_that_has_had_its_quantum_leaves_before_a_new_flow() {
    let mut queue = queue(&[(1, 5)]);
    assert_eq!(take(&mut queue, frame(1, 0), 1000), Ok(()));
    add(&mut queue, &[(2, 2)]);
    // It may be new itself.
    assert_eq!(take(&mut queue, frame(1, 1), 1000), Ok(()));
    let err = take(&mut queue, frame(1, 2), 1000).expect_err("it has had its turn");
    assert!(err.contains("which is of a new flow"), "{err}");
    assert_eq!(take(&mut queue, frame(2, 0), 1000), Ok(()));
    assert_eq!(
        take(&mut queue, frame(1, 3), 1000),
        Ok(()),
        "no more a new one"
    );
}

#[test]
fn while_a_flow_waits_another_one_has_its_turns_and_no_more() {
    let mut queue = queue(&[(1, 50), (2, 2), (3, 50)]);
    assert_eq!(take(&mut queue, frame(2, 0), 1000), Ok(()));
    // Eight quanta and a frame, of each of them.
    for n in 0..13 {
        assert_eq!(take(&mut queue, frame(1, n), 1000), Ok(()), "{n}");
        assert_eq!(take(&mut queue, frame(3, n), 1000), Ok(()), "{n}");
    }
    assert!(take(&mut queue, frame(1, 13), 1000).is_err());
    assert_eq!(take(&mut queue, frame(2, 1), 1000), Ok(()));
    assert_eq!(take(&mut queue, frame(1, 14), 1000), Ok(()));
}

#[test]
fn who_owes_for_a_large_frame_waits_longer_and_so_does_who_has_urgent_frames_before() {
    let most = |owed: usize, urgent: bool| {
        let mut queue = Queue::default();
        (0..2).for_each(|n| queue.push(2, waiting(frame(2, n), false)));
        (0..500).for_each(|n| queue.push(1, waiting(frame(1, n), urgent)));
        queue.look(502);
        take(&mut queue, frame(2, 0), owed).expect("nobody waited");
        let mut frames = 0..500;
        frames.position(|n| take(&mut queue, frame(1, n), 1000).is_err())
    };
    assert_eq!(most(1000, false), Some(13));
    assert_eq!(most(60_000, false), Some(2 * (39 + 4) * 1514 / 1000 + 1));
    assert_eq!(
        most(1000, true),
        Some((4 * 13_112 + 3 * (16_384 + 1032)) / 1000)
    );
}

#[test]
fn what_may_have_been_dropped_and_what_passes_is_not_waited_for() {
    let mut one = queue(&[(1, 90), (2, 2)]);
    assert_eq!(take(&mut one, frame(2, 0), 1000), Ok(()));
    for n in 0..60 {
        // One of those that are known is gone.
        one.look(91 - n as usize - 1);
        assert_eq!(take(&mut one, frame(1, n), 1000), Ok(()), "{n}");
    }
    let mut one = queue(&[(1, 90), (2, 2)]);
    for n in 0..60 {
        let leaving = Leaving {
            passes: true,
            ..whole(frame(1, n), 1000)
        };
        assert_eq!(one.take(0, leaving, RULES), Ok(()));
    }
    let mut one = queue(&[(1, 90), (2, 2)]);
    one.look(93);
    for n in 0..60 {
        assert_eq!(take(&mut one, frame(1, n), 1000), Ok(()), "{n}");
    }
    one.look(0);
    assert!(one.flows.iter().all(|flow| flow.waiting.is_empty()));
}

fn queued(pool: &mut BufferPool, flow: u16, len: usize, urgent: bool) -> QueuedFrame {
    QueuedFrame {
        buffer: pool.copy_of(&vec![0; len]),
        header: Header {
            destination: MacAddr([2; 6]),
            source: MacAddr([4; 6]),
            ether_type: 0x0800,
        },
        offload: Offload::NONE,
        enqueued: Instant::ZERO,
        sent: 0,
        piece_id: 0,
        copy: None,
        flow_hash: flow.into(),
        share: 0,
        class: ClassId(0),
        lane: LaneId::FIRST,
        band: BandId::FIRST,
        changes_lane: false,
        of_elephant: false,
        short: false,
        marked: false,
        urgent,
        hold_until: None,
        random: Default::default(),
    }
}

#[test]
fn of_a_flow_whose_head_may_be_of_another_band_nothing_is_asked_until_it_may_not() {
    let twice = |n: u32| Waiting {
        band: Band {
            via: Via::default(),
            twice: true,
        },
        ..waiting(frame(2, n), false)
    };
    let served_before = |is_mixed: bool| {
        let mut queue = queue(&[(1, 90), (2, 2)]);
        assert_eq!(take(&mut queue, frame(2, 0), 1000), Ok(()));
        if is_mixed {
            queue.push(2, twice(2));
        }
        queue.look(91 + usize::from(is_mixed));
        (0..90).position(|n| take(&mut queue, frame(1, n), 1000).is_err())
    };
    assert_eq!(served_before(false), Some(13));
    assert_eq!(served_before(true), None, "its first may have been dropped");
}

#[test]
fn a_piece_is_of_the_frame_that_it_began_as_whatever_began_since() {
    let mut queue = queue(&[(1, 3), (2, 1)]);
    let first = |piece| Part {
        place: Place::First {
            start: Vec::new(),
            piece,
            of: 5000,
        },
        len: 1400,
    };
    let next = |piece, at, len| Part {
        place: Place::Next { piece, at },
        len,
    };
    let which = |queue: &mut Queue, part: &Part, what| {
        let found = queue.which(part, Some(&[]), what);
        found.map(|(_, what, done)| (what.flow, what.sequence, done))
    };
    let begun = which(&mut queue, &first(0), Some(frame(1, 0)));
    assert_eq!(begun, Some((1, 0, false)));
    assert_eq!(
        which(&mut queue, &first(0), Some(frame(1, 0))),
        None,
        "under way"
    );
    // Another one of its flow is begun before its own end is seen.
    let begun = which(&mut queue, &first(1), Some(frame(1, 1)));
    assert_eq!(begun, Some((1, 1, false)));
    let rest = which(&mut queue, &next(0, 1400, 3600), None);
    assert_eq!(rest, Some((1, 0, true)));
    let rest = which(&mut queue, &next(0, 1400, 3600), None);
    assert_eq!(rest, None, "it has ended");
    // Had it been another one than was thought, nothing of its flow is taken for it.
    assert_eq!(take(&mut queue, frame(1, 2), 1000), Ok(()));
    assert_eq!(which(&mut queue, &next(1, 1400, 1400), None), None);
    assert!(queue.flows[0].waiting.is_empty());
    assert_eq!(queue.flows[1].waiting.len(), 1);
}

/// The engine's own queues, over any course of what comes and what leaves; with another quantum than is told here they are found out.
fn serve(seed: u64, quantum: usize) -> Result<(), String> {
    let mut random = Random::new(seed);
    let mut pool = BufferPool::default();
    let aqm = Aqm {
        codel: CodelParams {
            target: Duration::from_secs(9),
            interval: Duration::from_secs(9),
        },
        ecn: false,
    };
    let urgent_flow = random.below(12) as u16;
    let largest = [100, 1514, 9000, 60_000][random.below(4) as usize];
    let (mut real, mut model) = (FlowQueues::new(quantum), Queue::default());
    let mut next = [[0u32; 2]; 8];
    let mut waits = [0; 8];
    for _ in 0..600 {
        let flow = random.below(8) as usize;
        for _ in 0..random.below(5) {
            let urgent = flow as u16 == urgent_flow;
            let len = random.between(64, largest) as usize;
            model.push(
                flow as u32,
                waiting(frame(flow as u16, next[flow][0]), urgent),
            );
            real.push(queued(&mut pool, flow as u16, len, urgent));
            next[flow][0] += 1;
            waits[flow] += 1;
        }
        model.look(real.frames());
        for _ in 0..random.below(6) {
            let Some(chosen) = real.select(Instant::ZERO, &aqm, 1514, &mut |_| {}) else {
                break;
            };
            let popped = real.pop(chosen);
            real.charge(chosen, popped.buffer.len());
            let flow = popped.flow_hash as usize;
            let what = frame(flow as u16, next[flow][1]);
            next[flow][1] += 1;
            let at = model.find(what).expect("it waits");
            model.train_was_last = false;
            model.take(at, whole(what, popped.buffer.len()), RULES)?;
        }
        model.look(real.frames());
    }
    Ok(())
}

#[test]
fn what_the_queues_of_the_engine_do_is_well_and_with_another_quantum_it_is_not() {
    for seed in 0..150 {
        assert_eq!(serve(seed, 1514), Ok(()), "seed {seed}");
    }
    let caught = (0..100)
        .filter(|&seed| serve(seed, 1 << 20).is_err())
        .count();
    assert!(caught > 20, "{caught}");
}
