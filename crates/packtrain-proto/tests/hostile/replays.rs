//! Trains that come again, too far ahead, or out of a former life.

use packtrain_proto::buffer::SMALL_CAPACITY;
use packtrain_proto::config::{Config, Limits, NodeId};
use packtrain_proto::offload::Offload;
use packtrain_proto::stats::{DropReason, PeerSnapshot};
use packtrain_proto::time::Duration;

use super::counts;
use super::support::forger::{Forger, emit, whole};
use super::support::{LINK, Pair, frame, node, pt0};

fn is_train(frame: &[u8]) -> bool {
    frame[12..15] == [0x88, 0xb5, 0x11]
}

/// The trains that side 0 sends for some frames.
fn recorded_trains(pair: &mut Pair) -> Vec<Vec<u8>> {
    pair.record = true;
    for i in 0..50 {
        pair.send(0, &frame(0, 400, i), Offload::NONE);
        pair.run(Duration::from_micros(100));
    }
    pair.run(Duration::from_millis(10));
    pair.record = false;
    pair.out = Default::default();
    let trains = pair.recorded.drain(..);
    trains
        .filter(|(side, frame, _)| *side == 0 && is_train(frame) && frame[15] & 2 == 0)
        .map(|(_, frame, _)| frame)
        .collect()
}

#[test]
fn trains_that_come_again_are_duplicates() {
    let mut pair = Pair::new(true);
    let trains = recorded_trains(&mut pair);
    assert!(trains.len() >= 50);
    for train in &trains {
        counts(&mut pair, &[(DropReason::Duplicate, 1)], |pair| {
            pair.inject(1, train, Offload::NONE);
        });
    }
    assert_eq!(pair.out[1], []);
    pair.still_works();
    // A day's traffic later.
    for _ in 0..120 {
        pair.still_works();
    }
    let before = pair.drops(1);
    for train in trains.iter().chain(trains.iter().rev()) {
        pair.inject(1, train, Offload::NONE);
    }
    let dropped: u64 = pair.dropped_since(1, &before).iter().map(|(_, n)| n).sum();
    assert_eq!((dropped, pair.out[1].len()), (2 * trains.len() as u64, 0));
    pair.still_works();
}

#[test]
fn after_a_restart_of_the_receiver_the_trains_of_before_are_nobodys_or_duplicates() {
    let mut pair = Pair::new(true);
    let trains = recorded_trains(&mut pair);
    let mut config = Config::new(NodeId(0x7777_0001), pt0(1));
    config.mtu = 65_521;
    pair.restart(1, config);
    counts(
        &mut pair,
        &[(DropReason::UnknownPeer, trains.len() as u64)],
        |pair| {
            for train in &trains {
                let buffer = pair.engines[1].buffers().copy_of(train);
                pair.engines[1].handle_link_frame(
                    super::support::LINK,
                    buffer,
                    Offload::NONE,
                    pair.now,
                );
            }
        },
    );
    pair.run(Duration::from_millis(500));
    assert_eq!(pair.out[1], []);
    pair.still_works();
}

#[test]
fn after_a_restart_of_the_sender_the_trains_of_its_former_life_are_stale() {
    let mut pair = Pair::new(true);
    let trains = recorded_trains(&mut pair);
    let mut config = Config::new(NodeId(0x7777_0001), pt0(0));
    config.mtu = 65_521;
    pair.restart(0, config);
    pair.run(Duration::from_millis(500));
    counts(
        &mut pair,
        &[(DropReason::StaleIncarnation, trains.len() as u64)],
        |pair| {
            for train in &trains {
                pair.inject(1, train, Offload::NONE);
            }
        },
    );
    assert_eq!(pair.out[1], []);
    pair.still_works();
}

/// Forged trains of a peer, far from where it is. Alone none of them moves anything.
#[test]
fn a_sequence_jump_is_refused_and_moves_nothing() {
    for jump in [
        4096u32,
        100_000,
        1 << 30,
        (1 << 31) - 1,
        1 << 31,
        u32::MAX - 5000,
    ] {
        let mut pair = Pair::new(true);
        pair.still_works();
        let newest = newest_train(&mut pair);
        let mut real = Forger::as_side(&pair, 0);
        real.train = newest.wrapping_add(jump);
        real.link_sequence = newest.wrapping_add(jump);
        counts(&mut pair, &[(DropReason::SequenceJump, 1)], |pair| {
            real.send(pair, 1, &whole(&[1; 60]));
        });
        assert_eq!(pair.out[1], [], "{jump}");
        pair.still_works();
    }
}

