//! Flows that never rest are let rest, so that they may go past an engine that is full.

use crate::support::{MTU, Pair, frame, pt0};
use packtrain_proto::engine::Event;
use packtrain_proto::offload::Offload;
use packtrain_proto::time::Duration;

const DATA: u8 = 0x10;
const END: u8 = 0x11;

fn direct_pair() -> Pair {
    Pair::with(|_, config| {
        config.direct_frames = true;
        config.mtu = MTU;
    })
}

/// A TCP segment of a side, from this port, with these flags and so much payload.
fn segment(from: usize, port: u16, flags: u8, payload: usize) -> Vec<u8> {
    let mut frame = [&pt0(1 - from).0[..], &pt0(from).0, &[0x08, 0x00]].concat();
    let mut ip = [0; 20];
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&(40 + payload as u16).to_be_bytes());
    (ip[8], ip[9]) = (64, 6);
    ip[12..20].copy_from_slice(&[10, 0, 0, from as u8, 10, 0, 0, 1 - from as u8]);
    let mut tcp = [0; 20];
    tcp[..2].copy_from_slice(&port.to_be_bytes());
    (tcp[12], tcp[13]) = (0x50, flags);
    frame.extend([ip, tcp].concat());
    frame.resize(frame.len() + payload, 7);
    frame
}

fn send(pair: &mut Pair, from: usize, frames: &[Vec<u8>]) {
    for frame in frames {
        pair.send(from, frame, Offload::NONE);
    }
}

/// What has come to a side since this was called last, of what is not made to fill the engine.
fn came(pair: &mut Pair, side: usize) -> Vec<Vec<u8>> {
    pair.settle();
    let out = std::mem::take(&mut pair.out[side]).into_iter();
    let frames = out.map(|(frame, _)| frame);
    frames
        .filter(|frame| frame.len() != usize::from(MTU))
        .collect()
}

fn saw(pair: &mut Pair, side: usize, event: &Event) -> bool {
    pair.settle();
    std::mem::take(&mut pair.events[side]).contains(event)
}

/// These sides send more than their engines take, until their flows are to rest.
fn fill(pair: &mut Pair, sides: &[usize]) {
    for _ in 0..100 {
        for &side in sides {
            for _ in 0..30 {
                pair.send(side, &frame(side, MTU.into(), 1), Offload::NONE);
            }
            pair.engines[side].handle_host_read(true);
        }
        pair.run(Duration::from_millis(1));
        let mut are_to_rest = sides.iter();
        if are_to_rest.all(|&side| pair.events[side].contains(&Event::FlowsRest)) {
            pair.out = Default::default();
            return;
        }
    }
    panic!("nobody is to rest: {:?}", pair.snapshot(sides[0]).direct);
}

fn rests(pair: &Pair, side: usize) -> (u64, u64) {
    let direct = pair.snapshot(side).direct;
    (direct.rests, direct.rests_in_vain)
}

#[test]
fn acknowledgements_are_kept_back_until_all_that_was_sent_has_arrived() {
    let mut pair = direct_pair();
    fill(&mut pair, &[0]);
    let kept = [
        segment(1, 5201, DATA, 0),
        segment(1, 5202, DATA, 0),
        // Behind an acknowledgement of its own flow.
        segment(1, 5201, DATA, 100),
        segment(1, 5201, END, 0),
    ];
    // What says nothing but that it is there leaves ahead of the rest.
    let passed = [
        segment(1, 80, END, 0),
        segment(1, 22, DATA, 100),
        frame(1, 100, 3),
    ];
    send(&mut pair, 1, &kept[..2]);
    send(&mut pair, 1, &passed);
    send(&mut pair, 1, &kept[2..]);
    assert_eq!(came(&mut pair, 0), passed);
    pair.engines[0].request_drain(7, pair.now);
    assert!(saw(&mut pair, 0, &Event::Drained { ticket: 7 }));
    pair.run(Duration::ZERO);
    assert_eq!(came(&mut pair, 0), kept);
    assert_eq!(rests(&pair, 0), (1, 0));
    // And what comes now comes at once.
    send(&mut pair, 1, &kept);
    assert_eq!(came(&mut pair, 0), kept);
}

/// What was kept in one rest is forgotten with it.
#[test]
fn what_is_not_acknowledged_in_the_next_rest_is_not_kept_in_it() {
    let mut pair = direct_pair();
    fill(&mut pair, &[0]);
    send(&mut pair, 1, &[segment(1, 5201, DATA, 0)]);
    assert_eq!(came(&mut pair, 0).len(), 0);
    pair.engines[0].request_drain(7, pair.now);
    pair.run(Duration::from_millis(1));
    assert_eq!(came(&mut pair, 0).len(), 1);
    pair.run(Duration::from_secs(1));
    pair.events = Default::default();
    fill(&mut pair, &[0]);
    assert_eq!(rests(&pair, 0).0, 2);
    send(&mut pair, 1, &[segment(1, 5201, DATA, 100)]);
    assert_eq!(came(&mut pair, 0).len(), 1);
}

