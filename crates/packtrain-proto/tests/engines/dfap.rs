//! Aggregates of the DFAP paper between two engines, one of which may speak trains; and who never gets one.

use crate::support::{LINK, MTU, Pair, link_address, link_state, pt0};
use packtrain_proto::class::{Action, Pack};
use packtrain_proto::config::{Config, Mode};
use packtrain_proto::dfap::best_fit::Order;
use packtrain_proto::engine::Event;
use packtrain_proto::offload::Offload;
use packtrain_proto::stats::{DropReason, FlushReason};
use packtrain_proto::time::Duration;
use packtrain_proto::wire::dfap::{self, Aggregate, ETHER_TYPE, ETHER_TYPE_OF_FOOTNOTE};
use packtrain_proto::wire::ethernet::{HEADER_LEN, MacAddr, ether_type};
use proptest::prelude::*;

/// More than any link may hold.
const FULL: usize = 16 << 20;
const PLAIN_HOST: MacAddr = MacAddr([2, 0, 0, 0, 9, 9]);
const TICK: Duration = Duration::from_millis(10);

fn aggregating(config: &mut Config) {
    config.mode = Mode::Dfap;
}

/// Two that have heard each other.
fn pair(set: impl Fn(usize, &mut Config)) -> Pair {
    let mut pair = Pair::strangers(set);
    pair.run(Duration::from_millis(400));
    pair.record = true;
    pair
}

/// A frame of this type, whose payload begins with its number.
fn frame(from: usize, to: MacAddr, kind: u16, payload_len: usize, number: u16) -> Vec<u8> {
    let mut frame = [&to.0[..], &pt0(from).0, &kind.to_be_bytes()].concat();
    frame.extend(number.to_be_bytes());
    frame.resize(HEADER_LEN + payload_len, number as u8);
    frame
}

/// They wait while the link is full, and then leave.
fn send_together(pair: &mut Pair, side: usize, frames: &[Vec<u8>]) {
    pair.engines[side].handle_link_queue(LINK, FULL, pair.now);
    for frame in frames {
        pair.send(side, frame, Offload::NONE);
    }
    pair.engines[side].handle_link_queue(LINK, 0, pair.now);
    pair.settle();
}

/// Of each aggregate on the wire, how many packets it has, and 1 for each plain frame between the two.
fn on_the_wire(pair: &Pair, from: usize) -> Vec<usize> {
    let of_hosts = |frame: &[u8]| frame[6..12] == pt0(from).0;
    let frames = pair
        .recorded
        .iter()
        .filter(|(of, frame, _)| *of == from && of_hosts(frame));
    let count = |frame: &[u8]| match u16::from_be_bytes([frame[12], frame[13]]) {
        ETHER_TYPE | ETHER_TYPE_OF_FOOTNOTE => {
            Aggregate::parse(&frame[HEADER_LEN..]).unwrap().len()
        }
        _ => 1,
    };
    frames.map(|(_, frame, _)| count(frame)).collect()
}

fn trains_on_the_wire(pair: &Pair) -> usize {
    let is_train = |frame: &[u8]| frame[12..15] == [0x88, 0xb5, 0x11];
    pair.recorded
        .iter()
        .filter(|(_, frame, _)| is_train(frame))
        .count()
}

fn came(pair: &Pair, side: usize) -> Vec<Vec<u8>> {
    pair.out[side]
        .iter()
        .map(|(frame, _)| frame.clone())
        .collect()
}

#[test]
fn what_waits_shares_aggregates_and_comes_out_as_the_very_frames() {
    for kind in [ETHER_TYPE, ETHER_TYPE_OF_FOOTNOTE] {
        let mut pair = pair(|_, config| {
            aggregating(config);
            config.dfap.ether_type = kind;
        });
        for side in 0..2 {
            let up = Event::StationUp {
                address: pt0(1 - side),
            };
            assert!(pair.events[side].contains(&up));
            let frames: Vec<_> = (0..40)
                .map(|n| frame(side, pt0(1 - side), 0x9000, 60, n))
                .collect();
            send_together(&mut pair, side, &frames);
            assert_eq!(came(&pair, 1 - side), frames);
            // 1500 bytes: n, n − 1 offsets, and n times a type and 60 bytes: 23 of 65 and 1 less.
            assert_eq!(on_the_wire(&pair, side), [23, 17]);
            let seen = pair.snapshot(side);
            assert_eq!(
                (seen.trains_tx.aggregates, seen.trains_tx.aggregated),
                (2, 40)
            );
            assert_eq!(seen.flushes.get(FlushReason::Full), 1);
            assert_eq!(seen.flushes.get(FlushReason::IdleLink), 1);
            let seen = pair.snapshot(1 - side).trains_rx;
            assert_eq!((seen.aggregates, seen.aggregated), (2, 40));
            let types =
                |(_, frame, _): &(usize, Vec<u8>, Offload)| frame[12..14] == kind.to_be_bytes();
            assert_eq!(
                pair.recorded.iter().filter(|r| types(r)).count(),
                2 * (side + 1)
            );
        }
        assert_eq!(trains_on_the_wire(&pair), 0);
    }
}

