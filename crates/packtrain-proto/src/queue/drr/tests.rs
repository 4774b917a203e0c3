use super::*;
use crate::buffer::Buffer;
use crate::class::ClassId;
use crate::config::LinkId;
use crate::offload::Offload;
use crate::queue::codel::CodelParams;
use crate::queue::shares::{Shares, Weight};
use crate::time::Duration;
use crate::trunk::lane::LaneId;
use crate::wire::ethernet::Header;
use crate::wire::ethernet::MacAddr;
use proptest::prelude::*;
use std::collections::HashMap;

pub(super) const PARAMS: Aqm = Aqm {
    codel: CodelParams {
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
    },
    ecn: true,
};

/// Of a flow, which its last byte tells too.
fn of(flow: u32, len: usize) -> QueuedFrame {
    QueuedFrame {
        flow_hash: flow,
        ..frame(len, flow as u8)
    }
}

pub(super) fn frame(len: usize, mark: u8) -> QueuedFrame {
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
        share: 0,
        class: ClassId(0),
        lane: crate::trunk::lane::LaneId::FIRST,
        band: BandId::FIRST,
        changes_lane: false,
        of_elephant: false,
        short: false,
        marked: false,
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
    queues.shed(
        |_| true,
        64,
        |frame| shed.push(*frame.buffer.last().unwrap()),
    );
    assert_eq!(shed, [2]);
    queues.shed(
        |_| true,
        64,
        |_| panic!("a piece has left of all that is there"),
    );
    assert_eq!((queues.frames(), queues.bytes()), (1, 59_900));
    for number in 0..100u8 {
        queues.push(QueuedFrame {
            flow_hash: 3,
            ..frame(1000, number)
        });
    }
    shed.clear();
    queues.shed(
        |_| true,
        64,
        |frame| shed.push(*frame.buffer.last().unwrap()),
    );
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
        (0..5).for_each(|_| _ = queues.push(of(flow, 1514)));
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
    (0..100).for_each(|_| _ = queues.push(urgent(9, 1000)));
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
    queues.shed(|_| true, 1, |_| {});
    assert!(queues.is_ripe(300, at(3)));
    queues.drain().for_each(drop);
    assert_eq!(queues.ripe_at(), None);
}

/// Of a flow in a share.
fn in_share(flow: u32, share: u8, len: usize) -> QueuedFrame {
    QueuedFrame {
        share,
        ..of(flow, len)
    }
}

/// The link of a share among these, as [`Shares`] has it.
fn link_of(share: u8, links: &[(LinkId, Weight)]) -> LinkId {
    let mut shares = Shares::default();
    shares.divide(links);
    links[shares.place_of_share(share)].0
}

/// Shares that two links have.
fn shares_of_two() -> ([(LinkId, Weight); 2], [u8; 2]) {
    let links = [(LinkId(4), 1), (LinkId(6), 1)];
    let of = |link| (0..=u8::MAX).find(|&share| link_of(share, &links) == link);
    (links, [of(LinkId(4)).unwrap(), of(LinkId(6)).unwrap()])
}

#[test]
fn a_link_is_given_frames_of_its_own_flows_alone_though_all_are_in_one_bucket() {
    let (links, [one, two]) = shares_of_two();
    let mut queues = FlowQueues::new(1514);
    queues.push(in_share(1, one, 1000));
    queues.divide(BandId::FIRST, &links);
    (0..3).for_each(|_| _ = queues.push(in_share(1, two, 100)));
    assert_eq!(
        (
            queues.frames_in(BandId::FIRST, LinkId(4)),
            queues.frames_in(BandId::FIRST, LinkId(6))
        ),
        (1, 3)
    );
    assert_eq!(queues.frames_in(BandId::FIRST, LinkId(5)), 0);
    queues.serve(LinkId(6));
    assert_eq!(next(&mut queues).unwrap().buffer.len(), 100);
    queues.serve(LinkId(4));
    assert_eq!(next(&mut queues).unwrap().buffer.len(), 1000);
    assert!(next(&mut queues).is_none());
    queues.divide(BandId::FIRST, &[]);
    assert_eq!(
        queues.frames_in(BandId::FIRST, LinkId(5)),
        2,
        "any link has all of them"
    );
    assert_eq!(next_flows(&mut queues, 2), [1, 1]);
    assert!(next(&mut queues).is_none() && queues.flows() == 0);
}

