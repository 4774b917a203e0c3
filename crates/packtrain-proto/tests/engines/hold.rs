//! How long what comes of a peer waits for its turn, as the engine counts it.

use crate::support::forger::{Forger, option, whole};
use crate::support::{Pair, link_address};
use packtrain_proto::config::mark_of;
use packtrain_proto::offload::Offload;
use packtrain_proto::stats::HoldSnapshot;
use packtrain_proto::time::Duration;

const NEWEST: u8 = 0x02;
const OTHER_LINK: u8 = 9;

fn hold_of(pair: &Pair, forger: &Forger) -> HoldSnapshot {
    let peers = pair.snapshot(1).peers;
    let peer = peers.into_iter().find(|p| p.node_id == forger.node_id);
    peer.expect("it is known").hold
}

#[test]
fn trains_in_their_turn_are_counted_and_were_not_held() {
    let mut pair = Pair::new(true);
    let mut forger = Forger::known_to(&mut pair, 1, 1);
    for n in 0..5 {
        forger.send(&mut pair, 1, &whole(&[n; 100]));
        pair.run(Duration::from_millis(3));
    }
    let hold = hold_of(&pair, &forger);
    assert_eq!((hold.trains, hold.held_trains), (5, 0));
    assert_eq!((hold.p999, hold.max), (Duration::ZERO, Duration::ZERO));
}

/// The second of three trains comes last, by another link; before it a frame with a mark, which must
/// not overtake the third.
#[test]
fn a_train_is_held_from_its_arrival_to_its_turn_and_so_is_a_frame_behind_it() {
    let mut pair = Pair::new(true);
    let mut forger = Forger::known_to(&mut pair, 1, 1);
    forger.send(&mut pair, 1, &whole(&[1; 100]));
    let mut second = forger.train(1, &whole(&[2; 100]));
    second.link = OTHER_LINK;
    let mut third = forger.train(1, &whole(&[3; 100]));
    let one_before = u32::from(OTHER_LINK) << 24 | 1;
    third.options = option(NEWEST, &one_before.to_be_bytes());
    pair.inject(1, &third.bytes(), Offload::NONE);
    pair.run(Duration::from_micros(1500));
    let mark = mark_of(forger.link).expect("it has one");
    let marked = [&link_address(1).0[..], &mark.0, &[0x90, 0], &[4; 60]].concat();
    pair.inject(1, &marked, Offload::NONE);
    pair.run(Duration::from_micros(500));
    assert_eq!(pair.out[1].len(), 1, "all but the first wait");
    assert_eq!(hold_of(&pair, &forger).trains, 1);
    pair.inject(1, &second.bytes(), Offload::NONE);
    let payloads: Vec<u8> = pair.out[1].iter().map(|(frame, _)| frame[14]).collect();
    assert_eq!(payloads, [1, 2, 3, 4]);
    let hold = hold_of(&pair, &forger);
    assert_eq!((hold.trains, hold.held_trains), (4, 2));
    assert_eq!(hold.max, Duration::from_millis(2), "the third train");
    let buckets: Vec<(u64, u64)> = hold
        .buckets
        .iter()
        .map(|bucket| (bucket.below.as_nanos() as u64, bucket.trains))
        .collect();
    // 0.5 ms is the frame's, 2 ms the train's.
    assert_eq!(buckets, [(1 << 10, 2), (1 << 19, 1), (1 << 21, 1)]);
}

/// What a peer begins anew it still has waited for.
#[test]
fn what_was_counted_stays_when_the_peer_begins_its_sequences_anew() {
    let mut pair = Pair::new(true);
    let mut forger = Forger::known_to(&mut pair, 1, 1);
    forger.send(&mut pair, 1, &whole(&[1; 100]));
    let mut hello = forger.hello(Some(crate::support::node(1)));
    hello.epoch += 1;
    hello.count = 1;
    pair.inject(
        1,
        &crate::support::forger::emit(&hello, forger.link),
        Offload::NONE,
    );
    assert_eq!(hold_of(&pair, &forger).trains, 1);
}
