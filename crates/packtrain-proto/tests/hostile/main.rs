//! Bad input from the wire: each kind has its counter and does no harm. After each, the two
//! engines still carry frames for each other, hold no more than they may, and go to sleep.

#[path = "../support/mod.rs"]
mod support;

mod fragments;
mod hellos;
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
    // What came after a gap is looked at when the gap has been waited for.
    pair.run(Duration::from_millis(2));
    let mut dropped = pair.dropped_since(1, &before);
    let mut expected = expected.to_vec();
    let by_name = |entry: &(DropReason, u64)| entry.0.as_str();
    dropped.sort_by_key(by_name);
    expected.sort_by_key(by_name);
    assert_eq!(dropped, expected);
}
