//! Bad input from the wire: each kind has its counter and does no harm. After each, the two
//! engines still carry frames for each other, hold no more than they may, and go to sleep.

#[path = "../support/segments.rs"]
mod segments;
#[path = "../support/mod.rs"]
mod support;

mod fragments;
mod hellos;
mod links;
mod liveness;
mod offloads;
mod replays;
mod stuck;
mod trains;

use packtrain_proto::stats::DropReason;
use packtrain_proto::time::Duration;
use support::Pair;

/// What an attack on side 1 adds to its counters: this, and nothing else.
#[track_caller]
fn counts(pair: &mut Pair, expected: &[(DropReason, u64)], attack: impl FnOnce(&mut Pair)) {
    let before = pair.drops(1);
    attack(pair);
    let by_name = |entry: &(DropReason, u64)| entry.0.as_str();
    let mut expected = expected.to_vec();
    expected.sort_by_key(by_name);
    let dropped = |pair: &mut Pair| {
        let mut dropped = pair.dropped_since(1, &before);
        dropped.sort_by_key(by_name);
        dropped
    };
    for _ in 0..10 {
        // What came after a gap is looked at when the gap has been waited for.
        if dropped(pair) != expected {
            pair.run(Duration::from_millis(2));
        }
    }
    let dropped = dropped(pair);
    assert_eq!(dropped, expected);
}