#[test]
fn who_is_urgent_and_what_has_begun_are_so_for_the_link_of_their_flow() {
    let (links, [one, two]) = shares_of_two();
    let mut queues = FlowQueues::new(1514);
    queues.divide(BandId::FIRST, &links);
    queues.push(QueuedFrame {
        urgent: true,
        ..in_share(1, one, 1000)
    });
    queues.push(in_share(2, two, 3000));
    assert!(queues.has_urgent() && queues.has_urgent_for(BandId::FIRST, LinkId(4)));
    assert!(
        !queues.has_urgent_for(BandId::FIRST, LinkId(6))
            && !queues.has_urgent_for(BandId::FIRST, LinkId(5))
    );
    queues.serve(LinkId(6));
    let flow = queues
        .select(Instant::ZERO, &PARAMS, 1514, &mut |_| {})
        .unwrap();
    queues.take_piece(flow, 500);
    queues.take_piece(flow, 500);
    assert_eq!(queues.begun(), 1);
    queues.serve(LinkId(4));
    assert_eq!(queues.begun(), 0);
    // That link is gone: the rest of the piece and the urgent one go by the other.
    queues.divide(BandId::FIRST, &links[..1]);
    queues.serve(LinkId(4));
    assert_eq!(
        (
            queues.begun(),
            queues.has_urgent_for(BandId::FIRST, LinkId(4))
        ),
        (1, true)
    );
    assert_eq!(next_flows(&mut queues, 2), [1, 2]);
    assert_eq!((queues.begun(), queues.frames()), (0, 0));
}

/// All that have frames, in their turn.
const fn band(lane: u8, twice: bool) -> BandId {
    BandId {
        lane: LaneId(lane),
        twice,
    }
}

const BANDS: [BandId; 4] = [BandId::FIRST, band(0, true), band(2, false), band(2, true)];

fn bands(queues: &FlowQueues) -> Vec<BandId> {
    let mut turn = queues.next_band(None);
    let mut all = Vec::new();
    while let Some(of) = turn {
        all.push(of.band);
        turn = queues.next_band(turn);
    }
    all
}

#[test]
fn a_flow_gets_as_much_in_one_band_as_in_another() {
    let mut queues = FlowQueues::new(1514);
    for n in 0..800 {
        let flow = n % 4;
        queues.push(QueuedFrame {
            band: BANDS[usize::from(flow > 0)],
            ..of(flow, 1000)
        });
    }
    assert_eq!(bands(&queues).len(), 2);
    let mut left = [0; 4];
    for _ in 0..400 {
        queues.serve_band(bands(&queues)[0]);
        left[usize::from(*next(&mut queues).unwrap().buffer.last().unwrap())] += 1;
    }
    assert!(left.iter().all(|n| (98..=102).contains(n)), "{left:?}");
    // One that was empty has no more than its turn first.
    while queues
        .next_band(None)
        .is_some_and(|turn| turn.band == BandId::FIRST)
        || left[0] < 200
    {
        queues.serve_band(BandId::FIRST);
        left[0] += u32::from(next(&mut queues).is_some());
    }
    (0..100).for_each(|_| _ = queues.push(of(0, 1000)));
    let mut first = 0;
    for _ in 0..40 {
        queues.serve_band(bands(&queues)[0]);
        first += u32::from(*next(&mut queues).unwrap().buffer.last().unwrap() == 0);
    }
    assert!((8..=13).contains(&first), "{first} of 40");
}