#[test]
fn one_that_speaks_trains_sends_aggregates_to_one_that_does_not_and_takes_them() {
    let mut pair = pair(|side, config| {
        if side == 1 {
            aggregating(config);
        }
    });
    for side in 0..2 {
        let frames: Vec<_> = (0..20)
            .map(|n| frame(side, pt0(1 - side), 0x9000, 60, n))
            .collect();
        send_together(&mut pair, side, &frames);
        assert_eq!(came(&pair, 1 - side), frames);
        assert_eq!(on_the_wire(&pair, side), [20]);
    }
    assert_eq!(trains_on_the_wire(&pair), 0);
    assert!(pair.snapshot(0).peers.is_empty() && pair.snapshot(1).peers.is_empty());
    // Hellos are for others: they are counted, not feared.
    pair.run(Duration::from_secs(2));
    assert!(pair.drops(1).get(DropReason::OtherMode) > 0);
}

#[test]
fn a_host_that_is_on_no_list_never_gets_an_aggregate() {
    let mut pair = pair(|_, config| aggregating(config));
    let to_it = |n| frame(0, PLAIN_HOST, 0x9000, 60, n);
    let mut back = frame(0, pt0(0), 0x9000, 60, 0);
    back[6..12].copy_from_slice(&PLAIN_HOST.0);
    pair.inject(0, &back, Offload::NONE);
    send_together(&mut pair, 0, &(0..30).map(to_it).collect::<Vec<_>>());
    assert_eq!(on_the_wire(&pair, 0), [1; 30]);
    // Nor does who has taken them and says goodbye, or is not heard any more.
    let frames: Vec<_> = (0..10).map(|n| frame(0, pt0(1), 0x9000, 60, n)).collect();
    for silent in [false, true] {
        pair.run(Duration::from_secs(1));
        if silent {
            pair.ticking[1] = false;
            let before = pair.now;
            pair.run(Duration::from_secs(4));
            assert!(pair.now.since(before) >= Duration::from_secs(4));
        } else {
            pair.engines[1].say_goodbye(pair.now);
            pair.settle();
        }
        assert!(pair.snapshot(0).dfap.stations.is_empty(), "{silent}");
        pair.recorded.clear();
        send_together(&mut pair, 0, &frames);
        assert_eq!(on_the_wire(&pair, 0), [1; 10]);
        let down = Event::StationDown { address: pt0(1) };
        assert_eq!(
            pair.events[0]
                .iter()
                .filter(|event| **event == down)
                .count(),
            1 + usize::from(silent)
        );
    }
}

#[test]
fn one_that_the_settings_name_gets_them_unasked_and_stays_on_the_list() {
    let mut pair = pair(|side, config| {
        if side == 0 {
            aggregating(config);
            config.dfap.stations = vec![PLAIN_HOST];
        }
    });
    pair.run(Duration::from_secs(600));
    // Nobody knows where it is: then nobody looks for it with a frame that it may not know.
    pair.recorded.clear();
    let frames: Vec<_> = (0..10)
        .map(|n| frame(0, PLAIN_HOST, 0x9000, 60, n))
        .collect();
    send_together(&mut pair, 0, &frames);
    assert_eq!(on_the_wire(&pair, 0), [10]);
    assert!(pair.snapshot(0).dfap.stations[0].listed);
}