/// They come in one batch, and the host has taken nothing of it yet.
#[test]
fn what_a_peer_sent_before_its_goodbye_is_delivered_before_it_is_forgotten() {
    for lost in [false, true] {
        let mut pair = Pair::new(true);
        let mut forger = Forger::known_to(&mut pair, 1, 1);
        pair.out = Default::default();
        let mut batch = vec![forger.train(1, &whole(b"one")).bytes()];
        if lost {
            forger.train(1, &whole(b"never arrives"));
        }
        batch.push(forger.train(1, &whole(b"last")).bytes());
        let mut bye = forger.hello(Some(node(1)));
        bye.goodbye = true;
        batch.push(emit(&bye, forger.link));
        let drops = pair.drops(1);
        for bytes in batch {
            let buffer = pair.engines[1].buffers().copy_of(&bytes);
            pair.engines[1].handle_link_frame(LINK, buffer, Offload::NONE, pair.now);
        }
        pair.settle();
        let given: Vec<&[u8]> = pair.out[1].iter().map(|out| &out.0[14..]).collect();
        assert_eq!(given, [&b"one"[..], b"last"], "lost: {lost}");
        assert_eq!(pair.dropped_since(1, &drops), []);
        let is_there = |peer: &PeerSnapshot| peer.node_id == forger.node_id;
        assert!(!pair.snapshot(1).peers.iter().any(is_there));
        pair.still_works();
    }
}

#[test]
fn trains_out_of_turn_are_held_up_to_a_bound_for_all_peers_together() {
    const TOTAL: usize = 64 * 1024;
    let mut pair = Pair::with(|_, config| config.limits.resequencer_bytes_total_max = TOTAL);
    let mut forgers: Vec<Forger> = (1..=8).map(|n| Forger::known_to(&mut pair, 1, n)).collect();
    // Three peers hold all of theirs, one two, and who holds nothing may always hold one.
    let held = TOTAL / SMALL_CAPACITY + 4;
    let refused = forgers.len() * 10 - held;
    let reasons = [(DropReason::ResequencerFull, refused as u64)];
    counts(&mut pair, &reasons, |pair| {
        for forger in &mut forgers {
            let _first_is_lost = forger.train(1, &whole(b"one"));
            for i in 0..10 {
                forger.send(pair, 1, &whole(&[i; 100]));
            }
        }
    });
    let held_bytes = pair.snapshot(1).resequencer.held_bytes;
    assert!(held_bytes <= (held * SMALL_CAPACITY) as u64);
    // An honest peer that loses a train meanwhile goes on after the gap.
    let mut honest = Forger::known_to(&mut pair, 1, 9);
    pair.out = Default::default();
    let _is_lost = honest.train(1, &whole(b"lost"));
    for _ in 0..40 {
        honest.send(&mut pair, 1, &whole(b"honest"));
        for forger in &mut forgers {
            forger.send(&mut pair, 1, &whole(b"more"));
        }
        pair.run(Duration::from_millis(2));
    }
    let given = pair.out[1].iter().filter(|out| out.0.ends_with(b"honest"));
    assert!(given.count() > 20);
    pair.still_works();
}

/// The link sequence is not what order is decided by, but acknowledgements name it.
#[test]
fn a_forged_link_sequence_does_not_spoil_the_acknowledgements() {
    for jump in [70u32, 5000, 1 << 30, 1 << 31, u32::MAX - 5000] {
        let mut pair = Pair::new(true);
        pair.still_works();
        let mut real = Forger::as_side(&pair, 0);
        real.train = newest_train(&mut pair).wrapping_add(1 << 30);
        for n in 0..3 {
            // Not one after the other.
            real.train = real.train.wrapping_add(1000);
            real.link_sequence = jump.wrapping_add(n * 10_000);
            real.send(&mut pair, 1, &whole(&[1; 60]));
        }
        if jump < 4096 {
            // Near enough to be believed, until the next hello.
            pair.run(Duration::from_millis(1200));
        }
        pair.still_works();
        // Much more than a window at once: it flows only while acknowledgements come.
        for i in 0..400 {
            pair.send(0, &frame(0, 1400, i as u8), Offload::NONE);
        }
        pair.run(Duration::from_millis(50));
        assert_eq!(pair.out[1].len(), 400, "{jump}");
        assert_eq!(pair.snapshot(0).links[0].in_flight_bytes, 0);
        pair.still_works();
    }
}