#[test]
fn what_never_rests_is_not_waited_for_longer_than_tcp_waits() {
    let mut pair = direct_pair();
    fill(&mut pair, &[0]);
    let acknowledgement = segment(1, 5201, DATA, 0);
    let mut kept_for = 0;
    for ticket in 1.. {
        send(&mut pair, 1, std::slice::from_ref(&acknowledgement));
        if !came(&mut pair, 0).is_empty() {
            break;
        }
        pair.engines[0].request_drain(ticket, pair.now);
        for _ in 0..30 {
            pair.send(0, &frame(0, MTU.into(), 1), Offload::NONE);
        }
        pair.engines[0].handle_host_read(true);
        pair.run(Duration::from_millis(1));
        kept_for += 1;
    }
    assert!((55..=61).contains(&kept_for), "{kept_for} ms");
    assert_eq!(rests(&pair, 0), (1, 1));
}

#[test]
fn a_peer_is_told_that_what_is_kept_back_has_arrived_when_it_has() {
    let mut pair = direct_pair();
    fill(&mut pair, &[0]);
    send(&mut pair, 1, &[segment(1, 5201, DATA, 0)]);
    pair.engines[1].request_drain(3, pair.now);
    pair.run(Duration::from_millis(5));
    assert_eq!(came(&mut pair, 0), Vec::<Vec<u8>>::new());
    assert!(!saw(&mut pair, 1, &Event::Drained { ticket: 3 }));
    pair.engines[0].request_drain(7, pair.now);
    pair.run(Duration::from_millis(1));
    assert_eq!(came(&mut pair, 0).len(), 1);
    assert!(saw(&mut pair, 1, &Event::Drained { ticket: 3 }));
}

#[test]
fn of_two_that_rest_at_once_one_goes_first() {
    let mut pair = direct_pair();
    fill(&mut pair, &[0, 1]);
    for side in 0..2 {
        send(&mut pair, side, &[segment(side, 5201, DATA, 0)]);
        pair.engines[side].request_drain(5, pair.now);
    }
    pair.run(Duration::from_millis(9));
    for side in 0..2 {
        assert!(!pair.events[side].contains(&Event::Drained { ticket: 5 }));
    }
    pair.run(Duration::from_millis(2));
    for side in 0..2 {
        assert!(saw(&mut pair, side, &Event::Drained { ticket: 5 }));
        assert_eq!(came(&mut pair, side).len(), 1);
    }
    let mut all = [rests(&pair, 0), rests(&pair, 1)];
    all.sort_unstable();
    assert_eq!(all, [(1, 0), (1, 1)]);
}

#[test]
fn a_line_without_direct_frames_lets_nobody_rest() {
    let mut pair = Pair::with(|_, config| config.mtu = MTU);
    for _ in 0..200 {
        for _ in 0..30 {
            pair.send(0, &frame(0, MTU.into(), 1), Offload::NONE);
        }
        pair.engines[0].handle_host_read(true);
        pair.run(Duration::from_millis(1));
    }
    assert_eq!(rests(&pair, 0), (0, 0));
}

/// What an engine was full of once, it is not to be watched for long before flows are let rest: it has been told of nothing that is
/// left unread.
#[test]
fn an_engine_that_was_full_is_known_to_be_full_again_by_what_it_carries() {
    let found_after = |pair: &mut Pair, left_unread: bool, ms| {
        (1..=ms).find(|_| {
            for _ in 0..30 {
                pair.send(0, &frame(0, MTU.into(), 1), Offload::NONE);
            }
            pair.engines[0].handle_host_read(left_unread);
            pair.engines[0].handle_links_read(false, pair.now);
            pair.run(Duration::from_millis(1));
            pair.snapshot(0).direct.takes_surplus
        })
    };
    assert_eq!(
        found_after(&mut direct_pair(), false, 200),
        None,
        "it never was full"
    );
    let mut pair = direct_pair();
    let found = found_after(&mut pair, true, 200).expect("full");
    assert!(found > 50, "after {found} ms");
    pair.run(Duration::from_secs(4));
    assert!(!pair.snapshot(0).direct.takes_surplus);
    pair.events = Default::default();
    let found = found_after(&mut pair, false, 200).expect("full again");
    assert!((20..=31).contains(&found), "after {found} ms");
    assert!(saw(&mut pair, 0, &Event::FlowsRest));
}