#[test]
fn who_sends_an_aggregate_takes_one() {
    let mut pair = pair(|side, config| {
        if side == 0 {
            aggregating(config);
        }
    });
    let mut packets = packtrain_proto::buffer::Buffer::with_capacity(2000);
    let outer = packtrain_proto::wire::ethernet::Header {
        destination: pt0(0),
        source: PLAIN_HOST,
        ether_type: ETHER_TYPE,
    };
    let two = [(0x9000, &[1u8; 50][..]), (0x9001, &[2; 7])];
    dfap::emit(&mut packets, &outer, two.into_iter());
    pair.inject(0, &packets, Offload::NONE);
    let alone = |kind: u16, payload: &[u8]| {
        [&pt0(0).0[..], &PLAIN_HOST.0, &kind.to_be_bytes(), payload].concat()
    };
    assert_eq!(
        came(&pair, 0),
        [alone(0x9000, &[1; 50]), alone(0x9001, &[2; 7])]
    );
    let frames: Vec<_> = (0..10)
        .map(|n| frame(0, PLAIN_HOST, 0x9000, 60, n))
        .collect();
    send_together(&mut pair, 0, &frames);
    assert_eq!(on_the_wire(&pair, 0), [10]);
    // One that speaks trains may know the type as something else's.
    let to_other = |data: &[u8]| [&pt0(1).0[..], &PLAIN_HOST.0, &[0xbb, 0xbb], data].concat();
    for other in [&[1, 0x08, 0x00, 0x45][..], &[2, 0, 99, 8, 0, 1], &[0; 46]] {
        pair.inject(1, &to_other(other), Offload::NONE);
        assert_eq!(pair.out[1].pop().unwrap().0, to_other(other));
    }
    let known = |pair: &Pair| {
        pair.snapshot(1)
            .dfap
            .stations
            .iter()
            .any(|s| s.address == PLAIN_HOST)
    };
    assert!(!known(&pair));
    pair.inject(1, &to_other(&packets[HEADER_LEN..]), Offload::NONE);
    assert_eq!(came(&pair, 1).len(), 2);
    assert!(known(&pair));
    let before = pair.drops(1);
    pair.inject(1, &to_other(&[0; 46]), Offload::NONE);
    assert_eq!(
        pair.dropped_since(1, &before),
        [(DropReason::BadAggregate, 1)]
    );
}

#[test]
fn frames_with_a_length_go_plainly_between_the_others() {
    let mut pair = pair(|_, config| aggregating(config));
    // Spanning tree's, IPX as Novell had it (raw 802.3), NetBEUI: LLC behind a length.
    let lengths = [
        (38, [0x42, 0x42, 0x03]),
        (96, [0xff, 0xff, 0x00]),
        (60, [0xf0, 0xf0, 0x7f]),
    ];
    let mut frames = Vec::new();
    for (n, (length, llc)) in (0u16..).zip(lengths) {
        frames.push(frame(0, pt0(1), 0x9000, 60, 3 * n));
        frames.push(frame(0, pt0(1), 0x9000, 60, 3 * n + 1));
        let mut with_length = frame(0, pt0(1), length, usize::from(length), 3 * n + 2);
        with_length[HEADER_LEN..HEADER_LEN + 3].copy_from_slice(&llc);
        frames.push(with_length);
    }
    send_together(&mut pair, 0, &frames);
    let plain = on_the_wire(&pair, 0).iter().filter(|&&n| n == 1).count();
    assert!(plain >= 3, "{:?}", on_the_wire(&pair, 0));
    let mut seen = came(&pair, 1);
    seen.sort();
    frames.sort();
    assert_eq!(seen, frames);
    let rides = |frame: &&Vec<u8>| frame[12] >= 6;
    let of_type: Vec<_> = pair.out[1].iter().map(|(f, _)| f).filter(rides).collect();
    assert!(of_type.is_sorted_by_key(|frame| u16::from_be_bytes([frame[14], frame[15]])));
}

#[test]
fn what_is_no_aggregate_is_dropped_and_counted() {
    let mut pair = pair(|_, config| aggregating(config));
    let before = pair.drops(1);
    let from_other = |data: &[u8]| [&pt0(1).0[..], &pt0(0).0, &[0xbb, 0xbb], data].concat();
    pair.inject(1, &from_other(&[0; 46]), Offload::NONE);
    pair.inject(1, &from_other(&[2, 0, 99, 8, 0, 1, 8, 0, 1]), Offload::NONE);
    pair.inject(1, &from_other(&[9, 0]), Offload::NONE);
    let nested = from_other(&[1, 0x88, 0xb5, 0x11, 0]);
    pair.inject(1, &nested, Offload::NONE);
    let dropped = pair.dropped_since(1, &before);
    assert_eq!(
        dropped,
        [(DropReason::Truncated, 1), (DropReason::BadAggregate, 3)]
    );
    assert!(came(&pair, 1).is_empty());
    // A host's own frame that would be taken for one.
    let before = pair.drops(0);
    pair.send(0, &frame(0, pt0(1), ETHER_TYPE, 60, 1), Offload::NONE);
    assert_eq!(pair.dropped_since(0, &before), [(DropReason::Nested, 1)]);
    pair.send(0, &frame(0, PLAIN_HOST, ETHER_TYPE, 60, 1), Offload::NONE);
    assert_eq!(
        pair.drops(0).get(DropReason::Nested),
        1,
        "others may use it"
    );
}

