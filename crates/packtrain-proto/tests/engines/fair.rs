//! What flows may have of a line, and how they are told that it is too much: the queue's parts at work in an engine.

use packtrain_proto::config::Config;
use packtrain_proto::offload::Offload;
use packtrain_proto::stats::DropReason;
use packtrain_proto::time::Duration;
use packtrain_proto::wire::checksum;

use crate::support::{LINK, Pair, pt0};

const LEN: usize = 1000;
/// Where an IPv4 header begins.
const IP: usize = 14;

/// Of a flow to the other host that understands marks.
fn frame(flow: u8, number: u32) -> Vec<u8> {
    let mut frame = [&pt0(1).0[..], &pt0(0).0, &[8, 0, 0x45, 0b10]].concat();
    frame.resize(LEN, 0);
    frame[IP + 2..IP + 4].copy_from_slice(&((LEN - IP) as u16).to_be_bytes());
    frame[IP + 9] = 200;
    frame[IP + 12..IP + 20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, flow]);
    frame[40..44].copy_from_slice(&number.to_be_bytes());
    let sum = checksum::checksum(&frame[IP..IP + 20]);
    frame[IP + 10..IP + 12].copy_from_slice(&sum.to_be_bytes());
    frame
}

fn pair(set: impl Fn(&mut Config)) -> Pair {
    let mut pair = Pair::with(|_, config| {
        config.marked_frames = false;
        config.coded_trains = false;
        set(config);
    });
    stop(&mut pair);
    pair
}

/// Nothing leaves the first side until it is told that its link has room.
fn stop(pair: &mut Pair) {
    pair.engines[0].handle_link_queue(LINK, 1 << 20, pair.now);
}

/// One train leaves every ten milliseconds.
fn trickle(pair: &mut Pair, ticks: usize) {
    for _ in 0..ticks {
        pair.now += Duration::from_millis(10);
        let now = pair.now;
        let [one, other] = &mut pair.engines;
        one.handle_timeout(now);
        other.handle_timeout(now);
        one.handle_link_queue(LINK, 0, now);
        if let Some(sent) = one.poll_transmit(now) {
            let buffer = other.buffers().copy_of(sent.frame);
            other.handle_link_frame(LINK, buffer, sent.offload, now);
        }
        one.handle_link_queue(LINK, 1 << 20, now);
        while let Some(delivery) = other.poll_delivery(now) {
            let frame = [delivery.head, delivery.body].concat();
            pair.out[1].push((frame, delivery.offload));
        }
        while let Some(sent) = other.poll_transmit(now) {
            let buffer = one.buffers().copy_of(sent.frame);
            one.handle_link_frame(LINK, buffer, sent.offload, now);
        }
        other.handle_link_queue(LINK, 0, now);
    }
}

/// Flow and number of what has come.
fn came(pair: &Pair) -> Vec<(u8, u32)> {
    let of = |frame: &[u8]| {
        let number = frame[40..44].try_into().expect("four bytes");
        (frame[IP + 19], u32::from_be_bytes(number))
    };
    pair.out[1].iter().map(|(frame, _)| of(frame)).collect()
}

#[test]
fn what_stands_is_marked_and_all_of_it_arrives_or_dropped_where_marks_are_switched_off() {
    for ecn in [true, false] {
        let mut pair = pair(|config| config.ecn = ecn);
        for number in 0..300 {
            pair.send(0, &frame(1, number), Offload::NONE);
        }
        trickle(&mut pair, 100);
        pair.run(Duration::from_millis(100));
        let seen = pair.snapshot(0);
        let marked: Vec<_> = pair.out[1]
            .iter()
            .filter(|(frame, _)| frame[IP + 1] == 0b11)
            .collect();
        let is_right = |frame: &[u8]| checksum::checksum(&frame[IP..IP + 20]) == 0;
        assert!(pair.out[1].iter().all(|(frame, _)| is_right(frame)));
        assert_eq!(seen.queue.marked, marked.len() as u64);
        let dropped = seen.drops.get(DropReason::Codel);
        assert_eq!(pair.out[1].len() as u64, 300 - dropped);
        assert_eq!((marked.is_empty(), dropped == 0), (!ecn, ecn));
    }
}