proptest! {
    /// Against the obvious: a queue a flow, whatever bands its frames are of. What leaves is of the band that is served, and in
    /// its flow's order; bands have frames exactly while they have flows whose head is theirs.
    #[test]
    fn flows_keep_their_order_whatever_bands_their_frames_are_of(
        steps in proptest::collection::vec(
            (0u32..4, 0usize..BANDS.len(), 60usize..3000, any::<bool>(), any::<u8>()),
            1..300,
        )
    ) {
        let mut queues = FlowQueues::new(300);
        let mut model: HashMap<u32, VecDeque<(usize, BandId)>> = HashMap::new();
        let links = [(LinkId(0), 1), (LinkId(1), 1)];
        for (flow, band, len, urgent, step) in steps {
            let band = BANDS[band];
            queues.push(QueuedFrame { urgent, band, ..in_share(flow, flow as u8 * 50, len) });
            model.entry(flow).or_default().push_back((len, band));
            if step % 16 == 0 {
                let among = &links[..usize::from(step / 16 % 3)];
                bands(&queues).into_iter().for_each(|band| queues.divide(band, among));
            }
            let have = bands(&queues);
            for band in BANDS {
                let mut heads = model.values().filter_map(VecDeque::front);
                prop_assert_eq!(have.contains(&band), heads.any(|(_, of)| *of == band));
            }
            for _ in 0..step % 3 {
                let have = bands(&queues);
                let Some(&band) = have.get(usize::from(step) % have.len().max(1)) else {
                    break;
                };
                queues.serve_band(band);
                let by = queues.divided_among(band).iter().map(|(link, _)| *link);
                let mut with_frames = by.filter(|link| queues.frames_in(band, *link) > 0);
                if let Some(link) = with_frames.next_back() {
                    queues.serve(link);
                }
                let left = next(&mut queues).expect("it has frames");
                prop_assert_eq!(left.band, band);
                let flow = u32::from(*left.buffer.last().unwrap());
                let first = model.get_mut(&flow).unwrap().pop_front();
                prop_assert_eq!(first, Some((left.buffer.len(), left.band)));
            }
            prop_assert_eq!(queues.frames(), model.values().map(VecDeque::len).sum::<usize>());
        }
        let waiting = queues.frames();
        prop_assert_eq!(queues.drain().count(), waiting);
        prop_assert!(bands(&queues).is_empty());
    }

    /// Against the obvious: a queue a flow and share, of which a link may have those that are its own. What leaves by a
    /// link is in order and its own, and there is always something as long as one has.
    #[test]
    fn flows_keep_to_their_links_in_order_as_links_come_and_go(
        steps in proptest::collection::vec(
            (0u32..4, 0u8..6, 60usize..3000, any::<bool>(), 0u8..12, any::<bool>()),
            1..300,
        )
    ) {
        let mut queues = FlowQueues::new(300);
        let mut links: Vec<(LinkId, Weight)> = Vec::new();
        let mut shares = Shares::default();
        let mut model: HashMap<(u32, u8), VecDeque<usize>> = HashMap::new();
        for (flow, share, len, urgent, step, take) in steps {
            let share = share * 40;
            match step {
                // One comes, or goes.
                0..4 => {
                    match links.iter().position(|(link, _)| link.0 == step) {
                        Some(at) => drop(links.remove(at)),
                        None => links.push((LinkId(step), step % 3 + 1)),
                    }
                    queues.divide(BandId::FIRST, &links);
                    shares.divide(&links);
                }
                _ => {
                    queues.push(QueuedFrame { urgent, ..in_share(flow, share, len) });
                    model.entry((flow, share)).or_default().push_back(len);
                }
            }
            let by = links.iter().map(|(link, _)| *link).chain([LinkId(9)]);
            for link in by.collect::<Vec<_>>() {
                let owner = |share| links.get(shares.place_of_share(share));
                let is_own = |share: u8| owner(share).is_none_or(|owner| owner.0 == link);
                let own = model.iter().filter(|((_, share), _)| is_own(*share));
                let frames: usize = own.map(|(_, frames)| frames.len()).sum();
                prop_assert_eq!(queues.frames_in(BandId::FIRST, link), frames);
                if take && queues.frames_in(BandId::FIRST, link) > 0 {
                    queues.serve(link);
                    let left = next(&mut queues).unwrap();
                    prop_assert!(is_own(left.share));
                    let flow = u32::from(*left.buffer.last().unwrap());
                    let first = model.get_mut(&(flow, left.share)).unwrap().pop_front();
                    prop_assert_eq!(first, Some(left.buffer.len()));
                }
            }
            prop_assert_eq!(queues.frames(), model.values().map(VecDeque::len).sum::<usize>());
        }
        queues.divide(BandId::FIRST, &[]);
        while let Some(left) = next(&mut queues) {
            let flow = u32::from(*left.buffer.last().unwrap());
            let first = model.get_mut(&(flow, left.share)).unwrap().pop_front();
            prop_assert_eq!(first, Some(left.buffer.len()));
        }
        prop_assert!(model.values().all(VecDeque::is_empty));
        prop_assert_eq!(queues.flows(), 0);
    }

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
