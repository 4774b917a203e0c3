//! What a class says of a frame is what the engine does with it.

use crate::support::{LINK, Pair, pt0};
use packtrain_proto::class::{Action, Class, Compress, Pack};
use packtrain_proto::engine::Engine;
use packtrain_proto::offload::Offload;
use packtrain_proto::stats::Traffic;
use packtrain_proto::time::Duration;
use packtrain_proto::wire::ethernet::MacAddr;

/// More than any link may hold.
const FULL: usize = 16 << 20;

/// UDP to the other side, or to another station; the last byte tells the frames apart.
fn udp(to: MacAddr, port: u16, len: usize, fill: u8) -> Vec<u8> {
    let mut frame = [&to.0[..], &pt0(0).0, &[8, 0, 0x45, 0]].concat();
    frame.extend(((len - 14) as u16).to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    for word in [40_000, port, (len - 34) as u16, 0] {
        frame.extend(u16::to_be_bytes(word));
    }
    frame.resize(len, fill);
    frame
}

fn class(name: &str, matches: &str, pack: Pack) -> Class {
    Class {
        name: name.parse().unwrap(),
        matches: matches.parse().unwrap(),
        links: Vec::new(),
        action: Action {
            pack,
            ..Action::default()
        },
    }
}

fn traffic(engine: &Engine, pair: &Pair, name: &str) -> Traffic {
    let classes = engine.snapshot(pair.now).classes;
    classes
        .into_iter()
        .find(|class| class.name == name)
        .unwrap()
        .traffic
}

/// The last bytes of what came out at the other side.
fn delivered(pair: &Pair) -> Vec<u8> {
    pair.out[1]
        .iter()
        .map(|(frame, _)| *frame.last().unwrap())
        .collect()
}

#[test]
fn dns_overtakes_the_bulk_that_waits_and_a_class_that_is_taken_away_does_not() {
    for with_defaults in [true, false] {
        let mut pair = Pair::new(true);
        if !with_defaults {
            pair.engines[0].set_classes(Vec::new(), pair.now);
        }
        pair.engines[0].handle_link_queue(LINK, FULL, pair.now);
        for flow in 0..4 {
            for n in 0..20 {
                let frame = udp(pt0(1), 9000 + u16::from(flow), 1000, flow * 20 + n);
                pair.send(0, &frame, Offload::NONE);
            }
        }
        // Some have gone when it comes: a flow that is only new would be no surprise.
        pair.send(0, &udp(pt0(1), 53, 100, 200), Offload::NONE);
        pair.send(0, &udp(pt0(1), 9100, 100, 100), Offload::NONE);
        pair.send(0, &udp(pt0(1), 53, 100, 201), Offload::NONE);
        pair.engines[0].handle_link_queue(LINK, 0, pair.now);
        pair.run(Duration::from_millis(50));
        let order = delivered(&pair);
        assert_eq!(order.len(), 83);
        let place = |fill: u8| order.iter().position(|&byte| byte == fill).unwrap();
        assert_eq!(
            [place(200), place(201)] == [0, 1],
            with_defaults,
            "{order:?}"
        );
        assert!(place(200) < place(201));
        if with_defaults {
            assert_eq!(
                traffic(&pair.engines[0], &pair, "dns"),
                Traffic {
                    frames: 2,
                    bytes: 200
                }
            );
            let rest = traffic(&pair.engines[0], &pair, "rest");
            assert_eq!(
                rest,
                Traffic {
                    frames: 81,
                    bytes: 80_100
                }
            );
        }
    }
}

#[test]
fn an_urgent_frame_does_not_wait_for_the_turn_of_its_destination() {
    let mut pair = Pair::new(true);
    // Two stations without packtrain share the plain queue; the peer's is another one.
    let plain = MacAddr([2, 0, 0, 0, 9, 9]);
    pair.record = true;
    pair.engines[0].handle_link_queue(LINK, FULL, pair.now);
    for n in 0..40 {
        pair.send(0, &udp(plain, 9000, 1000, n), Offload::NONE);
    }
    pair.send(0, &udp(pt0(1), 53, 100, 200), Offload::NONE);
    pair.engines[0].handle_link_queue(LINK, 0, pair.now);
    pair.settle();
    let first = &pair.recorded[0];
    assert_eq!(first.0, 0);
    assert_eq!(
        first.1[12..14],
        [0x88, 0xb5],
        "the train with it comes first"
    );
}

#[test]
fn frames_that_may_wait_share_a_train_and_wait_no_longer_than_they_may() {
    let mut pair = Pair::new(true);
    let budget = Duration::from_millis(3);
    let mut patient = class("patient", "udp dport 7000", Pack::Within(budget));
    // As many frames fill a train as their lengths say.
    patient.action.compress = Compress::Off;
    pair.engines[0].set_classes(vec![patient], pair.now);
    let trains = |pair: &Pair| pair.snapshot(0).trains_tx.trains;
    // Nobody waits for others that are not known to come.
    for n in 0..20 {
        pair.send(0, &udp(pt0(1), 7000, 100, n), Offload::NONE);
        pair.run(Duration::from_micros(500));
        assert!(n > 0 || pair.out[1].len() == 1);
    }
    pair.run(budget);
    pair.out = Default::default();
    let before = trains(&pair);
    for n in 0..5 {
        pair.send(0, &udp(pt0(1), 7000, 100, n), Offload::NONE);
        pair.run(Duration::from_micros(500));
        assert_eq!(pair.out[1].len(), 0, "it waits for more");
    }
    pair.run(Duration::from_micros(600));
    assert_eq!(delivered(&pair), [0, 1, 2, 3, 4]);
    assert_eq!(trains(&pair) - before, 1);
    // A full train does not wait, and what is left over does.
    pair.out = Default::default();
    for n in 0..20 {
        pair.send(0, &udp(pt0(1), 7000, 100, n), Offload::NONE);
    }
    pair.settle();
    let at_once = delivered(&pair).len();
    assert!((15..18).contains(&at_once), "{at_once}");
    pair.run(budget);
    assert_eq!(delivered(&pair), (0..20).collect::<Vec<u8>>());
    assert_eq!(trains(&pair) - before, 3);
    // One of another class takes those along that wait.
    pair.out = Default::default();
    pair.send(0, &udp(pt0(1), 7000, 100, 1), Offload::NONE);
    pair.send(0, &udp(pt0(1), 7001, 100, 2), Offload::NONE);
    pair.settle();
    assert_eq!(delivered(&pair).len(), 2);
    assert_eq!(trains(&pair) - before, 4);
    pair.still_works();
}

#[test]
fn frames_that_wait_for_others_are_no_reason_to_shape_the_host() {
    let mut pair = Pair::new(true);
    let within = Pack::Within(Duration::from_millis(100));
    pair.engines[0].set_classes(vec![class("patient", "udp dport 7000", within)], pair.now);
    for n in 0..200 {
        // 700 bytes a hundred milliseconds, never a full train.
        if n % 10 == 0 {
            pair.send(0, &udp(pt0(1), 7000, 700, n), Offload::NONE);
        }
        pair.run(Duration::from_millis(10));
    }
    let shaped = |event: &packtrain_proto::engine::Event| {
        matches!(
            event,
            packtrain_proto::engine::Event::IntakeRate {
                rate_bps: Some(_),
                ..
            }
        )
    };
    assert!(!pair.events[0].iter().any(shaped));
    pair.run(Duration::from_millis(100));
    assert_eq!(pair.out[1].len(), 20);
}
