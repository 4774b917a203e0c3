//! Classes that go by some links alone: they use these, nothing else waits for them, and their frames keep their order whatever
//! happens to the links, and when a flow comes to be of such a class.

use crate::segments::{Bed, Cable, numbered_of_type as frame, pt0};
use packtrain_proto::class::{Action, Class};
use packtrain_proto::config::{Config, LinkId, NodeId};
use packtrain_proto::engine::{Engine, Event};
use packtrain_proto::stats::DropReason;
use packtrain_proto::time::Duration;
use packtrain_proto::wire::train::Train;

const MS: Duration = Duration::from_millis(1);
const A: usize = 0;
const B: usize = 1;
/// Of what goes by a link of its own, and what does not: nobody knows these.
const OWN: [u8; 2] = [0x9a, 0x01];
const ANY: [u8; 2] = [0x9a, 0x02];

fn class(links: &[u8]) -> Class {
    Class {
        name: "own".parse().expect("a right name"),
        matches: "ethertype 0x9a01".parse().expect("a right match"),
        links: links.iter().map(|link| format!("eth{link}")).collect(),
        action: Action {
            links: links.iter().map(|&link| LinkId(link)).collect(),
            ..Action::default()
        },
    }
}

/// Frames of the class by these links, of as many as there are cables.
fn cables(count: u8, links: &[u8], set: impl Fn(&mut Config)) -> Bed {
    Bed::cabled(count, class(links), |config| {
        // Bytes and trains are counted here.
        config.detection_time = None;
        set(config);
    })
}

impl Bed {
    /// Numbers of the frames of this kind that B was given, in their order.
    fn came(&self, ether_type: [u8; 2]) -> Vec<u32> {
        let of_kind = self.out[B]
            .iter()
            .filter(|frame| frame[12..14] == ether_type);
        of_kind
            .map(|frame| u32::from_be_bytes(frame[frame.len() - 4..].try_into().expect("four")))
            .collect()
    }

    /// So many of both kinds, one of each a millisecond.
    fn send_both(&mut self, count: u32) {
        for n in 0..count {
            self.send(A, &frame(OWN, n));
            self.send(A, &frame(ANY, n));
            self.run(MS);
        }
        self.run(200 * MS);
    }
}

fn lane_of(message: &[u8]) -> Option<u8> {
    let is_train = message[12..15] == [0x88, 0xb5, 0x11];
    is_train.then(|| Train::parse(&message[14..]).expect("our own").header.lane)
}

/// Whether the host of A is held back in half a second in which it sends 11 Mbit/s of each kind, and these links take 2.
fn is_held_back(links: &[u8], slow: &[u8]) -> bool {
    let mut bed = cables(2, links, |config| config.coded_trains = false);
    bed.queues = slow.iter().map(|&link| ((A, LinkId(link)), 0)).collect();
    for n in 0..500 {
        for kind in [OWN, ANY] {
            let mut frame = frame(kind, n);
            frame.resize(1400, 0);
            bed.send(A, &frame);
        }
        bed.run(MS);
        let queues = bed.queues.values_mut();
        queues.for_each(|queue| *queue = queue.saturating_sub(250));
    }
    let holds_back = |event: &Event| {
        matches!(
            event,
            Event::IntakeRate {
                rate_bps: Some(_),
                ..
            }
        )
    };
    bed.events[A].iter().any(holds_back)
}

/// It would be held back with all that it sends.
#[test]
fn a_host_is_not_held_back_for_what_waits_for_a_link_of_its_own() {
    assert!(!is_held_back(&[1], &[1]));
    // Of both links all frames have, and of none there is another.
    assert!(is_held_back(&[0, 1], &[0, 1]));
    assert!(is_held_back(&[1], &[0, 1]));
}

/// None of many small flows holds as much as one of the others.
#[test]
fn many_flows_that_wait_for_a_link_of_their_own_take_no_room_from_others() {
    let mut bed = cables(2, &[1], |config| config.limits.queued_frames_max = 256);
    for link in [0, 1] {
        bed.full.insert((A, LinkId(link)));
    }
    let send_own = |bed: &mut Bed, count: u32| {
        for n in 0..count {
            let mut frame = frame(OWN, n);
            // From one of a hundred stations behind the host.
            frame[6..12].copy_from_slice(&[0x02, 0x77, 0, 0, 0, (n % 100) as u8]);
            bed.send(A, &frame);
        }
    };
    send_own(&mut bed, 400);
    for n in 0..20 {
        let mut frame = frame(ANY, n);
        frame.splice(14..14, [0; 1000]);
        bed.send(A, &frame);
    }
    send_own(&mut bed, 200);
    let dropped = bed.seen(A).drops.get(DropReason::QueueFull);
    assert!(dropped > 300, "{dropped}");
    bed.full.remove(&(A, LinkId(0)));
    bed.run(200 * MS);
    assert_eq!(bed.came(ANY), (0..20).collect::<Vec<_>>());
}