/// Who knows the sequences can use one up, or lead astray; the next hello says where things are.
#[test]
fn a_forger_who_leads_the_order_astray_is_found_out_within_a_second() {
    for (ahead, trains) in [
        (2000u32, 1),
        (4000, 1),
        (4000, 40),
        (1 << 20, 5),
        (1 << 31, 5),
    ] {
        let mut pair = Pair::new(true);
        pair.still_works();
        let mut real = Forger::as_side(&pair, 0);
        real.train = newest_train(&mut pair).wrapping_add(ahead);
        real.link_sequence = real.train;
        for _ in 0..trains {
            real.send(&mut pair, 1, &whole(&[1; 60]));
        }
        pair.run(Duration::from_millis(1200));
        pair.still_works();
    }
}

fn newest_train(pair: &mut Pair) -> u32 {
    pair.snapshot(0).trains_tx.trains as u32
}

/// Within the window a forged train is believed: where trains come quickly it is taken for one that
/// has overtaken them, else they are late, until that has happened often enough.
#[test]
fn a_forged_train_within_the_window_costs_fifteen_trains_at_most() {
    // The train whose number was taken is a duplicate, at least.
    for (gap, lost) in [
        (Duration::from_micros(100), 1),
        (Duration::from_millis(5), 15),
    ] {
        let mut pair = Pair::new(true);
        pair.still_works();
        let mut real = Forger::as_side(&pair, 0);
        real.train = newest_train(&mut pair) + 30;
        real.send(&mut pair, 1, &whole(&[1; 60]));
        pair.out = Default::default();
        for i in 0..100 {
            pair.run(gap);
            pair.send(0, &frame(0, 700, i), Offload::NONE);
        }
        pair.run(gap);
        // The forged one was delivered, too.
        assert_eq!(pair.out[1].len(), 101 - lost, "{gap:?}");
        pair.still_works();
    }
}

/// A blackout swallows more trains than the window of order has slots.
#[test]
fn after_ten_thousand_lost_trains_the_next_ones_arrive() {
    let mut pair = Pair::new(true);
    // How long it takes to be answered is known.
    pair.still_works();
    pair.lose = Box::new(|side, frame| side == 0 && is_train(frame));
    for i in 0..10_000u32 {
        pair.send(0, &frame(0, 60, i as u8), Offload::NONE);
        pair.run(Duration::from_micros(600));
    }
    assert!(newest_train(&mut pair) > 5000);
    pair.lose = Box::new(|_, _| false);
    pair.run(Duration::from_millis(1200));
    pair.still_works();
}

/// One side forgets the other, who noticed nothing: whatever epochs they draw, and however much
/// was sent before, they come together again.
#[test]
fn a_side_that_forgot_the_other_meets_it_again_every_time() {
    let mut pair = Pair::with(|_, config: &mut Config| {
        config.marked_frames = false;
        config.limits = Limits {
            hello_interval: Duration::from_millis(500),
            ..Limits::default()
        };
    });
    let mut forgotten = 0;
    for round in 0..600u32 {
        for i in 0..20 {
            pair.send(
                round as usize % 2,
                &frame(round as usize % 2, 1000, i),
                Offload::NONE,
            );
            pair.run(Duration::from_micros(200));
        }
        let deaf = (round / 2 % 2) as usize;
        pair.lose = Box::new(move |side, _| side != deaf);
        pair.run(Duration::from_millis(4000));
        pair.lose = Box::new(|_, _| false);
        forgotten += usize::from(pair.snapshot(deaf).peers.is_empty());
        pair.run(Duration::from_millis(1500));
        pair.events = Default::default();
        pair.still_works();
    }
    assert!(forgotten > 500, "{forgotten}");
    let _ = node(0);
}