/// The side that sends waits as the paper has it, and there is traffic enough: 400 packets an interval to
/// somebody else, and a thousand from now on.
fn busy(pack: Pack) -> Pair {
    let mut pair = pair(|_, config| {
        aggregating(config);
        config.dfap.tick = TICK;
        config.rest = Action {
            pack,
            ..Action::default()
        };
    });
    for n in 0..4000 {
        let burst = if n < 2500 { 1 } else { 5 };
        for _ in 0..burst {
            pair.send(0, &frame(0, PLAIN_HOST, 0x9000, 60, 0), Offload::NONE);
        }
        pair.run(Duration::from_millis(5));
        if n > 2500 && pair.snapshot(0).dfap.is_on == Some(true) {
            break;
        }
    }
    assert_eq!(pair.snapshot(0).dfap.is_on, Some(true));
    assert!(pair.events[0].contains(&Event::WaitsSwitched { on: true }));
    pair.recorded.clear();
    pair.out = Default::default();
    pair
}

#[test]
fn a_straight_wait_lasts_ten_ticks_after_the_first_however_many_come() {
    let mut pair = busy(Pack::DfapStraight);
    let begin = pair.now;
    for n in 0..9 {
        pair.send(0, &frame(0, pt0(1), 0x9000, 60, n), Offload::NONE);
        pair.run(TICK);
        if pair.snapshot(0).dfap.is_on != Some(true) {
            return; // the interval is over, and they have left at once
        }
        assert!(pair.out[1].is_empty(), "{n}");
    }
    pair.run(TICK - Duration::from_nanos(1));
    assert!(pair.out[1].is_empty());
    pair.run(Duration::from_nanos(1));
    assert_eq!(pair.now.since(begin), 10 * TICK);
    assert_eq!(pair.out[1].len(), 9);
    assert_eq!(on_the_wire(&pair, 0), [9]);
    assert_eq!(pair.snapshot(0).flushes.get(FlushReason::Timer), 1);
}

#[test]
fn sixteen_packets_or_a_full_frame_wait_no_longer() {
    for (count, bytes, reason) in [(13, 20, FlushReason::Count), (2, 733, FlushReason::Count)] {
        let mut pair = busy(Pack::DfapStraight);
        for n in 0..count {
            pair.send(0, &frame(0, pt0(1), 0x9000, bytes, n), Offload::NONE);
            pair.settle();
            assert_eq!(pair.out[1].is_empty(), n + 1 < count, "{n}");
        }
        assert_eq!(on_the_wire(&pair, 0), [usize::from(count)]);
        assert_eq!(pair.snapshot(0).flushes.get(reason), 1);
    }
}

#[test]
fn no_random_wait_is_longer_than_ten_ticks_and_under_light_traffic_there_is_none() {
    let mut pair = busy(Pack::DfapRandom);
    let mut waited = Vec::new();
    for n in 0..300 {
        let begin = pair.now;
        pair.out = Default::default();
        pair.send(0, &frame(0, pt0(1), 0x9000, 60, n), Offload::NONE);
        pair.settle();
        // Who waits is not alone in sending.
        while pair.out[1].is_empty() {
            pair.run(Duration::from_millis(1));
            let to_others = frame(0, PLAIN_HOST, 0x9000, 60, 0);
            (0..20).for_each(|_| pair.send(0, &to_others, Offload::NONE));
            assert!(pair.now.since(begin) <= 10 * TICK);
        }
        waited.push(pair.now.since(begin));
    }
    assert!(waited.iter().any(|w| *w > 5 * TICK) && waited.contains(&Duration::ZERO));
    // Nobody sends for long: waits are switched off, and said to be.
    pair.run(Duration::from_secs(30));
    assert_eq!(pair.snapshot(0).dfap.is_on, Some(false));
    let last = pair.events[0]
        .iter()
        .rev()
        .find(|e| matches!(e, Event::WaitsSwitched { .. }));
    assert_eq!(last, Some(&Event::WaitsSwitched { on: false }));
    pair.recorded.clear();
    pair.out = Default::default();
    let frames: Vec<_> = (0..10).map(|n| frame(0, pt0(1), 0x9000, 60, n)).collect();
    send_together(&mut pair, 0, &frames);
    assert_eq!(on_the_wire(&pair, 0), [1; 10], "nothing is put together");
    assert_eq!(came(&pair, 1), frames);
}

