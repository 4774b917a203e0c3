//! Links that are away for a moment, and bring what was under way still.

use std::cell::RefCell;
use std::rc::Rc;

use crate::segments::{Bed, Cable, frame_to, pt0};
use packtrain_proto::config::LinkId;
use packtrain_proto::stats::DropReason;
use packtrain_proto::time::Duration;

const HELLO: [u8; 3] = [0x88, 0xb5, 0x12];

/// What is long under way from host 0 to host 1, by which link. Hellos are as quick as ever.
type UnderWay = Rc<RefCell<Vec<(LinkId, Vec<u8>)>>>;

/// Two hosts that know two cables.
fn bed() -> Bed {
    let cables = [0, 1].map(|link| Cable::of(&[(0, link), (1, link)]));
    let mut bed = Bed::new(2, &cables);
    bed.run(Duration::from_secs(4));
    for word in 0..8 {
        bed.send(0, &frame_to(pt0(1), pt0(0), word));
        bed.run(Duration::from_millis(10));
    }
    assert_eq!(bed.out[1].len(), 8);
    bed.out[1].clear();
    bed
}

fn slow_down(bed: &mut Bed) -> UnderWay {
    let under_way = UnderWay::default();
    let takes = under_way.clone();
    bed.lose = Box::new(move |side, link, frame| {
        let is_slow = side == 0 && frame[12..15] != HELLO;
        if is_slow {
            takes.borrow_mut().push((link, frame.to_vec()));
        }
        is_slow
    });
    under_way
}

fn send_by(bed: &mut Bed, link: u8, word: u8) {
    let others: Vec<_> = [0, 1].into_iter().filter(|&other| other != link).collect();
    bed.full.extend(others.iter().map(|&l| (0, LinkId(l))));
    bed.run(Duration::from_micros(10));
    bed.send(0, &frame_to(pt0(1), pt0(0), word));
    bed.run(Duration::from_micros(10));
    bed.full.clear();
    bed.run(Duration::from_micros(10));
}

fn arrive(bed: &mut Bed, frames: impl IntoIterator<Item = (LinkId, Vec<u8>)>) {
    for (link, frame) in frames {
        bed.inject(1, link.0, &frame);
        bed.run(Duration::from_micros(10));
    }
}

fn words(bed: &Bed) -> Vec<u8> {
    bed.out[1].iter().map(|f| f[f.len() - 1]).collect()
}

fn late(bed: &Bed) -> u64 {
    bed.engines[1].snapshot(bed.now).drops.get(DropReason::Late)
}

#[test]
fn a_link_that_is_away_for_a_moment_misses_a_train_and_brings_the_next_and_both_are_given_in_order()
{
    let mut bed = bed();
    let under_way = slow_down(&mut bed);
    send_by(&mut bed, 1, 100);
    send_by(&mut bed, 1, 101);
    let first: Vec<_> = under_way.borrow_mut().drain(..).collect();
    assert!(first.len() >= 2 && first.iter().all(|(link, _)| link.0 == 1));
    // The sender notices, and sends both again by the other link, which is slow.
    let now = bed.now;
    bed.engines[1].remove_link(LinkId(1), now);
    bed.run(Duration::from_millis(1));
    bed.set_carrier(1, 1, true);
    bed.run(Duration::from_millis(1));
    arrive(&mut bed, first.into_iter().skip(1));
    bed.run(Duration::from_millis(500));
    assert_eq!(words(&bed), [], "the one before it goes again");
    let again: Vec<_> = under_way.borrow_mut().drain(..).collect();
    let by_the_other = again.into_iter().filter(|(link, _)| link.0 == 0);
    arrive(&mut bed, by_the_other);
    assert_eq!((words(&bed), late(&bed)), (vec![100, 101], 0));
}

#[test]
fn what_a_sender_named_is_waited_for_while_nothing_at_all_is_heard_of_it() {
    let mut bed = bed();
    let under_way = slow_down(&mut bed);
    send_by(&mut bed, 1, 100);
    let first: Vec<_> = under_way.borrow_mut().drain(..).collect();
    send_by(&mut bed, 0, 101);
    let second: Vec<_> = under_way.borrow_mut().drain(..).collect();
    let is_by_the_other = |(link, _): &(LinkId, Vec<u8>)| link.0 == 0;
    arrive(&mut bed, second.into_iter().filter(is_by_the_other));
    bed.run(Duration::from_millis(1900));
    assert_eq!(words(&bed), []);
    arrive(&mut bed, first);
    assert_eq!((words(&bed), late(&bed)), (vec![100, 101], 0));
}