#[test]
fn a_flow_with_too_much_waiting_loses_its_oldest_frames_and_another_none() {
    let mut pair = pair(|config| config.limits.flow_queue_bytes_max = Some(20 * LEN));
    for number in 0..100 {
        pair.send(0, &frame(1, number), Offload::NONE);
        if number % 20 == 0 {
            pair.send(0, &frame(2, number), Offload::NONE);
        }
    }
    assert_eq!(pair.drops(0).get(DropReason::FlowQueueFull), 80);
    assert_eq!(pair.drops(0).total(), 80);
    pair.run(Duration::from_millis(50));
    let of = |flow| came(&pair).into_iter().filter(move |frame| frame.0 == flow);
    assert!(of(1).map(|frame| frame.1).eq(80..100));
    assert_eq!(of(2).count(), 5);
    pair.is_at_rest(0);
}

#[test]
fn a_flow_that_is_no_elephant_goes_first_where_that_is_set_and_order_is_kept() {
    for short_first in [true, false] {
        let mut pair = pair(|config| {
            config.elephant_bytes = 5 * LEN as u32;
            config.short_flows_first = short_first;
        });
        for number in 0..40 {
            pair.send(0, &frame(1, number), Offload::NONE);
            pair.send(0, &frame(2, number), Offload::NONE);
        }
        trickle(&mut pair, 10);
        for number in 0..4 {
            pair.send(0, &frame(3, number), Offload::NONE);
        }
        let before = came(&pair).len();
        trickle(&mut pair, 6);
        let since = &came(&pair)[before..];
        let of_elephants = since.iter().take_while(|frame| frame.0 != 3).count();
        let first: Vec<u8> = since[of_elephants..].iter().map(|frame| frame.0).collect();
        assert_eq!(first.starts_with(&[3, 3, 3, 3]), short_first, "{since:?}");
        pair.run(Duration::from_millis(50));
        for flow in 1..=3 {
            let all = came(&pair);
            let numbers = all.iter().filter(|frame| frame.0 == flow);
            assert!(numbers.map(|frame| frame.1).is_sorted());
        }
        let flows = pair.snapshot(0).elephants;
        assert_eq!((flows.elephants, flows.mice), (2, 1));
        assert_eq!((flows.of_mice.frames, flows.of_elephants.frames), (14, 70));
    }
}

#[test]
fn a_train_is_one_data_unit_and_each_of_its_frames_a_packet() {
    let mut pair = pair(|_| {});
    for number in 0..4 {
        let mut short = frame(1, number);
        short.truncate(300);
        pair.send(0, &short, Offload::NONE);
    }
    pair.run(Duration::from_millis(20));
    let units = pair.snapshot(0).data_units;
    assert_eq!(
        (units.given, units.on_wire, units.packets_of_1500),
        (1, 1, 4)
    );
    // One in pieces: of three trains the last one brings it.
    let mut long = frame(1, 4);
    long.resize(4000, 7);
    stop(&mut pair);
    pair.send(0, &long, Offload::NONE);
    pair.run(Duration::from_millis(20));
    let units = pair.snapshot(0).data_units;
    assert_eq!((units.given, units.packets_of_1500), (4, 7));
}

/// The most by which one of three flows that wait all the time was ahead of another, with frames of 1000, 300 and 100 bytes; and so many
/// trains left before the first frame of a flow that began later.
fn unfairness(quantum: usize) -> (usize, usize) {
    const LENGTHS: [usize; 3] = [1000, 300, 100];
    let mut pair = pair(|config| {
        config.limits.quantum = quantum;
        // Not what is asked here.
        config.limits.codel_target = Duration::from_secs(100);
    });
    for number in 0..1200 {
        for (flow, len) in (1..).zip(LENGTHS) {
            if number * (len as u32) < 120_000 {
                let mut frame = frame(flow, number);
                frame.truncate(len);
                pair.send(0, &frame, Offload::NONE);
            }
        }
    }
    let mut most = 0;
    let mut waited = 0;
    for tick in 0..60 {
        trickle(&mut pair, 1);
        let bytes = [1, 2, 3].map(|flow| {
            let of_flow = pair.out[1]
                .iter()
                .filter(|(frame, _)| frame[IP + 19] == flow);
            of_flow.map(|(frame, _)| frame.len()).sum::<usize>()
        });
        most = most.max(bytes.iter().max().unwrap() - bytes.iter().min().unwrap());
        if tick == 20 {
            pair.send(0, &frame(9, 0), Offload::NONE);
        }
        waited += usize::from(tick > 20 && !came(&pair).contains(&(9, 0)));
    }
    (most, waited)
}

#[test]
fn flows_that_wait_have_the_same_bytes_and_a_new_one_is_next_but_where_quanta_are_ignored() {
    let (most, waited) = unfairness(1514);
    assert!(most <= 2 * 1514 + LEN, "{most} bytes");
    assert!(waited <= 1, "{waited} trains");
    let (most, _) = unfairness(1 << 30);
    assert!(most > 20_000, "{most} bytes");
}
