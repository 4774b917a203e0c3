//! What is said of several links, and is not true.

use packtrain_proto::offload::Offload;
use packtrain_proto::stats::DropReason;
use packtrain_proto::time::Duration;

use super::counts;
use super::support::forger::{Forger, option};
use super::support::{Pair, frame};

const MARKER: u8 = 0x02;
const REPLAY: u8 = 0x04;
const NEWEST: u8 = 0x02;

fn newest_train(pair: &Pair) -> u32 {
    pair.snapshot(0).trains_tx.trains as u32
}

/// A marker in the name of side 0: `ahead` of all that was sent, and trains are under way on two links that
/// nobody has, up to `under_way` before that.
fn marker(pair: &Pair, ahead: u32, under_way: Option<u32>) -> Vec<u8> {
    let mut train = Forger::as_side(pair, 0).train(1, &[]);
    train.flags = MARKER;
    train.train = newest_train(pair).wrapping_add(ahead);
    if let Some(behind) = under_way {
        let entries = [9u32 << 24 | behind, 0xff << 24 | behind].map(u32::to_be_bytes);
        train.options = option(NEWEST, &entries.concat());
    }
    train.bytes()
}

#[test]
fn a_marker_that_names_trains_never_sent_changes_nothing() {
    for ahead in [0, 1, 50, 3000, 5000, 1 << 31, u32::MAX - 5] {
        for under_way in [None, Some(0), Some(7), Some(0xff_ffff)] {
            let mut pair = Pair::new(false);
            pair.still_works();
            for _ in 0..40 {
                let lie = marker(&pair, ahead, under_way);
                pair.inject(1, &lie, Offload::NONE);
            }
            pair.still_works();
        }
    }
}

#[test]
fn what_is_said_of_links_that_nobody_has_holds_a_gap_no_longer_than_a_link_that_stalls() {
    for (ahead, held_max) in [(0, 60), (100, 2050)] {
        let mut pair = Pair::new(false);
        pair.still_works();
        let lie = marker(&pair, ahead, Some(0));
        pair.inject(1, &lie, Offload::NONE);
        pair.lose = Box::new(|side, frame| side == 0 && frame.len() > 500);
        pair.send(0, &frame(0, 700, 1), Offload::NONE);
        pair.run(Duration::from_millis(1));
        pair.lose = Box::new(|_, _| false);
        pair.send(0, &frame(0, 100, 2), Offload::NONE);
        pair.run(Duration::from_millis(held_max));
        assert_eq!(pair.out[1].len(), 1, "{ahead}");
        pair.run(Duration::from_secs(3));
        pair.still_works();
    }
}

#[test]
fn a_train_that_comes_again_as_a_replay_is_a_duplicate_every_time() {
    let mut pair = Pair::new(false);
    pair.still_works();
    pair.record = true;
    pair.send(0, &frame(0, 300, 1), Offload::NONE);
    pair.run(Duration::from_millis(5));
    let sent = pair.recorded.iter().find(|(side, frame, _)| {
        *side == 0 && frame[12..15] == [0x88, 0xb5, 0x11] && frame[15] & MARKER == 0
    });
    let mut again = sent.expect("a train").1.clone();
    again[15] |= REPLAY;
    pair.record = false;
    let delivered = pair.out[1].len();
    counts(&mut pair, &[(DropReason::Duplicate, 30)], |pair| {
        for _ in 0..30 {
            pair.inject(1, &again, Offload::NONE);
        }
    });
    assert_eq!(pair.out[1].len(), delivered);
    pair.still_works();
}

#[test]
fn an_option_that_is_cut_is_refused() {
    let mut pair = Pair::new(false);
    let mut train = Forger::as_side(&pair, 0).train(1, &[]);
    train.flags = MARKER;
    train.options = option(NEWEST, &[1, 2, 3]);
    counts(&mut pair, &[(DropReason::BadOption, 1)], |pair| {
        pair.inject(1, &train.bytes(), Offload::NONE);
    });
}