#[test]
fn what_waits_for_a_station_goes_before_what_comes_when_it_is_known_to_take_aggregates() {
    let mut pair = Pair::strangers(|_, config| aggregating(config));
    // It is known to be there, and nothing else.
    pair.ticking[1] = false;
    pair.run(Duration::from_millis(400));
    let mut back = frame(0, pt0(0), 0x9000, 60, 0);
    back[6..12].copy_from_slice(&pt0(1).0);
    pair.inject(0, &back, Offload::NONE);
    pair.engines[0].handle_link_queue(LINK, FULL, pair.now);
    let frames: Vec<_> = (0..10).map(|n| frame(0, pt0(1), 0x9000, 60, n)).collect();
    for frame in &frames[..5] {
        pair.send(0, frame, Offload::NONE);
    }
    let said = [
        &MacAddr::HELLO.0[..],
        &link_address(1).0,
        &[0x88, 0xb5, 0x13, 0, 0xbb, 0xbb, 0, 0, 0, 0],
        &pt0(1).0,
        &MTU.to_be_bytes(),
    ]
    .concat();
    let buffer = pair.engines[0].buffers().copy_of(&said);
    pair.engines[0].handle_link_frame(LINK, buffer, Offload::NONE, pair.now);
    for frame in &frames[5..] {
        pair.send(0, frame, Offload::NONE);
    }
    pair.record = true;
    pair.engines[0].handle_link_queue(LINK, 0, pair.now);
    pair.settle();
    assert_eq!(came(&pair, 1), frames);
    assert_eq!(on_the_wire(&pair, 0), [10]);
}

#[test]
fn a_link_that_goes_takes_nothing_of_what_waits_for_a_station_out_of_order() {
    let mut pair = pair(|_, config| aggregating(config));
    pair.engines[0].handle_link_queue(LINK, FULL, pair.now);
    let frames: Vec<_> = (0..10).map(|n| frame(0, pt0(1), 0x9000, 60, n)).collect();
    for frame in &frames {
        pair.send(0, frame, Offload::NONE);
    }
    let mut state = link_state(0);
    state.carrier = false;
    pair.engines[0].handle_link_state(LINK, state, pair.now);
    pair.settle();
    assert!(pair.out[1].is_empty());
    pair.engines[0].handle_link_state(LINK, link_state(0), pair.now);
    pair.run(Duration::from_millis(400));
    assert_eq!(came(&pair, 1), frames);
    pair.is_at_rest(0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.min(64), ..ProptestConfig::default() })]

    #[test]
    fn any_frames_come_out_as_they_went_in_by_trains_and_by_aggregates_whatever_the_mtu(
        sizes in prop::collection::vec((prop_oneof![5 => 1usize..200, 3 => 1usize..1400, 1 => 1usize..65_521], 0u16..3), 1..400),
        mtu in prop_oneof![Just(MTU), 576..MTU, MTU..=65_521, Just(65_521)],
        strict in any::<bool>(),
        modes in prop::sample::select(vec![
            [Mode::Dfap, Mode::Dfap], [Mode::Dfap, Mode::Trains], [Mode::Trains, Mode::Dfap], [Mode::Trains, Mode::Trains],
        ]),
    ) {
        let mut pair = pair(|side, config| {
            config.mode = modes[side];
            config.dfap.order = if strict { Order::Strict } else { Order::OfFlows };
        });
        for side in 0..2 {
            pair.set_mtu(side, mtu);
        }
        pair.run(Duration::from_millis(300));
        let by_trains = modes == [Mode::Trains; 2];
        let kinds = [ether_type::IPV4, 0x88cc, 200];
        // A train carries what is longer than itself, and a plain frame does not.
        let len_max = if by_trains { 65_521 } else { usize::from(mtu) };
        let mut bytes = 0;
        let sizes = sizes.iter().map(|&(len, kind)| (len.min(len_max), kind)).take_while(|(len, _)| {
            bytes += len;
            bytes < 3 << 20 // more than the receiver keeps of what comes in pieces
        });
        let mut frames: Vec<Vec<u8>> = (0u16..)
            .zip(sizes)
            .map(|(n, (len, kind))| frame(0, pt0(1), kinds[usize::from(kind)], len, n))
            .collect();
        pair.out = Default::default();
        send_together(&mut pair, 0, &frames);
        pair.run(Duration::from_millis(50));
        let mut seen = came(&pair, 1);
        let largest = pair.recorded.iter().map(|(_, frame, _)| frame.len()).max();
        prop_assert!(largest <= Some(usize::from(mtu) + HEADER_LEN));
        if strict && !by_trains {
            frames.sort();
            seen.sort();
        } else {
            // Of a type that is a flow of its own, in order.
            frames.sort_by_key(|frame| [frame[12], frame[13]]);
            seen.sort_by_key(|frame| [frame[12], frame[13]]);
        }
        prop_assert!(seen == frames, "{} of {}: {:?}", seen.len(), frames.len(), pair.drops(1));
    }
}