#[test]
fn frames_of_such_a_class_go_by_its_links_and_all_others_by_any() {
    let mut bed = cables(3, &[1, 2], |_| {});
    let before = bed.trains_by_link(A);
    for n in 0..300 {
        bed.send(A, &frame(OWN, n));
        bed.run(MS);
    }
    let by_link: Vec<u64> = bed.trains_by_link(A);
    let by_link: Vec<u64> = by_link.iter().zip(&before).map(|(a, b)| a - b).collect();
    assert_eq!(by_link.iter().sum::<u64>(), 300, "{by_link:?}");
    assert!(
        by_link[0] == 0 && by_link[1] >= 100 && by_link[2] >= 100,
        "{by_link:?}"
    );
    assert!(bed.came(OWN).into_iter().eq(0..300));
    for n in 0..300 {
        bed.send(A, &frame(ANY, n));
        bed.run(MS);
    }
    assert!(
        bed.trains_by_link(A)[0] >= 80,
        "{:?}",
        bed.trains_by_link(A)
    );
    assert!(bed.came(ANY).into_iter().eq(0..300));
}

#[test]
fn when_none_of_its_links_works_they_go_by_others_and_back_and_none_is_lost() {
    let mut bed = cables(3, &[1, 2], |_| {});
    let mut n = 0;
    let mut send = |bed: &mut Bed, count: u32| {
        for _ in 0..count {
            bed.send(A, &frame(OWN, n));
            n += 1;
            bed.run(MS);
        }
        bed.trains_by_link(A)
    };
    send(&mut bed, 50);
    bed.set_carrier(A, 1, false);
    let before = send(&mut bed, 50);
    let after = send(&mut bed, 50);
    assert_eq!((after[0] - before[0], after[2] - before[2]), (0, 50));
    bed.set_carrier(A, 2, false);
    let after_cut = send(&mut bed, 50);
    assert!(after_cut[0] - after[0] >= 50, "{after:?} {after_cut:?}");
    bed.set_carrier(A, 2, true);
    // It is heard again.
    send(&mut bed, 1500);
    let before = bed.trains_by_link(A);
    let after = send(&mut bed, 50);
    assert_eq!((after[0] - before[0], after[2] - before[2]), (0, 50));
    bed.run(200 * MS);
    assert!(bed.came(OWN).into_iter().eq(0..n), "{:?}", bed.came(OWN));
}

#[test]
fn a_gap_of_one_lane_holds_nothing_of_another() {
    let mut bed = cables(2, &[1], |config| config.limits.repair_within = None);
    // Of ten trains of the class one is lost.
    let mut count = 0;
    bed.lose = Box::new(move |side, _, message| {
        let counts = side == A && lane_of(message) == Some(1);
        count += u32::from(counts);
        counts && count % 10 == 0
    });
    let mut sent_at = Vec::new();
    for n in 0..500u32 {
        bed.send(A, &frame(OWN, n));
        bed.send(A, &frame(ANY, n));
        bed.run(Duration::from_micros(1));
        sent_at.push(bed.came(ANY).len());
        bed.run(MS);
    }
    bed.run(100 * MS);
    // Each was there at once, however many gaps the other lane had.
    assert!(sent_at.iter().enumerate().all(|(n, &came)| came == n + 1));
    let own = bed.came(OWN);
    assert!(
        (400..=460).contains(&own.len()) && own.is_sorted(),
        "{}",
        own.len()
    );
    assert!(
        bed.seen(B).resequencer.gaps >= 40,
        "{:?}",
        bed.seen(B).resequencer
    );
}

#[test]
fn what_its_link_loses_goes_again_in_its_lane() {
    let mut bed = cables(3, &[1, 2], |_| {});
    let mut count = 0;
    bed.lose = Box::new(move |side, _, message| {
        let counts = side == A && lane_of(message) == Some(1);
        count += u32::from(counts);
        counts && count % 7 == 0
    });
    bed.send_both(500);
    assert!(
        bed.came(OWN).into_iter().eq(0..500),
        "{}",
        bed.came(OWN).len()
    );
    assert!(bed.came(ANY).into_iter().eq(0..500));
    assert!(bed.seen(A).replay.repaired > 50);
}

#[test]
fn who_has_forgotten_a_lane_goes_on_with_what_comes_in_it() {
    let mut bed = cables(2, &[1], |_| {});
    bed.send_both(200);
    // B starts anew, and knows of no lane what was sent before.
    bed.engines[B] = Engine::new(Config::new(NodeId(0x9999), pt0(B)), bed.now);
    (0..2).for_each(|link| bed.set_carrier(B, link, true));
    bed.run(1500 * MS);
    bed.out[B].clear();
    bed.send_both(100);
    assert!(bed.came(OWN).into_iter().eq(0..100), "{:?}", bed.came(OWN));
    assert!(bed.came(ANY).into_iter().eq(0..100));
}

/// What was given to the slow link before comes first.
#[test]
fn a_flow_that_comes_to_another_lane_overtakes_nothing() {
    for (before, after) in [(vec![1], vec![0]), (vec![], vec![1]), (vec![1], vec![])] {
        let mut bed = cables(2, &before, |_| {});
        for n in 0..20 {
            bed.send(A, &frame(OWN, n));
            bed.run(MS);
        }
        // The link of before, or one of them, is late with what it has.
        let slow = before.first().copied().unwrap_or(0);
        bed.delay = Some(((A, LinkId(slow)), 30 * MS));
        for n in 20..40 {
            bed.send(A, &frame(OWN, n));
            bed.run(MS);
        }
        bed.engines[A].set_classes(vec![class(&after)], bed.now);
        bed.delay = None;
        for n in 40..60 {
            bed.send(A, &frame(OWN, n));
            bed.run(MS);
        }
        bed.run(500 * MS);
        let came = bed.came(OWN);
        assert!(
            came.iter().copied().eq(0..60),
            "{before:?} {after:?}: {came:?}"
        );
        let drops = bed.seen(B).drops;
        assert_eq!(drops.get(DropReason::Late), 0);
    }
}

/// Nobody waits longer for the last train of before, and its frame would come behind those of after.
#[test]
fn what_comes_when_another_lane_went_on_without_it_is_too_late() {
    for late_ms in [20, 70] {
        let mut bed = cables(1, &[0], |_| {});
        for n in 0..40 {
            bed.delay = (n == 19).then_some(((A, LinkId(0)), late_ms * MS));
            if n == 20 {
                bed.engines[A].set_classes(vec![class(&[])], bed.now);
            }
            bed.send(A, &frame(OWN, n));
            bed.run(MS);
        }
        bed.run(500 * MS);
        let is_late = late_ms > 50;
        let came = bed.came(OWN);
        assert!(
            came.iter()
                .copied()
                .eq((0..40).filter(|&n| n != 19 || !is_late)),
            "{late_ms}: {came:?}"
        );
        let late = bed.seen(B).drops.get(DropReason::Late);
        assert_eq!(late, u64::from(is_late));
    }
}

/// … also in a lane of which nothing had come, nor was said when the two met.
#[test]
fn what_comes_first_of_a_lane_when_another_one_went_on_without_it_is_too_late() {
    let mut bed = cables(2, &[], |_| {});
    bed.run(1000 * MS);
    bed.engines[A].set_classes(vec![class(&[1])], bed.now);
    // The link of its own is late with all that it has, and what goes again is lost.
    let mut sent = 0;
    bed.lose = Box::new(move |side, link, message| {
        let counts = side == A && lane_of(message) == Some(1);
        sent += u32::from(counts && link == LinkId(1));
        counts && (link == LinkId(0) || sent > 10)
    });
    bed.delay = Some(((A, LinkId(1)), 1500 * MS));
    for n in 0..10 {
        bed.send(A, &frame(OWN, n));
        bed.run(MS);
    }
    bed.delay = None;
    bed.engines[A].set_classes(vec![class(&[])], bed.now);
    for n in 10..30 {
        bed.send(A, &frame(OWN, n));
        bed.run(MS);
    }
    bed.run(1100 * MS);
    assert_eq!(bed.came(OWN), []);
    bed.run(2000 * MS);
    assert!(bed.came(OWN).into_iter().eq(10..30), "{:?}", bed.came(OWN));
    assert_eq!(bed.seen(B).drops.get(DropReason::Late), 10);
}

/// Whoever was met first has gone: what the next one's link loses goes again all the same.
#[test]
fn what_goes_again_does_so_also_behind_the_place_of_one_who_is_gone() {
    const C: usize = 2;
    let all: Vec<Cable> = (0..2)
        .map(|link| Cable::of(&[(A, link), (B, link), (C, link)]))
        .collect();
    for gone in [B, C] {
        let other = B + C - gone;
        let mut bed = Bed::with(3, &all, |config| {
            config.detection_time = None;
            // Of so many that are lost some are again and again.
            config.limits.repair_within = Some(500 * MS);
        });
        bed.engines[A].set_classes(vec![class(&[1])], bed.now);
        bed.run(1500 * MS);
        bed.stop(gone);
        bed.run(5000 * MS);
        assert_eq!(bed.seen(A).peers.len(), 1);
        let mut count = 0;
        bed.lose = Box::new(move |side, _, message| {
            let counts = side == A && lane_of(message).is_some();
            count += u32::from(counts);
            counts && count % 7 == 0
        });
        for n in 0..300u32 {
            for ether_type in [OWN, ANY] {
                let mut frame = frame(ether_type, n);
                frame[..6].copy_from_slice(&pt0(other).0);
                bed.send(A, &frame);
            }
            bed.run(MS);
        }
        bed.run(200 * MS);
        for ether_type in [OWN, ANY] {
            let of_kind = bed.out[other].iter();
            let of_kind = of_kind.filter(|frame| frame[12..14] == ether_type);
            assert_eq!(of_kind.count(), 300, "without {gone}");
        }
    }
}