#[test]
fn an_aggregate_is_as_long_as_the_link_and_the_stations_link_take() {
    for modes in [
        [Mode::Dfap, Mode::Dfap],
        [Mode::Trains, Mode::Dfap],
        [Mode::Dfap, Mode::Trains],
    ] {
        let mut pair = pair(|side, config| config.mode = modes[side]);
        for (mtu, aggregates) in [
            // 64 bytes a packet, less one: 140 in 9000 bytes, 23 in 1500, and never more than the count can say.
            ([9000, 9000], vec![140, 140, 140, 80]),
            ([9000, 1500], [vec![23; 21], vec![17]].concat()),
            ([1500, 9000], [vec![23; 21], vec![17]].concat()),
            ([65_521, 65_521], vec![255, 245]),
        ] {
            (0..2).for_each(|side| pair.set_mtu(side, mtu[side]));
            pair.run(Duration::from_millis(1100));
            pair.recorded.clear();
            pair.out = Default::default();
            let frames: Vec<_> = (0..500).map(|n| frame(0, pt0(1), 0x9000, 60, n)).collect();
            send_together(&mut pair, 0, &frames);
            assert_eq!(on_the_wire(&pair, 0), aggregates, "{mtu:?}");
            assert_eq!(came(&pair, 1), frames);
        }
    }
}

#[test]
fn what_was_in_hand_when_a_link_takes_less_goes_as_far_as_it_can() {
    let mut pair = pair(|_, config| aggregating(config));
    (0..2).for_each(|side| pair.set_mtu(side, 9000));
    pair.run(Duration::from_millis(300));
    pair.engines[0].handle_link_queue(LINK, FULL, pair.now);
    // Of five flows, so that the largest leaves first and the others are in hand.
    let frames = [
        (0x9000, 1400),
        (0x9001, 1400),
        (0x9002, 2000),
        (0x9003, 8000),
        (0x9004, 60),
    ];
    for (n, (kind, len)) in (0..).zip(frames) {
        pair.send(0, &frame(0, pt0(1), kind, len, n), Offload::NONE);
    }
    pair.engines[0].handle_link_queue(LINK, 0, pair.now);
    let first = pair.engines[0]
        .poll_transmit(pair.now)
        .expect("the largest");
    assert_eq!(first.frame.len(), HEADER_LEN + 8000);
    let before = pair.drops(0);
    pair.recorded.clear();
    pair.set_mtu(0, 1500);
    pair.settle();
    let seen: Vec<usize> = came(&pair, 1)
        .iter()
        .map(|frame| frame.len() - HEADER_LEN)
        .collect();
    assert_eq!(seen, [1400, 1400, 60]);
    assert_eq!(
        pair.dropped_since(0, &before),
        [(DropReason::TooLargeForPlain, 1)]
    );
}

#[test]
fn the_clock_of_the_traffic_count_does_not_keep_an_idle_engine_awake() {
    let mut pair = pair(|_, config| {
        aggregating(config);
        config.rest.pack = Pack::DfapRandom;
        config.dfap.tick = Duration::from_micros(50);
    });
    pair.run(Duration::from_secs(5));
    let end = pair.now + Duration::from_secs(1);
    let mut wakes = 0;
    while let Some(next) = pair.engines[0].poll_timeout().filter(|next| *next < end) {
        pair.now = next;
        pair.engines[0].handle_timeout(next);
        pair.settle();
        wakes += 1;
    }
    // Hellos, and a look around each quarter of a second.
    assert!(wakes < 10, "{wakes}");
}
